"""Translation of errors from SQLite and the operating system into `StorageError`, with advice for the user."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from memoryos_mcp.errors import DamagedStoreError, NewerStoreError, StorageError
from memoryos_mcp.storage.sqlite import schema
from memoryos_mcp.storage.sqlite.places import lost_message, read_only_message, unwritable_reason

# How long a connection waits until another process releases its lock.
BUSY_TIMEOUT_MS = 30_000

_WRITE_ERRORS = (apsw.FullError, apsw.IOError, apsw.ReadOnlyError, apsw.CantOpenError)
_READ_FAILURES = frozenset({apsw.SQLITE_IOERR_READ, apsw.SQLITE_IOERR_SHORT_READ, apsw.SQLITE_IOERR_FSTAT})


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Translate errors from SQLite and the operating system that the block raises while it uses the file ``path``.

    Raises:
        DamagedStoreError: SQLite reports that the file is damaged.
        StorageError: The file could not be read or written, contains damaged text, or was locked by another process for
            too long.
    """
    try:
        yield
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise damaged(path, "SQLite reports that the file is malformed") from error
    except apsw.Error as error:
        raise StorageError(_advice(error, path)) from error
    except UnicodeDecodeError:  # not chained, because it contains the text
        msg = f"{path} contains text that is damaged on disk; restore a backup: memoryos-mcp restore FILE"
        raise StorageError(msg) from None
    except OSError as error:
        raise StorageError(_system_advice(error, path)) from error


def damaged(path: Path, what: str) -> DamagedStoreError:
    """Return the error for a file that is damaged or was created by another program. ``what`` describes the problem."""
    return DamagedStoreError(
        f"{path} is damaged ({what}); it was not changed. Restore a backup, or move the file to another folder to "
        "start with an empty memory"
    )


def newer(path: Path, found: int) -> NewerStoreError:
    """Return the error for a file that a newer version of this program created. ``found`` is the file's version."""
    return NewerStoreError(
        f"{path} has version {found}, but this program supports versions up to {schema.CURRENT_VERSION}; the file was "
        "not changed. Upgrade memoryos-mcp-server"
    )


def write_failure_reason(error: apsw.Error, path: Path) -> str | None:
    """Return an error message if the file could not be written, for instance because the disk is full.

    Return None for any other error, and if the file was moved or deleted.
    """
    is_read_failure = getattr(error, "extendedresult", 0) in _READ_FAILURES
    if _is_lost(error, path) or is_read_failure or not isinstance(error, _WRITE_ERRORS):
        return None
    return _advice(error, path)


def _is_lost(error: apsw.Error, path: Path) -> bool:
    is_moved = getattr(error, "extendedresult", 0) == apsw.SQLITE_READONLY_DBMOVED
    return is_moved or (isinstance(error, apsw.CantOpenError) and not path.exists())


def _advice(error: apsw.Error, path: Path) -> str:
    folder = path.parent
    if _is_lost(error, path):
        return lost_message(path)
    if isinstance(error, apsw.ReadOnlyError | apsw.CantOpenError | apsw.IOError) and (
        reason := unwritable_reason(path)
    ):
        return reason
    if isinstance(error, apsw.IOError) and getattr(error, "extendedresult", 0) in _READ_FAILURES:
        return f"{path} could not be read; check the disk, and restore a backup if the disk is failing"
    if isinstance(error, apsw.FullError | apsw.IOError):
        cause = "the disk is full, or a size limit was reached"
        return f"no space to write in {folder} ({cause}); nothing was stored. Free some space and try again"
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return f"{path} was locked by another process for {BUSY_TIMEOUT_MS // 1000} s; nothing was stored. Try again"
    if isinstance(error, apsw.ReadOnlyError | apsw.CantOpenError | apsw.PermissionsError | apsw.AuthError):
        return f"{folder} cannot be written; nothing was stored. Make the folder and its files writable for this user"
    return f"{path} could not be used (SQLite: {type(error).__name__}); nothing was stored. Check the disk"


def _system_advice(error: OSError, path: Path) -> str:
    if error.errno == errno.EROFS:
        return read_only_message(path.parent)
    if error.errno in {errno.EACCES, errno.EPERM}:
        return f"{path.parent} cannot be written; make the folder and its files writable for this user"
    if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
        return f"no space to write in {path.parent}; free some space and try again"
    return (
        f"{path} could not be opened ({os.strerror(error.errno) if error.errno else type(error).__name__}); check the "
        "path and the disk"
    )
