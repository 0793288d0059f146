"""The store on SQLite: one file per user, shared by any number of processes."""

import asyncio
import json
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from memoryos_mcp.storage.sql import vector_table
from memoryos_mcp.storage.sql.connection import Connection
from memoryos_mcp.storage.sql.store import OUTLINE_COLUMNS, SqlStore
from memoryos_mcp.storage.sqlite.checks import Checks
from memoryos_mcp.storage.sqlite.database import READERS, SqliteDatabase
from memoryos_mcp.storage.sqlite.paths import database_file
from memoryos_mcp.storage.sqlite.user_data import SqliteUserData
from memoryos_mcp.storage.threads import StoreThreads
from memoryos_mcp.storage.values import StoreOptions, TokenRows

# With fewer requested pages, or in a smaller memory, one connection is as fast as several.
PAGES_TO_SHARE = 60
PAGES_OF_A_LARGE_MEMORY = 50_000
# The index `pages_outline` covers the expressions of the columns, so that no page is read for them.
OUTLINES_SQL = (
    "SELECT seq, session, coalesce(segment, 0) AS segment, occurred_us / 1000000 + utc_offset_s AS local_s, "
    "octet_length(user_input) + octet_length(agent_response) AS bytes FROM pages INDEXED BY pages_outline "
    "WHERE seq IN (SELECT value FROM json_each(?)) ORDER BY seq"
)
# The encoded token vectors of pages, in the order in which the pages are listed.
TOKENS_SQL = (
    "SELECT place & ?2 AS seq, octet_length(counts) AS count_bytes, counts, codes "
    "FROM json_each(?1) JOIN page_tokens ON place = value ORDER BY key"
)
SIZES_SQL = (
    "SELECT place, octet_length(codes) AS bytes FROM json_each(?1) JOIN page_tokens ON place = value ORDER BY key"
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
        checking: StoreThreads | None = None,
        clock: Callable[[], datetime],
        checks: Checks | None = None,
        only_reads: bool = False,
    ) -> "SqliteStore":
        """Open a user's store; see `Stores.open`.

        The file is not checked for damage if ``checks`` has recorded a recent check. ``checking`` is the thread for
        checks at low priority; None means one of ``threads``.
        """
        path = database_file(data_folder, user_id)
        database = await SqliteDatabase.open(
            path, user_id, threads, checks or Checks(), checking=checking, only_reads=only_reads
        )
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

    async def token_vectors(self, seqs: Sequence[int], max_bytes: int) -> TokenRows:
        def fitting(sizes: Sequence[int]) -> int:
            return int(np.searchsorted(np.cumsum(sizes), max_bytes, side="right"))

        def read(connection: Connection, part: Sequence[int]) -> list[Any]:
            listed = json.dumps([vector_table.place(self._space, seq) for seq in part])
            places, sizes = connection.columns(SIZES_SQL, (listed,), values=["place", "bytes"])
            bindings = json.dumps(places[: fitting(sizes)]), vector_table.SEQ_MASK
            found = connection.columns(TOKENS_SQL, bindings, values=["seq", "count_bytes"], blobs=["counts", "codes"])
            return [*found, sizes]

        parts = await self._shared(seqs, read)
        found, count_bytes, sizes = ([value for part in parts for value in part[place]] for place in (0, 1, 4))
        count = fitting(sizes)  # each part fits alone, but all parts together may not
        return vector_table.to_token_rows(
            found[:count],
            count_bytes[:count],
            b"".join([part[2] for part in parts])[: sum(count_bytes[:count])],
            b"".join([part[3] for part in parts])[: sum(sizes[:count])],
        )

    def _outline_columns(self, connection: Connection, seqs: Sequence[int]) -> list[list[int]]:
        return connection.columns(OUTLINES_SQL, (json.dumps(seqs),), values=OUTLINE_COLUMNS)

    async def _shared(self, seqs: Sequence[int], query: Callable[[Connection, Sequence[int]], T]) -> list[T]:
        """Divide ``seqs`` into parts, run a query for all parts at the same time, and return one result for each part.

        Each part uses its own connection. With a single connection, each read of a large file would wait for the
        previous one.
        """
        is_worth_it = len(seqs) >= PAGES_TO_SHARE and max(seqs) >= PAGES_OF_A_LARGE_MEMORY
        size = -(-len(seqs) // READERS) if is_worth_it else max(1, len(seqs))
        parts = [seqs[first : first + size] for first in range(0, len(seqs), size)]
        return await asyncio.gather(*[self._database.read(query, part) for part in parts])
