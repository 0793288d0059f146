"""The whole engine with a real store: the background work organises pages, and no failure loses a page."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from memoryos_mcp.config import Settings
from memoryos_mcp.consolidation import loops, worker
from memoryos_mcp.engine.engine import MemoryEngine
from memoryos_mcp.engine.service import MemoryService
from memoryos_mcp.errors import ArgumentError, ModelError, StorageError
from memoryos_mcp.llm.analysis import Organised, Surroundings
from memoryos_mcp.model.knowledge import About, AddFact, Lessons
from memoryos_mcp.model.pages import Page
from memoryos_mcp.model.stats import Stats
from tests.fakes import START, Clock, ScriptedAnalyst, WordEmbedder
from tests.stores import rows

pytestmark = pytest.mark.both_stores(in_campaign=True)

LIMIT_S = 30


@asynccontextmanager
async def memory(
    folder: Path,
    *,
    user_id: str = "ada",
    clock: Clock | None = None,
    analyst: ScriptedAnalyst | None = None,
    embedder: WordEmbedder | None = None,
    **settings: Any,
) -> AsyncIterator[MemoryEngine]:
    chosen: dict[str, Any] = {"short_term_capacity": 3, "consolidation_batch_pages": 4, "consolidation_idle_s": 0.0}
    async with (
        asyncio.timeout(LIMIT_S),
        MemoryService(
            Settings(data_storage_path=folder, **{**chosen, **settings}),
            clock=clock or Clock(),
            analyst=analyst or ScriptedAnalyst(),
            embedder=embedder or WordEmbedder(),
        ) as service,
        service.user(user_id) as engine,
    ):
        yield engine


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait for a condition on the engine's public state; the caller sets the time limit."""
    while not await condition():  # noqa: ASYNC110 - the state is another task's, it has no event to wait for
        await asyncio.sleep(0.01)


async def settled(engine: MemoryEngine) -> Stats:
    """Wait until all pages are organised and embedded."""

    async def is_settled() -> bool:
        stats = await engine.stats()
        return stats.counts.backlog == 0 and stats.counts.unembedded == 0 and stats.is_semantic

    await until(is_settled)
    return await engine.stats()


async def add_all(engine: MemoryEngine, *said: str) -> list[str]:
    return [(await engine.add(text, "I see.")).page_id for text in said]


POTTERY = [f"My pottery class glazed bowl number {number} in the kiln." for number in range(6)]
CHESS = [f"The chess club played opening number {number} at the tournament." for number in range(6)]


async def test_pages_become_segments_in_the_background(tmp_path: Path) -> None:
    async with memory(tmp_path) as engine:
        await add_all(engine, *POTTERY, *CHESS)
        counts = (await settled(engine)).counts
        assert (counts.pages, counts.short_term, counts.mid_term) == (12, 3, 9)
        assert counts.segments >= 2
        recall = await engine.retrieve("kiln")
        assert recall.is_semantic
        assert recall.pages[0].segment is not None
        assert "pottery" in recall.pages[0].segment.keywords
        assert recall.pages[0].page.chain_summary


async def test_no_page_is_returned_twice(tmp_path: Path) -> None:
    async with memory(tmp_path) as engine:
        await add_all(engine, *POTTERY)
        await settled(engine)
        recall = await engine.retrieve("pottery class bowl", max_results=100)
        found = [page.page.page_id for page in [*recall.short_term, *recall.pages]]
        assert len(found) == len(set(found)) == 6


async def test_search_uses_keywords_without_a_model(tmp_path: Path) -> None:
    embedder = WordEmbedder()
    embedder.failure = ModelError("no model")
    async with memory(tmp_path, embedder=embedder) as engine:
        await add_all(engine, *POTTERY, *CHESS)
        recall = await engine.retrieve("kiln")
        assert not recall.is_semantic
        assert "kiln" in recall.pages[0].page.text


