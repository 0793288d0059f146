"""Functions that several commands share: opening a memory, showing progress, and trying an embedding model."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import anyio
import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from memoryos_mcp.cli.terminal import note, one_line
from memoryos_mcp.config import Settings
from memoryos_mcp.model.pages import utc_now
from memoryos_mcp.model.stats import Stats
from memoryos_mcp.storage.interface import Store
from memoryos_mcp.storage.stores import make_stores
from memoryos_mcp.storage.values import StoreOptions

if TYPE_CHECKING:
    from memoryos_mcp.embedding import Embedder, EmbeddingModel
    from memoryos_mcp.engine.engine import MemoryEngine
    from memoryos_mcp.engine.service import MemoryService
    from memoryos_mcp.engine.tools.definitions import Answer
    from memoryos_mcp.storage.capabilities import Footprint

# Seconds between two checks of an engine's background work.
POLL_S = 0.25
# Seconds between two lines of progress if stderr is not a terminal.
LINE_EVERY_S = 10.0
# Number of successive failures after which a command gives up.
FAILURES_IN_A_ROW = 3
# More pages than any memory contains, so that no page leaves short-term memory.
ALL_PAGES = 1_000_000_000

ResultT = TypeVar("ResultT")
ArgumentsT = TypeVar("ArgumentsT")
Show = Callable[[str, int, int], None]


async def footprint(settings: Settings) -> "Footprint | None":
    """Return the location and the size of the configured user's memory, or None if the memory does not exist."""

    def look() -> "Footprint | None":
        stores = make_stores(settings, utc_now)
        try:
            return stores.footprint(settings.user_id)
        finally:
            stores.close()

    return await anyio.to_thread.run_sync(look)


async def has_memory(settings: Settings) -> bool:
    """Return whether the configured user has a memory. No memory is created."""
    return await footprint(settings) is not None


async def has_memory_or_note(settings: Settings) -> bool:
    """Return whether the configured user has a memory. If not, print a note to stderr."""
    if not (is_there := await has_memory(settings)):
        note(
            f"user {one_line(settings.user_id)} has no memory in {settings.memories_place} yet; "
            f"to use another memory, set user_id or {settings.memories_setting}"
        )
    return is_there


@asynccontextmanager
async def open_memory(
    settings: Settings, *, only_reads: bool = False, is_created: bool = False, embedder: "Embedder | None" = None
) -> "AsyncIterator[tuple[MemoryService, MemoryEngine]]":
    """Open the configured user's memory, and yield the `MemoryService` and the user's `MemoryEngine`.

    With ``is_created``, a missing memory is created. With ``only_reads``, the memory is not changed and background work
    does not run. ``embedder`` replaces the configured embedder.

    Raises:
        click.Abort: The memory is missing, and ``is_created`` is False. The reason has been printed to stderr.
    """
    from memoryos_mcp.engine.service import MemoryService  # imported late because some commands need only a store

    if not is_created and not await has_memory_or_note(settings):
        raise click.Abort
    async with (
        MemoryService(settings, embedder=embedder, only_looks=only_reads) as service,
        service.user(settings.user_id) as engine,
    ):
        yield service, engine


async def tool_result(
    kind: type[ResultT],
    tool: "Callable[[MemoryService, str, ArgumentsT], Awaitable[Answer]]",
    service: "MemoryService",
    arguments: ArgumentsT,
) -> ResultT:
    """Call an MCP tool for the configured user, and return the tool's result. ``kind`` is the type of the result."""
    result = (await tool(service, service.settings.user_id, arguments)).result
    assert isinstance(result, kind)  # noqa: S101 - for the type checker
    return result


@asynccontextmanager
async def open_store(
    settings: Settings, *, short_term_capacity: int = ALL_PAGES, only_reads: bool = False
) -> AsyncIterator[Store]:
    """Open the configured user's store, and yield it. No model is loaded and no background work runs.

    A missing store is created, or is an error if ``only_reads`` is True. The default ``short_term_capacity`` is larger
    than any memory, so opening an existing store does not move pages out of short-term memory.
    """
    options = StoreOptions(
        assistant_id=settings.assistant_id,
        short_term_capacity=short_term_capacity,
        session_gap_s=settings.session_gap_s,
        knowledge_capacity=settings.long_term_knowledge_capacity,
    )
    stores = make_stores(settings, utc_now)
    try:
        store = await stores.open(settings.user_id, options, only_reads=only_reads)
        try:
            yield store
        finally:
            await store.close()
    finally:
        stores.close()


