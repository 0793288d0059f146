"""Configuration of connections to a user's file, and creation of the file."""

import os
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import apsw

from memoryos_mcp.errors import StorageError
from memoryos_mcp.storage.paths import beginning_mark
from memoryos_mcp.storage.sqlite.file_errors import BUSY_TIMEOUT_MS
from memoryos_mcp.storage.sqlite.journals import journals_of

# Earlier versions could corrupt a WAL file with several connections, and their FTS5 has no secure-delete.
SQLITE_AT_LEAST = (3, 51, 3)
# Size of the cache of each connection. There are up to five connections for each open user, and a larger cache helps
# little: queries share few SQLite pages, and a change by another connection empties the cache.
CACHE_KIB = 256
WAL_RETRY_S = 0.01


def require_version() -> None:
    """Raise `StorageError` if the SQLite library is older than `SQLITE_AT_LEAST`."""
    if tuple(int(part) for part in apsw.sqlite_lib_version().split(".")) < SQLITE_AT_LEAST:
        needed = ".".join(map(str, SQLITE_AT_LEAST))
        msg = f"SQLite {apsw.sqlite_lib_version()} is older than {needed}; reinstall the apsw package"
        raise StorageError(msg)


def set_up(connection: apsw.Connection) -> None:
    """Configure a new connection to a user's file."""
    # Closing the connection must not write the journal to the file before the file was checked.
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    distrust(connection)
    connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    connection.wal_autocheckpoint(0)  # checkpoints must be noted: see `journals`
    connection.pragma("synchronous", "full")
    connection.pragma("foreign_keys", True)
    connection.pragma("secure_delete", True)
    connection.pragma("temp_store", "memory")
    connection.pragma("cache_size", -CACHE_KIB)


@contextmanager
def transaction(connection: apsw.Connection) -> Iterator[None]:
    """Commit the changes of the block, or roll them back after an error."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def distrust(connection: apsw.Connection) -> None:
    """Disable triggers and views, which our files never have, and protect SQLite's own tables."""
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_VIEW, 0)


def connect_to_read(path: Path, *, is_in_use: bool) -> apsw.Connection:
    """Return a reading connection. If the file is not in use and has no journal, it creates and locks no files."""
    is_immutable = not is_in_use and not journals_of(path)[0].exists()
    uri = f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if is_immutable else ''}"
    return apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)


def leave_journal(connections: Iterable[apsw.Connection]) -> None:
    """Configure connections not to write the journal to the file when they close."""
    for connection in connections:
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)


def make_folders(path: Path) -> None:
    """Create the two folders of a user's file if missing, accessible for this account only."""
    for folder in (path.parent.parent, path.parent):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def make_private(path: Path) -> None:
    """Create the file and its two folders if missing, accessible for this account only; SQLite would use the umask.

    A mark is created beside a new file, until its tables exist. An empty file without the mark has lost its content.
    """
    make_folders(path)
    if not path.exists():
        os.close(os.open(beginning_mark(path), os.O_CREAT | os.O_WRONLY, 0o600))
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def make_journals_writable(path: Path) -> None:
    """Make journals writable again that were created while the file was not; SQLite copies the file's permissions."""
    if path.stat().st_mode & stat.S_IWUSR:
        for journal in journals_of(path):
            with suppress(OSError):
                if not journal.stat().st_mode & stat.S_IWUSR:
                    journal.chmod(0o600)


def use_wal(connection: apsw.Connection) -> None:
    """Switch a new file to write-ahead logging; wait for other processes that do so at the same time.

    The wait is here because SQLite does not call its busy handler for this.
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
