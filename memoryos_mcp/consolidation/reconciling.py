"""Reconciling: lessons are fitted to what others have written since the pages were read, without asking again.

Segments are read side by side, so two may teach the same fact or trait. Here is where it stays one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from memoryos_mcp.knowledge import FAMILY, About, AddFact, ConfirmFact, Fact, KnowledgeChange, Lessons
from memoryos_mcp.profile import Trait, TraitChange
from memoryos_mcp.terms import stem, words

# No negation, direction or tense is among these: they make another fact of a sentence.
_SAYS_NOTHING = frozenset("a an the is are has s also that currently user".split())


def reconcile(
    lessons: Lessons, traits_then: Sequence[Trait], traits_now: Sequence[Trait], facts_now: Sequence[Fact]
) -> Lessons | None:
    """Return the lessons as they can be taken over now, or None if they have to be learned anew.

    A fact that is known by now is confirmed instead of added; what is no longer in force is neither confirmed nor
    superseded. A trait that has changed meanwhile to another level has to be judged anew.

    Args:
        lessons: As they were learned.
        traits_then: The profile they were computed from.
        traits_now: The profile as it stands.
        facts_now: What holds now.
    """
    then = {trait.dimension: trait for trait in traits_then}
    now = {trait.dimension: trait for trait in traits_now}
    changed = [change for change in lessons.traits if then.get(change.dimension) != now.get(change.dimension)]
    if any(change.level != now[change.dimension].level for change in changed if change.dimension in now):
        return None
    return Lessons(
        traits=tuple(_with_present_reason(change, then, now) for change in lessons.traits),
        knowledge=_once(lessons.knowledge, facts_now),
    )


def _with_present_reason(change: TraitChange, then: dict[str, Trait], now: dict[str, Trait]) -> TraitChange:
    """Return the change; where another has given the same level meanwhile, its reason stays and the evidence joins."""
    present = now.get(change.dimension)
    if present is None or present == then.get(change.dimension):
        return change
    return TraitChange(dimension=change.dimension, level=present.level, reason=present.reason, evidence=change.evidence)


def _once(changes: Sequence[KnowledgeChange], facts: Sequence[Fact]) -> tuple[KnowledgeChange, ...]:
    """Return the changes with every fact once."""
    in_force = {fact.fact for fact in facts}
    kept: list[KnowledgeChange] = []
    for change in changes:
        if isinstance(change, ConfirmFact):
            if change.fact in in_force:
                kept.append(change)
            continue
        named = [fact for fact in change.supersedes if fact in in_force]
        answered = [fact.fact for fact in facts if _answers_the_same(fact, change)]
        if (change.slot or "").startswith(FAMILY) and not set(answered) <= set(named):
            fitted = replace(change, slot=None, supersedes=tuple(named))  # more of somebody, not another in their place
        else:
            fitted = replace(change, supersedes=tuple(dict.fromkeys([*named, *answered])))
        known = next(
            (fact for fact in facts if fact.about is change.about and is_same_fact(fact.text, change.text)), None
        )
        if known is not None:
            others = tuple(fact for fact in fitted.supersedes if fact != known.fact)
            fitted = replace(fitted, text=known.text, slot=None, supersedes=others)
        if known is not None and not fitted.supersedes:
            kept.append(ConfirmFact(fact=known.fact, evidence=change.evidence))
        else:
            _join(kept, fitted)
    return tuple(_with_one_answer(kept))


def _answers_the_same(fact: Fact, change: AddFact) -> bool:
    """Whether a fact gives an older answer to what a change answers, and only one can hold."""
    is_of_it = change.slot is not None and fact.slot == change.slot and fact.about is change.about
    return is_of_it and fact.valid_from <= change.valid_from


def _with_one_answer(changes: Sequence[KnowledgeChange]) -> Iterator[KnowledgeChange]:
    """Yield the changes; of several answers to the same the newest holds, and the others until then."""
    newest: dict[tuple[About, str], AddFact] = {}
    for change in changes:
        if isinstance(change, AddFact) and change.slot is not None:
            other = newest.get((change.about, change.slot))
            if other is None or other.valid_from <= change.valid_from:
                newest[change.about, change.slot] = change
    for change in changes:
        if isinstance(change, AddFact) and change.slot is not None:
            holding = newest[change.about, change.slot]
            if holding is not change:
                is_more = change.slot.startswith(FAMILY) or holding.valid_from == change.valid_from
                end = (change.valid_until, change.said_until) if is_more else (holding.valid_from, None)
                yield replace(change, slot=None, valid_until=end[0], said_until=end[1])
                continue
        yield change


def _join(kept: list[KnowledgeChange], change: AddFact) -> None:
    """Add a change, or what it rests on and supersedes to the one before that says the same."""
    for place, other in enumerate(kept):
        if isinstance(other, AddFact) and other.about is change.about and is_same_fact(other.text, change.text):
            kept[place] = replace(
                other,
                evidence=tuple(dict.fromkeys([*other.evidence, *change.evidence])),
                supersedes=tuple(dict.fromkeys([*other.supersedes, *change.supersedes])),
            )
            return
    kept.append(change)


def is_same_fact(left: str, right: str) -> bool:
    """Whether two sentences are the same fact: the same words in the same order, but for those that say nothing."""
    return _told(left) == _told(right)


@lru_cache(maxsize=20_000)
def _told(text: str) -> tuple[str, ...]:
    found = words(text)
    return tuple(stem(word) for word in found if word not in _SAYS_NOTHING) or tuple(found)
