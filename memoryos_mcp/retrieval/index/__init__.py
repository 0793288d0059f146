"""Vector indexes: the nearest rows to a query, in RAM. A cache; the store is the source of truth."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class VectorIndex(Protocol):
    """Unit-length rows, each under its number. Safe to search from one thread while another adds."""

    def __len__(self) -> int:
        """Return how many rows it holds."""
        ...

    def add(self, rows: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        """Add vectors.

        Args:
            rows: One number per vector, shape ``(n,)``, each new to the index.
            vectors: Unit length, shape ``(n, dimension)``.
        """
        ...

    def remove(self, rows: NDArray[np.int64]) -> None:
        """Remove rows, shape ``(n,)``; unknown numbers are ignored."""
        ...

    @property
    def is_settled(self) -> bool:
        """Whether `settle` has nothing to do."""
        ...

    def settle(self) -> None:
        """Do the slow work that keeps searches quick; meant for a thread, while others search and add."""
        ...

    def search(self, query: NDArray[np.float32], k: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the ``k`` rows nearest to a query of shape ``(dimension,)`` and their cosines, best first."""
        ...

    def cosines(self, query: NDArray[np.float32], rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the cosine of the query with each given row, shape ``(n,)``; NaN for unknown rows."""
        ...
