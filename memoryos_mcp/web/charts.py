"""The coordinates of charts. Templates draw them as SVG, and show the same values as text or as a table."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bar:
    """A horizontal bar of a signed value.

    Attributes:
        x: Left end of the bar.
        width: Length of the bar.
        zero: Position of the value 0, which is one of the bar's ends.
    """

    x: float
    width: float
    zero: float


def signed_bars(rows: Sequence[Sequence[float]], width: float) -> list[list[Bar]]:
    """Return a bar for each value. All bars have the same scale and the same zero, and fit into ``width``."""
    low = min((value for row in rows for value in row), default=0.0)
    high = max((value for row in rows for value in row), default=0.0)
    low, high = min(low, 0.0), max(high, 0.0)
    span = high - low or 1.0
    zero = round(-low / span * width, 1)
    return [
        [
            Bar(round(zero + min(value, 0.0) / span * width, 1), round(abs(value) / span * width, 1), zero)
            for value in row
        ]
        for row in rows
    ]
