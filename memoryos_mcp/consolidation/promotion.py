"""Promotion: hot segments are read for profile and knowledge, and the coldest make room."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime

from memoryos_mcp.consolidation.views import page_views
from memoryos_mcp.heat import HeatWeights
from memoryos_mcp.knowledge import About
from memoryos_mcp.llm import Analyst
from memoryos_mcp.pages import Page
from memoryos_mcp.segments import Segment
from memoryos_mcp.storage import Lease, Store

SEGMENTS_AT_ONCE = 4
PAGES_AT_ONCE = 200
ATTEMPTS = 5


class Promotion:
    """Reads what is hot, then archives what is beyond the capacity."""

    def __init__(
        self,
        store: Store,
        analyst: Analyst,
        *,
        heat_threshold: float,
        weights: HeatWeights,
        capacity_segments: int,
        clock: Callable[[], datetime],
    ) -> None:
        self._store = store
        self._analyst = analyst
        self._threshold = heat_threshold
        self._weights = weights
        self._capacity = capacity_segments
        self._clock = clock

    async def has_work(self) -> bool:
        """Whether a segment is hot or one too many."""
        segments = await self._store.segments()
        return bool(self._hot(segments)) or len(segments) > self._capacity

    async def step(self, lease: Lease) -> bool:
        """Promote every hot segment, several at once, and archive the coldest over the capacity.

        A segment is analysed before it is archived, so that nothing it teaches is lost.

        Returns:
            Whether there may be more.

        Raises:
            ModelError: The analyst had no answer; the segments stay hot.
        """
        segments = await self._store.segments()
        surplus = self._surplus(segments)
        unread = [segment for segment in surplus if segment.unanalysed_count]
        to_read = {segment.segment: segment for segment in [*self._hot(segments), *unread]}
        slots = asyncio.Semaphore(SEGMENTS_AT_ONCE)
        asked = [self._promote(lease, segment, slots) for segment in to_read.values()]
        for failure in await asyncio.gather(*asked, return_exceptions=True):
            if failure is not None:
                raise failure
        if surplus:
            behind = {segment.segment for segment in await self._store.segments() if segment.unanalysed_count}
            read = [segment.segment for segment in surplus if segment.segment not in behind]
            await self._store.archive_segments(lease, read)
        return bool(to_read)

    def _hot(self, segments: Sequence[Segment]) -> list[Segment]:
        """Return the segments at or over the threshold with something new to read, hottest first."""
        now = self._clock()
        heats = [(segment.heat(now, self._weights), segment) for segment in segments if segment.unanalysed_count]
        hot = [(heat, segment) for heat, segment in heats if heat >= self._threshold]
        return [segment for _, segment in sorted(hot, key=lambda pair: -pair[0])]

    def _surplus(self, segments: Sequence[Segment]) -> list[Segment]:
        """Return the coldest segments beyond the capacity; the newest is never one of them."""
        count = len(segments) - self._capacity
        if count <= 0:
            return []
        now = self._clock()
        return sorted(segments[:-1], key=lambda segment: segment.heat(now, self._weights))[:count]

    async def _promote(self, lease: Lease, segment: Segment, slots: asyncio.Semaphore) -> None:
        async with slots:
            for _ in range(ATTEMPTS):
                pages = await self._store.segment_pages(segment.segment, only_unanalysed=True, limit=PAGES_AT_ONCE)
                if not pages or await self._read(lease, segment.segment, pages):
                    return

    async def _read(self, lease: Lease, segment: int, pages: Sequence[Page]) -> bool:
        """Learn from pages and commit; False if profile or knowledge changed meanwhile, so that it is asked anew."""
        traits = await self._store.traits()
        facts = [*await self._store.facts(About.USER), *await self._store.facts(About.ASSISTANT)]
        lessons = await self._analyst.learn(await page_views(self._store, pages), traits, facts)
        seqs = [page.seq for page in pages]
        return await self._store.commit_lessons(lease, segment, seqs, lessons, traits)
