"""Exact search in RAM: faiss compares every row, in chunks that never move.

A single growing array would be copied each time it is full, at twice its size, while searches wait. Here a writer
publishes a new tuple of chunks, and a search keeps the one that it started with, so reading takes no lock.
"""

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

CHUNK_ROWS = 16_384
FIRST_CHUNK_ROWS = 256


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Consecutive rows; the first ``count`` never change.

    Attributes:
        rows: Numbers, shape ``(capacity,)``.
        vectors: Unit length, shape ``(capacity, dimension)``.
    """

    rows: NDArray[np.int64]
    vectors: NDArray[np.float32]
    count: int


@dataclass(frozen=True, slots=True)
class _State:
    """What a reader sees.

    Attributes:
        places: Where each row is: chunk times ``CHUNK_ROWS`` plus offset. It may contain rows newer than ``chunks``.
        count: Number of rows.
    """

    chunks: tuple[_Chunk, ...] = ()
    places: dict[int, int] = field(default_factory=dict)
    count: int = 0


class FlatIndex:
    """Exact inner-product index. Construct it in a thread: that imports faiss.

    Args:
        dimension: Length of every vector.
    """

    def __init__(self, dimension: int) -> None:
        import faiss

        self._faiss = faiss
        self._dimension = dimension
        self._state = _State()
        self._writing = threading.Lock()

    def __len__(self) -> int:
        """Return how many rows it holds."""
        return self._state.count

    def add(self, rows: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        """Add vectors.

        Args:
            rows: One number per vector, shape ``(n,)``, each new to the index.
            vectors: Unit length, shape ``(n, dimension)``.

        Raises:
            ValueError: The shapes do not fit, or a number is not new; nothing was added.
        """
        if rows.ndim != 1 or vectors.shape != (len(rows), self._dimension):
            message = f"{rows.shape} rows do not fit {vectors.shape} vectors of dimension {self._dimension}"
            raise ValueError(message)
        numbers = rows.tolist()
        with self._writing:
            state = self._state
            if len(set(numbers)) < len(numbers) or not state.places.keys().isdisjoint(numbers):
                message = "a row to add is in the index already, or named twice; remove it first"
                raise ValueError(message)
            chunks = list(state.chunks)
            places: list[int] = []
            added = 0
            while added < len(numbers):
                if not chunks or chunks[-1].count == CHUNK_ROWS:
                    chunks.append(self._empty_chunk(CHUNK_ROWS if chunks else 0))
                end = min(len(numbers), added + CHUNK_ROWS - chunks[-1].count)
                first_place = (len(chunks) - 1) * CHUNK_ROWS + chunks[-1].count
                places.extend(range(first_place, first_place + end - added))
                chunks[-1] = self._extended(chunks[-1], rows[added:end], vectors[added:end])
                added = end
            # Readers ignore places beyond their own chunks, so one dict serves old and new readers.
            state.places.update(zip(numbers, places, strict=True))
            self._state = _State(tuple(chunks), state.places, state.count + added)

    def remove(self, rows: NDArray[np.int64]) -> None:
        """Remove rows, shape ``(n,)``; unknown numbers are ignored. Copies the chunks they were in."""
        with self._writing:
            state = self._state
            if state.places.keys().isdisjoint(rows.tolist()):
                return
            chunks: list[_Chunk] = []
            for chunk in state.chunks:
                kept = self._without(chunk, rows)
                if chunks and chunks[-1].count + kept.count <= CHUNK_ROWS:
                    kept = self._extended(chunks.pop(), kept.rows[: kept.count], kept.vectors[: kept.count])
                chunks.append(kept)
            # A new dict, because readers may still use the old one with the old chunks.
            self._state = _State(tuple(chunks), _places(chunks), sum(chunk.count for chunk in chunks))

    def search(self, query: NDArray[np.float32], k: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the ``k`` rows nearest to a query of shape ``(dimension,)`` and their cosines, best first."""
        state = self._state
        if k < 1 or not state.count:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
        # This setting is per thread. For one query, more threads spend longer on synchronising than on adding up.
        self._faiss.omp_set_num_threads(1)
        queries = np.ascontiguousarray(query, dtype=np.float32).reshape(1, self._dimension)
        found = [self._search_chunk(queries, chunk, k) for chunk in state.chunks if chunk.count]
        if len(found) == 1:
            return found[0]
        rows = np.concatenate([each for each, _ in found])
        cosines = np.concatenate([each for _, each in found])
        best = np.argsort(-cosines, kind="stable")[:k]
        return rows[best], cosines[best]

    def cosines(self, query: NDArray[np.float32], rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the cosine of the query with each given row, shape ``(n,)``; NaN for unknown rows."""
        state = self._state
        find = state.places.get
        places = np.array([find(row, -1) for row in rows.tolist()], dtype=np.int64)
        chunk_numbers, offsets = np.divmod(places, CHUNK_ROWS)
        result = np.full(len(places), np.nan, dtype=np.float32)
        for number, chunk in enumerate(state.chunks):
            wanted = np.flatnonzero((chunk_numbers == number) & (offsets < chunk.count))
            if len(wanted):
                # Not a matrix product: BLAS would wake a thread per core for it.
                result[wanted] = np.einsum("nd,d->n", chunk.vectors[offsets[wanted]], query)
        return result

    def blocks(self) -> list[tuple[NDArray[np.int64], NDArray[np.float32]]]:
        """Return all current rows, numbers and vectors in blocks, which later writes do not change."""
        return [
            (chunk.rows[: chunk.count], chunk.vectors[: chunk.count]) for chunk in self._state.chunks if chunk.count
        ]

    @property
    def is_settled(self) -> bool:
        """Always: exact search needs no building."""
        return True

    def settle(self) -> None:
        """Do nothing."""

    def _search_chunk(
        self, queries: NDArray[np.float32], chunk: _Chunk, k: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        vectors = chunk.vectors[: chunk.count]
        inner_product = self._faiss.METRIC_INNER_PRODUCT
        cosines, offsets = self._faiss.knn(queries, vectors, min(k, chunk.count), metric=inner_product)
        return chunk.rows[offsets[0]], cosines[0]

    def _empty_chunk(self, capacity: int) -> _Chunk:
        # Untouched pages of a new array take no memory, so room to grow is cheap.
        return _Chunk(np.empty(capacity, dtype=np.int64), np.empty((capacity, self._dimension), dtype=np.float32), 0)

    def _extended(self, chunk: _Chunk, rows: NDArray[np.int64], vectors: NDArray[np.float32]) -> _Chunk:
        """Return the chunk with more rows, in the same arrays while there is room: readers stop before the new rows."""
        count = chunk.count + len(rows)
        room = chunk
        if count > len(chunk.rows):
            room = self._empty_chunk(min(CHUNK_ROWS, max(count, 2 * chunk.count, FIRST_CHUNK_ROWS)))
            room.rows[: chunk.count] = chunk.rows[: chunk.count]
            room.vectors[: chunk.count] = chunk.vectors[: chunk.count]
        room.rows[chunk.count : count] = rows
        room.vectors[chunk.count : count] = vectors
        return _Chunk(room.rows, room.vectors, count)

    def _without(self, chunk: _Chunk, rows: NDArray[np.int64]) -> _Chunk:
        kept = np.flatnonzero(np.isin(chunk.rows[: chunk.count], rows, invert=True))
        if len(kept) == chunk.count:
            return chunk
        return _Chunk(chunk.rows[kept], chunk.vectors[kept], len(kept))


def _places(chunks: Sequence[_Chunk]) -> dict[int, int]:
    def numbered() -> Iterable[tuple[int, int]]:
        for number, chunk in enumerate(chunks):
            start = number * CHUNK_ROWS
            yield from zip(chunk.rows[: chunk.count].tolist(), range(start, start + chunk.count), strict=True)

    return dict(numbered())
