"""Clients of OpenAI-compatible APIs, for LLMs and embedding models.

`openai` takes 0.4 s to import, so the first call imports it, in a thread. Its retries and time limits are switched
off: the limits restart with each read, so a server that sends byte by byte could block a call for ever.

All failures are raised as errors with our own messages. A server's message may repeat the key or the dialogue, so it is
only used to choose the error and is never shown.
"""

import asyncio
import ipaddress
import logging
import math
import random
import re
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import anyio.to_thread
from pydantic import SecretStr

from memoryos_mcp.errors import ModelError

if TYPE_CHECKING:
    import openai

ATTEMPTS = 3
FIRST_PAUSE_S = 1.0
# Longer than any error message. A body that repeats the whole prompt is longer; its rest is not searched.
TEXT_READ_CHARS = 20_000

# The client requires a key; servers that need none ignore it.
_NO_KEY = "none"
_FOREIGN_LOGGERS = ("openai", "httpx2", "httpcore2")
_REINSTALL = "the library openai cannot be imported; reinstall this program"

_PLAIN_CODE = re.compile(r"[a-z_]{1,40}")
_CONTEXT_TOO_LONG = re.compile(
    r"context.?length|context.?(?:size|window)|prompt is too long|range of input length|too many (?:input )?tokens"
)

T = TypeVar("T")

_logger = logging.getLogger(__name__)


class PassingError(ModelError):
    """A temporary failure: a later attempt may succeed.

    Args:
        text: The message for the user: what was wrong and what to do.
        retry_after_s: The pause that the server asks for, in seconds; 0 if it asks for none.
    """

    def __init__(self, text: str, *, retry_after_s: float = 0.0) -> None:
        super().__init__(text)
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, slots=True)
class Wording:
    """Parts of error messages about an API: its name, the settings to check, and advice on rate limits."""

    name: str
    url_setting: str
    timeout_setting: str
    model_setting: str
    rate_limit_advice: str


@dataclass(frozen=True, slots=True)
class Api:
    """An API at an address. Its ``repr`` shows no key and no credentials.

    Attributes:
        base_url: Its address; may contain credentials.
        key: The API key; None if the server needs none.
        key_source: The setting or environment variable for the key.
        wording: Parts of its error messages.
    """

    base_url: str = field(repr=False)
    key: SecretStr | None = field(repr=False)
    key_source: str
    wording: Wording

    @property
    def address(self) -> str:
        """The base URL without credentials and query, for messages."""
        parts = urlsplit(self.base_url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}".rstrip("/")

    @property
    def is_on_this_machine(self) -> bool:
        """Whether the address is a loopback address."""
        host = urlsplit(self.base_url).hostname or ""
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost" or host.endswith(".localhost")

    @property
    def where(self) -> str:
        """Name and address, for messages."""
        return f"{self.wording.name} at {self.address}"


@dataclass(frozen=True, slots=True)
class ErrorResponse:
    """A response with an HTTP status other than 200.

    Attributes:
        status: The HTTP status.
        code: The API's name for the error; None if there is none, or if it may not be shown.
        param: The request parameter that the API names; None if it names none.
        text: The body in lower case; must not be shown.
        retry_after_s: The pause that the server asks for, in seconds; 0 if none.
    """

    status: int
    code: str | None = None
    param: str | None = field(default=None, repr=False)
    text: str = field(default="", repr=False)
    retry_after_s: float = 0.0

    @property
    def label(self) -> str:
        """Status and code, for messages."""
        return f"HTTP {self.status}, {self.code}" if self.code else f"HTTP {self.status}"

    @property
    def is_too_long(self) -> bool:
        """Whether the input is longer than the model's context."""
        if self.status == 413:
            return True
        return self.status in {400, 422, 500} and _CONTEXT_TOO_LONG.search(self.text) is not None


