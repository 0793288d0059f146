"""Patterns for the beginnings of statements and wishes, with one table per language and one row per pattern.

A statement is something lasting that speakers say about themselves. A wish applies to all future answers.

Each row consists of a slot and a regular expression. The slot is the property that the statement is about, such as
"lives" (the place where the user lives). The slot is None if several such statements may be valid at the same time.

The regular expression matches the beginning of a statement. Named groups have these meanings:

- The group ``value`` matches the value of the property.
- The group ``ends`` matches what has ended, such as "smoking" in "I quit smoking".

The slot may contain the name of a group in braces, such as "family:{who}". The name in braces is replaced with the text
that the group matches.
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
# Words that show that a text is English, and words of other languages that may occur in an English text.
_ENGLISH = frozenset(
    "the and my our what of with you your that it have this how are from is to be been at for i've i'm".split()
)
_SHARED = frozenset("-me -o a c d i in l la m me n no non note on per plus s t use ci".split())
_IN_OTHER_SCRIPT = re.compile("[\u0400-\u04ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
# English words that have the same endings as verbs in other languages.
_ENGLISH_ENDINGS = frozenset(
    "to so do go no who two into also ago too hello video info photo demo repo zero auto me some time same home name come"
    " came make become game welcome became theme".split()
)

# Beginnings of patterns, by key. The key "b" is for "I'm" and "we're", "i" for "I" and "we", "m" for "my" and "our".
_BEGINNINGS = (
    ("b", (f"{IM} ", f"{WERE} ")),
    ("i", ("i ", "i(", "i[", f"{WE} ", f"{WE}(", f"{WEVE} ", f"{WEVE}(", f"(?:i|{IVE}) ", f"(?:{IM}|{IVE} ")),
    ("m", ("my ", "(?:my|our) ")),
)
_LITERAL = re.compile(r"[a-hj-lnp-vx-z](?=[a-z]* )")
# ``_I_AM`` matches a text that begins with "I'm" or "we are", and ``_ADVERB`` a text with an adverb after its subject.
_I_AM = re.compile(r"(?:i['’]?m|i am|we['’]?re|we are) ", re.IGNORECASE)
_ADVERB = re.compile(rf"(?:i|we)(?:['’]?(?:m|ve|re)| am| have| are)? {ADV.removesuffix('{0,3}')}", re.IGNORECASE)
# Suffix of a slot whose value must be a known place.
OF_PLACE = "@place"


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern for the beginning of a statement or wish.

    Attributes:
        slot: The property that the statement is about, such as "lives"; None if several such statements may be valid at
            the same time.
        text: The regular expression, which is compiled on first use.
        kind: Whether the pattern matches statements or wishes.
        is_event: Whether the statement may contain words such as "today".
        is_of_assistant: Whether the pattern matches statements of the assistant, which may contain "you".
        is_of_place: Whether the group ``value`` must match the name of a known place.
    """

    slot: str | None
    text: str
    kind: Kind = Kind.STATEMENT
    is_event: bool = False
    is_of_assistant: bool = False
    is_of_place: bool = False

    def match(self, text: str, start: int, *, has_adverb: bool = True) -> re.Match[str] | None:
        """Return the match that begins at ``start``; None if there is none.

        If the text has no adverb after its subject, ``has_adverb=False`` makes the search faster.
        """
        match = _compiled(self.text, has_adverb).match(text, start)
        return None if match is not None and self.is_of_place and not is_place(match["value"]) else match


@dataclass(frozen=True, slots=True)
class Group:
    """Patterns of one language, or of several.

    Attributes:
        needs: Words and other signs of the language, as returned by ``_words_of``. Every text that a pattern matches
            contains at least one of these. If ``needs`` is empty, the patterns are tried on every text.
        patterns: For each key, the patterns to try, in order. The key depends on the beginning of the text, ignoring case.
            The key "b" is for texts that begin with "I'm" or "we're". The key "i" is for other texts that begin with I
            or W (such as "I have"). The key "m" is for texts that begin with M or O (such as "my" and "our"). For any
            other text, the key is its first letter, or "" if the first letter is not a key.
    """

    needs: frozenset[str]
    patterns: dict[str, tuple[Pattern, ...]]

    def first_match(self, text: str, start: int) -> tuple[Pattern, re.Match[str]] | None:
        """Return the first pattern that matches at ``start``, and the match; None if no pattern matches."""
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
    """Groups of patterns. In each group, the most specific patterns come first."""

    groups: tuple[Group, ...]


@lru_cache(256)
def first_match(table: Table, text: str, start: int) -> tuple[Pattern, re.Match[str]] | None:
    """Return the first pattern of a table that matches at ``start``, and the match; None if no pattern matches."""
    said = _words_of(text)
    for group in table.groups:
        if not group.needs or _may_be_in(group, said):
            found = group.first_match(text, start)
            if found is not None:
                return found
    return None


@cache
def user_table() -> Table:
    """Return the patterns for durable statements of the user, and for statements about events in the user's life."""
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
    """Return the patterns for a text that contains or follows a greeting.

    The table contains the patterns of ``user_table``, and patterns for short introductions such as "Hi, Tom here".
    """
    names = (*english.GREETED, *(row for each in _EUROPEAN for row in each.GREETED))
    return Table((_group(_patterns(names)), *user_table().groups))


@cache
def names_of(table: Table) -> Table:
    """Return a copy of a table that contains only the patterns for statements of the speaker's name."""
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
    """Return the patterns for wishes that apply to all future answers."""
    of_europe = (_group(_patterns(each.WISHES, kind=Kind.WISH), each.NEEDS) for each in _EUROPEAN)
    return Table((_group(_patterns(english_wishes.WISHES, kind=Kind.WISH)), *of_europe))


@cache
def assistant_table() -> Table:
    """Return the patterns for statements of the assistant about itself."""
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
    """Return whether a text may be in the language of a group. ``said`` is the result of ``_words_of`` for the text."""
    hits = group.needs & said
    return bool(hits) and not (hits <= _SHARED and not _ENGLISH.isdisjoint(said))


@lru_cache(64)
def _words_of(text: str) -> frozenset[str]:
    """Return the words of a text and other signs of its language.

    These signs are word endings such as ``-o``, and a mark if the text contains Cyrillic, Chinese, Japanese or Korean
    script.
    """
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
    """Return the key of a pattern in ``Group.patterns``, such as "m" if all matched texts begin with "my" or "our".

    ``text`` is the pattern's regular expression. The result is empty if the matched texts may begin with different
    letters.
    """
    for key, beginnings in _BEGINNINGS:
        if text.startswith(beginnings):
            return key
    literal = _LITERAL.match(text)
    return literal[0] if literal else ""
