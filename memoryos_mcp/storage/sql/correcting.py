"""Corrections of facts and traits by the user. The previous value is moved to the history.

A correction takes precedence over all pages that exist when it is made. Later pages may change a corrected fact, or add
a removed trait again. They never change a trait value that was set by the user. If a fact or trait was corrected
several times, the latest correction is undone first.
"""

from dataclasses import dataclass, replace

from memoryos_mcp.errors import ArgumentError
from memoryos_mcp.model.ids import Kind, MemoryId, not_there, numbered_id, trait_id
from memoryos_mcp.model.knowledge import LEARNED_BY_USER
from memoryos_mcp.model.profile import Level
from memoryos_mcp.storage.sql.blocklist import allow_fact, allow_trait, refuse_fact, refuse_trait
from memoryos_mcp.storage.sql.connection import Connection
from memoryos_mcp.storage.sql.forget_plans import has_fact
from memoryos_mcp.storage.sql.longterm import (
    IS_VALID,
    add_to_history,
    delete_trait,
    drop_facts,
    find_dimension,
    set_trait,
)
from memoryos_mcp.storage.sql.mapping import all_rows, folded, newest_seq, rolled_back
from memoryos_mcp.storage.sql.vector_table import note_change
from memoryos_mcp.storage.values import Corrected, Correction

REASON_WITHOUT_WORDS = "Said by the user."


