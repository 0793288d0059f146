"""The protocols of storage: one user's stored memory, by role, and the stores of a deployment.

Callers add pages, one transaction per call. Background work derives segments, profile and facts from the pages, under
a lease: a right that one process at a time has. A background write takes its lease as an argument, and fails once
another process has taken over the lease.

Every store guarantees:

- ``seq`` numbers the pages of one user from 1, in the order of their commits. Only forgotten pages leave gaps.
- A change is visible before any change with a higher number in the change sequence. A reader that continues after the
  last number that it has read therefore misses no change.
- The forget epoch increases by one in each transaction that forgets. If the epoch is the same before and after
  several reads, nothing that they returned was forgotten in between.

Every method raises `StorageError` if the disk fails. A method that takes a lease raises `LeaseLostError` if another
process has taken over the lease.
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
from memoryos_mcp.storage.capabilities import Backups, Footprint, MemorySummary, Tokens
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
    TokenRows,
    Unembedded,
    WordMatches,
    WordSearch,
)


class Pages(Protocol):
    """The pages of one user. Pages are added in order; later only their tier, chain, segment and marks change."""

    async def add_pages(self, turns: Sequence[Turn], *, forget_epoch: int | None = None) -> list[Receipt]:
        """Store turns in order, and move the oldest short-term pages beyond the capacity to the backlog.

        This is one transaction: on return every page is on disk; after an error none is.

        Args:
            turns: The turns of the dialogue.
            forget_epoch: The epoch when the memories quoted in the turns were read; None if the turns quote none.

        Returns:
            One receipt for each turn; a turn with a known idempotency key gets the receipt of the existing page.

        Raises:
            LeaseLostError: Something was forgotten after that epoch; nothing was stored.
        """
        ...

    async def pages(self, query: PageQuery) -> list[Page]:
        """Return the pages that match a query, in the order in which they were added."""
        ...

    async def found_pages(self, windows: Mapping[int, int]) -> dict[int, tuple[Page, tuple[int, int] | None]]:
        """Return pages by ``seq``, each with the position of one of its windows; missing pages are left out.

        Args:
            windows: The number of the window, by the page's ``seq``.

        Returns:
            The page, and start and end of the window in the page's text, in characters; None for a missing window.
        """
        ...

    async def counts(self) -> Counts:
        """Return the number of pages, segments, facts and other items in the memory."""
        ...

    async def pending(self) -> Pending:
        """Return the amount of pending background work; cheaper than `counts`."""
        ...

    async def snapshot(self) -> Snapshot:
        """Return the forget epoch and the newest position of the change sequence, read in one transaction."""
        ...

    async def changes(self, after: int, limit: int) -> Changes:
        """Return the changes after a position of the change sequence, at most ``limit``."""
        ...


class Index(Protocol):
    """The data of pages that ranking reads, without their texts."""

    async def search_words(self, words: Sequence[str], names: Sequence[str], limit: int) -> WordSearch:
        """Return the best pages that contain any of the words, and the statistics of words and names.

        Args:
            words: The words of a query, in the form of `text.terms.query_words`.
            names: Lower-cased words of the query that may be names of the user or of the assistant.
            limit: Maximum number of pages; 0 returns the statistics alone.
        """
        ...

    async def word_matches(self, counts: Mapping[str, int], seqs: Sequence[int]) -> WordMatches:
        """Return which of the given pages contain which words; words that are too common to search are left out.

        Args:
            counts: Number of pages that contain each word, by word.
            seqs: The pages.
        """
        ...

    async def outlines(self, seqs: Sequence[int]) -> Outlines:
        """Return the outlines of pages, ascending by ``seq``; missing pages are left out."""
        ...

    async def page_vectors(self, seqs: Sequence[int]) -> PageVectors:
        """Return the vectors of pages; pages without vectors are left out."""
        ...

    async def all_vectors(self, after_seq: int, limit: int) -> PageVectors:
        """Return about ``limit`` vectors of the pages after ``after_seq``, always of whole pages; empty at the end."""
        ...

    async def token_vectors(self, seqs: Sequence[int], max_bytes: int) -> TokenRows:
        """Return the encoded token vectors of pages, in the given order, up to ``max_bytes``.

        Pages without token vectors are left out; a page is returned whole or not at all.
        """
        ...


class Knowledge(Protocol):
    """The segments, profile and facts that were derived from the pages."""

    async def segments(self) -> list[Segment]:
        """Return the segments that are not archived."""
        ...

    async def due_segments(self) -> list[int]:
        """Return the segments whose pages must be read for the profile again, whatever their heat."""
        ...

    async def traits(self) -> list[Trait]:
        """Return the profile, by dimension."""
        ...

    async def facts(self, query: FactQuery) -> list[Fact]:
        """Return the facts that match a query, oldest first."""
        ...

    async def corrected_facts(self) -> list[CorrectedFact]:
        """Return the facts that the user marked as wrong, for all assistants, the newest correction first."""
        ...

    async def unembedded(self, limit: int) -> Unembedded:
        """Return facts and segments without vectors, at most ``limit`` of each."""
        ...

    async def add_visits(self, visits: Mapping[int, int], at: datetime) -> None:
        """Add to the visits of segments, by segment, and set the time of their last visit."""
        ...


class Work(Protocol):
    """Background work on one user's memory, done by the one process that has the lease."""

    async def take_lease(self, ttl_s: float) -> Lease | None:
        """Take or renew the lease for ``ttl_s`` seconds; return None if another process has it."""
        ...

    async def release_lease(self, lease: Lease | None = None) -> None:
        """Release a lease early, so that another process can take it; None releases any lease of this store."""
        ...

    async def commit(self, lease: Lease, step: Commit) -> bool:
        """Store the result of a background step, in one transaction.

        A filing with ``is_redo`` first removes its pages from their chains and segments, and deletes chains and
        segments that are then empty. A learning also marks its pages as read.

        Returns:
            False, with nothing written, if the result is outdated. A filing is outdated if one of its pages is no
            longer in the backlog or, with ``is_redo``, no longer degraded. A learning is outdated if the profile or
            the facts have changed since it was computed.
        """
        ...

    async def count_attempt(self, lease: Lease, *, pages: Sequence[int] = (), segment: int | None = None) -> int:
        """Count a failed attempt to organise pages, or to learn from a segment.

        Returns:
            The highest number of failures of any of the pages, or the failures of the segment since its last success.
        """
        ...

    async def mark_degraded(self, worker: str) -> int:
        """Mark all pages that ``worker`` organised or learned from as degraded; return the number of degraded pages."""
        ...

    async def expire(
        self, lease: Lease, retention: timedelta, limit: int, receipt: str
    ) -> ForgetReceipt | datetime | None:
        """Forget the pages that are older than ``retention``, the oldest first, at most ``limit``.

        Args:
            lease: The caller's lease.
            retention: The age from which pages are forgotten.
            limit: Maximum number of pages.
            receipt: The name of the receipt.

        Returns:
            The receipt, or None if no page is old enough. If the clock may be wrong, nothing is forgotten, and the
            time is returned from which on a call forgets the pages.
        """
        ...

    async def add_usage(self, entry: UsageEntry) -> None:
        """Add the number and tokens of LLM calls to the usage."""
        ...

    async def usage(self, day: str | None) -> list[UsageEntry]:
        """Return the usage of LLMs by purpose, for one day; None means the sum of all days, with an empty ``day``."""
        ...

    async def note_failure(self, work: str, failure: Failure) -> None:
        """Store a failure of a kind of background work in place of the previous one."""
        ...

    async def failures(self) -> dict[str, Failure]:
        """Return the last failure of each kind of background work, by its name, the newest first, of all processes."""
        ...


