"""Lists of memories in batches, newest first. Memories added between two batches do not appear in later batches."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from memoryos_mcp.model.ids import Kind, numbered_id, trait_id
from memoryos_mcp.model.pages import BEGINNING_CHARS
from memoryos_mcp.model.views import ListEntry, ListRequest, Place, State
from memoryos_mcp.storage.sql.connection import Connection
from memoryos_mcp.storage.sql.longterm import IS_VALID
from memoryos_mcp.storage.sql.mapping import PAGE_COLUMNS, to_page
from memoryos_mcp.storage.sql.moments import from_us, to_us


def list_memories(
    connection: Connection, request: ListRequest, place: Place | None, limit: int, *, owner: str, now_us: int
) -> list[ListEntry]:
    """Return at most ``limit`` memories of a list, starting after ``place``; see `UserData.listed`.

    Traits are sorted by dimension, because the time of a trait changes whenever the trait is updated. Facts about
    the user and facts about the assistant ``owner`` are listed. Facts about other assistants are not listed.
    """
    filters = {
        "tier": request.tier,
        "state": request.state,
        "after_us": None if request.after is None else to_us(request.after),
        "before_us": None if request.before is None else to_us(request.before),
        "segments": _segments(connection, request.topic),
        "about": request.about,
        "owner": owner,
        "now_us": now_us,
        "chars": BEGINNING_CHARS,
    }
    kinds = list(request.kinds)
    found: list[ListEntry] = []
    for kind in kinds[kinds.index(place.kind) :] if place is not None else kinds:
        last = place.after if place is not None and place.kind is kind else None
        found += _QUERIES[kind].rows(connection, {**filters, "last": last, "limit": limit - len(found)})
        if len(found) == limit:
            break
    return found


def _segments(connection: Connection, topic: int | str | None) -> str | None:
    """Return the numbers of a topic's segments as a JSON list; None if ``topic`` is None.

    A topic is the number of one segment, or text that occurs in at least one keyword of each of its segments.
    """
    if topic is None:
        return None
    if isinstance(topic, int):
        return json.dumps([topic])
    sql = "SELECT DISTINCT segment FROM segments, json_each(keywords) AS k WHERE instr(k.value, ?) > 0"
    return json.dumps([segment for (segment,) in connection.execute(sql, (topic.lower(),))])


_OF_TOPIC = "IN (SELECT value FROM json_each(:segments))"
_VALID_NOW = IS_VALID.replace("?", ":now_us")
_TRAIT_TEXT = "dimension || ': ' || level || ' - ' || reason"


def _beginning(text: str) -> str:
    """Return the SQL for the first characters of a text."""
    return f"substr({text}, 1, CAST(:chars AS INTEGER))"


@dataclass(frozen=True, slots=True)
class _Query:
    """The query for one kind of memory.

    Attributes:
        conditions: SQL conditions, by the name of their filter. A condition is used only if its filter is set.
    """

    select: str
    order: str
    conditions: Mapping[str, str]
    to_entry: Callable[[tuple[Any, ...]], ListEntry]

    def rows(self, connection: Connection, filters: Mapping[str, Any]) -> list[ListEntry]:
        """Return the memories that match the filters. The filter ``limit`` sets the maximum number of memories."""
        conditions = [condition for name, condition in self.conditions.items() if filters[name] is not None]
        sql = f"{self.select} WHERE {' AND '.join(conditions) or 'true'} ORDER BY {self.order} LIMIT :limit"
        return [self.to_entry(row) for row in connection.execute(sql, filters)]


def _page(row: tuple[Any, ...]) -> ListEntry:
    page = to_page(row)
    at, tier = page.occurred_at, page.tier
    return ListEntry(page.page_id, Kind.PAGE, page.beginning, at, tier, page.segment, page.seq, page.gives_orders)


def _segment(row: tuple[Any, ...]) -> ListEntry:
    segment, summary, is_archived, newest_us = row
    state = State.ARCHIVED if is_archived else State.CURRENT
    return ListEntry(
        numbered_id(Kind.SEGMENT, segment), Kind.SEGMENT, summary, from_us(newest_us), state, None, segment
    )


def _fact(row: tuple[Any, ...]) -> ListEntry:
    fact, text, state, from_, utc_offset_s = row
    return ListEntry(
        numbered_id(Kind.FACT, fact), Kind.FACT, text, from_us(from_, utc_offset_s), State(state), None, fact
    )


def _trait(row: tuple[Any, ...]) -> ListEntry:
    dimension, text, updated_us = row
    return ListEntry(trait_id(dimension), Kind.TRAIT, text, from_us(updated_us), State.CURRENT, None, dimension)


_QUERIES = {
    Kind.PAGE: _Query(
        f"SELECT {PAGE_COLUMNS} FROM pages",  # noqa: S608 - constant
        "seq DESC",
        {
            "last": "seq < :last",
            "tier": "tier = :tier",
            "after_us": "occurred_us >= :after_us",
            "before_us": "occurred_us < :before_us",
            "segments": f"segment {_OF_TOPIC}",
        },
        _page,
    ),
    Kind.SEGMENT: _Query(
        f"SELECT segment, {_beginning('summary')}, is_archived, coalesce((SELECT max(occurred_us) FROM pages "  # noqa: S608
        "WHERE pages.segment = segments.segment), last_visit_us) FROM segments",
        "segment DESC",
        {
            "last": "segment < :last",
            "state": "is_archived = CASE WHEN :state = 'archived' THEN 1 ELSE 0 END",
            "after_us": "EXISTS (SELECT 1 FROM pages WHERE pages.segment = segments.segment AND occurred_us >= "
            ":after_us AND occurred_us < coalesce(:before_us, occurred_us + 1))",
            "before_us": "EXISTS (SELECT 1 FROM pages WHERE pages.segment = segments.segment AND occurred_us < "
            ":before_us)",
            "segments": f"segment {_OF_TOPIC}",
        },
        _segment,
    ),
    Kind.FACT: _Query(
        f"WITH stated AS (SELECT *, CASE WHEN NOT {_VALID_NOW} THEN 'superseded' WHEN is_archived = 1 THEN 'archived' "  # noqa: S608
        "ELSE 'current' END AS state FROM facts WHERE about = 'user' OR assistant_id = :owner) "
        f"SELECT fact, {_beginning('text')}, state, valid_from_us, utc_offset_s FROM stated",
        "fact DESC",
        {
            "last": "fact < :last",
            "state": "state = :state",
            "after_us": "valid_from_us >= :after_us",
            "before_us": "valid_from_us < :before_us",
            "about": "about = :about",
            "segments": "EXISTS (SELECT 1 FROM fact_evidence AS e JOIN pages USING (seq) "  # noqa: S608 - constant
            f"WHERE e.fact = stated.fact AND segment {_OF_TOPIC})",
        },
        _fact,
    ),
    Kind.TRAIT: _Query(
        f"SELECT dimension, {_beginning(_TRAIT_TEXT)}, updated_us FROM traits",  # noqa: S608 - constant
        "dimension",
        {
            "last": "dimension > :last",
            "after_us": "updated_us >= :after_us",
            "before_us": "updated_us < :before_us",
            "segments": "EXISTS (SELECT 1 FROM trait_evidence AS e JOIN pages USING (seq) "  # noqa: S608 - constant
            f"WHERE e.dimension = traits.dimension AND segment {_OF_TOPIC})",
        },
        _trait,
    ),
}
