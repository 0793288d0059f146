"""The store on PostgreSQL: the memories of all users in one database, which any number of servers share."""

from collections.abc import Sequence
from typing import Any

from memoryos_mcp.storage.postgres.connection import PostgresConnection
from memoryos_mcp.storage.sql.connection import Connection
from memoryos_mcp.storage.sql.store import SqlStore

OUTLINES_SQL = (
    "SELECT seq, session, coalesce(segment, 0), occurred_us / 1000000 + utc_offset_s, bytes FROM pages "
    "WHERE seq = ANY($1) ORDER BY seq"
)


class PostgresStore(SqlStore):
    """One user's memory in a PostgreSQL database. Implements `Store`."""

    def _outline_rows(self, connection: Connection, seqs: Sequence[int]) -> list[tuple[Any, ...]]:
        assert isinstance(connection, PostgresConnection)  # noqa: S101 - of this store's database
        return connection.native(OUTLINES_SQL, list(seqs)).fetchall()