@dataclass(frozen=True, slots=True)
class Correcting:
    """Corrects one user's memory inside the caller's transaction.

    Attributes:
        assistant_id: The id of the current assistant. Facts about other assistants cannot be corrected.
        now_us: The current time, in microseconds since 1970.
        offset_s: The UTC offset of the user's time zone, in seconds.
    """

    connection: Connection
    assistant_id: str
    now_us: int
    offset_s: int

    def correct(self, what: MemoryId, correction: Correction) -> Corrected:
        """Carry out a correction of a fact or trait, and return the result.

        The caller must have checked that the values of the correction are allowed for this kind of memory.

        Raises:
            ArgumentError: The fact or trait does not exist or is not current, the correction would not change it, or an
                earlier correction cannot be undone.
        """
        if what.kind is Kind.FACT:
            if correction.is_restored:
                return self._restore_fact(what.number)
            return self._correct_fact(what.number, correction.text)
        dimension = find_dimension(self.connection, what.name, with_history=correction.is_restored)
        if dimension is None:
            raise not_there([what], "id")
        if correction.is_restored:
            return self._restore_trait(dimension)
        if correction.is_wrong:
            return self._drop_trait(dimension)
        return self._correct_trait(dimension, correction.level, correction.reason)

    def dry_run(self, what: MemoryId, correction: Correction) -> Corrected:
        """Return the result that `correct` would return, but with None as the id of a new fact. Nothing is changed."""
        corrected = rolled_back(self.connection, lambda: self.correct(what, correction))
        sql = "SELECT EXISTS (SELECT 1 FROM facts WHERE 'k' || fact = ?)"
        is_new = what.kind is Kind.FACT and not self.connection.execute(sql, (corrected.current_id,)).get
        return replace(corrected, current_id=None) if is_new else corrected

    # Facts ---------------------------------------------------------------------------------------------------------

    def _correct_fact(self, fact: int, text: str | None) -> Corrected:
        """Mark a fact as wrong and no longer valid, and return the result.

        If ``text`` is not None, a fact with this text replaces the wrong fact.

        Raises:
            ArgumentError: The fact does not exist, is no longer valid, or already has this text.
        """
        connection = self.connection
        about, owner, slot, wrong, successor, is_valid, _ = self._fact(fact)
        if not is_valid:
            instead = (
                f"; correct {_fact_id(successor)}, which replaced it" if successor else "; pass the id of a valid fact"
            )
            raise ArgumentError(argument="id", problem=f"{_fact_id(fact)} is no longer valid{instead}")
        if text is not None and folded(text) == folded(wrong):
            problem = "is the same as the current text of the fact; pass the corrected text"
            raise ArgumentError(argument="text", problem=problem)
        until_seq = newest_seq(connection)
        connection.execute(  # like a page, a fact may begin up to a day in the future
            "UPDATE facts SET valid_from_us = CASE WHEN valid_from_us < ?1 THEN valid_from_us ELSE ?1 END, "
            "valid_until_us = ?1, ended_by = ?, ended_seq = ? "
            "WHERE fact = ?",
            (self.now_us, LEARNED_BY_USER, until_seq, fact),
        )
        refuse_fact(connection, about, owner, wrong, until_seq)
        right = None if text is None else _user_fact(connection, (about, owner, slot), text, self.now_us, self.offset_s)
        connection.execute("UPDATE facts SET superseded_by = ? WHERE fact = ?", (right, fact))
        note_change(connection, "fact", fact)
        right_id = None if right is None else _fact_id(right)
        return Corrected(_fact_id(fact), wrong, right_id, text)

    def _restore_fact(self, fact: int) -> Corrected:
        """Undo the user's correction of a fact, and return the result.

        The fact becomes valid again, unless its end date has passed. Its replacement may become invalid or be deleted;
        see `_withdraw`. A fact that was not corrected can be restored if the user marked its replacement as wrong.

        Raises:
            ArgumentError: The fact does not exist, was not corrected, or cannot be restored.
        """
        connection, name = self.connection, _fact_id(fact)
        if not has_fact(connection, fact):
            problem = f"{name} does not exist; check the id. Forgotten facts cannot be restored"
            raise _cannot_restore(problem)
        about, owner, slot, text, successor, _, is_corrected = self._fact(fact)
        if not is_corrected:
            return self._revive(fact)
        before = None if successor is None else self._replacement(name, successor)
        corrected_us = connection.execute("SELECT valid_until_us FROM facts WHERE fact = ?", (fact,)).get
        self._check_no_other(fact, corrected_us, successor)
        connection.execute(
            "UPDATE facts SET valid_until_us = stated_until_us, ended_by = NULL, ended_seq = NULL, "
            "superseded_by = NULL, valid_from_us = CASE WHEN valid_from_us < valid_until_us THEN valid_from_us "
            # If the fact began in the future, the correction moved its beginning, so the beginning is computed again.
            "ELSE (SELECT max(began_us) FROM (SELECT valid_from_us AS began_us UNION ALL SELECT min(occurred_us) "
            "FROM fact_evidence AS e JOIN pages USING (seq) WHERE e.fact = ?1) AS begins) END WHERE fact = ?1",
            (fact,),
        )
        allow_fact(connection, about, owner, text)
        note_change(connection, "fact", fact)
        if successor is not None:
            self._withdraw(successor, fact, slot, corrected_us)
        is_current = self._fact(fact)[5]  # the time when it was to end may have passed
        return Corrected(name, before, name, text) if is_current else Corrected(name, before)

    def _revive(self, fact: int) -> Corrected:
        """Make a fact valid again after its replacement was marked as wrong, and return the result.

        The fact keeps its start date and its evidence. Its end is the stated end date, if there is one. The fact is
        marked as stated by the user.

        Raises:
            ArgumentError: The fact was not replaced by a fact that the user marked as wrong, or it cannot be restored.
        """
        connection, name = self.connection, _fact_id(fact)
        text, successor = self._fact(fact)[3:5]
        row = connection.execute(
            "SELECT valid_until_us FROM facts WHERE fact = ? AND ended_by IS NOT NULL AND superseded_by IS NULL",
            (successor,),
        ).fetchone()
        if row is None:
            raise _cannot_restore(self._why_not_corrected(fact))
        self._check_no_other(fact, row[0])
        connection.execute(
            "UPDATE facts SET valid_until_us = stated_until_us, superseded_by = NULL, learned_by = ?, "
            "confirmed_us = ?, is_archived = 0 WHERE fact = ?",
            (LEARNED_BY_USER, self.now_us, fact),
        )
        note_change(connection, "fact", fact)
        is_current = self._fact(fact)[5]  # the time when it was to end may have passed
        return Corrected(name, None, name, text) if is_current else Corrected(name, None)

    def _check_no_other(self, fact: int, corrected_us: int, successor: int | None = None) -> None:
        """Check that no fact other than ``successor`` has replaced ``fact`` since the correction.

        Raises:
            ArgumentError: A valid fact has the same text, or states the same property and was confirmed later.
        """
        about, owner, slot, text, *_ = self._fact(fact)
        other = self.connection.execute(
            f"SELECT fact FROM facts WHERE {IS_VALID} AND about = ? AND assistant_id = ? AND fact IS DISTINCT FROM ? "  # noqa: S608 - constant
            "AND (folded = ? OR slot = ? AND is_archived = 0 AND confirmed_us > ?) LIMIT 1",
            (self.now_us, about, owner, successor, folded(text), slot, corrected_us),
        ).get
        if other is not None:
            problem = f"{_fact_id(other)} has since replaced {_fact_id(fact)}; correct {_fact_id(other)} instead"
            raise _cannot_restore(problem)

    def _why_not_corrected(self, fact: int) -> str:
        sql = "SELECT fact FROM facts WHERE superseded_by = ? AND ended_by IS NOT NULL LIMIT 1"
        wrong = self.connection.execute(sql, (fact,)).get
        if wrong is None:
            return f"{_fact_id(fact)} was not corrected"
        return f"{_fact_id(fact)} is the replacement of {_fact_id(wrong)}; restore {_fact_id(wrong)} instead"

    def _replacement(self, name: str, successor: int) -> str | None:
        """Return the text of the fact ``successor``, which replaced the wrong fact ``name``.

        Return None if the replacement is no longer valid, but was neither corrected nor superseded (for example,
        because its end date has passed).

        Raises:
            ArgumentError: The replacement has itself been corrected or superseded.
        """
        _, _, _, text, newer, is_current, is_corrected = self._fact(successor)
        if is_corrected:
            replacement = _fact_id(successor)
            problem = f"{replacement}, which replaced {name}, has itself been corrected; restore {replacement} first"
            raise _cannot_restore(problem)
        if newer is not None:
            problem = f"{_fact_id(newer)} has since replaced {name}; correct {_fact_id(newer)} instead"
            raise _cannot_restore(problem)
        return text if is_current else None

    def _withdraw(self, successor: int, fact: int, slot: str | None, corrected_us: int) -> None:
        """Withdraw ``successor``, which replaced ``fact``, after the user has undone the correction of ``fact``.

        ``successor`` remains valid if it was known before the correction, or if it also replaces another wrong fact.
        Otherwise, ``successor`` becomes invalid if a page is evidence for it, and is deleted if none is.

        ``slot`` is the property that ``fact`` states, and ``corrected_us`` is the time of the correction.
        """
        connection = self.connection
        row = connection.execute(
            "SELECT valid_from_us, EXISTS (SELECT 1 FROM fact_evidence WHERE fact = ?1) FROM facts WHERE fact = ?1",
            (successor,),
        ).fetchone()
        elsewhere = connection.execute(
            "SELECT valid_until_us, slot FROM facts WHERE superseded_by = ? AND ended_by IS NOT NULL "
            "ORDER BY valid_until_us LIMIT 1",
            (successor,),
        ).fetchone()
        assert row is not None  # noqa: S101 - for the type checker: another row refers to it
        since_us, has_evidence = row
        if elsewhere is not None:
            if since_us == corrected_us:
                connection.execute(
                    "UPDATE facts SET valid_from_us = ?, slot = ? WHERE fact = ?", (*elsewhere, successor)
                )
            else:  # remove the slot if only this correction set it
                connection.execute(
                    "UPDATE facts SET slot = nullif(slot, ?2) WHERE fact = ?1 AND NOT EXISTS (SELECT 1 FROM facts AS "
                    "wrong WHERE wrong.superseded_by = ?1 AND wrong.ended_by IS NOT NULL AND wrong.slot = ?2)",
                    (successor, slot),
                )
        elif since_us != corrected_us:
            connection.execute(
                "UPDATE facts SET slot = nullif(slot, ?2), learned_by = coalesce((SELECT pages.read_by "
                "FROM fact_evidence JOIN pages USING (seq) WHERE fact = ?1 ORDER BY seq DESC LIMIT 1), learned_by) "
                "WHERE fact = ?1",
                (successor, slot),
            )
        elif has_evidence:
            connection.execute(
                "UPDATE facts SET valid_until_us = ?, superseded_by = ? WHERE fact = ?", (self.now_us, fact, successor)
            )
        else:
            drop_facts(connection, [successor])
        note_change(connection, "fact", successor)

    def _fact(self, fact: int) -> tuple[str, str, str | None, str, int | None, bool, bool]:
        """Return seven values of a fact: (about, owner, slot, text, successor, is_current, is_corrected).

        ``successor`` is the number of the fact that superseded this fact, or None. For the other values,
        see `Fact`; ``owner`` is the id of the assistant, or empty for a fact about the user.

        Raises:
            ArgumentError: There is no such fact, or the fact is about another assistant.
        """
        sql = (
            f"SELECT about, assistant_id, slot, text, superseded_by, {IS_VALID}, ended_by IS NOT NULL FROM facts "  # noqa: S608 - constant
            "WHERE fact = ?2 AND (about = 'user' OR assistant_id = ?3)"
        )
        row = self.connection.execute(sql, (self.now_us, fact, self.assistant_id)).fetchone()
        if row is None:
            raise not_there([MemoryId(Kind.FACT, number=fact)], "id")
        about, owner, slot, text, successor, is_valid, is_corrected = row
        return about, owner, slot, text, successor, bool(is_valid), bool(is_corrected)

    # Traits --------------------------------------------------------------------------------------------------------

    def _correct_trait(self, dimension: str, level: Level | None, reason: str | None) -> Corrected:
        """Set a trait's level and reason to the user's values. Background work does not change these values later.

        If ``level`` is None, the level is not changed. If ``reason`` is None and the level changes, the reason becomes
        `REASON_WITHOUT_WORDS`. If ``reason`` is None and the level does not change, the reason is not changed.
        """
        connection = self.connection
        old_level, old_reason, learner = self._trait(dimension)
        new_level = old_level if level is None else level.value
        unsaid = old_reason if new_level == old_level else REASON_WITHOUT_WORDS
        new_reason = unsaid if reason is None else reason
        if (new_level, new_reason, LEARNED_BY_USER) == (old_level, old_reason, learner):
            raise ArgumentError(
                argument="level", problem="the trait already has these values; pass a different level or reason"
            )
        add_to_history(connection, dimension, self.now_us, ended_by=LEARNED_BY_USER)
        connection.execute(
            "UPDATE traits SET level = ?, reason = ?, updated_us = ?, learned_by = ? WHERE dimension = ?",
            (new_level, new_reason, self.now_us, LEARNED_BY_USER, dimension),
        )
        note_change(connection, "profile", 0)
        name = trait_id(dimension)
        return Corrected(name, f"{old_level} - {old_reason}", name, f"{new_level} - {new_reason}")

    def _drop_trait(self, dimension: str) -> Corrected:
        """Remove a wrong trait from the profile. The trait's value is added to the history."""
        connection = self.connection
        level, reason, _ = self._trait(dimension)
        add_to_history(connection, dimension, self.now_us, ended_by=LEARNED_BY_USER)
        refuse_trait(connection, dimension, newest_seq(connection))
        delete_trait(connection, dimension)
        return Corrected(trait_id(dimension), f"{level} - {reason}")

    def _restore_trait(self, dimension: str) -> Corrected:
        """Restore the value that a trait had before the user's last correction.

        The trait's evidence is restored too, except pages that no longer exist.
        """
        connection, name = self.connection, trait_id(dimension)
        current = connection.execute(
            "SELECT level || ' - ' || reason, learned_by FROM traits WHERE dimension = ?", (dimension,)
        ).fetchone()
        row = connection.execute(
            "SELECT ended_by, rowid, level, reason, held_from_us, learned_by, evidence FROM trait_history "
            "WHERE dimension = ? ORDER BY held_until_us DESC, rowid DESC LIMIT 1",
            (dimension,),
        ).fetchone()
        if row is None or row[0] is None:
            problem = (
                f"{name} was not corrected, or the correction was forgotten; to change the trait, "
                "pass 'level' or 'reason' instead of 'restore'"
            )
            raise _cannot_restore(problem)
        if current is not None and current[1] != LEARNED_BY_USER:
            problem = f"{name} has since been learned again; correct its level or reason instead"
            raise _cannot_restore(problem)
        _, past, level, reason, held_from_us, learner, evidence = row
        set_trait(connection, dimension, level, reason, held_from_us, learner)
        connection.execute(
            "INSERT INTO trait_evidence (dimension, seq) SELECT ?, seq FROM pages "
            "WHERE seq IN (SELECT value FROM json_each(?)) ON CONFLICT DO NOTHING",
            (dimension, evidence),
        )
        connection.execute("DELETE FROM trait_history WHERE rowid = ?", (past,))
        allow_trait(connection, dimension)
        note_change(connection, "profile", 0)
        return Corrected(name, None if current is None else current[0], name, f"{level} - {reason}")

    def _trait(self, dimension: str) -> tuple[str, str, str]:
        sql = "SELECT level, reason, learned_by FROM traits WHERE dimension = ?"
        ((level, reason, learner),) = all_rows(self.connection, sql, dimension)
        return level, reason, learner


