"""Fitting: chooses the memories that fit into a token budget.

The cost of a memory is the size of its text from `rendering`. If everything fits, all memories are included in full.
Otherwise, wishes, traits, facts and the newest pages may each use a share of the budget, in this order. The pages
that the search found use the remaining tokens, best first.
"""

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import TypeVar

from memoryos_mcp.model.pages import BYTES_PER_TOKEN, Page
from memoryos_mcp.model.profile import Trait
from memoryos_mcp.retrieval import rendering
from memoryos_mcp.retrieval.budget import Excerpts, Quote, whole
from memoryos_mcp.retrieval.recall import LeftOut, RecalledFact, RecalledPage
from memoryos_mcp.retrieval.rendering import line_bytes
from memoryos_mcp.text.addressees import Speakers
from memoryos_mcp.text.quoting import framed, title_line

T = TypeVar("T")

TOKENS_AT_MOST = 1_000_000
# Shares of the token budget.
WISHES_SHARE = 1 / 8
TRAITS_SHARE = 1 / 16
KNOWLEDGE_SHARE = 1 / 8
SHORT_TERM_SHARE = 1 / 10
# Share of the newest pages if they form the conversation that is being answered.
CONVERSATION_SHARE = 1 / 2
# A page may use at most this share of the remaining budget, so that a long page leaves room for other pages.
BEST_PAGE_SHARE = 1 / 2
PAGE_SHARE = 1 / 3
# A page may always use this many of the remaining tokens.
PAGE_ALLOWANCE_TOKENS = 160
# Maximum number of attempts to shorten a page, because indentation makes its shown text longer than its stored text.
QUOTES_AT_MOST = 3


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits for the size of a result.

    Attributes:
        pages: Maximum number of found pages. Short-term pages are not counted.
        tokens: Token budget of the whole result.
        reserved_tokens: Part of the budget that is reserved for the caller's own text.
        is_cut: Whether to omit pages that score far below the best page.
        is_elastic: Whether the budget may be exceeded to include every found page, at least as a short excerpt.
        has_all_recent: Whether to include all short-term pages. If False, only the newest two of them, and those that
            are relevant to the query, are included.
    """

    pages: int
    tokens: int
    reserved_tokens: int = 0
    is_cut: bool = True
    is_elastic: bool = False
    has_all_recent: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """The memories found for a query, before they are fitted to the budget.

    Attributes:
        wishes: The user's preferences that apply to every answer, newest first.
        traits: Traits relevant to the query; traits with the most evidence come first.
        facts: Facts about the user and about the assistant, best first.
        short_term: The newest pages, oldest first. They get their share of the budget before the found pages.
        pages: The pages that the search found, in full, best first. Some of them may also be in ``short_term``.
    """

    wishes: Sequence[RecalledFact]
    traits: Sequence[Trait]
    facts: Sequence[RecalledFact]
    short_term: Sequence[Page]
    pages: Sequence[RecalledPage]


@dataclass(frozen=True, slots=True)
class Fitted:
    """The memories that fit into the limits.

    Attributes:
        has_topics: Whether there is room for a heading for each topic.
        left_out: Counts of the omitted memories; None if everything fits.
        tokens: Number of tokens in the result as text (see `estimate_tokens`), plus `Limits.reserved_tokens`.
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
    """Return the memories that fit into the limits.

    If a page is shortened, passages that contain one of ``query_roots`` (from `roots`) are preferred.
    """
    budget = _Budget(limits, speakers, query_roots)
    needed = budget.tokens_of_all(found)
    budget.is_enough = needed <= limits.tokens
    wanted = {page.seq for page in found.short_term}.union(each.page.seq for each in budget.wanted(found))
    everything = LeftOut(
        pages=len(wanted),
        excerpts=len(wanted),
        facts=len(found.wishes) + len(found.facts),
        traits=len(found.traits),
        max_tokens=min(needed, TOKENS_AT_MOST),
    )
    reserved = 0 if budget.is_enough else line_bytes(rendering.left_out_line(everything))
    budget.left -= reserved
    wishes = budget.fit_lines(found.wishes, WISHES_SHARE, _fact_line, lambda _: rendering.WISHES)
    budget.keep_free(found.pages)
    traits = budget.fit_lines(found.traits, TRAITS_SHARE, rendering.trait_line, lambda _: rendering.TRAITS)
    facts = budget.fit_lines(found.facts, KNOWLEDGE_SHARE, _fact_line, lambda each: rendering.KNOWN[each.fact.about])
    short_term = budget.fit_newest(
        found.short_term, CONVERSATION_SHARE if limits.has_all_recent else SHORT_TERM_SHARE, rendering.NEWEST
    )
    budget.kept_free = 0
    pages = budget.fit_pages(found.pages, _seqs(short_term))
    pages = budget.complete(pages)
    short_term = budget.complete(short_term[::-1])[::-1]
    older = [page for page in found.short_term if page.seq not in _seqs([*pages, *short_term])]
    short_term = [*budget.fit_newest(older, 1.0, None if short_term else rendering.NEWEST), *short_term]
    shown = [*short_term, *pages]
    left_out = LeftOut(
        pages=len(wanted - _seqs(shown)),
        excerpts=sum(recalled.quote.is_excerpt for recalled in shown),
        facts=everything.facts - len(wishes) - len(facts),
        traits=everything.traits - len(traits),
        max_tokens=everything.max_tokens,
    )
    is_all = not (left_out.pages or left_out.excerpts or left_out.facts or left_out.traits)
    budget.left += reserved
    if not is_all:
        budget.left -= line_bytes(rendering.left_out_line(left_out))
    elif not (wishes or traits or facts or shown):
        budget.left -= line_bytes(rendering.NOTHING)
    return Fitted(
        wishes=wishes,
        traits=traits,
        facts=facts,
        short_term=short_term,
        pages=pages,
        has_topics=budget.fit_topics(pages),
        left_out=None if is_all else left_out,
        tokens=budget.spent_tokens,
    )


