"""An emulation of the reference's search: pages join segments, and a query finds segments and then their pages.

Rules and numbers are those of the published MemoryOS (Kang et al. 2025, arXiv 2506.06326), without its LLM. A page's
rarest words replace the keywords from the LLM. The mean of a segment's pages replaces its summary, which the original
does not update.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import Page
from memoryos_mcp.embedding import Embedder
from memoryos_mcp.model.segments import jaccard
from memoryos_mcp.text.terms import stems

Vector = NDArray[np.float32]

KEYWORDS_PER_PAGE = 8
# Minimum sum of cosine and keyword overlap for a page to join a segment.
JOINS_FROM = 0.6
SEGMENTS_AT_MOST = 5
PAGE_COSINE_MIN = 0.1
PAGES_AT_MOST = 7


@dataclass(slots=True)
class TopicSegment:
    """A segment of pages.

    Attributes:
        total: Sum of the pages' vectors, shape ``(dimension,)``.
        keywords: All keywords of the pages.
        pages: Indices of the pages in the conversation, ascending.
    """

    total: Vector
    keywords: frozenset[str] = frozenset()
    pages: list[int] = field(default_factory=list)

    def add(self, page: int, vector: Vector, keywords: frozenset[str]) -> None:
        """Add a page."""
        self.total = self.total + vector
        self.keywords |= keywords
        self.pages.append(page)

    def match(self, vector: Vector, keywords: frozenset[str]) -> float:
        """Return the cosine to the mean of the pages plus the Jaccard index of the keywords, -1 to 2.

        Args:
            vector: Unit length, shape ``(dimension,)``.
            keywords: Stems.
        """
        length = float(np.linalg.norm(self.total))
        cosine = float(self.total @ vector) / length if length else 0.0
        return cosine + jaccard(keywords, self.keywords)


def rarest_stems(texts: Sequence[str], count: int = KEYWORDS_PER_PAGE) -> list[frozenset[str]]:
    """Return the rarest content stems of each text, at most ``count``; among equal ones, the first."""
    said = [list(dict.fromkeys(stems(text))) for text in texts]
    seen = Counter(stem for found in said for stem in found)
    return [frozenset(sorted(found, key=seen.__getitem__)[:count]) for found in said]


def segmented(vectors: Vector, keywords: Sequence[frozenset[str]]) -> list[TopicSegment]:
    """Return segments of pages in order of arrival: each page joins the best matching segment or opens one.

    Args:
        vectors: One unit-length row per page, shape ``(n, dimension)``.
        keywords: Keywords of each page.
    """
    segments: list[TopicSegment] = []
    for page, (vector, words) in enumerate(zip(vectors, keywords, strict=True)):
        matches = [segment.match(vector, words) for segment in segments]
        if not matches or max(matches) < JOINS_FROM:
            segments.append(TopicSegment(np.zeros_like(vector)))
            segments[-1].add(page, vector, words)
        else:
            segments[int(np.argmax(matches))].add(page, vector, words)
    return segments


class TwoStages:
    """Finds the best pages of the best segments.

    Args:
        pages: The pages in order of arrival.
        embedder: The model of ``vectors``.
        vectors: One unit-length row per page, shape ``(n, dimension)``.
    """

    def __init__(self, pages: Sequence[Page], embedder: Embedder, vectors: Vector) -> None:
        self._ids = [page.page_id for page in pages]
        self._embedder = embedder
        self._vectors = vectors
        self._segments = segmented(vectors, rarest_stems([page.text for page in pages]))

    async def rank(self, query: str, limit: int) -> list[str]:
        """Return the ids of at most ``limit`` and `PAGES_AT_MOST` pages, best first."""
        vector, words = (await self._embedder.embed_query(query)).vector, frozenset(stems(query))
        best = sorted(self._segments, key=lambda segment: -segment.match(vector, words))[:SEGMENTS_AT_MOST]
        cosines = {page: float(self._vectors[page] @ vector) for segment in best for page in segment.pages}
        near = [page for page, cosine in cosines.items() if cosine >= PAGE_COSINE_MIN]
        return [self._ids[page] for page in sorted(near, key=lambda page: -cosines[page])[: min(limit, PAGES_AT_MOST)]]
