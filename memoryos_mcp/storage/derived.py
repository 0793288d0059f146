"""Background writes: what consolidation and promotion change, each inside one transaction of its caller."""

import json
from collections.abc import Callable, Mapping, Sequence

import apsw

from memoryos_mcp.errors import LeaseLostError
from memoryos_mcp.knowledge import About, AddFact, ConfirmFact, KnowledgeChange, Lessons
from memoryos_mcp.pages import Window
from memoryos_mcp.profile import Level, Trait, TraitChange
from memoryos_mcp.segments import Vector
from memoryos_mcp.storage import ChainPlan, Lease, SegmentPlan
from memoryos_mcp.storage.rows import from_us, offset_s, to_blob, to_us
from memoryos_mcp.terms import words

# A holder that commits is alive: each commit puts the end of its lease off by this much.
LEASE_EXTENSION_US = 15_000_000
LONGEST_LEASE_US = 300_000_000


def note_change(connection: apsw.Connection, kind: str, row: int) -> None:
    """Put a row at the end of the change sequence, where every process looks for what is new."""
    connection.execute("INSERT INTO changes (kind, row) VALUES (?, ?)", (kind, row))


# Lease -------------------------------------------------------------------------------------------------------------


def take_lease(connection: apsw.Connection, holder: str, now_us: int, ttl_us: int) -> Lease | None:
    """Take or renew the lease; None while another holder's has not run out."""
    current, epoch, expires_us = connection.execute("SELECT holder, epoch, expires_us FROM lease").get
    # An end beyond any lease's length was written by a clock that ran ahead; it must not hold up the work until then.
    if current not in {"", holder} and now_us < expires_us <= now_us + LONGEST_LEASE_US:
        return None
    if current != holder:
        epoch += 1
    connection.execute("UPDATE lease SET holder = ?, epoch = ?, expires_us = ?", (holder, epoch, now_us + ttl_us))
    return Lease(epoch=epoch)


def check_lease(connection: apsw.Connection, holder: str, lease: Lease, now_us: int) -> None:
    """Make sure that no other process has taken over, and put the end off: whoever commits is alive.

    Raises:
        LeaseLostError: The lease is another's.
    """
    current, epoch, expires_us = connection.execute("SELECT holder, epoch, expires_us FROM lease").get
    if (current, epoch) != (holder, lease.epoch):
        msg = "another process does this user's background work now; what was computed here was dropped"
        raise LeaseLostError(msg)
    connection.execute("UPDATE lease SET expires_us = ?", (max(expires_us, now_us + LEASE_EXTENSION_US),))


def release_lease(connection: apsw.Connection, holder: str, lease: Lease) -> None:
    """Give the lease back, if it is still this holder's."""
    connection.execute(
        "UPDATE lease SET holder = '', expires_us = 0 WHERE holder = ? AND epoch = ?", (holder, lease.epoch)
    )


# Vectors -----------------------------------------------------------------------------------------------------------


def set_page_vectors(connection: apsw.Connection, space: int, windows: Mapping[int, Sequence[Window]]) -> None:
    """Set the space's vectors of pages."""
    for seq, parts in windows.items():
        connection.execute("DELETE FROM page_vectors WHERE space = ? AND seq = ?", (space, seq))
        connection.executemany(
            "INSERT INTO page_vectors (space, seq, part, start_char, end_char, vector) VALUES (?, ?, ?, ?, ?, ?)",
            [(space, seq, part, w.start, w.end, to_blob(w.vector)) for part, w in enumerate(parts)],
        )
        connection.execute("UPDATE pages SET space = ? WHERE seq = ?", (space, seq))
        note_change(connection, "page", seq)


def set_fact_vectors(connection: apsw.Connection, space: int, vectors: Mapping[int, Vector]) -> None:
    """Set the space's vectors of facts."""
    for fact, vector in vectors.items():
        connection.execute("UPDATE facts SET space = ?, vector = ? WHERE fact = ?", (space, to_blob(vector), fact))
        note_change(connection, "fact", fact)


def set_segment_vectors(connection: apsw.Connection, space: int, vectors: Mapping[int, Vector]) -> None:
    """Set the space's vectors of segments."""
    for segment, vector in vectors.items():
        connection.execute(
            "UPDATE segments SET space = ?, vector = ? WHERE segment = ?", (space, to_blob(vector), segment)
        )
        note_change(connection, "segment", segment)


# Mid-term ----------------------------------------------------------------------------------------------------------


def add_visits(connection: apsw.Connection, visits: Mapping[int, int], at_us: int) -> None:
    """Count retrievals of segments."""
    for segment, count in visits.items():
        connection.execute(
            "UPDATE segments SET n_visit = n_visit + ?, last_visit_us = max(last_visit_us, ?) WHERE segment = ?",
            (count, at_us, segment),
        )
        note_change(connection, "segment", segment)


