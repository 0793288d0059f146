"""Counts of a user's pages, facts and other items, and of pending background work."""

from typing import Any

from memoryos_mcp.model.knowledge import About
from memoryos_mcp.model.stats import Counts
from memoryos_mcp.storage.sql import retention
from memoryos_mcp.storage.sql.connection import Connection
from memoryos_mcp.storage.sql.forget_plans import FORGET_EPOCH
from memoryos_mcp.storage.sql.longterm import IS_VALID
from memoryos_mcp.storage.sql.moments import from_us
from memoryos_mcp.storage.sql.queries import UNEMBEDDED_FACTS, UNEMBEDDED_SEGMENTS
from memoryos_mcp.storage.values import DueWork, Pending


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


# The number of pages without vectors in the vector space ``?1``; 0 if the vector space does not exist.
UNEMBEDDED_PAGES = (
    "(SELECT count(*) FROM pages INDEXED BY pages_outline WHERE seq >= (SELECT next_seq FROM spaces WHERE space = ?1))"
)
# To be fast, this reads only indexes, the oldest page in the backlog and the newest page.
_PENDING = (
    "SELECT (SELECT count(*) FROM pages WHERE tier = 'backlog'), "  # noqa: S608 - constants
    "(SELECT added_us FROM pages WHERE tier = 'backlog' ORDER BY seq LIMIT 1), "
    f"{UNEMBEDDED_PAGES}, (SELECT added_us FROM pages WHERE seq = (SELECT max(seq) FROM pages))"
)
# ``?1`` is the vector space, and ``?2`` the current time. With ``seq > 0``, SQLite searches an index and does not scan
# it.
_DUE_WORK = (
    "SELECT (SELECT max(seq) FROM pages), "  # noqa: S608 - constants
    "EXISTS (SELECT 1 FROM pages WHERE tier = 'backlog'), "
    "EXISTS (SELECT 1 FROM pages WHERE read_by IS NULL AND seq > 0), "
    f"{UNEMBEDDED_PAGES} > 0 OR EXISTS (SELECT 1 FROM {UNEMBEDDED_FACTS}) "
    f"OR EXISTS (SELECT 1 FROM {UNEMBEDDED_SEGMENTS}), "
    "EXISTS (SELECT 1 FROM pages WHERE is_degraded = 1 AND seq > 0), "
    "EXISTS (SELECT 1 FROM segments WHERE is_due = 1 OR is_archived = 0 AND unanalysed_count > 0), "
    f"(SELECT count(*) FROM segments WHERE is_archived = 0), ({FORGET_EPOCH})"
)


def pending(connection: Connection, space: int) -> Pending:
    """Return the amount of pending background work."""
    backlog, oldest_us, unembedded, newest_us = connection.execute(_PENDING, (space,)).fetchall()[0]
    return Pending(
        backlog=backlog,
        oldest_backlog_at=None if oldest_us is None else from_us(oldest_us),
        unembedded=unembedded,
        last_added_at=None if newest_us is None else from_us(newest_us),
    )


def due_work(connection: Connection, space: int, now_us: int) -> DueWork:
    """Return the kinds of background work for which there is something to do."""
    newest_seq, *has_work, segments, epoch = connection.execute(_DUE_WORK, (space, now_us)).fetchall()[0]
    backlog, unread, unembedded, degraded, unanalysed = map(bool, has_work)
    return DueWork(
        newest_seq=newest_seq or 0,
        has_backlog=backlog,
        has_unread=unread,
        has_unembedded=unembedded,
        has_degraded=degraded,
        has_unanalysed=unanalysed,
        segments=segments,
        forget_epoch=epoch,
    )
