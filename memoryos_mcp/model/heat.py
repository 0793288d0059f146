"""Heat and prominence of a segment, computed from stored counters and the clock alone.

Heat counts visits and pages since the last analysis. Hot segments are analysed, which leaves them only the recency.
Prominence counts these visits and all pages. It is used only to order segments for display.
"""

import math
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class HeatWeights:
    """The constants of the heat formula.

    Attributes:
        alpha: Weight of the visits.
        beta: Weight of the interaction length, in pages.
        gamma: Weight of the recency, which is between 0 and 1.
        mu_s: Decay time of the recency, seconds.
    """

    alpha: float = 1.0
    beta: float = 1.0
    gamma: float = 1.0
    mu_s: float = 1e7


def recency(last_visit: datetime, now: datetime, mu_s: float) -> float:
    """Return ``exp(-dt / mu)``, between 0 and 1; a visit in the future counts as now."""
    return math.exp(-max(0.0, (now - last_visit).total_seconds()) / mu_s)


def heat(*, n_visit: int, l_interaction: int, last_visit: datetime, now: datetime, weights: HeatWeights) -> float:
    """Return a segment's heat: ``alpha * N_visit + beta * L_interaction + gamma * R_recency``.

    The formula is eq. 4 of "Memory OS of AI Agent" (arXiv 2506.06326). `Segment` describes the counters.
    """
    return (
        weights.alpha * n_visit + weights.beta * l_interaction + weights.gamma * recency(last_visit, now, weights.mu_s)
    )


def prominence(*, n_visit: int, page_count: int, last_visit: datetime, now: datetime, mu_s: float) -> float:
    """Return a segment's prominence: ``(N_visit + N_page) * (1 + R_recency) / 2``.

    Analysed pages count too, so an analysis does not move a segment behind a smaller one.
    """
    return (n_visit + page_count) * (1 + recency(last_visit, now, mu_s)) / 2
