"""Finds durable statements and wishes in pages, and quotes them from the messages.

A statement is something lasting that the user or the assistant says about themselves. A wish applies to all future
answers.

Precision is more important than recall: a missed fact can still be found on its page, but a wrong fact is shown again
and again. Therefore, the beginning of a statement must match one of the ``patterns``. Questions, quotations,
suppositions, role play and pasted texts are ignored.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import zip_longest

from memoryos_mcp.llm.extractive.days import with_days
from memoryos_mcp.llm.extractive.patterns import (
    Pattern,
    Table,
    assistant_table,
    context,
    first_match,
    greeted_table,
    names_of,
    user_table,
    wish_table,
)
from memoryos_mcp.llm.extractive.patterns.elided import elided
from memoryos_mcp.llm.extractive.patterns.places import is_place
from memoryos_mcp.llm.extractive.patterns.wish_topics import topic_of
from memoryos_mcp.model.knowledge import About, Kind
from memoryos_mcp.model.pages import Page
from memoryos_mcp.text.prose import SIDE_MAX_CHARS, sentences
from memoryos_mcp.text.terms import content_words as telling_words
from memoryos_mcp.text.terms import is_unspaced, stem, words

# Slots whose values may be about the past, as in "I lived in Rome ten years ago". Such a statement gets no slot.
HELD_FOR_A_TIME = {"lives", "work", "employer", "studies", "diet"}
# Slots whose values are durable even if the statement contains words such as "today", and are clear without context.
SELF_CONTAINED = {"name", "age", "work", "employer", "lives", "from", "studies", "birthday"}
WORDS_MIN = 2
WORDS_MAX = 40
WHOLE_SENTENCE_WORDS_MAX = 30
UNSPACED_CHARS = (4, 80)
# Beginning of the texts that state a guess about the user's home. Most people live in the town where they work.
GUESS = "I work in "
SENTENCE_MAX_CHARS = 1_000


@dataclass(slots=True)
class Statement:
    """A durable statement or wish.

    Attributes:
        about: Whether the statement is about the user or the assistant.
        text: The quoted text, with white space collapsed, and with dates in brackets after words such as "yesterday".
        slot: The stated property, such as "lives"; None if the property can have several values at a time.
        value: The stems of the words that state the value of this property; empty for a statement without a slot.
        said_at: The time of the page.
        pages: The pages that contain the statement: a mapping from each page's ``seq`` to its id.
        kind: Whether this is a statement or a wish.
        ends: The stems of the words for something that is no longer the case ("smoking" in "I quit smoking"); empty if
            there are no such words.
        is_implied: Whether this is a guess. A guess is only learned if no statement or fact has the same slot.
    """

    about: About
    text: str
    slot: str | None
    value: frozenset[str]
    said_at: datetime
    pages: dict[int, str]
    kind: Kind = Kind.STATEMENT
    ends: frozenset[str] = frozenset()
    is_implied: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """The content of a statement, such as the value "Rome" for the property (slot) "lives".

    The fields have the same meaning as in ``Statement``.
    """

    slot: str | None = None
    value: frozenset[str] = frozenset()
    ends: frozenset[str] = frozenset()
    is_implied: bool = False


def statements(page: Page) -> Iterator[Statement]:
    """Yield the durable statements and wishes on a page in order: first the user's, then the assistant's."""
    said = list(_said_by_user(page.user_input))
    if said and not _is_shown(page.user_input):
        for piece, kind, found in said:
            yield _statement(page, About.USER, piece, kind, found)
    answered = [
        each for sentence in _own_sentences(page.agent_response) for each in _stated(sentence, assistant_table())
    ]
    if answered and not (_is_shown(page.agent_response) or _asks_for_text(page.user_input)):
        for piece, found in answered:
            yield _statement(page, About.ASSISTANT, piece, Kind.STATEMENT, found)


def answer_of(text: str, table: Table, *, is_certain: bool = False) -> Answer | None:
    """Return the content of a durable statement or wish; None if the text is neither.

    Args:
        text: A sentence or clause without a lead-in such as "By the way,".
        table: The patterns for the beginning of the text.
        is_certain: Whether the text is known to be a statement, such as a stored fact. If False, the result is None for
            statements with words that cast doubt on them, such as "pretend".
    """
    when = context.WHEN.match(text)
    found = (first_match(table, text, when.end()) if when else None) or first_match(table, text, 0)
    if found is None and when is not None:
        # The patterns expect the time at the end: "Next week I'm flying" becomes "I'm flying next week".
        text = f"{text[when.end() :].rstrip(' .!')} {when[0].strip(' ,')}"
        found = first_match(table, text, 0)
    if found is None:
        return None
    pattern, match = found
    if not is_certain and pattern.kind is Kind.STATEMENT and _is_spoiled(text, match, pattern):
        return None
    return _answer(text, match, pattern)


def stems_of(text: str) -> frozenset[str]:
    """Return the stems of a text's content words. If it has no content words, return the stems of all its words."""
    stems = (stem(word) for word in telling_words(text) or words(text))
    return frozenset(context.SAME_STEM.get(each, each) for each in stems)


