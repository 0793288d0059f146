"""Checks whether an open file still exists under its name, and whether it can be written.

A sync client, a manual restore or ``rm -rf`` may replace or remove a file while a server has it open. Writes to such a
file would be acknowledged and then lost.
"""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from memoryos_mcp.errors import StorageError
from memoryos_mcp.storage.sqlite.journals import Identity, identity, journals_of

# Approximate disk space that SQLite needs to open a file and store a page.
NEEDED_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """The identities (device and inode) of an open file and its journals.

    Every method raises `OSError` if the file's folder cannot be read or modified.

    Attributes:
        file: The identity of the file when it was opened; None if it did not exist then.
        journals: The identity of each journal when the file was opened, by its path, in the order of `journals_of`. The
            identity is None for a journal that did not exist then.
    """

    path: Path
    file: Identity | None
    journals: Mapping[str, Identity | None]

    @classmethod
    def of(cls, path: Path, *, with_journals: bool = True) -> "FileIdentity":
        """Return the identity of a file that was just opened.

        The result includes the identities of the file's journals, unless ``with_journals`` is false.
        """
        journals = map(str, journals_of(path)) if with_journals else ()
        return cls(path, identity(path), {each: identity(each) for each in journals})

    def is_unchanged(self) -> bool:
        """Return whether the file and its journals are still the same as when the file was opened.

        The result is False if any of them was replaced or removed. The call takes some microseconds.
        """
        return identity(self.path) == self.file and not self.has_lost_journals()

    def has_lost_journals(self) -> bool:
        """Return whether a journal was replaced or removed. Writes to such a journal are lost."""
        return any(journal is not None and identity(path) != journal for path, journal in self.journals.items())

    def has_lost_only_index(self) -> bool:
        """Return whether only the journal's index was replaced or removed; SQLite can create the index again."""
        journal = next(iter(self.journals), None)
        is_whole = journal is not None and identity(journal) == self.journals[journal] is not None
        return is_whole and identity(self.path) == self.file and self.has_lost_journals()

    def refuse_if_lost(self) -> None:
        """Raise `StorageError` if the file or a journal was replaced or removed since the file was opened."""
        if not self.is_unchanged():
            raise StorageError(lost_message(self.path))

    def remove_journals(self) -> None:
        """Remove the journals of a replaced file, because SQLite would apply them to the new file.

        Journals that do not belong to the replaced file are not removed.
        """
        for path, journal in self.journals.items():
            if journal is not None and identity(path) == journal:
                Path(path).unlink(missing_ok=True)


def lost_message(path: Path) -> str:
    """Return the error message for an open file that was replaced or removed."""
    return f"{path} or its journal was replaced or removed while the file was open; nothing was stored. Try again"


def read_only_message(folder: Path) -> str:
    """Return the error message for a folder on a read-only disk."""
    return f"{folder} is on a read-only disk; nothing was stored. Mount the disk writable, or move the folder"


def unwritable_reason(path: Path) -> str | None:
    """Return the reason why a file cannot be written at present, as an error message; None if no reason is found."""
    folder = path.parent
    try:
        if hasattr(os, "statvfs"):
            disk = os.statvfs(folder)
            if disk.f_flag & os.ST_RDONLY:
                return read_only_message(folder)
            if disk.f_files and not disk.f_favail:
                return f"the disk of {folder} cannot hold more files; nothing was stored. Remove some files to continue"
        if shutil.disk_usage(folder).free < NEEDED_BYTES:
            return f"no space left on the disk of {folder}; nothing was stored. Free some space to continue"
    except OSError:
        return None
    if not os.access(folder, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        return f"{folder} cannot be written; nothing was stored. Make the folder and its files writable by this account"
    return None
