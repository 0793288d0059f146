"""The protocol of analysts, which find chains, topics, facts and traits in pages.

One implementation of the protocol uses an LLM, and the other needs none. An analyst has no side effects: it holds no
lock and stores nothing. The caller validates the results before storing them.
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
"""Maximum number of pages in one call of ``Analyst.learn``. With more pages, an LLM overlooks those in the middle."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The parts of the memory that an analyst needs in order to analyse some pages.

    Attributes:
        before: The page before the first of these pages, with its ``chain_summary``; None if there is no such page.
        segments: The few segments that are most similar to the pages, the most similar first.
        traits: The current profile.
        facts: Facts about the user and the assistant that are valid at the time of the last page. Facts that
            were learned only from these pages are excluded.
        corrected: Facts that the user has marked as wrong since the last of these pages was added, newest first. If an
            analyst learns such a fact again, the caller discards it.
        speakers: The names of the user and the assistant.
        is_read: Whether facts were already extracted from the pages. If so, only traits are extracted.
        forget_epoch: The forget epoch (the counter of forget operations) at which these values were read; None if
            they do not come from a memory.
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
    """A sequence of consecutive pages of a batch. Each page continues the subject of the previous one.

    Attributes:
        pages: The ``seq`` numbers of the pages, at least one.
        summary: Summary of the whole chain if ``is_whole`` is set, and otherwise only of the run. It is empty if the
            chain must be summarised again.
        is_whole: Whether the summary covers the whole chain, including its pages before the batch.
    """

    pages: tuple[int, ...]
    summary: str
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class Topic:
    """Pages of a batch about the same subject.

    Attributes:
        digest: Keywords and summary of the pages, or of the whole segment if ``segment`` is set.
        pages: The ``seq`` numbers of the pages, at least one.
        segment: The segment of ``Surroundings.segments`` to which the pages belong. If None, the caller chooses the
            segment that matches best.
        apart_from: Numbers of the segments to which the pages must not be added, even if these segments match best.
    """

    digest: Digest
    pages: tuple[int, ...]
    segment: Segment | None = None
    apart_from: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Organised:
    """A batch divided into runs and topics.

    Attributes:
        is_continuing: Whether the first run continues the subject of the page before the batch.
        runs: Sequences of consecutive pages about the same subject. Every page of the batch is in exactly one run.
        topics: Pages about the same subject, not always consecutive. Every page of the batch is in exactly one topic.
        knowledge: Changes to the known facts; None if no facts were extracted.
    """

    is_continuing: bool
    runs: tuple[Run, ...]
    topics: tuple[Topic, ...]
    knowledge: tuple[KnowledgeChange, ...] | None = None


class Analyst(Protocol):
    """An object that finds chains, topics, facts and traits in pages. It can be shared between tasks."""

    @property
    def name(self) -> str:
        """Name of the analyst. It is stored with the analyst's results."""
        ...

    async def organise(self, batch: Sequence[Page], around: Surroundings) -> Organised:
        """Return the runs and topics of a batch. The result may also contain changes to the known facts.

        Args:
            batch: Pages in order of arrival, at least one.
            around: The parts of the memory that are related to the batch.

        Raises:
            ModelError: The LLM returned no usable reply.
        """
        ...

    async def joined_digest(
        self, known: Segment | None, topics: Sequence[Topic], pages: Callable[[], Awaitable[Sequence[Page]]]
    ) -> Digest:
        """Return the new digest (keywords and summary) of a segment to which topics were added.

        This method makes no network call.

        Args:
            known: The segment before the topics were added; None for a new segment.
            topics: The added topics, at least one.
            pages: Async function that returns the segment's newest pages, including the pages of the topics, in order
                of arrival.
        """
        ...

    async def joined_summary(self, earlier: str, run: Run, pages: Callable[[], Awaitable[Sequence[Page]]]) -> str:
        """Return the new summary of a chain to which pages were added. This method makes no network call.

        Args:
            earlier: The chain's previous summary.
            run: The added pages and their summary.
            pages: Async function that returns the chain's newest pages, including the added ones, in order of arrival.
        """
        ...

    def portion(self, pages: Sequence[Page]) -> int:
        """Return the number of pages, counted from the first, that one call of `learn` can process; at least 1."""
        ...

    async def learn(self, pages: Sequence[Page], around: Surroundings) -> Lessons:
        """Return the traits and facts that the pages add, change or confirm.

        Args:
            pages: Pages in order of arrival, at least one.
            around: The profile, facts and corrections that the analyst needs.

        Raises:
            ModelError: The LLM returned no usable reply.
        """
        ...
