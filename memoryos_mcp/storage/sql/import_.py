"""Import of the records of an export file. If a file is imported again, no record is added twice."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from memoryos_mcp.model.knowledge import LEARNED_BY_USER
from memoryos_mcp.model.records import (
    FactRecord,
    LongTermRecord,
    NoteRecord,
    PageRecord,
    PastTraitRecord,
    RefusedRecord,
    TraitRecord,
)
from memoryos_mcp.storage.sql import longterm, midterm
from memoryos_mcp.storage.sql.connection import Connection
from memoryos_mcp.storage.sql.mapping import folded
from memoryos_mcp.storage.sql.moments import offset_s, to_us
from memoryos_mcp.storage.sql.page_table import insert_page
from memoryos_mcp.storage.sql.vector_table import note_change
from memoryos_mcp.storage.values import LongTerm, PageBatch


def known_page(connection: Connection, page_id: str | None, key: str | None) -> str | None:
    """Return the id of the stored page with the id ``page_id`` or with the idempotency key ``key``.

    If two pages match, the page with the id ``page_id`` is chosen. If no page matches, return None.
    """
    sql = "SELECT page_id FROM pages WHERE page_id = ?1 UNION ALL SELECT page_id FROM pages WHERE idempotency_key = ?2"
    found = connection.execute(sql, (page_id, key)).fetchone()
    return None if found is None else str(found[0])


def add_pages(connection: Connection, batch: PageBatch) -> dict[str, str]:
    """Add the pages that are not stored yet, with their chains and segments; see `UserData.import_pages`.

    For the pages that were already stored, return a mapping from the id in the export file to the stored id.
    """
    known: dict[str, str] = {}
    segments: set[int] = set()
    sessions_before = _sessions_before(connection, batch.file)
    for page in batch.pages:
        existing = known_page(connection, page.page_id, page.idempotency_key)
        if existing is not None:
            known[page.page_id] = existing
            continue
        chain = None if page.chain is None else _chain(connection, batch, page.chain)
        segment = None if page.segment is None else _segment(connection, batch, page.segment)
        insert_page(connection, page.page_id, page.turn, _other_columns(page, chain, segment, sessions_before))
        segments |= set() if segment is None else {segment}
    for segment in sorted(segments):
        midterm.recount(connection, segment)
        note_change(connection, "segment", segment)
    return known


def _sessions_before(connection: Connection, file: str) -> int:
    """Return the highest session number that was stored before the import of an export file; 0 if there was none.

    This number is added to the session numbers in the export file. It is stored under ``file`` at the first call, so
    that all later calls during the same import return the same number.
    """
    before = _imported(connection, file, "session", 0)
    if before is None:
        before = int(connection.execute("SELECT coalesce(max(session), 0) FROM pages").get)
        _set_imported(connection, file, "session", 0, before)
    return before


def _chain(connection: Connection, batch: PageBatch, number: int) -> int:
    """Store a chain of the export file if it is missing, and return its number in the memory.

    ``number`` is the chain's number in the export file.
    """
    chain = _imported(connection, batch.file, "chain", number)
    if chain is None or connection.execute("SELECT 1 FROM chains WHERE chain = ?", (chain,)).get is None:
        sql = "INSERT INTO chains (summary) VALUES (?) RETURNING chain"
        chain = int(connection.execute(sql, (batch.chains[number].summary,)).get)
        _set_imported(connection, batch.file, "chain", number, chain)
    return chain


def _segment(connection: Connection, batch: PageBatch, number: int) -> int:
    """Store a segment of the export file if it is missing, and return its number in the memory.

    ``number`` is the segment's number in the export file.
    """
    segment = _imported(connection, batch.file, "segment", number)
    if segment is None or connection.execute("SELECT 1 FROM segments WHERE segment = ?", (segment,)).get is None:
        record = batch.segments[number]
        new = connection.execute(
            "INSERT INTO segments (n_visit, l_interaction, last_visit_us, is_archived, is_due, summariser, keywords, "
            "summary) VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING segment",
            (
                record.n_visit,
                record.l_interaction,
                to_us(record.last_visit),
                record.is_archived,
                record.is_due,
                record.summariser,
                json.dumps(record.keywords, ensure_ascii=False),
                record.summary,
            ),
        )
        segment = int(new.get)
        _set_imported(connection, batch.file, "segment", number, segment)
    return segment


def _imported(connection: Connection, file: str, kind: str, number: int) -> int | None:
    """Return a number that was stored with `_set_imported`; None if none was stored.

    For the kinds ``chain`` and ``segment``, ``number`` is the group's number in the export file, and the result is its
    number in this memory. For the kind ``session``, ``number`` is 0, and the result is the highest session number that
    the memory had before the import.
    """
    sql = "SELECT row FROM imports WHERE file = ? AND kind = ? AND number = ?"
    row: int | None = connection.execute(sql, (file, kind, number)).get
    return row


def _set_imported(connection: Connection, file: str, kind: str, number: int, row: int) -> None:
    sql = (
        "INSERT INTO imports (file, kind, number, row) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (file, kind, number) DO UPDATE SET row = excluded.row"
    )
    connection.execute(sql, (file, kind, number, row))


def _other_columns(page: PageRecord, chain: int | None, segment: int | None, sessions_before: int) -> dict[str, Any]:
    """Return the values of the page columns that ``page.turn`` does not contain, by column name.

    ``chain`` and ``segment`` are the numbers under which the page's chain and segment are stored. ``sessions_before``
    is added to the page's session number.
    """
    return {
        "session": sessions_before + page.session,
        "tier": page.tier,
        "chain": chain,
        "segment": segment,
        "is_analysed": page.is_analysed,
        "read_by": page.read_by or (page.learned_by if page.is_analysed else None),
        "added_us": to_us(page.added_at),
        "organised_by": page.organised_by,
        "learned_by": page.learned_by,
        "is_degraded": page.is_degraded,
    }


def add_long_term(connection: Connection, long_term: LongTerm) -> Counter[str]:
    """Add the missing facts, traits and other records, and delete the stored state of the import.

    Return the number of added records of each kind.
    """
    adding = _Adding(connection, long_term)
    new = Counter[str](record.kind for record in long_term.records if adding.add(record))
    adding.link_superseded()
    connection.execute("DELETE FROM imports WHERE file = ?", (long_term.file,))
    return new


class _Adding:
    """Adds the facts, traits and other long-term records of an import, inside the caller's transaction."""

    def __init__(self, connection: Connection, long_term: LongTerm) -> None:
        self._connection = connection
        self._long_term = long_term
        self._facts: dict[int, int] = {}
        self._new_facts: set[int] = set()
        self._is_salted_alike = True

    def add(self, record: LongTermRecord) -> bool:
        """Add a record if it is missing; return whether it was added."""
        match record:
            case FactRecord():
                return self._add_fact(record)
            case TraitRecord():
                return self._add_trait(record)
            case PastTraitRecord():
                return self._add_past_trait(record)
            case NoteRecord():
                return self._add_note(record)
            case RefusedRecord():
                return self._add_refused(record)

    def link_superseded(self) -> None:
        """Link the added facts to the facts that superseded them."""
        for record in self._long_term.records:
            if isinstance(record, FactRecord) and record.superseded_by is not None and record.fact in self._new_facts:
                successor = self._facts[record.superseded_by]
                self._change("UPDATE facts SET superseded_by = ? WHERE fact = ?", successor, self._facts[record.fact])

    def _add_fact(self, record: FactRecord) -> bool:
        words = folded(record.text)
        fact = self._get(
            "SELECT fact FROM facts WHERE about = ?1 AND assistant_id = ?2 AND folded = ?3 "
            "AND (valid_from_us = ?4 OR valid_until_us IS NULL AND ?5 = 1) "
            "ORDER BY CASE WHEN valid_until_us IS NULL THEN 1 ELSE 0 END = ?5 DESC LIMIT 1",
            record.about,
            record.assistant_id,
            words,
            to_us(record.valid_from),
            record.valid_until is None,
        )
        is_new = fact is None
        if fact is None:
            fact = self._insert_fact(record, words)
            self._new_facts.add(record.fact)
        self._facts[record.fact] = fact
        for is_confirming, pages in ((0, record.evidence), (1, record.confirmed_in)):
            for seq in self._seqs(pages):
                self._change(
                    "INSERT INTO fact_evidence (fact, seq, is_confirming) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                    fact,
                    seq,
                    is_confirming,
                )
        note_change(self._connection, "fact", fact)
        return is_new

    def _insert_fact(self, record: FactRecord, words: str) -> int:
        new = self._connection.execute(
            "INSERT INTO facts (about, assistant_id, slot, valid_from_us, valid_until_us, stated_until_us, "
            "utc_offset_s, ended_by, ended_seq, confirmed_us, is_archived, learned_by, kind, said_since, said_until, "
            "folded, text) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING fact",
            (
                record.about,
                record.assistant_id,
                record.slot,
                to_us(record.valid_from),
                None if record.valid_until is None else to_us(record.valid_until),
                None if record.stated_until is None else to_us(record.stated_until),
                offset_s(record.valid_from),
                record.ended_by,
                None if record.ended_after is None else self._seq(record.ended_after),
                to_us(record.confirmed_at),
                record.is_archived,
                record.learned_by,
                record.fact_kind,
                record.said_since,
                record.said_until,
                words,
                record.text,
            ),
        )
        return int(new.get)

    def _add_trait(self, record: TraitRecord) -> bool:
        """Set a trait, unless its current value takes precedence; return whether the trait was set.

        A value set by the user takes precedence over a learned value. Otherwise, the newer value takes precedence. The
        other value is added to the history.
        """
        sql = "SELECT level, reason, updated_us, learned_by FROM traits WHERE dimension = ?"
        current = self._connection.execute(sql, (record.dimension,)).fetchone()
        updated_us = to_us(record.updated_at)
        dimension, level, reason, learner = record.dimension, record.level, record.reason, record.learned_by
        is_new = True
        if current is not None:
            old_level, old_reason, old_us, old_learner = current
            is_new = (old_learner == LEARNED_BY_USER, old_us) < (learner == LEARNED_BY_USER, updated_us)
            if is_new:
                self._add_to_history(dimension, old_level, old_reason, old_us, updated_us)
            elif (old_level, old_reason, old_us) != (level, reason, updated_us):
                self._add_to_history(dimension, level, reason, updated_us, old_us)
        if is_new:
            longterm.set_trait(self._connection, dimension, level, reason, updated_us, learner)
        for seq in self._seqs(record.evidence):
            self._change(
                "INSERT INTO trait_evidence (dimension, seq) VALUES (?, ?) ON CONFLICT DO NOTHING",
                record.dimension,
                seq,
            )
        note_change(self._connection, "profile", 0)
        return is_new

    def _add_past_trait(self, record: PastTraitRecord) -> bool:
        from_us, until_us = to_us(record.held_from), to_us(record.held_until)
        is_new = self._add_to_history(record.dimension, record.level, record.reason, from_us, until_us)
        if is_new:
            self._change(
                "UPDATE trait_history SET ended_by = ?, learned_by = ?, evidence = ? WHERE dimension = ? "
                "AND level = ? AND reason = ? AND held_from_us = ? AND held_until_us = ?",
                record.ended_by,
                record.learned_by,
                json.dumps(self._seqs(record.evidence)),
                record.dimension,
                record.level,
                record.reason,
                from_us,
                until_us,
            )
        return is_new

    def _add_note(self, record: NoteRecord) -> bool:
        is_new = self._change(
            "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT DO NOTHING", record.key, record.value
        )
        self._is_salted_alike &= self._get("SELECT value FROM meta WHERE key = ?", record.key) == record.value
        return is_new

    def _add_refused(self, record: RefusedRecord) -> bool:
        """Add the digest of a fact or trait that must not be learned again; return whether anything was changed.

        If the salts of the export file and the memory differ, nothing is added, because the digest would not match any
        fact or trait.
        """
        until = 0 if record.until is None else self._seq(record.until) or 0
        return self._is_salted_alike and self._change(
            "INSERT INTO refused (digest, until_seq) VALUES (?1, ?2) ON CONFLICT (digest) DO UPDATE SET until_seq = ?2 "
            "WHERE refused.until_seq < ?2",
            bytes.fromhex(record.digest),
            until,
        )

    def _add_to_history(self, dimension: str, level: str, reason: str, from_us: int, until_us: int) -> bool:
        return self._change(
            "INSERT INTO trait_history (dimension, level, reason, held_from_us, held_until_us) "
            "SELECT ?1, ?2, ?3, ?4, ?5 WHERE NOT EXISTS (SELECT 1 FROM trait_history WHERE dimension = ?1 "
            "AND level = ?2 AND reason = ?3 AND held_from_us = ?4 AND held_until_us = ?5)",
            dimension,
            level,
            reason,
            from_us,
            until_us,
        )

    def _seqs(self, pages: Sequence[str]) -> list[int]:
        """Return the ``seq`` of each page in a list of page ids; pages that are not stored are left out."""
        return [seq for page in pages if (seq := self._seq(page)) is not None]

    def _seq(self, page: str) -> int | None:
        name = self._long_term.other_names.get(page, page)
        seq: int | None = self._get("SELECT seq FROM pages WHERE page_id = ?", name)
        return seq

    def _get(self, sql: str, *parameters: Any) -> Any:
        return self._connection.execute(sql, parameters).get

    def _change(self, sql: str, *parameters: Any) -> bool:
        """Run an SQL statement, and return whether it changed a row."""
        return self._get(f"{sql} RETURNING 1", *parameters) is not None
