"""`Store`: the protocol of one user's stored memory.

Callers add pages, one transaction per call. Everything else is derived from pages by background work that holds the
user's lease. A background write names its lease and is refused once another process has taken the lease over.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from memoryos_mcp.model.forgotten import ForgetReceipt
from memoryos_mcp.model.knowledge import About, CorrectedFact, Fact
from memoryos_mcp.model.pages import Page, Turn, Window
from memoryos_mcp.model.profile import Trait
from memoryos_mcp.model.segments import Segment, Vector
from memoryos_mcp.model.stats import Counts, UsageEntry
from memoryos_mcp.storage.capabilities import Backups, MemorySummary, Tokens
from memoryos_mcp.storage.user_data import UserData
from memoryos_mcp.storage.values import (
    Changes,
    DonePage,
    Failure,
    Filing,
    FoundPage,
    Learning,
    Lease,
    Outlines,
    PageVectors,
    Pending,
    Receipt,
    Space,
    StoreOptions,
    TermStats,
    TokenRows,
    WordHit,
    WordMatches,
)


class Store(Protocol):
    """One user's memory on disk, viewed from one vector space. Safe to share between tasks and between processes.

    A vector space holds the vectors of one model. A newly opened store is in no vector space and returns no vectors.

    Every method raises `StorageError` if the disk fails. A method that takes a lease raises `LeaseLostError` once
    another process holds the lease.
    """

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

    def see_as(self, other: "Store") -> None:
        """Switch to the vector space of another view of the same store."""
        ...

    @property
    def owned(self) -> UserData:
        """The user's own operations on this memory, viewed from the same vector space."""
        ...

    async def in_space(self, identity: str, model: str) -> "Store":
        """Return this store viewed from a model's vector space, created if missing and marked as the last used.

        Args:
            identity: The model's ``name:dimension:revision``.
            model: How to load the model again, JSON; nothing secret.
        """
        ...

    async def in_old_space(self, identity: str) -> "Store":
        """Return this store viewed from an existing vector space."""
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

    async def add_pages(self, turns: Sequence[Turn], *, forgettings: int | None = None) -> list[Receipt]:
        """Store turns in order and move the oldest short-term pages to the backlog.

        All in one transaction: on return every page is on disk, on an error none is.

        Args:
            turns: What was said.
            forgettings: Forget epoch at which the memories that turns may quote were read; None if they quote none.

        Raises:
            LeaseLostError: Something was forgotten since that epoch; nothing was stored.
        """
        ...

    async def short_term(self) -> list[Page]:
        """Return the short-term pages, oldest first."""
        ...

    async def outlines(self, seqs: Sequence[int]) -> Outlines:
        """Return pages without their text, ascending by ``seq``; missing ones are left out."""
        ...

    async def found_pages(self, windows: Mapping[int, int]) -> dict[int, FoundPage]:
        """Return pages by ``seq``, each with its chain's summary and the span of one window; missing ones are left out.

        Args:
            windows: Window number by the page's ``seq``; a missing window gives no span.
        """
        ...

    async def lexicon(self, words: Sequence[str], names: Sequence[str]) -> TermStats:
        """Return how many pages contain each word, and which lower-cased ``names`` the sides call each other by."""
        ...

    async def word_matches(self, counts: Mapping[str, int], seqs: Sequence[int]) -> WordMatches:
        """Return which of some pages contain which words; words that are too common to search are left out.

        Args:
            counts: Number of pages that contain each word, by word.
            seqs: The pages.
        """
        ...

    async def search_words(self, counts: Mapping[str, int], limit: int) -> list[WordHit]:
        """Return at most ``limit`` pages that contain any of the words, best first.

        Args:
            counts: Number of pages that contain each word, by word.
            limit: Maximum number of pages.
        """
        ...

    async def segments(self) -> list[Segment]:
        """Return the segments that are not archived."""
        ...

    async def segment_pages(self, segment: int, *, only_unanalysed: bool, limit: int) -> list[Page]:
        """Return a segment's newest pages, at most ``limit``, in order of arrival."""
        ...

    async def traits(self) -> list[Trait]:
        """Return the profile, by dimension."""
        ...

    async def facts(
        self, about: About, *, with_archived: bool = False, slots: Collection[str] | None = None
    ) -> list[Fact]:
        """Return the facts that hold now, oldest first.

        Args:
            about: Whom the facts are about.
            with_archived: Whether to include archived facts.
            slots: Return only facts in these slots; None returns all.
        """
        ...

    async def facts_without(self, learner: str, from_seq: int) -> list[Fact]:
        """Return the facts of both sides that would hold if a learner had not read pages from ``from_seq`` on.

        The oldest is first. Facts that the learner's later facts superseded are included; archived facts are not.
        """
        ...

    async def past_facts(self, about: About, limit: int) -> list[Fact]:
        """Return the newest ``limit`` facts that no longer hold, oldest first.

        Facts that the user marked as wrong are left out: they never held.
        """
        ...

    async def corrected_facts(self) -> list[CorrectedFact]:
        """Return the facts that the user marked as wrong, for all assistants, the newest correction first."""
        ...

    async def counts(self) -> Counts:
        """Return how much the memory contains."""
        ...

    async def waiting(self) -> Pending:
        """Return the pending background work; cheaper than `counts`."""
        ...

    async def changes(self, after: int, limit: int) -> Changes:
        """Return what changed after a position of the change sequence, at most ``limit`` rows."""
        ...

    async def position(self) -> int:
        """Return the newest position of the change sequence."""
        ...

    async def page_vectors(self, seqs: Sequence[int]) -> PageVectors:
        """Return the vectors of some pages; pages without any are left out."""
        ...

    async def page_tokens(self, seqs: Sequence[int], max_bytes: int) -> TokenRows:
        """Return the token codes of some pages, in the given order, up to ``max_bytes``.

        Pages without any are left out; a page is returned whole or not at all.
        """
        ...

    async def all_vectors(self, after_seq: int, limit: int) -> PageVectors:
        """Return about ``limit`` page vectors, of whole pages after ``after_seq``; empty at the end."""
        ...

    async def add_visits(self, visits: Mapping[int, int], at: datetime) -> None:
        """Count retrievals of segments; ``visits`` is the number of visits by segment."""
        ...

    async def take_lease(self, ttl_s: float) -> Lease | None:
        """Take or renew the lease on background work for ``ttl_s``; None if another process holds it."""
        ...

    async def release_lease(self, lease: Lease) -> None:
        """Release a lease, so that another process need not wait until it expires."""
        ...

    async def release_leases(self) -> None:
        """Release every lease that this store still holds, before it is closed."""
        ...

    async def unembedded(self, limit: int) -> list[Page]:
        """Return pages without vectors, oldest first."""
        ...

    async def unembedded_facts(self, limit: int) -> list[Fact]:
        """Return facts that hold and have no vector, the archived ones last."""
        ...

    async def unembedded_segments(self, limit: int) -> list[Segment]:
        """Return segments without a vector."""
        ...

    async def set_page_vectors(self, lease: Lease, windows: Mapping[int, Sequence[Window]]) -> None:
        """Set the vectors of pages by ``seq``."""
        ...

    async def set_fact_vectors(self, lease: Lease, vectors: Mapping[int, Vector]) -> None:
        """Set the vectors of facts by number."""
        ...

    async def set_segment_vectors(self, lease: Lease, vectors: Mapping[int, Vector]) -> None:
        """Set the vectors of segments by number."""
        ...

    async def backlog(self, limit: int) -> list[Page]:
        """Return the oldest pages waiting for consolidation."""
        ...

    async def unread(self, limit: int) -> list[Page]:
        """Return the oldest pages not yet read for knowledge."""
        ...

    async def has_degraded(self) -> bool:
        """Return whether there are pages to be organised or read again."""
        ...

    async def degraded(self, organiser: str, after_seq: int, limit: int) -> list[Page]:
        """Return the next pages after ``after_seq`` that the fallback ``organiser`` filed in place of an LLM."""
        ...

    async def due_segments(self) -> list[int]:
        """Return the segments to be learned from again, whatever their heat."""
        ...

    async def count_page_attempt(self, lease: Lease, pages: Sequence[int]) -> int:
        """Count a failed attempt to organise pages; return the highest count among them."""
        ...

    async def count_segment_attempt(self, lease: Lease, segment: int) -> int:
        """Count a failed attempt to learn from a segment; return the number of failures since the last success."""
        ...

    async def degraded_readings(self, organiser: str, after_seq: int, limit: int) -> list[Page]:
        """Return the next pages after ``after_seq`` that the fallback ``organiser`` read, but did not file."""
        ...

    async def accept_degraded(self, lease: Lease, pages: Sequence[int]) -> None:
        """Accept the fallback's result for pages, so that they are not done again."""
        ...

    async def done_by(self, worker: str, after_seq: int, limit: int) -> list[DonePage]:
        """Return the next pages after ``after_seq`` that ``worker`` filed or read, in order of arrival."""
        ...

    async def mark_degraded(self, worker: str) -> int:
        """Mark everything that ``worker`` organised or learned as to be redone; return how many pages wait for it."""
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

    async def page_before(self, seq: int) -> tuple[Page, str] | None:
        """Return the newest page older than ``seq``, with its chain's current summary (empty without a chain)."""
        ...

    async def newest_seq(self) -> int:
        """Return the ``seq`` of the last added page, an upper limit of the number of pages; 0 without pages."""
        ...

    async def last_added_at(self) -> datetime | None:
        """Return when the newest page was stored; None without pages."""
        ...

    async def chain_pages(self, chain: int, limit: int) -> list[Page]:
        """Return a chain's newest pages, at most ``limit``, in order of arrival."""
        ...

    async def commit_filing(self, lease: Lease, filing: Filing) -> bool:
        """File pages under chains and segments, in one transaction.

        A redo first takes the pages out of their old chains and segments; those left without pages are deleted.

        Returns:
            False, with nothing written, if a page is no longer in the backlog (or for a redo, no longer degraded).
        """
        ...

    async def commit_learning(self, lease: Lease, learning: Learning) -> bool:
        """Store what was learned from pages and mark them analysed, in one transaction.

        Returns:
            False, with nothing written, if profile or knowledge has changed since the lessons were computed.
        """
        ...

    async def archive_segments(self, lease: Lease, segments: Sequence[int]) -> None:
        """Remove segments from the scored mid-term memory; their pages stay."""
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

    async def forgettings(self) -> int:
        """Return the forget epoch: how often something was forgotten. Once it grows, earlier reads may be outdated."""
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
