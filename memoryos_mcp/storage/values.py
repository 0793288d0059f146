"""The values that cross the `Store` protocol: what a store returns, and what it is given to write."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from memoryos_mcp.model.knowledge import About, CorrectedFact, Lessons
from memoryos_mcp.model.pages import Page
from memoryos_mcp.model.profile import Trait
from memoryos_mcp.model.records import ChainRecord, LongTermRecord, PageRecord, SegmentRecord
from memoryos_mcp.model.segments import Digest, Vector


@dataclass(frozen=True, slots=True)
class Receipt:
    """Proof that a page is on disk.

    Attributes:
        page_id: Its public name.
        occurred_at: When it was said, with its zone's offset.
        is_new: False if a page with the same idempotency key was there already.
        pending: Pages that wait for consolidation.
        redacted: Kinds of the secrets that were left out of it.
    """

    page_id: str
    occurred_at: datetime
    is_new: bool
    pending: int
    redacted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outlines:
    """What ranking needs of pages, without their text: columns of equal length.

    Attributes:
        seqs: The pages, ascending, shape ``(n,)``.
        sessions: Their sessions, shape ``(n,)``.
        segments: Their segments, 0 without one, shape ``(n,)``.
        days: When they were said, in days since 1970 where it was said, shape ``(n,)``.
        sizes: How long they are, bytes of UTF-8, shape ``(n,)``.
    """

    seqs: NDArray[np.int64]
    sessions: NDArray[np.int64]
    segments: NDArray[np.int64]
    days: NDArray[np.int64]
    sizes: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class FoundPage:
    """A page with what is shown beside it.

    Attributes:
        chain_summary: Its chain's summary, None without a chain.
        span: Characters of the asked window in the page's text, None if there is no such window.
    """

    page: Page
    chain_summary: str | None
    span: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class TermStats:
    """What the word index knows of some words.

    Attributes:
        pages: How many pages there are, about.
        counts: In how many of them each word occurs.
        user_names: Which of the words the user is called by.
        agent_names: Which of the words the assistant is called by.
        user_called: By what name the assistant mostly calls the user, as it is written; None if by none.
        agent_called: The same of the assistant.
    """

    pages: int
    counts: Mapping[str, int]
    user_names: frozenset[str]
    agent_names: frozenset[str]
    user_called: str | None = None
    agent_called: str | None = None


@dataclass(frozen=True, slots=True)
class TokenRows:
    """The token codes of some pages' windows, the windows of a page in a row and in order.

    Attributes:
        seqs: Whose window it is, shape ``(w,)``.
        counts: How many rows each window has for what the user states and asks and the assistant states and asks, in
            this order, shape ``(w, 4)``.
        codes: The rows of all windows one after the other, shape ``(counts.sum(), bytes)``, uint8.
    """

    seqs: NDArray[np.int64]
    counts: NDArray[np.int64]
    codes: NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class WordMatches:
    """Which pages hold which words.

    Attributes:
        words: Which words.
        user: Whether the user's side of a page does, shape ``(pages, words)``.
        agent: Whether the assistant's does, shape ``(pages, words)``.
    """

    words: Sequence[str]
    user: NDArray[np.bool_]
    agent: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class WordHit:
    """A page found by its words.

    Attributes:
        score: Higher is better: BM25, or how many of the words it holds if all are common.
    """

    seq: int
    score: float


@dataclass(frozen=True, slots=True)
class Failure:
    """How a kind of background work has failed last.

    Attributes:
        attempts: In a row; 0 once it has worked again.
        error: What was wrong; no text of a dialogue.
    """

    attempts: int
    error: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Pending:
    """What the background has before it.

    Attributes:
        backlog: Pages that wait to be organised.
        oldest_backlog_at: When the first of them was added; None without any.
        unembedded: Pages without vectors in the space; 0 without a space.
    """

    backlog: int
    oldest_backlog_at: datetime | None
    unembedded: int


@dataclass(frozen=True, slots=True)
class Space:
    """Vectors of one model, comparable with one another and with no other's.

    Attributes:
        identity: The model's, ``name:dimension:revision``.
        model: How to load that model again, JSON.
        unembedded: Pages without vectors of it.
        used_at: When it was last written to or answered queries, to about a day.
    """

    identity: str
    model: str
    unembedded: int
    used_at: datetime


@dataclass(frozen=True, slots=True)
class PageVectors:
    """The windows' vectors of some pages, all windows of a page in a row and in order.

    Attributes:
        seqs: Whose window it is, ascending, shape ``(n,)``.
        vectors: Unit length, shape ``(n, dimension)``, float32.
    """

    seqs: NDArray[np.int64]
    vectors: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Changes:
    """Rows that changed after a point in the change sequence.

    Attributes:
        position: The newest change told of; ask again from here.
        pages: Pages whose vectors were set, replaced or dropped.
        is_midterm: Whether a segment changed.
        is_longterm: Whether a fact or trait changed.
        is_complete: False if there is more beyond ``position``.
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
        epoch: Grows each time the right changes hands; every background write is checked against it.
    """

    epoch: int


@dataclass(frozen=True, slots=True)
class ChainPlan:
    """Pages to be linked.

    Attributes:
        chain: The chain to extend; None makes one.
        pages: ``seq`` of the pages to add.
        summary: The whole chain's summary, these pages included.
    """

    chain: int | None
    pages: tuple[int, ...]
    summary: str


@dataclass(frozen=True, slots=True)
class SegmentPlan:
    """Pages to be filed under a topic.

    Attributes:
        segment: The segment to extend; None makes one.
        pages: ``seq`` of the pages to add.
        digest: The whole segment's words, these pages included.
        vector: The whole segment's unit-length mean, these pages included.
        summariser: Who wrote the digest.
    """

    segment: int | None
    pages: tuple[int, ...]
    digest: Digest
    vector: Vector | None
    summariser: str


@dataclass(frozen=True, slots=True)
class Filing:
    """Pages to be filed, all that follows from one batch.

    Attributes:
        chains: Every page of the batch in exactly one.
        segments: Every page of the batch in exactly one.
        organiser: Who found them.
        is_degraded: Whether the fallback did it for an LLM that failed, so that it is to be done again.
        is_redo: Whether the pages are filed already and leave their chains and segments for these.
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
        segments: Whose pages they are, if they were read for the profile; their visits and interaction length return
            to 0. Empty if they were read for knowledge alone, wherever they are.
        pages: ``seq`` of the pages that were read.
        lessons: What they teach.
        traits: The profile that the lessons were computed from.
        learner: Who read them.
        corrections: What the user had corrected, of all assistants, when the lessons were computed.
        is_degraded: Whether the fallback did it for an LLM that failed, so that it is to be done again.
        replaces: A learner whose facts and traits go where every page they rest on has been read by another; None
            keeps all.
        is_reading: Whether they were read for knowledge.
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
class DonePage:
    """A page with what somebody did with it.

    Attributes:
        is_filed: Whether they filed it.
        is_read: Whether they read it for profile and knowledge.
    """

    page: Page
    is_filed: bool
    is_read: bool


