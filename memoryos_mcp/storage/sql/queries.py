"""SQL for `PageQuery` and `FactQuery`, and for finding facts and segments that have no vectors yet."""

import json
from collections.abc import Callable
from itertools import chain
from typing import Any

from memoryos_mcp.model.knowledge import About
from memoryos_mcp.storage.sql import longterm
from memoryos_mcp.storage.sql.connection import NO_LIMIT, Connection
from memoryos_mcp.storage.sql.mapping import FACT_COLUMNS, SEGMENT_COLUMNS, all_rows, to_fact, to_segment
from memoryos_mcp.storage.values import FactQuery, PageQuery, Unembedded


def page_conditions(query: PageQuery, space: int) -> tuple[str, list[Any]]:
    """Return the part of an SQL query that follows ``FROM pages``, and the SQL parameters.

    This part contains the conditions, order and limit. If ``query.is_newest`` is true, the newest pages come first.
    """
    done_by = None if query.done_by is None else (query.done_by, query.done_by)
    # The parameters of each SQL condition. A condition with None is left out.
    conditions: dict[str, tuple[Any, ...] | None] = {
        "tier = ?": _parameter(query.tier),
        "chain = ?": _parameter(query.chain),
        "segment = ?": _parameter(query.segment),
        "seq > ?": _parameter(query.after_seq),
        "seq < ?": _parameter(query.before_seq),
        "seq >= (SELECT next_seq FROM spaces WHERE space = ?)": (space,) if query.is_unembedded else None,
        # The lower bound makes SQLite search the index of unread pages instead of scanning it.
        "read_by IS NULL AND seq > 0": () if query.is_unread else None,
        "is_analysed = 0": () if query.is_unanalysed else None,
        "is_degraded = 1": () if query.is_degraded else None,
        "organised_by = ?": _parameter(query.organised_by),
        "organised_by <> ?": _parameter(query.not_organised_by),
        "tier = 'mid_term' AND (organised_by = ? OR learned_by = ?)": done_by,
    }
    parts = {condition: parameters for condition, parameters in conditions.items() if parameters is not None}
    where = f"WHERE {' AND '.join(parts)} " if parts else ""
    order = "ORDER BY seq DESC" if query.is_newest else "ORDER BY seq"
    limit = "" if query.limit is None else " LIMIT ?"
    parameters = [*chain.from_iterable(parts.values()), *([] if query.limit is None else [query.limit])]
    return f"{where}{order}{limit}", parameters


def _parameter(value: Any) -> tuple[Any, ...] | None:
    return None if value is None else (value,)


def fact_rows(
    connection: Connection, query: FactQuery, space: int, owner: Callable[[About], str], now_us: int
) -> list[tuple[Any, ...]]:
    """Return rows of `FACT_COLUMNS` for the facts that match a query.

    Facts about the user come first, then facts about the assistant, each oldest first. ``owner`` is the
    function `StoreOptions.owner`.
    """
    later = "[]"
    if query.without is not None:
        condition = longterm.WOULD_BE_VALID
        later = json.dumps(longterm.learned_later(connection, *query.without))
    elif query.is_past:
        condition = f"NOT {longterm.IS_VALID} AND ended_by IS NULL"
    else:
        condition = longterm.IS_VALID
    archived = "" if query.with_archived or query.is_past else "AND is_archived = 0 "
    sql = (
        f"SELECT {FACT_COLUMNS} FROM facts "  # noqa: S608 - literals of this module and constants
        f"WHERE about = ?2 AND assistant_id = ?3 AND ({condition}) {archived}"
        "AND (?6 IS NULL OR slot IN (SELECT CAST(value AS TEXT) FROM json_each(?6))) ORDER BY fact DESC LIMIT ?7"
    )
    slots = None if query.slots is None else json.dumps(sorted(query.slots))
    limit = NO_LIMIT if query.limit is None else query.limit
    found: list[tuple[Any, ...]] = []
    for about in About if query.about is None else [query.about]:
        found += all_rows(connection, sql, space, about, owner(about), now_us, later, slots, limit)[::-1]
    return found


# The facts and the segments without vectors in the space ``?1``; ``?2`` is the current time.
UNEMBEDDED_FACTS = (
    "facts WHERE NOT EXISTS (SELECT 1 FROM fact_vectors AS v "  # noqa: S608 - constants
    "WHERE v.fact = facts.fact AND v.space = ?1) "
    f"AND {longterm.IS_VALID.replace('?', '?2')}"
)
UNEMBEDDED_SEGMENTS = (
    "segments WHERE NOT EXISTS (SELECT 1 FROM segment_vectors AS v "
    "WHERE v.segment = segments.segment AND v.space = ?1) AND is_archived = 0"
)


def unembedded(connection: Connection, space: int, limit: int, now_us: int) -> Unembedded:
    """Return at most ``limit`` facts and ``limit`` segments that have no vector yet; see `Knowledge.unembedded`."""
    facts = f"SELECT {FACT_COLUMNS} FROM {UNEMBEDDED_FACTS} ORDER BY is_archived, fact LIMIT ?3"  # noqa: S608 - constant
    segments = f"SELECT {SEGMENT_COLUMNS} FROM {UNEMBEDDED_SEGMENTS} ORDER BY segment LIMIT ?2"  # noqa: S608 - constant
    return Unembedded(
        facts=list(map(to_fact, all_rows(connection, facts, space, now_us, limit))),
        segments=list(map(to_segment, all_rows(connection, segments, space, limit))),
    )
