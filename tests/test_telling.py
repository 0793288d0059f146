"""Facts, new topics and keywords in the LLM's reply to the call that organises a batch."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from benchmarks.llm_server import running_llm_server
from memoryos_mcp.consolidation.filing import SEGMENT_PAGES_MAX
from memoryos_mcp.consolidation.reading import Reading
from memoryos_mcp.errors import ReplyFormatError
from memoryos_mcp.llm.analysis import LEARN_PAGES_MAX, Organised, Run, Surroundings, Topic
from memoryos_mcp.llm.extractive import ExtractiveAnalyst
from memoryos_mcp.llm.learn_replies import FactsReading
from memoryos_mcp.llm.organise_replies import OrganiseReading
from memoryos_mcp.llm.prompts import facts_asked, learn_request, organise_request
from memoryos_mcp.model.knowledge import About, AddFact, Kind, KnowledgeChange, Lessons
from memoryos_mcp.model.pages import Page, Source, Tier, Turn
from memoryos_mcp.model.segments import Digest, Segment
from memoryos_mcp.storage.values import FactQuery, PageQuery
from memoryos_mcp.text.addressees import Speakers
from tests.fakes import START
from tests.stores import rows
from tests.test_benchmark_consolidation import asking
from tests.test_organising import Bench, Llm, bench, quoted, said

READERS = "SELECT seq, read_by, learned_by FROM pages ORDER BY seq"


class Telling(Llm):
    """An analyst that puts a batch under one topic and returns prepared facts."""

    def __init__(self) -> None:
        super().__init__()
        self.known: list[str] = []
        self.knowledge: tuple[KnowledgeChange, ...] | None = ()
        self.names: Segment | None = None
        self.apart_from = frozenset[int]()

    async def organise(self, batch: Sequence[Page], around: Surroundings) -> Organised:
        self.organised.append([view.seq for view in batch])
        self.known = [fact.text for fact in around.facts]
        seqs = tuple(view.seq for view in batch)
        topic = Topic(Digest(("clay",), "Clay."), seqs, self.names, self.apart_from)
        return Organised(False, (Run(seqs, "run"),), (topic,), self.knowledge)

    async def joined_digest(
        self, known: Segment | None, topics: Sequence[Topic], pages: Callable[[], Awaitable[Sequence[Page]]]
    ) -> Digest:
        return topics[0].digest


def told(text: str, *seqs: int, slot: str | None = None, days: int = 0) -> AddFact:
    return AddFact(About.USER, text, slot, START + timedelta(days=days), seqs)


async def read_all(at: Bench) -> None:
    reading = Reading(at.store, at.llm, at.fallback)
    while await reading.step(at.lease):
        pass


# Facts ---------------------------------------------------------------------------------------------------------------


async def test_facts_of_cold_pages_come_with_the_organising_call(tmp_path: Path) -> None:
    llm = Telling()
    llm.knowledge = tuple(told(f"The user cannot eat food{seq}", seq) for seq in range(1, 5))
    async with bench(tmp_path, 4, llm=llm) as at:
        await read_all(at)
        assert await at.facts() == [quoted(number) for number in range(1, 5)]
        await at.organise_all()
        assert await at.facts() == [f"The user cannot eat food{seq}" for seq in range(1, 5)]
        assert llm.learned == []
        assert rows(tmp_path, READERS) == [(seq, "scripted", None) for seq in range(1, 5)]


async def test_a_batch_without_new_facts_keeps_its_facts(tmp_path: Path) -> None:
    llm = Telling()
    llm.knowledge = None
    async with bench(tmp_path, 4, llm=llm) as at:
        await read_all(at)
        await at.organise_all()
        assert await at.facts() == [quoted(number) for number in range(1, 5)]
        assert {reader for _, reader, _ in rows(tmp_path, READERS)} == {"extractive"}


async def test_a_repeated_fact_is_stored_once(tmp_path: Path) -> None:
    llm = Telling()
    async with bench(tmp_path, 4, llm=llm) as at:
        pages = await at.store.pages(PageQuery(tier=Tier.BACKLOG, limit=4))
        reading = Reading(at.store, llm, at.fallback)
        for _ in range(2):  # the server ended after the first call, before the pages were organised
            await reading.keep(at.lease, pages, [told("The user keeps ants", 1)])
        assert await at.facts() == ["The user keeps ants"]


async def test_the_organising_call_sees_facts_of_earlier_pages(tmp_path: Path) -> None:
    llm = Telling()
    llm.knowledge = (told("The user keeps ants", 1),)
    async with bench(tmp_path, 4, llm=llm) as at:
        await read_all(at)
        await at.organise_all()
        assert llm.known == []  # the LLM extracts the facts of these pages in this call
        llm.knowledge = ()
        await at.store.add_pages([Turn(said(number), "", START) for number in range(5, 9)])
        await read_all(at)
        await at.organise_all()
        assert llm.known == ["The user keeps ants"]


async def test_a_later_llm_sees_the_facts_of_the_fallback(tmp_path: Path) -> None:
    llm = Telling()
    async with bench(tmp_path, 2, llm=llm) as at:
        await read_all(at)  # the fallback learned this before there was a key
        await at.store.add_pages([Turn(quoted(3), "Noted.", START + timedelta(days=1))])
        await read_all(at)
        known = await Reading(at.store, llm, at.fallback).known_at(
            [(await at.store.pages(PageQuery(tier=Tier.BACKLOG, limit=9)))[-1]], at.lease.forget_epoch
        )
        assert [fact.text for fact in known.facts] == [quoted(1), quoted(2)]


async def test_an_unreadable_page_does_not_block_others(tmp_path: Path) -> None:
    class Stumbling(ExtractiveAnalyst):
        async def learn(self, pages: Sequence[Page], around: Surroundings) -> Lessons:
            if any(view.seq == 3 for view in pages):
                raise ValueError
            return await ExtractiveAnalyst.learn(self, pages, around)

    async with bench(tmp_path, 6) as at:
        reading = Reading(at.store, at.llm, Stumbling())
        while await reading.step(at.lease):
            pass
        assert await at.facts() == [quoted(number) for number in (1, 2, 4, 5, 6)]
        assert rows(tmp_path, "SELECT count(*) FROM pages WHERE read_by IS NULL") == [(0,)]


async def test_the_newer_fact_wins_in_any_order(tmp_path: Path) -> None:
    async with bench(tmp_path, 4) as at:
        reading = Reading(at.store, at.llm, at.fallback)
        pages = await at.store.pages(PageQuery(tier=Tier.BACKLOG, limit=4))
        await reading.keep(at.lease, pages[2:], [told("Ada lives in Ghent", 3, slot="lives", days=-2)])
        await reading.keep(at.lease, pages[:2], [told("Ada lives in Utrecht", 1, slot="lives", days=-4)])
        assert await at.facts() == ["Ada lives in Ghent"]
        await reading.keep(at.lease, pages[3:], [told("Ada lives in Oslo", 4, slot="lives", days=-1)])
        assert await at.facts() == ["Ada lives in Oslo"]
        past = await at.store.facts(FactQuery(About.USER, is_past=True, limit=9))
        assert {fact.text: fact.valid_until for fact in past} == {
            "Ada lives in Ghent": START - timedelta(days=1),
            "Ada lives in Utrecht": START - timedelta(days=2),
        }


async def test_facts_about_relatives_do_not_replace_each_other(tmp_path: Path) -> None:
    async with bench(tmp_path, 4) as at:
        reading = Reading(at.store, at.llm, at.fallback)
        pages = await at.store.pages(PageQuery(tier=Tier.BACKLOG, limit=4))
        sister = "family:sister:Mia"
        await reading.keep(
            at.lease, pages, [told("Mia is Ada's sister", 1, slot=sister), told("Mia rows", 1, slot=sister)]
        )
        await reading.keep(at.lease, pages, [told("Mia broke her arm", 2, slot=sister, days=1)])
        assert await at.facts() == ["Mia is Ada's sister", "Mia rows", "Mia broke her arm"]


# Topics --------------------------------------------------------------------------------------------------------------


async def test_a_topic_marked_as_new_becomes_a_new_segment(tmp_path: Path) -> None:
    llm = Telling()
    async with bench(tmp_path, 4, llm=llm) as at:
        await at.organise_all()
        for llm.apart_from, sizes in ((frozenset(), [8]), (frozenset({1}), [8, 4])):
            await at.store.add_pages([Turn(said(number), "", START) for number in range(4)])
            await at.organise_all()
            assert [segment.page_count for segment in await at.store.segments()] == sizes


async def test_a_full_segment_is_closed(tmp_path: Path) -> None:
    async with bench(tmp_path, 2 * SEGMENT_PAGES_MAX + 4, llm=Telling()) as at:
        await at.organise_all()
        sizes = [segment.page_count for segment in await at.store.segments()]
    assert sizes == [SEGMENT_PAGES_MAX, SEGMENT_PAGES_MAX, 4]


def segment(number: int, summary: str) -> Segment:
    return Segment(number, summary, ("clay",), None, 0, 1, START, 1, 0, "scripted")


def page(number: int, user: str, source: Source = Source.CONVERSATION) -> Page:
    at = START + timedelta(minutes=number)
    return Page(
        seq=number,
        page_id=f"p_{number}",
        user_input=user,
        agent_response="I see.",
        occurred_at=at,
        session=1,
        tier=Tier.BACKLOG,
        source=source,
    )


TOPIC = {"topic": 1, "segment": "", "keywords": ["clay"], "summary": "Clay."}
REPLY: dict[str, Any] = {"topics": [TOPIC], "pages": {"1": {"topic": 1}}}


def test_an_empty_name_means_a_new_segment() -> None:
    around = Surroundings(None, segments=(segment(3, "Clay."), segment(5, "Chess.")))
    (topic,) = OrganiseReading([page(1, "Clay.")], around, 4).read(REPLY, is_last=False)[0].topics
    assert topic.segment is None
    assert topic.apart_from == {3, 5}
    named = {**REPLY, "topics": [{**TOPIC, "segment": "s5"}]}
    (topic,) = OrganiseReading([page(1, "Clay.")], around, 4).read(named, is_last=False)[0].topics
    assert (topic.segment, topic.apart_from) == (around.segments[1], frozenset())


# Facts of a reply ----------------------------------------------------------------------------------------------------


def facts_of(*replies: dict[str, Any], pages: Sequence[Page] = ()) -> list[AddFact]:
    shown = pages or [page(1, "I keep ants in Ghent.")]
    found = [{"text": "Ada keeps ants", "pages": [1], **reply} for reply in replies]
    read = FactsReading(shown, ()).read(found, is_last=True)
    return [change for change in read if isinstance(change, AddFact)]


@pytest.mark.parametrize(
    ("since", "until", "kept"),
    [
        ("2022", "2099", ("2022", "2099")),
        ("2022-03", "2099-01", ("2022-03", "2099-01")),
        ("2022-03-05", "2099-01-31", ("2022-03-05", "2099-01-31")),
        ("", "", (None, None)),
        ("2099-01", "2022", (None, None)),
        ("in spring", "2022-13", (None, None)),
    ],
)
def test_times_keep_the_precision_of_the_text(since: str, until: str, kept: tuple[str | None, str | None]) -> None:
    (fact,) = facts_of({"since": since, "until": until})
    assert (fact.said_since, fact.said_until) == kept


def test_only_facts_about_the_user_have_a_slot() -> None:
    slots = ["lives", "family:daughter:Mia", "hobby", "family:", "lives"]
    kinds = ["statement"] * 4 + ["wish"]
    found = facts_of(*({"slot": slot, "kind": kind} for slot, kind in zip(slots, kinds, strict=True)))
    assert [fact.slot for fact in found] == ["lives", "family:daughter:Mia", None]
    wish = facts_of({"slot": "lives", "kind": "wish"})[0]
    assert (wish.slot, wish.kind) == (None, Kind.WISH)


def test_a_wish_for_a_name_is_stored_as_a_wish() -> None:
    wish = {"kind": "wish", "slot": "", "text": "Ada keeps ants and wants to be called Al."}
    (named,) = facts_of(wish)
    assert named.slot == "called"


def test_nothing_is_learned_from_fetched_text() -> None:
    fetched = page(1, "Ada keeps ants", Source.DOCUMENT)
    with pytest.raises(ReplyFormatError, match="none of the pages that the user or the assistant said"):
        facts_of({"pages": [1]}, pages=[fetched, page(2, "Ants?")])
    assert facts_of({"pages": [1, 2]}, pages=[fetched, page(2, "Ants?")])[0].evidence == (2,)


def test_a_reply_has_a_limited_number_of_facts() -> None:
    views = [page(number, "I keep ants.") for number in range(1, LEARN_PAGES_MAX + 1)]
    asked = facts_asked(list(views))
    request = organise_request(views, Surroundings(), max_topics=4, max_prompt_tokens=9_000)
    assert f"and {asked} facts" in request.messages[0].content
    assert len(facts_of(*({"text": f"Ants {n}"} for n in range(asked + 5)), pages=views)) == asked


def test_prompts_name_speakers_and_use_only_user_statements() -> None:
    around = Surroundings(None, speakers=Speakers("Ada", "Ben"))
    views = [page(1, "I keep ants."), page(2, "They are black.")]
    filing = organise_request(views, around, max_topics=4, max_prompt_tokens=9_000).messages[1].content
    assert filing.splitlines()[0] == '{"names":{"user":"Ada","assistant":"Ben"}}'
    assert filing.count('"time"') == 1  # both facts are of the same day
    judging = learn_request(views, Surroundings(is_read=True), dimensions=(), max_prompt_tokens=9_000)
    assert "I see." not in judging.messages[1].content
    assert judging.form is not None
    assert judging.form.schema["required"] == ["traits"]


# Words ---------------------------------------------------------------------------------------------------------------


async def test_new_keywords_are_merged_into_a_changed_segment() -> None:
    shown = segment(3, "A bowl was glazed.")
    topic = Topic(Digest(("glaze",), "A bowl was glazed and a vase thrown."), (1,), shown)

    async def pages() -> list[Page]:
        return []

    async with running_llm_server() as server, asking(server) as analyst:
        assert (await analyst.joined_digest(shown, [topic], pages)).summary == topic.digest.summary
        grown = replace(shown, summary="A bowl was glazed, and a kiln was bought.")
        both = (await analyst.joined_digest(grown, [topic], pages)).summary
    assert grown.summary in both
    assert topic.digest.summary in both
