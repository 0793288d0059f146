"""SQL of the queries for pages and facts: each condition that is set becomes a part of the statement."""

import json
from collections.abc import Callable
from itertools import chain
from typing import Any

import apsw

from memoryos_mcp.model.knowledge import About
from memoryos_mcp.storage.sqlite import longterm
from memoryos_mcp.storage.sqlite.mapping import (
    FACT_COLUMNS,
    SEGMENT_COLUMNS,
    all_rows,
    to_fact,
    to_segment,
)
from memoryos_mcp.storage.values import FactQuery, PageQuery, Unembedded

NO_LIMIT = -1


def page_conditions(query: PageQuery, space: int) -> tuple[str, list[Any]]:
    """Return what follows ``FROM pages``, and its parameters; rows of the newest pages come in reverse order."""
    done_by = None if query.done_by is None else (query.done_by, query.done_by)
    # By condition, its parameters; None leaves it out.
    conditions: dict[str, tuple[Any, ...] | None] = {
        "tier = ?": _given(query.tier),
        "chain = ?": _given(query.chain),
        "segment = ?": _given(query.segment),
        "seq > ?": _given(query.after_seq),
        "seq < ?": _given(query.before_seq),
        "seq >= (SELECT next_seq FROM spaces WHERE space = ?)": (space,) if query.is_unembedded else None,
        # The lower bound makes SQLite search the index of unread pages instead of scanning it.
        "read_by IS NULL AND seq > 0": () if query.is_unread else None,
        "is_analysed = 0": () if query.is_unanalysed else None,
        "is_degraded = 1": () if query.is_degraded else None,
        "organised_by = ?": _given(query.organised_by),
        "organised_by <> ?": _given(query.not_organised_by),
        "tier = 'mid_term' AND (organised_by = ? OR learned_by = ?)": done_by,
    }
    held = {condition: parameters for condition, parameters in conditions.items() if parameters is not None}
    where = f"WHERE {' AND '.join(held)} " if held else ""
    order = "ORDER BY seq DESC" if query.is_newest else "ORDER BY seq"
    limit = "" if query.limit is None else " LIMIT ?"
    parameters = [*chain.from_iterable(held.values()), *([] if query.limit is None else [query.limit])]
    return f"{where}{order}{limit}", parameters


def _given(value: Any) -> tuple[Any, ...] | None:
    return None if value is None else (value,)


def fact_rows(
    connection: apsw.Connection, query: FactQuery, space: int, owner: Callable[[About], str], now_us: int
) -> list[tuple[Any, ...]]:
    """Return rows of `FACT_COLUMNS`, the oldest fact first.

    Args:
        connection: The user's file.
        query: Which facts.
        space: The vector space of their vectors.
        owner: Returns the assistant that owns the facts about a side.
        now_us: The present, in microseconds since 1970.
    """
    later = "[]"
    if query.without is not None:
        holds = longterm.WOULD_BE_VALID
        later = json.dumps(longterm.learned_later(connection, *query.without))
    elif query.is_past:
        holds = f"NOT {longterm.IS_VALID} AND ended_by IS NULL"
    else:
        holds = longterm.IS_VALID
    archived = "" if query.with_archived or query.is_past else "AND is_archived = 0 "
    sql = (
        f"SELECT {FACT_COLUMNS} FROM facts "  # noqa: S608 - literals of this module and constants
        f"WHERE about = ?2 AND assistant_id = ?3 AND ({holds}) {archived}"
        "AND (?6 IS NULL OR slot IN (SELECT value FROM json_each(?6))) ORDER BY fact DESC LIMIT ?7"
    )
    slots = None if query.slots is None else json.dumps(sorted(query.slots))
    limit = NO_LIMIT if query.limit is None else query.limit
    found: list[tuple[Any, ...]] = []
    for about in About if query.about is None else [query.about]:
        found += all_rows(connection, sql, space, about, owner(about), now_us, later, slots, limit)[::-1]
    return found


def unembedded(connection: apsw.Connection, space: int, limit: int, now_us: int) -> Unembedded:
    """Return facts that hold and segments that are not archived, without vectors, at most ``limit`` of each."""
    facts = (
        f"SELECT {FACT_COLUMNS} FROM facts "  # noqa: S608 - constant
        "WHERE NOT EXISTS (SELECT 1 FROM fact_vectors AS v WHERE v.fact = facts.fact AND v.space = ?1) "
        f"AND {longterm.IS_VALID.replace('?', '?2')} ORDER BY is_archived, fact LIMIT ?3"
    )
    segments = (
        f"SELECT {SEGMENT_COLUMNS} FROM segments "  # noqa: S608 - constant
        "WHERE NOT EXISTS (SELECT 1 FROM segment_vectors AS v WHERE v.segment = segments.segment AND v.space = ?1) "
        "AND is_archived = 0 ORDER BY segment LIMIT ?2"
    )
    return Unembedded(
        facts=list(map(to_fact, all_rows(connection, facts, space, now_us, limit))),
        segments=list(map(to_segment, all_rows(connection, segments, space, limit))),
    )
