"""Promotion: hot segments are read for profile and knowledge, and the coldest make room."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from memoryos_mcp.consolidation.corrections import Embed, counting_against, without_corrected
from memoryos_mcp.consolidation.organising import ATTEMPTS_BEFORE_STAND_IN
from memoryos_mcp.consolidation.reconciling import reconcile
from memoryos_mcp.consolidation.views import page_views
from memoryos_mcp.errors import BudgetSpentError, ModelError, ReplyFormatError
from memoryos_mcp.heat import HeatWeights
from memoryos_mcp.knowledge import About, CorrectedFact, Fact, Lessons
from memoryos_mcp.llm import Analyst, PageView
from memoryos_mcp.pages import Page
from memoryos_mcp.profile import Trait
from memoryos_mcp.segments import Segment
from memoryos_mcp.storage import Store
from memoryos_mcp.storage.values import Learning, Lease

SEGMENTS_AT_ONCE = 16
PAGES_AT_ONCE = 200
COMMITS_TRIED = 5


@dataclass(frozen=True, slots=True)
class _Learned:
    """What pages taught.

    Attributes:
        traits: The profile that it was computed from.
        corrected: What the reader was told is wrong, and so has not reported.
    """

    lessons: Lessons
    traits: Sequence[Trait]
    corrected: Sequence[CorrectedFact] = ()


class Promotion:
    """Reads what is hot, then archives what is beyond the capacity.

    Args:
        store: The user's memory.
        analyst: Who is asked.
        stand_in: Who reads a segment that the analyst has failed on too often; never fails.
        heat_threshold: Heat from which a segment is read.
        weights: The constants of heat.
        capacity_segments: Segments kept in mid-term memory.
        clock: Returns the present.
        embed: Tells by what they mean whether two facts are one; None leaves it to their words.
    """

    def __init__(
        self,
        store: Store,
        analyst: Analyst,
        stand_in: Analyst,
        *,
        heat_threshold: float,
        weights: HeatWeights,
        capacity_segments: int,
        clock: Callable[[], datetime],
        embed: Embed | None = None,
    ) -> None:
        self._store = store
        self._analyst = analyst
        self._stand_in = stand_in
        self._threshold = heat_threshold
        self._weights = weights
        self._capacity = capacity_segments
        self._clock = clock
        self._embed = embed
        self._redone_up_to = 0
        # Several readings may end together, and each changes what the next is fitted to.
        self._committing = asyncio.Lock()

    async def has_work(self) -> bool:
        """Whether a segment is hot, due or one too many."""
        segments = await self._store.segments()
        return (
            bool(self._hot(segments, self._threshold))
            or len(segments) > self._capacity
            or bool(await self._store.due_segments())
        )

    async def step(self, lease: Lease, *, however_cool: bool = False) -> bool:
        """Promote every hot segment, several at once, and archive the coldest over the capacity.

        A segment is analysed before it is archived, so that nothing it teaches is lost.

        Args:
            lease: The right to write.
            however_cool: Whether every segment counts as hot.

        Returns:
            Whether there may be more.

        Raises:
            ModelError: The analyst had no answer to a segment; it stays hot.
        """
        segments = await self._store.segments()
        surplus = self._surplus(segments)
        unread = [segment.segment for segment in surplus if segment.unanalysed_count]
        threshold = 0.0 if however_cool else self._threshold
        hot = [segment.segment for segment in self._hot(segments, threshold)]
        due = await self._store.due_segments()
        to_read = dict.fromkeys([*hot, *unread, *due])
        slots = asyncio.Semaphore(SEGMENTS_AT_ONCE)
        # What is due was read by the stand-in before: another reading by it would teach nothing new.
        asked = [self._promote(lease, segment, slots, may_stand_in=segment not in due) for segment in to_read]
        failures = [failure for failure in await asyncio.gather(*asked, return_exceptions=True) if failure is not None]
        if surplus:
            behind = {segment.segment for segment in await self._store.segments() if segment.unanalysed_count}
            read = [segment.segment for segment in surplus if segment.segment not in behind]
            await self._store.archive_segments(lease, read)
        for failure in failures:
            raise failure
        return bool(to_read)

    async def redo(self, lease: Lease) -> bool:
        """Have the analyst read again what the stand-in read in its place, and it alone: what it filed is filed first.

        What the analyst answers to, but never usably, is left as it is.

        Returns:
            Whether there may be more.

        Raises:
            ModelError: The analyst has no answer yet; all stays as it is.
        """
        pages = await self._store.degraded_readings(self._stand_in.name, self._redone_up_to, PAGES_AT_ONCE)
        if not pages and self._redone_up_to:
            pages = await self._store.degraded_readings(self._stand_in.name, 0, PAGES_AT_ONCE)
        if not pages:
            return False
        segment = pages[0].segment or 0
        together = [page for page in pages if page.segment == pages[0].segment]
        portion = together[: self._analyst.portion(together)]
        try:
            await self._read(lease, segment, portion, self._analyst)
        except ModelError as failure:
            # A segment that always fails must not keep the others from being tried.
            self._redone_up_to = portion[-1].seq
            seqs = [page.seq for page in portion]
            is_answered = isinstance(failure, ReplyFormatError)
            if is_answered and await self._store.count_page_attempt(lease, seqs) >= ATTEMPTS_BEFORE_STAND_IN:
                await self._store.accept_degraded(lease, seqs)
            raise
        self._redone_up_to = 0
        return True

    def _hot(self, segments: Sequence[Segment], threshold: float) -> list[Segment]:
        """Return the segments at or over the threshold with something new to read, hottest first."""
        now = self._clock()
        heats = [(segment.heat(now, self._weights), segment) for segment in segments if segment.unanalysed_count]
        hot = [(heat, segment) for heat, segment in heats if heat >= threshold]
        return [segment for _, segment in sorted(hot, key=lambda pair: -pair[0])]

    def _surplus(self, segments: Sequence[Segment]) -> list[Segment]:
        """Return the coldest segments beyond the capacity; the newest is never one of them."""
        count = len(segments) - self._capacity
        if count <= 0:
            return []
        now = self._clock()
        return sorted(segments[:-1], key=lambda segment: segment.heat(now, self._weights))[:count]

    async def _promote(self, lease: Lease, segment: int, slots: asyncio.Semaphore, *, may_stand_in: bool) -> None:
        """Read a segment's new pages, portion by portion."""
        async with slots:
            while pages := await self._store.segment_pages(segment, only_unanalysed=True, limit=PAGES_AT_ONCE):
                portion = pages[: self._analyst.portion(pages)]
                try:
                    await self._read(lease, segment, portion, self._analyst)
                except ModelError as failure:
                    is_given_up = await self._is_given_up(lease, segment, failure)
                    if not is_given_up or not (may_stand_in or isinstance(failure, ReplyFormatError)):
                        raise
                    await self._read(lease, segment, portion, self._stand_in)

    async def _is_given_up(self, lease: Lease, segment: int, failure: ModelError) -> bool:
        """Count a failure, and return whether the stand-in reads this segment now."""
        if isinstance(failure, BudgetSpentError):
            return True
        return await self._store.count_segment_attempt(lease, segment) >= ATTEMPTS_BEFORE_STAND_IN

    async def _read(self, lease: Lease, segment: int, pages: Sequence[Page], reader: Analyst) -> None:
        """Learn from pages and commit. Where others wrote meanwhile it is fitted to that, or asked anew if it can't be.

        Pages that teach nothing about the user, because they were fetched or hold orders, are not shown to the reader;
        they count as read.

        Raises:
            ModelError: The reader had no answer, or profile and knowledge never stood still.
        """
        views = await page_views(self._store, [page for page in pages if page.teaches])
        learned = await self._learned(views, reader)
        async with self._committing:
            for _ in range(COMMITS_TRIED):
                traits = await self._store.traits()
                corrected = await self._store.corrected_facts()
                lessons = reconcile(learned.lessons, learned.traits, traits, await self._facts())
                if lessons is None or not set(learned.corrected) <= set(corrected):  # a correction was taken back
                    learned = await self._learned(views, reader)  # no other reading ends meanwhile
                    continue
                lessons = await without_corrected(lessons, corrected, self._embed)
                learning = Learning(
                    segment=segment,
                    pages=[page.seq for page in pages],
                    lessons=lessons,
                    traits=traits,
                    learner=reader.name,
                    corrections=corrected,
                    is_degraded=reader is not self._analyst,
                    replaces=None if reader.name == self._stand_in.name else self._stand_in.name,
                )
                if await self._store.commit_learning(lease, learning):
                    return
        msg = "profile and knowledge changed under every attempt to add to them; it is tried again"
        raise ModelError(msg)

    async def _learned(self, views: Sequence[PageView], reader: Analyst) -> _Learned:
        traits = await self._store.traits()
        if not views:
            return _Learned(Lessons((), ()), traits)
        corrected = counting_against(await self._store.corrected_facts(), views[-1].page.seq)
        return _Learned(await reader.learn(views, traits, await self._facts(), corrected), traits, corrected)

    async def _facts(self) -> list[Fact]:
        return [*await self._store.facts(About.USER), *await self._store.facts(About.ASSISTANT)]
