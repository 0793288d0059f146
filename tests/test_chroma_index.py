"""The vector index ``chroma``: in a folder and on a server."""

import asyncio
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

import httpx2
import numpy as np
import pytest
from numpy.typing import NDArray

from memoryos_mcp.config import Settings
from memoryos_mcp.consolidation.forgetting import Selection
from memoryos_mcp.engine.engine import MemoryEngine
from memoryos_mcp.errors import ConfigError, StorageError
from memoryos_mcp.retrieval.index import choice
from memoryos_mcp.retrieval.index.chroma_index import ChromaIndex, ChromaIndexes
from memoryos_mcp.retrieval.index.conformance import DIMENSION, RULES, Make
from memoryos_mcp.retrieval.index.faiss_index import FaissIndex
from memoryos_mcp.retrieval.index.interface import IndexRequest
from memoryos_mcp.storage.values import PageQuery, PageVectors, Space
from tests.commands import run_here
from tests.servers import wait_until
from tests.test_vector_indexes import until_settled

Rule = Callable[[Make], Awaitable[None]]
Vectors: TypeAlias = NDArray[np.float32]
SPACE = f"tiny:{DIMENSION}:1"


class FewVectors:
    """The part of a store that the index uses."""

    def __init__(self) -> None:
        self.known = [SPACE]
        self.vectors: dict[int, Vectors] = {}

    async def spaces(self) -> list[Space]:
        return [Space(identity, "", 0, datetime.now(UTC)) for identity in self.known]

    async def all_vectors(self, after: int, limit: int) -> PageVectors:
        return of_pages({seq: rows for seq, rows in sorted(self.vectors.items()) if seq > after}, limit)


def of_pages(pages: dict[int, Vectors], limit: int | None = None) -> PageVectors:
    some = [*pages.items()][:limit]
    seqs = np.repeat(np.array([seq for seq, _ in some], dtype=np.int64), [len(rows) for _, rows in some])
    return PageVectors(
        seqs, np.concatenate([rows for _, rows in some]) if some else np.empty((0, DIMENSION), np.float32)
    )


def request(settings: Settings, user_id: str = "ada", store: FewVectors | None = None) -> IndexRequest:
    return IndexRequest(settings, user_id, SPACE, DIMENSION, store or FewVectors())  # type: ignore[arg-type]


@pytest.mark.parametrize("rule", RULES)
async def test_a_folder_keeps_the_rules(rule: Rule, tmp_path: Path) -> None:
    settings = Settings(data_storage_path=tmp_path, vector_index="chroma")
    with closing(ChromaIndexes(settings)) as indexes:
        await rule(lambda user_id: indexes(request(settings, user_id)))
        assert isinstance(indexes(request(settings)), ChromaIndex)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_server(tmp_path_factory.mktemp("chroma-server")) as url:
        yield url


@contextmanager
def running_server(folder: Path) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    program = str(Path(sys.executable).with_name("chroma"))
    arguments = [program, "run", "--path", str(folder), "--host", "127.0.0.1", "--port", str(port)]
    with (folder / "log").open("wb") as log, subprocess.Popen(arguments, stdout=log, stderr=log) as process:
        try:
            wait_until(lambda: is_reached(url), "Chroma's server")
            yield url
        finally:
            process.kill()


def is_reached(url: str) -> bool:
    with suppress(httpx2.TransportError):
        return httpx2.get(f"{url}/api/v2/heartbeat").is_success
    return False


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.campaign
async def test_a_server_keeps_the_rules(rule: Rule, tmp_path: Path, server: str) -> None:
    settings = Settings(data_storage_path=tmp_path, vector_index="chroma", chroma_url=server)
    with closing(ChromaIndexes(settings)) as indexes:
        await rule(lambda user_id: indexes(request(settings, user_id)))


@pytest.mark.campaign
async def test_memories_on_one_server_are_separate(tmp_path: Path, server: str) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    for number, folder in enumerate(folders):
        folder.mkdir()
        settings = Settings(data_storage_path=folder, vector_index="chroma", chroma_url=server)
        with closing(ChromaIndexes(settings)) as indexes:
            index = indexes(request(settings))
            assert await index.size() == 0
            await index.replace([1], of_pages({1: vectors(1 + number)}))
            assert await index.size() == 1 + number


def vectors(count: int, seed: int = 1) -> Vectors:
    rows = np.random.default_rng(seed).normal(size=(count, DIMENSION))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


