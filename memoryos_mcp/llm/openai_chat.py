"""The network client for chat models. It works with any server that implements the OpenAI chat API, even partially."""

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
from memoryos_mcp.llm.api import ApiClient, Attempts, ErrorResponse, PassingError
from memoryos_mcp.llm.api_errors import no_such_api
from memoryos_mcp.llm.chat import ChatReply, ChatRequest, Listener, ReplyForm, Usage
from memoryos_mcp.llm.error_responses import DialectError, error_of
from memoryos_mcp.llm.providers import Dialect, Endpoint, ReplyFormat
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
    """The fields of a chat completion that this client uses."""

    choices: list[_Choice] = Field(min_length=1)
    usage: Any = None


class _Tokens(BaseModel):
    prompt_tokens: int = Field(ge=0)
    completion_tokens: int = Field(ge=0)


class OpenAIChat:
    """A client for one OpenAI-compatible endpoint. Use the same client for all callers, and close it after use.

    A dialect is a set of request parameters. The client finds out which dialect the endpoint accepts, and uses it for
    later calls.

    Args:
        endpoint: The model and its API.
        timeout_s: Seconds allowed from the request to the last byte of the reply.
        max_concurrent_calls: Maximum number of concurrent requests. Further requests wait until another request ends.
        pause: Function that waits for a given number of seconds. It is called before a request is repeated.
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
        """The model's name in the API."""
        return self._endpoint.model

    @property
    def reply_format(self) -> ReplyFormat:
        """The way in which the next request will ask for a reply in JSON."""
        return self._dialect.reply_format

    async def complete(self, request: ChatRequest, listener: Listener | None = None) -> ChatReply:
        """Return the reply to a request. See ``ChatModel.complete``.

        After a temporary failure, the request is sent again, with up to three attempts in total. It is not sent again
        after a timeout, or if the listener has already received a part of the reply.

        Raises:
            ModelError: See ``ChatModel.complete``. The error never quotes the server's message.
        """
        dialect = started_with = self._dialect
        tried = {dialect}
        attempts = Attempts(self._pause)
        tracked = None if listener is None else _TrackedListener(listener)
        while True:
            try:
                reply = await self._send(request, dialect, tracked)
            except DialectError as error:
                simpler = [_for(request, dialect, each) for each in error.simpler]
                untried = [each for each in simpler if each not in tried]
                if not untried:
                    raise
                dialect = untried[0]
                tried.add(dialect)
            except PassingError as error:
                if tracked is not None and tracked.has_received:
                    raise
                await attempts.wait_after(error)
            else:
                if dialect != started_with:
                    self._remember(dialect)
                return reply

    async def aclose(self) -> None:
        """Close the connections. Running calls and later calls fail."""
        await self._client.aclose()

    def _remember(self, dialect: Dialect) -> None:
        # Called only after a success. A request that is refused for another reason must not change the dialect.
        self._dialect = dialect
        _logger.info(
            "the server refused other options, so later requests to %s will use these: %s",
            self._endpoint.api.address,
            dialect,
        )

    async def _send(self, request: ChatRequest, dialect: Dialect, tracked: "_TrackedListener | None") -> ChatReply:
        endpoint = self._endpoint
        parameters = _parameters(request, endpoint, dialect)

        def to_error(response: ErrorResponse) -> ModelError:
            return error_of(response, endpoint, dialect)

        async with self._turns:
            if tracked is None:
                return _reply(await self._client.post(partial(_post, parameters), to_error), request, endpoint)
            stream = Stream(tracked.receive)
            await self._client.stream(partial(_open, parameters, dialect), stream.feed, to_error)
            return _streamed_reply(stream, request, endpoint, tracked)


class _TrackedListener:
    """Passes the pieces of a reply on to a listener, and records whether there was at least one piece."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self.has_received = False

    def receive(self, text: str) -> None:
        self.has_received = True
        self._listener(text)


def _for(request: ChatRequest, dialect: Dialect, simpler: Dialect) -> Dialect:
    """Return the dialect (set of request parameters) with which to send a refused request again.

    If the request asks for JSON, the result is ``simpler``. Otherwise, the reply format did not cause the refusal, so
    the result is ``simpler`` with the reply format of ``dialect``.
    """
    return simpler if request.form is not None else replace(simpler, reply_format=dialect.reply_format)


async def _post(parameters: Mapping[str, Any], client: "openai.AsyncOpenAI") -> Any:
    return await client.chat.completions.with_raw_response.create(**parameters)


def _open(
    parameters: Mapping[str, Any], dialect: Dialect, client: "openai.AsyncOpenAI"
) -> AbstractAsyncContextManager[Any]:
    body = {**parameters["extra_body"], "stream": True}
    # A server that refuses a cap (a token limit) probably refuses this option too. The tokens are then estimated.
    if dialect.cap is not None:
        body["stream_options"] = {"include_usage": True}
    return client.chat.completions.with_streaming_response.create(**{**parameters, "extra_body": body})


def _parameters(request: ChatRequest, endpoint: Endpoint, dialect: Dialect) -> dict[str, Any]:
    messages = [{"role": message.role, "content": message.content} for message in request.messages]
    # The messages are in ``extra_body`` because the library does not process it item by item, which would be slow.
    body: dict[str, Any] = {"messages": messages}
    if request.form is not None:
        if dialect.reply_format is not ReplyFormat.JSON_SCHEMA:
            # The form is added at the end, so that the beginning of the system message is the same for all calls with
            # the same purpose.
            messages[0]["content"] += _form_in_words(request.form)
        if (response_format := _response_format(request.form, endpoint, dialect)) is not None:
            body["response_format"] = response_format
    if dialect.cap is not None:
        body[dialect.cap] = min(endpoint.output_tokens, request.reply_tokens or endpoint.output_tokens)
    if dialect.temperature is not None:
        body["temperature"] = dialect.temperature
    if dialect.disables_thinking:
        body["enable_thinking"] = False
    return {"model": endpoint.model, "messages": [], "extra_body": body}


def _response_format(form: ReplyForm, endpoint: Endpoint, dialect: Dialect) -> dict[str, Any] | None:
    if dialect.reply_format is ReplyFormat.JSON_SCHEMA:
        schema = _without_lengths(form.schema) if endpoint.rejects_length_limits else form.schema
        return {"type": "json_schema", "json_schema": {"name": form.name, "strict": True, "schema": schema}}
    return {"type": "json_object"} if dialect.reply_format is ReplyFormat.JSON_OBJECT else None


def _without_lengths(schema: Any) -> Any:
    if isinstance(schema, Mapping):
        # A property of the schema may also have one of these names. Its value is then a schema, not a number.
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


def _streamed_reply(stream: Stream, request: ChatRequest, endpoint: Endpoint, tracked: _TrackedListener) -> ChatReply:
    if stream.is_event_stream:
        if not stream.is_complete:
            message = f"{endpoint.api.where} ended its reply too early; try again"
            raise PassingError(message)
        return ChatReply(stream.text, _usage(stream.usage, request, stream.text), is_cut=stream.is_cut)
    # Some servers do not stream, but send the reply as a whole.
    reply = _reply(stream.body, request, endpoint)
    tracked.receive(reply.text)
    return reply


def _usage(counted: Any, request: ChatRequest, text: str) -> Usage:
    try:
        tokens = _Tokens.model_validate(counted)
    except ValidationError:
        prompt = "\n".join(message.content for message in request.messages)
        return Usage(estimate_tokens(prompt), estimate_tokens(text))
    return Usage(tokens.prompt_tokens, tokens.completion_tokens)
