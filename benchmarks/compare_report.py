"""The report of `benchmarks.compare`: figures of each peer, as tables for a terminal, as Markdown and as JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.datasets import Dataset
from benchmarks.figures import MB, percentile_ms
from benchmarks.metrics import CUTS, HEADLINE_CUT, UNRANKED, Interval, fraction_at, mean, paired_bootstrap
from benchmarks.peers.catalogue import OURS, known
from benchmarks.peers.results import Asked, Result

FOUND = (
    f"found @{' / @'.join(map(str, CUTS))}, percent",
    "of that beside the ranking",
    f"our lead @{HEADLINE_CUT}, points",
    "a call with the question alone: tokens",
    "gold pages whole in it, percent",
)
COSTS = (
    "add, p50 / p95",
    "until a page can be found",
    "question, p50 / p95",
    "start to first answer",
    "memory",
    "disk per page",
    "install",
)
_RULES = """\
found: share of a question's gold pages among the first k, mean over questions. Pages that an answer contains in \
addition to those it found count as found at every k; "beside the ranking" is their share of the figure @10. lead: \
with its 95 % interval, paired bootstrap with a fixed seed, over conversations, or over questions if there is only one.
a call with the question alone: all options at their defaults; tokens at four bytes each. until a page can be found: \
from the first add until all are found and on disk, per page. start: on the stored pages. memory: resident, of all \
processes of the peer after the questions. install: the environment with all dependencies, and the model."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The results of a data set.

    Attributes:
        results: The results of each peer by its title, one for each conversation.
    """

    dataset: Dataset
    results: Mapping[str, Sequence[Result]]

    @property
    def name(self) -> str:
        """The data set, with the numbers of conversations, pages and questions."""
        conversations = self.dataset.conversations
        pages = sum(len(each.pages) for each in conversations)
        questions = sum(len(each.questions) for each in conversations)
        return f"{self.dataset.name}, {len(conversations)} x {pages // len(conversations)} pages, {questions} questions"

    def found(self, title: str, k: int) -> float:
        """Return a peer's mean share of the gold pages among the first ``k``, 0 to 1."""
        return mean(self._shares(title, k))

    def lead(self, title: str) -> Interval | None:
        """Return the lead of this server over a peer; None for itself, or if it was not measured."""
        ours = known(OURS).title
        if title == ours or ours not in self.results:
            return None
        groups = [result.conversation for result in self.results[title] for _ in result.asked]
        return paired_bootstrap(self._shares(ours, HEADLINE_CUT), self._shares(title, HEADLINE_CUT), groups)

    def tokens(self, title: str) -> float:
        """Return the mean tokens of a call with the question alone."""
        return mean([asked.tokens for asked in self._asked(title)])

    def whole(self, title: str) -> float:
        """Return the mean share of the gold pages that such a call contains whole, 0 to 1."""
        return mean([asked.whole for asked in self._asked(title)])

    def row(self, title: str) -> tuple[str, ...]:
        """Return the cells of a peer, for the columns `FOUND`."""
        lead = self.lead(title)
        return (
            " / ".join(f"{100 * self.found(title, k):.1f}" for k in CUTS),
            f"{100 * mean(self._shares(title, UNRANKED)):.1f}",
            "" if lead is None else f"{100 * lead.mean:+.1f} [{100 * lead.low:+.1f}, {100 * lead.high:+.1f}]",
            f"{self.tokens(title):,.0f}",
            f"{100 * self.whole(title):.1f}",
        )

    def _asked(self, title: str) -> list[Asked]:
        return [asked for result in self.results[title] for asked in result.asked]

    def _shares(self, title: str, k: int) -> list[float]:
        return [fraction_at(asked.places, k) for asked in self._asked(title)]


