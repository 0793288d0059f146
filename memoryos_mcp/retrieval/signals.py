"""Signals: the values by which candidates are ranked. Each candidate has one number per signal; higher is better."""

import numpy as np
from numpy.typing import NDArray

from memoryos_mcp.embedding.token_vectors import merge

# After this many pages, the signal `lead` has fallen to 37 %.
LEAD_PAGES = 10
# If facts were learned from this number of candidates, the signal `told` has half of its full size.
TOLD_PAGES = 60

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


def told(seqs: NDArray[np.int64], pages: NDArray[np.int64], cosines: Scores) -> Scores:
    """Return, for each candidate, how similar the facts that were learned from it are to the query.

    The value is the z-score of the candidate's most similar fact, among the candidates that facts were learned from. It
    is 0 if the z-score is negative, and for all other candidates, so that no page ranks lower because of its facts. If
    only few facts are known, all values are smaller, because a mean of few says little.

    Args:
        seqs: The candidates, ascending, shape ``(n,)``.
        pages: The ``seq`` of a page for each fact that was learned from it, shape ``(m,)``.
        cosines: Cosine of each of these facts and the query, shape ``(m,)``.
    """
    places = np.minimum(np.searchsorted(seqs, pages), len(seqs) - 1)
    is_candidate = seqs[places] == pages
    best = np.full(len(seqs), -np.inf)
    np.maximum.at(best, places[is_candidate], cosines[is_candidate])
    is_told, values = np.isfinite(best), np.zeros(len(seqs))
    if count := int(is_told.sum()):
        values[is_told] = np.maximum(z_scores(best[is_told]), 0) * (count / (count + TOLD_PAGES))
    return values


def like_best(
    seqs: NDArray[np.int64], best: NDArray[np.int64], pages: NDArray[np.int64], vectors: NDArray[np.float32]
) -> Scores | None:
    """Return how similar each candidate is to the best candidates together, or None if these have no vectors.

    A question about the course of something names its subject, but not what happened. The best pages say more about it.
    The value is the cosine of the mean of a candidate's windows and the mean of the best candidates. A candidate
    without vectors has the lowest value.

    Args:
        seqs: The candidates, ascending, shape ``(n,)``.
        best: The ``seq`` of each of the best candidates.
        pages: The ``seq`` of each window's page, ascending, shape ``(w,)``. Each page is a candidate.
        vectors: The unit-length vector of each window, shape ``(w, dimension)``.
    """
    known, groups = np.unique(pages, return_inverse=True)
    is_best = np.isin(known, best)
    if not is_best.any():
        return None
    means = merge(vectors, groups)
    [middle] = merge(means[is_best], np.zeros(int(is_best.sum()), dtype=np.int64))
    cosines = means @ middle
    values = np.full(len(seqs), float(cosines.min()))
    values[np.isin(seqs, known)] = cosines
    return values


def around(values: Scores, neighbours: Mask) -> Scores:
    """Return, for each candidate, the sum of its neighbours' values.

    First, the lowest value of all candidates is subtracted from each value.
    """
    return np.asarray(neighbours @ (values - values.min()), dtype=np.float64)
