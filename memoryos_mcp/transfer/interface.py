"""The interface of importers, and the items that they yield: turns, facts, and notes about skipped data.

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
class ImportedFact:
    """A fact from another system's memory, which has no pages as evidence.

    Attributes:
        at: When the fact was learned. Without a zone, the user's zone applies. None means now.
        key: A name for reports only. Facts with the same text are stored once.
    """

    about: About
    text: str
    at: datetime | None
    key: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """A note about data that is not imported.

    Attributes:
        reason: A few words without dialogue text, such as "an image". Equal reasons are counted together.
        where: The location, such as "conversation 12, message 3".
    """

    reason: str
    where: str


# A turn's idempotency key is the same at every import and differs between systems, as in
# ``chatgpt:<conversation>:<message>``. `importers.keys.key` makes such a key.
Item = NewTurn | ImportedFact | Skipped
# Receives the number of bytes read so far of the file or folder.
Progress = Callable[[int], None]


class Reader(Protocol):
    """A module that imports one format of another system."""

    @property
    def NAME(self) -> str:  # noqa: N802 - a constant of the module
        """Name of the format for ``--format``: lower case, with hyphens."""
        ...

    def recognises(self, path: Path) -> bool:
        """Return whether a file or folder seems to have this format. Reads little of it, and does not raise."""
        ...

    def read(self, path: Path, progress: Progress) -> Iterator[Item]:
        """Yield the contents, each conversation in order of time. At most one conversation is in memory at a time.

        Raises:
            ImportFormatError: The file is damaged, has another format, contains several users' memories, or exceeds a
                limit.
        """
        ...
