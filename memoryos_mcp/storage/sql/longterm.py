"""Reading and changing the long-term memory: traits and facts. The caller opens the transaction."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from memoryos_mcp.model.ids import fold_dimension
from memoryos_mcp.model.knowledge import About, AddFact, ConfirmFact, CorrectedFact, KnowledgeChange
from memoryos_mcp.model.profile import Level, Trait
from memoryos_mcp.storage.sql.blocklist import is_refused_fact, is_refused_trait
from memoryos_mcp.storage.sql.connection import Connection
from memoryos_mcp.storage.sql.mapping import all_rows, folded, numbers
from memoryos_mcp.storage.sql.moments import from_us, offset_s, to_us
from memoryos_mcp.storage.sql.vector_table import note_change
from memoryos_mcp.storage.values import ARCHIVED, EvidenceProjects, Learning

MAX_WISHES = 50
# Whether a fact is valid; the parameter is the current time in microseconds.
IS_VALID = "(valid_until_us IS NULL OR valid_until_us > ?)"
# Whether a fact would be valid at ?4, in microseconds, if the facts in the JSON list ?5 did not exist.
_LEFT_OUT = "(SELECT value FROM json_each(?5))"
WOULD_BE_VALID = (
    f"fact NOT IN {_LEFT_OUT} AND (valid_until_us IS NULL OR valid_until_us > ?4 OR (superseded_by IN {_LEFT_OUT} "
    "AND ended_by IS NULL AND (stated_until_us IS NULL OR stated_until_us > ?4)))"
)


_FACT_PROJECTS = (
    "SELECT DISTINCT fact, project FROM fact_evidence JOIN pages USING (seq) "
    "UNION SELECT DISTINCT superseded_by, project FROM facts JOIN fact_evidence USING (fact) JOIN pages USING (seq) "
    "WHERE superseded_by IS NOT NULL AND NOT EXISTS "
    "(SELECT 1 FROM fact_evidence AS own WHERE own.fact = facts.superseded_by)"
)
_TRAIT_PROJECTS = "SELECT DISTINCT dimension, project FROM trait_evidence JOIN pages USING (seq)"


def read_traits(connection: Connection, dimension: str | None = None) -> list[Trait]:
    """Return the user's traits, sorted by dimension. With ``dimension``, return only the trait of this dimension."""
    where = "" if dimension is None else "WHERE dimension = ? "
    rows = connection.execute(
        "SELECT dimension, level, reason, updated_us, learned_by, (SELECT json_group_array(page_id) FROM "  # noqa: S608
        "(SELECT page_id FROM trait_evidence JOIN pages USING (seq) "
        "WHERE trait_evidence.dimension = traits.dimension ORDER BY seq) AS listed) "
        f"FROM traits {where}ORDER BY dimension",
        () if dimension is None else (dimension,),
    )
    return [
        Trait(
            dimension=dimension,
            level=Level(level),
            reason=reason,
            evidence=tuple(json.loads(evidence)),
            updated_at=from_us(updated_us),
            learned_by=learned_by,
        )
        for dimension, level, reason, updated_us, learned_by, evidence in rows
    ]


def evidence_projects(connection: Connection) -> EvidenceProjects:
    """Return the projects of the pages from which facts and traits were learned; see `Knowledge.evidence_projects`."""
    facts: dict[int, set[str | None]] = {}
    traits: dict[str, set[str | None]] = {}
    of_facts, of_traits = connection.execute(_FACT_PROJECTS), connection.execute(_TRAIT_PROJECTS)
    for fact, project in of_facts:
        facts.setdefault(fact, set()).add(project)
    for dimension, project in of_traits:
        traits.setdefault(dimension, set()).add(project)
    return EvidenceProjects(facts, traits)


def past_dimensions(connection: Connection) -> list[str]:
    """Return the names of traits that exist only in the history, in alphabetical order."""
    sql = "SELECT DISTINCT dimension FROM trait_history WHERE dimension NOT IN (SELECT dimension FROM traits)"
    return sorted(row[0] for row in all_rows(connection, sql))


