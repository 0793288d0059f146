"""Retrieval quality: every question of a data set over MCP stdio, compared with four other ways to find pages.

Run ``python -m benchmarks.retrieval --data FILE``. Each conversation gets a server process, a user and a data folder
of its own. Its pages are added with ``add_memory``, and the questions are asked when no page is pending. Then they are
asked again with ``explain``, which is not timed. A second server without an embedding model gets the same pages and
questions, and with ``--embedding NAME`` one with that model too.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio
import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.ablation import Reranked, rerank
from benchmarks.asking import MAX_RESULTS, Answer, FedServer, feed, shown
from benchmarks.baselines import Baseline, Bm25, Dense
from benchmarks.client import ServerError, running_server
from benchmarks.datasets import Conversation, Dataset, DatasetError, Question, load
from benchmarks.figures import POLL_S
from benchmarks.metrics import Place, places
from benchmarks.outcomes import BM25, DENSE, SERVER, WITH_WISHES, WORDS_ALONE, Outcome, Run
from benchmarks.records import write_json, write_questions
from benchmarks.report import LEAST_WIDTH, print_report
from memoryos_mcp.embedding import Embedder
from memoryos_mcp.embedding.bundled import BundledEmbedder

# Visits are counted in the background, so that their effect on the heat of segments depends on the timing.
NO_VISITS = ("--heat-alpha", "0", "--heat-gamma", "0")
# The last, incomplete batch waits for a silence, which can be short here.
SERVER_FLAGS = ("--consolidation-idle-s", "1")
KEY_VARIABLE = "MEMORYOS_EMBEDDING_API_KEY"


@dataclass(frozen=True, slots=True)
class OtherServer:
    """A server that differs from the measured one in its embedding model or its retrieval strategy.

    Attributes:
        system: Its name in the tables.
        flags: Arguments that set its model or strategy.
        env: Environment variables for the model.
    """

    system: str
    flags: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, embedding: str) -> "OtherServer":
        """Return the server for an argument of ``--embedding``."""
        at_address = re.fullmatch(r"(.+?)@(https?://.+)", embedding)
        name, address = at_address.groups() if at_address else (embedding, None)
        folder = Path(name).expanduser()
        system = f"with {folder.resolve().name if folder.is_dir() else name}"
        flags = ("--embedding-model-name", name)
        if address is None:
            return cls(system, flags)
        # Only a server with an address gets the key.
        env = {KEY_VARIABLE: os.environ[KEY_VARIABLE]} if KEY_VARIABLE in os.environ else {}
        return cls(system, (*flags, "--embedding-base-url", address), env)


ON_POSTGRESQL = "after a move to PostgreSQL"


WITHOUT_MODEL = OtherServer(WORDS_ALONE, ("--embedding-model-name", "none"))


@dataclass(frozen=True, slots=True)
class _Bench:
    """The run of one conversation through all systems.

    Attributes:
        measured: Receives the other measurements.
        database_url: A PostgreSQL database to which the memory is moved, to compare the answers; None for none.
    """

    conversation: Conversation
    measured: Run
    progress: Progress
    database_url: str | None = None

    async def server(self) -> tuple[list[Answer], list[Reranked]]:
        """Return the answer to each question, and the places of its gold pages without each signal."""
        questions, measured = self.conversation.questions, self.measured
        with tempfile.TemporaryDirectory(prefix="memoryos-benchmark-") as folder:
            async with self._fed(Path(folder), self.conversation.id) as fed:
                measured.timings.add_s.extend(fed.add_s)
                measured.timings.settled_s.append(fed.settled_s)
                answers = await self._answers(fed, self.conversation.id)
                reranked = []
                async with shown(self.progress, f"{self.conversation.id}: explaining", len(questions)) as bar:
                    for question in questions:
                        explained = await fed.explain(question.text)
                        reranked.append(rerank(question.gold, explained.pages, explained.short_term))
                        self.progress.advance(bar)
            measured.stored_bytes += _size(Path(folder))
            if self.database_url is not None:
                measured.note_same(ON_POSTGRESQL, *await self._moved(Path(folder), fed, self.database_url))
        for answer in answers:
            measured.timings.query_s.append(answer.took_s)
            measured.modes[answer.search_mode] = measured.modes.get(answer.search_mode, 0) + 1
            measured.rankings[SERVER] = answer.ranking
        return answers, reranked

    async def _moved(self, folder: Path, fed: FedServer, database_url: str) -> tuple[list[Answer], list[Answer]]:
        """Move the memory to a database. Return the answers from the files, and those from the database."""
        user = self.conversation.id
        command = (sys.executable, "-m", "memoryos_mcp", "move", "--to", database_url, "--user-id", user)
        await anyio.run_process([*command, "--data-storage-path", str(folder)], stdin=subprocess.DEVNULL)
        answers = []
        for flags, title in (((), "files"), (("--database-url", database_url), "PostgreSQL")):
            async with running_server(folder, user, *SERVER_FLAGS, *NO_VISITS, *flags) as server:
                # Until the vectors are loaded, questions are answered by keywords alone.
                while (await server.call("retrieve_memory", query="ready")).content["search_mode"] != "hybrid":
                    await anyio.sleep(POLL_S)
                answers.append(await self._answers(replace(fed, server=server), f"{user}, {title}"))
        return answers[0], answers[1]

    async def other_server(self, other: OtherServer) -> list[Answer]:
        """Return the answer of another server to each question."""
        title = f"{self.conversation.id}, {other.system}"
        with tempfile.TemporaryDirectory(prefix="memoryos-benchmark-") as folder:
            async with self._fed(Path(folder), title, other) as fed:
                answers = await self._answers(fed, title)
        for answer in answers:
            self.measured.rankings[other.system] = answer.ranking
        return answers

    async def baseline(self, baseline: Baseline) -> list[tuple[Place, ...]]:
        """Return the places of each question's gold pages in a baseline's ranking."""
        return [
            places(question.gold, await baseline.rank(question.text, MAX_RESULTS))
            for question in self.conversation.questions
        ]

    @asynccontextmanager
    async def _fed(self, folder: Path, title: str, other: OtherServer | None = None) -> AsyncIterator[FedServer]:
        flags, env = ((), {}) if other is None else (other.flags, other.env)
        async with running_server(folder, self.conversation.id, *SERVER_FLAGS, *flags, env=env) as server:
            yield await feed(server, self.conversation, self.progress, title)

    async def _answers(self, fed: FedServer, title: str) -> list[Answer]:
        answers = []
        async with shown(self.progress, f"{title}: asking", len(self.conversation.questions)) as bar:
            for question in self.conversation.questions:
                answers.append(await fed.ask(question.text))
                self.progress.advance(bar)
        return answers


async def run(
    dataset: Dataset,
    embedder: Embedder,
    others: Sequence[OtherServer],
    progress: Progress,
    database_url: str | None = None,
) -> Run:
    """Return the results of a run over the data set. With ``database_url``, also compare files with that database."""
    measured = Run(dataset, [other.system for other in others])
    for conversation in dataset.conversations:
        bench = _Bench(conversation, measured, progress, database_url)
        by_server, reranked = await bench.server()
        found = {SERVER: _places(conversation.questions, by_server)}
        found[WITH_WISHES] = [
            places(question.gold, answer.pages, [*answer.short_term, *answer.wishes])
            for question, answer in zip(conversation.questions, by_server, strict=True)
        ]
        for other in (*others, WITHOUT_MODEL):
            answers = await bench.other_server(other)
            found[other.system] = _places(conversation.questions, answers)
            measured.note_same(other.system, by_server, answers)
        for name, baseline in (await _baselines(conversation, embedder)).items():
            found[name] = await bench.baseline(baseline)
        measured.outcomes += [
            Outcome(
                conversation=conversation.id,
                category=question.category,
                text=question.text,
                gold=question.gold,
                places={system: by_question[number] for system, by_question in found.items()},
                reranked=reranked[number],
            )
            for number, question in enumerate(conversation.questions)
        ]
        measured.pages += len(conversation.pages)
    return measured


async def _baselines(conversation: Conversation, embedder: Embedder) -> dict[str, Baseline]:
    pages = conversation.pages
    vectors = await embedder.embed([page.text for page in pages])
    return {
        BM25: Bm25(pages),
        DENSE: Dense(pages, embedder, vectors),
    }


def _places(questions: Sequence[Question], answers: Sequence[Answer]) -> list[tuple[Place, ...]]:
    return [
        places(question.gold, answer.pages, answer.short_term)
        for question, answer in zip(questions, answers, strict=True)
    ]


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _chosen(dataset: Dataset, limit: int | None, categories: Sequence[str]) -> Dataset:
    """Return a part of the data set: some conversations and categories of questions.

    Raises:
        click.BadParameter: A category is unknown.
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


