"""Shared by the benchmarks of speed: a row of their table, its output, and percentiles."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.table import Table

MB = 1e6
# Interval of polling a server's background work.
POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class Figure:
    """A row of the table.

    Attributes:
        floor: Cost of the same work without the server; None without a comparison.
        target: The target as text.
        is_reached: Whether the target was reached.
    """

    what: str
    floor: str
    ours: str
    ratio: float | None
    target: str
    is_reached: bool


def percentile_ms(seconds: Sequence[float], percent: float) -> float:
    """Return a percentile of seconds in milliseconds; NaN without values."""
    return float(np.percentile(seconds, percent)) * 1e3 if seconds else float("nan")


def print_figures(
    console: Console,
    figures: Sequence[Figure],
    title: str = "Speed and memory, compared with floors of the same run",
) -> None:
    """Print the table."""
    table = Table(title=title)
    for column in ("what", "floor", "ours", "ratio", "to reach", "reached"):
        table.add_column(column, justify="left" if column == "what" else "right")
    for figure in figures:
        ratio = "" if figure.ratio is None else f"{figure.ratio:.2f} x"
        verdict = "yes" if figure.is_reached else "[bold red]no[/bold red]"
        table.add_row(figure.what, figure.floor, figure.ours, ratio, figure.target, verdict)
    console.print(table)