def _statement(page: Page, about: About, piece: str, kind: Kind, found: Answer) -> Statement:
    text = with_days(piece, page.occurred_at) if kind is Kind.STATEMENT else piece
    pages = {page.seq: page.page_id}
    return Statement(about, text, found.slot, found.value, page.occurred_at, pages, kind, found.ends, found.is_implied)


def _said_by_user(text: str) -> Iterator[tuple[str, Kind, Answer]]:
    is_greeted = is_followed = False
    for whole in _own_sentences(text):
        sentence, is_own = _up_to_request(whole)
        if is_followed:
            return
        is_followed = not is_own
        is_greeting = context.GREETING.match(sentence) is not None
        table = greeted_table() if is_greeting or is_greeted else user_table()
        is_greeted = is_greeting and len(words(sentence)) <= 4
        parts = [] if context.NO_WISH.search(sentence) else list(_wishes(sentence))
        yield from parts
        rest = sentence
        for wish, _, _ in parts:
            rest = rest.replace(wish, "")
        for piece, found in _stated(rest.strip(" ,;:"), table):
            yield piece, Kind.STATEMENT, found


def _wishes(sentence: str) -> Iterator[tuple[str, Kind, Answer]]:
    """Yield the wishes in a sentence.

    The sentence is split at words such as "and". A later part is a wish only in three cases: it follows another wish,
    it follows a colon, or it begins with a word such as "please".
    """
    start, is_after_wish = 0, True
    ends = [(match.start(), match.end()) for match in context.NEXT_WISH.finditer(sentence)]
    for end, following in (*ends, (len(sentence), len(sentence))):
        part = sentence[start:end]
        wish = _wish(part) if is_after_wish or context.ASKS_NICELY.match(part) else None
        if wish is not None:
            yield wish
        is_after_wish = wish is not None or sentence[end : end + 1] == ":"
        start = following


def _wish(part: str) -> tuple[str, Kind, Answer] | None:
    piece = part.strip().rstrip(",")
    for text in (piece, _without_lead_in(piece)):
        if WORDS_MIN <= len(words(text)) <= WORDS_MAX:
            found = answer_of(text, wish_table())
            if found is not None and not (context.FOR_ONCE.search(text) or context.NOT_WISHED.search(text)):
                return text, Kind.WISH, found
    return None


def _is_shown(text: str) -> bool:
    """Return whether a message contains pasted text, role play or a letter.

    Such a message says nothing about its sender.
    """
    head = text[:SIDE_MAX_CHARS]
    return bool(context.SHOWS_TEXT.search(head) or context.LETTER.search(head))


def _asks_for_text(text: str) -> bool:
    """Return whether a message asks for a piece of writing or role play.

    The reply to such a message says nothing about the assistant.
    """
    head = text[:SIDE_MAX_CHARS]
    return _is_shown(text) or bool(context.ASKS_TEXT.search(head) or context.SHOWS_WHAT_FOLLOWS.search(head))


