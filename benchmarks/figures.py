"""What the benchmarks of speed share: a line of their table, how it is printed, and how times are summed up."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.table import Table

MB = 1e6
# Between two looks at a server's background work.
POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class Figure:
    """A line of the table.

    Attributes:
        floor: What the same work costs bare; None where there is nothing to compare with.
        target: What is to be reached, in words.
        is_reached: Whether it was.
    """

    what: str
    floor: str
    ours: str
    ratio: float | None
    target: str
    is_reached: bool


def percentile_ms(seconds: Sequence[float], percent: float) -> float:
    """Return a percentile of seconds in milliseconds, NaN of nothing."""
    return float(np.percentile(seconds, percent)) * 1e3 if seconds else float("nan")


def print_figures(console: Console, figures: Sequence[Figure]) -> None:
    """Print the table."""
    table = Table(title="Speed and memory, each beside its floor of the same run")
    for column in ("what", "floor", "ours", "ratio", "to reach", "reached"):
        table.add_column(column, justify="left" if column == "what" else "right")
    for figure in figures:
        ratio = "" if figure.ratio is None else f"{figure.ratio:.2f} x"
        verdict = "yes" if figure.is_reached else "[bold red]no[/bold red]"
        table.add_row(figure.what, figure.floor, figure.ours, ratio, figure.target, verdict)
    console.print(table)
