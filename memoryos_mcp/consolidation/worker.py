"""The background worker, which turns one user's pages into segments, profile and knowledge.

Each kind of work has its own loop, so that slow work does not delay other work. A lease ensures that only one process
does the work.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial

import anyio.to_thread

from memoryos_mcp.config import Settings
from memoryos_mcp.consolidation.embedding import Remaining
from memoryos_mcp.consolidation.embedding_migration import VectorSpaces
from memoryos_mcp.consolidation.forgetting import Forgetting
from memoryos_mcp.consolidation.loops import LEASE_TTL_S, BackgroundLoop, BackgroundTasks, LeaseKeeper
from memoryos_mcp.consolidation.organising import BATCHES_AT_ONCE, BatchRule, Organising
from memoryos_mcp.consolidation.promotion import Promotion
from memoryos_mcp.consolidation.reading import Reading
from memoryos_mcp.errors import ModelError, StorageError
from memoryos_mcp.llm.analysis import Analyst
from memoryos_mcp.model.heat import HeatWeights
from memoryos_mcp.model.stats import Health
from memoryos_mcp.retrieval import query_time
from memoryos_mcp.storage.damage import damage_message
from memoryos_mcp.storage.interface import Store
from memoryos_mcp.storage.values import DueWork, Failure, Lease, PageQuery

logger = logging.getLogger(__name__)

# How often a process checks whether other processes have changed the memory, and for work that it could not do before.
POLL_S = 5.0
# How often a loop that has no work looks for some, although the memory has not been changed.
IDLE_POLL_S = 300.0
# Delay during which new pages are collected, so that they are embedded in one batch.
GATHER_S = 0.2
# Pages are read together once no page has arrived for QUIET_S. The wait has a limit: facts are extracted after at most
# KNOWN_WITHIN_S, or QUIET_WITHIN_S if more than BURST_PAGES pages arrived, as in an import. The profile is updated
# after at most QUIET_WITHIN_S.
QUIET_S = 0.25
KNOWN_WITHIN_S = 1.5
BURST_PAGES = 20
QUIET_WITHIN_S = 30.0
# After this time without new pages, everything that the first query needs is loaded. A process that only adds pages, or
# that ends soon, does not spend CPU time on this.
PREPARE_AFTER_S = 1.0
# Building the approximate index of a large memory takes seconds of CPU time. Many memories are closed before that.
OPTIMISE_AFTER_S = 3.0
# Reading a whole memory takes as much CPU time as several queries. On a busy server, many memories are closed before.
VERIFY_AFTER_S = 30.0
# In a memory that was just opened, queries wait for the model and the vectors, at most this long after the first query.
LOAD_WAIT_S = 1.5
# Queries of a memory with more pages do not wait, because its vectors cannot be loaded within LOAD_WAIT_S.
QUICKLY_LOADED_PAGES = 25_000
# Delay after which the visits to retrieved segments are written, all at once.
VISIT_POLL_S = 1.0
DAILY_POLL_S = 86_400.0
# How often purging is retried while another process reads the file.
PURGE_POLL_S = 10.0
RETENTION_EVERY = timedelta(days=1)
# How often expired pages are checked while expiry is delayed because the clock may be wrong.
WAITING_RETENTION_EVERY = timedelta(minutes=5)
# Pause between two parts of a deletion, so that other writers are not blocked.
TIDY_PAUSE_S = 0.05


class Worker:
    """Does the background work for one user's memory, from `start` to `close`.

    Args:
        store: The user's memory. The worker does not close it.
        analyst: Assigns pages to chains and segments, and extracts facts and traits.
        fallback: Does the analyst's work if the analyst fails. Without an LLM, it is the same object as ``analyst``.
        spaces: The user's vector spaces, which the worker fills.
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
                at_once=1 if self._has_llm else BATCHES_AT_ONCE,  # the LLM's prompt contains earlier results
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
        self._is_started = False
        self._started_at = 0.0
        self._are_loops_started = False
        self._tasks = BackgroundTasks()
        self._loading_ended = asyncio.Event()
        # Set once the vectors are loaded, or once it is known that queries need not wait for them.
        self._may_search = asyncio.Event()
        self._load_deadline: float | None = None
        # The end of a conversation must be polled. Every other event wakes the loop that handles it.
        silence_poll_s = min(POLL_S, settings.consolidation_idle_s or POLL_S)
        # The number of pages that are due without silence.
        self._due_pages = settings.batch_pages(has_llm=self._has_llm) if settings.consolidation_idle_s else 1
        self._loops = {
            name: BackgroundLoop(
                name,
                step,
                poll_s=pause_s,
                idle_s=max(pause_s, IDLE_POLL_S),
                clock=clock,
                save_health=partial(self._save_health, name),
            )
            for name, step, pause_s in (
                ("embedding", self._embed, POLL_S),
                ("reading", self._read, POLL_S),
                ("consolidation", self._consolidate, silence_poll_s),
                ("redo", self._redo, POLL_S),
                ("promotion", self._promote, POLL_S),
                ("visits", self._count_later, VISIT_POLL_S),
                ("forgetting", self._forget, PURGE_POLL_S),
                ("verification", self._verify, DAILY_POLL_S),
            )
        }
        self._watching = BackgroundLoop("watching", self._watch, poll_s=POLL_S, clock=clock)
        self._preparing = BackgroundLoop("preparing", self._prepare, poll_s=DAILY_POLL_S, clock=clock)
        # The state of the memory when it was last looked at, and when nothing was left to tidy up.
        self._state: object = None
        self._tidied_state: object = None

    def start(self) -> None:
        """Start the background work."""
        self._is_started = True
        self._started_at = time.monotonic()
        self._watching.start()  # it starts the other loops
        if not query_time.is_loaded():
            self._preparing.start()

    def start_to_read(self) -> None:
        """Start loading the vectors of a memory that cannot be written at the moment. No background loop is started."""
        self._tasks.start(self._open_to_read())

    async def _open_to_read(self) -> None:
        try:
            await self._spaces.open_to_read()
            await anyio.to_thread.run_sync(query_time.load)
        except (ModelError, StorageError) as error:
            logger.warning("semantic search is not available; keyword search still works: %s", error)

    async def close(self) -> None:
        """Stop all loops, and save the visit counts of the segments.

        Raises:
            StorageError: The visits could not be written.
        """
        await self._tasks.wait()
        await asyncio.gather(*(loop.close() for loop in (*self._loops.values(), self._watching, self._preparing)))
        try:
            await self._count_visits()
        finally:
            await self._lease.close()

    @property
    def health(self) -> Mapping[str, Health]:
        """The health of each loop, by the loop's name."""
        return {name: loop.health for name, loop in self._loops.items()}

    def page_added(self, backlog_pages: int) -> None:
        """Wake the loops that process a new page.

        ``backlog_pages`` is the number of pages in the backlog: pages that have left short-term memory and wait to be
        organised in a batch. The loop that organises them is woken by the first of them, so that it notices the end of
        the conversation, and by each page with which they are due at once.
        """
        self._last_added = time.monotonic()
        self._unread_pages += 1
        for name in ("embedding", "reading"):
            self._loops[name].wake()
        if backlog_pages == 1 or backlog_pages >= self._due_pages:
            self._loops["consolidation"].wake()

    def imported(self) -> None:
        """Wake the background loops that process new memories, because an import may have added some."""
        self._last_added = time.monotonic()
        for name in ("embedding", "reading", "consolidation", "promotion"):
            self._loops[name].wake()

    def visited(self, segments: Iterable[int]) -> None:
        """Count a visit to each of the retrieved segments. The counts are written later, all at once."""
        if self._is_started:
            self._visits.update(segments)
            self._loops["visits"].wake()

    def knowledge_changed(self) -> None:
        """Wake the embedding loop, because a correction by the user has added a fact."""
        self._loops["embedding"].wake()

    def forgot(self) -> None:
        """Wake the loops after a deletion, because the remaining pages may have to be read and embedded again."""
        for name in ("embedding", "reading", "promotion", "forgetting"):
            self._loops[name].wake()

    def redo(self) -> None:
        """Wake the loop that lets the LLM redo the work that was done without it."""
        self._loops["redo"].wake()

    async def analyse(self) -> None:
        """Assign the whole backlog to chains and segments, and extract traits from all segments, regardless of heat.

        Raises:
            ModelError: The LLM gave no usable answer.
            StorageError: Another process is doing the background work, or the store failed.
        """
        await self._until_embedded()
        async with self._lease.hold() as lease:
            if lease is None:
                msg = (
                    "another process is doing the background work of this memory; stop that process, or run the "
                    "analysis there"
                )
                raise StorageError(msg)
            while await self._reading.step(lease):
                pass
            while await self._file(lease, is_hurried=True):
                self._loops["embedding"].wake()
                await self._until_embedded()
            while await self._promotion.step(lease, ignores_heat=True):
                pass
        self._loops["embedding"].wake()

    async def _until_embedded(self) -> None:
        """Wait until all pages have vectors. Stop waiting if embedding fails or no model is configured."""
        while self._is_embedding_well() and (not self._spaces.is_settled or await self._spaces.has_work()):  # noqa: ASYNC110 - another loop's state
            await asyncio.sleep(GATHER_S)

    async def until_loaded(self) -> None:
        """Wait until the vectors are loaded, but at most until `LOAD_WAIT_S` seconds after the first query.

        Return at once if the memory has too many pages to be loaded in this time.
        """
        if not self._is_started or self._may_search.is_set() or not self._spaces.has_model:
            return
        if self._load_deadline is None:
            self._load_deadline = time.monotonic() + LOAD_WAIT_S
        with suppress(TimeoutError):
            async with asyncio.timeout(self._load_deadline - time.monotonic()):
                await self._may_search.wait()

    async def damaged_pages(self) -> int:
        """Return the number of damaged pages that the last background check found.

        If no background work is running, check the memory now.
        """
        return self._damaged_pages if self._is_started else len(await self._store.damaged_pages())

    async def is_settled(self) -> bool:
        """Return whether all work that is due has been done. The backlog may still contain an incomplete batch."""
        return not self._visits and not await self._is_behind()

    async def next_work_at(self) -> datetime | None:
        """Return the time when the next work on pages is due, or None if all work is done.

        If work is due already, return the current time. If another process is doing this work, return the current time
        plus the duration of a lease.
        """
        if all(self._loops[name].is_resting for name in ("embedding", "reading", "consolidation", "promotion")):
            return None
        now = self._clock()
        if await self._is_behind():
            return now + timedelta(seconds=LEASE_TTL_S) if self._lease.is_elsewhere else now
        due_at = await self._organising.due_at()
        return due_at and max(now, due_at)

    async def _is_behind(self) -> bool:
        due = await self._store.due_work()
        if due.has_unread or (due.has_backlog and await self._is_batch_due()):
            return True
        if await self._promotion.has_work(due):
            return True
        return not self._spaces.is_settled or await self._spaces.has_work()

    async def _is_batch_due(self) -> bool:
        return bool(await self._organising.due(await self._store.pending()))

    async def _watch(self) -> bool:
        """Wake the loops that have work if this process or another one has changed the memory. Return False to pause.

        The first call starts the loops. A loop without work begins with a pause, so that an opening costs little. The
        state is read before the work, so that no change is missed.
        """
        state = due = None
        with suppress(StorageError):  # the loops report it
            state = await self._store.state()
            if state == self._state:
                return False
            due = await self._store.due_work()
        self._state = state
        has_work = self._with_work(due)
        if self._are_loops_started:
            for name in has_work:
                self._loops[name].wake()
            return False
        self._are_loops_started = True
        if due is not None and not 0 < due.newest_seq <= QUICKLY_LOADED_PAGES:
            self._may_search.set()
        for name, loop in self._loops.items():
            loop.start(has_work=name in has_work or name in ("embedding", "verification"))
        return False

    def _with_work(self, due: DueWork | None) -> set[str]:
        """Return the names of the loops that may have work after a change of the memory.

        If ``due`` is None, these are all loops that a change can give work.
        """
        if due is None:
            return self._loops.keys() - {"visits", "verification"}
        has_work = {
            "embedding": due.has_unembedded or not self._spaces.is_up_to_date,
            "reading": due.has_unread,
            "consolidation": due.has_backlog,
            "redo": self._has_llm and due.has_degraded,
            "promotion": self._promotion.may_have_work(due),
            "forgetting": self._forgetting.has_retention or due.forget_epoch > 0,
        }
        return {name for name, has in has_work.items() if has}

    async def _prepare(self) -> None:
        """Load what the first query needs besides the vectors, once the process has nothing else to do."""
        await self._loading_ended.wait()
        await asyncio.sleep(PREPARE_AFTER_S)
        await self._until_quiet(QUIET_WITHIN_S)
        await anyio.to_thread.run_sync(query_time.load)

    async def _embed(self) -> bool | None:
        """Load the model and its vectors, then embed all pages, facts and segments that have no vector.

        Return whether the next step must follow at once. This is the case only if work succeeds again after a failure.
        Return None if there was nothing to do.
        """
        try:
            await self._spaces.open()
        finally:
            self._loading_ended.set()
            self._may_search.set()
        if await self._spaces.has_work():
            async with self._lease.hold() as lease:
                if lease is None:
                    return False
                while (remaining := await self._spaces.step(lease)) is not Remaining.NONE:
                    self._loops["consolidation"].wake()
                    if self._loops["embedding"].health.failed_attempts:
                        return True  # ends the step, so that the health shows the recovery at once
                    if remaining is Remaining.UNKNOWN:
                        await asyncio.sleep(GATHER_S)
            self._loops["consolidation"].wake()
            await self._settle()
            return False
        await self._settle()
        return None if self._spaces.is_settled else False

    async def _settle(self) -> None:
        await self._spaces.settle()
        if time.monotonic() >= self._started_at + OPTIMISE_AFTER_S:
            await self._spaces.optimise()

    async def _read(self) -> bool | None:
        """Extract facts from new pages. Return None if there were no new pages, otherwise False."""
        await self._until_quiet(KNOWN_WITHIN_S)
        if self._unread_pages > BURST_PAGES:  # reading would slow an import down
            await self._until_quiet(QUIET_WITHIN_S)
        self._unread_pages = 0
        if not await self._reading.has_work():
            return None
        async with self._lease.hold() as lease:
            if lease is None:
                return False
            while await self._reading.step(lease):
                pass
        self._loops["embedding"].wake()
        return False

    async def _consolidate(self) -> bool | None:
        """Assign the due batches of the backlog to chains and segments.

        Return None if the backlog is empty, so that the loop sleeps until pages arrive. Otherwise return False, so that
        the loop pauses before it looks for more batches.
        """
        pending = await self._store.pending()
        if not await self._organising.due(pending):
            return False if pending.backlog else None
        async with self._lease.hold() as lease:
            if lease is None:
                return False
            while self._has_llm and await self._reading.step(lease):  # its prompt contains the known facts
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
                return False  # its prompt needs the nearest segments; the embedding loop wakes this loop later
            return await self._organising.step(lease, needs_vectors=needs_vectors, is_hurried=is_hurried)

    async def _redo(self) -> bool | None:
        """Let the LLM redo some of the work that the fallback (without an LLM) did while the LLM failed.

        Return whether more of this work can be redone now, or None if there is no such work.
        """
        await self._loading_ended.wait()  # filing compares vectors
        if not self._has_llm or not await self._store.pages(PageQuery(is_degraded=True, limit=1)):
            return None
        async with self._lease.hold() as lease:
            if lease is None:
                return False
            failure: ModelError | None = None
            has_more = False
            try:
                async with self._spaces.filing:
                    has_more = await self._organising.redo(lease)
            except ModelError as error:  # pages that cannot be filed again may still be read again
                failure = error
            has_more |= await self._promotion.redo(lease)
            if failure is not None:
                raise failure
        self._loops["promotion"].wake()
        self._loops["embedding"].wake()
        return has_more

    async def _promote(self) -> bool | None:
        """Extract traits from hot segments. Return whether there may be more segments to read, or None if none is hot.

        While pages are due to be assigned to segments, do nothing and return False. Waiting saves LLM calls, because
        one call can read several pages of the same segment. If the last attempt to assign pages failed, traits are
        extracted without waiting.
        """
        await self._until_quiet(QUIET_WITHIN_S)
        filing = self._loops["consolidation"]
        if not filing.is_resting and not filing.health.failed_attempts and await self._is_batch_due():
            return False
        if not await self._promotion.has_work(await self._store.due_work()):
            return None
        async with self._lease.hold() as lease:
            if lease is None:
                return False
            has_more = await self._promotion.step(lease)
        self._loops["embedding"].wake()
        return has_more

    async def _until_quiet(self, limit_s: float) -> None:
        """Wait until no page has arrived for `QUIET_S` seconds, but at most ``limit_s`` seconds."""
        give_up_at = time.monotonic() + limit_s
        while (quiet_at := self._last_added + QUIET_S) > time.monotonic() < give_up_at:  # noqa: ASYNC110 - a pause
            await asyncio.sleep(min(quiet_at, give_up_at) - time.monotonic())

    def _is_embedding_well(self) -> bool:
        """Return whether an embedding model is configured and the last attempt to embed did not fail."""
        return self._spaces.has_model and not self._loops["embedding"].health.failed_attempts

    async def _save_health(self, work: str, health: Health) -> None:
        if health.last_error is not None and health.last_error_at is not None:
            failure = Failure(health.failed_attempts, health.last_error, health.last_error_at)
            await self._store.note_failure(work, failure)

    async def _count_later(self) -> None:
        """Write the visit counts after a short wait, so that several visits are written together."""
        if self._visits:
            await asyncio.sleep(VISIT_POLL_S)
            await self._count_visits()

    async def _count_visits(self) -> None:
        visits, self._visits = self._visits, Counter()
        if visits:
            try:
                await self._store.add_visits(visits, self._clock())
            except (StorageError, asyncio.CancelledError):  # counting a visit twice is better than losing it
                self._visits += visits
                raise

    async def _forget(self) -> bool:
        """Forget expired pages, or tidy up if there are none. Return whether there may be more expired pages.

        The search for expired pages runs once a day. While expiry is delayed because the clock may be wrong, the search
        runs every few minutes. For tidying up, see `Forgetting.tidy`.
        """
        now = self._clock()
        every = WAITING_RETENTION_EVERY if self._forgetting.waits_until is not None else RETENTION_EVERY
        is_due = self._expired_at is None or not timedelta() <= now - self._expired_at < every
        if is_due and self._forgetting.has_retention:
            async with self._lease.hold() as lease:
                if lease is not None and await self._forgetting.expire(lease):
                    self.forgot()
                    return True
                if lease is not None:
                    self._expired_at = now
        state = self._state
        if (state is None or state != self._tidied_state) and await self._forgetting.tidy():
            self._tidied_state = state
        return False

    async def _verify(self) -> bool:
        """Check the whole memory for damage, and delete the vectors of models that are no longer in use.

        This step runs once a day. Always return False, because no more work is left.
        """
        await self._loading_ended.wait()
        await asyncio.sleep(self._started_at + VERIFY_AFTER_S - time.monotonic())
        damaged = await self._store.verify()
        if damaged:
            logger.warning("%s; run `memoryos-mcp doctor` to see the next steps", damage_message(damaged))
        self._damaged_pages = len(damaged)
        if not self._spaces.has_others:
            return False
        async with self._lease.hold() as lease:
            while lease is not None and await self._spaces.tidy(lease):  # noqa: ASYNC110 - a pause
                await asyncio.sleep(TIDY_PAUSE_S)
        return False
