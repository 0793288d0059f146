"""The chat model over the network: any endpoint that speaks the OpenAI chat API, well or badly."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field, ValidationError

from memoryos_mcp.llm.chat import ChatReply, ChatRequest, ReplyForm, Usage
from memoryos_mcp.llm.refusals import DialectError, error_of
from memoryos_mcp.openai_api import ApiClient, Attempts, PassingError, no_such_api
from memoryos_mcp.pages import estimate_tokens
from memoryos_mcp.providers import Dialect, Endpoint, FormRung

if TYPE_CHECKING:
    import openai

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
        self._client = ApiClient(endpoint.api, timeout_s=timeout_s)
        self._pause = pause
        self._dialect = endpoint.dialect
        self._turns = asyncio.Semaphore(max_concurrent_calls)

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
        attempts = Attempts(self._pause)
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
                await attempts.wait_after(error)
            else:
                if dialect != started_with:
                    self._remember(dialect)
                return reply

    async def aclose(self) -> None:
        """Release connections; calls under way and later ones fail."""
        await self._client.aclose()

    def _remember(self, dialect: Dialect) -> None:
        # Only what was answered: a refusal that has nothing to do with the dialect must not make it plainer for good.
        self._dialect = dialect
        _logger.info("%s is asked like this from now on: %s", self._endpoint.address, dialect)

    async def _ask(self, request: ChatRequest, dialect: Dialect) -> ChatReply:
        endpoint = self._endpoint
        parameters = _parameters(request, endpoint, dialect)
        async with self._turns:
            body = await self._client.ask(partial(_send, parameters), lambda said: error_of(said, endpoint, dialect))
        return _reply(body, request, endpoint)


async def _send(parameters: Mapping[str, Any], client: "openai.AsyncOpenAI") -> Any:
    return await client.chat.completions.with_raw_response.create(**parameters)


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


def _reply(body: bytes, request: ChatRequest, endpoint: Endpoint) -> ChatReply:
    try:
        completion = _Completion.model_validate_json(body)
    except ValidationError:
        raise no_such_api(endpoint.api, "a chat API") from None
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