def _up_to_request(sentence: str) -> tuple[str, bool]:
    """Return the part of a sentence before a request to write or change a text, and whether to read the next sentence.

    In "I'm a nurse, write me a letter", the part is "I'm a nurse, ". Without such a request, return the whole sentence
    and True. The second value is False if the next sentence is probably not about the user.
    """
    made_up, asked = context.SHOWS_WHAT_FOLLOWS.search(sentence), context.ASKS_TEXT.search(sentence)
    if asked is not None and (made_up is None or asked.start() <= made_up.start()):
        return sentence[: asked.start()], context.FOR_OTHERS.search(sentence, asked.start()) is None
    return (sentence, True) if made_up is None else (sentence[: made_up.start()], False)


def _own_sentences(text: str) -> Iterator[str]:
    """Yield the sentences that the sender of a message wrote. Stop where pasted text begins."""
    found = sentences(text, with_lists=False)
    for sentence, following in zip_longest(found, found[1:], fillvalue=""):
        if len(sentence) <= SENTENCE_MAX_CHARS and not context.ABOUT_A_LINE.match(following):
            yield sentence
        if context.PASTED_FROM.search(sentence):
            return


def _stated(sentence: str, table: Table) -> Iterator[tuple[str, Answer]]:
    """Yield each statement in a sentence as a pair: its text, and its content (see `answer_of`).

    A statement is either the whole sentence or a part of it, such as a clause.
    """
    if context.HYPOTHETICAL.match(sentence):
        return
    whole = _without_lead_in(sentence)
    named = context.APPOSITION.match(whole)
    is_one = not context.SEVERAL.search(whole, named.end() if named else 0)
    if is_one and len(sentence.split()) <= WHOLE_SENTENCE_WORDS_MAX:
        for text in dict.fromkeys((whole, sentence)):
            found = _found(text, table) or _elided(text, table)
            if found is not None:
                yield from _both(text, found, table)
                return
    may_lack_subject = True
    for clause in _joined(_clauses(sentence)):
        if context.HYPOTHETICAL.match(clause):
            return
        piece = clause.strip().rstrip(",")
        for text in dict.fromkeys((_without_lead_in(piece), piece)):
            # The text after a clause can show the clause's meaning: in "I'm Tom, I work in Leeds", Tom is a name.
            found = _found(text, table, after=sentence[sentence.find(text) + len(text) :])
            if found is None and may_lack_subject:
                found = _elided(text, table)
            if found is not None:
                yield from _both(text, found, table)
                break
        # A clause may lack its subject only if the previous clause is a statement.
        may_lack_subject = found is not None


def _clauses(sentence: str) -> list[str]:
    """Return the clauses of a sentence. If it contains a quotation, return only the clauses before it.

    The clause directly before the quotation may be incomplete, such as "she calls me". It is omitted unless it ends
    with punctuation.
    """
    bare = context.QUOTED_NAME.sub(lambda match: " " * len(match[0]), sentence)
    quote = context.QUOTE_MARKS.search(bare)
    if quote is None:
        return context.CLAUSE_END.split(sentence)
    clauses = context.CLAUSE_END.split(sentence[: quote.start()])
    return clauses if context.OPEN_END.search(clauses[-1]) else clauses[:-1]


def _joined(clauses: list[str]) -> list[str]:
    """Return the clauses. Two neighbouring clauses are joined if the split between them separates a pair of people.

    Examples of such a pair are "my wife and I" and "with my wife and our son".
    """
    joined: list[str] = []
    for clause in clauses:
        if joined and (
            (context.BEGINS_PAIR.search(joined[-1]) and context.ENDS_PAIR.match(clause))
            or (context.ENDS_ON_PEOPLE.search(joined[-1]) and context.MORE_PEOPLE.match(clause))
        ):
            joined[-1] = f"{joined[-1]} {clause}"
        else:
            joined.append(clause)
    return joined


def _elided(text: str, table: Table) -> Answer | None:
    """Return the content of a statement whose subject is omitted, such as "Moved to Rome" instead of "I moved to Rome".

    Return None if ``text`` is not such a statement.
    """
    for subject, begins in elided():
        if begins.match(text):
            return _found(f"{subject}{text}", table)
    return None


