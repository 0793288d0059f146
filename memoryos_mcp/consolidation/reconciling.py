"""Reconciling: adapts extracted facts and traits (lessons) to changes that were committed after the pages were read.

No further LLM call is needed. Segments are read in parallel, so the same fact or trait may be extracted from two of
them. Such duplicates are merged here.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache

from memoryos_mcp.model.knowledge import FAMILY, About, AddFact, ConfirmFact, Fact, KnowledgeChange, Lessons
from memoryos_mcp.model.profile import Trait, TraitChange
from memoryos_mcp.text.terms import stem, words

# Words that do not change the meaning. Negations, directions and tenses change it, so they are not in the list.
_FILLER_WORDS = frozenset("a an the is are has s also that currently user".split())


def reconcile(
    lessons: Lessons,
    traits_then: Sequence[Trait],
    traits_now: Sequence[Trait],
    facts_now: Sequence[Fact],
    said: Mapping[int, datetime],
    kept: AbstractSet[int] = frozenset(),
) -> Lessons | None:
    """Return lessons (facts and traits) adapted to the current memory, or None if the pages must be read again.

    The pages must be read again if the level of a trait has changed meanwhile. In the result, facts are in the order in
    which they were said. A known fact is confirmed instead of added. A fact that is no longer current is neither
    confirmed nor superseded.

    Args:
        lessons: The lessons that the analyst extracted.
        traits_then: The profile that the analyst was shown.
        traits_now: The current profile.
        facts_now: The current facts.
        said: The time of each page, by the page's ``seq``.
        kept: The numbers of facts that must not be superseded.
    """
    then = {trait.dimension: trait for trait in traits_then}
    now = {trait.dimension: trait for trait in traits_now}
    changed = [change for change in lessons.traits if then.get(change.dimension) != now.get(change.dimension)]
    if any(change.level != now[change.dimension].level for change in changed if change.dimension in now):
        return None
    return Lessons(
        traits=tuple(_with_present_reason(change, then, now) for change in lessons.traits),
        knowledge=_Fitting(facts_now, said, kept).fit(lessons.knowledge),
    )


def _with_present_reason(change: TraitChange, then: dict[str, Trait], now: dict[str, Trait]) -> TraitChange:
    """Return a trait change, adapted to the current profile ``now``. The analyst was shown the profile ``then``.

    If the trait was added or changed in between, the result has the trait's current level and reason, and the evidence
    of ``change``. Otherwise, ``change`` is returned unchanged.
    """
    present = now.get(change.dimension)
    if present is None or present == then.get(change.dimension):
        return change
    return TraitChange(dimension=change.dimension, level=present.level, reason=present.reason, evidence=change.evidence)


class _Fitting:
    """Adapts an analyst's fact changes to the current facts, which may have changed during the analysis.

    For instance, if an added fact exists already, its addition becomes a confirmation.

    Args:
        facts: The current facts.
        said: The time of each page, by the page's ``seq``.
        kept: The numbers of facts that must not be superseded.
    """

    def __init__(self, facts: Sequence[Fact], said: Mapping[int, datetime], kept: AbstractSet[int]) -> None:
        self._said = said
        self._kept = kept
        self._facts = {fact.fact: fact for fact in facts}
        self._by_words: dict[tuple[About, tuple[str, ...]], Fact] = {}
        self._by_slot: dict[tuple[About, str | None], list[Fact]] = {}
        for fact in facts:
            self._by_words.setdefault((fact.about, _content_words(fact.text)), fact)
            self._by_slot.setdefault((fact.about, fact.slot), []).append(fact)

    def fit(self, changes: Sequence[KnowledgeChange]) -> tuple[KnowledgeChange, ...]:
        """Return the changes, adapted to the current facts. They are in the order in which their facts were stated.

        Duplicates are merged. Confirmations of facts that no longer exist are left out.
        """
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
            for text in change.ends:  # a fact that is repeated after it ended is current again
                added.pop((change.about, _content_words(text)), None)
            place = added.setdefault((fitted.about, _content_words(fitted.text)), len(kept))
            if place == len(kept):
                kept.append(fitted)
            else:
                kept[place] = _joined(kept[place], fitted)
        return tuple(self._with_unique_slots(kept))

    def _said_at(self, change: KnowledgeChange) -> tuple[datetime, int]:
        """Return when the fact of a change was stated: the time and the ``seq`` of the newest page that states it.

        If no page states it, the ``seq`` is 0. The time is then ``valid_from`` for an added fact, and the latest
        possible time for a confirmed fact.
        """
        times = [(self._said[seq], seq) for seq in change.evidence if seq in self._said]
        if times:
            return max(times)
        return (change.valid_from if isinstance(change, AddFact) else datetime.max.replace(tzinfo=UTC)), 0

    def _fitted(self, change: AddFact) -> KnowledgeChange:
        named = [fact for fact in change.supersedes if fact in self._facts]
        ended = [self._by_words.get((change.about, _content_words(text))) for text in change.ends]
        named = list(dict.fromkeys([*named, *(fact.fact for fact in ended if fact is not None)]))
        said_at = self._said_at(change)
        answered = [
            fact.fact
            for fact in self._by_slot.get((change.about, change.slot), ())
            if change.slot is not None and (fact.last_said or (fact.valid_from, 0)) <= said_at
        ]
        if (change.slot or "").startswith(FAMILY) and not set(answered) <= set(named):
            fitted = replace(change, slot=None, supersedes=tuple(named))  # another fact about a relative
        else:
            fitted = replace(change, supersedes=tuple(dict.fromkeys([*named, *answered])))
        fitted = replace(fitted, supersedes=tuple(fact for fact in fitted.supersedes if fact not in self._kept))
        known = self._by_words.get((change.about, _content_words(change.text)))
        if known is None:
            return fitted
        others = tuple(fact for fact in fitted.supersedes if fact != known.fact)
        if not others:
            return ConfirmFact(fact=known.fact, evidence=change.evidence)
        return replace(fitted, text=known.text, slot=None, supersedes=others)

    def _with_unique_slots(self, changes: Sequence[KnowledgeChange]) -> list[KnowledgeChange]:
        """Return the changes, with the slot removed from some added facts, so that they do not supersede each other.

        A slot is an attribute of a person, such as ``lives``. Of several added facts with the same slot, the last one
        keeps the slot. An earlier fact loses the slot if it was stated at the same time as the last one. It also loses
        the slot if the slot is a relative, such as ``family:brother``, because a person may have several brothers.
        Otherwise, the earlier fact keeps the slot, and is superseded.
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
    """Return the change ``known``, extended by the evidence, ``supersedes`` and ``ends`` of ``change``."""
    if not isinstance(known, AddFact):
        return known
    return replace(
        known,
        evidence=tuple(dict.fromkeys([*known.evidence, *change.evidence])),
        supersedes=tuple(dict.fromkeys([*known.supersedes, *change.supersedes])),
        ends=tuple(dict.fromkeys([*known.ends, *change.ends])),
    )


def is_same_fact(left: str, right: str) -> bool:
    """Return whether two sentences have the same word stems in the same order, apart from filler words."""
    return _content_words(left) == _content_words(right)


@lru_cache(maxsize=20_000)
def _content_words(text: str) -> tuple[str, ...]:
    found = words(text)
    return tuple(stem(word) for word in found if word not in _FILLER_WORDS) or tuple(found)
