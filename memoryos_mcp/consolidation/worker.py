"""Worker: the background work that turns one user's pages into memory.

Each kind of work has its own loop, so that a slow one does not delay the others. A lease keeps it to one process.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial

from memoryos_mcp.config import Settings
from memoryos_mcp.consolidation.embedding import Left
from memoryos_mcp.consolidation.embedding_migration import VectorSpaces
from memoryos_mcp.consolidation.forgetting import Forgetting
from memoryos_mcp.consolidation.loops import BackgroundLoop, Errands, LeaseKeeper
from memoryos_mcp.consolidation.organising import BATCHES_AT_ONCE, BatchRule, Organising
from memoryos_mcp.consolidation.promotion import Promotion
from memoryos_mcp.consolidation.reading import Reading
from memoryos_mcp.errors import ModelError, StorageError
from memoryos_mcp.llm.analysis import Analyst
from memoryos_mcp.model.heat import HeatWeights
from memoryos_mcp.model.stats import Health
from memoryos_mcp.storage.damage import damage_message
from memoryos_mcp.storage.interface import Store
from memoryos_mcp.storage.values import Failure, Lease, PageQuery

logger = logging.getLogger(__name__)

LEASE_TTL_S = 30.0
# How often a process looks for work that another one left.
POLL_S = 5.0
# How long new pages are gathered, to be embedded together.
GATHER_S = 0.2
# Pages that arrive in quicker succession are read together. The wait is limited, for knowledge and for the profile.
QUIET_S = 0.25
KNOWN_WITHIN_S = 1.5
# More pages than this within that time are not a conversation; their knowledge may wait longer.
BURST_PAGES = 20
LONGEST_UNREST_S = 30.0
# After an opening, queries wait for the model and the vectors until this long after the first query.
OPENING_PATIENCE_S = 1.5
# Reading the vectors of a memory with more pages takes longer than that.
READ_IN_A_MOMENT_PAGES = 25_000
# How long retrieved segments wait to be counted together.
VISIT_POLL_S = 1.0
DAILY_POLL_S = 86_400.0
# How often scrubbing is tried again after another process was reading.
SCRUB_POLL_S = 10.0
RETENTION_EVERY = timedelta(days=1)
# While expiry is delayed, because the clock may be wrong.
WAITING_RETENTION_EVERY = timedelta(minutes=5)
# Pause between two pieces of a deletion, during which other writers get their turn.
TIDY_REST_S = 0.05


class Worker:
    """The background work of one user's memory, from `start` to `close`.

    Args:
        store: The user's memory; closed by its owner.
        fallback: Used when the analyst fails; the analyst itself without an LLM.
        spaces: The user's vectors, which the worker fills.
    """

    def __init__(
        self,
        settings: Settings,
        store: Store,
        analyst: Analyst,
        fallback: Analyst,
        *,
        weights: HeatWeights,
        spaces: VectorSpaces,
        forgetting: Forgetting,
        clock: Callable[[], datetime],
    ) -> None:
        self._clock = clock
        self._store = store
        self._spaces = spaces
        self._has_llm = analyst is not fallback
        self._lease = LeaseKeeper(store, LEASE_TTL_S)
        self._reading = Reading(store, analyst, fallback, spaces.vectors_of)
        self._organising = Organising(
            store,
            analyst,
            fallback,
            rule=BatchRule(
                settings.batch_pages(has_llm=self._has_llm),
                timedelta(seconds=settings.consolidation_idle_s),
                is_thrifty=self._has_llm,
                at_once=1 if self._has_llm else BATCHES_AT_ONCE,  # an LLM is shown the results of earlier batches
            ),
            similarity_threshold=settings.mid_term_similarity_threshold,
            clock=clock,
            reading=self._reading,
        )
        self._promotion = Promotion(
            store,
            analyst,
            fallback,
            heat_threshold=settings.mid_term_heat_threshold,
            weights=weights,
            capacity_segments=settings.mid_term_capacity,
            clock=clock,
            reading=self._reading,
        )
        self._forgetting = forgetting
        self._expired_at: datetime | None = None
        self._damaged_pages = 0
        self._visits: Counter[int] = Counter()
        self._last_added = -QUIET_S
        self._unread_pages = 0
        self._is_begun = False
        self._errands = Errands()
        self._is_warm = asyncio.Event()
        self._patient_until: float | None = None
        # Only silence needs polling; every other event wakes the loop concerned.
        silence_poll_s = min(POLL_S, settings.consolidation_idle_s or POLL_S)
        self._batch_pages = settings.batch_pages(has_llm=self._has_llm)
        self._loops = {
            name: BackgroundLoop(name, step, poll_s=pause_s, clock=clock, keep=partial(self._keep, name))
            for name, step, pause_s in (
                ("embedding", self._embed, POLL_S),
                ("reading", self._read, POLL_S),
                ("consolidation", self._consolidate, silence_poll_s),
                ("redo", self._redo, POLL_S),
                ("promotion", self._promote, POLL_S),
                ("visits", self._count_visits, VISIT_POLL_S),
                ("forgetting", self._forget, SCRUB_POLL_S),
                ("verification", self._verify, DAILY_POLL_S),
            )
        }

    def start(self) -> None:
        """Start all loops."""
        self._is_begun = True
        for loop in self._loops.values():
            loop.start()

    def start_to_read(self) -> None:
        """Enable semantic search on a memory that cannot be written now; nothing else is done."""
        self._errands.begin(self._open_to_read())

    async def _open_to_read(self) -> None:
        try:
            await self._spaces.open_to_read()
        except (ModelError, StorageError) as error:
            logger.warning("only keyword search works: %s", error)

    async def close(self) -> None:
        """Stop, and save the visits. The next opening continues unfinished work.

        Raises:
            StorageError: The visits could not be written.
        """
        await self._errands.finished()
        await asyncio.gather(*(loop.close() for loop in self._loops.values()))
        try:
            await self._count_visits()
        finally:
            await self._lease.close()

    @property
    def health(self) -> Mapping[str, Health]:
        """The state of each loop, by name."""
        return {name: loop.health for name, loop in self._loops.items()}

    def page_added(self, backlog_pages: int) -> None:
        """Wake the loops for a new page; ``backlog_pages`` is how many pages wait to be organised."""
        self._last_added = time.monotonic()
        self._unread_pages += 1
        for name in ("embedding", "reading"):
            self._loops[name].wake()
        if backlog_pages >= self._batch_pages:
            self._loops["consolidation"].wake()

    def visited(self, segments: Iterable[int]) -> None:
        """Record segments that were retrieved; they are counted a little later."""
        if self._is_begun:
            self._visits.update(segments)

    def knowledge_changed(self) -> None:
        """Wake the loop that embeds a fact added outside the background work."""
        self._loops["embedding"].wake()

    def forgot(self) -> None:
        """Wake the loops after something was forgotten: pages may need reading again, and segments may need vectors."""
        for name in ("embedding", "reading", "promotion", "forgetting"):
            self._loops[name].wake()

    def redo(self) -> None:
        """Wake the loop that redoes the fallback's work."""
        self._loops["redo"].wake()

    async def analyse(self) -> None:
        """Organise all pending pages, and read all topics, however cool.

        Raises:
            ModelError: The LLM gave no usable answer.
            StorageError: Another process does the background work now, or the store failed.
        """
        await self._until_embedded()
        async with self._lease.hold() as lease:
            if lease is None:
                msg = "another process does the background work of this memory; it is analysed there"
                raise StorageError(msg)
            while await self._reading.step(lease):
                pass
            while await self._file(lease, is_hurried=True):
                self._loops["embedding"].wake()
                await self._until_embedded()
            while await self._promotion.step(lease, however_cool=True):
                pass
        self._loops["embedding"].wake()

    async def _until_embedded(self) -> None:
        """Wait for vectors: pages that were filed by keywords alone would stay so."""
        while self._is_embedding_well() and (not self._spaces.is_settled or await self._spaces.has_work()):  # noqa: ASYNC110 - another loop's state
            await asyncio.sleep(GATHER_S)

    async def until_loaded(self) -> None:
        """Wait briefly for the model and the vectors of a newly opened memory; after that, search uses keywords.

        The time counts from the first query. Empty memories are not waited for, nor large ones, whose vectors take
        longer.

        Raises:
            StorageError: The store could not be read.
        """
        if not self._is_begun or self._is_warm.is_set() or not self._spaces.has_model:
            return
        if self._patient_until is None:
            self._patient_until = time.monotonic() + OPENING_PATIENCE_S
        if 0 < (await self._store.pending()).newest_seq <= READ_IN_A_MOMENT_PAGES:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._patient_until - time.monotonic()):
                    await self._is_warm.wait()

    async def damaged_pages(self) -> int:
        """Return how many pages are damaged on disk, by the last background check; without one, check them now.

        Raises:
            StorageError: The store could not be read.
        """
        return self._damaged_pages if self._is_begun else len(await self._store.damaged_pages())

    async def is_settled(self) -> bool:
        """Return whether no work is due now; pages may still wait for their batch to be due.

        Raises:
            StorageError: The store could not be read.
        """
        return not self._visits and not await self._is_behind()

    async def next_work_at(self) -> datetime | None:
        """Return when the next work on pages is due, now at the earliest; None if everything is derived.

        Raises:
            StorageError: The store could not be read.
        """
        now = self._clock()
        if await self._is_behind():
            return now
        due_at = await self._organising.due_at()
        return due_at and max(now, due_at)

    async def _is_behind(self) -> bool:
        """Whether work on pages is due."""
        if await self._reading.has_work() or await self._organising.due() or await self._promotion.has_work():
            return True
        return not self._spaces.is_settled or await self._spaces.has_work()

    async def _embed(self) -> bool:
        """Load the model and its vectors, then embed what has no vector."""
        try:
            await self._spaces.open()
        finally:
            self._is_warm.set()
        if await self._spaces.has_work():
            async with self._lease.hold() as lease:
                if lease is None:
                    return False
                while (left := await self._spaces.step(lease)) is not Left.NOTHING:
                    self._loops["consolidation"].wake()
                    if self._loops["embedding"].health.failed_attempts:
                        return True  # it works again: the health shows this at once
                    if left is Left.PERHAPS:
                        await asyncio.sleep(GATHER_S)
            self._loops["consolidation"].wake()
        await self._spaces.settle()
        return False

    async def _read(self) -> bool:
        """Read new pages for knowledge."""
        await self._until_quiet(KNOWN_WITHIN_S)
        if self._unread_pages > BURST_PAGES:  # an import, which reading would slow down
            await self._until_quiet(LONGEST_UNREST_S)
        self._unread_pages = 0
        if not await self._reading.has_work():
            return False
        async with self._lease.hold() as lease:
            if lease is None:
                return False
            while await self._reading.step(lease):
                pass
        self._loops["embedding"].wake()
        return False

    async def _consolidate(self) -> bool:
        """Organise what is due."""
        if not await self._organising.due():
            return False
        async with self._lease.hold() as lease:
            if lease is None:
                return False
            while self._has_llm and await self._reading.step(lease):  # an LLM is shown the known facts
                pass
            while await self._file(lease):
                pass
        self._loops["promotion"].wake()
        self._loops["embedding"].wake()
        return False

    async def _file(self, lease: Lease, *, is_hurried: bool = False) -> bool:
        async with self._spaces.filing:
            needs_vectors = self._is_embedding_well()
            if needs_vectors and self._has_llm and not is_hurried and not await self._spaces.is_filled():
                return False  # an LLM is shown the nearest topics and facts; the embedding loop wakes this one
            return await self._organising.step(lease, needs_vectors=needs_vectors, is_hurried=is_hurried)

    async def _redo(self) -> bool:
        """Have the LLM redo what the fallback did while the LLM was out of reach."""
        await self._is_warm.wait()  # pages that have vectors are filed by them
        if not self._has_llm or not await self._store.pages(PageQuery(is_degraded=True, limit=1)):
            return False
        async with self._lease.hold() as lease:
            if lease is None:
                return False
            failure: ModelError | None = None
            has_more = False
            try:
                async with self._spaces.filing:
                    has_more = await self._organising.redo(lease)
            except ModelError as error:  # what cannot be filed again may still be read again
                failure = error
            has_more |= await self._promotion.redo(lease)
            if failure is not None:
                raise failure
        self._loops["promotion"].wake()
        self._loops["embedding"].wake()
        return has_more

    async def _promote(self) -> bool:
        """Read hot segments, once all due pages are filed: more pages in one reading cost fewer calls."""
        await self._until_quiet(LONGEST_UNREST_S)
        if not self._loops["consolidation"].health.failed_attempts and await self._organising.due():
            return False
        if not await self._promotion.has_work():
            return False
        async with self._lease.hold() as lease:
            if lease is None:
                return False
            has_more = await self._promotion.step(lease)
        self._loops["embedding"].wake()
        return has_more

    async def _until_quiet(self, limit_s: float) -> None:
        """Wait while pages arrive in quick succession, as in an import, for at most ``limit_s``."""
        give_up_at = time.monotonic() + limit_s
        while (quiet_at := self._last_added + QUIET_S) > time.monotonic() < give_up_at:  # noqa: ASYNC110 - a pause
            await asyncio.sleep(min(quiet_at, give_up_at) - time.monotonic())

    def _is_embedding_well(self) -> bool:
        """Whether pages can be expected to get vectors; if not, they are organised by keywords."""
        return self._spaces.has_model and not self._loops["embedding"].health.failed_attempts

    async def _keep(self, work: str, health: Health) -> None:
        if health.last_error is not None and health.last_error_at is not None:
            failure = Failure(health.failed_attempts, health.last_error, health.last_error_at)
            await self._store.note_failure(work, failure)

    async def _count_visits(self) -> bool:
        visits, self._visits = self._visits, Counter()
        if visits:
            try:
                await self._store.add_visits(visits, self._clock())
            except (StorageError, asyncio.CancelledError):  # a visit counted twice is better than a lost one
                self._visits += visits
                raise
            self._loops["promotion"].wake()
        return False

    async def _forget(self) -> bool:
        """Forget expired pages once a day; scrub what any process has forgotten."""
        now = self._clock()
        every = WAITING_RETENTION_EVERY if self._forgetting.waits_until is not None else RETENTION_EVERY
        if self._expired_at is None or not timedelta() <= now - self._expired_at < every:
            async with self._lease.hold() as lease:
                if lease is not None and await self._forgetting.expire(lease):
                    self.forgot()
                    return True
                if lease is not None:
                    self._expired_at = now
        await self._forgetting.tidy()
        return False

    async def _verify(self) -> bool:
        """Once a day, read the whole file for damage, and delete vectors of models that are no longer in use."""
        await self._is_warm.wait()
        damaged = await self._store.verify()
        if damaged:
            logger.warning("%s; memoryos-mcp doctor tells what to do", damage_message(damaged))
        self._damaged_pages = len(damaged)
        async with self._lease.hold() as lease:
            while lease is not None and await self._spaces.tidy(lease):  # noqa: ASYNC110 - a pause
                await asyncio.sleep(TIDY_REST_S)
        return False
