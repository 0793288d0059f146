"""Reading: what was read of a memory may be forgotten while it is worked on.

Who reads a memory to ask about it notes before how often something was forgotten; if that is more by now, what was read
may be gone.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol

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