def find_dimension(connection: Connection, name: str, *, with_history: bool = False) -> str | None:
    """Return the stored spelling of the trait dimension ``name``; None if the trait does not exist.

    Case and extra spaces are ignored. If ``with_history`` is true, previous traits are searched too.
    """
    history = " UNION SELECT dimension FROM trait_history" if with_history else ""
    rows = all_rows(connection, f"SELECT dimension FROM traits{history}")  # noqa: S608 - constant
    dimensions = [str(row[0]) for row in rows]
    return next((each for each in dimensions if fold_dimension(each) == fold_dimension(name)), None)


def is_current(connection: Connection, learning: Learning, owner: Callable[[About], str], now_us: int) -> bool:
    """Return whether the lessons (facts and traits) in ``learning`` still match the memory.

    The memory may have changed since the lessons were computed. The result is False in four cases:

    - A trait that the lessons change has been changed in the meantime.
    - A fact that the lessons confirm or supersede is no longer valid.
    - The user has made a correction in the meantime.
    - A new fact does not supersede every earlier fact about the same property (slot).
    """
    lessons = learning.lessons
    if corrected_facts(connection) != list(learning.corrections):
        return False
    seen = {trait.dimension: to_us(trait.updated_at) for trait in learning.traits}
    for change in lessons.traits:
        sql = "SELECT updated_us FROM traits WHERE dimension = ?"
        if connection.execute(sql, (change.dimension,)).get != seen.get(change.dimension):
            return False
    needed = {fact for change in lessons.knowledge for fact in _named_facts(change)}
    later = []
    if learning.replaces is not None:
        later = learned_later(connection, learning.replaces, min(learning.pages))
    valid = connection.execute(
        f"SELECT count(*) FROM facts WHERE fact IN (SELECT value FROM json_each(?1)) AND {WOULD_BE_VALID}",  # noqa: S608
        (json.dumps(sorted(needed)), None, None, now_us, json.dumps(later)),
    ).get
    if valid != len(needed):
        return False
    added = [change for change in lessons.knowledge if isinstance(change, AddFact) and change.slot is not None]
    return all(_supersedes_all(connection, change, owner(change.about), now_us, later) for change in added)


def _supersedes_all(
    connection: Connection, change: AddFact, assistant_id: str, now_us: int, later: Sequence[int]
) -> bool:
    """Return whether ``change.supersedes`` lists every valid earlier fact about the same property (slot).

    Archived facts, and facts with the same text, need not be listed. ``later`` contains the numbers of facts to be
    treated as deleted.
    """
    sql = (
        "SELECT fact FROM facts WHERE about = ?1 AND assistant_id = ?2 AND slot = ?3 AND is_archived = 0 "  # noqa: S608
        f"AND folded <> ?6 AND ({_LAST_SAID}, {_LAST_SEQ}) <= (?7, ?8) AND {WOULD_BE_VALID}"
    )
    parameters = (change.about, assistant_id, change.slot, now_us, json.dumps(later), folded(change.text))
    return set(numbers(connection, sql, *parameters, *_last_said(connection, change))) <= set(change.supersedes)


def learned_later(connection: Connection, learner: str, from_seq: int) -> list[int]:
    """Return the numbers of the facts that ``learner`` learned only from pages with a ``seq`` of at least ``from_seq``.

    Facts that the user marked as wrong are left out.
    """
    sql = (
        "SELECT fact FROM facts WHERE learned_by = ?1 AND ended_by IS NULL "
        "AND fact IN (SELECT fact FROM fact_evidence WHERE seq >= ?2) "
        "AND fact NOT IN (SELECT fact FROM fact_evidence WHERE seq < ?2)"
    )
    return numbers(connection, sql, learner, from_seq)


