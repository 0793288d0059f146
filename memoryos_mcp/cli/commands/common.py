"""Shared helpers of commands: opening a user's memory, showing progress, and trying an embedding model."""

import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio
import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from memoryos_mcp.cli.terminal import one_line
from memoryos_mcp.config import Settings
from memoryos_mcp.model.pages import utc_now
from memoryos_mcp.storage.interface import Store
from memoryos_mcp.storage.paths import database_file
from memoryos_mcp.storage.stores import make_stores
from memoryos_mcp.storage.values import StoreOptions

if TYPE_CHECKING:
    from memoryos_mcp.embedding import EmbeddingModel

# Interval between two checks of an engine's background work.
POLL_S = 0.25
# Interval between two lines of progress without a terminal.
LINE_EVERY_S = 10.0
# After this many failures without a success in between, a command gives up.
FAILURES_IN_A_ROW = 3
# Larger than any memory, so that an opened store moves no page out of short-term.
_ALL_PAGES = 1_000_000_000


async def is_there(settings: Settings) -> bool:
    """Return whether the configured user has a memory; if not, report it on stderr. Opening it would create one."""
    if await anyio.Path(database_file(settings.data_storage_path, settings.user_id)).exists():
        return True
    told = f"memoryos-mcp: there is no memory of {one_line(settings.user_id)} in {settings.data_storage_path} yet"
    click.echo(told, err=True)
    return False


@asynccontextmanager
async def opened_store(
    settings: Settings, *, short_term_capacity: int = _ALL_PAGES, only_reads: bool = False
) -> AsyncIterator[Store]:
    """Yield the configured user's memory; with ``only_reads`` it cannot be changed.

    With the default capacity no page leaves short-term, so that only the caller changes the memory.

    Raises:
        StorageError: It cannot be opened.
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
def progress_on_stderr(unit: str = "pages") -> Iterator[Callable[[str, int, int], None]]:
    """Yield a function that shows progress, given the current step, the units done and the total.

    Progress is a bar on a terminal, else an occasional line.
    """
    console = Console(stderr=True, highlight=False)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    line_at = time.monotonic() + LINE_EVERY_S
    with Progress(*columns, TimeElapsedColumn(), console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=None)

        def show(told: str, done: int, total: int) -> None:
            nonlocal line_at
            bar.update(task, description=told, completed=done, total=total)
            if not console.is_terminal and time.monotonic() >= line_at:
                line_at = time.monotonic() + LINE_EVERY_S
                click.echo(f"{done:,} of {total:,} {unit}: {told}", err=True)

        yield show


@dataclass(frozen=True, slots=True)
class TriedModel:
    """Properties of a loaded embedding model.

    Attributes:
        space: Identity of its vector space.
        dimension: Length of its vectors.
        load_s: Time to load it, download included, in seconds.
    """

    space: str
    dimension: int
    load_s: float


async def try_model(model: "EmbeddingModel", settings: Settings) -> TriedModel:
    """Load a model (downloading it if needed), embed a query, and close it.

    Raises:
        ModelError: The model could not be loaded, or did not answer.
    """
    from memoryos_mcp.engine.wiring import make_embedder  # most commands load no model

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
