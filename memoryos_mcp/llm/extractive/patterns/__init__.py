"""Patterns for the beginnings of durable statements and wishes: one table per language, one row per pattern.

A row is a slot and a regular expression for the beginning of a statement. The slot, such as "lives", is None unless
only one answer can be valid at a time. With a slot, the group ``value`` is the answer, and the slot may contain the
names of other groups. A group ``ends`` matches an earlier statement that is no longer valid.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache

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
from memoryos_mcp.llm.extractive.patterns.vocabulary import ADV, IM, IVE, WE, WERE, WEVE, Row
from memoryos_mcp.model.knowledge import Kind

_EUROPEAN = (german, french, spanish, italian, portuguese)
_OTHER_SCRIPT = "other script"
_WORD = re.compile(r"[^\W\d_]+")
# Words by which English is recognised, and words of other languages that are no sign of them in an English text.
_ENGLISH = frozenset(
    "the and my our what of with you your that it have this how are from is to be been at for i've i'm".split()
)
_SHARED = frozenset("-me -o a c d i in l la m me n no non note on per plus s t use ci".split())
_IN_OTHER_SCRIPT = re.compile("[\u0400-\u04ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
# English words that end like verbs of other languages.
_ENGLISH_ENDINGS = frozenset(
    "to so do go no who two into also ago too hello video info photo demo repo zero auto me some time same home name come"
    " came make become game welcome became theme".split()
)

# Beginnings of patterns by a key. The key "b" is for "I'm" and "we're", "i" for "I" and "we", "m" for "my" and "our".
_BEGINNINGS = (
    ("b", (f"{IM} ", f"{WERE} ")),
    ("i", ("i ", "i(", "i[", f"{WE} ", f"{WE}(", f"{WEVE} ", f"{WEVE}(", f"(?:i|{IVE}) ", f"(?:{IM}|{IVE} ")),
    ("m", ("my ", "(?:my|our) ")),
)
_LITERAL = re.compile(r"[a-hj-lnp-vx-z](?=[a-z]* )")
# Match a text that begins with "I'm" or "we are", and a text with an adverb after its subject.
_I_AM = re.compile(r"(?:i['’]?m|i am|we['’]?re|we are) ", re.IGNORECASE)
_ADVERB = re.compile(rf"(?:i|we)(?:['’]?(?:m|ve|re)| am| have| are)? {ADV.removesuffix('{0,3}')}", re.IGNORECASE)
# Suffix of a slot whose value must be a known place.
OF_PLACE = "@place"


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern for the beginning of a statement or wish.

    Attributes:
        slot: The slot that the statement fills; None if it fills none.
        text: The regular expression, compiled on first use.
        kind: Whether it matches statements or wishes.
        is_event: Whether the statement may contain words such as "today".
        is_of_assistant: Whether it matches statements of the assistant, which may contain "you".
        is_of_place: Whether its value must be a known place.
    """

    slot: str | None
    text: str
    kind: Kind = Kind.STATEMENT
    is_event: bool = False
    is_of_assistant: bool = False
    is_of_place: bool = False

    def match(self, text: str, start: int, *, has_adverb: bool = True) -> re.Match[str] | None:
        """Return the match at ``start``, or None; without ``has_adverb``, no adverb may follow the subject."""
        match = _compiled(self.text, has_adverb).match(text, start)
        return None if match is not None and self.is_of_place and not is_place(match["value"]) else match


