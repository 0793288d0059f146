"""A change of the embedding model loses nothing, never compares vectors of two models, and always answers queries."""

import asyncio
import zlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from memoryos_mcp.config import Settings
from memoryos_mcp.consolidation import worker
from memoryos_mcp.embedding import Embedder, EmbeddingModel, Passage
from memoryos_mcp.embedding.embedders import Embedders
from memoryos_mcp.engine.engine import MemoryEngine
from memoryos_mcp.engine.wiring import Overrides, make_components
from memoryos_mcp.errors import ModelError
from memoryos_mcp.model.pages import Window
from memoryos_mcp.model.stats import Stats
from memoryos_mcp.retrieval import page_index, priority
from memoryos_mcp.storage.sql.store import SqlStore
from memoryos_mcp.storage.values import Contents, PageVectors, WordSearch
from tests.fakes import Clock, ScriptedAnalyst, WordEmbedder
from tests.servers import stored_pages

pytestmark = pytest.mark.both_stores(in_campaign=True)

LIMIT_S = 60
POLL_S = 0.01
PAGES = 40


class Model(WordEmbedder):
    """A model whose vectors differ from those of all others; with ``batches``, it embeds one batch per release."""

    def __init__(self, name: str, dimension: int) -> None:
        super().__init__()
        self.model = EmbeddingModel(name)
        self.identity = f"{name}:{dimension}:1"
        self.dimension = dimension
        self.batches: asyncio.Semaphore | None = None
        self.embedded = 0

    async def embed_pages(self, passages: Sequence[Passage]) -> list[list[Window]]:
        if self.batches is not None:
            await self.batches.acquire()
        self.embedded += len(passages)
        return await super().embed_pages(passages)

    def _vector(self, text: str) -> NDArray[np.float32]:
        words = super()._vector(text)
        turned = np.random.default_rng(zlib.crc32(self.identity.encode())).normal(size=(len(words), self.dimension))
        vector = words @ turned
        return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "POLL_S", 0.05)


@asynccontextmanager
async def opened(
    folder: Path, configured: Embedder | None, *before: Embedder, clock: Clock | None = None
) -> AsyncIterator[MemoryEngine]:
    """Open a memory with a model; the previous models can still be loaded."""
    settings = Settings(data_storage_path=folder, short_term_capacity=1, consolidation_idle_s=0.0)
    known = {embedder.model: embedder for embedder in before}

    def make(model: EmbeddingModel) -> Embedder:
        if model not in known:
            msg = f"{model.name} is gone"
            raise ModelError(msg)
        return known[model]

    given = Overrides(embedder=configured or WordEmbedder(), analyst=ScriptedAnalyst())
    components = replace(
        make_components(settings, None, clock or Clock(), given), embedders=Embedders(configured, make)
    )
    async with asyncio.timeout(LIMIT_S):
        engine = await MemoryEngine.begin("ada", settings, components)
        try:
            yield engine
        finally:
            await engine.close()
            components.stores.close()


async def until(engine: MemoryEngine, is_so: Callable[[Stats], bool]) -> Stats:
    while not is_so(stats := await engine.stats()):  # noqa: ASYNC110 - other tasks tell nobody
        await asyncio.sleep(POLL_S)
    return stats


def is_settled(stats: Stats) -> bool:
    return stats.is_settled and stats.is_semantic and stats.move is None


async def remember(folder: Path, model: Embedder, first: int = 0, count: int = PAGES) -> None:
    async with opened(folder, model) as engine:
        for number in range(first, first + count):
            await engine.add(f"I met friend{number} in town{number}", "Nice.")
        await until(engine, is_settled)


async def answers(engine: MemoryEngine, numbers: Sequence[int]) -> set[str]:
    """Search for some pages, and return the signals by which they were found."""
    recipes = set()
    for number in numbers:
        recall = await engine.retrieve(f"friend{number} town{number}")
        assert f"friend{number} " in recall.pages[0].page.user_input + recall.short_term[0].page.user_input
        recipes.add(recall.recipe if recall.is_semantic else "words")
    return recipes


