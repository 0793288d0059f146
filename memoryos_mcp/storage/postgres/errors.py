"""Error messages for PostgreSQL: what is wrong and what to do. They never contain the password."""

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
    """Raise errors of PostgreSQL as `StorageError`, with a message about the database ``where``."""
    try:
        yield
    except psycopg.Error as error:
        raise StorageError(_message(error, where)) from _without_text(error)


def newer(where: str, version: int, supported: int) -> NewerStoreError:
    """Return the error for a database with a newer schema."""
    return NewerStoreError(
        f"the database {where} has schema version {version}, but this program supports only versions up to {supported}; "
        "the database was not changed. Upgrade memoryos-mcp-server"
    )


def is_lost(error: psycopg.Error, connection: psycopg.Connection[object]) -> bool:
    """Return whether an error means that the connection was lost, so that the call can be repeated on another one."""
    return (
        connection.broken or connection.closed or isinstance(error, sqlstates.AdminShutdown | sqlstates.CrashShutdown)
    )


def _without_text(error: psycopg.Error) -> BaseException | None:
    """Return an error without PostgreSQL's message, which may quote stored text."""
    return RuntimeError(f"{type(error).__name__} (SQLSTATE {error.sqlstate})")


def _message(error: psycopg.Error, where: str) -> str:
    match error:
        case sqlstates.InvalidPassword() | sqlstates.InvalidAuthorizationSpecification():
            return f"the database {where} rejected the account or its password; correct database_url"
        case sqlstates.InvalidCatalogName():
            return f"the database {where} does not exist; create it with `createdb`, or correct database_url"
        case sqlstates.InsufficientPrivilege():
            return (
                f"the account of database_url may not create or use the tables in {where}; let its owner run "
                "`memoryos-mcp doctor` once, or grant the rights that docs/scaling.md lists"
            )
        case sqlstates.ReadOnlySqlTransaction():
            return f"the database {where} is a read-only replica; set database_url to the primary server"
        case sqlstates.DiskFull() | sqlstates.OutOfMemory():
            return f"the database {where} has no space left; nothing was stored. Free some space on its server"
        case sqlstates.TooManyConnections():
            return f"the database {where} accepts no more connections; raise max_connections, or run fewer servers"
        case sqlstates.QueryCanceled() | sqlstates.LockNotAvailable():
            return f"the database {where} took too long; nothing was stored. Try again"
        case psycopg.OperationalError():
            text = str(error).lower()
            if "password authentication failed" in text or "no password supplied" in text:
                return f"the database {where} rejected the account or its password; correct database_url"
            if "does not exist" in text and "database" in text:
                return f"the database {where} does not exist; create it with `createdb`, or correct database_url"
            if "too many" in text:
                return f"the database {where} accepts no more connections; raise max_connections, or run fewer servers"
            return f"the database {where} cannot be reached; check that it runs, and correct database_url if necessary"
        case _:
            return f"the database {where} reported an error ({type(error).__name__}, SQLSTATE {error.sqlstate})"
