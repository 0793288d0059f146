"""Heat and prominence of a segment, computed from its stored counters and the current time.

Heat is the weighted sum of three terms: visits since the last analysis, pages added since then, and recency of the last
visit. When the heat reaches a threshold, the segment is analysed: its new pages are read to update the profile. Both
counters are then reset to 0.

Prominence is computed from the visits since the last analysis, the total number of pages and the recency. It is only
used to order segments for display.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class HeatWeights:
    """The constants of the heat formula.

    Attributes:
        alpha: Weight of the number of visits since the last analysis.
        beta: Weight of the interaction length: the number of pages added since the last analysis.
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

    ``N_page`` includes pages that were already analysed. Otherwise, a large segment would become less prominent than
    smaller ones as soon as it is analysed.
    """
    return (n_visit + page_count) * (1 + recency(last_visit, now, mu_s)) / 2


@dataclass(frozen=True, slots=True)
class HeatPoint:
    """The heat of a segment at one time."""

    at: datetime
    heat: float


# Number of points in a heat history in addition to the points at pages and visits. They show how the recency decays.
_SAMPLES = 40


def heat_history(
    times: Sequence[datetime],
    *,
    n_visit: int,
    l_interaction: int,
    last_visit: datetime,
    now: datetime,
    weights: HeatWeights,
    threshold: float,
) -> list[HeatPoint]:
    """Return a segment's heat until ``now``; past heat is an estimate.

    The times of past analyses and visits are not stored, so the function makes two assumptions. First, the segment was
    analysed each time its heat reached ``threshold``; the last analysis was just before the last ``l_interaction``
    pages. Second, all visits took place at ``last_visit``. The last point, at ``now``, is exact. Where the heat changes
    suddenly, two points have the same time. The history starts at the first page or at ``last_visit``, whichever is
    earlier.

    Args:
        times: The times of the segment's pages, in ascending order.
        n_visit: Number of visits since the last analysis.
        l_interaction: Number of pages added since the last analysis.
        last_visit: When the segment was last visited; if it never was, when it was created.
        now: The time at which the history ends.
        weights: The constants of the heat formula.
        threshold: The heat at which a segment is analysed.
    """
    added = [min(at, now) for at in times]
    began = min([*added, min(last_visit, now)])
    step = (now - began) / _SAMPLES
    analysed = max(0, len(added) - l_interaction)
    others = {last_visit, *(began + step * number for number in range(_SAMPLES))}
    points: list[HeatPoint] = []
    pages = counted = 0
    is_visited = False

    def note(at: datetime) -> float:
        visits, visit = (n_visit, last_visit) if is_visited else (0, began)
        value = heat(n_visit=visits, l_interaction=counted, last_visit=visit, now=at, weights=weights)
        points.append(HeatPoint(at, value))
        return value

    for at, is_page in sorted([*((at, True) for at in added), *((at, False) for at in others if at <= now)]):
        note(at)
        if is_page:
            pages += 1
            counted += 1
            if (note(at) >= threshold and pages < analysed) or pages == analysed:
                counted = 0
                note(at)
        elif at == last_visit:
            is_visited = True
            note(at)
    counted, is_visited = l_interaction, True
    note(now)
    return points


def cooling(
    *, n_visit: int, l_interaction: int, last_visit: datetime, now: datetime, weights: HeatWeights
) -> list[HeatPoint]:
    """Return a segment's heat from ``now`` on, assuming no visits, no new pages and no analysis.

    There is one point per week for half a year.
    """
    moments = [now + timedelta(days=7 * week) for week in range(27)]
    return [
        HeatPoint(
            at, heat(n_visit=n_visit, l_interaction=l_interaction, last_visit=last_visit, now=at, weights=weights)
        )
        for at in moments
    ]
