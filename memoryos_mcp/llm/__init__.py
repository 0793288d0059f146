"""Analysts: what reads pages and says what they are about. The protocol that an LLM and the stand-in share.

An analyst computes and nothing else: it holds no lock, writes nothing, and its answer is validated before a
transaction takes it over.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from memoryos_mcp.knowledge import Fact, Lessons
from memoryos_mcp.pages import Page
from memoryos_mcp.profile import Trait
from memoryos_mcp.segments import Digest, Vector


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
class Topic:
    """Pages of a batch that belong together.

    Attributes:
        digest: Words for them.
        pages: Their ``seq``, at least one.
    """

    digest: Digest
    pages: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Organised:
    """A batch, put in order.

    Attributes:
        continues: ``seq`` of the pages that carry on what the page before them was about.
        topics: Every page of the batch in exactly one.
    """

    continues: frozenset[int]
    topics: tuple[Topic, ...]


class Analyst(Protocol):
    """Reads pages and says what they are about. Safe to share between tasks."""

    @property
    def name(self) -> str:
        """Who it is; kept beside what it wrote."""
        ...

    async def organise(self, batch: Sequence[PageView], before: PageView | None) -> Organised:
        """Find the chains and topics of a batch.

        Args:
            batch: Pages in order of arrival, at least one.
            before: The page that arrived just before the first, if there is one.

        Raises:
            ModelError: No usable answer.
        """
        ...

    async def digest(self, pages: Sequence[PageView]) -> Digest:
        """Return words for a segment's or a chain's pages, at least one, in order of arrival.

        Raises:
            ModelError: No usable answer.
        """
        ...

    async def learn(self, pages: Sequence[PageView], traits: Sequence[Trait], facts: Sequence[Fact]) -> Lessons:
        """Return what not yet analysed pages add to profile and knowledge.

        Args:
            pages: In order of arrival, at least one.
            traits: The profile as it stands.
            facts: What is known and holds now, about the user and the assistant.

        Raises:
            ModelError: No usable answer.
        """
        ...
