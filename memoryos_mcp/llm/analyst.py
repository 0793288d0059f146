"""The analyst that asks an LLM: one call for a batch's chains and topics, one for what a segment's pages teach."""

import re
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from anyio import CapacityLimiter
from pydantic import Field

from memoryos_mcp.errors import ReplyFormatError
from memoryos_mcp.knowledge import About, AddFact, ConfirmFact, CorrectedFact, Fact, KnowledgeChange, Lessons
from memoryos_mcp.llm import Organised, PageView, Run, Surroundings, Topic
from memoryos_mcp.llm.asking import ask
from memoryos_mcp.llm.catalogue import find
from memoryos_mcp.llm.chat import ChatModel
from memoryos_mcp.llm.extractive import ExtractiveAnalyst
from memoryos_mcp.llm.extractive.digests import make_digest
from memoryos_mcp.llm.prompts import (
    FACTS_PER_PAGE_MAX,
    KEYWORD_MAX_CHARS,
    learn_request,
    organise_request,
    page_tokens,
    segment_name,
)
from memoryos_mcp.llm.prose import shorten
from memoryos_mcp.llm.replies import RIGHT_SHARE, Number, Numbers, Part, Text, Texts, checked, items, numbers
from memoryos_mcp.pages import EARLIEST_YEAR, Page
from memoryos_mcp.profile import Level, Trait, TraitChange, most_telling_first
from memoryos_mcp.segments import Digest, Segment
from memoryos_mcp.terms import stem, stems

KEYWORDS_MAX = 12
READING_THREADS = 2
SUMMARY_MAX_CHARS = 1_200
FACT_MAX_CHARS = 400
REASON_MAX_CHARS = 300
# Known facts and traits that are shown with a question.
FACTS_SHOWN = 25
TRAITS_SHOWN = 25
CORRECTED_SHOWN = 25
# Share of the prompt that pages may take when a segment is read in portions; the rest is for what is known.
PAGES_SHARE = 0.6
# Share of a batch that has to be filed by the LLM's last reply; the rest is then filed by its words.
FILED_SHARE = 0.5

# Models write the last year there is for "open-ended".
LATEST_YEAR = 9999

_DATE = re.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?")


class LlmAnalyst:
    """An ``Analyst`` over a chat model. What a reply holds is checked before it is passed on.

    Args:
        chat: Who is asked; its errors are passed on.
        max_topics: Topics at most in one batch.
        max_prompt_tokens: Tokens of one prompt.
        dimensions: The user's own dimensions of the profile.
        stand_in: Files the pages that a reply left out.
    """

    def __init__(
        self,
        chat: ChatModel,
        *,
        max_topics: int,
        max_prompt_tokens: int,
        dimensions: Sequence[str],
        stand_in: ExtractiveAnalyst,
    ) -> None:
        self._chat = chat
        self._max_topics = max_topics
        self._max_prompt_tokens = max_prompt_tokens
        self._dimensions = dimensions
        self._stand_in = stand_in
        self._limiter = CapacityLimiter(READING_THREADS)

    @property
    def name(self) -> str:
        """The model's name."""
        return self._chat.name

    async def organise(self, batch: Sequence[PageView], around: Surroundings) -> Organised:
        """Find the chains and topics of a batch, in one call. See ``Analyst.organise``."""
        request = organise_request(
            batch, around, max_topics=self._max_topics, max_prompt_tokens=self._max_prompt_tokens
        )
        reading = _OrganiseReading(batch, around, self._max_topics)
        organised, left = await ask(self._chat, request, reading.read, self._limiter)
        if not left:
            return organised
        filled = await self._stand_in.organise(left, Surroundings(before=None))
        return Organised(organised.is_continuing, organised.runs, (*organised.topics, *filled.topics))

    async def joined_digest(
        self,
        known: Segment | None,
        topics: Sequence[Topic],
        pages: Callable[[], Awaitable[Sequence[PageView]]],  # noqa: ARG002 - the reply covers them
    ) -> Digest:
        """Return the words of the topic that was written for the whole segment; else all words, as far as they fit."""
        digests = [topic.digest for topic in topics]
        if known is not None and not any(topic.segment == known.segment for topic in topics):
            digests.append(Digest(known.keywords, known.summary))
        keywords = dict.fromkeys(keyword for digest in digests for keyword in digest.keywords)
        # Where the old words do not fit beside the new ones, the next reply that is shown them makes one text of them.
        room = SUMMARY_MAX_CHARS // len(digests)
        summary = " ".join(shorten(digest.summary, room) for digest in reversed(digests))
        return Digest(keywords=tuple(keywords)[:KEYWORDS_MAX], summary=summary)

    async def joined_summary(
        self,
        earlier: str,
        run: Run,
        pages: Callable[[], Awaitable[Sequence[PageView]]],
    ) -> str:
        """Return the run's summary, with the earlier one before it if that was not in sight; the stand-in's if none."""
        if not run.summary:
            return await self._stand_in.joined_summary(earlier, run, pages)
        if run.is_whole or not earlier:
            return run.summary
        room = SUMMARY_MAX_CHARS // 2
        return f"{shorten(earlier, room)} {shorten(run.summary, room)}"

    def portion(self, pages: Sequence[Page]) -> int:
        """Return how many of the first pages fit a prompt whole, at least one."""
        room = int(self._max_prompt_tokens * PAGES_SHARE)
        for count, page in enumerate(pages):
            room -= page_tokens(page)
            if room < 0:
                return max(1, count)
        return len(pages)

    async def learn(
        self,
        pages: Sequence[PageView],
        traits: Sequence[Trait],
        facts: Sequence[Fact],
        corrected: Sequence[CorrectedFact] = (),
    ) -> Lessons:
        """Find what pages teach, in one call. See ``Analyst.learn``."""
        shown = _nearest_facts(facts, pages)
        request = learn_request(
            pages,
            most_telling_first(traits)[:TRAITS_SHOWN],
            shown,
            corrected[:CORRECTED_SHOWN],
            dimensions=self._dimensions,
            max_prompt_tokens=self._max_prompt_tokens,
        )
        return await ask(self._chat, request, _LearnReading(pages, shown, self._dimensions).read, self._limiter)


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


