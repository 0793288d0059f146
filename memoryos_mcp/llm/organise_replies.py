"""Parses and validates an LLM's reply about a batch: the topics, chains and facts."""

from collections.abc import Sequence
from typing import Any

from pydantic import Field

from memoryos_mcp.errors import ReplyFormatError
from memoryos_mcp.llm.analysis import Organised, Run, Surroundings, Topic
from memoryos_mcp.llm.extractive.digests import make_digest
from memoryos_mcp.llm.learn_replies import FactsReading
from memoryos_mcp.llm.prompts import KEYWORD_MAX_CHARS, segment_name
from memoryos_mcp.llm.replies import Number, Part, Text, Texts, checked, items, numbers
from memoryos_mcp.model.knowledge import KnowledgeChange
from memoryos_mcp.model.pages import Page
from memoryos_mcp.model.segments import Digest
from memoryos_mcp.text.prose import shorten

KEYWORDS_MAX = 12
SUMMARY_MAX_CHARS = 1_200
# Minimum share of a batch's pages that the LLM's corrected reply must assign to topics. The fallback analyst assigns
# the remaining pages.
FILED_SHARE = 0.5


class _PageReply(Part):
    continues: bool = False
    topic: Number = 0


class _TopicReply(Part):
    topic: Number
    segment: Text = ""
    keywords: Texts = Field(default_factory=list)
    summary: Text = ""


class _ChainReply(Part):
    first: Number
    summary: Text = ""


