"""Conversion between database rows and pages, segments, facts and vectors."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from memoryos_mcp.model.knowledge import About, Fact, Kind
from memoryos_mcp.model.pages import DAMAGED_TEXT, TURN_FIELDS, Page, Source, Tier, Turn
from memoryos_mcp.model.segments import Segment, Vector
from memoryos_mcp.storage.sql import checksums
from memoryos_mcp.storage.sql.connection import Connection
from memoryos_mcp.storage.sql.moments import any_time, from_us, offset_s, to_us
from memoryos_mcp.text.terms import words

T = TypeVar("T")


# The fields of a turn that the checksum does not cover; their columns have the same names.
_UNSUMMED = tuple(name for name in TURN_FIELDS if name not in {*checksums.SUMMED, "occurred_at"})
# Converters for the fields in `_UNSUMMED` whose column has a different type.
_FROM_COLUMN: Mapping[str, Callable[[Any], Any]] = {"gives_orders": bool}
PAGE_COLUMNS = (
    "seq, session, tier, chain, (SELECT summary FROM chains WHERE chains.chain = pages.chain), segment, organised_by, "  # noqa: S608
    "read_by, learned_by, (SELECT json_group_array(text) FROM fact_evidence JOIN facts USING (fact) "
    "WHERE fact_evidence.seq = pages.seq AND ended_by IS NOT NULL), "
    f"checksum, {checksums.COLUMNS}, {', '.join(_UNSUMMED)}"
)


def to_page(row: Sequence[Any]) -> Page:
    """Convert a row of `PAGE_COLUMNS` to a page; the text of a damaged page is `DAMAGED_TEXT`."""
    seq, session, tier, chain, summary, segment, organised_by, read_by, learned_by, corrected, stored, *turn = row
    said, unsummed = turn[: -len(_UNSUMMED)], turn[-len(_UNSUMMED) :]
    page_id, occurred_us, utc_offset_s, source, meta_data, user_input, agent_response = said
    is_whole = stored == checksums.checksum(*said)
    name = page_id.decode(errors="replace")
    if not is_whole:
        checksums.warn(name)
    return Page(
        seq=seq,
        page_id=name,
        user_input=user_input.decode() if is_whole else DAMAGED_TEXT,
        agent_response=agent_response.decode() if is_whole else "",
        occurred_at=from_us(occurred_us, utc_offset_s) if is_whole else any_time(occurred_us),
        meta_data=meta_data.decode() if is_whole and meta_data is not None else None,
        session=session,
        tier=Tier(tier),
        chain=chain,
        chain_summary=summary,
        segment=segment,
        source=Source(source.decode()) if is_whole else Source.CONVERSATION,
        is_damaged=not is_whole,
        organised_by=organised_by,
        read_by=read_by,
        learned_by=learned_by,
        corrected=tuple(json.loads(corrected)),
        **{name: _FROM_COLUMN.get(name, _as_is)(value) for name, value in zip(_UNSUMMED, unsummed, strict=True)},
    )


def _as_is(value: T) -> T:
    return value


# The columns of the table ``pages`` that `turn_row` fills.
TURN_COLUMNS = (
    *(name for name in TURN_FIELDS if name != "occurred_at"),
    *("page_id", "occurred_us", "utc_offset_s", "checksum"),
)


def turn_row(page_id: str, turn: Turn) -> dict[str, Any]:
    """Return a page's id, turn and checksum as a mapping from column names to values."""
    row = {name: getattr(turn, name) for name in TURN_FIELDS if name != "occurred_at"}
    row |= {"page_id": page_id, "occurred_us": to_us(turn.occurred_at), "utc_offset_s": offset_s(turn.occurred_at)}
    return row | {"checksum": checksums.checksum_of(row)}


NEWEST_SEQ = "SELECT coalesce(max(seq), 0) FROM pages"
# The SQL parameter ?1 is the vector space.
SEGMENT_COLUMNS = (
    "segment, summary, keywords, (SELECT vector FROM segment_vectors AS v WHERE v.segment = segments.segment "
    "AND v.space = ?1) AS vector, n_visit, l_interaction, last_visit_us, "
    "page_count, unanalysed_count, summariser, "
    "(SELECT project FROM pages WHERE pages.segment = segments.segment ORDER BY seq LIMIT 1) AS project"
)
_SEGMENT_VALUES = (
    "segment",
    "summary",
    "keywords",
    "vector_bytes",
    "n_visit",
    "l_interaction",
    "last_visit_us",
    "page_count",
    "unanalysed_count",
    "summariser",
    "project",
)
# If the SQL parameter ?2 is 1, only segments with pages to be analysed are returned.
_SEGMENTS = (
    f"SELECT {', '.join(_SEGMENT_VALUES)}, vector FROM (SELECT *, octet_length(vector) AS vector_bytes "  # noqa: S608
    f"FROM (SELECT {SEGMENT_COLUMNS} FROM segments WHERE is_archived = 0 AND (?2 = 0 OR unanalysed_count > 0)) "
    "AS found) AS measured ORDER BY segment"
)
SEGMENTS_OF_PAGES = (
    f"SELECT {SEGMENT_COLUMNS} FROM segments WHERE is_archived = 0 "  # noqa: S608 - constant
    "AND segment IN (SELECT segment FROM pages WHERE seq IN (SELECT value FROM json_each(?2)))"
)


