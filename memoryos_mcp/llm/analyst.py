"""The analyst that uses an LLM.

There are two kinds of LLM calls. The first kind finds the chains, topics and facts of a batch. The second kind finds
the traits in pages, and also the facts if they have not been extracted yet.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

import numpy as np
from anyio import CapacityLimiter

from memoryos_mcp.llm.analysis import LEARN_PAGES_MAX, Organised, Run, Surroundings, Topic
from memoryos_mcp.llm.asking import ask
from memoryos_mcp.llm.chat import ChatModel
from memoryos_mcp.llm.extractive import ExtractiveAnalyst
from memoryos_mcp.llm.learn_replies import LearnReading
from memoryos_mcp.llm.organise_replies import KEYWORDS_MAX, SUMMARY_MAX_CHARS, OrganiseReading
from memoryos_mcp.llm.prompts import learn_request, organise_request, page_tokens
from memoryos_mcp.model.knowledge import Fact, Lessons, speakers_of
from memoryos_mcp.model.pages import Page
from memoryos_mcp.model.profile import most_telling_first
from memoryos_mcp.model.segments import Digest, Segment
from memoryos_mcp.text.prose import shorten
from memoryos_mcp.text.terms import stems

READING_THREADS = 2
# Maximum number of facts, traits and corrections shown in a prompt.
FACTS_SHOWN = 15
TRAITS_SHOWN = 8
CORRECTED_SHOWN = 25
# Share of a prompt's tokens that pages may use. The rest is for instructions, facts and traits.
PAGES_SHARE = 0.6


class LlmAnalyst:
    """An ``Analyst`` that uses a chat model and validates its replies.

    Args:
        chat: The chat model. Its errors are raised unchanged.
        max_topics: Maximum number of topics in one batch.
        max_prompt_tokens: Maximum number of tokens in one prompt.
        dimensions: Profile dimensions that the user has added to the built-in ones.
        fallback: The analyst to use if the LLM's reply omits the topic of a page or the summary of a chain.
    """

    def __init__(
        self,
        chat: ChatModel,
        *,
        max_topics: int,
        max_prompt_tokens: int,
        dimensions: Sequence[str],
        fallback: ExtractiveAnalyst,
    ) -> None:
        self._chat = chat
        self._max_topics = max_topics
        self._max_prompt_tokens = max_prompt_tokens
        self._dimensions = dimensions
        self._fallback = fallback
        self._limiter = CapacityLimiter(READING_THREADS)

    @property
    def name(self) -> str:
        """Name of the chat model."""
        return self._chat.name

    async def organise(self, batch: Sequence[Page], around: Surroundings) -> Organised:
        """Return the chains, topics and facts of a batch, all from one LLM call. See ``Analyst.organise``."""
        shown = replace(around, facts=_nearest_facts(around.facts, batch), corrected=around.corrected[:CORRECTED_SHOWN])
        request = organise_request(batch, shown, max_topics=self._max_topics, max_prompt_tokens=self._max_prompt_tokens)
        reading = OrganiseReading(batch, shown, self._max_topics)
        organised, left = await ask(self._chat, request, reading.read, self._limiter)
        if not left:
            return organised
        filled = await self._fallback.organise(left, Surroundings())
        return replace(organised, topics=(*organised.topics, *filled.topics))

    async def joined_digest(
        self,
        known: Segment | None,
        topics: Sequence[Topic],
        pages: Callable[[], Awaitable[Sequence[Page]]],  # noqa: ARG002 - the digests already cover the pages
    ) -> Digest:
        """Return the new digest (keywords and summary) of a segment to which topics were added.

        The new digest combines the digests of ``topics`` with the previous digest of ``known``. The previous digest is
        left out if a topic's digest already covers it.

        ``known`` is the segment before the topics were added; None for a new segment.
        """
        digests = [topic.digest for topic in topics]
        if known is not None and not any(_covers(topic, known) for topic in topics):
            digests.append(Digest(known.keywords, known.summary))
        keywords = dict.fromkeys(keyword for digest in digests for keyword in digest.keywords)
        # Summaries may be shortened here: the next prompt contains the result, and the LLM rewrites it.
        room = SUMMARY_MAX_CHARS // len(digests)
        summary = " ".join(shorten(digest.summary, room) for digest in reversed(digests))
        return Digest(keywords=tuple(keywords)[:KEYWORDS_MAX], summary=summary)

    async def joined_summary(
        self,
        earlier: str,
        run: Run,
        pages: Callable[[], Awaitable[Sequence[Page]]],
    ) -> str:
        """Return the new summary of a chain to which a run (consecutive pages) was added.

        If the run's summary covers the whole chain, it is returned unchanged. If it covers only the run, the chain's
        ``earlier`` summary is put in front of it, and both are shortened. If the run has no summary, the fallback
        writes a summary of the chain.
        """
        if not run.summary:
            return await self._fallback.joined_summary(earlier, run, pages)
        if run.is_whole or not earlier:
            return run.summary
        room = SUMMARY_MAX_CHARS // 2
        return f"{shorten(earlier, room)} {shorten(run.summary, room)}"

    def portion(self, pages: Sequence[Page]) -> int:
        """Return the number of pages, counted from the first, that fit unshortened into one prompt; at least 1."""
        room = int(self._max_prompt_tokens * PAGES_SHARE)
        for count, page in enumerate(pages[:LEARN_PAGES_MAX]):
            room -= page_tokens(page)
            if room < 0:
                return max(1, count)
        return min(len(pages), LEARN_PAGES_MAX)

    async def learn(self, pages: Sequence[Page], around: Surroundings) -> Lessons:
        """Extract traits and facts from pages with one LLM call, and return them. See ``Analyst.learn``."""
        shown = replace(
            around,
            traits=most_telling_first(around.traits)[:TRAITS_SHOWN],
            facts=_nearest_facts(around.facts, pages),
            corrected=around.corrected[:CORRECTED_SHOWN],
            speakers=speakers_of(around.facts),
        )
        request = learn_request(pages, shown, dimensions=self._dimensions, max_prompt_tokens=self._max_prompt_tokens)
        facts = None if around.is_read else shown.facts
        return await ask(self._chat, request, LearnReading(pages, facts, self._dimensions).read, self._limiter)


def _covers(topic: Topic, known: Segment) -> bool:
    """Return whether a topic's digest (keywords and summary) includes the previous digest of a segment.

    This is the case if the LLM was shown the segment's current summary before it wrote the topic's digest.
    """
    shown = topic.segment
    return shown is not None and (shown.segment, shown.summary) == (known.segment, known.summary)


def _nearest_facts(facts: Sequence[Fact], pages: Sequence[Page]) -> list[Fact]:
    """Return the facts that are most similar to the pages: at most ``FACTS_SHOWN``, sorted by fact number.

    First, the most similar fact for each page is chosen. Then, the second most similar fact for each page is chosen,
    and so on.
    """
    if len(facts) <= FACTS_SHOWN:
        return list(facts)
    nearness = np.array([[_nearness(fact, view) for fact in facts] for view in pages])
    places = (-nearness).argsort(axis=1, kind="stable").argsort(axis=1, kind="stable")
    best = sorted(range(len(facts)), key=lambda n: (places[:, n].min(), -nearness[:, n].max()))
    return sorted((facts[n] for n in best[:FACTS_SHOWN]), key=lambda fact: fact.fact)


def _nearness(fact: Fact, view: Page) -> float:
    if fact.vector is not None and view.vector is not None:
        return float(view.vector @ fact.vector)
    fact_stems = set(stems(fact.text))
    return len(fact_stems.intersection(stems(view.text))) / (len(fact_stems) or 1)
