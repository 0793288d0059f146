"""Computes the coordinates of charts. The templates draw them as SVG."""

from collections.abc import Sequence
from dataclasses import dataclass

# Bars ---------------------------------------------------------------------------------------------------------------

BARS_WIDTH, BARS_HEIGHT = 400, 150
_LEFT, _TOP, _BOTTOM = 56, 8, 24
_GAP_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar with its value. Lengths are in units of the SVG."""

    label: str
    value: int
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class BarChart:
    """Bars beside each other.

    Attributes:
        left: The place of the vertical axis.
        top: The place of the highest value.
        base: The place of the value 0.
        highest: The highest value.
    """

    width: int
    height: int
    left: int
    top: int
    base: int
    highest: int
    bars: Sequence[Bar]


def bar_chart(values: Sequence[tuple[str, int]]) -> BarChart:
    """Return a chart of values, each with its label, from left to right. No value may be negative."""
    base, highest = BARS_HEIGHT - _BOTTOM, max((value for _, value in values), default=0)
    step = (BARS_WIDTH - _LEFT) / max(1, len(values))
    bars = []
    for place, (label, value) in enumerate(values):
        height = round((base - _TOP) * value / highest, 1) if highest else 0.0
        x = round(_LEFT + step * (place + _GAP_SHARE / 2), 1)
        bars.append(Bar(label, value, x, round(base - height, 1), round(step * (1 - _GAP_SHARE), 1), height))
    return BarChart(BARS_WIDTH, BARS_HEIGHT, _LEFT, _TOP, base, highest, bars)
