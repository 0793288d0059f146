"""Reading: what was read from a memory may be forgotten while a request about it is under way.

The number of forgettings is noted before the memory is read. If it is higher later, what was read may be gone.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol

_NOTED: ContextVar[int | None] = ContextVar("forgettings", default=None)


class Forgettings(Protocol):
    """Counts how often something was forgotten in one user's memory."""

    async def forgettings(self) -> int:
        """Return the count."""
        ...


@contextmanager
def reading_since(forgettings: int) -> Iterator[None]:
    """Mark requests made inside, also by tasks started inside, as based on what was read at this count."""
    token = _NOTED.set(forgettings)
    try:
        yield
    finally:
        _NOTED.reset(token)


@dataclass(frozen=True, slots=True)
class Reading:
    """The state of the memory that a request is based on.

    Attributes:
        source: Counts later forgettings; None if nothing is ever forgotten.
        noted: The count when the memory was read.
    """

    source: Forgettings | None
    noted: int

    @classmethod
    async def begun(cls, source: Forgettings | None) -> "Reading":
        """Return the state that the current request is based on: the noted one, else the present one."""
        noted = _NOTED.get()
        if noted is None:
            noted = 0 if source is None else await source.forgettings()
        return cls(source, noted)

    async def is_current(self) -> bool:
        """Whether nothing was forgotten since."""
        return self.source is None or await self.source.forgettings() == self.noted
