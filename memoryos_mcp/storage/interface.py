"""The protocols of storage: `Store` for the memory of one user, and `Stores` for the memories of all users.

A `Store` combines the protocols `Pages`, `Index`, `Knowledge` and `Work`. Each call that adds pages is one transaction.
Background work derives segments, a profile and facts from the pages. It requires a lease, which is a permission that
only one process can hold at a time. Methods for background work take the lease as an argument, and fail if the lease is
no longer valid.

Every store guarantees:

- The pages of one user are numbered from 1 by ``seq``, in the order in which they were committed. Only forgotten pages
  leave gaps.
- The change sequence is a numbered list of the changes to a memory. A change becomes visible before any change with a
  higher number. A reader that reads on after the last number that it has seen therefore misses no change.
- The forget epoch is a number that increases by one in each transaction that forgets something. If the number is the
  same before and after several reads, none of the returned data was forgotten in between.

Every method raises `StorageError` if the disk fails. A method with the argument ``lease`` raises `LeaseLostError` if,
since the lease was taken, another process has taken it over or something was forgotten.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from memoryos_mcp.model.forgotten import ForgetReceipt
from memoryos_mcp.model.knowledge import CorrectedFact, Fact
from memoryos_mcp.model.pages import Page, Turn
from memoryos_mcp.model.profile import Trait
from memoryos_mcp.model.segments import Segment, Vector
from memoryos_mcp.model.stats import Counts, UsageEntry
from memoryos_mcp.storage.capabilities import Backups, Footprint, MemorySummary, Rates, SignIns, Tokens
from memoryos_mcp.storage.user_data import UserData
from memoryos_mcp.storage.values import (
    Changes,
    Commit,
    Contents,
    Copy,
    DueWork,
    EvidenceProjects,
    FactQuery,
    Failure,
    Fingerprint,
    FoundPage,
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
    WindowHits,
    WordMatches,
    WordSearch,
)
from memoryos_mcp.storage.vector_index import VectorIndex


class Pages(Protocol):
    """The pages of one user.

    The text of a page never changes. Background work later changes the page's tier, chain, segment and processing
    state.
    """

    async def add_pages(self, turns: Sequence[Turn], *, forget_epoch: int | None = None) -> list[Receipt]:
        """Store turns as pages, and move the oldest short-term pages to the backlog if there are now too many.

        All of this is one transaction. When the method returns, all pages are on disk. After an error, no page is
        stored.

        Args:
            turns: The turns of the dialogue, in order.
            forget_epoch: If the turns may quote memories, the forget epoch at the time when these memories were read.
                Otherwise None.

        Returns:
            One receipt for each turn. If a page with the turn's idempotency key already exists, no page is added, and
            the receipt is for the existing page.

        Raises:
            LeaseLostError: The forget epoch has changed, so the turns may quote forgotten memories. Nothing was stored.
        """
        ...

    async def pages(self, query: PageQuery) -> list[Page]:
        """Return the pages that match a query, in the order in which they were added."""
        ...

    async def found_pages(self, windows: Mapping[int, int]) -> dict[int, FoundPage]:
        """Return pages by ``seq``, each with the position of one of its windows and with its segment.

        Pages that do not exist are left out.

        Args:
            windows: The pages to return: a mapping from the ``seq`` of each page to the index of one of its windows.
        """
        ...

    async def counts(self) -> Counts:
        """Return how many pages, segments, facts and other items the memory contains."""
        ...

    async def pending(self) -> Pending:
        """Return the amount of pending background work. This is faster than `counts`."""
        ...

    async def due_work(self) -> DueWork:
        """Return the kinds of background work for which there is something to do."""
        ...

    async def snapshot(self) -> Snapshot:
        """Return the current forget epoch and the last position of the change sequence, read in one transaction."""
        ...

    async def state(self) -> object:
        """Return a value that changes whenever any process changes the memory.

        If two calls return equal values, the memory did not change in between. Different values do not always mean that
        the memory has changed. Comparing these values is the fastest way to find out that nothing has changed.
        """
        ...

    async def changes(self, after: int, limit: int) -> Changes:
        """Return the next changes to the memory, at most ``limit``.

        ``after`` is the position of the last change that the caller has read. Changes are numbered in order.
        """
        ...


class Index(Protocol):
    """The data by which pages are ranked: their words, vectors and properties. Page texts are not included."""

    async def search_words(self, words: Sequence[str], names: Sequence[str], limit: int) -> WordSearch:
        """Search for pages that contain any of the words.

        Args:
            words: The words of a query, as returned by `text.terms.query_words`.
            names: The lower-cased words of the query that may be names of the user or of the assistant.
            limit: Maximum number of pages. With 0, only the statistics are returned.

        Returns:
            The best pages, and statistics about ``words`` and ``names``.
        """
        ...

    async def word_matches(self, counts: Mapping[str, int], seqs: Sequence[int]) -> WordMatches:
        """Return, for each of the given pages, which of the words it contains.

        Words that occur in too many pages are left out.

        Args:
            counts: A mapping from each word to the number of pages that contain it.
            seqs: The ``seq`` of each page to examine.
        """
        ...

    async def outlines(self, seqs: Sequence[int]) -> Outlines:
        """Return the properties that are used to rank the given pages, in ascending order of ``seq``.

        Pages that do not exist are left out.
        """
        ...

    async def project_pages(self, project: str, limit: int) -> list[int]:
        """Return the ``seq`` of the newest pages of a project, newest first, at most ``limit``."""
        ...

    async def pages_of_others(self, seqs: Sequence[int], project: str | None) -> set[int]:
        """Return the ``seq`` of each given page that belongs to a project other than ``project``.

        Pages without a project are left out. With None, return all given pages that have a project.
        """
        ...

    async def page_vectors(self, seqs: Sequence[int]) -> PageVectors:
        """Return all vectors of the given pages. Pages without vectors are left out."""
        ...

    async def all_vectors(self, after_seq: int, limit: int) -> PageVectors:
        """Return the vectors of the pages with a ``seq`` greater than ``after_seq``, the oldest page first.

        The result has ``limit`` vectors, and the remaining vectors of the last page. If it has fewer, no later page has
        vectors.
        """
        ...

    async def contents(self, windows: int) -> Contents:
        """Return the profile, the facts and the first ``windows`` vectors, as `all_vectors` returns them.

        Reading all of this together is faster than several calls. ``windows`` may be 0.
        """
        ...

    async def can_search_vectors(self, above: int) -> bool:
        """Return True if `nearest_windows` can be used and the memory has more than ``above`` page vectors.

        A file-based store always returns False: its vectors are searched in RAM.
        """
        ...

    def vector_index(self, dimension: int) -> VectorIndex | None:
        """Return the index of page vectors in the store's database; None if the store has no such index.

        ``dimension`` is the length of every vector.
        """
        ...

    async def nearest_windows(self, query: Vector, k: int) -> WindowHits:
        """Return the ``k`` windows whose vectors are nearest to a query, the nearest first. A few may be missed.

        A window is a section of a page's text that has its own vector. `can_search_vectors` must have returned True.
        ``query`` is a unit-length vector, shape ``(dimension,)``.
        """
        ...

    async def token_vectors(self, seqs: Sequence[int], max_bytes: int) -> TokenRows:
        """Return the encoded token vectors of as many pages as fit in ``max_bytes``, in the order of ``seqs``.

        Pages without token vectors are left out. The vectors of a page are never split: the result has all or none.
        """
        ...


class Knowledge(Protocol):
    """The segments, profile and facts that were derived from the pages."""

    async def segments(self, *, is_unanalysed: bool = False) -> list[Segment]:
        """Return the segments that are not archived; with ``is_unanalysed``, only those with pages to be analysed."""
        ...

    async def due_segments(self) -> list[int]:
        """Return the segment number of each segment whose pages must be read again for the profile, regardless of heat.

        For example, the pages must be read again if a forget operation has deleted facts that were learned from them.
        """
        ...

    async def traits(self) -> list[Trait]:
        """Return the traits of the user's profile, sorted by dimension."""
        ...

    async def facts(self, query: FactQuery) -> list[Fact]:
        """Return the facts that match a query: first those about the user, then those about the assistant.

        Each of the two groups is sorted, oldest fact first.
        """
        ...

    async def evidence_projects(self) -> EvidenceProjects:
        """Return the projects of the pages from which facts and traits were learned."""
        ...

    async def corrected_facts(self) -> list[CorrectedFact]:
        """Return the facts that the user marked as wrong, with the latest correction first.

        Facts about the user and about all assistants are included.
        """
        ...

    async def unembedded(self, limit: int) -> Unembedded:
        """Return up to ``limit`` facts and up to ``limit`` segments that have no vectors."""
        ...

    async def add_visits(self, visits: Mapping[int, int], at: datetime) -> None:
        """Increase the visit counts of segments. Set the last visit of each to ``at``, unless a later time is stored.

        ``visits`` maps each segment's number to the count of its new visits.
        """
        ...


