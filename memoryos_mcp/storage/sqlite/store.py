"""The store on SQLite: one file per user, shared by any number of processes."""

import asyncio
import json
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from memoryos_mcp.storage.sql.connection import Connection
from memoryos_mcp.storage.sql.store import OUTLINE_COLUMNS, SqlStore
from memoryos_mcp.storage.sqlite.checks import Checks
from memoryos_mcp.storage.sqlite.database import READERS, SqliteDatabase
from memoryos_mcp.storage.sqlite.paths import database_file
from memoryos_mcp.storage.sqlite.user_data import SqliteUserData
from memoryos_mcp.storage.threads import StoreThreads
from memoryos_mcp.storage.values import StoreOptions

# With fewer requested pages, or in a smaller memory, one connection is as fast as several.
PAGES_TO_SHARE = 60
PAGES_OF_A_LARGE_MEMORY = 5_000
# The index `pages_outline` covers the expressions of the columns, so that no page is read for them.
OUTLINES_SQL = (
    f"SELECT {', '.join(OUTLINE_COLUMNS)} FROM pages INDEXED BY pages_outline "  # noqa: S608 - constant
    "WHERE seq IN (SELECT value FROM json_each(?)) ORDER BY seq"
)

T = TypeVar("T")


class SqliteStore(SqlStore):
    """One user's memory in one SQLite file. Implements `Store`."""

    _database: SqliteDatabase

    @classmethod
    async def open(
        cls,
        data_folder: Path,
        user_id: str,
        options: StoreOptions,
        *,
        threads: StoreThreads,
        clock: Callable[[], datetime],
        checks: Checks | None = None,
        only_reads: bool = False,
    ) -> "SqliteStore":
        """Open a user's store; see `Stores.open`.

        The file is not checked for damage if ``checks`` has recorded a recent check.
        """
        path = database_file(data_folder, user_id)
        database = await SqliteDatabase.open(path, user_id, threads, checks or Checks(), only_reads=only_reads)
        try:
            store = cls(database, options, clock)
            if not only_reads and database.only_reads_because is None:
                await store.limit_short_term()
        except BaseException:
            await database.close()
            raise
        return store

    @property
    def user_data(self) -> SqliteUserData:
        return SqliteUserData(self._database, self._options, self._clock, self._space)

    def _outline_rows(self, connection: Connection, seqs: Sequence[int]) -> list[tuple[Any, ...]]:
        return connection.execute(OUTLINES_SQL, (json.dumps(seqs),)).fetchall()

    async def _shared(self, seqs: Sequence[int], query: Callable[[Connection, Sequence[int]], T]) -> list[T]:
        """Divide ``seqs`` into parts, run a query for all parts at the same time, and return one result for each part.

        Each part uses its own connection. With a single connection, each read of a large file would wait for the
        previous one.
        """
        is_worth_it = len(seqs) >= PAGES_TO_SHARE and max(seqs) >= PAGES_OF_A_LARGE_MEMORY
        size = -(-len(seqs) // READERS) if is_worth_it else max(1, len(seqs))
        parts = [seqs[first : first + size] for first in range(0, len(seqs), size)]
        return await asyncio.gather(*[self._database.read(query, part) for part in parts])
