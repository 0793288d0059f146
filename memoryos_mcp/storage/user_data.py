"""The protocol for inspecting, correcting, exporting, importing and forgetting one user's memory."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Protocol, TypeVar

from memoryos_mcp.model.forgotten import ForgetCounts, ForgetPlan, ForgetReceipt, Sample
from memoryos_mcp.model.ids import MemoryId
from memoryos_mcp.model.knowledge import AddFact
from memoryos_mcp.model.pages import Tier
from memoryos_mcp.model.records import Record
from memoryos_mcp.model.segments import Digest
from memoryos_mcp.model.views import Learned, ListEntry, ListRequest, MemoryView, Place, SegmentPages
from memoryos_mcp.storage.values import Corrected, Correction, LongTerm, MissingSummaries, PageBatch, SummaryCursor

T = TypeVar("T")


class UserData(Protocol):
    """Inspects, corrects, exports, imports and forgets one user's memory. Safe to share between tasks and processes.

    Every method raises `StorageError` if the memory cannot be read or written.
    """

    async def look(self, ids: Sequence[MemoryId]) -> list[MemoryView | None]:
        """Return memories with their evidence and history, in the order of ``ids``.

        The result contains None for each memory that does not exist.
        """
        ...

    async def learned_from(self, page_id: str) -> Learned:
        """Return the facts and traits for which a page is evidence. If the page does not exist, the result is empty."""
        ...

    async def listed(self, request: ListRequest, place: Place | None, limit: int) -> list[ListEntry]:
        """Return at most ``limit`` memories that match ``request``, starting at the position ``place``.

        ``place`` is the position after the last memory that was already listed, or None for the beginning of the list.
        """
        ...

    async def page_counts(self, request: ListRequest, starts: Sequence[datetime]) -> list[int]:
        """Return the number of pages that match ``request`` in each period.

        Args:
            request: The filters of a list of pages.
            starts: The times at which the periods begin, in ascending order; at least two. Each period lasts until the
                next time. The last time is only the end of the last period, so the result has one item fewer.
        """
        ...

    async def segment_pages(self, segment: int, chains: int) -> SegmentPages:
        """Return the times of a segment's pages, and at most ``chains`` of its chains, those with the newest pages."""
        ...

    async def past_traits(self) -> list[str]:
        """Return the names (dimensions) of past traits, sorted.

        A past trait was removed from the profile. Its history is still stored.
        """
        ...

    async def text_bytes(self) -> dict[Tier, int]:
        """Return the total size of the page texts in each tier, in bytes of UTF-8."""
        ...

    async def correct(self, what: MemoryId, correction: Correction, *, is_dry_run: bool) -> Corrected:
        """Correct a fact or trait, and return the result.

        With ``is_dry_run``, nothing is changed, and the result contains None as the id of a new fact.

        Raises:
            ArgumentError: The fact or trait does not exist or is not current, the correction would not change it, or an
                earlier correction cannot be undone. Nothing was changed.
        """
        ...

    async def export_records(self, take: Callable[[Iterator[Record]], T], project: str | None = None) -> T:
        """Call ``take`` with an iterator over all records of the memory, and return the result of ``take``.

        The records contain the memory as it was at one moment, even if the memory changes meanwhile. Vectors and
        indexes are not included. ``take`` runs in a thread. With a project, the records contain only its pages, their
        chains and segments, and the facts that these pages state.
        """
        ...

    async def count_existing_pages(self, names: Sequence[tuple[str | None, str | None]]) -> int:
        """Return how many of the given pages exist.

        Each page is given as a pair: its ``page_id`` and its idempotency key. Either may be None. The page exists if a
        stored page has this id or this key.
        """
        ...

    async def import_pages(self, batch: PageBatch) -> dict[str, str]:
        """Add those pages of an export file that do not exist yet, with their chains and segments, in one transaction.

        Returns:
            A mapping from the ``page_id`` in the file to the stored ``page_id``, for the pages that already existed.
        """
        ...

    async def import_long_term(self, long_term: LongTerm) -> Counter[str]:
        """Add the facts, traits and other long-term records of an export file, in one transaction.

        The pages of the file must have been imported before. Records that already exist are not added again.

        Returns:
            The number of added records of each kind, and with the key `ARCHIVED`, the number of facts archived because
            there were too many. An archived fact may be an added one or an earlier one.
        """
        ...

    async def import_facts(self, facts: Sequence[AddFact], learner: str) -> Counter[str]:
        """Add facts from a file of another program, without evidence. Facts that already exist are not added again.

        Args:
            facts: The facts to add.
            learner: The origin of the facts, such as ``import:mem0``. It is stored as `Fact.learned_by`.

        Returns:
            Two counts: ``fact`` for the added facts, and `ARCHIVED` for facts archived because there were too many. An
            archived fact may be an added one or an earlier one.
        """
        ...

    async def plan(self, ids: Sequence[MemoryId] | None) -> ForgetPlan:
        """Return a plan to forget the memories with these ids or, with None, all memories that exist now.

        Raises:
            ArgumentError: A memory does not exist.
        """
        ...

    async def pages_between(
        self, after: datetime | None, before: datetime | None, project: str | None = None
    ) -> list[int]:
        """Return the ``seq`` of each page whose dialogue took place in a period, in one project or in all.

        The period includes its start ``after``, but not its end ``before``. None means no limit.
        """
        ...

    async def stored_plan(self, handle: str) -> ForgetPlan | None:
        """Return the plan that was stored under a handle, or None if it does not exist or has expired."""
        ...

    async def plan_forgetting(
        self, plan: ForgetPlan, handle: str, expires_at: datetime
    ) -> tuple[ForgetCounts, list[Sample], list[Sample]]:
        """Store a plan under a handle until ``expires_at``.

        Returns:
            The number of memories of each kind that the plan would forget, samples of these memories, and samples of
            derived texts. Derived texts are facts, trait reasons and segment summaries that would be deleted because
            they were derived from pages in the plan.
        """
        ...

    async def forget(self, handle: str) -> ForgetReceipt | None:
        """Carry out the plan that was stored under a handle, in one transaction.

        Returns:
            The receipt, or None if the plan does not exist or has expired. If the plan was already carried out, the
            same receipt is returned again.
        """
        ...

    async def forget_receipts(self) -> list[ForgetReceipt]:
        """Return all receipts, the oldest first. There is one for each transaction that has forgotten something."""
        ...

    async def kept_copies(self) -> list[str]:
        """Return the file names of the backup copies made by restores, the oldest first."""
        ...

    async def remove_kept_copies(self) -> None:
        """Remove all backup copies made by restores.

        Raises:
            StorageError: A copy could not be removed.
        """
        ...

    async def unpurged(self) -> list[str]:
        """Return the ids of the forget receipts that are not marked as purged.

        The content that these receipts report as forgotten may still be in the files.
        """
        ...

    async def missing_summaries(self, after: SummaryCursor, limit: int) -> MissingSummaries:
        """Return up to ``limit`` chains and up to ``limit`` segments that have no summary.

        Their summaries were deleted because they may have quoted forgotten pages. To continue, pass the ``end`` of the
        previous result as ``after``.
        """
        ...

    async def set_summaries(self, missing: MissingSummaries, digests: Sequence[Digest], summariser: str) -> bool:
        """Store new summaries of chains and segments that have none.

        Args:
            missing: The chains and segments, as returned by `missing_summaries`.
            digests: One new summary for each chain, then one for each segment, in the order of ``missing``.
            summariser: Name of the analyst that wrote the summaries.

        Returns:
            True if the summaries were stored. False if something was forgotten after ``missing`` was read. In this
            case, nothing was written.
        """
        ...

    async def purge(self) -> bool:
        """Overwrite forgotten content in the files, and mark the receipts of that content as purged.

        Returns:
            True if the content was overwritten. False if another process is using the files; the caller should then try
            again later.
        """
        ...
