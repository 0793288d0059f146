"""Checks whole files for damage. The files are backups and other copies, and memories not open in this process."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from memoryos_mcp.errors import StorageError
from memoryos_mcp.storage.capabilities import MemorySummary
from memoryos_mcp.storage.sql import retention
from memoryos_mcp.storage.sql.moments import from_us
from memoryos_mcp.storage.sqlite.checksums import damaged_pages
from memoryos_mcp.storage.sqlite.connections import SqliteConnection, connect_to_read, distrust, require_version
from memoryos_mcp.storage.sqlite.file_errors import translated
from memoryos_mcp.storage.sqlite.file_header import check_content, check_header
from memoryos_mcp.storage.sqlite.integrity import integrity_check, read_texts
from memoryos_mcp.storage.sqlite.journals import locked_folder, set_aside_foreign
from memoryos_mcp.storage.sqlite.paths import database_file

BUSY_TIMEOUT_MS = 2_000


def examine(data_folder: Path, user_id: str) -> MemorySummary | None:
    """Check a user's file for damage, and return a summary of the memory; see `Stores.examine`.

    The check includes all text in the file. Return None if the file is missing or empty.
    """
    require_version()
    path = database_file(data_folder, user_id)
    try:
        check_header(path)
        if not path.exists() or not path.stat().st_size:
            return None
    except OSError as error:
        msg = f"{path} cannot be read ({error.strerror or type(error).__name__}); check its permissions"
        raise StorageError(msg) from error
    found = check_copy(path)
    with translated(path), reading(path, is_in_use=False) as reader:
        read_texts(reader)
    return found


def check_copy(path: Path) -> MemorySummary:
    """Check a whole file for damage, and return its summary. The file is not changed.

    Raises:
        DamagedStoreError: The file is damaged, or was created by another program.
        NewerStoreError: The file was created by a newer version of this program.
        StorageError: The file does not exist, contains no memory, or cannot be read.
    """
    with translated(path):
        if not path.is_file() or path.stat().st_size == 0:
            state = "is a folder" if path.is_dir() else "does not exist"
            if path.is_file():
                state = "is empty"
            msg = f"{path} {state}; choose a file that contains a memory"
            raise StorageError(msg)
        check_header(path)
        set_aside_foreign_locked(path)
        with reading(path, is_in_use=False) as reader:
            if check_content(reader, path) == 0:
                msg = f"{path} contains no tables; choose a file that contains a memory"
                raise StorageError(msg)
            integrity_check(reader)
            user_id = reader.execute("SELECT value FROM meta WHERE key = 'user_id'").get
            pages, last_us = reader.execute("SELECT count(*), max(added_us) FROM pages").get
            last_added_at = None if last_us is None else from_us(last_us)
            has_checks = reader.execute("SELECT 1 FROM sqlite_schema WHERE name = 'retention'").get is not None
            waits_until = retention.waits_until(reader) if has_checks else None
            damaged = damaged_pages(reader)
    return MemorySummary(str(path), user_id, pages, last_added_at, waits_until, damaged)


def set_aside_foreign_locked(path: Path) -> None:
    """Rename the journal beside a file if the journal belongs to a different file. The folder is locked meanwhile."""
    with locked_folder(path.parent):
        set_aside_foreign(path)


@contextmanager
def reading(path: Path, *, is_in_use: bool) -> Iterator[SqliteConnection]:
    """Yield a connection in a read transaction, so that all reads see the same state of the file.

    ``is_in_use`` must be true if other processes may write to the file.
    """
    with closing(connect_to_read(path, is_in_use=is_in_use)) as connection:
        distrust(connection)
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        connection.execute("BEGIN")
        yield connection
