"""Metrics of a ranking: functions of the places of a question's gold pages.

The place of the first page is 1. The place of a short-term page is `UNRANKED`: the answer contains it in addition to
the ranking, so it is found at every k. The place of a page that was not found is None.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2

import numpy as np
from numpy.typing import NDArray

Place = int | None

# The numbers of pages for which figures are computed, and the one for the comparison of systems.
CUTS = (5, 10, 20)
HEADLINE_CUT = 10
UNRANKED = 0
BOOTSTRAP_SAMPLES = 10_000
BOOTSTRAP_SEED = 2506_06326
# Number of resamples that are drawn at once: 1,000 of 1,000 questions take 8 MB.
_SAMPLES_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean difference with its 95 % interval."""

    mean: float
    low: float
    high: float


def places(gold: Sequence[str], ranking: Sequence[str], unranked: Sequence[str] = ()) -> tuple[Place, ...]:
    """Return the place of each gold page in a ranking, in the order of ``gold``."""
    found: dict[str, Place] = {page: place for place, page in reversed(list(enumerate(ranking, start=1)))}
    found |= dict.fromkeys(unranked, UNRANKED)
    return tuple(found.get(page) for page in gold)


def any_at(found: Sequence[Place], k: int) -> float:
    """Return 1 if a gold page is among the first ``k``, else 0."""
    return float(any(_is_within(place, k) for place in found))


def all_at(found: Sequence[Place], k: int) -> float:
    """Return 1 if every gold page is among the first ``k``, else 0."""
    return float(all(_is_within(place, k) for place in found))


def fraction_at(found: Sequence[Place], k: int) -> float:
    """Return the share of gold pages among the first ``k``, 0 to 1."""
    return sum(_is_within(place, k) for place in found) / len(found)


def ndcg_at(found: Sequence[Place], k: int) -> float:
    """Return the normalised discounted cumulative gain of the first ``k``, with equal gains, 0 to 1.

    Unranked pages come first. They lower the discount of ranked pages, but do not remove any of the first ``k``.
    """
    unranked = sum(place == UNRANKED for place in found)
    ranked = sorted(place + unranked for place in found if place and place <= k)
    gain = sum(1 / log2(1 + place) for place in [*range(1, unranked + 1), *ranked])
    return gain / sum(1 / log2(1 + place) for place in range(1, min(len(found), k + unranked) + 1))


def mean(values: Sequence[float]) -> float:
    """Return the mean; NaN without values."""
    return float(np.mean(values)) if values else float("nan")


def paired_bootstrap(ours: Sequence[float], theirs: Sequence[float], groups: Sequence[str] = ()) -> Interval:
    """Return the mean of ``ours - theirs`` with its 95 % percentile interval over resampled questions.

    Args:
        ours: One value per question.
        theirs: The same questions in the same order.
        groups: The conversation of each question. If there are several, whole conversations are resampled, because the
            questions of one conversation are not independent.
    """
    differences = np.asarray(ours, dtype=np.float64) - np.asarray(theirs, dtype=np.float64)
    if not len(differences):
        return Interval(mean=float("nan"), low=float("nan"), high=float("nan"))
    names = sorted(set(groups))
    if len(names) > 1:
        of_group = np.asarray([names.index(group) for group in groups])
        sums = np.bincount(of_group, differences).astype(np.float64)
        counts = np.bincount(of_group).astype(np.float64)
    else:
        sums, counts = differences, np.ones(len(differences))
    generator = np.random.default_rng(BOOTSTRAP_SEED)
    shape = (_SAMPLES_AT_ONCE, len(sums))
    means = []
    for _ in range(BOOTSTRAP_SAMPLES // _SAMPLES_AT_ONCE):
        drawn = generator.integers(0, len(sums), shape)
        means.append(sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1))
    low, high = np.percentile(np.concatenate(means), [2.5, 97.5])
    return Interval(mean=float(differences.mean()), low=float(low), high=float(high))


def grouped_bootstrap(values: NDArray[np.float64], groups: NDArray[np.str_]) -> Interval:
    """Return the mean of ``values`` with its 95 % percentile interval over resampled groups, such as conversations.

    Args:
        values: One value per question, shape ``(n,)``.
        groups: The group of each question, shape ``(n,)``.
    """
    names, places = np.unique(groups, return_inverse=True)
    sums, counts = np.bincount(places, weights=values), np.bincount(places)
    drawn = np.random.default_rng(BOOTSTRAP_SEED).integers(0, len(names), (BOOTSTRAP_SAMPLES, len(names)))
    low, high = np.percentile(sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1), [2.5, 97.5])
    return Interval(mean=float(values.mean()), low=float(low), high=float(high))


def _is_within(place: Place, k: int) -> bool:
    return place is not None and place <= k