class ApiClient:
    """A client of an API. Share one between all callers; close it after use.

    Args:
        api: The API.
        timeout_s: Longest wait for one reply, from the request to its last byte, in seconds.
    """

    def __init__(self, api: Api, *, timeout_s: float) -> None:
        self._api = api
        self._timeout_s = timeout_s
        self._client: openai.AsyncOpenAI | None = None
        self._opening = asyncio.Lock()
        self._is_closed = False

    async def post(
        self, send: Callable[["openai.AsyncOpenAI"], Awaitable[Any]], to_error: Callable[[ErrorResponse], ModelError]
    ) -> bytes:
        """Return the body of a response with status 200.

        Args:
            send: Sends the request and returns the raw response.
            to_error: Returns the error to raise for any other status.

        Raises:
            ModelError: There was no response within the time limit, or its status was not 200; a `PassingError` if the
                same request may succeed later.
        """

        async def body(client: "openai.AsyncOpenAI") -> bytes:
            with self._translated_errors(to_error):
                content: bytes = (await send(client)).content
            return content

        return await self._in_time(body)

    async def stream(
        self,
        start: Callable[["openai.AsyncOpenAI"], AbstractAsyncContextManager[Any]],
        on_part: Callable[[bytes], None],
        to_error: Callable[[ErrorResponse], ModelError],
    ) -> None:
        """Pass on the body of a response with status 200 as it arrives; errors are those of `post`.

        Args:
            start: Sends the request and yields the response without its body.
            on_part: Called with each part of the body.
            to_error: Returns the error to raise for any other status.
        """

        async def read(client: "openai.AsyncOpenAI") -> None:
            import httpx2

            with self._translated_errors(to_error):
                try:
                    async with start(client) as response:
                        async for part in response.iter_bytes():
                            on_part(part)
                except httpx2.HTTPError as error:  # once the body has begun, the library does not translate it
                    raise self._unreachable(error) from None

        await self._in_time(read)

    async def _in_time(self, work: Callable[["openai.AsyncOpenAI"], Awaitable[T]]) -> T:
        client = await self._opened()
        try:
            async with asyncio.timeout(self._timeout_s):
                return await work(client)
        except TimeoutError:
            message = (
                f"{self._api.where} did not finish its reply within {self._timeout_s:g} s; "
                f"raise {self._api.wording.timeout_setting} or use a faster model"
            )
            raise ModelError(message) from None

    async def aclose(self) -> None:
        """Release connections. Running calls and later calls fail."""
        self._is_closed = True
        async with self._opening:
            client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _opened(self) -> "openai.AsyncOpenAI":
        async with self._opening:
            if self._is_closed:
                raise ModelError(_closed(self._api))
            if self._client is None:
                self._client = await anyio.to_thread.run_sync(_open_client, self._api)
            return self._client

    @contextmanager
    def _translated_errors(self, to_error: Callable[[ErrorResponse], ModelError]) -> Iterator[None]:
        """Raise our errors instead of the library's, which contain the server's message and so must not be a cause."""
        import openai

        try:
            yield
        except openai.APIStatusError as error:
            raise to_error(_error_response(error)) from None
        except openai.APIConnectionError as error:
            raise self._unreachable(error) from None
        except (openai.OpenAIError, ValueError, RuntimeError) as error:
            raise ModelError(_closed(self._api) if self._is_closed else _unsendable(self._api, error)) from None

    def _unreachable(self, error: Exception) -> ModelError:
        import httpx2  # already loaded: the library sends its requests with it

        api = self._api
        if self._is_closed:
            return ModelError(_closed(api))
        causes = list(_causes(error))
        if any(isinstance(cause, ssl.SSLError) for cause in causes):
            return ModelError(
                f"no secure connection to {api.where}; check whether its address begins with http or https, "
                "and the server's certificate"
            )
        url_setting = api.wording.url_setting
        if any(isinstance(cause, socket.gaierror) for cause in causes):
            return PassingError(f"the host of {api.where} was not found; check {url_setting} and the network")
        if any(isinstance(cause, httpx2.LocalProtocolError) for cause in causes):
            return ModelError(_unsendable(api, error))
        if any(isinstance(cause, httpx2.ConnectError) for cause in causes):
            return PassingError(
                f"nothing answers at {api.address}; is {api.wording.name}'s server running? Check {url_setting}"
            )
        return PassingError(f"the connection to {api.where} broke before the reply was complete")


