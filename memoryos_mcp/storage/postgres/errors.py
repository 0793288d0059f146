"""Messages for PostgreSQL errors: what is wrong and what to do. They never contain the password."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors as sqlstates

from memoryos_mcp.errors import ArgumentError, NewerStoreError, StorageError


def place(url: str) -> str:
    """Return the host and the name of a database, without the account and the password.

    Raises:
        ArgumentError: The URL is not valid.
    """
    try:
        given = psycopg.conninfo.conninfo_to_dict(url)
    except psycopg.Error:
        problem = "is not a valid address of a PostgreSQL database; write postgresql://USER:PASSWORD@HOST/DATABASE"
        raise ArgumentError(argument="database_url", problem=problem) from None
    port = f":{given['port']}" if given.get("port") else ""
    return f"{given.get('host') or 'localhost'}{port}/{given.get('dbname') or given.get('user') or ''}"


@contextmanager
def translated(where: str) -> Iterator[None]:
    """Convert errors of PostgreSQL in the block to `StorageError`. ``where`` names the database in messages."""
    try:
        yield
    except psycopg.Error as error:
        raise StorageError(_message(error, where)) from _without_text(error)


def newer(where: str, version: int, supported: int) -> NewerStoreError:
    """Return the error for a database whose schema is newer than this program supports."""
    return NewerStoreError(
        f"the database {where} has schema version {version}, but this program supports only versions up to "
        f"{supported}; the database was not changed. Upgrade memoryos-mcp-server"
    )


def older_replica(where: str) -> StorageError:
    """Return the error for a read-only database whose schema is missing, or older than this program requires."""
    return StorageError(
        f"the database {where} is read-only, and its tables are missing or of an older version; run "
        "`memoryos-mcp doctor` on the primary server once, or set database_url to the primary server"
    )


def bypasses_rows(where: str) -> StorageError:
    """Return the error for an account that row-level security does not restrict.

    The error is raised if the account also cannot switch to a restricted role.
    """
    return StorageError(
        f"the account for the database {where} bypasses row-level security, which keeps users apart; use an account "
        "without BYPASSRLS in database_url, as docs/scaling.md describes"
    )


def is_lost(error: psycopg.Error, connection: psycopg.Connection[object]) -> bool:
    """Return whether an error means that the connection was lost, so that a call on a new connection may succeed."""
    return (
        connection.broken or connection.closed or isinstance(error, sqlstates.AdminShutdown | sqlstates.CrashShutdown)
    )


def _without_text(error: psycopg.Error) -> BaseException | None:
    """Return a copy of an error without PostgreSQL's message, because the message may quote stored text."""
    return RuntimeError(f"{type(error).__name__} (SQLSTATE {error.sqlstate})")


_REJECTED = "rejected the account or its password; correct database_url"
_MISSING = "does not exist; create it with `createdb`, or correct database_url"
_FULL_OF_CONNECTIONS = "accepts no more connections; raise its max_connections, or run fewer servers"
_UNREACHABLE = "cannot be reached; check that it runs, and correct database_url if necessary"
_NO_RIGHTS = (
    "does not allow this account to create or use the tables; let the owner of the database run `memoryos-mcp doctor` "
    "once, or grant the rights that docs/scaling.md lists"
)
_BAD_OPTION = "has an invalid option in its address; correct the port in database_url, or the part after '?'"
_NO_TLS = (
    "does not accept the TLS connection that sslmode in database_url requires; check the server's certificate, and "
    "sslrootcert"
)
_OTHER_TABLES = (
    "has tables of another version of this program; nothing was stored. Restart with the newest version that uses this "
    "database"
)
# The message for each kind of error, after the name of the database.
_BY_STATE: tuple[tuple[tuple[type[psycopg.Error], ...], str], ...] = (
    ((sqlstates.InvalidPassword, sqlstates.InvalidAuthorizationSpecification), _REJECTED),
    ((sqlstates.InvalidCatalogName,), _MISSING),
    ((sqlstates.InsufficientPrivilege,), _NO_RIGHTS),
    ((sqlstates.ReadOnlySqlTransaction,), "is a read-only replica; set database_url to the primary server"),
    (
        (sqlstates.DiskFull, sqlstates.OutOfMemory),
        "has no space left; nothing was stored. Free some space on its server",
    ),
    ((sqlstates.TooManyConnections,), _FULL_OF_CONNECTIONS),
    ((sqlstates.UndefinedTable, sqlstates.UndefinedColumn, sqlstates.UndefinedFunction), _OTHER_TABLES),
    ((sqlstates.QueryCanceled, sqlstates.LockNotAvailable), "took too long; nothing was stored. Try again"),
)
# For errors that occur before the connection is established: words in the error's text, and the message for each. Names
# in quotation marks are removed from the error's text before the words are searched for.
_BY_TEXT = (
    ("invalid sslmode", _BAD_OPTION),
    ("invalid integer", _BAD_OPTION),
    ("invalid port", _BAD_OPTION),
    ("password", _REJECTED),
    ("role", _REJECTED),
    ("permission denied", _NO_RIGHTS),
    ("does not exist", _MISSING),
    ("too many", _FULL_OF_CONNECTIONS),
    ("remaining connection slots", _FULL_OF_CONNECTIONS),
    ("pg_hba.conf", "does not accept this account from this machine; allow it in the server's pg_hba.conf"),
    ("certificate", _NO_TLS),
    ("ssl", _NO_TLS),
)
_NAME = re.compile('"[^"]*"')


def _message(error: psycopg.Error, where: str) -> str:
    said = next((said for kinds, said in _BY_STATE if isinstance(error, kinds)), None)
    if said is None and isinstance(error, psycopg.OperationalError):
        text = _NAME.sub("", str(error).lower())
        said = next((said for word, said in _BY_TEXT if word in text), _UNREACHABLE)
    if said is None:
        said = f"reported an error ({type(error).__name__}, SQLSTATE {error.sqlstate}); nothing was stored"
    return f"the database {where} {said}"