@dataclass(frozen=True, slots=True)
class PageBatch:
    """Pages of a file, with the groups that they are in.

    Attributes:
        file: The file's SHA-256, by which a second attempt is known.
        pages: In the file's order.
        chains: Those of the pages, by number.
        segments: Those of the pages, by number.
    """

    file: str
    pages: Sequence[PageRecord]
    chains: Mapping[int, ChainRecord]
    segments: Mapping[int, SegmentRecord]


@dataclass(frozen=True, slots=True)
class LongTerm:
    """What a file says beside its pages.

    Attributes:
        file: The file's SHA-256.
        records: In the file's order.
        other_names: By what name the memory has pages that were there already under another, by their name in the file.
    """

    file: str
    records: Sequence[LongTermRecord]
    other_names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """What a store needs to know of the settings.

    Attributes:
        assistant_id: Whose facts the assistant's facts are.
        short_term_capacity: Pages kept in short-term.
        session_gap_s: A longer silence starts a new session.
        knowledge_capacity: Facts kept in force, of the user and of the assistant each.
    """

    assistant_id: str
    short_term_capacity: int
    session_gap_s: float
    knowledge_capacity: int

    def owner(self, about: About) -> str:
        """Return whose facts these are beside the user's: facts about the user are shared by all assistants."""
        return self.assistant_id if about is About.ASSISTANT else ""
