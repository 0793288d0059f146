"""Changes to the mid-term memory: chains and segments. The caller opens the transaction."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memoryos_mcp.storage.sql.connection import Connection
from memoryos_mcp.storage.sql.vector_table import drop_segment_vectors, note_change, note_changes, set_segment_vector
from memoryos_mcp.storage.values import ChainPlan, Filing, Learning, SegmentPlan

_LISTED = "(SELECT value FROM json_each(?))"


def add_visits(connection: Connection, visits: Mapping[int, int], at_us: int) -> None:
    """Add visits to segments, and set the time of their last visit to ``at_us`` if the stored time is earlier.

    ``visits`` maps the number of each segment to its number of new visits.
    """
    connection.executemany(
        "UPDATE segments SET n_visit = n_visit + ?1, "
        "last_visit_us = CASE WHEN last_visit_us < ?2 THEN ?2 ELSE last_visit_us END WHERE segment = ?3",
        [(count, at_us, segment) for segment, count in visits.items()],
    )
    note_changes(connection, "segment", visits)


def file_pages(connection: Connection, space: int, filing: Filing, now_us: int) -> bool:
    """Put pages into chains and segments as planned in ``filing``, and return True.

    If ``filing`` is outdated, write nothing and return False; see `Work.commit`.
    """
    pages = json.dumps([seq for plan in filing.segments for seq in plan.pages])
    where = "is_degraded = 1 AND tier = 'mid_term'" if filing.is_redo else "tier = 'backlog'"
    found = connection.execute(f"SELECT count(*) FROM pages WHERE {where} AND seq IN {_LISTED}", (pages,)).get  # noqa: S608 - constants
    if found != sum(len(plan.pages) for plan in filing.segments):
        return False
    previous = _take_out(connection, pages) if filing.is_redo else _Previous()
    for chain_plan in filing.chains:
        _extend_chain(connection, chain_plan)
    for segment_plan in filing.segments:
        _extend_segment(connection, space, segment_plan, previous, now_us)
    connection.execute(
        f"UPDATE pages SET organised_by = ?, is_degraded = ?, attempts = 0 WHERE seq IN {_LISTED}",  # noqa: S608
        (filing.organiser, filing.is_degraded, pages),
    )
    _clear_up(connection, previous)
    return True


@dataclass(frozen=True, slots=True)
class _Previous:
    """The chains and segments from which pages were removed.

    Attributes:
        unread: The ``seq`` of each removed page that must be read for the profile again. The same analyst had organised
            these pages and read them for the profile.
    """

    chains: Sequence[int] = ()
    segments: Sequence[int] = ()
    unread: frozenset[int] = frozenset()


def _take_out(connection: Connection, pages: str) -> _Previous:
    """Remove pages from their chains and segments. Return these chains and segments, and the unread pages.

    A page is marked as unread if the same analyst organised the page and read it for the profile. ``pages`` is a JSON
    list with the ``seq`` of each page.
    """
    sql = f"SELECT seq, chain, segment, is_analysed = 1 AND learned_by = organised_by FROM pages WHERE seq IN {_LISTED}"  # noqa: S608
    rows: list[tuple[Any, ...]] = connection.execute(sql, (pages,)).fetchall()
    connection.execute(
        "UPDATE pages SET chain = NULL, segment = NULL, "  # noqa: S608 - constant
        f"is_analysed = CASE WHEN learned_by <> organised_by THEN is_analysed ELSE 0 END WHERE seq IN {_LISTED}",
        (pages,),
    )
    return _Previous(
        chains=sorted({chain for _, chain, _, _ in rows if chain is not None}),
        segments=sorted({segment for _, _, segment, _ in rows if segment is not None}),
        unread=frozenset(seq for seq, _, _, is_unread in rows if is_unread),
    )


def _clear_up(connection: Connection, previous: _Previous) -> None:
    """Delete the chains and segments in ``previous`` that have no pages left.

    For the other segments, update the page counts, and delete the vectors, which are then computed again.
    """
    for chain in previous.chains:
        connection.execute(
            "DELETE FROM chains WHERE chain = ?1 AND NOT EXISTS (SELECT 1 FROM pages WHERE chain = ?1)", (chain,)
        )
    for segment in previous.segments:
        recount(connection, segment)
        connection.execute("DELETE FROM segments WHERE segment = ? AND page_count = 0", (segment,))
        drop_segment_vectors(connection, segment)
        note_change(connection, "segment", segment)


def _extend_chain(connection: Connection, plan: ChainPlan) -> None:
    chain = plan.chain
    if chain is None:
        chain = connection.execute("INSERT INTO chains (summary) VALUES (?) RETURNING chain", (plan.summary,)).get
    else:
        connection.execute("UPDATE chains SET summary = ? WHERE chain = ?", (plan.summary, chain))
    connection.executemany("UPDATE pages SET chain = ? WHERE seq = ?", [(chain, seq) for seq in plan.pages])


def _extend_segment(connection: Connection, space: int, plan: SegmentPlan, previous: _Previous, now_us: int) -> None:
    segment = plan.segment
    if segment is None:
        segment = connection.execute(
            "INSERT INTO segments (last_visit_us, summariser, keywords, summary) VALUES (?, '', '[]', '') "
            "RETURNING segment",
            (now_us,),
        ).get
    connection.executemany(
        "UPDATE pages SET tier = 'mid_term', segment = ? WHERE seq = ?", [(segment, seq) for seq in plan.pages]
    )
    connection.execute(
        "UPDATE segments SET keywords = ?, summary = ?, summariser = ?, l_interaction = l_interaction + "
        "(SELECT count(*) FROM pages WHERE is_analysed = 0 AND seq IN (SELECT value FROM json_each(?))), "
        "is_due = CASE WHEN ? = 1 THEN 1 ELSE is_due END, is_archived = 0 WHERE segment = ?",
        (
            json.dumps(plan.digest.keywords, ensure_ascii=False),
            plan.digest.summary,
            plan.summariser,
            json.dumps(plan.pages),
            not previous.unread.isdisjoint(plan.pages),
            segment,
        ),
    )
    if plan.vector is not None:
        drop_segment_vectors(connection, segment)
        set_segment_vector(connection, space, segment, plan.vector)
    recount(connection, segment)
    note_change(connection, "segment", segment)


def recount(connection: Connection, segment: int) -> None:
    """Update the stored page counts of a segment."""
    connection.execute(
        "UPDATE segments SET page_count = (SELECT count(*) FROM pages WHERE pages.segment = ?1), "
        "unanalysed_count = (SELECT count(*) FROM pages WHERE pages.segment = ?1 AND is_analysed = 0) "
        "WHERE segment = ?1",
        (segment,),
    )


def archive_segments(connection: Connection, segments: Sequence[int]) -> None:
    """Archive segments, to exclude them from ranking."""
    for segment in segments:
        connection.execute("UPDATE segments SET is_archived = 1 WHERE segment = ?", (segment,))
        note_change(connection, "segment", segment)


def mark_read(connection: Connection, pages: Sequence[int], reader: str) -> None:
    """Record that the analyst ``reader`` has read pages to extract facts."""
    connection.execute(f"UPDATE pages SET read_by = ? WHERE seq IN {_LISTED}", (reader, json.dumps(list(pages))))  # noqa: S608


def mark_analysed(connection: Connection, learning: Learning) -> None:
    """Record that traits were extracted from the pages in ``learning``.

    If any of these pages was not analysed before, the visit counts and interaction lengths of the segments in
    ``learning`` are reset to 0.
    """
    pages = json.dumps(list(learning.pages))
    sql = f"SELECT count(*) FROM pages WHERE is_analysed = 0 AND seq IN {_LISTED}"  # noqa: S608 - constant
    has_new = bool(connection.execute(sql, (pages,)).get)
    connection.execute(
        "UPDATE pages SET is_analysed = 1, learned_by = ?1, attempts = 0, "
        "is_degraded = CASE WHEN ?2 = 1 OR is_degraded = 1 AND coalesce(organised_by = ?3, true) THEN 1 ELSE 0 END "
        "WHERE seq IN (SELECT value FROM json_each(?4))",
        (learning.learner, learning.is_degraded, learning.replaces, pages),
    )
    # The pages may have been moved to other segments since they were read.
    sql = f"SELECT DISTINCT segment FROM pages WHERE segment IS NOT NULL AND seq IN {_LISTED}"  # noqa: S608
    filed_under: list[tuple[Any, ...]] = connection.execute(sql, (pages,)).fetchall()
    for read in sorted({*learning.segments, *(row[0] for row in filed_under)}):
        recount(connection, read)
        connection.execute("UPDATE segments SET is_due = 0 WHERE segment = ? AND unanalysed_count = 0", (read,))
        note_change(connection, "segment", read)
    connection.execute(
        "UPDATE segments SET n_visit = n_visit * ?1, l_interaction = l_interaction * ?1, attempts = 0 "  # noqa: S608
        f"WHERE segment IN {_LISTED.replace('?', '?2')}",
        (not has_new, json.dumps(list(learning.segments))),
    )


def count_page_attempt(connection: Connection, pages: Sequence[int]) -> int:
    """Add 1 to the number of failed attempts to process each page, and return the highest of these numbers."""
    listed = (json.dumps(list(pages)),)
    connection.execute(f"UPDATE pages SET attempts = attempts + 1 WHERE seq IN {_LISTED}", listed)  # noqa: S608
    return int(connection.execute(f"SELECT max(attempts) FROM pages WHERE seq IN {_LISTED}", listed).get or 0)  # noqa: S608


def count_segment_attempt(connection: Connection, segment: int) -> int:
    """Add 1 to the number of failed attempts to process a segment, and return the new number."""
    connection.execute("UPDATE segments SET attempts = attempts + 1 WHERE segment = ?", (segment,))
    return int(connection.execute("SELECT attempts FROM segments WHERE segment = ?", (segment,)).get or 0)


def accept_degraded(connection: Connection, pages: Sequence[int]) -> None:
    """Mark pages as no longer degraded, so that no LLM processes them again."""
    listed = (json.dumps(list(pages)),)
    connection.execute(f"UPDATE pages SET is_degraded = 0, attempts = 0 WHERE seq IN {_LISTED}", listed)  # noqa: S608


def mark_degraded(connection: Connection, worker: str) -> int:
    """Mark the mid-term pages on which an analyst worked as degraded; see `Work.mark_degraded`.

    ``worker`` is the analyst's name. Return the number of degraded pages, including those that were degraded before.
    """
    connection.execute(
        "UPDATE pages SET is_degraded = 1 WHERE tier = 'mid_term' AND (organised_by = ?1 OR learned_by = ?1)", (worker,)
    )
    return int(connection.execute("SELECT count(*) FROM pages WHERE is_degraded = 1").get)
