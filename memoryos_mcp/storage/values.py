"""The arguments and results of the `Store` and `UserData` protocols."""

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

# Key of the number of archived facts in the counts of an import.
ARCHIVED = "archived_fact"


@dataclass(frozen=True, slots=True)
class Receipt:
    """The result of adding a page, which is then on disk.

    Attributes:
        occurred_at: The time of the turn, with its UTC offset.
        is_new: False if a page with the same idempotency key already existed.
        pending: Number of pages in the backlog.
        redacted: Kinds of secrets that were removed from the page.
    """

    page_id: str
    occurred_at: datetime
    is_new: bool
    pending: int
    redacted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outlines:
    """The properties of pages that ranking needs, as columns of shape ``(n,)``.

    Attributes:
        seqs: The pages, ascending.
        sessions: Their sessions.
        segments: Their segments; 0 without a segment.
        days: Local dates of the turns, in days since 1970.
        sizes: Lengths of the texts, in bytes of UTF-8.
    """

    seqs: NDArray[np.int64]
    sessions: NDArray[np.int64]
    segments: NDArray[np.int64]
    days: NDArray[np.int64]
    sizes: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TermStats:
    """Statistics about the words of a query.

    Attributes:
        pages: Approximate number of all pages.
        counts: Number of pages that contain each word.
        user_names: The words that are names of the user.
        agent_names: The words that are names of the assistant.
        user_called: The name that the assistant mostly uses for the user, capitalised; None without a name.
        agent_called: The name that the user mostly uses for the assistant.
    """

    pages: int
    counts: Mapping[str, int]
    user_names: frozenset[str]
    agent_names: frozenset[str]
    user_called: str | None = None
    agent_called: str | None = None


@dataclass(frozen=True, slots=True)
class TokenRows:
    """The encoded token vectors of pages' windows; the windows of a page are consecutive and in order.

    Attributes:
        seqs: The page of each window, shape ``(w,)``.
        counts: Number of token vectors in each window, of the user's statements, the user's questions, the
            assistant's statements and the assistant's questions, shape ``(w, 4)``.
        codes: One row for each token vector, in the order of the windows, shape ``(counts.sum(), bytes)``, uint8.
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
class WordSearch:
    """The result of a keyword search: the pages found, best first, and the statistics of the query's words."""

    stats: TermStats
    hits: Sequence[WordHit]


@dataclass(frozen=True, slots=True)
class Failure:
    """The last failure of a kind of background work.

    Attributes:
        attempts: Number of consecutive failures; 0 once the work has succeeded again.
        error: The error message, without dialogue text.
    """

    attempts: int
    error: str
    at: datetime


@dataclass(frozen=True, slots=True)
class PageQuery:
    """A query for pages. A page matches if it meets every condition that is set; pages are in the order of ``seq``.

    Attributes:
        limit: Maximum number of pages, counted from the oldest; None means all.
        is_newest: Whether to count the limit from the newest page instead.
        after_seq: Only pages with a greater ``seq``.
        before_seq: Only pages with a smaller ``seq``.
        is_unembedded: Only pages without vectors in the store's vector space.
        is_unread: Only pages not yet read for knowledge.
        is_unanalysed: Only pages not yet read for the profile.
        is_degraded: Only pages that the fallback processed because the LLM failed.
        organised_by: Only pages that this analyst put into a segment.
        not_organised_by: Only pages that another analyst put into a segment.
        done_by: Only mid-term pages that this analyst put into a segment or read for the profile.
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
    """A query for facts, oldest first: facts that are valid now, unless `is_past` or `without` is set.

    Attributes:
        about: Only facts about this side; None means both sides.
        with_archived: Whether to include archived facts.
        slots: Only facts in these slots; None means any.
        is_past: Only facts that are no longer valid. Facts that the user marked as wrong are left out, because they
            were never valid.
        without: A learner and a page's ``seq``: the facts that would be valid if the learner had not read that page
            and the later ones. Facts that were superseded by what it learned from them are included.
        limit: Maximum number of facts on each side, counted from the newest; None means all.
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
        facts: Facts that are valid now, archived facts last.
        segments: Segments that are not archived.
    """

    facts: Sequence[Fact]
    segments: Sequence[Segment]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The version of a memory, which tells whether data that was read is outdated.

    Attributes:
        forget_epoch: How often something was forgotten. If it has grown, data that was read before may be forgotten.
        position: The newest position of the change sequence.
    """

    forget_epoch: int
    position: int


