"""Reads a file that cannot be written at present, for instance because the disk is full or read-only."""

import shutil
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

import apsw

from memoryos_mcp.storage.sqlite.connections import SqliteConnection
from memoryos_mcp.storage.sqlite.journals import has_journal, is_foreign, journals_of
from memoryos_mcp.storage.sqlite.places import unwritable_reason

# Minimum time between two checks of whether the file has changed or can be written again.
WRITABLE_POLL_S = 1.0


class UnwritableFile:
    """A file that is read without writing to its folder.

    If the file has a journal, SQLite reads a temporary copy of both, because it reads journals only in writable
    folders.

    Raises:
        OSError: The copy could not be made.
    """

    def __init__(self, path: Path, reason: str) -> None:
        self.reason = reason
        self._path = path
        self._state = self._current_state()
        self._checked_at_s = time.monotonic()
        self._folder: Path | None = None
        if has_journal(path) and not is_foreign(path):
            self._folder = Path(tempfile.mkdtemp(prefix="memoryos-"))
            for each in (path, journals_of(path)[0]):
                shutil.copyfile(each, self._folder / each.name)

    def connect(self) -> SqliteConnection:
        """Return a new connection for reading."""
        if self._folder is not None:
            return SqliteConnection(str(self._folder / self._path.name))
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        return SqliteConnection(f"file:{quote(str(self._path))}?immutable=1", flags=flags)

    def is_up_to_date(self) -> bool:
        """Return whether the file is unchanged since it was opened, and still cannot be written.

        The file is examined at most once per second. Calls in between return True.

        Raises:
            OSError: The file could not be examined.
        """
        if time.monotonic() - self._checked_at_s < WRITABLE_POLL_S:
            return True
        self._checked_at_s = time.monotonic()
        return self._current_state() == self._state and unwritable_reason(self._path) is not None

    def close(self) -> None:
        """Remove the temporary copy, if there is one."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _current_state(self) -> list[tuple[int, int] | None]:
        files = (self._path, journals_of(self._path)[0])
        states = (each.stat() if each.exists() else None for each in files)
        return [None if state is None else (state.st_mtime_ns, state.st_size) for state in states]