class Work(Protocol):
    """Methods for background work on one user's memory. Only the process that has the lease does this work."""

    async def take_lease(self, ttl_s: float) -> Lease | None:
        """Take or renew the lease for ``ttl_s`` seconds. Return None if another process has the lease."""
        ...

    async def release_lease(self, lease: Lease | None = None) -> None:
        """Release a lease before it expires, so that another process can take it.

        If ``lease`` is None, the lease that this store currently has is released.
        """
        ...

    async def commit(self, lease: Lease, step: Commit) -> bool:
        """Store the result of a background step, in one transaction.

        A `Filing` with ``is_redo`` first removes its pages from their current chains and segments, and deletes chains
        and segments that become empty. A `Learning` also marks its pages as read.

        Returns:
            True if the result was stored. False if it is outdated. In this case, nothing was written. A `Filing` is
            outdated if one of its pages is no longer in the backlog or, with ``is_redo``, is no longer degraded. A
            `Learning` is outdated if the profile or the facts have changed since it was computed.
        """
        ...

    async def count_attempt(self, lease: Lease, *, pages: Sequence[int] = (), segment: int | None = None) -> int:
        """Record a failed attempt to organise ``pages``, or to learn from ``segment``.

        Returns:
            For a segment, its number of failed attempts since the last success. For pages, the largest number of
            failed attempts among them.
        """
        ...

    async def mark_degraded(self, worker: str) -> int:
        """Mark the mid-term pages that an analyst organised or read for the profile. An LLM then processes them again.

        Marked pages are called degraded.

        Args:
            worker: The `Analyst.name` of the analyst, usually of the one that works without an LLM.

        Returns:
            The number of all degraded pages, including those that were already marked.
        """
        ...

    async def expire(
        self, lease: Lease, retention: timedelta, limit: int, receipt: str
    ) -> ForgetReceipt | datetime | None:
        """Forget up to ``limit`` pages that are older than ``retention``, starting with the oldest.

        Args:
            lease: The caller's lease.
            retention: The maximum age of a page.
            limit: The maximum number of pages to forget.
            receipt: The id of the receipt to be stored.

        Returns:
            The receipt, or None if no page is old enough. If the clock may be wrong, nothing is forgotten, and the
            result is the time after which the caller should try again.
        """
        ...

    async def add_usage(self, entry: UsageEntry) -> None:
        """Add LLM calls and their tokens to the stored totals for the same day and purpose."""
        ...

    async def usage(self, day: str | None) -> list[UsageEntry]:
        """Return the LLM usage of one day, with one entry for each purpose.

        With None, each entry is the total over all days, and its ``day`` is empty.
        """
        ...

    async def usage_since(self, day: str) -> list[UsageEntry]:
        """Return the LLM usage of each day from ``day`` on, with one entry for each purpose, the oldest day first."""
        ...

    async def note_failure(self, work: str, failure: Failure) -> None:
        """Store the latest failure of one kind of background work, and replace the previous one."""
        ...

    async def failures(self) -> dict[str, Failure]:
        """Return the last failure of each kind of background work. Failures in all processes are included.

        The keys are the names of the kinds of work. The newest failure comes first.
        """
        ...