@dataclass(frozen=True, slots=True)
class Costs:
    """What a peer takes, over all conversations of a data set.

    Attributes:
        add_ms: p50 and p95 of a call that adds a page.
        settled_ms: Time from the first add until all pages can be found, per page.
        question_ms: p50 and p95 of a call with the question alone.
        start_s: Median time from the start of a process to its first answer, seconds.
        memory_mb: Largest resident memory of its processes.
        disk_kb: Size of what it stored, per page.
        install_mb: Size of its environment and of its model.
    """

    add_ms: tuple[float, float]
    settled_ms: float
    question_ms: tuple[float, float]
    start_s: float
    memory_mb: float
    disk_kb: float
    install_mb: float

    @classmethod
    def of(cls, results: Sequence[Result]) -> "Costs":
        """Return the costs of a peer."""
        pages = sum(result.pages for result in results)
        add_s = [took_s for result in results for took_s in result.add_s]
        took_s = [asked.took_s for result in results for asked in result.asked]
        return cls(
            add_ms=(percentile_ms(add_s, 50), percentile_ms(add_s, 95)),
            settled_ms=1e3 * sum(result.settled_s for result in results) / pages,
            question_ms=(percentile_ms(took_s, 50), percentile_ms(took_s, 95)),
            start_s=median(start_s for result in results for start_s in result.start_s),
            memory_mb=max(result.memory_bytes for result in results) / MB,
            disk_kb=sum(result.disk_bytes for result in results) / pages / 1e3,
            install_mb=max(result.install_bytes for result in results) / MB,
        )

    def row(self) -> tuple[str, ...]:
        """Return the cells for the columns `COSTS`."""
        return (
            f"{self.add_ms[0]:.1f} / {self.add_ms[1]:.1f} ms",
            f"{self.settled_ms:.0f} ms",
            f"{self.question_ms[0]:.1f} / {self.question_ms[1]:.1f} ms",
            f"{self.start_s:.1f} s",
            f"{self.memory_mb:,.0f} MB",
            f"{self.disk_kb:.1f} KB",
            f"{self.install_mb:,.0f} MB",
        )


@dataclass(frozen=True, slots=True)
class Grid:
    """A table: its title, and for each peer a row below the columns."""

    title: str
    columns: Sequence[str]
    rows: Mapping[str, Sequence[str]]


def grids(compared: Sequence[Comparison]) -> list[Grid]:
    """Return all tables."""
    made = []
    for comparison in compared:
        titles = list(comparison.results)
        made.append(Grid(comparison.name, FOUND, {title: comparison.row(title) for title in titles}))
        costs = {title: Costs.of(comparison.results[title]).row() for title in titles}
        made.append(Grid(f"{comparison.dataset.name}, what it takes", COSTS, costs))
    return made


def versions(compared: Sequence[Comparison]) -> dict[str, str]:
    """Return the versions of each peer by its title."""
    return {
        title: ", ".join(f"{package} {version}" for package, version in results[-1].versions.items())
        for comparison in compared
        for title, results in comparison.results.items()
    }


def print_comparison(console: Console, compared: Sequence[Comparison], failures: Mapping[str, str]) -> None:
    """Print all tables, the versions and the failures."""
    for grid in grids(compared):
        table = Table(title=grid.title, title_justify="left")
        table.add_column("peer", no_wrap=True)
        for column in grid.columns:
            table.add_column(column, justify="right")
        for title, cells in grid.rows.items():
            table.add_row(title, *cells)
        console.print(table)
    for title, found in versions(compared).items():
        console.print(f"{title}: {found}", highlight=False, soft_wrap=True)
    for title, reason in failures.items():
        console.print(f"{title} is missing: {reason}", highlight=False, markup=False, soft_wrap=True)
    console.print(f"[dim]{_RULES}[/dim]\n", highlight=False, soft_wrap=True)


def markdown(compared: Sequence[Comparison], failures: Mapping[str, str]) -> str:
    """Return all tables, the versions and the failures as Markdown."""
    lines = []
    for grid in grids(compared):
        lines += [_line(grid.title, *grid.columns), _line(*["---"] * (len(grid.columns) + 1))]
        lines += [_line(title, *cells) for title, cells in grid.rows.items()]
        lines.append("")
    lines += [f"- {title}: {found}" for title, found in versions(compared).items()]
    lines += [f"- {title} is missing: {reason}" for title, reason in failures.items()]
    return "\n".join(lines) + "\n"


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def as_json(compared: Sequence[Comparison], failures: Mapping[str, str]) -> dict[str, Any]:
    """Return all figures."""
    return {
        "datasets": [
            {
                "dataset": comparison.name,
                "key": comparison.dataset.key,
                "peers": {
                    title: {
                        **{f"found@{k}": comparison.found(title, k) for k in CUTS},
                        f"lead@{HEADLINE_CUT}": asdict(lead) if (lead := comparison.lead(title)) else None,
                        "tokens": comparison.tokens(title),
                        "whole": comparison.whole(title),
                        **asdict(Costs.of(results)),
                        "versions": dict(results[-1].versions),
                    }
                    for title, results in comparison.results.items()
                },
            }
            for comparison in compared
        ],
        "failures": dict(failures),
    }
