"""The result of a retrieval: the class `Recall` and its parts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from memoryos_mcp.model.knowledge import Fact
from memoryos_mcp.model.pages import Page
from memoryos_mcp.model.profile import Trait
from memoryos_mcp.model.segments import Segment
from memoryos_mcp.retrieval import rendering
from memoryos_mcp.retrieval.budget import Quote
from memoryos_mcp.retrieval.query import ParsedQuery
from memoryos_mcp.text.addressees import NAMELESS, Speakers


@dataclass(frozen=True, slots=True)
class RecalledPage:
    """A page in a result, with as much of its text as fits the budget.

    Attributes:
        quote: Text of the page, in full or as an excerpt.
        score: Score of the page for the query; None for a short-term page, which is included regardless of its score.
        shares: The contribution of each signal to the score.
        notes: The caller's metadata as JSON; None if there is none or it does not fit.
        segment: Topic of the page; None if the page has no topic yet, or if the topic is archived.
        span: Character range of the page's text that is nearest to the query; None if unknown.
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
    """A fact with its score for the query."""

    fact: Fact
    score: float


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Counts of the memories that did not fit into the token budget.

    Attributes:
        pages: Number of omitted pages.
        excerpts: Number of pages that are included only in part.
        facts: Number of omitted facts and wishes.
        traits: Number of omitted traits that are relevant to the query.
        max_tokens: A token budget that is large enough for everything.
    """

    pages: int
    excerpts: int
    facts: int
    traits: int
    max_tokens: int


@dataclass(frozen=True, slots=True)
class Recall:
    """The memories that one query found.

    Attributes:
        short_term: The newest pages that fit the budget, oldest first.
        pages: The other found pages, best first.
        segments: Topics of ``pages``, each with its heat. The topic of the best page comes first.
        user_facts: Facts about the user, best first. Their scores are comparable with those of ``assistant_facts``.
        traits: Traits relevant to the query; traits with the most evidence come first.
        asked: The parsed query.
        is_semantic: Whether vectors were compared; False if search used only keywords.
        recipe: Name and version of the ranking.
        tokens: Number of tokens in the result as text, at four bytes per token.
        wishes: The user's preferences that apply to every answer, newest first. They do not depend on the query.
        speakers: The names of the user and the assistant.
        has_topics: Whether there is room for a heading for each topic.
        left_out: Counts of the omitted memories; None if everything fits.
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

    @property
    def text(self) -> str:
        """The memories as text for an LLM, delimited and marked as information, not as instructions."""
        return rendering.recall_text(self)
