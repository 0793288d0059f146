"""Metrics of waiting pages and of the LLM, also while memories are slow or unreadable."""

import asyncio
import json
import re
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

from benchmarks.llm_server import reply_to
from memoryos_mcp.config import Settings
from memoryos_mcp.engine import service as service_module
from memoryos_mcp.engine.engine import MemoryEngine
from memoryos_mcp.engine.service import MemoryService
from memoryos_mcp.model.callers import Scope
from memoryos_mcp.storage.values import Pending
from tests.documents import table
from tests.fakes import WordEmbedder
from tests.http_server import HttpServer, asker, bearer
from tests.llm_server import Answer, Asked, api_error, completion, llm_server
from tests.memories import NO_MODEL
from tests.servers import open_store

LIMIT_S = 120
HOUR_US = 3_600_000_000
# Pages are organised as soon as three wait, and never earlier.
BATCHES_OF_THREE = {"short_term_capacity": 0, "consolidation_batch_pages": 3, "consolidation_idle_s": 100_000}

Samples = dict[tuple[str, ...], float]


async def metrics(server: HttpServer, token: str) -> Samples:
    """Return the value of each sample, by its name and the values of its labels in the order of their names."""
    async with httpx2.AsyncClient(timeout=30) as http:
        answer = await http.get(f"{server.url}/metrics", headers=bearer(token))
    assert answer.status_code == 200, answer.text
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def described() -> set[str]:
    """Return the names of the documented metrics."""
    return {row[0].strip("`") for row in table("Seeing what it does")}


async def metrics_when(server: HttpServer, token: str, holds: Callable[[Samples], bool]) -> Samples:
    """Fetch metrics until a condition holds. The test's time limit applies."""
    while not holds(samples := await metrics(server, token)):  # noqa: ASYNC110 - another process
        await asyncio.sleep(0.05)
    return samples


def waits(samples: Samples) -> dict[str, float]:
    names = ("backlog_pages", "unread_users", "open_users")
    return {name: samples[f"memoryos_{name}",] for name in names}


async def test_the_backlog_is_measured_over_all_open_memories(data: Path) -> None:
    with HttpServer(data, BATCHES_OF_THREE) as server:
        admin = server.add_token("root", Scope.ADMIN)
        tokens = [server.add_token(user) for user in ("ada", "bob")]
        async with asyncio.timeout(LIMIT_S):
            before = await metrics(server, admin)
            assert waits(before) == {"backlog_pages": 0, "unread_users": 0, "open_users": 0}
            assert before["memoryos_backlog_age_seconds",] == 0
            for token in tokens:
                async with asker(server, token) as user:
                    await user.add("I keep bees.")
            after = await metrics(server, admin)
            assert waits(after) == {"backlog_pages": 2, "unread_users": 0, "open_users": 2}
            with closing(open_store(data, "bob")) as connection:
                connection.execute("UPDATE pages SET added_us = added_us - ?", (HOUR_US,))
            assert (await metrics(server, admin))["memoryos_backlog_age_seconds",] >= HOUR_US / 1e6
            async with asker(server, tokens[1]) as bob:
                for text in ("The bees swarm.", "I sell honey."):
                    await bob.add(text)
            later = await metrics_when(server, admin, lambda samples: samples["memoryos_backlog_pages",] == 1)
            assert later["memoryos_backlog_age_seconds",] < HOUR_US / 1e6
            await metrics_when(server, admin, lambda samples: samples["memoryos_unembedded_pages",] == 0)


