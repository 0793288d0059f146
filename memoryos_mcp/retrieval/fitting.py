"""Fitting: what is shown of each tier within a token budget. What is charged is what is shown, heads included.

If everything fits, everything comes, whole. If not, each part has a share, and what one leaves the next ones may use:
wishes, traits, facts, the newest pages; the pages that were found get the rest, the best ones first.
"""

import math
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from memoryos_mcp.names import Speakers
from memoryos_mcp.pages import BYTES_PER_TOKEN, Page, Source, estimate_tokens
from memoryos_mcp.profile import Trait
from memoryos_mcp.quoting import one_line, topic_line
from memoryos_mcp.retrieval.budget import Quote, quote, shortened
from memoryos_mcp.retrieval.ranking import Ranked
from memoryos_mcp.retrieval.recall import LeftOut, RecalledFact, RecalledPage
from memoryos_mcp.segments import Segment
from memoryos_mcp.storage.values import FoundPage

TOKENS_AT_MOST = 1_000_000
# Shares of the token budget.
WISHES_SHARE = 1 / 8
TRAITS_SHARE = 1 / 16
KNOWLEDGE_SHARE = 1 / 8
SHORT_TERM_SHARE = 1 / 10
# No page takes more than this share of what is left, so that one long page does not silence the others.
BEST_PAGE_SHARE = 1 / 2
PAGE_SHARE = 1 / 3
PAGE_ALLOWANCE_TOKENS = 160
CHAIN_SUMMARY_CHARS = 200
# What readable text costs beside what is remembered: the delimiters with the sentence before them, the line that tells
# what was left out, the title of a section, a page's time and id, its marks as an excerpt or as of other origin, a
# fact's dash and day, the beginning of notes.
FRAME_TOKENS = 24
LEFT_OUT_TOKENS = 22
TITLE_TOKENS = 11
HEAD_BYTES = 41
EXCERPT_BYTES = 9
ORIGIN_BYTES = 80
FACT_BYTES = 18
NOTES_BYTES = 8


