"""What an LLM tells of a batch while it files it: facts from cold pages too, new topics, words that cover all."""

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
from tests.test_benchmark_consolidation import asking
from tests.test_organising import Bench, Llm, bench, quoted, said
from tests.test_store_redo import rows

READERS = "SELECT seq, read_by, learned_by FROM pages ORDER BY seq"


class Telling(Llm):
    """Files a batch under one topic, and tells what it is to tell."""

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


async def test_cold_pages_teach_with_the_call_that_files_them(tmp_path: Path) -> None:
    llm = Telling()
    llm.knowledge = tuple(told(f"The user cannot eat food{seq}", seq) for seq in range(1, 5))
    async with bench(tmp_path, 4, llm=llm) as at:
        await read_all(at)
        assert await at.facts() == [quoted(number) for number in range(1, 5)]
        await at.organise_all()
        assert await at.facts() == [f"The user cannot eat food{seq}" for seq in range(1, 5)]
        assert llm.learned == []
        assert rows(tmp_path, READERS) == [(seq, "scripted", None) for seq in range(1, 5)]


async def test_a_batch_whose_facts_are_not_told_keeps_those_it_has(tmp_path: Path) -> None:
    llm = Telling()
    llm.knowledge = None
    async with bench(tmp_path, 4, llm=llm) as at:
        await read_all(at)
        await at.organise_all()
        assert await at.facts() == [quoted(number) for number in range(1, 5)]
        assert {reader for _, reader, _ in rows(tmp_path, READERS)} == {"extractive"}


async def test_what_is_told_twice_is_known_once(tmp_path: Path) -> None:
    llm = Telling()
    async with bench(tmp_path, 4, llm=llm) as at:
        pages = await at.store.pages(PageQuery(tier=Tier.BACKLOG, limit=4))
        reading = Reading(at.store, llm, at.fallback)
        for _ in range(2):  # the server ended after the first, before the pages were filed
            await reading.keep(at.lease, pages, [told("The user keeps ants", 1)])
        assert await at.facts() == ["The user keeps ants"]


async def test_who_files_is_shown_what_pages_before_have_told(tmp_path: Path) -> None:
    llm = Telling()
    llm.knowledge = (told("The user keeps ants", 1),)
    async with bench(tmp_path, 4, llm=llm) as at:
        await read_all(at)
        await at.organise_all()
        assert llm.known == []  # what these pages say it is to tell itself
        llm.knowledge = ()
        await at.store.add_pages([Turn(said(number), "", START) for number in range(5, 9)])
        await read_all(at)
        await at.organise_all()
        assert llm.known == ["The user keeps ants"]


async def test_an_llm_that_comes_later_is_shown_what_was_known_without_it(tmp_path: Path) -> None:
    llm = Telling()
    async with bench(tmp_path, 2, llm=llm) as at:
        await read_all(at)  # by the fallback, when there was no key
        await at.store.add_pages([Turn(quoted(3), "Noted.", START + timedelta(days=1))])
        await read_all(at)
        known = await Reading(at.store, llm, at.fallback).known_at(
            [(await at.store.pages(PageQuery(tier=Tier.BACKLOG, limit=9)))[-1]], at.lease.forget_epoch
        )
        assert [fact.text for fact in known.facts] == [quoted(1), quoted(2)]


async def test_a_page_that_cannot_be_read_holds_up_no_other(tmp_path: Path) -> None:
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


async def test_of_two_answers_the_newer_holds_in_whatever_order_they_are_read(tmp_path: Path) -> None:
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


async def test_more_about_one_of_the_family_takes_nobodys_place(tmp_path: Path) -> None:
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


async def test_a_topic_that_is_said_to_be_new_is_new_though_the_score_fits(tmp_path: Path) -> None:
    llm = Telling()
    async with bench(tmp_path, 4, llm=llm) as at:
        await at.organise_all()
        for llm.apart_from, sizes in ((frozenset(), [8]), (frozenset({1}), [8, 4])):
            await at.store.add_pages([Turn(said(number), "", START) for number in range(4)])
            await at.organise_all()
            assert [segment.page_count for segment in await at.store.segments()] == sizes


async def test_a_segment_that_is_full_is_closed(tmp_path: Path) -> None:
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


def test_the_empty_name_keeps_a_topic_from_all_segments_that_were_shown() -> None:
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
def test_times_are_kept_as_exactly_as_they_were_said(
    since: str, until: str, kept: tuple[str | None, str | None]
) -> None:
    (fact,) = facts_of({"since": since, "until": until})
    assert (fact.said_since, fact.said_until) == kept


def test_only_what_the_user_is_has_a_slot_and_a_wish_has_none() -> None:
    slots = ["lives", "family:daughter:Mia", "hobby", "family:", "lives"]
    kinds = ["statement"] * 4 + ["wish"]
    found = facts_of(*({"slot": slot, "kind": kind} for slot, kind in zip(slots, kinds, strict=True)))
    assert [fact.slot for fact in found] == ["lives", "family:daughter:Mia", None]
    wish = facts_of({"slot": "lives", "kind": "wish"})[0]
    assert (wish.slot, wish.kind) == (None, Kind.WISH)


def test_a_wish_for_a_name_is_known_as_one() -> None:
    wish = {"kind": "wish", "slot": "", "text": "Ada keeps ants and wants to be called Al."}
    (named,) = facts_of(wish)
    assert named.slot == "called"


def test_nothing_is_learned_from_what_was_fetched() -> None:
    fetched = page(1, "Ada keeps ants", Source.DOCUMENT)
    with pytest.raises(ReplyFormatError, match="none of the pages shown that was said"):
        facts_of({"pages": [1]}, pages=[fetched, page(2, "Ants?")])
    assert facts_of({"pages": [1, 2]}, pages=[fetched, page(2, "Ants?")])[0].evidence == (2,)


def test_a_reply_holds_no_more_facts_than_were_asked_for() -> None:
    views = [page(number, "I keep ants.") for number in range(1, LEARN_PAGES_MAX + 1)]
    asked = facts_asked(list(views))
    request = organise_request(views, Surroundings(), max_topics=4, max_prompt_tokens=9_000)
    assert f"and {asked} facts" in request.messages[0].content
    assert len(facts_of(*({"text": f"Ants {n}"} for n in range(asked + 5)), pages=views)) == asked


def test_prompts_say_who_speaks_and_of_the_profile_only_what_the_user_said() -> None:
    around = Surroundings(None, speakers=Speakers("Ada", "Ben"))
    views = [page(1, "I keep ants."), page(2, "They are black.")]
    filing = organise_request(views, around, max_topics=4, max_prompt_tokens=9_000).messages[1].content
    assert filing.splitlines()[0] == '{"names":{"user":"Ada","assistant":"Ben"}}'
    assert filing.count('"time"') == 1  # both are of one day
    judging = learn_request(views, Surroundings(is_read=True), dimensions=(), max_prompt_tokens=9_000)
    assert "I see." not in judging.messages[1].content
    assert judging.form is not None
    assert judging.form.schema["required"] == ["traits"]


# Words ---------------------------------------------------------------------------------------------------------------


async def test_words_for_a_segment_that_others_have_joined_meanwhile_are_added_to_its_own() -> None:
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