async def test_the_previous_model_is_used_until_the_migration_ends(tmp_path: Path) -> None:
    old, new = Model("old", 16), Model("new", 24)
    await remember(tmp_path, old)
    new.batches = asyncio.Semaphore(0)
    async with opened(tmp_path, new, old) as engine:
        stats = await until(engine, lambda stats: stats.move is not None)
        assert stats.move is not None
        assert (stats.space, stats.move.identity, stats.move.pages_left) == (old.identity, new.identity, PAGES)
        assert "words" not in await answers(engine, range(0, PAGES, 5))
        await engine.add("I met friend99 in town99", "Nice.")
        await engine.add("I went home", "Good night.")
        new.batches.release()
        await until(engine, lambda stats: not stats.counts.unembedded)
        assert "words" not in await answers(engine, [99])
        for _ in range(PAGES):
            new.batches.release()
        stats = await until(engine, is_settled)
        assert (stats.space, stats.counts.unembedded) == (new.identity, 0)
        assert "words" not in await answers(engine, [*range(0, PAGES, 5), 99])
    assert new.embedded == PAGES + 2


class Reading:
    """Blocks queries; counts the parts in which vectors are loaded, or blocks these too."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pieces = 0
        self.queries = asyncio.Event()
        self.vectors = asyncio.Event()
        self.vectors.set()
        search_words, all_vectors, contents = SqlStore.search_words, SqlStore.all_vectors, SqlStore.contents

        async def held_query(store: SqlStore, words: Sequence[str], names: Sequence[str], limit: int) -> WordSearch:
            await self.queries.wait()
            return await search_words(store, words, names, limit)

        async def held_vectors(store: SqlStore, after_seq: int, limit: int) -> PageVectors:
            await self.vectors.wait()
            self.pieces += 1
            return await all_vectors(store, after_seq, limit)

        async def held_contents(store: SqlStore, windows: int) -> Contents:
            if windows:
                await self.vectors.wait()
                self.pieces += 1
            return await contents(store, windows)

        monkeypatch.setattr(SqlStore, "contents", held_contents)
        monkeypatch.setattr(SqlStore, "search_words", held_query)
        monkeypatch.setattr(SqlStore, "all_vectors", held_vectors)


async def test_loading_vectors_gives_way_to_a_query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model("words", 16)
    await remember(tmp_path, model)
    monkeypatch.setattr(page_index, "FIRST_WINDOWS", 1)
    monkeypatch.setattr(page_index, "LOAD_WINDOWS", 1)
    monkeypatch.setattr(priority, "PAUSE_LIMIT_S", LIMIT_S)
    monkeypatch.setattr(worker, "LOAD_WAIT_S", 0)
    reading = Reading(monkeypatch)
    reading.vectors.clear()
    async with opened(tmp_path, model) as engine, asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(engine.retrieve("friend1 town1"))
        await asyncio.sleep(POLL_S)
        reading.vectors.set()
        await asyncio.sleep(10 * POLL_S)
        assert reading.pieces <= 1  # it was started before
        reading.queries.set()
        assert not (await asking).is_semantic
        await until(engine, is_settled)
        assert reading.pieces > PAGES


async def test_a_load_gives_way_only_for_a_limited_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model("words", 16)
    await remember(tmp_path, model)
    monkeypatch.setattr(priority, "PAUSE_LIMIT_S", POLL_S)
    monkeypatch.setattr(worker, "LOAD_WAIT_S", 0)
    reading = Reading(monkeypatch)
    async with opened(tmp_path, model) as engine, asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(engine.retrieve("friend1 town1"))
        await until(engine, is_settled)
        assert not asking.done()
        reading.queries.set()
        await asking


@pytest.mark.parametrize(("is_large", "is_semantic"), [(False, True), (True, False)])
async def test_the_first_query_waits_only_for_a_small_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_large: bool, is_semantic: bool
) -> None:
    model = Model("words", 16)
    await remember(tmp_path, model)
    monkeypatch.setattr(worker, "LOAD_WAIT_S", LIMIT_S)
    monkeypatch.setattr(worker, "QUICKLY_LOADED_PAGES", PAGES - 1 if is_large else PAGES)
    reading = Reading(monkeypatch)
    reading.queries.set()
    reading.vectors.clear()
    async with opened(tmp_path, model) as engine, asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(engine.retrieve("friend1 town1"))
        if not is_large:
            await asyncio.sleep(POLL_S)
            assert not asking.done()
            reading.vectors.set()
        assert (await asking).is_semantic is is_semantic
        reading.vectors.set()
        await until(engine, is_settled)


async def test_a_migration_resumes_after_a_restart(tmp_path: Path) -> None:
    old, new = Model("old", 16), Model("new", 24)
    await remember(tmp_path, old)
    new.batches = asyncio.Semaphore(1)
    async with opened(tmp_path, new, old) as engine:
        await until(engine, lambda stats: stats.move is not None and stats.move.pages_left < PAGES)
    done, new.embedded, new.batches = new.embedded, 0, None
    assert 0 < done < PAGES
    async with opened(tmp_path, new, old) as engine:
        await until(engine, is_settled)
    assert new.embedded == PAGES - done


async def test_a_model_set_again_embeds_only_new_pages(tmp_path: Path) -> None:
    old, new = Model("old", 16), Model("new", 24)
    await remember(tmp_path, old)
    async with opened(tmp_path, new, old) as engine:
        await until(engine, is_settled)
    await remember(tmp_path, new, PAGES, 3)
    old.embedded = 0
    async with opened(tmp_path, old, new) as engine:
        stats = await until(engine, is_settled)
        assert stats.space == old.identity
        assert "words" not in await answers(engine, [0, PAGES + 2])
    assert old.embedded == 3


async def test_the_incomplete_space_is_used_without_the_old_model(tmp_path: Path) -> None:
    new = Model("new", 24)
    await remember(tmp_path, Model("old", 16))
    new.batches = asyncio.Semaphore(0)
    async with opened(tmp_path, new) as engine:
        stats = await until(engine, lambda stats: stats.is_semantic)
        assert (stats.space, stats.counts.unembedded) == (new.identity, PAGES)
        await answers(engine, range(0, PAGES, 5))
        for _ in range(PAGES):
            new.batches.release()
        await until(engine, is_settled)
        assert "words" not in await answers(engine, range(0, PAGES, 5))


async def test_a_new_version_of_the_model_is_used_at_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    old, new = Model("same", 16), Model("same", 16)
    new.identity = "same:16:2"
    await remember(tmp_path, old)
    new.batches = asyncio.Semaphore(0)
    with caplog.at_level("INFO"):
        async with opened(tmp_path, new, new) as engine:
            stats = await until(engine, lambda stats: stats.is_semantic)
            assert (stats.space, stats.counts.unembedded) == (new.identity, PAGES)
            for _ in range(PAGES):
                new.batches.release()
            await until(engine, is_settled)
            assert "words" not in await answers(engine, range(0, PAGES, 5))
    assert "the embedding model of same:16:1 has changed" in caplog.text


async def test_the_previous_model_is_used_if_the_new_one_fails(
    tmp_path: Path,
) -> None:
    old, new = Model("old", 16), Model("new", 24)
    await remember(tmp_path, old)
    new.failure = ModelError("the hub cannot be reached; run warmup where there is a network")
    async with opened(tmp_path, new, old) as engine:
        stats = await until(engine, lambda stats: stats.is_semantic)
        assert stats.space == old.identity
        assert "the hub cannot be reached" in str(stats.health["embedding"].last_error)
        assert "words" not in await answers(engine, [3])
    async with opened(tmp_path, new) as engine:
        stats = await until(engine, lambda stats: stats.health["embedding"].failed_attempts > 0)
        assert not stats.is_semantic
        assert await answers(engine, [3]) == {"words"}


async def test_a_failing_previous_model_does_not_delay_the_new_one(tmp_path: Path) -> None:
    old, new = Model("old", 16), Model("new", 24)
    await remember(tmp_path, old)
    new.batches = asyncio.Semaphore(0)
    async with opened(tmp_path, new, old) as engine:
        await until(engine, lambda stats: stats.move is not None)
        old.failure = ModelError("gone for good")
        await engine.add("I met friend99 in town99", "Nice.")
        await engine.add("I went home", "Good night.")
        assert await answers(engine, [99]) == {"words"}
        for _ in range(PAGES):
            new.batches.release()
        await until(engine, is_settled)
        assert "words" not in await answers(engine, [3, 99])


async def test_vectors_of_a_model_unused_for_a_week_are_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new, clock = Model("old", 16), Model("new", 24), Clock()
    await remember(tmp_path, old)
    async with opened(tmp_path, new, old, clock=clock) as engine:
        await until(engine, is_settled)
        clock.move(days=1)
        monkeypatch.setattr("memoryos_mcp.consolidation.embedding_migration.KEPT_UNUSED", timedelta(days=100))
    async with opened(tmp_path, new, old, clock=clock) as engine:
        await until(engine, is_settled)
        assert {space.identity for space in await engine._store.spaces()} == {old.identity, new.identity}
    monkeypatch.undo()
    clock.move(days=8)
    async with opened(tmp_path, new, old, clock=clock) as engine:
        while len(await engine._store.spaces()) > 1:  # noqa: ASYNC110 - the store tells nobody
            await asyncio.sleep(POLL_S)
        assert "words" not in await answers(engine, [3])
    assert len(stored_pages(tmp_path, "ada")) == PAGES
