"""The arguments and results of the `Store` and `UserData` protocols."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from memoryos_mcp.model.knowledge import About, CorrectedFact, Fact, Lessons
from memoryos_mcp.model.pages import Page, Tier, Window
from memoryos_mcp.model.profile import Level, Trait
from memoryos_mcp.model.records import ChainRecord, LongTermRecord, PageRecord, SegmentRecord
from memoryos_mcp.model.segments import Digest, Segment, Vector

# Key of the number of archived facts in the counts that an import returns.
ARCHIVED = "archived_fact"


@dataclass(frozen=True, slots=True)
class Receipt:
    """Confirmation that a turn was stored as a page.

    Attributes:
        occurred_at: The time of the turn, with its UTC offset.
        is_new: False if a page with the same idempotency key already existed, so that no page was added.
        pending: Number of pages in the backlog after the page was added.
        redacted: Kinds of secrets that were removed from the page.
    """

    page_id: str
    occurred_at: datetime
    is_new: bool
    pending: int
    redacted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outlines:
    """The properties by which ``n`` pages are ranked. Each attribute is an array of shape ``(n,)``.

    Attributes:
        seqs: The ``seq`` of each page, in ascending order.
        sessions: The session number of each page.
        segments: The segment number of each page; 0 if the page is not in a segment.
        days: The local date of each page, in days since 1970-01-01.
        sizes: The size of each page's text, in bytes of UTF-8.
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
        pages: Approximate number of pages in the memory.
        counts: A mapping from each word to the number of pages that contain it.
        user_names: The words of the query that are names of the user.
        agent_names: The words of the query that are names of the assistant.
        user_called: The name by which the assistant most often addresses the user; None if it is unknown. The name
            begins with a capital letter.
        agent_called: The name by which the user most often addresses the assistant; None if it is unknown. The name
            begins with a capital letter.
    """

    pages: int
    counts: Mapping[str, int]
    user_names: frozenset[str]
    agent_names: frozenset[str]
    user_called: str | None = None
    agent_called: str | None = None


@dataclass(frozen=True, slots=True)
class TokenRows:
    """The encoded token vectors of ``w`` windows of pages. The windows of a page are consecutive and in order.

    Attributes:
        seqs: The ``seq`` of each window's page, shape ``(w,)``.
        counts: Numbers of token vectors in each window, shape ``(w, 4)``. The columns are the user's statements, the
            user's questions, the assistant's statements and the assistant's questions.
        codes: The encoded token vectors, in the order of the windows, shape ``(counts.sum(), bytes)``, uint8.
    """

    seqs: NDArray[np.int64]
    counts: NDArray[np.int64]
    codes: NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class WordMatches:
    """The result of checking which pages contain which words. The arrays have one row for each page.

    Attributes:
        words: The words, in the order of the columns of the arrays.
        user: Array of shape ``(pages, words)``: whether the user's text in each page contains each word.
        agent: Array of shape ``(pages, words)``: whether the assistant's text in each page contains each word.
    """

    words: Sequence[str]
    user: NDArray[np.bool_]
    agent: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class WordHit:
    """A page found by keywords.

    Attributes:
        seq: The ``seq`` of the page.
        score: The BM25 score of the page. If all words of the query are common, the score is the number of these
            words that the page contains.
    """

    seq: int
    score: float


@dataclass(frozen=True, slots=True)
class WordSearch:
    """The result of a keyword search.

    Attributes:
        stats: Statistics about the words of the query.
        hits: The pages that were found, the best first.
    """

    stats: TermStats
    hits: Sequence[WordHit]


@dataclass(frozen=True, slots=True)
class Failure:
    """The last failure of one kind of background work.

    Attributes:
        attempts: Number of failures since the last success.
        error: The error message. It does not contain any text of the dialogue.
        at: The time of the failure.
    """

    attempts: int
    error: str
    at: datetime


@dataclass(frozen=True, slots=True)
class PageQuery:
    """A query for pages. A page matches if it meets every condition that is set. Results are in the order of ``seq``.

    Attributes:
        limit: Maximum number of pages. The oldest pages that match are returned. None means no limit.
        is_newest: Whether the limit selects the newest pages instead of the oldest.
        after_seq: Only pages with a greater ``seq``.
        before_seq: Only pages with a smaller ``seq``.
        is_unembedded: Only pages without vectors in the store's vector space.
        is_unread: Only pages that have not yet been read for knowledge (facts).
        is_unanalysed: Only pages that have not yet been read for the profile.
        is_degraded: Only pages that were processed without an LLM because the LLM failed.
        organised_by: Only pages that the analyst with this name put into a segment.
        not_organised_by: Only pages that an analyst with a different name put into a segment.
        done_by: Only mid-term pages that the analyst with this name put into a segment or read for the profile.
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
    """A query for facts. Only facts that are valid now match, unless `is_past` or `without` is set.

    Facts about the user are returned before facts about the assistant, each oldest first.

    Attributes:
        about: Only facts about the user, or only facts about the assistant; None means both.
        with_archived: Whether to include archived facts. With `is_past`, they are always included.
        slots: Only facts about these properties (see `Fact.slot`); None means all facts.
        is_past: Only facts that are no longer valid. Facts that the user marked as wrong are left out, because they
            were never valid.
        without: The name of an analyst and the ``seq`` of a page; None means no such filter. Facts that the analyst
            learned only from this page or later pages are treated as if they did not exist. Facts that were superseded
            by such a fact count as valid again.
        limit: Maximum number of facts about the user, and separately of facts about the assistant. If more facts match,
            the newest of them are returned, still oldest first. None means no limit.
    """

    about: About | None = None
    with_archived: bool = False
    slots: Collection[str] | None = None
    is_past: bool = False
    without: tuple[str, int] | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class EvidenceProjects:
    """The projects of the pages from which facts and traits were learned.

    The mappings contain only facts and traits that have evidence. None stands for pages without a project. If no page
    states a fact, and the fact replaced wrong facts, it has the projects of the replaced facts.

    Attributes:
        facts: A mapping from the number of each fact to its projects.
        traits: A mapping from the dimension of each trait to its projects.
    """

    facts: Mapping[int, Collection[str | None]]
    traits: Mapping[str, Collection[str | None]]


