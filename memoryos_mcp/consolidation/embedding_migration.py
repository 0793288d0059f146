"""Manages the vector spaces of a memory, and the migration to another embedding model.

A vector space contains the vectors of one model. Vectors of different models are never compared. When the configured
model has changed, all pages are embedded again in a new space. Until the new space is complete, queries use the
previous space, and new pages are embedded in both spaces. If the previous model can no longer be loaded, queries use
the incomplete new space. Pages that are not in it yet are then found by keywords.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from memoryos_mcp.consolidation.embedding import Embedding, Remaining
from memoryos_mcp.embedding import Embedder, EmbeddingModel
from memoryos_mcp.embedding.embedders import Embedders
from memoryos_mcp.embedding.revision import known_identity
from memoryos_mcp.errors import ModelError
from memoryos_mcp.model.stats import Move
from memoryos_mcp.retrieval.cache import MemoryCache
from memoryos_mcp.retrieval.page_index import PageIndex
from memoryos_mcp.retrieval.priority import QueryPriority
from memoryos_mcp.retrieval.retrieving import Retrieving
from memoryos_mcp.storage.interface import Store
from memoryos_mcp.storage.values import Lease, Pending, Space

logger = logging.getLogger(__name__)

# The vectors of an unused model are kept for this time, in case the model is configured again.
KEPT_UNUSED = timedelta(days=7)
# The files of a larger index are cleaned in the background, because a caller waits for `VectorSpaces.purge`.
PURGED_AT_ONCE = 2_000


@dataclass(frozen=True, slots=True)
class _OpenSpace:
    """A vector space whose model is loaded, with a store that reads and writes its vectors."""

    identity: str
    store: Store
    embedder: Embedder
    embedding: Embedding

    @classmethod
    def of(cls, identity: str, store: Store, embedder: Embedder) -> "_OpenSpace":
        return cls(identity, store, embedder, Embedding(store, embedder))


class VectorSpaces:
    """One user's vector spaces. The current space is the one that queries use.

    Attributes:
        retrieving: Object that answers queries with the current space. Until a space is loaded, it searches by
            keywords only.
        query_priority: Pauses the loading of vectors while queries are running.
        filing: A lock that must be held while pages are assigned to segments by their vectors. It prevents a change of
            the current space.

    Args:
        store: The user's memory. It reads vectors from the current space.
        embedders: The embedders of the configured model and of the models of existing spaces.
        retrieving: Function that creates a `Retrieving` from a store, the store's cache, and an embedder or None.
        make_index: Function that creates the page index of a space. Its arguments are a store that uses the space, the
            identity of the space, and the length of its vectors.
        clock: Returns the current time.
    """

    def __init__(
        self,
        store: Store,
        embedders: Embedders,
        retrieving: Callable[[Store, MemoryCache, Embedder | None], Retrieving],
        make_index: Callable[[Store, str, int], PageIndex],
        clock: Callable[[], datetime],
    ) -> None:
        self._store = store
        self._embedders = embedders
        self._make_retrieving = retrieving
        self._make_index = make_index
        self._clock = clock
        self._target: _OpenSpace | None = None
        self._previous: _OpenSpace | None = None
        # The identity of the current space.
        self._current: str | None = None
        self._has_others = False
        self.retrieving = retrieving(store, MemoryCache(store, PageIndex(store, None)), None)
        self.query_priority = QueryPriority()
        self.filing = asyncio.Lock()

    @property
    def has_model(self) -> bool:
        """Whether a model is configured."""
        return self._embedders.configured is not None

    async def open(self) -> None:
        """Load the configured model, and choose the vector space that queries use. A second call does nothing.

        Queries use the space of the configured model, unless a previous space is more complete.

        Raises:
            ModelError: The configured model could not be loaded. Queries use a previous model if possible.
            StorageError: The store could not be read.
        """
        configured = self._embedders.configured
        if configured is None or self._target is not None:
            return
        spaces = await self._load(configured)
        unembedded = {space.identity: space.unembedded for space in spaces}
        identity = known_identity(configured.identity, [*unembedded])
        target = _OpenSpace.of(identity, await self._store.in_space(identity, configured.model.to_json()), configured)
        missing = unembedded[identity] if identity in unembedded else (await target.store.pending()).unembedded
        self._has_others = not unembedded.keys() <= {identity}
        if missing and await self._use_previous(spaces, identity, missing):
            logger.info("the embedding model has changed: %d pages are being embedded again in the background", missing)
        else:
            await self._use(target)
            self._previous = None
        self._target = target

    async def open_to_read(self) -> None:
        """Choose the vector space that queries use, like `open`, but without writing or embedding anything.

        Raises:
            ModelError: The configured model could not be loaded. Queries use a previous model if possible.
            StorageError: The store could not be read.
        """
        configured = self._embedders.configured
        if configured is None:
            return
        spaces = await self._load(configured)
        unembedded = {space.identity: space.unembedded for space in spaces}
        identity = known_identity(configured.identity, [*unembedded])
        missing = unembedded.get(identity)
        if (missing == 0 or not await self._use_previous(spaces, identity, missing)) and missing is not None:
            await self._use(_OpenSpace.of(identity, await self._store.in_space(identity), configured))

    async def has_work(self) -> bool:
        """Return whether the model must be loaded, vectors are missing, or queries must switch to the new space."""
        if self._target is None:
            return self.has_model
        return self._previous is not None or await self._target.embedding.has_work()

    async def is_filled(self) -> bool:
        """Return whether all pages, facts and segments have vectors in the space that queries use.

        After a change of the model, queries use the previous space until all vectors of the new model exist. Until the
        configured model is loaded, return False. If no model is configured, return True.
        """
        if self._target is None:
            return not self.has_model
        return not await (self._previous or self._target).embedding.has_work()

    async def vectors_of(self, texts: Sequence[str]) -> NDArray[np.float32] | None:
        """Return one vector in the current vector space for each of ``texts``, or None if no space is loaded.

        Raises:
            ModelError: The model failed.
        """
        embedder = self.retrieving.embedder
        return None if embedder is None else await embedder.embed(texts)

    async def pending(self) -> Pending:
        """Return the counts of pending work. Until the model is loaded, all pages count as unembedded."""
        if self._target is not None:
            return await self._target.store.pending()
        pending = await self._store.pending()
        return replace(pending, unembedded=(await self._store.counts()).pages) if self.has_model else pending

    @property
    def is_settled(self) -> bool:
        """Whether the index of the current vector space needs no further optimisation."""
        return self.retrieving.cache.index.is_settled

    @property
    def is_up_to_date(self) -> bool:
        """Whether the index of the current space works, and needs no update unless vectors are missing in the store."""
        return self._previous is None and self.is_settled and not self.retrieving.cache.index.is_kept

    async def step(self, lease: Lease) -> Remaining:
        """Embed one batch of texts, usually with the configured model. Return whether texts without vectors remain.

        During a migration, texts without a vector in the previous vector space come first. They are embedded with the
        previous model. If there are no such texts, or if the previous model fails, the batch is embedded with the
        configured model.

        Raises:
            ModelError: The configured model failed. Nothing was written.
        """
        if self._previous is not None:
            try:
                remaining = await self._previous.embedding.step(lease)
            except ModelError as error:  # this failure must not delay the new space
                logger.warning("the previous embedding model failed; new pages are found by keywords only: %s", error)
            else:
                if remaining is not Remaining.NONE:
                    return remaining
        return Remaining.NONE if self._target is None else await self._target.embedding.step(lease)

    async def settle(self) -> None:
        """Use the new vector space for queries if it is complete, and load the index again if it has failed.

        If the new space is not complete yet, queries still use the previous space.
        """
        target = self._target
        if self._previous is not None and target is not None and not await target.embedding.has_work():
            await self._use(target)
            self._previous = None
            logger.info("all pages have been embedded with the new embedding model; search uses it from now on")
        cache = self.retrieving.cache
        await cache.load_index(self.query_priority.pauses())  # if the index has failed
        if cache.index.is_kept:
            await cache.refresh()  # pages forgotten by other processes are removed even if no query follows

    async def optimise(self) -> None:
        """Maintain the index of the current vector space. A large index takes seconds, and a huge one minutes."""
        await self.retrieving.cache.index.settle()

    async def purge(self) -> bool:
        """Remove forgotten pages from the vector indexes that are stored outside this process.

        Returns:
            True if all data of these pages has been removed from the indexes. False if some of it must still be
            removed by `optimise`.
        """
        is_done = True
        for space in await self._store.spaces():
            cache = self.retrieving.cache
            if space.identity != self._current or not cache.index.is_loaded:
                store = await self._store.in_space(space.identity)
                index = self._make_index(store, space.identity, int(space.identity.rsplit(":", 2)[1]))
                if not await index.is_filled():
                    continue
                cache = MemoryCache(store, index)
                await cache.load_index(self.query_priority.pauses())
            if cache.index.is_kept:
                await cache.refresh()
                is_done &= await cache.index.settle(PURGED_AT_ONCE)
        return is_done

    @property
    def has_others(self) -> bool:
        """Return whether the memory contained vectors of another model when the configured model was loaded."""
        return self._has_others

    async def tidy(self, lease: Lease) -> bool:
        """Delete some vectors of models that have been unused for `KEPT_UNUSED`. Return whether to call again."""
        if self._target is None or self._previous is not None:
            return False
        keep = [self._target.identity]
        return await self._store.drop_spaces(lease, keep, self._clock() - KEPT_UNUSED)

    async def move(self) -> Move | None:
        """Return the progress of the migration, or None if no migration is in progress."""
        if self._previous is None or self._target is None:
            return None
        return Move(self._target.identity, (await self._target.store.pending()).unembedded)

    async def _load(self, configured: Embedder) -> list[Space]:
        """Load the configured model, and return all vector spaces.

        If the model cannot be loaded, queries use a previous space if possible.

        Raises:
            ModelError: The model could not be loaded.
        """
        try:
            await configured.load()
        except ModelError:
            await self._use_previous(await self._store.spaces())
            raise
        return await self._store.spaces()

    async def _use_previous(
        self, spaces: Sequence[Space], target: str | None = None, fewer_left_than: int | None = None
    ) -> bool:
        """Use a previous vector space for queries: the most complete space whose model can be loaded.

        Args:
            spaces: All vector spaces of the memory.
            target: Identity of the configured model's space, which is not a previous space. None excludes no space.
            fewer_left_than: The space must have fewer unembedded pages than this number. None allows any number.

        Returns:
            Whether a previous space is used for queries now.
        """
        if self._previous is not None:
            return True
        others = [
            space
            for space in spaces
            if (fewer_left_than is None or space.unembedded < fewer_left_than) and space.identity != target
        ]
        for space in sorted(others, key=lambda each: each.unembedded):
            embedder = await self._loaded(space)
            if embedder is not None:
                before = _OpenSpace.of(space.identity, await self._store.in_space(space.identity), embedder)
                await self._use(before)
                self._previous = before
                return True
        return False

    async def _loaded(self, space: Space) -> Embedder | None:
        """Load the model of a vector space and return its embedder.

        Return None if the model cannot be loaded or has changed.
        """
        try:
            embedder = self._embedders.of(EmbeddingModel.from_json(space.model))
            await embedder.load()
        except (ModelError, ValueError) as error:
            logger.warning(
                "a previous embedding model cannot be loaded; search possibly uses only keywords until the configured "
                "model is ready: %s",
                error,
            )
            return None
        if known_identity(embedder.identity, [space.identity]) == space.identity:
            return embedder
        logger.info(
            "the embedding model of %s has changed, so its vectors cannot be searched any more; pages without other "
            "vectors are found by keywords only until they are embedded again",
            space.identity,
        )
        return None

    async def _use(self, filled: _OpenSpace) -> None:
        """Fill the index of a vector space, then use the space for queries."""
        index = self._make_index(filled.store, filled.identity, filled.embedder.dimension)
        cache = MemoryCache(filled.store, index)
        await cache.load_index(self.query_priority.pauses())
        # Without an embedder, pages are filed by keywords, so filing does not depend on the space.
        async with self.filing if self.retrieving.embedder is not None else nullcontext():
            self._store.use_space_of(filled.store)
            self._current = filled.identity
            self.retrieving = self._make_retrieving(filled.store, cache, filled.embedder)
