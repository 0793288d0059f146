"""The values of the `Store` protocol: what a store returns and what it is given to write."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from memoryos_mcp.model.knowledge import About, CorrectedFact, Fact, Lessons
from memoryos_mcp.model.pages import Tier, Window
from memoryos_mcp.model.profile import Level, Trait
from memoryos_mcp.model.records import ChainRecord, LongTermRecord, PageRecord, SegmentRecord
from memoryos_mcp.model.segments import Digest, Segment, Vector

# Key under which newly archived facts are counted.
ARCHIVED = "archived_fact"


@dataclass(frozen=True, slots=True)
class Receipt:
    """Proof that a page is on disk.

    Attributes:
        occurred_at: When it was said, with its zone's offset.
        is_new: False if a page with the same idempotency key already existed.
        pending: Pages waiting for consolidation.
        redacted: Kinds of secrets removed from the page.
    """

    page_id: str
    occurred_at: datetime
    is_new: bool
    pending: int
    redacted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outlines:
    """What ranking needs of pages, without their text: columns of shape ``(n,)``.

    Attributes:
        seqs: The pages, ascending.
        sessions: Their sessions.
        segments: Their segments, 0 without one.
        days: Local date on which they were said, in days since 1970.
        sizes: Length of their text in bytes of UTF-8.
    """

    seqs: NDArray[np.int64]
    sessions: NDArray[np.int64]
    segments: NDArray[np.int64]
    days: NDArray[np.int64]
    sizes: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TermStats:
    """Page counts and names among some words.

    Attributes:
        pages: Approximate number of all pages.
        counts: Number of pages that contain each word.
        user_names: Words that are names of the user.
        agent_names: Words that are names of the assistant.
        user_called: Name that the assistant mostly uses for the user, as written; None without one.
        agent_called: Name that the user mostly uses for the assistant.
    """

    pages: int
    counts: Mapping[str, int]
    user_names: frozenset[str]
    agent_names: frozenset[str]
    user_called: str | None = None
    agent_called: str | None = None


@dataclass(frozen=True, slots=True)
class TokenRows:
    """The token codes of pages' windows; the windows of a page are consecutive and in order.

    Attributes:
        seqs: The page of each window, shape ``(w,)``.
        counts: Rows of each window for the user's statements, the user's questions, the assistant's statements and the
            assistant's questions, shape ``(w, 4)``.
        codes: The rows of all windows, concatenated, shape ``(counts.sum(), bytes)``, uint8.
    """

    seqs: NDArray[np.int64]
    counts: NDArray[np.int64]
    codes: NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class WordMatches:
    """Which pages contain which words.

    Attributes:
        user: Whether the user's side of a page contains a word, shape ``(pages, words)``.
        agent: The same for the assistant's side.
    """

    words: Sequence[str]
    user: NDArray[np.bool_]
    agent: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class WordHit:
    """A page found by keywords.

    Attributes:
        score: Higher is better: BM25, or the number of words that the page contains if all words are common.
    """

    seq: int
    score: float


@dataclass(frozen=True, slots=True)
class Failure:
    """The last failure of a kind of background work.

    Attributes:
        attempts: Failures in a row; 0 once the work has succeeded again.
        error: What was wrong, without dialogue text.
    """

    attempts: int
    error: str
    at: datetime


@dataclass(frozen=True, slots=True)
class PageQuery:
    """Which pages to return: those that meet every condition that is set, in order of arrival.

    Attributes:
        limit: Maximum number of pages, the first ones; None means all.
        is_newest: Whether the limit keeps the newest pages instead.
        after_seq: Only pages that arrived after this one.
        before_seq: Only pages that arrived before this one.
        is_unembedded: Only pages without vectors in the store's vector space.
        is_unread: Only pages not yet read for knowledge.
        is_unanalysed: Only pages not yet read for the profile.
        is_degraded: Only pages that the fallback processed because the LLM failed.
        organised_by: Only pages that this analyst filed.
        not_organised_by: Only pages that another analyst filed.
        done_by: Only pages that this analyst filed or read for the profile.
    """

    limit: int | None = None
    is_newest: bool = False
    tier: Tier | None = None
    chain: int | None = None
    segment: int | None = None
    after_seq: int | None = None
    before_seq: int | None = None
    is_unembedded: bool = False
    is_unread: bool = False
    is_unanalysed: bool = False
    is_degraded: bool = False
    organised_by: str | None = None
    not_organised_by: str | None = None
    done_by: str | None = None


@dataclass(frozen=True, slots=True)
class FactQuery:
    """Which facts to return, oldest first: those that hold now, unless `is_past` or `without` says otherwise.

    Attributes:
        about: Whom they are about; None means both sides.
        with_archived: Whether to include archived facts.
        slots: Only facts in these slots; None means any.
        is_past: Only facts that no longer hold. Facts that the user marked as wrong are left out: they never held.
        without: A learner and a page's ``seq``: the facts that would hold if the learner had not read pages from there
            on. Facts that its later facts superseded are included.
        limit: Maximum number of facts, the newest ones; None means all.
    """

    about: About | None = None
    with_archived: bool = False
    slots: Collection[str] | None = None
    is_past: bool = False
    without: tuple[str, int] | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Unembedded:
    """Facts and segments without vectors.

    Attributes:
        facts: Facts that hold, the archived ones last.
        segments: Segments that are not archived.
    """

    facts: Sequence[Fact]
    segments: Sequence[Segment]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Where a memory stands.

    Attributes:
        forget_epoch: How often something was forgotten. Once it grows, what was read before may be gone.
        position: The newest position of the change sequence.
    """

    forget_epoch: int
    position: int


