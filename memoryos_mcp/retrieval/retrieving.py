"""Retrieving: finds candidate pages by keywords and vectors, ranks them, and fits the best into a token budget."""

import asyncio
import logging
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo

import anyio.to_thread
import numpy as np
from numpy.typing import NDArray

from memoryos_mcp.embedding import EmbeddedQuery, Embedder
from memoryos_mcp.errors import ModelError, StorageError
from memoryos_mcp.model.heat import HeatWeights
from memoryos_mcp.model.knowledge import About, speakers_of
from memoryos_mcp.model.pages import Page, Tier
from memoryos_mcp.model.profile import Trait, relevant_traits
from memoryos_mcp.model.segments import Segment, Vector
from memoryos_mcp.retrieval import ranking
from memoryos_mcp.retrieval.budget import roots, whole
from memoryos_mcp.retrieval.cache import MemoryCache
from memoryos_mcp.retrieval.fact_ranking import SECONDS_PER_DAY, FactTable, asks_past, best_of
from memoryos_mcp.retrieval.fitting import Found, Limits, fit
from memoryos_mcp.retrieval.late_interaction import TokenMatches, match_tokens, maxsim
from memoryos_mcp.retrieval.page_index import WindowMatch
from memoryos_mcp.retrieval.query import (
    ParsedQuery,
    Side,
    asks_for_course,
    asks_for_several,
    is_english,
    normalised,
    side_of,
    subject_of,
    token_weights,
)
from memoryos_mcp.retrieval.query_cache import QueryCache
from memoryos_mcp.retrieval.query_time import nearness, time_spans
from memoryos_mcp.retrieval.ranking import Ranked, Recipe
from memoryos_mcp.retrieval.recall import Recall, RecalledFact, RecalledPage
from memoryos_mcp.retrieval.scope import EVERYTHING, Scope
from memoryos_mcp.retrieval.signals import Scores, around, lead, like_best, told, within, z_scores
from memoryos_mcp.retrieval.strategies import AllPages
from memoryos_mcp.retrieval.strategy import Candidates, RetrievalStrategy, Search
from memoryos_mcp.storage.interface import Store
from memoryos_mcp.storage.values import FactQuery, FoundPage, Outlines, PageQuery, TokenRows, WordMatches
from memoryos_mcp.text.addressees import Speakers, capitalised, without
from memoryos_mcp.text.terms import ABOUT_WORD_SHARE, query_words, rarity, stem, stems

logger = logging.getLogger(__name__)

CANDIDATES_BY_WORDS = 100
CANDIDATES_BY_MEANING = 100
# The neighbours of this many of the best pages are candidates too. Half of these pages are the best by keywords, half
# are the best by vectors.
NEIGHBOURS_OF = 30
# The pages that support this many of the facts nearest to a query are candidates too.
FACTS_FOLLOWED = 10
# In a project, this many times as many pages are found first, because most of them may be of other projects. The
# vectors of at most `PROJECT_PAGES_AT_MOST` pages of the project are compared, the newest ones.
WIDER = 4
PROJECT_PAGES_AT_MOST = 5_000
# Maximum bytes of token vectors that a query reads. If the pages are long, it reads only the most promising ones.
CODE_BYTES_AT_MOST = 4_000_000
PAST_FACTS_AT_MOST = 100
# Number of the newest pages of a conversation that are always included, because a question may refer to them.
RECENT_PAGES = 2
# If a query asks how something went, pages are also compared with this many of the best pages, at most a quarter of
# the candidates. 4 and 6 do as well.
BEST_PAGES = 8
# Minimum cosine at which a page counts as being about a query although it contains none of the query's words. With
# models whose cosines are generally higher, more pages are found, but a person reviews the result.
ABOUT_COSINE = 0.45
# For `Retrieving.recall`, this many times the share of a query's informative words that a page contains is added to the
# page's cosine.
ABOUT_SHARE_WEIGHT = 0.5
# A fact is about a query if the share of the query's words in it plus its cosine is at least this.
ABOUT_FACT_SCORE = 0.6
# Approximate size of a window of English text.
WINDOW_BYTES = 1_000
NO_WINDOW = -1
# How far the estimated signals of a page that is not embedded yet may exceed the best known ones; see `_completed`. The
# unit is the standard deviation of the known ones.
ESTIMATE_ABOVE = 0.5
_NO_MATCH = WindowMatch(math.nan, math.nan, NO_WINDOW)