class _Budget:
    """Tracks how much of a token budget is used. ``left`` is the unused part in bytes."""

    def __init__(self, limits: Limits, speakers: Speakers, query_roots: frozenset[str]) -> None:
        self._limits = limits
        self._speakers = speakers
        self._labels = [f"{label}: " for label in (speakers.user_label, speakers.agent_label)]
        self._query_roots = query_roots
        # By page, corrections of it, and text: the size.
        self._sizes: dict[tuple[int, tuple[str, ...], Quote], int] = {}
        # By page and span: the passages from which excerpts are made.
        self._excerpts: dict[tuple[int, tuple[int, int] | None], Excerpts] = {}
        self.is_enough = False
        self.kept_free = 0
        self.left = BYTES_PER_TOKEN * (limits.tokens - limits.reserved_tokens) - _FRAME_BYTES

    @property
    def spent_tokens(self) -> int:
        """Number of tokens that are used so far, including the reserved tokens."""
        return _tokens(BYTES_PER_TOKEN * self._limits.tokens - self.left)

    def wanted(self, found: Found) -> list[RecalledPage]:
        """Return the best found pages that are not in ``found.short_term``, up to the maximum number of pages."""
        newest = {page.seq for page in found.short_term}
        return [each for each in found.pages if each.page.seq not in newest][: self._limits.pages]

    def tokens_of_all(self, found: Found) -> int:
        """Return the number of tokens that are needed to include all memories in full."""
        wanted = [each.page for each in self.wanted(found)]
        titles = {rendering.KNOWN[recalled.fact.about] for recalled in found.facts}
        parts = {
            rendering.WISHES: found.wishes,
            rendering.TRAITS: found.traits,
            rendering.NEWEST: found.short_term,
            rendering.FOUND: wanted,
        }
        titles.update(title for title, part in parts.items() if part)
        lines = [
            *map(title_line, titles),
            *rendering.fact_lines([*found.wishes, *found.facts]),
            *map(rendering.trait_line, found.traits),
        ]
        pages = sum(map(self._whole, [*found.short_term, *wanted]))
        notes = sum(_notes_bytes(page.meta_data) for page in wanted)
        return self._limits.reserved_tokens + _tokens(_FRAME_BYTES + line_bytes(*lines) + pages + notes)

    def keep_free(self, found: Sequence[RecalledPage]) -> None:
        """Reserve room for the best found page, unless all memories fit.

        Without this reserve, traits, facts and the newest pages could use up a small budget.
        """
        if found and not self.is_enough:
            cost = line_bytes(title_line(rendering.FOUND)) + self._whole(found[0].page)
            self.kept_free = min(cost, PAGE_ALLOWANCE_TOKENS * BYTES_PER_TOKEN)

    def fit_lines(
        self, ranked: Iterable[T], share: float, line: Callable[[T], str], title: Callable[[T], str]
    ) -> list[T]:
        """Return the items of ``ranked`` that fit into a share of the whole budget, in the same order.

        ``line`` returns the text of an item, and ``title`` returns the title of its section. The cost of the first item
        of a section includes the title.
        """
        allowance, kept, titles = self._allowance(share), list[T](), set[str]()
        for each in ranked:
            over = title(each)
            cost = line_bytes(line(each)) + (0 if over in titles else line_bytes(title_line(over)))
            if cost <= allowance:
                kept.append(each)
                titles.add(over)
                allowance, self.left = allowance - cost, self.left - cost
        return kept

    def fit_newest(self, pages: Sequence[Page], share: float, title: str | None) -> list[RecalledPage]:
        """Return the newest pages that fit into a share of the whole budget, oldest first; long pages are shortened.

        ``pages`` must be in order, oldest first. ``title`` is the section's title; None if its cost is already counted.
        """
        allowance, kept = self._allowance(share), list[RecalledPage]()
        for page in reversed(pages):
            over = line_bytes(title_line(title)) if title and not kept else 0
            text = self._quote(page, self._allowed(allowance - over, PAGE_SHARE), None)
            if text is None:
                break
            recalled = RecalledPage(page, text)
            cost = self._cost(recalled) + over
            allowance, self.left = allowance - cost, self.left - cost
            kept.append(recalled)
        return kept[::-1]

    def fit_pages(self, found: Sequence[RecalledPage], shown: AbstractSet[int]) -> list[RecalledPage]:
        """Return the found pages that fit into the remaining budget, best first; long pages are shortened.

        ``shown`` contains the ``seq`` of each page that is shown elsewhere and must be skipped.
        """
        kept: list[RecalledPage] = []
        fresh = [each for each in found if each.page.seq not in shown]
        for each in fresh[: self._limits.pages]:
            page, over = each.page, 0 if kept else line_bytes(title_line(rendering.FOUND))
            allowance = self._allowed(self.left - over, PAGE_SHARE if kept else BEST_PAGE_SHARE)
            if self._limits.is_elastic:
                allowance = max(allowance, PAGE_ALLOWANCE_TOKENS * BYTES_PER_TOKEN)
            notes = page.meta_data if self.is_enough or _notes_bytes(page.meta_data) <= allowance // 2 else None
            text = self._quote(page, allowance - _notes_bytes(notes), each.span)
            if text is None:
                continue
            recalled = replace(each, quote=text, notes=notes)
            self.left -= self._cost(recalled) + over
            kept.append(recalled)
        return kept

    def complete(self, pages: Iterable[RecalledPage]) -> list[RecalledPage]:
        """Return the pages with longer excerpts, as far as the budget allows. The first excerpt is lengthened first."""
        completed: list[RecalledPage] = []
        for recalled in pages:
            if recalled.quote.is_excerpt and self.left > 0:
                cost = self._cost(recalled)
                room = cost + self.left - _notes_bytes(recalled.notes)
                text = self._quote(recalled.page, room, recalled.span) or recalled.quote
                fuller = replace(recalled, quote=text)
                self.left += cost - self._cost(fuller)
                completed.append(fuller)
            else:
                completed.append(recalled)
        return completed

    def fit_topics(self, pages: Sequence[RecalledPage]) -> bool:
        """Return whether the headings of all topics fit into the budget. If so, subtract their cost from the budget.

        If none of the pages has a topic, return False.
        """
        if not any(recalled.segment for recalled in pages):
            return False
        cost = sum(line_bytes(*topic) for topic, _ in rendering.grouped(pages, has_topics=True))
        if cost > self.left:
            return False
        self.left -= cost
        return True

    def _allowance(self, share: float) -> int:
        whole = self._limits.tokens * BYTES_PER_TOKEN
        return max(0, self.left if self.is_enough else min(self.left - self.kept_free, int(whole * share)))

    def _allowed(self, room: int, share: float) -> int:
        """Return how many of ``room`` bytes one page may use: all of them if all memories fit, otherwise a share."""
        return room if self.is_enough else min(room, max(int(room * share), PAGE_ALLOWANCE_TOKENS * BYTES_PER_TOKEN))

    def _quote(self, page: Page, room: int, span: tuple[int, int] | None) -> Quote | None:
        """Return the text of a page, shortened to fit into ``room`` bytes; None if no useful part fits.

        Passages that overlap ``span`` are preferred; see `quote`.
        """
        if self._whole(page) <= room:
            return whole(page)
        if (excerpts := self._excerpts.get((page.seq, span))) is None:
            excerpts = Excerpts(page.user_input, page.agent_response, self._query_roots, span)
            self._excerpts[page.seq, span] = excerpts
        empty = Quote("", "", is_excerpt=True, tokens=0)
        left = room - self._cost_of(page, empty) - line_bytes(*self._labels)
        for _ in range(QUOTES_AT_MOST):
            text = excerpts.within(left // BYTES_PER_TOKEN)
            # Indentation and replaced characters add to the cost of the text.
            over = 0 if text is None else self._cost_of(page, text) - room
            if over <= 0:
                return text
            left -= over
        return None

    def _whole(self, page: Page) -> int:
        """Return the size of a complete page in bytes, without the caller's metadata."""
        return self._cost_of(page, whole(page))

    def _cost(self, recalled: RecalledPage) -> int:
        return self._cost_of(recalled.page, recalled.quote) + _notes_bytes(recalled.notes)

    def _cost_of(self, page: Page, text: Quote) -> int:
        key = page.seq, page.corrected, text
        if (size := self._sizes.get(key)) is None:
            # Rendering strips empty lines around a text, but the structured result contains them.
            unseen = sum(len(side) - len(side.strip("\n")) for side in (text.user_input, text.agent_response))
            size = line_bytes(rendering.page_line(RecalledPage(page, text), self._speakers)) + unseen
            self._sizes[key] = size
        return size


_FRAME_BYTES = len("\n".join([*framed(()), ""]))


def _tokens(size: int) -> int:
    """Return the number of tokens in lines of ``size`` bytes, not counting the last line end."""
    return (size - 1) // BYTES_PER_TOKEN + 1


def _seqs(pages: Sequence[RecalledPage]) -> set[int]:
    return {recalled.page.seq for recalled in pages}


def _fact_line(recalled: RecalledFact) -> str:
    return rendering.fact_line(recalled.fact)


def _notes_bytes(notes: str | None) -> int:
    return line_bytes(rendering.notes_line(notes)) if notes else 0