async def test_pages_are_organised_by_keywords_if_the_model_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "POLL_S", 0.05)
    embedder = WordEmbedder()
    embedder.failure = ModelError("no model")
    async with memory(tmp_path, embedder=embedder) as engine:
        await add_all(engine, *POTTERY)

        async def is_filed() -> bool:
            return (await engine.stats()).counts.backlog == 0

        await until(is_filed)
        stats = await engine.stats()
        assert stats.counts.pages == 6
        assert stats.health["embedding"].last_error == "no model"


async def test_all_pages_are_embedded_once_the_model_works_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loops, "FIRST_BACKOFF_S", 0.01)
    embedder, clock = WordEmbedder(), Clock()
    embedder.failure = ModelError("no model")
    async with memory(tmp_path, embedder=embedder, clock=clock) as engine:
        await add_all(engine, *POTTERY)

        async def has_failed() -> bool:
            return (await engine.stats()).health["embedding"].failed_attempts > 0

        await until(has_failed)
        embedder.failure = None
        clock.move(seconds=1)
        stats = await settled(engine)
        assert stats.health["embedding"].failed_attempts == 0


@pytest.mark.parametrize("failure", [ModelError("the LLM is down"), RuntimeError("a bug")])
async def test_an_analyst_outage_keeps_every_page_and_the_profile(
    tmp_path: Path, failure: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loops, "FIRST_BACKOFF_S", 0.01)
    analyst, clock = ScriptedAnalyst(), Clock()
    async with memory(tmp_path, analyst=analyst, clock=clock) as engine:
        analyst.failure = failure
        pages = await add_all(engine, *POTTERY)

        async def failed_attempts() -> int:
            return (await engine.stats()).health["consolidation"].failed_attempts

        async def has_failed_once() -> bool:
            return await failed_attempts() >= 1

        async def has_failed_twice() -> bool:
            # A step that finds no embedded page succeeds, which resets the count.
            clock.move(seconds=0.01)
            return await failed_attempts() >= 2

        await until(has_failed_once)
        await until(has_failed_twice)
        stats = await engine.stats()
        assert stats.health["consolidation"].failed_attempts >= 2
        assert (stats.counts.pages, stats.counts.backlog) == (len(pages), 3)
        assert (await engine.profile()).traits == []
        assert "down" not in str(stats.health["consolidation"].last_error) or isinstance(failure, ModelError)
        analyst.failure = None
        clock.move(seconds=1)
        await settled(engine)
        counts = (await engine.stats()).counts
        assert (counts.mid_term, counts.degraded) == (3, 0)


async def test_adding_and_retrieving_never_wait_for_the_analyst(tmp_path: Path) -> None:
    analyst = ScriptedAnalyst()
    analyst.gate = asyncio.Event()
    async with memory(tmp_path, analyst=analyst) as engine:
        await add_all(engine, *POTTERY)

        async def is_asked() -> bool:
            return bool(analyst.organised)

        await until(is_asked)
        await add_all(engine, *CHESS)
        assert (await engine.retrieve("chess")).pages
        analyst.gate.set()
        await settled(engine)


async def test_an_llm_gets_batches_one_after_another(tmp_path: Path) -> None:
    analyst = ScriptedAnalyst()
    analyst.gate = asyncio.Event()
    async with memory(tmp_path, analyst=analyst, short_term_capacity=0) as engine:
        await add_all(engine, *POTTERY, *CHESS)
        analyst.gate.set()
        await settled(engine)
        assert (await engine.stats()).counts.mid_term == 12
    assert sorted(analyst.organised) == analyst.organised
    assert analyst.most_organised_at_once == 1


