"""An index that is exact as long as that is quick, and approximate from then on."""

import logging
import threading

import numpy as np
from numpy.typing import NDArray

from memoryos_mcp.retrieval.index.flat import FlatIndex
from memoryos_mcp.retrieval.index.ivf import ListsIndex

logger = logging.getLogger(__name__)

# Comparing so many rows takes about as long as embedding the query.
EXACT_ROWS = 50_000


class AdaptiveIndex:
    """Exact up to `EXACT_ROWS`, then approximate. Construct it in a thread: that imports faiss.

    Args:
        dimension: Length of every vector.
        exact_rows: Up to how many rows it is exact.
    """

    def __init__(self, dimension: int, exact_rows: int = EXACT_ROWS) -> None:
        self._dimension = dimension
        self._exact_rows = exact_rows
        self._index: FlatIndex | ListsIndex = FlatIndex(dimension)
        self._building = threading.Lock()
        self._writing = threading.Lock()
        # What was written while lists are being built from what stood there before.
        self._missed: list[tuple[NDArray[np.int64], NDArray[np.float32] | None]] | None = None

    def __len__(self) -> int:
        """Return how many rows it holds."""
        return len(self._index)

    @property
    def is_exact(self) -> bool:
        """Whether every row is compared."""
        return isinstance(self._index, FlatIndex)

    @property
    def is_settled(self) -> bool:
        """Whether it searches as is best for its size."""
        index = self._index
        return not isinstance(index, FlatIndex) or len(index) <= self._exact_rows

    def add(self, rows: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        """Add vectors of unit length, shape ``(n, dimension)``, under numbers that are new to it, shape ``(n,)``."""
        with self._writing:
            self._index.add(rows, vectors)
            if self._missed is not None:
                self._missed.append((rows, vectors))

    def remove(self, rows: NDArray[np.int64]) -> None:
        """Drop rows, shape ``(n,)``; numbers that are not there are passed over."""
        with self._writing:
            self._index.remove(rows)
            if self._missed is not None:
                self._missed.append((rows, None))

    def search(self, query: NDArray[np.float32], k: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the ``k`` rows nearest to a query of shape ``(dimension,)`` and their cosines, best first."""
        return self._index.search(query, k)

    def cosines(self, query: NDArray[np.float32], rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the cosine of the query with each named row, shape ``(n,)``; NaN where the row is not there."""
        return self._index.cosines(query, rows)

    def settle(self) -> None:
        """Go over to approximate search if there are too many rows; takes a minute for a million, searches go on."""
        with self._building:
            exact = self._index
            if self.is_settled or not isinstance(exact, FlatIndex):
                return
            with self._writing:
                self._missed = []
                blocks = exact.blocks()
            try:
                lists = ListsIndex(self._dimension, blocks)
                with self._writing:
                    for rows, vectors in self._missed:
                        lists.remove(rows)
                        if vectors is not None:
                            lists.add(rows, vectors)
                    self._index = lists
            finally:
                self._missed = None
            logger.info("%d vectors are searched approximately from now on", len(lists))