# The time at which a superseded fact ends. This is ?1, the beginning of the new fact, or ?2 if the old fact began after
# ?1. If the end of the old fact was stated, the fact does not end later than this. No fact ends before it begins.
_END = (
    "CASE WHEN (CASE WHEN ?1 >= valid_from_us THEN ?1 ELSE ?2 END) > coalesce(stated_until_us, ?2) "
    "THEN (CASE WHEN coalesce(stated_until_us, ?2) > valid_from_us THEN coalesce(stated_until_us, ?2) "
    "ELSE valid_from_us END) "
    "ELSE (CASE WHEN ?1 >= valid_from_us THEN ?1 WHEN ?2 > valid_from_us THEN ?2 ELSE valid_from_us END) END"
)
# The newest time and ``seq`` of a fact's evidence. For a fact without evidence, the start of its validity and 0.
_LAST_SAID = (
    "coalesce((SELECT max(occurred_us) FROM fact_evidence AS e JOIN pages USING (seq) WHERE e.fact = facts.fact), "
    "valid_from_us)"
)
_LAST_SEQ = "coalesce((SELECT max(seq) FROM fact_evidence AS e WHERE e.fact = facts.fact), 0)"


def _last_said(connection: Connection, change: AddFact) -> tuple[int, int]:
    """Return the latest time and the highest ``seq`` of the pages that are evidence for a new fact.

    The time is in microseconds. The two values may come from different pages. For a fact without evidence, return the
    start of its validity and 0.
    """
    sql = "SELECT max(occurred_us) FROM pages WHERE seq IN (SELECT value FROM json_each(?))"
    said_us = connection.execute(sql, (json.dumps(change.evidence),)).get
    return to_us(change.valid_from) if said_us is None else int(said_us), max(change.evidence, default=0)


def _named_facts(change: KnowledgeChange) -> tuple[int, ...]:
    return (change.fact,) if isinstance(change, ConfirmFact) else change.supersedes


def corrected_facts(connection: Connection) -> list[CorrectedFact]:
    """Return the facts that the user marked as wrong, the newest correction first.

    Facts about the user and about all assistants are included.
    """
    rows = connection.execute(
        "SELECT f.about, f.text, f.slot, coalesce(f.ended_seq, 0), f.superseded_by, heir.text FROM facts AS f "
        "LEFT JOIN facts AS heir ON heir.fact = f.superseded_by "
        "WHERE f.ended_by IS NOT NULL ORDER BY f.valid_until_us DESC, f.fact DESC",
    )
    return [
        CorrectedFact(about=About(about), text=text, slot=slot, until_seq=until_seq, heir=heir, right=right)
        for about, text, slot, until_seq, heir, right in rows
    ]


def set_traits(connection: Connection, learning: Learning, now_us: int) -> None:
    """Set the learned traits, and add their previous values to the history.

    A trait is skipped if it must not be learned from its evidence; see `is_refused_trait`. In two cases, a trait keeps
    its level, and only its evidence is extended:

    - The user chose the level.
    - A different analyst learned the trait, and ``learning`` was made without an LLM because the LLM failed
      (``is_degraded``).
    """
    for change in learning.lessons.traits:
        if is_refused_trait(connection, change.dimension, change.evidence):
            continue
        sql = "SELECT learned_by FROM traits WHERE dimension = ?"
        owner = connection.execute(sql, (change.dimension,)).get
        if owner == "user" or (learning.is_degraded and owner not in {None, learning.learner}):
            connection.execute("UPDATE traits SET updated_us = ? WHERE dimension = ?", (now_us, change.dimension))
        else:
            add_to_history(connection, change.dimension, now_us)
            set_trait(connection, change.dimension, change.level, change.reason, now_us, learning.learner)
        connection.executemany(
            "INSERT INTO trait_evidence (dimension, seq) VALUES (?, ?) ON CONFLICT DO NOTHING",
            [(change.dimension, seq) for seq in change.evidence],
        )
    if learning.lessons.traits:
        note_change(connection, "profile", 0)


