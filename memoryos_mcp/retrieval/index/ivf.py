"""Approximate search in RAM: rows are grouped in lists around centres, and a query searches only the nearest lists.

For memories in which comparing every row takes too long. How many lists a query searches is measured when the index is
built, on queries that are as far from the rows as questions are from pages.
"""

import math
import os
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Block = tuple[NDArray[np.int64], NDArray[np.float32]]

# Number of centres per square root of the number of rows, and the maximum of rows to learn each of them from.
CENTRES_PER_ROOT = 2
ROWS_PER_CENTRE = 39
TRAINING_ROUNDS = 8
# The share of the true nearest 100 that the calibrating queries must find, so that real questions, which lie where no
# page does, find 98 %. A question is at `QUESTION_COSINE` from the page that answers it.
RECALL = 0.995
NEAREST = 100
QUESTION_COSINE = 0.5
CALIBRATING_QUERIES = 64
SEED = 1
# FAISS's map from a row's number to its place, ``DirectMap.Hashtable``.
_HASHED = 2


class ListsIndex:
    """Inverted lists of half-precision rows. Build it in a thread: that takes a minute for a million rows.

    Args:
        dimension: Length of every vector.
        blocks: The first rows, numbers and vectors; enough to learn the centres from.
    """

    def __init__(self, dimension: int, blocks: Sequence[Block]) -> None:
        import faiss

        self._faiss = faiss
        self._lock = threading.Lock()
        count = sum(len(rows) for rows, _ in blocks)
        centres = max(1, int(CENTRES_PER_ROOT * math.sqrt(count)))
        quantizer = faiss.IndexFlatIP(dimension)
        half = faiss.ScalarQuantizer.QT_fp16
        index = faiss.IndexIVFScalarQuantizer(quantizer, dimension, centres, half, faiss.METRIC_INNER_PRODUCT, False)
        index.cp.niter, index.cp.seed = TRAINING_ROUNDS, SEED
        index.cp.max_points_per_centroid = ROWS_PER_CENTRE
        # One core stays free for queries meanwhile.
        faiss.omp_set_num_threads(max(1, (os.cpu_count() or 2) - 1))
        index.train(_sample(blocks, centres * ROWS_PER_CENTRE))
        index.set_direct_map_type(_HASHED)
        for rows, vectors in blocks:
            index.add_with_ids(np.ascontiguousarray(vectors), rows)
        self._index = index
        self._calibrate(blocks)

    def __len__(self) -> int:
        """Return how many rows it holds."""
        return int(self._index.ntotal)

    @property
    def looked_into(self) -> float:
        """The share of the lists that a query searches."""
        return float(self._index.nprobe / self._index.nlist)

    def add(self, rows: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        """Add unit-length vectors, shape ``(n, dimension)``, under numbers new to the index, shape ``(n,)``."""
        with self._lock:
            self._index.add_with_ids(np.ascontiguousarray(vectors), rows)

    def remove(self, rows: NDArray[np.int64]) -> None:
        """Remove rows, shape ``(n,)``; unknown numbers are ignored."""
        with self._lock:
            self._index.remove_ids(self._faiss.IDSelectorArray(len(rows), self._faiss.swig_ptr(rows)))

    def search(self, query: NDArray[np.float32], k: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return about the ``k`` rows nearest to a query of shape ``(dimension,)`` and their cosines, best first."""
        with self._lock:
            self._faiss.omp_set_num_threads(1)
            cosines, rows = self._index.search(np.ascontiguousarray(query, dtype=np.float32)[None], max(k, 1))
        found = rows[0] >= 0
        return rows[0][found][:k], cosines[0][found][:k]

    def cosines(self, query: NDArray[np.float32], rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the cosine of the query with each given row, shape ``(n,)``; NaN for unknown rows."""
        result = np.full(len(rows), np.nan, dtype=np.float32)
        with self._lock:
            for place, row in enumerate(rows.tolist()):
                try:
                    result[place] = self._index.reconstruct(row) @ query
                except RuntimeError:  # it has just been removed
                    continue
        return result

    def _calibrate(self, blocks: Sequence[Block]) -> None:
        """Set how many lists a query searches: as few as reach `RECALL`."""
        queries = _questions(_sample(blocks, CALIBRATING_QUERIES))
        truth = _exact(self._faiss, queries, blocks)
        self._index.nprobe = 4
        while self._index.nprobe < self._index.nlist:
            _, found = self._index.search(queries, NEAREST)
            if recall(truth, found) >= RECALL:
                return
            self._index.nprobe = min(2 * self._index.nprobe, self._index.nlist)


def recall(truth: NDArray[np.int64], found: NDArray[np.int64]) -> float:
    """Return the share of the true rows that was found, mean over queries; both of shape ``(queries, k)``."""
    shares = [len(np.intersect1d(true, got)) / len(true) for true, got in zip(truth, found, strict=True)]
    return float(np.mean(shares))


def _sample(blocks: Sequence[Block], wanted: int) -> NDArray[np.float32]:
    """Return about ``wanted`` vectors, evenly from all blocks, shape ``(n, dimension)``."""
    step = max(1, sum(len(rows) for rows, _ in blocks) // wanted)
    return np.concatenate([vectors[::step] for _, vectors in blocks])


def _questions(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return unit vectors with cosine `QUESTION_COSINE` to the given ones, in random directions."""
    noise = np.random.default_rng(SEED).normal(size=vectors.shape).astype(np.float32)
    noise -= (noise * vectors).sum(axis=1, keepdims=True) * vectors
    noise /= np.linalg.norm(noise, axis=1, keepdims=True)
    return np.ascontiguousarray(QUESTION_COSINE * vectors + math.sqrt(1 - QUESTION_COSINE**2) * noise)


def _exact(faiss: Any, queries: NDArray[np.float32], blocks: Sequence[Block]) -> NDArray[np.int64]:
    """Return the nearest rows of each query, shape ``(queries, NEAREST)``."""
    cosines, rows = [], []
    for numbers, vectors in blocks:
        found, places = faiss.knn(queries, vectors, min(NEAREST, len(numbers)), metric=faiss.METRIC_INNER_PRODUCT)
        cosines.append(found)
        rows.append(numbers[places])
    best = np.argsort(-np.concatenate(cosines, axis=1), axis=1)[:, :NEAREST]
    return np.take_along_axis(np.concatenate(rows, axis=1), best, axis=1)
