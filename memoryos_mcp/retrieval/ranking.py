"""Ranking: candidates and their signals in, an order out. Pure functions on arrays, one number per candidate."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memoryos_mcp.storage import Outline

Scores = NDArray[np.float64]

RECIPE = "words+windows/1"

# How much each signal, as a z-score over the candidates, adds to a page's score.
WEIGHTS: Mapping[str, float] = {
    "words": 1.0,
    "meaning": 1.0,
    "words_around": 0.4,
    "meaning_around": 0.3,
    "session": 0.2,
    "segment": 0.1,
}


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
    return (values - values.mean()) / spread if spread > 0 else np.zeros_like(values)


def around(values: Mapping[int, float], outlines: Mapping[int, Outline], seqs: Sequence[int]) -> Scores:
    """Return for each page the sum over the page before and the page after it in the same session; missing is 0."""
    sums = np.zeros(len(seqs))
    for place, seq in enumerate(seqs):
        own = outlines[seq].session
        for other in (seq - 1, seq + 1):
            neighbour = outlines.get(other)
            if neighbour is not None and neighbour.session == own:
                sums[place] += values.get(other, 0.0)
    return sums


def session_best(values: Mapping[int, float], outlines: Mapping[int, Outline], seqs: Sequence[int], reach: int) -> Scores:
    """Return for each page the best value among the candidates at most ``reach`` pages away in the same session."""
    by_session: dict[int, list[tuple[int, float]]] = {}
    for seq, value in values.items():
        if seq in outlines:
            by_session.setdefault(outlines[seq].session, []).append((seq, value))
    return np.array(
        [
            max(
                (value for other, value in by_session.get(outlines[seq].session, []) if abs(other - seq) <= reach),
                default=0.0,
            )
            for seq in seqs
        ]
    )


def rank(seqs: Sequence[int], signals: Mapping[str, Scores], weights: Mapping[str, float] = WEIGHTS) -> list[Ranked]:
    """Return the candidates by score, best first; equal scores go to the newer page.

    Args:
        seqs: The candidates.
        signals: Per signal one raw value per candidate, shape ``(len(seqs),)``; a signal that is absent adds nothing.
        weights: What each signal counts.
    """
    if not seqs:
        return []
    shares = {name: weights[name] * z_scores(values) for name, values in signals.items()}
    totals = np.sum(list(shares.values()), axis=0) if shares else np.zeros(len(seqs))
    order = sorted(range(len(seqs)), key=lambda place: (-totals[place], -seqs[place]))
    return [
        Ranked(
            seq=seqs[place],
            score=round(float(totals[place]), 4),
            signals={name: round(float(share[place]), 4) for name, share in shares.items()},
        )
        for place in order
    ]
