"""Signals: the values by which candidates are ranked. Each candidate has one number per signal; higher is better."""

import numpy as np
from numpy.typing import NDArray

# After this many pages, the signal `lead` has fallen to 37 %.
LEAD_PAGES = 10

Scores = NDArray[np.float64]
Mask = NDArray[np.bool_]


def z_scores(values: Scores) -> Scores:
    """Return each value's distance from the mean in standard deviations; all 0 if the values are equal."""
    spread = float(values.std())
    return (values - values.mean()) / spread if spread > 1e-12 else np.zeros_like(values)


def within(seqs: NDArray[np.int64], sessions: NDArray[np.int64], reach: int) -> Mask:
    """Return, for each pair of candidates, whether they are neighbours, shape ``(n, n)``.

    Neighbours are in the same session and at most ``reach`` pages apart.
    """
    apart = np.abs(seqs[:, None] - seqs[None, :])
    return np.asarray((sessions[:, None] == sessions[None, :]) & (apart <= reach) & (apart > 0))


def lead(seqs: NDArray[np.int64], sessions: NDArray[np.int64]) -> Scores:
    """Return how early in its session each candidate is, from 1 for the first candidate of a session down to 0.

    At the beginning of a session, people say what is new. Later pages of the session go into details. ``seqs`` must be
    in ascending order.
    """
    _, begins, groups = np.unique(sessions, return_index=True, return_inverse=True)
    return np.exp(-(seqs - seqs[begins][groups]) / LEAD_PAGES)


def around(values: Scores, neighbours: Mask) -> Scores:
    """Return, for each candidate, the sum of its neighbours' values.

    First, the lowest value of all candidates is subtracted from each value.
    """
    return np.asarray(neighbours @ (values - values.min()), dtype=np.float64)
