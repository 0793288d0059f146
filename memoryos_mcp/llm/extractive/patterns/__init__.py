"""What durable statements and wishes begin with, as data: one table a language, one row a pattern.

A row is a slot and a pattern that stands at the start of a statement. The slot says which question the statement
answers if only one answer can hold at a time; then the group ``value`` is the answer, and other groups may be named in
the slot. A group ``ends`` names what holds no longer.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache

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
_OTHER_SCRIPT = "other script"
_WORD = re.compile(r"[^\W\d_]+")
_IN_OTHER_SCRIPT = re.compile("[\u0400-\u04ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
# English words that end like verbs of other languages.
_ENGLISH_ENDINGS = frozenset(
    "to so do go no who two into also ago too hello video info photo demo repo zero auto me some time same home name come"
    " came make become game welcome became theme".split()
)

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
class Group:
    """Patterns of one language.

    Attributes:
        needs: Words of which every text that one of them matches has one; empty if that is not known.
        any_of_them: Tells whether one of them matches.
    """

    needs: frozenset[str]
    patterns: tuple[Pattern, ...]
    any_of_them: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Table:
    """Groups of patterns, the most specific patterns of each first."""

    groups: tuple[Group, ...]

    def first_match(self, text: str, start: int) -> tuple[Pattern, re.Match[str]] | None:
        """Return the first pattern that matches a text from ``start`` on, with its match."""
        said = _words_of(text)
        for group in self.groups:
            if group.needs and group.needs.isdisjoint(said):
                continue
            if group.any_of_them.match(text, start) is None:
                continue
            for pattern in group.patterns:
                match = pattern.regex.match(text, start)
                if match is not None:
                    return pattern, match
        return None


@cache
def user_table() -> Table:
    """Return what the user's durable statements begin with."""
    others = (*_patterns(russian.USER), *_patterns(asian.USER))
    return Table(
        (
            _group((*_patterns(english.USER), *_patterns(english.EVENTS, is_event=True))),
            *(
                _group((*_patterns(each.USER), *_patterns(each.EVENTS, is_event=True)), each.NEEDS)
                for each in _EUROPEAN
            ),
            _group(others, frozenset({_OTHER_SCRIPT})),
        )
    )


@cache
def greeted_table() -> Table:
    """Return the same for somebody who has just greeted, and so may give their name in the fewest words."""
    names = (*english.GREETED, *(row for each in _EUROPEAN for row in each.GREETED))
    return Table((_group(_patterns(names)), *user_table().groups))


@cache
def name_table() -> Table:
    """Return the patterns of names."""
    patterns = (pattern for group in user_table().groups for pattern in group.patterns)
    return Table((_group(tuple(pattern for pattern in patterns if pattern.slot == "name")),))


@cache
def wish_table() -> Table:
    """Return what begins a wish that holds for every answer to come."""
    of_europe = (_group(_patterns(each.WISHES, kind=Kind.WISH), each.NEEDS) for each in _EUROPEAN)
    return Table((_group(_patterns(english_wishes.WISHES, kind=Kind.WISH)), *of_europe))


@cache
def assistant_table() -> Table:
    """Return what the assistant's durable statements about itself begin with."""
    return Table((_group(_patterns(english.ASSISTANT, is_event=True, is_of_assistant=True)),))


def _patterns(
    rows: Iterable[Row], *, kind: Kind = Kind.STATEMENT, is_event: bool = False, is_of_assistant: bool = False
) -> tuple[Pattern, ...]:
    return tuple(Pattern(slot, re.compile(text, re.IGNORECASE), kind, is_event, is_of_assistant) for slot, text in rows)


@lru_cache(64)
def _words_of(text: str) -> frozenset[str]:
    """Return what tells in which languages a text may be: its words, the endings of some, and its script."""
    said = frozenset(_WORD.findall(text.lower()))
    endings = {f"-{word[-size:]}" for word in said - _ENGLISH_ENDINGS for size in (1, 2) if len(word) > size}
    script = {_OTHER_SCRIPT} if _IN_OTHER_SCRIPT.search(text) else frozenset[str]()
    return said | endings | script


def _group(patterns: tuple[Pattern, ...], needs: frozenset[str] = frozenset()) -> Group:
    unnamed = (_NAMED_GROUP.sub("(?:", pattern.regex.pattern) for pattern in patterns)
    return Group(
        needs,
        patterns,
        re.compile("|".join(unnamed), re.IGNORECASE),
    )
