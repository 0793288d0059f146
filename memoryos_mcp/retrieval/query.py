"""Query parsing: the names, words and numbers in a query, before the store is searched."""

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

# Weight of a stop word, which distinguishes "when" from "where": about that of a word on half of the pages.
COMMON_WEIGHT = 0.8
# Exponent of a word's rarity, below 1 so that the rarest word of a query does not decide alone.
RARITY_POWER = 0.75
# Only the start of a long query is used: the model reads 254 tokens, and the word index reads 64 words.
PARSED_CHARS = 4_096

# The text between two names in "Ada and Ben".
_CONJUNCTION = re.compile(r"\W*(?:(?:and|or|und|oder|et|ou|y|o|e|en|of|и|или)\W+)?", re.IGNORECASE)
# Words that ask for several memories, such as a list, a number or a comparison, in the languages of `query_time`.
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
    """A parsed query.

    Attributes:
        subject: Its text without the names of the user and the assistant.
        side: The side whose words it asks for; None if it names neither.
        counts: Its words, with the number of pages that contain each.
        pages: Approximate number of all pages.
        times: The time spans in its text.
        is_for_several: Whether it asks for several memories, which are usually in different sessions.
        embedded: The subject's vectors; None for keyword search only.
        weights: Weights of the subject's tokens, shape ``(n,)``; empty without vectors.
        user_called: The assistant's most frequent name for the user; None without one.
        agent_called: The user's most frequent name for the assistant; None without one.
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


def normalised(query: str) -> str:
    """Return the start of a query, normalised (NFKC) for the comparison of words."""
    return unicodedata.normalize("NFKC", query[:PARSED_CHARS])[:PARSED_CHARS]


def subject_of(query: str, stats: TermStats) -> str:
    """Return a query without the names of the two sides, which pages of their dialogue rarely contain."""
    return without(query, stats.user_names | stats.agent_names)


def side_of(query: str, stats: TermStats) -> Side | None:
    """Return the side whose words a query asks for: the first one that it names, as in "What did Ada tell Ben?".

    None if it names neither, or both together, as in "Where did Ada and Ben meet?".
    """
    sides = dict.fromkeys(stats.agent_names, Side.AGENT) | dict.fromkeys(stats.user_names, Side.USER)
    named = [(start, end, sides[name]) for start, end, name in places(query) if name in sides]
    for (_, end, side), (start, _, next_side) in pairwise(named):
        if side is not next_side and _CONJUNCTION.fullmatch(query, end, start):
            return None
    return named[0][2] if named else None


def asks_for_several(query: str) -> bool:
    """Return whether a query asks for several memories, as for an order of events, a number or a comparison."""
    return _SEVERAL.search(query) is not None


def token_weights(
    subject: str, tokens: Sequence[tuple[int, int]], counts: Mapping[str, int], pages: int
) -> NDArray[np.float64]:
    """Return the weights of a query's tokens: a power of the rarity of the token's word, shape ``(n,)``.

    Punctuation has weight 0.

    Args:
        subject: The query, normalised.
        tokens: Start and end of each token in it.
        counts: The number of pages that contain each of its words.
        pages: The number of all pages.
    """
    by_char, stops = np.zeros(len(subject) + 1), stop_words(subject)
    for start, end, word in spans(subject):
        rare = rarity(counts.get(word, 0), pages) ** RARITY_POWER
        weight = rare if is_content(word, stops) else COMMON_WEIGHT
        by_char[start:end] = np.maximum(by_char[start:end], weight)
    weights = np.array([by_char[start:end].max(initial=0.0) for start, end in tokens])
    return weights if weights.any() else np.ones(len(tokens))


def rarity(count: int, pages: int) -> float:
    """Return BM25's inverse page frequency of a word on ``count`` of ``pages`` pages.

    The formula is ``ln(1 + (N - df + 0.5) / (df + 0.5))``.
    """
    return math.log(1 + (max(pages - count, 0) + 0.5) / (count + 0.5))
