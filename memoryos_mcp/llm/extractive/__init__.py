"""The fallback analyst, which finds chains, topics, facts and traits in pages without an LLM.

The fallback analyst is used if no LLM is configured or if the LLM cannot be reached. Its results are simpler than those
of an LLM, but are ready within milliseconds and need no vectors. Summaries and facts are quotes from pages, with two
exceptions. First, dates are added in brackets after words such as "yesterday". Second, two kinds of facts are derived
by rules: the user's home from a place of work, and the user's age from "I'm Tom, 41".
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from anyio import CapacityLimiter, to_thread

from memoryos_mcp.llm.analysis import Organised, Run, Surroundings, Topic
from memoryos_mcp.llm.extractive.digests import PageTerms, digest_of, is_question, make_digest, page_terms, topic_terms
from memoryos_mcp.llm.extractive.traits import learn_traits
from memoryos_mcp.model.knowledge import LEARNED_BY_RULES, Lessons
from memoryos_mcp.model.pages import Page
from memoryos_mcp.model.segments import Digest, Segment, Vector, mean_vector, segment_match
from memoryos_mcp.text.terms import stems, words

TOPIC_THRESHOLD = 0.6
"""The value of ``mid_term_similarity_threshold`` in the paper."""

# Minimum cosine similarity at which a page counts as a continuation of the previous one. With the bundled model, the
# similarity exceeds 0.42 for 1 in 450 pairs of pages from different chats, and for 1 in 8 pairs of adjacent pages of a
# chat. The minimum is lower for an answer to a question, and lowest for a follow-up.
CONTINUES_COSINE = 0.42
ANSWERS_COSINE = 0.3
FOLLOWS_UP_COSINE = 0.15
# The same minimums for pages without vectors. Here, the similarity is the share of the shorter page's word stems that
# also occur on the other page.
CONTINUES_OVERLAP = 0.34
ANSWERS_OVERLAP = 0.2
SHARED_STEMS_MIN = 2
FOLLOW_UP_WORDS_MAX = 14
CONTINUES_BONUS = 0.15
# The bonus is larger without vectors, because then a continuation is the best evidence that two pages share a topic.
CONTINUES_BONUS_WORDS_ONLY = 0.5
PAGE_TERMS_MAX = 12
HEAD_CHARS = 4_000

_FOLLOW_UP = re.compile(
    r"(?:it|its|it['’]s|that|that['’]s|this|these|those|they|they['’]re|he|she|them|both"
    r"|yes|yeah|yep|no|nope|ok|okay|sure|exactly"
    r"|totally|definitely|absolutely|agreed|same|also|and|but|so|or|because|what about|how about"
    r"|how so|why|which (?:one|of)|really"
    r"|got it|thanks|thank you|haha|lol|wow|cool|great|nice|awesome|sounds good|go on|what else"
    r"|tell me more|in that case"
    r"|ja|nein|und|aber|danke|oui|non|et|merci|sí|si|y|gracias|да|нет|спасибо)\b"
    r"|(?:是的|好的|对|那|这|它|为什么|谢谢|はい|いいえ|それ|そう|でも|ありがとう|네|아니|그럼|그래|그거|고마워)",
    re.IGNORECASE,
)


class ExtractiveAnalyst:
    """An ``Analyst`` that needs no model, network or vectors. The same arguments always give the same results.

    Args:
        topic_threshold: Minimum similarity (``segment_match``, from 0 to 2) at which a page joins a topic.
        limiter: Limits the number of threads that the analyst uses; None for the default limiter of the process.
    """

    def __init__(self, *, topic_threshold: float = TOPIC_THRESHOLD, limiter: CapacityLimiter | None = None) -> None:
        self._topic_threshold = topic_threshold
        self._limiter = limiter

    @property
    def name(self) -> str:
        """Name of the analyst. It is stored with the analyst's results."""
        return LEARNED_BY_RULES

    async def organise(self, batch: Sequence[Page], around: Surroundings) -> Organised:
        """Return the chains and topics of a batch. This never fails. See ``Analyst.organise``."""
        work = partial(organise, batch, around.before, topic_threshold=self._topic_threshold)
        return await to_thread.run_sync(work, limiter=self._limiter)

    async def joined_digest(
        self,
        known: Segment | None,  # noqa: ARG002 - the digest is made from the pages alone
        topics: Sequence[Topic],  # noqa: ARG002
        pages: Callable[[], Awaitable[Sequence[Page]]],
    ) -> Digest:
        """Return a digest of the pages: the top keywords, and one to three quoted sentences. This never fails."""
        return await self._digest(await pages())

    async def joined_summary(
        self,
        earlier: str,
        run: Run,
        pages: Callable[[], Awaitable[Sequence[Page]]],
    ) -> str:
        """Return the new summary of a chain to which a run (consecutive pages) was added. This never fails.

        If the chain had no ``earlier`` summary and the run has one, return the run's summary. Otherwise, return one to
        three sentences quoted from the pages.
        """
        if run.summary and not earlier:
            return run.summary
        return (await self._digest(await pages())).summary

    def portion(self, pages: Sequence[Page]) -> int:
        """Return the length of ``pages``, because one call of `learn` can process all of them."""
        return len(pages)

    async def learn(self, pages: Sequence[Page], around: Surroundings) -> Lessons:
        """Return the facts and traits found in pages. This never fails.

        The facts are quoted statements and wishes. The traits are found by counting subjects and ways of writing in
        the user's messages.
        """
        return await to_thread.run_sync(learn, list(pages), around, limiter=self._limiter)

    async def _digest(self, pages: Sequence[Page]) -> Digest:
        return await to_thread.run_sync(make_digest, list(pages), limiter=self._limiter)


