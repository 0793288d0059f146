"""Forgetting deletes memories in one transaction. A dry run shows what would be deleted.

After the transaction, no process returns the deleted memories. Two steps follow: chains and segments that lost pages
get new summaries, and the deleted bytes are overwritten in the files. If the process ends before these steps are done,
the next process that opens the memory does them.
"""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, tzinfo
from pathlib import Path

import anyio.to_thread

from memoryos_mcp.consolidation.filing import DIGEST_PAGES
from memoryos_mcp.consolidation.page_vectors import with_vectors
from memoryos_mcp.errors import ArgumentError, StorageError
from memoryos_mcp.llm.analysis import Analyst, Topic
from memoryos_mcp.llm.recording import remove_log
from memoryos_mcp.model.forgotten import ForgetCounts, ForgetPlan, ForgetReceipt, Sample, runs
from memoryos_mcp.model.ids import read_ids
from memoryos_mcp.model.pages import Page, parse_timestamp, project_name, storable
from memoryos_mcp.model.segments import Digest
from memoryos_mcp.retrieval.retrieving import Retrieving
from memoryos_mcp.storage.interface import Store
from memoryos_mcp.storage.values import Lease, MissingSummaries, PageQuery, SummaryCursor

logger = logging.getLogger(__name__)

CONFIRM_WITHIN = timedelta(minutes=15)
IDS_AT_MOST = 1_000
RETAINED_AT_ONCE = 500
# If expiry is delayed, its planned time is logged again only if the time has changed by more than this.
RETENTION_LOGGED_WITHIN = timedelta(hours=1)
# Number of summaries written in one step, which takes about a second. `confirm` waits for one step only.
SUMMARIES_AT_ONCE = 10
_HANDLE_BYTES = 12
_BEGINNING = SummaryCursor()


@dataclass(frozen=True, slots=True)
class Selection:
    """The memories that a user wants to forget.

    They are selected in one of three ways, which cannot be combined:

    - by ``ids``;
    - by ``query``, by the time limits ``after`` and ``before``, by ``project``, or by several of these;
    - by ``everything``.

    Attributes:
        ids: Ids of pages (``p_...``), segments (``s1``), chains (``c1``), facts (``k1``) and traits (``trait:...``).
        query: If not empty, selects the pages that keyword or semantic search finds.
        max_results: Maximum number of pages that ``query`` selects.
        after: Selects pages from this time (ISO 8601) or later. If there is a query, only these pages are searched.
        before: Selects pages from before this time. If there is a query, only these pages are searched.
        everything: Selects the whole memory.
        project: Selects the pages of this project. If there is a query, only these pages are searched.
    """

    ids: Sequence[str] = ()
    query: str = ""
    max_results: int = 10
    after: str | datetime | None = None
    before: str | datetime | None = None
    everything: bool = False
    project: str | None = None


@dataclass(frozen=True, slots=True)
class DryRun:
    """The result of a dry run, which changes nothing.

    Attributes:
        handle: Text that identifies this dry run. To delete the selected memories, pass it to `Forgetting.confirm`
            before ``expires_at``.
        counts: The number of selected memories of each kind.
        samples: The beginnings of some selected memories.
        derived: The beginnings of some texts that would be deleted with the selected pages: facts that only these pages
            state, reasons of traits, and summaries of segments. Empty if everything is selected.
        kept_copies: File names of the backup copies made by restores. They contain earlier states of the memory.
        is_all: Whether everything is selected. In this case, the backup copies are deleted too.
    """

    handle: str
    expires_at: datetime
    counts: ForgetCounts
    samples: Sequence[Sample]
    kept_copies: Sequence[str]
    is_all: bool
    derived: Sequence[Sample] = ()

    def __bool__(self) -> bool:
        """Return whether there is anything to forget."""
        return bool(self.counts) or (self.is_all and bool(self.kept_copies))


