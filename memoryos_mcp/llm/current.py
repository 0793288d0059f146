"""What a request quotes may be forgotten while it waits: then it is not sent any more, and its reply not logged.

Who reads a memory to ask about it notes before how often something was forgotten; if that is more by now, what was read
may be gone.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol

from memoryos_mcp.errors import LeaseLostError
from memoryos_mcp.llm.chat import ChatModel, ChatReply, ChatRequest

_NOTED: ContextVar[int | None] = ContextVar("forgettings", default=None)


class Forgettings(Protocol):
    """Knows how often something was forgotten in one user's memory."""

    async def forgettings(self) -> int:
        """Return how often."""
        ...


@contextmanager
def reading_since(forgettings: int) -> Iterator[None]:
    """Have requests made in here, also by tasks begun in here, rest on what was read after so many forgettings."""
    token = _NOTED.set(forgettings)
    try:
        yield
    finally:
        _NOTED.reset(token)


@dataclass(frozen=True, slots=True)
class Reading:
    """A state of the memory that a request was made from.

    Attributes:
        source: Knows of later forgettings; None if nothing is ever forgotten.
        noted: How many there were when it was read.
    """

    source: Forgettings | None
    noted: int

    @classmethod
    async def begun(cls, source: Forgettings | None) -> "Reading":
        """Return what the present request was made from; if nobody noted it, the present state."""
        noted = _NOTED.get()
        if noted is None:
            noted = 0 if source is None else await source.forgettings()
        return cls(source, noted)

    async def is_current(self) -> bool:
        """Whether nothing was forgotten since."""
        return self.source is None or await self.source.forgettings() == self.noted


class CurrentChat:
    """A chat model that is not told what was forgotten, and whose replies about it come to nothing.

    Args:
        chat: Who is asked.
        forgettings: Tells of what was forgotten.
    """

    def __init__(self, chat: ChatModel, forgettings: Forgettings) -> None:
        self._chat = chat
        self._forgettings = forgettings

    @property
    def name(self) -> str:
        """Name of the model."""
        return self._chat.name

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return the reply to a request. See ``ChatModel.complete``.

        Raises:
            LeaseLostError: Something was forgotten since the request was made from the memory.
        """
        reading = await Reading.begun(self._forgettings)
        await _check(reading)
        reply = await self._chat.complete(request)
        await _check(reading)
        return reply

    async def aclose(self) -> None:
        """Release connections."""
        await self._chat.aclose()


async def _check(reading: Reading) -> None:
    if not await reading.is_current():
        msg = "something was forgotten meanwhile; what is left is read anew"
        raise LeaseLostError(msg)