async def test_memories_of_two_users_are_read_in_parallel(tmp_path: Path) -> None:
    analyst = ScriptedAnalyst()
    analyst.gate = asyncio.Event()
    settings = Settings(data_storage_path=tmp_path, short_term_capacity=0, consolidation_batch_pages=4)
    async with (
        asyncio.timeout(LIMIT_S),
        MemoryService(settings, clock=Clock(), analyst=analyst, embedder=WordEmbedder()) as service,
        service.user("ada") as ada,
        service.user("ben") as ben,
    ):
        await add_all(ada, *POTTERY[:4])
        await add_all(ben, *CHESS[:4])

        async def are_both_asked() -> bool:
            return analyst.most_organised_at_once == 2

        await until(are_both_asked)
        analyst.gate.set()
        assert [(await settled(engine)).counts.mid_term for engine in (ada, ben)] == [4, 4]


async def test_a_hot_segment_is_promoted_and_cools(tmp_path: Path) -> None:
    async with memory(tmp_path, short_term_capacity=0, consolidation_batch_pages=6) as engine:
        said = [f"I am allergic to peanuts. {text}" for text in POTTERY]
        page_ids = await add_all(engine, *said)
        await settled(engine)

        async def is_promoted() -> bool:
            return (await engine.stats()).top_segments[0][0].unanalysed_count == 0

        await until(is_promoted)
        (fact,) = (await engine.profile()).user_facts
        assert fact.text.rstrip(".") == "I am allergic to peanuts"
        assert set(fact.evidence) <= set(page_ids)
        segment, heat = (await engine.stats()).top_segments[0]
        assert (segment.l_interaction, segment.unanalysed_count) == (0, 0)
        assert heat < 5
        recall = await engine.retrieve("food allergy peanuts")
        assert recall.user_facts[0].fact.text == fact.text


async def test_the_largest_topic_is_first_even_if_it_is_cool(tmp_path: Path) -> None:
    async with memory(tmp_path, short_term_capacity=0, consolidation_batch_pages=6) as engine:
        await add_all(engine, *POTTERY)
        await settled(engine)

        async def is_read() -> bool:
            return (await engine.stats()).top_segments[0][0].unanalysed_count == 0

        await until(is_read)
        await add_all(engine, *CHESS[:2])
        stats = await settled(engine)
        (large, heat), (small, more_heat) = stats.top_segments
        assert large.page_count > small.page_count
        assert heat < more_heat
        assert stats.titles.keys() == {large.segment, small.segment}
        assert all(stats.titles.values())


async def test_visits_heat_a_segment_until_it_is_promoted(tmp_path: Path) -> None:
    analyst = ScriptedAnalyst()
    async with memory(tmp_path, analyst=analyst, short_term_capacity=0) as engine:
        await add_all(engine, *CHESS[:2])
        await settled(engine)
        assert analyst.learned == []
        for _ in range(3):
            await engine.retrieve("chess club")

        async def is_read() -> bool:
            return bool(analyst.learned)

        await until(is_read)


async def test_a_hot_segment_without_new_pages_does_not_block_another(tmp_path: Path) -> None:
    analyst = ScriptedAnalyst()
    async with memory(tmp_path, analyst=analyst, short_term_capacity=0, consolidation_batch_pages=6) as engine:
        await add_all(engine, *POTTERY)
        await settled(engine)
        for _ in range(8):
            await engine.retrieve("pottery kiln")
        await add_all(engine, *CHESS)
        await settled(engine)

        async def are_both_read() -> bool:
            return {seq for seqs in analyst.learned for seq in seqs} == set(range(1, 13))

        await until(are_both_read)


async def test_heat_decays_with_time(tmp_path: Path) -> None:
    clock = Clock()
    async with memory(tmp_path, clock=clock, short_term_capacity=0) as engine:
        await add_all(engine, *CHESS[:2])
        await settled(engine)
        before = (await engine.stats()).top_segments[0][1]
        clock.move(days=365)
        assert (await engine.stats()).top_segments[0][1] < before