class Store(Pages, Index, Knowledge, Work, Protocol):
    """One user's stored memory. Safe to share between tasks and between processes.

    A vector space contains the vectors of one model. A store reads and writes the vectors of one space. A newly
    opened store uses no space, and returns no vectors.
    """

    @property
    def user_data(self) -> UserData:
        """The operations that a user requests on this memory. They use the same vector space as this store."""
        ...

    @property
    def only_reads_because(self) -> str | None:
        """The reason why the memory cannot be written at present.

        None if it can be written, or if the store was opened with ``only_reads``.
        """
        ...

    def is_in_place(self) -> bool:
        """Return whether this store can still be used. If not, the caller must close it and open a new one.

        The result is False if the store's files were replaced or removed. It is also False if the files were not
        writable when the store was opened, and are writable now. The call takes some microseconds.
        """
        ...

    async def keep_lost(self) -> None:
        """Save the content of this store as a copy if its files were replaced or removed; otherwise do nothing.

        Call this method before `close`.

        Raises:
            StorageError: The copy cannot be written, for instance because the disk is full.
        """
        ...

    async def verify(self) -> tuple[str, ...]:
        """Check the whole memory for damage, and return the ids of damaged pages.

        Raises:
            DamagedStoreError: The damage is not limited to the content of pages. Afterwards, every method of this store
                raises this error.
        """
        ...

    async def damaged_pages(self) -> tuple[str, ...]:
        """Read all pages, and return the ids of the pages that are damaged on disk."""
        ...

    async def in_space(self, identity: str, model: str | None = None) -> "Store":
        """Return a second `Store` object for this memory. It uses the vector space of a model.

        The stored memories are not copied.

        Args:
            identity: The model as ``name:dimension:revision``.
            model: The settings with which the model can be loaded again, as JSON without secrets. With settings, the
                space is created if it is missing, and its time of last use is updated. With None, nothing is written,
                and the returned store uses no space if the model's space does not exist.
        """
        ...

    def use_space_of(self, other: "Store") -> None:
        """Use the vector space of ``other`` from now on. ``other`` must be a store that `in_space` returned."""
        ...

    async def spaces(self) -> list[Space]:
        """Return all vector spaces, the most recently used first."""
        ...

    async def drop_spaces(self, lease: Lease, keep: Collection[str], unused_since: datetime) -> bool:
        """Delete some of the vectors in unused vector spaces.

        Args:
            lease: The caller's lease.
            keep: The identities of vector spaces that must not be deleted.
            unused_since: Vector spaces that were used at or after this time are not deleted either.

        Returns:
            Whether there may be more vectors to delete. If so, the caller should call this method again.
        """
        ...

    async def fingerprint(self, tell: Callable[[int, int], None]) -> Fingerprint:
        """Read the whole memory, and return its fingerprint.

        Args:
            tell: Called with the number of rows read so far and the number of all rows, in another thread. If it raises
                an error, the reading ends with this error.
        """
        ...

    async def copy_to(self, target: "Store", tell: Callable[[int, int], None]) -> Copy:
        """Copy the whole memory to ``target``, in one transaction of ``target``.

        The copy has the same ids, vectors, history, corrections and receipts. It is read back before it is committed.
        This memory is not changed. If other processes change it during the copy, the copy is repeated a few times.

        Args:
            target: An open store of the same user. Its memory must be empty, or a copy of this one.
            tell: Called with the amount of finished work and the amount of all work, as in `fingerprint`.

        Raises:
            DamagedStoreError: This memory has damaged pages. Nothing was copied.
            StorageError: One of the stores failed. Nothing was copied.
        """
        ...

    async def close(self) -> None:
        """Wait for running calls to finish, then close the files."""
        ...


