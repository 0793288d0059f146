"""A vector index that searches exactly while it is small, and approximately when it is large."""

import logging
import threading
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from memoryos_mcp.retrieval.index.flat import FlatIndex
from memoryos_mcp.retrieval.index.ivf import BuildCancelledError, IvfIndex

logger = logging.getLogger(__name__)

# Comparing this many rows takes about as long as embedding the query.
EXACT_ROWS = 50_000


class AdaptiveIndex:
    """Finds the rows nearest to a query. A row is a unit-length vector with a unique number.

    The search is exact until `settle` is called with more than ``exact_rows`` rows, and approximate afterwards. One
    thread may search while another thread adds rows.
    """

    def __init__(self, dimension: int, exact_rows: int = EXACT_ROWS) -> None:
        self._dimension = dimension
        self._exact_rows = exact_rows
        self._index: FlatIndex | IvfIndex = FlatIndex(dimension)
        self._building = threading.Lock()
        self._writing = threading.Lock()
        # Changes made while an approximate index is being built, otherwise None. A removal has no vectors.
        self._missed: list[tuple[NDArray[np.int64], NDArray[np.float32] | None]] | None = None

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._index)

    @property
    def is_exact(self) -> bool:
        """Whether a search compares the query with every row."""
        return isinstance(self._index, FlatIndex)

    @property
    def is_settled(self) -> bool:
        """Whether the current kind of search suits the number of rows. If not, call `settle`."""
        index = self._index
        return not isinstance(index, FlatIndex) or len(index) <= self._exact_rows

    def add(self, rows: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        """Add unit-length vectors, shape ``(n, dimension)``, with new row numbers, shape ``(n,)``."""
        with self._writing:
            self._index.add(rows, vectors)
            if self._missed is not None:
                self._missed.append((rows, vectors))

    def remove(self, rows: NDArray[np.int64]) -> None:
        """Remove the rows with the given numbers, shape ``(n,)``; unknown numbers are ignored."""
        with self._writing:
            self._index.remove(rows)
            if self._missed is not None:
                self._missed.append((rows, None))

    def search(self, query: NDArray[np.float32], k: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the numbers and the cosines of the ``k`` rows nearest to a query, nearest row first.

        The result is shorter if the index has fewer rows. ``query`` is a unit-length vector of shape ``(dimension,)``.
        """
        return self._index.search(query, k)

    def cosines(self, query: NDArray[np.float32], rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the cosine between the query and each of the given rows, shape ``(n,)``; NaN for unknown rows."""
        return self._index.cosines(query, rows)

    def settle(self, is_cancelled: Callable[[], bool] = lambda: False) -> None:
        """Switch to approximate search if there are too many rows for exact search.

        For a million rows, this takes about a minute. Call it in a worker thread; the index can be searched and changed
        meanwhile. If ``is_cancelled`` returns True, the index stays as it is.
        """
        with self._building:
            exact = self._index
            if self.is_settled or not isinstance(exact, FlatIndex):
                return
            with self._writing:
                self._missed = []
                blocks = exact.blocks()
            try:
                lists = IvfIndex(self._dimension, blocks, is_cancelled)
                with self._writing:
                    for rows, vectors in self._missed:
                        lists.remove(rows)
                        if vectors is not None:
                            lists.add(rows, vectors)
                    self._index = lists
            except BuildCancelledError:
                return
            finally:
                self._missed = None
            logger.info("the vector index is large, so its %d vectors are now searched approximately", len(lists))
