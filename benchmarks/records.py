"""Records: a run as one JSON object, and as one line of JSON per question."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.ablation import RERANKED_PAGES, Row, ablate
from benchmarks.figures import percentile_ms
from benchmarks.metrics import HEADLINE_CUT
from benchmarks.outcomes import Run, headline, scopes, unhelped


def as_json(run: Run) -> dict[str, Any]:
    """Return all figures of the tables, with versions and settings."""
    timings, dataset = run.timings, run.dataset
    return {
        "dataset": dataset.name,
        "key": dataset.key,
        "sizes": run.sizes(),
        "figures": {
            scope.name: {"questions": len(scope.outcomes), **{system: scope.figures(system) for system in run.systems}}
            for scope in scopes(run)
        },
        "lead_in_fraction@10": {
            scope.name: {other: asdict(scope.lead(other)) for other in run.compared}
            for scope in (headline(run), unhelped(run))
        },
        "ablation": _ablation(run),
        "short_term_share_of_fraction@10": headline(run).short_term_share(),
        "add_ms": {"p50": percentile_ms(timings.add_s, 50), "p99": percentile_ms(timings.add_s, 99)},
        "query_ms": {"p50": percentile_ms(timings.query_s, 50), "p99": percentile_ms(timings.query_s, 99)},
        "settled_ms_per_page": run.settled_ms_per_page(),
        "search_modes": run.modes,
        "same_pages": run.same_pages,
        "rankings": run.rankings,
    }


def write_json(file: Path, runs: Sequence[Run]) -> None:
    """Write all runs as one JSON array."""
    file.write_text(json.dumps([as_json(run) for run in runs], indent=2) + "\n", encoding="utf-8")


def write_questions(file: Path, runs: Sequence[Run]) -> None:
    """Write one line of JSON per question: its gold pages and their places in each system.

    ``reranked`` contains their places in a second call for more pages, with all signals and without each.
    Place 0 means short-term memory, null means not found.
    """
    lines = [
        json.dumps({"dataset": run.dataset.name, **asdict(outcome)}, ensure_ascii=False)
        for run in runs
        for outcome in run.outcomes
    ]
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _ablation(run: Run) -> dict[str, Any]:
    scope = headline(run)
    whole, rows = ablate([outcome.reranked for outcome in scope.outcomes])
    return {
        "scope": scope.name,
        "reranked_pages": RERANKED_PAGES,
        "questions_answered_otherwise": sum(not outcome.is_repeated for outcome in scope.outcomes),
        "all_signals": _row(whole),
        "without": {signal: _row(row) for signal, row in rows.items()},
    }


def _row(row: Row) -> dict[str, Any]:
    figures = {f"fraction@{k}": fraction for k, fraction in row.fractions.items()}
    change = {f"change_in_fraction@{HEADLINE_CUT}": asdict(row.change)} if row.change else {}
    return {"questions": row.questions, **figures, **change}
