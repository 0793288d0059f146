"""The interface of importers, and the items that they yield: turns, facts, and notes about skipped data.

An importer is a module of `memoryos_mcp.transfer.importers` that implements `Reader`.
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
    """A fact from another system's memory. It has no pages as evidence.

    Attributes:
        about: Whom the fact is about.
        text: The fact as a sentence.
        at: When the fact was learned. A time without a zone is in the user's time zone. None means now.
        key: Identifies the fact in reports. It is not stored. Facts with the same text are stored once.
    """

    about: About
    text: str
    at: datetime | None
    key: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """A note about data that is not imported.

    Attributes:
        reason: Why the data is not imported, or what it is, such as "an image". It contains no
            dialogue text. Notes with the same reason are counted together.
        where: The location of the data in the file, such as "conversation 12, message 3".
    """

    reason: str
    where: str


# A turn's idempotency key is the same at every import. It begins with the name of the system, as in
# ``chatgpt:<conversation>:<message>``. `importers.keys.key` returns such a key.
Item = NewTurn | ImportedFact | Skipped
# Receives the number of bytes read so far of the file or folder.
Progress = Callable[[int], None]


class Reader(Protocol):
    """An importer, which is a module that reads one file format of another system."""

    @property
    def NAME(self) -> str:  # noqa: N802 - a constant of the module
        """Name of the format, in lower case with hyphens. Users pass it as ``--format``."""
        ...

    def recognises(self, path: Path) -> bool:
        """Return whether a file or folder seems to have this format. Read only a little data, and raise no error."""
        ...

    def read(self, path: Path, progress: Progress) -> Iterator[Item]:
        """Yield the items of a file or folder. The turns of a conversation are ordered by time.

        At most one conversation is in RAM at a time. The caller checks each turn with `model.pages.checked`. If a turn
        is refused, for example because of its time, it is skipped and reported with its key.

        Raises:
            ImportFormatError: The file is damaged, has another format, contains several users' memories, or exceeds a
                limit.
        """
        ...
