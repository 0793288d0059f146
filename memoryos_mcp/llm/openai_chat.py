"""The chat model over the network: any endpoint that speaks the OpenAI chat API, well or badly.

`openai` takes 0.4 s to import, so the first call imports it, in a thread. Its own retries and time limits are
switched off: they count each read anew, so that a server that drips would be listened to for ever.
"""

import asyncio
import json
import logging
import random
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import anyio.to_thread
from pydantic import BaseModel, Field, ValidationError

from memoryos_mcp.errors import ModelError
from memoryos_mcp.llm.chat import ChatReply, ChatRequest, ReplyForm, Usage
from memoryos_mcp.llm.refusals import DialectError, PassingError, Refusal, error_of, refusal
from memoryos_mcp.pages import estimate_tokens
from memoryos_mcp.providers import Dialect, Endpoint, FormRung

if TYPE_CHECKING:
    import openai

ATTEMPTS = 3
FIRST_PAUSE_S = 1.0

# The client demands a key; servers without one ignore it.
_NO_KEY = "none"
_FOREIGN_LOGGERS = ("openai", "httpx2", "httpcore2")
_REINSTALL = "the library openai cannot be imported; reinstall this program"

_logger = logging.getLogger(__name__)


class _Message(BaseModel):
    content: str | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None


class _Completion(BaseModel):
    """A chat completion, as far as it is needed."""

    choices: list[_Choice] = Field(min_length=1)
    usage: Any = None


class _Tokens(BaseModel):
    prompt_tokens: int = Field(ge=0)
    completion_tokens: int = Field(ge=0)


