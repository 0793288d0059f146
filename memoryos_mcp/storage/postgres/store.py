"""The store on PostgreSQL: the memories of all users in one database, which any number of servers share."""

import json
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from memoryos_mcp.errors import LeaseLostError
from memoryos_mcp.model.pages import Turn, new_page_id
from memoryos_mcp.model.segments import Vector
from memoryos_mcp.storage.postgres import windows
from memoryos_mcp.storage.postgres.connection import PostgresConnection
from memoryos_mcp.storage.postgres.database import PostgresDatabase
from memoryos_mcp.storage.postgres.dialect import plain
from memoryos_mcp.storage.postgres.window_vectors import WindowVectors
from memoryos_mcp.storage.postgres.words import postings
from memoryos_mcp.storage.sql import page_table, vector_table
from memoryos_mcp.storage.sql.connection import Connection
from memoryos_mcp.storage.sql.mapping import turn_row
from memoryos_mcp.storage.sql.moments import from_us, to_us
from memoryos_mcp.storage.sql.names import called
from memoryos_mcp.storage.sql.store import OUTLINE_COLUMNS, SqlStore
from memoryos_mcp.storage.values import Commit, Filing, Lease, Receipt, StoreOptions, TokenRows, WindowHits

ADD_PAGE_SQL = "SELECT * FROM add_page($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"
OUTLINES_SQL = (
    "SELECT seq, session, coalesce(segment, 0), occurred_us / 1000000 + utc_offset_s, bytes FROM pages "
    "WHERE seq = ANY($1) ORDER BY seq"
)
# The token vectors of the first pages whose vectors together fit into a given number of bytes.
TOKENS_SQL = (
    "WITH sized AS (SELECT place, number, sum(octet_length(codes)) OVER (ORDER BY number) AS total "
    "FROM unnest(CAST($1 AS bigint[])) WITH ORDINALITY AS wanted (place, number) JOIN page_tokens USING (place)) "
    "SELECT place & $3, counts, codes FROM sized JOIN page_tokens USING (place) WHERE total <= $2 ORDER BY number"
)


class PostgresStore(SqlStore):
    """One user's memory in a PostgreSQL database. Implements `Store`."""

    _database: PostgresDatabase

    def __init__(
        self, database: PostgresDatabase, options: StoreOptions, clock: Callable[[], datetime], server: int | None
    ) -> None:
        super().__init__(database, options, clock)
        if server is not None:  # see `PostgresConnection.has_ended`
            self._holder = f"{server}.{self._holder}"

    async def add_pages(self, turns: Sequence[Turn], *, forget_epoch: int | None = None) -> list[Receipt]:
        added_us = to_us(self._clock())
        added = await self._database.call_each(
            ADD_PAGE_SQL, [self._page(turn, added_us, forget_epoch) for turn in turns]
        )
        if not all(is_current for is_current, *_ in added):
            raise LeaseLostError(page_table.FORGOTTEN_MEANWHILE)
        return [
            Receipt(page_id, from_us(occurred_us, offset), is_new, added[-1][-1])
            for _, is_new, page_id, occurred_us, offset, _ in added
        ]

    async def commit(self, lease: Lease, step: Commit) -> bool:
        if isinstance(step, Filing):
            await self._database.write(lambda connection: connection.words.index_new())
        return await super().commit(lease, step)

    def _page(self, turn: Turn, added_us: int, forget_epoch: int | None) -> list[Any]:
        """Return the arguments of the database function ``add_page``, except the number of the user."""
        row = turn_row(new_page_id(), turn) | {"added_us": added_us}
        names = called(turn.user_input, turn.agent_response)
        return [
            json.dumps({name: plain(value) for name, value in row.items()}),
            forget_epoch,
            int(self._options.session_gap_s * 1e6),
            self._options.short_term_capacity,
            *postings(self._database.tokenize, turn.user_input, turn.agent_response),
            *(" ".join(str(each[column]) for each in names) for column in range(3)),
        ]

    def _outline_columns(self, connection: Connection, seqs: Sequence[int]) -> list[list[int]]:
        assert isinstance(connection, PostgresConnection)  # noqa: S101 - it is from this store's database
        rows = connection.native(OUTLINES_SQL, list(seqs)).fetchall()
        return [[row[place] for row in rows] for place in range(len(OUTLINE_COLUMNS))]

    async def token_vectors(self, seqs: Sequence[int], max_bytes: int) -> TokenRows:
        places = [vector_table.place(self._space, seq) for seq in seqs]
        rows = await self._database.read(
            lambda connection: connection.native(TOKENS_SQL, places, max_bytes, vector_table.SEQ_MASK).fetchall()
        )
        seqs, counts, codes = zip(*rows, strict=True) if rows else ((), (), ())
        return vector_table.to_token_rows(seqs, [len(each) for each in counts], b"".join(counts), b"".join(codes))

    async def can_search_vectors(self, above: int) -> bool:
        sql = "SELECT EXISTS (SELECT 1 FROM page_vectors WHERE space = ? OFFSET ?)"
        return bool((await self._database.rows(sql, self._space, above))[0][0])

    def vector_index(self, dimension: int) -> WindowVectors:
        return WindowVectors(self._database, self._space, dimension)

    async def nearest_windows(self, query: Vector, k: int) -> WindowHits:
        space = self._space
        return await self._database.read(lambda connection: windows.nearest(connection, space, query, k))
