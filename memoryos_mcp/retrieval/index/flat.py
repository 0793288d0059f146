"""Exact search in RAM: faiss compares the query with every row. A row is a vector with a number.

Rows are stored in chunks that never move, because enlarging a single array would copy it and delay searches. Each write
replaces the tuple of chunks with a new tuple. A search uses the tuple that was current when it started, so it needs no
lock.
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
    """A chunk of rows; the first ``count`` rows are in use and never change.

    Attributes:
        rows: Row numbers, shape ``(capacity,)``.
        vectors: Unit-length vectors of the rows, shape ``(capacity, dimension)``.
    """

    rows: NDArray[np.int64]
    vectors: NDArray[np.float32]
    count: int


@dataclass(frozen=True, slots=True)
class _State:
    """A snapshot of the index.

    Attributes:
        places: Maps each row number to a position: the number of the chunk times ``CHUNK_ROWS``, plus the offset in the
            chunk. The mapping may contain rows that were added after ``chunks`` was made.
        count: Number of rows.
    """

    chunks: tuple[_Chunk, ...] = ()
    places: dict[int, int] = field(default_factory=dict)
    count: int = 0


class FlatIndex:
    """A vector index with exact search by inner product. For its methods, see `AdaptiveIndex`."""

    def __init__(self, dimension: int) -> None:
        self._dimension = dimension
        self._state = _State()
        self._writing = threading.Lock()

    def __len__(self) -> int:
        return self._state.count

    def add(self, rows: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        if rows.ndim != 1 or vectors.shape != (len(rows), self._dimension):
            message = (
                f"'rows' has shape {rows.shape} and 'vectors' has shape {vectors.shape}; "
                f"pass shapes (n,) and (n, {self._dimension})"
            )
            raise ValueError(message)
        numbers = rows.tolist()
        with self._writing:
            state = self._state
            if len(set(numbers)) < len(numbers) or not state.places.keys().isdisjoint(numbers):
                message = (
                    "'rows' contains a number twice or a number that is already in the index; "
                    "pass each number once, and remove existing rows first"
                )
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
        state = self._state
        if k < 1 or not state.count:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
        import faiss

        # This setting is per thread. For one query, several threads are slower than one.
        faiss.omp_set_num_threads(1)
        queries = np.ascontiguousarray(query, dtype=np.float32).reshape(1, self._dimension)
        found = [self._search_chunk(queries, chunk, k) for chunk in state.chunks if chunk.count]
        if len(found) == 1:
            return found[0]
        rows = np.concatenate([each for each, _ in found])
        cosines = np.concatenate([each for _, each in found])
        best = np.argsort(-cosines, kind="stable")[:k]
        return rows[best], cosines[best]

    def cosines(self, query: NDArray[np.float32], rows: NDArray[np.int64]) -> NDArray[np.float32]:
        state = self._state
        find = state.places.get
        places = np.array([find(row, -1) for row in rows.tolist()], dtype=np.int64)
        chunk_numbers, offsets = np.divmod(places, CHUNK_ROWS)
        result = np.full(len(places), np.nan, dtype=np.float32)
        for number, chunk in enumerate(state.chunks):
            wanted = np.flatnonzero((chunk_numbers == number) & (offsets < chunk.count))
            if len(wanted):
                # For a matrix product, BLAS would wake one thread per core, so `einsum` is used.
                result[wanted] = np.einsum("nd,d->n", chunk.vectors[offsets[wanted]], query)
        return result

    def blocks(self) -> list[tuple[NDArray[np.int64], NDArray[np.float32]]]:
        """Return all rows as blocks, each with row numbers and vectors. Later writes do not change these blocks."""
        return [
            (chunk.rows[: chunk.count], chunk.vectors[: chunk.count]) for chunk in self._state.chunks if chunk.count
        ]

    def _search_chunk(
        self, queries: NDArray[np.float32], chunk: _Chunk, k: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        import faiss

        vectors = chunk.vectors[: chunk.count]
        cosines, offsets = faiss.knn(queries, vectors, min(k, chunk.count), metric=faiss.METRIC_INNER_PRODUCT)
        return chunk.rows[offsets[0]], cosines[0]

    def _empty_chunk(self, capacity: int) -> _Chunk:
        # The system allocates memory on first use, so an empty chunk takes none.
        return _Chunk(np.empty(capacity, dtype=np.int64), np.empty((capacity, self._dimension), dtype=np.float32), 0)

    def _extended(self, chunk: _Chunk, rows: NDArray[np.int64], vectors: NDArray[np.float32]) -> _Chunk:
        """Return a new chunk with the rows of ``chunk`` and additional rows at the end.

        The new chunk shares the arrays of the old chunk if they are large enough. Searches in the old chunk ignore the
        additional rows.
        """
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
