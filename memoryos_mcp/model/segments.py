"""Segments and chains: the values of mid-term memory, and the score by which pages join a segment."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from memoryos_mcp.model.heat import HeatWeights, heat, prominence

Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Digest:
    """Keywords and summary of a set of pages.

    Attributes:
        keywords: Lower-case, most telling first, without repeats.
        summary: A few readable sentences.
    """

    keywords: tuple[str, ...]
    summary: str


@dataclass(frozen=True, slots=True)
class Segment:
    """Pages of one topic.

    Attributes:
        segment: Its number within the user's memory.
        keywords: Lower-case, most telling first.
        vector: Unit-length mean of its pages' vectors, shape ``(dimension,)``; None until they are embedded.
        n_visit: Retrievals since the last analysis.
        l_interaction: Pages added since the last analysis.
        last_visit: When it was last retrieved, or created.
        unanalysed_count: Pages from which profile and knowledge have not been learned yet.
        summariser: Name of the analyst that wrote summary and keywords.
    """

    segment: int
    summary: str
    keywords: tuple[str, ...]
    vector: Vector | None
    n_visit: int
    l_interaction: int
    last_visit: datetime
    page_count: int
    unanalysed_count: int
    summariser: str

    def heat(self, now: datetime, weights: HeatWeights) -> float:
        """Return its heat at ``now``."""
        return heat(
            n_visit=self.n_visit,
            l_interaction=self.l_interaction,
            last_visit=self.last_visit,
            now=now,
            weights=weights,
        )

    def prominence(self, now: datetime, mu_s: float) -> float:
        """Return its prominence at ``now``."""
        return prominence(
            n_visit=self.n_visit,
            page_count=self.page_count,
            last_visit=self.last_visit,
            now=now,
            mu_s=mu_s,
        )


def jaccard(left: AbstractSet[str], right: AbstractSet[str]) -> float:
    """Return the number of common words divided by the number of all words, 0 if both sets are empty."""
    union = len(left | right)
    return len(left & right) / union if union else 0.0


def segment_match(
    segment_vector: Vector | None,
    segment_keywords: AbstractSet[str],
    vector: Vector | None,
    keywords: AbstractSet[str],
) -> float:
    """Return how well pages fit a segment: ``cos(segment, page) + jaccard(keywords)``.

    The score is F_score of "Memory OS of AI Agent" (arXiv 2506.06326), section 3.2. Vectors are of unit length, shape
    ``(dimension,)``. If one is missing, the cosine of the two keyword sets is used instead.
    """
    if segment_vector is not None and vector is not None:
        cosine = float(segment_vector @ vector)
    else:
        sizes = len(segment_keywords) * len(keywords)
        cosine = len(segment_keywords & keywords) / sizes**0.5 if sizes else 0.0
    return cosine + jaccard(segment_keywords, keywords)


def mean_vector(vectors: Sequence[Vector] | NDArray[np.float32]) -> Vector | None:
    """Return the unit-length mean, shape ``(dimension,)``, or None if there is nothing to average."""
    if not len(vectors):
        return None
    mean = np.asarray(vectors[0] if len(vectors) == 1 else np.mean(np.asarray(vectors), axis=0), dtype=np.float32)
    length = float(np.linalg.norm(mean))
    return np.asarray(mean / length, dtype=np.float32) if length > 0 else None
