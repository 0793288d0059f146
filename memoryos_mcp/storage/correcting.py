"""Corrections by the user: what was wrong stays as history, what is right is theirs. Each in one transaction.

A correction counts against the pages that are there when it is made. What is said later may change things again.
"""

from typing import Any

import apsw

from memoryos_mcp.errors import ArgumentError
from memoryos_mcp.ids import Kind, MemoryId, fold_dimension, not_there, numbered_id
from memoryos_mcp.knowledge import LEARNED_BY_USER, About, CorrectedFact
from memoryos_mcp.profile import Level
from memoryos_mcp.storage.longterm import IN_FORCE, to_history
from memoryos_mcp.storage.refusals import refuse_fact, refuse_trait
from memoryos_mcp.storage.rows import folded, newest_seq
from memoryos_mcp.storage.vector_rows import note_change

"""Who learned a fact or trait that the user corrected; as ``ended_by``, who ended the one before."""
REASON_WITHOUT_WORDS = "Said by the user."


def correct_fact(
    connection: apsw.Connection, assistant_id: str, fact: int, text: str | None, now_us: int, offset_s: int
) -> int | None:
    """End a fact that is wrong, and return the number of the one that holds instead; None if none is to.

    The new one rests on no page: nobody said it but the user now. Which pages had said the wrong one is told by that.

    Args:
        connection: Inside the caller's transaction.
        assistant_id: Whose facts are there beside the user's.
        fact: The one that is wrong.
        text: What is right; None if there is nothing to say instead.
        now_us: The present.
        offset_s: Of the zone that the present is told in.

    Raises:
        ArgumentError: It is not there or holds no more, or the text says the same.
    """
    sql = (
        f"SELECT about, assistant_id, slot, text, folded, superseded_by, {IN_FORCE} FROM facts "  # noqa: S608 - constant
        "WHERE fact = ?2 AND (about = 'user' OR assistant_id = ?3)"
    )
    row = connection.execute(sql, (now_us, fact, assistant_id)).fetchone()
    if row is None:
        raise not_there([MemoryId(Kind.FACT, number=fact)], "id")
    about, owner, slot, wrong, wrong_folded, heir, holds = row
    if not holds:
        instead = f"; correct {numbered_id(Kind.FACT, heir)}, which took its place" if heir else ""
        raise ArgumentError(argument="id", problem=f"{numbered_id(Kind.FACT, fact)} holds no more{instead}")
    if text is not None and folded(text) == wrong_folded:
        raise ArgumentError(argument="text", problem="says the same as the fact does; give what is right")
    until_seq = newest_seq(connection)
    connection.execute(  # pages may be dated up to a day ahead
        "UPDATE facts SET valid_from_us = min(valid_from_us, ?1), valid_until_us = ?1, ended_by = ?, ended_seq = ? "
        "WHERE fact = ?",
        (now_us, LEARNED_BY_USER, until_seq, fact),
    )
    refuse_fact(connection, About(about), owner, wrong, until_seq)
    right = None if text is None else _user_fact(connection, (about, owner, slot), text, now_us, offset_s)
    connection.execute("UPDATE facts SET superseded_by = ? WHERE fact = ?", (right, fact))
    note_change(connection, "fact", fact)
    return right


def _user_fact(
    connection: apsw.Connection, place: tuple[str, str, str | None], text: str, now_us: int, offset_s: int
) -> int:
    """Return the number of the fact with these words, made the user's or new."""
    about, owner, slot = place
    sql = f"SELECT fact FROM facts WHERE {IN_FORCE} AND about = ? AND assistant_id = ? AND folded = ?"  # noqa: S608
    known = connection.execute(sql, (now_us, about, owner, folded(text))).get
    if known is None:
        connection.execute(
            "INSERT INTO facts (about, assistant_id, slot, valid_from_us, utc_offset_s, confirmed_us, folded, text, "
            "learned_by) VALUES (?, ?, ?, ?4, ?5, ?4, ?, ?, ?)",
            (about, owner, slot, now_us, offset_s, folded(text), text, LEARNED_BY_USER),
        )
        known = connection.last_insert_rowid()
    else:
        connection.execute(
            "UPDATE facts SET learned_by = ?, confirmed_us = ?, is_archived = 0, slot = coalesce(slot, ?) "
            "WHERE fact = ?",
            (LEARNED_BY_USER, now_us, slot, known),
        )
    note_change(connection, "fact", known)
    return int(known)


def correct_trait(
    connection: apsw.Connection, dimension: str, level: Level | None, reason: str | None, now_us: int
) -> str:
    """Set a trait as the user says, for good, and return its dimension.

    Raises:
        ArgumentError: It is not there, or it is so already.
    """
    known = _known_dimension(connection, dimension)
    sql = "SELECT level, reason, learned_by FROM traits WHERE dimension = ?"
    rows: list[tuple[Any, ...]] = connection.execute(sql, (known,)).fetchall()
    ((old_level, old_reason, learner),) = rows
    new_level = old_level if level is None else level.value
    unsaid = old_reason if new_level == old_level else REASON_WITHOUT_WORDS
    new_reason = unsaid if reason is None else reason
    if (new_level, new_reason, LEARNED_BY_USER) == (old_level, old_reason, learner):
        raise ArgumentError(argument="level", problem="says what the trait says already; give what is right")
    to_history(connection, known, now_us, ended_by=LEARNED_BY_USER)
    connection.execute(
        "UPDATE traits SET level = ?, reason = ?, updated_us = ?, learned_by = ? WHERE dimension = ?",
        (new_level, new_reason, now_us, LEARNED_BY_USER, known),
    )
    note_change(connection, "profile", 0)
    return known


def drop_trait(connection: apsw.Connection, dimension: str, now_us: int) -> str:
    """Take a trait that is wrong out of the profile, and return its dimension; its level stays as history.

    Raises:
        ArgumentError: It is not there.
    """
    known = _known_dimension(connection, dimension)
    to_history(connection, known, now_us, ended_by=LEARNED_BY_USER)
    refuse_trait(connection, known, newest_seq(connection))
    connection.execute("DELETE FROM trait_evidence WHERE dimension = ?", (known,))
    connection.execute("DELETE FROM traits WHERE dimension = ?", (known,))
    note_change(connection, "profile", 0)
    return known


def _known_dimension(connection: apsw.Connection, dimension: str) -> str:
    for (known,) in connection.execute("SELECT dimension FROM traits"):
        if fold_dimension(known) == fold_dimension(dimension):
            return str(known)
    raise not_there([MemoryId(Kind.TRAIT, name=dimension)], "id")


def corrected_facts(connection: apsw.Connection) -> list[CorrectedFact]:
    """Return what the user has said is wrong, of all assistants, the newest correction first."""
    rows = connection.execute(
        "SELECT f.about, f.text, f.slot, coalesce(f.ended_seq, 0), f.superseded_by, heir.text FROM facts AS f "
        "LEFT JOIN facts AS heir ON heir.fact = f.superseded_by "
        "WHERE f.ended_by IS NOT NULL ORDER BY f.valid_until_us DESC, f.fact DESC",
    )
    return [
        CorrectedFact(about=About(about), text=text, slot=slot, until_seq=until_seq, heir=heir, right=right)
        for about, text, slot, until_seq, heir, right in rows
    ]
