"""Properties of every retrieval, with real SQLite files and the real model."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from memoryos_mcp.consolidation import embedding as embedding_step
from memoryos_mcp.model.pages import estimate_tokens
from memoryos_mcp.retrieval.recall import Recall
from memoryos_mcp.text.quoting import topic_line
from tests.fakes import START
from tests.memories import STEADY_HEAT, UNFILED, LentEmbedder, Memory, Said, memory

pytestmark = [pytest.mark.campaign, pytest.mark.asyncio(loop_scope="module")]

LIMIT_S = 60
ALL: dict[str, Any] = {"max_results": 100, "max_tokens": 1_000_000}
SCORE_TOLERANCE = 1e-3
ROUNDING = 0.5e-4

WORDS = (
    "river harbour kiln bowl chess opening violin sonata bee honey train Lisbon Porto garden tomato cat piano soup tax "
    "I we my the a went played lost found likes never yesterday 12 2023"
).split()
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=14).map(" ".join)
turns = st.tuples(texts, st.one_of(st.just("I see."), st.just(""), texts), st.sampled_from([0, 0, 0, 1, 30]))
memories = st.lists(turns, min_size=10, max_size=40)
queries = st.one_of(
    texts,
    st.sampled_from(["Who keeps bees?", "Where did we go in May?", "the", "How many trains were there in all?", "🐝"]),
)
# An example of a whole memory takes a second, so failing examples are not shrunk, which would take minutes.
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
few = settings(max_examples=4, phases=PHASES, deadline=None, suppress_health_check=list(HealthCheck))
some = settings(few, max_examples=15)
many = settings(few, max_examples=100)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def embedder() -> AsyncIterator[LentEmbedder]:
    lent = LentEmbedder()
    async with asyncio.timeout(LIMIT_S):
        await lent.load()
    yield lent
    await lent.end()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def diary(tmp_path_factory: pytest.TempPathFactory, embedder: LentEmbedder) -> AsyncIterator[Memory]:
    """A memory of short and long pages, some of them similar, with facts, notes and short-term memory."""
    folder = tmp_path_factory.mktemp("diary")
    async with memory(folder, embedder, short_term_capacity=5) as kept:
        async with asyncio.timeout(LIMIT_S):
            for number in range(30):
                long = f"On day {number} the kiln in Lisbon was cold. " * (2 * number if number % 4 == 0 else 1)
                said = f"I am allergic to peanuts. {WORDS[number % 19]} and {WORDS[number % 7]}."
                at = START - timedelta(hours=40 - number)
                await kept.engine.add(said, long, timestamp=at, meta_data={"number": number, "note": "x" * number})
            await kept.add([Said("The cat likes the piano.")] * 3)
            await kept.add([Said("語" * 4_000, "🐝" * 1_000), Said("The kiln is hot again.")])
            await kept.settled()
        yield kept


def dated(drawn: Sequence[tuple[str, str, int]]) -> list[Said]:
    """Return turns with a number of hours between them."""
    at = START - timedelta(days=60)
    said = []
    for user_input, agent_response, hours in drawn:
        at += timedelta(hours=hours, minutes=1)
        said.append(Said(user_input, agent_response, at))
    return said


def told(memory_ids: Sequence[str], recall: Recall) -> dict[int, Mapping[str, float]]:
    """Return the contribution of each signal to the score of each found page, by the page's order of arrival."""
    return {memory_ids.index(found.page.page_id): found.shares for found in recall.pages}


def order(memory_ids: Sequence[str], recall: Recall) -> list[int]:
    return [memory_ids.index(found.page.page_id) for found in recall.pages]


def assert_alike(first: Mapping[int, Mapping[str, float]], second: Mapping[int, Mapping[str, float]]) -> None:
    """Assert that the same pages have the same signals."""
    assert first.keys() == second.keys()
    for number, shares in first.items():
        assert second[number] == pytest.approx(shares, abs=SCORE_TOLERANCE)