class OpenAIChat:
    """One endpoint of the OpenAI chat API. Share one among all that ask it; close it after use.

    It learns which dialect the endpoint takes and keeps to it.

    Args:
        endpoint: What to ask, and where.
        timeout_s: Longest wait for one reply, from the request to its last byte, seconds.
        max_concurrent_calls: Requests under way at once; others wait for their turn.
        pause: Waits so many seconds before another attempt.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        timeout_s: float,
        max_concurrent_calls: int,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._endpoint = endpoint
        self._timeout_s = timeout_s
        self._pause = pause
        self._dialect = endpoint.dialect
        self._turns = asyncio.Semaphore(max_concurrent_calls)
        self._client: openai.AsyncOpenAI | None = None
        self._opening = asyncio.Lock()
        self._is_closed = False

    @property
    def name(self) -> str:
        """Name of the model, as the endpoint knows it."""
        return self._endpoint.model

    @property
    def rung(self) -> FormRung:
        """The form that replies are asked in, the strictest that the server is known to take."""
        return self._dialect.rung

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return the reply to a request.

        What may pass is tried three times, after growing pauses or those that the server asks for. Silence for the
        whole time limit is not: it has taken long enough.

        Raises:
            ModelError: There was no reply within the time limit, or the endpoint refused; the text says what to do,
                and holds no key and nothing of the messages or of the server's words.
        """
        dialect = started_with = self._dialect
        tried = {dialect}
        attempt = 1
        while True:
            try:
                reply = await self._ask(request, dialect)
            except DialectError as error:
                untried = [plainer for plainer in error.plainer if plainer not in tried]
                if not untried:
                    raise
                dialect = untried[0]
                tried.add(dialect)
            except PassingError as error:
                if attempt == ATTEMPTS:
                    raise
                pause_s = max(error.retry_after_s, _backoff_s(attempt))
                _logger.info("attempt %d of %d failed, next in %.1f s: %s", attempt, ATTEMPTS, pause_s, error)
                await self._pause(pause_s)
                attempt += 1
            else:
                if dialect != started_with:
                    self._remember(dialect)
                return reply

    async def aclose(self) -> None:
        """Release connections; calls under way and later ones fail."""
        self._is_closed = True
        async with self._opening:
            client, self._client = self._client, None
        if client is not None:
            await client.close()

    def _remember(self, dialect: Dialect) -> None:
        # Only what was answered: a refusal that has nothing to do with the dialect must not make it plainer for good.
        self._dialect = dialect
        _logger.info("%s is asked like this from now on: %s", self._endpoint.address, dialect)

    async def _ask(self, request: ChatRequest, dialect: Dialect) -> ChatReply:
        client = await self._opened()
        async with self._turns:
            try:
                async with asyncio.timeout(self._timeout_s):
                    body = await self._body(client, request, dialect)
            except TimeoutError:
                message = (
                    f"the LLM at {self._endpoint.address} gave no whole reply within {self._timeout_s:g} s; "
                    "raise llm_timeout_s or take a faster model"
                )
                raise ModelError(message) from None
        return _reply(body, request, self._endpoint)

    async def _opened(self) -> "openai.AsyncOpenAI":
        async with self._opening:
            if self._is_closed:
                raise ModelError(_closed(self._endpoint))
            if self._client is None:
                self._client = await anyio.to_thread.run_sync(_open_client, self._endpoint)
            return self._client

    async def _body(self, client: "openai.AsyncOpenAI", request: ChatRequest, dialect: Dialect) -> bytes:
        """Return the body of an answer with status 200.

        Nothing is raised from what the library raised: that holds the server's words, in its text or further down.
        """
        import openai

        endpoint = self._endpoint
        try:
            raw = await client.chat.completions.with_raw_response.create(**_parameters(request, endpoint, dialect))
        except openai.APIStatusError as error:
            raise error_of(_refusal(error), endpoint, dialect) from None
        except openai.APIConnectionError as error:
            raise self._unreachable(error) from None
        except (openai.OpenAIError, ValueError, RuntimeError) as error:
            raise ModelError(_closed(endpoint) if self._is_closed else _unaskable(endpoint, error)) from None
        body: bytes = raw.content
        return body

    def _unreachable(self, error: Exception) -> ModelError:
        address = self._endpoint.address
        if self._is_closed:
            return ModelError(_closed(self._endpoint))
        causes = list(_causes(error))
        # The library's own exceptions are of its HTTP client, which is no dependency of ours: told by their names.
        names = {type(cause).__name__ for cause in causes}
        if any(isinstance(cause, ssl.SSLError) for cause in causes):
            return ModelError(
                f"no secure connection to the LLM at {address}; check http or https, and the server's certificate"
            )
        if any(isinstance(cause, socket.gaierror) for cause in causes):
            return PassingError(f"the host of the LLM at {address} is not found; check openai_base_url and the network")
        if "LocalProtocolError" in names:
            return ModelError(_unaskable(self._endpoint, error))
        if "ConnectError" in names:
            return PassingError(f"nothing answers at {address}; is the LLM's server running? Check openai_base_url")
        return PassingError(f"the connection to the LLM at {address} broke before its reply was whole")


def _open_client(endpoint: Endpoint) -> "openai.AsyncOpenAI":
    try:
        import openai
    except ImportError as error:
        raise ModelError(_REINSTALL) from error
    for name in _FOREIGN_LOGGERS:
        # Lower levels show whole addresses, with credentials in them; OPENAI_LOG would switch them on.
        logging.getLogger(name).setLevel(logging.WARNING)
    try:
        client = openai.AsyncOpenAI(
            api_key=_NO_KEY if endpoint.key is None else endpoint.key.get_secret_value(),
            base_url=endpoint.base_url,
            timeout=None,
            max_retries=0,
            http_client=openai.DefaultAsyncHttpxClient(
                timeout=None,
                # Dialogue goes where it was told to go, and a proxy for the world knows no server on this machine.
                follow_redirects=False,
                trust_env=not endpoint.is_on_this_machine,
            ),
        )
    except (ImportError, ValueError, OSError, openai.OpenAIError):
        message = (
            f"no connection to the LLM at {endpoint.address} can be set up; "
            "check openai_base_url and the environment's HTTPS_PROXY, ALL_PROXY and SSL_CERT_FILE"
        )
        raise ModelError(message) from None
    # Read from the environment by the library; they belong to another account, or to another provider altogether.
    client.organization = client.project = None
    return client


