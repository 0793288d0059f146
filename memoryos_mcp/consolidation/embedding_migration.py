"""VectorSpaces: which vectors answer queries, and the migration from one model's vectors to the next one's.

Vectors of two models are never compared. After a change of the configured model, the previous vector space keeps
answering, also for new pages, while the new one is filled. Once the new one is complete, it takes over. If the previous
model can no longer be loaded, the new space answers as far as it is filled; keyword search finds the rest.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

import numpy as np
from numpy.typing import NDArray

from memoryos_mcp.consolidation.embedding import Embedding, Left
from memoryos_mcp.embedding import Embedder, EmbeddingModel
from memoryos_mcp.embedding.embedders import Embedders
from memoryos_mcp.embedding.revision import known_identity
from memoryos_mcp.errors import ModelError
from memoryos_mcp.model.stats import Move
from memoryos_mcp.retrieval.cache import MemoryCache
from memoryos_mcp.retrieval.index import VectorIndex
from memoryos_mcp.retrieval.page_index import PageIndex
from memoryos_mcp.retrieval.priority import QueryPriority
from memoryos_mcp.retrieval.retrieving import Retrieving
from memoryos_mcp.storage.interface import Store
from memoryos_mcp.storage.values import Lease, Pending, Space

logger = logging.getLogger(__name__)

# Vectors of an unused model are kept this long, in case it is configured again.
KEPT_UNUSED = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class _Filled:
    """A vector space that is kept up to date, with a store that sees it."""

    identity: str
    store: Store
    embedder: Embedder
    embedding: Embedding

    @classmethod
    def of(cls, identity: str, store: Store, embedder: Embedder) -> "_Filled":
        return cls(identity, store, embedder, Embedding(store, embedder))


class VectorSpaces:
    """One user's vector spaces.

    Attributes:
        retrieving: Answers queries with the most complete space; by keywords only until there is one.
        query_priority: Makes the loading of vectors give way to queries, whichever space answers them.
        filing: Held while pages are filed by their vectors, so that no other space takes over meanwhile.

    Args:
        store: The user's memory. Filing uses the vectors of the space that it sees, which is the one that answers.
        embedders: The configured model, and those of existing spaces.
        make_index: Returns an empty index for vectors of a given length.
        retrieving: Returns a `Retrieving` for a store, its cache, and an embedder or None.
    """

    def __init__(
        self,
        store: Store,
        embedders: Embedders,
        make_index: Callable[[int], VectorIndex],
        retrieving: Callable[[Store, MemoryCache, Embedder | None], Retrieving],
        clock: Callable[[], datetime],
    ) -> None:
        self._store = store
        self._embedders = embedders
        self._make_index = make_index
        self._make_retrieving = retrieving
        self._clock = clock
        self._target: _Filled | None = None
        self._before: _Filled | None = None
        self.retrieving = retrieving(store, MemoryCache(store, PageIndex(store, partial(make_index, 1))), None)
        self.query_priority = QueryPriority()
        self.filing = asyncio.Lock()

    @property
    def has_model(self) -> bool:
        """Whether a model is configured."""
        return self._embedders.configured is not None

    async def open(self) -> None:
        """Load the model, once, and use its space for queries, or the previous space while that is more complete.

        Raises:
            ModelError: The model could not be loaded; the previous one is used if possible.
            StorageError: The store could not be read.
        """
        configured = self._embedders.configured
        if configured is None or self._target is not None:
            return
        try:
            await configured.load()
        except ModelError:
            await self._serve_before()
            raise
        identity = known_identity(configured.identity, [space.identity for space in await self._store.spaces()])
        target = _Filled.of(identity, await self._store.in_space(identity, configured.model.to_json()), configured)
        left = (await target.store.pending()).unembedded
        if left and await self._serve_before(identity, left):
            logger.info("the embedding model is another one: %d pages get vectors of it in the background", left)
        else:
            await self._serve(target)
            self._before = None
        self._target = target

    async def open_to_read(self) -> None:
        """Use the same space for queries as a server would, as it stands: nothing is written or embedded.

        Raises:
            ModelError: The model could not be loaded; the previous one is used if possible.
            StorageError: The store could not be read.
        """
        configured = self._embedders.configured
        if configured is None:
            return
        try:
            await configured.load()
        except ModelError:
            await self._serve_before()
            raise
        there = {space.identity: space for space in await self._store.spaces()}
        identity = known_identity(configured.identity, [*there])
        left = there[identity].unembedded if identity in there else None
        if (left == 0 or not await self._serve_before(identity, left)) and identity in there:
            await self._serve(_Filled.of(identity, await self._store.in_space(identity), configured))

    async def has_work(self) -> bool:
        """Return whether the model must be loaded, a vector is missing, or a space must take over."""
        if self._target is None:
            return self.has_model
        return self._before is not None or await self._target.embedding.has_work()

    async def is_filled(self) -> bool:
        """Return whether nothing lacks a vector in the space that answers, whatever another one lacks.

        Raises:
            StorageError: The store could not be read.
        """
        if self._target is None:
            return not self.has_model
        return not await (self._before or self._target).embedding.has_work()

    async def vectors_of(self, texts: Sequence[str]) -> NDArray[np.float32] | None:
        """Return the vectors of texts in the space that answers, one row each; None while there is none.

        Raises:
            ModelError: The model failed.
        """
        embedder = self.retrieving.embedder
        return None if embedder is None else await embedder.embed(texts)

    async def waiting(self) -> Pending:
        """Return the pending background work; until the model is loaded, all pages count as unembedded.

        Raises:
            StorageError: The store could not be read.
        """
        if self._target is not None:
            return await self._target.store.pending()
        waiting = await self._store.pending()
        return replace(waiting, unembedded=(await self._store.counts()).pages) if self.has_model else waiting

    @property
    def is_settled(self) -> bool:
        """Whether the index needs no more work to be quick."""
        return self.retrieving.cache.index.is_settled

    async def step(self, lease: Lease) -> Left:
        """Embed one batch of what has no vector, first for the space that answers.

        Raises:
            ModelError: A model failed; nothing was written.
        """
        if self._before is not None:
            try:
                left = await self._before.embedding.step(lease)
            except ModelError as error:  # the new space is filled all the same
                logger.warning("the embedding model of before fails, words answer for new pages: %s", error)
            else:
                if left is not Left.NOTHING:
                    return left
        return Left.NOTHING if self._target is None else await self._target.embedding.step(lease)

    async def settle(self) -> None:
        """Let a complete space take over, and have its index do the slow work that keeps searches quick."""
        target = self._target
        if self._before is not None and target is not None and not await target.embedding.has_work():
            await self._serve(target)
            self._before = None
            logger.info("all pages have vectors of the new embedding model; it answers from now on")
        await self.retrieving.cache.index.settle()

    async def tidy(self, lease: Lease) -> bool:
        """Delete some vectors of models that were not used for a week; return whether there are more."""
        if self._target is None or self._before is not None:
            return False
        keep = [self._target.identity]
        return await self._store.drop_spaces(lease, keep, self._clock() - KEPT_UNUSED)

    async def move(self) -> Move | None:
        """Return the progress of a change of the model; None if there is none.

        Raises:
            StorageError: The store could not be read.
        """
        if self._before is None or self._target is None:
            return None
        return Move(self._target.identity, (await self._target.store.pending()).unembedded)

    async def _serve_before(self, target: str | None = None, fewer_left_than: int | None = None) -> bool:
        """Use the most complete space other than the target for queries; return whether there is one."""
        if self._before is not None:
            return True
        others = [
            space
            for space in await self._store.spaces()
            if (fewer_left_than is None or space.unembedded < fewer_left_than) and space.identity != target
        ]
        for space in sorted(others, key=lambda each: each.unembedded):
            embedder = await self._loaded(space)
            if embedder is not None:
                before = _Filled.of(space.identity, await self._store.in_space(space.identity), embedder)
                await self._serve(before)
                self._before = before
                return True
        return False

    async def _loaded(self, space: Space) -> Embedder | None:
        """Return the embedder of a space; None if it cannot be loaded or is no longer the same."""
        try:
            embedder = self._embedders.of(EmbeddingModel.from_json(space.model))
            await embedder.load()
        except (ModelError, ValueError) as error:
            logger.warning("the embedding model of before cannot be loaded, words answer meanwhile: %s", error)
            return None
        return embedder if known_identity(embedder.identity, [space.identity]) == space.identity else None

    async def _serve(self, filled: _Filled) -> None:
        """Use a space for queries, once its vectors are in RAM."""
        make_index = partial(self._make_index, filled.embedder.dimension)
        cache = MemoryCache(filled.store, PageIndex(filled.store, make_index))
        await cache.load_index(self.query_priority.patiently())
        # Without an embedder, pages are filed without vectors, so there is no filing to wait for.
        async with self.filing if self.retrieving.embedder is not None else nullcontext():
            self._store.use_space_of(filled.store)
            self.retrieving = self._make_retrieving(filled.store, cache, filled.embedder)
