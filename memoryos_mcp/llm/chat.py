"""The protocol of chat models, which take one request and return one reply.

The network client, the log of calls, the replay of recorded replies and the token counter implement this protocol. Some
of them wrap another chat model: a token counter may wrap a log, which wraps the network client. A streamed reply is
passed to the listener in pieces, and is also returned as a whole.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, Protocol

from pydantic import JsonValue

# A function that is called with each piece of a reply as it arrives. It must not block.
Listener = Callable[[str], None]


class Purpose(StrEnum):
    """The purpose of an LLM call. Tokens are counted separately for each purpose."""

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
    """The requested form of a reply that is a JSON object.

    Attributes:
        name: A short identifier of the form.
        schema: JSON schema of the reply. Strict servers require that ``additionalProperties`` is false and that every
            property is listed in ``required``.
        sketch: A short example of a reply, which is shown to the model if its server does not enforce the schema. If
            the sketch is empty, the schema is shown instead.
    """

    name: str
    schema: Mapping[str, JsonValue]
    sketch: str = ""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A request to a chat model.

    Attributes:
        messages: The messages, a system message first. The beginning of the system message is the same for all calls
            with the same purpose, so that providers can cache it.
        form: The form of a JSON reply; None for a reply in plain text. The messages need not describe the form.
        reply_tokens: Maximum number of tokens in the reply, including hidden reasoning; None for the endpoint's limit.
        forget_epoch: The forget epoch (see `ForgetEpochs`) at which the quoted parts of the memory were read; None if
            the request quotes no memory.
    """

    purpose: Purpose
    messages: tuple[Message, ...]
    form: ReplyForm | None = None
    reply_tokens: int | None = None
    forget_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts of one call. They are estimated if the provider sends none."""

    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class ChatReply:
    """A reply exactly as the model sent it.

    Attributes:
        text: The text of the reply. It may be empty, incomplete, inside a code fence, or not JSON even if JSON was
            requested.
        is_cut: Whether the provider stopped the reply at a token limit.
    """

    text: str
    usage: Usage
    is_cut: bool


class ChatModel(Protocol):
    """A model that replies to requests. It can be shared between tasks."""

    @property
    def name(self) -> str:
        """Name of the model. It is stored with all data that is derived from the model's replies."""
        ...

    async def complete(self, request: ChatRequest, listener: Listener | None = None) -> ChatReply:
        """Return the reply to a request.

        Args:
            request: The request.
            listener: Called with each piece of the reply's text. If no error is raised, the listener has received the
                whole text.

        Raises:
            ModelError: There was no reply within the time limit, or the endpoint refused the request. The message says
                what to do. It contains neither a key nor any part of the request.
        """
        ...

    async def aclose(self) -> None:
        """Close the connections. Later calls of ``complete`` fail."""
        ...


class ForgetEpochs(Protocol):
    """Access to the forget epoch of one user's memory: a number that increases each time something is forgotten."""

    async def forget_epoch(self) -> int:
        """Return the current forget epoch.

        Raises:
            StorageError: The memory could not be read.
        """
        ...


async def quotes_forgotten(request: ChatRequest, memory: ForgetEpochs | None) -> bool:
    """Return whether anything has been forgotten since the memory was read for a request.

    Args:
        request: The request.
        memory: The memory that the request quotes. If it is None, the result is False.

    Raises:
        StorageError: The memory could not be read.
    """
    if request.forget_epoch is None or memory is None:
        return False
    return await memory.forget_epoch() != request.forget_epoch
