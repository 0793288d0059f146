"""Stores: where a user's memory is kept. The protocol that every store implements.

Pages are written by callers, one transaction each. All else is derived from pages and written by background work that
holds the user's lease; such a write names its lease and is refused once another process has taken over.
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
    TermStats,
    TokenRows,
    WordHit,
    WordMatches,
)


class Store(Protocol):
    """One user's memory on disk, as one space sees it. Safe to share between tasks and between processes.

    A space holds the vectors of one model. In no space, as a store is opened, there are no vectors.

    Every method raises `StorageError` if the disk fails; a method that takes a lease raises `LeaseLostError` once the
    lease is another's.
    """

    @property
    def owned(self) -> UserData:
        """What a person does with this memory, as seen from the same space."""
        ...

    async def in_space(self, identity: str, model: str) -> "Store":
        """Return this store as seen from a space, which is made if need be and is the last used from now on.

        Args:
            identity: The model's.
            model: How to load it again, JSON; nothing secret.
        """
        ...

    async def in_old_space(self, identity: str) -> "Store":
        """Return this store as seen from a space that is there."""
        ...

    async def spaces(self) -> list[Space]:
        """Return the spaces that there are, the last used first."""
        ...

    async def drop_spaces(self, lease: Lease, keep: Collection[str], unused_since: datetime) -> bool:
        """Delete some vectors of spaces that are neither to be kept nor were used since; return whether more are left.

        Args:
            lease: The right to do so.
            keep: Identities of spaces to keep.
            unused_since: VectorSpaces that were used later are kept as well.
        """
        ...

    async def add_pages(self, turns: Sequence[Turn], *, forgettings: int | None = None) -> list[Receipt]:
        """Store turns in order and move the oldest short-term pages to the backlog.

        All in one transaction: on return every page is on disk, on an error none is.

        Args:
            turns: What was said.
            forgettings: After how many forgettings it was read what they may quote; None if they quote nothing.

        Raises:
            LeaseLostError: Something was forgotten since; nothing was stored.
        """
        ...

    async def short_term(self) -> list[Page]:
        """Return the short-term pages, oldest first."""
        ...

    async def outlines(self, seqs: Sequence[int]) -> Outlines:
        """Return pages without their text, ascending by ``seq``; those that are not there are left out."""
        ...

    async def found_pages(self, windows: Mapping[int, int]) -> dict[int, FoundPage]:
        """Return pages by ``seq`` with their chains and the span of one window each; missing ones are left out.

        Args:
            windows: The window's part by the page's ``seq``; a part that is not there gives no span.
        """
        ...

    async def lexicon(self, words: Sequence[str], names: Sequence[str]) -> TermStats:
        """Return in how many pages words occur, and which of ``names``, lower-cased, the sides call each other by."""
        ...

    async def word_matches(self, counts: Mapping[str, int], seqs: Sequence[int]) -> WordMatches:
        """Return which of the named pages hold which words, as far as those are not too common to look through.

        Args:
            counts: The words, with the number of pages that each occurs in.
            seqs: The pages.
        """
        ...

    async def search_words(self, counts: Mapping[str, int], limit: int) -> list[WordHit]:
        """Return at most ``limit`` pages that hold any of the words, best first.

        Args:
            counts: The words, with the number of pages that each occurs in.
            limit: How many pages at most.
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
            about: Of whom.
            with_archived: Whether the archived ones are wanted too.
            slots: Only those that answer one of these; None returns all.
        """
        ...

    async def facts_without(self, learner: str, from_seq: int) -> list[Fact]:
        """Return the facts of both sides that would hold if a learner had read no page from one on, oldest first.

        What such a fact has superseded is among them; the archived ones are not.
        """
        ...

    async def past_facts(self, about: About, limit: int) -> list[Fact]:
        """Return facts that held and hold no more, at most ``limit``, the newest of them, oldest first.

        What the user said is wrong is not among them: it never held.
        """
        ...

    async def corrected_facts(self) -> list[CorrectedFact]:
        """Return what the user has said is wrong, of all assistants, the newest correction first."""
        ...

    async def counts(self) -> Counts:
        """Return how much there is."""
        ...

    async def waiting(self) -> Pending:
        """Return what the background has before it; cheaper than `counts`."""
        ...

    async def changes(self, after: int, limit: int) -> Changes:
        """Return what changed after a position of the change sequence, at most ``limit`` rows."""
        ...

    async def position(self) -> int:
        """Return the newest position of the change sequence."""
        ...

    async def page_vectors(self, seqs: Sequence[int]) -> PageVectors:
        """Return the space's vectors of the named pages; pages without any are left out."""
        ...

    async def page_tokens(self, seqs: Sequence[int], max_bytes: int) -> TokenRows:
        """Return the space's token codes of the named pages, in their order, until so many bytes are read.

        Pages without any are left out; a page comes whole or not at all.
        """
        ...

    async def all_vectors(self, after_seq: int, limit: int) -> PageVectors:
        """Return about ``limit`` of the space's vectors, of whole pages after a page; empty at the end."""
        ...

    async def add_visits(self, visits: Mapping[int, int], at: datetime) -> None:
        """Count retrievals of segments: number of visits by segment."""
        ...

    async def take_lease(self, ttl_s: float) -> Lease | None:
        """Take or renew the right to do background work for ``ttl_s``; None if another process holds it."""
        ...

    async def release_lease(self, lease: Lease) -> None:
        """Give the right back, so that another process need not wait for its end."""
        ...

    async def release_leases(self) -> None:
        """Give back whatever this store still holds, at its end."""
        ...

    async def unembedded(self, limit: int) -> list[Page]:
        """Return pages without vectors in the space, oldest first."""
        ...

    async def unembedded_facts(self, limit: int) -> list[Fact]:
        """Return facts that hold and have no vector in the space, the archived ones last."""
        ...

    async def unembedded_segments(self, limit: int) -> list[Segment]:
        """Return segments that have no vector in the space."""
        ...

    async def set_page_vectors(self, lease: Lease, windows: Mapping[int, Sequence[Window]]) -> None:
        """Set the space's vectors of pages by ``seq``."""
        ...

    async def set_fact_vectors(self, lease: Lease, vectors: Mapping[int, Vector]) -> None:
        """Set the space's vectors of facts by number."""
        ...

    async def set_segment_vectors(self, lease: Lease, vectors: Mapping[int, Vector]) -> None:
        """Set the space's vectors of segments by number."""
        ...

    async def backlog(self, limit: int) -> list[Page]:
        """Return the oldest pages that wait for consolidation."""
        ...

    async def unread(self, limit: int) -> list[Page]:
        """Return the oldest pages that were not read for knowledge yet."""
        ...

    async def has_degraded(self) -> bool:
        """Whether there are pages to be organised or read again."""
        ...

    async def degraded(self, organiser: str, after_seq: int, limit: int) -> list[Page]:
        """Return the next pages after a page that ``organiser`` filed in place of an LLM."""
        ...

    async def due_segments(self) -> list[int]:
        """Return the segments to be read whatever their heat, because what they taught is to be learned anew."""
        ...

    async def count_page_attempt(self, lease: Lease, pages: Sequence[int]) -> int:
        """Note that organising pages failed, and return how often it has for the most unlucky of them."""
        ...

    async def count_segment_attempt(self, lease: Lease, segment: int) -> int:
        """Note that learning from a segment failed, and return how often it has since it last succeeded."""
        ...

    async def degraded_readings(self, organiser: str, after_seq: int, limit: int) -> list[Page]:
        """Return the next pages after a page that ``organiser`` did not file, but read in place of an LLM."""
        ...

    async def accept_degraded(self, lease: Lease, pages: Sequence[int]) -> None:
        """Leave pages as the fallback has done them."""
        ...

    async def done_by(self, worker: str, after_seq: int, limit: int) -> list[DonePage]:
        """Return the next pages after a page that ``worker`` filed or read, in order of arrival."""
        ...

    async def mark_degraded(self, worker: str) -> int:
        """Have everything that ``worker`` organised or learned done again; return how many pages wait for that."""
        ...

    async def add_usage(self, entry: UsageEntry) -> None:
        """Add to what calls of an LLM cost."""
        ...

    async def usage(self, day: str | None) -> list[UsageEntry]:
        """Return what calls cost, by purpose: of one day, or of all days together (then ``day`` is empty)."""
        ...

    async def note_failure(self, work: str, failure: Failure) -> None:
        """Keep how a kind of background work has failed last."""
        ...

    async def failures(self) -> dict[str, Failure]:
        """Return how each kind of background work has failed last, by its name, in any process; the newest first."""
        ...

    async def page_before(self, seq: int) -> tuple[Page, str] | None:
        """Return the newest page older than ``seq``, with its chain's summary as it stands, empty without a chain."""
        ...

    async def newest_seq(self) -> int:
        """Return the ``seq`` of the page that was added last; 0 without pages. There are not more pages than that."""
        ...

    async def last_added_at(self) -> datetime | None:
        """Return when the newest page was stored; None without pages."""
        ...

    async def chain_pages(self, chain: int, limit: int) -> list[Page]:
        """Return a chain's newest pages, at most ``limit``, in order of arrival."""
        ...

    async def commit_filing(self, lease: Lease, filing: Filing) -> bool:
        """File pages under chains and segments, in one transaction.

        A redo takes them out of their old ones first; a chain or segment that is left without a page goes.

        Returns:
            False, with nothing written, if a page is not where it was: in the backlog, or for a redo, degraded.
        """
        ...

    async def commit_learning(self, lease: Lease, learning: Learning) -> bool:
        """Take over what pages teach and mark them analysed, in one transaction.

        Returns:
            False, with nothing written, if profile or knowledge changed under the computation.
        """
        ...

    async def archive_segments(self, lease: Lease, segments: Sequence[int]) -> None:
        """Take segments out of the scored mid-term memory; their pages stay."""
        ...

    async def expire(
        self, lease: Lease, retention: timedelta, limit: int, receipt: str
    ) -> ForgetReceipt | datetime | None:
        """Forget the oldest pages that were said longer ago than ``retention``, at most ``limit``.

        Args:
            lease: The right to do so.
            retention: How long pages are kept.
            limit: How many pages at most.
            receipt: The name of the receipt.

        Returns:
            The receipt; None if no page is old enough; a time if the clock may be wrong, from when on a second look
            forgets.
        """
        ...

    async def forgettings(self) -> int:
        """Return how often something was forgotten: what was read before may be gone once it is more."""
        ...

    async def close(self) -> None:
        """Finish what runs and release the files."""
        ...
