"""Reports: a run as tables."""

from rich.console import Console
from rich.table import Table

from benchmarks.ablation import RERANKED_PAGES, Row, ablate
from benchmarks.baselines import BM25_B, BM25_K1
from benchmarks.figures import percentile_ms
from benchmarks.metrics import CUTS, HEADLINE_CUT, Interval
from benchmarks.outcomes import COLUMNS, SERVER, Run, Scope, headline, scopes, unhelped

# A narrow pipe would cut or wrap the table.
LEAST_WIDTH = 140

_RULES = f"""\
A question's gold pages in the server's short-term memory count as found at every k, because the answer contains \
them in addition to the found pages. They take no place in the ranking. "without short-term help" omits such questions \
for every system.
with wishes: the same answers; pages that state the user's wishes, such as standing instructions, count as found at \
every k too, because an answer contains all wishes.
fraction@k: share of the gold pages among the first k, mean over questions. Intervals: 95 %, paired bootstrap over \
questions, fixed seed.
with NAME: the same server with that embedding model instead of the bundled one, with the same pages and questions.
words alone: the same server without an embedding model, with the same pages and questions.
BM25: k1 {BM25_K1}, b {BM25_B}, whole page text, lower-case words without stop words, no stemming.
dense: the bundled model's page vectors, cut at its window, cosine.
The ranking without a signal re-ranks the {RERANKED_PAGES} best pages with all signals, asked for once more with \
explain after all questions, when heat has moved on a little: by score less the signal's share. A page that is not \
among them does not come back, the weights stay as they were learned with the signal, and signals that say much the \
same stand in for one another. Short-term pages count as above."""


def print_report(console: Console, run: Run) -> None:
    """Print a run's tables."""
    console.print(_figures_table(run))
    console.print(_leads_table(run))
    console.print(_ablation_table(headline(run)))
    for line in _facts(run):
        console.print(line, highlight=False, soft_wrap=True)
    console.print(f"[dim]{_RULES}[/dim]\n", highlight=False, soft_wrap=True)


def _figures_table(run: Run) -> Table:
    table = Table(title=f"{run.dataset.name}, percent", title_justify="left")
    table.add_column("questions", no_wrap=True)
    table.add_column("n", justify="right", no_wrap=True)
    table.add_column("system", no_wrap=True)
    for column in COLUMNS:
        table.add_column(column.replace("@", "\n@"), justify="right", no_wrap=True)
    for scope in scopes(run):
        for system in run.systems:
            figures = scope.figures(system)
            is_first = system == SERVER
            table.add_row(
                scope.name if is_first else "",
                str(len(scope.outcomes)) if is_first else "",
                system,
                *(f"{100 * figures[column]:.1f}" for column in COLUMNS),
                end_section=system == run.systems[-1],
                style="bold" if is_first else None,
            )
    return table


def _leads_table(run: Run) -> Table:
    over = (headline(run), unhelped(run))
    title = f"The server's lead in fraction@{HEADLINE_CUT}, points, with its 95 % interval"
    table = Table(title=title, title_justify="left")
    table.add_column("over", no_wrap=True)
    for scope in over:
        table.add_column(f"{scope.name}, n {len(scope.outcomes)}", justify="right", no_wrap=True)
    for other in run.compared:
        table.add_row(other, *(_points(scope.lead(other)) for scope in over))
    return table


def _ablation_table(scope: Scope) -> Table:
    title = f"The server's ranking without a signal, the {RERANKED_PAGES} best pages re-ranked: fraction, percent"
    table = Table(title=title, title_justify="left")
    table.add_column(scope.name, no_wrap=True)
    table.add_column("questions with it", justify="right")
    for k in CUTS:
        table.add_column(f"@{k}", justify="right", no_wrap=True)
    table.add_column(f"change @{HEADLINE_CUT}, points, with its 95 % interval", justify="right", no_wrap=True)
    whole, rows = ablate([outcome.reranked for outcome in scope.outcomes])
    table.add_row("all signals", *_cells(whole), style="bold", end_section=True)
    for signal, row in rows.items():
        table.add_row(f"without {signal}", *_cells(row))
    return table


def _cells(row: Row) -> list[str]:
    fractions = (f"{100 * row.fractions[k]:.1f}" for k in CUTS)
    return [str(row.questions), *fractions, _points(row.change) if row.change else ""]


def _points(difference: Interval) -> str:
    return f"{100 * difference.mean:+.1f}  [{100 * difference.low:+.1f}, {100 * difference.high:+.1f}]"


def _facts(run: Run) -> list[str]:
    sizes, timings = run.sizes(), run.timings
    asked = sum(run.modes.values())
    modes = ", ".join(f"{mode} {100 * count / asked:.1f} %" for mode, count in sorted(run.modes.items()))
    counted = headline(run).outcomes
    otherwise = sum(not outcome.is_repeated for outcome in counted)
    share = 100 * headline(run).short_term_share()
    return [
        f"scored with {run.dataset.key}",
        f"sizes: {sizes['conversations']} conversations, {sizes['pages']:,} pages of {sizes['chars_per_page']:,} "
        f"characters, {sizes['questions']:,} questions; {sizes['questions_left_out']} questions without valid evidence "
        f"left out, {sizes['bad_citations']} citations that name nothing; {sizes['bytes_per_page']:,} bytes per page "
        "on disk",
        f"of the server's fraction@10, {share:.1f} points come from short-term pages alone",
        f"asked again with explain, the server had other places for the gold pages of {otherwise} of {len(counted)} "
        "questions",
        f"add_memory over stdio, background running: p50 {percentile_ms(timings.add_s, 50):.1f} ms, "
        f"p99 {percentile_ms(timings.add_s, 99):.1f} ms per page; until embedded and filed: "
        f"{run.settled_ms_per_page():.0f} ms per page",
        f"retrieve_memory over stdio: p50 {percentile_ms(timings.query_s, 50):.1f} ms, "
        f"p99 {percentile_ms(timings.query_s, 99):.1f} ms per query; search_mode {modes}",
        "ranking: " + ", ".join(f"{ranking} ({system})" for system, ranking in run.rankings.items()),
        "the same pages in the same order as the server: "
        + ", ".join(f"{count:,} of {asked:,} ({system})" for system, count in run.same_pages.items()),
    ]
