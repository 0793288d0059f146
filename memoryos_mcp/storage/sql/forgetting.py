"""Deletion of pages, facts and traits, and of everything derived from them. The caller must open the transaction.

Text that was derived from several pages may quote any of them. If one of the pages is deleted, the text is deleted too,
and is later derived again from the remaining pages.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from memoryos_mcp.model.forgotten import ForgetCounts, ForgetPlan, ForgetReceipt, Sample
from memoryos_mcp.model.knowledge import LEARNED_BY_USER
from memoryos_mcp.model.segments import Digest
from memoryos_mcp.storage.sql.blocklist import drop_needless, refuse_fact, refuse_trait
from memoryos_mcp.storage.sql.connection import Connection
from memoryos_mcp.storage.sql.forget_plans import (
    derived,
    forget_epoch,
    has_fact,
    has_trait,
    receipts,
    store_receipt,
    stored_plan,
)
from memoryos_mcp.storage.sql.longterm import delete_trait, drop_facts
from memoryos_mcp.storage.sql.mapping import all_rows, newest_seq, numbers, rolled_back
from memoryos_mcp.storage.sql.midterm import recount
from memoryos_mcp.storage.sql.names import unindex_names
from memoryos_mcp.storage.sql.vector_table import SEQ_BITS, drop_segment_vectors, note_change, page_kind
from memoryos_mcp.storage.values import MissingSummaries, SummaryCursor
from memoryos_mcp.text.terms import words

# Replaces a reason that may quote a deleted page.
REASON_LOST = "Seen in the pages that are left."

_WORD = re.compile(r"[^\W_]+")
_GOING = "(SELECT seq FROM going)"
# Queries for texts that were derived from pages and may quote them. The first column is the key. Facts without evidence
# and facts that the user stated do not quote pages.
_FACTS = (
    f"SELECT fact, text FROM facts WHERE learned_by <> '{LEARNED_BY_USER}' "  # noqa: S608 - constant
    "AND fact IN (SELECT fact FROM fact_evidence)"
)
_REASONS = "SELECT dimension, reason FROM traits UNION ALL SELECT dimension, reason FROM trait_history"
_CHAINS = "SELECT chain, summary FROM chains"
_SEGMENTS = "SELECT segment, summary, keywords FROM segments"


@dataclass(frozen=True, slots=True)
class _Gone:
    """The memories that a plan forgets.

    Attributes:
        pages: The number of pages that are deleted.
        facts: The fact number of each fact that is deleted.
        traits: Dimensions of traits that are deleted.
        changed_traits: Dimensions of other traits, which lose their reason and history.
        segments: The segment number of each segment that is deleted or loses its summary.
    """

    pages: int
    facts: set[int]
    traits: set[str]
    changed_traits: set[str]
    segments: set[int]

    @property
    def counts(self) -> ForgetCounts:
        """The number of memories of each kind."""
        return ForgetCounts(self.pages, len(self.facts), len(self.traits), len(self.changed_traits), len(self.segments))


def dry_run(connection: Connection, plan: ForgetPlan) -> tuple[ForgetCounts, list[Sample]]:
    """Return what a plan would forget: the number of memories of each kind, and samples. Nothing is changed.

    The samples are excerpts of texts that would be deleted because they were derived from pages in the plan.
    """
    gone = rolled_back(connection, lambda: _carry_out(connection, plan))
    if plan.is_all:
        return gone.counts, []
    facts, traits = (plan.facts, plan.traits) if plan.refuses else ((), ())
    lost_traits = gone.traits.difference(traits) | gone.changed_traits
    return gone.counts, derived(connection, gone.facts.difference(facts), lost_traits, gone.segments)


def confirm(connection: Connection, handle: str, now_us: int) -> ForgetReceipt | None:
    """Carry out the plan that was stored under a handle, and return the receipt; see `UserData.forget`.

    If the plan was already carried out, only its receipt is returned. Return None if the plan does not exist or has
    expired.
    """
    known = [receipt for receipt in receipts(connection) if receipt.receipt == handle]
    if known:
        return known[0]
    plan = stored_plan(connection, handle, now_us)
    return None if plan is None else forget(connection, plan, handle, now_us)


def forget(connection: Connection, plan: ForgetPlan, receipt: str, now_us: int) -> ForgetReceipt:
    """Carry out a plan, store a receipt for it, and return the receipt. ``receipt`` is the id of the receipt.

    The current lease on background work ends, so that no process can store results derived from deleted memories.
    """
    counts = _carry_out(connection, plan).counts
    connection.execute("UPDATE lease SET epoch = epoch + 1, holder = '', expires_us = 0")
    return store_receipt(connection, receipt, counts, now_us)


# Missing summaries --------------------------------------------------------------------------------------------------


def missing_summaries(connection: Connection, after: SummaryCursor, limit: int) -> MissingSummaries:
    """Return up to ``limit`` chains and ``limit`` segments without a summary; see `UserData.missing_summaries`."""
    sql = "SELECT chain FROM chains WHERE summary = '' AND chain > ? ORDER BY chain LIMIT ?"
    chains = numbers(connection, sql, after.chain, limit)
    sql = "SELECT segment FROM segments WHERE summariser = '' AND segment > ? ORDER BY segment LIMIT ?"
    segments = numbers(connection, sql, after.segment, limit)
    return MissingSummaries(
        chains=tuple(chains),
        segments=tuple(segments),
        forget_epoch=forget_epoch(connection),
        end=SummaryCursor(max(chains, default=after.chain), max(segments, default=after.segment)),
    )


def set_summaries(connection: Connection, found: MissingSummaries, digests: Sequence[Digest], summariser: str) -> bool:
    """Store new summaries of chains and segments; see `UserData.set_summaries`.

    Return False, without storing anything, if memories were forgotten since ``found`` was read.
    """
    if forget_epoch(connection) != found.forget_epoch:
        return False
    for number, digest in zip(found.chains, digests, strict=False):
        connection.execute("UPDATE chains SET summary = ? WHERE chain = ? AND summary = ''", (digest.summary, number))
    for number, digest in zip(found.segments, digests[len(found.chains) :], strict=True):
        connection.execute(
            "UPDATE segments SET summary = ?, keywords = ?, summariser = ? WHERE segment = ? AND summariser = ''",
            (digest.summary, json.dumps(digest.keywords, ensure_ascii=False), summariser, number),
        )
        note_change(connection, "segment", number)
    return True


# The cascade --------------------------------------------------------------------------------------------------------


def _carry_out(connection: Connection, plan: ForgetPlan) -> _Gone:
    newest = newest_seq(connection)
    pages = _list_pages(connection, plan)
    segments = numbers(connection, f"SELECT DISTINCT segment FROM pages WHERE segment > 0 AND seq IN {_GOING}")  # noqa: S608
    chains = numbers(connection, f"SELECT DISTINCT chain FROM pages WHERE chain > 0 AND seq IN {_GOING}")  # noqa: S608
    if plan.refuses:
        _refuse(connection, plan, newest)
    named_facts = {fact for fact in plan.facts if has_fact(connection, fact)}
    facts = sorted({*named_facts, *_facts_without_evidence(connection)})
    named_traits = {dimension for dimension in plan.traits if has_trait(connection, dimension)}
    traits = sorted({*named_traits, *_traits_without_evidence(connection)})
    changed = {row[0] for row in all_rows(connection, f"SELECT dimension FROM trait_evidence WHERE seq IN {_GOING}")}  # noqa: S608
    again = _remaining_evidence(connection, set(facts) - set(plan.facts if plan.refuses else ()))
    said = _drop_pages(connection)
    _drop_facts(connection, facts, plan)
    _delete_traits(connection, traits)
    _clear_summaries(connection, chains, segments)
    if said:
        # Other texts may quote the pages too, for instance if a page was moved or an LLM did not cite it as evidence.
        lost = _lost_words(connection, said)
        others = _keys_with(connection, _FACTS, lost)
        again |= _remaining_evidence(connection, others)
        _drop_facts(connection, others, plan)
        facts += others
        changed |= set(_keys_with(connection, _REASONS, lost))
        quoting_segments = _keys_with(connection, _SEGMENTS, lost)
        _clear_summaries(connection, _keys_with(connection, _CHAINS, lost), quoting_segments)
        segments += quoting_segments
    _clear_reasons(connection, changed)
    _read_again(connection, again)
    drop_needless(connection)
    return _Gone(pages, set(facts), set(traits), changed - set(traits), set(segments))


def _list_pages(connection: Connection, plan: ForgetPlan) -> int:
    """Fill the table ``going`` with the ``seq`` of each page that a plan deletes. Return the number of these pages."""
    connection.execute("DELETE FROM going")
    connection.executemany("INSERT INTO going SELECT seq FROM pages WHERE seq BETWEEN ? AND ?", plan.runs)
    return int(connection.execute("SELECT count(*) FROM going").get)


def _refuse(connection: Connection, plan: ForgetPlan, newest: int) -> None:
    for fact in plan.facts:
        row = connection.execute("SELECT about, assistant_id, text FROM facts WHERE fact = ?", (fact,)).fetchone()
        if row is not None:
            about, owner, text = row
            refuse_fact(connection, about, owner, text, newest)
    for dimension in plan.traits:
        refuse_trait(connection, dimension, newest)


def _facts_without_evidence(connection: Connection) -> list[int]:
    """Return the numbers of the facts that are stated only in pages of the table ``going``.

    These pages will be deleted. Facts that the user added or confirmed by a correction are left out.
    """
    return numbers(
        connection,
        f"SELECT fact FROM facts WHERE learned_by <> ? AND fact IN (SELECT fact FROM fact_evidence "  # noqa: S608
        f"WHERE seq IN {_GOING}) AND NOT EXISTS (SELECT 1 FROM fact_evidence AS o "
        f"WHERE o.fact = facts.fact AND o.is_confirming = 0 AND o.seq NOT IN {_GOING})",
        LEARNED_BY_USER,
    )


def _traits_without_evidence(connection: Connection) -> list[str]:
    rows = all_rows(
        connection,
        f"SELECT dimension FROM traits WHERE learned_by <> ? AND dimension IN (SELECT dimension FROM trait_evidence "  # noqa: S608
        f"WHERE seq IN {_GOING}) AND NOT EXISTS (SELECT 1 FROM trait_evidence AS o "
        f"WHERE o.dimension = traits.dimension AND o.seq NOT IN {_GOING})",
        LEARNED_BY_USER,
    )
    return [row[0] for row in rows]


def _remaining_evidence(connection: Connection, facts: Sequence[int] | set[int]) -> set[int]:
    """Return the ``seq`` of each page that is evidence for one of the facts and will not be deleted."""
    sql = f"SELECT seq FROM fact_evidence WHERE fact = ? AND seq NOT IN {_GOING}"  # noqa: S608 - constant
    return {seq for fact in facts for seq in numbers(connection, sql, fact)}


def _drop_pages(connection: Connection) -> set[str]:
    """Delete the pages in the table ``going``, their entries in the indexes, and their vectors.

    Return the words of the deleted pages, or an empty set if no page remains.
    """
    said: set[str] = set()
    if connection.execute(f"SELECT EXISTS (SELECT 1 FROM pages WHERE seq NOT IN {_GOING})").get:  # noqa: S608 - constant
        # The texts are read as bytes, because the text of a damaged page may not be valid UTF-8.
        sql = f"SELECT CAST(user_input AS BLOB), CAST(agent_response AS BLOB) FROM pages WHERE seq IN {_GOING}"  # noqa: S608
        for sides in connection.execute(sql):
            said.update(*(_words(side.decode(errors="replace")) for side in sides))
        for user_input, agent_response in all_rows(connection, sql):
            unindex_names(connection, user_input.decode(errors="replace"), agent_response.decode(errors="replace"))
        connection.execute("DELETE FROM names WHERE pages <= 0")
    else:
        connection.execute("DELETE FROM names")
    for (space,) in all_rows(connection, "SELECT space FROM spaces"):
        for seq in numbers(connection, "SELECT seq FROM going"):
            note_change(connection, page_kind(space), seq)
    places = f"SELECT space << {SEQ_BITS} | seq FROM spaces, going"  # noqa: S608 - constant
    connection.execute(f"DELETE FROM page_tokens WHERE place IN ({places})")  # noqa: S608 - constants
    connection.words.remove_going()
    for table, key in (
        ("page_vectors", "seq"),
        ("fact_evidence", "seq"),
        ("trait_evidence", "seq"),
        ("pages", "seq"),
    ):
        connection.execute(f"DELETE FROM {table} WHERE {key} IN {_GOING}")  # noqa: S608 - the names above
    return said


def _drop_facts(connection: Connection, facts: Sequence[int], plan: ForgetPlan) -> None:
    # If a fact is forgotten by its id, the facts that it superseded do not become current again.
    for fact in plan.facts if plan.refuses else ():
        connection.execute("UPDATE facts SET superseded_by = NULL WHERE superseded_by = ?", (fact,))
    drop_facts(connection, facts)


def _delete_traits(connection: Connection, traits: Sequence[str]) -> None:
    for dimension in traits:
        delete_trait(connection, dimension)
        connection.execute("DELETE FROM trait_history WHERE dimension = ?", (dimension,))


def _clear_reasons(connection: Connection, dimensions: set[str]) -> None:
    """Delete the history of the traits in ``dimensions``, and replace their reasons with `REASON_LOST`.

    History and reasons may quote deleted pages. If the user corrected a trait, its reason is not replaced. The history
    of every trait that no longer exists is deleted too, even if ``dimensions`` does not contain it.
    """
    for dimension in dimensions:
        connection.execute(
            "UPDATE traits SET reason = ? WHERE dimension = ? AND learned_by <> ?",
            (REASON_LOST, dimension, LEARNED_BY_USER),
        )
        connection.execute("DELETE FROM trait_history WHERE dimension = ?", (dimension,))
        note_change(connection, "profile", 0)
    connection.execute("DELETE FROM trait_history WHERE dimension NOT IN (SELECT dimension FROM traits)")


def _clear_summaries(connection: Connection, chains: Sequence[int], segments: Sequence[int]) -> None:
    """Delete the summaries of chains and segments, and the vectors of the segments.

    Chains and segments that have no pages left are deleted completely.
    """
    for number in chains:
        connection.execute("UPDATE chains SET summary = '' WHERE chain = ?", (number,))
        connection.execute(
            "DELETE FROM chains WHERE chain = ?1 AND NOT EXISTS (SELECT 1 FROM pages WHERE chain = ?1)", (number,)
        )
    for number in segments:
        recount(connection, number)
        connection.execute(
            "UPDATE segments SET summary = '', keywords = '[]', summariser = '', "
            "l_interaction = CASE WHEN l_interaction < page_count THEN l_interaction ELSE page_count END "
            "WHERE segment = ?",
            (number,),
        )
        connection.execute("DELETE FROM segments WHERE segment = ? AND page_count = 0", (number,))
        drop_segment_vectors(connection, number)
        note_change(connection, "segment", number)


def _lost_words(connection: Connection, said: set[str]) -> frozenset[str]:
    """Return the words that occur in ``said`` and in a derived text, but on no remaining page.

    ``said`` contains the words of the deleted pages. Derived texts are facts, trait reasons and summaries.
    """
    derived: set[str] = set()
    for sql in (_FACTS, _REASONS, _CHAINS, _SEGMENTS):
        for _, *texts in connection.execute(sql):
            derived.update(*map(_words, texts))
    return frozenset(word for word in said & derived if not connection.words.has(word))


def _keys_with(connection: Connection, sql: str, lost: frozenset[str]) -> list[Any]:
    """Run the query ``sql``, and return the key of each row whose text contains one of the words ``lost``.

    The first column of a row is the key. The other columns are the text.
    """
    rows = all_rows(connection, sql)
    return [key for key, *texts in rows if not lost.isdisjoint(_words(" ".join(texts)))]


def _read_again(connection: Connection, pages: set[int]) -> None:
    """Mark pages as unread, so that traits and facts are extracted from them again."""
    listed = json.dumps(sorted(pages))
    here = "seq IN (SELECT value FROM json_each(?)) AND tier = 'mid_term'"
    segments = numbers(connection, f"SELECT DISTINCT segment FROM pages WHERE {here}", listed)  # noqa: S608 - constant
    connection.execute(f"UPDATE pages SET is_analysed = 0 WHERE {here}", (listed,))  # noqa: S608
    connection.execute("UPDATE pages SET read_by = NULL WHERE seq IN (SELECT value FROM json_each(?))", (listed,))
    for segment in segments:
        recount(connection, segment)
        connection.execute("UPDATE segments SET is_due = 1 WHERE segment = ?", (segment,))
        note_change(connection, "segment", segment)


def _words(text: str) -> list[str]:
    """Return the words of ``text`` in lower case.

    If ``text`` is not ASCII, the words that `text.terms.words` returns are added.
    """
    plain = _WORD.findall(text.lower())
    return plain if text.isascii() else [*plain, *words(text)]