def consolidate(
    connection: apsw.Connection,
    space: int,
    chains: Sequence[ChainPlan],
    segments: Sequence[SegmentPlan],
    now_us: int,
) -> bool:
    """File backlog pages under chains and segments; False, with nothing written, if one is no longer there."""
    pages = [seq for plan in segments for seq in plan.pages]
    waiting = connection.execute(
        "SELECT count(*) FROM pages WHERE tier = 'backlog' AND seq IN (SELECT value FROM json_each(?))",
        (json.dumps(pages),),
    ).get
    if waiting != len(pages):
        return False
    for chain_plan in chains:
        _extend_chain(connection, chain_plan)
    for segment_plan in segments:
        _extend_segment(connection, space, segment_plan, now_us)
    return True


def _extend_chain(connection: apsw.Connection, plan: ChainPlan) -> None:
    chain = plan.chain
    if chain is None:
        connection.execute("INSERT INTO chains (summary) VALUES (?)", (plan.summary,))
        chain = connection.last_insert_rowid()
    else:
        connection.execute("UPDATE chains SET summary = ? WHERE chain = ?", (plan.summary, chain))
    connection.executemany("UPDATE pages SET chain = ? WHERE seq = ?", [(chain, seq) for seq in plan.pages])


def _extend_segment(connection: apsw.Connection, space: int, plan: SegmentPlan, now_us: int) -> None:
    segment = plan.segment
    if segment is None:
        connection.execute(
            "INSERT INTO segments (last_visit_us, summariser, keywords, summary) VALUES (?, '', '[]', '')", (now_us,)
        )
        segment = connection.last_insert_rowid()
    connection.execute(
        "UPDATE segments SET keywords = ?, summary = ?, summariser = ?, space = coalesce(?, space), "
        "vector = coalesce(?, vector), "
        "page_count = page_count + ?6, unanalysed_count = unanalysed_count + ?6, l_interaction = l_interaction + ?6, "
        "is_archived = 0 WHERE segment = ?7",
        (
            json.dumps(plan.digest.keywords, ensure_ascii=False),
            plan.digest.summary,
            plan.summariser,
            None if plan.vector is None else space,
            None if plan.vector is None else to_blob(plan.vector),
            len(plan.pages),
            segment,
        ),
    )
    connection.executemany(
        "UPDATE pages SET tier = 'mid_term', segment = ? WHERE seq = ?", [(segment, seq) for seq in plan.pages]
    )
    note_change(connection, "segment", segment)


def archive_segments(connection: apsw.Connection, segments: Sequence[int]) -> None:
    """Take segments out of the scored mid-term memory."""
    for segment in segments:
        connection.execute("UPDATE segments SET is_archived = 1 WHERE segment = ?", (segment,))
        note_change(connection, "segment", segment)


def mark_analysed(connection: apsw.Connection, segment: int, pages: Sequence[int]) -> None:
    """Mark pages as read for profile and knowledge; the segment's counters return to 0."""
    connection.executemany("UPDATE pages SET is_analysed = 1 WHERE seq = ?", [(seq,) for seq in pages])
    connection.execute(
        "UPDATE segments SET n_visit = 0, l_interaction = 0, unanalysed_count = "
        "(SELECT count(*) FROM pages WHERE pages.segment = segments.segment AND is_analysed = 0) WHERE segment = ?",
        (segment,),
    )
    note_change(connection, "segment", segment)


# Long-term ---------------------------------------------------------------------------------------------------------


def traits(connection: apsw.Connection) -> list[Trait]:
    """Return the profile, by dimension."""
    rows = connection.execute(
        "SELECT dimension, level, reason, updated_us, (SELECT json_group_array(page_id) FROM "
        "(SELECT page_id FROM trait_evidence JOIN pages USING (seq) "
        "WHERE trait_evidence.dimension = traits.dimension ORDER BY seq)) FROM traits ORDER BY dimension"
    )
    return [
        Trait(
            dimension=dimension,
            level=Level(level),
            reason=reason,
            evidence=tuple(json.loads(evidence)),
            updated_at=from_us(updated_us),
        )
        for dimension, level, reason, updated_us, evidence in rows
    ]