def is_in_files(folder: Path, vector: Vectors) -> bool:
    return any(vector.tobytes() in each.read_bytes() for each in folder.rglob("*") if each.is_file())


async def test_removed_vectors_leave_the_files_of_a_folder(tmp_path: Path) -> None:
    settings, store, rows = Settings(data_storage_path=tmp_path, vector_index="chroma"), FewVectors(), vectors(1_500)
    store.vectors = {seq: rows[seq : seq + 1] for seq in range(1, 1_500)}
    with closing(ChromaIndexes(settings)) as indexes:
        index = indexes(request(settings, store=store))
        await index.replace([*store.vectors], of_pages(store.vectors))
        await index.set_mark("7/1499")
        assert is_in_files(tmp_path, rows[3])
        assert index.is_settled
        del store.vectors[3]
        await index.replace([3], of_pages({}))
        assert not index.is_settled
        await asyncio.gather(index.settle(), index.settle(), index.search(rows[5], 3))
        assert index.is_settled
        assert not is_in_files(tmp_path, rows[3])
        assert is_in_files(tmp_path, rows[4])
        hits = await index.search(rows[3], 2_000)
        assert sorted(hits.seqs.tolist()) == sorted(store.vectors)
        assert await indexes(request(settings, store=store)).mark() == "7/1499"


async def test_changes_during_a_copy_are_kept(tmp_path: Path) -> None:
    class Changing(FewVectors):
        async def all_vectors(self, after: int, limit: int) -> PageVectors:
            block = await super().all_vectors(after, limit)
            if after:
                change.set()
            await asyncio.sleep(0)
            return block

    settings, store, rows, change = (
        Settings(data_storage_path=tmp_path, vector_index="chroma"),
        Changing(),
        vectors(1_500),
        asyncio.Event(),
    )
    store.vectors = {seq: rows[seq : seq + 1] for seq in range(1, 1_400)}
    with closing(ChromaIndexes(settings)) as indexes:
        index = indexes(request(settings, store=store))
        await index.replace([*store.vectors], of_pages(store.vectors))
        await index.set_mark("7/1399")
        del store.vectors[3]
        await index.replace([3], of_pages({}))

        async def forget_and_add() -> None:
            await change.wait()
            del store.vectors[4]
            await index.replace([4], of_pages({}))
            store.vectors[1_450] = rows[1_450:1_451]
            await index.replace([1_450], of_pages({1_450: rows[1_450:1_451]}))

        await asyncio.gather(index.settle(), forget_and_add())
        hits = await index.search(rows[3], 2_000)
        assert sorted(hits.seqs.tolist()) == sorted(store.vectors)
        assert not index.is_settled
        await index.settle()
        assert not is_in_files(tmp_path, rows[4])


async def test_a_copy_that_failed_is_made_again(tmp_path: Path) -> None:
    class Failing(FewVectors):
        fails = True

        async def all_vectors(self, after: int, limit: int) -> PageVectors:
            if after and self.fails:
                raise StorageError("down")
            return await super().all_vectors(after, limit)

    settings, store, rows = Settings(data_storage_path=tmp_path, vector_index="chroma"), Failing(), vectors(1_500)
    store.vectors = {seq: rows[seq : seq + 1] for seq in range(1, 1_400)}
    with closing(ChromaIndexes(settings)) as indexes:
        index = indexes(request(settings, store=store))
        await index.replace([*store.vectors], of_pages(store.vectors))
        await index.set_mark("7/1399")
        del store.vectors[3]
        await index.replace([3], of_pages({}))
        with pytest.raises(StorageError):
            await index.settle()
    store.fails = False
    with closing(ChromaIndexes(settings)) as indexes:
        index = indexes(request(settings, store=store))
        assert await index.mark() == "7/1399"
        assert not index.is_settled
        await index.settle()
        assert await index.size() == 1_398
        assert not is_in_files(tmp_path, rows[3])
        assert len([each for each in (tmp_path / "chroma").iterdir() if each.is_dir()]) == 1