def assert_ranked_alike(first_ids: Sequence[str], first: Recall, second_ids: Sequence[str], second: Recall) -> None:
    """Assert that the same pages have the same order, scores and signals."""
    assert order(first_ids, first) == order(second_ids, second)
    assert_alike(told(first_ids, first), told(second_ids, second))
    scores = [[found.score for found in recall.pages] for recall in (first, second)]
    assert scores[0] == pytest.approx(scores[1], abs=SCORE_TOLERANCE)
    assert first.recipe == second.recipe


async def grown(kept: Memory, said: Sequence[Said], pauses: frozenset[int]) -> list[str]:
    """Add turns; after some of them, wait until the background work is done."""
    ids: list[str] = []
    for number, turn in enumerate(said):
        ids += await kept.add([turn])
        if number in pauses:
            await kept.settled()
    await kept.settled()
    return ids


# Equal rankings ----------------------------------------------------------------------------------------------


@few
@given(
    drawn=memories,
    asked=st.lists(queries, min_size=2, max_size=4),
    steps=st.tuples(st.integers(1, 5), st.integers(6, 16)),
    pauses=st.frozensets(st.integers(0, 40), max_size=2),
)
async def test_the_batches_of_embedding_do_not_change_the_ranking(
    tmp_path_factory: pytest.TempPathFactory,
    embedder: LentEmbedder,
    drawn: list[tuple[str, str, int]],
    asked: list[str],
    steps: tuple[int, int],
    pauses: frozenset[int],
) -> None:
    found: list[tuple[list[str], list[Recall]]] = []
    for step_pages, pauses_here in zip(steps, (pauses, frozenset[int]()), strict=True):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(embedding_step, "PAGES_PER_STEP", step_pages)
            # Only whole batches are filed, so that the topics are the same.
            alike: dict[str, Any] = {**STEADY_HEAT, "consolidation_idle_s": UNFILED["consolidation_idle_s"]}
            async with asyncio.timeout(LIMIT_S), memory(tmp_path_factory.mktemp("batched"), embedder, **alike) as kept:
                ids = await grown(kept, dated(drawn), pauses_here)
                found.append((ids, [await kept.engine.retrieve(query, **ALL) for query in asked]))
    for first, second in zip(found[0][1], found[1][1], strict=True):
        assert first.is_semantic
        assert len(first.pages) == len(drawn)
        assert any(page.segment for page in first.pages)
        assert_ranked_alike(found[0][0], first, found[1][0], second)


@few
@given(drawn=memories, asked=st.lists(queries, min_size=2, max_size=4), batch_pages=st.integers(1, 12))
async def test_restart_and_filing_do_not_change_the_other_signals(
    tmp_path_factory: pytest.TempPathFactory,
    embedder: LentEmbedder,
    drawn: list[tuple[str, str, int]],
    asked: list[str],
    batch_pages: int,
) -> None:
    folder = tmp_path_factory.mktemp("filed")
    async with asyncio.timeout(LIMIT_S):
        async with memory(folder, embedder, **STEADY_HEAT, **UNFILED) as kept:
            ids = await grown(kept, dated(drawn), frozenset())
            unfiled = [await kept.engine.retrieve(query, **ALL) for query in asked]
        async with memory(folder, embedder, **STEADY_HEAT, **UNFILED) as kept:
            await kept.settled()
            restarted = [await kept.engine.retrieve(query, **ALL) for query in asked]
        async with memory(folder, embedder, **STEADY_HEAT, consolidation_batch_pages=batch_pages) as kept:
            assert (await kept.settled()).counts.backlog == 0
            filed = [await kept.engine.retrieve(query, **ALL) for query in asked]
    for before, same, after in zip(unfiled, restarted, filed, strict=True):
        assert before.is_semantic
        assert after.pages[0].segment is not None
        assert_ranked_alike(ids, before, ids, same)
        assert_alike(told(ids, before), told(ids, after))
        # Filing changes a score only by its own signals.
        assert {found.page.seq: found.score for found in after.pages} == pytest.approx(
            {found.page.seq: sum(found.shares.values()) for found in after.pages}, abs=SCORE_TOLERANCE
        )