def _both(text: str, found: Answer, table: Table) -> Iterator[tuple[str, Answer]]:
    """Yield the statements in a text, each with its content. ``found`` is the content of the whole text.

    If the text consists of two statements with the same subject ("I live in Rome and work at Fiat"), yield both.
    Otherwise, yield the whole text, followed by the statement that it implies, if any: the age after a name ("I'm Tom,
    41"), or the home that is derived from a place of work.
    """
    shared = context.SHARED_SUBJECT.search(text)
    subject = text.split(maxsplit=1)[0]
    if shared and subject.lower() in {"i", "we", "i'm", "i’m", "we're", "we’re", "ich"}:
        pronoun = subject.replace("’", "'").partition("'")[0]
        second = f"{pronoun} {text[shared.end() :]}"
        first, other = _found(text[: shared.start()], table), _found(second, table)
        if first is not None and other is not None:
            yield text[: shared.start()], first
            yield second, other
            return
    yield text, found
    if found.slot == "name" and (aged := context.AGE_BESIDE_NAME.match(text)):
        yield f"I'm {aged['value']}", Answer("age", stems_of(aged["value"]))
    if found.slot == "work" and (placed := context.PLACE_OF_WORK.search(text)) and is_place(placed["value"]):
        yield f"{GUESS}{placed['value']}", Answer("lives", stems_of(placed["value"]), is_implied=True)


def _found(text: str, table: Table, after: str = "") -> Answer | None:
    text = context.QUOTED_NAME.sub(r"\1", text)
    if context.QUOTE_MARKS.search(text):
        return None
    if not _is_fit(text):
        return None
    found = answer_of(text, table)
    if found is None and after:
        whole = answer_of(text + after, names_of(table), is_certain=True)
        return (
            whole if whole is not None and not (context.TAINT.search(text) or context.SPEAKS_TO.search(text)) else None
        )
    return found


@lru_cache(256)
def _is_fit(text: str) -> bool:
    size = words(text)
    if any(is_unspaced(word) for word in size):
        return UNSPACED_CHARS[0] <= len(text) <= UNSPACED_CHARS[1]
    return WORDS_MIN <= len(size) <= WORDS_MAX


def _without_lead_in(text: str) -> str:
    lead = context.LEAD_IN.match(text)
    return text[lead.end() :] if lead else text


def _is_spoiled(text: str, match: re.Match[str], pattern: Pattern) -> bool:
    trusted = match.start("value") if "value" in match.re.groupindex and match["value"] else match.end()
    if context.TAINT.search(text, min(trusted, match.end())):
        return True
    if not pattern.is_of_assistant and context.SPEAKS_TO.search(text, min(trusted, match.end())):
        return True
    if context.OF_THE_TALK.search(text):
        return True
    if pattern.slot in SELF_CONTAINED:
        return False
    return bool(context.POINTS_ELSEWHERE.search(text) or (not pattern.is_event and context.PASSING.search(text)))


def _answer(text: str, match: re.Match[str], pattern: Pattern) -> Answer:
    groups = match.groupdict()
    ends = stems_of(context.ENDS_END.sub("", groups["ends"])) if groups.get("ends") else frozenset()
    topic = topic_of(text) if pattern.kind is Kind.WISH and pattern.slot is None else None
    if topic is not None:
        return Answer(topic[0], frozenset({topic[1]}), ends)
    if pattern.slot is None:
        return Answer(ends=ends)
    value = context.VALUE_END.sub("", groups["value"])
    who = (groups.get("who") or "").lower()
    named = {
        "who": context.SAME_NAME.get(who, who),
        "value": groups["value"].strip(),
        "kind": " ".join(context.SAME_NAME.get(word, word) for word in (groups.get("kind") or "").lower().split()),
        "what": (groups.get("what") or "").lower(),
    }
    stems = stems_of(value) if value.strip() else frozenset()
    if not stems or (pattern.slot in HELD_FOR_A_TIME and context.OVER.search(text)):
        return Answer(ends=ends)
    slot = pattern.slot.format_map(named)
    return Answer(context.NOT_FAMILY.get(slot, slot), stems, ends)
