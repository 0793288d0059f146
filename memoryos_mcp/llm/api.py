"""Clients of OpenAI-compatible APIs, for LLMs and embedding models, with all failures in words of ours.

`openai` takes 0.4 s to import, so the first call imports it, in a thread. Its retries and time limits are switched
off: the limits restart with each read, so a server that sends byte by byte could hold a call for ever.

A server's own words are only used here, to decide what to do: they may repeat the key or the dialogue.
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
# Longer than any message; a body that repeats the whole prompt is not searched to its end.
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
    """A failure that may pass, so that a later attempt can succeed.

    Args:
        text: What was wrong and what to do, fit for a user.
        retry_after_s: The pause that the server asks for, in seconds; 0 if it asks for none.
    """

    def __init__(self, text: str, *, retry_after_s: float = 0.0) -> None:
        super().__init__(text)
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, slots=True)
class Wording:
    """Words for errors of an API: its name, the settings to check, and what to do if it stays rate-limited."""

    what: str
    url_setting: str
    timeout_setting: str
    model_setting: str
    relief: str


@dataclass(frozen=True, slots=True)
class Api:
    """An API at an address. Its ``repr`` shows no key and no credentials.

    Attributes:
        base_url: Its address; may hold credentials.
        key: None if the server needs none.
        key_source: The setting or environment variable that holds the key, or would hold it.
        wording: Words for its errors.
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
        """Whether the address is a loopback one."""
        host = urlsplit(self.base_url).hostname or ""
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost" or host.endswith(".localhost")

    @property
    def where(self) -> str:
        """Name and address, for messages."""
        return f"{self.wording.what} at {self.address}"


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer with an HTTP status other than 200.

    Attributes:
        status: The HTTP status.
        code: The API's name for the error; None if it gave none that may be shown.
        param: The request's parameter that the API complains about; None if it named none.
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
    def is_of_length(self) -> bool:
        """Whether the input is longer than the model's context."""
        if self.status == 413:
            return True
        return self.status in {400, 422, 500} and _CONTEXT_TOO_LONG.search(self.text) is not None