async def test_llm_calls_and_tokens_are_counted_by_purpose(data: Path) -> None:
    is_up = asyncio.Event()

    def answer(asked: Asked) -> Answer:
        if not is_up.is_set():
            return api_error(401, "Incorrect API key")
        return completion(json.dumps(reply_to(asked.body["messages"])), tokens=(11, 7))

    async with asyncio.timeout(LIMIT_S), llm_server(answer) as llm:
        settings = {**BATCHES_OF_THREE, **NO_MODEL, "openai_base_url": llm.base_url, "llm_model": "tiny"}
        with HttpServer(data, {**settings, "mid_term_heat_threshold": 3}) as server:
            admin = server.add_token("root", Scope.ADMIN)
            assert not any(name.startswith("memoryos_llm") for name, *_ in await metrics(server, admin))
            async with asker(server, admin) as user:
                for text in ("I keep bees.", "The bees swarm.", "I sell honey."):
                    await user.add(text)
            calls, tokens = "memoryos_llm_calls_total", "memoryos_llm_tokens_total"
            failed = await metrics_when(server, admin, lambda samples: samples[calls, "failed", "organise"] > 0)
            assert failed["memoryos_backlog_pages",] == 3
            assert (failed[calls, "ok", "organise"], failed[tokens, "prompt", "organise"]) == (0, 0)
            is_up.set()
            done = await metrics_when(server, admin, lambda samples: samples[calls, "ok", "learn"] > 0)
            assert done["memoryos_backlog_pages",] == 0
            assert done[calls, "ok", "organise"] == 1
            for purpose in ("organise", "learn"):
                answered = done[calls, "ok", purpose]
                assert done[tokens, "prompt", purpose] == 11 * answered
                assert done[tokens, "completion", purpose] == 7 * answered
            assert done[calls, "ok", "check"] == 0
            names = {re.sub("_(bucket|sum|count)$", "", name) for name, *_ in done}
            assert {name for name in names if not name.endswith("_created")} == described()


async def test_an_unreadable_memory_is_counted_beside_the_others(data: Path) -> None:
    with HttpServer(data, {**BATCHES_OF_THREE, **NO_MODEL}) as server:
        admin = server.add_token("root", Scope.ADMIN)
        async with asyncio.timeout(LIMIT_S):
            for token in [server.add_token(user) for user in ("ada", "eve", "bob")]:
                async with asker(server, token) as user:
                    await user.add("I keep bees.")
            for broken in ("ada", "eve"):  # these are read before bob's memory
                with closing(open_store(data, broken)) as connection:
                    connection.execute("ALTER TABLE pages RENAME TO gone")
            assert waits(await metrics(server, admin)) == {"backlog_pages": 1, "unread_users": 2, "open_users": 3}


async def test_a_slow_memory_does_not_delay_metrics(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    is_readable = asyncio.Event()
    read = MemoryEngine.waiting

    async def waiting(engine: MemoryEngine) -> Pending:
        asked.append(engine.user_id)
        if engine.user_id == "slow":
            await is_readable.wait()
        return await read(engine)

    monkeypatch.setattr(MemoryEngine, "waiting", waiting)
    monkeypatch.setattr(service_module, "SURVEY_LIMIT_S", 0.1)
    settings = Settings(data_storage_path=data, short_term_capacity=0, consolidation_batch_pages=100)
    async with asyncio.timeout(LIMIT_S), MemoryService(settings, embedder=WordEmbedder()) as service:
        for user in ("slow", "quick"):
            async with service.user(user) as engine:
                await engine.add("I keep bees.", "")
        try:
            async with asyncio.timeout(LIMIT_S / 4):
                hurried = await asyncio.gather(*(service.backlog() for _ in range(3)))
        finally:
            is_readable.set()  # otherwise the service would wait for it when it closes
        assert {(backlog.pages, backlog.unread_users) for backlog in hurried} == {(1, 1)}
        assert sorted(asked) == ["quick", "slow"]
        while (backlog := await service.backlog()).unread_users:
            pass
        assert backlog.pages == 2


async def test_a_scrape_after_closing_shows_no_open_memory(data: Path) -> None:
    async with asyncio.timeout(LIMIT_S):
        settings = Settings(data_storage_path=data)
        async with MemoryService(settings, embedder=WordEmbedder()) as service, service.user("ada") as engine:
            await engine.add("I keep bees.", "")
        backlog = await service.backlog()
    assert (backlog.pages, backlog.oldest_age_s, backlog.unread_users) == (0, 0, 0)
