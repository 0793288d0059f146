"""Learns facts without an LLM. Statements on pages become new facts, or confirm or replace known facts."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from memoryos_mcp.llm.extractive.patterns import assistant_table, user_table, wish_table
from memoryos_mcp.llm.extractive.statements import GUESS, Statement, answer_of, statements, stems_of
from memoryos_mcp.model.knowledge import About, AddFact, ConfirmFact, Fact, Kind, KnowledgeChange
from memoryos_mcp.model.pages import Page
from memoryos_mcp.model.segments import jaccard

SAME_JACCARD = 0.8
NEWS_STEMS_MIN = 3
"""Minimum number of new stems at which a statement that repeats a known fact also becomes a separate fact."""
NEWS_OF_SOMEBODY_MIN = 1
"""The same minimum for statements about family members and pets."""
OPPOSITE_JACCARD = 0.6

_NEGATION = re.compile(
    r"n['’]t\b|\b(?:not|never|no|none|cannot|nicht|kein\w*|pas|jamais|nunca|не|нет)\b|不|没|ない|ません|않|안 |못",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d+|\b(?:one|two|three|four|five|six|seven|eight|nine|ten)\b", re.IGNORECASE)


_OF_PLACES = frozenset({"lives", "from"})
_OWN = re.compile(r"(?:i|we|my|our|i['’]\w+|we['’]\w+)\b", re.IGNORECASE)
_DAYS = re.compile(r" \[[^\]]+\]")
_OF_PARTNER = re.compile(r"family:(?:partner|boyfriend|girlfriend|husband|wife|spouse|fianc[eé]e?)")
_LEFT_WORK = re.compile(
    r"\b(?:quit|left|lost|laid off|fired|redundant|retired|resigned|unemployed|between jobs|handed in)\b", re.IGNORECASE
)
_FREQUENCY = stems_of("always never please from now on stop")
_PARTED = frozenset(
    stem for word in ("broke", "broken", "split", "divorced", "separated", "single") for stem in stems_of(word)
)


@dataclass(frozen=True, slots=True)
class _Form:
    """Features of a text. Two texts have the same meaning if their features are similar enough (see `_is_same`)."""

    stems: frozenset[str]
    is_negated: bool
    numbers: frozenset[str]
    kind: Kind


def learn_knowledge(pages: Sequence[Page], facts: Sequence[Fact]) -> tuple[KnowledgeChange, ...]:
    """Return the facts to add and the facts to confirm.

    Each added fact contains the numbers of the facts that it supersedes, so that only the latest statement remains
    valid. Each page is compared with the facts that are valid at its time, including those added from earlier pages.

    Args:
        pages: Pages that have not been analysed yet.
        facts: The currently valid facts.
    """
    said = [list(statements(page)) for page in sorted(pages, key=lambda page: (page.occurred_at, page.seq))]
    if not any(said):
        return ()
    known = _FactIndex(facts)
    for of_page in said:
        for change in _learned_from(of_page, known):
            known.apply(change)
    return known.changes()


class _FactIndex:
    """The valid facts, updated after each processed page. Added facts have negative numbers until they are stored."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        self._facts: dict[int, Fact] = {}
        self.forms: dict[int, _Form] = {}
        self._by_stem: dict[tuple[About, str], set[int]] = {}
        self._by_slot: dict[tuple[About, str], dict[int, None]] = {}
        self._wishes: dict[int, None] = {}
        self._added: dict[int, AddFact] = {}
        self._confirmed: dict[int, dict[int, None]] = {}
        for fact in facts:
            self._put(fact)

    def of_slot(self, about: About, slot: str) -> list[Fact]:
        """Return the facts for a slot (a property with one value at a time, such as "lives"), oldest first."""
        return [self._facts[number] for number in self._by_slot.get((about, slot), ())]

    def rests_on(self, number: int, page: str) -> bool:
        return page in self._facts[number].evidence

    def same_as(self, about: About, form: _Form) -> Fact | None:
        """Return the known fact with the same meaning as a new text, or None.

        ``form`` contains the features of the new text. ``about`` says whom the text is about.
        """
        # A fact with the same meaning contains at least one of these stems.
        rarest = sorted(form.stems, key=lambda stem: len(self._by_stem.get((about, stem), ())))
        few = rarest[: int(len(rarest) * (1 - SAME_JACCARD)) + 1]
        numbers = set().union(*(self._by_stem.get((about, stem), set()) for stem in few))
        return next((self._facts[number] for number in sorted(numbers) if _is_same(self.forms[number], form)), None)

    def with_stems(self, about: About, stems: frozenset[str]) -> list[Fact]:
        sets = [self._by_stem.get((about, stem), set()) for stem in stems]
        return [self._facts[number] for number in sorted(set.intersection(*sets))] if sets else []

    def wishes(self) -> list[Fact]:
        return [self._facts[number] for number in self._wishes]

    def of_partner(self) -> list[Fact]:
        slots = [slot for about, slot in self._by_slot if about is About.USER and _OF_PARTNER.match(slot)]
        return [fact for slot in slots for fact in self.of_slot(About.USER, slot)]

    def apply(self, change: KnowledgeChange) -> None:
        if isinstance(change, ConfirmFact):
            if change.fact in self._added:
                added = self._added[change.fact]
                evidence = tuple(sorted({*added.evidence, *change.evidence}))
                self._added[change.fact] = replace(added, evidence=evidence)
            else:
                self._confirmed.setdefault(change.fact, {}).update(dict.fromkeys(change.evidence))
            return
        ends = [self._added[number].text for number in change.supersedes if number in self._added]
        supersedes = tuple(number for number in change.supersedes if number not in self._added)
        for number in change.supersedes:
            self._remove(number)
        number = -1 - len(self._added)
        self._added[number] = replace(change, supersedes=supersedes, ends=tuple(ends))
        self._put(
            Fact(number, change.about, change.text, change.slot, change.valid_from, None, (), None, kind=change.kind)
        )

    def changes(self) -> tuple[KnowledgeChange, ...]:
        """Return all changes to the facts: first the added facts, in order, then the confirmed facts."""
        confirmed = [
            ConfirmFact(fact=number, evidence=tuple(sorted(pages)))
            for number, pages in self._confirmed.items()
            if number in self._facts
        ]
        return (*self._added.values(), *confirmed)

    def _put(self, fact: Fact) -> None:
        form = _form(fact.text, fact.kind)
        self._facts[fact.fact], self.forms[fact.fact] = fact, form
        for stem in form.stems:
            self._by_stem.setdefault((fact.about, stem), set()).add(fact.fact)
        if fact.slot is not None:
            self._by_slot.setdefault((fact.about, fact.slot), {})[fact.fact] = None
        if fact.kind is Kind.WISH:
            self._wishes[fact.fact] = None

    def _remove(self, number: int) -> None:
        fact = self._facts.pop(number, None)
        if fact is not None:
            for stem in self.forms[number].stems:
                self._by_stem[fact.about, stem].discard(number)
            if fact.slot is not None:
                self._by_slot[fact.about, fact.slot].pop(number, None)
            self._wishes.pop(number, None)