def set_trait(connection: Connection, dimension: str, level: str, reason: str, updated_us: int, learner: str) -> None:
    """Add a trait, or replace its value if the trait exists."""
    connection.execute(
        "INSERT INTO traits (dimension, level, reason, updated_us, learned_by) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (dimension) DO UPDATE SET level = excluded.level, reason = excluded.reason, "
        "updated_us = excluded.updated_us, learned_by = excluded.learned_by",
        (dimension, level, reason, updated_us, learner),
    )


def delete_trait(connection: Connection, dimension: str) -> None:
    """Delete a trait and its evidence, but not its history."""
    connection.execute("DELETE FROM trait_evidence WHERE dimension = ?", (dimension,))
    connection.execute("DELETE FROM traits WHERE dimension = ?", (dimension,))
    note_change(connection, "profile", 0)


def change_knowledge(connection: Connection, learning: Learning, owner: Callable[[About], str], now_us: int) -> None:
    """Apply the fact changes in ``learning``: add, supersede and confirm facts.

    If a fact to be added already exists, the existing fact is confirmed. Facts that must not be learned from these
    pages are skipped; see `is_refused_fact`. If several new facts are about the same property (slot), only the last one
    stays valid.

    A confirmed fact keeps its ``learned_by``, the name of the analyst that first learned the fact. But if this name is
    ``learning.replaces``, it is changed to ``learning.learner``.
    """
    added: dict[str, int] = {}
    for change in learning.lessons.knowledge:
        if isinstance(change, ConfirmFact):
            fact, is_confirming = change.fact, True
        elif is_refused_fact(connection, change.about, owner(change.about), change.text, change.evidence):
            continue
        else:
            fact, is_confirming = _add_fact(connection, change, learning.learner, owner, now_us, added)
            added[folded(change.text)] = fact
        connection.executemany(
            "INSERT INTO fact_evidence (fact, seq, is_confirming) VALUES (?, ?, ?) "
            "ON CONFLICT (fact, seq) DO UPDATE SET is_confirming = excluded.is_confirming "
            "WHERE fact_evidence.is_confirming > excluded.is_confirming",
            [(fact, seq, int(is_confirming)) for seq in change.evidence],
        )
        connection.execute(
            "UPDATE facts SET confirmed_us = ?, is_archived = 0, "
            "learned_by = CASE learned_by WHEN ? THEN ? ELSE learned_by END WHERE fact = ?",
            (now_us, learning.replaces, learning.learner, fact),
        )
        note_change(connection, "fact", fact)


def import_facts(
    connection: Connection,
    facts: Sequence[AddFact],
    learner: str,
    owner: Callable[[About], str],
    capacity: int,
    now_us: int,
) -> Counter[str]:
    """Add facts without evidence. Facts that exist or once existed are skipped; see `UserData.import_facts`.

    Return two counts: ``fact`` for the added facts, and `ARCHIVED` for facts archived because there were too many. An
    archived fact may be an added one or an earlier one.
    """
    new = Counter[str]()
    for fact in facts:
        sql = "SELECT 1 FROM facts WHERE about = ? AND assistant_id = ? AND folded = ? LIMIT 1"
        if connection.execute(sql, (fact.about, owner(fact.about), folded(fact.text))).get is None:
            # The time of confirmation is when the fact was learned, not when it is imported.
            number, _ = _add_fact(connection, fact, learner, owner, to_us(fact.valid_from))
            note_change(connection, "fact", number)
            new["fact"] += 1
    new[ARCHIVED] = archive_facts(connection, capacity, now_us)
    return new


