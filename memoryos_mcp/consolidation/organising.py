"""Organising: pages are filed under chains and topic segments, first the backlog, then what the fallback had filed."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from memoryos_mcp.consolidation.fallback import stays, takes_over
from memoryos_mcp.consolidation.filing import FilingPlanner, nearest_segments
from memoryos_mcp.consolidation.page_vectors import with_vectors
from memoryos_mcp.consolidation.reading import Reading
from memoryos_mcp.errors import ModelError, ReplyFormatError
from memoryos_mcp.llm.analysis import Analyst, Organised, Surroundings
from memoryos_mcp.model.pages import Page, Tier
from memoryos_mcp.storage.interface import Store
from memoryos_mcp.storage.values import Accepted, Lease, PageQuery

BATCHES_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class BatchRule:
    """When a batch of the backlog is due.

    Attributes:
        pages: Number of pages that are due at once.
        idle: Silence after which fewer pages are due.
        is_thrifty: Whether the silence is longer for fewer pages. Each batch costs a call, and in a slow conversation
            each page would otherwise be its own batch.
        at_once: Maximum number of batches asked about in parallel; they do not see each other's answers.
    """

    pages: int
    idle: timedelta
    is_thrifty: bool = False
    at_once: int = BATCHES_AT_ONCE

    def silence(self, waiting: int) -> timedelta:
        """Return the silence after which this many waiting pages are due."""
        return self.idle * (self.pages / waiting) if self.is_thrifty else self.idle


class Organising:
    """Files pages, batch by batch, in their order.

    Args:
        fallback: Files a batch on which the analyst has failed too often; never fails.
        similarity_threshold: Minimum match of a topic with the segment that it joins, 0 to 2.
        reading: Stores the knowledge in an answer.
    """

    def __init__(
        self,
        store: Store,
        analyst: Analyst,
        fallback: Analyst,
        *,
        rule: BatchRule,
        similarity_threshold: float,
        clock: Callable[[], datetime],
        reading: Reading,
    ) -> None:
        self._store = store
        self._analyst = analyst
        self._fallback = fallback
        self._reading = reading
        self._rule = rule
        self._threshold = similarity_threshold
        self._clock = clock
        # Plans are made from the current segments, so each is committed before the next is made. No model is asked.
        self._planning = asyncio.Lock()
        # Answers, already paid for, to batches that wait because an earlier batch failed.
        self._answers: dict[tuple[int, ...], Organised] = {}
        self._forget_epoch = 0
        self._steps_in_vain = 0
        self._redone_up_to = 0

    async def due(self, *, is_hurried: bool = False) -> list[list[Page]]:
        """Return the batches that are due, in order, at most a few; if hurried, all pending pages are due."""
        batches = self._batches(await self._waiting())
        if is_hurried:
            return batches
        if batches and len(batches[-1]) < self._rule.pages and not await self._is_silent_for(len(batches[-1])):
            batches.pop()
        return batches

    async def due_at(self) -> datetime | None:
        """Return when the next batch is or was due; None if the backlog is empty."""
        batches = self._batches(await self._waiting())
        if not batches:
            return None
        newest = (await self._store.pending()).last_added_at or self._clock()
        is_due = len(batches) > 1 or len(batches[0]) >= self._rule.pages
        return newest if is_due else newest + self._rule.silence(len(batches[0]))

    async def step(self, lease: Lease, *, needs_vectors: bool, is_hurried: bool = False) -> bool:
        """Organise due batches: read in parallel, filed in page order. Return whether there may be more.

        The fallback files a batch, marked as degraded, after too many failures of the analyst or if the budget is
        spent.

        Args:
            lease: The right to write.
            needs_vectors: Whether batches wait until their pages are embedded.
            is_hurried: Whether all pending pages are due.

        Raises:
            ModelError: The analyst gave no answer for a batch; it and later ones stay in the backlog.
        """
        if (epoch := (await self._store.snapshot()).forget_epoch) != self._forget_epoch:
            # A kept answer may quote the page before its batch, which may be forgotten now.
            self._forget_epoch = epoch
            self._answers.clear()
        batches = [await with_vectors(self._store, batch) for batch in await self.due(is_hurried=is_hurried)]
        if needs_vectors:
            batches = _up_to_unembedded(batches)
        answers = await self._answers_to(lease, batches, asks_one_first=self._steps_in_vain > 0)
        if any(not isinstance(answer, BaseException) for answer in answers):
            self._steps_in_vain = 0
        elif batches:
            self._steps_in_vain += 1
        failure: BaseException | None = None
        for batch, answer in zip(batches, answers, strict=True):
            if not isinstance(answer, BaseException):
                # Later batches wait for earlier ones, so that chains continue; their answers are kept.
                self._answers[_seqs(batch)] = answer
                is_filed = failure is None and await self._file(lease, batch, answer, self._analyst)
            elif isinstance(answer, ModelError) and await self._is_given_up(lease, batch, answer):
                is_filed = failure is None and await self._fall_back(lease, batch)
            else:
                failure = failure or answer
                is_filed = False
            if is_filed:
                self._answers.pop(_seqs(batch), None)
        if failure is not None:
            raise failure
        self._answers.clear()
        return bool(batches)

    async def redo(self, lease: Lease) -> bool:
        """Have the analyst file again what the fallback filed, in parallel; return whether there may be more.

        A batch for which the analyst never gives a usable answer keeps the fallback's filing.

        Raises:
            ModelError: The analyst gave no answer; nothing was changed.
        """
        pages = await self._degraded(self._redone_up_to)
        if not pages and self._redone_up_to:
            pages = await self._degraded(0)
        batches = [await with_vectors(self._store, batch) for batch in self._batches(pages)]
        has_filed = False
        failure: BaseException | None = None
        answers = await self._answers_to(lease, batches, asks_one_first=True)
        for batch, answer in zip(batches, answers, strict=True):
            if not isinstance(answer, BaseException):
                has_filed |= await self._file(lease, batch, answer, self._analyst, is_redo=True)
                continue
            failure = failure or answer
            if await stays(answer, partial(self._store.count_attempt, lease, pages=_seqs(batch))):
                await self._store.commit(lease, Accepted(_seqs(batch)))
        if failure is not None and not has_filed:
            # A batch that always fails must not keep the others from being tried.
            self._redone_up_to = batches[0][-1].seq
            raise failure
        self._redone_up_to = 0
        return bool(batches)

    async def _waiting(self) -> list[Page]:
        return await self._store.pages(PageQuery(tier=Tier.BACKLOG, limit=self._rule.pages * self._rule.at_once))

    async def _degraded(self, after_seq: int) -> list[Page]:
        limit = self._rule.pages * self._rule.at_once
        by = self._fallback.name
        return await self._store.pages(PageQuery(is_degraded=True, organised_by=by, after_seq=after_seq, limit=limit))

    def _batches(self, pages: Sequence[Page]) -> list[list[Page]]:
        size = self._rule.pages
        return [list(pages[start : start + size]) for start in range(0, len(pages), size)]

    async def _is_silent_for(self, waiting: int) -> bool:
        newest = (await self._store.pending()).last_added_at
        return newest is None or self._clock() - newest >= self._rule.silence(waiting)

    async def _answers_to(
        self, lease: Lease, batches: Sequence[Sequence[Page]], *, asks_one_first: bool
    ) -> list[Organised | BaseException]:
        """Return an answer or a failure for each batch, asked in parallel.

        With ``asks_one_first`` the analyst may be out of reach: if the first batch fails, its failure is used for all
        batches that have no kept answer.
        """
        ask = partial(self._ask, lease)
        if not asks_one_first or not batches:
            return await asyncio.gather(*map(ask, batches), return_exceptions=True)
        (first,) = await asyncio.gather(ask(batches[0]), return_exceptions=True)
        if isinstance(first, ModelError) and not isinstance(first, ReplyFormatError):
            return [first, *(self._answers.get(_seqs(batch), first) for batch in batches[1:])]
        return [first, *await asyncio.gather(*map(ask, batches[1:]), return_exceptions=True)]

    async def _ask(self, lease: Lease, batch: Sequence[Page]) -> Organised:
        kept = self._answers.get(_seqs(batch))
        if kept is not None:
            return kept
        organised = await self._analyst.organise(batch, await self._around(lease, batch))
        _check(batch, organised)
        return organised

    async def _around(self, lease: Lease, batch: Sequence[Page]) -> Surroundings:
        around = await self._reading.known_at(list(batch), lease.forget_epoch)
        newest = await self._store.pages(PageQuery(before_seq=batch[0].seq, is_newest=True, limit=1))
        if not newest:
            return around
        (before,) = await with_vectors(self._store, newest)
        nearest = nearest_segments(await self._store.segments(), batch, self._threshold)
        return replace(around, before=before, segments=nearest)

    async def _is_given_up(self, lease: Lease, batch: Sequence[Page], failure: ModelError) -> bool:
        count = partial(self._store.count_attempt, lease, pages=_seqs(batch))
        return await takes_over(failure, count, steps_in_vain=self._steps_in_vain)

    async def _fall_back(self, lease: Lease, batch: Sequence[Page]) -> bool:
        organised = await self._fallback.organise(batch, await self._around(lease, batch))
        return await self._file(lease, batch, organised, self._fallback)

    async def _file(
        self, lease: Lease, batch: Sequence[Page], organised: Organised, by: Analyst, *, is_redo: bool = False
    ) -> bool:
        if organised.knowledge is not None:
            await self._reading.keep(lease, list(batch), organised.knowledge)
        async with self._planning:
            planner = FilingPlanner(self._store, by, self._fallback.name, self._threshold)
            filing = await planner.plan(batch, organised, is_degraded=by is not self._analyst, is_redo=is_redo)
            return await self._store.commit(lease, filing)


def _seqs(batch: Sequence[Page]) -> tuple[int, ...]:
    return tuple(view.seq for view in batch)


def _check(batch: Sequence[Page], organised: Organised) -> None:
    """Check that an answer contains every page of the batch once.

    Raises:
        ReplyFormatError: It does not.
    """
    asked = _seqs(batch)
    if tuple(seq for run in organised.runs for seq in run.pages) != asked:
        msg = "the analyst's chains do not hold every page of the batch once, in order"
        raise ReplyFormatError(msg)
    if tuple(sorted(seq for topic in organised.topics for seq in topic.pages)) != asked:
        msg = "the analyst's topics do not hold every page of the batch once"
        raise ReplyFormatError(msg)


def _up_to_unembedded(batches: list[list[Page]]) -> list[list[Page]]:
    """Return the batches before the first with an unembedded page."""
    for place, batch in enumerate(batches):
        if any(view.vector is None for view in batch):
            return batches[:place]
    return batches
