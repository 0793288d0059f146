"""What the server finds: every question of a data set, asked over MCP stdio, beside two plain baselines.

Run ``python -m benchmarks.retrieval --data FILE``. Each conversation gets a server process, a user and a data folder
of its own; its pages go in through ``add_memory``, and the questions are asked once no page waits for anything.
"""

import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from benchmarks.baselines import Baseline, Bm25, Dense
from benchmarks.client import MemoryServer, ServerError, running_server
from benchmarks.datasets import Conversation, Dataset, DatasetError, Page, Question, load
from benchmarks.metrics import Place, places
from benchmarks.outcomes import BM25, CUTS, DENSE, SERVER, Outcome, Run
from benchmarks.report import LEAST_WIDTH, print_report, write_json, write_questions
from memoryos_mcp.embedding import Embedder
from memoryos_mcp.embedding.bundled import BundledEmbedder

MAX_RESULTS = max(CUTS)
# Enough that no page is cut or left out: what is measured is the ranking, not the budget.
MAX_TOKENS = 200_000
# The last, incomplete batch of the backlog waits for a silence; nobody will speak here, so it may be a short one.
SERVER_FLAGS = ("--consolidation-idle-s", "1")


@dataclass(frozen=True, slots=True)
class _Names:
    """The names of the fed pages: the server's own as keys, the data set's as values."""

    page_ids: dict[str, str]

    def of(self, entries: Sequence[dict[str, str]]) -> list[str]:
        return [self.page_ids[entry["page_id"]] for entry in entries]


async def run(dataset: Dataset, embedder: Embedder, progress: Progress) -> Run:
    """Return what a run over the data set measured."""
    measured = Run(dataset)
    for conversation in dataset.conversations:
        with tempfile.TemporaryDirectory(prefix="memoryos-benchmark-") as folder:
            async with running_server(Path(folder), conversation.id, *SERVER_FLAGS) as server:
                names = await _feed(server, conversation, measured, progress)
                baselines = await _baselines(conversation, embedder)
                async with _bar(progress, f"{conversation.id}: asking", len(conversation.questions)) as bar:
                    for question in conversation.questions:
                        found = {SERVER: await _ask(server, question, names, measured)}
                        found |= await _ask_baselines(baselines, question)
                        measured.outcomes.append(_outcome(conversation, question, found))
                        progress.advance(bar)
            measured.stored_bytes += _size(Path(folder))
        measured.pages += len(conversation.pages)
    return measured


async def _feed(server: MemoryServer, conversation: Conversation, measured: Run, progress: Progress) -> _Names:
    """Add every page, wait until none waits for anything, and return the names they were given."""
    page_ids: dict[str, str] = {}
    began = time.perf_counter()
    async with _bar(progress, f"{conversation.id}: adding", len(conversation.pages)) as bar:
        for page in conversation.pages:
            reply = await server.call("add_memory", **_arguments(page))
            measured.timings.add_s.append(reply.took_s)
            page_ids[reply.content["page_id"]] = page.page_id
            progress.advance(bar)
    async with _bar(progress, f"{conversation.id}: settling", len(conversation.pages)) as bar:
        await server.settle(lambda waiting: progress.update(bar, completed=max(0, len(page_ids) - waiting)))
    measured.timings.settled_s.append(time.perf_counter() - began)
    return _Names(page_ids)


async def _ask(server: MemoryServer, question: Question, names: _Names, measured: Run) -> tuple[Place, ...]:
    """Ask the server and return the places of the gold pages."""
    reply = await server.call("retrieve_memory", query=question.text, max_results=MAX_RESULTS, max_tokens=MAX_TOKENS)
    answer = reply.content
    measured.timings.query_s.append(reply.took_s)
    measured.modes[answer["search_mode"]] = measured.modes.get(answer["search_mode"], 0) + 1
    measured.ranking = answer["ranking"]
    return places(question.gold, names.of(answer["retrieved_pages"]), names.of(answer["short_term_memory"]))


async def _baselines(conversation: Conversation, embedder: Embedder) -> dict[str, Baseline]:
    return {BM25: Bm25(conversation.pages), DENSE: await Dense.of(conversation.pages, embedder)}


async def _ask_baselines(baselines: Mapping[str, Baseline], question: Question) -> dict[str, tuple[Place, ...]]:
    return {
        name: places(question.gold, await baseline.rank(question.text, MAX_RESULTS))
        for name, baseline in baselines.items()
    }


def _arguments(page: Page) -> dict[str, str]:
    return {
        "user_input": page.user_input,
        "agent_response": page.agent_response,
        "timestamp": page.timestamp.isoformat(),
    }


def _outcome(conversation: Conversation, question: Question, found: dict[str, tuple[Place, ...]]) -> Outcome:
    return Outcome(
        conversation=conversation.id,
        category=question.category,
        text=question.text,
        gold=question.gold,
        places=found,
    )


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


@asynccontextmanager
async def _bar(progress: Progress, title: str, total: int) -> AsyncIterator[TaskID]:
    bar = progress.add_task(title, total=total)
    try:
        yield bar
    finally:
        progress.remove_task(bar)


def _chosen(dataset: Dataset, limit: int | None, categories: Sequence[str]) -> Dataset:
    """Return the data set cut down to some conversations and kinds of questions.

    Raises:
        click.BadParameter: It has no such kind of question.
    """
    if unknown := set(categories).difference(dataset.categories):
        message = f"{dataset.name} has no {', '.join(sorted(unknown))}; it has {', '.join(dataset.categories)}"
        raise click.BadParameter(message, param_hint="--category")
    wanted = categories or dataset.categories
    conversations = [
        replace(each, questions=tuple(question for question in each.questions if question.category in wanted))
        for each in dataset.conversations[:limit]
    ]
    return replace(dataset, conversations=tuple(conversations))


async def _run_all(datasets: Sequence[Dataset], output: Console) -> list[Run]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    embedder = BundledEmbedder()
    runs = []
    try:
        for dataset in datasets:
            with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
                runs.append(await run(dataset, embedder, progress))
            print_report(output, runs[-1])
    finally:
        await embedder.aclose()
    return runs


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--data",
    "files",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    multiple=True,
    required=True,
    help="LoCoMo's JSON or a file in the neutral format; may be given more than once.",
)
@click.option("--limit", type=click.IntRange(min=1), help="Only so many conversations of each file.")
@click.option(
    "--category", "categories", multiple=True, help="Only this kind of question; may be given more than once."
)
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write all figures here.")
@click.option(
    "--per-question",
    "questions_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write one line of JSON per question here: its gold pages and their places.",
)
def main(
    files: Sequence[Path],
    limit: int | None,
    categories: Sequence[str],
    json_file: Path | None,
    questions_file: Path | None,
) -> None:
    """Measure what the server finds, beside plain BM25 and plain dense search on the same pages."""
    output = Console()
    output = output if output.width >= LEAST_WIDTH else Console(width=LEAST_WIDTH)
    try:
        datasets = [_chosen(load(file), limit, categories) for file in files]
        runs = anyio.run(_run_all, datasets, output)
    except (DatasetError, ServerError) as error:
        raise click.ClickException(str(error)) from error
    if json_file:
        write_json(json_file, runs)
    if questions_file:
        write_questions(questions_file, runs)


if __name__ == "__main__":
    main()