@dataclass(frozen=True, slots=True)
class Pending:
    """Pending background work.

    Attributes:
        backlog: Number of pages waiting to be organised.
        oldest_backlog_at: When the first of them was added; None without any.
        unembedded: Number of pages without vectors; 0 without a vector space.
        newest_seq: The ``seq`` of the last added page, an upper limit of the number of pages; 0 without pages.
        last_added_at: When the newest page was stored; None without pages.
    """

    backlog: int
    oldest_backlog_at: datetime | None
    unembedded: int
    newest_seq: int
    last_added_at: datetime | None


@dataclass(frozen=True, slots=True)
class Space:
    """The vector space of one model; vectors of different spaces cannot be compared.

    Attributes:
        identity: The model's ``name:dimension:revision``.
        model: How to load the model again, JSON.
        unembedded: Number of pages without vectors.
        used_at: When it was last written or searched, to about a day.
    """

    identity: str
    model: str
    unembedded: int
    used_at: datetime


@dataclass(frozen=True, slots=True)
class PageVectors:
    """The vectors of pages' windows; the windows of a page are consecutive and in order.

    Attributes:
        seqs: The page of each window, ascending, shape ``(n,)``.
        vectors: Unit length, shape ``(n, dimension)``, float32.
    """

    seqs: NDArray[np.int64]
    vectors: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Changes:
    """Rows that changed after a point in the change sequence.

    Attributes:
        position: The newest change in this result; continue from here.
        pages: Pages whose vectors were set, replaced or dropped.
        is_midterm: Whether a segment changed.
        is_longterm: Whether a fact or trait changed.
        is_complete: False if there are more changes after ``position``.
    """

    position: int
    pages: tuple[int, ...]
    is_midterm: bool
    is_longterm: bool
    is_complete: bool


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to do one user's background work.

    Attributes:
        epoch: Grows each time the lease changes hands; every background write is checked against it.
    """

    epoch: int


@dataclass(frozen=True, slots=True)
class ChainPlan:
    """Pages to be linked.

    Attributes:
        chain: The chain to extend; None creates one.
        pages: ``seq`` of the pages to add.
        summary: Summary of the whole chain, these pages included.
    """

    chain: int | None
    pages: tuple[int, ...]
    summary: str


@dataclass(frozen=True, slots=True)
class SegmentPlan:
    """Pages to be filed under a topic.

    Attributes:
        segment: The segment to extend; None creates one.
        pages: ``seq`` of the pages to add.
        digest: Summary and keywords of the whole segment, these pages included.
        vector: Unit-length mean of the whole segment, these pages included.
        summariser: Author of the digest.
    """

    segment: int | None
    pages: tuple[int, ...]
    digest: Digest
    vector: Vector | None
    summariser: str


@dataclass(frozen=True, slots=True)
class Filing:
    """One batch of pages to be filed, each in exactly one chain and one segment.

    Attributes:
        organiser: Author of the chains and segments.
        is_degraded: Whether the fallback did it because the LLM failed, so that it must be done again.
        is_redo: Whether the pages are already filed and leave their old chains and segments.
    """

    chains: Sequence[ChainPlan]
    segments: Sequence[SegmentPlan]
    organiser: str
    is_degraded: bool = False
    is_redo: bool = False


@dataclass(frozen=True, slots=True)
class Learning:
    """What was learned from some pages.

    Attributes:
        segments: The pages' segments if the pages were read for the profile; their visits and interaction length are
            reset to 0. Empty if the pages were read for knowledge only.
        pages: ``seq`` of the pages that were read.
        traits: The profile from which the lessons were computed.
        learner: Reader of the pages.
        corrections: The user's corrections for all assistants when the lessons were computed.
        is_degraded: Whether the fallback did it because the LLM failed, so that it must be done again.
        replaces: A learner whose facts and traits are removed if another has read every page they rest on; None keeps
            all.
        is_reading: Whether the pages were read for knowledge.
    """

    segments: Sequence[int]
    pages: Sequence[int]
    lessons: Lessons
    traits: Sequence[Trait]
    learner: str
    corrections: Sequence[CorrectedFact] = ()
    is_degraded: bool = False
    replaces: str | None = None
    is_reading: bool = True


@dataclass(frozen=True, slots=True)
class Vectors:
    """Vectors to be set in the store's vector space.

    Attributes:
        pages: The windows of pages, by ``seq``.
        facts: Unit length, by the fact's number.
        segments: Unit length, by the segment's number.
    """

    pages: Mapping[int, Sequence[Window]] = field(default_factory=dict)
    facts: Mapping[int, Vector] = field(default_factory=dict)
    segments: Mapping[int, Vector] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Archived:
    """Segments to be removed from the scored mid-term memory; their pages stay."""

    segments: Sequence[int]


@dataclass(frozen=True, slots=True)
class Accepted:
    """Pages for which the fallback's work stays, so that they are not done again."""

    pages: Sequence[int]


