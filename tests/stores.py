"""Opening and reading the store of a data folder, on SQLite or on the database that stands for the folder."""

from collections.abc import Callable, Sequence
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

# The word index in PostgreSQL: the view, and its tables.
WORD_TABLES = {"postings", "new_postings", "indexed_postings"}
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


def rows(folder: Path, sql: str, user_id: str = "ada", parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """Return the rows of a statement in portable SQL on a user's memory."""
    if is_postgres():
        from tests.postgres import rows_of

        return rows_of(folder, sql, user_id, parameters)
    path = str(database_file(folder, user_id))
    with closing(SqliteConnection(path, flags=apsw.SQLITE_OPEN_READWRITE)) as connection:
        connection.set_busy_timeout(10_000)
        return connection.execute(sql, parameters).fetchall()


def value(folder: Path, sql: str, user_id: str = "ada") -> Any:
    """Return the only value of a statement on a user's memory."""
    ((found,),) = rows(folder, sql, user_id)
    return found


def is_stored(folder: Path, user_id: str) -> bool:
    """Return whether there is a memory of a user."""
    if is_postgres():
        from tests.postgres import is_stored_in

        return is_stored_in(folder, user_id)
    return database_file(folder, user_id).exists()


def stored_bytes(folder: Path, user_id: str) -> bytes:
    """Return the content of all files in a data folder, and of all rows of a user in its database."""
    found = [path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()]
    if is_postgres():
        for table in [*table_names(folder, user_id), *sorted(WORD_TABLES)]:
            texts = rows(folder, f"SELECT CAST({table} AS text) FROM {table}", user_id)  # noqa: S608 - our names
            found += [text.encode() for (text,) in texts]
    return b"".join(found)


def indexed_pages(folder: Path, user_id: str) -> int:
    """Return the number of pages in the word index of a user's memory."""
    sql = "SELECT indexed_pages FROM counters" if is_postgres() else "SELECT count(*) FROM page_words"
    return int(value(folder, sql, user_id))


def indexed_words(folder: Path, user_id: str = "ada") -> set[str]:
    """Return the words in the word index of a user's memory."""
    sql = "SELECT DISTINCT term FROM postings" if is_postgres() else "SELECT term FROM page_vocabulary"
    return {row[0] for row in rows(folder, sql, user_id)}


def table_names(folder: Path, user_id: str = "ada") -> list[str]:
    """Return the names of all tables of a user's memory, except those of the word index."""
    if is_postgres():
        sql = "SELECT table_name FROM information_schema.columns WHERE column_name = 'user_no'"
        without = {"users", "counters", *WORD_TABLES}
    else:
        sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND substr(name, 1, 11) <> 'page_words_'"
        without = {"page_words", "page_vocabulary", "sqlite_sequence"}
    return [name for (name,) in rows(folder, sql, user_id) if name not in without]


def broken_references(folder: Path, user_id: str = "ada") -> list[tuple[Any, ...]]:
    """Return the references of a user's memory to rows that do not exist. PostgreSQL refuses to store them."""
    return [] if is_postgres() else rows(folder, "PRAGMA foreign_key_check", user_id)
