"""Embedding: computes the vectors of all pages, facts and segments."""

from collections.abc import Sequence
from enum import Enum

from memoryos_mcp.consolidation.page_vectors import with_vectors
from memoryos_mcp.embedding import Embedder, Passage
from memoryos_mcp.model.pages import Page
from memoryos_mcp.model.segments import Segment, mean_vector
from memoryos_mcp.storage.interface import Store
from memoryos_mcp.storage.values import Lease, PageQuery, Vectors

# Limits of one transaction. It is large enough for efficient batches, and small enough that a killed process loses
# little work.
PAGES_PER_STEP = 16
CHARS_PER_STEP = 100_000
ROWS_PER_STEP = 32
SEGMENT_SAMPLE_PAGES = 200


class Remaining(Enum):
    """Whether pages, facts or segments without vectors remain after a step.

    UNKNOWN means that new pages may have arrived during the step.
    """

    SOME = "some"
    UNKNOWN = "unknown"
    NONE = "none"


class Embedding:
    """Adds the missing vectors of pages, facts and segments to a vector space."""

    def __init__(self, store: Store, embedder: Embedder) -> None:
        self._store = store
        self._embedder = embedder

    async def has_work(self) -> bool:
        """Return whether any page, fact or segment has no vector."""
        return (await self._store.due_work()).has_unembedded

    async def step(self, lease: Lease) -> Remaining:
        """Embed a batch of pages without vectors.

        If there are no such pages, embed a batch of facts. If there are no facts without vectors either, embed one
        segment.

        Returns:
            Whether anything without vectors remains; see `Remaining`.

        Raises:
            ModelError: The model failed. Nothing was written.
        """
        unembedded = await self._store.pages(PageQuery(is_unembedded=True, limit=PAGES_PER_STEP))
        if unembedded:
            pages = _bounded(unembedded)
            windows = await self._embedder.embed_pages(
                [Passage(page.user_input, page.agent_response) for page in pages]
            )
            by_seq = {page.seq: parts for page, parts in zip(pages, windows, strict=True)}
            await self._store.commit(lease, Vectors(pages=by_seq))
            is_last_batch = len(pages) == len(unembedded) < PAGES_PER_STEP
            return Remaining.UNKNOWN if is_last_batch else Remaining.SOME
        left = await self._store.unembedded(ROWS_PER_STEP)
        if left.facts:
            vectors = await self._embedder.embed([fact.text for fact in left.facts])
            by_fact = {fact.fact: vector for fact, vector in zip(left.facts, vectors, strict=True)}
            await self._store.commit(lease, Vectors(facts=by_fact))
            return Remaining.SOME
        return Remaining.SOME if await self._embed_segment(lease, left.segments) else Remaining.NONE

    async def _embed_segment(self, lease: Lease, segments: Sequence[Segment]) -> bool:
        """Embed the first segment that has embedded pages. Return whether one was found.

        The segment's vector is the mean of the vectors of its newest pages.
        """
        for segment in segments:
            newest = PageQuery(segment=segment.segment, is_newest=True, limit=SEGMENT_SAMPLE_PAGES)
            pages = await self._store.pages(newest)
            vector = mean_vector([v.vector for v in await with_vectors(self._store, pages) if v.vector is not None])
            if vector is not None:
                await self._store.commit(lease, Vectors(segments={segment.segment: vector}))
                return True
        return False


def _bounded(pages: Sequence[Page]) -> list[Page]:
    """Return the leading pages that have at most `CHARS_PER_STEP` characters in total, but at least the first page."""
    kept: list[Page] = []
    chars = 0
    for page in pages:
        chars += len(page.user_input) + len(page.agent_response)
        if kept and chars > CHARS_PER_STEP:
            break
        kept.append(page)
    return kept
