"""Removal of deleted content from a file and its journal.

With ``secure_delete``, SQLite overwrites deleted content. It does not overwrite the old copy of a row that it moves
within the file. Only rewriting the file removes such copies.
"""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import apsw

from memoryos_mcp.storage.sqlite.journals import checkpointed

# Maximum time to wait for other processes. If this is not enough, the caller tries again later.
PURGE_BUSY_TIMEOUT_MS = 1_000
VACUUMED_IN_RAM_BYTES = 256 * 1024 * 1024


def rewrite(path: Path, connect: Callable[[], apsw.Connection]) -> bool:
    """Rewrite a file without its deleted content. Return False if another process has locked the file."""

    def vacuum(connection: apsw.Connection) -> bool:
        if path.stat().st_size > VACUUMED_IN_RAM_BYTES:
            connection.pragma("temp_store", "file")
        connection.execute("VACUUM")
        return True

    return _patiently(connect, vacuum)


def empty_journal(path: Path, connect: Callable[[], apsw.Connection]) -> bool:
    """Move the content of a file's journal into the file. Return whether the journal is now empty.

    The journal is not empty if another process is using the file. During the call, no other connection of this process
    may read the file.
    """

    def empty(connection: apsw.Connection) -> bool:
        with checkpointed(path):
            is_busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0]
        return not is_busy

    return _patiently(connect, empty)


def _patiently(connect: Callable[[], apsw.Connection], work: Callable[[apsw.Connection], bool]) -> bool:
    with closing(connect()) as connection:
        connection.set_busy_timeout(PURGE_BUSY_TIMEOUT_MS)
        try:
            return work(connection)
        except (apsw.BusyError, apsw.LockedError):
            return False