# A found page with its place in the ranking and its topic.
Candidate = tuple[Ranked, FoundPage, Segment | None]


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a reply may hold.

    Attributes:
        pages: Found pages at most.
        tokens: All that is shown together.
        is_cut: Whether pages far below the best are left out.
        is_elastic: Whether pages beyond the tokens come all the same, in short excerpts.
        has_all_recent: Whether all short-term pages come, and not only the last ones and those that bear on the query.
    """

    pages: int
    tokens: int
    is_cut: bool = True
    is_elastic: bool = False
    has_all_recent: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """What answers a query, each part in its order.

    Attributes:
        wishes: What the user wants of every answer, newest first.
        traits: What bears on the query of the profile, the most telling first.
        facts: Of both sides, best first.
        short_term: The newest pages that come ahead of found ones, oldest first.
        pages: Found pages of any tier, best first, each with its topic; some may be among the newest.
    """

    wishes: Sequence[RecalledFact]
    traits: Sequence[Trait]
    facts: Sequence[RecalledFact]
    short_term: Sequence[Page]
    pages: Sequence[Candidate]


@dataclass(frozen=True, slots=True)
class Fitted:
    """What is shown of it.

    Attributes:
        topics: Whether there was room for a line for each topic.
        left_out: What there was no room for; None if there is nothing.
    """

    wishes: Sequence[RecalledFact]
    traits: Sequence[Trait]
    facts: Sequence[RecalledFact]
    short_term: Sequence[RecalledPage]
    pages: Sequence[RecalledPage]
    has_topics: bool
    left_out: LeftOut | None
    tokens: int


def fit(found: Found, limits: Limits, speakers: Speakers, query_roots: frozenset[str]) -> Fitted:
    """Return what is shown of what was found.

    Args:
        found: What answers the query.
        limits: How much may be shown.
        speakers: What the sides are called.
        query_roots: Word roots of the query, by `roots`; passages that hold them are kept first.
    """
    budget = _Budget(limits, speakers, query_roots)
    needed = budget.cost_of_all(found)
    budget.is_enough = needed <= limits.tokens
    if not budget.is_enough:
        budget.left -= LEFT_OUT_TOKENS
    wishes = budget.fit_facts(found.wishes, WISHES_SHARE)
    traits = budget.fit_traits(found.traits)
    facts = budget.fit_facts(found.facts, KNOWLEDGE_SHARE)
    short_term = budget.fit_short_term(found.short_term, SHORT_TERM_SHARE)
    pages = budget.fit_pages(found.pages, _seqs(short_term))
    pages = budget.complete(pages)
    short_term = budget.fit_older(short_term, [page for page in found.short_term if page.seq not in _seqs(pages)])
    wanted = {page.seq for page in found.short_term}.union(each.page.seq for _, each, _ in budget.wanted(found))
    shown = [*short_term, *pages]
    left_out = LeftOut(
        pages=len(wanted - _seqs(shown)),
        excerpts=sum(recalled.quote.is_excerpt for recalled in shown),
        facts=len(found.wishes) + len(found.facts) - len(wishes) - len(facts),
        max_tokens=min(needed, TOKENS_AT_MOST),
    )
    return Fitted(
        wishes=wishes,
        traits=traits,
        facts=facts,
        short_term=short_term,
        pages=pages,
        has_topics=budget.fit_topics([recalled.segment for recalled in pages if recalled.segment]),
        left_out=left_out if left_out.pages or left_out.excerpts or left_out.facts else None,
        tokens=budget.spent,
    )


class _Budget:
    """Tokens that are left to spend."""

    def __init__(self, limits: Limits, speakers: Speakers, query_roots: frozenset[str]) -> None:
        self._limits = limits
        self._labels = [len(f"{label}: \n".encode()) for label in (speakers.user_label, speakers.agent_label)]
        self._query_roots = query_roots
        self.is_enough = False
        self.left = limits.tokens - FRAME_TOKENS

    @property
    def spent(self) -> int:
        """About what is shown costs."""
        return self._limits.tokens - self.left

    def wanted(self, found: Found) -> list[Candidate]:
        """Return the pages that come beside the newest if all of these come."""
        newest = {page.seq for page in found.short_term}
        return [candidate for candidate in found.pages if candidate[1].page.seq not in newest][: self._limits.pages]

    def cost_of_all(self, found: Found) -> int:
        """Return about what all of it costs, whole."""
        pages = [*found.short_term, *(each.page for _, each, _ in self.wanted(found))]
        facts = [*found.wishes, *found.facts]
        titles = [found.wishes, found.traits, found.short_term, found.pages, *_sides(found.facts)]
        return (
            FRAME_TOKENS
            + TITLE_TOKENS * sum(1 for part in titles if part)
            + sum(map(_trait_tokens, found.traits))
            + sum(_fact_tokens(recalled) for recalled in facts)
            + sum(map(self._whole, pages))
        )

    def fit_facts(self, ranked: Sequence[RecalledFact], share: float) -> list[RecalledFact]:
        """Return the facts that fit a share, in their order."""
        allowance, kept = self._allowance(share), list[RecalledFact]()
        for recalled in ranked:
            is_first = not any(each.fact.about is recalled.fact.about for each in kept)
            cost = _fact_tokens(recalled) + TITLE_TOKENS * is_first
            if cost <= allowance:
                kept.append(recalled)
                allowance, self.left = allowance - cost, self.left - cost
        return kept

    def fit_traits(self, traits: Sequence[Trait]) -> list[Trait]:
        """Return the traits that fit their share, in their order."""
        allowance, kept = self._allowance(TRAITS_SHARE), list[Trait]()
        for trait in traits:
            cost = _trait_tokens(trait) + TITLE_TOKENS * (not kept)
            if cost <= allowance:
                kept.append(trait)
                allowance, self.left = allowance - cost, self.left - cost
        return kept

    def fit_short_term(self, pages: Sequence[Page], share: float) -> list[RecalledPage]:
        """Return the short-term pages that fit a share: newest first into the budget, oldest first in the result."""
        allowance, kept = self._allowance(share), list[RecalledPage]()
        for page in reversed(pages):
            title = TITLE_TOKENS * (not kept)
            text = self._quote(page, self._allowed(allowance - title, PAGE_SHARE), None)
            if text is None:
                break
            cost = self._page_tokens(page, text) + title
            allowance, self.left = allowance - cost, self.left - cost
            kept.append(RecalledPage(page, text, None, {}, chain_summary=None, meta_data=None, segment=None))
        return kept[::-1]

    def fit_older(self, shown: Sequence[RecalledPage], pages: Sequence[Page]) -> list[RecalledPage]:
        """Return the short-term pages that are shown, and those before them that fit what is left."""
        if not self._limits.tokens > self.spent or len(shown) == len(pages):
            return [*shown]
        self.left += sum(self._page_tokens(recalled.page, recalled.quote) for recalled in shown)
        self.left += TITLE_TOKENS * bool(shown)
        return self.fit_short_term(pages, 1.0)

    def fit_pages(self, found: Sequence[Candidate], shown: AbstractSet[int]) -> list[RecalledPage]:
        """Return the pages that fit what is left, in their order; none that is shown already."""
        kept: list[RecalledPage] = []
        fresh = [candidate for candidate in found if candidate[1].page.seq not in shown]
        for entry, each, segment in fresh[: self._limits.pages]:
            page, title = each.page, TITLE_TOKENS * (not kept)
            allowance = self._allowed(self.left - title, PAGE_SHARE if kept else BEST_PAGE_SHARE)
            if self._limits.is_elastic:
                allowance = max(allowance, PAGE_ALLOWANCE_TOKENS)
            notes = page.meta_data if self.is_enough or _notes_tokens(page.meta_data) <= allowance // 2 else None
            text = self._quote(page, allowance - _notes_tokens(notes), each.span)
            if text is None:
                continue
            self.left -= self._page_tokens(page, text) + _notes_tokens(notes) + title
            chain = each.chain_summary and shortened(each.chain_summary, CHAIN_SUMMARY_CHARS)
            kept.append(RecalledPage(page, text, entry.score, entry.shares, chain, notes, segment, each.span))
        return kept

    def complete(self, pages: Sequence[RecalledPage]) -> list[RecalledPage]:
        """Return the pages with more of those that come in excerpts, the best first, as far as there is room."""
        completed: list[RecalledPage] = []
        for recalled in pages:
            if recalled.quote.is_excerpt and self.left > 0:
                cost = self._page_tokens(recalled.page, recalled.quote)
                text = self._quote(recalled.page, cost + self.left, recalled.span) or recalled.quote
                self.left += cost - self._page_tokens(recalled.page, text)
                completed.append(replace(recalled, quote=text))
            else:
                completed.append(recalled)
        return completed

    def fit_topics(self, segments: Sequence[Segment]) -> bool:
        """Return whether a line for each topic fits."""
        lines = {segment.segment: topic_line(segment.summary) for segment in segments}
        cost = sum(map(estimate_tokens, lines.values())) + estimate_tokens(topic_line(""))
        if not lines or cost > self.left:
            return False
        self.left -= cost
        return True

    def _allowance(self, share: float) -> int:
        return max(0, self.left if self.is_enough else min(self.left, int(self._limits.tokens * share)))

    def _allowed(self, room: int, share: float) -> int:
        """Return how much of some room one page may take."""
        return room if self.is_enough else min(room, max(int(room * share), PAGE_ALLOWANCE_TOKENS))

    def _quote(self, page: Page, max_tokens: int, span: tuple[int, int] | None) -> Quote | None:
        """Return a page as it fits, its head and labels included; None if no useful part of it does."""
        whole = Quote(
            page.user_input,
            page.agent_response,
            is_excerpt=False,
            tokens=estimate_tokens(page.user_input) + estimate_tokens(page.agent_response),
        )
        if self._page_tokens(page, whole) <= max_tokens:
            return whole
        room = max_tokens - math.ceil((HEAD_BYTES + EXCERPT_BYTES + sum(self._labels)) / BYTES_PER_TOKEN)
        for _ in range(2):
            text = quote(page.user_input, page.agent_response, room, self._query_roots, span)
            # Lines that are set in, and the mark of another origin, cost as well.
            over = 0 if text is None else self._page_tokens(page, text) - max_tokens
            if over <= 0:
                return text
            room -= over
        return None

    def _whole(self, page: Page) -> int:
        text = Quote(page.user_input, page.agent_response, is_excerpt=False, tokens=0)
        return self._page_tokens(page, text) + _notes_tokens(page.meta_data)

    def _page_tokens(self, page: Page, text: Quote) -> int:
        size = HEAD_BYTES + EXCERPT_BYTES * text.is_excerpt
        size += ORIGIN_BYTES * (page.source is not Source.CONVERSATION or page.gives_orders)
        for side, label in zip((text.user_input, text.agent_response), self._labels, strict=True):
            size += (len(side.encode("utf-8", "replace")) + 2 * side.count("\n") + label) if side else 0
        return math.ceil(size / BYTES_PER_TOKEN)


def _seqs(pages: Sequence[RecalledPage]) -> set[int]:
    return {recalled.page.seq for recalled in pages}


def _sides(facts: Sequence[RecalledFact]) -> set[object]:
    return {recalled.fact.about for recalled in facts}


def _fact_tokens(recalled: RecalledFact) -> int:
    return estimate_tokens(one_line(recalled.fact.text) + " " * FACT_BYTES)


def _trait_tokens(trait: Trait) -> int:
    return estimate_tokens(f"- {trait.dimension}: {trait.level} - {trait.reason}")


def _notes_tokens(notes: str | None) -> int:
    return estimate_tokens(notes + " " * NOTES_BYTES) if notes else 0
