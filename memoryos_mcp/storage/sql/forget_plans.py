"""Builds, stores and reads plans and receipts for forgetting memories. The module `forgetting` carries out plans."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from itertools import chain

from memoryos_mcp.model.forgotten import SAMPLE_CHARS, ForgetCounts, ForgetPlan, ForgetReceipt, Sample, runs
from memoryos_mcp.model.ids import Kind, MemoryId, not_there
from memoryos_mcp.storage.sql.connection import Connection
from memoryos_mcp.storage.sql.longterm import find_dimension
from memoryos_mcp.storage.sql.mapping import PAGE_COLUMNS, all_rows, newest_seq, numbers, to_page
from memoryos_mcp.storage.sql.moments import from_us

FORGET_EPOCH = "SELECT count(*) FROM forget_receipts"
SAMPLES = 10
# Later than any time that a page can have, in microseconds.
LATEST_US = 1 << 62


# Building plans -----------------------------------------------------------------------------------------------------


def pages_between(
    connection: Connection, from_us: int | None, before_us: int | None, project: str | None = None
) -> list[int]:
    """Return the ``seq`` of each page whose dialogue took place in a period, in one project or in all.

    The period includes its start ``from_us``, but not its end ``before_us``. Both are in microseconds since 1970, and
    None means no limit.
    """
    sql = (
        "SELECT seq FROM pages WHERE occurred_us >= coalesce(?1, occurred_us) AND occurred_us < coalesce(?2, ?3) "
        "AND (?4 IS NULL OR project = ?4) ORDER BY seq"
    )
    return numbers(connection, sql, from_us, before_us, LATEST_US, project)


def has_fact(connection: Connection, fact: int) -> bool:
    """Return whether a fact with this number exists."""
    return bool(connection.execute("SELECT EXISTS (SELECT 1 FROM facts WHERE fact = ?)", (fact,)).get)


def has_trait(connection: Connection, dimension: str) -> bool:
    """Return whether a trait with this dimension exists."""
    return bool(connection.execute("SELECT EXISTS (SELECT 1 FROM traits WHERE dimension = ?)", (dimension,)).get)


def named(connection: Connection, ids: Sequence[MemoryId]) -> ForgetPlan:
    """Return a plan to forget the memories with these ids.

    Raises:
        ArgumentError: A memory does not exist.
    """
    seqs: set[int] = set()
    facts: set[int] = set()
    traits: set[str] = set()
    missing: list[MemoryId] = []
    for each in ids:
        if each.kind is Kind.FACT and has_fact(connection, each.number):
            facts.add(each.number)
        elif each.kind is Kind.TRAIT and (dimension := find_dimension(connection, each.name)):
            traits.add(dimension)
        elif found := _pages(connection, each):
            seqs.update(found)
        else:
            missing.append(each)
    if missing:
        raise not_there(missing)
    return ForgetPlan(runs(sorted(seqs)), tuple(sorted(facts)), tuple(sorted(traits)), refuses=True)


def _pages(connection: Connection, named: MemoryId) -> list[int]:
    match named.kind:
        case Kind.SEGMENT | Kind.CHAIN:
            return numbers(connection, f"SELECT seq FROM pages WHERE {named.kind} = ?", named.number)  # noqa: S608 - literals
        case Kind.PAGE:
            return numbers(connection, "SELECT seq FROM pages WHERE page_id = ?", named.name)
        case _:
            return []


def everything(connection: Connection) -> ForgetPlan:
    """Return a plan to forget all memories that exist now."""
    newest = newest_seq(connection)
    return ForgetPlan(
        runs=((1, newest),) if newest else (),
        facts=tuple(numbers(connection, "SELECT fact FROM facts ORDER BY fact")),
        traits=tuple(row[0] for row in all_rows(connection, "SELECT dimension FROM traits ORDER BY dimension")),
        is_all=True,
    )


def samples(connection: Connection, plan: ForgetPlan) -> list[Sample]:
    """Return excerpts of up to `SAMPLES` memories in a plan.

    Facts come first, then traits, then pages. Facts and traits are included only if the plan prevents them from being
    learned again (``plan.refuses``).
    """
    shown: list[Sample] = []
    if plan.refuses:
        shown += _excerpts(connection, _FACT, plan.facts[:SAMPLES])
        shown += _excerpts(connection, _TRAIT, plan.traits[:SAMPLES])
    sql = f"SELECT {PAGE_COLUMNS} FROM pages WHERE seq BETWEEN ? AND ? ORDER BY seq LIMIT ?"  # noqa: S608 - constant
    for first, last in plan.runs[:SAMPLES]:
        pages = map(to_page, all_rows(connection, sql, first, last, SAMPLES))
        shown += [Sample(page.page_id, page.occurred_at, page.text.strip("\n")[:SAMPLE_CHARS]) for page in pages]
    return shown[:SAMPLES]


def derived(connection: Connection, facts: set[int], traits: set[str], segments: set[int]) -> list[Sample]:
    """Return excerpts of facts, trait reasons and segment summaries; up to `SAMPLES` of each kind."""
    return [
        *_excerpts(connection, _FACT, sorted(facts)[:SAMPLES]),
        *_excerpts(connection, _TRAIT, sorted(traits)[:SAMPLES]),
        *_excerpts(connection, _SEGMENT, sorted(segments)[:SAMPLES]),
    ]


_FACT = "SELECT 'k' || fact, valid_from_us, utc_offset_s, text FROM facts WHERE fact = ?"
_TRAIT = "SELECT 'trait:' || dimension, updated_us, 0, reason FROM traits WHERE dimension = ?"
_SEGMENT = "SELECT 's' || segment, last_visit_us, 0, summary FROM segments WHERE segment = ?"


def _excerpts(connection: Connection, sql: str, keys: Sequence[int] | Sequence[str]) -> list[Sample]:
    rows = chain.from_iterable(all_rows(connection, sql, key) for key in keys)
    return [Sample(name, from_us(at_us, offset), text[:SAMPLE_CHARS]) for name, at_us, offset, text in rows]


# Storing plans and receipts ----------------------------------------------------------------------------------------


def store_plan(connection: Connection, plan: ForgetPlan, handle: str, now_us: int, expires_us: int) -> None:
    """Store a plan under a handle, and delete expired plans."""
    connection.execute("DELETE FROM forget_plans WHERE expires_us <= ?", (now_us,))
    connection.execute(
        "INSERT INTO forget_plans (handle, expires_us, plan) VALUES (?, ?, ?)", (handle, expires_us, plan.to_json())
    )


def stored_plan(connection: Connection, handle: str, now_us: int) -> ForgetPlan | None:
    """Return the plan that was stored under a handle, or None if it does not exist or has expired."""
    sql = "SELECT plan FROM forget_plans WHERE handle = ? AND expires_us > ?"
    plan = connection.execute(sql, (handle, now_us)).get
    return None if plan is None else ForgetPlan.from_json(plan)


def store_receipt(connection: Connection, receipt: str, counts: ForgetCounts, now_us: int) -> ForgetReceipt:
    """Store a receipt for the plan that was just carried out, and return the receipt.

    This plan is deleted. Other plans are deleted too if they contain a trait that no longer exists.
    """
    traits = {row[0] for row in all_rows(connection, "SELECT dimension FROM traits")}
    for handle, plan in all_rows(connection, "SELECT handle, plan FROM forget_plans"):
        if handle == receipt or not traits.issuperset(ForgetPlan.from_json(plan).traits):
            connection.execute("DELETE FROM forget_plans WHERE handle = ?", (handle,))
    connection.execute(
        "INSERT INTO forget_receipts (receipt, at_us, counts) VALUES (?, ?, ?)",
        (receipt, now_us, json.dumps(asdict(counts))),
    )
    return ForgetReceipt(receipt, from_us(now_us), counts, is_scrubbed=False)


def receipts(connection: Connection) -> list[ForgetReceipt]:
    """Return all receipts, the oldest first."""
    sql = "SELECT receipt, at_us, counts, is_scrubbed FROM forget_receipts ORDER BY at_us, receipt"
    return [
        ForgetReceipt(receipt, from_us(at_us), ForgetCounts(**json.loads(counts)), bool(is_scrubbed))
        for receipt, at_us, counts, is_scrubbed in all_rows(connection, sql)
    ]


def forget_epoch(connection: Connection) -> int:
    """Return the forget epoch: the number of times that something was forgotten."""
    return int(connection.execute(FORGET_EPOCH).get)


def unpurged(connection: Connection) -> list[str]:
    """Return the ids of the receipts that are not marked as purged.

    The content that these receipts report as forgotten may still be on the disk.
    """
    return [row[0] for row in all_rows(connection, "SELECT receipt FROM forget_receipts WHERE is_scrubbed = 0")]


def mark_purged(connection: Connection, names: Sequence[str]) -> None:
    """Mark the receipts with the ids ``names`` as purged.

    Call this function only after `Database.purge` has returned True.
    """
    connection.executemany("UPDATE forget_receipts SET is_scrubbed = 1 WHERE receipt = ?", [(name,) for name in names])
