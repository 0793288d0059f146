"""Splits text into parts that are short enough for an embedding model, at sentence ends if possible."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# The bundled model was trained on windows of up to 256 tokens, including [CLS] and [SEP].
WINDOW_TOKENS = 254
# A stretch may be up to this many tokens shorter than its limit, in order to end at the end of a sentence or line.
SENTENCE_REACH_TOKENS = 64
# For a model with an unknown tokenizer: about 375 tokens of English or 500 of Chinese. Most models accept 512.
WINDOW_BYTES = 1500
# The tokenizer holds the interpreter lock for up to 2 us per character, so a slice blocks other threads for up to 8 ms.
SLICE_CHARS = 4096

# The end of a sentence or a line, including closing quotes. A run of punctuation marks is matched only as a whole.
# Otherwise, the search would be very slow on a page that consists of a million dots.
_SENTENCE_END = re.compile(r"(?<![.!?…。！？؟])[.!?…。！？؟]++[\"'”’»)\]]*+(?=\s|$)|[。！？\n]")
_QUESTION_MARKS = re.compile(r"[?？؟]")
_SPACED_STOPS = (".", "!", "?", "…")
_STOPS = ("。", "！", "？")


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of a text that is short enough for an embedding model.

    Attributes:
        first: Index of the first token.
        last: Index after the last token.
        start: Index of the first character.
        end: Index after the last character.
    """

    first: int
    last: int
    start: int
    end: int


def head(text: str) -> str:
    """Return enough of the beginning of ``text`` to fill a window, without leading white space."""
    return text[: 4 * SLICE_CHARS].lstrip()[:SLICE_CHARS]


def slices(text: str) -> Iterator[tuple[int, int]]:
    """Yield consecutive ranges of ``text`` of at most `SLICE_CHARS` characters, cut at white space if possible."""
    start = 0
    while len(text) - start > SLICE_CHARS:
        limit = start + SLICE_CHARS
        middle = limit - SLICE_CHARS // 2
        space = max(text.rfind(" ", middle, limit), text.rfind("\n", middle, limit))
        end = limit if space < 0 else space + 1
        yield start, end
        start = end
    yield start, len(text)


def stretches(text: str, starts: NDArray[np.int64], window_tokens: int = WINDOW_TOKENS) -> list[Stretch]:
    """Split ``text`` into stretches and return them in order. There is at least one stretch.

    Args:
        text: The whole text.
        starts: Index of the first character of each token, shape ``(n,)``.
        window_tokens: Maximum number of tokens in a stretch, at least 1.
    """
    first, cuts = 0, []
    while len(starts) - first > window_tokens:
        limit = first + window_tokens
        reach = range(limit, limit - min(SENTENCE_REACH_TOKENS, window_tokens // 2), -1)
        last = next((token for token in reach if _ends_sentence(text[starts[token - 1] : starts[token]])), limit)
        cuts.append((first, last))
        first = last
    cuts.append((first, len(starts)))
    return [Stretch(first, last, *_characters(text, starts, first, last)) for first, last in cuts]


def windows(text: str) -> list[tuple[int, int]]:
    """Return consecutive character ranges of ``text``, each of at most `WINDOW_BYTES` bytes.

    White space around a range is left out. There is at least one range. ``text`` must not contain lone surrogates.
    """
    return list(_windows(text)) or [(0, len(text))]


def first_window(text: str) -> str:
    """Return the first window of ``text``, without surrounding white space."""
    start, end = next(_windows(text), (0, 0))
    return text[start:end]


def _windows(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    while start < len(text):
        end = _window_end(text, start)
        part = text[start:end]
        if part.strip():
            yield start + len(part) - len(part.lstrip()), start + len(part.rstrip())
        start = end


def in_questions(text: str, starts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return, for each token, whether it is in a sentence that ends with a question mark, shape ``(n,)``.

    ``starts`` contains the index of each token's first character.
    """
    found = list(_SENTENCE_END.finditer(text))
    ends = np.array([match.end() for match in found], dtype=np.int64)
    # Text after the last sentence end is an unfinished sentence, which counts as a statement.
    asks = np.array([*(_QUESTION_MARKS.search(match[0]) is not None for match in found), False])
    return np.asarray(asks[np.searchsorted(ends, starts, side="right")])


def _window_end(text: str, start: int) -> int:
    """Return the end of the window that begins at ``start``.

    A window ends after a sentence if possible, or else after a word. Only the window's last quarter is searched for
    such an end. If there is none, the window has the maximum size.
    """
    limit = start + len(text[start : start + WINDOW_BYTES].encode()[:WINDOW_BYTES].decode(errors="ignore"))
    if limit == len(text):
        return limit
    reach = start + (limit - start) * 3 // 4
    # The search includes one more character, to distinguish the end of a sentence from a decimal point in a number.
    ends = [match.end() for match in _SENTENCE_END.finditer(text, reach, limit + 1) if match.end() <= limit]
    if ends:
        return ends[-1]
    return text.rfind(" ", reach, limit) + 1 or limit


def _ends_sentence(token: str) -> bool:
    """Return whether ``token``, which includes the white space after it, ends a sentence or a line."""
    bare = token.rstrip()
    return "\n" in token or bare.endswith(_STOPS) or (len(bare) < len(token) and bare.endswith(_SPACED_STOPS))


def _characters(text: str, starts: NDArray[np.int64], first: int, last: int) -> tuple[int, int]:
    """Return the start and end, in characters, of the tokens from ``first`` up to, but not including, ``last``.

    Text between two tokens belongs to the first of them. White space at the start and at the end is left out.
    """
    start = int(starts[first]) if first else 0
    end = int(starts[last]) if last < len(starts) else len(text)
    part = text[start:end]
    if not part.strip():
        return start, end
    return start + len(part) - len(part.lstrip()), start + len(part.rstrip())
