"""Reconciling: lessons are adapted to what was written since their pages were read, without asking again.

Segments are read in parallel, so two may teach the same fact or trait. Here such duplicates are merged.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache

from memoryos_mcp.model.knowledge import FAMILY, About, AddFact, ConfirmFact, Fact, KnowledgeChange, Lessons
from memoryos_mcp.model.profile import Trait, TraitChange
from memoryos_mcp.text.terms import stem, words

# No negation, direction or tense is included: they make it a different fact.
_SAYS_NOTHING = frozenset("a an the is are has s also that currently user".split())


def reconcile(
    lessons: Lessons,
    traits_then: Sequence[Trait],
    traits_now: Sequence[Trait],
    facts_now: Sequence[Fact],
    said: Mapping[int, datetime],
) -> Lessons | None:
    """Return the lessons adapted to the current memory, or None if they must be learned again.

    Knowledge is in the order in which it was said. A known fact is confirmed instead of added. A fact that is no longer
    in force is neither confirmed nor superseded. A trait whose level has changed meanwhile must be judged again.

    ``traits_then`` is the profile that the lessons are based on, ``said`` when each page was said, by its ``seq``.
    """
    then = {trait.dimension: trait for trait in traits_then}
    now = {trait.dimension: trait for trait in traits_now}
    changed = [change for change in lessons.traits if then.get(change.dimension) != now.get(change.dimension)]
    if any(change.level != now[change.dimension].level for change in changed if change.dimension in now):
        return None
    return Lessons(
        traits=tuple(_with_present_reason(change, then, now) for change in lessons.traits),
        knowledge=_Fitting(facts_now, said).fit(lessons.knowledge),
    )


def _with_present_reason(change: TraitChange, then: dict[str, Trait], now: dict[str, Trait]) -> TraitChange:
    """Return the change; if the level was set to the same meanwhile, keep that reason and add the evidence."""
    present = now.get(change.dimension)
    if present is None or present == then.get(change.dimension):
        return change
    return TraitChange(dimension=change.dimension, level=present.level, reason=present.reason, evidence=change.evidence)


class _Fitting:
    """Fits changes to the facts in force; ``said`` is when each page was said, by its ``seq``."""

    def __init__(self, facts: Sequence[Fact], said: Mapping[int, datetime]) -> None:
        self._said = said
        self._facts = {fact.fact: fact for fact in facts}
        self._by_words: dict[tuple[About, tuple[str, ...]], Fact] = {}
        self._by_slot: dict[tuple[About, str | None], list[Fact]] = {}
        for fact in facts:
            self._by_words.setdefault((fact.about, _told(fact.text)), fact)
            self._by_slot.setdefault((fact.about, fact.slot), []).append(fact)

    def fit(self, changes: Sequence[KnowledgeChange]) -> tuple[KnowledgeChange, ...]:
        """Return the changes with every fact once, in the order in which they were said."""
        kept: list[KnowledgeChange] = []
        added: dict[tuple[About, tuple[str, ...]], int] = {}
        for change in sorted(changes, key=self._said_at):
            if isinstance(change, ConfirmFact):
                if change.fact in self._facts:
                    kept.append(change)
                continue
            fitted = self._fitted(change)
            if isinstance(fitted, ConfirmFact):
                kept.append(fitted)
                continue
            for text in change.ends:  # a fact said again after it was ended holds again
                added.pop((change.about, _told(text)), None)
            place = added.setdefault((fitted.about, _told(fitted.text)), len(kept))
            if place == len(kept):
                kept.append(fitted)
            else:
                kept[place] = _joined(kept[place], fitted)
        return tuple(self._with_one_answer(kept))

    def _said_at(self, change: KnowledgeChange) -> tuple[datetime, int]:
        """Return the time and ``seq`` of a change's newest page; without pages, since when the fact holds, and 0."""
        times = [(self._said[seq], seq) for seq in change.evidence if seq in self._said]
        if times:
            return max(times)
        return (change.valid_from if isinstance(change, AddFact) else datetime.max.replace(tzinfo=UTC)), 0

    def _fitted(self, change: AddFact) -> KnowledgeChange:
        named = [fact for fact in change.supersedes if fact in self._facts]
        ended = [self._by_words.get((change.about, _told(text))) for text in change.ends]
        named = list(dict.fromkeys([*named, *(fact.fact for fact in ended if fact is not None)]))
        said_at = self._said_at(change)
        answered = [
            fact.fact
            for fact in self._by_slot.get((change.about, change.slot), ())
            if change.slot is not None and (fact.last_said or (fact.valid_from, 0)) <= said_at
        ]
        if (change.slot or "").startswith(FAMILY) and not set(answered) <= set(named):
            fitted = replace(change, slot=None, supersedes=tuple(named))  # more about a person, not another person
        else:
            fitted = replace(change, supersedes=tuple(dict.fromkeys([*named, *answered])))
        known = self._by_words.get((change.about, _told(change.text)))
        if known is None:
            return fitted
        others = tuple(fact for fact in fitted.supersedes if fact != known.fact)
        if not others:
            return ConfirmFact(fact=known.fact, evidence=change.evidence)
        return replace(fitted, text=known.text, slot=None, supersedes=others)

    def _with_one_answer(self, changes: Sequence[KnowledgeChange]) -> list[KnowledgeChange]:
        """Return the changes; of simultaneous answers, and of facts about one person, only one keeps the slot.

        The others are added without a slot. An answer said later replaces an earlier one when it is added.
        """
        newest: dict[tuple[About, str], AddFact] = {}
        for change in changes:
            if isinstance(change, AddFact) and change.slot is not None:
                newest[change.about, change.slot] = change
        fitted: list[KnowledgeChange] = []
        for change in changes:
            if isinstance(change, AddFact) and change.slot is not None:
                holding = newest[change.about, change.slot]
                is_beside = change.slot.startswith(FAMILY) or self._said_at(holding) == self._said_at(change)
                fitted.append(replace(change, slot=None) if holding is not change and is_beside else change)
            else:
                fitted.append(change)
        return fitted


def _joined(known: KnowledgeChange, change: AddFact) -> KnowledgeChange:
    """Return a change with the evidence and ends of another that says the same."""
    if not isinstance(known, AddFact):
        return known
    return replace(
        known,
        evidence=tuple(dict.fromkeys([*known.evidence, *change.evidence])),
        supersedes=tuple(dict.fromkeys([*known.supersedes, *change.supersedes])),
        ends=tuple(dict.fromkeys([*known.ends, *change.ends])),
    )


def is_same_fact(left: str, right: str) -> bool:
    """Whether two sentences state the same fact: the same words in the same order, but for words that say nothing."""
    return _told(left) == _told(right)


@lru_cache(maxsize=20_000)
def _told(text: str) -> tuple[str, ...]:
    found = words(text)
    return tuple(stem(word) for word in found if word not in _SAYS_NOTHING) or tuple(found)
