"""A file's place: whether what is open still stands under its name, and whether it can be written there.

Sync clients, a restore by hand and ``rm -rf`` put another file there, or none, while a server has the first one open.
What was written to that one then would be acknowledged and gone.
"""

import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import apsw

from memoryos_mcp.errors import StorageError
from memoryos_mcp.storage.paths import kept_copies, kept_name

logger = logging.getLogger(__name__)

# SQLite needs about as much to open a file, and a page to be stored.
NEEDED_BYTES = 1_000_000
_JOURNALS = ("-wal", "-shm")

Identity = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Place:
    """Where an open file stands.

    Attributes:
        path: Its name.
        identity: Device and inode of the file that was opened.
        journals: Those of the journals that belong to it.
    """

    path: Path
    identity: Identity | None
    journals: frozenset[Identity | None]

    @classmethod
    def of(cls, path: Path) -> "Place":
        """Return the place of a file that was just opened, with its journals."""
        return cls(path, _identity(path), frozenset(map(_identity, journals_of(path))))

    def is_held(self) -> bool:
        """Return whether the file that was opened still stands there; takes some microseconds.

        Raises:
            OSError: The folder cannot be looked at.
        """
        return _identity(self.path) == self.identity

    def refuse_if_lost(self) -> None:
        """Refuse to use the open file if it stands there no more.

        Raises:
            StorageError: Another file is there, or none.
        """
        if not self.is_held():
            msg = f"{self.path} was replaced or removed while open; nothing was stored. It is opened anew: try again"
            raise StorageError(msg)

    def leave(self, connection: apsw.Connection) -> None:
        """Make way for another file: take away the lost one's journals, and keep what it held and the other lacks.

        SQLite would take the journals for the other file's. Where the folder went too somebody wanted all of it to go,
        and nothing is kept; a file alone is also removed to be replaced.

        Args:
            connection: Has the lost file open.
        """
        for journal in journals_of(self.path):
            if _identity(journal) in self.journals - {None}:
                journal.unlink(missing_ok=True)
        if not self.path.parent.exists():
            logger.warning("%s was removed with its folder while it was open; what it held is gone", self.path)
        elif not _page_ids(connection) <= set(self._page_ids_there()):
            kept = self.path.with_name(kept_name(f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}Z"))
            os.close(os.open(kept, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            with closing(apsw.Connection(str(kept))) as target, target.backup("main", connection, "main") as backup:
                backup.step()
            logger.warning(
                "%s was replaced or removed while it was open; what it held is kept as %s", self.path, kept.name
            )

    def _page_ids_there(self) -> Iterator[str]:
        for path in (self.path, *kept_copies(self.path)):
            with suppress(apsw.Error), closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as there:
                yield from _page_ids(there)


def journals_of(path: Path) -> list[Path]:
    """Return the files that SQLite keeps beside a file while it is open."""
    return [path.with_name(path.name + suffix) for suffix in _JOURNALS]


def read_only(folder: Path) -> str:
    """Return what is told of a folder on a disk that is read-only."""
    return f"{folder} is on a disk that is read-only; nothing was stored. Mount it writable, or move the folder"


def unwritable(path: Path) -> str | None:
    """Return why nothing can be written to a file just now, in words that tell what to do; None if it can."""
    folder = path.parent
    try:
        if hasattr(os, "statvfs") and os.statvfs(folder).f_flag & os.ST_RDONLY:
            return read_only(folder)
        if shutil.disk_usage(folder).free < NEEDED_BYTES:
            return f"no space left on the disk of {folder}; nothing was stored. Free space, and it goes on by itself"
    except OSError:
        return None
    if not os.access(folder, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        return f"{folder} cannot be written; nothing was stored. Make the folder and its files writable for this user"
    return None


def _identity(path: Path) -> Identity | None:
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


def _page_ids(connection: apsw.Connection) -> set[str]:
    return {page_id for (page_id,) in connection.execute("SELECT page_id FROM pages")}
