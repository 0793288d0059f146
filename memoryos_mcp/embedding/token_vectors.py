"""Converts token vectors to codes with four bits per coordinate, to store them in less space.

Late interaction compares a query with every token of a page, so the codes are the largest part of the stored index. A
code rounds each coordinate to one of 16 levels, which are the same for all vectors. Therefore, vectors must have unit
length, and their coordinates must be similar in size. The projection in `bundled` makes the coordinates similar in
size.
"""

import math

import numpy as np
from numpy.typing import NDArray

LEVELS = 16
# The levels extend to this many times the root mean square of the coordinates, on either side of 0. Larger coordinates
# (about 3 in 100) are clipped.
REACH_RMS = 2.5
BLOCK_ROWS = 2_048


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
    # Each block fits in the CPU's cache, which makes the computation twice as fast.
    for start in range(0, len(codes), BLOCK_ROWS):
        block = codes[start : start + BLOCK_ROWS]
        firsts = (block & 0xF0).astype(np.float32)
        found[start : start + BLOCK_ROWS] = firsts @ by_first + block.astype(np.float32) @ by_byte
    middle = (LEVELS - 1) / 2 * vectors.sum(axis=1)
    return np.asarray((found - middle) * _step(vectors.shape[1]), dtype=np.float32)


def _step(dimension: int) -> float:
    """Return the distance between two neighbouring levels of a coordinate, for vectors of this dimension."""
    return 2 * REACH_RMS / LEVELS / math.sqrt(dimension)
