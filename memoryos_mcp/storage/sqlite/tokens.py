"""Static access tokens for HTTP, stored in one file in the data folder; see `storage.sql.tokens`."""

import errno
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw

from memoryos_mcp.errors import DamagedStoreError, NewerStoreError, StorageError
from memoryos_mcp.model.callers import TokenEntry
from memoryos_mcp.storage.sql.tokens import SqlTokens

FILE_NAME = "tokens.db"
# A marker file, which exists once a token has been created. If the marker file exists, but the token file is empty or
# missing, the server admits nobody.
NEEDED_NAME = "tokens.needed"
APPLICATION_ID = 0x6D6F7374  # "most": identifies SQLite files of this program
CURRENT_VERSION = 1
BUSY_TIMEOUT_MS = 10_000


# Scopes are separated by spaces. Times are in microseconds since 1970-01-01 UTC.
_TABLES = f"""
CREATE TABLE tokens (
    token_id TEXT PRIMARY KEY,
    digest BLOB NOT NULL CHECK (length(digest) = 32),
    user_id TEXT NOT NULL,
    scopes TEXT NOT NULL,
    created_us INTEGER NOT NULL,
    expires_us INTEGER,
    revoked_us INTEGER
) STRICT, WITHOUT ROWID;
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {CURRENT_VERSION};
"""


def token_file(data_folder: Path) -> Path:
    """Return the path of the token file in a data folder."""
    return data_folder / FILE_NAME


class TokenStore(SqlTokens):
    """The file of static tokens. Implements `Tokens`.

    Adding the first token creates the file and the marker file `NEEDED_NAME`. If the token file is lost, the marker
    file shows that tokens existed, so the server admits nobody. Both files are accessible only to the account that runs
    this program.
    """

    def __init__(self, path: Path, *, clock: Callable[[], datetime]) -> None:
        super().__init__(clock)
        self._path = path
        self._lock = threading.Lock()
        self._connection: apsw.Connection | None = None
        self._identity: tuple[int, int, int, int] | None = None
        self._mark = path.with_name(NEEDED_NAME)
        self._was_needed = False

    def find(self, token: str) -> TokenEntry | None:
        found = super().find(token)
        self._was_needed |= found is not None
        return found

    def is_needed(self) -> bool:
        with self._translated():
            if not self._was_needed and (self._mark.exists() or self._path.exists()):
                self._was_needed = True
                with suppress(OSError):  # if this fails, only this process knows that tokens are needed
                    _make_private(self._mark)
        return self._was_needed

    def close(self) -> None:
        """Close the file. The next call of another method opens it again."""
        with self._lock:
            self._disconnect()

    def _read(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        with self._lock, self._translated():
            connection = self._connected()
            if connection is None or not _is_made(connection, self._path):
                if self.is_needed():
                    raise _lost(self._path)
                return []
            return connection.execute(sql, parameters).fetchall()

    def _write(self, sql: str, *parameters: Any) -> int:
        """Run an SQL statement that changes rows, and return the number of changed rows.

        If the tables do not exist, they are created in the same transaction.
        """
        with self._lock, self._translated():
            _make_private(self._mark)
            _make_private(self._path)
            connection = self._connected()
            if connection is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            connection.execute("BEGIN IMMEDIATE")
            try:
                if not _is_made(connection, self._path):
                    connection.execute(_TABLES)
                connection.execute(sql, parameters)
                changed = connection.changes()
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            return changed

    def _connected(self) -> apsw.Connection | None:
        """Return a connection to the token file; None if the file does not exist.

        If the file has changed since the last call, a new connection is opened.
        """
        try:
            status = self._path.stat()
        except FileNotFoundError:
            self._disconnect()
            return None
        # If the file has changed, it is reopened, because SQLite would use its outdated cache of an overwritten file.
        identity = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        if self._connection is not None and identity == self._identity:
            return self._connection
        self._disconnect()
        self._connection, self._identity = _connect(self._path), identity
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection, self._identity = None, None

    def _invalid(self, what: str) -> StorageError:
        return _damaged(self._path, what)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Translate errors of SQLite and the operating system into a `StorageError`."""
        try:
            yield
        except (apsw.CorruptError, apsw.NotADBError) as error:
            raise _damaged(self._path, "the file is not a valid SQLite file") from error
        except (apsw.BusyError, apsw.LockedError) as error:
            msg = f"{self._path} was locked by another process for {BUSY_TIMEOUT_MS // 1000} s; try again"
            raise StorageError(msg) from error
        except (apsw.ReadOnlyError, apsw.CantOpenError, apsw.PermissionsError) as error:
            msg = f"{self._path} cannot be used; make the file and its folder readable and writable by this account"
            raise StorageError(msg) from error
        except apsw.FullError as error:
            msg = f"no space is left in {self._path.parent}; nothing was changed. Free some space and try again"
            raise StorageError(msg) from error
        except apsw.Error as error:
            msg = (
                f"{self._path} could not be used (SQLite: {type(error).__name__}); nothing was changed. Check the disk"
            )
            raise StorageError(msg) from error
        except OSError as error:
            reason = error.strerror or type(error).__name__
            msg = f"{self._path} could not be used ({reason}); make the file and its folder accessible to this account"
            raise StorageError(msg) from error


def _connect(path: Path) -> apsw.Connection:
    """Return a connection to an existing file.

    The connection uses a rollback journal instead of a WAL, so that the file is complete by itself between changes.
    """
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        connection.pragma("synchronous", "extra")  # a revocation must survive a power failure
        connection.pragma("secure_delete", True)
        _quick_check(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _quick_check(connection: apsw.Connection) -> None:
    if connection.execute("PRAGMA quick_check(1)").get != "ok":
        raise apsw.CorruptError


def _is_made(connection: apsw.Connection, path: Path) -> bool:
    """Return whether the tables exist; a new file is empty until its first token is added.

    Raises:
        DamagedStoreError: Another program created the file, or a table is missing.
        NewerStoreError: A newer version created the file.
    """
    # This is one statement, because another process could create the tables between two statements.
    row: tuple[Any, ...] = connection.execute(
        "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema) "
        "FROM pragma_application_id, pragma_user_version"
    ).fetchall()[0]
    owner, version, tables = row
    if owner == APPLICATION_ID and version > CURRENT_VERSION:
        msg = (
            f"{path} has version {version}, but this program supports only versions up to {CURRENT_VERSION}; the file "
            "was not changed. Upgrade memoryos-mcp-server"
        )
        raise NewerStoreError(msg)
    if owner == APPLICATION_ID and version == CURRENT_VERSION and tables:
        return True
    if owner or version or tables:
        raise _damaged(path, "another program created the file, or its table is missing")
    return False


def _make_private(path: Path) -> None:
    """Create a file and its folder if they are missing. Only this account can access what is created.

    A file or folder that exists is not changed. SQLite itself would create the file with the permissions that the
    umask allows.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _lost(path: Path) -> DamagedStoreError:
    return DamagedStoreError(
        f"{path} is empty or missing although tokens were created; restore it from a backup, or create new tokens with "
        f"`memoryos-mcp token add USER`. To run the server without tokens, delete {path.name} and {NEEDED_NAME}, and "
        "start the server again"
    )


def _damaged(path: Path, what: str) -> DamagedStoreError:
    return DamagedStoreError(
        f"{path} is damaged ({what}); it was not changed. Restore it from a backup, or move the file away and add "
        "the tokens again"
    )
