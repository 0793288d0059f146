"""Token codes: the vectors of a text's word pieces, four bits per coordinate.

Late interaction compares a query with every word piece of a page, so these are most of what an index weighs. A code
keeps a vector's direction only: each coordinate as one of 15 levels of the vector's largest.
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray

LEVEL_MAX = 7
_OFFSET = LEVEL_MAX + 1


def encode(vectors: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Return the codes of vectors of an even dimension: shape ``(n, dimension)`` in, ``(n, dimension / 2)`` out."""
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    levels = np.rint(LEVEL_MAX * (vectors / np.where(largest > 0, largest, 1))).astype(np.int8) + _OFFSET
    nibbles = levels.astype(np.uint8)
    return np.asarray(nibbles[:, 0::2] << 4 | nibbles[:, 1::2], dtype=np.uint8)


def decode(codes: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return the unit vectors that codes stand for, shape ``(n, 2 * bytes)``, float32."""
    levels = np.take(_pairs(), codes, axis=0).reshape(len(codes), 2 * codes.shape[1])
    lengths = np.sqrt(np.einsum("nd,nd->n", levels, levels))
    return np.asarray(levels / np.maximum(lengths, 1)[:, None], dtype=np.float32)


@cache
def _pairs() -> NDArray[np.float32]:
    """Return the two levels that each byte holds, shape ``(256, 2)``."""
    values = np.arange(256)
    return np.stack([(values >> 4) - _OFFSET, (values & 15) - _OFFSET], axis=1).astype(np.float32)
