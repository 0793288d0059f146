"""A parsed query: what it asks for, before anything is searched."""

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from memoryos_mcp.embedding import EmbeddedQuery
from memoryos_mcp.retrieval.query_time import Span
from memoryos_mcp.storage.values import TermStats
from memoryos_mcp.text.addressees import places, without
from memoryos_mcp.text.terms import is_content, spans, stop_words

# The weight of a stop word, which still tells "when" from "where": about that of a word on half of the pages.
COMMON_WEIGHT = 0.8
# Exponent of a word's rarity: the rarest word of a query matters most but does not decide alone.
RARITY_POWER = 0.75
# The model reads 254 word pieces of a query and the word index 64 of its words; only the start of a long text counts.
LOOKED_AT_CHARS = 4_096

# The text between two names that are named together.
_IN_ONE_BREATH = re.compile(r"\W*(?:(?:and|or|und|oder|et|ou|y|o|e|en|of|и|или)\W+)?", re.IGNORECASE)
# Words that ask for several things, or for one in several places, in the languages of `query_time`.
_SEVERAL = re.compile(
    r"\b(?:in (?:what |which |the )?(?:\w+ )?order|order in which|list|sequence|timeline|chronolog\w*|how many|total|"
    r"all|every|across|over time|throughout|several|different|various|compar\w*|"
    r"reihenfolge|liste|alle|jede[nrs]?|wie viele|insgesamt|verschiedene\w*|im laufe|"
    r"ordre|tous|toutes|combien|chaque|différent\w*|au fil|orden|lista|todos|todas|cuánt[oa]s|cada|diferentes|"
    r"ordine|elenco|tutt[ei]|quant[ei]|ogni|divers[ei]|ordem|quant[oa]s|volgorde|lijst|hoeveel|elke|"
    r"порядк\w*|список|все|сколько|кажд\w+)\b"
    r"|顺序|順序|列出|所有|多少|几次|每|順番|一覧|すべて|全て|いくつ|何回|순서|목록|모든|몇|ترتيب|قائمة|كل|كم",
    re.IGNORECASE,
)


class Side(StrEnum):
    """A side of the dialogue."""

    USER = "user"
    AGENT = "assistant"


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A query.

    Attributes:
        subject: Its text without the names of the two sides.
        side: The side whose words are asked for, if one is named.
        counts: Its words, with the number of pages that contain each.
        pages: Approximate number of pages.
        times: The time spans that it names.
        is_for_several: Whether it asks for several things, which are in different sessions rather than in one.
        embedded: The subject's vectors; None if only words are compared.
        weights: How much each of the subject's word pieces says, shape ``(n,)``; empty without vectors.
        user_called: The name that the assistant uses most for the user; None without one.
        agent_called: The name that the user uses most for the assistant; None without one.
    """

    subject: str
    side: Side | None
    counts: Mapping[str, int]
    pages: int
    times: Sequence[Span]
    is_for_several: bool
    embedded: EmbeddedQuery | None
    weights: NDArray[np.float64]
    user_called: str | None = None
    agent_called: str | None = None


def plain(query: str) -> str:
    """Return the start of a query in the form in which words are compared, up to `LOOKED_AT_CHARS`."""
    return unicodedata.normalize("NFKC", query[:LOOKED_AT_CHARS])[:LOOKED_AT_CHARS]


def subject_of(query: str, stats: TermStats) -> str:
    """Return a query without the names of the two sides: pages do not contain them, so they would mislead."""
    return without(query, stats.user_names | stats.agent_names)


def side_of(query: str, stats: TermStats) -> Side | None:
    """Return the side whose words are asked for: the one that is named, or named first ("What did Ada tell Ben?").

    None if neither is named, or both together ("Where did Ada and Ben meet?").
    """
    sides = dict.fromkeys(stats.agent_names, Side.AGENT) | dict.fromkeys(stats.user_names, Side.USER)
    named = [(start, end, sides[name]) for start, end, name in places(query) if name in sides]
    for (_, end, side), (start, _, next_side) in pairwise(named):
        if side is not next_side and _IN_ONE_BREATH.fullmatch(query, end, start):
            return None
    return named[0][2] if named else None


def asks_for_several(query: str) -> bool:
    """Return whether a query asks for several things: an order of events, a number, a comparison."""
    return _SEVERAL.search(query) is not None


def piece_weights(
    subject: str, pieces: Sequence[tuple[int, int]], counts: Mapping[str, int], pages: int
) -> NDArray[np.float64]:
    """Return how much each word piece of a query says: a power of its word's rarity, shape ``(n,)``.

    Rarity is BM25's: ``ln(1 + (N - df + 0.5) / (df + 0.5))``. Marks between words have weight 0.

    Args:
        subject: The query, in its plain form.
        pieces: Start and end of each piece in it.
        counts: The number of pages that contain each of its words.
        pages: The number of all pages.
    """
    by_char, stops = np.zeros(len(subject) + 1), stop_words(subject)
    for start, end, word in spans(subject):
        rare = rarity(counts.get(word, 0), pages) ** RARITY_POWER
        weight = rare if is_content(word, stops) else COMMON_WEIGHT
        by_char[start:end] = np.maximum(by_char[start:end], weight)
    weights = np.array([by_char[start:end].max(initial=0.0) for start, end in pieces])
    return weights if weights.any() else np.ones(len(pieces))


def rarity(count: int, pages: int) -> float:
    """Return the inverse page frequency of a word that is on ``count`` of ``pages`` pages."""
    return math.log(1 + (max(pages - count, 0) + 0.5) / (count + 0.5))
