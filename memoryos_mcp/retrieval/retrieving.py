"""Retrieving: candidates by words and by meaning, ranked together, fitted to a token budget."""

import asyncio
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo

import anyio.to_thread
import numpy as np

from memoryos_mcp.embedding import Embedder, TextKind
from memoryos_mcp.errors import ModelError
from memoryos_mcp.heat import HeatWeights
from memoryos_mcp.knowledge import About, Fact
from memoryos_mcp.pages import Page, estimate_tokens
from memoryos_mcp.profile import Trait, most_telling_first
from memoryos_mcp.retrieval import ranking
from memoryos_mcp.retrieval.asked_time import Span, asked_spans, nearness
from memoryos_mcp.retrieval.budget import quote, roots, shortened
from memoryos_mcp.retrieval.mirror import Mirror
from memoryos_mcp.retrieval.page_index import WindowMatch
from memoryos_mcp.retrieval.ranking import Ranked
from memoryos_mcp.retrieval.recall import Recall, RecalledFact, RecalledPage
from memoryos_mcp.segments import Segment, Vector, jaccard, segment_match
from memoryos_mcp.storage import Outlines, Store, WordHit
from memoryos_mcp.terms import query_words, stems

logger = logging.getLogger(__name__)

CANDIDATES_BY_WORDS = 100
CANDIDATES_BY_MEANING = 100
FACTS_AT_MOST = 10
NO_WINDOW = -1
# Shares of the token budget; what one part leaves, the next ones may use.
PROFILE_SHARE = 1 / 8
KNOWLEDGE_SHARE = 1 / 8
SHORT_TERM_SHARE = 1 / 2
# No page takes more than this share of what is left, so that one long page does not silence the others.
PAGE_SHARE = 1 / 3
PAGE_ALLOWANCE_TOKENS = 160
CHAIN_SUMMARY_CHARS = 200


@dataclass(frozen=True, slots=True)
class _Candidates:
    """The candidates of a query and where each of them was best.

    Attributes:
        ranked: Best first.
        best_parts: Per page the part whose window is nearest to the query.
    """

    ranked: Sequence[Ranked]
    best_parts: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class _Asked:
    """A query, as it was understood.

    Attributes:
        vector: Its meaning; None while words answer alone.
        spans: The stretches of time that it names.
    """

    query: str
    vector: Vector | None
    spans: Sequence[Span]


