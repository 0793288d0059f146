"""The page index: one user's page vectors in RAM."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from memoryos_mcp.segments import Vector
from memoryos_mcp.storage import PageVectors, Store
from memoryos_mcp.vectors import VectorIndex

LOAD_WINDOWS = 10_000
# A window's row is its page's ``seq`` and, in the low bits, its place in the page: no table from one to the other.
PART_BITS = 16
PART_MASK = (1 << PART_BITS) - 1


class PageIndex:
    """Windows of pages by meaning. Empty until loaded; the store stays the truth."""

    def __init__(self, store: Store, make_index: Callable[[], VectorIndex]) -> None:
        self._store = store
        self._make_index = make_index
        self._index: VectorIndex | None = None
        self._parts: dict[int, int] = {}

    @property
    def is_loaded(self) -> bool:
        """Whether every vector that was on disk at opening can be found."""
        return self._index is not None

    async def load(self) -> None:
        """Read all vectors from the store, in pieces; what changes meanwhile is applied afterwards by the caller."""
        index = self._make_index()
        after = 0
        while entries := await self._store.all_vectors(after, LOAD_WINDOWS):
            self._put(index, entries)
            after = entries[-1].seq
        self._index = index

    async def apply(self, pages: Sequence[int]) -> None:
        """Take over the named pages' vectors as they now stand in the store; does nothing before `load`."""
        if self._index is not None and pages:
            self._put(self._index, await self._store.page_vectors(pages))

    def search(self, query: Vector, k: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
        """Return ``(seqs, parts, cosines)`` of the ``k`` nearest windows, best first; each of shape ``(found,)``."""
        if self._index is None:
            empty = np.empty(0, dtype=np.int64)
            return empty, empty, np.empty(0, dtype=np.float32)
        rows, cosines = self._index.search(query, k)
        return rows >> PART_BITS, rows & PART_MASK, cosines

    def best_windows(self, query: Vector, seqs: Sequence[int]) -> dict[int, tuple[int, float]]:
        """Return ``(part, cosine)`` of the best window of each named page that has one."""
        if self._index is None:
            return {}
        counts = np.array([self._parts.get(seq, 0) for seq in seqs], dtype=np.int64)
        owners = np.repeat(np.asarray(seqs, dtype=np.int64), counts)
        firsts = np.repeat(np.cumsum(counts) - counts, counts)
        parts = np.arange(len(owners), dtype=np.int64) - firsts
        cosines = self._index.cosines(query, (owners << PART_BITS) | parts)
        best: dict[int, tuple[int, float]] = {}
        for seq, part, cosine in zip(owners.tolist(), parts.tolist(), cosines.tolist(), strict=True):
            if cosine == cosine and (seq not in best or cosine > best[seq][1]):
                best[seq] = (part, cosine)
        return best

    def _put(self, index: VectorIndex, entries: Sequence[PageVectors]) -> None:
        known = [entry.seq for entry in entries if entry.seq in self._parts]
        if known:
            index.remove(np.concatenate([_rows(seq, self._parts.pop(seq)) for seq in known]))
        entries = [entry for entry in entries if len(entry.vectors)]
        if entries:
            rows = np.concatenate([_rows(entry.seq, len(entry.vectors)) for entry in entries])
            index.add(rows, np.concatenate([entry.vectors for entry in entries]))
            self._parts.update((entry.seq, len(entry.vectors)) for entry in entries)


def _rows(seq: int, parts: int) -> NDArray[np.int64]:
    return (seq << PART_BITS) | np.arange(parts, dtype=np.int64)
