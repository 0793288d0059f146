"""`UserData`: the protocol for inspecting, correcting, exporting, importing and forgetting one user's memory.

`Store` is the protocol for the daily work: adding pages, retrieval and consolidation.
"""

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
    """The user's own operations on one memory. Safe to share between tasks and between processes.

    Every method raises `StorageError` if the disk fails.
    """

    async def look(self, ids: Sequence[MemoryId]) -> list[MemoryView | None]:
        """Return memories with what belongs to each, in the order of their ids; None for a missing one."""
        ...

    async def listed(self, request: ListRequest, place: Place | None, limit: int) -> list[ListEntry]:
        """Return the next memories of a list, at most ``limit``, from ``place`` on; None starts at the beginning."""
        ...

    async def text_bytes(self) -> dict[Tier, int]:
        """Return the total size of the pages' texts by tier, in bytes of UTF-8."""
        ...

    async def correct(self, what: MemoryId, correction: Correction, *, is_dry_run: bool) -> Corrected:
        """Correct a fact or trait, or with ``is_dry_run`` only return what the correction would change.

        Raises:
            ArgumentError: The memory is missing, not current, or already says the same; nothing was changed.
        """
        ...

    async def export_records(self, take: Callable[[Iterator[Record]], T]) -> T:
        """Return what ``take`` makes, in a thread, of one state of all records that cannot be derived again."""
        ...

    async def count_existing_pages(self, names: Sequence[tuple[str | None, str | None]]) -> int:
        """Return how many of some pages exist, each named by its ``page_id`` or its idempotency key."""
        ...

    async def import_pages(self, batch: PageBatch) -> dict[str, str]:
        """Add the missing pages of an imported file with their chains and segments, in one transaction.

        Returns:
            The stored ``page_id`` of each page that already existed, by its name in the file.
        """
        ...

    async def import_long_term(self, long_term: LongTerm) -> Counter[str]:
        """Add all of an imported file but its pages, in one transaction.

        Returns:
            How many records are new, by kind, and how many facts were archived.
        """
        ...

    async def import_facts(self, facts: Sequence[AddFact], learner: str) -> Counter[str]:
        """Add facts that have no pages, each once; return how many are new and how many facts were archived."""
        ...

    async def plan(self, ids: Sequence[MemoryId] | None) -> ForgetPlan:
        """Return the plan that forgets some memories; None means everything there is now.

        Raises:
            ArgumentError: A memory does not exist.
        """
        ...

    async def pages_between(self, after: datetime | None, before: datetime | None) -> list[int]:
        """Return the ``seq`` of the pages said at or after ``after`` and before ``before``, ascending."""
        ...

    async def stored_plan(self, handle: str) -> ForgetPlan | None:
        """Return the plan stored under a handle; None if it is missing or expired."""
        ...

    async def plan_forgetting(
        self, plan: ForgetPlan, handle: str, expires_at: datetime
    ) -> tuple[ForgetCounts, list[Sample]]:
        """Store a plan under a handle until ``expires_at``; return what it would forget. Nothing is forgotten yet."""
        ...

    async def forget(self, handle: str) -> ForgetReceipt | None:
        """Carry out a stored plan once, in one transaction; return the receipt, or None if there is no such plan."""
        ...

    async def forget_receipts(self) -> list[ForgetReceipt]:
        """Return all receipts, the oldest first."""
        ...

    async def unpurged(self) -> list[str]:
        """Return the names of receipts whose forgotten content may still be in the files."""
        ...

    async def missing_summaries(self, place: SummaryCursor, limit: int) -> MissingSummaries:
        """Return the next chains and segments that lost their summary with a page, at most ``limit`` of each."""
        ...

    async def set_summaries(self, found: MissingSummaries, digests: Sequence[Digest], summariser: str) -> bool:
        """Set missing summaries, chains first; False if something else was forgotten since they were found."""
        ...

    async def purge(self) -> bool:
        """Overwrite forgotten content in the files and mark its receipts; False if another process is reading."""
        ...