def _cannot_restore(problem: str) -> ArgumentError:
    return ArgumentError(argument="restore", problem=f"cannot be done: {problem}")


def _fact_id(fact: int) -> str:
    return numbered_id(Kind.FACT, fact)


def _user_fact(
    connection: Connection, place: tuple[str, str, str | None], text: str, now_us: int, offset_s: int
) -> int:
    """Return the number of the current fact with this text; add the fact if it is missing.

    In both cases, the fact is marked as stated by the user. ``place`` is the tuple (about, owner, slot) of the fact.
    """
    about, owner, slot = place
    sql = f"SELECT fact FROM facts WHERE {IS_VALID} AND about = ? AND assistant_id = ? AND folded = ?"  # noqa: S608
    known = connection.execute(sql, (now_us, about, owner, folded(text))).get
    if known is None:
        known = connection.execute(
            "INSERT INTO facts (about, assistant_id, slot, valid_from_us, utc_offset_s, confirmed_us, folded, text, "
            "learned_by) VALUES (?, ?, ?, ?4, ?5, ?4, ?, ?, ?) RETURNING fact",
            (about, owner, slot, now_us, offset_s, folded(text), text, LEARNED_BY_USER),
        ).get
    else:
        connection.execute(
            "UPDATE facts SET learned_by = ?, confirmed_us = ?, is_archived = 0, slot = coalesce(slot, ?) "
            "WHERE fact = ?",
            (LEARNED_BY_USER, now_us, slot, known),
        )
    note_change(connection, "fact", known)
    return int(known)
