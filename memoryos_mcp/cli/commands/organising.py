"""The command ``memoryos-mcp organise``: do the background work that is waiting, and end.

A running server does the same work, but organises an incomplete batch of pages only after a pause in the conversation.
"""

from collections.abc import Iterator
from contextlib import AsyncExitStack

from pydantic import BaseModel

from memoryos_mcp.cli.commands import common
from memoryos_mcp.cli.commands.space_status import embedding_status
from memoryos_mcp.cli.terminal import print_report
from memoryos_mcp.config import Settings
from memoryos_mcp.embedding.embedders import configured_model, make_embedder
from memoryos_mcp.engine.engine import MemoryEngine
from memoryos_mcp.errors import MemoryOSError
from memoryos_mcp.model.stats import Stats
from memoryos_mcp.text.amounts import amount

_HINT = "finished work is kept, and the next server continues"


class Organised(BaseModel, frozen=True):
    """The result of the command ``organise``.

    ``pages`` is the number of pages in the memory. When the command started, ``organised`` pages were waiting to be
    organised, and ``embedded`` pages were waiting to be embedded. A page can be counted in both. ``left`` is the sum of
    these two counts when the command ended. ``degraded`` is the number of pages in the memory that were processed
    without the LLM.
    """

    pages: int = 0
    organised: int = 0
    embedded: int = 0
    left: int = 0
    degraded: int = 0
    error: str | None = None


async def organise(settings: Settings, *, as_json: bool) -> None:
    """Do the waiting background work for the configured user's memory, and print the result to stdout."""
    outcome = Organised()
    if await common.has_memory_or_note(settings):
        status = await embedding_status(settings)
        without_vectors = next((space.pages_left for space in status.spaces if space.is_configured), None)
        hurried = settings.model_copy(update={"consolidation_idle_s": 0.0})
        model = configured_model(settings)
        async with AsyncExitStack() as stack:
            stack.enter_context(common.note_if_stopped(_HINT))
            embedder = None if model is None else make_embedder(model, settings)
            if embedder is not None:
                stack.push_async_callback(embedder.aclose)
                await embedder.load()  # fails at once if the model is not valid; the engine would try again
            _, engine = await stack.enter_async_context(common.open_memory(hurried, embedder=embedder))
            outcome = await _until_done(engine, without_vectors)
    print_report(outcome, _lines(outcome), as_json=as_json)
    if outcome.error is not None:
        raise MemoryOSError(common.gave_up(outcome.error, _HINT))


async def _until_done(engine: MemoryEngine, without_vectors: int | None) -> Organised:
    """Wait for the background work, and return the outcome.

    ``without_vectors`` is the number of pages to be embedded; None means that no embedding model is configured.
    """
    to_organise, to_embed = (await engine.stats()).counts.backlog, without_vectors or 0
    total = 0
    failures = common.Failures()
    was_done = False

    def look(stats: Stats, show: common.Show) -> Organised | None:
        nonlocal total, was_done
        counts = stats.counts
        not_embedded = counts.unembedded if stats.move is None else stats.move.pages_left
        if without_vectors is None:
            not_embedded = 0
        left = counts.backlog + not_embedded
        total = max(total, left)
        step = "embedding" if not_embedded else "organising" if counts.backlog else "learning"
        show(step, total - left, total)
        # The statistics are not one snapshot, so the work is done only if this is seen twice in a row.
        is_done = stats.is_settled and not left and stats.move is None
        error = None if is_done else failures.last(stats, left)
        if (is_done and was_done) or error is not None:
            return Organised(
                pages=counts.pages,
                organised=to_organise,
                embedded=to_embed,
                left=left,
                degraded=counts.degraded,
                error=error,
            )
        was_done = is_done
        return None

    return await common.watch(engine, look)


def _lines(outcome: Organised) -> Iterator[str]:
    if outcome.error is not None:
        yield f"Still waiting: {amount(outcome.left, 'page')}."
    elif outcome.organised or outcome.embedded:
        yield f"Organised: {amount(outcome.organised, 'page')}. Embedded: {amount(outcome.embedded, 'page')}."
    else:
        yield "No page was waiting."
    if outcome.degraded:
        pages = amount(outcome.degraded, "page")
        yield f"Processed without the LLM: {pages}. To redo them with the LLM, run memoryos-mcp reconsolidate."
