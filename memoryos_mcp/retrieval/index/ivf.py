"""Approximate search in RAM: rows are grouped into lists around centres, and a query searches only the nearest lists.

This is an inverted file (IVF) index. The number of lists to search is calibrated when the index is built. Calibration
uses artificial queries that are as far from the rows as questions usually are from pages.
"""

import math
import os
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Block = tuple[NDArray[np.int64], NDArray[np.float32]]

# Number of centres divided by the square root of the number of rows.
CENTRES_PER_ROOT = 2
# Number of training rows for each centre.
ROWS_PER_CENTRE = 39
TRAINING_ROUNDS = 8
# Share of their true nearest rows that the artificial queries must find. Real questions then find 98 %.
RECALL = 0.995
NEAREST = 100
# Typical cosine between a question and the page that answers it.
QUESTION_COSINE = 0.5
CALIBRATING_QUERIES = 64
SEED = 1
# ``DirectMap.Hashtable`` of FAISS, which maps a row's number to its place.
_HASHED = 2


class BuildCancelledError(Exception):
    """Ends the build of an index that nobody needs any more."""


class IvfIndex:
    """A vector index of inverted lists with half-precision vectors. For its methods, see `AdaptiveIndex`.

    Args:
        dimension: Length of every vector.
        blocks: Numbers and vectors of the first rows. The centres of the lists are learned from these vectors.
        is_cancelled: Called between the parts of the build.

    Raises:
        BuildCancelledError: ``is_cancelled`` returned True.
    """

    def __init__(self, dimension: int, blocks: Sequence[Block], is_cancelled: Callable[[], bool]) -> None:
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
        # One core stays free for queries during the build.
        faiss.omp_set_num_threads(max(1, (os.cpu_count() or 2) - 1))
        index.train(_sample(blocks, centres * ROWS_PER_CENTRE))
        index.set_direct_map_type(_HASHED)
        for rows, vectors in blocks:
            if is_cancelled():
                raise BuildCancelledError
            index.add_with_ids(np.ascontiguousarray(vectors), rows)
        self._index = index
        self._calibrate(blocks)

    def __len__(self) -> int:
        return int(self._index.ntotal)

    def add(self, rows: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        with self._lock:
            self._index.add_with_ids(np.ascontiguousarray(vectors), rows)

    def remove(self, rows: NDArray[np.int64]) -> None:
        with self._lock:
            self._index.remove_ids(self._faiss.IDSelectorArray(len(rows), self._faiss.swig_ptr(rows)))

    def search(self, query: NDArray[np.float32], k: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        with self._lock:
            self._faiss.omp_set_num_threads(1)
            cosines, rows = self._index.search(np.ascontiguousarray(query, dtype=np.float32)[None], max(k, 1))
        found = rows[0] >= 0
        return rows[0][found][:k], cosines[0][found][:k]

    def cosines(self, query: NDArray[np.float32], rows: NDArray[np.int64]) -> NDArray[np.float32]:
        result = np.full(len(rows), np.nan, dtype=np.float32)
        with self._lock:
            for place, row in enumerate(rows.tolist()):
                try:
                    result[place] = self._index.reconstruct(row) @ query
                except RuntimeError:  # the row is unknown
                    continue
        return result

    def _calibrate(self, blocks: Sequence[Block]) -> None:
        """Set the number of lists that each query searches.

        The number is doubled until artificial queries find at least the share `RECALL` of their true nearest rows.
        """
        queries = _questions(_sample(blocks, CALIBRATING_QUERIES))
        truth = _exact(self._faiss, queries, blocks)
        self._index.nprobe = 4
        while self._index.nprobe < self._index.nlist:
            _, found = self._index.search(queries, NEAREST)
            if recall(truth, found) >= RECALL:
                return
            self._index.nprobe = min(2 * self._index.nprobe, self._index.nlist)


def recall(truth: NDArray[np.int64], found: NDArray[np.int64]) -> float:
    """Return the share of the true nearest rows that a search found, as a mean over all queries.

    Both arrays contain row numbers and have shape ``(queries, k)``.
    """
    shares = [len(np.intersect1d(true, got)) / len(true) for true, got in zip(truth, found, strict=True)]
    return float(np.mean(shares))


def _sample(blocks: Sequence[Block], wanted: int) -> NDArray[np.float32]:
    """Return about ``wanted`` vectors, taken at regular intervals from all blocks, shape ``(n, dimension)``."""
    step = max(1, sum(len(rows) for rows, _ in blocks) // wanted)
    return np.concatenate([vectors[::step] for _, vectors in blocks])


def _questions(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return artificial queries, one for each vector.

    Each query is a random unit vector whose cosine to its vector is `QUESTION_COSINE`.
    """
    noise = np.random.default_rng(SEED).normal(size=vectors.shape).astype(np.float32)
    noise -= (noise * vectors).sum(axis=1, keepdims=True) * vectors
    noise /= np.linalg.norm(noise, axis=1, keepdims=True)
    return np.ascontiguousarray(QUESTION_COSINE * vectors + math.sqrt(1 - QUESTION_COSINE**2) * noise)


def _exact(faiss: Any, queries: NDArray[np.float32], blocks: Sequence[Block]) -> NDArray[np.int64]:
    """Return the numbers of the rows nearest to each query, found by exact search, shape ``(queries, NEAREST)``."""
    cosines, rows = [], []
    for numbers, vectors in blocks:
        found, places = faiss.knn(queries, vectors, min(NEAREST, len(numbers)), metric=faiss.METRIC_INNER_PRODUCT)
        cosines.append(found)
        rows.append(numbers[places])
    best = np.argsort(-np.concatenate(cosines, axis=1), axis=1)[:, :NEAREST]
    return np.take_along_axis(np.concatenate(rows, axis=1), best, axis=1)