@dataclass(frozen=True, slots=True)
class _Hidden:
    """The memories that must not be shown in a scope.

    Attributes:
        facts: Numbers of the hidden facts, including wishes.
        wishes: Numbers of the hidden wishes. May also contain numbers of other facts, which are ignored.
        traits: Dimensions of the hidden traits.
        has_calls: Whether to show the names by which the user and the assistant call each other. These names can come
            from pages of any project.
    """

    facts: AbstractSet[int] = frozenset()
    wishes: AbstractSet[int] = frozenset()
    traits: AbstractSet[str] = frozenset()
    has_calls: bool = True


class Retrieving:
    """Searches one user's memory.

    Args:
        store: The store of the user's memory. Its vectors must be from ``embedder``.
        cache: The cache of the store. If there is an embedder, the page vectors must be loaded.
        embedder: A loaded embedder; None to use only keywords.
        strategy: Ranks the pages that `retrieve` finds.
        zone: The time zone of times in queries; None for the time zone of this machine.
    """

    def __init__(
        self,
        store: Store,
        cache: MemoryCache,
        embedder: Embedder | None,
        *,
        strategy: RetrievalStrategy,
        weights: HeatWeights,
        zone: tzinfo | None,
        clock: Callable[[], datetime],
    ) -> None:
        self._strategy = strategy
        self._store = store
        self.cache = cache
        self.embedder = embedder
        self._weights = weights
        self._zone = zone
        self._clock = clock
        self._query_cache = QueryCache()
        # Names of the user and the assistant in previous queries. These are removed from a query before it is embedded,
        # because the names in the query itself are not known yet.
        self._side_names: AbstractSet[str] = frozenset()

    async def retrieve(
        self, query: str, limits: Limits, budgets: Sequence[int], scope: Scope = EVERYTHING
    ) -> list[Recall]:
        """Search once, and return one result for each token budget in ``budgets``.

        The query must not be blank. The budgets are used instead of ``limits.tokens``.

        Pages of the project in ``scope`` are preferred. If ``scope.is_walled``, the result contains no pages of
        other projects, no facts that only such pages state, and no traits that any such page supports.

        Raises:
            StorageError: The store could not be read.
        """
        short_term, (parsed, candidates) = await asyncio.gather(
            self._store.pages(PageQuery(tier=Tier.SHORT_TERM)), self.candidates(query, scope)
        )
        if scope:  # short-term pages of other projects are ordinary candidates
            short_term = [page for page in short_term if scope.includes(page.project)]
        hidden = await self._hidden(scope)
        recent = {page.seq for page in short_term[-RECENT_PAGES:] if page.session == short_term[-1].session}
        memory = _Searched(self._store, self.cache, parsed, scope)
        newest = {page.seq for page in short_term}
        ranked = await self._strategy.rank(Search(parsed, candidates, newest, limits.pages, memory))
        relevant = ranking.cut(ranked, recent, ranking.alike(ranked, candidates.outlines.seqs, candidates.signals))
        if not limits.has_all_recent:
            kept = recent.union(entry.seq for entry in relevant)
            short_term = [page for page in short_term if page.seq in kept]
        if limits.is_cut:
            ranked = relevant
        pages, facts = await asyncio.gather(self._pages(ranked, candidates), self._facts(parsed, hidden))
        found = Found(
            wishes=self._wishes(hidden),
            traits=relevant_traits(self._traits(hidden), frozenset(stems(parsed.subject))),
            facts=facts,
            short_term=short_term,
            pages=pages,
        )
        speakers = self._speakers(parsed, hidden)
        return [
            self._fitted(found, replace(limits, tokens=tokens), parsed, self._named(candidates.recipe), speakers)
            for tokens in budgets
        ]

    async def recall(
        self, query: str, limits: Limits, is_new: Callable[[Page], bool], scope: Scope = EVERYTHING
    ) -> Recall:
        """Return only the pages and facts that are about a query; the result may be empty.

        In contrast, `retrieve` returns the best pages even if none of them is about the query.

        Args:
            query: Any text that is not blank.
            limits: Limits of the result.
            is_new: Function that returns False for pages to leave out, such as pages of the current session.
            scope: The project in which the query is asked.

        Raises:
            StorageError: The store could not be read.
        """
        parsed, candidates = await self.candidates(query, scope, reads_words=True)
        hidden = await self._hidden(scope)
        given = candidates.recipe, candidates.outlines.seqs, candidates.signals, candidates.windows
        ranked = ranking.rank(*given, _is_about(candidates, parsed), limits.pages)
        pages, facts = await asyncio.gather(self._pages(ranked, candidates), self._facts(parsed, hidden))
        found = Found(
            wishes=(),
            traits=(),
            facts=[fact for fact in facts if fact.score >= ABOUT_FACT_SCORE],
            short_term=(),
            pages=[each for each in pages if is_new(each.page)],
        )
        return self._fitted(found, limits, parsed, candidates.recipe.name, self._speakers(parsed, hidden))

    def _fitted(self, found: Found, limits: Limits, parsed: ParsedQuery, recipe: str, speakers: Speakers) -> Recall:
        fitted = fit(found, limits, speakers, roots(parsed.subject))
        return Recall(
            short_term=fitted.short_term,
            pages=fitted.pages,
            segments=self._heats([recalled.segment for recalled in fitted.pages if recalled.segment]),
            has_topics=fitted.has_topics,
            wishes=fitted.wishes,
            user_facts=_about(About.USER, fitted.facts),
            assistant_facts=_about(About.ASSISTANT, fitted.facts),
            traits=fitted.traits,
            speakers=speakers,
            asked=parsed,
            is_semantic=parsed.embedded is not None,
            recipe=recipe,
            tokens=fitted.tokens,
            left_out=fitted.left_out,
        )

    async def _pages(self, ranked: Sequence[Ranked], candidates: Candidates) -> list[RecalledPage]:
        """Return the ranked pages in full. Pages that were deleted meanwhile are left out."""
        best_parts = dict(zip(candidates.outlines.seqs.tolist(), candidates.best_parts.tolist(), strict=True))
        pages = await self._store.found_pages({entry.seq: best_parts.get(entry.seq, NO_WINDOW) for entry in ranked})
        return [self._recalled(entry, pages[entry.seq]) for entry in ranked if entry.seq in pages]

    def _recalled(self, entry: Ranked, found: FoundPage) -> RecalledPage:
        page = found.page
        return RecalledPage(page, whole(page), entry.score, entry.shares, page.meta_data, found.segment, found.span)

    async def about(self, query: str, among: Collection[int], limit: int) -> list[int]:
        """Return the ``seq`` of the pages in ``among`` that are about a query, best first, at most ``limit``.

        A page is about a query if it contains one of the query's words, or if its vector is near the query's vector.

        Raises:
            StorageError: The store could not be read.
        """
        _, found = await self.candidates(query, EVERYTHING)
        is_about = found.signals.get("words", np.zeros(len(found.outlines.seqs))) > 0
        if (cosines := found.signals.get("best_window")) is not None:
            is_about |= (cosines >= ABOUT_COSINE) & (found.best_parts >= 0)
        is_eligible = is_about & np.isin(found.outlines.seqs, [*among])
        best = ranking.rank(found.recipe, found.outlines.seqs, found.signals, found.windows, is_eligible, limit)
        return [ranked.seq for ranked in best]

    @property
    def recipe(self) -> str:
        """Name and version of the ranking in use."""
        if self.embedder is None:
            return self._named(ranking.WORDS)
        return self._named(ranking.TOKENS if self.embedder.has_tokens else ranking.WINDOWS)

    def _named(self, recipe: Recipe) -> str:
        """Return the name of the ranking: the recipe's, unless a strategy is configured that does not use recipes."""
        return recipe.name if isinstance(self._strategy, AllPages) else self._strategy.name

    async def candidates(
        self, query: str, scope: Scope = EVERYTHING, *, reads_words: bool = False
    ) -> tuple[ParsedQuery, Candidates]:
        """Return the parsed query and the pages that may answer it in a scope.

        With ``reads_words``, each page has the signal ``word_cover`` even if vectors are compared.

        Raises:
            StorageError: The store could not be read.
        """
        text = normalised(query)
        names = capitalised(text)
        wider = WIDER if scope else 1
        own, found_words, (embedded, nearest), times = await asyncio.gather(
            self._own(scope),
            self._store.search_words(query_words(text), names, CANDIDATES_BY_WORDS * wider),
            self._nearest(expected := without(text, self._side_names), wider),
            anyio.to_thread.run_sync(time_spans, query, self._clock().astimezone(self._zone)),
        )
        stats = found_words.stats
        self._side_names = (self._side_names - {*names}) | stats.user_names | stats.agent_names
        if (subject := subject_of(text, stats)) != expected:
            embedded, nearest = await self._nearest(subject, wider)
        tokens = embedded.spans if embedded else ()
        parsed = ParsedQuery(
            subject=subject,
            side=side_of(text, stats),
            counts=stats.counts,
            pages=stats.pages,
            times=times,
            is_for_several=asks_for_several(text),
            is_for_course=asks_for_course(text),
            is_english=is_english(subject),
            embedded=embedded,
            weights=token_weights(subject, tokens, stats.counts, stats.pages),
            user_called=stats.user_called,
            agent_called=stats.agent_called,
        )
        words = {hit.seq: hit.score for hit in found_words.hits}
        if scope:
            if embedded is not None and own:
                similar = await self._match(embedded.vector, (), own)
                best = sorted(similar, key=lambda seq: -similar[seq].best)[:CANDIDATES_BY_MEANING]
                nearest = list(dict.fromkeys([*best, *nearest]))
            words, nearest = await self._in_scope(scope, own, words, nearest)
        found = _with_neighbours(list(words), NEIGHBOURS_OF // 2 if embedded else NEIGHBOURS_OF)
        meaning: dict[int, WindowMatch] = {}
        pages, cosines = self._told(embedded)
        if embedded is not None:
            nearest_facts = np.argpartition(-cosines, FACTS_FOLLOWED) if len(cosines) > FACTS_FOLLOWED else slice(None)
            found = [*{*found, *pages[nearest_facts][:FACTS_FOLLOWED].tolist()}]
            meaning = await self._match(embedded.vector, nearest, found)
        seqs = sorted({*found, *meaning})
        if scope.is_walled:
            others = await self._store.pages_of_others(seqs, scope.project)
            seqs = [seq for seq in seqs if seq not in others]
            meaning = {seq: match for seq, match in meaning.items() if seq not in others}
        candidates = await self._candidates(parsed, seqs, words, meaning, reads_words=reads_words)
        if len(pages) and len(candidates.outlines.seqs):
            by_facts = {"told": told(candidates.outlines.seqs, pages, cosines)}
            candidates = replace(candidates, signals={**candidates.signals, **by_facts})
        if scope.project is not None and len(candidates.outlines.seqs):
            project = np.where(np.isin(candidates.outlines.seqs, own), 0.0, -1.0)
            candidates = replace(candidates, signals={**candidates.signals, "project": project})
        if parsed.is_for_course and "like_best" in candidates.recipe.weights:
            candidates = await self._with_best(candidates)
        return parsed, candidates

    async def _with_best(self, found: Candidates) -> Candidates:
        """Return the candidates with a signal added for the similarity to the best of them."""
        seqs = found.outlines.seqs
        count = min(BEST_PAGES, max(1, len(seqs) // 4))
        is_any = np.ones(len(seqs), dtype=np.bool_)
        ranked = ranking.rank(found.recipe, seqs, found.signals, found.windows, is_any, count)
        known = await self._store.page_vectors(seqs.tolist())
        best = np.array([entry.seq for entry in ranked], dtype=np.int64)
        values = like_best(seqs, best, known.seqs, known.vectors)
        return found if values is None else replace(found, signals={**found.signals, "like_best": values})

    def _told(self, embedded: EmbeddedQuery | None) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the pages that the known facts were learned from, and the cosine of each fact and a query."""
        if embedded is None:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        found = [self.cache.facts[about].told(embedded.vector) for about in About]
        return np.concatenate([pages for pages, _ in found]), np.concatenate([cosines for _, cosines in found])

    async def _own(self, scope: Scope) -> list[int]:
        """Return the ``seq`` of the newest pages of the project in ``scope``, newest first; [] without a project."""
        return [] if scope.project is None else await self._store.project_pages(scope.project, PROJECT_PAGES_AT_MOST)

    async def _in_scope(
        self,
        scope: Scope,
        own: Sequence[int],
        words: Mapping[int, float],
        nearest: Sequence[int],
    ) -> tuple[dict[int, float], list[int]]:
        """Return the best keyword scores of pages in a scope, and the pages in the scope nearest to the query.

        The best pages of the scope's project are included, even if many other pages are better.

        Args:
            scope: The project of the query.
            own: The pages of this project.
            words: The keyword score of each page, best first.
            nearest: The pages of the project, nearest first, followed by other pages, nearest first.
        """
        project = frozenset(own)
        walled = await self._store.pages_of_others([*words, *nearest], scope.project) if scope.is_walled else set()
        by_words = [seq for seq in words if seq not in walled]
        kept = {*by_words[:CANDIDATES_BY_WORDS]}
        kept.update([seq for seq in by_words if seq in project][:CANDIDATES_BY_WORDS])
        by_meaning = [seq for seq in nearest if seq not in walled]
        return {seq: words[seq] for seq in by_words if seq in kept}, by_meaning[: 2 * CANDIDATES_BY_MEANING]

    async def _hidden(self, scope: Scope) -> "_Hidden":
        """Return the facts, wishes and traits that are not shown in a scope."""
        if not scope:
            return _Hidden()
        projects = await self.cache.evidence_projects()
        facts = scope.hidden(projects.facts, needs_all=False)
        if not scope.is_walled:
            return _Hidden(wishes=facts)
        return _Hidden(facts, facts, scope.hidden(projects.traits, needs_all=True), has_calls=False)

    def _traits(self, hidden: "_Hidden") -> Sequence[Trait]:
        return [trait for trait in self.cache.traits if trait.dimension not in hidden.traits]

    async def _embedded(self, subject: str) -> EmbeddedQuery | None:
        """Return the vectors of a query; None if there is no model or the model fails.

        Without vectors, search uses only keywords.
        """
        if self.embedder is None:
            return None
        if (known := self._query_cache.get(subject)) is not None:
            return known
        try:
            embedded = await self.embedder.embed_query(subject)
        except ModelError as error:
            logger.warning("the query could not be embedded, so the search uses only keywords: %s", error)
            return None
        self._query_cache.put(subject, embedded)
        return embedded

    async def _nearest(self, subject: str, wider: int = 1) -> tuple[EmbeddedQuery | None, Sequence[int]]:
        """Refresh `cache`, and return a query's vectors and the ``seq`` of the pages nearest to it, nearest first."""
        embedded, _ = await asyncio.gather(self._embedded(subject), self.cache.refresh())
        if embedded is None:
            return None, ()
        try:
            return embedded, await self.cache.index.nearest(embedded.vector, CANDIDATES_BY_MEANING * wider)
        except StorageError as error:
            logger.warning("the vector index failed, so the search uses only keywords: %s", error)
            return embedded, ()

    async def _match(self, vector: Vector, nearest: Sequence[int], also: Sequence[int]) -> dict[int, WindowMatch]:
        """Return the similarity of pages to a vector, keyed by ``seq``.

        The pages are ``nearest``, ``also``, and the neighbours of the first `NEIGHBOURS_OF` // 2 pages of ``nearest``.
        """
        try:
            return await self.cache.index.match(vector, [*{*_with_neighbours(nearest, NEIGHBOURS_OF // 2), *also}])
        except StorageError as error:
            logger.warning("the vector index failed, so the search uses only keywords: %s", error)
            return {}

    async def _candidates(
        self,
        parsed: ParsedQuery,
        seqs: Sequence[int],
        words: Mapping[int, float],
        meaning: Mapping[int, WindowMatch],
        *,
        reads_words: bool,
    ) -> Candidates:
        reads_words = reads_words or parsed.is_for_several or not meaning
        reads_tokens = bool(meaning) and len(parsed.weights) > 0
        promising = _most_promising(seqs, words, meaning) if reads_tokens else ()
        found, matches, rows = await asyncio.gather(
            self._outlined(parsed, seqs, words, meaning),
            self._store.word_matches(parsed.counts if reads_words else {}, seqs),
            self._store.token_vectors(promising, CODE_BYTES_AT_MOST),
        )
        if not len(found.outlines.seqs):
            return found
        # A page that was forgotten between these reads is missing in the outlines.
        found = _with_words(found, parsed, matches, np.isin(seqs, found.outlines.seqs))
        if parsed.embedded is None or not len(rows.seqs):
            return found
        return await anyio.to_thread.run_sync(_with_tokens, found, parsed, parsed.embedded.tokens, rows)

    async def _outlined(
        self, parsed: ParsedQuery, seqs: Sequence[int], words: Mapping[int, float], meaning: Mapping[int, WindowMatch]
    ) -> Candidates:
        """Return the candidates with the signals of keyword scores, time, topics and page vectors."""
        outlines = await self._store.outlines(seqs)
        found = Candidates(
            recipe=ranking.WORDS,
            outlines=outlines,
            signals=_outline_signals(parsed, outlines, words) if len(outlines.seqs) else {},
            windows=1 + outlines.sizes // WINDOW_BYTES,
            best_parts=np.full(len(outlines.seqs), NO_WINDOW),
        )
        return _with_windows(found, meaning) if meaning and len(outlines.seqs) else found

    async def _facts(self, parsed: ParsedQuery, hidden: "_Hidden") -> list[RecalledFact]:
        """Return the best facts about the user and the assistant.

        Facts that are no longer valid are included only if the query asks about the past.
        """
        now = self._clock()
        ranked = [self.cache.facts[about].ranked(parsed, now, hidden.facts) for about in About]
        if asks_past(parsed.subject, parsed, int(now.timestamp()) // SECONDS_PER_DAY):
            queries = (FactQuery(about, is_past=True, limit=PAST_FACTS_AT_MOST) for about in About)
            ranked += [
                FactTable(past).ranked(parsed, hidden=hidden.facts)
                for past in await asyncio.gather(*map(self._store.facts, queries))
            ]
        return best_of(*ranked)

    def _wishes(self, hidden: "_Hidden") -> list[RecalledFact]:
        """Return the user's preferences that apply to every answer, newest first."""
        wishes = self.cache.facts[About.USER].wishes(self._clock())
        return [wish for wish in wishes if wish.fact.fact not in hidden.wishes]

    def _speakers(self, parsed: ParsedQuery, hidden: "_Hidden") -> Speakers:
        """Return the names of the user and the assistant.

        A stated name, as in "I'm called Ada", takes precedence over the name that the other speaker uses.
        """
        now = self._clock()
        named = [fact for about in About for fact in self.cache.facts[about].named(now)]
        stated = speakers_of([fact for fact in named if fact.fact not in hidden.facts])
        if not hidden.has_calls:
            return stated
        return Speakers(user=stated.user or parsed.user_called, agent=stated.agent or parsed.agent_called)

    def _heats(self, segments: Sequence[Segment]) -> list[tuple[Segment, float]]:
        now = self._clock()
        unique = {segment.segment: segment for segment in segments}
        return [(segment, segment.heat(now, self._weights)) for segment in unique.values()]


@dataclass(frozen=True, slots=True)
class _Searched:
    """A memory as a strategy sees it; see `SearchedMemory`."""

    store: Store
    cache: MemoryCache
    query: ParsedQuery
    scope: Scope

    async def segments(self) -> Sequence[tuple[Segment, AbstractSet[str]]]:
        return [(each, frozenset(map(stem, each.keywords))) for each in await self.store.segments()]

    async def pages_of(self, segment: int) -> Sequence[int]:
        seqs = [page.seq for page in await self.store.pages(PageQuery(segment=segment))]
        if not self.scope.is_walled:
            return seqs
        others = await self.store.pages_of_others(seqs, self.scope.project)
        return [seq for seq in seqs if seq not in others]

    async def cosines(self, pages: Collection[int]) -> Mapping[int, float]:
        if self.query.embedded is None:
            return {}
        try:
            matches = await self.cache.index.match(self.query.embedded.vector, [*pages])
        except StorageError as error:
            logger.warning("the vector index failed, so only keywords are searched: %s", error)
            return {}
        return {seq: match.best for seq, match in matches.items()}


def _is_about(found: Candidates, parsed: ParsedQuery) -> NDArray[np.bool_]:
    """Return whether each candidate is about the query, by its words and, if available, by its vectors."""
    rarities = {word: rarity(count, parsed.pages) for word, count in parsed.counts.items()}
    known = sum(value for word, value in rarities.items() if parsed.counts[word])
    # The signal is a share of those words of the query that the memory contains.
    cover = found.signals.get("word_cover", np.zeros(len(found.outlines.seqs)))
    share = cover * known / sum(rarities.values()) if known else cover
    if (cosines := found.signals.get("best_window")) is not None:
        by_words = ABOUT_SHARE_WEIGHT * share / np.sqrt(found.windows)  # a long page contains many words by chance
        return (cosines + by_words >= _about_score(parsed.pages)) & (found.best_parts >= 0)
    return share >= ABOUT_WORD_SHARE


def _about_score(pages: int) -> float:
    """Return the score from which a page is about a query, in a memory with this many pages.

    The largest of ``n`` cosines between texts that have nothing in common grows as ``sqrt(2 ln n)``, as that of any
    normal values. With the bundled model, their mean and their standard deviation are about 0.1.
    """
    return 0.23 + 0.09 * math.sqrt(2 * math.log(max(pages, 2)))


def _about(about: About, facts: Sequence[RecalledFact]) -> list[RecalledFact]:
    return [recalled for recalled in facts if recalled.fact.about is about]


def _outline_signals(parsed: ParsedQuery, outlines: Outlines, words: Mapping[int, float]) -> dict[str, Scores]:
    """Return the signals that need no page vectors: the signals of words and time, and the place in the session.

    ``words`` maps the ``seq`` of a page to the page's keyword score.
    """
    by_words = np.array([words.get(seq, 0.0) for seq in outlines.seqs.tolist()])
    signals = {"words": by_words, "words_around": around(by_words, within(outlines.seqs, outlines.sessions, 1))}
    if parsed.times:
        signals["time"] = nearness(parsed.times, outlines.days)
    if parsed.is_for_course:
        signals["lead"] = lead(outlines.seqs, outlines.sessions)
    return signals


def _with_neighbours(best_first: Sequence[int], count: int) -> list[int]:
    """Return ``best_first``, and the ``seq`` of the neighbours of its first ``count`` pages.

    The neighbours are the two pages before and the two pages after a page. An answer often contains none of the
    words of its question.
    """
    beside = {seq + apart for seq in best_first[:count] for apart in (-2, -1, 1, 2)}
    return [*{*best_first, *beside}]


def _most_promising(seqs: Sequence[int], words: Mapping[int, float], meaning: Mapping[int, WindowMatch]) -> list[int]:
    """Return ``seqs`` in the order in which token vectors should be read: most promising page first.

    The sort key is the z-score of the keyword score plus the z-score of the cosine of the page's first window.
    """
    by_words = z_scores(np.array([words.get(seq, 0.0) for seq in seqs]))
    first = np.array([meaning.get(seq, _NO_MATCH).first for seq in seqs])
    is_known = ~np.isnan(first)
    by_meaning = by_words.copy()
    by_meaning[is_known] = z_scores(first[is_known])
    return [seqs[place] for place in np.argsort(-by_words - by_meaning, kind="stable").tolist()]


def _with_words(
    found: Candidates, parsed: ParsedQuery, matches: WordMatches, selected: NDArray[np.bool_]
) -> Candidates:
    """Return the candidates with signals added that rate how many words of the query each page contains.

    ``selected`` has one value for each row of ``matches``: whether the page of the row is a candidate.
    """
    outlines = found.outlines
    if not len(matches.words):
        return found
    user, agent = matches.user[selected], matches.agent[selected]
    weights = np.array([rarity(parsed.counts[word], parsed.pages) for word in matches.words])
    word_matches = TokenMatches(outlines.seqs, user.astype(np.float32), agent.astype(np.float32))
    similar = maxsim(word_matches, weights, parsed.side, outlines.seqs, outlines.sessions, found.windows)
    # Users ask about their own words, unless the question names the assistant.
    own = agent if parsed.side is Side.AGENT else user
    signals = {"word_cover": similar.best}
    if parsed.is_for_several or parsed.embedded is None:
        signals["own_words"] = np.einsum("nq,q->n", own, weights)
    return replace(found, signals={**found.signals, **signals})


def _with_windows(found: Candidates, meaning: Mapping[int, WindowMatch]) -> Candidates:
    """Return the candidates with signals added for the similarity between the query and each page's windows.

    A window is a section of a page. ``meaning`` contains these similarities, keyed by the ``seq`` of the page.
    """
    seqs = found.outlines.seqs.tolist()
    matches = [meaning.get(seq, _NO_MATCH) for seq in seqs]
    signals = {
        "first_window": _completed(np.array([match.first for match in matches]), found),
        "best_window": _completed(np.array([match.best for match in matches]), found),
    }
    parts = np.array([match.best_part for match in matches])
    return replace(found, recipe=ranking.WINDOWS, signals={**found.signals, **signals}, best_parts=parts)


def _with_tokens(found: Candidates, parsed: ParsedQuery, tokens: NDArray[np.float32], rows: TokenRows) -> Candidates:
    """Return the candidates with the signals of token vectors added. Call this function in a thread."""
    outlines = found.outlines
    similar = maxsim(
        match_tokens(tokens, rows, parsed.side),
        parsed.weights,
        parsed.side,
        outlines.seqs,
        outlines.sessions,
        found.windows,
    )
    is_read = similar.best_part >= 0
    is_embedded = found.best_parts >= 0
    signals = {}
    for name, values in (("cover", similar.best), ("first_cover", similar.first)):
        # Pages whose token vectors were not read were the least promising, so they get the lowest value.
        known = np.where(is_embedded & ~is_read, values[is_read].min(), values)
        signals[name] = _completed(np.where(is_read | is_embedded, known, np.nan), found)
    if not parsed.is_english:
        signals["foreign_words"] = found.signals["words"]
    parts = np.where(is_read, similar.best_part, found.best_parts)
    found = replace(found, code_bytes=rows.codes.nbytes, best_parts=parts)
    return replace(found, recipe=ranking.TOKENS, signals={**found.signals, **signals})


def _completed(values: Scores, found: Candidates) -> Scores:
    """Return the values of a signal, with estimates in place of NaN.

    The value of a page that is not embedded yet is NaN. The estimate depends on the page's keyword score. It is
    never more than `ESTIMATE_ABOVE` standard deviations above the highest known value.
    """
    known = values[~np.isnan(values)]
    by_words = known.mean() + known.std() * z_scores(found.signals["words"])
    return np.where(np.isnan(values), np.minimum(by_words, known.max() + ESTIMATE_ABOVE * known.std()), values)