class _OrganiseReading:
    """Reads a reply about a batch."""

    def __init__(self, batch: Sequence[PageView], around: Surroundings, max_topics: int) -> None:
        self._batch = batch
        self._chain_before = around.chain_summary
        self._segments = {segment_name(segment.segment): segment.segment for segment in around.segments}
        self._max_topics = max_topics

    def read(self, found: dict[str, Any], is_last: bool) -> tuple[Organised, list[PageView]]:
        """Return the batch in order, and the pages that no topic holds.

        Raises:
            ReplyFormatError: Pages have no topic; on the last round, more than can be made up for.
        """
        pages = self._pages(found.get("pages"))
        described = checked(items(found.get("topics")), "topic", _TopicReply, _problem_of_topic)
        if len(described) > self._max_topics:
            msg = f"topics: there are {len(described)}, but at most {self._max_topics} are asked for"
            raise ReplyFormatError(msg)
        topics = {topic.topic: topic for topic in described}
        if len(topics) < len(described):  # numbers that repeat tell less than the order
            topics = dict(enumerate(described, 1))
        left = [view for number, view in enumerate(self._batch, 1) if self._topic(pages, number) not in topics]
        if left and (not is_last or len(left) > len(self._batch) * (1 - FILED_SHARE)):
            msg = f"pages: {len(left)} of {len(self._batch)} have no topic that is among topics"
            raise ReplyFormatError(msg)
        named = [
            Topic(
                digest=_digest(topic, members),
                pages=tuple(page.seq for page in members),
                segment=self._segments.get(topic.segment),
            )
            for number, topic in topics.items()
            if (members := [v.page for n, v in enumerate(self._batch, 1) if self._topic(pages, n) == number])
        ]
        chains = checked(items(found.get("chains")), "chain", _ChainReply, _problem_of_chain, right_share=None)
        is_continuing = 1 in pages and pages[1].continues
        summaries = {chain.first: chain.summary for chain in chains}
        of_topics = {seq: topic.digest.summary for topic in named for seq in topic.pages}
        if is_continuing:
            of_topics[self._batch[0].page.seq] = ""  # the whole chain is summed up instead
        runs = self._runs(pages, summaries, of_topics)
        return Organised(is_continuing=is_continuing, runs=runs, topics=tuple(named)), left

    def _pages(self, found: object) -> dict[int, _PageReply]:
        """Return what is said of each page, by its place: the form is an object of them, but a list is read as well."""
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
        """Return the runs. One that was not summed up is told by its topic's summary, or by its own words."""
        starts = [n for n in range(1, len(self._batch) + 1) if n == 1 or n not in pages or not pages[n].continues]
        runs = []
        for start, end in zip(starts, [*starts[1:], len(self._batch) + 1], strict=True):
            members = [view.page for view in self._batch[start - 1 : end - 1]]
            summary = summaries.get(start) or of_topics.get(members[0].seq)
            if summary is None:
                summary = make_digest(members).summary
            is_whole = start > 1 or bool(self._chain_before)
            seqs = tuple(page.seq for page in members)
            runs.append(Run(pages=seqs, summary=shorten(summary, SUMMARY_MAX_CHARS), is_whole=is_whole))
        return tuple(runs)