def to_segment(row: tuple[Any, ...]) -> Segment:
    """Convert a row of `SEGMENT_COLUMNS` to a segment."""
    segment, summary, keywords, vector, n_visit, l_interaction, last_us, pages, unanalysed, summariser, project = row
    return Segment(
        segment=segment,
        summary=summary,
        keywords=tuple(json.loads(keywords)),
        vector=to_vector(vector),
        n_visit=n_visit,
        l_interaction=l_interaction,
        last_visit=from_us(last_us),
        page_count=pages,
        unanalysed_count=unanalysed,
        summariser=summariser,
        project=project,
    )


def read_segments(connection: Connection, space: int, *, is_unanalysed: bool = False) -> list[Segment]:
    """Return the segments that are not archived, with their vectors in a vector space.

    With ``is_unanalysed``, return only the segments that have pages to be analysed.
    """
    bindings = space, int(is_unanalysed)
    *values, vectors = connection.columns(_SEGMENTS, bindings, values=_SEGMENT_VALUES, blobs=["vector"])
    segments, start = [], 0
    for segment, summary, keywords, size, *others in zip(*values, strict=True):
        vector = None if size is None else vectors[start : start + size]
        segments.append(to_segment((segment, summary, keywords, vector, *others)))
        start += size or 0
    return segments


MAX_CACHED_FACTS = 20_000
# The SQL parameter ?1 is the vector space.
FACT_COLUMNS = (
    "fact, about, text, slot, valid_from_us, valid_until_us, utc_offset_s, "
    "(SELECT vector FROM fact_vectors AS v WHERE v.fact = facts.fact AND v.space = ?1), "
    "(SELECT json_group_array(page_id) FROM (SELECT page_id FROM fact_evidence JOIN pages USING (seq) "
    "WHERE fact_evidence.fact = facts.fact ORDER BY seq) AS listed), is_archived, kind, "
    "said_since, CASE WHEN valid_until_us IS NOT DISTINCT FROM stated_until_us THEN said_until END, learned_by, "
    "(SELECT json_array(occurred_us, seq) FROM fact_evidence JOIN pages USING (seq) "
    "WHERE fact_evidence.fact = facts.fact ORDER BY occurred_us DESC, seq DESC LIMIT 1), ended_by IS NOT NULL, "
    "(SELECT json_group_array(seq) FROM (SELECT seq FROM fact_evidence WHERE fact_evidence.fact = facts.fact "
    "ORDER BY seq) AS numbered)"
)


def to_fact(row: tuple[Any, ...]) -> Fact:
    """Convert a row of `FACT_COLUMNS` to a fact."""
    fact, about, text, slot, from_, until, utc_offset_s, vector, evidence, is_archived, kind, since, end, *said = row
    learned_by, last_said, is_corrected, pages = said
    last_us, last_seq = json.loads(last_said or "[null, null]")
    return Fact(
        fact=fact,
        about=About(about),
        text=text,
        slot=slot,
        valid_from=from_us(from_, utc_offset_s),
        valid_until=None if until is None else from_us(until, utc_offset_s),
        evidence=tuple(json.loads(evidence)),
        vector=to_vector(vector),
        is_archived=bool(is_archived),
        kind=Kind(kind),
        said_since=since,
        said_until=end,
        learned_by=learned_by,
        last_said=None if last_said is None else (any_time(last_us), last_seq),
        is_corrected=bool(is_corrected),
        pages=tuple(json.loads(pages)),
    )


class FactRows:
    """Converts rows of `FACT_COLUMNS` to facts, with a cache. Safe to share between threads.

    A cache helps because few facts change between two reads.
    """

    def __init__(self) -> None:
        # The hash of a fact's row and the fact itself, by the number of the fact.
        self._known: dict[int, tuple[int, Fact]] = {}

    def facts(self, rows: Iterable[tuple[Any, ...]]) -> list[Fact]:
        """Return the facts for rows of `FACT_COLUMNS`."""
        if len(self._known) > MAX_CACHED_FACTS:
            self._known = {}
        return [self._fact(row) for row in rows]

    def _fact(self, row: tuple[Any, ...]) -> Fact:
        key = hash(row)
        known = self._known.get(row[0])
        if known is None or known[0] != key:
            known = self._known[row[0]] = key, to_fact(row)
        return known[1]


def folded(text: str) -> str:
    """Return the normalised words of a fact's text; two facts with the same words are treated as the same fact."""
    return " ".join(words(text)) or text.casefold()


def to_blob(vector: Vector) -> bytes:
    """Convert a vector to bytes in half precision (float16), which changes cosine similarities by less than 0.001."""
    return vector.astype(np.float16).tobytes()


def to_vector(blob: bytes | None) -> Vector | None:
    """Convert bytes from `to_blob` to a float32 vector; return None for None."""
    return None if blob is None else np.frombuffer(blob, dtype=np.float16).astype(np.float32)


def all_rows(connection: Connection, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
    """Run a query and return all rows."""
    return connection.execute(sql, parameters).fetchall()


def newest_seq(connection: Connection) -> int:
    """Return the ``seq`` of the newest page; 0 if there are no pages."""
    return int(connection.execute(NEWEST_SEQ).get)


def numbers(connection: Connection, sql: str, *parameters: Any) -> list[int]:
    """Run a query and return the first value of each row."""
    return [row[0] for row in connection.execute(sql, parameters)]


def rolled_back(connection: Connection, change: Callable[[], T]) -> T:
    """Call ``change`` inside the caller's transaction, undo its effects on the database, and return its result."""
    connection.execute("SAVEPOINT rehearsal")
    try:
        return change()
    finally:
        connection.execute("ROLLBACK TO rehearsal")
        connection.execute("RELEASE rehearsal")
