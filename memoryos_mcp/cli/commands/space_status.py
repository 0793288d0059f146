"""The embedding progress of a memory: how many pages each embedding model has embedded."""

from datetime import datetime

from pydantic import BaseModel

from memoryos_mcp.cli.commands.common import has_memory, open_store
from memoryos_mcp.config import Settings
from memoryos_mcp.embedding import EmbeddingModel
from memoryos_mcp.embedding.embedders import configured_model
from memoryos_mcp.storage.values import Space


class SpaceStatus(BaseModel, frozen=True):
    """The embedding progress of one model.

    ``space`` identifies the model's vector space. It is None if the memory contains no vectors of the model.
    ``used_at`` is the time at which the vectors were last used, accurate to about a day.
    """

    model: str
    is_configured: bool
    space: str | None
    pages_left: int
    used_at: datetime | None


class EmbeddingStatus(BaseModel, frozen=True):
    """The embedding progress of all models.

    ``pages`` is the number of pages in the memory. ``spaces`` begins with the configured model.
    """

    pages: int
    spaces: list[SpaceStatus]


async def embedding_status(settings: Settings) -> EmbeddingStatus:
    """Return how many of the configured user's pages each embedding model has embedded. No model is loaded."""
    configured = configured_model(settings)
    pages, spaces = 0, list[Space]()
    if await has_memory(settings):
        async with open_store(settings, only_reads=True) as store:
            pages, spaces = (await store.counts()).pages, await store.spaces()
    models = [_model_of(space) for space in spaces]
    # A model whose weights changed under the same name has several vector spaces. The most recently used one is first.
    present = models.index(configured) if configured in models else None
    found = [
        SpaceStatus(
            model=model.name,
            is_configured=index == present,
            space=space.identity,
            pages_left=space.unembedded,
            used_at=space.used_at,
        )
        for index, (space, model) in enumerate(zip(spaces, models, strict=True))
    ]
    if configured is not None and present is None:
        found.append(SpaceStatus(model=configured.name, is_configured=True, space=None, pages_left=pages, used_at=None))
    return EmbeddingStatus(pages=pages, spaces=sorted(found, key=lambda space: not space.is_configured))


def _model_of(space: Space) -> EmbeddingModel:
    try:
        return EmbeddingModel.from_json(space.model)
    except ValueError:
        return EmbeddingModel(space.identity)
