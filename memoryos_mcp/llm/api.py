"""APIs that speak as OpenAI's does: opened, asked and closed, their failures in words. For LLMs and embedding models.

`openai` takes 0.4 s to import, so the first call imports it, in a thread. Its own retries and time limits are
switched off: they count each read anew, so that a server that drips would be listened to for ever.

A server's own words are read here to decide what to do, and go no further: they may repeat the key or the dialogue.
Every text of an error is ours.
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
# Long enough for any message; a body that repeats the whole prompt is not searched to its end.
TEXT_READ_CHARS = 20_000

# The client demands a key; servers without one ignore it.
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
    """A failure that may be over when tried again; its text is fit for a user.

    Args:
        text: What was wrong and what to do.
        retry_after_s: The pause that the server asks for, seconds; 0 if it asks for none.
    """

    def __init__(self, text: str, *, retry_after_s: float = 0.0) -> None:
        super().__init__(text)
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, slots=True)
class Wording:
    """What errors call an API, and the settings that they send to.

    Attributes:
        what: The API itself.
        url_setting: Its address.
        timeout_setting: Longest wait for a reply.
        model_setting: The model's name there.
        relief: What to do if it takes no more calls for long.
    """

    what: str
    url_setting: str
    timeout_setting: str
    model_setting: str
    relief: str


@dataclass(frozen=True, slots=True)
class Api:
    """An API at an address. Its text shows no key and no credentials.

    Attributes:
        base_url: Where it answers; may hold credentials.
        key: None for a server that wants none.
        key_source: The setting or environment variable that the key is from, or would be from.
        wording: What errors call it.
    """

    base_url: str = field(repr=False)
    key: SecretStr | None = field(repr=False)
    key_source: str
    wording: Wording

    @property
    def address(self) -> str:
        """The base URL without credentials and query, fit for messages."""
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
        """What it is and where, for messages."""
        return f"{self.wording.what} at {self.address}"


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer with an HTTP status other than 200.

    Attributes:
        status: The HTTP status.
        code: The API's own name of the error; None if it gave none that is fit to be shown.
        param: The request's parameter that the API complains of; None if it named none.
        text: What it says, in lower case; not fit to be shown.
        retry_after_s: The pause it asks for, seconds, 0 if none.
    """

    status: int
    code: str | None = None
    param: str | None = field(default=None, repr=False)
    text: str = field(default="", repr=False)
    retry_after_s: float = 0.0

    @property
    def label(self) -> str:
        """Status and code, fit for a message."""
        return f"HTTP {self.status}, {self.code}" if self.code else f"HTTP {self.status}"

    @property
    def is_of_length(self) -> bool:
        """Whether the input is longer than the model's context."""
        if self.status == 413:
            return True
        return self.status in {400, 422, 500} and _CONTEXT_TOO_LONG.search(self.text) is not None


class ApiClient:
    """A client of an API. Share one among all that ask it; close it after use.

    Args:
        api: What to ask, and where.
        timeout_s: Longest wait for one reply, from the request to its last byte, seconds.
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
            send: Sends the request, and returns the raw response.
            refused: Returns the error to raise for an answer with another status.

        Raises:
            ModelError: There was no answer within the time limit, or a refusal; a `PassingError` if the same request
                may be answered later.
        """
        return await self._in_time(lambda client: self._body(client, send, refused))

    async def listen(
        self,
        start: Callable[["openai.AsyncOpenAI"], AbstractAsyncContextManager[Any]],
        hear: Callable[[bytes], None],
        refused: Callable[[Refusal], ModelError],
    ) -> None:
        """Hand over the body of an answer with status 200 as it comes.

        Args:
            start: Sends the request, and yields the response without its body.
            hear: Is handed each part of the body.
            refused: Returns the error to raise for an answer with another status.

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
            except httpx2.HTTPError as error:  # which the library does not translate once the body has begun
                raise self._unreachable(error) from None

    @contextmanager
    def _in_our_words(self, refused: Callable[[Refusal], ModelError]) -> Iterator[None]:
        """Raise errors of ours for the library's.

        Nothing is raised from what the library raised: that holds the server's words, in its text or further down.
        """
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
    """The attempts at one request: three at most, after growing pauses or those that the server asks for.

    Args:
        pause: Waits so many seconds before another attempt.
    """

    def __init__(self, pause: Callable[[float], Awaitable[None]]) -> None:
        self._pause = pause
        self._failed = 0

    async def wait_after(self, error: PassingError) -> None:
        """Wait until the next attempt may be made.

        Raises:
            PassingError: The one given: there were enough.
        """
        self._failed += 1
        if self._failed == ATTEMPTS:
            raise error
        pause_s = max(error.retry_after_s, _backoff_s(self._failed))
        _logger.info("attempt %d of %d failed, next in %.1f s: %s", self._failed, ATTEMPTS, pause_s, error)
        await self._pause(pause_s)


def refusal(status: int, *, code: object, param: object, text: str, retry_after: str | None) -> Refusal:
    """Return an answer's refusal, with what is not fit for a message taken out of its code.

    Args:
        status: The HTTP status.
        code: The API's name of the error, if any.
        param: The parameter that the API names, if any.
        text: The whole body.
        retry_after: The header of that name, if any.
    """
    return Refusal(
        status=status,
        code=code if isinstance(code, str) and _PLAIN_CODE.fullmatch(code) else None,
        param=param.lower() if isinstance(param, str) and param else None,
        text=text[:TEXT_READ_CHARS].lower(),
        retry_after_s=retry_after_seconds(retry_after, now=datetime.now(UTC)),
    )


def retry_after_seconds(header: str | None, *, now: datetime) -> float:
    """Return the pause that a ``Retry-After`` header asks for, seconds, never negative; 0 if it asks for none.

    Args:
        header: Seconds or an HTTP date (RFC 9110, 10.2.3).
        now: The time, with its zone.
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
        # Lower levels show whole addresses, with credentials in them; OPENAI_LOG would switch them on.
        logging.getLogger(name).setLevel(logging.WARNING)
    try:
        client = openai.AsyncOpenAI(
            api_key=_NO_KEY if api.key is None else api.key.get_secret_value(),
            base_url=api.base_url,
            timeout=None,
            max_retries=0,
            http_client=openai.DefaultAsyncHttpxClient(
                timeout=None,
                # Dialogue goes where it was told to go, and a proxy for the world knows no server on this machine.
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
    # Read from the environment by the library; they belong to another account, or to another provider altogether.
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
    """Return a pause, seconds: twice the last one's, a half more or less, so that callers do not come back as one."""
    return FIRST_PAUSE_S * 2.0 ** (attempt - 1) * random.uniform(0.5, 1.5)  # noqa: S311 - nothing to guess


def _closed(api: Api) -> str:
    return f"the connection to {api.where} was closed with the server; nothing was asked"


def _unaskable(api: Api, error: Exception) -> str:
    """Return the text for a request, or a key, that cannot be put into HTTP."""
    kind = type(error).__name__
    return f"{api.where} could not be asked ({kind}); check {api.wording.url_setting} and {api.key_source}"


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__
