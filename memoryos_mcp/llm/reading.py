"""Detects whether a part of the memory was forgotten after the memory was read for a request.

The number of forget operations is noted before the memory is read. If the number is higher later, the text that was
read may be forgotten.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol

_NOTED: ContextVar[int | None] = ContextVar("forgettings", default=None)


class Forgettings(Protocol):
    """Counts the forget operations in one user's memory."""

    async def forgettings(self) -> int:
        """Return the number of forget operations so far."""
        ...


@contextmanager
def reading_since(forgettings: int) -> Iterator[None]:
    """Note the number of forget operations for requests made inside, including those of tasks started inside."""
    token = _NOTED.set(forgettings)
    try:
        yield
    finally:
        _NOTED.reset(token)


@dataclass(frozen=True, slots=True)
class Reading:
    """The state of the memory that a request is based on.

    Attributes:
        source: Counts the forget operations; None if nothing is ever forgotten.
        noted: The number of forget operations when the memory was read.
    """

    source: Forgettings | None
    noted: int

    @classmethod
    async def begun(cls, source: Forgettings | None) -> "Reading":
        """Return the state noted for the current request; without one, the present state."""
        noted = _NOTED.get()
        if noted is None:
            noted = 0 if source is None else await source.forgettings()
        return cls(source, noted)

    async def is_current(self) -> bool:
        """Whether nothing was forgotten since the memory was read."""
        return self.source is None or await self.source.forgettings() == self.noted
