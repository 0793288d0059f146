"""The page index: one user's page vectors in RAM."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import anyio.to_thread
import numpy as np
from numpy.typing import NDArray

from memoryos_mcp.model.segments import Vector
from memoryos_mcp.retrieval.index import VectorIndex
from memoryos_mcp.storage.interface import Store
from memoryos_mcp.storage.values import PageVectors

# Size of one piece: small enough not to delay a query noticeably.
LOAD_WINDOWS = 2_000
# A window's row is its page's ``seq`` and, in the low bits, its place in the page. So no mapping table is needed.
PART_BITS = 16


@dataclass(frozen=True, slots=True)
class WindowMatch:
    """How near a page's windows are to a query.

    Attributes:
        windows: Number of windows.
        first: Cosine of the first window, which contains the beginning of the page, mostly the user's words.
        best: Cosine of the nearest window.
        best_part: The nearest window, from 0.
    """

    windows: int
    first: float
    best: float
    best_part: int


class PageIndex:
    """Semantic search for windows of pages. Empty until loaded; the store is the source of truth."""

    def __init__(self, store: Store, make_index: Callable[[], VectorIndex]) -> None:
        self._store = store
        self._make_index = make_index
        self._index: VectorIndex | None = None
        self._parts: dict[int, int] = {}

    @property
    def is_loaded(self) -> bool:
        """Whether every vector that was on disk at opening can be found."""
        return self._index is not None

    @property
    def is_settled(self) -> bool:
        """Whether `settle` has nothing to do."""
        return self._index is None or self._index.is_settled

    async def load(self, give_way: Callable[[], Awaitable[None]]) -> None:
        """Read all vectors from the store, in pieces; the caller applies later changes afterwards.

        Args:
            give_way: Awaited before each piece.
        """
        index = self._make_index()
        after = 0
        await give_way()
        while len((block := await self._store.all_vectors(after, LOAD_WINDOWS)).seqs):
            self._put(index, block)
            after = int(block.seqs[-1])
            await give_way()
        self._index = index

    async def apply(self, pages: Sequence[int]) -> None:
        """Replace the vectors of pages by those in the store; does nothing before `load`."""
        if self._index is not None and pages:
            block = await self._store.page_vectors(pages)
            known = [_rows(seq, self._parts.pop(seq)) for seq in pages if seq in self._parts]
            if known:
                self._index.remove(np.concatenate(known))
            self._put(self._index, block)

    async def settle(self) -> None:
        """Have the index do the slow work that keeps searches quick, in a thread."""
        if self._index is not None:
            await anyio.to_thread.run_sync(self._index.settle)

    def nearest(self, query: Vector, k: int) -> NDArray[np.int64]:
        """Return the pages of the ``k`` windows nearest to a query, best first, with repeats."""
        if self._index is None:
            return np.empty(0, dtype=np.int64)
        rows, _ = self._index.search(query, k)
        return rows >> PART_BITS

    def match(self, query: Vector, seqs: Sequence[int]) -> dict[int, WindowMatch]:
        """Return how near the windows of each given page are; pages without windows are left out."""
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
                matches[seq] = WindowMatch(parts, float(own[0]), float(own[best]), best)
        return matches

    def _put(self, index: VectorIndex, block: PageVectors) -> None:
        """Add the windows of pages that are not in the index."""
        if not len(block.seqs):
            return
        pages, firsts, counts = np.unique(block.seqs, return_index=True, return_counts=True)
        parts = np.arange(len(block.seqs), dtype=np.int64) - np.repeat(firsts, counts)
        index.add((block.seqs << PART_BITS) | parts, block.vectors)
        self._parts.update(zip(pages.tolist(), counts.tolist(), strict=True))


def _rows(seq: int, parts: int) -> NDArray[np.int64]:
    return (seq << PART_BITS) | np.arange(parts, dtype=np.int64)