class Stores(Protocol):
    """The stores of all users. Safe to share between tasks.

    Every store that was opened must be closed before this object is closed.
    """

    @property
    def engine(self) -> str:
        """The name and version of the database engine, such as ``SQLite 3.51.3``."""
        ...

    @property
    def is_shared(self) -> bool:
        """Whether servers on several machines can use these memories at the same time."""
        ...

    @property
    def tokens(self) -> Tokens:
        """The access tokens of HTTP clients."""
        ...

    @property
    def sign_ins(self) -> SignIns | None:
        """The sign-ins to the web pages of all servers, or None if only one server can use these memories."""
        ...

    @property
    def rates(self) -> Rates | None:
        """The request rates of callers across all servers, or None if only one server can use these memories."""
        ...

    @property
    def backups(self) -> Backups | None:
        """The backups of memories, or None if backups are made with the tools of the database engine."""
        ...

    async def open(self, user_id: str, options: StoreOptions, *, only_reads: bool = False) -> Store:
        """Open a user's store. If it does not exist, it is created, unless ``only_reads`` is set.

        Args:
            user_id: Owner of the memory.
            options: The store's settings.
            only_reads: Whether to open the store for reading only. The memory must then exist, and a call that would
                change it raises an error.

        Raises:
            ArgumentError: The user id is not valid.
            DamagedStoreError: The memory is damaged, or was created by another program. It was not changed.
            NewerStoreError: The memory was created by a newer version of this program. It was not changed.
            StorageError: The memory could not be opened.
        """
        ...

    def is_made(self) -> bool:
        """Return whether the data folder exists or, with a database, whether its tables exist. This call blocks.

        Nothing is created.

        Raises:
            StorageError: The database cannot be reached.
        """
        ...

    def users(self) -> list[str]:
        """Return the ids of all users who have a memory. This call blocks.

        Raises:
            StorageError: A memory is damaged or cannot be read, so that its user is unknown.
        """
        ...

    def users_with_work(self, model: str | None) -> list[str]:
        """Return the ids of users who have pages that are not yet organised or embedded. This call blocks.

        Users whose pages another process is working on may be left out. The list begins with the users whose work was
        interrupted because a server ended. Otherwise, the order is random, so that several servers begin with different
        users.

        Args:
            model: The settings of the embedding model as JSON, or None if no model is configured.
        """
        ...

    async def wait_for_work(self, timeout_s: float) -> bool:
        """Wait until another server may have left unfinished work behind, but at most ``timeout_s`` seconds.

        Returns:
            True if another server of a shared store may have ended since the last call. `users_with_work` then returns
            the users with unfinished work, at the latest after that server's leases have expired.
        """
        ...

    def prepare_vector_index(self) -> None:
        """Create the tables and indexes for `Store.vector_index`, if the database account may do so. This call blocks.

        If the stores have no such index, nothing is done.

        Raises:
            StorageError: The index cannot be used. The message says what is missing.
        """
        ...

    def footprint(self, user_id: str) -> Footprint | None:
        """Return the place and size of a user's memory, or None if the user has no memory. This call blocks.

        Raises:
            ArgumentError: The user id is not valid.
            StorageError: The memory cannot be accessed.
        """
        ...

    def examine(self, user_id: str) -> MemorySummary | None:
        """Check a user's whole memory for damage, and return its summary. This call blocks.

        If the user has no memory, return None.

        Raises:
            ArgumentError: The user id is not valid.
            StorageError: The memory is damaged or cannot be read, or the database engine cannot be used.
        """
        ...

    def close(self) -> None:
        """Stop the threads and close the files that all stores share."""
        ...