@few
@given(drawn=memories, asked=st.lists(queries, min_size=2, max_size=4))
async def test_two_services_on_one_folder_rank_equally(
    tmp_path_factory: pytest.TempPathFactory,
    embedder: LentEmbedder,
    drawn: list[tuple[str, str, int]],
    asked: list[str],
) -> None:
    folder, said = tmp_path_factory.mktemp("shared"), dated(drawn)
    half = len(said) // 2
    async with (
        asyncio.timeout(LIMIT_S),
        memory(folder, embedder, **STEADY_HEAT) as first,
        memory(folder, embedder, **STEADY_HEAT) as second,
    ):
        ids = await grown(first, said[:half], frozenset())
        await second.settled()
        ids += await grown(second, said[half:], frozenset())
        await first.settled()
        for query in asked:
            recalls = [await kept.engine.retrieve(query, **ALL) for kept in (first, second)]
            assert len(recalls[0].pages) == len(said)
            assert_ranked_alike(ids, recalls[0], ids, recalls[1])


# Budget and repeats ---------------------------------------------------------------------------------------------


def returned_tokens(recall: Recall) -> int:
    """Return the tokens of all returned texts."""
    pages = [*recall.short_term, *recall.pages]
    told_once = [topic_line(segment.summary) for segment, _ in recall.segments] if recall.has_topics else []
    facts = [found.fact.text for found in (*recall.wishes, *recall.user_facts, *recall.assistant_facts)]
    traits = [f"{trait.dimension}: {trait.level} - {trait.reason}" for trait in recall.traits]
    notes = [page.notes for page in pages if page.notes]
    sides = [side for page in pages for side in (page.quote.user_input, page.quote.agent_response)]
    return sum(map(estimate_tokens, [*told_once, *facts, *traits, *notes, *sides]))


def assert_sound(recall: Recall, max_results: int, max_tokens: int) -> None:
    """Assert that the budget is kept and that no page is returned twice."""
    assert returned_tokens(recall) <= recall.tokens <= max_tokens
    assert len(recall.pages) <= max_results
    seqs = [found.page.seq for found in (*recall.short_term, *recall.pages)]
    assert len(set(seqs)) == len(seqs)


@many
@given(query=queries, max_results=st.integers(1, 100), max_tokens=st.integers(100, 6_000))
async def test_no_query_exceeds_its_budget_or_returns_a_page_twice(
    diary: Memory, query: str, max_results: int, max_tokens: int
) -> None:
    async with asyncio.timeout(LIMIT_S):
        recall = await diary.engine.retrieve(query, max_results=max_results, max_tokens=max_tokens)
    assert_sound(recall, max_results, max_tokens)


async def test_the_budget_is_kept_with_all_kinds_of_memories(diary: Memory) -> None:
    async with asyncio.timeout(LIMIT_S):
        for max_tokens in range(100, 3_000, 37):
            recall = await diary.engine.retrieve("the kiln in Lisbon", max_results=100, max_tokens=max_tokens)
            assert_sound(recall, 100, max_tokens)
    assert recall.short_term
    assert recall.user_facts
    assert recall.segments
    assert any(found.quote.is_excerpt for found in recall.pages)
    assert any(found.notes for found in recall.pages)
    assert any(found.page.chain_summary for found in recall.pages)


@some
@given(
    sizes=st.lists(st.tuples(st.integers(1, 5_000), st.integers(0, 5_000)), min_size=5, max_size=15),
    units=st.tuples(*[st.sampled_from(["river ", "x", "語", "🐝 ", "A bee. ", "\n"])] * 2),
    short_term_capacity=st.integers(0, 8),
    budgets=st.lists(st.integers(100, 3_000), min_size=8, max_size=8),
)
async def test_pages_of_any_length_are_fitted_to_any_budget(
    tmp_path_factory: pytest.TempPathFactory,
    sizes: list[tuple[int, int]],
    units: tuple[str, str],
    short_term_capacity: int,
    budgets: list[int],
) -> None:
    user_unit, agent_unit = units
    folder = tmp_path_factory.mktemp("fitted")
    async with asyncio.timeout(LIMIT_S), memory(folder, None, short_term_capacity=short_term_capacity) as kept:
        await kept.add(
            [
                Said(f"river {user_unit * user_chars}"[:user_chars], (agent_unit * agent_chars)[:agent_chars])
                for user_chars, agent_chars in sizes
            ]
        )
        for max_tokens in budgets:
            recall = await kept.engine.retrieve("river bee", max_results=100, max_tokens=max_tokens)
            assert_sound(recall, 100, max_tokens)