def _add_fact(
    connection: Connection,
    change: AddFact,
    learner: str,
    owner: Callable[[About], str],
    now_us: int,
    added: Mapping[str, int] = MappingProxyType({}),
) -> tuple[int, bool]:
    """Add a fact if it does not exist. Return the fact's number, and whether the fact already existed.

    In both cases, the facts that ``change`` supersedes stop being valid.

    Args:
        connection: The connection, in a transaction.
        change: The fact to add.
        learner: Name of the analyst that learned the fact.
        owner: The function `StoreOptions.owner`.
        now_us: The current time in microseconds.
        added: The facts already added by this call of `change_knowledge`: a mapping from `folded` text to fact number.
    """
    words = folded(change.text)
    assistant_id = owner(change.about)
    begin_us, said = to_us(change.valid_from), _last_said(connection, change)
    # Analysts do not see archived facts, so an archived fact with the new fact's slot is superseded here.
    sql = (
        f"SELECT fact FROM facts WHERE {IS_VALID} AND about = ? AND assistant_id = ? AND slot = ? "  # noqa: S608
        "AND folded <> ? AND (is_archived = 1 OR fact IN (SELECT value FROM json_each(?)))"
    )
    parameters = (now_us, change.about, assistant_id, change.slot, words, json.dumps(list(added.values())))
    unseen = numbers(connection, sql, *parameters)
    named = [added[folded(text)] for text in change.ends if folded(text) in added]
    supersedes = [old for old in dict.fromkeys([*change.supersedes, *unseen, *named]) if old != added.get(words)]
    connection.executemany(
        # The older fact ends when the new one begins or, if the new one began first, when the new one was stated.
        f"UPDATE facts SET valid_until_us = {_END} WHERE fact = ?3",  # noqa: S608 - constant
        [(begin_us, max(begin_us, min(said[0], now_us)), old) for old in supersedes],
    )
    sql = f"SELECT fact FROM facts WHERE {IS_VALID} AND about = ? AND assistant_id = ? AND folded = ?"  # noqa: S608
    fact = connection.execute(sql, (now_us, change.about, assistant_id, words)).get
    was_there = fact is not None
    if fact is None:
        fact = connection.execute(
            "INSERT INTO facts (about, assistant_id, slot, valid_from_us, valid_until_us, stated_until_us, "
            "utc_offset_s, confirmed_us, folded, text, learned_by, kind, said_since, said_until) "
            "VALUES (?, ?, ?, ?, ?5, ?5, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING fact",
            (
                change.about,
                assistant_id,
                change.slot,
                begin_us,
                None if change.valid_until is None else to_us(change.valid_until),
                offset_s(change.valid_from),
                now_us,
                words,
                change.text,
                learner,
                change.kind,
                change.said_since,
                change.said_until,
            ),
        ).get
        _end_before_newer(connection, fact, said, now_us)
    for old in supersedes:
        connection.execute("UPDATE facts SET superseded_by = ? WHERE fact = ?", (fact, old))
        note_change(connection, "fact", old)
    return int(fact), was_there


def _end_before_newer(connection: Connection, fact: int, said: tuple[int, int], now_us: int) -> None:
    """End the validity of a fact, and mark it as superseded by the next newer fact about the same property (slot).

    Nothing is changed if no newer fact exists, or if the fact ended before the newer fact begins. A newer fact exists
    only if the pages were not read in order. ``said`` is the result of `_last_said` for ``fact``.
    """
    sql = (
        f"SELECT * FROM (SELECT fact, valid_from_us, {_LAST_SAID} AS last_said, {_LAST_SEQ} AS last_seq FROM facts "  # noqa: S608
        "WHERE (about, assistant_id, slot) = (SELECT about, assistant_id, slot FROM facts WHERE fact = ?1) "
        f"AND fact <> ?1 AND {IS_VALID.replace('?', '?2')}) AS same_slot "
        "WHERE (last_said, last_seq) > (?3, ?4) ORDER BY last_said, last_seq LIMIT 1"
    )
    for newer, begin_us, newer_said_us, _ in all_rows(connection, sql, fact, now_us, *said):
        connection.execute(
            "UPDATE facts SET superseded_by = ?1, valid_until_us = CASE WHEN ?2 >= valid_from_us THEN ?2 "
            "WHEN ?3 >= valid_from_us THEN ?3 ELSE valid_from_us END "
            "WHERE fact = ?4 AND (valid_until_us IS NULL OR valid_until_us > ?2)",
            (newer, begin_us, min(newer_said_us, now_us), fact),
        )


