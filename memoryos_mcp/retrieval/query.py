"""Query parsing: finds the names and time spans in a query, and weights the words of the query."""

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
from memoryos_mcp.text.terms import is_content, is_foreign, rarity, spans, stop_words

# Weight of a stop word. It is not 0, so that "when" differs from "where". A word on half of the pages weighs about as
# much.
COMMON_WEIGHT = 0.8
# Exponent of a word's rarity. It is below 1, so that the rarest word of a query is not the only one that matters.
RARITY_POWER = 0.75
# Only the start of a long query is used: the model reads 254 tokens, and the word index reads 64 words.
PARSED_CHARS = 4_096

# The text between the two names in "Ada and Ben".
_CONJUNCTION = re.compile(r"\W*(?:(?:and|or|und|oder|et|ou|y|o|e|en|of|и|или)\W+)?", re.IGNORECASE)
# Words that ask for an order of events, in the languages of `query_time`.
_ORDER = (
    r"in (?:what |which |the )?(?:\w+ )?order|order in which|sequence|timeline|chronolog\w*|over time|throughout|"
    r"reihenfolge|im laufe|ordre|au fil|orden|ordine|ordem|volgorde|порядк\w*"
)
_ORDER_UNSPACED = "顺序|順序|順番|순서|ترتيب"
# Words that ask for several memories, as for an order, a list, a count or a comparison.
_SEVERAL = re.compile(
    rf"\b(?:{_ORDER}|list|how many|total|all|every|across|several|different|various|compar\w*|"
    r"liste|alle|jede[nrs]?|wie viele|insgesamt|verschiedene\w*|tous|toutes|combien|chaque|différent\w*|"
    r"lista|todos|todas|cuánt[oa]s|cada|diferentes|elenco|tutt[ei]|quant[ei]|ogni|divers[ei]|quant[oa]s|"
    r"lijst|hoeveel|elke|список|все|сколько|кажд\w+)\b"
    rf"|{_ORDER_UNSPACED}|列出|所有|多少|几次|每|一覧|すべて|全て|いくつ|何回|목록|모든|몇|قائمة|كل|كم",
    re.IGNORECASE,
)
# Words with which a query asks how something went, such as "summary". "Resume" is missing in English, where it means
# a CV or to continue.
_COURSE = re.compile(
    rf"\b(?:{_ORDER}|summar\w*|recap\w*|overview|so far|developed|progressed|evol(?:ved|ution)|"
    r"zusammenfass\w*|überblick|verlauf|entwickelt|(?:un|le|en) résumé|résume[rz]?|récapitul\w*|évolu\w*|"
    r"resumen|resúm\w*|resumir|resumo|cronol\w*|a lo largo|evolu\w*|riassun\w*|riepilog\w*|nel tempo|ao longo|"
    r"samenvat\w*|overzicht|verloop|обзор\w*|итог\w*|хронолог\w*)\b"
    rf"|{_ORDER_UNSPACED}|总结|總結|概述|经过|まとめ|要約|経緯|요약|경과|ملخص|تسلسل",
    re.IGNORECASE,
)
# Letters of a script other than Latin, such as Cyrillic or Chinese. A single one may be a symbol, as in "10 kΩ".
_NOT_LATIN = re.compile("[^\\W\\d_\u0000-\u024f\u1e00-\u1eff]{2}")


class Side(StrEnum):
    """A side of the dialogue: the user or the assistant."""

    USER = "user"
    AGENT = "assistant"


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A parsed query.

    Attributes:
        subject: The query without the names of the user and the assistant.
        side: The speaker that the query asks about, the user or the assistant; None if unknown.
        counts: The words of the query, each with the number of pages that contain it.
        pages: Approximate number of pages in the memory.
        times: The time spans in the query.
        is_for_several: Whether the query asks for several memories, which are usually in different sessions.
        is_for_course: Whether the query asks how something went: for a summary or an order of events.
        is_english: Whether the query seems to be in English.
        embedded: Vectors of the subject; None if search uses only keywords.
        weights: Weight of each token of the subject, shape ``(n,)``; empty if there are no vectors.
        user_called: The name that the assistant uses most often for the user; None if no name is known.
        agent_called: The name that the user uses most often for the assistant; None if no name is known.
    """

    subject: str
    side: Side | None
    counts: Mapping[str, int]
    pages: int
    times: Sequence[Span]
    is_for_several: bool
    is_for_course: bool
    is_english: bool
    embedded: EmbeddedQuery | None
    weights: NDArray[np.float64]
    user_called: str | None = None
    agent_called: str | None = None


def normalised(query: str) -> str:
    """Return the first `PARSED_CHARS` characters of a query, normalised (NFKC) so that words can be compared.

    White space around them is left out.
    """
    return unicodedata.normalize("NFKC", query[:PARSED_CHARS])[:PARSED_CHARS].strip()


def subject_of(query: str, stats: TermStats) -> str:
    """Return a query without the names of the user and the assistant.

    Speakers rarely use their own names, so these names are poor search terms.
    """
    return without(query, stats.user_names | stats.agent_names)


def side_of(query: str, stats: TermStats) -> Side | None:
    """Return the speaker (user or assistant) that a query names first, such as Ada in "What did Ada tell Ben?".

    Return None if the query names neither speaker, or both together, as in "Where did Ada and Ben meet?".
    """
    sides = dict.fromkeys(stats.agent_names, Side.AGENT) | dict.fromkeys(stats.user_names, Side.USER)
    named = [(start, end, sides[name]) for start, end, name in places(query) if name in sides]
    for (_, end, side), (start, _, next_side) in pairwise(named):
        if side is not next_side and _CONJUNCTION.fullmatch(query, end, start):
            return None
    return named[0][2] if named else None


def asks_for_several(query: str) -> bool:
    """Return whether a query asks for several memories: for a list, an order of events, a count or a comparison."""
    return _SEVERAL.search(query) is not None


def asks_for_course(query: str) -> bool:
    """Return whether a query asks how something went: for a summary, an order of events or a development."""
    return _COURSE.search(query) is not None


def is_english(query: str) -> bool:
    """Return whether a query seems to be in English.

    This is so if it is in Latin script, and does not have more foreign or accented words than English function words.
    """
    return not is_foreign(query) and _NOT_LATIN.search(query) is None


def token_weights(
    subject: str, tokens: Sequence[tuple[int, int]], counts: Mapping[str, int], pages: int
) -> NDArray[np.float64]:
    """Return the weight of each token of a query, shape ``(n,)``.

    A token has the weight of its word: a power of the word's rarity, or `COMMON_WEIGHT` for a stop word. Punctuation
    has weight 0. If all weights would be 0, all of them are 1 instead.

    Args:
        subject: The query, normalised.
        tokens: Start and end of each token in ``subject``.
        counts: The words of the query, each with the number of pages that contain it.
        pages: Number of pages in the memory.
    """
    by_char, stops = np.zeros(len(subject) + 1), stop_words(subject)
    for start, end, word in spans(subject):
        rare = rarity(counts.get(word, 0), pages) ** RARITY_POWER
        weight = rare if is_content(word, stops) else COMMON_WEIGHT
        by_char[start:end] = np.maximum(by_char[start:end], weight)
    weights = np.array([by_char[start:end].max(initial=0.0) for start, end in tokens])
    return weights if weights.any() else np.ones(len(tokens))
