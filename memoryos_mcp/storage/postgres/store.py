"""The store on PostgreSQL: the memories of all users in one database, which any number of servers share."""

import json
from collections.abc import Sequence
from typing import Any

from memoryos_mcp.errors import LeaseLostError
from memoryos_mcp.model.pages import Turn, new_page_id
from memoryos_mcp.storage.postgres.connection import PostgresConnection
from memoryos_mcp.storage.postgres.database import PostgresDatabase
from memoryos_mcp.storage.postgres.dialect import plain
from memoryos_mcp.storage.postgres.words import postings
from memoryos_mcp.storage.sql import page_table
from memoryos_mcp.storage.sql.connection import Connection
from memoryos_mcp.storage.sql.mapping import turn_row
from memoryos_mcp.storage.sql.moments import from_us, to_us
from memoryos_mcp.storage.sql.names import called
from memoryos_mcp.storage.sql.store import SqlStore
from memoryos_mcp.storage.values import Commit, Filing, Lease, Receipt

ADD_PAGE_SQL = "SELECT * FROM add_page($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"
OUTLINES_SQL = (
    "SELECT seq, session, coalesce(segment, 0), occurred_us / 1000000 + utc_offset_s, bytes FROM pages "
    "WHERE seq = ANY($1) ORDER BY seq"
)


class PostgresStore(SqlStore):
    """One user's memory in a PostgreSQL database. Implements `Store`."""

    _database: PostgresDatabase

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
        """Return the arguments of the database's function ``add_page``, without the user."""
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

    def _outline_rows(self, connection: Connection, seqs: Sequence[int]) -> list[tuple[Any, ...]]:
        assert isinstance(connection, PostgresConnection)  # noqa: S101 - of this store's database
        return connection.native(OUTLINES_SQL, list(seqs)).fetchall()