async def test_a_space_that_is_gone_leaves_no_collection(tmp_path: Path) -> None:
    settings, store, old = (
        Settings(data_storage_path=tmp_path, vector_index="chroma"),
        FewVectors(),
        f"old:{DIMENSION}:1",
    )
    store.known = [SPACE, old]
    rows = vectors(1_500)
    with closing(ChromaIndexes(settings)) as indexes:
        before = indexes(replace(request(settings, store=store), space=old))
        await before.replace([1], of_pages({1: rows}))
        await before.set_mark("1/1500")
        index = indexes(request(settings, store=store))
        assert await index.size() == 0
        await index.set_mark("1/0")
        assert await before.size() == 1_500
        store.known = [SPACE]
        await index.clear()
        await index.set_mark("1/0")
        await index.settle()
        assert not is_in_files(tmp_path, rows[0])
        with pytest.raises(StorageError, match="does not exist"):
            await before.size()


async def test_a_second_process_keeps_vectors_in_ram(tmp_path: Path) -> None:
    settings = Settings(data_storage_path=tmp_path, vector_index="chroma")
    with closing(ChromaIndexes(settings)) as first, closing(ChromaIndexes(settings)) as second:
        assert isinstance(first(request(settings)), ChromaIndex)
        assert isinstance(second(request(settings)), FaissIndex)
        first.close()
        assert isinstance(second(request(settings)), ChromaIndex)


async def test_a_missing_server_is_one_line(tmp_path: Path) -> None:
    settings = Settings(data_storage_path=tmp_path, vector_index="chroma", chroma_url="http://127.0.0.1:9")
    with closing(ChromaIndexes(settings)) as indexes, pytest.raises(StorageError) as raised:
        await indexes(request(settings)).mark()
    assert str(raised.value).startswith("the Chroma server http://127.0.0.1:9 failed (")
    assert str(raised.value).endswith("check that it runs, and correct chroma_url if necessary")


async def test_a_damaged_folder_is_one_line(tmp_path: Path) -> None:
    settings = Settings(data_storage_path=tmp_path, vector_index="chroma")
    (tmp_path / "chroma").mkdir()
    (tmp_path / "chroma" / "chroma.sqlite3").write_bytes(b"not a database" * 1_000)
    with closing(ChromaIndexes(settings)) as indexes, pytest.raises(StorageError) as raised:
        await indexes(request(settings)).mark()
    assert "\n" not in str(raised.value)
    assert str(raised.value).endswith("delete the folder. The vectors are then copied from the memory again")


def test_a_missing_extra_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"needs additional packages; run `pip install 'memoryos-mcp-server\[chroma"):
        choice.choose_index(Settings(vector_index="chroma"))


