"""The result of a retrieval."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from memoryos_mcp.model.knowledge import Fact
from memoryos_mcp.model.pages import Page
from memoryos_mcp.model.profile import Trait
from memoryos_mcp.model.segments import Segment
from memoryos_mcp.retrieval.budget import Quote
from memoryos_mcp.retrieval.query import ParsedQuery
from memoryos_mcp.text.addressees import NAMELESS, Speakers


@dataclass(frozen=True, slots=True)
class RecalledPage:
    """A page with the text that fits the budget.

    Attributes:
        quote: Its text, whole or in excerpts.
        score: Its score in this query; None for a short-term page, which is included regardless of its score.
        shares: The contribution of each signal to the score.
        notes: The caller's meta data, JSON; None if there are none or they do not fit.
        segment: Its topic; None until it is consolidated, or if the topic is archived.
        span: The character range of its text that is nearest to the query, if known.
    """

    page: Page
    quote: Quote
    score: float | None = None
    shares: Mapping[str, float] = field(default_factory=dict)
    notes: str | None = None
    segment: Segment | None = None
    span: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class RecalledFact:
    """A fact with its score in this query."""

    fact: Fact
    score: float


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Numbers of memories that did not fit into the token budget.

    Attributes:
        pages: Pages that were omitted.
        excerpts: Pages of which only parts are included.
        facts: Facts and wishes that were omitted.
        traits: Relevant traits that were omitted.
        max_tokens: A budget with which everything fits.
    """

    pages: int
    excerpts: int
    facts: int
    traits: int
    max_tokens: int


@dataclass(frozen=True, slots=True)
class Recall:
    """The result of one query over all three tiers.

    Attributes:
        short_term: The newest pages that fit the budget, oldest first.
        pages: Pages of any tier, best first, without those in ``short_term``.
        segments: The topics of these pages with their heat, in the order of their best page.
        user_facts: Facts about the user, best first; ranked together with those about the assistant.
        traits: Traits relevant to the query, those with the most evidence first.
        asked: The parsed query.
        is_semantic: Whether vectors were compared; False for keyword search only.
        recipe: Name and version of the ranking.
        tokens: Size of the result as text, at four bytes per token.
        wishes: The user's preferences for every answer, newest first; they do not depend on the query.
        speakers: The names of both sides.
        has_topics: Whether there is room for a line about each topic.
        left_out: Numbers of omitted memories; None if everything fits.
    """

    short_term: Sequence[RecalledPage]
    pages: Sequence[RecalledPage]
    segments: Sequence[tuple[Segment, float]]
    user_facts: Sequence[RecalledFact]
    assistant_facts: Sequence[RecalledFact]
    traits: Sequence[Trait]
    asked: ParsedQuery
    is_semantic: bool
    recipe: str
    tokens: int
    wishes: Sequence[RecalledFact] = ()
    speakers: Speakers = NAMELESS
    has_topics: bool = False
    left_out: LeftOut | None = None