class OrganiseReading:
    """Turns a reply about a batch into an ``Organised`` batch.

    Args:
        batch: The pages, in the order of the prompt.
        around: The parts of the memory that the prompt contains.
        max_topics: Maximum number of topics.
    """

    def __init__(self, batch: Sequence[Page], around: Surroundings, max_topics: int) -> None:
        self._batch = batch
        self._chain_before = (around.before and around.before.chain_summary) or ""
        self._segments = {segment_name(segment.segment): segment for segment in around.segments}
        self._facts = FactsReading(batch, around.facts)
        self._max_topics = max_topics

    def read(self, found: dict[str, Any], is_last: bool) -> tuple[Organised, list[Page]]:
        """Return the organised batch, and the pages to which the reply assigned no topic.

        Args:
            found: The JSON object in the reply.
            is_last: Whether this is the corrected reply. If so, up to half of the pages may have no topic, and
                ``knowledge`` is None if the facts are unusable.

        Raises:
            ReplyFormatError: Too many pages have no topic, there are too many topics, or too few topics or facts are
                usable.
        """
        knowledge = self._knowledge(found, is_last)
        pages = self._pages(found.get("pages"))
        described = checked(items(found.get("topics")), "topic", _TopicReply, _problem_of_topic)
        if len(described) > self._max_topics:
            msg = f"topics: there are {len(described)}; report at most {self._max_topics}"
            raise ReplyFormatError(msg)
        topics = {topic.topic: topic for topic in described}
        if len(topics) < len(described):  # some topic numbers are repeated, so topics are numbered in order
            topics = dict(enumerate(described, 1))
        left = [view for number, view in enumerate(self._batch, 1) if self._topic(pages, number) not in topics]
        if left and (not is_last or len(left) > len(self._batch) * (1 - FILED_SHARE)):
            msg = f"pages: {len(left)} of {len(self._batch)} have no topic listed in topics; assign one to each"
            raise ReplyFormatError(msg)
        named = [
            Topic(
                digest=_digest(topic, members),
                pages=tuple(page.seq for page in members),
                segment=self._segments.get(topic.segment),
                apart_from=self._apart_from(topic),
            )
            for number, topic in topics.items()
            if (members := [page for n, page in enumerate(self._batch, 1) if self._topic(pages, n) == number])
        ]
        chains = checked(items(found.get("chains")), "chain", _ChainReply, _problem_of_chain, right_share=None)
        is_continuing = 1 in pages and pages[1].continues
        summaries = {chain.first: chain.summary for chain in chains}
        of_topics = {seq: topic.digest.summary for topic in named for seq in topic.pages}
        if is_continuing:
            of_topics[self._batch[0].seq] = ""  # the whole chain will be summarised instead
        runs = self._runs(pages, summaries, of_topics)
        return Organised(is_continuing, runs, tuple(named), knowledge), left

    def _knowledge(self, found: dict[str, Any], is_last: bool) -> tuple[KnowledgeChange, ...] | None:
        """Return the changes to the known facts; None if the reply contains no list of facts.

        ``is_last`` means that this is the LLM's corrected reply. For such a reply, the result is also None if the facts
        are unusable.

        Raises:
            ReplyFormatError: The facts are unusable, and ``is_last`` is False.
        """
        if not isinstance(found.get("facts"), list | dict):  # for example, the text "none"
            return None
        try:
            return self._facts.read(found["facts"], is_last)
        except ReplyFormatError:
            if not is_last:
                raise
            return None

    def _apart_from(self, topic: _TopicReply) -> frozenset[int]:
        """Return the numbers of the segments that a topic must not join.

        If the LLM chose a segment in the prompt for the topic, the result is empty. Otherwise, it contains all segments
        in the prompt.
        """
        if topic.segment in self._segments:
            return frozenset()
        return frozenset(segment.segment for segment in self._segments.values())

    def _pages(self, found: object) -> dict[int, _PageReply]:
        """Return the part of the reply about each page, keyed by page number.

        The prompt requests an object with page numbers as keys, but a list is accepted too.
        """
        if isinstance(found, dict):
            pairs = [(numbers(name), value) for name, value in found.items()]
        else:
            pairs = [(numbers(entry.get("page")), entry) for entry in items(found) if isinstance(entry, dict)]
        said = [(places[0], value) for places, value in pairs if places and 1 <= places[0] <= len(self._batch)]
        read: dict[int, _PageReply] = {}
        for place, value in said:
            for reply in checked([value], "page", _PageReply, lambda _: None, right_share=None):
                read.setdefault(place, reply)
        return read

    def _topic(self, pages: dict[int, _PageReply], number: int) -> int:
        return pages[number].topic if number in pages else 0

    def _runs(
        self, pages: dict[int, _PageReply], summaries: dict[int, str], of_topics: dict[int, str]
    ) -> tuple[Run, ...]:
        """Return the runs of the batch: sequences of consecutive pages about the same subject.

        A run without a summary in the reply gets the summary of its first page's topic. If this page has no topic, the
        summary consists of quotes from the run's pages.
        """
        starts = [n for n in range(1, len(self._batch) + 1) if n == 1 or n not in pages or not pages[n].continues]
        runs = []
        for start, end in zip(starts, [*starts[1:], len(self._batch) + 1], strict=True):
            members = self._batch[start - 1 : end - 1]
            summary = summaries.get(start) or of_topics.get(members[0].seq)
            if summary is None:
                summary = make_digest(members).summary
            is_whole = start > 1 or bool(self._chain_before)
            seqs = tuple(page.seq for page in members)
            runs.append(Run(pages=seqs, summary=shorten(summary, SUMMARY_MAX_CHARS), is_whole=is_whole))
        return tuple(runs)


def _problem_of_topic(topic: _TopicReply) -> str | None:
    return None if topic.topic else "topic is not a number"


def _problem_of_chain(chain: _ChainReply) -> str | None:
    return None if chain.first else "first is not the number of a page"


def _digest(topic: _TopicReply, pages: Sequence[Page]) -> Digest:
    """Return the digest of a topic. Missing keywords and a missing summary are derived from the topic's pages."""
    named = (keyword.lower() for keyword in topic.keywords if len(keyword) <= KEYWORD_MAX_CHARS)
    keywords = tuple(dict.fromkeys(named))[:KEYWORDS_MAX]
    summary = shorten(topic.summary, SUMMARY_MAX_CHARS)
    if keywords and summary:
        return Digest(keywords=keywords, summary=summary)
    own = make_digest(pages)
    return Digest(keywords=keywords or own.keywords, summary=summary or own.summary)
