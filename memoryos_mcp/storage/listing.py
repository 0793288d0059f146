"""Listing: many memories in a row, a stretch at a time. What is added meanwhile comes before the first stretch."""

import json
from collections.abc import Callable
from typing import Any

import apsw

from memoryos_mcp.ids import Kind, numbered_id, trait_id
from memoryos_mcp.pages import Tier
from memoryos_mcp.storage.longterm import IN_FORCE
from memoryos_mcp.storage.looked import Listed, ListRequest, Place, State
from memoryos_mcp.storage.looking import BEGINNING_CHARS, beginning
from memoryos_mcp.storage.rows import from_us, to_us


def listed(
    connection: apsw.Connection, request: ListRequest, place: Place | None, limit: int, *, owner: str, now_us: int
) -> list[Listed]:
    """Return the next memories, newest first; traits by their names, because they change.

    Args:
        connection: Of one state of the file.
        request: What to list.
        place: Where to go on; None begins.
        limit: How many at most.
        owner: Whose facts are there beside the user's.
        now_us: The present.
    """
    filters = {
        "limit": limit,
        "tier": request.tier,
        "state": request.state,
        "after_us": None if request.after is None else to_us(request.after),
        "before_us": None if request.before is None else to_us(request.before),
        "segments": _segments(connection, request.topic),
        "owner": owner,
        "now_us": now_us,
        "chars": BEGINNING_CHARS,
    }
    kinds = list(request.kinds)
    found: list[Listed] = []
    for kind in kinds[kinds.index(place.kind) :] if place is not None else kinds:
        last = place.after if place is not None and place.kind is kind else None
        sql, to_listed = _QUERIES[kind]
        rows = connection.execute(sql, {**filters, "last": last, "limit": limit - len(found)}).fetchall()
        found += map(to_listed, rows)
        if len(found) == limit:
            break
    return found


def _segments(connection: apsw.Connection, topic: int | str | None) -> str | None:
    """Return the segments of a topic as JSON; None if there is no topic to go by."""
    if topic is None:
        return None
    if isinstance(topic, int):
        return json.dumps([topic])
    sql = "SELECT DISTINCT segment FROM segments, json_each(keywords) AS k WHERE instr(k.value, ?)"
    return json.dumps([segment for (segment,) in connection.execute(sql, (topic.lower(),))])


def _between(column: str) -> str:
    return f"(:after_us IS NULL OR {column} >= :after_us) AND (:before_us IS NULL OR {column} < :before_us)"


_LISTED_SEGMENTS = "(SELECT value FROM json_each(:segments))"
_IN_FORCE = IN_FORCE.replace("?", ":now_us")
_FACT_STATE = f"iif({_IN_FORCE}, iif(is_archived, 'archived', 'current'), 'superseded')"

_PAGES = f"""
SELECT seq, page_id, occurred_us, utc_offset_s, tier, segment,
    substr(user_input, 1, :chars), substr(agent_response, 1, :chars)
FROM pages WHERE (:last IS NULL OR seq < :last) AND (:tier IS NULL OR tier = :tier) AND {_between("occurred_us")}
AND (:segments IS NULL OR segment IN {_LISTED_SEGMENTS}) ORDER BY seq DESC LIMIT :limit
"""  # noqa: S608 - constants
_SEGMENTS = f"""
SELECT segment, substr(summary, 1, :chars), is_archived, coalesce(
    (SELECT max(occurred_us) FROM pages WHERE pages.segment = segments.segment), last_visit_us)
FROM segments WHERE (:last IS NULL OR segment < :last) AND is_archived = (:state = 'archived')
AND (:after_us IS NULL AND :before_us IS NULL OR EXISTS
    (SELECT 1 FROM pages WHERE pages.segment = segments.segment AND {_between("occurred_us")}))
AND (:segments IS NULL OR segment IN {_LISTED_SEGMENTS}) ORDER BY segment DESC LIMIT :limit
"""  # noqa: S608
_FACTS = f"""
SELECT fact, substr(text, 1, :chars), {_FACT_STATE}, valid_from_us, utc_offset_s FROM facts
WHERE (:last IS NULL OR fact < :last) AND (about = 'user' OR assistant_id = :owner) AND {_FACT_STATE} = :state
AND {_between("valid_from_us")} AND (:segments IS NULL OR EXISTS
    (SELECT 1 FROM fact_evidence AS e JOIN pages USING (seq)
    WHERE e.fact = facts.fact AND segment IN {_LISTED_SEGMENTS})) ORDER BY fact DESC LIMIT :limit
"""  # noqa: S608
_TRAITS = f"""
SELECT dimension, substr(dimension || ': ' || level || ' - ' || reason, 1, :chars), updated_us FROM traits
WHERE (:last IS NULL OR dimension > :last) AND :state = 'current' AND {_between("updated_us")}
AND (:segments IS NULL OR EXISTS
    (SELECT 1 FROM trait_evidence AS e JOIN pages USING (seq)
    WHERE e.dimension = traits.dimension AND segment IN {_LISTED_SEGMENTS})) ORDER BY dimension LIMIT :limit
"""  # noqa: S608


def _page(row: tuple[Any, ...]) -> Listed:
    seq, page_id, occurred_us, utc_offset_s, tier, segment, *sides = row
    at = from_us(occurred_us, utc_offset_s)
    return Listed(page_id, Kind.PAGE, beginning(*sides), at, Tier(tier), segment, seq)


def _segment(row: tuple[Any, ...]) -> Listed:
    segment, summary, is_archived, newest_us = row
    state = State.ARCHIVED if is_archived else State.CURRENT
    return Listed(numbered_id(Kind.SEGMENT, segment), Kind.SEGMENT, summary, from_us(newest_us), state, None, segment)


def _fact(row: tuple[Any, ...]) -> Listed:
    fact, text, state, from_, utc_offset_s = row
    return Listed(numbered_id(Kind.FACT, fact), Kind.FACT, text, from_us(from_, utc_offset_s), State(state), None, fact)


def _trait(row: tuple[Any, ...]) -> Listed:
    dimension, text, updated_us = row
    return Listed(trait_id(dimension), Kind.TRAIT, text, from_us(updated_us), State.CURRENT, None, dimension)


_Query = tuple[str, Callable[[tuple[Any, ...]], Listed]]
_QUERIES: dict[Kind, _Query] = {
    Kind.PAGE: (_PAGES, _page),
    Kind.SEGMENT: (_SEGMENTS, _segment),
    Kind.FACT: (_FACTS, _fact),
    Kind.TRAIT: (_TRAITS, _trait),
}
