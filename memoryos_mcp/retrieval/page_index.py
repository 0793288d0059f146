"""The page index: updates a vector index after changes of the store, and searches the index."""

import logging
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

import numpy as np

from memoryos_mcp.errors import StorageError
from memoryos_mcp.model.segments import Vector
from memoryos_mcp.retrieval.index.interface import VectorIndex, no_hits, parts_of
from memoryos_mcp.storage.interface import Store
from memoryos_mcp.storage.values import PageVectors, WindowHits

logger = logging.getLogger(__name__)

# Number of windows that are read at once. It is small enough not to delay a query noticeably. Larger blocks leave holes
# in the heap: with 2,000 windows, a server with 100,000 pages needs 20 MB more.
LOAD_WINDOWS = 250
# The first block is larger, so that a small memory is loaded in one.
FIRST_WINDOWS = 1_000
# The mark of an index: the position in the change sequence up to which it is filled, and its number of windows then.
_MARK = re.compile(r"(\d+)/(\d+)")


class WindowMatch(NamedTuple):
    """The similarity between a query and the windows (sections) of a page.

    Attributes:
        first: Cosine of the first window, which contains the beginning of the page and most of the user's words.
        best: Cosine of the window nearest to the query.
        best_part: Position of the nearest window in the page, from 0.
    """

    first: float
    best: float
    best_part: int


class PageIndex:
    """A vector index of one user's pages. Searches find nothing until `load` has finished.

    Args:
        store: The store from which the vectors are read.
        index: The index to fill; None for a store without a vector space.
        most_in_ram: Largest number of vectors for which the index is used. A larger memory is searched in the store, if
            the store can search vectors. None means that the index is always used.
    """

    def __init__(self, store: Store, index: VectorIndex | None, most_in_ram: int | None = None) -> None:
        self._store = store
        self._given = index
        self._most_in_ram = most_in_ram
        self._index: VectorIndex | None = None
        self._uses_store = False
        self._has_failed = False
        # Whether the index outlives the process.
        self.is_kept = False

    @property
    def is_loaded(self) -> bool:
        """Whether `load` has finished."""
        return self._index is not None or self._uses_store

    @property
    def first_windows(self) -> int:
        """The number of vectors with which `load` begins; 0 if it reads none."""
        return 0 if self._given is None else FIRST_WINDOWS

    @property
    def is_settled(self) -> bool:
        """Whether the index works and needs no maintenance."""
        return not self._has_failed and (self._index is None or self._index.is_settled)

    async def is_filled(self) -> bool:
        """Return whether the index is stored outside this process and was already filled."""
        return self._given is not None and await self._given.mark() is not None

    async def load(self, position: int, first: PageVectors, give_way: Callable[[], Awaitable[None]]) -> int:
        """Fill the index with all vectors of the store, in blocks, unless it already contains them.

        Args:
            position: The current position in the store's sequence of changes.
            first: The first block, with `first_windows` vectors. If it has fewer, there are no others.
            give_way: Awaited before each block of vectors is read, so that more urgent work can run first.

        Returns:
            The position up to which the index is filled. The caller must pass all pages that changed later to `apply`.
        """
        index = self._given
        if index is None:
            return position
        if await self._use_store():
            return position
        known = await self._position_of(index, position)
        if known is None:
            await self._fill(index, first, give_way)
            await index.set_mark(_mark(position, await index.size()))
        self.is_kept = await self.is_filled()
        self._index, self._has_failed = index, False
        return position if known is None else known

    async def apply(self, pages: Sequence[int], position: int) -> None:
        """Replace the vectors of changed pages in the index with the vectors in the store.

        Before `load` has finished, this call does nothing. If the index fails, it is not searched until `load` has
        succeeded again.

        Args:
            pages: The number (``seq``) of each changed page.
            position: The last change's position in the store's sequence of changes.
        """
        index = self._index
        if index is None or not pages:
            return
        vectors = await self._store.page_vectors(pages)
        try:
            await index.replace(pages, vectors)
            size = await index.size()
            await index.set_mark(_mark(position, size))
        except StorageError as error:
            logger.warning("the vector index failed; until it works again, searches use only keywords: %s", error)
            self._index, self._has_failed = None, True
            return
        if self._most_in_ram is not None and size > self._most_in_ram:
            await self._use_store()

    async def settle(self, at_most: int | None = None) -> bool:
        """Maintain the index, which can take minutes. Return True if no maintenance is left.

        If the index has more than ``at_most`` vectors, do nothing. None means no limit.
        """
        index = self._index
        if index is not None and (at_most is None or await index.size() <= at_most):
            await index.settle()
        return self.is_settled

    async def nearest(self, query: Vector, k: int) -> list[int]:
        """Return the ``seq`` of the pages with the ``k`` vectors nearest to a query, nearest page first.

        The result is empty until `load` has finished.

        Raises:
            StorageError: The index failed. It is not searched until `load` has succeeded again.
        """
        if self._uses_store:
            found = await self._store.nearest_windows(query, k)
        elif self._index is not None:
            try:
                found = await self._index.search(query, k)
            except StorageError:
                self._index, self._has_failed = None, True
                raise
        else:
            return []
        return list(dict.fromkeys(found.seqs.tolist()))

    async def match(self, query: Vector, seqs: Sequence[int]) -> dict[int, WindowMatch]:
        """Return the similarity of pages to a query, keyed by ``seq``. Pages without vectors are omitted."""
        if not self.is_loaded or not seqs:
            return {}
        hits = None if self._index is None else await self._index.cosines(query, seqs)
        if hits is None:
            hits = await self._compare(query, seqs)
        if not len(hits.seqs):
            return {}
        pages, starts = np.unique(hits.seqs, return_index=True)
        best = np.lexsort((-hits.cosines, hits.seqs))[starts]
        columns = hits.cosines[starts], hits.cosines[best], best - starts
        return dict(zip(pages.tolist(), map(WindowMatch, *(column.tolist() for column in columns)), strict=True))

    async def _use_store(self) -> bool:
        """Switch to searching in the store if the memory is large and the store can search vectors.

        Return whether the store is searched from now on.
        """
        if self._most_in_ram is not None and await self._store.can_search_vectors(self._most_in_ram):
            self._uses_store, self._index, self._given = True, None, None
        return self._uses_store

    async def _compare(self, query: Vector, seqs: Sequence[int]) -> WindowHits:
        """Read the vectors of pages from the store, and return the cosine between each vector and a query."""
        block = await self._store.page_vectors(sorted(seqs))
        if not len(block.seqs):
            return no_hits()
        return WindowHits(block.seqs, parts_of(block.seqs), np.einsum("nd,d->n", block.vectors, query))

    async def _position_of(self, index: VectorIndex, now: int) -> int | None:
        """Return the position in the change sequence up to which an index is filled; None if it must be refilled."""
        mark = await index.mark()
        parsed = None if mark is None else _MARK.fullmatch(mark)
        if parsed is None or int(parsed[1]) > now or int(parsed[2]) != await index.size():
            return None
        return int(parsed[1])

    async def _fill(self, index: VectorIndex, block: PageVectors, give_way: Callable[[], Awaitable[None]]) -> None:
        """Fill the index with ``block`` and with the later blocks of the store."""
        await index.clear()
        limit = FIRST_WINDOWS
        while True:
            if len(block.seqs):
                await index.replace(np.unique(block.seqs).tolist(), block)
            if len(block.seqs) < limit:
                break
            await give_way()
            limit = LOAD_WINDOWS
            block = await self._store.all_vectors(int(block.seqs[-1]), limit)


def _mark(position: int, windows: int) -> str:
    return f"{position}/{windows}"