def other_servers(embeddings: Sequence[str], strategies: Sequence[str] = ()) -> list[OtherServer]:
    """Return a server for each argument of ``--embedding`` and ``--strategy``.

    Raises:
        click.BadParameter: Two servers have the same name.
    """
    others = [OtherServer.of(embedding) for embedding in embeddings]
    others += [OtherServer(f"strategy {name}", ("--retrieval-strategy", name)) for name in strategies]
    systems = [other.system for other in others]
    if doubled := {system for system in systems if systems.count(system) > 1}:
        message = f"the tables could not tell them apart: {', '.join(sorted(doubled))}"
        raise click.BadParameter(message, param_hint="--embedding")
    return others


async def _run_all(
    datasets: Sequence[Dataset], others: Sequence[OtherServer], output: Console, database_url: str | None
) -> list[Run]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    embedder = BundledEmbedder()
    runs = []
    try:
        for dataset in datasets:
            with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
                runs.append(await run(dataset, embedder, others, progress, database_url))
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
@click.option("--limit", type=click.IntRange(min=1), help="Maximum number of conversations of each file.")
@click.option(
    "--category", "categories", multiple=True, help="Only this kind of question; may be given more than once."
)
@click.option(
    "--embedding",
    "embeddings",
    multiple=True,
    metavar="NAME",
    help="Compare with this embedding model too: a name or folder for sentence-transformers, or NAME@URL for an "
    f"embeddings API, whose key is taken from {KEY_VARIABLE}. May be given more than once.",
)
@click.option(
    "--strategy",
    "strategies",
    multiple=True,
    metavar="NAME",
    help="Compare with this `retrieval_strategy` too, such as paper. May be given more than once.",
)
@click.option(
    "--database-url",
    metavar="URL",
    help="Also move each memory to this PostgreSQL database, and compare the answers from there with those from files.",
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
    embeddings: Sequence[str],
    strategies: Sequence[str],
    database_url: str | None,
    json_file: Path | None,
    questions_file: Path | None,
) -> None:
    """Measure retrieval quality and the effect of each signal, compared with other ways to search the same pages."""
    others = other_servers(embeddings, strategies)
    output, width = Console(), LEAST_WIDTH + max((len(other.system) for other in others), default=0)
    output = output if output.width >= width else Console(width=width)
    try:
        datasets = [_chosen(load(file), limit, categories) for file in files]
        runs = anyio.run(_run_all, datasets, others, output, database_url)
    except (DatasetError, ServerError) as error:
        raise click.ClickException(str(error)) from error
    if json_file:
        write_json(json_file, runs)
    if questions_file:
        write_questions(questions_file, runs)


if __name__ == "__main__":
    main()
