"""Chat models: one request, one reply. The protocol that the network, the log, the replay and the meter share.

They wrap one another: a meter around a log around the provider's endpoint. So each can be had without the others. A
reply that is read while it is written is still one reply: whoever listens is handed its pieces, and those who count
and log see it whole.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, Protocol

from pydantic import JsonValue

# Is handed the pieces of a reply as they come. Must not wait.
Listener = Callable[[str], None]


class Purpose(StrEnum):
    """What a call is for; tokens are counted by it."""

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
        sketch: What such an object looks like, in few words, for a model that is not held to the schema; if it is
            empty, the schema itself is shown to it.
    """

    name: str
    schema: Mapping[str, JsonValue]
    sketch: str = ""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """What is asked.

    Attributes:
        messages: A system message first; it begins with what is equal for all calls of a purpose, so that providers
            can cache it.
        form: How the reply must be; the messages need not describe it. None for a reply in words.
        reply_tokens: Tokens at most of the reply, thoughts included; None means as many as the endpoint is ever asked
            for.
    """

    purpose: Purpose
    messages: tuple[Message, ...]
    form: ReplyForm | None = None
    reply_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call, as the provider counts them; estimated where it does not."""

    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class ChatReply:
    """What came back, as it came.

    Attributes:
        text: The reply's text; may be empty, fenced, cut or no JSON at all.
        is_cut: Whether the provider stopped it at a limit of tokens.
    """

    text: str
    usage: Usage
    is_cut: bool


class ChatModel(Protocol):
    """Answers chats. Safe to share between tasks."""

    @property
    def name(self) -> str:
        """Name of the model; kept beside what follows from its replies."""
        ...

    async def complete(self, request: ChatRequest, listener: Listener | None = None) -> ChatReply:
        """Return the reply to a request.

        Args:
            request: What is asked.
            listener: Is handed the reply's text piece by piece, all of it unless an error is raised.

        Raises:
            ModelError: There was none within the time limit, or the endpoint refused; the text says what to do, and
                holds no key and nothing of the messages.
        """
        ...

    async def aclose(self) -> None:
        """Release connections; later calls fail."""
        ...