def _learned_from(said: Sequence[Statement], known: _FactIndex) -> list[KnowledgeChange]:
    """Return the changes that the statements on one page make to the known facts."""
    said = _without_idle_guesses(said, known)
    confirmed: dict[int, dict[int, str]] = {}
    added: list[tuple[Statement, tuple[int, ...]]] = []
    loose = [statement for statement in said if statement.slot is None]
    for (about, slot), group in _by_slot(said).items():
        loose.extend(_resolve_slot(group, known.of_slot(about, slot), known.forms, confirmed, added))
    replaced = {number for _, numbers in added for number in numbers}
    single: list[Statement] = [statement for statement, _ in added]
    for statement in loose:
        form = _form_of(statement)
        fact = known.same_as(statement.about, form)
        twin = next((s for s in single if s.about is statement.about and _is_same(_form_of(s), form)), None)
        if fact is not None:
            if fact.fact not in replaced:
                confirmed.setdefault(fact.fact, {}).update(statement.pages)
        elif twin is None:
            single.append(statement)
            added.append((statement, ()))
    added = [(statement, (*numbers, *_ended(statement, known, numbers))) for statement, numbers in added]
    ended = {number for _, numbers in added for number in numbers}
    changes: list[KnowledgeChange] = [_add(statement, supersedes) for statement, supersedes in added]
    for number, pages in confirmed.items():
        new = tuple(seq for seq, name in pages.items() if not known.rests_on(number, name))
        if new and number not in ended:
            changes.append(ConfirmFact(fact=number, evidence=new))
    return changes


def _without_idle_guesses(said: Sequence[Statement], known: _FactIndex) -> list[Statement]:
    """Return the statements without needless guesses.

    A guess is needless if another statement or a known fact states the same property (slot) and is not a guess itself.
    """
    filled = {(statement.about, statement.slot) for statement in said if not statement.is_implied}

    def is_idle(statement: Statement) -> bool:
        facts = known.of_slot(statement.about, statement.slot or "")
        return (statement.about, statement.slot) in filled or not all(map(_is_guess, facts))

    return [statement for statement in said if not statement.is_implied or not is_idle(statement)]


def _is_guess(fact: Fact) -> bool:
    return fact.text.startswith(GUESS)


def _by_slot(said: Iterable[Statement]) -> dict[tuple[About, str], list[Statement]]:
    groups: dict[tuple[About, str], list[Statement]] = {}
    for statement in said:
        if statement.slot is not None:
            groups.setdefault((statement.about, statement.slot), []).append(statement)
    return groups