class Attempts:
    """Limits the attempts at one request to three, with growing pauses or those that the server asks for.

    Args:
        pause: Waits for the given number of seconds.
    """

    def __init__(self, pause: Callable[[float], Awaitable[None]]) -> None:
        self._pause = pause
        self._failed = 0

    async def wait_after(self, error: PassingError) -> None:
        """Wait until the next attempt may be made; raise ``error`` if there are no attempts left."""
        self._failed += 1
        if self._failed == ATTEMPTS:
            raise error
        pause_s = max(error.retry_after_s, _backoff_s(self._failed))
        _logger.info("attempt %d of %d failed, next in %.1f s: %s", self._failed, ATTEMPTS, pause_s, error)
        await self._pause(pause_s)


def retry_after_seconds(header: str | None, *, now: datetime) -> float:
    """Return the pause that a ``Retry-After`` header (RFC 9110, 10.2.3) asks for, in seconds; 0 if it asks for none."""
    if header is None:
        return 0.0
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(header).astimezone(UTC) - now).total_seconds()
        except (ValueError, OverflowError):
            return 0.0
    return max(0.0, seconds) if math.isfinite(seconds) else 0.0


def _open_client(api: Api) -> "openai.AsyncOpenAI":
    try:
        import openai
    except ImportError as error:
        raise ModelError(_REINSTALL) from error
    for name in _FOREIGN_LOGGERS:
        # At lower levels, which OPENAI_LOG can switch on, they log whole addresses with credentials.
        logging.getLogger(name).setLevel(logging.WARNING)
    try:
        client = openai.AsyncOpenAI(
            api_key=_NO_KEY if api.key is None else api.key.get_secret_value(),
            base_url=api.base_url,
            timeout=None,
            max_retries=0,
            http_client=openai.DefaultAsyncHttpxClient(
                timeout=None,
                # Dialogue must go only to the configured address. A proxy cannot reach a server on this machine.
                follow_redirects=False,
                trust_env=not api.is_on_this_machine,
            ),
        )
    except (ImportError, ValueError, OSError, openai.OpenAIError):
        message = (
            f"the connection to {api.where} could not be set up; check {api.wording.url_setting} and the "
            "environment variables HTTPS_PROXY, ALL_PROXY and SSL_CERT_FILE"
        )
        raise ModelError(message) from None
    # The library reads these from the environment. They may belong to another account or another provider.
    client.organization = client.project = None
    return client


def _error_response(error: "openai.APIStatusError") -> ErrorResponse:
    response = error.response
    return ErrorResponse(
        status=error.status_code,
        code=error.code if isinstance(error.code, str) and _PLAIN_CODE.fullmatch(error.code) else None,
        param=error.param.lower() if isinstance(error.param, str) and error.param else None,
        text=response.text[:TEXT_READ_CHARS].lower(),
        retry_after_s=retry_after_seconds(response.headers.get("retry-after"), now=datetime.now(UTC)),
    )


def _backoff_s(attempt: int) -> float:
    """Return a pause in seconds: it doubles with each attempt, plus or minus a random half to spread out the calls."""
    return FIRST_PAUSE_S * 2.0 ** (attempt - 1) * random.uniform(0.5, 1.5)  # noqa: S311 - not for security


def _closed(api: Api) -> str:
    return f"the connection to {api.where} was closed because this program is stopping"


def _unsendable(api: Api, error: Exception) -> str:
    """Return the message for a request or key that HTTP cannot transmit."""
    settings = f"{api.wording.url_setting} and {api.key_source}"
    return f"the request to {api.where} could not be sent ({type(error).__name__}); check {settings}"


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__
