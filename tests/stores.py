"""Opening and reading the store of a data folder, on SQLite or on the database that stands for the folder."""

from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw
from pydantic import SecretStr

from memoryos_mcp.config import Settings
from memoryos_mcp.storage.sql.store import SqlStore
from memoryos_mcp.storage.sqlite.checks import Checks
from memoryos_mcp.storage.sqlite.connections import SqliteConnection
from memoryos_mcp.storage.sqlite.paths import database_file
from memoryos_mcp.storage.sqlite.store import SqliteStore
from memoryos_mcp.storage.stores import make_stores
from memoryos_mcp.storage.threads import StoreThreads
from memoryos_mcp.storage.values import StoreOptions

# The database of the running test.
_engine = "sqlite"


def is_postgres() -> bool:
    """Return whether the running test keeps its memories in PostgreSQL; see the marker ``both_stores``."""
    return _engine == "postgres"


class OpenedStore:
    """One user's open store, and what must be closed after it."""

    def __init__(self, store: SqlStore, close: Callable[[], None]) -> None:
        self.store = store
        self._close = close

    async def close(self) -> None:
        """Close the store."""
        await self.store.close()
        self._close()


async def open_one(
    folder: Path,
    user_id: str,
    options: StoreOptions,
    *,
    clock: Callable[[], datetime],
    threads: int = 4,
    checks: Checks | None = None,
) -> OpenedStore:
    """Open a user's store, as one process would."""
    if is_postgres():
        from tests.postgres import database_of

        stores = make_stores(Settings(database_url=SecretStr(database_of(folder))), clock, threads=threads)
        found = await stores.open(user_id, options)
        assert isinstance(found, SqlStore)
        return OpenedStore(found, stores.close)
    pool = StoreThreads(threads)
    store = await SqliteStore.open(folder, user_id, options, threads=pool, clock=clock, checks=checks)
    return OpenedStore(store, pool.close)


def store_environment(folder: Path) -> dict[str, str]:
    """Return the variables with which another process uses the database that stands for a data folder."""
    if not is_postgres():
        return {}
    from tests.postgres import database_of

    return {"MEMORYOS_DATABASE_URL": database_of(folder)}


def rows(folder: Path, sql: str, user_id: str = "ada") -> list[tuple[Any, ...]]:
    """Return the rows of a statement on a user's memory."""
    if is_postgres():
        from tests.postgres import rows_of

        return rows_of(folder, sql, user_id)
    path = str(database_file(folder, user_id))
    with closing(SqliteConnection(path, flags=apsw.SQLITE_OPEN_READWRITE)) as connection:
        connection.set_busy_timeout(10_000)
        return connection.execute(sql).fetchall()
