"""Organising: pages are filed under chains and topic segments, the backlog first, then what the stand-in had filed."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from memoryos_mcp.consolidation.filing import FilingPlanner, nearest_segments
from memoryos_mcp.consolidation.views import page_views
from memoryos_mcp.errors import BudgetSpentError, ModelError
from memoryos_mcp.llm import Analyst, Organised, PageView, Surroundings
from memoryos_mcp.pages import Page
from memoryos_mcp.storage import Lease, Store

BATCHES_AT_ONCE = 16
ATTEMPTS_BEFORE_STAND_IN = 5


@dataclass(frozen=True, slots=True)
class BatchRule:
    """When a batch of the backlog is due.

    Attributes:
        pages: So many pages are due at once.
        idle: Fewer are due after a silence of this length.
    """

    pages: int
    idle: timedelta


class Organising:
    """Files pages, batch by batch, in their order.

    Args:
        store: The user's memory.
        analyst: Who is asked.
        stand_in: Who files a batch that the analyst has failed on too often; never fails.
        rule: When a batch is due.
        similarity_threshold: Least match of a topic with the segment it joins, 0 to 2.
        clock: Returns the present.
    """

    def __init__(
        self,
        store: Store,
        analyst: Analyst,
        stand_in: Analyst,
        *,
        rule: BatchRule,
        similarity_threshold: float,
        clock: Callable[[], datetime],
    ) -> None:
        self._store = store
        self._analyst = analyst
        self._stand_in = stand_in
        self._rule = rule
        self._threshold = similarity_threshold
        self._clock = clock
        # Plans are made from segments as they stand, so one is committed before the next is made. No model is asked.
        self._planning = asyncio.Lock()
        # Answers to batches that could not be filed yet, because one before them failed: they were paid for.
        self._answers: dict[tuple[int, ...], Organised] = {}

    async def due(self) -> list[list[Page]]:
        """Return the batches that are due, in order, at most a few; empty if it is not yet time."""
        batches = self._batches(await self._store.backlog(self._rule.pages * BATCHES_AT_ONCE))
        if batches and len(batches[-1]) < self._rule.pages and not await self._is_idle():
            batches.pop()
        return batches

    async def step(self, lease: Lease, *, needs_vectors: bool) -> bool:
        """Organise what is due: batches are read in parallel and filed in page order.

        A batch that the analyst has failed on too often, or that there is no budget for, is filed by the stand-in and
        marked as degraded.

        Args:
            lease: The right to write.
            needs_vectors: Leave the backlog alone while its pages are not embedded yet.

        Returns:
            Whether there may be more.

        Raises:
            ModelError: The analyst had no answer to a batch; it and those after it stay in the backlog.
        """
        batches = [await page_views(self._store, batch) for batch in await self.due()]
        if needs_vectors:
            batches = _up_to_unembedded(batches)
        answers = await asyncio.gather(*map(self._ask, batches), return_exceptions=True)
        for batch, answer in zip(batches, answers, strict=True):
            if not isinstance(answer, BaseException):
                is_filed = await self._file(lease, batch, answer, self._analyst)
            elif isinstance(answer, ModelError) and await self._is_given_up(lease, batch, answer):
                organised = await self._stand_in.organise(batch, await self._around(batch))
                is_filed = await self._file(lease, batch, organised, self._stand_in)
            else:
                self._keep(batches, answers)
                raise answer
            if not is_filed:
                break
        self._answers.clear()
        return bool(batches)

    async def redo(self, lease: Lease) -> bool:
        """Have the analyst do again what the stand-in did in its place, several batches in parallel.

        Returns:
            Whether there may be more.

        Raises:
            ModelError: The analyst has no answer yet; all stays as it is.
        """
        if self._analyst.name == self._stand_in.name:
            return False
        relearns = await self._store.learn_again(lease, self._stand_in.name)
        pages = await self._store.degraded(self._stand_in.name, self._rule.pages * BATCHES_AT_ONCE)
        batches = [await page_views(self._store, batch) for batch in self._batches(pages)]
        # One batch shows whether the analyst is back before all are sent.
        for group in (batches[:1], batches[1:]):
            answers = await asyncio.gather(*map(self._ask, group), return_exceptions=True)
            for batch, answer in zip(group, answers, strict=True):
                if isinstance(answer, BaseException):
                    raise answer
                if not await self._file(lease, batch, answer, self._analyst, is_redo=True):
                    return True
        return relearns or bool(batches)

    async def has_degraded(self) -> bool:
        """Whether the stand-in did something that the analyst could do again."""
        if self._analyst.name == self._stand_in.name:
            return False
        return (await self._store.counts()).degraded > 0

    def _batches(self, pages: Sequence[Page]) -> list[list[Page]]:
        size = self._rule.pages
        return [list(pages[start : start + size]) for start in range(0, len(pages), size)]

    async def _is_idle(self) -> bool:
        newest = await self._store.last_added_at()
        return newest is None or self._clock() - newest >= self._rule.idle

    async def _ask(self, batch: Sequence[PageView]) -> Organised:
        kept = self._answers.get(_seqs(batch))
        if kept is not None:
            return kept
        organised = await self._analyst.organise(batch, await self._around(batch))
        _check(batch, organised)
        return organised

    async def _around(self, batch: Sequence[PageView]) -> Surroundings:
        before = await self._store.page_before(batch[0].page.seq)
        if before is None:
            return Surroundings(before=None)
        summary = "" if before.chain is None else await self._store.chain_summary(before.chain)
        (view,) = await page_views(self._store, [before])
        nearest = nearest_segments(await self._store.segments(), batch, self._threshold)
        return Surroundings(before=view, chain_summary=summary, segments=nearest)

    async def _is_given_up(self, lease: Lease, batch: Sequence[PageView], failure: ModelError) -> bool:
        """Count a failure, and return whether the stand-in does this batch now."""
        if isinstance(failure, BudgetSpentError):
            return True
        return await self._store.count_page_attempt(lease, _seqs(batch)) >= ATTEMPTS_BEFORE_STAND_IN

    def _keep(self, batches: Sequence[Sequence[PageView]], answers: Sequence[Organised | BaseException]) -> None:
        self._answers = {
            _seqs(batch): answer
            for batch, answer in zip(batches, answers, strict=True)
            if not isinstance(answer, BaseException)
        }

    async def _file(
        self, lease: Lease, batch: Sequence[PageView], organised: Organised, by: Analyst, *, is_redo: bool = False
    ) -> bool:
        async with self._planning:
            planner = FilingPlanner(self._store, by, self._stand_in.name, self._threshold)
            filing = await planner.plan(batch, organised, is_degraded=by is not self._analyst, is_redo=is_redo)
            return await self._store.commit_filing(lease, filing)


def _seqs(batch: Sequence[PageView]) -> tuple[int, ...]:
    return tuple(view.page.seq for view in batch)


def _check(batch: Sequence[PageView], organised: Organised) -> None:
    """Make sure that an analyst's answer holds every page of the batch once.

    Raises:
        ModelError: It does not.
    """
    asked = _seqs(batch)
    if tuple(seq for run in organised.runs for seq in run.pages) != asked:
        msg = "the analyst's chains do not hold every page of the batch once, in order"
        raise ModelError(msg)
    if tuple(sorted(seq for topic in organised.topics for seq in topic.pages)) != asked:
        msg = "the analyst's topics do not hold every page of the batch once"
        raise ModelError(msg)


def _up_to_unembedded(batches: list[list[PageView]]) -> list[list[PageView]]:
    """Return the batches before the first that has a page without a vector."""
    for place, batch in enumerate(batches):
        if any(view.vector is None for view in batch):
            return batches[:place]
    return batches
