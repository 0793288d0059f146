"""The page index: the vectors of one user's pages, in RAM."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import anyio.to_thread
import numpy as np
from numpy.typing import NDArray

from memoryos_mcp.model.segments import Vector
from memoryos_mcp.retrieval.index.adaptive import AdaptiveIndex
from memoryos_mcp.storage.interface import Store
from memoryos_mcp.storage.values import PageVectors

# Number of windows that are read at once. It is small enough not to delay a query noticeably.
LOAD_WINDOWS = 2_000
# A window's number in the index consists of its page's ``seq`` and, in the low bits, its position in the page.
PART_BITS = 16


@dataclass(frozen=True, slots=True)
class WindowMatch:
    """The similarity of a page's windows to a query.

    Attributes:
        first: Cosine of the first window. It contains the beginning of the page, and so most of the user's words.
        best: Cosine of the window nearest to the query.
        best_part: Position of the nearest window in the page, from 0.
    """

    first: float
    best: float
    best_part: int


class PageIndex:
    """A vector index of the windows of one user's pages. It is empty until `load` has finished.

    Args:
        store: The store from which the vectors are read.
        dimension: Length of every vector.
    """

    def __init__(self, store: Store, dimension: int) -> None:
        self._store = store
        self._dimension = dimension
        self._index: AdaptiveIndex | None = None
        self._parts: dict[int, int] = {}

    @property
    def is_loaded(self) -> bool:
        """Whether `load` has finished."""
        return self._index is not None

    @property
    def is_settled(self) -> bool:
        """Whether a call of `settle` would change nothing."""
        return self._index is None or self._index.is_settled

    async def load(self, give_way: Callable[[], Awaitable[None]]) -> None:
        """Read all vectors from the store, in blocks.

        Afterwards, the caller must pass the pages that changed in the meantime to `apply`. ``give_way`` is awaited
        before each block is read, so that more urgent work can run first.
        """
        index = AdaptiveIndex(self._dimension)
        after = 0
        await give_way()
        while len((block := await self._store.all_vectors(after, LOAD_WINDOWS)).seqs):
            self._put(index, block)
            after = int(block.seqs[-1])
            await give_way()
        self._index = index

    async def apply(self, pages: Sequence[int]) -> None:
        """Replace the vectors of the given pages with those in the store. Does nothing before `load` has finished."""
        if self._index is not None and pages:
            block = await self._store.page_vectors(pages)
            known = [_rows(seq, self._parts.pop(seq)) for seq in pages if seq in self._parts]
            if known:
                self._index.remove(np.concatenate(known))
            self._put(self._index, block)

    async def settle(self) -> None:
        """Switch to approximate search if the index is too large for exact search. The work runs in a thread."""
        if self._index is not None:
            await anyio.to_thread.run_sync(self._index.settle)

    def nearest(self, query: Vector, k: int) -> NDArray[np.int64]:
        """Return the pages of the ``k`` windows nearest to a query, as ``seq`` numbers, nearest window first.

        A page with several such windows occurs several times. The result is empty until `load` has finished.
        """
        if self._index is None:
            return np.empty(0, dtype=np.int64)
        rows, _ = self._index.search(query, k)
        return rows >> PART_BITS

    def match(self, query: Vector, seqs: Sequence[int]) -> dict[int, WindowMatch]:
        """Return the similarity of each page to a query, by the page's ``seq``. Pages without vectors are omitted."""
        found = [(seq, parts) for seq in seqs if (parts := self._parts.get(seq))]
        if self._index is None or not found:
            return {}
        cosines = self._index.cosines(query, np.concatenate([_rows(seq, parts) for seq, parts in found]))
        matches: dict[int, WindowMatch] = {}
        start = 0
        for seq, parts in found:
            own = cosines[start : start + parts]
            start += parts
            best = int(own.argmax())
            if np.isfinite(own[best]):  # NaN if another task has just removed the page
                matches[seq] = WindowMatch(float(own[0]), float(own[best]), best)
        return matches

    def _put(self, index: AdaptiveIndex, block: PageVectors) -> None:
        """Add the windows of pages that are not in the index yet."""
        if not len(block.seqs):
            return
        pages, firsts, counts = np.unique(block.seqs, return_index=True, return_counts=True)
        parts = np.arange(len(block.seqs), dtype=np.int64) - np.repeat(firsts, counts)
        index.add((block.seqs << PART_BITS) | parts, block.vectors)
        self._parts.update(zip(pages.tolist(), counts.tolist(), strict=True))


def _rows(seq: int, parts: int) -> NDArray[np.int64]:
    return (seq << PART_BITS) | np.arange(parts, dtype=np.int64)
