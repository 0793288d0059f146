"""Lists of memories in batches, newest first. Memories added between two batches do not appear in later batches."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from memoryos_mcp.model.ids import Kind, numbered_id, trait_id
from memoryos_mcp.model.pages import BEGINNING_CHARS
from memoryos_mcp.model.views import ListEntry, ListRequest, Place, State
from memoryos_mcp.storage.sql.connection import NO_LIMIT, Connection
from memoryos_mcp.storage.sql.longterm import IS_VALID
from memoryos_mcp.storage.sql.mapping import PAGE_COLUMNS, to_page
from memoryos_mcp.storage.sql.moments import from_us, to_us


def list_memories(
    connection: Connection, request: ListRequest, place: Place | None, limit: int, *, owner: str, now_us: int
) -> list[ListEntry]:
    """Return at most ``limit`` memories that match ``request``, starting at ``place``; see `UserData.listed`.

    Traits are sorted by dimension, because the time of a trait changes whenever the trait is updated. Facts about
    the user and facts about the assistant ``owner`` are listed. Facts about other assistants are not listed.
    """
    filters = {**_filters(connection, request), "owner": owner, "now_us": now_us, "chars": BEGINNING_CHARS}
    kinds = list(request.kinds)
    found: list[ListEntry] = []
    for kind in kinds[kinds.index(place.kind) :] if place is not None else kinds:
        last = place.after if place is not None and place.kind is kind else None
        if request.is_by_time and kind is Kind.PAGE:
            found += _pages_by_time(connection, {**filters, "limit": limit - len(found)}, last)
        else:
            found += _QUERIES[kind].rows(connection, {**filters, "last": last, "limit": limit - len(found)})
        if len(found) == limit:
            break
    return found


def count_pages(connection: Connection, request: ListRequest, starts_us: Sequence[int]) -> list[int]:
    """Return the number of pages in each of several consecutive periods; see `UserData.page_counts`."""
    bounds = list(pairwise(starts_us))
    branches: list[tuple[int, int, int, int]] = []  # the end, start, first number, and length of its periods
    for number, (start, end) in enumerate(bounds):
        if branches and branches[-1][3] == end - start:
            branches[-1] = (end, *branches[-1][1:])
        else:
            branches.append((end, start, number, end - start))
    cases = " ".join(
        f"WHEN occurred_us < {end} THEN {number} + (occurred_us - {start}) / {length}"
        for end, start, number, length in branches
    )
    filters = _filters(connection, request) | {"first_us": starts_us[0], "end_us": starts_us[-1]}
    conditions = ["occurred_us >= :first_us", "occurred_us < :end_us", *_QUERIES[Kind.PAGE].used(filters)]
    sql = (
        f"SELECT period, count(*) FROM (SELECT CASE {cases} END AS period FROM pages "  # noqa: S608 - numbers, constants
        f"WHERE {' AND '.join(conditions)}) AS counted GROUP BY period"
    )
    counts = dict(connection.execute(sql, filters).fetchall())
    return [counts.get(number, 0) for number in range(len(bounds))]


def _filters(connection: Connection, request: ListRequest) -> dict[str, Any]:
    """Return the value of each filter, by the filter's name; None for a filter that is not set."""
    return {
        "last": None,
        "last_us": None,
        "tier": request.tier,
        "state": request.state,
        "after_us": None if request.after is None else to_us(request.after),
        "before_us": None if request.before is None else to_us(request.before),
        "segments": _segments(connection, request.topic),
        "chain": request.chain,
        "about": request.about,
        "source": request.source,
        "project": request.project,
        "seqs": json.dumps(connection.words.newest_with(request.words, 0, NO_LIMIT)) if request.words else None,
    }


def _pages_by_time(connection: Connection, filters: dict[str, Any], last: Any) -> list[ListEntry]:
    """Return the pages that match the filters, with the latest dialogue first.

    The pages are chosen by an index, so that only the texts of the returned pages are read.
    """
    if last is not None:
        filters |= {"last_us": last[0], "last_seq": last[1]}
    order = "ORDER BY occurred_us DESC, seq DESC"
    conditions = " AND ".join(_QUERIES[Kind.PAGE].used(filters)) or "true"
    sql = (
        f"SELECT {PAGE_COLUMNS} FROM pages WHERE seq IN "  # noqa: S608 - constants
        f"(SELECT seq FROM pages WHERE {conditions} {order} LIMIT :limit) {order}"
    )
    return [
        replace(entry, after=(to_us(entry.at), int(str(entry.after))))
        for entry in map(_page, connection.execute(sql, filters))
    ]


def _segments(connection: Connection, topic: int | str | None) -> str | None:
    """Return the numbers of a topic's segments as a JSON list; None if ``topic`` is None.

    ``topic`` is the number of one segment, or a text. A text selects all segments with a keyword that contains the
    text.
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
    """Return an SQL expression for the first characters of the SQL expression ``text``."""
    return f"substr({text}, 1, CAST(:chars AS INTEGER))"


@dataclass(frozen=True, slots=True)
class _Query:
    """The query for one kind of memory.

    Attributes:
        conditions: A mapping from the name of each filter to its SQL condition. If a filter is not set, its condition
            is left out of the query.
    """

    select: str
    order: str
    conditions: Mapping[str, str]
    to_entry: Callable[[tuple[Any, ...]], ListEntry]

    def used(self, filters: Mapping[str, Any]) -> list[str]:
        """Return the conditions of the filters that are set."""
        return [condition for name, condition in self.conditions.items() if filters[name] is not None]

    def rows(self, connection: Connection, filters: Mapping[str, Any]) -> list[ListEntry]:
        """Return the memories that match the filters. The filter ``limit`` sets the maximum number of memories."""
        sql = f"{self.select} WHERE {' AND '.join(self.used(filters)) or 'true'} ORDER BY {self.order} LIMIT :limit"
        return [self.to_entry(row) for row in connection.execute(sql, filters)]


def _page(row: tuple[Any, ...]) -> ListEntry:
    page = to_page(row)
    return ListEntry(
        id=page.page_id,
        kind=Kind.PAGE,
        beginning=page.beginning,
        at=page.occurred_at,
        state=page.tier,
        segment=page.segment,
        after=page.seq,
        gives_orders=page.gives_orders,
        source=page.source,
        project=page.project,
        corrected=page.corrected,
    )


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
            "last_us": "(occurred_us, seq) < (:last_us, :last_seq)",
            "tier": "tier = :tier",
            "after_us": "occurred_us >= :after_us",
            "before_us": "occurred_us < :before_us",
            "segments": f"segment {_OF_TOPIC}",
            "chain": "chain = :chain",
            "source": "source = :source",
            "project": "project = :project",
            "seqs": "seq IN (SELECT value FROM json_each(:seqs))",
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
            "project": "EXISTS (SELECT 1 FROM pages WHERE pages.segment = segments.segment AND project = :project)",
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
            "project": "EXISTS (SELECT 1 FROM fact_evidence AS e JOIN pages USING (seq) "
            "WHERE e.fact = stated.fact AND project = :project)",
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
            "project": "EXISTS (SELECT 1 FROM trait_evidence AS e JOIN pages USING (seq) "
            "WHERE e.dimension = traits.dimension AND project = :project)",
        },
        _trait,
    ),
}
