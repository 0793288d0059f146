"""The commands ``memoryos-mcp reembed`` (embed all pages) and ``memoryos-mcp warmup`` (load the embedding model).

A running server embeds pages in the background. ``reembed`` does this work immediately. With ``--status``, it only
shows the progress.
"""

from collections.abc import Iterator

from memoryos_mcp.cli.commands import common
from memoryos_mcp.cli.commands.space_status import EmbeddingStatus, embedding_status
from memoryos_mcp.cli.terminal import print_report
from memoryos_mcp.config import Settings
from memoryos_mcp.embedding import EmbeddingModel
from memoryos_mcp.embedding.embedders import configured_model, make_embedder
from memoryos_mcp.errors import ConfigError, ModelError
from memoryos_mcp.model.stats import Stats

_HINT = "finished work is kept, and the next server continues"


async def show_status(settings: Settings, *, as_json: bool) -> None:
    """Print how many of the configured user's pages each embedding model has embedded. No model is loaded."""
    await common.has_memory_or_note(settings)
    await _print_status(settings, as_json=as_json)


async def reembed(settings: Settings, *, as_json: bool) -> None:
    """Embed all pages of the configured user with the configured model, and show the progress on stderr."""
    model = _model(settings)
    if await common.has_memory_or_note(settings):
        embedder = make_embedder(model, settings)
        try:
            with common.note_if_stopped(_HINT):
                await embedder.load()  # fails at once if the model is not valid; the engine would try again
                async with common.open_memory(settings, embedder=embedder) as (_, engine):
                    await common.watch(engine, _is_finished)
        finally:
            await embedder.aclose()
    await _print_status(settings, as_json=as_json)


async def warm_up(settings: Settings, *, as_json: bool) -> None:
    """Load the configured model and print its properties. The model is downloaded if necessary."""
    model = _model(settings)
    tried = await common.try_model(model, settings)
    result = {"model": model.name, "space": tried.space, "dimension": tried.dimension, "loaded_s": tried.load_s}
    line = f"{model.name} is ready: loaded in {tried.load_s:.1f} s, {tried.dimension:,} dimensions."
    print_report(result, [line], as_json=as_json)


def _model(settings: Settings) -> EmbeddingModel:
    model = configured_model(settings)
    if model is None:
        msg = "no embedding model is configured, because embedding_model_name is 'none'; set it to the name of a model"
        raise ConfigError(msg)
    return model


async def _print_status(settings: Settings, *, as_json: bool) -> None:
    status = await embedding_status(settings)
    print_report(status, _lines(status), as_json=as_json)


def _lines(status: EmbeddingStatus) -> Iterator[str]:
    for space in status.spaces:
        name = f"{space.model} (configured)" if space.is_configured else space.model
        yield f"{name}: {status.pages - space.pages_left:,} of {status.pages:,} pages have vectors"
    configured = next((space for space in status.spaces if space.is_configured), None)
    if configured is None:
        yield "No embedding model is configured: search uses only keywords."
    elif configured.pages_left:
        yield "A running server embeds the other pages in the background. To embed them now, run memoryos-mcp reembed."


def _is_finished(stats: Stats, show: common.Show) -> bool | None:
    """Show the progress. Return True if all pages have vectors of the configured model, else None.

    Raises:
        ModelError: Several attempts in a row to embed pages have failed.
    """
    health = stats.health["embedding"]
    if health.failed_attempts >= common.FAILURES_IN_A_ROW:
        raise ModelError(common.gave_up(str(health.last_error), _HINT))
    left = stats.counts.unembedded if stats.move is None else stats.move.pages_left
    show("embedding", stats.counts.pages - left, stats.counts.pages)
    return True if stats.is_semantic and not left and stats.move is None else None
