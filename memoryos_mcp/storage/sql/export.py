"""Export of a memory as a stream of records. Exporting needs little RAM, even for a large memory."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from memoryos_mcp.model.knowledge import About, Kind
from memoryos_mcp.model.pages import storable
from memoryos_mcp.model.profile import Level
from memoryos_mcp.model.records import (
    ChainRecord,
    FactRecord,
    NoteRecord,
    PageRecord,
    PastTraitRecord,
    Record,
    RefusedRecord,
    SegmentRecord,
    TraitRecord,
    turn_values,
)
from memoryos_mcp.storage.sql.connection import Connection
from memoryos_mcp.storage.sql.copying import ORIGIN_KEY
from memoryos_mcp.storage.sql.mapping import PAGE_COLUMNS, to_page
from memoryos_mcp.storage.sql.moments import from_us
from memoryos_mcp.storage.sql.retention import WATCHED_KEY

DAMAGED_MARK = "[This text is damaged: a disk has changed it.]"

# Chains and segments are numbered in the order of their first pages. The numbers are therefore the same if an export is
# imported and then exported again.
_CHAINS = (
    "SELECT chain, summary FROM chains JOIN (SELECT chain, min(seq) AS first FROM pages WHERE chain IS NOT NULL "
    "GROUP BY chain) AS begins USING (chain) ORDER BY first"
)
_SEGMENTS = (
    "SELECT segment, keywords, summary, summariser, n_visit, l_interaction, last_visit_us, is_archived, is_due "
    "FROM segments JOIN (SELECT segment, min(seq) AS first FROM pages WHERE segment IS NOT NULL GROUP BY segment) "
    "AS begins USING (segment) ORDER BY first"
)
_PAGES = (
    "SELECT added_us, is_analysed, is_degraded, CAST(user_input AS BLOB), CAST(agent_response AS BLOB), "  # noqa: S608
    f"{PAGE_COLUMNS} FROM pages ORDER BY seq"
)
_FACTS = (
    "SELECT fact, about, assistant_id, text, slot, valid_from_us, valid_until_us, stated_until_us, utc_offset_s, "
    "superseded_by, ended_by, (SELECT page_id FROM pages WHERE seq <= ended_seq ORDER BY seq DESC LIMIT 1), "
    "confirmed_us, is_archived, learned_by, kind, said_since, said_until FROM facts ORDER BY fact"
)
_FACT_EVIDENCE = "SELECT page_id, is_confirming FROM fact_evidence JOIN pages USING (seq) WHERE fact = ? ORDER BY seq"
_TRAITS = "SELECT dimension, level, reason, updated_us, learned_by FROM traits ORDER BY dimension"
_TRAIT_EVIDENCE = "SELECT page_id FROM trait_evidence JOIN pages USING (seq) WHERE dimension = ? ORDER BY seq"
_PAST_TRAITS = (
    "SELECT dimension, level, reason, held_from_us, held_until_us, ended_by, learned_by, "
    "(SELECT json_group_array(page_id) FROM (SELECT page_id FROM pages WHERE seq IN "
    "(SELECT value FROM json_each(evidence)) ORDER BY seq) AS listed) FROM trait_history "
    "ORDER BY held_from_us, dimension, held_until_us, level, reason"
)
_NOT_EXPORTED = f"('user_id', '{WATCHED_KEY}', '{ORIGIN_KEY}')"
_NOTES = f"SELECT key, value FROM meta WHERE key NOT IN {_NOT_EXPORTED} ORDER BY key"  # noqa: S608 - constants
_REFUSED = (
    "SELECT digest, (SELECT page_id FROM pages WHERE seq <= until_seq ORDER BY seq DESC LIMIT 1) FROM refused "
    "ORDER BY digest"
)


def project_records(connection: Connection, project: str) -> Iterator[Record]:
    """Yield the records of a project: its pages, their chains and segments, and the facts that these pages state.

    The evidence of a fact includes only pages of the project.
    """

    def within(sql: str) -> str:
        for name in ("FROM", "JOIN"):
            sql = sql.replace(f"{name} pages", f"{name} (SELECT * FROM pages WHERE project = ?1) AS pages")  # noqa: S608 - constants
        return sql

    chains = {row[0]: place for place, row in enumerate(connection.execute(within(_CHAINS), (project,)), start=1)}
    segments = {row[0]: place for place, row in enumerate(connection.execute(within(_SEGMENTS), (project,)), start=1)}
    for chain, summary in connection.execute(within(_CHAINS), (project,)):
        yield ChainRecord(kind="chain", chain=chains[chain], summary=summary)
    for segment, *rest in connection.execute(within(_SEGMENTS), (project,)):
        yield _segment(segments[segment], rest)
    for row in connection.execute(within(_PAGES), (project,)):
        yield _page(row, chains, segments)
    stated = within("SELECT DISTINCT fact FROM fact_evidence JOIN pages USING (seq)")
    facts_sql = within(_FACTS).replace("FROM facts", f"FROM facts WHERE fact IN ({stated})")
    rows = connection.execute(facts_sql, (project,)).fetchall()
    facts = {row[0]: place for place, row in enumerate(rows, start=1)}
    evidence_sql = within(_FACT_EVIDENCE).replace("fact = ?", "fact = ?2")
    for row in rows:
        evidence = connection.execute(evidence_sql, (project, row[0])).fetchall()
        yield _fact(evidence, row, facts)


def records(connection: Connection) -> Iterator[Record]:
    """Yield the records of a memory in the order of the export file. Vectors and indexes are not included."""
    chains = _numbered(connection, "SELECT chain", _CHAINS)
    segments = _numbered(connection, "SELECT segment", _SEGMENTS)
    for chain, summary in connection.execute(_CHAINS):
        yield ChainRecord(kind="chain", chain=chains[chain], summary=summary)
    for segment, *rest in connection.execute(_SEGMENTS):
        yield _segment(segments[segment], rest)
    for row in connection.execute(_PAGES):
        yield _page(row, chains, segments)
    facts = _numbered(connection, "SELECT fact", _FACTS)
    for row in connection.execute(_FACTS):
        yield _fact(connection.execute(_FACT_EVIDENCE, (row[0],)).fetchall(), row, facts)
    yield from _profile(connection)
    for key, value in connection.execute(_NOTES):
        yield NoteRecord(kind="note", key=key, value=value)
    for digest, until in connection.execute(_REFUSED):
        yield RefusedRecord(kind="refused", digest=digest.hex(), until=until)


def _numbered(connection: Connection, select: str, sql: str) -> dict[int, int]:
    """Return a mapping from the stored number of each row that ``sql`` finds to the row's position, from 1.

    ``select`` chooses the column with the stored number, such as "SELECT chain".
    """
    rows = connection.execute(f"{select} FROM ({sql}) AS ordered")
    return {row[0]: place for place, row in enumerate(rows, start=1)}


def _segment(number: int, row: Sequence[Any]) -> SegmentRecord:
    keywords, summary, summariser, n_visit, l_interaction, last_visit_us, is_archived, is_due = row
    return SegmentRecord(
        kind="segment",
        segment=number,
        keywords=tuple(json.loads(keywords)),
        summary=summary,
        summariser=summariser,
        n_visit=n_visit,
        l_interaction=l_interaction,
        last_visit=from_us(last_visit_us),
        is_archived=bool(is_archived),
        is_due=bool(is_due),
    )


def _page(row: Sequence[Any], chains: dict[int, int], segments: dict[int, int]) -> PageRecord:
    added_us, is_analysed, is_degraded, user_input, agent_response, *columns = row
    page = to_page(columns)
    if page.is_damaged:
        page = replace(page, user_input=_salvaged(user_input), agent_response=_salvaged(agent_response))
    return PageRecord(
        kind="page",
        page_id=page.page_id,
        session=page.session,
        tier=page.tier,
        chain=None if page.chain is None else chains[page.chain],
        segment=None if page.segment is None else segments[page.segment],
        added_at=from_us(added_us),
        is_analysed=bool(is_analysed),
        read_by=page.read_by,
        organised_by=page.organised_by,
        learned_by=page.learned_by,
        is_degraded=bool(is_degraded),
        **turn_values(page),
    )


def _salvaged(side: bytes) -> str:
    """Return the text of a damaged page with `DAMAGED_MARK` in front. Bytes that cannot be decoded are replaced.

    Damaged text is exported because the user may have no other copy of the text.
    """
    return f"{DAMAGED_MARK} {storable(side.decode(errors='replace'))}" if side else ""


def _fact(evidence: Sequence[tuple[Any, ...]], row: Sequence[Any], facts: dict[int, int]) -> FactRecord:
    fact, about, assistant_id, text, slot, from_us_, until_us, stated_us, offset_s, superseded_by, *rest = row
    ended_by, ended_after, confirmed_us, is_archived, learned_by, kind, since, end = rest
    return FactRecord(
        kind="fact",
        fact=facts[fact],
        about=About(about),
        assistant_id=assistant_id,
        text=text,
        slot=slot,
        valid_from=from_us(from_us_, offset_s),
        valid_until=_optional(until_us, offset_s),
        stated_until=_optional(stated_us, offset_s),
        superseded_by=None if superseded_by is None else facts.get(superseded_by),
        ended_by=ended_by,
        ended_after=ended_after,
        confirmed_at=from_us(confirmed_us),
        is_archived=bool(is_archived),
        learned_by=learned_by,
        fact_kind=Kind(kind),
        said_since=since,
        said_until=end,
        evidence=tuple(page_id for page_id, is_confirming in evidence if not is_confirming),
        confirmed_in=tuple(page_id for page_id, is_confirming in evidence if is_confirming),
    )


def _optional(us: int | None, offset_s: int) -> datetime | None:
    return None if us is None else from_us(us, offset_s)


def _profile(connection: Connection) -> Iterator[Record]:
    for dimension, level, reason, updated_us, learned_by in connection.execute(_TRAITS):
        yield TraitRecord(
            kind="trait",
            dimension=dimension,
            level=Level(level),
            reason=reason,
            updated_at=from_us(updated_us),
            learned_by=learned_by,
            evidence=tuple(page_id for (page_id,) in connection.execute(_TRAIT_EVIDENCE, (dimension,))),
        )
    for dimension, level, reason, held_from_us, held_until_us, *rest in connection.execute(_PAST_TRAITS):
        ended_by, learned_by, evidence = rest
        yield PastTraitRecord(
            kind="past_trait",
            dimension=dimension,
            level=Level(level),
            reason=reason,
            held_from=from_us(held_from_us),
            held_until=from_us(held_until_us),
            ended_by=ended_by,
            learned_by=learned_by,
            evidence=tuple(json.loads(evidence)),
        )