def archive_facts(connection: Connection, capacity: int, now_us: int) -> int:
    """Archive facts if there are more than ``capacity``; return the number of facts that this call has archived.

    The capacity applies separately to the facts about the user and about each assistant. Wishes have their own
    capacity, `MAX_WISHES`. The least recently confirmed facts are archived first. Facts from the user's corrections
    are archived only after all others.
    """
    archived = numbers(
        connection,
        "UPDATE facts SET is_archived = 1 WHERE fact IN (SELECT fact FROM (SELECT fact, row_number() OVER "  # noqa: S608
        "(PARTITION BY about, assistant_id, kind ORDER BY learned_by = 'user' DESC, confirmed_us DESC, fact DESC) "
        f"AS place, kind FROM facts WHERE {IS_VALID} AND is_archived = 0) AS placed "
        "WHERE place > CASE kind WHEN 'wish' THEN ? ELSE ? END) RETURNING fact",
        now_us,
        MAX_WISHES,
        capacity,
    )
    for fact in archived:
        note_change(connection, "fact", fact)
    return len(archived)


def drop_replaced_traits(connection: Connection, learning: Learning, now_us: int) -> None:
    """Delete traits of the analyst ``learning.replaces`` after other analysts have read the same pages.

    A trait is deleted if at least one page of ``learning`` is evidence for it, and other analysts have read all its
    evidence. The values of deleted traits are added to the history.
    """
    if learning.replaces is None or not learning.segments:
        return
    sql = (
        "SELECT dimension FROM traits WHERE learned_by = ?1 "
        "AND dimension IN (SELECT dimension FROM trait_evidence WHERE seq IN (SELECT value FROM json_each(?2))) "
        "AND NOT EXISTS (SELECT 1 FROM trait_evidence JOIN pages USING (seq) "
        "WHERE trait_evidence.dimension = traits.dimension AND coalesce(pages.learned_by, ?1) = ?1)"
    )
    for (dimension,) in all_rows(connection, sql, learning.replaces, json.dumps(list(learning.pages))):
        add_to_history(connection, dimension, now_us)
        delete_trait(connection, dimension)


def drop_replaced_facts(connection: Connection, learning: Learning, owner: Callable[[About], str]) -> None:
    """Delete facts of the analyst ``learning.replaces`` that ``learning`` neither contains nor confirms.

    Such a fact is kept in three cases:

    - Other analysts have not yet read all pages that are evidence for it.
    - The user marked it as wrong.
    - The new analyst may have overlooked the fact, because ``learning`` contains no fact from the pages that are
      evidence for it. This case applies only to wishes, and to facts about a property with one value at a time (slot).

    If a fact is deleted, or ``learning`` contains it, the facts that it superseded become valid again. Facts that the
    user marked as wrong stay invalid. ``owner`` is the function `StoreOptions.owner`.
    """
    if learning.replaces is None or not learning.is_reading:
        return
    sql = (
        "SELECT fact, about, assistant_id, folded, kind = 'wish' OR slot IS NOT NULL, (SELECT json_group_array(seq) "
        "FROM fact_evidence AS e WHERE e.fact = facts.fact) FROM facts WHERE learned_by = ?1 AND ended_by IS NULL "
        "AND fact IN (SELECT fact FROM fact_evidence WHERE seq IN (SELECT value FROM json_each(?2))) "
        "AND NOT EXISTS (SELECT 1 FROM fact_evidence JOIN pages USING (seq) WHERE fact_evidence.fact = facts.fact "
        "AND coalesce(pages.read_by, ?1) = ?1 AND seq NOT IN (SELECT value FROM json_each(?2)))"
    )
    knowledge = learning.lessons.knowledge
    mentioned_pages = {seq for change in knowledge for seq in change.evidence}
    confirmed = {change.fact for change in knowledge if isinstance(change, ConfirmFact)}
    learned = {(c.about, owner(c.about), folded(c.text)) for c in knowledge if isinstance(c, AddFact)}
    deleted, relearned = [], []
    rows = all_rows(connection, sql, learning.replaces, json.dumps(list(learning.pages)))
    for fact, about, assistant_id, words, may_be_overlooked, evidence in rows:
        if fact in confirmed:
            continue
        if (about, assistant_id, words) in learned:
            relearned.append(fact)
        elif not may_be_overlooked or mentioned_pages.intersection(json.loads(evidence)):
            deleted.append(fact)
    for fact in relearned:
        _restore_superseded(connection, fact, "[]")
    drop_facts(connection, deleted)


