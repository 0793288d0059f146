"""Organising: the backlog is filed under chains and topic segments."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import numpy as np

from memoryos_mcp.consolidation.views import page_views
from memoryos_mcp.errors import ModelError
from memoryos_mcp.llm import Analyst, Organised, PageView
from memoryos_mcp.pages import Page
from memoryos_mcp.segments import Segment, Vector, mean_vector, segment_match
from memoryos_mcp.storage import ChainPlan, Lease, SegmentPlan, Store
from memoryos_mcp.terms import stem

BATCHES_AT_ONCE = 4
# A digest follows all pages of a chain or segment, but reads no more than its newest.
DIGEST_PAGES = 60


@dataclass(frozen=True, slots=True)
class BatchRule:
    """When a batch of the backlog is due.

    Attributes:
        pages: So many pages are due at once.
        idle: Fewer are due after a silence of this length.
    """

    pages: int
    idle: timedelta


@dataclass(slots=True)
class _Draft:
    """A segment in the making: the topics of a batch that go to the same place."""

    known: Segment | None
    keywords: frozenset[str]
    vector: Vector | None
    pages: list[PageView] = field(default_factory=list)


class Organising:
    """Files the backlog, batch by batch, in the order of its pages."""

    def __init__(
        self,
        store: Store,
        analyst: Analyst,
        *,
        rule: BatchRule,
        similarity_threshold: float,
        clock: Callable[[], datetime],
    ) -> None:
        self._store = store
        self._analyst = analyst
        self._rule = rule
        self._threshold = similarity_threshold
        self._clock = clock

    async def due(self) -> list[list[Page]]:
        """Return the batches that are due, in order, at most a few; empty if it is not yet time."""
        size = self._rule.pages
        waiting = await self._store.backlog(size * BATCHES_AT_ONCE)
        batches = [waiting[start : start + size] for start in range(0, len(waiting), size)]
        if batches and len(batches[-1]) < size and not await self._is_idle():
            batches.pop()
        return batches

    async def step(self, lease: Lease, *, needs_vectors: bool) -> bool:
        """Organise what is due: batches are read in parallel and filed in page order.

        Args:
            lease: The right to write.
            needs_vectors: Leave the backlog alone while its pages are not embedded yet.

        Returns:
            Whether there may be more.

        Raises:
            ModelError: The analyst had no answer; the pages stay in the backlog.
        """
        batches = [await page_views(self._store, batch) for batch in await self.due()]
        if needs_vectors:
            batches = _up_to_unembedded(batches)
        if not batches:
            return False
        befores = [await self._page_before(batch[0]) for batch in batches]
        asked = [self._analyst.organise(batch, before) for batch, before in zip(batches, befores, strict=True)]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        for batch, answer in zip(batches, answers, strict=True):
            if isinstance(answer, BaseException):
                raise answer
            _check(batch, answer)
            chains = await self._plan_chains(batch, answer)
            segments = await self._plan_segments(batch, answer)
            if not await self._store.commit_consolidation(lease, chains, segments):
                return True
        return True

    async def _is_idle(self) -> bool:
        newest = await self._store.last_added_at()
        return newest is None or self._clock() - newest >= self._rule.idle

    async def _page_before(self, view: PageView) -> PageView | None:
        page = await self._store.page_before(view.page.seq)
        return None if page is None else (await page_views(self._store, [page]))[0]

    async def _plan_chains(self, batch: Sequence[PageView], organised: Organised) -> list[ChainPlan]:
        """Cut the batch into runs; the first run may carry on the chain of the page before it."""
        runs: list[list[PageView]] = []
        for view in batch:
            if runs and view.page.seq in organised.continues:
                runs[-1].append(view)
            else:
                runs.append([view])
        plans = [await self._plan_chain(None, [], run) for run in runs[1:]]
        carried: int | None = None
        if batch[0].page.seq in organised.continues:
            before = await self._store.page_before(batch[0].page.seq)
            carried = before.chain if before else None
        earlier = [] if carried is None else await self._store.chain_pages(carried, DIGEST_PAGES)
        return [await self._plan_chain(carried, earlier, runs[0]), *plans]

    async def _plan_chain(self, chain: int | None, earlier: list[Page], run: Sequence[PageView]) -> ChainPlan:
        views = [*await page_views(self._store, earlier), *run]
        digest = await self._analyst.digest(views[-DIGEST_PAGES:])
        return ChainPlan(chain=chain, pages=tuple(view.page.seq for view in run), summary=digest.summary)

    async def _plan_segments(self, batch: Sequence[PageView], organised: Organised) -> list[SegmentPlan]:
        """File each topic under the segment that fits best, or under a new one."""
        views = {view.page.seq: view for view in batch}
        drafts = [
            _Draft(known=segment, keywords=_stems(segment.keywords), vector=segment.vector)
            for segment in await self._store.segments()
        ]
        for topic in organised.topics:
            pages = [views[seq] for seq in topic.pages]
            vector = mean_vector([view.vector for view in pages if view.vector is not None])
            keywords = _stems(topic.digest.keywords)
            draft = self._best(drafts, vector, keywords)
            if draft is None:
                draft = _Draft(known=None, keywords=keywords, vector=vector)
                drafts.append(draft)
            draft.pages.extend(pages)
        return [await self._plan_segment(draft) for draft in drafts if draft.pages]

    def _best(self, drafts: Sequence[_Draft], vector: Vector | None, keywords: frozenset[str]) -> _Draft | None:
        scored = [(segment_match(draft.vector, draft.keywords, vector, keywords), draft) for draft in drafts]
        score, draft = max(scored, key=lambda pair: pair[0], default=(0.0, None))
        return draft if score >= self._threshold else None

    async def _plan_segment(self, draft: _Draft) -> SegmentPlan:
        new = sorted(draft.pages, key=lambda view: view.page.seq)
        earlier: list[PageView] = []
        if draft.known is not None:
            pages = await self._store.segment_pages(draft.known.segment, only_unanalysed=False, limit=DIGEST_PAGES)
            earlier = await page_views(self._store, pages)
        return SegmentPlan(
            segment=draft.known.segment if draft.known else None,
            pages=tuple(view.page.seq for view in new),
            digest=await self._analyst.digest([*earlier, *new][-DIGEST_PAGES:]),
            vector=_joined_vector(draft.known, earlier, new),
            summariser=self._analyst.name,
        )


def _joined_vector(known: Segment | None, earlier: Sequence[PageView], new: Sequence[PageView]) -> Vector | None:
    """Return the unit-length mean after pages have joined: the old mean counts once per page it stands for."""
    vectors = [view.vector for view in new if view.vector is not None]
    if not vectors:
        return None
    if known is None or known.vector is None or not known.page_count:
        return mean_vector([*(view.vector for view in earlier if view.vector is not None), *vectors])
    weighted = known.vector * np.float32(known.page_count) + np.sum(vectors, axis=0, dtype=np.float32)
    return mean_vector([np.asarray(weighted, dtype=np.float32)])


def _check(batch: Sequence[PageView], organised: Organised) -> None:
    """Make sure that an analyst's answer files every page of the batch once.

    Raises:
        ModelError: It does not.
    """
    asked = sorted(view.page.seq for view in batch)
    if sorted(seq for topic in organised.topics for seq in topic.pages) != asked:
        msg = "the analyst's topics do not hold every page of the batch once"
        raise ModelError(msg)


def _stems(keywords: Sequence[str]) -> frozenset[str]:
    return frozenset(stem(keyword) for keyword in keywords)


def _up_to_unembedded(batches: list[list[PageView]]) -> list[list[PageView]]:
    """Return the batches before the first that has a page without a vector."""
    for place, batch in enumerate(batches):
        if any(view.vector is None for view in batch):
            return batches[:place]
    return batches
