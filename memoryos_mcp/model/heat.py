"""Heat and prominence of a segment, computed from its stored counters and the current time.

Heat is the weighted sum of three terms: the number of visits since the last analysis, the number of pages added since
then, and the recency of the last visit. When the heat reaches a threshold, the segment is analysed, and both counters
are reset to 0.

Prominence depends on the same number of visits and on the total number of pages. Prominence is only used to order
segments for display.
"""

import math
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class HeatWeights:
    """The constants of the heat formula.

    Attributes:
        alpha: Weight of the number of visits.
        beta: Weight of the interaction length, which is a number of pages.
        gamma: Weight of the recency of the last visit. The recency itself is between 0 and 1.
        mu_s: Decay time of the recency, in seconds.
    """

    alpha: float = 1.0
    beta: float = 1.0
    gamma: float = 1.0
    mu_s: float = 1e7


def recency(last_visit: datetime, now: datetime, mu_s: float) -> float:
    """Return the recency of a segment's last visit: ``exp(-dt / mu)``, between 0 and 1.

    ``dt`` is the time since the visit. It is 0 for a visit in the future.
    """
    return math.exp(-max(0.0, (now - last_visit).total_seconds()) / mu_s)


def heat(*, n_visit: int, l_interaction: int, last_visit: datetime, now: datetime, weights: HeatWeights) -> float:
    """Return a segment's heat: ``alpha * N_visit + beta * L_interaction + gamma * R_recency``.

    The formula is equation 4 of "Memory OS of AI Agent" (arXiv 2506.06326). `Segment` describes the counters.
    """
    return (
        weights.alpha * n_visit + weights.beta * l_interaction + weights.gamma * recency(last_visit, now, weights.mu_s)
    )


def prominence(*, n_visit: int, page_count: int, last_visit: datetime, now: datetime, mu_s: float) -> float:
    """Return a segment's prominence: ``(N_visit + N_page) * (1 + R_recency) / 2``.

    ``N_page`` includes pages that were already analysed. Otherwise, the analysis of a large segment would make it less
    prominent than smaller segments.
    """
    return (n_visit + page_count) * (1 + recency(last_visit, now, mu_s)) / 2
