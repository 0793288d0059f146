"""Promotion: hot segments are read for the profile, and the coldest are archived."""

import asyncio
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from memoryos_mcp.consolidation.fallback import stays, takes_over
from memoryos_mcp.consolidation.reading import PAGES_AT_ONCE, Reading
from memoryos_mcp.errors import ModelError, ReplyFormatError
from memoryos_mcp.llm.analysis import Analyst
from memoryos_mcp.model.heat import HeatWeights
from memoryos_mcp.model.pages import Page
from memoryos_mcp.model.segments import Segment
from memoryos_mcp.storage.interface import Store
from memoryos_mcp.storage.values import Accepted, Archived, Lease, PageQuery

PORTIONS_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class _Portion:
    """Pages that are read in one call, in order of arrival, and their segments."""

    pages: Sequence[Page]
    segments: tuple[int, ...]


class Promotion:
    """Reads hot segments, then archives segments beyond the capacity.

    Args:
        fallback: Reads a segment on which the analyst has failed too often; never fails.
        heat_threshold: Heat from which a segment is read.
        capacity_segments: Number of segments kept in mid-term memory.
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
        # Segments of a call that failed: it is not known which of them caused it.
        self._alone: set[int] = set()
        # One step at a time: two would ask about the same segments.
        self._stepping = asyncio.Lock()

    async def has_work(self) -> bool:
        """Whether a segment is hot or due, or there are too many."""
        segments = await self._store.segments()
        return (
            bool(self._hot(segments, self._threshold))
            or len(segments) > self._capacity
            or bool(await self._store.due_segments())
        )

    async def step(self, lease: Lease, *, however_cool: bool = False) -> bool:
        """Read all hot segments, and archive the coldest beyond the capacity; return whether there may be more.

        A segment is read before it is archived, so that nothing it teaches is lost. With ``however_cool`` all count as
        hot.

        Raises:
            ModelError: The analyst gave no answer for a segment, which stays hot.
        """
        async with self._stepping:
            return await self._step(lease, however_cool=however_cool)

    async def _step(self, lease: Lease, *, however_cool: bool) -> bool:
        segments = await self._store.segments()
        surplus = self._surplus(segments)
        unread = [segment.segment for segment in surplus if segment.unanalysed_count]
        threshold = 0.0 if however_cool else self._threshold
        hot = [segment.segment for segment in self._hot(segments, threshold)]
        due = await self._store.due_segments()
        due_at_all = frozenset(due)
        to_read = list(dict.fromkeys([*hot, *unread, *due]))
        slots = asyncio.Semaphore(PORTIONS_AT_ONCE)
        # Due segments were read by the fallback before; reading them with it again would teach nothing new.
        asked = [
            self._promote(lease, portion, slots, may_fall_back=not due_at_all.intersection(portion.segments))
            for portion in await self._portions(to_read, due_at_all)
        ]
        failures = [failure for failure in await asyncio.gather(*asked, return_exceptions=True) if failure is not None]
        if surplus:
            behind = {segment.segment for segment in await self._store.segments() if segment.unanalysed_count}
            read = [segment.segment for segment in surplus if segment.segment not in behind]
            await self._store.commit(lease, Archived(read))
        for failure in failures:
            raise failure
        return bool(to_read)

    async def redo(self, lease: Lease) -> bool:
        """Have the analyst read again what the fallback read; return whether there may be more.

        What the fallback also filed is filed again first. Pages for which the analyst never gives a usable answer keep
        the fallback's reading.

        Raises:
            ModelError: The analyst gave no answer; nothing was changed.
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
            # A segment that always fails must not keep the others from being tried.
            self._redone_up_to = portion[-1].seq
            seqs = [page.seq for page in portion]
            if await stays(failure, partial(self._store.count_attempt, lease, pages=seqs)):
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
        """Return the segments at or above the threshold with unread pages, hottest first."""
        now = self._clock()
        heats = [(segment.heat(now, self._weights), segment) for segment in segments if segment.unanalysed_count]
        hot = [(heat, segment) for heat, segment in heats if heat >= threshold]
        return [segment for _, segment in sorted(hot, key=lambda pair: -pair[0])]

    def _surplus(self, segments: Sequence[Segment]) -> list[Segment]:
        """Return the coldest segments beyond the capacity, but never the newest."""
        count = len(segments) - self._capacity
        if count <= 0:
            return []
        now = self._clock()
        return sorted(segments[:-1], key=lambda segment: segment.heat(now, self._weights))[:count]

    async def _portions(self, segments: Sequence[int], due: Set[int]) -> list[_Portion]:
        """Return the new pages of segments, grouped by call.

        Due segments share calls only with due ones; a segment of a failed call shares none.
        """
        groups: dict[tuple[bool, int], list[Page]] = {}
        for segment in segments:
            pages = await self._store.pages(
                PageQuery(segment=segment, is_unanalysed=True, is_newest=True, limit=PAGES_AT_ONCE)
            )
            groups.setdefault((segment in due, segment if segment in self._alone else 0), []).extend(pages)
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
                    self._alone.update(portion.segments)
                    raise
                is_given_up = await takes_over(failure, partial(self._count_attempt, lease, portion.segments))
                if not is_given_up or not (may_fall_back or isinstance(failure, ReplyFormatError)):
                    raise
                await self._reading.read(lease, portion.segments, portion.pages, self._fallback)
            self._alone.difference_update(portion.segments)

    async def _count_attempt(self, lease: Lease, segments: Sequence[int]) -> int:
        """Count a failed attempt on each segment; return the most that one of them has had."""
        return max([await self._store.count_attempt(lease, segment=segment) for segment in segments])