# What a background step commits, in one transaction each.
Commit = Filing | Learning | Vectors | Archived | Accepted


@dataclass(frozen=True, slots=True)
class PageBatch:
    """Pages of an imported file with their chains and segments.

    Attributes:
        file: The file's SHA-256; it identifies a repeated import.
        pages: In the file's order.
        chains: By number.
        segments: By number.
    """

    file: str
    pages: Sequence[PageRecord]
    chains: Mapping[int, ChainRecord]
    segments: Mapping[int, SegmentRecord]


@dataclass(frozen=True, slots=True)
class LongTerm:
    """Everything in an imported file but its pages.

    Attributes:
        file: The file's SHA-256.
        records: In the file's order.
        other_names: Names in the memory of pages that already existed under another name, by their name in the file.
    """

    file: str
    records: Sequence[LongTermRecord]
    other_names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """The settings of a store.

    Attributes:
        assistant_id: Owner of the assistant's facts.
        short_term_capacity: Pages kept in short-term.
        session_gap_s: A longer silence starts a new session.
        knowledge_capacity: Unarchived facts kept about the user and about the assistant, each.
    """

    assistant_id: str
    short_term_capacity: int
    session_gap_s: float
    knowledge_capacity: int

    def owner(self, about: About) -> str:
        """Return the assistant that owns such facts; empty for the user's, which all assistants share."""
        return self.assistant_id if about is About.ASSISTANT else ""


@dataclass(frozen=True, slots=True)
class Correction:
    """A user's correction of a fact or trait; attributes of the other kind are None.

    Attributes:
        text: Replacement of a fact.
        level: New level of a trait; None leaves it unchanged.
        reason: New reason of a trait; None leaves it unchanged.
        is_wrong: Whether it is wrong and has no replacement.
        is_restored: Whether to undo its last correction.
    """

    text: str | None = None
    level: Level | None = None
    reason: str | None = None
    is_wrong: bool = False
    is_restored: bool = False


@dataclass(frozen=True, slots=True)
class Corrected:
    """What a correction changes.

    Attributes:
        id: Public id of the fact or trait.
        before: Text that was current until then; None if none was.
        current_id: Public id of what is current now; None if nothing is, or for a new fact in a rehearsal.
        current: Text that is current now; None if none is.
    """

    id: str
    before: str | None
    current_id: str | None = None
    current: str | None = None


@dataclass(frozen=True, slots=True)
class SummaryCursor:
    """Position in the search for missing summaries: continue after these numbers."""

    chain: int = 0
    segment: int = 0


@dataclass(frozen=True, slots=True)
class MissingSummaries:
    """Some of the chains and segments whose summaries were deleted with one of their pages.

    Attributes:
        forget_epoch: The epoch when this was read.
        end: Where to continue.
    """

    chains: tuple[int, ...]
    segments: tuple[int, ...]
    forget_epoch: int
    end: SummaryCursor
