"""Known: facts in the order in which they answer a query, by the same signals as pages."""

import re
from collections.abc import Mapping, Sequence

import numpy as np

from memoryos_mcp.knowledge import Fact
from memoryos_mcp.retrieval.asked import Asked, rarity
from memoryos_mcp.retrieval.asked_time import nearness
from memoryos_mcp.retrieval.ranking import FACTS, rank
from memoryos_mcp.retrieval.recall import RecalledFact
from memoryos_mcp.retrieval.signals import Scores
from memoryos_mcp.segments import Vector
from memoryos_mcp.terms import stem

FACTS_AT_MOST = 10
SECONDS_PER_DAY = 86_400

# Words that ask for what was, in the languages in which times are understood.
_PAST = re.compile(
    r"\b(?:used to|previous(?:ly)?|former(?:ly)?|earlier|originally|back then|in the past|at first|old|before|"
    r"früher|damals|vorher|ehemalig\w*|zuvor|avant|autrefois|auparavant|ancien\w*|antes|anterior\w*|solía\w*|prima|"
    r"precedente\w*|una volta|antigamente|costumava\w*|vroeger|eerder|voorheen|раньше|прежде|бывш\w*)\b"
    r"|以前|之前|过去|從前|从前|曾经|前は|かつて|昔|元々|예전|이전|과거|옛날|سابق|قبل|كان",
    re.IGNORECASE,
)


def asks_past(query: str, asked: Asked, today: int) -> bool:
    """Return whether a query asks for what was, so that facts which no longer hold may answer it.

    Args:
        query: Its text.
        asked: As it was understood.
        today: In days since 1970.
    """
    is_dated = any(
        span.unit.value != "day" and float(nearness([span], np.array([today]))[0]) == 0 for span in asked.times
    )
    return is_dated or _PAST.search(query) is not None


def rank_facts(asked: Asked, facts: Sequence[Fact], stems: Mapping[int, frozenset[str]]) -> list[RecalledFact]:
    """Return the facts that answer best, best first; of equal ones the newest.

    Args:
        asked: The query.
        facts: Those that may answer.
        stems: What the words of each fact are reduced to, by its number.
    """
    by_number = {fact.fact: fact for fact in facts}
    signals = {"words": _covered(asked, [stems[fact.fact] for fact in facts])}
    if asked.embedded is not None:
        signals["meaning"] = _meaning(asked.embedded.vector, facts)
    if asked.times:
        days = [int(fact.valid_from.timestamp()) // SECONDS_PER_DAY for fact in facts]
        signals["time"] = nearness(asked.times, np.array(days, dtype=np.int64))
    numbers = np.array(list(by_number), dtype=np.int64)
    ones = np.ones(len(facts), dtype=np.int64)
    ranked = rank(FACTS, numbers, signals, ones, ones > 0, FACTS_AT_MOST)
    return [RecalledFact(by_number[entry.seq], entry.score) for entry in ranked]


def _covered(asked: Asked, stems: Sequence[frozenset[str]]) -> Scores:
    """Return how much of the query's words each fact holds, 0 to 1, a rare word counting more."""
    weights = {stem(word): rarity(count, asked.pages) for word, count in asked.counts.items()}
    total = sum(weights.values()) or 1.0
    return np.array([sum(weights[each] for each in own & weights.keys()) / total for own in stems], dtype=np.float64)


def _meaning(vector: Vector, facts: Sequence[Fact]) -> Scores:
    cosines = [0.0 if fact.vector is None else float(vector @ fact.vector) for fact in facts]
    return np.array(cosines, dtype=np.float64)
