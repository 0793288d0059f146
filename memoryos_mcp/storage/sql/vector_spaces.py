"""The vector spaces of a memory: one for each embedding model whose vectors are stored."""

import json
from collections.abc import Collection
from typing import Any

from memoryos_mcp.storage.sql.connection import Connection
from memoryos_mcp.storage.sql.counting import UNEMBEDDED_PAGES
from memoryos_mcp.storage.sql.moments import from_us
from memoryos_mcp.storage.sql.vector_table import place
from memoryos_mcp.storage.values import Space

# The minimum time between two updates of a space's time of last use.
USED_EVERY_US = 86_400 * 1_000_000
# Number of pages whose vectors are deleted in one transaction.
PAGES_DROPPED = 500
_SPACES = (
    f"SELECT identity, model, {UNEMBEDDED_PAGES.replace('?1', 'of.space')}, used_us FROM spaces AS of "  # noqa: S608
    "ORDER BY used_us DESC, space DESC"
)


def find(connection: Connection, identity: str, model: str | None, now_us: int) -> int | None:
    """Return the number of the vector space with this identity; None if the space does not exist.

    With ``model``, also return None if the stored model or the stored time of last use is outdated. The caller then
    calls `use`, which updates both.
    """
    if model is None:
        known: int | None = connection.execute("SELECT space FROM spaces WHERE identity = ?", (identity,)).get
        return known
    sql = (
        "SELECT space FROM spaces WHERE identity = ? AND model = ? AND used_us > ? "
        "AND used_us = (SELECT max(used_us) FROM spaces)"
    )
    number: int | None = connection.execute(sql, (identity, model, now_us - USED_EVERY_US)).get
    return number


def use(connection: Connection, identity: str, model: str, now_us: int) -> int:
    """Store the model and the time of last use of a vector space; return its number. A missing space is created."""
    connection.execute(
        "INSERT INTO spaces (identity, model, used_us) VALUES (?, ?, ?) "
        "ON CONFLICT (identity) DO UPDATE SET model = excluded.model, used_us = excluded.used_us",
        (identity, model, now_us),
    )
    return int(connection.execute("SELECT space FROM spaces WHERE identity = ?", (identity,)).get)


def all_of(connection: Connection) -> list[Space]:
    """Return all vector spaces, the most recently used first."""
    return [
        Space(identity=identity, model=model, unembedded=unembedded, used_at=from_us(used_us))
        for identity, model, unembedded, used_us in connection.execute(_SPACES).fetchall()
    ]


def drop_some(connection: Connection, keep: Collection[str], since_us: int) -> bool:
    """Delete a limited number of vectors in unused vector spaces; return whether such vectors may remain.

    A vector space is unused if it was last used before ``since_us`` and its identity is not in ``keep``.
    """
    sql = (
        "SELECT space FROM spaces WHERE used_us < ? "
        "AND identity NOT IN (SELECT CAST(value AS TEXT) FROM json_each(?)) LIMIT 1"
    )
    space = connection.execute(sql, (since_us, json.dumps([*keep]))).get
    if space is None:
        return False
    pages: list[tuple[Any, ...]] = connection.execute(
        "SELECT DISTINCT seq FROM page_vectors WHERE space = ? ORDER BY seq LIMIT ?", (space, PAGES_DROPPED)
    ).fetchall()
    if pages:
        first, last = pages[0][0], pages[-1][0]
        connection.execute("DELETE FROM page_vectors WHERE space = ? AND seq BETWEEN ? AND ?", (space, first, last))
        connection.execute(
            "DELETE FROM page_tokens WHERE place BETWEEN ? AND ?", (place(space, first), place(space, last))
        )
        connection.execute("UPDATE spaces SET next_seq = 1 WHERE space = ?", (space,))
        return True
    for table in ("fact_vectors", "segment_vectors", "spaces"):
        connection.execute(f"DELETE FROM {table} WHERE space = ?", (space,))  # noqa: S608 - the names above
    return True
