"""Promotion: extracts traits from hot segments (those with enough heat), and archives the coldest segments."""

import asyncio
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from memoryos_mcp.consolidation.fallback import becomes_final, should_fall_back
from memoryos_mcp.consolidation.reading import PAGES_AT_ONCE, Reading
from memoryos_mcp.errors import ModelError, ReplyFormatError
from memoryos_mcp.llm.analysis import Analyst
from memoryos_mcp.model.heat import HeatWeights
from memoryos_mcp.model.pages import Page
from memoryos_mcp.model.segments import Segment
from memoryos_mcp.storage.interface import Store
from memoryos_mcp.storage.values import Accepted, Archived, DueWork, Lease, PageQuery

PORTIONS_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class _Portion:
    """The pages that are read in one LLM call, in order of arrival, and the segments to which they belong."""

    pages: Sequence[Page]
    segments: tuple[int, ...]


class Promotion:
    """Extracts traits from all segments that are hot or due, then archives the coldest segments beyond the capacity.

    A segment is due if the fallback has read its pages and the analyst should read them again.

    Args:
        analyst: The analyst that is tried first, usually the LLM.
        fallback: The analyst that needs no LLM. It reads a segment's pages if ``analyst`` has failed too often.
        heat_threshold: A segment is hot if it has at least this heat.
        capacity_segments: Maximum number of segments in mid-term memory.
    """

    def __init__(
        self,
        store: Store,
        analyst: Analyst,
        fallback: Analyst,
        *,
        heat_threshold: float,
        weights: HeatWeights,
        capacity_segments: int,
        clock: Callable[[], datetime],
        reading: Reading,
    ) -> None:
        self._store = store
        self._analyst = analyst
        self._fallback = fallback
        self._threshold = heat_threshold
        self._weights = weights
        self._capacity = capacity_segments
        self._clock = clock
        self._reading = reading
        self._redone_up_to = 0
        # Segments of a call that failed. Each gets a call of its own, because any of them may have caused the failure.
        self._unshared: set[int] = set()
        # Without this lock, two parallel steps would read the same segments.
        self._stepping = asyncio.Lock()

    async def has_work(self, due: DueWork) -> bool:
        """Return whether `step` has work to do. ``due`` is the current result of `Store.due_work`.

        It has work if a segment is hot, if a segment is due, or if there are more segments than the capacity. The pages
        of a due segment must be read again, regardless of its heat.
        """
        if not self.may_have_work(due):
            return False
        if due.segments > self._capacity or await self._store.due_segments():
            return True
        return bool(self._hot(await self._store.segments(is_unanalysed=True), self._threshold))

    def may_have_work(self, due: DueWork) -> bool:
        """Return False if `step` certainly has no work. ``due`` does not tell how hot the segments are."""
        return due.has_unanalysed or due.segments > self._capacity

    async def step(self, lease: Lease, *, ignores_heat: bool = False) -> bool:
        """Extract traits from all hot and due segments, and archive the coldest segments beyond the capacity.

        The pages of a segment are read before it is archived. With ``ignores_heat``, all segments count as hot.

        Returns:
            Whether to call again for further segments.

        Raises:
            ModelError: The analyst failed on a segment. A later step will try this segment again.
        """
        async with self._stepping:
            segments = await self._store.segments()
            surplus = self._surplus(segments)
            unread = [segment.segment for segment in surplus if segment.unanalysed_count]
            threshold = 0.0 if ignores_heat else self._threshold
            hot = [segment.segment for segment in self._hot(segments, threshold)]
            due_in_order = await self._store.due_segments()
            due = frozenset(due_in_order)
            to_read = list(dict.fromkeys([*hot, *unread, *due_in_order]))
            slots = asyncio.Semaphore(PORTIONS_AT_ONCE)
            # The fallback has already read the due segments, so it would extract nothing new from them.
            readings = [
                self._promote(lease, portion, slots, may_fall_back=due.isdisjoint(portion.segments))
                for portion in await self._portions(to_read, due)
            ]
            results = await asyncio.gather(*readings, return_exceptions=True)
            if surplus:
                behind = {segment.segment for segment in await self._store.segments() if segment.unanalysed_count}
                read = [segment.segment for segment in surplus if segment.segment not in behind]
                await self._store.commit(lease, Archived(read))
            for failure in filter(None, results):
                raise failure
            return bool(to_read)

    async def redo(self, lease: Lease) -> bool:
        """Let the LLM extract facts and traits again from pages that only the fallback (without an LLM) has read.

        This step skips pages that the fallback has assigned to segments, because `Organising.redo` processes them. If
        the LLM repeatedly gives unusable answers, the facts and traits that the fallback extracted become final.

        Returns:
            True if pages were read; there may be more of them. False if there were no such pages.

        Raises:
            ModelError: The LLM failed. Profile and knowledge were not changed.
        """
        pages = await self._degraded(self._redone_up_to)
        if not pages and self._redone_up_to:
            pages = await self._degraded(0)
        if not pages:
            return False
        segment = pages[0].segment or 0
        together = [page for page in pages if page.segment == pages[0].segment]
        portion = self._reading.portion(together)
        try:
            await self._reading.read(lease, (segment,), portion, self._analyst)
        except ModelError as failure:
            # The next attempt starts after these pages, so that a segment that always fails does not block others.
            self._redone_up_to = portion[-1].seq
            seqs = [page.seq for page in portion]
            if await becomes_final(failure, partial(self._store.count_attempt, lease, pages=seqs)):
                await self._store.commit(lease, Accepted(seqs))
            raise
        self._redone_up_to = 0
        return True

    async def _degraded(self, after_seq: int) -> list[Page]:
        query = PageQuery(
            is_degraded=True, not_organised_by=self._fallback.name, after_seq=after_seq, limit=PAGES_AT_ONCE
        )
        return await self._store.pages(query)

    def _hot(self, segments: Sequence[Segment], threshold: float) -> list[Segment]:
        """Return the segments that have unread pages and a heat of at least ``threshold``, hottest first."""
        now = self._clock()
        heats = [(segment.heat(now, self._weights), segment) for segment in segments if segment.unanalysed_count]
        hot = [(heat, segment) for heat, segment in heats if heat >= threshold]
        return [segment for _, segment in sorted(hot, key=lambda pair: -pair[0])]

    def _surplus(self, segments: Sequence[Segment]) -> list[Segment]:
        """Return the coldest segments in excess of the capacity.

        The newest segment is never among them.
        """
        count = len(segments) - self._capacity
        if count <= 0:
            return []
        now = self._clock()
        return sorted(segments[:-1], key=lambda segment: segment.heat(now, self._weights))[:count]

    async def _portions(self, segments: Sequence[int], due: Set[int]) -> list[_Portion]:
        """Return the unread pages of the segments, grouped into one portion for each LLM call.

        ``due`` contains the segments that the analyst should read again. They never share a call with other segments.
        If a call has failed, its segments are read in separate calls.
        """
        groups: dict[tuple[bool, int], list[Page]] = {}
        for segment in segments:
            pages = await self._store.pages(
                PageQuery(segment=segment, is_unanalysed=True, is_newest=True, limit=PAGES_AT_ONCE)
            )
            groups.setdefault((segment in due, segment if segment in self._unshared else 0), []).extend(pages)
        portions: list[_Portion] = []
        for pages in groups.values():
            left = pages
            while left:
                portion = self._reading.portion(left)
                left = left[len(portion) :]
                in_order = sorted(portion, key=lambda page: page.seq)
                portions.append(_Portion(in_order, tuple(dict.fromkeys(page.segment or 0 for page in portion))))
        return portions

    async def _promote(self, lease: Lease, portion: _Portion, slots: asyncio.Semaphore, *, may_fall_back: bool) -> None:
        async with slots:
            try:
                await self._reading.read(lease, portion.segments, portion.pages, self._analyst)
            except ModelError as failure:
                if len(portion.segments) > 1 and isinstance(failure, ReplyFormatError):
                    self._unshared.update(portion.segments)
                    raise
                is_given_up = await should_fall_back(failure, partial(self._count_attempt, lease, portion.segments))
                if not is_given_up or not (may_fall_back or isinstance(failure, ReplyFormatError)):
                    raise
                await self._reading.read(lease, portion.segments, portion.pages, self._fallback)
            self._unshared.difference_update(portion.segments)

    async def _count_attempt(self, lease: Lease, segments: Sequence[int]) -> int:
        return max([await self._store.count_attempt(lease, segment=segment) for segment in segments])
