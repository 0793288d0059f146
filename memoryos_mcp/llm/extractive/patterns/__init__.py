"""What durable statements and wishes begin with, as data: one table a language, one row a pattern.

A row is a slot and a pattern that stands at the start of a statement. The slot says which question the statement
answers if only one answer can hold at a time; then the group ``value`` is the answer, and other groups may be named in
the slot. A group ``ends`` names what holds no longer.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from memoryos_mcp.knowledge import Kind
from memoryos_mcp.llm.extractive.patterns import (
    asian,
    english,
    english_wishes,
    french,
    german,
    italian,
    portuguese,
    russian,
    spanish,
)

Row = tuple[str | None, str]
_EUROPEAN = (german, french, spanish, italian, portuguese)

_NAMED_GROUP = re.compile(r"\(\?P<\w+>")
# Slots under which facts were kept by earlier versions.
FORMER_SLOTS = {"lives in": "lives", "works as": "work", "works at": "employer", "born in": "from"}


@dataclass(frozen=True, slots=True)
class Pattern:
    """A way to begin a statement or wish, and the slot that it fills.

    Attributes:
        is_event: Whether it may name a day that is soon over.
        is_of_assistant: Whether the assistant says it, who may speak to "you".
    """

    slot: str | None
    regex: re.Pattern[str]
    kind: Kind = Kind.STATEMENT
    is_event: bool = False
    is_of_assistant: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Patterns, the most specific first, and one that tells whether any of them can match."""

    patterns: tuple[Pattern, ...]
    any_of_them: re.Pattern[str]

    def first_match(self, text: str, start: int) -> tuple[Pattern, re.Match[str]] | None:
        """Return the first pattern that matches a text from ``start`` on, with its match."""
        if self.any_of_them.match(text, start) is None:
            return None
        matches = ((pattern, pattern.regex.match(text, start)) for pattern in self.patterns)
        return next(((pattern, match) for pattern, match in matches if match is not None), None)


@cache
def user_table() -> Table:
    """Return what the user's durable statements begin with."""
    rows = (*english.USER, *(row for each in _EUROPEAN for row in each.USER), *russian.USER, *asian.USER)
    events = (*english.EVENTS, *(row for each in _EUROPEAN for row in each.EVENTS))
    return _table((*_patterns(rows), *_patterns(events, is_event=True)))


@cache
def greeted_table() -> Table:
    """Return the same for somebody who has just greeted, and so may give their name in the fewest words."""
    return _table((*_patterns((*english.GREETED, *(row for each in _EUROPEAN for row in each.GREETED))), *user_table().patterns))


@cache
def name_table() -> Table:
    """Return the patterns of names."""
    return _table(tuple(pattern for pattern in user_table().patterns if pattern.slot == "name"))


@cache
def wish_table() -> Table:
    """Return what begins a wish that holds for every answer to come."""
    return _table(_patterns((*english_wishes.WISHES, *(row for each in _EUROPEAN for row in each.WISHES)), kind=Kind.WISH))


@cache
def assistant_table() -> Table:
    """Return what the assistant's durable statements about itself begin with."""
    return _table(_patterns(english.ASSISTANT, is_event=True, is_of_assistant=True))


def _patterns(
    rows: Iterable[Row], *, kind: Kind = Kind.STATEMENT, is_event: bool = False, is_of_assistant: bool = False
) -> tuple[Pattern, ...]:
    return tuple(Pattern(slot, re.compile(text, re.IGNORECASE), kind, is_event, is_of_assistant) for slot, text in rows)


def _table(patterns: tuple[Pattern, ...]) -> Table:
    unnamed = (_NAMED_GROUP.sub("(?:", pattern.regex.pattern) for pattern in patterns)
    return Table(patterns, re.compile("|".join(unnamed), re.IGNORECASE))
