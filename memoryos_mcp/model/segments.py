"""Segments, which are the topics of mid-term memory, and the score that decides whether pages join a segment."""

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
        keywords: Keywords in lower case, most significant first, without duplicates.
        summary: Summary in a few readable sentences.
    """

    keywords: tuple[str, ...]
    summary: str


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment of mid-term memory, which contains the pages of one topic.

    An analysis reads new pages of the segment to update the profile.

    Attributes:
        segment: Number of the segment, unique within the user's memory.
        keywords: Keywords in lower case, most significant first.
        vector: Mean of the vectors of the segment's pages, scaled to unit length, shape ``(dimension,)``; None if the
            pages have not been embedded yet.
        n_visit: Number of retrievals that returned the segment since the last analysis.
        l_interaction: Number of pages added since the last analysis.
        last_visit: When the segment was last returned by a retrieval; if it never was, when it was created.
        unanalysed_count: Number of pages that no analysis has read yet, including pages added before the last analysis.
        summariser: Name of the analyst that wrote the summary and the keywords, such as the LLM's name.
        project: Name of the project of the segment's pages; None if they have no project.
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
    project: str | None = None

    def heat(self, now: datetime, weights: HeatWeights) -> float:
        """Return the segment's heat at the time ``now``. It decides when the segment is analysed; see `model.heat`."""
        return heat(
            n_visit=self.n_visit,
            l_interaction=self.l_interaction,
            last_visit=self.last_visit,
            now=now,
            weights=weights,
        )

    def prominence(self, now: datetime, mu_s: float) -> float:
        """Return the prominence at the time ``now``, a measure of the segment's size and use (see `model.heat`)."""
        return prominence(
            n_visit=self.n_visit,
            page_count=self.page_count,
            last_visit=self.last_visit,
            now=now,
            mu_s=mu_s,
        )


def jaccard(left: AbstractSet[str], right: AbstractSet[str]) -> float:
    """Return the size of the intersection of two sets, divided by the size of their union; 0 if both are empty."""
    union = len(left | right)
    return len(left & right) / union if union else 0.0


def segment_match(
    segment_vector: Vector | None,
    segment_keywords: AbstractSet[str],
    vector: Vector | None,
    keywords: AbstractSet[str],
) -> float:
    """Return the similarity between pages and a segment: ``cos(segment, page) + jaccard(keywords)``.

    The score is F_score of "Memory OS of AI Agent" (arXiv 2506.06326), section 3.2. ``vector`` and ``keywords``
    describe the pages. Vectors have unit length and shape ``(dimension,)``. If a vector is missing, the cosine of the
    two keyword sets is used instead of the cosine of the vectors.
    """
    if segment_vector is not None and vector is not None:
        cosine = float(segment_vector @ vector)
    else:
        sizes = len(segment_keywords) * len(keywords)
        cosine = len(segment_keywords & keywords) / sizes**0.5 if sizes else 0.0
    return cosine + jaccard(segment_keywords, keywords)


def mean_vector(vectors: Sequence[Vector] | NDArray[np.float32]) -> Vector | None:
    """Return the mean of vectors, scaled to unit length; None if there are no vectors or their mean is zero."""
    if not len(vectors):
        return None
    mean = np.asarray(vectors[0] if len(vectors) == 1 else np.mean(np.asarray(vectors), axis=0), dtype=np.float32)
    length = float(np.linalg.norm(mean))
    return np.asarray(mean / length, dtype=np.float32) if length > 0 else None
