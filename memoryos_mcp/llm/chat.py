"""The protocol of chat models, which take one request and return one reply.

The network client, the log, the replay and the token counter implement it. Some wrap another chat model: a token
counter may wrap a log, which wraps the network client. A streamed reply is still returned as a whole; only the listener
gets its pieces.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, Protocol

from pydantic import JsonValue

# Is called with each piece of a reply as it arrives; must not block.
Listener = Callable[[str], None]


class Purpose(StrEnum):
    """The purpose of a call; tokens are counted per purpose."""

    ORGANISE = "organise"
    LEARN = "learn"
    CHECK = "check"
    RESPOND = "respond"


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a chat."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class ReplyForm:
    """The form of a reply that is a JSON object.

    Attributes:
        name: A short identifier.
        schema: JSON schema; strict servers require ``additionalProperties`` false and every property ``required``.
        sketch: A short example, shown to the model if its server does not enforce the schema. If it is empty, the
            schema is shown instead.
    """

    name: str
    schema: Mapping[str, JsonValue]
    sketch: str = ""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A request to a chat model.

    Attributes:
        messages: The messages, a system message first. Its beginning is equal for all calls of a purpose, so that
            providers can cache it.
        form: The form of the reply, which the messages need not describe; None for a reply in plain text.
        reply_tokens: Maximum number of tokens of the reply, hidden reasoning included; None means the endpoint's limit.
        forget_epoch: The forget epoch at which the memory quoted in the messages was read; None if they quote none.
    """

    purpose: Purpose
    messages: tuple[Message, ...]
    form: ReplyForm | None = None
    reply_tokens: int | None = None
    forget_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call, as counted by the provider, or estimated if it sends no counts."""

    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class ChatReply:
    """A reply as the model sent it.

    Attributes:
        text: The text; may be empty, cut, in a code fence, or not JSON even if that was requested.
        is_cut: Whether the provider stopped the reply at a token limit.
    """

    text: str
    usage: Usage
    is_cut: bool


class ChatModel(Protocol):
    """Replies to requests. Safe to share between tasks."""

    @property
    def name(self) -> str:
        """Name of the model; stored with everything that is derived from its replies."""
        ...

    async def complete(self, request: ChatRequest, listener: Listener | None = None) -> ChatReply:
        """Return the reply to a request.

        Args:
            request: The request.
            listener: Called with each piece of the reply's text. If no error is raised, it has received all pieces.

        Raises:
            ModelError: There was no reply within the time limit, or the endpoint refused the request. The message says
                what to do; it contains no key and no part of the request.
        """
        ...

    async def aclose(self) -> None:
        """Release connections; later calls fail."""
        ...


class ForgetEpochs(Protocol):
    """One user's memory, as far as it counts forget operations."""

    async def forget_epoch(self) -> int:
        """Return the present forget epoch, which grows with each forget operation.

        Raises:
            StorageError: The memory could not be read.
        """
        ...


async def quotes_forgotten(request: ChatRequest, memory: ForgetEpochs | None) -> bool:
    """Return whether something was forgotten since the memory was read for a request.

    Args:
        request: The request.
        memory: The memory that it quotes; None if nothing in it is ever forgotten.

    Raises:
        StorageError: The memory could not be read.
    """
    if request.forget_epoch is None or memory is None:
        return False
    return await memory.forget_epoch() != request.forget_epoch
