"""Merges token vectors, and converts them to codes with four bits per coordinate, to store them in less space.

Late interaction compares a query with every vector of a page, so the codes are the largest part of the stored index. A
code rounds each coordinate to one of 16 levels, which are the same for all vectors. Therefore, vectors must have unit
length, and their coordinates must be similar in size.
"""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

LEVELS = 16
# The levels extend to this many times the root mean square of the coordinates, on either side of 0. Larger coordinates
# (about 3 in 100) are clipped.
REACH_RMS = 2.5
# BLAS computes a larger matrix product with one thread per core. While other programs use the cores, its threads wait
# for each other in busy loops, and a query takes several times as long.
PRODUCT_MAX = 250_000


def merge(vectors: NDArray[np.float32], groups: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return the mean direction of the vectors of each group, shape ``(g, m)``.

    The result has unit length, or is 0 if the vectors of a group cancel out.

    Args:
        vectors: Vectors of unit length, shape ``(n, m)``.
        groups: The number of each vector's group, shape ``(n,)``; -1 for a vector without a group.
    """
    sums = np.zeros((groups.max(initial=-1) + 1, vectors.shape[1]), dtype=np.float32)
    is_kept = groups >= 0
    np.add.at(sums, groups[is_kept], vectors[is_kept])
    lengths = np.sqrt(np.einsum("nd,nd->n", sums, sums))
    # The minimum avoids a division by 0.
    return np.asarray(sums / np.maximum(lengths, 1e-6)[:, None], dtype=np.float32)


def encode(vectors: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Return the codes of unit-length vectors. A byte contains the codes of two coordinates.

    Vectors of shape ``(n, m)`` have codes of shape ``(n, m / 2)``. ``m`` must be even.
    """
    levels = np.floor(vectors / _step(vectors.shape[1])) + LEVELS // 2
    nibbles = np.clip(levels, 0, LEVELS - 1).astype(np.uint8)
    return np.asarray(nibbles[:, 0::2] << 4 | nibbles[:, 1::2], dtype=np.uint8)


def cosines(codes: NDArray[np.uint8], vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the approximate cosine between each encoded vector and each of ``vectors``, shape ``(n, q)``, float32.

    Args:
        codes: Codes from `encode`, shape ``(n, m / 2)``.
        vectors: Unit-length vectors, shape ``(q, m)``.
    """
    # A byte is 16 times its first level, plus its second level. Extracting only the first level saves time.
    even, odd = vectors[:, 0::2].T, vectors[:, 1::2].T
    by_first, by_byte = np.ascontiguousarray(even / LEVELS - odd), np.ascontiguousarray(odd)
    found = np.empty((len(codes), len(vectors)), dtype=np.float32)
    # Each block also fits in the CPU's cache, which makes the computation twice as fast.
    for rows in _blocks(len(codes), by_byte.size):
        block = codes[rows]
        found[rows] = (block & 0xF0).astype(np.float32) @ by_first + block.astype(np.float32) @ by_byte
    middle = (LEVELS - 1) / 2 * vectors.sum(axis=1)
    return np.asarray((found - middle) * _step(vectors.shape[1]), dtype=np.float32)


def _blocks(count: int, multiplications_per_row: int) -> Iterator[slice]:
    rows = max(1, PRODUCT_MAX // multiplications_per_row)
    return (slice(start, start + rows) for start in range(0, count, rows))


def _step(dimension: int) -> float:
    """Return the distance between two neighbouring levels of a coordinate, for vectors of this dimension."""
    return 2 * REACH_RMS / LEVELS / math.sqrt(dimension)
