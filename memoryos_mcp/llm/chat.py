"""Chat models: one request, one reply. The protocol that the network client, log, replay and meter share.

They wrap one another, such as a meter around a log around the provider's endpoint, so each works without the others.
A streamed reply is still one reply: the listener gets its pieces, while meter and log see the whole.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, Protocol

from pydantic import JsonValue

# Called with each piece of a reply as it arrives. Must not block.
Listener = Callable[[str], None]


class Purpose(StrEnum):
    """What a call is for; tokens are counted per purpose."""

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
    """The JSON object that a reply must be.

    Attributes:
        name: A short identifier.
        schema: JSON schema, with ``additionalProperties`` false and every property required, as strict servers want.
        sketch: A short example for a model whose server does not enforce the schema. If empty, it is shown the schema.
    """

    name: str
    schema: Mapping[str, JsonValue]
    sketch: str = ""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A request to a chat model.

    Attributes:
        messages: A system message first. Its beginning is equal for all calls of a purpose, so that providers can
            cache it.
        form: The form of the reply; the messages need not describe it. None for a reply in words.
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
    """Tokens of one call, as counted by the provider; estimated if it does not count them."""

    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class ChatReply:
    """A reply, unchanged.

    Attributes:
        text: The reply's text; may be empty, fenced, cut or not JSON at all.
        is_cut: Whether the provider stopped it at a token limit.
    """

    text: str
    usage: Usage
    is_cut: bool


class ChatModel(Protocol):
    """Answers chats. Safe to share between tasks."""

    @property
    def name(self) -> str:
        """Name of the model; stored with what is derived from its replies."""
        ...

    async def complete(self, request: ChatRequest, listener: Listener | None = None) -> ChatReply:
        """Return the reply to a request.

        Args:
            request: The request.
            listener: Called with the reply's text piece by piece, with all of it unless an error is raised.

        Raises:
            ModelError: There was no reply within the time limit, or the endpoint refused. The error's text says what
                to do, and holds no key and nothing of the messages.
        """
        ...

    async def aclose(self) -> None:
        """Release connections; later calls fail."""
        ...


class ForgetEpochs(Protocol):
    """Tells the present forget epoch of one user's memory, which grows each time something is forgotten."""

    async def forget_epoch(self) -> int:
        """Return the present epoch.

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
