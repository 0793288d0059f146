"""The protocol of analysts, which the LLM and the fallback implement.

An analyst finds chains, topics, facts and traits in pages. It only computes: it holds no lock and stores nothing, and
its results are validated before they are stored.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from memoryos_mcp.config import LLM_BATCH_PAGES
from memoryos_mcp.model.knowledge import CorrectedFact, Fact, KnowledgeChange, Lessons
from memoryos_mcp.model.pages import Page
from memoryos_mcp.model.profile import Trait
from memoryos_mcp.model.segments import Digest, Segment
from memoryos_mcp.text.addressees import NAMELESS, Speakers

LEARN_PAGES_MAX = LLM_BATCH_PAGES
"""Maximum number of pages in one call of ``Analyst.learn``; with more, an LLM overlooks pages in the middle."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The parts of the memory that an analyst needs to read some pages.

    Attributes:
        before: The page before the first of these pages, with the summary of its chain; None if there is none.
        segments: The few segments most similar to the pages, the most similar first.
        traits: The current profile.
        facts: Facts about user and assistant that are valid at the time of the last page, except facts whose only
            evidence is on these pages.
        corrected: Facts that the user has marked as wrong since these pages, newest first. If one of them is learned
            again, the caller discards it.
        speakers: The names of user and assistant.
        is_read: Whether the facts of the pages are already known; then only traits are learned.
        forget_epoch: The forget epoch when all of this was read; None if nothing is ever forgotten.
    """

    before: Page | None = None
    segments: Sequence[Segment] = ()
    traits: Sequence[Trait] = ()
    facts: Sequence[Fact] = ()
    corrected: Sequence[CorrectedFact] = ()
    speakers: Speakers = NAMELESS
    is_read: bool = False
    forget_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive pages of a batch, each of which continues the previous one.

    Attributes:
        pages: Their ``seq``, at least one.
        summary: Summary of the whole chain. If the run continues the page before the batch, this includes the earlier
            pages of the chain. Empty if the chain must be summarised again.
        is_whole: Whether the summary covers the chain's earlier pages too.
    """

    pages: tuple[int, ...]
    summary: str
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class Topic:
    """Pages of a batch about the same subject.

    Attributes:
        digest: Keywords and summary of the pages, or of the whole segment if ``segment`` is set.
        pages: Their ``seq``, at least one.
        segment: The segment of the surroundings that they belong to; None to choose a segment by its score.
        apart_from: Numbers of segments that they do not belong to, whatever their scores.
    """

    digest: Digest
    pages: tuple[int, ...]
    segment: Segment | None = None
    apart_from: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Organised:
    """A batch divided into runs and topics.

    Attributes:
        is_continuing: Whether the first run continues the page before the batch.
        runs: The runs; every page of the batch is in exactly one.
        topics: The topics; every page of the batch is in exactly one.
        knowledge: Changes to the known facts; None if no facts were extracted.
    """

    is_continuing: bool
    runs: tuple[Run, ...]
    topics: tuple[Topic, ...]
    knowledge: tuple[KnowledgeChange, ...] | None = None


class Analyst(Protocol):
    """Finds chains, topics, facts and traits in pages. Safe to share between tasks."""

    @property
    def name(self) -> str:
        """Name of the analyst; stored with its results."""
        ...

    async def organise(self, batch: Sequence[Page], around: Surroundings) -> Organised:
        """Return the chains and topics of a batch, and its facts if they need no further call.

        Args:
            batch: Pages in order of arrival, at least one.
            around: The parts of the memory that are related to the batch.

        Raises:
            ModelError: There was no usable reply.
        """
        ...

    async def joined_digest(
        self, known: Segment | None, topics: Sequence[Topic], pages: Callable[[], Awaitable[Sequence[Page]]]
    ) -> Digest:
        """Return the new digest of a segment to which topics were added, without a network call.

        Args:
            known: The segment before the topics were added; None for a new segment.
            topics: The added topics, at least one.
            pages: Reads the segment's newest pages, including those of the topics, in order of arrival.
        """
        ...

    async def joined_summary(self, earlier: str, run: Run, pages: Callable[[], Awaitable[Sequence[Page]]]) -> str:
        """Return the new summary of a chain to which a run was added, without a network call.

        Args:
            earlier: The chain's previous summary.
            run: The added run.
            pages: Reads the chain's newest pages, including those of the run, in order of arrival.
        """
        ...

    def portion(self, pages: Sequence[Page]) -> int:
        """Return how many pages, from the first on, one call of `learn` can process; at least one."""
        ...

    async def learn(self, pages: Sequence[Page], around: Surroundings) -> Lessons:
        """Return the changes that pages make to profile and knowledge.

        Args:
            pages: Pages in order of arrival, at least one.
            around: The profile, facts and corrections that the analyst needs.

        Raises:
            ModelError: There was no usable reply.
        """
        ...
