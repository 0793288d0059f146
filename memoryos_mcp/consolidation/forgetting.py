"""Forgetting: a dry run shows what will go, one transaction removes it, then it is scrubbed from the files.

After the transaction no process shows what was forgotten. Then the remaining topics get new summaries, and the bytes
are overwritten. If a process ends before that, the next one does it.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, tzinfo
from pathlib import Path

import anyio.to_thread

from memoryos_mcp.consolidation.filing import DIGEST_PAGES
from memoryos_mcp.consolidation.page_vectors import with_vectors
from memoryos_mcp.errors import ArgumentError, StorageError
from memoryos_mcp.llm.analysis import Analyst, Topic
from memoryos_mcp.llm.recording import LOG_NAME, remove_log
from memoryos_mcp.model.forgotten import ForgetCounts, ForgetPlan, ForgetReceipt, Sample, runs
from memoryos_mcp.model.ids import read_ids
from memoryos_mcp.model.pages import Page, parse_timestamp, storable
from memoryos_mcp.model.segments import Digest
from memoryos_mcp.retrieval.retrieving import Retrieving
from memoryos_mcp.storage.interface import Store
from memoryos_mcp.storage.paths import kept_copies, remove_kept_copies
from memoryos_mcp.storage.values import Lease, MissingSummaries, PageQuery, SummaryCursor

logger = logging.getLogger(__name__)

CONFIRM_WITHIN = timedelta(minutes=15)
IDS_AT_MOST = 1_000
RETAINED_AT_ONCE = 500
# The start of a delayed expiry is logged again if it has changed by more than this.
RETENTION_TOLD_WITHIN = timedelta(hours=1)
# Chains and segments that get summaries at once, in about a second; a call that forgets waits for no more.
WORDS_AT_ONCE = 10
_HANDLE_BYTES = 12
_BEGINNING = SummaryCursor()


@dataclass(frozen=True, slots=True)
class Selection:
    """What a user wants to forget: by ids, by a query, by time, or everything.

    Attributes:
        ids: Of pages (``p_...``), segments (``s1``), chains (``c1``), facts (``k1``) and traits (``trait:...``).
        query: Pages that keyword or semantic search finds; at most ``max_results``.
        after: Pages said at this time or later, ISO 8601; together with a query, only those that it finds.
        before: Pages said before this time.
    """

    ids: Sequence[str] = ()
    query: str = ""
    max_results: int = 10
    after: str | datetime | None = None
    before: str | datetime | None = None
    everything: bool = False


@dataclass(frozen=True, slots=True)
class DryRun:
    """What would be forgotten; nothing was changed.

    Attributes:
        handle: Confirms it, until ``expires_at``.
        samples: The beginnings of some memories.
        kept_copies: Names of the copies kept by restores, which contain earlier states of the memory.
        is_all: Whether everything is selected; then these copies are removed too.
    """

    handle: str
    expires_at: datetime
    counts: ForgetCounts
    samples: Sequence[Sample]
    kept_copies: Sequence[str]
    is_all: bool

    def __bool__(self) -> bool:
        """Whether there is anything to forget."""
        return bool(self.counts) or (self.is_all and bool(self.kept_copies))


class Forgetting:
    """Forgets what one user wants to forget.

    Args:
        fallback: Writes summaries for what is left of a topic.
        database: The user's file. Beside it are copies kept by restores, and the LLM log, which quotes what was sent.
        retention: Age from which pages are forgotten; None keeps all.
        zone: The zone of times without one.
    """

    def __init__(
        self,
        store: Store,
        fallback: Analyst,
        database: Path,
        *,
        retention: timedelta | None,
        zone: tzinfo | None,
        clock: Callable[[], datetime],
    ) -> None:
        self._store = store
        self._owned = store.user_data
        self._fallback = fallback
        self._database = database
        self._log = database.with_name(LOG_NAME)
        self._retention = retention
        self._zone = zone
        self._clock = clock
        # One task at a time: a second one would do the same work.
        self._tidying = asyncio.Lock()
        # When expiry starts, if it is delayed because the clock may be wrong.
        self.waits_until: datetime | None = None
        # The count of forgettings when nothing lacked a summary; before the first one, nothing does.
        self._worded_after = 0

    async def plan(self, selection: Selection, retrieving: Retrieving) -> DryRun:
        """Find what is to be forgotten and store that plan, without changing anything else.

        Raises:
            ArgumentError: The selection is empty or contradictory, or an id does not exist.
            StorageError: The store failed.
        """
        _check(selection)
        if selection.everything:
            plan = await self._owned.plan(None)
        elif selection.ids:
            plan = await self._owned.plan(read_ids(selection.ids, at_most=IDS_AT_MOST))
        else:
            plan = await self._found(selection, retrieving)
        handle = f"f_{secrets.token_hex(_HANDLE_BYTES)}"
        expires_at = self._clock() + CONFIRM_WITHIN
        counts, samples = await self._owned.plan_forgetting(plan, handle, expires_at)
        return DryRun(handle, expires_at, counts, samples, kept_copies=await self.kept_copies(), is_all=plan.is_all)

    async def kept_copies(self) -> list[str]:
        """Return the names of the copies that restores keep beside the memory."""
        return [path.name for path in await anyio.to_thread.run_sync(kept_copies, self._database)]

    async def remove_kept_copies(self) -> None:
        """Remove the copies that restores keep beside the memory.

        Raises:
            StorageError: A copy could not be removed.
        """
        try:
            await anyio.to_thread.run_sync(remove_kept_copies, self._database)
        except OSError as error:
            msg = (
                f"a copy that a restore kept in {self._database.parent} cannot be removed ({error.strerror}); nothing "
                "was forgotten. Close what has it open, and try again"
            )
            raise StorageError(msg) from error

    async def confirm(self, handle: str) -> ForgetReceipt:
        """Forget what a dry run found, and scrub the files if no other process reads them now.

        Raises:
            ArgumentError: The handle is not of a recent dry run; nothing was forgotten.
            StorageError: The store failed, and either nothing or all was forgotten; the same handle shows which.
        """
        plan = await self._owned.stored_plan(handle)
        if plan is not None and plan.is_all:  # first: nobody would do it once there is a receipt
            await self.remove_kept_copies()
        receipt = await self._owned.forget(handle)
        if receipt is None:
            minutes = int(CONFIRM_WITHIN / timedelta(minutes=1))
            problem = (
                f"is no handle of a dry run of the last {minutes} minutes; nothing was forgotten. Make another dry run "
                "and give its handle, unchanged"
            )
            raise ArgumentError(argument="confirm", problem=problem)
        logger.info("%d pages and %d facts were forgotten", receipt.counts.pages, receipt.counts.facts)
        await self._give_some_words(_BEGINNING)
        await self._scrub()
        return replace(receipt, is_scrubbed=handle not in await self._owned.unpurged())

    async def expire(self, lease: Lease) -> bool:
        """Forget some of the pages beyond the retention time; return whether there may be more.

        Raises:
            LeaseLostError: Another process does it.
        """
        if self._retention is None:
            return False
        receipt = f"r_{secrets.token_hex(_HANDLE_BYTES)}"
        forgotten = await self._store.expire(lease, self._retention, RETAINED_AT_ONCE, receipt)
        told, self.waits_until = self.waits_until, forgotten if isinstance(forgotten, datetime) else None
        if isinstance(forgotten, datetime):
            if told is None or abs(forgotten - told) > RETENTION_TOLD_WITHIN:
                logger.warning(
                    "pages are older than retention_days, but all of them or by a clock that may be wrong; they are "
                    "forgotten from %s on. Set the clock right, or raise retention_days, to keep them",
                    forgotten.astimezone(self._zone).isoformat(timespec="minutes"),
                )
            return False
        if forgotten is not None:
            logger.info("%d pages were older than retention_days and were forgotten", forgotten.counts.pages)
        return forgotten is not None

    async def tidy(self) -> None:
        """Finish the work after a forgetting, as far as that is possible now.

        Raises:
            StorageError: The store failed.
        """
        await self._scrub()
        await self._give_words()

    async def _found(self, selection: Selection, retrieving: Retrieving) -> ForgetPlan:
        """Return the pages that match the query, the time, or both."""
        now = self._clock()
        after, before = (
            _moment(name, value, self._zone, now)
            for name, value in (("after", selection.after), ("before", selection.before))
        )
        if after is not None and before is not None and before <= after:
            raise ArgumentError(argument="before", problem="is not later than after; give the end of the time")
        seqs = await self._owned.pages_between(after, before)
        if selection.query.strip():
            found = await retrieving.about(storable(selection.query), set(seqs), selection.max_results)
            seqs = sorted(found)
        return ForgetPlan(runs=runs(seqs))

    async def _scrub(self) -> None:
        """Overwrite forgotten content in the files, unless another process reads them."""
        async with self._tidying:
            if not await self._owned.unpurged():
                return
            try:
                await anyio.to_thread.run_sync(remove_log, self._log)
            except OSError as error:
                logger.warning("%s cannot be removed (%s); it is tried again", self._log, error.strerror)
                return
            if not await self._owned.purge():
                logger.info("another process reads the memory; what was forgotten is scrubbed from its file later")

    async def _give_words(self) -> None:
        """Have the fallback write all missing summaries."""
        epoch = (await self._store.snapshot()).forget_epoch
        if epoch == self._worded_after:
            return
        place: SummaryCursor | None = _BEGINNING
        while place is not None:
            place = await self._give_some_words(place)
        self._worded_after = epoch

    async def _give_some_words(self, place: SummaryCursor) -> SummaryCursor | None:
        """Write some missing summaries from the pages that are left; return where to continue, None at the end."""
        async with self._tidying:
            found = await self._owned.missing_summaries(place, WORDS_AT_ONCE)
            if not found.chains and not found.segments:
                return None
            digests = await self._digests(found)
            is_current = await self._owned.set_summaries(found, digests, self._fallback.name)
            return found.end if is_current else _BEGINNING

    async def _newest(self, *, chain: int | None = None, segment: int | None = None) -> list[Page]:
        return await self._store.pages(PageQuery(chain=chain, segment=segment, is_newest=True, limit=DIGEST_PAGES))

    async def _digests(self, found: MissingSummaries) -> list[Digest]:
        digests = []
        for pages in [
            *[await self._newest(chain=number) for number in found.chains],
            *[await self._newest(segment=number) for number in found.segments],
        ]:
            views = await with_vectors(self._store, pages)
            seqs = tuple(page.seq for page in pages)

            async def of_pages(views: Sequence[Page] = views) -> Sequence[Page]:
                return views

            digests.append(await self._fallback.joined_digest(None, [Topic(Digest((), ""), seqs)], of_pages))
        return digests


def _check(selection: Selection) -> None:
    has_pages = bool(selection.query.strip()) or selection.after is not None or selection.before is not None
    ways = [bool(selection.ids), has_pages, selection.everything]
    if sum(ways) == 0:
        problem = "nothing says what is to be forgotten; give ids, a query, after or before, or everything"
        raise ArgumentError(argument="ids", problem=problem)
    if sum(ways) > 1:
        problem = "is given beside another choice; give ids alone, everything alone, or a query with after and before"
        raise ArgumentError(argument="everything" if selection.everything else "ids", problem=problem)


def _moment(argument: str, value: str | datetime | None, zone: tzinfo | None, now: datetime) -> datetime | None:
    if value is None:
        return None
    try:
        return parse_timestamp(value, zone=zone, now=now)
    except ArgumentError as error:
        raise ArgumentError(argument=argument, problem=str(error).partition(": ")[2]) from error
