"""Analysts, which read pages and say what they are about: the protocol that the LLM and the fallback share.

An analyst only computes. It holds no lock and writes nothing, and its answer is validated before it is stored.
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
"""Maximum number of pages that an LLM learns from in one call; of more, it overlooks those in the middle."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the memory contains around some pages, as an analyst is shown it.

    Attributes:
        before: The page that arrived just before the first, if there is one, with the summary of its chain.
        segments: A few segments nearest to the pages, nearest first.
        traits: The current profile.
        facts: Current facts about user and assistant, except those that rest on these pages alone.
        corrected: Facts that the user has called wrong since these pages, newest first; they are discarded if learned
            again.
        speakers: The names of user and assistant.
        is_read: Whether the pages were already read for facts, so that they add to the profile alone.
        forget_epoch: The forget epoch at which pages and surroundings were read; None if nothing is ever forgotten.
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
        summary: What the whole chain is about, with its earlier pages if the run continues the page before the batch;
            empty if that chain must be summarised again.
        is_whole: Whether the summary covers the chain's earlier pages too.
    """

    pages: tuple[int, ...]
    summary: str
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class Topic:
    """Pages of a batch that belong together.

    Attributes:
        digest: Keywords and summary of the pages; with ``segment``, of the whole segment.
        pages: Their ``seq``, at least one.
        segment: The known segment that they belong to, as it was in the surroundings; None leaves it to the score.
        apart_from: Numbers of segments that they do not belong to, whatever the score.
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
        runs: Every page of the batch is in exactly one.
        topics: Every page of the batch is in exactly one.
        knowledge: The facts in the pages; None if the pages were not read for facts.
    """

    is_continuing: bool
    runs: tuple[Run, ...]
    topics: tuple[Topic, ...]
    knowledge: tuple[KnowledgeChange, ...] | None = None


class Analyst(Protocol):
    """Reads pages and says what they are about. Safe to share between tasks."""

    @property
    def name(self) -> str:
        """Name of the analyst; stored with what it wrote."""
        ...

    async def organise(self, batch: Sequence[Page], around: Surroundings) -> Organised:
        """Find the chains and topics of a batch, and its facts if that takes no further call.

        Args:
            batch: Pages in order of arrival, at least one.
            around: What is known around them.

        Raises:
            ModelError: There was no usable answer.
        """
        ...

    async def joined_digest(
        self, known: Segment | None, topics: Sequence[Topic], pages: Callable[[], Awaitable[Sequence[Page]]]
    ) -> Digest:
        """Return the digest of a segment that topics have joined; makes no network call.

        Args:
            known: The segment before that; None for a new one.
            topics: The topics that joined, at least one.
            pages: Reads the segment's newest pages, those of the topics included, in order of arrival.
        """
        ...

    async def joined_summary(self, earlier: str, run: Run, pages: Callable[[], Awaitable[Sequence[Page]]]) -> str:
        """Return the summary of a chain that a run has joined; makes no network call.

        Args:
            earlier: The chain's summary so far.
            run: The run that joined.
            pages: Reads the chain's newest pages, those of the run included, in order of arrival.
        """
        ...

    def portion(self, pages: Sequence[Page]) -> int:
        """Return how many of the first pages can be read in one call, at least one."""
        ...

    async def learn(self, pages: Sequence[Page], around: Surroundings) -> Lessons:
        """Return what pages add to profile and knowledge.

        Args:
            pages: Pages in order of arrival, at least one.
            around: What is known around them.

        Raises:
            ModelError: There was no usable answer.
        """
        ...
