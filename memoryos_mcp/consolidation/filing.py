"""Filing: plans how the pages of a batch are assigned to chains and segments.

The plan is a `Filing`, which is committed in one transaction.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from memoryos_mcp.consolidation.page_vectors import with_vectors
from memoryos_mcp.llm.analysis import Analyst, Organised, Topic
from memoryos_mcp.model.pages import Page
from memoryos_mcp.model.segments import Digest, Segment, Vector, mean_vector, segment_match
from memoryos_mcp.storage.interface import Store
from memoryos_mcp.storage.values import ChainPlan, Filing, PageQuery, SegmentPlan
from memoryos_mcp.text.terms import stem, stems

# A chain or segment is summarised from this many of its newest pages.
DIGEST_PAGES = 60
# Maximum number of pages in a segment, unless one batch has more pages on a topic. A larger segment would have an
# unspecific mean vector and summary, and would match every new page.
SEGMENT_PAGES_MAX = 24
# Maximum number of segments in an analyst's prompt, and their minimum match as a fraction of the threshold.
NEAREST_SEGMENTS = 5
NEAR_SHARE = 0.5


@dataclass(slots=True)
class _Draft:
    """A plan that adds topics to one segment, which may be new."""

    known: Segment | None
    keywords: frozenset[str]
    vector: Vector | None
    topics: list[Topic] = field(default_factory=list)

    def takes(self, topic: Topic) -> bool:
        """Return whether the segment has at most `SEGMENT_PAGES_MAX` pages after the topic's pages are added."""
        pages = sum(len(each.pages) for each in self.topics) + len(topic.pages)
        return (self.known.page_count if self.known else 0) + pages <= SEGMENT_PAGES_MAX


class FilingPlanner:
    """Chooses the chains and segments for the pages of a batch.

    Args:
        store: The user's memory.
        analyst: The analyst that analysed the batch.
        fallback: Name of the analyst that needs no LLM. Its summaries never replace the summaries of another analyst.
        threshold: Minimum match (0 to 2) between a topic and the segment that it joins.
    """

    def __init__(self, store: Store, analyst: Analyst, fallback: str, threshold: float) -> None:
        self._store = store
        self._analyst = analyst
        self._fallback = fallback
        self._threshold = threshold

    async def plan(self, batch: Sequence[Page], organised: Organised, *, is_degraded: bool, is_redo: bool) -> Filing:
        """Return a plan that assigns the pages of a batch to chains and segments.

        Args:
            batch: The pages, in order of arrival.
            organised: The analyst's answer, which contains every page exactly once.
            is_degraded: Whether ``organised`` is from the fallback (without an LLM), because the analyst failed.
            is_redo: Whether the pages were already assigned to chains and segments.
        """
        views = {view.seq: view for view in batch}
        return Filing(
            chains=await self._chains(views, organised),
            segments=await self._segments(views, organised.topics),
            organiser=self._analyst.name,
            is_degraded=is_degraded,
            is_redo=is_redo,
        )

    async def _chains(self, views: dict[int, Page], organised: Organised) -> list[ChainPlan]:
        """Return one `ChainPlan` for each run of consecutive pages in the analyst's answer.

        The first run may continue the chain of the page before the batch.
        """
        first, *others = organised.runs
        plans = [ChainPlan(chain=None, pages=run.pages, summary=run.summary) for run in others]
        before: list[Page] = []
        if organised.is_continuing:
            newest = await self._store.pages(PageQuery(before_seq=first.pages[0], is_newest=True, limit=1))
            before = [page for page in newest if page.project == views[first.pages[0]].project]
        carried = before[0].chain if before else None
        earlier_summary = (before[0].chain_summary or "") if before else ""

        async def pages() -> Sequence[Page]:
            query = PageQuery(chain=carried, is_newest=True, limit=DIGEST_PAGES)
            earlier = await self._store.pages(query) if carried is not None else []
            return _newest(await with_vectors(self._store, earlier), [views[seq] for seq in first.pages])

        summary = await self._analyst.joined_summary(earlier_summary, first, pages)
        return [ChainPlan(chain=carried, pages=first.pages, summary=summary), *plans]

    async def _segments(self, views: dict[int, Page], topics: Sequence[Topic]) -> list[SegmentPlan]:
        """Return a plan for each segment that topics join.

        A topic joins the segment that the analyst chose, or else the best match if it reaches the threshold, or else a
        new segment. All pages of a batch are of one project, and they join only segments of this project.
        """
        project = next(iter(views.values())).project
        drafts = [
            _Draft(known=segment, keywords=_stems(segment.keywords), vector=segment.vector)
            for segment in await self._store.segments()
            if segment.project == project
        ]
        for topic in topics:
            vectors = [vector for seq in topic.pages if (vector := views[seq].vector) is not None]
            vector, keywords = mean_vector(vectors), _stems(topic.digest.keywords)
            draft = _named(drafts, topic) or self._best(drafts, topic, vector, keywords)
            if draft is None:
                draft = _Draft(known=None, keywords=keywords, vector=vector)
                drafts.append(draft)
            draft.topics.append(topic)
        return [await self._segment(draft, views) for draft in drafts if draft.topics]

    def _best(
        self, drafts: Sequence[_Draft], topic: Topic, vector: Vector | None, keywords: frozenset[str]
    ) -> _Draft | None:
        scored = [
            (segment_match(draft.vector, draft.keywords, vector, keywords), draft)
            for draft in drafts
            if draft.takes(topic) and not (draft.known and draft.known.segment in topic.apart_from)
        ]
        score, draft = max(scored, key=lambda pair: pair[0], default=(0.0, None))
        return draft if score >= self._threshold else None

    async def _segment(self, draft: _Draft, views: dict[int, Page]) -> SegmentPlan:
        known = draft.known
        new = sorted((views[seq] for topic in draft.topics for seq in topic.pages), key=lambda view: view.seq)
        earlier: list[Page] | None = None

        async def pages() -> Sequence[Page]:
            nonlocal earlier
            if earlier is None:
                earlier = await self._segment_pages(known)
            return _newest(earlier, new)

        is_fallback = self._analyst.name == self._fallback
        if known is not None and is_fallback and known.summariser != self._fallback:
            digest, summariser = Digest(keywords=known.keywords, summary=known.summary), known.summariser
        else:
            digest, summariser = await self._analyst.joined_digest(known, draft.topics, pages), self._analyst.name
        is_without_vector = known is not None and known.vector is None
        return SegmentPlan(
            segment=known.segment if known else None,
            pages=tuple(view.seq for view in new),
            digest=digest,
            vector=_joined_vector(known, await pages() if is_without_vector else new, new),
            summariser=summariser,
        )

    async def _segment_pages(self, known: Segment | None) -> list[Page]:
        if known is None:
            return []
        pages = await self._store.pages(PageQuery(segment=known.segment, is_newest=True, limit=DIGEST_PAGES))
        return await with_vectors(self._store, pages)


