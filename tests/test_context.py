"""Results of retrieve_memory, with a real store and the bundled model."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from mcp_types import CallToolResult, TextContent

from memoryos_mcp.config import Settings
from memoryos_mcp.consolidation import worker
from memoryos_mcp.engine.service import MemoryService
from memoryos_mcp.model.pages import estimate_tokens
from tests.fakes import START
from tests.memories import POLL_S, UNFILED, USER, LentEmbedder, Memory, Said, memory

LIMIT_S = 60
ON_THEIR_LOOP = pytest.mark.asyncio(loop_scope="module")  # a memory's background runs on the loop that opened it
# The settings of UNFILED, for a process.
QUIET = {"short_term_capacity": 0, "consolidation_idle_s": 3600, "consolidation_batch_pages": 100}
MIXED = (
    ("I'm allergic to peanuts and shellfish, so I never eat them.", "Good to know: no peanuts and no shellfish."),
    ("What time is it in Tokyo when it is noon here?", "In winter it is eight in the evening there."),
    ("Write me a haiku about frogs.", "Old silent green pond, a frog leaps into the night, rings of water spread."),
    ("My bike has a flat tyre again.", "Check the rim tape before you put a new tube in."),
    ("Which gift would suit a ten year old who likes space?", "A planisphere, or a small pair of binoculars."),
    ("How do I sort a list in Python?", "Use sorted(), with a key if you need one."),
    ("I can't have dairy either, my stomach won't take it.", "Then oat milk is a safe choice."),
    ("The train to work was late by forty minutes.", "You may be able to claim a part of the fare."),
    ("Translate good morning into Finnish.", "Hyvää huomenta."),
    ("I planted tulip bulbs along the fence.", "They will come up in April."),
    ("How far away is the moon?", "About 384,000 kilometres."),
    ("My doctor told me not to eat grapefruit with my pills.", "Yes, it changes how they work."),
    ("Can you name three rivers in France?", "The Loire, the Rhone and the Garonne."),
    ("I'd like to learn the cello one day.", "Renting one for a year is a good beginning."),
    ("What does RSVP stand for?", "Répondez s'il vous plaît."),
    ("The washing machine makes a loud noise.", "The bearings may be worn."),
    ("Remind me how long pasta takes.", "Ten minutes for most shapes."),
    ("The neighbours have a new puppy.", "Expect a few lively nights."),
)
LONG = "The talk went on about drums, trumpets and the weather of the week before. " * 15


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def embedder() -> AsyncIterator[LentEmbedder]:
    lent = LentEmbedder()
    yield lent
    await lent.end()


@asynccontextmanager
async def filled(
    folder: Path, embedder: LentEmbedder, said: Iterable[tuple[str, str]], **settings: Any
) -> AsyncIterator[Memory]:
    """Open a memory with one page a day, which are not filed."""
    first = START - timedelta(days=60)
    turns = [Said(user, assistant, first + timedelta(days=day)) for day, (user, assistant) in enumerate(said)]
    async with asyncio.timeout(LIMIT_S), memory(folder, embedder, **UNFILED, **settings) as opened:
        await opened.add(turns)
        await embedded(opened)
        yield opened


async def embedded(opened: Memory) -> None:
    while (await opened.engine.stats()).counts.unembedded:  # noqa: ASYNC110 - another task's state
        await asyncio.sleep(POLL_S)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def mixed(tmp_path_factory: pytest.TempPathFactory, embedder: LentEmbedder) -> AsyncIterator[Memory]:
    async with filled(tmp_path_factory.mktemp("mixed"), embedder, MIXED) as opened:
        yield opened


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def talk(tmp_path_factory: pytest.TempPathFactory, embedder: LentEmbedder) -> AsyncIterator[Memory]:
    """The mixed pages in one conversation; the first five of them are among the newest seven."""
    async with memory(tmp_path_factory.mktemp("talk"), embedder, **UNFILED, short_term_capacity=7) as opened:
        await opened.add(Said(user, assistant) for user, assistant in (*MIXED[5:], *MIXED[:5]))
        await embedded(opened)
        yield opened


async def retrieved(opened: Memory, **arguments: Any) -> tuple[dict[str, Any], str]:
    """Return the structured result and the text of a retrieval."""
    result = await opened.call_retrieve(**arguments)
    assert not result.is_error
    assert result.structured_content is not None
    return result.structured_content, text_of(result)


def text_of(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


@ON_THEIR_LOOP
async def test_irrelevant_pages_are_omitted(mixed: Memory) -> None:
    found, text = await retrieved(mixed, query="what must I not eat?")
    said = [page["user_input"] for page in found["retrieved_pages"]]
    assert 3 <= len(said) <= len(MIXED) // 2
    assert {MIXED[0][0], MIXED[11][0]} <= set(said)
    assert "Tokyo" not in text
    assert "haiku" not in text
    assert found["left_out"] is None


@ON_THEIR_LOOP
async def test_irrelevant_recent_pages_are_omitted(talk: Memory) -> None:
    found, text = await retrieved(talk, query="what must I not eat?")
    said = [page["user_input"] for page in (*found["short_term_memory"], *found["retrieved_pages"])]
    assert {MIXED[0][0], MIXED[11][0]} <= set(said)
    assert len(said) <= len(MIXED) // 2
    assert not {"Tokyo", "haiku"} & set(re.findall(r"\w+", text))
    assert found["left_out"] is None
    assert [page["user_input"] for page in found["short_term_memory"]] == [MIXED[n][0] for n in (0, 3, 4)]


@ON_THEIR_LOOP
async def test_the_last_two_pages_are_always_included(talk: Memory) -> None:
    found, _ = await retrieved(talk, query="How do I sort a list in Python?")
    newest = [page["user_input"] for page in found["short_term_memory"]]
    assert newest[-2:] == [MIXED[3][0], MIXED[4][0]]


@ON_THEIR_LOOP
async def test_recent_pages_count_towards_a_given_number(talk: Memory) -> None:
    found, _ = await retrieved(talk, query="what must I not eat?", max_results=30)
    said = [page["user_input"] for page in (*found["short_term_memory"], *found["retrieved_pages"])]
    assert sorted(said) == sorted(user for user, _ in MIXED)
    few, _ = await retrieved(talk, query="what must I not eat?", max_results=2)
    assert len(few["retrieved_pages"]) == 2
    assert len(few["short_term_memory"]) < 5


@ON_THEIR_LOOP
async def test_the_requested_number_of_pages_is_returned(tmp_path: Path, embedder: LentEmbedder) -> None:
    said = [(f"Concert number {number}: {LONG[:700]}", f"Tell me more. {LONG[:700]}") for number in range(11)]
    async with filled(tmp_path, embedder, said) as opened:
        found, _ = await retrieved(opened, query="the concert with trumpets", max_results=10)
        assert len(found["retrieved_pages"]) == 10
        found, text = await retrieved(opened, query="the concert with trumpets", max_results=10, max_tokens=1000)
        assert len(found["retrieved_pages"]) < 10
        assert estimate_tokens(text) <= 1000


@ON_THEIR_LOOP
@pytest.mark.parametrize("others", [0, 30])
async def test_more_than_ten_short_pages_are_returned(tmp_path: Path, embedder: LentEmbedder, others: int) -> None:
    said = [(f"I heard concert {number} in the park.", "How was it?") for number in range(30)]
    said += [(f"I repaired chair {number} in the kitchen.", "Well done.") for number in range(others)]
    async with filled(tmp_path, embedder, said) as opened:
        found, _ = await retrieved(opened, query="Which concerts did I hear in the park?")
        assert 10 < len(found["retrieved_pages"]) <= 20
    async with filled(tmp_path, embedder, [], retrieval_queue_capacity=12) as opened:
        found, _ = await retrieved(opened, query="Which concerts did I hear in the park?")
        assert len(found["retrieved_pages"]) == 12


@ON_THEIR_LOOP
async def test_pages_like_the_best_rank_higher_if_a_course_is_asked_for(tmp_path: Path, embedder: LentEmbedder) -> None:
    said = [
        ("The renovation of our kitchen begins on Monday.", "How exciting! Who does the work?"),
        ("The kitchen renovation is late: the plumber found a leak.", "Oh no. How long will it take?"),
        ("The tiles came today, and the worktop was cut to size.", "So the walls come next?"),
        ("The train to Lyon was full, so I stood.", "How tiring."),
        ("My violin needs a new string.", "Which one broke?"),
        ("I planted beans beside the fence.", "They like the sun."),
    ]
    async with filled(tmp_path, embedder, said) as opened:
        found, _ = await retrieved(
            opened, query="Summarise how the kitchen renovation went", explain=True, max_results=6
        )
        shares = {page["user_input"]: page["signals"]["like_best"] for page in found["retrieved_pages"]}
        assert {*sorted(shares, key=lambda said: -shares[said])[:3]} == {user for user, _ in said[:3]}
        found, _ = await retrieved(opened, query="Who found the leak?", explain=True)
        assert not any("like_best" in page["signals"] for page in found["retrieved_pages"])


@ON_THEIR_LOOP
async def test_omissions_are_counted_and_can_be_requested(tmp_path: Path, embedder: LentEmbedder) -> None:
    said = [(f"I heard concert {number}. {LONG[:700]}", "How was it?") for number in range(16)]
    async with filled(tmp_path, embedder, said) as opened:
        query = "Which concerts did I hear?"
        found, text = await retrieved(opened, query=query, max_tokens=300)
        left_out = found["left_out"]
        assert left_out["pages"] > 0
        assert f"{left_out['pages']} pages" in text.splitlines()[-1]
        assert f"max_tokens={left_out['max_tokens']}" in text.splitlines()[-1]
        whole, text = await retrieved(opened, query=query, max_tokens=left_out["max_tokens"])
        assert whole["left_out"] is None
        assert not any(page["excerpt"] for page in whole["retrieved_pages"])
        assert estimate_tokens(text) <= left_out["max_tokens"]


@ON_THEIR_LOOP
async def test_a_page_that_fits_is_whole(tmp_path: Path, embedder: LentEmbedder) -> None:
    said = [
        (f"About the oboe: {LONG * 2}{LONG[:1_000]}", "I see."),
        *((f"Note {n}: {LONG}", "I see.") for n in range(6)),
    ]
    async with filled(tmp_path, embedder, said) as opened:
        found, _ = await retrieved(opened, query="What about the oboe?")
        best = found["retrieved_pages"][0]
        assert best["user_input"].startswith("About the oboe")
        assert not best["excerpt"]


@ON_THEIR_LOOP
async def test_the_text_does_not_exceed_the_budget(tmp_path: Path, embedder: LentEmbedder) -> None:
    said = [*MIXED, *((f"Verse {n}\n" * 20, f"Line\n{LONG}") for n in range(4))]
    async with filled(tmp_path, embedder, said) as opened:
        await opened.engine.add(f"Fetched: {LONG}", "", source="web", meta_data={"from": "a page", "tags": ["x"] * 20})
        await embedded(opened)
        for max_tokens in range(100, 2_000, 93):
            found, text = await retrieved(opened, query="what must I not eat at the concert?", max_tokens=max_tokens)
            assert estimate_tokens(text) == found["token_estimate"] <= max_tokens


@ON_THEIR_LOOP
async def test_the_manner_of_the_answer_is_charged(tmp_path: Path, embedder: LentEmbedder) -> None:
    async with filled(tmp_path, embedder, [(f"I love bread number {n}. {LONG}", "I see.") for n in range(4)]) as opened:
        manner = {"style_hint": "dry and brief, " * 20, "relationship_with_user": "tutor"}
        found, text = await retrieved(opened, query="bread", max_tokens=200, **manner)
        assert text.startswith("Answer as the user's tutor.\nStyle: dry and brief, dry")
        assert estimate_tokens(text) == found["token_estimate"] <= 200
        _, text = await retrieved(opened, query="bread", max_tokens=100, relationship_with_user="friend")
        assert estimate_tokens(text) <= 100
        refused = await opened.call_retrieve(query="bread", max_tokens=100, **manner)
        assert refused.is_error
        assert text_of(refused) == (
            "style_hint: takes up more than half of 'max_tokens' (100); shorten it, or increase 'max_tokens'"
        )


@ON_THEIR_LOOP
async def test_an_ended_fact_is_shown_with_its_end(tmp_path: Path, embedder: LentEmbedder) -> None:
    async with asyncio.timeout(LIMIT_S), memory(tmp_path, embedder) as opened:
        for place, month in (("in Leeds", 1), ("in York now", 3)):
            said_at = datetime(2026, month, 4, 9, tzinfo=UTC)
            await opened.engine.add(f"I live {place}.", "Nice.", timestamp=said_at)
            await opened.settled()
            _, text = await retrieved(opened, query="Where do I live?")
            assert f"- I live {place}" in text
        assert "- I live in Leeds" not in text
        _, text = await retrieved(opened, query="Where did I live in the past?")
        assert re.search(r"^- I live in Leeds\. \(until 2026-03-04\)$", text, re.MULTILINE)


@ON_THEIR_LOOP
async def test_speakers_are_shown_by_their_names(tmp_path: Path, embedder: LentEmbedder) -> None:
    said = [
        ("Hey John, I started to paint again.", "Great to hear, James!"),
        ("Thanks, John! Oils this time.", "Oils are slow, James. Do you like that?"),
        ("I do. Certainly, it takes days.", "Certainly, it does. Good luck, James!"),
        ("Good night, John.", "Certainly, sleep well."),
        ("I sold a painting, John!", "Certainly, I knew it. Well done, James!"),
    ]
    async with filled(tmp_path, embedder, said) as opened:
        found, text = await retrieved(opened, query="What was painted?")
        assert found["speakers"] == {"user": "James", "assistant": "John"}
        assert "\nUser (James): Hey John, I started" in text
        assert "\nAssistant (John): Great to hear" in text


@ON_THEIR_LOOP
async def test_only_a_name_is_used_as_a_name(tmp_path: Path, embedder: LentEmbedder) -> None:
    said = [(f"Absolutely, day {n}. Cool!", "Certainly! However, XML, Json, and more.") for n in range(6)]
    async with filled(tmp_path, embedder, said) as opened:
        found, text = await retrieved(opened, query="What happened on day 3?")
        assert found["speakers"] == {"user": None, "assistant": None}
        assert "\nUser: Absolutely, day 3" in text


@ON_THEIR_LOOP
async def test_a_relationship_is_shown_only_if_it_is_set(mixed: Memory) -> None:
    found, text = await retrieved(mixed, query="frogs")
    assert found["relationship_with_user"] == ""
    assert "Answer as" not in text
    _, text = await retrieved(mixed, query="frogs", relationship_with_user="tutor")
    assert text.startswith("Answer as the user's tutor.")


@ON_THEIR_LOOP
async def test_notes_of_the_caller_are_in_the_text(tmp_path: Path, embedder: LentEmbedder) -> None:
    async with filled(tmp_path, embedder, []) as opened:
        await opened.engine.add("The order is late.", "I'll look.", meta_data={"order": 4711})
        _, text = await retrieved(opened, query="the late order", max_results=5)
        assert '\nNotes: {"order": 4711}' in text


@ON_THEIR_LOOP
async def test_topics_take_forty_tokens_if_there_is_room(tmp_path: Path, embedder: LentEmbedder) -> None:
    said = [Said(f"My garden grows tomatoes in bed {n}. {LONG[:500]}", "Lovely tomatoes.") for n in range(8)]
    async with asyncio.timeout(LIMIT_S), memory(tmp_path, embedder) as opened:
        await opened.add(said)
        await opened.settled()
        _, text = await retrieved(opened, query="tomatoes in the garden", max_tokens=20_000)
        told = re.findall(r"^# Topic: .*$", text, re.MULTILINE)
        assert told
        assert all(estimate_tokens(line) <= 40 for line in told)
        found, text = await retrieved(opened, query="tomatoes in the garden", max_tokens=500)
        assert found["retrieved_pages"]
        assert "# Topic" not in text
        assert estimate_tokens(text) <= 500


async def test_the_first_query_after_a_start_is_semantic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "LOAD_WAIT_S", LIMIT_S)  # however slow the machine is
    settings = Settings.model_validate({"data_storage_path": tmp_path, **QUIET})
    async with asyncio.timeout(LIMIT_S):
        async with MemoryService(settings) as service, service.user(USER) as engine:
            for user, assistant in (*MIXED[1:10], ("We adopted a greyhound last spring.", "How does she like it?")):
                await engine.add(user, assistant)
            while (await engine.stats()).counts.unembedded:  # noqa: ASYNC110 - another task's state
                await asyncio.sleep(POLL_S)
        # A new service has not loaded its model.
        async with MemoryService(settings) as service, service.user(USER) as engine:
            found = await engine.retrieve("dog")
    assert found.is_semantic
    assert "greyhound" in found.pages[0].page.user_input
