"""The benchmark's LLM server with our prompts over HTTP, and the benchmark's figures."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta

import psutil
import pytest

from benchmarks.consolidation import Took, calls_row, hanging_row, one_user_row, take, token_rows, users_row
from benchmarks.datasets import Conversation
from benchmarks.datasets import Page as Said
from benchmarks.llm_server import MODEL, Counts, LlmServer, Tally, fact_of, running_llm_server
from memoryos_mcp.config import Settings
from memoryos_mcp.errors import ModelError
from memoryos_mcp.llm.analysis import Surroundings
from memoryos_mcp.llm.analyst import LlmAnalyst
from memoryos_mcp.llm.chat import ChatRequest, Purpose
from memoryos_mcp.llm.extractive import ExtractiveAnalyst
from memoryos_mcp.llm.openai_chat import OpenAIChat
from memoryos_mcp.llm.prompts import learn_request, organise_request
from memoryos_mcp.llm.providers import endpoint_of
from memoryos_mcp.model.knowledge import About, AddFact, ConfirmFact, Fact
from memoryos_mcp.model.pages import Page, Tier, estimate_tokens
from memoryos_mcp.model.segments import Segment
from tests.fakes import START

LIMIT_S = 60
MAX_TOPICS, MAX_PROMPT_TOKENS = 4, 24_000
DIALOGUE = [
    ("I bought a red kayak for the river.", "A kayak! Which river will you take the kayak to?"),
    ("My kayak goes to the river Loire. Lovely.", "The Loire river is calm enough for a kayak."),
    ("Can you proofread an invoice?", "Of course, send the invoice over."),
    ("The invoice is for my bakery.", "Good."),
]


def views(*, first: int = 1) -> list[Page]:
    """Return the dialogue as pages without vectors, a minute apart."""
    return [
        Page(
            seq=seq,
            page_id=f"p_{seq}",
            user_input=user,
            agent_response=assistant,
            occurred_at=START + timedelta(minutes=seq),
            session=1,
            tier=Tier.BACKLOG,
        )
        for seq, (user, assistant) in enumerate(DIALOGUE, first)
    ]


@asynccontextmanager
async def asking(llm: LlmServer, *, timeout_s: float = 30.0) -> AsyncIterator[LlmAnalyst]:
    """The real analyst over the real client."""
    endpoint = endpoint_of(Settings(openai_base_url=llm.base_url, llm_model=MODEL), {})
    assert endpoint is not None
    chat = OpenAIChat(endpoint, timeout_s=timeout_s, max_concurrent_calls=4)
    try:
        yield LlmAnalyst(
            chat,
            max_topics=MAX_TOPICS,
            max_prompt_tokens=MAX_PROMPT_TOKENS,
            dimensions=(),
            fallback=ExtractiveAnalyst(),
        )
    finally:
        await chat.aclose()


def tokens(request: ChatRequest) -> tuple[int, int]:
    """Tokens of all messages, and of the system message."""
    return sum(estimate_tokens(message.content) for message in request.messages), estimate_tokens(
        request.messages[0].content
    )


def fact(text: str) -> Fact:
    return Fact(1, About.USER, text, None, START, None, ("p_1",), None)


async def test_a_batch_is_organised_without_a_repair() -> None:
    async with asyncio.timeout(LIMIT_S), running_llm_server() as llm, asking(llm) as analyst:
        organised = await analyst.organise(views(), Surroundings())
        counts = (await llm.tally()).of[Purpose.ORGANISE]
    assert [run.pages for run in organised.runs] == [(1, 2), (3,), (4,)]
    assert [topic.pages for topic in organised.topics] == [(1, 2), (3, 4)]
    assert (counts.calls, counts.repairs) == (1, 0)


async def test_a_topic_joins_its_segment_and_continues_its_chain() -> None:
    known = Segment(7, "Boats.", ("kayak", "river"), None, 0, 1, START, 1, 0, MODEL)
    before = replace(views()[1], chain_summary="Boats.")
    async with asyncio.timeout(LIMIT_S), running_llm_server() as llm, asking(llm) as analyst:
        organised = await analyst.organise(views(first=3), Surroundings(before, (known,)))
        repairs = (await llm.tally()).of[Purpose.ORGANISE].repairs
    assert organised.is_continuing
    assert [topic.segment for topic in organised.topics] == [known, None]
    assert not repairs


async def test_facts_are_page_sentences_and_known_ones_confirmed() -> None:
    known = fact("I bought a red kayak for the river.")
    async with asyncio.timeout(LIMIT_S), running_llm_server() as llm, asking(llm) as analyst:
        lessons = await analyst.learn(views(), Surroundings(facts=[known]))
        counts = (await llm.tally()).of[Purpose.LEARN]
    confirmed, *added = lessons.knowledge
    assert confirmed == ConfirmFact(fact=1, evidence=(1,))
    assert [change.text for change in added if isinstance(change, AddFact)] == [
        "My kayak goes to the river Loire.",
        "The invoice is for my bakery.",
    ]
    assert [trait.evidence for trait in lessons.traits] == [(1,)]
    assert (counts.calls, counts.repairs) == (1, 0)


async def test_sent_tokens_are_counted_until_a_reset() -> None:
    most = MAX_PROMPT_TOKENS
    organise = organise_request(views(), Surroundings(), max_topics=MAX_TOPICS, max_prompt_tokens=most)
    learn = learn_request(views(), Surroundings(), dimensions=(), max_prompt_tokens=most)
    async with asyncio.timeout(LIMIT_S), running_llm_server() as llm, asking(llm) as analyst:
        await analyst.organise(views(), Surroundings())
        await analyst.learn(views(), Surroundings())
        tally = await llm.tally()
        await llm.reset()
        forgotten = await llm.tally()
    assert [(tally.of[p].prompt_tokens, tally.of[p].system_tokens) for p in (Purpose.ORGANISE, Purpose.LEARN)] == [
        tokens(organise),
        tokens(learn),
    ]
    assert all(tally.of[p].schema_tokens > 0 for p in (Purpose.ORGANISE, Purpose.LEARN))
    assert (tally.calls, forgotten.calls) == (2, 0)


async def test_an_answer_comes_after_the_latency() -> None:
    async with asyncio.timeout(LIMIT_S), running_llm_server(latency_ms=150) as llm:
        assert await asyncio.to_thread(llm.sequential_call_s, 2) >= 0.149
        await llm.set_mode(latency_ms=10 * LIMIT_S * 1000)
        await llm.set_mode(latency_ms=0)
        await asyncio.to_thread(llm.sequential_call_s, 1)


async def test_a_hanging_server_counts_the_call_and_never_answers() -> None:
    async with asyncio.timeout(LIMIT_S), running_llm_server(hangs=True) as llm, asking(llm, timeout_s=0.5) as analyst:
        with pytest.raises(ModelError, match="did not finish its reply within"):
            await analyst.learn(views(), Surroundings())
        assert (await llm.tally()).of[Purpose.LEARN].calls == 1


async def test_the_server_ends_with_its_stdin() -> None:
    async with asyncio.timeout(LIMIT_S), running_llm_server() as llm:
        assert psutil.pid_exists(llm.pid)
    assert not psutil.pid_exists(llm.pid)


def test_a_fact_is_the_first_sentence_in_the_first_person() -> None:
    assert fact_of("It rained. I stayed in! My cat too.") == "I stayed in!"
    assert fact_of("It rained.") is None


def took(wall_s: float, cpu_s: float) -> Took:
    return Took(wall_s, adding_s=0.1, cpu_s=cpu_s, llm_cpu_s=0.1, all_cpu_s=cpu_s, tally=Tally())


@pytest.mark.parametrize(("calls", "is_reached"), [(60, True), (61, False)])
def test_at_most_six_calls_in_ten_pages(calls: int, is_reached: bool) -> None:
    tally = Tally({Purpose.ORGANISE: Counts(calls=calls - 1), Purpose.LEARN: Counts(calls=1)})
    assert calls_row(tally, 100, "added", has_target=True).is_reached is is_reached


@pytest.mark.parametrize(("wall_s", "is_reached"), [(18.0, True), (18.1, False)])
def test_one_user_takes_a_tenth_of_the_calls_one_after_another(wall_s: float, is_reached: bool) -> None:
    assert one_user_row(took(wall_s, 1.0), call_s=0.2).is_reached is is_reached


@pytest.mark.parametrize(
    ("wall_s", "alone_s", "cpu_s", "is_reached"),
    [(3.0, 2.0, 1.0, True), (3.1, 2.0, 1.0, False), (6.0, 2.0, 8.0, True), (6.1, 2.0, 8.0, False)],
)
def test_many_users_are_compared_with_one_users_or_cpu_time(
    wall_s: float, alone_s: float, cpu_s: float, is_reached: bool
) -> None:
    assert users_row(took(alone_s, 0.5), took(wall_s, cpu_s), cores=2).is_reached is is_reached


@pytest.mark.parametrize(("ours_ms", "is_reached"), [(5.0, True), (8.0, True), (8.1, False)])
def test_a_hanging_llm_may_slow_adding_as_much_as_noise(ours_ms: float, is_reached: bool) -> None:
    assert hanging_row(50, [[0.004], [0.006]], [ours_ms / 1e3]).is_reached is is_reached


def test_fixed_text_is_the_share_of_system_messages() -> None:
    counts = Counts(calls=2, prompt_tokens=1000, system_tokens=399, schema_tokens=1000)
    shares = token_rows(Tally({Purpose.LEARN: counts}), 10)[1:3]
    assert [row.ours for row in shares] == ["39.9 %", "70.0 %"]
    assert [row.is_reached for row in shares] == [True, None]


def test_two_learn_calls_would_show_the_pages_twice() -> None:
    counts = Counts(calls=2, prompt_tokens=1000, system_tokens=400)
    row = token_rows(Tally({Purpose.LEARN: counts}), 10)[-1]
    assert (row.ours, row.baseline) == ("100", "160")


def test_pages_are_taken_from_all_conversations_in_turn() -> None:
    def conversation(name: str, pages: Sequence[str]) -> Conversation:
        return Conversation(name, tuple(Said(page, page, "", START) for page in pages), (), 0, 0)

    conversations = [conversation("one", ["a", "b"]), conversation("two", ["c"])]
    assert [page.page_id for page in take(conversations, 1, 5)] == ["c", "a", "b", "c", "a"]
