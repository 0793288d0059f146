"""What a person does with their memory: see it, correct it, forget of it, take it along. The protocol of that.

It is apart from `Store`, the daily work of adding, answering and deriving, which few of these methods have to do with.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Protocol, TypeVar

from memoryos_mcp.model.forgotten import ForgetCounts, ForgetPlan, ForgetReceipt, Sample
from memoryos_mcp.model.ids import MemoryId
from memoryos_mcp.model.inspected import Listed, ListRequest, Look, Place
from memoryos_mcp.model.knowledge import AddFact
from memoryos_mcp.model.pages import Tier
from memoryos_mcp.model.records import Record
from memoryos_mcp.model.segments import Digest
from memoryos_mcp.storage.sqlite.correcting import Corrected, Correction
from memoryos_mcp.storage.sqlite.forgetting import Wordless, WordlessPlace
from memoryos_mcp.storage.values import LongTerm, PageBatch

T = TypeVar("T")


class UserData(Protocol):
    """One user's memory on disk, as the person owns it. Safe to share as its store is.

    Every method raises `StorageError` if the disk fails.
    """

    async def look(self, ids: Sequence[MemoryId]) -> list[Look | None]:
        """Return memories with what belongs to each, in the order of their ids; None for what is not there."""
        ...

    async def listed(self, request: ListRequest, place: Place | None, limit: int) -> list[Listed]:
        """Return the next memories of a list from a place, at most ``limit``; None begins."""
        ...

    async def text_bytes(self) -> dict[Tier, int]:
        """Return how long the texts of all pages are together, UTF-8, by tier."""
        ...

    async def correct(self, what: MemoryId, correction: Correction, *, is_dry_run: bool) -> Corrected:
        """Carry out a checked correction of a fact or trait, or with ``is_dry_run`` tell only what it would change.

        Raises:
            ArgumentError: The memory is not there, is not current, or says the same already; nothing was changed.
        """
        ...

    async def copy_out(self, take: Callable[[Iterator[Record]], T]) -> T:
        """Return what ``take`` makes, in a thread, of everything that cannot be derived again, in one state."""
        ...

    async def known_pages(self, names: Sequence[tuple[str | None, str | None]]) -> int:
        """Return how many of some pages are there, by their public name or their idempotency key."""
        ...

    async def take_in_pages(self, batch: PageBatch) -> dict[str, str]:
        """Add the pages of a file that are not there, with their groups, in one transaction.

        Returns:
            The names of those that are there already, by their names in the file.
        """
        ...

    async def take_in_long_term(self, long_term: LongTerm) -> Counter[str]:
        """Add what a file says beside its pages, in one transaction; return how much of it is new, by kind.

        With it returns how many facts were archived.
        """
        ...

    async def add_found_facts(self, facts: Sequence[AddFact], learner: str) -> Counter[str]:
        """Add facts that come without pages, each once; return how many are new, and how many were archived."""
        ...

    async def plan_of_everything(self) -> ForgetPlan:
        """Return the plan that leaves nothing of what there is now."""
        ...

    async def plan_of(self, ids: Sequence[MemoryId]) -> ForgetPlan:
        """Return the plan of named memories, all or none of them.

        Raises:
            ArgumentError: An id names nothing.
        """
        ...

    async def pages_between(self, after: datetime | None, before: datetime | None) -> list[int]:
        """Return the numbers of the pages said from ``after`` on and earlier than ``before``, ascending."""
        ...

    async def kept_plan(self, handle: str) -> ForgetPlan | None:
        """Return the plan that is kept under a handle; None if there is none, or it is too old."""
        ...

    async def plan_forgetting(
        self, plan: ForgetPlan, handle: str, expires_at: datetime
    ) -> tuple[ForgetCounts, list[Sample]]:
        """Keep a plan under a handle for a while, and return what it would come to; nothing is forgotten."""
        ...

    async def forget(self, handle: str) -> ForgetReceipt | None:
        """Carry out a kept plan, once, in one transaction, and return the receipt; None if there is no such plan."""
        ...

    async def forget_receipts(self) -> list[ForgetReceipt]:
        """Return all receipts, the oldest first."""
        ...

    async def unscrubbed(self) -> list[str]:
        """Return the receipts of what may still lie in the files."""
        ...

    async def wordless(self, place: WordlessPlace, limit: int) -> Wordless:
        """Return the next chains and segments whose words went with a page, at most ``limit`` of each."""
        ...

    async def give_words(self, found: Wordless, digests: Sequence[Digest], summariser: str) -> bool:
        """Give what is wordless its words, chains first; False if something else was forgotten since it was found."""
        ...

    async def scrub(self) -> bool:
        """Overwrite in the files what was deleted; False if another process is reading, so that it could not be."""
        ...

    async def mark_scrubbed(self, receipts: Sequence[str]) -> None:
        """Take note that what was forgotten is gone from the files."""
        ...