@dataclass(frozen=True, slots=True)
class Pending:
    """Pending background work.

    Attributes:
        backlog: Number of pages to be organised.
        oldest_backlog_at: When the first of these pages was added; None without one.
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
        model: The settings that load the model again, JSON.
        unembedded: Number of pages without vectors.
        used_at: When the space was last used, to about a day.
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
    """The changes after a position of the change sequence.

    Attributes:
        position: The position of the last of these changes; continue after it.
        pages: Pages whose vectors were set, replaced or dropped.
        is_midterm: Whether a segment changed.
        is_longterm: Whether a fact or trait changed.
        is_complete: False if there may be more changes after ``position``.
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
        epoch: Increases each time another process takes the lease; background writes with an old epoch fail.
        forget_epoch: The forget epoch when the lease was taken or renewed.
    """

    epoch: int
    forget_epoch: int


@dataclass(frozen=True, slots=True)
class ChainPlan:
    """Pages to be added to a chain.

    Attributes:
        chain: The chain; None creates one.
        pages: ``seq`` of the pages to add.
        summary: The new summary of the whole chain.
    """

    chain: int | None
    pages: tuple[int, ...]
    summary: str


@dataclass(frozen=True, slots=True)
class SegmentPlan:
    """Pages to be added to a segment.

    Attributes:
        segment: The segment; None creates one.
        pages: ``seq`` of the pages to add.
        digest: The new summary and keywords of the whole segment.
        vector: The new vector of the whole segment, unit length; None leaves the vector unchanged.
        summariser: The author of the digest.
    """

    segment: int | None
    pages: tuple[int, ...]
    digest: Digest
    vector: Vector | None
    summariser: str


@dataclass(frozen=True, slots=True)
class Filing:
    """A batch of pages to be put into chains and segments, each page into one of each.

    Attributes:
        organiser: The analyst that chose the chains and segments.
        is_degraded: Whether the fallback did this because the LLM failed, so that it must be done again.
        is_redo: Whether the pages are already in chains and segments, and are to be moved.
    """

    chains: Sequence[ChainPlan]
    segments: Sequence[SegmentPlan]
    organiser: str
    is_degraded: bool = False
    is_redo: bool = False


@dataclass(frozen=True, slots=True)
class Learning:
    """Traits and facts learned from pages.

    Attributes:
        segments: The pages' segments if the pages were read for the profile; their visits and interaction length are
            reset to 0. Empty if the pages were read for knowledge only.
        pages: ``seq`` of the pages that were read.
        lessons: The learned traits and facts.
        traits: The profile when the lessons were computed.
        learner: The analyst that read the pages.
        corrections: The user's corrections, for all assistants, when the lessons were computed.
        is_degraded: Whether the fallback did this because the LLM failed, so that it must be done again.
        replaces: A learner to be replaced: its facts and traits are removed once other learners have read all pages
            that are evidence of them. None removes nothing.
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
        pages: The windows of pages with their vectors, by ``seq``.
        facts: Unit-length vectors, by fact.
        segments: Unit-length vectors, by segment.
    """

    pages: Mapping[int, Sequence[Window]] = field(default_factory=dict)
    facts: Mapping[int, Vector] = field(default_factory=dict)
    segments: Mapping[int, Vector] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Archived:
    """Segments to be archived: they are no longer ranked, but their pages stay."""

    segments: Sequence[int]


@dataclass(frozen=True, slots=True)
class Accepted:
    """Degraded pages for which the fallback's result is accepted, so that they are not processed again."""

    pages: Sequence[int]


# The result of a background step, committed in one transaction.
Commit = Filing | Learning | Vectors | Archived | Accepted


@dataclass(frozen=True, slots=True)
class PageBatch:
    """Pages of an export file with their chains and segments.

    Attributes:
        file: The SHA-256 of the file; it identifies a repeated import.
        pages: The pages, in the order of the file.
        chains: The chains, by their number in the file.
        segments: The segments, by their number in the file.
    """

    file: str
    pages: Sequence[PageRecord]
    chains: Mapping[int, ChainRecord]
    segments: Mapping[int, SegmentRecord]


@dataclass(frozen=True, slots=True)
class LongTerm:
    """The facts, traits and other long-term records of an export file.

    Attributes:
        file: The SHA-256 of the file.
        records: The records, in the order of the file.
        other_names: The stored ``page_id`` of each page that already existed with another one, by that in the file.
    """

    file: str
    records: Sequence[LongTermRecord]
    other_names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """The settings of a store.

    Attributes:
        assistant_id: The assistant that owns the facts about the assistant.
        short_term_capacity: Maximum number of short-term pages.
        session_gap_s: A longer silence starts a new session.
        knowledge_capacity: Maximum number of unarchived facts about the user, and about the assistant.
    """

    assistant_id: str
    short_term_capacity: int
    session_gap_s: float
    knowledge_capacity: int

    def owner(self, about: About) -> str:
        """Return the assistant that owns facts about a side; empty for the user's facts, which all assistants share."""
        return self.assistant_id if about is About.ASSISTANT else ""


@dataclass(frozen=True, slots=True)
class Correction:
    """A user's correction of a fact or trait.

    Attributes:
        text: The new text of a fact.
        level: The new level of a trait; None leaves it unchanged.
        reason: The new reason of a trait; None leaves it unchanged.
        is_wrong: Whether the fact or trait is wrong and has no replacement.
        is_restored: Whether to undo the last correction of the fact or trait.
    """

    text: str | None = None
    level: Level | None = None
    reason: str | None = None
    is_wrong: bool = False
    is_restored: bool = False


@dataclass(frozen=True, slots=True)
class Corrected:
    """The result of a correction.

    Attributes:
        id: The public id of the corrected fact or trait.
        before: The text that was current before the correction; None without one.
        current_id: The public id of the fact or trait that is current now; None without one, and for the new fact of a
            dry run.
        current: The text that is current now; None without one.
    """

    id: str
    before: str | None
    current_id: str | None = None
    current: str | None = None


@dataclass(frozen=True, slots=True)
class SummaryCursor:
    """A position in the list of missing summaries: the last chain and segment that were read."""

    chain: int = 0
    segment: int = 0


@dataclass(frozen=True, slots=True)
class MissingSummaries:
    """Chains and segments whose summaries were deleted because one of their pages was forgotten.

    Attributes:
        forget_epoch: The forget epoch when the chains and segments were read.
        end: The position from which to continue.
    """

    chains: tuple[int, ...]
    segments: tuple[int, ...]
    forget_epoch: int
    end: SummaryCursor