@dataclass(frozen=True, slots=True)
class Unembedded:
    """Facts and segments that have no vectors.

    Attributes:
        facts: Facts that are valid now. Archived facts come last.
        segments: Segments that are not archived.
    """

    facts: Sequence[Fact]
    segments: Sequence[Segment]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The version of a memory at one moment. Compare two snapshots to find out whether data read earlier is outdated.

    Attributes:
        forget_epoch: The number of times that something was forgotten. If this number has increased, data that was read
            earlier may contain forgotten memories.
        position: The last position in the change sequence, the numbered list of all changes to the memory.
    """

    forget_epoch: int
    position: int


@dataclass(frozen=True, slots=True)
class Pending:
    """The amount of pending background work.

    Attributes:
        backlog: Number of pages in the backlog, which are to be organised.
        oldest_backlog_at: When the oldest page in the backlog was stored; None if the backlog is empty.
        unembedded: Number of pages without vectors; 0 if the store uses no vector space.
        last_added_at: When the newest page was stored; None if there are no pages.
    """

    backlog: int
    oldest_backlog_at: datetime | None
    unembedded: int
    last_added_at: datetime | None


@dataclass(frozen=True, slots=True)
class DueWork:
    """The kinds of background work for which a memory has something to do.

    Attributes:
        newest_seq: The ``seq`` of the newest page; 0 if there are no pages. A memory never has more pages than this
            number.
        has_backlog: Whether the backlog has pages, which are to be organised.
        has_unread: Whether there are pages from which no facts have been extracted yet.
        has_unembedded: Whether a page, a fact or a segment has no vector in the store's vector space.
        has_degraded: Whether pages were processed without the LLM because it failed.
        has_unanalysed: Whether a segment has pages that have not yet been read for the profile, or must be read again.
        segments: Number of segments that are not archived.
        forget_epoch: See `Snapshot`. With 0, nothing was ever forgotten, so nothing has to be tidied up.
    """

    newest_seq: int
    has_backlog: bool
    has_unread: bool
    has_unembedded: bool
    has_degraded: bool
    has_unanalysed: bool
    segments: int
    forget_epoch: int


@dataclass(frozen=True, slots=True)
class Space:
    """The vector space of one model. Vectors of different spaces cannot be compared.

    Attributes:
        identity: The model as ``name:dimension:revision``.
        model: The settings with which the model can be loaded again, as JSON.
        unembedded: Number of pages without vectors in this space.
        used_at: When the space was last used, accurate to about a day.
    """

    identity: str
    model: str
    unembedded: int
    used_at: datetime


@dataclass(frozen=True, slots=True)
class PageVectors:
    """The vectors of ``n`` windows of pages. The windows of a page are consecutive and in order.

    Attributes:
        seqs: The ``seq`` of each window's page, in ascending order, shape ``(n,)``.
        vectors: The unit-length vector of each window, shape ``(n, dimension)``, float32.
    """

    seqs: NDArray[np.int64]
    vectors: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class FoundPage:
    """A page that a search has found.

    Attributes:
        span: Start and end of the page's best window in its text, in characters; None if the page has no such window. A
            window is a section of a page's text that has its own vector.
        segment: The page's segment; None if the page has none, or if the segment is archived.
    """

    page: Page
    span: tuple[int, int] | None
    segment: Segment | None


@dataclass(frozen=True, slots=True)
class Contents:
    """What every query of a memory needs, read in one transaction.

    Attributes:
        position: See `Snapshot`.
        traits: The traits of the user's profile, sorted by dimension.
        facts: The valid facts about the user and about the assistant, archived ones included.
        vectors: The vectors of the oldest pages; see `Index.all_vectors`.
    """

    position: int
    traits: Sequence[Trait]
    facts: Sequence[Fact]
    vectors: PageVectors


@dataclass(frozen=True, slots=True)
class WindowHits:
    """The similarity of ``n`` windows to a query.

    Attributes:
        seqs: The ``seq`` of each window's page, shape ``(n,)``.
        parts: The number of each window in its page, from 0, shape ``(n,)``.
        cosines: Cosine of each window and the query, shape ``(n,)``, float32.
    """

    seqs: NDArray[np.int64]
    parts: NDArray[np.int64]
    cosines: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes to a memory after a position in its change sequence, the numbered list of all changes.

    Attributes:
        position: The position of the last of these changes. Pass it to the next call to continue.
        pages: The ``seq`` of each page whose vectors were set, replaced or deleted.
        is_longterm: Whether a fact or trait changed.
        is_complete: False if there may be more changes after ``position``.
    """

    position: int
    pages: tuple[int, ...]
    is_longterm: bool
    is_complete: bool


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to do one user's background work.

    Attributes:
        epoch: A number that increases each time another process takes the lease or something is forgotten. Background
            writes with an old number fail.
        forget_epoch: The forget epoch at the time when the lease was taken or renewed.
    """

    epoch: int
    forget_epoch: int


@dataclass(frozen=True, slots=True)
class ChainPlan:
    """Pages to be added to a chain.

    Attributes:
        chain: The number of the chain; with None, a new chain is created.
        pages: The ``seq`` of each page to add.
        summary: The new summary of the whole chain.
    """

    chain: int | None
    pages: tuple[int, ...]
    summary: str


@dataclass(frozen=True, slots=True)
class SegmentPlan:
    """Pages to be added to a segment.

    Attributes:
        segment: The number of the segment; with None, a new segment is created.
        pages: The ``seq`` of each page to add.
        digest: The new summary and keywords of the whole segment.
        vector: The new unit-length vector of the whole segment; with None, its vector is not changed.
        summariser: Name of the analyst that wrote the digest.
    """

    segment: int | None
    pages: tuple[int, ...]
    digest: Digest
    vector: Vector | None
    summariser: str


@dataclass(frozen=True, slots=True)
class Filing:
    """A batch of pages to be put into chains and segments. Each page is put into one chain and one segment.

    Attributes:
        organiser: Name of the analyst that chose the chains and segments.
        is_degraded: Whether the chains and segments were chosen without an LLM because the LLM failed. The pages must
            then be organised again.
        is_redo: Whether the pages are already in chains and segments, and are to be moved to others.
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
        segments: The segments of the pages, if the pages were read for the profile; otherwise empty. If any page is
            read for the first time, the number of visits and the interaction length of these segments are reset to 0.
        pages: The ``seq`` of each page that was read.
        lessons: The traits and facts that were learned.
        traits: The profile at the time when the lessons were computed.
        learner: Name of the analyst that read the pages.
        corrections: All facts that the user had marked as wrong when the lessons were computed.
        is_degraded: Whether the pages were read without an LLM because the LLM failed. They must then be read again.
        replaces: Name of an analyst whose facts and traits are to be replaced. A fact or trait is removed once other
            analysts have read all pages that are evidence for it. With None, nothing is removed.
        is_reading: Whether facts were extracted. If it is False, only traits were extracted.
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
        pages: A mapping from the ``seq`` of each page to its windows. Each window contains its vector.
        facts: A mapping from the number of each fact to its unit-length vector.
        segments: A mapping from the number of each segment to its unit-length vector.
    """

    pages: Mapping[int, Sequence[Window]] = field(default_factory=dict)
    facts: Mapping[int, Vector] = field(default_factory=dict)
    segments: Mapping[int, Vector] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Archived:
    """Segments to be archived. Archived segments are no longer ranked; their pages are not affected."""

    segments: Sequence[int]


@dataclass(frozen=True, slots=True)
class Accepted:
    """Degraded pages whose results are accepted, so that no LLM processes the pages again."""

    pages: Sequence[int]


# The result of a background step, committed in one transaction.
Commit = Filing | Learning | Vectors | Archived | Accepted


@dataclass(frozen=True, slots=True)
class PageBatch:
    """Some pages of an export file with their chains and segments.

    Attributes:
        file: The SHA-256 digest of the file, by which a repeated import is recognised.
        pages: The pages, in the order of the file.
        chains: A mapping from the number of each chain in the file to its record.
        segments: A mapping from the number of each segment in the file to its record.
    """

    file: str
    pages: Sequence[PageRecord]
    chains: Mapping[int, ChainRecord]
    segments: Mapping[int, SegmentRecord]


@dataclass(frozen=True, slots=True)
class LongTerm:
    """The facts, traits and other long-term records of an export file.

    Attributes:
        file: The SHA-256 digest of the file.
        records: The records, in the order of the file.
        other_names: A mapping from the ``page_id`` in the file to the stored ``page_id``, for pages that already
            existed under a different ``page_id``.
    """

    file: str
    records: Sequence[LongTermRecord]
    other_names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """The settings of a store.

    Attributes:
        assistant_id: The id of the assistant that uses the memory. Facts about the assistant are stored under this id.
        short_term_capacity: Maximum number of short-term pages.
        session_gap_s: Maximum number of seconds between two consecutive pages of a session. After a longer gap, a new
            session begins.
        knowledge_capacity: Maximum number of facts about the user that are not archived. The same limit applies
            separately to facts about each assistant.
    """

    assistant_id: str
    short_term_capacity: int
    session_gap_s: float
    knowledge_capacity: int

    def owner(self, about: About) -> str:
        """Return the assistant id under which facts about the user or about the assistant are stored.

        The id is empty for facts about the user, because all assistants share them.
        """
        return self.assistant_id if about is About.ASSISTANT else ""


@dataclass(frozen=True, slots=True)
class Correction:
    """A user's correction of a fact or trait.

    Attributes:
        text: The new text of a fact.
        level: The new level of a trait; with None, its level is not changed.
        reason: The new reason of a trait; with None, its reason is not changed.
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
        before: The text that was current before the correction; None if there was none.
        current_id: The public id of the fact or trait that is current after the correction; None if there is none. It
            is also None for a new fact in a dry run.
        current: The text that is current after the correction; None if there is none.
    """

    id: str
    before: str | None
    current_id: str | None = None
    current: str | None = None


@dataclass(frozen=True, slots=True)
class SummaryCursor:
    """A position in the list of missing summaries: the numbers of the last chain and segment that were read."""

    chain: int = 0
    segment: int = 0


@dataclass(frozen=True, slots=True)
class MissingSummaries:
    """Chains and segments whose summaries were deleted because one of their pages was forgotten.

    Attributes:
        chains: The number of each chain.
        segments: The number of each segment.
        forget_epoch: The forget epoch at the time when the chains and segments were read.
        end: The position after these chains and segments. Pass it to the next call to continue.
    """

    chains: tuple[int, ...]
    segments: tuple[int, ...]
    forget_epoch: int
    end: SummaryCursor


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """A summary of the content of a whole memory. Two memories with the same fingerprint have the same content.

    Attributes:
        rows: The number of rows of each kind, such as ``pages``.
        sha256: A hash of all rows, as hexadecimal digits.
        is_empty: Whether the memory contains nothing that a user or an assistant stored.
        copied_from: The ``sha256`` of the memory from which this one was copied; None if it is not a copy.
    """

    rows: Mapping[str, int]
    sha256: str
    is_empty: bool
    copied_from: str | None = field(default=None, compare=False)

    def is_copy_of(self, other: "Fingerprint") -> bool:
        """Return whether this memory has the same content as ``other``, or was copied from it."""
        return self == other or self.copied_from == other.sha256


class CopyOutcome(StrEnum):
    """The outcome of copying a memory to another store.

    - ``COPIED``: The memory was copied.
    - ``SAME``: The other store already contained a copy of this memory. The copy may have changed since it was made.
    - ``OCCUPIED``: The other store contains a different memory of the user, or a copy of an earlier state of this one.
    - ``CHANGING``: Other processes changed the memory during the copy.

    Except for ``COPIED``, nothing was written.
    """

    COPIED = "copied"
    SAME = "same"
    OCCUPIED = "occupied"
    CHANGING = "changing"


@dataclass(frozen=True, slots=True)
class Copy:
    """The result of copying a memory.

    ``fingerprint`` describes the content of the original memory. It is None if the outcome is ``OCCUPIED`` or
    ``CHANGING``.
    """

    outcome: CopyOutcome
    fingerprint: Fingerprint | None = None
