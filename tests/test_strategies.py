"""A setting chooses how older pages are found: all at once, in the paper's two stages, or as a package does it."""

import importlib.metadata
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import pytest_asyncio

from memoryos_mcp.engine.engine import MemoryEngine
from memoryos_mcp.errors import ConfigError
from memoryos_mcp.retrieval import entry_points, strategies
from memoryos_mcp.retrieval.ranking import Ranked
from memoryos_mcp.retrieval.strategy import ENTRY_POINTS, Search
from tests.memories import LentEmbedder, Said, memory

pytestmark = pytest.mark.asyncio(loop_scope="module")

TOPICS = {
    "bees": "The bees on our hive number {} made honey and pollen; the beekeeper checked hive and queen.",
    "trains": "The night train number {} to Lisbon left the station late; the sleeper carriage had no heating.",
    "tax": "The tax form number {} asks for income and deductions; the tax office wants every receipt.",
}
EACH = 8


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def embedder() -> AsyncIterator[LentEmbedder]:
    lent = LentEmbedder()
    await lent.load()
    yield lent
    await lent.end()


def said() -> list[Said]:
    return [Said(text.format(number)) for number in range(EACH) for text in TOPICS.values()]


async def ask(folder: Path, lent: LentEmbedder | None, query: str, **settings: Any) -> tuple[list[str], str]:
    """Return the texts of the older pages found, and the name of the ranking."""
    async with memory(folder, lent, **settings) as asked:
        await asked.add(said())
        await asked.settled()
        recall = await asked.engine.retrieve(query, max_results=50, max_tokens=100_000)
        return [each.page.user_input for each in recall.pages], recall.recipe


@pytest.mark.parametrize("is_semantic", [True, False])
async def test_paper_finds_pages_of_the_best_topics(tmp_path: Path, embedder: LentEmbedder, is_semantic: bool) -> None:
    lent = embedder if is_semantic else None
    found, name = await ask(tmp_path, lent, "honey of the hive", retrieval_strategy="paper")
    assert name == "paper/1"
    assert found
    assert all("bees" in text for text in found[:3])


async def test_all_is_the_default(tmp_path: Path, embedder: LentEmbedder) -> None:
    found, name = await ask(tmp_path, embedder, "honey of the hive")
    assert name.startswith("word-vectors+time")
    assert "bees" in found[0]


class OldestFirst:
    """A strategy of another package."""

    name = "oldest/3"

    async def rank(self, search: Search) -> Sequence[Ranked]:
        seqs = [seq for seq in search.candidates.outlines.seqs.tolist() if seq not in search.newest]
        inside = [
            seq
            for segment, _ in await search.memory.segments()
            for seq in await search.memory.pages_of(segment.segment)
        ]
        assert {*seqs} & {*inside}
        assert all(-1 <= cosine <= 1.001 for cosine in (await search.memory.cosines(seqs)).values())
        return [Ranked(seq, float(-seq), {}) for seq in seqs[: search.limit]]


def install(monkeypatch: pytest.MonkeyPatch, **made: Any) -> None:
    module = ModuleType("strategy_package")
    module.__dict__.update(made)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    points = tuple(importlib.metadata.EntryPoint(name, f"strategy_package:{name}", ENTRY_POINTS) for name in made)
    monkeypatch.setattr(entry_points, "entry_points", lambda **_: points)


async def test_a_package_provides_a_strategy(
    tmp_path: Path, embedder: LentEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, oldest=OldestFirst)
    found, name = await ask(tmp_path, embedder, "honey of the hive", retrieval_strategy="oldest")
    assert name == "oldest/3"
    numbers = [said().index(Said(text)) for text in found]
    assert numbers == sorted(numbers)


async def test_an_unknown_strategy_names_the_nearest_known_one() -> None:
    with pytest.raises(ConfigError, match=r"retrieval_strategy 'papers' is unknown; did you mean paper\?"):
        strategies.choose_strategy("papers")


async def test_an_object_without_the_method_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, nothing=object)
    with pytest.raises(ConfigError, match="has no method rank; install another version"):
        strategies.choose_strategy("nothing")


async def test_a_memory_does_not_open_with_an_unknown_strategy(data: Path) -> None:
    with pytest.raises(ConfigError, match="use all, paper, or install the package"):
        async with MemoryEngine.open("ada", data_storage_path=data, retrieval_strategy="magic"):
            pass
