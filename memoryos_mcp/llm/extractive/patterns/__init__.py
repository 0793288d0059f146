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
from memoryos_mcp.llm.extractive.patterns.places import is_place
from memoryos_mcp.llm.extractive.patterns.vocabulary import IM, IVE, WE, WERE, WEVE, Row

_EUROPEAN = (german, french, spanish, italian, portuguese)
_OTHER_SCRIPT = "other script"
_WORD = re.compile(r"[^\W\d_]+")
_IN_OTHER_SCRIPT = re.compile("[\u0400-\u04ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
# English words that end like verbs of other languages.
_ENGLISH_ENDINGS = frozenset(
    "to so do go no who two into also ago too hello video info photo demo repo zero auto me some time same home name come"
    " came make become game welcome became theme".split()
)

# What patterns begin with that match a text only if its first letter is one of these.
_BEGINNINGS = (
    (
        "iw",
        (
            "i ",
            "i(",
            "i[",
            f"{IM} ",
            f"{WE} ",
            f"{WE}(",
            f"{WEVE} ",
            f"{WEVE}(",
            f"{WERE} ",
            f"(?:i|{IVE}) ",
            f"(?:{IM}|{IVE} ",
        ),
    ),
    ("mo", ("my ", "(?:my|our) ")),
)
# The end of a slot whose value must be a known place.
OF_PLACE = "@place"
# Slots under which facts were kept by earlier versions.
FORMER_SLOTS = {"lives in": "lives", "works as": "work", "works at": "employer", "born in": "from"}


@dataclass(frozen=True, slots=True)
class Pattern:
    """A way to begin a statement or wish, and the slot that it fills.

    Attributes:
        text: The regular expression, compiled when it is first needed.
        is_event: Whether it may name a day that is soon over.
        is_of_assistant: Whether the assistant says it, who may speak to "you".
        is_of_place: Whether its value must be a known place.
    """

    slot: str | None
    text: str
    kind: Kind = Kind.STATEMENT
    is_event: bool = False
    is_of_assistant: bool = False
    is_of_place: bool = False

    def match(self, text: str, start: int) -> re.Match[str] | None:
        """Return the match at ``start``, or None."""
        match = _compiled(self.text).match(text, start)
        return None if match is not None and self.is_of_place and not is_place(match["value"]) else match


@dataclass(frozen=True, slots=True)
class Group:
    """Patterns of one language.

    Attributes:
        needs: Words of which every text that one of them matches has one; empty if that is not known.
        patterns: By the letters one of which a text begins with, in lower case; "" holds for every text. In order.
    """

    needs: frozenset[str]
    patterns: dict[str, tuple[Pattern, ...]]

    def first_match(self, text: str, start: int) -> tuple[Pattern, re.Match[str]] | None:
        """Return the first pattern that matches a text from ``start`` on, with its match."""
        first = text[start : start + 1].lower()
        for pattern in self.patterns.get(first, self.patterns[""]):
            match = pattern.match(text, start)
            if match is not None:
                return pattern, match
        return None


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
            found = group.first_match(text, start)
            if found is not None:
                return found
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


def names_of(table: Table) -> Table:
    """Return the patterns of a table that tell a name."""
    groups = (
        (
            group.needs,
            {
                letter: tuple(each for each in patterns if each.slot == "name")
                for letter, patterns in group.patterns.items()
            },
        )
        for group in table.groups
    )
    return Table(tuple(Group(needs, patterns) for needs, patterns in groups))


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
    return tuple(
        Pattern(
            slot.removesuffix(OF_PLACE) if slot else None,
            text,
            kind,
            is_event,
            is_of_assistant,
            OF_PLACE in (slot or ""),
        )
        for slot, text in rows
    )


@cache
def _compiled(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)


@lru_cache(64)
def _words_of(text: str) -> frozenset[str]:
    """Return what tells in which languages a text may be: its words, the endings of some, and its script."""
    said = frozenset(_WORD.findall(text.lower()))
    endings = {f"-{word[-size:]}" for word in said - _ENGLISH_ENDINGS for size in (1, 2) if len(word) > size}
    script = {_OTHER_SCRIPT} if _IN_OTHER_SCRIPT.search(text) else frozenset[str]()
    return said | endings | script


def _group(patterns: tuple[Pattern, ...], needs: frozenset[str] = frozenset()) -> Group:
    others = tuple(pattern for pattern in patterns if not _first_letters(pattern.text))
    by_letter = {
        letter: tuple(pattern for pattern in patterns if letter in (_first_letters(pattern.text) or letter))
        for letter in "iwmo"
    }
    return Group(needs, {"": others, **by_letter})


@cache
def _first_letters(text: str) -> str:
    """Return the letters of which a text that the pattern matches begins with one, or nothing if that may be another."""
    return next((letters for letters, beginnings in _BEGINNINGS if text.startswith(beginnings)), "")
