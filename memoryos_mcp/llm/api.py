"""Clients for OpenAI-compatible APIs, which serve LLMs and embedding models.

Importing `openai` takes 0.4 s, so the library is imported in a thread when the first request is sent. The library's
own retries and time limits are switched off. Those time limits restart with each read, so a server that sends one byte
at a time could block a call forever.

Every failure is raised as an error with our own message. The server's message is used only to choose the error, because
that message may contain the key or the dialogue.
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
# Number of characters of an error response that are searched, which is more than any error message has. Some error
# responses repeat the whole prompt.
TEXT_READ_CHARS = 20_000

# The library requires a key. Servers that need no key ignore it.
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
        text: The message for the user: what is wrong and what to do.
        retry_after_s: Pause that the server requested, in seconds; 0 if it requested no pause.
    """

    def __init__(self, text: str, *, retry_after_s: float = 0.0) -> None:
        super().__init__(text)
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, slots=True)
class Wording:
    """Words for error messages about an API: its name, the settings to check, and advice on rate limits."""

    name: str
    url_setting: str
    timeout_setting: str
    model_setting: str
    rate_limit_advice: str


@dataclass(frozen=True, slots=True)
class Api:
    """The address and key of an API. Its ``repr`` contains neither the key nor the credentials in the address.

    Attributes:
        base_url: The address of the API, which may contain credentials.
        key: The API key; None if the server needs none.
        key_source: Name of the setting or environment variable that contains the key.
        wording: The words to use in error messages about the API.
    """

    base_url: str = field(repr=False)
    key: SecretStr | None = field(repr=False)
    key_source: str
    wording: Wording

    @property
    def address(self) -> str:
        """The base URL without credentials and query, for use in messages."""
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
        """The name and address of the API, for use in messages."""
        return f"{self.wording.name} at {self.address}"


@dataclass(frozen=True, slots=True)
class ErrorResponse:
    """A response with an HTTP status other than 200.

    Attributes:
        status: The HTTP status.
        code: The error code in the response; None if the response has no code, or if the code must not be shown.
        param: The request parameter that the response names; None if the response names no parameter.
        text: The beginning of the body, in lower case. It must not be shown to the user.
        retry_after_s: Pause that the server requested, in seconds; 0 if it requested no pause.
    """

    status: int
    code: str | None = None
    param: str | None = field(default=None, repr=False)
    text: str = field(default="", repr=False)
    retry_after_s: float = 0.0

    @property
    def label(self) -> str:
        """The HTTP status and the error code, for use in messages."""
        return f"HTTP {self.status}, {self.code}" if self.code else f"HTTP {self.status}"

    @property
    def is_too_long(self) -> bool:
        """Whether the request was refused because its input is longer than the model's context."""
        if self.status == 413:
            return True
        return self.status in {400, 422, 500} and _CONTEXT_TOO_LONG.search(self.text) is not None


class ApiClient:
    """A client for an API. Use the same client for all callers, and close it after use.

    Args:
        api: The address and key of the API.
        timeout_s: Seconds allowed from the request to the last byte of the reply.
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
        """Send a request and return the body of the response.

        Args:
            send: Sends the request and returns the raw response.
            to_error: Returns the error to raise for a response with a status other than 200.

        Raises:
            ModelError: There was no response within the time limit, or its status was not 200. The error is a
                `PassingError` if the same request may succeed later.
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
        """Send a request and pass the body of the response to ``on_part`` as it arrives.

        Raises the same errors as `post`.

        Args:
            start: Sends the request and yields the response before its body has arrived.
            on_part: Called with each part of the body.
            to_error: Returns the error to raise for a response with a status other than 200.
        """

        async def read(client: "openai.AsyncOpenAI") -> None:
            import httpx2

            with self._translated_errors(to_error):
                try:
                    async with start(client) as response:
                        async for part in response.iter_bytes():
                            on_part(part)
                except httpx2.HTTPError as error:
                    # The library does not translate errors that occur while the body is read.
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
                f"increase {self._api.wording.timeout_setting} or use a faster model"
            )
            raise ModelError(message) from None

    async def aclose(self) -> None:
        """Close the connections. Running calls and later calls fail."""
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
        """Raise our own errors in place of the library's errors.

        Our errors have no ``__cause__``, because the library's errors contain the server's message, which may quote the
        request.
        """
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
        import httpx2  # already imported by the library openai, which uses it to send requests

        api = self._api
        if self._is_closed:
            return ModelError(_closed(api))
        causes = list(_causes(error))
        if any(isinstance(cause, ssl.SSLError) for cause in causes):
            return ModelError(
                f"no secure connection to {api.where}; check the server's certificate, and whether the address must "
                "begin with http or https"
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
        return PassingError(f"the connection to {api.where} broke before the reply was complete; try again")


class Attempts:
    """Limits a request to three attempts, with a pause before the second and the third.

    On average, the second pause is twice as long as the first. If the server requests a longer pause (``Retry-After``),
    that pause is used instead.

    Args:
        pause: Function that waits for a given number of seconds.
    """

    def __init__(self, pause: Callable[[float], Awaitable[None]]) -> None:
        self._pause = pause
        self._failed = 0

    async def wait_after(self, error: PassingError) -> None:
        """Wait until the next attempt may be made. After the last attempt, raise ``error`` instead."""
        self._failed += 1
        if self._failed == ATTEMPTS:
            raise error
        pause_s = max(error.retry_after_s, _backoff_s(self._failed))
        _logger.info(
            "attempt %d of %d failed; the next one starts in %.1f s: %s", self._failed, ATTEMPTS, pause_s, error
        )
        await self._pause(pause_s)


def retry_after_seconds(header: str | None, *, now: datetime) -> float:
    """Return the pause in seconds that a ``Retry-After`` header requests (RFC 9110, 10.2.3); 0 if None or invalid."""
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
        # At lower levels, which OPENAI_LOG can enable, these loggers log whole addresses with credentials.
        logging.getLogger(name).setLevel(logging.WARNING)
    try:
        client = openai.AsyncOpenAI(
            api_key=_NO_KEY if api.key is None else api.key.get_secret_value(),
            base_url=api.base_url,
            timeout=None,
            max_retries=0,
            http_client=openai.DefaultAsyncHttpxClient(
                timeout=None,
                # Dialogue must be sent only to the configured address. A proxy cannot reach a server on this machine.
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
    # The library reads these values from the environment, but they may belong to another account or provider.
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
    """Return the number of seconds to wait after a failed attempt.

    The pause doubles with each attempt. A random factor from 0.5 to 1.5 prevents all clients from retrying at once.
    """
    return FIRST_PAUSE_S * 2.0 ** (attempt - 1) * random.uniform(0.5, 1.5)  # noqa: S311 - not for security


def _closed(api: Api) -> str:
    return f"the connection to {api.where} was closed because this program is stopping; start the program again"


def _unsendable(api: Api, error: Exception) -> str:
    """Return the error message for a request or key that cannot be sent over HTTP."""
    settings = f"{api.wording.url_setting} and {api.key_source}"
    return f"the request to {api.where} could not be sent ({type(error).__name__}); check {settings}"


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__
