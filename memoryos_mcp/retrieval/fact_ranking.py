"""Fact ranking: orders facts by how well their words, meaning and time match a query."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import datetime
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from memoryos_mcp.model.knowledge import Fact, Kind, states_name
from memoryos_mcp.model.segments import Vector
from memoryos_mcp.retrieval.query import ParsedQuery
from memoryos_mcp.retrieval.query_time import nearness
from memoryos_mcp.retrieval.ranking import FACTS, rank
from memoryos_mcp.retrieval.recall import RecalledFact
from memoryos_mcp.retrieval.signals import Scores
from memoryos_mcp.text.terms import rarity, stem, stems

FACTS_AT_MOST = 10
SECONDS_PER_DAY = 86_400
# The signals of an archived fact are reduced by this share, so that an equally good active fact comes first.
ARCHIVED_LOSS = 0.1
# Facts below this share of the best score are omitted, but at least `FACTS_AT_LEAST` are returned.
FACT_CUT_SHARE = 0.5
FACTS_AT_LEAST = 3

# Words that ask about the past, in the languages of `query_time`.
_PAST = re.compile(
    r"\b(?:used to|previous(?:ly)?|former(?:ly)?|earlier|originally|back then|in the past|at first|old|before|"
    r"früher|damals|vorher|ehemalig\w*|zuvor|avant|autrefois|auparavant|ancien\w*|antes|anterior\w*|solía\w*|prima|"
    r"precedente\w*|una volta|antigamente|costumava\w*|vroeger|eerder|voorheen|раньше|прежде|бывш\w*)\b"
    r"|以前|之前|过去|從前|从前|曾经|前は|かつて|昔|元々|예전|이전|과거|옛날|سابق|قبل|كان",
    re.IGNORECASE,
)


def asks_past(query: str, parsed: ParsedQuery, today: int) -> bool:
    """Return whether a query asks about the past. If so, facts that are no longer valid are relevant too.

    ``today`` is the number of days since 1970-01-01.
    """
    is_dated = any(
        span.unit.value != "day" and float(nearness([span], np.array([today]))[0]) == 0 for span in parsed.times
    )
    return is_dated or _PAST.search(query) is not None


class FactTable:
    """A table of facts, oldest first, that can be ranked quickly for many queries."""

    def __init__(self, facts: Iterable[Fact] = ()) -> None:
        given = tuple(facts)
        self._facts = tuple(replace(fact, vector=None) for fact in given)
        self._days = np.array([_day(fact.valid_from) for fact in given], dtype=np.int64)
        self._ends_s = np.array([fact.valid_until.timestamp() if fact.valid_until else np.inf for fact in given])
        self._losses = np.array([ARCHIVED_LOSS if fact.is_archived else 0.0 for fact in given])
        # Wishes and names do not depend on the query.
        self._wishes = [fact for fact in self._facts if fact.kind is Kind.WISH and not fact.is_archived]
        self._named = [fact for fact in self._facts if states_name(fact) and not fact.is_archived]
        self._states = np.array([fact.kind is not Kind.WISH for fact in given], dtype=np.bool_)
        self._vectors = _stacked(given)
        # Pairs of a fact's place in the table and the ``seq`` of a page that supports the fact.
        pairs = [(place, seq) for place, fact in enumerate(given) if fact.vector is not None for seq in fact.pages]
        self._evidence = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        # The last query vector and its cosine with each fact.
        self._compared: tuple[Vector | None, NDArray[np.float64]] = None, np.zeros(0)
        places = defaultdict[str, list[int]](list)
        for place, fact in enumerate(given):
            for each in set(stems(fact.text)):
                places[each].append(place)
        self._places = {each: np.array(found, dtype=np.int32) for each, found in places.items()}

    def ranked(
        self, parsed: ParsedQuery, now: datetime | None = None, hidden: AbstractSet[int] = frozenset()
    ) -> list[RecalledFact]:
        """Return the best facts for a query, best first, at most `FACTS_AT_MOST`. Wishes are never included.

        Facts whose numbers are in ``hidden`` are omitted, and so are facts that are no longer valid at ``now``. If
        ``now`` is None, facts that are no longer valid are included. Of two facts with the same score, the newer one
        comes first.
        """
        if not self._facts:
            return []
        signals = {"words": self._word_shares(parsed)}
        if parsed.embedded is not None and self._vectors.shape[1] == len(parsed.embedded.vector):
            signals["meaning"] = self._cosines(parsed.embedded.vector)
        if parsed.times:
            signals["time"] = nearness(parsed.times, self._days)
        ones = np.ones(len(self._facts), dtype=np.int64)
        in_force = self._states if now is None else self._states & (self._ends_s > now.timestamp())
        if hidden:
            in_force = in_force & np.array([fact.fact not in hidden for fact in self._facts])
        places = np.arange(len(self._facts))
        signals = {name: values - self._losses * np.abs(values) for name, values in signals.items()}
        ranked = rank(FACTS, places, signals, ones, in_force, FACTS_AT_MOST)
        return [RecalledFact(self._facts[entry.seq], entry.score) for entry in ranked]

    def told(self, query: Vector) -> tuple[NDArray[np.int64], Scores]:
        """Return the pages from which facts were learned, and how similar these facts are to a query.

        Returns:
            The ``seq`` of a page for each fact and each page that supports it, and the cosine of the fact and the
            query. Facts without a vector are left out.
        """
        if not len(self._evidence) or self._vectors.shape[1] != len(query):
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        return self._evidence[:, 1], self._cosines(query)[self._evidence[:, 0]]

    def wishes(self, now: datetime) -> list[RecalledFact]:
        """Return the wishes that are valid at ``now``, newest first.

        A wish is a preference of the user that applies to every answer.
        """
        return [RecalledFact(fact, 0.0) for fact in reversed(_in_force(self._wishes, now))]

    def named(self, now: datetime) -> list[Fact]:
        """Return the facts that are valid at ``now`` and state the user's or the assistant's name, oldest first."""
        return _in_force(self._named, now)

    def _cosines(self, query: Vector) -> NDArray[np.float64]:
        if self._compared[0] is not query:
            self._compared = query, np.einsum("nd,d->n", self._vectors, query).astype(np.float64)
        return self._compared[1]

    def _word_shares(self, parsed: ParsedQuery) -> Scores:
        """Return, for each fact, the share of the query's words that the fact contains.

        Rare words count more than common words.
        """
        weights = {stem(word): rarity(count, parsed.pages) for word, count in parsed.counts.items()}
        total = sum(weights.values()) or 1.0
        matched = np.zeros(len(self._facts))
        for each, weight in weights.items():
            if (places := self._places.get(each)) is not None:
                matched[places] += weight
        return matched / total


def best_of(*ranked: Sequence[RecalledFact]) -> list[RecalledFact]:
    """Return the best facts of several rankings, best first, at most `FACTS_AT_MOST`.

    If two facts have the same score, the newer fact comes first. The best `FACTS_AT_LEAST` facts are always returned.
    Of the others, only facts that have at least `FACT_CUT_SHARE` of the best score are returned.
    """
    best = sorted(chain(*ranked), key=lambda each: (-each.score, -each.fact.fact))[:FACTS_AT_MOST]
    least = FACT_CUT_SHARE * max((recalled.score for recalled in best), default=0.0)
    return [recalled for place, recalled in enumerate(best) if place < FACTS_AT_LEAST or recalled.score >= least]


def _in_force(facts: Iterable[Fact], now: datetime) -> list[Fact]:
    return [fact for fact in facts if fact.valid_until is None or fact.valid_until > now]


def _day(moment: datetime) -> int:
    return int(moment.timestamp()) // SECONDS_PER_DAY


def _stacked(facts: Sequence[Fact]) -> NDArray[np.float32]:
    """Return the vectors of the facts as rows of one array. A fact without a vector has a row of zeros."""
    dimension = next((len(fact.vector) for fact in facts if fact.vector is not None), 0)
    rows = np.zeros((len(facts), dimension), dtype=np.float32)
    for row, fact in zip(rows, facts, strict=True):
        if fact.vector is not None:
            row[:] = fact.vector
    return rows
