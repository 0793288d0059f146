"""Reports: a run as tables for people, as one JSON object, and question by question."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.baselines import BM25_B, BM25_K1
from benchmarks.outcomes import (
    BM25,
    COLUMNS,
    DENSE,
    SERVER,
    SYSTEMS,
    Run,
    Scope,
    headline,
    percentile_ms,
    scopes,
    unhelped,
)

# A table that is cut or wrapped by a narrow pipe is of no use.
LEAST_WIDTH = 130

_RULES = f"""\
A question's gold pages in the server's short-term memory count as found at every k: they are handed over with every \
answer. They take no place of the ranking. "without short-term help" leaves such questions out, for every system.
fraction@k: share of the gold pages among the first k, mean over questions. BM25: k1 {BM25_K1}, b {BM25_B}, whole \
page text, lower-case words, stop words left out, no stemming. dense: the bundled model's page vectors, cut at its \
window, cosine. Intervals: 95 %, paired bootstrap over questions, fixed seed."""


def print_report(console: Console, run: Run) -> None:
    """Print a run's tables."""
    console.print(_figures_table(run))
    console.print(_leads_table([headline(run), unhelped(run)]))
    for line in _facts(run):
        console.print(line, highlight=False, soft_wrap=True)
    console.print(f"[dim]{_RULES}[/dim]\n", highlight=False, soft_wrap=True)


def as_json(run: Run) -> dict[str, Any]:
    """Return everything that the tables show, and what they were made with."""
    timings, dataset = run.timings, run.dataset
    return {
        "dataset": dataset.name,
        "key": dataset.key,
        "sizes": _sizes(run),
        "figures": {
            scope.name: {"questions": len(scope.outcomes), **{system: scope.figures(system) for system in SYSTEMS}}
            for scope in scopes(run)
        },
        "lead_in_fraction@10": {
            scope.name: {baseline: asdict(scope.lead(baseline)) for baseline in (BM25, DENSE)}
            for scope in (headline(run), unhelped(run))
        },
        "short_term_share_of_fraction@10": headline(run).short_term_share(),
        "add_ms": {"p50": percentile_ms(timings.add_s, 50), "p99": percentile_ms(timings.add_s, 99)},
        "query_ms": {"p50": percentile_ms(timings.query_s, 50), "p99": percentile_ms(timings.query_s, 99)},
        "settled_ms_per_page": _settled_ms_per_page(run),
        "search_modes": run.modes,
        "ranking": run.ranking,
    }


def write_json(file: Path, runs: Sequence[Run]) -> None:
    """Write all runs as one JSON array."""
    file.write_text(json.dumps([as_json(run) for run in runs], indent=2) + "\n", encoding="utf-8")


def write_questions(file: Path, runs: Sequence[Run]) -> None:
    """Write one line of JSON per question: its gold pages and where each system found them.

    Place 0 is short-term memory, null is not found.
    """
    lines = [
        json.dumps({"dataset": run.dataset.name, **asdict(outcome)}, ensure_ascii=False)
        for run in runs
        for outcome in run.outcomes
    ]
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _figures_table(run: Run) -> Table:
    table = Table(title=f"{run.dataset.name}, percent", title_justify="left")
    table.add_column("questions", no_wrap=True)
    table.add_column("n", justify="right")
    table.add_column("system", no_wrap=True)
    for column in COLUMNS:
        table.add_column(column.replace("@", "\n@"), justify="right", no_wrap=True)
    for scope in scopes(run):
        for system in SYSTEMS:
            figures = scope.figures(system)
            is_first = system == SERVER
            table.add_row(
                scope.name if is_first else "",
                str(len(scope.outcomes)) if is_first else "",
                system,
                *(f"{100 * figures[column]:.1f}" for column in COLUMNS),
                end_section=system == SYSTEMS[-1],
                style="bold" if is_first else None,
            )
    return table


def _leads_table(compared: Sequence[Scope]) -> Table:
    table = Table(title="The server's lead in fraction@10, points, with its 95 % interval", title_justify="left")
    table.add_column("questions", no_wrap=True)
    table.add_column("n", justify="right")
    for baseline in (BM25, DENSE):
        table.add_column(f"over {baseline}", justify="right", no_wrap=True)
    for scope in compared:
        leads = [scope.lead(baseline) for baseline in (BM25, DENSE)]
        table.add_row(
            scope.name,
            str(len(scope.outcomes)),
            *(f"{100 * lead.mean:+.1f}  [{100 * lead.low:+.1f}, {100 * lead.high:+.1f}]" for lead in leads),
        )
    return table


def _facts(run: Run) -> list[str]:
    sizes, timings = _sizes(run), run.timings
    asked = sum(run.modes.values())
    modes = ", ".join(f"{mode} {100 * count / asked:.1f} %" for mode, count in sorted(run.modes.items()))
    share = 100 * headline(run).short_term_share()
    return [
        f"scored with {run.dataset.key}",
        f"sizes: {sizes['conversations']} conversations, {sizes['pages']:,} pages of {sizes['chars_per_page']:,} "
        f"characters, {sizes['questions']:,} questions; {sizes['questions_left_out']} questions without valid evidence "
        f"left out, {sizes['bad_citations']} citations that name nothing; {sizes['bytes_per_page']:,} bytes per page "
        "on disk",
        f"of the server's fraction@10, {share:.1f} points come from short-term pages alone",
        f"add_memory over stdio, background running: p50 {percentile_ms(timings.add_s, 50):.1f} ms, "
        f"p99 {percentile_ms(timings.add_s, 99):.1f} ms per page; until embedded and filed: "
        f"{_settled_ms_per_page(run):.0f} ms per page",
        f"retrieve_memory over stdio: p50 {percentile_ms(timings.query_s, 50):.1f} ms, "
        f"p99 {percentile_ms(timings.query_s, 99):.1f} ms per query; search_mode {modes}; ranking {run.ranking}",
    ]


def _sizes(run: Run) -> dict[str, int]:
    conversations = run.dataset.conversations
    chars = sum(len(page.text) for conversation in conversations for page in conversation.pages)
    return {
        "conversations": len(conversations),
        "pages": run.pages,
        "chars_per_page": chars // max(run.pages, 1),
        "bytes_per_page": run.stored_bytes // max(run.pages, 1),
        "questions": len(run.outcomes),
        "questions_left_out": sum(conversation.left_out for conversation in conversations),
        "bad_citations": sum(conversation.bad_citations for conversation in conversations),
    }


def _settled_ms_per_page(run: Run) -> float:
    return 1000 * sum(run.timings.settled_s) / max(run.pages, 1)
