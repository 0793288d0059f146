"""The seam of storage: the protocols of one user's stored memory, by role.

Callers add pages, one transaction per call. Everything else is derived from pages by background work that holds the
user's lease. A background write names its lease and is refused once another process has taken the lease over.

Every store keeps three promises that its users rely on:

- ``seq`` numbers the pages of one user from 1 without gaps in the order of their commits, but for forgotten pages.
- The change sequence has no gaps: a reader that has seen position ``n`` finds every later change after ``n``.
- The forget epoch grows by one in the transaction that forgets, so that whoever sees the old epoch after reading has
  read nothing that was forgotten meanwhile.

Every method raises `StorageError` if the disk fails. A method that takes a lease raises `LeaseLostError` once another
process holds it.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from memoryos_mcp.model.forgotten import ForgetReceipt
from memoryos_mcp.model.knowledge import CorrectedFact, Fact
from memoryos_mcp.model.pages import Page, Turn
from memoryos_mcp.model.profile import Trait
from memoryos_mcp.model.segments import Segment
from memoryos_mcp.model.stats import Counts, UsageEntry
from memoryos_mcp.storage.capabilities import Backups, MemorySummary, Tokens
from memoryos_mcp.storage.user_data import UserData
from memoryos_mcp.storage.values import (
    Changes,
    Commit,
    FactQuery,
    Failure,
    Lease,
    Outlines,
    PageQuery,
    PageVectors,
    Pending,
    Receipt,
    Snapshot,
    Space,
    StoreOptions,
    TermStats,
    TokenRows,
    Unembedded,
    WordHit,
    WordMatches,
)


class Pages(Protocol):
    """The pages of one user: added in order, and never changed but by forgetting."""

    async def add_pages(self, turns: Sequence[Turn], *, forget_epoch: int | None = None) -> list[Receipt]:
        """Store turns in order and move the oldest short-term pages to the backlog.

        All in one transaction: on return every page is on disk, on an error none is.

        Args:
            turns: What was said.
            forget_epoch: The epoch at which the memories that turns may quote were read; None if they quote none.

        Raises:
            LeaseLostError: Something was forgotten since that epoch; nothing was stored.
        """
        ...

    async def pages(self, query: PageQuery) -> list[Page]:
        """Return the pages that meet the conditions of a query, in order of arrival."""
        ...

    async def found_pages(self, windows: Mapping[int, int]) -> dict[int, tuple[Page, tuple[int, int] | None]]:
        """Return pages by ``seq``, each with the span of one of its windows; missing pages are left out.

        Args:
            windows: Window number by the page's ``seq``.

        Returns:
            The span is start and end in the page's text, in characters; None if the window is missing.
        """
        ...

    async def counts(self) -> Counts:
        """Return how much the memory contains."""
        ...

    async def pending(self) -> Pending:
        """Return the pending background work; cheaper than `counts`."""
        ...

    async def snapshot(self) -> Snapshot:
        """Return the forget epoch and the position of the change sequence, from one state of the memory."""
        ...

    async def changes(self, after: int, limit: int) -> Changes:
        """Return what changed after a position of the change sequence, at most ``limit`` rows."""
        ...


class Index(Protocol):
    """What ranking reads of many pages at once, without their texts."""

    async def term_stats(self, words: Sequence[str], names: Sequence[str]) -> TermStats:
        """Return how many pages contain each word, and which lower-cased ``names`` the sides call each other by."""
        ...

    async def search_words(self, counts: Mapping[str, int], limit: int) -> list[WordHit]:
        """Return at most ``limit`` pages that contain any of the words, best first.

        Args:
            counts: Number of pages that contain each word, by word.
            limit: Maximum number of pages.
        """
        ...

    async def word_matches(self, counts: Mapping[str, int], seqs: Sequence[int]) -> WordMatches:
        """Return which of some pages contain which words; words that are too common to search are left out.

        Args:
            counts: Number of pages that contain each word, by word.
            seqs: The pages.
        """
        ...

    async def outlines(self, seqs: Sequence[int]) -> Outlines:
        """Return pages without their text, ascending by ``seq``; missing ones are left out."""
        ...

    async def page_vectors(self, seqs: Sequence[int]) -> PageVectors:
        """Return the vectors of some pages; pages without any are left out."""
        ...

    async def all_vectors(self, after_seq: int, limit: int) -> PageVectors:
        """Return about ``limit`` page vectors, of whole pages after ``after_seq``; empty at the end."""
        ...

    async def token_vectors(self, seqs: Sequence[int], max_bytes: int) -> TokenRows:
        """Return the token vectors of some pages as codes, in the given order, up to ``max_bytes``.

        Pages without any are left out; a page is returned whole or not at all.
        """
        ...


class Knowledge(Protocol):
    """What was derived from the pages: segments, profile and facts."""

    async def segments(self) -> list[Segment]:
        """Return the segments that are not archived."""
        ...

    async def due_segments(self) -> list[int]:
        """Return the segments to be learned from again, whatever their heat."""
        ...

    async def traits(self) -> list[Trait]:
        """Return the profile, by dimension."""
        ...

    async def facts(self, query: FactQuery) -> list[Fact]:
        """Return the facts that meet the conditions of a query, oldest first."""
        ...

    async def corrected_facts(self) -> list[CorrectedFact]:
        """Return the facts that the user marked as wrong, for all assistants, the newest correction first."""
        ...

    async def unembedded(self, limit: int) -> Unembedded:
        """Return facts and segments without vectors, at most ``limit`` of each."""
        ...

    async def add_visits(self, visits: Mapping[int, int], at: datetime) -> None:
        """Count retrievals of segments; ``visits`` is the number of visits by segment."""
        ...


class Work(Protocol):
    """Background work on one user's memory: one process at a time does it, and holds the lease."""

    async def take_lease(self, ttl_s: float) -> Lease | None:
        """Take or renew the lease on background work for ``ttl_s``; None if another process holds it."""
        ...

    async def release_lease(self, lease: Lease | None = None) -> None:
        """Release a lease, so that another process need not wait until it expires; None releases all of this store."""
        ...

    async def commit(self, lease: Lease, step: Commit) -> bool:
        """Store the result of a background step, in one transaction.

        A redone filing first takes the pages out of their old chains and segments; those left without pages are
        deleted. A learning also marks its pages as read.

        Returns:
            False, with nothing written, if a page of a filing is no longer in the backlog (or for a redo, no longer
            degraded), or if profile or knowledge has changed since the lessons of a learning were computed.
        """
        ...

    async def count_attempt(self, lease: Lease, *, pages: Sequence[int] = (), segment: int | None = None) -> int:
        """Count a failed attempt to organise pages, or to learn from a segment.

        Returns:
            The highest count among the pages; for a segment, the failures since the last success.
        """
        ...

    async def mark_degraded(self, worker: str) -> int:
        """Mark everything that ``worker`` organised or learned as to be redone; return how many pages wait for it."""
        ...

    async def expire(
        self, lease: Lease, retention: timedelta, limit: int, receipt: str
    ) -> ForgetReceipt | datetime | None:
        """Forget the oldest pages that were said longer ago than ``retention``, at most ``limit``.

        Args:
            lease: The caller's lease.
            retention: How long pages are kept.
            limit: Maximum number of pages.
            receipt: The name of the receipt.

        Returns:
            The receipt; None if no page is old enough. A time if the clock may be wrong: a call from then on forgets
            the pages.
        """
        ...

    async def add_usage(self, entry: UsageEntry) -> None:
        """Add the cost of LLM calls."""
        ...

    async def usage(self, day: str | None) -> list[UsageEntry]:
        """Return the cost of LLM calls by purpose, for one day or all days together (then ``day`` is empty)."""
        ...

    async def note_failure(self, work: str, failure: Failure) -> None:
        """Store the last failure of a kind of background work."""
        ...

    async def failures(self) -> dict[str, Failure]:
        """Return the last failure of each kind of background work in any process, by its name, the newest first."""
        ...


