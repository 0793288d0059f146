"""Counts of a user's pages, facts and other items, and of pending background work."""

from typing import Any

from memoryos_mcp.model.knowledge import About
from memoryos_mcp.model.stats import Counts
from memoryos_mcp.storage.sql import retention
from memoryos_mcp.storage.sql.connection import Connection
from memoryos_mcp.storage.sql.longterm import IS_VALID
from memoryos_mcp.storage.sql.moments import from_us
from memoryos_mcp.storage.values import Pending


def count_memory(connection: Connection, space: int, assistant_id: str, now_us: int) -> Counts:
    """Return how many pages, segments, facts and other items a memory contains.

    The number of assistant facts includes only the facts about the assistant ``assistant_id``.
    """

    def number(sql: str, *parameters: Any) -> int:
        return int(connection.execute(sql, parameters).get or 0)

    valid = f"SELECT count(*) FROM facts WHERE {IS_VALID} AND is_archived = 0 AND about = ?"  # noqa: S608 - constant
    pages = number("SELECT count(*) FROM pages")
    short_term = number("SELECT count(*) FROM pages WHERE tier = 'short_term'")
    work = pending(connection, space)
    return Counts(
        pages=pages,
        short_term=short_term,
        backlog=work.backlog,
        degraded=number("SELECT count(*) FROM pages WHERE is_degraded = 1"),
        attempts=number("SELECT max(attempts) FROM pages WHERE tier = 'backlog'"),
        mid_term=pages - short_term - work.backlog,
        unembedded=work.unembedded if space else pages,
        segments=number("SELECT count(*) FROM segments WHERE is_archived = 0"),
        archived_segments=number("SELECT count(*) FROM segments WHERE is_archived = 1"),
        chains=number("SELECT count(*) FROM chains"),
        traits=number("SELECT count(*) FROM traits"),
        user_facts=number(valid, now_us, About.USER),
        assistant_facts=number(valid + " AND assistant_id = ?", now_us, About.ASSISTANT, assistant_id),
        superseded_facts=number(f"SELECT count(*) FROM facts WHERE NOT {IS_VALID}", now_us),  # noqa: S608 - constant
        oldest_backlog_at=work.oldest_backlog_at,
        retention_waits_until=retention.waits_until(connection),
    )


def unembedded(connection: Connection, space: int) -> int:
    """Return the number of pages that have no vectors in a vector space; 0 if the vector space does not exist."""
    sql = (
        "SELECT count(*) FROM pages INDEXED BY pages_outline WHERE seq >= (SELECT next_seq FROM spaces WHERE space = ?)"
    )
    return int(connection.execute(sql, (space,)).get)


def pending(connection: Connection, space: int) -> Pending:
    """Return the amount of pending background work.

    To be fast, the queries read only indexes, the oldest page in the backlog and the newest page.
    """
    oldest = connection.execute("SELECT added_us FROM pages WHERE tier = 'backlog' ORDER BY seq LIMIT 1").get
    newest = connection.execute("SELECT seq, added_us FROM pages ORDER BY seq DESC LIMIT 1").fetchone()
    newest_seq, newest_us = (0, None) if newest is None else newest
    return Pending(
        backlog=int(connection.execute("SELECT count(*) FROM pages WHERE tier = 'backlog'").get),
        oldest_backlog_at=None if oldest is None else from_us(oldest),
        unembedded=unembedded(connection, space),
        newest_seq=newest_seq,
        last_added_at=None if newest_us is None else from_us(newest_us),
    )