def _resolve_slot(
    group: Sequence[Statement],
    known: Sequence[Fact],
    forms: Mapping[int, _Form],
    confirmed: dict[int, dict[int, str]],
    added: list[tuple[Statement, tuple[int, ...]]],
) -> list[Statement]:
    """Decide which value of a property (slot) is valid after one page, and add it to ``confirmed`` or ``added``.

    Args:
        group: The page's statements about this property, in order.
        known: The valid facts about this property.
        forms: The features of each fact's text, by the fact's number.
        confirmed: For each fact's number, the pages that confirm the fact. The pages are a mapping from ``seq`` to id.
        added: The statements to add as facts, each with the numbers of the facts that it supersedes.

    Returns:
        Copies of the statements in ``group`` that state the valid value and also say something new. The copies have no
        slot.
    """
    newest = group[-1]
    same = [statement for statement in group if _is_same_answer(newest, statement)]
    holding = [fact for fact in known if (newest.is_implied or not _is_guess(fact)) and _answers(fact, newest, forms)]
    if not holding and known and newest.said_at < max(fact.valid_from for fact in known):
        return []
    if not holding:
        first, *others = same
        added.append((first, tuple(fact.fact for fact in known)))
        return _with_news(others, _form_of(first))
    more = _with_news(same, forms[holding[0].fact])
    if len(more) < len(same):
        confirmed.setdefault(holding[0].fact, {}).update(newest.pages)
    return more


def _with_news(said: Sequence[Statement], form: _Form) -> list[Statement]:
    """Return copies of the statements in ``said`` that say more than a given text. The copies have no slot.

    ``form`` contains the features of the given text. A statement says more if enough of its stems are not among the
    text's stems.
    """

    def has_news(statement: Statement) -> bool:
        is_of_somebody = (statement.slot or "").startswith(("family:", "pet:"))
        needed = NEWS_OF_SOMEBODY_MIN if is_of_somebody else NEWS_STEMS_MIN
        return len(_form_of(statement).stems - form.stems) >= needed

    return [replace(each, slot=None, value=frozenset(), pages=dict(each.pages)) for each in said if has_news(each)]


def _ended(statement: Statement, known: _FactIndex, replaced: tuple[int, ...]) -> list[int]:
    """Return the fact number of each known fact that is no longer valid after a statement.

    For example, facts about the partner are no longer valid after "I'm divorced". Facts whose numbers are in
    ``replaced`` are not returned.
    """
    if statement.kind is Kind.WISH:
        form = _form_of(statement)
        over = [fact for fact in known.wishes() if _is_taken_back(form, statement.ends, known.forms[fact.fact])]
    else:
        over = [fact for fact in known.with_stems(statement.about, statement.ends) if _is_over(fact, known)]
        if statement.slot == "marital status" and statement.value & _PARTED:
            over += known.of_partner()
        if statement.slot == "work" and _LEFT_WORK.search(statement.text):
            over += known.of_slot(statement.about, "employer")
    is_over = {
        fact.fact: None
        for fact in over
        if fact.about is statement.about and fact.valid_from <= statement.said_at and fact.fact not in replaced
    }
    return [*is_over]


def _is_over(fact: Fact, known: _FactIndex) -> bool:
    """Return whether a fact is a positive statement in the first person."""
    is_stated = fact.kind is Kind.STATEMENT and not known.forms[fact.fact].is_negated
    return is_stated and _OWN.match(fact.text) is not None


def _is_taken_back(wish: _Form, ends: frozenset[str], known: _Form) -> bool:
    if ends:
        return len(ends & known.stems) * 2 >= len(ends)
    is_opposite = wish.is_negated != known.is_negated
    return is_opposite and jaccard(wish.stems - _FREQUENCY, known.stems - _FREQUENCY) >= OPPOSITE_JACCARD


def _answers(fact: Fact, statement: Statement, forms: Mapping[int, _Form]) -> bool:
    tables = (assistant_table(),) if fact.about is About.ASSISTANT else (user_table(), wish_table())
    stated = (answer_of(_DAYS.sub("", fact.text), table, is_certain=True) for table in tables)
    found = next((answer for answer in stated if answer is not None), None)
    if found is not None and found.slot == fact.slot:
        form = _form_of(statement)
        is_same_way = forms[fact.fact].is_negated == form.is_negated
        return is_same_way and _is_equal(found.value, statement.value, forms[fact.fact], form, fact.slot)
    return statement.value <= forms[fact.fact].stems


def _is_same_answer(left: Statement, right: Statement) -> bool:
    return _is_equal(left.value, right.value, _form_of(left), _form_of(right), left.slot)


def _is_equal(left: frozenset[str], right: frozenset[str], one: _Form, other: _Form, slot: str | None) -> bool:
    """Return whether two values of a slot (a property such as "lives") are the same.

    One value may be more detailed than the other, but numbers must not contradict each other. Places must be equal:
    York is not New York.

    ``left`` and ``right`` are the stems of the values. ``one`` and ``other`` are the features of the whole texts.
    """
    if slot in _OF_PLACES:
        return left == right
    has_other_numbers = not (one.numbers <= other.numbers or other.numbers <= one.numbers)
    return (left <= right or right <= left) and not has_other_numbers


def _is_same(left: _Form, right: _Form) -> bool:
    if left.kind is not right.kind or left.is_negated != right.is_negated or left.numbers != right.numbers:
        return False
    return left.stems == right.stems or jaccard(left.stems, right.stems) >= SAME_JACCARD


def _form_of(statement: Statement) -> _Form:
    return _form(statement.text, statement.kind)


@lru_cache(20_000)
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
