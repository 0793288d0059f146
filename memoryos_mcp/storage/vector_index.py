"""The protocol of vector indexes, which are in RAM, in a program of their own, or in the database of a store."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from memoryos_mcp.model.segments import Vector
from memoryos_mcp.storage.values import PageVectors, WindowHits


class VectorIndex(Protocol):
    """The windows of one user's pages in one vector space. Safe to share between tasks.

    A window is a section of a page's text that has its own vector. Windows are numbered from 0 in each page. Every
    method raises `StorageError` if the index cannot be read or written. Keyword search then answers queries alone.
    """

    @property
    def is_settled(self) -> bool:
        """Whether a call of `settle` would change nothing."""
        ...

    async def replace(self, pages: Sequence[int], vectors: PageVectors) -> None:
        """Replace all windows of pages.

        Args:
            pages: The ``seq`` of each page.
            vectors: All windows that these pages have now. A page without windows here has none in the index
                afterwards, even if it had some before.
        """
        ...

    async def clear(self) -> None:
        """Remove all windows and the mark."""
        ...

    async def search(self, query: Vector, k: int) -> WindowHits:
        """Return the ``k`` windows nearest to a query, or all if the index has fewer, the nearest first.

        An approximate index may miss some. ``query`` is a unit-length vector, shape ``(dimension,)``.
        """
        ...

    async def cosines(self, query: Vector, pages: Sequence[int]) -> WindowHits | None:
        """Return the cosine of each window of the given pages, sorted by page and window, without reading the store.

        Unknown pages are left out. The result is None if the index cannot do this; the caller then reads the vectors
        from the store.
        """
        ...

    async def size(self) -> int:
        """Return the number of windows."""
        ...

    async def settle(self) -> None:
        """Do maintenance that may take long, such as training. Searches and changes can run meanwhile.

        An index with files removes from them what is left of removed windows. Until then, it is not settled.
        """
        ...

    async def mark(self) -> str | None:
        """Return the text that `set_mark` stored last; None if there is none, or if the index was created empty.

        An index that does not outlive the process returns None and is filled each time that it is opened.
        """
        ...

    async def set_mark(self, mark: str) -> None:
        """Store a short text, which says up to which change the index contains the store's vectors.

        It must be stored after the changes that were made before it.
        """
        ...


def parts_of(seqs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the position of each window in its page, counted from 0, shape ``(n,)``.

    ``seqs`` contains the page of each window. The windows of a page are consecutive and in order.
    """
    _, firsts, counts = np.unique(seqs, return_index=True, return_counts=True)
    return np.arange(len(seqs), dtype=np.int64) - np.repeat(firsts, counts)
