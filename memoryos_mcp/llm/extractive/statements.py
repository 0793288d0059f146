"""Knowledge without an LLM: durable statements that somebody made about themselves, in their own words.

Precision goes before recall: a fact that is missed is still on its page, one that is wrong is repeated for ever. So
a statement must begin like one (``statement_patterns``), and what asks, wishes, quotes or supposes is left alone.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from memoryos_mcp.knowledge import About, AddFact, ConfirmFact, Fact, KnowledgeChange
from memoryos_mcp.llm.extractive.statement_patterns import FAVOURITE, Pattern, assistant_patterns, user_patterns
from memoryos_mcp.llm.prose import sentences
from memoryos_mcp.pages import Page
from memoryos_mcp.segments import jaccard
from memoryos_mcp.terms import content_words as telling_words
from memoryos_mcp.terms import is_unspaced, stem, words

WORDS_MIN = 3
WORDS_MAX = 40
WHOLE_SENTENCE_WORDS_MAX = 30
UNSPACED_CHARS = (4, 80)
SENTENCE_MAX_CHARS = 1_000
SAME_JACCARD = 0.8
NEWS_STEMS_MIN = 3
"""Stems beyond those of the known fact that make an equal answer worth a fact of its own."""

_LEAD_IN = re.compile(
    r"(?:(?:well|yeah|yep|yup|yes|no|nope|nah|oh|ooh|wow|hey|hi|hello|so|and|also|but|actually"
    r"|honestly|anyway|anyways|btw|by the way"
    r"|plus|personally|thanks(?: a lot| so much)?|thank you|sure|ok|okay|totally|absolutely"
    r"|definitely|exactly|cool|nice|great|sorry|haha"
    r"|lol|for me|to be honest|tbh|recently|lately|these days|nowadays|currently|right now"
    r"|in my (?:free|spare) time|since|because"
    r"|['’]cause|cuz|as|considering(?: that)?|given(?: that)?|although|though|even though"
    r"|while|especially(?: since)?|you know|i mean"
    r"|as for me|me too|same here|unfortunately|sadly|luckily|fortunately|like|also)"
    r"(?:,? (?-i:[A-Z][a-z]+)(?=[,!]))?[,!.:;–—-]*\s+)+",
    re.IGNORECASE,
)
_CLAUSE_END = re.compile(
    r"\s*(?:;|\s[-–—]+\s|—|…|\.\.\.)\s*"
    r"|,?\s+(?=(?:and|but|so|because|cuz|since|considering|although|though|even though|given that"
    r"|which|while|especially since|as) (?:i|i['’]\w+|my|we|it|they|can|could|how|what)\b)"
    r"|,\s+(?=(?:and|but|because|since|considering|although|though|which|maybe|can|could"
    r"|would|should|will|shall|am|do|does|did|is|are|how|what|where|when|why"
    r"|so|any|please|you know|i|i['’]\w+|my|it|it['’]s|that|that['’]s|this|let['’]s|just|if)\b)"
    r"|,?\s+(?=(?:so|and|but) (?:how|what|can|could|should|would|do|will|where|when|why)\b)"
    r"|，(?=我|但|所以|你|请|能|可以|想)",
    re.IGNORECASE,
)
_HYPOTHETICAL = re.compile(
    r"^\W*(?:and |but |so |or )?(?:if|imagine|suppose|supposing|pretend|assume|let['’]s say"
    r"|say|what if|unless|whenever|when|once|until|wenn|falls|si|если"
    r"|如果|假如|要是|もし|만약)",
    re.IGNORECASE,
)
_TAINT = re.compile(
    r"[?？؟]|\b(?:if|wish|guess|wonder|wondering|suppose|supposed|imagine|maybe|perhaps|might"
    r"|would|could|should|i['’]d|can you|please|help me|need help"
    r"|i need|not sure|trying to|having trouble|let me|let['’]s|i think|i thought|i believe"
    r"|i hope|hopefully|hoping|you|your|yours|you['’]\w+|ya|says|said"
    r"|told|asked|asking|e\.g|for example|hypothetically|as if|kidding|joking|just like that|pretend|worried|curious)\b"
    r"|\b(?:how|what|where|why|which) (?:\w+ )?(?:do|does|can|should|is|are) (?:i|we|my|the|it)\b"
    r"|\bi (?:just )?want to (?:make sure|start|begin|focus|understand|improve|know|ensure|learn (?:about|how|more))\b"
    r"|如果|假如|要是|也许|可能|吗|もし|かも|만약"
    r"|\b(?:wenn|würde|vielleicht|peut-être|quizás|tal vez|если|бы|может быть)\b",
    re.IGNORECASE,
)
# "tomorrow" makes a like or a habit an appointment.
_PASSING = re.compile(
    r"\b(?:today|tonight|tomorrow|this (?:morning|afternoon|evening|time|one|weekend|week"
    r"|code|function|error|issue|project|approach)"
    r"|right now|at the moment|the (?:code|function|error|script|query|file|above|following"
    r"|example|suggestion|idea|advice|tips|format|look) )\b",
    re.IGNORECASE,
)
# Ends on something that only the dialogue around it names.
_POINTS_ELSEWHERE = re.compile(
    r"\b(?:it|that|this|these|those|them|one|there|here|others|so|too|to)(?: (?:don['’]t|aren['’]t"
    r"|one day|someday|myself|too|before|a lot|so much|now|all|either|again))?\W*$"
    r"|^(?:(?! (?:and|but) )[^,;:–—])*\b(?:them|it|here)\b"
    r"|\b(?:of|visiting|seeing|to) (?:these|those)\b|\bthat (?:world|place|way|feeling|one)\b",
    re.IGNORECASE,
)
_WHEN = re.compile(
    r"(?:(?:on |just )?(?:last|this past) (?:week|weekend|month|year|night|summer|winter"
    r"|spring|fall|autumn|\w+day|january|february|march|april|june|july|august"
    r"|september|october|november|december)|(?:a few|two|three|\d+|a couple(?: of)?) (?:days"
    r"|weeks|months|years) ago|a (?:week|month|year) ago"
    r"|in (?:19|20)\d\d|yesterday|growing up),?\s+",
    re.IGNORECASE,
)
_TEXT_WORK = re.compile(
    r"\b(?:translate|rewrite|proofread|paraphrase|summari[sz]e|rephrase|edit|correct|polish"
    r"|role-?play|pretend|act as|in the voice of)\b"
    r"|übersetze|traduis|traduce|перевед|翻译|改写|翻訳|번역",
    re.IGNORECASE,
)
_QUOTE_MARKS = re.compile('["“„«「『]')
_PASTED_FROM = re.compile(r"[:：]\s*$")
_LETTER = re.compile(r"^(?:dear|to whom it may concern|sincerely|subject:)\b", re.IGNORECASE | re.MULTILINE)
_VALUE_END = re.compile(
    r"\s+(?:and|but|with|because|since|where|so|now|these days|nowadays|right now|currently"
    r"|for|which|who|when|while|as|after|before|though|at the"
    r"|from|who['’]s|just|last|this|about|ago|years?|in (?:19|20)\d\d|back in|und|aber|mit"
    r"|et|mais|avec|y|pero|con|и|но|с)\b.*$",
    re.IGNORECASE,
)
_OVER = re.compile(
    r"\b(?:ago|when i was|as a (?:kid|child)|back in|used to|in (?:19|20)\d\d|after (?:college|school)|once)\b",
    re.IGNORECASE,
)
_NEGATION = re.compile(
    r"n['’]t\b|\b(?:not|never|no|none|cannot|nicht|kein\w*|pas|jamais|nunca|не|нет)\b|不|没|ない|ません|않|안 |못",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d+|\b(?:one|two|three|four|five|six|seven|eight|nine|ten)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Form:
    """What a text says, without how it says it: for telling whether two texts say the same."""

    stems: frozenset[str]
    is_negated: bool
    numbers: frozenset[str]


@dataclass(slots=True)
class Statement:
    """A durable statement.

    Attributes:
        text: The words, verbatim but for white space.
        slot: The question it answers, or None.
        value: The stems of its answer; empty without a slot.
        said_at: When it was said first.
        pages: ``seq`` and name of the pages it was said on.
    """

    about: About
    text: str
    slot: str | None
    value: frozenset[str]
    said_at: datetime
    pages: dict[int, str]
    form: _Form = field(init=False)

    def __post_init__(self) -> None:
        self.form = _form(self.text)


def learn_knowledge(pages: Sequence[Page], facts: Sequence[Fact]) -> tuple[KnowledgeChange, ...]:
    """Return what to add, confirm and supersede, so that what was said last holds.

    Args:
        pages: Pages not analysed yet.
        facts: What is known and holds now.
    """
    ordered = sorted(pages, key=lambda page: (page.occurred_at, page.seq))
    said = [statement for page in ordered for statement in statements(page)]
    forms = {fact.fact: _form(fact.text) for fact in facts} if said else {}
    confirmed: dict[int, dict[int, str]] = {}
    added: list[tuple[Statement, tuple[int, ...]]] = []
    loose = [statement for statement in said if statement.slot is None]
    for (about, slot), group in _by_slot(said).items():
        known = [fact for fact in facts if fact.about is about and fact.slot == slot]
        loose.extend(_settle(group, known, forms, confirmed, added))
    replaced = {number for _, numbers in added for number in numbers}
    single: list[Statement] = [statement for statement, _ in added]
    for statement in sorted(loose, key=lambda statement: (statement.said_at, min(statement.pages))):
        fact = next((f for f in facts if f.about is statement.about and _is_same(forms[f.fact], statement.form)), None)
        twin = next((s for s in single if s.about is statement.about and _is_same(s.form, statement.form)), None)
        if fact is not None:
            if fact.fact not in replaced:
                confirmed.setdefault(fact.fact, {}).update(statement.pages)
        elif twin is not None:
            twin.pages.update(statement.pages)
        else:
            single.append(statement)
            added.append((statement, ()))
    added.sort(key=lambda item: (item[0].said_at, min(item[0].pages)))
    changes: list[KnowledgeChange] = [_add(statement, supersedes) for statement, supersedes in added]
    changes.extend(_confirmations(confirmed, facts))
    return tuple(changes)


def statements(page: Page) -> Iterator[Statement]:
    """Yield a page's durable statements in order, the user's first."""
    sides = (
        (About.USER, page.user_input, user_patterns()),
        (About.ASSISTANT, page.agent_response, assistant_patterns()),
    )
    for about, text, patterns in sides:
        for sentence in _own_sentences(text):
            for piece in _pieces(sentence):
                found = _match(piece, patterns)
                if found is not None:
                    slot, value = found
                    yield Statement(about, piece, slot, value, page.occurred_at, {page.seq: page.page_id})


def _own_sentences(text: str) -> Iterator[str]:
    """Yield the sentences that somebody says for themselves, up to where they begin to show something."""
    if _TEXT_WORK.search(text) or _LETTER.search(text):
        return
    for sentence in sentences(text, with_lists=False):
        if len(sentence) <= SENTENCE_MAX_CHARS and not _HYPOTHETICAL.match(sentence):
            yield sentence
        if _PASTED_FROM.search(sentence):
            return


def _pieces(sentence: str) -> Iterator[str]:
    """Yield the whole sentence if it only states, or else those of its clauses that do."""
    whole = _without_lead_in(sentence)
    if len(sentence.split()) <= WHOLE_SENTENCE_WORDS_MAX and _is_stating(whole):
        yield whole
        return
    quote = _QUOTE_MARKS.search(sentence)
    for clause in _CLAUSE_END.split(sentence[: quote.start()] if quote else sentence):
        if _HYPOTHETICAL.match(clause):
            return
        piece = _without_lead_in(clause.strip().rstrip(","))
        if _is_stating(piece):
            yield piece


def _without_lead_in(text: str) -> str:
    lead = _LEAD_IN.match(text)
    return text[lead.end() :] if lead else text


def _is_stating(text: str) -> bool:
    if _TAINT.search(text) or _QUOTE_MARKS.search(text):
        return False
    found = words(text)
    if any(is_unspaced(word) for word in found):
        return UNSPACED_CHARS[0] <= len(text) <= UNSPACED_CHARS[1]
    return WORDS_MIN <= len(found) <= WORDS_MAX


def _match(text: str, patterns: Iterable[Pattern]) -> tuple[str | None, frozenset[str]] | None:
    """Return slot and stems of the answer if the text begins like a durable statement."""
    if _PASSING.search(text) or _POINTS_ELSEWHERE.search(text):
        return None
    when = _WHEN.match(text)
    start = when.end() if when else 0
    for pattern in patterns:
        match = pattern.regex.match(text, start)
        if match is None:
            continue
        slot = pattern.slot
        if slot is None:
            return None, frozenset()
        if slot == FAVOURITE:
            slot = f"{FAVOURITE} {match['kind'].lower()}"
        value = frozenset(_stems(_VALUE_END.sub("", match["value"])))
        return (slot, value) if value and not _OVER.search(text) else (None, frozenset())
    return None


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
            if len(statement.form.stems - forms[holding[0].fact].stems) >= NEWS_STEMS_MIN:
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
        if len(statement.form.stems - first.form.stems) >= NEWS_STEMS_MIN:
            more.append(_loose(statement))
    added.append((first, tuple(fact.fact for fact in known)))
    return more


def _loose(statement: Statement) -> Statement:
    return Statement(statement.about, statement.text, None, frozenset(), statement.said_at, dict(statement.pages))


def _answers(fact: Fact, statement: Statement, forms: dict[int, _Form]) -> bool:
    patterns = user_patterns() if fact.about is About.USER else assistant_patterns()
    found = _match(fact.text, patterns)
    if found is not None and found[0] == fact.slot:
        return _is_same_answer(found[1], statement.value)
    return statement.value <= forms[fact.fact].stems


def _is_same_answer(left: frozenset[str], right: frozenset[str]) -> bool:
    return left <= right or right <= left


def _is_same(left: _Form, right: _Form) -> bool:
    if left.is_negated != right.is_negated or left.numbers != right.numbers:
        return False
    return left.stems == right.stems or jaccard(left.stems, right.stems) >= SAME_JACCARD


def _form(text: str) -> _Form:
    return _Form(
        stems=frozenset(_stems(text)),
        is_negated=_NEGATION.search(text) is not None,
        numbers=frozenset(number.lower() for number in _NUMBER.findall(text)),
    )


def _stems(text: str) -> list[str]:
    return [stem(word) for word in telling_words(text) or words(text)]


def _add(statement: Statement, supersedes: tuple[int, ...]) -> AddFact:
    return AddFact(
        about=statement.about,
        text=statement.text,
        slot=statement.slot,
        valid_from=statement.said_at,
        evidence=tuple(sorted(statement.pages)),
        supersedes=supersedes,
    )


def _confirmations(confirmed: dict[int, dict[int, str]], facts: Iterable[Fact]) -> Iterator[ConfirmFact]:
    for fact in facts:
        pages = confirmed.get(fact.fact, {})
        new = tuple(sorted(seq for seq, name in pages.items() if name not in fact.evidence))
        if new:
            yield ConfirmFact(fact=fact.fact, evidence=new)