class ApiClient:
    """A client of an API. Share one among all callers; close it after use.

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

    async def ask(
        self, send: Callable[["openai.AsyncOpenAI"], Awaitable[Any]], refused: Callable[[Refusal], ModelError]
    ) -> bytes:
        """Return the body of an answer with status 200.

        Args:
            send: Sends the request and returns the raw response.
            refused: Returns the error to raise for any other status.

        Raises:
            ModelError: There was no answer within the time limit, or a refusal; a `PassingError` if the same request
                may succeed later.
        """
        return await self._in_time(lambda client: self._body(client, send, refused))

    async def listen(
        self,
        start: Callable[["openai.AsyncOpenAI"], AbstractAsyncContextManager[Any]],
        hear: Callable[[bytes], None],
        refused: Callable[[Refusal], ModelError],
    ) -> None:
        """Pass on the body of an answer with status 200 as it arrives.

        Args:
            start: Sends the request and yields the response without its body.
            hear: Called with each part of the body.
            refused: Returns the error to raise for any other status.

        Raises:
            ModelError: As `ask` does.
        """
        await self._in_time(lambda client: self._stream(client, start, hear, refused))

    async def _in_time(self, work: Callable[["openai.AsyncOpenAI"], Awaitable[T]]) -> T:
        client = await self._opened()
        try:
            async with asyncio.timeout(self._timeout_s):
                return await work(client)
        except TimeoutError:
            message = (
                f"{self._api.where} gave no whole reply within {self._timeout_s:g} s; "
                f"raise {self._api.wording.timeout_setting} or take a faster model"
            )
            raise ModelError(message) from None

    async def aclose(self) -> None:
        """Release connections; calls under way and later ones fail."""
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

    async def _body(
        self,
        client: "openai.AsyncOpenAI",
        send: Callable[["openai.AsyncOpenAI"], Awaitable[Any]],
        refused: Callable[[Refusal], ModelError],
    ) -> bytes:
        """Return the body of an answer with status 200."""
        with self._in_our_words(refused):
            raw = await send(client)
        body: bytes = raw.content
        return body

    async def _stream(
        self,
        client: "openai.AsyncOpenAI",
        start: Callable[["openai.AsyncOpenAI"], AbstractAsyncContextManager[Any]],
        hear: Callable[[bytes], None],
        refused: Callable[[Refusal], ModelError],
    ) -> None:
        import httpx2

        with self._in_our_words(refused):
            try:
                async with start(client) as response:
                    async for part in response.iter_bytes():
                        hear(part)
            except httpx2.HTTPError as error:  # not translated by the library once the body has begun
                raise self._unreachable(error) from None

    @contextmanager
    def _in_our_words(self, refused: Callable[[Refusal], ModelError]) -> Iterator[None]:
        """Raise our errors instead of the library's, and without those as a cause: they hold the server's words."""
        import openai

        try:
            yield
        except openai.APIStatusError as error:
            raise refused(_refusal(error)) from None
        except openai.APIConnectionError as error:
            raise self._unreachable(error) from None
        except (openai.OpenAIError, ValueError, RuntimeError) as error:
            raise ModelError(_closed(self._api) if self._is_closed else _unaskable(self._api, error)) from None

    def _unreachable(self, error: Exception) -> ModelError:
        import httpx2  # loaded by now: the library sends its requests with it

        api = self._api
        if self._is_closed:
            return ModelError(_closed(api))
        causes = list(_causes(error))
        if any(isinstance(cause, ssl.SSLError) for cause in causes):
            return ModelError(f"no secure connection to {api.where}; check http or https, and the server's certificate")
        url_setting = api.wording.url_setting
        if any(isinstance(cause, socket.gaierror) for cause in causes):
            return PassingError(f"the host of {api.where} is not found; check {url_setting} and the network")
        if any(isinstance(cause, httpx2.LocalProtocolError) for cause in causes):
            return ModelError(_unaskable(api, error))
        if any(isinstance(cause, httpx2.ConnectError) for cause in causes):
            return PassingError(
                f"nothing answers at {api.address}; is {api.wording.what}'s server running? Check {url_setting}"
            )
        return PassingError(f"the connection to {api.where} broke before its reply was whole")


class Attempts:
    """The attempts at one request: at most three, after growing pauses or those that the server asks for.

    Args:
        pause: Waits for the given number of seconds.
    """

    def __init__(self, pause: Callable[[float], Awaitable[None]]) -> None:
        self._pause = pause
        self._failed = 0

    async def wait_after(self, error: PassingError) -> None:
        """Wait until the next attempt may be made.

        Raises:
            PassingError: The given error; there are no attempts left.
        """
        self._failed += 1
        if self._failed == ATTEMPTS:
            raise error
        pause_s = max(error.retry_after_s, _backoff_s(self._failed))
        _logger.info("attempt %d of %d failed, next in %.1f s: %s", self._failed, ATTEMPTS, pause_s, error)
        await self._pause(pause_s)


def refusal(status: int, *, code: object, param: object, text: str, retry_after: str | None) -> Refusal:
    """Return an answer's refusal; a code that is not fit for messages is left out.

    Args:
        status: The HTTP status.
        code: The API's name for the error, if any.
        param: The parameter that the API names, if any.
        text: The whole body.
        retry_after: The ``Retry-After`` header, if any.
    """
    return Refusal(
        status=status,
        code=code if isinstance(code, str) and _PLAIN_CODE.fullmatch(code) else None,
        param=param.lower() if isinstance(param, str) and param else None,
        text=text[:TEXT_READ_CHARS].lower(),
        retry_after_s=retry_after_seconds(retry_after, now=datetime.now(UTC)),
    )


def retry_after_seconds(header: str | None, *, now: datetime) -> float:
    """Return the pause that a ``Retry-After`` header asks for, in seconds, never negative; 0 if it asks for none.

    Args:
        header: Seconds or an HTTP date (RFC 9110, 10.2.3).
        now: The current time, with a time zone.
    """
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
        # Lower levels log whole addresses, credentials included; OPENAI_LOG would switch them on.
        logging.getLogger(name).setLevel(logging.WARNING)
    try:
        client = openai.AsyncOpenAI(
            api_key=_NO_KEY if api.key is None else api.key.get_secret_value(),
            base_url=api.base_url,
            timeout=None,
            max_retries=0,
            http_client=openai.DefaultAsyncHttpxClient(
                timeout=None,
                # Dialogue goes only to the configured address, and a proxy cannot reach a server on this machine.
                follow_redirects=False,
                trust_env=not api.is_on_this_machine,
            ),
        )
    except (ImportError, ValueError, OSError, openai.OpenAIError):
        message = (
            f"no connection to {api.where} can be set up; "
            f"check {api.wording.url_setting} and the environment's HTTPS_PROXY, ALL_PROXY and SSL_CERT_FILE"
        )
        raise ModelError(message) from None
    # The library reads these from the environment; they belong to another account, or even to another provider.
    client.organization = client.project = None
    return client


def _refusal(error: "openai.APIStatusError") -> Refusal:
    response = error.response
    return refusal(
        error.status_code,
        code=error.code,
        param=error.param,
        text=response.text,
        retry_after=response.headers.get("retry-after"),
    )


def _backoff_s(attempt: int) -> float:
    """Return a pause in seconds that doubles each time, plus or minus a random half, so that callers spread out."""
    return FIRST_PAUSE_S * 2.0 ** (attempt - 1) * random.uniform(0.5, 1.5)  # noqa: S311 - not for security


def _closed(api: Api) -> str:
    return f"the connection to {api.where} was closed with the server; nothing was asked"


def _unaskable(api: Api, error: Exception) -> str:
    """Return the text for a request or key that HTTP cannot carry."""
    kind = type(error).__name__
    return f"{api.where} could not be asked ({kind}); check {api.wording.url_setting} and {api.key_source}"


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__
