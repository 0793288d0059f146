"""Configuration of connections to a user's file, and creation of the file and its folders."""

import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import apsw

from memoryos_mcp.errors import StorageError
from memoryos_mcp.storage.sqlite.file_errors import BUSY_TIMEOUT_MS
from memoryos_mcp.storage.sqlite.journals import journals_of
from memoryos_mcp.storage.sqlite.paths import beginning_mark
from memoryos_mcp.storage.sqlite.words import FtsWords, columns

# Earlier versions can corrupt a WAL file that several connections use, and their FTS5 has no secure-delete.
SQLITE_AT_LEAST = (3, 51, 3)
# Size of each connection's cache. Each open user has up to five connections. A larger cache would help little, because
# queries share few SQLite pages, and a change by another connection empties the cache.
CACHE_KIB = 256
WAL_RETRY_S = 0.01
# The kinds of rows whose numbers are never reused, and their tables.
_NUMBERED = {
    "page": "pages",
    "chain": "chains",
    "segment": "segments",
    "fact": "facts",
    "space": "spaces",
    "change": "changes",
}


class SqliteConnection(apsw.Connection):
    """A connection to a user's file. Implements `storage.sql.connection.Connection`."""

    @property
    def words(self) -> FtsWords:
        """The word index of the file."""
        return FtsWords(self)

    def columns(self, query: str, bindings: Any, *, values: Sequence[str], blobs: Sequence[str] = ()) -> list[Any]:
        """Return the result of a query as columns; see `storage.sql.connection.Connection`."""
        return columns(self, query, bindings, values=values, blobs=blobs)

    def last_numbers(self) -> dict[str, int]:
        """Return the highest number used so far for each kind of numbered row, such as facts."""
        last: dict[str, int] = dict(self.execute("SELECT name, seq FROM sqlite_sequence"))
        return {kind: last.get(table, 0) for kind, table in _NUMBERED.items()}

    def set_last_numbers(self, numbers: Mapping[str, int]) -> None:
        """Set the highest number used so far for each kind of row."""
        for kind, table in _NUMBERED.items():
            self.execute("DELETE FROM sqlite_sequence WHERE name = ?", (table,))
            self.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (table, numbers[kind]))

    def clock_offset_us(self) -> int:
        """Return 0, because the database uses this machine's clock."""
        return 0

    def has_ended(self, holder: str) -> bool:  # noqa: ARG002 - a method of the protocol
        """Return False, because a file does not show which processes are running."""
        return False


def require_version() -> None:
    """Raise `StorageError` if the SQLite library is older than `SQLITE_AT_LEAST`."""
    if tuple(int(part) for part in apsw.sqlite_lib_version().split(".")) < SQLITE_AT_LEAST:
        needed = ".".join(map(str, SQLITE_AT_LEAST))
        msg = f"SQLite {apsw.sqlite_lib_version()} is older than {needed}; reinstall the apsw package"
        raise StorageError(msg)


def set_up(connection: apsw.Connection, *, only_reads: bool = False) -> None:
    """Configure a new connection to a user's file."""
    # Closing the connection must not write the journal to the file until the file has been checked.
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    distrust(connection)
    connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    connection.wal_autocheckpoint(0)  # `Checkpoints` makes the checkpoints instead
    connection.pragma("temp_store", "memory")
    connection.pragma("cache_size", -CACHE_KIB)
    if not only_reads:
        connection.pragma("synchronous", "full")
        connection.pragma("foreign_keys", True)
        connection.pragma("secure_delete", True)
        # The pages that a transaction deletes; see `storage.sql.forgetting`.
        connection.execute("CREATE TEMP TABLE IF NOT EXISTS going (seq INTEGER PRIMARY KEY)")


@contextmanager
def transaction(connection: apsw.Connection) -> Iterator[None]:
    """Run the ``with`` block in a transaction. At the end, commit the transaction, or roll it back after an error."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def distrust(connection: apsw.Connection) -> None:
    """Disable triggers and views, which valid files never contain, and prevent changes to SQLite's internal tables."""
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_VIEW, 0)


def connect_to_read(path: Path, *, is_in_use: bool) -> SqliteConnection:
    """Return a connection for reading a file. ``is_in_use`` must be true if other processes may write to the file.

    If ``is_in_use`` is false and the file has no journal, the connection neither creates nor locks files.
    """
    is_immutable = not is_in_use and not journals_of(path)[0].exists()
    uri = f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if is_immutable else ''}"
    return SqliteConnection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)


def leave_journal(connections: Iterable[apsw.Connection]) -> None:
    """Configure connections to leave the journal as it is when they are closed.

    By default, the last connection moves the journal's content to the database file, and deletes the journal.
    """
    for connection in connections:
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)


def make_folders(path: Path) -> None:
    """Create the missing folders of a user's file. They are accessible only to the current account."""
    for folder in (path.parent.parent, path.parent):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def make_private(path: Path) -> None:
    """Create a user's file and its folders if they do not exist. They are accessible only to the current account.

    SQLite itself would create the file with the permissions that the umask allows. For a new file, a mark is created
    too (see `beginning_mark`). The mark is removed when the tables exist. An empty file without the mark has therefore
    lost its content.
    """
    make_folders(path)
    if not path.exists():
        os.close(os.open(beginning_mark(path), os.O_CREAT | os.O_WRONLY, 0o600))
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def make_journals_writable(path: Path) -> None:
    """Make the journals of a file writable if the file is writable.

    SQLite creates a journal with the file's permissions. A journal that was created while the file was read-only is
    therefore read-only too.
    """
    if path.stat().st_mode & stat.S_IWUSR:
        for journal in journals_of(path):
            with suppress(OSError):
                if not journal.stat().st_mode & stat.S_IWUSR:
                    journal.chmod(0o600)


def use_wal(connection: apsw.Connection) -> None:
    """Switch a file to write-ahead logging. If another process has locked the file, wait up to `BUSY_TIMEOUT_MS`.

    After that time, SQLite's error is raised. The wait is implemented here because SQLite does not wait by itself
    during this operation.
    """
    give_up_at = time.monotonic() + BUSY_TIMEOUT_MS / 1000
    while True:
        try:
            connection.pragma("journal_mode", "wal")
        except (apsw.BusyError, apsw.LockedError):
            if time.monotonic() > give_up_at:
                raise
            time.sleep(WAL_RETRY_S)
        else:
            return