# Signals --------------------------------------------------------------------------------------------------------


@some
@given(query=queries, max_results=st.integers(1, 30))
async def test_the_signals_that_explain_a_page_add_up_to_its_score(diary: Memory, query: str, max_results: int) -> None:
    async with asyncio.timeout(LIMIT_S):
        result = await diary.retrieve(query=query, max_results=max_results, explain=True)
    assert result.retrieved_pages
    assert result.understood is not None
    for page in result.retrieved_pages:
        assert page.signals
        assert page.score == pytest.approx(sum(page.signals.values()), abs=ROUNDING * (len(page.signals) + 1))


async def test_explain_adds_signals_and_does_not_change_results(diary: Memory) -> None:
    async with asyncio.timeout(LIMIT_S):
        plain = await diary.retrieve(query="the kiln in Lisbon", max_results=30)
        explained = await diary.retrieve(query="the kiln in Lisbon", max_results=30, explain=True)
    assert plain.understood is None
    assert plain.retrieved_pages
    assert all(page.signals is None for page in plain.retrieved_pages)
    assert [page.page_id for page in plain.retrieved_pages] == [page.page_id for page in explained.retrieved_pages]


# New pages ------------------------------------------------------------------------------------------------------


async def asked_before_and_after_embedding(
    kept: Memory, embedder: LentEmbedder, said: str, query: str = "Who spoke of a zeppelin?"
) -> tuple[str, list[str], list[str]]:
    """Add a page about a zeppelin; return its id, and the found pages before and after it is embedded."""
    embedder.gate.clear()
    try:
        [page_id] = await kept.add([Said(said, "")])
        before = await kept.engine.retrieve(query)
        assert (await kept.engine.stats()).counts.unembedded == 1
    finally:
        embedder.gate.set()
    await kept.settled()
    after = await kept.engine.retrieve(query)
    assert before.is_semantic
    first, second = ([found.page.page_id for found in recall.pages] for recall in (before, after))
    return page_id, first, second


@few
@given(drawn=memories, told_now=texts, place=st.integers(0, 14))
async def test_a_new_page_is_found_by_words_among_embedded_pages(
    tmp_path_factory: pytest.TempPathFactory,
    embedder: LentEmbedder,
    drawn: list[tuple[str, str, int]],
    told_now: str,
    place: int,
) -> None:
    words = told_now.split()
    said = " ".join([*words[:place], "zeppelin", *words[place:]])
    # Nothing is filed here, because filed pages would have an advantage over the new one.
    async with asyncio.timeout(LIMIT_S), memory(tmp_path_factory.mktemp("new"), embedder, **UNFILED) as kept:
        await grown(kept, dated(drawn), frozenset())
        page_id, before, after = await asked_before_and_after_embedding(kept, embedder, said)
    assert (before[0], after[0]) == (page_id, page_id)


async def test_a_new_page_is_found_by_words_among_filed_pages(tmp_path: Path, embedder: LentEmbedder) -> None:
    async with asyncio.timeout(LIMIT_S), memory(tmp_path, embedder) as kept:
        await kept.add([Said(f"The {one} is by the {other}.") for one in WORDS[:6] for other in WORDS[6:12]])
        assert (await kept.settled()).counts.backlog == 0
        page_id, before, after = await asked_before_and_after_embedding(kept, embedder, "A zeppelin came down here.")
    assert page_id in before
    assert after[0] == page_id


async def test_a_new_page_precedes_pages_with_similar_words(tmp_path: Path, embedder: LentEmbedder) -> None:
    async with asyncio.timeout(LIMIT_S), memory(tmp_path, embedder) as kept:
        await kept.add([Said(f"Word{number} of writer {number % 4}.") for number in range(130, 200)])
        assert (await kept.settled()).counts.backlog == 0
        page_id, before, _ = await asked_before_and_after_embedding(kept, embedder, "Word13 of writer 1.", "word13")
    assert before[0] == page_id
