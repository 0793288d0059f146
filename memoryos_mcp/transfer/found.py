"""Results of an importer: turns and facts from another system's memory, and what was skipped.

An importer is a module of `memoryos_mcp.transfer.importers` with the interface `Reader`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from memoryos_mcp.model.knowledge import About
from memoryos_mcp.model.pages import NewTurn


@dataclass(frozen=True, slots=True)
class FoundFact:
    """A fact without the pages it was learned from.

    Attributes:
        at: When it was learned. Without a zone the user's zone applies; None means now.
        key: Name for reports only; facts with the same text are stored once.
    """

    about: About
    text: str
    at: datetime | None
    key: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something that cannot be imported.

    Attributes:
        reason: A few words without quoted text, such as "an image"; equal reasons are counted together.
        where: The location without dialogue text, such as "conversation 12, message 3".
    """

    reason: str
    where: str


# A turn's idempotency key is stable across imports and unique over all systems, ``chatgpt:<conversation>:<message>``;
# `importers.keys.key` makes one.
Found = NewTurn | FoundFact | Skipped
# Receives the number of bytes of the file or folder read so far, to show progress.
Tell = Callable[[int], None]


class Reader(Protocol):
    """An importer module for one other system, or for one of its export formats."""

    @property
    def NAME(self) -> str:  # noqa: N802 - a module's constant
        """Name of the format for ``--format``: lower case, with hyphens."""
        ...

    def recognises(self, path: Path) -> bool:
        """Return whether a file or folder looks like this format; reads little of it, and does not raise."""
        ...

    def read(self, path: Path, tell: Tell) -> Iterator[Found]:
        """Yield the contents in order of time within each conversation; at most one conversation is in memory.

        Raises:
            ImportFormatError: The file is cut off, of another format, or exceeds a limit.
        """
        ...