def test_faiss_imports_nothing_of_chroma() -> None:
    code = (
        "import sys; from memoryos_mcp.retrieval.index.choice import choose_index; "
        "from memoryos_mcp.config import Settings; "
        "choose_index(Settings()); print([each for each in sys.modules if 'chroma' in each])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, encoding="utf-8")
    assert done.stdout == "[]\n"


async def vector_of(engine: MemoryEngine, text: str) -> Vectors:
    """Return the vector of a page that has one window."""
    store = engine._spaces.retrieving.cache._store
    block = await store.all_vectors(0, 100)
    pages = {page.seq: page for page in await store.pages(PageQuery())}
    (row,) = [row for row, seq in enumerate(block.seqs.tolist()) if pages[seq].user_input == text]
    vector: Vectors = block.vectors[row]
    return vector


@pytest.mark.campaign
async def test_a_memory_is_found_again_without_filling_the_index(data: Path) -> None:
    settings: dict[str, Any] = {"data_storage_path": data, "vector_index": "chroma"}
    async with MemoryEngine.open("ada", **settings) as engine:
        await engine.add("My cat is called Miu.", "Noted.")
        await until_settled(engine)
        await engine.retrieve("What is there?")
    (made,) = collections(data, "ada")
    async with MemoryEngine.open("ada", **settings) as engine:
        await until_settled(engine)
        recall = await engine.retrieve("What is my pet's name?")
        assert recall.is_semantic
    assert collections(data, "ada") == [made]


def collections(data: Path, user_id: str) -> list[str]:
    settings = Settings(data_storage_path=data, vector_index="chroma")
    with closing(ChromaIndexes(settings)) as indexes:
        return [each.name for each in indexes.database(user_id).list_collections()]


@pytest.mark.parametrize("others", [0, 2])
@pytest.mark.campaign
async def test_forgotten_pages_leave_the_files(data: Path, others: int) -> None:
    settings: dict[str, Any] = {"data_storage_path": data, "vector_index": "chroma"}
    async with MemoryEngine.open("ada", **settings) as engine:
        receipt = await engine.add("My cat is called Miu.", "Noted.")
        for number in range(others):
            await engine.add(f"The car needs {number} new tyres.", "Noted.")
        await until_settled(engine)
        await engine.retrieve("What is there?")
        vector = await vector_of(engine, "My cat is called Miu.")
        assert is_in_files(data / "chroma", vector)
        selection = Selection(ids=[receipt.page_id]) if others else Selection(everything=True)
        forgotten = await engine.forget((await engine.plan_forgetting(selection)).handle)
        assert forgotten.is_scrubbed
        assert not is_in_files(data, vector)


@pytest.mark.campaign
async def test_the_command_forget_leaves_nothing_in_the_files(data: Path) -> None:
    settings: dict[str, Any] = {"data_storage_path": data, "vector_index": "chroma"}
    async with MemoryEngine.open("ada", **settings) as engine:
        await engine.add("My cat is called Miu.", "Noted.")
        await until_settled(engine)
        await engine.retrieve("What is there?")
        vector = await vector_of(engine, "My cat is called Miu.")
    assert is_in_files(data / "chroma", vector)
    environment = {"MEMORYOS_VECTOR_INDEX": "chroma", "MEMORYOS_EMBEDDING_MODEL_NAME": "none"}
    line = ("forget", "--everything", "--yes", "--user-id", "ada", "--data-storage-path", data)
    done = run_here(*line, env=environment)
    assert done.returncode == 0, done.stderr
    assert "; overwritten in the files" in done.stdout
    assert not is_in_files(data, vector)


@pytest.mark.campaign
async def test_a_page_forgotten_by_another_process_leaves_the_folder(data: Path) -> None:
    settings: dict[str, Any] = {"data_storage_path": data, "vector_index": "chroma"}
    async with MemoryEngine.open("ada", **settings) as first:
        await first.add("My cat is called Miu.", "Noted.")
        await until_settled(first)
        await first.retrieve("What is there?")
        vector = await vector_of(first, "My cat is called Miu.")
        assert is_in_files(data / "chroma", vector)
        async with MemoryEngine.open("ada", **settings) as second:
            await second.forget((await second.plan_forgetting(Selection(everything=True))).handle)
        async with asyncio.timeout(60):
            while is_in_files(data / "chroma", vector):  # noqa: ASYNC110 - another task's state
                await asyncio.sleep(0.1)


@pytest.mark.campaign
async def test_keywords_answer_while_a_server_is_down(data: Path, tmp_path: Path) -> None:
    with running_server(tmp_path) as url:
        settings: dict[str, Any] = {"data_storage_path": data, "vector_index": "chroma", "chroma_url": url}
        async with MemoryEngine.open("ada", **settings) as engine:
            await engine.add("My cat is called Miu.", "Noted.")
            await until_settled(engine)
            assert (await engine.retrieve("What is my pet's name?")).is_semantic
    async with MemoryEngine.open("ada", **settings) as engine:
        recall = await engine.retrieve("What is the cat called?")
        assert "My cat is called Miu." in [each.page.user_input for each in recall.short_term]


# Adds and searches pages until it is killed.
_BUSY = """
import asyncio, sys
from pathlib import Path
from memoryos_mcp.engine.engine import MemoryEngine

async def main():
    async with MemoryEngine.open("ada", data_storage_path=Path(sys.argv[1]), vector_index="chroma") as engine:
        for number in range(100_000):
            await engine.add(f"Cat {number} sleeps.", "Noted.")
            await engine.retrieve("cats")
            if number == int(sys.argv[2]):
                print("killed from now on", flush=True)

asyncio.run(main())
"""


@pytest.mark.campaign
async def test_kills_leave_an_index_that_is_completed(data: Path) -> None:
    for number in (0, 30, 60):
        await asyncio.to_thread(kill_after, data, number)
    async with MemoryEngine.open("ada", data_storage_path=data, vector_index="chroma") as engine:
        async with asyncio.timeout(120):  # the lease of the killed process must end first
            while not (stats := await engine.stats()).is_semantic or stats.counts.unembedded:  # noqa: ASYNC110 - another task's state
                await asyncio.sleep(0.1)
        await engine.retrieve("cats")
        cache = engine._spaces.retrieving.cache
        index = cache.index._index
        assert isinstance(index, ChromaIndex)
        assert await index.size() == len((await cache._store.all_vectors(0, 100_000)).seqs) > 90


def kill_after(data: Path, pages: int) -> None:
    command = [sys.executable, "-c", _BUSY, str(data), str(pages)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.kill()