@dataclass(frozen=True, slots=True)
class Group:
    """Patterns of one language.

    Attributes:
        needs: Words of which one is in every text that a pattern matches; empty to try the patterns on every text.
        patterns: The patterns in order, by a key for the beginning of a text: "b" for "I'm" and "we're", "i" for "I" and
            "we", "m" for "my" and "our", the first letter of other texts, or "" if there is no such key.
    """

    needs: frozenset[str]
    patterns: dict[str, tuple[Pattern, ...]]

    def first_match(self, text: str, start: int) -> tuple[Pattern, re.Match[str]] | None:
        """Return the first pattern with a match at ``start``, and the match."""
        first = text[start : start + 1].lower()
        has_adverb = True
        if first in {"i", "w"}:
            has_adverb = _ADVERB.match(text, start) is not None
            first = "b" if _I_AM.match(text, start) else "i"
        elif first in {"m", "o"}:
            first = "m"
        for pattern in self.patterns.get(first, self.patterns[""]):
            match = pattern.match(text, start, has_adverb=has_adverb)
            if match is not None:
                return pattern, match
        return None


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Groups of patterns; in each group, the most specific patterns come first."""

    groups: tuple[Group, ...]


@lru_cache(256)
def first_match(table: Table, text: str, start: int) -> tuple[Pattern, re.Match[str]] | None:
    """Return the first pattern of a table with a match at ``start``, and the match."""
    said = _words_of(text)
    for group in table.groups:
        if not group.needs or _may_be_in(group, said):
            found = group.first_match(text, start)
            if found is not None:
                return found
    return None


@cache
def user_table() -> Table:
    """Return the patterns for the user's durable statements."""
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
    """Return the same patterns and some for names in few words, as in "Hi, Tom here", for use after a greeting."""
    names = (*english.GREETED, *(row for each in _EUROPEAN for row in each.GREETED))
    return Table((_group(_patterns(names)), *user_table().groups))


@cache
def names_of(table: Table) -> Table:
    """Return the patterns of a table for the slot "name"."""
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
    """Return the patterns for wishes about all future answers."""
    of_europe = (_group(_patterns(each.WISHES, kind=Kind.WISH), each.NEEDS) for each in _EUROPEAN)
    return Table((_group(_patterns(english_wishes.WISHES, kind=Kind.WISH)), *of_europe))


@cache
def assistant_table() -> Table:
    """Return the patterns for the assistant's durable statements about itself."""
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
def _compiled(text: str, has_adverb: bool) -> re.Pattern[str]:
    if not has_adverb:
        for _, beginnings in _BEGINNINGS:
            for beginning in beginnings:
                if text.startswith(f"{beginning}{ADV}"):
                    text = beginning + text[len(beginning) + len(ADV) :]
    return re.compile(text, re.IGNORECASE)


def _may_be_in(group: Group, said: frozenset[str]) -> bool:
    """Whether a text with these words and signs may be in the language of a group."""
    hits = group.needs & said
    return bool(hits) and not (hits <= _SHARED and not _ENGLISH.isdisjoint(said))


@lru_cache(64)
def _words_of(text: str) -> frozenset[str]:
    """Return the words of a text, with further signs of its language: endings such as ``-o``, and its script."""
    said = frozenset(_WORD.findall(text.lower()))
    endings = {f"-{word[-size:]}" for word in said - _ENGLISH_ENDINGS for size in (1, 2) if len(word) > size}
    script = {_OTHER_SCRIPT} if _IN_OTHER_SCRIPT.search(text) else frozenset[str]()
    return said | endings | script


def _group(patterns: tuple[Pattern, ...], needs: frozenset[str] = frozenset()) -> Group:
    by_beginning = [(pattern, _beginning(pattern.text)) for pattern in patterns]
    keys = {"b", "i", "m"} | {key for _, key in by_beginning}
    return Group(
        needs,
        {
            key: tuple(
                pattern for pattern, found in by_beginning if found in {"", key} or (key == "b" and found == "i")
            )
            for key in (*sorted(keys), "")
        },
    )


@cache
def _beginning(text: str) -> str:
    """Return a pattern's key in ``Group.patterns``; empty if its matches have no common beginning."""
    for key, beginnings in _BEGINNINGS:
        if text.startswith(beginnings):
            return key
    literal = _LITERAL.match(text)
    return literal[0] if literal else ""
