"""The ranking of facts; facts that are no longer valid are only returned for questions about the past."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from memoryos_mcp.config import Settings
from memoryos_mcp.engine.engine import MemoryEngine
from memoryos_mcp.engine.service import MemoryService
from memoryos_mcp.engine.tools.arguments import RetrieveMemoryArguments
from memoryos_mcp.engine.tools.core_tools import retrieve_memory
from memoryos_mcp.model.knowledge import About, AddFact, Fact, Kind, Lessons, speakers_of
from memoryos_mcp.retrieval.fact_ranking import FactTable, asks_past, best_of
from memoryos_mcp.retrieval.query import ParsedQuery
from memoryos_mcp.retrieval.query_time import time_spans
from memoryos_mcp.storage.values import Learning
from memoryos_mcp.text.addressees import Speakers
from memoryos_mcp.text.terms import query_words
from tests.fakes import START, Clock, WordEmbedder

LIMIT_S = 30
POLL_S = 0.01
NOW = datetime(2026, 5, 20, tzinfo=UTC)
TODAY = (NOW - datetime(1970, 1, 1, tzinfo=UTC)).days


async def settled(engine: MemoryEngine) -> None:
    """Wait until the background work is done, so that it does not learn from the pages afterwards."""
    async with asyncio.timeout(LIMIT_S):
        stats = await engine.stats()
        while not stats.is_settled or stats.counts.unembedded:
            await asyncio.sleep(POLL_S)
            stats = await engine.stats()


@asynccontextmanager
async def memory_of(page: str, folder: Path, *lessons: AddFact) -> AsyncIterator[tuple[MemoryService, MemoryEngine]]:
    """Open a memory with one page, from which these facts were learned one after another."""
    settings = Settings(data_storage_path=folder, short_term_capacity=0)
    async with (
        MemoryService(settings, clock=Clock(), embedder=WordEmbedder()) as service,
        service.user("ada") as engine,
    ):
        await engine.add(page, "Noted.")
        await settled(engine)
        async with engine._worker._lease.hold() as lease:
            assert lease is not None
            for fact in lessons:
                await engine._store.commit(lease, Learning((1,), (1,), Lessons((), (fact,)), (), "test"))
        yield service, engine


def asked(query: str, counts: Mapping[str, int] | None = None) -> ParsedQuery:
    found = counts or dict.fromkeys(query_words(query), 1)
    times = time_spans(query, NOW)
    return ParsedQuery(
        query,
        None,
        found,
        10,
        times,
        is_for_several=False,
        is_for_course=False,
        is_english=True,
        embedded=None,
        weights=np.zeros(0),
    )


def fact(number: int, text: str, since: datetime = NOW) -> Fact:
    return Fact(number, About.USER, text, None, since, None, (), None)


@pytest.mark.parametrize(
    "query",
    [
        "Where did I live before?",
        "What did I use to drink? I used to like tea",
        "my previous job",
        "Wo habe ich früher gewohnt?",
        "Where did I work in 2019?",
        "What was I learning last year?",
        "以前住在哪里？",
        "Где я жил раньше?",
    ],
)
def test_queries_about_the_past_are_recognised(query: str) -> None:
    assert asks_past(query, asked(query), TODAY)


@pytest.mark.parametrize(
    "query", ["Where do I live?", "What is my job?", "Wo wohne ich?", "我住在哪里？", "this month"]
)
def test_other_queries_are_about_the_present(query: str) -> None:
    assert not asks_past(query, asked(query), TODAY)


def test_rare_query_words_rank_a_fact_first() -> None:
    facts = [fact(1, "I like tea."), fact(2, "I like the samovar."), fact(3, "I live in Lisbon.")]
    query = asked("Which tea, which samovar?", {"tea": 9, "samovar": 1})
    ranked = FactTable(facts).ranked(query)
    assert [recalled.fact.fact for recalled in ranked] == [2, 1, 3]
    assert ranked[0].score > ranked[1].score > ranked[2].score == 0


def test_the_newest_of_equal_facts_comes_first() -> None:
    facts = [fact(1, "I like tea."), fact(2, "We like tea.")]
    assert [recalled.fact.fact for recalled in FactTable(facts).ranked(asked("tea"))] == [2, 1]
    assert FactTable().ranked(asked("tea")) == []


def test_a_fact_from_the_time_in_the_query_comes_first() -> None:
    facts = [fact(1, "I moved.", NOW - timedelta(days=400)), fact(2, "I moved.", datetime(2026, 2, 3, tzinfo=UTC))]
    ranked = FactTable(facts).ranked(asked("Where did I move in February 2026?"))
    assert [recalled.fact.fact for recalled in ranked] == [2, 1]


def test_an_archived_fact_ranks_below_an_equal_current_one() -> None:
    facts = [fact(1, "I like tea."), replace(fact(2, "I like tea a lot."), is_archived=True), fact(3, "I ski.")]
    ranked = FactTable(facts).ranked(asked("Do I like tea?"))
    assert [recalled.fact.fact for recalled in ranked] == [1, 2, 3]
    assert ranked[0].score > ranked[1].score > ranked[2].score


def test_a_fact_that_has_ended_is_not_ranked() -> None:
    ended = replace(fact(1, "I like tea.", NOW - timedelta(days=2)), valid_until=NOW - timedelta(days=1))
    table = FactTable([ended, fact(2, "I like tea.")])
    assert [recalled.fact.fact for recalled in table.ranked(asked("tea"), NOW)] == [2]
    assert [recalled.fact.fact for recalled in table.ranked(asked("tea"))] == [2, 1]


def test_facts_of_both_sides_share_one_ranking() -> None:
    mine = [fact(number, f"I saw the bridge, day {number}.") for number in range(1, 6)]
    yours = [replace(fact(number, "I promised tea."), about=About.ASSISTANT) for number in range(6, 9)]
    query = asked("Who promised tea?", {"promised": 1, "tea": 1})
    best = best_of(FactTable(mine).ranked(query), FactTable(yours).ranked(query))
    assert [recalled.fact.fact for recalled in best] == [8, 7, 6]


def test_at_least_three_facts_are_returned() -> None:
    best = best_of(FactTable([fact(number, "I ski.") for number in range(1, 6)]).ranked(asked("Where is the tea?")))
    assert len(best) >= 3


def test_valid_wishes_come_newest_first_and_are_not_ranked() -> None:
    wish = replace(fact(1, "Answer in metric units."), kind=Kind.WISH)
    ended = replace(wish, fact=2, valid_until=NOW - timedelta(days=1))
    newer = replace(wish, fact=3, text="No emojis.")
    table = FactTable([wish, ended, newer, fact(4, "I like metric units.")])
    assert [recalled.fact.fact for recalled in table.wishes(NOW)] == [3, 1]
    assert [recalled.fact.fact for recalled in table.ranked(asked("metric units"), NOW)] == [4]


def test_the_last_stated_name_is_used() -> None:
    ended = replace(fact(3, "My name is Kim."), slot="name", valid_until=NOW - timedelta(days=1))
    facts = [replace(fact(1, "I'm Ada."), slot="name"), fact(2, "I'm Bob's sister."), ended]
    assert speakers_of(FactTable(facts).named(NOW)).user == "Ada"
    assert speakers_of(FactTable(facts[1:]).named(NOW)).user is None


def test_a_wished_name_is_preferred_to_a_stated_name() -> None:
    wished = replace(fact(1, "Call me Al."), slot="called", kind=Kind.WISH)
    coach = replace(fact(2, "From now on your name is Max."), slot="assistant called", kind=Kind.WISH)
    facts = [wished, coach, replace(fact(3, "My name is Albert."), slot="name")]
    assert speakers_of(FactTable(facts).named(NOW)) == Speakers(user="Al", agent="Max")


async def test_a_question_about_the_past_finds_superseded_facts(tmp_path: Path) -> None:
    porto = AddFact(About.USER, "I live in Porto.", "lives in", START, evidence=(1,))
    lisbon = AddFact(About.USER, "I live in Lisbon.", "lives in", START, evidence=(1,), supersedes=(1,))
    async with memory_of("Good morning!", tmp_path, porto, lisbon) as (_, engine):
        now = await engine.retrieve("Where do I live?")
        assert [recalled.fact.text for recalled in now.user_facts] == ["I live in Lisbon."]
        then = await engine.retrieve("Where did I live before?")
        past = {recalled.fact.text: recalled.fact.valid_until for recalled in then.user_facts}
        assert past.keys() == {"I live in Lisbon.", "I live in Porto."}
        assert past["I live in Porto."] is not None


async def test_a_fact_finds_the_page_that_it_was_learned_from(tmp_path: Path) -> None:
    settings = Settings(data_storage_path=tmp_path, short_term_capacity=0)
    facts = ["My dog is called Rex.", "My boat has a red sail.", "My sister paints walls."]
    async with (
        MemoryService(settings, clock=Clock(), embedder=WordEmbedder()) as service,
        service.user("ada") as engine,
    ):
        for number in range(30):
            await engine.add(f"Number {number} was on the list.", "Noted.")
        await settled(engine)
        asked_before = await engine.retrieve("Which dog do I have?", max_results=30)
        async with engine._worker._lease.hold() as lease:
            assert lease is not None
            for seq, text in zip((7, 17, 27), facts, strict=True):
                learned = AddFact(About.USER, text, None, START, evidence=(seq,))
                await engine._store.commit(lease, Learning((seq,), (seq,), Lessons((), (learned,)), (), "test"))
        engine._worker.knowledge_changed()
        async with asyncio.timeout(LIMIT_S):
            while (await engine._store.unembedded(1)).facts:  # noqa: ASYNC110 - another task's state
                await asyncio.sleep(POLL_S)
        found = await engine.retrieve("Which dog do I have?", max_results=30)
    shares = {recalled.page.seq: recalled.shares["told"] for recalled in found.pages}
    assert all("told" not in recalled.shares for recalled in asked_before.pages)
    assert found.pages[0].page.seq == 7
    assert [seq for seq, share in shares.items() if share > 0] == [7]
    assert {share for seq, share in shares.items() if seq != 7} == {0.0}


async def test_every_retrieval_contains_wishes_and_the_stated_name(tmp_path: Path) -> None:
    wish = AddFact(About.USER, "Answer in metric units.", None, START, evidence=(1,), kind=Kind.WISH)
    name = AddFact(About.USER, "My name is Ada.", "name", START, evidence=(1,))
    async with memory_of("The ferry leaves at nine.", tmp_path, wish, name) as (service, _):
        answer = await retrieve_memory(service, "ada", RetrieveMemoryArguments(query="When does the ferry leave?"))
    lines = answer.text.splitlines()
    assert lines[2:4] == ["## What the user wants in every answer", "- Answer in metric units. (2026-05-08)"]
    assert "User (Ada): The ferry leaves at nine." in lines
    kinds = [fact["kind"] for fact in answer.result.model_dump()["retrieved_user_knowledge"]]
    assert kinds == ["wish", "statement"]
