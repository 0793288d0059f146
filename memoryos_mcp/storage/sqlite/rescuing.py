"""Saves the content of a memory's file that was replaced or removed while this process had it open.

The content can still be read from the open file, and is saved as a copy in the same folder. If the folder no longer
exists, nothing is saved, because the memory was probably deleted or moved on purpose.
"""

import logging
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import apsw

from memoryos_mcp.errors import StorageError
from memoryos_mcp.storage.sqlite.backup import copy_pages, sync, unfinished_copy
from memoryos_mcp.storage.sqlite.connections import distrust
from memoryos_mcp.storage.sqlite.file_check import BUSY_TIMEOUT_MS, check_copy
from memoryos_mcp.storage.sqlite.journals import checkpointed, identity, journals_of
from memoryos_mcp.storage.sqlite.paths import kept_copies, kept_name
from memoryos_mcp.storage.sqlite.places import FileIdentity

logger = logging.getLogger(__name__)


def keep_lost(opened: FileIdentity, connection: apsw.Connection) -> Path | None:
    """Copy a file that was replaced or removed while ``connection`` had it open, and return the path of the copy.

    Return None, and copy nothing, if the file's folder no longer exists. The caller must later pass the path of the
    copy to `remove_if_contained`, which removes a copy that is not needed.

    Raises:
        StorageError: The copy could not be made, for instance because the disk is full.
    """
    path = opened.path
    if not path.parent.exists():
        return None
    copy = path.with_name(kept_name(datetime.now(UTC)))
    with unfinished_copy(path) as unfinished:
        copy_pages(connection, unfinished, path)
        sync(unfinished)
        unfinished.replace(copy)
    _fold_lost_journal(opened, connection)
    return copy


def remove_if_contained(copy: Path, path: Path) -> None:
    """Remove a saved copy of the file ``path`` if each page in the copy is also in another file.

    The other files are the current file ``path`` and the other copies of this file. Files that are damaged, or were
    created by another program, are ignored. If some pages are only in ``copy``, keep it and log a warning.
    """
    left = _page_ids(copy)
    for other in (path, *kept_copies(path)):
        if left and other != copy and _is_sound(other):
            left -= _page_ids(other)
    if left:
        logger.warning(
            "%s or its journal was replaced or removed while the file was open; the previous content was saved as %s. "
            "If pages are missing, restore this copy",
            path,
            copy.name,
        )
    else:
        copy.unlink(missing_ok=True)


def fold_journal(path: Path) -> None:
    """Write the content of a file's journal to the file.

    If another process has the file open, nothing is written. That process writes the journal to the file later.

    Raises:
        apsw.Error: SQLite could not read or write the file.
        OSError: The note about the journal could not be written; see `checkpointed`. The journal is still
            complete, and the next process that opens the file will write it to the file.
    """
    with checkpointed(path), closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)) as connection:
        distrust(connection)
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()  # SQLite writes the journal on closing


def _fold_lost_journal(opened: FileIdentity, connection: apsw.Connection) -> None:
    """Copy the content of a removed journal to the memory's file. This is possible because the journal is still open.

    Do nothing if the memory's file was replaced or removed, or if there is a new journal under the same name.
    """
    with checkpointed(opened.path):
        journal = journals_of(opened.path)[0]
        if identity(opened.path) == opened.file and opened.has_lost_journals() and identity(journal) is None:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _is_sound(path: Path) -> bool:
    try:
        return path.suffix == ".db" and not check_copy(path).damaged
    except StorageError:
        return False


def _page_ids(path: Path) -> set[str]:
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        return {page_id for (page_id,) in connection.execute("SELECT page_id FROM pages")}