class Retrieving:
    """Answers queries over one user's memory."""

    def __init__(
        self,
        store: Store,
        mirror: Mirror,
        embedder: Embedder | None,
        *,
        weights: HeatWeights,
        zone: tzinfo | None,
        clock: Callable[[], datetime],
    ) -> None:
        self._store = store
        self._mirror = mirror
        self._embedder = embedder
        self._weights = weights
        self._zone = zone
        self._clock = clock

    async def retrieve(self, query: str, *, max_results: int, max_tokens: int) -> Recall:
        """Return what all tiers know about a query.

        Args:
            query: What is asked, not blank.
            max_results: Pages at most, beside the short-term ones.
            max_tokens: Budget of all texts together.

        Raises:
            StorageError: The store could not be read.
        """
        await self._mirror.refresh()
        short_term, hits, vector, spans = await asyncio.gather(
            self._store.short_term(),
            self._store.search_words(query_words(query), CANDIDATES_BY_WORDS),
            self._query_vector(query),
            anyio.to_thread.run_sync(asked_spans, query, self._clock().astimezone(self._zone)),
        )
        traits, left = _fit_traits(self._mirror.traits, max_tokens)
        user_facts, assistant_facts, left = self._fit_facts(query, vector, max_tokens, left)
        query_roots = roots(query)
        recent, left = _fit_short_term(short_term, min(left, int(max_tokens * SHORT_TERM_SHARE)), left, query_roots)
        shown = [recalled.page.seq for recalled in recent]
        candidates = await self._rank(_Asked(query, vector, spans), hits, shown, max_results)
        pages, left = await self._fit_pages(candidates, left, query_roots)
        return Recall(
            short_term=recent,
            pages=pages,
            segments=self._heats([recalled.segment for recalled in pages if recalled.segment]),
            user_facts=user_facts,
            assistant_facts=assistant_facts,
            traits=traits,
            is_semantic=vector is not None,
            recipe=ranking.RECIPE,
            tokens=max_tokens - left,
        )

    async def _query_vector(self, query: str) -> Vector | None:
        """Return the query's vector, or None while the model or the index is not there: words answer alone."""
        embedder = self._embedder
        if embedder is None or not embedder.is_loaded or not self._mirror.index.is_loaded:
            return None
        try:
            return np.asarray((await embedder.embed([query], kind=TextKind.QUERY))[0], dtype=np.float32)
        except ModelError as error:
            logger.warning("the query could not be embedded, words answer alone: %s", error)
            return None

    async def _rank(
        self, asked: _Asked, hits: Sequence[WordHit], shown: Sequence[int], max_results: int
    ) -> _Candidates:
        """Return the best pages for a query but those that are shown already."""
        words = {hit.seq: hit.score for hit in hits}
        meaning: dict[int, WindowMatch] = {}
        if asked.vector is not None:
            meaning = await anyio.to_thread.run_sync(self._nearest, asked.vector, list(words))
        outlines = await self._store.outlines([*{*words, *meaning}])
        if not len(outlines.seqs):
            return _Candidates([], {})
        signals = self._signals(asked, outlines, words, meaning)
        windows = np.array([self._mirror.index.window_count(seq) for seq in outlines.seqs.tolist()])
        ranked = ranking.rank(outlines.seqs, signals, windows, ~np.isin(outlines.seqs, shown), max_results)
        return _Candidates(ranked, {seq: match.best_part for seq, match in meaning.items()})

    def _nearest(self, vector: Vector, also: Sequence[int]) -> dict[int, WindowMatch]:
        """Return how near the nearest pages are, and those found by words."""
        nearest = self._mirror.index.nearest(vector, CANDIDATES_BY_MEANING).tolist()
        return self._mirror.index.match(vector, [*{*nearest, *also}])

    def _signals(
        self,
        asked: _Asked,
        outlines: Outlines,
        words: Mapping[int, float],
        meaning: Mapping[int, WindowMatch],
    ) -> dict[str, ranking.Scores]:
        seqs = outlines.seqs.tolist()
        adjacent = ranking.within(outlines.seqs, outlines.sessions, 1)
        nearby = ranking.within(outlines.seqs, outlines.sessions, ranking.NEIGHBOURHOOD_PAGES)
        by_words = np.array([words.get(seq, 0.0) for seq in seqs])
        signals = {
            "words": by_words,
            "words_around": ranking.around(by_words, adjacent),
            "words_nearby": ranking.best_near(by_words, nearby),
        }
        if asked.spans:
            signals["time"] = nearness(asked.spans, outlines.days)
        if meaning:
            # A page without a vector yet is taken to be as far away as the farthest candidate.
            lowest = min(match.first for match in meaning.values())
            absent = WindowMatch(1, lowest, lowest, NO_WINDOW)
            matches = [meaning.get(seq, absent) for seq in seqs]
            best = np.array([match.best for match in matches])
            signals["first_window"] = np.array([match.first for match in matches])
            signals["best_window"] = best
            signals["meaning_around"] = ranking.around(best, adjacent)
        return signals | self._segment_signals(asked.query, asked.vector, outlines)

    def _segment_signals(self, query: str, vector: Vector | None, outlines: Outlines) -> dict[str, ranking.Scores]:
        asked = frozenset(stems(query))
        now = self._clock()
        matches: dict[int, tuple[float, float]] = {}
        for number in set(outlines.segments.tolist()) & self._mirror.segments.keys():
            segment = self._mirror.segments[number]
            match = segment_match(segment.vector, self._mirror.segment_stems[number], vector, asked)
            matches[number] = (match, math.log1p(segment.heat(now, self._weights)))
        pairs = np.array([matches.get(number, (0.0, 0.0)) for number in outlines.segments.tolist()])
        return {"segment": pairs[:, 0], "heat": pairs[:, 1]}

    def _fit_facts(
        self, query: str, vector: Vector | None, max_tokens: int, left: int
    ) -> tuple[list[RecalledFact], list[RecalledFact], int]:
        asked, now = frozenset(stems(query)), self._clock()
        allowance = min(left, int(max_tokens * KNOWLEDGE_SHARE))
        kept: dict[About, list[RecalledFact]] = {}
        for about in About:
            kept[about] = []
            in_force = [
                fact for fact in self._mirror.facts[about] if fact.valid_until is None or fact.valid_until > now
            ]
            for recalled in self._rank_facts(in_force, asked, vector)[:FACTS_AT_MOST]:
                cost = estimate_tokens(recalled.fact.text)
                if cost <= allowance:
                    kept[about].append(recalled)
                    allowance, left = allowance - cost, left - cost
        return kept[About.USER], kept[About.ASSISTANT], left

    def _heats(self, segments: Sequence[Segment]) -> list[tuple[Segment, float]]:
        now = self._clock()
        unique = {segment.segment: segment for segment in segments}
        return [(segment, segment.heat(now, self._weights)) for segment in unique.values()]

    def _rank_facts(self, facts: Sequence[Fact], asked: frozenset[str], vector: Vector | None) -> list[RecalledFact]:
        """Return facts by closeness in words and meaning, best first; equal ones newest first."""
        scored = []
        for fact in facts:
            score = jaccard(asked, self._mirror.fact_stems[fact.fact])
            if vector is not None and fact.vector is not None:
                score += float(vector @ fact.vector)
            scored.append(RecalledFact(fact=fact, score=round(score, 4)))
        return sorted(scored, key=lambda recalled: (-recalled.score, -recalled.fact.fact))

    async def _fit_pages(
        self, candidates: _Candidates, left: int, query_roots: frozenset[str]
    ) -> tuple[list[RecalledPage], int]:
        parts = {entry.seq: candidates.best_parts.get(entry.seq, NO_WINDOW) for entry in candidates.ranked}
        pages = await self._store.found_pages(parts)
        recalled: list[RecalledPage] = []
        topics: set[int] = set()
        for entry in candidates.ranked:
            if (found := pages.get(entry.seq)) is None:
                continue
            page = found.page
            segment = self._mirror.segments.get(page.segment or 0)
            chain_summary = found.chain_summary and shortened(found.chain_summary, CHAIN_SUMMARY_CHARS)
            allowance = min(left, max(int(left * PAGE_SHARE), PAGE_ALLOWANCE_TOKENS))
            meta_data = page.meta_data if _tokens(page.meta_data) <= allowance // 2 else None
            notes = _tokens(chain_summary) + _tokens(meta_data)
            if segment is not None and segment.segment not in topics:
                notes += _tokens(segment.summary)
            text = quote(page.user_input, page.agent_response, allowance - notes, query_roots, found.span)
            if text is None:
                continue
            left -= text.tokens + notes
            topics.add(page.segment or 0)
            recalled.append(RecalledPage(page, text, entry.score, entry.signals, chain_summary, meta_data, segment))
        return recalled, left


