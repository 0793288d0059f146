"""Ranking: the recipes, and the ordering of candidates by their signals."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memoryos_mcp.retrieval.signals import Mask, Scores, z_scores

# Signals used as they are in every query; all others become z-scores over its candidates.
ABSOLUTE_SIGNALS = frozenset({"time"})
# Signals of neighbours count in full for a page of one window, and less for longer pages: a short turn depends on its
# context, a long one does not.
CONTEXT_SIGNALS = frozenset({"words_around", "meaning_around", "words_nearby"})
# Only what was said shortly before and after is a neighbourhood, not a whole day's work.
NEIGHBOURHOOD_PAGES = 8
# If a query asks for several things, a page loses this for each better page of the same session.
SPREAD = 0.8
# Pages below this share of the best score are left out, but `CUT_KEEPS` are kept.
CUT_SHARE = 0.15
CUT_KEEPS = 3


@dataclass(frozen=True, slots=True)
class Recipe:
    """The signals of a ranking and their weights.

    Attributes:
        name: With a version, which changes when the order may.
        weights: What each signal counts. ``benchmarks.tune`` learns them on conversations of both kinds: people
            chatting in short turns, and a person asking an assistant at length.
        is_absolute: Whether signals count as they are, not as z-scores over the candidates.
    """

    name: str
    weights: Mapping[str, float]
    is_absolute: bool = False


PIECES = Recipe(
    "pieces+time/5",
    {
        "cover": 0.7,
        "first_cover": 0.8,
        "first_window": 0.5,
        # Known only if the query asks for several things.
        "own_words": 0.5,
        "segment": 0.2,
        "heat": 0.02,
        "time": 5.0,
    },
)
WINDOWS = Recipe(
    "words+windows+time/4",
    {
        "words": 0.6,
        "first_window": 0.9,
        "best_window": 1.1,
        "words_around": 0.1,
        "meaning_around": 0.2,
        "words_nearby": 0.5,
        "heat": 0.02,
        "time": 4.4,
    },
)
WORDS = Recipe(
    "words+time/4",
    {
        "words": 0.1,
        "word_cover": 0.2,
        "own_words": 0.5,
        "words_around": 0.3,
        "words_nearby": 0.6,
        "segment": 0.3,
        "heat": 0.02,
        "time": 3.6,
    },
)
# Facts are few and short. Their signals are used as they are, so that scores of different queries can be compared.
FACTS = Recipe("facts/1", {"words": 1.0, "meaning": 1.0, "time": 0.5}, is_absolute=True)


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate with its place.

    Attributes:
        score: Weighted sum of the signals, higher is better; comparable within one query only.
        shares: What each signal adds to the score.
    """

    seq: int
    score: float
    shares: Mapping[str, float]


def rank(
    recipe: Recipe,
    seqs: NDArray[np.int64],
    signals: Mapping[str, Scores],
    windows: NDArray[np.int64],
    eligible: Mask,
    limit: int,
    apart: NDArray[np.int64] | None = None,
) -> list[Ranked]:
    """Return the best candidates, best first; equal scores go to the newer page.

    Args:
        recipe: The signals to use, with their weights.
        seqs: The candidates, shape ``(n,)``.
        signals: Per signal one raw value per candidate, shape ``(n,)``; signals that are not in the recipe add nothing.
        windows: How many windows each candidate has, at least 1, shape ``(n,)``.
        eligible: Which candidates may be returned, shape ``(n,)``; the others only lend their values to neighbours.
        limit: Maximum number of results.
        apart: The group of each candidate, shape ``(n,)``, to prefer different groups. Each better candidate of its
            group takes `SPREAD` from a candidate's score, as the share ``spread``.
    """
    shares = {
        name: recipe.weights[name] * (signals[name] if recipe.is_absolute else scaled(name, signals[name], windows))
        for name in recipe.weights.keys() & signals
    }
    totals = np.sum([shares[name] for name in sorted(shares)], axis=0) if shares else np.zeros(len(seqs))
    order = np.lexsort((-seqs, -totals))
    places = order[eligible[order]]
    if apart is None:
        places = places[:limit]
    else:
        places, shares["spread"] = _spread(places, totals, apart, limit)
        totals = totals + shares["spread"]
    return [
        Ranked(
            seq=int(seqs[place]),
            score=float(totals[place]),
            shares={name: float(shares[name][place]) for name in (*recipe.weights, "spread") if name in shares},
        )
        for place in places.tolist()
    ]


def cut(ranked: Sequence[Ranked], extra: AbstractSet[int] = frozenset()) -> list[Ranked]:
    """Return the candidates that are not far below the best.

    Args:
        ranked: Best first.
        extra: Pages that are shown anyway, and do not count towards the minimum number.
    """
    scores = [entry.score - entry.shares.get("spread", 0.0) for entry in ranked]
    least = CUT_SHARE * max(scores, default=0.0)
    kept: list[Ranked] = []
    for entry, score in zip(ranked, scores, strict=True):
        if score >= least or sum(each.seq not in extra for each in kept) < CUT_KEEPS:
            kept.append(entry)
    return kept


def _spread(
    places: NDArray[np.int64], totals: Scores, apart: NDArray[np.int64], limit: int
) -> tuple[NDArray[np.int64], Scores]:
    """Return the places in the order in which they are chosen, and what each one's score lost by that."""
    taken: list[int] = []
    cost = np.zeros_like(totals)
    left = places.tolist()
    while left and len(taken) < limit:
        best = max(left, key=lambda place: totals[place] + cost[place])
        left.remove(best)
        taken.append(best)
        later = [place for place in left if apart[place] == apart[best]]
        cost[later] -= SPREAD
    return np.array(taken, dtype=np.int64), cost


def scaled(name: str, values: Scores, windows: NDArray[np.int64]) -> Scores:
    """Return a signal as it is used for weighting."""
    if name in ABSOLUTE_SIGNALS:
        return values
    return z_scores(values) / windows if name in CONTEXT_SIGNALS else z_scores(values)
