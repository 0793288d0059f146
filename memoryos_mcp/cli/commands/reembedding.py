"""The commands ``memoryos-mcp reembed`` and ``memoryos-mcp warmup``, to change and to download an embedding model.

A running server re-embeds in the background by itself; `reembed` shows the progress, or does it now.
"""

import asyncio
import json

import click

from memoryos_mcp.cli.commands.common import FAILURES_IN_A_ROW, POLL_S, is_there, progress_on_stderr, try_model
from memoryos_mcp.cli.commands.space_status import EmbeddingStatus, embedding_status
from memoryos_mcp.cli.terminal import prepare_stdout
from memoryos_mcp.config import Settings
from memoryos_mcp.engine.engine import MemoryEngine
from memoryos_mcp.engine.service import MemoryService
from memoryos_mcp.engine.wiring import configured_model, make_embedder
from memoryos_mcp.errors import ConfigError, ModelError
from memoryos_mcp.model.stats import Stats

_KEPT = "what was done stays done, and the next server goes on with it"


async def show_status(settings: Settings, *, as_json: bool) -> None:
    """Print the progress of embedding for the configured user; loads no model and changes nothing.

    Raises:
        StorageError: The memory cannot be read.
    """
    prepare_stdout()
    _show(await embedding_status(settings, has_memory=await is_there(settings)), as_json=as_json)


async def reembed(settings: Settings, *, as_json: bool) -> None:
    """Embed all pages of the configured user with the configured model, with progress on stderr.

    Raises:
        ConfigError: No model is configured.
        ModelError: The model cannot be loaded, or keeps failing; finished work stays.
    """
    model = configured_model(settings)
    if model is None:
        msg = "embedding_model_name: is none, so there is nothing to embed with; name a model"
        raise ConfigError(msg)
    prepare_stdout()
    has_memory = await is_there(settings)
    if has_memory:
        embedder = make_embedder(model, settings)
        try:
            await embedder.load()  # an unusable model is reported at once, not retried
            async with MemoryService(settings, embedder=embedder) as service, service.user(settings.user_id) as engine:
                await _until_whole(engine)
        except asyncio.CancelledError:
            click.echo(f"memoryos-mcp: stopped; {_KEPT}", err=True)
            raise
        finally:
            await embedder.aclose()
    _show(await embedding_status(settings, has_memory=has_memory), as_json=as_json)


async def warm_up(settings: Settings, *, as_json: bool) -> None:
    """Load the configured model, downloading it if needed, and print its properties.

    Raises:
        ConfigError: No model is configured.
        ModelError: The model cannot be loaded.
    """
    model = configured_model(settings)
    if model is None:
        msg = "embedding_model_name: is none, so there is nothing to load; name a model"
        raise ConfigError(msg)
    prepare_stdout()
    tried = await try_model(model, settings)
    if as_json:
        told = {"model": model.name, "space": tried.space, "dimension": tried.dimension, "loaded_s": tried.load_s}
        click.echo(json.dumps(told))
    else:
        click.echo(f"{model.name} is ready: loaded in {tried.load_s:.1f} s, {tried.dimension:,} dimensions.")


def _show(status: EmbeddingStatus, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(status.model_dump(mode="json")))
        return
    for space in status.spaces:
        name = f"{space.model} (configured)" if space.is_configured else space.model
        click.echo(f"{name}: {status.pages - space.pages_left:,} of {status.pages:,} pages have vectors")
    configured = next((space for space in status.spaces if space.is_configured), None)
    if configured is None:
        click.echo("No embedding model is configured: words answer alone.")
    elif configured.pages_left:
        click.echo("A running server embeds the rest in the background; `memoryos-mcp reembed` does it now.")


async def _until_whole(engine: MemoryEngine) -> None:
    """Wait until every page has vectors of the model; raise `ModelError` if it keeps failing."""
    with progress_on_stderr() as show:
        while True:
            stats = await engine.stats()
            health = stats.health["embedding"]
            if health.failed_attempts >= FAILURES_IN_A_ROW:
                msg = f"it failed {FAILURES_IN_A_ROW} times in a row: {health.last_error}; {_KEPT}"
                raise ModelError(msg)
            left = _left(stats)
            show("embedding", stats.counts.pages - left, stats.counts.pages)
            if stats.is_semantic and not left and stats.move is None:
                return
            await asyncio.sleep(POLL_S)


def _left(stats: Stats) -> int:
    return stats.counts.unembedded if stats.move is None else stats.move.pages_left