def learn(pages: Sequence[Page], around: Surroundings) -> Lessons:
    """Return the traits and facts that the pages add, change or confirm."""
    # Imported late, because it compiles many patterns, and the first answer does not need them.
    from memoryos_mcp.llm.extractive.learning import learn_knowledge

    knowledge = () if around.is_read else learn_knowledge(pages, around.facts)
    return Lessons(traits=learn_traits(pages, around.traits), knowledge=knowledge)


@dataclass(slots=True, eq=False)
class _Group:
    """A topic to which pages are still being added. ``members`` are the positions of its pages in the batch."""

    members: list[int] = field(default_factory=list)
    vector: Vector | None = None
    terms: frozenset[str] = frozenset()


def organise(batch: Sequence[Page], before: Page | None, *, topic_threshold: float = TOPIC_THRESHOLD) -> Organised:
    """Return the runs and topics of a batch, in order of their first pages.

    A run is a series of consecutive pages, each of which continues the subject of the previous one.

    A page joins the topic with the highest ``segment_match`` if that match reaches the threshold. Otherwise, the page
    starts a new topic. Afterwards, any two topics are merged if the match between them reaches the threshold.

    Args:
        batch: Pages in order of arrival, at least one.
        before: The page before the batch; None if there is no such page.
        topic_threshold: The threshold for ``segment_match``, from 0 to 2.
    """
    said = [page_terms(view) for view in batch]
    continues = [
        previous is not None and is_continuing(previous, view)
        for previous, view in zip((before, *batch), batch, strict=False)
    ]
    groups: list[_Group] = []
    home: dict[int, _Group] = {}
    for number, view in enumerate(batch):
        terms = frozenset(topic_terms([said[number]], PAGE_TERMS_MAX))
        group = None
        best = topic_threshold
        for candidate in groups:
            match = segment_match(candidate.vector, candidate.terms, view.vector, terms)
            if continues[number] and home.get(number - 1) is candidate:
                match += CONTINUES_BONUS if view.vector is not None else CONTINUES_BONUS_WORDS_ONLY
                match = max(match, topic_threshold) if not terms else match
            if match >= best:
                group, best = candidate, match
        if group is None:
            group = _Group()
            groups.append(group)
        _fill(group, [*group.members, number], batch, said)
        home[number] = group
    _merge(groups, batch, said, topic_threshold)
    return Organised(
        is_continuing=continues[0],
        runs=_runs(batch, continues),
        topics=tuple(_topic(group, batch, said) for group in groups),
    )


def is_continuing(previous: Page, view: Page) -> bool:
    """Return whether a page continues the subject of the previous page.

    The two pages must be in the same session, and their similarity must reach a threshold. The threshold is lower if
    the page answers a question on the previous page. If the page begins like a follow-up, the threshold is even lower.
    If one of the two pages has no vector, a follow-up needs no similarity.
    """
    if previous.session != view.session:
        return False
    asked = is_question(previous.agent_response.rstrip()[-200:])
    answers = asked and bool(view.user_input.strip())
    follows_up = _is_follow_up(view.user_input)
    if previous.vector is not None and view.vector is not None:
        needed = FOLLOWS_UP_COSINE if follows_up else ANSWERS_COSINE if answers else CONTINUES_COSINE
        return float(previous.vector @ view.vector) >= needed
    if follows_up:
        return True
    left, right = (set(stems(text[:HEAD_CHARS])) for text in (previous.text, view.text))
    shared = len(left & right)
    needed = ANSWERS_OVERLAP if answers else CONTINUES_OVERLAP
    return shared >= SHARED_STEMS_MIN and shared / min(len(left), len(right)) >= needed


def _is_follow_up(user_input: str) -> bool:
    text = user_input.strip()[:HEAD_CHARS]
    return bool(text) and _FOLLOW_UP.match(text) is not None and len(words(text)) <= FOLLOW_UP_WORDS_MAX


def _fill(group: _Group, members: list[int], batch: Sequence[Page], said: Sequence[PageTerms]) -> None:
    group.members = members
    group.vector = mean_vector([vector for number in members if (vector := batch[number].vector) is not None])
    group.terms = frozenset(topic_terms((said[number] for number in members), PAGE_TERMS_MAX))


def _merge(groups: list[_Group], batch: Sequence[Page], said: Sequence[PageTerms], threshold: float) -> None:
    left = 0
    while left < len(groups):
        group = groups[left]
        others = groups[left + 1 :]
        matches = [segment_match(group.vector, group.terms, other.vector, other.terms) for other in others]
        best = max(range(len(others)), key=matches.__getitem__, default=None)
        if best is None or matches[best] < threshold:
            left += 1
            continue
        _fill(group, sorted(group.members + others[best].members), batch, said)
        groups.remove(others[best])


def _runs(batch: Sequence[Page], continues: Sequence[bool]) -> tuple[Run, ...]:
    runs: list[list[Page]] = []
    for view, is_next in zip(batch, continues, strict=True):
        if runs and is_next:
            runs[-1].append(view)
        else:
            runs.append([view])
    return tuple(Run(pages=tuple(page.seq for page in run), summary=make_digest(run).summary) for run in runs)


def _topic(group: _Group, batch: Sequence[Page], said: Sequence[PageTerms]) -> Topic:
    pages = [batch[number] for number in group.members]
    return Topic(
        digest=digest_of(pages, [said[number] for number in group.members]), pages=tuple(page.seq for page in pages)
    )
