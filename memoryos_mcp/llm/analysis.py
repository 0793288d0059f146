"""Analysts: what reads pages and says what they are about. The protocol that an LLM and the fallback share.

An analyst computes and nothing else: it holds no lock, writes nothing, and its answer is validated before a
transaction takes it over.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from memoryos_mcp.config import LLM_BATCH_PAGES
from memoryos_mcp.model.knowledge import CorrectedFact, Fact, KnowledgeChange, Lessons
from memoryos_mcp.model.pages import Page
from memoryos_mcp.model.profile import Trait
from memoryos_mcp.model.segments import Digest, Segment, Vector
from memoryos_mcp.text.addressees import NAMELESS, Speakers

LEARN_PAGES_MAX = LLM_BATCH_PAGES
"""Pages that an LLM learns from in one call; of more it leaves out what stands in the middle."""


@dataclass(frozen=True, slots=True)
class PageView:
    """A page as an analyst sees it.

    Attributes:
        page: The page.
        vector: Unit-length mean of its windows, shape ``(dimension,)``; None while it is not embedded.
    """

    page: Page
    vector: Vector | None


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is known around a batch.

    Attributes:
        before: The page that arrived just before the first, if there is one.
        chain_summary: Summary of that page's chain, empty without one.
        segments: The segments nearest to the batch, nearest first; at most a few.
        facts: What is known and holds at the end of the batch, about the user and the assistant; without what rests on
            its own pages alone.
        corrected: What the user has said is wrong since the batch, the newest first.
        speakers: What the sides are called.
    """

    before: PageView | None
    chain_summary: str = ""
    segments: Sequence[Segment] = ()
    facts: Sequence[Fact] = ()
    corrected: Sequence[CorrectedFact] = ()
    speakers: Speakers = NAMELESS


@dataclass(frozen=True, slots=True)
class Run:
    """Pages of a batch that carry on one another, in a row.

    Attributes:
        pages: Their ``seq``, at least one.
        summary: What the whole chain is about: where the run carries on the page before the batch, with what was
            before; empty if that chain is to be summed up anew.
        is_whole: Whether the summary tells of the chain's earlier pages too.
    """

    pages: tuple[int, ...]
    summary: str
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class Topic:
    """Pages of a batch that belong together.

    Attributes:
        digest: Words for them; for them and the whole segment, if one is named.
        pages: Their ``seq``, at least one.
        segment: The known segment they belong to, one of the surroundings', as it was then; None leaves it to the
            score.
        apart_from: Numbers of segments that they do not belong to, whatever the score.
    """

    digest: Digest
    pages: tuple[int, ...]
    segment: Segment | None = None
    apart_from: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Organised:
    """A batch, put in order.

    Attributes:
        is_continuing: Whether the first run carries on the page before the batch.
        runs: Every page of the batch in exactly one.
        topics: Every page of the batch in exactly one.
        knowledge: What the pages tell; None from who did not read them for it.
    """

    is_continuing: bool
    runs: tuple[Run, ...]
    topics: tuple[Topic, ...]
    knowledge: tuple[KnowledgeChange, ...] | None = None


class Analyst(Protocol):
    """Reads pages and says what they are about. Safe to share between tasks."""

    @property
    def name(self) -> str:
        """Who it is; kept beside what it wrote."""
        ...

    async def organise(self, batch: Sequence[PageView], around: Surroundings) -> Organised:
        """Find the chains and topics of a batch, and what it tells if that takes no further call.

        Args:
            batch: Pages in order of arrival, at least one.
            around: What is known around them.

        Raises:
            ModelError: No usable answer.
        """
        ...

    async def joined_digest(
        self, known: Segment | None, topics: Sequence[Topic], pages: Callable[[], Awaitable[Sequence[PageView]]]
    ) -> Digest:
        """Return words for a segment that topics have joined; never asks a model over a network.

        Args:
            known: The segment as it stands; None for a new one.
            topics: What joins, at least one.
            pages: Reads the segment's newest pages, the topics' included, in order of arrival.
        """
        ...

    async def joined_summary(self, earlier: str, run: Run, pages: Callable[[], Awaitable[Sequence[PageView]]]) -> str:
        """Return the summary of a chain that a run has joined; never asks a model over a network.

        Args:
            earlier: The chain's summary so far.
            run: What joins.
            pages: Reads the chain's newest pages, the run's included, in order of arrival.
        """
        ...

    def portion(self, pages: Sequence[Page]) -> int:
        """Return how many of the first pages it can read at once, at least one."""
        ...

    async def learn(
        self,
        pages: Sequence[PageView],
        traits: Sequence[Trait],
        facts: Sequence[Fact] | None,
        corrected: Sequence[CorrectedFact] = (),
    ) -> Lessons:
        """Return what pages add to profile and knowledge.

        Args:
            pages: In order of arrival, at least one.
            traits: The profile as it stands.
            facts: What is known and holds now, about the user and the assistant; None for pages that were read for
                knowledge, which add to the profile alone.
            corrected: What the user has said is wrong since these pages, the newest first. Whoever learns it all the
                same is not heard.

        Raises:
            ModelError: No usable answer.
        """
        ...
