"""What a retrieval returns: values, without a word on how they were found."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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
        score: Its rank score within this query; None for a short-term page, which is there anyway.
        shares: What each signal adds to the score.
        chain_summary: What the run of pages around it is about, shortened; None until it is consolidated.
        meta_data: The caller's own notes, JSON; None if there are none or they do not fit.
        segment: The topic it is filed under; None until it is consolidated, or if the topic is archived.
        span: Characters of its text that the query is nearest to, if they are known.
    """

    page: Page
    quote: Quote
    score: float | None
    shares: Mapping[str, float]
    chain_summary: str | None
    meta_data: str | None
    segment: Segment | None
    span: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class RecalledFact:
    """A fact with its rank score within this query."""

    fact: Fact
    score: float


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What the token budget had no room for.

    Attributes:
        pages: Pages that do not come at all.
        excerpts: Pages of which parts come.
        facts: Facts and wishes that do not come.
        traits: Traits that bear on the query and do not come.
        max_tokens: A budget with which all of it comes.
    """

    pages: int
    excerpts: int
    facts: int
    traits: int
    max_tokens: int


@dataclass(frozen=True, slots=True)
class Recall:
    """The answer of all three tiers to one query.

    Attributes:
        short_term: The newest pages as far as the budget holds them, oldest first.
        pages: Pages of any tier, best first; none that is in ``short_term``.
        segments: The topics of these pages with their heat, in the order of their best page.
        user_facts: Facts about the user, best first.
        assistant_facts: Facts about the assistant, best first; both sides are ranked together.
        traits: What bears on the query of the profile, the most telling first.
        asked: The query, as it was understood.
        is_semantic: Whether meaning was compared; False while only words were.
        recipe: Name and version of the ranking.
        tokens: What all that is shown takes as text, one for four bytes.
        wishes: What the user wants of every answer, newest first, whatever the query is.
        speakers: What the sides are called.
        has_topics: Whether there is room to tell what each topic is about.
        left_out: What the budget had no room for; None if everything came.
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
