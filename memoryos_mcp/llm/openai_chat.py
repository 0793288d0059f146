"""The chat model over the network: any endpoint that speaks the OpenAI chat API, even imperfectly."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field, ValidationError

from memoryos_mcp.errors import ModelError
from memoryos_mcp.llm.api import ApiClient, Attempts, PassingError, Refusal
from memoryos_mcp.llm.api_errors import no_such_api
from memoryos_mcp.llm.chat import ChatReply, ChatRequest, Listener, ReplyForm, Usage
from memoryos_mcp.llm.error_responses import DialectError, error_of
from memoryos_mcp.llm.providers import Dialect, Endpoint, FormRung
from memoryos_mcp.llm.streams import Stream
from memoryos_mcp.model.pages import estimate_tokens

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
    """One endpoint of the OpenAI chat API. Share one among all callers; close it after use.

    It learns which dialect the endpoint accepts, and keeps to it.

    Args:
        endpoint: The model and its address.
        timeout_s: Longest wait for one reply, from the request to its last byte, in seconds.
        max_concurrent_calls: Maximum number of requests under way; others wait for their turn.
        pause: Waits for the given number of seconds.
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
        """Name of the model at the endpoint."""
        return self._endpoint.model

    @property
    def rung(self) -> FormRung:
        """How the form of replies is requested: the strictest way that the server is known to accept."""
        return self._dialect.rung

    async def complete(self, request: ChatRequest, listener: Listener | None = None) -> ChatReply:
        """Return the reply to a request. See ``ChatModel.complete``.

        A failure that may pass is tried three times, after growing pauses or those that the server asks for. A timeout
        is not tried again, since it took long enough. Nor is a reply that broke off after some of it was heard.

        Raises:
            ModelError: As in ``ChatModel.complete``; the text also holds nothing of the server's words.
        """
        dialect = started_with = self._dialect
        tried = {dialect}
        attempts = Attempts(self._pause)
        ear = None if listener is None else _Ear(listener)
        while True:
            try:
                reply = await self._ask(request, dialect, ear)
            except DialectError as error:
                plainer = [_for(request, dialect, each) for each in error.plainer]
                untried = [each for each in plainer if each not in tried]
                if not untried:
                    raise
                dialect = untried[0]
                tried.add(dialect)
            except PassingError as error:
                if ear is not None and ear.has_heard:
                    raise
                await attempts.wait_after(error)
            else:
                if dialect != started_with:
                    self._remember(dialect)
                return reply

    async def aclose(self) -> None:
        """Release connections; calls under way and later ones fail."""
        await self._client.aclose()

    def _remember(self, dialect: Dialect) -> None:
        # Only after an answer: a refusal for other reasons must not make the dialect plainer for good.
        self._dialect = dialect
        _logger.info("%s is asked like this from now on: %s", self._endpoint.address, dialect)

    async def _ask(self, request: ChatRequest, dialect: Dialect, ear: "_Ear | None") -> ChatReply:
        endpoint = self._endpoint
        parameters = _parameters(request, endpoint, dialect)

        def refused(said: Refusal) -> ModelError:
            return error_of(said, endpoint, dialect)

        async with self._turns:
            if ear is None:
                return _reply(await self._client.ask(partial(_send, parameters), refused), request, endpoint)
            stream = Stream(ear.hear)
            await self._client.listen(partial(_open, parameters, dialect), stream.take, refused)
            return _streamed_reply(stream, request, endpoint, ear)


class _Ear:
    """Passes pieces on to a listener, and remembers whether there were any."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self.has_heard = False

    def hear(self, text: str) -> None:
        self.has_heard = True
        self._listener(text)


def _for(request: ChatRequest, dialect: Dialect, plainer: Dialect) -> Dialect:
    """Return a plainer dialect; a request without a form leaves its rung as it was."""
    return plainer if request.form is not None else replace(plainer, rung=dialect.rung)


async def _send(parameters: Mapping[str, Any], client: "openai.AsyncOpenAI") -> Any:
    return await client.chat.completions.with_raw_response.create(**parameters)


def _open(
    parameters: Mapping[str, Any], dialect: Dialect, client: "openai.AsyncOpenAI"
) -> AbstractAsyncContextManager[Any]:
    body = {**parameters["extra_body"], "stream": True}
    # A server that refuses a cap knows only the bare API; its tokens are estimated.
    if dialect.cap is not None:
        body["stream_options"] = {"include_usage": True}
    return client.chat.completions.with_streaming_response.create(**{**parameters, "extra_body": body})


def _parameters(request: ChatRequest, endpoint: Endpoint, dialect: Dialect) -> dict[str, Any]:
    messages = [{"role": message.role, "content": message.content} for message in request.messages]
    # The library does not process extras part by part, which would take longer than sending them.
    body: dict[str, Any] = {"messages": messages}
    if request.form is not None:
        if dialect.rung is not FormRung.JSON_SCHEMA:
            # At the end of the system message, which stays equal for all calls of a purpose.
            messages[0]["content"] += _form_in_words(request.form)
        if (response_format := _response_format(request.form, endpoint, dialect)) is not None:
            body["response_format"] = response_format
    if dialect.cap is not None:
        body[dialect.cap] = min(endpoint.output_tokens, request.reply_tokens or endpoint.output_tokens)
    if dialect.temperature is not None:
        body["temperature"] = dialect.temperature
    if dialect.forbids_thinking:
        body["enable_thinking"] = False
    return {"model": endpoint.model, "messages": [], "extra_body": body}


def _response_format(form: ReplyForm, endpoint: Endpoint, dialect: Dialect) -> dict[str, Any] | None:
    if dialect.rung is FormRung.JSON_SCHEMA:
        schema = _without_lengths(form.schema) if endpoint.refuses_lengths else form.schema
        return {"type": "json_schema", "json_schema": {"name": form.name, "strict": True, "schema": schema}}
    return {"type": "json_object"} if dialect.rung is FormRung.JSON_OBJECT else None


def _without_lengths(schema: Any) -> Any:
    if isinstance(schema, Mapping):
        # A property with such a name would hold a schema, not a number.
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


def _streamed_reply(stream: Stream, request: ChatRequest, endpoint: Endpoint, ear: _Ear) -> ChatReply:
    if stream.is_event_stream:
        if not stream.is_whole:
            message = f"{endpoint.api.where} broke its reply off before the end; ask again"
            raise PassingError(message)
        return ChatReply(stream.text, _usage(stream.usage, request, stream.text), is_cut=stream.is_cut)
    # Some servers always answer in one piece.
    reply = _reply(stream.body, request, endpoint)
    ear.hear(reply.text)
    return reply


def _usage(counted: Any, request: ChatRequest, text: str) -> Usage:
    try:
        tokens = _Tokens.model_validate(counted)
    except ValidationError:
        prompt = "\n".join(message.content for message in request.messages)
        return Usage(estimate_tokens(prompt), estimate_tokens(text))
    return Usage(tokens.prompt_tokens, tokens.completion_tokens)