def nearest_segments(segments: Sequence[Segment], batch: Sequence[Page], threshold: float) -> list[Segment]:
    """Return the segments that best match the pages of a batch, best match first.

    The score of a segment is its best match with any page of the batch. Segments with a score below ``NEAR_SHARE *
    threshold`` are left out, and so are full segments. At most `NEAREST_SEGMENTS` segments are returned.
    """
    # Words are compared only for pages without a vector.
    words = [frozenset(stems(view.text) if view.vector is None else ()) for view in batch]

    def nearness(segment: Segment) -> float:
        keywords = _stems(segment.keywords)
        return max(
            segment_match(segment.vector, keywords, view.vector, said) for view, said in zip(batch, words, strict=True)
        )

    opened = [segment for segment in segments if segment.page_count < SEGMENT_PAGES_MAX]
    scored = sorted(((nearness(segment), segment) for segment in opened), key=lambda pair: -pair[0])
    return [segment for score, segment in scored[:NEAREST_SEGMENTS] if score >= NEAR_SHARE * threshold]


def _named(drafts: Sequence[_Draft], topic: Topic) -> _Draft | None:
    """Return the draft (see `_Draft`) for the existing segment that the analyst chose for a topic.

    Return None if the analyst chose no existing segment, or if the segment has no draft or no room for the topic.
    """
    if topic.segment is None:
        return None
    number = topic.segment.segment
    return next((d for d in drafts if d.known and d.known.segment == number and d.takes(topic)), None)


def _newest(earlier: Sequence[Page], new: Sequence[Page]) -> list[Page]:
    added = {view.seq for view in new}
    joined = sorted([*(view for view in earlier if view.seq not in added), *new], key=lambda view: view.seq)
    return joined[-DIGEST_PAGES:]


def _joined_vector(known: Segment | None, pages: Sequence[Page], new: Sequence[Page]) -> Vector | None:
    """Return a segment's vector after pages have joined: the unit-length mean of its page vectors.

    Return None if no new page has a vector. If the segment ``known`` has a vector, this vector is used for all its
    previous pages, and only the ``new`` pages are added. Otherwise, the vectors of all ``pages`` are used.
    """
    vectors = [view.vector for view in new if view.vector is not None]
    if not vectors:
        return None
    if known is None or known.vector is None or not known.page_count:
        return mean_vector([view.vector for view in pages if view.vector is not None])
    weighted = known.vector * np.float32(known.page_count) + np.sum(vectors, axis=0, dtype=np.float32)
    return mean_vector([np.asarray(weighted, dtype=np.float32)])


def _stems(keywords: Sequence[str]) -> frozenset[str]:
    return frozenset(stem(keyword) for keyword in keywords)
