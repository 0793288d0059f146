"""Heat and prominence of a segment, from stored counters and the clock alone.

Heat says what is new: it decides what is learned from, and falls back to recency once that is done. Prominence says
what a memory holds most of, and orders segments where they are shown; nothing is ranked or learned by it.
"""

import math
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class HeatWeights:
    """The constants of the heat formula.

    Attributes:
        alpha: Weight of the visits.
        beta: Weight of the interaction length in pages.
        gamma: Weight of the recency, itself between 0 and 1.
        mu_s: Decay time of the recency, seconds.
    """

    alpha: float = 1.0
    beta: float = 1.0
    gamma: float = 1.0
    mu_s: float = 1e7


def recency(last_visit: datetime, now: datetime, mu_s: float) -> float:
    """Return ``exp(-dt / mu)``, 1 at the visit and towards 0 after it; a visit ahead of the clock counts as now."""
    return math.exp(-max(0.0, (now - last_visit).total_seconds()) / mu_s)


def heat(*, n_visit: int, l_interaction: int, last_visit: datetime, now: datetime, weights: HeatWeights) -> float:
    """Return a segment's heat: ``alpha * N_visit + beta * L_interaction + gamma * R_recency``.

    The formula is eq. 4 of "Memory OS of AI Agent" (arXiv 2506.06326).

    Args:
        n_visit: Times it was retrieved since it was last analysed.
        l_interaction: Pages that joined it since it was last analysed.
        last_visit: When it was last retrieved, or made.
        now: The present.
        weights: The constants.
    """
    return (
        weights.alpha * n_visit + weights.beta * l_interaction + weights.gamma * recency(last_visit, now, weights.mu_s)
    )


def prominence(*, n_visit: int, page_count: int, last_visit: datetime, now: datetime, mu_s: float) -> float:
    """Return how much a segment stands out: ``(N_visit + N_page) * (1 + R_recency) / 2``.

    Every page counts, read or not, so a segment does not fall behind a smaller one because it was learned from. What is
    never visited counts half in the end.

    Args:
        n_visit: Times it was retrieved since it was last analysed.
        page_count: All of its pages.
        last_visit: When it was last retrieved, or made.
        now: The present.
        mu_s: Decay time of the recency, seconds.
    """
    return (n_visit + page_count) * (1 + recency(last_visit, now, mu_s)) / 2