class Store(Pages, Index, Knowledge, Work, Protocol):
    """One user's memory on disk, viewed from one vector space. Safe to share between tasks and between processes.

    A vector space holds the vectors of one model. A newly opened store is in no vector space and returns no vectors.
    """

    @property
    def user_data(self) -> UserData:
        """The user's own operations on this memory, viewed from the same vector space."""
        ...

    @property
    def only_reads_because(self) -> str | None:
        """Why the memory cannot be written at present; None if it can, or was opened only to read."""
        ...

    def is_in_place(self) -> bool:
        """Return whether this is still the memory to use: it may have been replaced or removed; takes microseconds."""
        ...

    async def keep_lost(self) -> None:
        """Save the content of a memory that was replaced or removed, before it is closed.

        Raises:
            StorageError: There is no space for it.
        """
        ...

    async def verify(self) -> tuple[str, ...]:
        """Read everything and return the names of damaged pages; a damaged memory is refused from then on."""
        ...

    async def damaged_pages(self) -> tuple[str, ...]:
        """Return the names of the pages damaged on disk; reads all pages."""
        ...

    async def in_space(self, identity: str, model: str | None = None) -> "Store":
        """Return this store viewed from a model's vector space.

        Args:
            identity: The model's ``name:dimension:revision``.
            model: How to load the model again, JSON; nothing secret. The space is then created if missing, and marked
                as the last used. None means an existing space, which is only viewed.
        """
        ...

    def use_space_of(self, other: "Store") -> None:
        """Switch to the vector space of another view of the same store."""
        ...

    async def spaces(self) -> list[Space]:
        """Return all vector spaces, the last used first."""
        ...

    async def drop_spaces(self, lease: Lease, keep: Collection[str], unused_since: datetime) -> bool:
        """Delete some of the vectors in unused vector spaces; return whether more are left.

        Args:
            lease: The caller's lease.
            keep: Identities of vector spaces to keep.
            unused_since: Vector spaces that were used after this time are kept as well.
        """
        ...

    async def close(self) -> None:
        """Wait for running calls and release the files."""
        ...


