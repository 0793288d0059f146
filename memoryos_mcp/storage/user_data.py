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
from memoryos_mcp.model.views import ListEntry, ListRequest, MemoryView, Place
from memoryos_mcp.storage.values import Corrected, Correction, LongTerm, MissingSummaries, PageBatch, SummaryCursor

T = TypeVar("T")


class UserData(Protocol):
    """The operations that a user requests on one memory. Safe to share between tasks and between processes.

    Every method raises `StorageError` if the disk fails.
    """

    async def look(self, ids: Sequence[MemoryId]) -> list[MemoryView | None]:
        """Return memories with their evidence and history, in the order of ``ids``; None for a missing memory."""
        ...

    async def listed(self, request: ListRequest, place: Place | None, limit: int) -> list[ListEntry]:
        """Return the next memories of a list after ``place``, at most ``limit``; None starts at the beginning."""
        ...

    async def text_bytes(self) -> dict[Tier, int]:
        """Return the total size of the pages' texts by tier, in bytes of UTF-8."""
        ...

    async def correct(self, what: MemoryId, correction: Correction, *, is_dry_run: bool) -> Corrected:
        """Correct a fact or trait; with ``is_dry_run``, only return what the correction would change.

        Raises:
            ArgumentError: The fact or trait is missing, is not current, or already says the same; nothing was changed.
        """
        ...

    async def export_records(self, take: Callable[[Iterator[Record]], T]) -> T:
        """Call ``take`` with an iterator over all records of the memory, and return its result.

        The records are from one state of the memory, without vectors and indexes. ``take`` runs in a thread.
        """
        ...

    async def count_existing_pages(self, names: Sequence[tuple[str | None, str | None]]) -> int:
        """Return how many of the given pages exist, each identified by ``page_id`` or idempotency key."""
        ...

    async def import_pages(self, batch: PageBatch) -> dict[str, str]:
        """Add the missing pages of an export file with their chains and segments, in one transaction.

        Returns:
            The stored ``page_id`` of each page that already existed, by its ``page_id`` in the file.
        """
        ...

    async def import_long_term(self, long_term: LongTerm) -> Counter[str]:
        """Add the missing facts, traits and other records of an export file after its pages, in one transaction.

        Returns:
            The number of new records, by kind, and under `ARCHIVED` the number of archived facts.
        """
        ...

    async def import_facts(self, facts: Sequence[AddFact], learner: str) -> Counter[str]:
        """Add the missing facts of another system's file; they have no pages as evidence.

        Returns:
            The number of new facts, and under `ARCHIVED` the number of archived facts.
        """
        ...

    async def plan(self, ids: Sequence[MemoryId] | None) -> ForgetPlan:
        """Return the plan that forgets the given memories; None means all current memories.

        Raises:
            ArgumentError: A memory does not exist.
        """
        ...

    async def pages_between(self, after: datetime | None, before: datetime | None) -> list[int]:
        """Return the ``seq`` of the pages said at ``after`` or later and before ``before``; None is unlimited."""
        ...

    async def stored_plan(self, handle: str) -> ForgetPlan | None:
        """Return the plan stored under a handle; None if it is missing or expired."""
        ...

    async def plan_forgetting(
        self, plan: ForgetPlan, handle: str, expires_at: datetime
    ) -> tuple[ForgetCounts, list[Sample]]:
        """Store a plan under a handle until ``expires_at``, and return what it would forget, with samples."""
        ...

    async def forget(self, handle: str) -> ForgetReceipt | None:
        """Carry out the plan stored under a handle, in one transaction.

        Returns:
            The receipt; a repeated call returns the same receipt. None if the plan is missing or expired.
        """
        ...

    async def forget_receipts(self) -> list[ForgetReceipt]:
        """Return the receipts of everything that was forgotten, the oldest first."""
        ...

    async def kept_copies(self) -> list[str]:
        """Return the names of the copies of earlier states that restores keep beside the memory."""
        ...

    async def remove_kept_copies(self) -> None:
        """Remove the copies of earlier states that restores keep beside the memory.

        Raises:
            StorageError: A copy could not be removed.
        """
        ...

    async def unpurged(self) -> list[str]:
        """Return the names of the receipts whose forgotten content may not yet be overwritten in the files."""
        ...

    async def missing_summaries(self, after: SummaryCursor, limit: int) -> MissingSummaries:
        """Return the next chains and segments whose summaries were deleted by forgetting, at most ``limit`` of each."""
        ...

    async def set_summaries(self, missing: MissingSummaries, digests: Sequence[Digest], summariser: str) -> bool:
        """Set missing summaries.

        Args:
            missing: The chains and segments.
            digests: Their summaries in the same order, chains first.
            summariser: The author of the summaries.

        Returns:
            False, with nothing written, if something was forgotten since ``missing`` was read.
        """
        ...

    async def purge(self) -> bool:
        """Overwrite forgotten content in the files, and mark its receipts.

        Returns:
            False if another process uses the files; call it again later.
        """
        ...