class _FactReply(Part):
    action: Text = "add"
    fact: Number = 0
    about: Text = "user"
    text: Text = ""
    since: Text = ""
    until: Text = ""
    pages: Numbers = Field(default_factory=list)


class _TraitReply(Part):
    dimension: Text
    level: Text
    reason: Text
    pages: Numbers = Field(default_factory=list)


class _LearnReading:
    """Reads a reply about what pages teach."""

    def __init__(self, pages: Sequence[PageView], facts: Sequence[Fact], dimensions: Sequence[str]) -> None:
        self._pages = [view.page for view in pages]
        self._facts = facts
        self._dimensions = dimensions
        self._said: dict[int, frozenset[str]] = {}

    def read(self, found: dict[str, Any], is_last: bool) -> Lessons:
        """Return the lessons.

        Raises:
            ReplyFormatError: More facts or traits are unusable than usable, on the last round all of them; or there
                are more facts than pages can hold.
        """
        if "facts" not in found and "traits" not in found:
            msg = "facts and traits are missing"
            raise ReplyFormatError(msg)
        facts = items(found.get("facts"))
        most = FACTS_PER_PAGE_MAX * len(self._pages)
        if len(facts) > most:
            msg = f"facts: there are {len(facts):,} for {len(self._pages)} pages; report at most {most}"
            raise ReplyFormatError(msg)
        traits = items(found.get("traits"))
        share = 0.0 if is_last else RIGHT_SHARE
        said = checked(facts, "fact", _FactReply, self._problem_of_fact, share)
        shown = checked(traits, "trait", _TraitReply, self._problem_of_trait, share)
        return Lessons(
            traits=tuple({change.dimension: change for change in map(self._trait, shown)}.values()),
            knowledge=tuple(map(self._change, said)),
        )

    def _problem_of_fact(self, fact: _FactReply) -> str | None:
        if fact.about.lower() not in {"user", "assistant"}:
            return 'about is neither "user" nor "assistant"'
        if not self._cited(fact.pages):
            return "pages names none of the pages shown"
        if fact.action.lower() == "confirm":
            return None if 1 <= fact.fact <= len(self._facts) else "fact is no number of a known fact"
        if not fact.text or len(fact.text) > FACT_MAX_CHARS:
            return f"text is empty or over {FACT_MAX_CHARS} characters"
        if not self._is_grounded(fact):
            return "text has no word in common with the pages it cites"
        return None

    def _is_grounded(self, fact: _FactReply) -> bool:
        """Whether a fact shares a word with what it rests on; texts without words in common letters are believed."""
        told = {stem for stem in stems(fact.text) if stem.isascii()} - _OF_NOBODY
        said = frozenset[str]().union(*map(self._stems, self._cited(fact.pages)))
        return not told or not any(stem.isascii() for stem in said) or not told.isdisjoint(said)

    def _stems(self, place: int) -> frozenset[str]:
        """Return the stems of a page, which is read only if something rests on it."""
        if place not in self._said:
            self._said[place] = frozenset(stems(self._pages[place - 1].text))
        return self._said[place]

    def _problem_of_trait(self, trait: _TraitReply) -> str | None:
        if find(trait.dimension, self._dimensions) is None:
            return "dimension is none of those listed"
        if trait.level.capitalize() not in set(Level):
            return 'level is none of "Low", "Medium", "High"'
        if not trait.reason:
            return "reason is empty"
        return None if self._cited(trait.pages) else "pages names none of the pages shown"

    def _cited(self, places: Sequence[int]) -> list[int]:
        return [place for place in dict.fromkeys(places) if 1 <= place <= len(self._pages)]

    def _seqs(self, places: Sequence[int]) -> tuple[int, ...]:
        return tuple(self._pages[place - 1].seq for place in self._cited(places))

    def _trait(self, trait: _TraitReply) -> TraitChange:
        return TraitChange(
            dimension=find(trait.dimension, self._dimensions) or trait.dimension,
            level=Level(trait.level.capitalize()),
            reason=shorten(trait.reason, REASON_MAX_CHARS),
            evidence=self._seqs(trait.pages),
        )

    def _change(self, fact: _FactReply) -> KnowledgeChange:
        evidence = self._seqs(fact.pages)
        known = self._facts[fact.fact - 1] if 1 <= fact.fact <= len(self._facts) else None
        if fact.action.lower() == "confirm" and known is not None:
            return ConfirmFact(fact=known.fact, evidence=evidence)
        about = About(fact.about.lower())
        said_at = self._pages[self._cited(fact.pages)[-1] - 1].occurred_at
        replaced = fact.action.lower() == "supersede" and known is not None and known.about is about
        return AddFact(
            about=about,
            text=fact.text,
            slot=None,
            valid_from=_since(fact.since, said_at),
            evidence=evidence,
            supersedes=(known.fact,) if replaced and known is not None else (),
            valid_until=_until(fact.until, said_at),
        )