def drop_facts(connection: Connection, facts: Sequence[int]) -> None:
    """Delete facts. The facts that they superseded become valid again, except facts that the user marked as wrong.

    For example, fact B superseded fact A, and A becomes valid again when B is deleted. But if fact C has superseded B,
    A stays superseded, now by C.
    """
    deleted = json.dumps(list(facts))
    for fact in facts:
        successor = connection.execute("SELECT superseded_by FROM facts WHERE fact = ?", (fact,)).get
        if successor is not None:
            connection.execute("UPDATE facts SET superseded_by = ? WHERE superseded_by = ?", (successor, fact))
        _restore_superseded(connection, fact, deleted)
        connection.execute("DELETE FROM fact_evidence WHERE fact = ?", (fact,))
        connection.execute("DELETE FROM facts WHERE fact = ?", (fact,))
        note_change(connection, "fact", fact)


def _restore_superseded(connection: Connection, fact: int, deleted: str) -> None:
    """Restore the validity of the facts that ``fact`` superseded, except facts that the user marked as wrong.

    ``deleted`` is a JSON list of the numbers of facts that are being deleted. These facts stay invalid.
    """
    connection.execute(
        # Only one fact with the same text may be valid without an end.
        "UPDATE facts SET valid_until_us = stated_until_us WHERE superseded_by = ?1 AND ended_by IS NULL "
        "AND fact NOT IN (SELECT value FROM json_each(?2)) AND (stated_until_us IS NOT NULL OR NOT EXISTS ("
        "SELECT 1 FROM facts AS o WHERE o.about = facts.about AND o.assistant_id = facts.assistant_id "
        "AND o.folded = facts.folded AND (o.valid_until_us IS NULL OR o.superseded_by = ?1 AND o.fact < facts.fact "
        "AND o.ended_by IS NULL AND o.stated_until_us IS NULL AND o.fact NOT IN (SELECT value FROM json_each(?2)))))",
        (fact, deleted),
    )
    connection.execute("UPDATE facts SET superseded_by = NULL WHERE superseded_by = ?", (fact,))


def add_to_history(connection: Connection, dimension: str, now_us: int, ended_by: str | None = None) -> None:
    """Add a trait's current value to the history.

    ``ended_by`` is set if the user corrected or removed the trait. The evidence is then added too, so that the user can
    restore the trait.
    """
    connection.execute(
        "INSERT INTO trait_history (dimension, level, reason, held_from_us, held_until_us, ended_by, learned_by, "
        "evidence) SELECT dimension, level, reason, updated_us, ?1, ?2, learned_by, CASE WHEN ?2 IS NULL THEN '[]' "
        "ELSE (SELECT json_group_array(seq) FROM trait_evidence AS e WHERE e.dimension = traits.dimension) END "
        "FROM traits WHERE dimension = ?3",
        (now_us, ended_by, dimension),
    )
