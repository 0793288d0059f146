"""Shortens pages to a token budget: quotes a page in full if it fits, and otherwise its best passages."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from memoryos_mcp.model.pages import BYTES_PER_TOKEN, Page, estimate_tokens
from memoryos_mcp.text.stemming import folded, is_latin, latin_stem, stem
from memoryos_mcp.text.terms import is_foreign, query_words

# An excerpt with a smaller budget would be useless.
SMALLEST_EXCERPT_TOKENS = 25
PASSAGE_CHARS = 400
ELLIPSIS = "…"
# Extra cost of an excerpt for ellipses and rounding.
EXCERPT_EXTRA_TOKENS = 3

_WORDS = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Quote:
    """The text of a page in a result, in full or as an excerpt.

    Attributes:
        is_excerpt: Whether any text was omitted.
        tokens: Approximate number of tokens in the text.
    """

    user_input: str
    agent_response: str
    is_excerpt: bool
    tokens: int


def whole(page: Page) -> Quote:
    """Return the full text of a page as a `Quote`."""
    tokens = estimate_tokens(page.user_input) + estimate_tokens(page.agent_response)
    return Quote(page.user_input, page.agent_response, is_excerpt=False, tokens=tokens)


def roots(query: str) -> frozenset[str]:
    """Return a root for each query word: a string that occurs in most inflected forms of the word.

    A root is a stem without accents. If the stem's last letter differs between forms, the root omits this letter.
    Searching a page for roots is faster than stemming the page.
    """
    foreign = is_foreign(query)
    found = ((word, latin_stem(word) if foreign and is_latin(word) else stem(word)) for word in query_words(query))
    # In inflected words, the final i of an English stem may be y, and the final t of an Arabic stem another letter.
    return frozenset(folded(root.removesuffix("i").removesuffix("ت") or word) for word, root in found)


def matches(text: str, found: frozenset[str]) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each match of the query words in a text.

    ``found`` contains the roots of the query words (from `roots`). If a root is ASCII, the match is the whole word that
    contains the root. Otherwise, the match is usually only the root.
    """
    for match in _WORDS.finditer(text):
        word = match[0]
        plain_word = folded(word)
        for root in found:
            if root not in plain_word:
                continue
            at = word.casefold().find(root)
            if root.isascii() or at < 0:
                yield match.span()
            else:
                yield match.start() + at, match.start() + at + len(root)


def quote(
    user_input: str,
    agent_response: str,
    max_tokens: int,
    query_roots: frozenset[str],
    best_span: tuple[int, int] | None = None,
) -> Quote | None:
    """Return the text of a page, shortened to ``max_tokens`` if necessary; None if no useful part fits.

    Passages that contain one of ``query_roots`` (from `roots`) or overlap ``best_span`` are preferred. ``best_span`` is
    the part of the page nearest to the query, as a character range in ``user_input`` and ``agent_response`` joined by a
    newline.
    """
    return Excerpts(user_input, agent_response, query_roots, best_span).within(max_tokens)


@dataclass(frozen=True, slots=True)
class _Passage:
    start: int
    end: int
    side: int


class Excerpts:
    """The passages of a page, of which `within` makes excerpts of different sizes. For the arguments, see `quote`.

    A passage with more query roots ranks higher. A passage that overlaps ``best_span`` or begins the page gets a
    bonus.
    """

    def __init__(
        self,
        user_input: str,
        agent_response: str,
        query_roots: frozenset[str],
        best_span: tuple[int, int] | None = None,
    ) -> None:
        self._sides = user_input, agent_response
        self._tokens = estimate_tokens(user_input) + estimate_tokens(agent_response)
        self._text = f"{user_input}\n{agent_response}" if user_input else agent_response
        self._query_roots = query_roots
        self._best_span = best_span

    def within(self, max_tokens: int) -> Quote | None:
        """Return the text of the page, shortened to ``max_tokens`` if necessary; None if no useful part fits."""
        if self._tokens <= max_tokens:
            return Quote(*self._sides, is_excerpt=False, tokens=self._tokens)
        if max_tokens < SMALLEST_EXCERPT_TOKENS:
            return None
        kept = self._choose(max_tokens - EXCERPT_EXTRA_TOKENS)
        user_side, agent_side = (
            _join([p for p in kept if p.side == side], self._passages, self._text) for side in (0, 1)
        )
        tokens = estimate_tokens(user_side) + estimate_tokens(agent_side)
        return Quote(user_side, agent_side, is_excerpt=True, tokens=tokens)

    @cached_property
    def _passages(self) -> list[_Passage]:
        user_input, agent_response = self._sides
        agent_start = len(user_input) + 1 if user_input else 0
        return [
            *(_Passage(start, end, 0) for start, end in _cut(user_input)),
            *(_Passage(start + agent_start, end + agent_start, 1) for start, end in _cut(agent_response)),
        ]

    @cached_property
    def _best_first(self) -> list[_Passage]:
        return sorted(self._passages, key=self._worth, reverse=True)

    def _worth(self, passage: _Passage) -> tuple[float, int]:
        text_folded = folded(self._text[passage.start : passage.end])
        overlap = sum(root in text_folded for root in self._query_roots)
        near = self._best_span
        is_near = near is not None and passage.start < near[1] and near[0] < passage.end
        return overlap + 0.75 * is_near + 0.5 * (passage.start == 0), -passage.start

    def _choose(self, max_tokens: int) -> list[_Passage]:
        """Return the best passages that fit into ``max_tokens``, in the order of the text."""
        kept: list[_Passage] = []
        left = max_tokens
        for passage in self._best_first:
            cost = estimate_tokens(self._text[passage.start : passage.end]) + 1
            if cost <= left:
                kept.append(passage)
                left -= cost
            elif not kept:
                end = passage.start + max(1, left * BYTES_PER_TOKEN // 4)
                kept.append(_Passage(passage.start, min(passage.end, end), passage.side))
                break
        return sorted(kept, key=lambda passage: passage.start)


def _cut(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each passage of ``text``.

    A passage has at most `PASSAGE_CHARS` characters. It ends after a line, sentence or word if possible.
    """
    start = 0
    while start < len(text):
        end = min(len(text), start + PASSAGE_CHARS)
        if end < len(text):
            end = _good_end(text, start + PASSAGE_CHARS // 2, end)
        yield start, end
        start = end


def _good_end(text: str, earliest: int, latest: int) -> int:
    for mark in ("\n", ". ", "。", "? ", "! ", " "):
        found = text.rfind(mark, earliest, latest)
        if found >= 0:
            return found + len(mark)
    return latest


def _join(kept: Sequence[_Passage], passages: Sequence[_Passage], text: str) -> str:
    """Return the ``kept`` passages as one text, with an ellipsis for each gap.

    All passages in ``kept`` must be from the same side of the page (the user's or the assistant's).
    """
    if not kept:
        return ""
    side = [passage for passage in passages if passage.side == kept[0].side]
    parts = [] if kept[0].start == side[0].start else [ELLIPSIS]
    for place, passage in enumerate(kept):
        if place and kept[place - 1].end != passage.start:
            parts.append(ELLIPSIS)
        parts.append(text[passage.start : passage.end])
    if kept[-1].end != side[-1].end:
        parts.append(ELLIPSIS)
    return "".join(part if part == ELLIPSIS else part.strip("\n") for part in parts)
