"""A file's place: whether an open file still exists under its name, and whether it can be written there.

Sync clients, a manual restore and ``rm -rf`` replace or remove a file while a server has it open. Writes to the lost
file would be acknowledged and then be gone.
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
class FileIdentity:
    """The identities of an open file and its journals.

    Attributes:
        file: The file that was opened; None if it could not be examined.
        journals: The journals that were opened with it, in the order of `journals_of`; None for a missing one.
    """

    path: Path
    file: Identity | None
    journals: tuple[Identity | None, ...]

    @classmethod
    def of(cls, path: Path, *, with_journals: bool = True) -> "FileIdentity":
        """Return the place of a file that was just opened, used through the journals beside it or not."""
        return cls(path, identity(path), tuple(map(identity, journals_of(path))) if with_journals else ())

    def is_unchanged(self) -> bool:
        """Return whether the opened file is still there with its journals; takes some microseconds.

        Raises:
            OSError: The folder cannot be examined.
        """
        return identity(self.path) == self.file and not self.has_lost_journals()

    def has_lost_journals(self) -> bool:
        """Return whether an opened journal is no longer there, so that writes to it are lost.

        Raises:
            OSError: The folder cannot be examined.
        """
        opened = zip(journals_of(self.path), self.journals, strict=False)
        return any(journal is not None and identity(path) != journal for path, journal in opened)

    def has_lost_only_index(self) -> bool:
        """Return whether only the index of the journal is lost, which SQLite creates again.

        Raises:
            OSError: The folder cannot be examined.
        """
        journal = (identity(journals_of(self.path)[0]),)
        is_whole = identity(self.path) == self.file and journal == self.journals[:1] != (None,)
        return is_whole and self.has_lost_journals()

    def refuse_if_lost(self) -> None:
        """Refuse to use the open file if it is no longer there.

        Raises:
            StorageError: The file or a journal was replaced or removed.
        """
        if not self.is_unchanged():
            raise StorageError(lost_message(self.path))

    def remove_journals(self) -> None:
        """Remove the lost file's journals, which SQLite would apply to the file in its place.

        Raises:
            OSError: They cannot be removed.
        """
        for path, journal in zip(journals_of(self.path), self.journals, strict=False):
            if journal is not None and identity(path) == journal:
                path.unlink(missing_ok=True)


def lost_message(path: Path) -> str:
    """Return the message for an open file that was replaced or removed."""
    return f"{path} or its journal was replaced or removed while open; nothing was stored. Try again"


def read_only_message(folder: Path) -> str:
    """Return the message for a folder on a read-only disk."""
    return f"{folder} is on a disk that is read-only; nothing was stored. Mount it writable, or move the folder"


def unwritable_reason(path: Path) -> str | None:
    """Return why a file cannot be written at present and what to do about it; None if it can."""
    folder = path.parent
    try:
        if hasattr(os, "statvfs"):
            disk = os.statvfs(folder)
            if disk.f_flag & os.ST_RDONLY:
                return read_only_message(folder)
            if disk.f_files and not disk.f_favail:
                return f"the disk of {folder} takes no more files; nothing was stored. Remove some, and it goes on"
        if shutil.disk_usage(folder).free < NEEDED_BYTES:
            return f"no space left on the disk of {folder}; nothing was stored. Free space, and it goes on by itself"
    except OSError:
        return None
    if not os.access(folder, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        return f"{folder} cannot be written; nothing was stored. Make the folder and its files writable for this user"
    return None
