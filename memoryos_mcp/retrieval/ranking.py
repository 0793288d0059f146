"""Ranking: candidates and their signals in, an order out. Pure functions on arrays, one number per candidate."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]
Mask = NDArray[np.bool_]

RECIPE = "words+windows+time/3"

# How much each signal, as a z-score over the candidates, adds to a page's score; nearness in time, which most queries
# do not ask for, counts as it is. Learned on conversations of both
# kinds: people chatting in short turns, and a person asking an assistant at length.
WEIGHTS: Mapping[str, float] = {
    "words": 1.0,
    "first_window": 0.8,
    "best_window": 0.7,
    "words_around": 0.5,
    "meaning_around": 0.3,
    "words_nearby": 1.2,
    "segment": 0.1,
    "heat": 0.02,
    "time": 4.0,
}
ABSOLUTE_SIGNALS = frozenset({"time"})
# What a page's neighbours say counts in full for a page of one window and the less, the longer it is: a short turn
# lives on its context, a long one stands alone.
CONTEXT_SIGNALS = frozenset({"words_around", "meaning_around", "words_nearby"})
# A neighbourhood is what was said shortly before and after, not a whole day's work.
NEIGHBOURHOOD_PAGES = 8


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate with its place.

    Attributes:
        score: Weighted sum of the signals, higher is better; comparable within one query only.
        signals: Each signal's share of the score.
    """

    seq: int
    score: float
    signals: Mapping[str, float]


def z_scores(values: Scores) -> Scores:
    """Return how many standard deviations each value lies above the mean; all 0 if they are equal."""
    spread = float(values.std())
    return (values - values.mean()) / spread if spread > 1e-12 else np.zeros_like(values)


def within(seqs: NDArray[np.int64], sessions: NDArray[np.int64], reach: int) -> Mask:
    """Return which candidates stand at most ``reach`` pages apart in one session, shape ``(n, n)``; not with itself."""
    apart = np.abs(seqs[:, None] - seqs[None, :])
    return np.asarray((sessions[:, None] == sessions[None, :]) & (apart <= reach) & (apart > 0))


def around(values: Scores, neighbours: Mask) -> Scores:
    """Return the sum of each candidate's neighbours' values above the least; a page that is no candidate adds 0."""
    return np.asarray(neighbours @ (values - values.min()), dtype=np.float64)


def best_near(values: Scores, neighbours: Mask) -> Scores:
    """Return the best value among each candidate and its neighbours."""
    others = np.where(neighbours, values[None, :], -np.inf).max(axis=1)
    return np.asarray(np.maximum(values, others), dtype=np.float64)


def rank(
    seqs: NDArray[np.int64],
    signals: Mapping[str, Scores],
    windows: NDArray[np.int64],
    eligible: Mask,
    limit: int,
    weights: Mapping[str, float] = WEIGHTS,
) -> list[Ranked]:
    """Return the best candidates, best first; equal scores go to the newer page.

    Args:
        seqs: The candidates, shape ``(n,)``.
        signals: Per signal one raw value per candidate, shape ``(n,)``; a signal that is absent adds nothing.
        windows: How many windows each candidate has, at least 1, shape ``(n,)``.
        eligible: Which candidates may be returned, shape ``(n,)``; the others only lend their values to neighbours.
        limit: How many to return at most.
        weights: What each signal counts.
    """
    shares = {
        name: weights[name] * (values if name in ABSOLUTE_SIGNALS else z_scores(values))
        for name, values in signals.items()
    }
    for name in CONTEXT_SIGNALS & shares.keys():
        shares[name] = shares[name] / windows
    totals = np.sum(list(shares.values()), axis=0) if shares else np.zeros(len(seqs))
    order = np.lexsort((-seqs, -totals))
    return [
        Ranked(
            seq=int(seqs[place]),
            score=round(float(totals[place]), 4),
            signals={name: round(float(share[place]), 4) for name, share in shares.items()},
        )
        for place in order[eligible[order]][:limit].tolist()
    ]