# Words that stand for whom a fact is about, not for what it says.
_OF_NOBODY = frozenset({"user", "assist"}) | {stem("assistant")}


def _problem_of_topic(topic: _TopicReply) -> str | None:
    return None if topic.topic else "topic is no number"


def _problem_of_chain(chain: _ChainReply) -> str | None:
    return None if chain.first else "first is no number of a page"


def _digest(topic: _TopicReply, pages: Sequence[Page]) -> Digest:
    """Return a topic's words, and its pages' own where it has none."""
    named = (keyword.lower() for keyword in topic.keywords if len(keyword) <= KEYWORD_MAX_CHARS)
    keywords = tuple(dict.fromkeys(named))[:KEYWORDS_MAX]
    summary = shorten(topic.summary, SUMMARY_MAX_CHARS)
    if keywords and summary:
        return Digest(keywords=keywords, summary=summary)
    own = make_digest(pages)
    return Digest(keywords=keywords or own.keywords, summary=summary or own.summary)


def _nearest_facts(facts: Sequence[Fact], pages: Sequence[PageView]) -> list[Fact]:
    """Return the facts that some page comes nearest to, by their number; by common words where a vector is missing."""
    if len(facts) <= FACTS_SHOWN:
        return list(facts)
    vectors = [view.vector for view in pages if view.vector is not None]
    block = np.stack(vectors) if vectors else None
    said: list[set[str]] = []

    def nearness(fact: Fact) -> float:
        if fact.vector is not None and block is not None:
            return float((block @ fact.vector).max())
        if not said:
            said.extend(set(stems(view.page.text)) for view in pages)
        told = set(stems(fact.text))
        return max(len(told & words) / (len(told) or 1) for words in said)

    return sorted(sorted(facts, key=nearness, reverse=True)[:FACTS_SHOWN], key=lambda fact: fact.fact)


def _since(text: str, said_at: datetime) -> datetime:
    """Return the beginning of a date, of a month or a year; when it was said, if there is none or it lies ahead."""
    period = _period(text, said_at)
    return period[0] if period is not None and period[0] <= said_at else said_at


def _until(text: str, said_at: datetime) -> datetime | None:
    """Return the end of a day, month or year; None if there is none, or if it was over when it was said."""
    period = _period(text, said_at)
    return period[1] if period is not None and period[1] > said_at else None


def _period(text: str, said_at: datetime) -> tuple[datetime, datetime] | None:
    """Return the beginning and the end of a date, of a month or a year; None for what is none or lies out of reach."""
    match = _DATE.match(text)
    if match is None:
        return None
    year, month, day = (int(part) if part else None for part in match.groups())
    if year is None or not EARLIEST_YEAR <= year < LATEST_YEAR:
        return None
    try:
        begin = datetime(year, month or 1, day or 1, tzinfo=said_at.tzinfo)
    except ValueError:
        return None
    if day is not None:
        return begin, begin + timedelta(days=1)
    if month is not None:
        return begin, begin.replace(year=year + month // 12, month=month % 12 + 1)
    return begin, begin.replace(year=year + 1)