def _tokens(text: str | None) -> int:
    return estimate_tokens(text) if text else 0


def _fit_traits(traits: Sequence[Trait], max_tokens: int) -> tuple[list[Trait], int]:
    """Return the most telling traits that fit the profile's share, and what is left."""
    allowance = int(max_tokens * PROFILE_SHARE)
    spent = 0
    kept = []
    for trait in most_telling_first(traits):
        cost = estimate_tokens(f"{trait.dimension}: {trait.level} - {trait.reason}")
        if spent + cost <= allowance:
            kept.append(trait)
            spent += cost
    return kept, max_tokens - spent


def _fit_short_term(
    pages: Sequence[Page], allowance: int, left: int, query_roots: frozenset[str]
) -> tuple[list[RecalledPage], int]:
    """Return the short-term pages that fit, newest first into the budget, oldest first in the result."""
    kept: list[RecalledPage] = []
    for page in reversed(pages):
        share = min(allowance, max(int(allowance * PAGE_SHARE), PAGE_ALLOWANCE_TOKENS))
        text = quote(page.user_input, page.agent_response, share, query_roots)
        if text is None:
            break
        allowance, left = allowance - text.tokens, left - text.tokens
        kept.append(RecalledPage(page, text, None, {}, chain_summary=None, meta_data=None, segment=None))
    return kept[::-1], left
