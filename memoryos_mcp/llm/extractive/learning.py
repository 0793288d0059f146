"""Knowledge without an LLM: which statements are new, which are said again, and which take the place of others."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from memoryos_mcp.knowledge import About, AddFact, ConfirmFact, Fact, Kind, KnowledgeChange
from memoryos_mcp.llm.extractive.patterns import FORMER_SLOTS, assistant_table, user_table, wish_table
from memoryos_mcp.llm.extractive.statements import Statement, answer_of, statements, stems_of
from memoryos_mcp.pages import Page
from memoryos_mcp.segments import jaccard

SAME_JACCARD = 0.8
NEWS_STEMS_MIN = 3
"""Stems beyond those of the known fact that make an equal answer worth a fact of its own."""
NEWS_OF_SOMEBODY_MIN = 1
"""The same of somebody else than the user: each thing told of them is news."""
OPPOSITE_JACCARD = 0.6

_NEGATION = re.compile(
    r"n['’]t\b|\b(?:not|never|no|none|cannot|nicht|kein\w*|pas|jamais|nunca|не|нет)\b|不|没|ない|ません|않|안 |못",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d+|\b(?:one|two|three|four|five|six|seven|eight|nine|ten)\b", re.IGNORECASE)


_OWN = re.compile(r"(?:i|we|my|our|i['’]\w+|we['’]\w+)\b", re.IGNORECASE)
_DAYS = re.compile(r" \[[^\]]+\]")
_OF_A_COUPLE = re.compile(r"family:(?:partner|boyfriend|girlfriend|husband|wife|spouse|fianc[eé]e?)")
_FREQUENCY = stems_of("always never please from now on stop")
_PARTED = frozenset(
    stem for word in ("broke", "broken", "split", "divorced", "separated", "single") for stem in stems_of(word)
)


@dataclass(frozen=True, slots=True)
class _Form:
    """What a text says, without how it says it: for telling whether two texts say the same."""

    stems: frozenset[str]
    is_negated: bool
    numbers: frozenset[str]
    kind: Kind


def learn_knowledge(pages: Sequence[Page], facts: Sequence[Fact]) -> tuple[KnowledgeChange, ...]:
    """Return what to add, confirm and supersede, so that what was said last holds.

    Args:
        pages: Pages not analysed yet.
        facts: What is known and holds now.
    """
    ordered = sorted(pages, key=lambda page: (page.occurred_at, page.seq))
    said = _without_idle_guesses([statement for page in ordered for statement in statements(page)], facts)
    forms = {fact.fact: _form(fact.text, fact.kind) for fact in facts} if said else {}
    confirmed: dict[int, dict[int, str]] = {}
    added: list[tuple[Statement, tuple[int, ...]]] = []
    loose = [statement for statement in said if statement.slot is None]
    for (about, slot), group in _by_slot(said).items():
        known = [fact for fact in facts if fact.about is about and _slot_of(fact) == slot]
        loose.extend(_settle(group, known, forms, confirmed, added))
    replaced = {number for _, numbers in added for number in numbers}
    single: list[Statement] = [statement for statement, _ in added]
    for statement in sorted(loose, key=lambda statement: (statement.said_at, min(statement.pages))):
        fact = next(
            (f for f in facts if f.about is statement.about and _is_same(forms[f.fact], _form_of(statement))), None
        )
        twin = next(
            (s for s in single if s.about is statement.about and _is_same(_form_of(s), _form_of(statement))), None
        )
        if fact is not None:
            if fact.fact not in replaced:
                confirmed.setdefault(fact.fact, {}).update(statement.pages)
        elif twin is not None:
            twin.pages.update(statement.pages)
        else:
            single.append(statement)
            added.append((statement, ()))
    added = [(statement, (*numbers, *_ended(statement, facts, forms, numbers))) for statement, numbers in added]
    ended = {number for _, numbers in added for number in numbers}
    confirmed = {number: pages for number, pages in confirmed.items() if number not in ended}
    added.sort(key=lambda item: (item[0].said_at, min(item[0].pages)))
    changes: list[KnowledgeChange] = [_add(statement, supersedes) for statement, supersedes in added]
    changes.extend(_confirmations(confirmed, facts))
    return tuple(changes)


def _without_idle_guesses(said: Sequence[Statement], facts: Sequence[Fact]) -> list[Statement]:
    """Return the statements without those that are implied where their slot is filled by something that was stated."""
    filled = {(fact.about, _slot_of(fact)) for fact in facts}
    filled.update((statement.about, statement.slot) for statement in said if not statement.is_implied)
    return [each for each in said if not (each.is_implied and (each.about, each.slot) in filled)]


def _by_slot(said: Iterable[Statement]) -> dict[tuple[About, str], list[Statement]]:
    groups: dict[tuple[About, str], list[Statement]] = {}
    for statement in said:
        if statement.slot is not None:
            groups.setdefault((statement.about, statement.slot), []).append(statement)
    return groups


def _settle(
    group: Sequence[Statement],
    known: Sequence[Fact],
    forms: dict[int, _Form],
    confirmed: dict[int, dict[int, str]],
    added: list[tuple[Statement, tuple[int, ...]]],
) -> list[Statement]:
    """Decide which answer of one slot holds; return the statements that say more than the answer.

    Args:
        group: The statements with this slot, oldest first.
        known: The facts that hold now with this slot.
        forms: Of the facts, by number.
        confirmed: Pages that confirm a fact, by its number; extended.
        added: Statements to add, with the facts they supersede; extended.
    """
    newest = group[-1]
    same = [s for s in group if _is_same_answer(newest.value, s.value)]
    holding = [fact for fact in known if _answers(fact, newest, forms)]
    if not holding and known and newest.said_at < max(fact.valid_from for fact in known):
        return []
    more: list[Statement] = []
    if holding:
        for statement in same:
            if len(_form_of(statement).stems - forms[holding[0].fact].stems) >= _news_min(statement):
                more.append(_loose(statement))
            else:
                confirmed.setdefault(holding[0].fact, {}).update(statement.pages)
        return more
    since = max((fact.valid_from for fact in known), default=None)
    run: list[Statement] = []
    for statement in reversed(group):
        if not _is_same_answer(newest.value, statement.value) or (since is not None and statement.said_at < since):
            break
        run.insert(0, statement)
    first = run[0]
    for statement in run[1:]:
        first.pages.update(statement.pages)
        if len(_form_of(statement).stems - _form_of(first).stems) >= _news_min(statement):
            more.append(_loose(statement))
    added.append((first, tuple(fact.fact for fact in known)))
    return more


def _loose(statement: Statement) -> Statement:
    return replace(statement, slot=None, value=frozenset(), pages=dict(statement.pages))


def _news_min(statement: Statement) -> int:
    return NEWS_OF_SOMEBODY_MIN if (statement.slot or "").startswith(("family:", "pet:")) else NEWS_STEMS_MIN


def _slot_of(fact: Fact) -> str | None:
    return FORMER_SLOTS.get(fact.slot, fact.slot) if fact.slot is not None else None


def _ended(
    statement: Statement, facts: Sequence[Fact], forms: dict[int, _Form], replaced: tuple[int, ...]
) -> Iterator[int]:
    """Yield the facts that hold no longer because of a statement, other than those it replaces."""
    for fact in facts:
        if fact.fact in replaced or fact.about is not statement.about or fact.valid_from > statement.said_at:
            continue
        if statement.kind is Kind.WISH:
            is_over = fact.kind is Kind.WISH and _is_taken_back(_form_of(statement), statement.ends, forms[fact.fact])
        else:
            is_over = fact.kind is Kind.STATEMENT and _is_over(statement, fact, forms[fact.fact])
        if is_over:
            yield fact.fact


def _is_over(statement: Statement, fact: Fact, form: _Form) -> bool:
    if statement.slot == "marital status" and statement.value & _PARTED and _OF_A_COUPLE.match(fact.slot or ""):
        return True
    ends = statement.ends
    return bool(ends) and ends <= form.stems and not form.is_negated and _OWN.match(fact.text) is not None


def _is_taken_back(wish: _Form, ends: frozenset[str], known: _Form) -> bool:
    if ends:
        return len(ends & known.stems) * 2 >= len(ends)
    is_opposite = wish.is_negated != known.is_negated
    return is_opposite and jaccard(wish.stems - _FREQUENCY, known.stems - _FREQUENCY) >= OPPOSITE_JACCARD


def _answers(fact: Fact, statement: Statement, forms: dict[int, _Form]) -> bool:
    tables = (assistant_table(),) if fact.about is About.ASSISTANT else (user_table(), wish_table())
    stated = (answer_of(_DAYS.sub("", fact.text), table, is_certain=True) for table in tables)
    found = next((answer for answer in stated if answer is not None), None)
    if found is not None and found.slot == _slot_of(fact):
        is_same_way = forms[fact.fact].is_negated == _form_of(statement).is_negated
        return is_same_way and _is_same_answer(found.value, statement.value)
    return statement.value <= forms[fact.fact].stems


def _is_same_answer(left: frozenset[str], right: frozenset[str]) -> bool:
    return left <= right or right <= left


def _is_same(left: _Form, right: _Form) -> bool:
    if left.kind is not right.kind or left.is_negated != right.is_negated or left.numbers != right.numbers:
        return False
    return left.stems == right.stems or jaccard(left.stems, right.stems) >= SAME_JACCARD


def _form_of(statement: Statement) -> _Form:
    return _form(statement.text, statement.kind)


@lru_cache(4_096)
def _form(text: str, kind: Kind) -> _Form:
    return _Form(
        stems=stems_of(text),
        is_negated=_NEGATION.search(text) is not None,
        numbers=frozenset(number.lower() for number in _NUMBER.findall(text)),
        kind=kind,
    )


def _add(statement: Statement, supersedes: tuple[int, ...]) -> AddFact:
    return AddFact(
        about=statement.about,
        text=statement.text,
        slot=statement.slot,
        valid_from=statement.said_at,
        evidence=tuple(sorted(statement.pages)),
        supersedes=supersedes,
        kind=statement.kind,
    )


def _confirmations(confirmed: dict[int, dict[int, str]], facts: Iterable[Fact]) -> Iterator[ConfirmFact]:
    for fact in facts:
        pages = confirmed.get(fact.fact, {})
        new = tuple(sorted(seq for seq, name in pages.items() if name not in fact.evidence))
        if new:
            yield ConfirmFact(fact=fact.fact, evidence=new)
