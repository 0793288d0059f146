"""The vector index ``faiss``: keeps all vectors in RAM. They are read from the store when the memory is opened."""

import importlib
import threading
from collections.abc import Callable, Collection, Sequence
from functools import cache
from typing import TypeVar

import anyio.to_thread
import numpy as np
from numpy.typing import NDArray

from memoryos_mcp.model.segments import Vector
from memoryos_mcp.retrieval.index.adaptive import AdaptiveIndex
from memoryos_mcp.retrieval.index.interface import parts_of
from memoryos_mcp.storage.values import PageVectors, WindowHits

# A row's number consists of the page's ``seq`` and, in the low bits, the window's number in the page.
PART_BITS = 16
PART_MASK = (1 << PART_BITS) - 1
# A smaller index is searched without a thread, because handing the work over takes longer than the search.
SEARCHED_AT_ONCE = 12_000

T = TypeVar("T")


@cache
def _load() -> None:
    importlib.import_module("faiss")


class FaissIndex:
    """A vector index in RAM. Implements `VectorIndex`."""

    def __init__(self, dimension: int) -> None:
        self._dimension = dimension
        self._index = AdaptiveIndex(dimension)
        # Number of windows of each page.
        self._parts: dict[int, int] = {}

    @property
    def is_settled(self) -> bool:
        """Whether the index needs no maintenance at present; see `VectorIndex.is_settled`."""
        return self._index.is_settled

    async def replace(self, pages: Sequence[int], vectors: PageVectors) -> None:
        """Replace all vectors of the given pages; see `VectorIndex.replace`."""
        if not _load.cache_info().currsize:
            # Searches use faiss. Its import would block the event loop, and the first answer need not wait for it.
            await anyio.to_thread.run_sync(_load)
        if len(rows := self._rows({*pages})):
            self._index.remove(rows)
        for seq in pages:
            self._parts.pop(seq, None)
        if len(vectors.seqs):
            self._index.add((vectors.seqs << PART_BITS) | parts_of(vectors.seqs), vectors.vectors)
            seqs, counts = np.unique(vectors.seqs, return_counts=True)
            self._parts.update(zip(seqs.tolist(), counts.tolist(), strict=True))

    async def clear(self) -> None:
        """Remove all vectors; see `VectorIndex.clear`."""
        self._index, self._parts = AdaptiveIndex(self._dimension), {}

    async def search(self, query: Vector, k: int) -> WindowHits:
        """Return the ``k`` windows (page sections) nearest to a query, nearest first; see `VectorIndex.search`."""
        rows, cosines = await self._run(lambda: self._index.search(query, k))
        return WindowHits(rows >> PART_BITS, rows & PART_MASK, cosines)

    async def cosines(self, query: Vector, pages: Sequence[int]) -> WindowHits:
        """Return the cosine between a query and each vector of the given pages; see `VectorIndex.cosines`."""
        rows = self._rows(pages)
        cosines = await self._run(lambda: self._index.cosines(query, rows))
        is_known = np.isfinite(cosines)  # NaN if another task has just removed the page
        rows = rows[is_known]
        return WindowHits(rows >> PART_BITS, rows & PART_MASK, cosines[is_known])

    def _rows(self, pages: Collection[int]) -> NDArray[np.int64]:
        """Return the number of each row of the given pages, ascending. Pages without vectors are left out."""
        known = [seq for seq in sorted(pages) if seq in self._parts]
        seqs = np.repeat(np.array(known, dtype=np.int64), [self._parts[seq] for seq in known])
        return (seqs << PART_BITS) | parts_of(seqs)

    async def _run(self, search: Callable[[], T]) -> T:
        return search() if len(self._index) <= SEARCHED_AT_ONCE else await anyio.to_thread.run_sync(search)

    async def size(self) -> int:
        """Return the number of vectors in the index."""
        return len(self._index)

    async def settle(self) -> None:
        """Do pending maintenance, such as building an approximate index; see `VectorIndex.settle`."""
        is_cancelled = threading.Event()
        try:
            await anyio.to_thread.run_sync(self._index.settle, is_cancelled.is_set)
        finally:
            is_cancelled.set()  # otherwise the thread would use a core for seconds after the memory was closed

    async def mark(self) -> str | None:
        """Return None, because the index is lost when the process ends."""
        return None

    async def set_mark(self, mark: str) -> None:
        """Do nothing, because the index is lost when the process ends."""