class Store(Pages, Index, Knowledge, Work, Protocol):
    """One user's stored memory. Safe to share between tasks and between processes.

    A vector space contains the vectors of one model. A store reads and writes the vectors of one space; a newly opened
    store has no space and returns no vectors.
    """

    @property
    def user_data(self) -> UserData:
        """The operations that the user requests on this memory, with the same vector space."""
        ...

    @property
    def only_reads_because(self) -> str | None:
        """Why the memory cannot be written at present; None if it can, or if it was opened with ``only_reads``."""
        ...

    def is_in_place(self) -> bool:
        """Return whether this store is current; if not, close it and open a new one. Takes microseconds.

        It is not current if its files were replaced or removed, or if they can be written again.
        """
        ...

    async def keep_lost(self) -> None:
        """If the files were replaced or removed, save their content as a copy. Call it before `close`.

        Raises:
            StorageError: There is not enough space for the copy.
        """
        ...

    async def verify(self) -> tuple[str, ...]:
        """Check the whole memory for damage, and return the ids of damaged pages.

        Raises:
            DamagedStoreError: More than the texts of pages is damaged; every later call raises this error too.
        """
        ...

    async def damaged_pages(self) -> tuple[str, ...]:
        """Return the ids of the pages that are damaged on disk; reads all pages."""
        ...

    async def in_space(self, identity: str, model: str | None = None) -> "Store":
        """Return this store with the vector space of a model.

        Args:
            identity: The model's ``name:dimension:revision``.
            model: The settings that load the model again, JSON without secrets. The space is created if missing, and
                its time of use is set. With None, an existing space is used, and nothing is written.
        """
        ...

    def use_space_of(self, other: "Store") -> None:
        """Switch to the vector space of ``other``, which `in_space` returned for the same store."""
        ...

    async def spaces(self) -> list[Space]:
        """Return all vector spaces, the most recently used first."""
        ...

    async def drop_spaces(self, lease: Lease, keep: Collection[str], unused_since: datetime) -> bool:
        """Delete a limited number of the vectors in unused vector spaces; return whether there may be more.

        Args:
            lease: The caller's lease.
            keep: The identities of vector spaces to keep.
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
        """Name and version of the database engine, such as ``SQLite 3.51.3``."""
        ...

    @property
    def tokens(self) -> Tokens:
        """The access tokens of HTTP clients."""
        ...

    @property
    def backups(self) -> Backups | None:
        """Backups of memories; None if the database engine has its own backup tools."""
        ...

    async def open(self, user_id: str, options: StoreOptions, *, only_reads: bool = False) -> Store:
        """Open a user's store, created if missing.

        Args:
            user_id: Owner of the memory.
            options: The store's settings.
            only_reads: Open an existing memory, and refuse every change.

        Raises:
            ArgumentError: The user id is not valid.
            DamagedStoreError: The memory is damaged, or another program made it; it was left untouched.
            NewerStoreError: A newer version made the memory; it was left untouched.
            StorageError: The memory could not be opened.
        """
        ...

    def users_with_work(self, model: str | None) -> list[str]:
        """Return the users with pages that are not yet organised or embedded. Blocks, and changes nothing.

        Args:
            model: The settings of the embedding model, JSON; None if none is configured.
        """
        ...

    def footprint(self, user_id: str) -> Footprint | None:
        """Return where a user's memory is stored, and its size; None if there is none. Blocks, and changes nothing.

        Raises:
            ArgumentError: The user id is not valid.
            StorageError: It cannot be read.
        """
        ...

    def examine(self, user_id: str) -> MemorySummary | None:
        """Check a user's whole memory for damage; return None if there is no memory. Blocks, and changes nothing.

        Raises:
            ArgumentError: The user id is not valid.
            StorageError: The memory is damaged or cannot be read, or the database engine cannot be used.
        """
        ...

    def close(self) -> None:
        """Release the threads and files that the stores share."""
        ...
