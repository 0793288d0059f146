"""Organising: assigns ("files") the pages of the backlog to chains and segments.

The analyst is usually the LLM. If it fails, the fallback, which needs no LLM, files the pages. The analyst then files
them again later.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from memoryos_mcp.consolidation.fallback import becomes_final, should_fall_back
from memoryos_mcp.consolidation.filing import FilingPlanner, nearest_segments
from memoryos_mcp.consolidation.page_vectors import with_vectors
from memoryos_mcp.consolidation.reading import Reading
from memoryos_mcp.errors import ModelError, ReplyFormatError
from memoryos_mcp.llm.analysis import Analyst, Organised, Surroundings
from memoryos_mcp.model.pages import Page, Tier
from memoryos_mcp.storage.interface import Store
from memoryos_mcp.storage.values import Accepted, Lease, PageQuery, Pending

BATCHES_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class BatchRule:
    """The rule by which a batch of the backlog becomes due.

    Attributes:
        pages: Number of pages in a full batch. A full batch is due at once.
        idle: Time without new pages after which an incomplete batch is due.
        is_thrifty: Whether an incomplete batch waits longer than ``idle``: the fewer pages it has, the longer it
            waits. This saves LLM calls in a slow conversation, because each batch costs one call.
        at_once: Maximum number of full batches that are sent to the analyst in parallel.
    """

    pages: int
    idle: timedelta
    is_thrifty: bool = False
    at_once: int = BATCHES_AT_ONCE

    def silence(self, pending: int) -> timedelta:
        """Return the time without new pages after which an incomplete batch of ``pending`` pages is due."""
        return self.idle * (self.pages / pending) if self.is_thrifty else self.idle


class Organising:
    """Assigns pages to chains and segments (files them) in batches, in the order in which the pages were added.

    Args:
        analyst: The analyst that is tried first, usually the LLM.
        fallback: The analyst that needs no LLM. It files a batch if ``analyst`` has failed too often.
        similarity_threshold: Minimum match (0 to 2) between a topic and the segment that it joins.
        reading: Stores the facts that the answers of the analyst and the fallback contain.
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
        # A plan depends on the current segments, so it must be committed before the next plan is made.
        self._planning = asyncio.Lock()
        # The analyst's answers to batches that are not filed yet because an earlier batch failed; the key is ``_seqs``.
        self._answers: dict[tuple[int, ...], Organised] = {}
        self._forget_epoch = 0
        self._failed_steps = 0
        self._redone_up_to = 0

    async def due(self, pending: Pending, *, is_hurried: bool = False) -> list[list[Page]]:
        """Return the due batches among the oldest pages of the backlog, oldest batch first.

        ``pending`` is the current result of `Store.pending`. If ``is_hurried`` is true, an incomplete batch is due at
        once.
        """
        is_short = pending.backlog < self._rule.pages
        if not pending.backlog or (is_short and not is_hurried and not self._is_silent(pending, pending.backlog)):
            return []  # most calls end here, without reading the pages
        batches = self._batches(await self._backlog())
        incomplete = [len(batch) for batch in batches if len(batch) < self._rule.pages]
        if is_hurried or not incomplete or self._is_silent(pending, max(incomplete)):
            return batches
        return [batch for batch in batches if len(batch) >= self._rule.pages]

    async def due_at(self) -> datetime | None:
        """Return the time when the next batch becomes due, or None if the backlog is empty.

        If a batch is due already, the time is in the past.
        """
        pending = await self._store.pending()
        batches = self._batches(await self._backlog()) if pending.backlog else []
        if not batches:
            return None
        newest = pending.last_added_at or self._clock()
        largest = max(map(len, batches))
        return newest if largest >= self._rule.pages else newest + self._rule.silence(largest)

    async def step(self, lease: Lease, *, needs_vectors: bool, is_hurried: bool = False) -> bool:
        """File the due batches: assign their pages to chains and segments.

        The analyst analyses the batches in parallel, but they are filed in page order. If the analyst has failed too
        often or the budget is spent, the fallback (without an LLM) files a batch and marks it as degraded.

        Args:
            lease: The lease, which allows this process to write.
            needs_vectors: Whether pages must be embedded before they are filed. If so, the first batch with an
                unembedded page and all later batches stay in the backlog.
            is_hurried: Whether an incomplete batch is due at once.

        Returns:
            Whether to call again for further due batches.

        Raises:
            ModelError: The analyst failed on a batch. This batch and all later batches stay in the backlog.
        """
        if (epoch := (await self._store.snapshot()).forget_epoch) != self._forget_epoch:
            # A stored answer may contain text of the page before its batch. That page may have been forgotten since.
            self._forget_epoch = epoch
            self._answers.clear()
        due = await self.due(await self._store.pending(), is_hurried=is_hurried)
        batches = [await with_vectors(self._store, batch) for batch in due]
        if needs_vectors:
            batches = _up_to_unembedded(batches)
        answers = await self._answers_to(lease, batches, probes_first=self._failed_steps > 0)
        if any(not isinstance(answer, BaseException) for answer in answers):
            self._failed_steps = 0
        elif batches:
            self._failed_steps += 1
        failure: BaseException | None = None
        for batch, answer in zip(batches, answers, strict=True):
            if not isinstance(answer, BaseException):
                # Batches are filed in order, so that chains continue. The answers to later batches are stored.
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
        """Let the analyst (the LLM) reassign the pages that the fallback (without an LLM) put in chains and segments.

        The analyst gets batches of these pages in parallel. If the analyst repeatedly gives unusable answers to a
        batch, the fallback's result for this batch becomes final.

        Returns:
            Whether to call again for further pages.

        Raises:
            ModelError: The analyst failed on at least one batch, and no batch was reassigned.
        """
        pages = await self._degraded(self._redone_up_to)
        if not pages and self._redone_up_to:
            pages = await self._degraded(0)
        batches = [await with_vectors(self._store, batch) for batch in self._batches(pages)]
        has_filed = False
        failure: BaseException | None = None
        answers = await self._answers_to(lease, batches, probes_first=True)
        for batch, answer in zip(batches, answers, strict=True):
            if not isinstance(answer, BaseException):
                has_filed |= await self._file(lease, batch, answer, self._analyst, is_redo=True)
                continue
            failure = failure or answer
            if await becomes_final(answer, partial(self._store.count_attempt, lease, pages=_seqs(batch))):
                await self._store.commit(lease, Accepted(_seqs(batch)))
        if failure is not None and not has_filed:
            # The next attempt starts after this batch, so that a batch that always fails does not block later batches.
            self._redone_up_to = batches[0][-1].seq
            raise failure
        self._redone_up_to = 0
        return bool(batches)

    async def _backlog(self) -> list[Page]:
        return await self._store.pages(PageQuery(tier=Tier.BACKLOG, limit=self._rule.pages * self._rule.at_once))

    async def _degraded(self, after_seq: int) -> list[Page]:
        limit = self._rule.pages * self._rule.at_once
        organiser = self._fallback.name
        query = PageQuery(is_degraded=True, organised_by=organiser, after_seq=after_seq, limit=limit)
        return await self._store.pages(query)

    def _batches(self, pages: Sequence[Page]) -> list[list[Page]]:
        """Group the pages into batches, and return the batches sorted by first page.

        All pages of a batch are of one project. All batches are full, except the last batch of each project.
        """
        size = self._rule.pages
        of_projects: dict[str | None, list[list[Page]]] = {}
        for page in pages:
            batches = of_projects.setdefault(page.project, [])
            if not batches or len(batches[-1]) == size:
                batches.append([])
            batches[-1].append(page)
        return sorted((batch for batches in of_projects.values() for batch in batches), key=lambda each: each[0].seq)

    def _is_silent(self, pending: Pending, pages: int) -> bool:
        """Return whether no page has been added for so long that an incomplete batch of ``pages`` pages is due."""
        newest = pending.last_added_at
        return newest is None or self._clock() - newest >= self._rule.silence(pages)

    async def _answers_to(
        self, lease: Lease, batches: Sequence[Sequence[Page]], *, probes_first: bool
    ) -> list[Organised | BaseException]:
        """Return the analyst's answer to each batch, or the exception that the analyst raised for it.

        With ``probes_first``, the first batch is sent alone, to find out whether the analyst can be reached. If it
        cannot be reached, the other batches are not sent. The result for an unsent batch is the answer of an earlier
        attempt, or else the exception of the first batch.
        """
        ask = partial(self._ask, lease)
        if not probes_first or not batches:
            return await asyncio.gather(*map(ask, batches), return_exceptions=True)
        (first,) = await asyncio.gather(ask(batches[0]), return_exceptions=True)
        if isinstance(first, ModelError) and not isinstance(first, ReplyFormatError):
            return [first, *(self._answers.get(_seqs(batch), first) for batch in batches[1:])]
        return [first, *await asyncio.gather(*map(ask, batches[1:]), return_exceptions=True)]

    async def _ask(self, lease: Lease, batch: Sequence[Page]) -> Organised:
        stored = self._answers.get(_seqs(batch))
        if stored is not None:
            return stored
        organised = await self._analyst.organise(batch, await self._around(lease, batch))
        _check(batch, organised)
        return organised

    async def _around(self, lease: Lease, batch: Sequence[Page]) -> Surroundings:
        around = await self._reading.known_at(list(batch), lease.forget_epoch)
        newest = await self._store.pages(PageQuery(before_seq=batch[0].seq, is_newest=True, limit=1))
        if not newest:
            return around
        segments = [each for each in await self._store.segments() if each.project == batch[0].project]
        nearest = nearest_segments(segments, batch, self._threshold)
        if newest[0].project != batch[0].project:
            return replace(around, segments=nearest)
        (before,) = await with_vectors(self._store, newest)
        return replace(around, before=before, segments=nearest)

    async def _is_given_up(self, lease: Lease, batch: Sequence[Page], failure: ModelError) -> bool:
        count = partial(self._store.count_attempt, lease, pages=_seqs(batch))
        return await should_fall_back(failure, count, failed_steps=self._failed_steps)

    async def _fall_back(self, lease: Lease, batch: Sequence[Page]) -> bool:
        organised = await self._fallback.organise(batch, await self._around(lease, batch))
        return await self._file(lease, batch, organised, self._fallback)

    async def _file(
        self, lease: Lease, batch: Sequence[Page], organised: Organised, analyst: Analyst, *, is_redo: bool = False
    ) -> bool:
        if organised.knowledge is not None:
            await self._reading.keep(lease, list(batch), organised.knowledge)
        async with self._planning:
            planner = FilingPlanner(self._store, analyst, self._fallback.name, self._threshold)
            filing = await planner.plan(batch, organised, is_degraded=analyst is not self._analyst, is_redo=is_redo)
            return await self._store.commit(lease, filing)


def _seqs(batch: Sequence[Page]) -> tuple[int, ...]:
    return tuple(view.seq for view in batch)


def _check(batch: Sequence[Page], organised: Organised) -> None:
    """Raise ReplyFormatError unless an answer contains every page of the batch exactly once."""
    seqs = _seqs(batch)
    if tuple(seq for run in organised.runs for seq in run.pages) != seqs:
        msg = (
            "the analyst's chains do not contain every page of the batch exactly once, in order; no page was lost. "
            "If this happens often, choose another llm_model"
        )
        raise ReplyFormatError(msg)
    if tuple(sorted(seq for topic in organised.topics for seq in topic.pages)) != seqs:
        msg = (
            "the analyst's topics do not contain every page of the batch exactly once; no page was lost. "
            "If this happens often, choose another llm_model"
        )
        raise ReplyFormatError(msg)


def _up_to_unembedded(batches: list[list[Page]]) -> list[list[Page]]:
    """Return the batches before the first batch that contains a page without a vector.

    If there is no such batch, return all batches.
    """
    for place, batch in enumerate(batches):
        if any(view.vector is None for view in batch):
            return batches[:place]
    return batches