def is_current(
    connection: apsw.Connection, lessons: Lessons, known: Sequence[Trait], owner: Callable[[About], str]
) -> bool:
    """Whether what the lessons were computed from still stands.

    Their traits are unchanged, the facts they name are in force, and no fact that they did not know of answers what
    one of theirs answers.
    """
    seen = {trait.dimension: to_us(trait.updated_at) for trait in known}
    for change in lessons.traits:
        sql = "SELECT updated_us FROM traits WHERE dimension = ?"
        if connection.execute(sql, (change.dimension,)).get != seen.get(change.dimension):
            return False
    needed = {fact for change in lessons.knowledge for fact in _named_facts(change)}
    in_force = connection.execute(
        "SELECT count(*) FROM facts WHERE valid_until_us IS NULL AND fact IN (SELECT value FROM json_each(?))",
        (json.dumps(sorted(needed)),),
    ).get
    added = [change for change in lessons.knowledge if isinstance(change, AddFact) and change.slot is not None]
    return bool(in_force == len(needed)) and all(_is_alone(connection, change, owner) for change in added)


def _is_alone(connection: apsw.Connection, change: AddFact, owner: Callable[[About], str]) -> bool:
    """Whether every fact in force with a new fact's slot is one that it supersedes."""
    rows = connection.execute(
        "SELECT fact FROM facts WHERE about = ? AND assistant_id = ? AND slot = ? AND valid_until_us IS NULL "
        "AND is_archived = 0",
        (change.about, owner(change.about), change.slot),
    )
    return {fact for (fact,) in rows} <= set(change.supersedes)


def _named_facts(change: KnowledgeChange) -> tuple[int, ...]:
    return (change.fact,) if isinstance(change, ConfirmFact) else change.supersedes


def set_traits(connection: apsw.Connection, changes: Sequence[TraitChange], now_us: int) -> None:
    """Set the named traits and keep what they replace as history."""
    for change in changes:
        connection.execute(
            "INSERT INTO trait_history SELECT dimension, level, reason, updated_us, ? FROM traits WHERE dimension = ?",
            (now_us, change.dimension),
        )
        connection.execute(
            "INSERT INTO traits VALUES (?, ?, ?, ?) ON CONFLICT (dimension) DO UPDATE SET "
            "level = excluded.level, reason = excluded.reason, updated_us = excluded.updated_us",
            (change.dimension, change.level, change.reason, now_us),
        )
        connection.executemany(
            "INSERT INTO trait_evidence VALUES (?, ?) ON CONFLICT DO NOTHING",
            [(change.dimension, seq) for seq in change.evidence],
        )
    if changes:
        note_change(connection, "profile", 0)


def change_knowledge(
    connection: apsw.Connection,
    changes: Sequence[KnowledgeChange],
    owner: Callable[[About], str],
    now_us: int,
) -> None:
    """Add, supersede and confirm facts; a fact that is there already is confirmed, never kept twice."""
    for change in changes:
        fact = change.fact if isinstance(change, ConfirmFact) else _add_fact(connection, change, owner, now_us)
        connection.executemany(
            "INSERT INTO fact_evidence VALUES (?, ?) ON CONFLICT DO NOTHING", [(fact, seq) for seq in change.evidence]
        )
        connection.execute("UPDATE facts SET confirmed_us = ?, is_archived = 0 WHERE fact = ?", (now_us, fact))
        note_change(connection, "fact", fact)


def _add_fact(connection: apsw.Connection, change: AddFact, owner: Callable[[About], str], now_us: int) -> int:
    folded = " ".join(words(change.text)) or change.text.casefold()
    assistant_id = owner(change.about)
    valid_from_us = to_us(change.valid_from)
    connection.executemany(
        "UPDATE facts SET valid_until_us = max(valid_from_us, ?) WHERE fact = ?",
        [(valid_from_us, old) for old in change.supersedes],
    )
    sql = "SELECT fact FROM facts WHERE about = ? AND assistant_id = ? AND folded = ? AND valid_until_us IS NULL"
    fact = connection.execute(sql, (change.about, assistant_id, folded)).get
    if fact is None:
        connection.execute(
            "INSERT INTO facts (about, assistant_id, slot, valid_from_us, utc_offset_s, confirmed_us, folded, text) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                change.about,
                assistant_id,
                change.slot,
                valid_from_us,
                offset_s(change.valid_from),
                now_us,
                folded,
                change.text,
            ),
        )
        fact = connection.last_insert_rowid()
    for old in change.supersedes:
        connection.execute("UPDATE facts SET superseded_by = ? WHERE fact = ?", (fact, old))
        note_change(connection, "fact", old)
    return int(fact)


def archive_facts(connection: apsw.Connection, capacity: int) -> None:
    """Archive the facts beyond the capacity that were confirmed longest ago, of each owner."""
    connection.execute(
        "UPDATE facts SET is_archived = 1 WHERE fact IN (SELECT fact FROM (SELECT fact, row_number() OVER "
        "(PARTITION BY about, assistant_id ORDER BY confirmed_us DESC, fact DESC) AS place FROM facts "
        "WHERE valid_until_us IS NULL AND is_archived = 0) WHERE place > ?)",
        (capacity,),
    )