async def test_the_coldest_segments_are_analysed_then_archived(tmp_path: Path) -> None:
    analyst = ScriptedAnalyst()
    topics = ["red pottery kiln", "green chess opening", "blue sailing harbour", "pink violin sonata"]
    async with memory(
        tmp_path, analyst=analyst, short_term_capacity=0, consolidation_batch_pages=1, mid_term_capacity=2
    ) as engine:
        for topic in topics:
            await add_all(engine, topic)
            await settled(engine)

        async def is_within() -> bool:
            return (await engine.stats()).counts.segments == 2

        await until(is_within)
        assert (await engine.stats()).counts.archived_segments == 2
        assert any(1 in read for read in analyst.learned)
        recall = await engine.retrieve("red pottery")
        assert "pottery" in recall.pages[0].page.text
        assert recall.pages[0].segment is None


async def test_chains_continue_across_batches_and_restarts(tmp_path: Path) -> None:
    for text in POTTERY:
        async with memory(tmp_path, short_term_capacity=0, consolidation_batch_pages=1) as engine:
            await add_all(engine, text)
            await settled(engine)
    async with memory(tmp_path) as engine:
        assert (await engine.stats()).counts.chains == 1


async def test_unfinished_work_continues_after_reopening(tmp_path: Path) -> None:
    analyst = ScriptedAnalyst()
    analyst.gate = asyncio.Event()
    async with memory(tmp_path, analyst=analyst) as engine:
        await add_all(engine, *POTTERY)
    async with memory(tmp_path) as engine:
        counts = (await settled(engine)).counts
        assert (counts.pages, counts.mid_term) == (6, 3)


async def test_visits_are_saved_on_close(tmp_path: Path) -> None:
    async with memory(tmp_path, short_term_capacity=0) as engine:
        await add_all(engine, *CHESS[:1])
        await settled(engine)
        await engine.retrieve("chess club")
    async with memory(tmp_path) as engine:
        assert (await engine.stats()).top_segments[0][0].n_visit == 1


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"query": " "}, "query"),
        ({"query": "x" * 20_001}, "query"),
        ({"query": "x", "max_results": 0}, "max_results"),
        ({"query": "x", "max_results": 1_000_000}, "max_results"),
        ({"query": "x", "max_tokens": 1}, "max_tokens"),
    ],
)
async def test_an_invalid_query_argument_is_named(tmp_path: Path, arguments: dict[str, Any], named: str) -> None:
    async with memory(tmp_path) as engine:
        with pytest.raises(ArgumentError, match=f"^{named}: "):
            await engine.retrieve(**arguments)


async def test_a_result_stays_within_its_token_budget(tmp_path: Path) -> None:
    async with memory(tmp_path) as engine:
        await add_all(engine, *(f"{text} " * 40 for text in POTTERY + CHESS))
        await settled(engine)
        for budget in (100, 400, 2000):
            recall = await engine.retrieve("pottery kiln", max_tokens=budget)
            assert recall.tokens <= budget
            assert any(page.quote.is_excerpt for page in (*recall.short_term, *recall.pages))


async def test_users_do_not_see_memories_of_others(tmp_path: Path) -> None:
    async with (
        MemoryService(
            Settings(data_storage_path=tmp_path), clock=Clock(), embedder=WordEmbedder(), analyst=ScriptedAnalyst()
        ) as service,
        service.user("ada") as ada,
        service.user("Ada") as other,
    ):
        await ada.add("my secret is pottery", "noted")
        recall = await other.retrieve("pottery secret")
        assert not recall.pages
        assert not recall.short_term


async def test_the_least_recently_used_user_is_closed_and_reopened(tmp_path: Path) -> None:
    settings = Settings(data_storage_path=tmp_path, max_open_users=2)
    async with MemoryService(settings, clock=Clock(), embedder=WordEmbedder(), analyst=ScriptedAnalyst()) as service:
        for name in ("a", "b", "c", "d", "a"):
            async with service.user(name) as engine:
                await engine.add(f"I am {name}", "hello")
        async with service.user("a") as engine:
            assert (await engine.stats()).counts.pages == 2


async def test_a_closed_service_refuses_calls(tmp_path: Path) -> None:
    service = MemoryService(Settings(data_storage_path=tmp_path), embedder=WordEmbedder(), analyst=ScriptedAnalyst())
    await service.close()
    with pytest.raises(StorageError, match="shutting down"):
        async with service.user("ada"):
            pass


