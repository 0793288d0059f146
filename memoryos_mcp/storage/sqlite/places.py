"""A file's place: whether what is open still stands under its name, and whether it can be written there.

Sync clients, a restore by hand and ``rm -rf`` put another file there, or none, while a server has the first one open.
What was written to that one then would be acknowledged and gone.
"""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from memoryos_mcp.errors import StorageError
from memoryos_mcp.storage.sqlite.journals import Identity, identity, journals_of

# SQLite needs about as much to open a file, and a page to be stored.
NEEDED_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class Place:
    """Where an open file stands.

    Attributes:
        path: Its name.
        file: Which file was opened; None if that could not be looked at.
        journals: Which journals were opened with it, in the order of `journals_of`; None for one that was not there.
    """

    path: Path
    file: Identity | None
    journals: tuple[Identity | None, ...]

    @classmethod
    def of(cls, path: Path, *, with_journals: bool = True) -> "Place":
        """Return the place of a file that was just opened.

        Args:
            path: Its name.
            with_journals: Whether it is read and written through the journals beside it.
        """
        return cls(path, identity(path), tuple(map(identity, journals_of(path))) if with_journals else ())

    def is_held(self) -> bool:
        """Return whether the file that was opened still stands there with its journals; takes some microseconds.

        Raises:
            OSError: The folder cannot be looked at.
        """
        return identity(self.path) == self.file and not self.has_lost_journals()

    def has_lost_journals(self) -> bool:
        """Return whether one of the journals that were opened stands there no more: what is written to it is gone.

        Raises:
            OSError: The folder cannot be looked at.
        """
        opened = zip(journals_of(self.path), self.journals, strict=False)
        return any(journal is not None and identity(path) != journal for path, journal in opened)

    def has_lost_only_index(self) -> bool:
        """Return whether nothing is lost but the index of the journal, which SQLite makes again.

        Raises:
            OSError: The folder cannot be looked at.
        """
        journal = (identity(journals_of(self.path)[0]),)
        is_whole = identity(self.path) == self.file and journal == self.journals[:1] != (None,)
        return is_whole and self.has_lost_journals()

    def refuse_if_lost(self) -> None:
        """Refuse to use the open file if it stands there no more.

        Raises:
            StorageError: Another file is there, or none.
        """
        if not self.is_held():
            raise StorageError(lost(self.path))

    def remove_journals(self) -> None:
        """Take away the lost file's journals, which SQLite would take for those of the file in its place.

        Raises:
            OSError: They cannot be removed.
        """
        for path, journal in zip(journals_of(self.path), self.journals, strict=False):
            if journal is not None and identity(path) == journal:
                path.unlink(missing_ok=True)


def lost(path: Path) -> str:
    """Return what is told of a file that is not the one any more that was opened."""
    return f"{path} or its journal was replaced or removed while open; nothing was stored. Try again"


def read_only(folder: Path) -> str:
    """Return what is told of a folder on a disk that is read-only."""
    return f"{folder} is on a disk that is read-only; nothing was stored. Mount it writable, or move the folder"


def unwritable(path: Path) -> str | None:
    """Return why nothing can be written to a file just now, in words that tell what to do; None if it can."""
    folder = path.parent
    try:
        if hasattr(os, "statvfs"):
            disk = os.statvfs(folder)
            if disk.f_flag & os.ST_RDONLY:
                return read_only(folder)
            if disk.f_files and not disk.f_favail:
                return f"the disk of {folder} takes no more files; nothing was stored. Remove some, and it goes on"
        if shutil.disk_usage(folder).free < NEEDED_BYTES:
            return f"no space left on the disk of {folder}; nothing was stored. Free space, and it goes on by itself"
    except OSError:
        return None
    if not os.access(folder, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        return f"{folder} cannot be written; nothing was stored. Make the folder and its files writable for this user"
    return None
