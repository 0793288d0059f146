"""Vector indexes: the rules that each keeps, their choice by a setting, and what happens when one fails or is stale."""

import asyncio
import importlib.metadata
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memoryos_mcp.config import Settings
from memoryos_mcp.engine.engine import MemoryEngine
from memoryos_mcp.errors import ConfigError, StorageError
from memoryos_mcp.model.segments import Vector
from memoryos_mcp.retrieval import entry_points as points
from memoryos_mcp.retrieval.index import choice
from memoryos_mcp.retrieval.index.conformance import DIMENSION, RULES, Make
from memoryos_mcp.retrieval.index.faiss_index import FaissIndex
from memoryos_mcp.retrieval.index.interface import ENTRY_POINTS, IndexRequest, VectorIndex
from memoryos_mcp.storage.values import PageVectors, WindowHits

Rule = Callable[[Make], Awaitable[None]]


class KeptIndex(FaissIndex):
    """An index that outlives the engine, as one in another program does."""

    kept: "dict[tuple[str, str], KeptIndex]" = {}  # noqa: RUF012 - emptied by a fixture
    fills = 0

    def __init__(self, dimension: int) -> None:
        super().__init__(dimension)
        self.kept_mark: str | None = None

    @classmethod
    def make(cls, request: IndexRequest) -> VectorIndex:
        return cls.kept.setdefault((request.user_id, request.space), cls(request.dimension))

    async def clear(self) -> None:
        await super().clear()
        self.kept_mark = None
        KeptIndex.fills += 1

    async def mark(self) -> str | None:
        return self.kept_mark

    async def set_mark(self, mark: str) -> None:
        self.kept_mark = mark

    async def cosines(self, query: Vector, pages: object) -> None:  # type: ignore[override]
        return None


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> type[KeptIndex]:
    monkeypatch.setattr(KeptIndex, "kept", {})
    monkeypatch.setattr(KeptIndex, "fills", 0)
    point = importlib.metadata.EntryPoint("kept", "tests.test_vector_indexes:KeptIndex.make", ENTRY_POINTS)
    monkeypatch.setattr(points, "entry_points", lambda *, group: (point,) if group == ENTRY_POINTS else ())
    return KeptIndex


@pytest.mark.parametrize("rule", RULES)
async def test_faiss_keeps_the_rules(rule: Rule) -> None:
    await rule(lambda _: FaissIndex(DIMENSION))


@pytest.mark.parametrize("rule", RULES)
async def test_an_index_that_outlives_keeps_the_rules(rule: Rule, kept: type[KeptIndex]) -> None:
    await rule(lambda user_id: kept.kept.setdefault((user_id, ""), kept(DIMENSION)))


class LazyIndex(FaissIndex):
    """An index that forgets to remove windows."""

    async def replace(self, pages: object, vectors: PageVectors) -> None:
        await super().replace(vectors.seqs.tolist(), vectors)


async def test_an_index_that_breaks_a_rule_is_told_so() -> None:
    broken = []
    for rule in RULES:
        try:
            await rule(lambda _: LazyIndex(DIMENSION))
        except AssertionError as error:
            broken.append(str(error))
    assert broken == ["the number of windows is wrong after pages were replaced"]


def test_an_unknown_index_names_the_nearest_known_one() -> None:
    with pytest.raises(ConfigError, match=r"vector_index 'fais' is unknown; did you mean faiss\?"):
        choice.choose_index(Settings(vector_index="fais"))


def test_an_index_that_cannot_be_imported_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    point = importlib.metadata.EntryPoint("gone", "no_such_package:make", ENTRY_POINTS)
    monkeypatch.setattr(points, "entry_points", lambda **_: (point,))
    with pytest.raises(ConfigError, match=r"'gone' cannot be loaded .*; install its package again"):
        choice.choose_index(Settings(vector_index="gone"))


async def until_settled(engine: MemoryEngine) -> None:
    async with asyncio.timeout(30):
        while not ((stats := await engine.stats()).is_settled and stats.is_semantic and not stats.counts.unembedded):  # noqa: ASYNC110 - another task's state
            await asyncio.sleep(0.05)


async def add_and_settle(data: Path, *texts: str) -> None:
    async with MemoryEngine.open("ada", data_storage_path=data, vector_index="kept") as engine:
        for text in texts:
            await engine.add(text, "Noted.")
        await until_settled(engine)
        await engine.retrieve("What is there?")  # takes over what has changed


async def found(data: Path, query: str) -> list[str]:
    async with MemoryEngine.open("ada", data_storage_path=data, vector_index="kept") as engine:
        await until_settled(engine)
        recall = await engine.retrieve(query)
        assert recall.is_semantic
        return [each.page.user_input for each in (*recall.short_term, *recall.pages)]


async def test_an_index_that_outlives_is_not_filled_again(data: Path, kept: type[KeptIndex]) -> None:
    await add_and_settle(data, "My cat is called Miu.", "The car needs new tyres.")
    assert kept.fills == 1
    assert "My cat is called Miu." in await found(data, "What is my pet's name?")
    assert kept.fills == 1
    (index,) = kept.kept.values()
    assert await index.size() == 2


async def test_a_lost_or_stale_index_is_filled_again(data: Path, kept: type[KeptIndex]) -> None:
    await add_and_settle(data, "My cat is called Miu.", "The car needs new tyres.")
    (index,) = kept.kept.values()
    await index.replace([1], PageVectors(np.empty(0, dtype=np.int64), np.empty((0, 384), dtype=np.float32)))
    assert "My cat is called Miu." in await found(data, "What is my pet's name?")
    assert (kept.fills, await index.size()) == (2, 2)
    kept.kept.clear()
    assert "My cat is called Miu." in await found(data, "What is my pet's name?")
    (index,) = kept.kept.values()
    assert (kept.fills, await index.size()) == (3, 2)
    index.kept_mark = "999999/2"  # as if an older memory had been restored
    await found(data, "What is my pet's name?")
    assert kept.fills == 4


async def test_keywords_answer_while_an_index_fails(data: Path, kept: type[KeptIndex], monkeypatch: Any) -> None:
    await add_and_settle(data, "My cat is called Miu.", "The car needs new tyres.")
    fails = True

    async def search(self: KeptIndex, query: Vector, k: int) -> WindowHits:
        if fails:
            raise StorageError("down")
        return await FaissIndex.search(self, query, k)

    async def replace(self: KeptIndex, pages: Sequence[int], vectors: PageVectors) -> None:
        if fails:
            raise StorageError("down")
        await FaissIndex.replace(self, pages, vectors)

    monkeypatch.setattr(KeptIndex, "search", search)
    monkeypatch.setattr(KeptIndex, "replace", replace)
    async with MemoryEngine.open("ada", data_storage_path=data, vector_index="kept") as engine:
        await until_settled(engine)
        await engine.add("The dog is called Rex.", "Noted.")
        recall = await engine.retrieve("What is the cat called?")
        assert "My cat is called Miu." in [each.page.user_input for each in recall.short_term]
        fails = False
        async with asyncio.timeout(60):
            while await next(iter(kept.kept.values())).size() < 3:
                await engine.retrieve("What is the cat called?")
                await asyncio.sleep(0.1)