class Forgetting:
    """Deletes memories of one user, on request or because of their age.

    Args:
        store: The user's memory.
        fallback: Writes new summaries of chains and segments that lost pages. It needs no LLM.
        log: Path of the user's LLM log, which contains dialogue.
        retention: Maximum age of a page. Older pages are forgotten. None means no limit.
        zone: The time zone of times without a zone. None means the local time zone.
        clock: Returns the current time.
        purge_index: Function that removes forgotten pages from the vector index, and returns whether it removed all.
    """

    def __init__(
        self,
        store: Store,
        fallback: Analyst,
        log: Path,
        *,
        retention: timedelta | None,
        zone: tzinfo | None,
        clock: Callable[[], datetime],
        purge_index: Callable[[], Awaitable[bool]],
    ) -> None:
        self._store = store
        self._user_data = store.user_data
        self._fallback = fallback
        self._log = log
        self._retention = retention
        self._zone = zone
        self._clock = clock
        self._purge_index = purge_index
        # Without this lock, two tasks would do the same work.
        self._tidying = asyncio.Lock()
        # The time from which pages expire, if expiry is delayed because the clock may be wrong.
        self.waits_until: datetime | None = None
        # The last forget epoch at which every chain and segment had a summary.
        self._summarised_epoch = 0

    @property
    def has_retention(self) -> bool:
        """Whether pages have a maximum age."""
        return self._retention is not None

    async def plan(self, selection: Selection, retrieving: Retrieving) -> DryRun:
        """Store a plan for a deletion and return its dry run, without deleting. See `MemoryEngine.plan_forgetting`."""
        _check(selection)
        if selection.everything:
            plan = await self._user_data.plan(None)
        elif selection.ids:
            plan = await self._user_data.plan(read_ids(selection.ids, at_most=IDS_AT_MOST))
        else:
            plan = await self._found(selection, retrieving)
        handle = f"f_{secrets.token_hex(_HANDLE_BYTES)}"
        expires_at = self._clock() + CONFIRM_WITHIN
        counts, samples, derived = await self._user_data.plan_forgetting(plan, handle, expires_at)
        copies = await self._user_data.kept_copies()
        return DryRun(handle, expires_at, counts, samples, kept_copies=copies, is_all=plan.is_all, derived=derived)

    async def confirm(self, handle: str) -> ForgetReceipt:
        """Delete the memories that a dry run selected, and return a receipt.

        Deleted content is overwritten in the files at once, or later if another process is reading them.

        Raises:
            ArgumentError: The handle is not from a recent dry run. Nothing was deleted.
            StorageError: The store failed. Either all selected memories were deleted, or none. Call this method again
                with the same handle.
        """
        plan = await self._user_data.stored_plan(handle)
        if plan is not None and plan.is_all:  # first, because a retry after the deletion would skip this
            await self._user_data.remove_kept_copies()
        receipt = await self._user_data.forget(handle)
        if receipt is None:
            minutes = int(CONFIRM_WITHIN / timedelta(minutes=1))
            problem = (
                f"the handle is not from a dry run made in the last {minutes} minutes; nothing was forgotten. Make "
                "another dry run and pass its handle unchanged"
            )
            raise ArgumentError(argument="confirm", problem=problem)
        logger.info("%d pages and %d facts were forgotten", receipt.counts.pages, receipt.counts.facts)
        await self._resummarise_some(_BEGINNING)
        await self._purge()
        return replace(receipt, is_scrubbed=handle not in await self._user_data.unpurged())

    async def expire(self, lease: Lease) -> bool:
        """Forget some of the pages that are older than the retention time. Return whether to call again.

        While the clock may be wrong, nothing is forgotten.
        """
        if self._retention is None:
            return False
        receipt = f"r_{secrets.token_hex(_HANDLE_BYTES)}"
        forgotten = await self._store.expire(lease, self._retention, RETAINED_AT_ONCE, receipt)
        logged, self.waits_until = self.waits_until, forgotten if isinstance(forgotten, datetime) else None
        if isinstance(forgotten, datetime):
            if logged is None or abs(forgotten - logged) > RETENTION_LOGGED_WITHIN:
                logger.warning(
                    "pages are older than retention_days, but the clock may be wrong; they will be forgotten from %s "
                    "on. To keep them, set the clock right or increase retention_days",
                    forgotten.astimezone(self._zone).isoformat(timespec="minutes"),
                )
            return False
        if forgotten is not None:
            logger.info("%d pages were older than retention_days and were forgotten", forgotten.counts.pages)
        return forgotten is not None

    async def tidy(self) -> bool:
        """Remove the remains of forgotten content, and write all missing summaries.

        The remains are in the memory's files, in the vector index and in the LLM log. Return False if some of them
        cannot be removed now; call again later.
        """
        is_purged = await self._purge()
        await self._resummarise()
        return is_purged

    async def _found(self, selection: Selection, retrieving: Retrieving) -> ForgetPlan:
        """Return a plan to delete the pages that match the query, the time limits and the project of ``selection``.

        Raises:
            ArgumentError: A time limit is not valid, or ``before`` is not later than ``after``.
        """
        now = self._clock()
        after, before = (
            _moment(name, value, self._zone, now)
            for name, value in (("after", selection.after), ("before", selection.before))
        )
        if after is not None and before is not None and before <= after:
            raise ArgumentError(argument="before", problem="must be later than 'after'")
        seqs = await self._user_data.pages_between(after, before, project_name(selection.project))
        if selection.query.strip():
            found = await retrieving.about(storable(selection.query), set(seqs), selection.max_results)
            seqs = sorted(found)
        return ForgetPlan(runs=runs(seqs))

    async def _purge(self) -> bool:
        """Delete the LLM log, and remove forgotten content from the vector index and from the memory's files.

        Return False if one of these steps is not possible now; a later call tries again.
        """
        async with self._tidying:
            if not await self._user_data.unpurged():
                return True
            try:
                await anyio.to_thread.run_sync(remove_log, self._log)
            except OSError as error:
                logger.warning("%s cannot be removed (%s); another attempt will follow", self._log, error.strerror)
                return False
            try:
                if not await self._purge_index():
                    return False
            except StorageError as error:
                logger.warning("forgotten pages cannot be removed from the vector index yet: %s", error)
                return False
            if await self._user_data.purge():
                return True
            logger.info("another process is reading the memory; deleted content will be overwritten in the file later")
            return False

    async def _resummarise(self) -> None:
        """Write all missing summaries of chains and segments."""
        epoch = (await self._store.snapshot()).forget_epoch
        if epoch == self._summarised_epoch:
            return
        place: SummaryCursor | None = _BEGINNING
        while place is not None:
            place = await self._resummarise_some(place)
        self._summarised_epoch = epoch

    async def _resummarise_some(self, place: SummaryCursor) -> SummaryCursor | None:
        """Write some of the missing summaries. Return where to continue, or None if all are written.

        If memories were forgotten meanwhile, nothing is written, and the work continues at the beginning.
        """
        async with self._tidying:
            found = await self._user_data.missing_summaries(place, SUMMARIES_AT_ONCE)
            if not found.chains and not found.segments:
                return None
            digests = await self._digests(found)
            is_current = await self._user_data.set_summaries(found, digests, self._fallback.name)
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
    has_pages = has_pages or project_name(selection.project) is not None
    ways = [bool(selection.ids), has_pages, selection.everything]
    if sum(ways) == 0:
        problem = "nothing is selected; pass 'ids', 'query', 'after', 'before', 'project' or 'everything'"
        raise ArgumentError(argument="ids", problem=problem)
    if sum(ways) > 1:
        problem = (
            "this argument cannot be combined with the others; pass 'ids' alone, 'everything' alone, or 'query' with "
            "'after', 'before' and 'project'"
        )
        raise ArgumentError(argument="everything" if selection.everything else "ids", problem=problem)


def _moment(argument: str, value: str | datetime | None, zone: tzinfo | None, now: datetime) -> datetime | None:
    if value is None:
        return None
    try:
        return parse_timestamp(value, zone=zone, now=now)
    except ArgumentError as error:
        raise ArgumentError(argument=argument, problem=str(error).partition(": ")[2]) from error