class Stores(Protocol):
    """The stores of one deployment. Safe to share between tasks; close it after every store."""

    @property
    def engine(self) -> str:
        """Name and version of what stores the memories, such as ``SQLite 3.51.3``."""
        ...

    @property
    def tokens(self) -> Tokens:
        """The tokens of callers over HTTP."""
        ...

    @property
    def backups(self) -> Backups | None:
        """Backups of memories; None if the engine has tools of its own for them."""
        ...

    async def open(self, user_id: str, options: StoreOptions, *, only_reads: bool = False) -> Store:
        """Open a user's store, created if missing.

        Args:
            user_id: Owner of the memory.
            options: The store's settings.
            only_reads: Refuse every change; the memory must exist.

        Raises:
            ArgumentError: The user id is not valid.
            DamagedStoreError: The memory is broken or foreign; it was left untouched.
            NewerStoreError: A newer version wrote it; it was left untouched.
            StorageError: It could not be opened.
        """
        ...

    def users_with_work(self, model: str | None) -> list[str]:
        """Return the users whose pages are not all organised and embedded. Blocks, and changes nothing.

        Args:
            model: The configured embedding model, JSON; None without one.
        """
        ...

    def examine(self, user_id: str) -> MemorySummary | None:
        """Read a user's whole memory for damage; None if there is none. Blocks, and changes nothing.

        Raises:
            ArgumentError: The user id is not valid.
            StorageError: The memory is damaged or cannot be read, or the engine is not usable.
        """
        ...

    def close(self) -> None:
        """Release what the stores share."""
        ...