async def test_notes_that_do_not_fit_the_budget_are_left_out(tmp_path: Path) -> None:
    async with memory(tmp_path, short_term_capacity=0) as engine:
        await engine.add("My pottery class starts.", "Good.", meta_data={"log": "x" * 60_000})
        await engine.add("My pottery kiln is hot.", "Good.", meta_data={"source": "phone"})
        await settled(engine)
        small = await engine.retrieve("pottery", max_tokens=1000)
        assert small.tokens <= 1000
        assert [page.notes for page in small.pages if page.notes] == ['{"source": "phone"}']
        large = await engine.retrieve("pottery", max_tokens=100_000)
        assert all(page.notes for page in large.pages)


async def test_an_answer_without_one_of_the_pages_files_nothing(tmp_path: Path) -> None:
    class Forgetful(ScriptedAnalyst):
        async def organise(self, batch: Sequence[Page], around: Surroundings) -> Organised:
            organised = await super().organise(batch, around)
            return replace(organised, topics=organised.topics[1:])

    async with memory(tmp_path, analyst=Forgetful(), short_term_capacity=0) as engine:
        await add_all(engine, *POTTERY)

        async def has_failed() -> bool:
            return (await engine.stats()).health["consolidation"].failed_attempts > 0

        await until(has_failed)
        stats = await engine.stats()
        assert (stats.counts.backlog, stats.counts.segments) == (6, 0)
        assert "every page of the batch exactly once" in str(stats.health["consolidation"].last_error)


async def test_an_expired_fact_is_not_retrieved(tmp_path: Path) -> None:
    class Visiting(ScriptedAnalyst):
        async def learn(self, pages: Sequence[Page], around: Surroundings) -> Lessons:
            seqs = tuple(view.seq for view in pages)
            end = START + timedelta(days=3)
            stay = AddFact(About.USER, "The user stays in a pottery village", None, START, seqs, valid_until=end)
            return Lessons((), (stay,))

    clock = Clock()
    async with memory(tmp_path, clock=clock, analyst=Visiting(), short_term_capacity=0) as engine:
        await add_all(engine, *POTTERY)

        async def is_learned() -> bool:
            return bool((await engine.profile()).user_facts) and (await engine.stats()).is_settled

        await until(is_learned)
        assert (await engine.retrieve("pottery village")).user_facts
        clock.move(days=3)
        assert (await engine.profile()).user_facts == []
        assert (await engine.retrieve("pottery village")).user_facts == []


async def test_a_closed_memory_releases_its_lease(tmp_path: Path) -> None:
    for number in range(40):
        async with memory(tmp_path, short_term_capacity=0, consolidation_batch_pages=1) as engine:
            await add_all(engine, f"{POTTERY[0]} {number}")
            for _ in range(number):
                await asyncio.sleep(0.001)
        holder = rows(tmp_path, "SELECT holder FROM lease")
        rows(tmp_path, "UPDATE lease SET holder = ''")
        assert holder == [("",)]


async def test_pages_of_a_time_named_in_the_query_come_first(tmp_path: Path) -> None:
    async with memory(tmp_path, short_term_capacity=0) as engine:
        ids = {}
        for month in range(1, 13):
            said = f"We went sailing with Ann, trip number {month}."
            receipt = await engine.add(said, "Nice.", timestamp=f"2023-{month:02}-10T12:00:00+00:00")
            ids[month] = receipt.page_id
        await settled(engine)
        for month, asked in ((5, "in May"), (9, "im September"), (2, "2023年2月")):
            recall = await engine.retrieve(f"Where did we go sailing with Ann {asked}?", max_results=3)
            assert recall.pages[0].page.page_id == ids[month]
            assert recall.pages[0].shares["time"] > 0
        plain = await engine.retrieve("Where did we go sailing with Ann?", max_results=3)
        assert all("time" not in page.shares for page in plain.pages)
