"""The protocol of vector indexes. An index is in RAM, in a separate program, or in the database of a store."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from memoryos_mcp.model.segments import Vector
from memoryos_mcp.storage.values import PageVectors, WindowHits


class VectorIndex(Protocol):
    """The windows of one user's pages in one vector space. Safe to share between tasks.

    A window is a section of a page's text that has its own vector. Windows are numbered from 0 in each page. Every
    method raises `StorageError` if the index cannot be read or written. Pages are then found only by keyword search.
    """

    @property
    def is_settled(self) -> bool:
        """Whether a call of `settle` would change nothing."""
        ...

    async def replace(self, pages: Sequence[int], vectors: PageVectors) -> None:
        """Replace all windows of pages.

        Args:
            pages: The ``seq`` of each page.
            vectors: All new windows of these pages. A page without new windows has no windows afterwards.
        """
        ...

    async def clear(self) -> None:
        """Remove all windows, and the text that `set_mark` stored."""
        ...

    async def search(self, query: Vector, k: int) -> WindowHits:
        """Return the ``k`` windows nearest to a query, or all if the index has fewer, the nearest first.

        An approximate index may miss some of them. ``query`` is a unit-length vector, shape ``(dimension,)``.
        """
        ...

    async def cosines(self, query: Vector, pages: Sequence[int]) -> WindowHits | None:
        """Return the cosine between a query and each window of the given pages, sorted by page and window.

        Only the index is read, not the store. Pages that the index does not contain are left out. The result is None if
        the index does not support this method. The caller then reads the vectors from the store.
        """
        ...

    async def size(self) -> int:
        """Return the number of windows."""
        ...

    async def settle(self) -> None:
        """Run maintenance that may take long, such as training. Searches and changes can run meanwhile.

        An index that is stored in files also erases the data of removed windows from the files. Until then,
        `is_settled` is False.
        """
        ...

    async def mark(self) -> str | None:
        """Return the text that `set_mark` stored last; None if no text is stored, for instance in a new index.

        An index that is lost when the process ends always returns None. It is rebuilt each time it is opened.
        """
        ...

    async def set_mark(self, mark: str) -> None:
        """Save a short text that identifies the newest change that the index contains.

        Implementations must first save all earlier changes of the index, and then the text.
        """
        ...


def parts_of(seqs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the position of each window in its page, counted from 0, shape ``(n,)``.

    ``seqs`` contains the page of each window. The windows of a page are consecutive and in order.
    """
    _, firsts, counts = np.unique(seqs, return_index=True, return_counts=True)
    return np.arange(len(seqs), dtype=np.int64) - np.repeat(firsts, counts)
