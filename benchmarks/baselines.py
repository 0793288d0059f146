"""Baselines: BM25 and dense vectors, on the same pages as the server.

They use the server's stop words, with which plain BM25 is best, and its bundled model.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import Page
from memoryos_mcp.embedding import Embedder
from memoryos_mcp.text.terms import STOP_WORDS

BM25_K1, BM25_B = 0.9, 0.4
_TOKEN = re.compile(r"[a-z0-9]+")


class Baseline(Protocol):
    """A ranking of one conversation's pages."""

    async def rank(self, query: str, limit: int) -> list[str]:
        """Return the ids of at most ``limit`` pages, best first."""
        ...


class Bm25:
    """BM25 over the whole text of a page: lower-case ``[a-z0-9]+`` without stop words, no stemming.

    A page without a word of the query is not found. Among equal pages, the earlier one is first.
    """

    def __init__(self, pages: Sequence[Page]) -> None:
        self._ids = [page.page_id for page in pages]
        counts = [Counter(tokens(page.text)) for page in pages]
        lengths = np.array([sum(count.values()) for count in counts], dtype=np.float64)
        self._norms = BM25_K1 * (1 - BM25_B + BM25_B * lengths / max(lengths.mean(), 1))
        self._counts = counts
        self._page_counts = Counter(token for count in counts for token in count)

    async def rank(self, query: str, limit: int) -> list[str]:
        """Return the ids of at most ``limit`` pages, best first."""
        scores = np.zeros(len(self._ids))
        for token in tokens(query):
            seen = self._page_counts[token]
            rarity = np.log(1 + (len(self._ids) - seen + 0.5) / (seen + 0.5))
            times = np.array([count[token] for count in self._counts], dtype=np.float64)
            scores += rarity * times * (BM25_K1 + 1) / (times + self._norms)
        order = np.argsort(-scores, kind="stable")[:limit]
        return [self._ids[place] for place in order.tolist() if scores[place] > 0]


class Dense:
    """Cosine of page vectors.

    Args:
        pages: The pages to search.
        embedder: The model of ``vectors``.
        vectors: One unit-length row per page, shape ``(n, dimension)``.
    """

    def __init__(self, pages: Sequence[Page], embedder: Embedder, vectors: NDArray[np.float32]) -> None:
        self._ids = [page.page_id for page in pages]
        self._embedder = embedder
        self._vectors = vectors

    async def rank(self, query: str, limit: int) -> list[str]:
        """Return the ids of at most ``limit`` pages, best first."""
        vector = (await self._embedder.embed_query(query)).vector
        order = np.argsort(-(self._vectors @ vector), kind="stable")[:limit]
        return [self._ids[place] for place in order.tolist()]


def tokens(text: str) -> list[str]:
    """Return the words of a text in order, with repeats, as BM25 sees them."""
    return [token for token in _TOKEN.findall(text.lower()) if token not in STOP_WORDS]
