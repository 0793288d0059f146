"""Ranking: the recipes, and candidates with their signals put in order."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memoryos_mcp.retrieval.signals import Mask, Scores, z_scores

# These are what they are in every query; all others are z-scores over its candidates.
ABSOLUTE_SIGNALS = frozenset({"time"})
# What a page's neighbours say counts in full for a page of one window and the less, the longer it is: a short turn
# lives on its context, a long one stands alone.
CONTEXT_SIGNALS = frozenset({"words_around", "meaning_around", "words_nearby"})
# A neighbourhood is what was said shortly before and after, not a whole day's work.
NEIGHBOURHOOD_PAGES = 8


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a ranking goes by.

    Attributes:
        name: With a version, which changes when the order may.
        weights: What each signal counts; learned by ``benchmarks.tune`` on conversations of both kinds, people chatting
            in short turns and a person asking an assistant at length.
    """

    name: str
    weights: Mapping[str, float]


PIECES = Recipe(
    "words+pieces+time/4",
    {
        "words": 0.4,
        "cover": 0.6,
        "first_cover": 0.6,
        "first_window": 0.5,
        "segment": 0.1,
        "heat": 0.02,
        "time": 3.0,
    },
)
WINDOWS = Recipe(
    "words+windows+time/3",
    {
        "words": 1.0,
        "first_window": 0.8,
        "best_window": 0.7,
        "words_around": 0.5,
        "meaning_around": 0.3,
        "words_nearby": 1.2,
        "segment": 0.1,
        "heat": 0.02,
        "time": 4.0,
    },
)
WORDS = Recipe(
    "words+time/1",
    {
        "words": 1.0,
        "word_cover": 1.0,
        "own_words": 0.5,
        "words_around": 0.3,
        "words_nearby": 1.0,
        "segment": 0.3,
        "heat": 0.02,
        "time": 4.0,
    },
)


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
) -> list[Ranked]:
    """Return the best candidates, best first; equal scores go to the newer page.

    Args:
        recipe: What to go by.
        seqs: The candidates, shape ``(n,)``.
        signals: Per signal one raw value per candidate, shape ``(n,)``; one that the recipe does not name adds nothing.
        windows: How many windows each candidate has, at least 1, shape ``(n,)``.
        eligible: Which candidates may be returned, shape ``(n,)``; the others only lend their values to neighbours.
        limit: How many to return at most.
    """
    shares = {
        name: recipe.weights[name] * scaled(name, signals[name], windows) for name in recipe.weights.keys() & signals
    }
    totals = np.sum([shares[name] for name in sorted(shares)], axis=0) if shares else np.zeros(len(seqs))
    order = np.lexsort((-seqs, -totals))
    return [
        Ranked(
            seq=int(seqs[place]),
            score=float(totals[place]),
            shares={name: float(shares[name][place]) for name in recipe.weights if name in shares},
        )
        for place in order[eligible[order]][:limit].tolist()
    ]


def scaled(name: str, values: Scores, windows: NDArray[np.int64]) -> Scores:
    """Return a signal as it is weighed."""
    if name in ABSOLUTE_SIGNALS:
        return values
    return z_scores(values) / windows if name in CONTEXT_SIGNALS else z_scores(values)