@contextmanager
def progress_on_stderr(unit: str = "pages") -> Iterator[Show]:
    """Yield a function that shows progress on stderr.

    The function takes the name of the current step, the number of finished units, and the total number of units. On a
    terminal, it updates a progress bar. Otherwise, it prints a line at most once every `LINE_EVERY_S` seconds.
    """
    console = Console(stderr=True, highlight=False)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    line_at = time.monotonic() + LINE_EVERY_S
    with Progress(*columns, TimeElapsedColumn(), console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=None)

        def show(step: str, done: int, total: int) -> None:
            nonlocal line_at
            bar.update(task, description=step, completed=done, total=total)
            if not console.is_terminal and time.monotonic() >= line_at:
                line_at = time.monotonic() + LINE_EVERY_S
                click.echo(f"{done:,} of {total:,} {unit}: {step}", err=True)

        yield show


async def watch(engine: "MemoryEngine", look: Callable[[Stats, Show], ResultT | None]) -> ResultT:
    """Call ``look`` repeatedly until it returns a result, and return this result.

    ``look`` receives the engine's current statistics and a function that shows progress. ``look`` returns None
    while the background work is not finished.
    """
    with progress_on_stderr() as show:
        while True:
            if (result := look(await engine.stats(), show)) is not None:
                return result
            await asyncio.sleep(POLL_S)


class Failures:
    """Detects a background loop that fails repeatedly and makes no progress."""

    def __init__(self) -> None:
        self._least_left: int | None = None
        # The number of failures of each loop at the time of the last progress. These failures do not count.
        self._forgiven: dict[str, int] = {}

    def last(self, stats: Stats, left: int) -> str | None:
        """Return the last error of a loop that has failed `FAILURES_IN_A_ROW` times since the last progress.

        Return None if no loop has failed so often. ``left`` is the number of unprocessed pages. Progress means that
        this number has decreased.
        """
        failed = {name: health.failed_attempts for name, health in stats.health.items()}
        if self._least_left is None or left < self._least_left:
            self._least_left, self._forgiven = left, failed
        for name, health in stats.health.items():
            # After a success, a loop starts counting its failures at 0 again.
            forgiven = min(self._forgiven.get(name, 0), failed[name])
            if failed[name] - forgiven >= FAILURES_IN_A_ROW:
                return health.last_error or "unknown"
        return None


def gave_up(error: str, hint: str) -> str:
    """Return the error message for a command that gives up after `FAILURES_IN_A_ROW` failures.

    ``error`` is the last failure, and ``hint`` says what the user can do.
    """
    return f"the work failed {FAILURES_IN_A_ROW} times in a row: {error}; {hint}"


@contextmanager
def note_if_stopped(hint: str) -> Iterator[None]:
    """If Ctrl-C stops the ``with`` block, print a note to stderr. ``hint`` says what the user can do next."""
    try:
        yield
    except asyncio.CancelledError:
        note(f"stopped; {hint}")
        raise


@dataclass(frozen=True, slots=True)
class TriedModel:
    """The result of loading and trying an embedding model.

    ``space`` identifies the model's vector space, and ``dimension`` is the length of a vector. ``load_s`` is the number
    of seconds that loading took.
    """

    space: str
    dimension: int
    load_s: float


async def try_model(model: "EmbeddingModel", settings: Settings) -> TriedModel:
    """Load a model, embed a query, and return the model's properties. The model is downloaded if necessary."""
    from memoryos_mcp.embedding.embedders import make_embedder  # imported late because most commands load no model

    if sys.stderr.isatty():
        click.echo(f"loading the embedding model {model.name} ...", err=True)
    embedder = make_embedder(model, settings)
    try:
        began = time.perf_counter()
        await embedder.load()
        load_s = time.perf_counter() - began
        query = await embedder.embed_query("Is anybody there?")
        return TriedModel(embedder.identity, len(query.vector), load_s)
    finally:
        await embedder.aclose()
