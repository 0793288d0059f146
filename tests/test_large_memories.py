"""A memory in PostgreSQL with many vectors is searched in the database, and finds what it would find in RAM."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from benchmarks.synthetic import Grammar
from memoryos_mcp import MemoryService, Settings
from memoryos_mcp.consolidation.forgetting import Selection
from memoryos_mcp.engine.engine import MemoryEngine
from memoryos_mcp.model.pages import utc_now
from memoryos_mcp.storage.postgres.store import PostgresStore
from memoryos_mcp.storage.sql.connection import Connection
from tests.postgres import database_of

pytestmark = pytest.mark.campaign

LIMIT_S = 60
PAGES, QUESTIONS = 60, 12


@pytest.fixture
def url(tmp_path: Path) -> str:
    return database_of(tmp_path)


@asynccontextmanager
async def opened(data: Path, url: str, most_in_ram: int, **settings: Any) -> AsyncIterator[MemoryEngine]:
    chosen = Settings(
        data_storage_path=data,
        database_url=SecretStr(url),
        max_vectors_in_ram=most_in_ram,
        # Questions and time do not change the ranking.
        heat_alpha=0.0,
        heat_gamma=0.0,
        consolidation_idle_s=1.0,
        **settings,
    )
    async with MemoryService(chosen) as service, service.user("ada") as engine:
        yield engine


async def until_settled(engine: MemoryEngine) -> None:
    async with asyncio.timeout(LIMIT_S):
        while not ((stats := await engine.stats()).is_settled and stats.is_semantic and not stats.counts.unembedded):  # noqa: ASYNC110 - another task's state
            await asyncio.sleep(0.05)


async def pages_of(engine: MemoryEngine, questions: list[str]) -> list[list[str]]:
    return [[found.page.page_id for found in (await engine.retrieve(each)).pages] for each in questions]


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of vectors of each read of a whole memory."""
    counted: list[int] = []
    original = PostgresStore.all_vectors

    async def all_vectors(self: PostgresStore, after_seq: int, limit: int) -> Any:
        block = await original(self, after_seq, limit)
        counted.append(len(block.seqs))
        return block

    monkeypatch.setattr(PostgresStore, "all_vectors", all_vectors)
    return counted


async def test_a_large_memory_finds_the_same_pages(data: Path, url: str, reads: list[int]) -> None:
    grammar = Grammar(random.Random(4))  # noqa: S311 - made-up data
    questions = [grammar.question() for _ in range(QUESTIONS)]
    async with opened(data, url, 1_000) as engine:
        for _ in range(PAGES):
            turn = grammar.turn(utc_now())
            await engine.add(turn.user_input, turn.agent_response)
        await until_settled(engine)
        in_ram = await pages_of(engine, questions)
    reads.clear()
    async with opened(data, url, PAGES - 1) as engine:
        await until_settled(engine)
        in_database = await pages_of(engine, questions)
    assert any(in_ram)
    assert in_database == in_ram
    assert not sum(reads)


async def test_a_memory_that_grows_leaves_ram(data: Path, url: str) -> None:
    async with opened(data, url, 3) as engine:
        for name in ("Miu", "Rex", "Bo"):
            await engine.add(f"One of my pets is called {name}.", "Noted.")
        await until_settled(engine)
        assert (await engine.retrieve("pets")).is_semantic
        await engine.add("The tortoise is called Speedy.", "Noted.")
        await until_settled(engine)
        for _ in range(2):
            recall = await engine.retrieve("Who is the slow animal with a shell?")
            assert "The tortoise is called Speedy." in [each.page.user_input for each in recall.short_term]
        index = engine._spaces.retrieving.cache.index
        assert index.is_loaded
        assert index._index is None  # its RAM is free


async def test_a_forgotten_page_is_not_found_in_the_database(data: Path, url: str) -> None:
    async with opened(data, url, 0, short_term_capacity=0) as engine:
        receipt = await engine.add("My cat is called Miu.", "Noted.")
        await engine.add("The car needs new tyres.", "Noted.")
        await until_settled(engine)
        plan = await engine.plan_forgetting(Selection(ids=(receipt.page_id,)))
        await engine.forget(plan.handle)
        store = engine._spaces.retrieving._store
        embedded = await engine._spaces.retrieving._embedded("the name of my cat")
        assert embedded is not None
        hits = await store.nearest_windows(embedded.vector, 10)
        assert hits.seqs.tolist() == [2]


async def test_listed_pages_are_looked_up_in_the_index(data: Path, url: str) -> None:
    async with opened(data, url, 0) as engine:

        def plan(connection: Connection) -> str:
            connection.execute("SET LOCAL enable_seqscan = off")
            sql = "EXPLAIN SELECT * FROM pages WHERE is_analysed = 0 AND seq IN (SELECT value FROM json_each(?))"
            return "\n".join(row[0] for row in connection.execute(sql, ("[3, 5]",)))

        store = engine._spaces.retrieving._store
        assert isinstance(store, PostgresStore)
        # Row-level security forbids an index if the condition calls a function that might reveal a hidden row.
        assert "AND (seq = ANY" in await store._database.read(plan)