def _parameters(request: ChatRequest, endpoint: Endpoint, dialect: Dialect) -> dict[str, Any]:
    messages = [{"role": message.role, "content": message.content} for message in request.messages]
    if dialect.rung is not FormRung.JSON_SCHEMA:
        # At the end of the system message, which is equal for all calls of a purpose and stays so.
        messages[0]["content"] += _form_in_words(request.form)
    # What the library is handed as an extra, it does not look through part by part, which takes longer than to send it.
    body: dict[str, Any] = {"messages": messages}
    if dialect.rung is FormRung.JSON_SCHEMA:
        schema = _without_lengths(request.form.schema) if endpoint.refuses_lengths else request.form.schema
        form = {"name": request.form.name, "strict": True, "schema": schema}
        body["response_format"] = {"type": "json_schema", "json_schema": form}
    elif dialect.rung is FormRung.JSON_OBJECT:
        body["response_format"] = {"type": "json_object"}
    if dialect.cap is not None:
        body[dialect.cap] = endpoint.output_tokens
    if dialect.temperature is not None:
        body["temperature"] = dialect.temperature
    if dialect.forbids_thinking:
        body["enable_thinking"] = False
    return {"model": endpoint.model, "messages": [], "extra_body": body}


def _without_lengths(schema: Any) -> Any:
    if isinstance(schema, Mapping):
        # A property of such a name would hold a schema, not a number.
        return {
            name: _without_lengths(value)
            for name, value in schema.items()
            if name not in {"minLength", "maxLength"} or not isinstance(value, int)
        }
    return [_without_lengths(part) for part in schema] if isinstance(schema, list) else schema


def _form_in_words(form: ReplyForm) -> str:
    if form.sketch:
        return f"\n\nReply with one JSON object like this, and nothing else:\n{form.sketch}"
    schema = json.dumps(dict(form.schema), ensure_ascii=False, separators=(",", ":"))
    return f"\n\nReply with one JSON object of this JSON schema, and nothing else:\n{schema}"


def _refusal(error: "openai.APIStatusError") -> Refusal:
    response = error.response
    return refusal(
        error.status_code,
        code=error.code,
        param=error.param,
        text=response.text,
        retry_after=response.headers.get("retry-after"),
    )


def _reply(body: bytes, request: ChatRequest, endpoint: Endpoint) -> ChatReply:
    try:
        completion = _Completion.model_validate_json(body)
    except ValidationError:
        message = (
            f"{endpoint.address} answers, but not as a chat API; openai_base_url usually ends in /v1: "
            "check it, and what stands between"
        )
        raise ModelError(message) from None
    choice = completion.choices[0]
    text = choice.message.content or ""
    return ChatReply(text, _usage(completion.usage, request, text), is_cut=choice.finish_reason == "length")


def _usage(counted: Any, request: ChatRequest, text: str) -> Usage:
    try:
        tokens = _Tokens.model_validate(counted)
    except ValidationError:
        prompt = "\n".join(message.content for message in request.messages)
        return Usage(estimate_tokens(prompt), estimate_tokens(text))
    return Usage(tokens.prompt_tokens, tokens.completion_tokens)


def _backoff_s(attempt: int) -> float:
    """Return a pause, seconds: twice the last one's, a half more or less, so that callers do not come back as one."""
    return FIRST_PAUSE_S * 2.0 ** (attempt - 1) * random.uniform(0.5, 1.5)  # noqa: S311 - nothing to guess


def _closed(endpoint: Endpoint) -> str:
    return f"the connection to the LLM at {endpoint.address} was closed with the server; nothing was asked"


def _unaskable(endpoint: Endpoint, error: Exception) -> str:
    """Return the text for a request, or a key, that cannot be put into HTTP."""
    kind = type(error).__name__
    return f"the LLM at {endpoint.address} could not be asked ({kind}); check openai_base_url and {endpoint.key_source}"


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__
