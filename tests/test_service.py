import asyncio
import gc
import random
import subprocess
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import apsw
import psutil
import pytest

from memoryos_mcp.config import Settings
from memoryos_mcp.embedding import Passage
from memoryos_mcp.engine.engine import MemoryEngine
from memoryos_mcp.engine.service import MemoryService
from memoryos_mcp.errors import ArgumentError, DamagedStoreError, StorageError
from memoryos_mcp.model.pages import Window
from memoryos_mcp.retrieval.page_index import PageIndex
from memoryos_mcp.storage.postgres.store import PostgresStore
from memoryos_mcp.storage.sqlite.paths import beginning_mark, database_file
from tests.fakes import Clock, ScriptedAnalyst, WordEmbedder
from tests.servers import serve_environment, stored_pages
from tests.stores import is_postgres, is_stored

pytestmark = pytest.mark.both_stores(in_campaign=True)

LIMIT_S = 60
LOAD_S = 30
POLL_S = 0.01


class StubbornEmbedder(WordEmbedder):
    """Ignores cancellation until its gate is opened."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.is_at_work = asyncio.Event()

    async def embed_pages(self, passages: Sequence[Passage]) -> list[list[Window]]:
        self.is_at_work.set()
        while not self.gate.is_set():
            with suppress(asyncio.CancelledError):
                await self.gate.wait()
        return await super().embed_pages(passages)


class SlowEmbedder(WordEmbedder):
    """Takes long to load, but ends, so that a test that waits for it fails."""

    def __init__(self) -> None:
        super().__init__()
        self.is_loading, self.has_waited = asyncio.Event(), False

    async def load(self) -> None:
        self.is_loading.set()
        await asyncio.sleep(LOAD_S)
        self.has_waited = True


@asynccontextmanager
async def service(folder: Path, embedder: WordEmbedder | None = None, **settings: Any) -> AsyncIterator[MemoryService]:
    async with (
        asyncio.timeout(LIMIT_S),
        MemoryService(
            Settings(data_storage_path=folder, **settings),
            clock=Clock(),
            embedder=embedder or WordEmbedder(),
            analyst=ScriptedAnalyst(),
        ) as made,
    ):
        yield made


@contextmanager
def locked(folder: Path, user_id: str) -> Iterator[None]:
    """Lock a new user's memory, as another process that creates it would, so that opening it waits."""
    if is_postgres():
        from tests.postgres import new_user_locked

        with new_user_locked(folder, user_id):
            yield
        return
    path = database_file(folder, user_id)
    path.parent.mkdir(parents=True)
    beginning_mark(path).touch()
    connection = apsw.Connection(str(path))
    try:
        connection.execute("BEGIN EXCLUSIVE")
        yield
    finally:
        connection.close()


async def add(service: MemoryService, user_id: str, text: str) -> None:
    async with service.user(user_id) as engine:
        await engine.add(text, "")


async def page_count(service: MemoryService, user_id: str) -> int:
    async with service.user(user_id) as engine:
        return (await engine.stats()).counts.pages


async def borrowed(service: MemoryService, user_id: str) -> MemoryEngine:
    async with service.user(user_id) as engine:
        return engine


def open_users() -> set[str]:
    """Return the users whose memories this process has open."""
    if is_postgres():
        engines = [each for each in gc.get_objects() if type(each) is MemoryEngine]
        stores = [(engine.user_id, engine._store) for engine in engines]
        return {
            user_id for user_id, store in stores if isinstance(store, PostgresStore) and not store._database._is_closed
        }
    files = (Path(file.path) for file in psutil.Process().open_files())
    return {file.parent.name for file in files if file.name == "memory.db"}


async def until(is_so: Callable[[], bool]) -> None:
    """Wait for a condition on the system; the caller sets the time limit."""
    while not is_so():  # noqa: ASYNC110 - the system tells nobody
        await asyncio.sleep(POLL_S)


# Opening -----------------------------------------------------------------------------------------------------------


async def test_a_slow_opening_does_not_delay_other_users(tmp_path: Path) -> None:
    async with service(tmp_path) as memory, asyncio.TaskGroup() as group:
        with locked(tmp_path, "slow"):
            slow = group.create_task(borrowed(memory, "slow"))
            await asyncio.gather(*(add(memory, f"user{number}", "hello") for number in range(10)))
            assert not slow.done()
        assert (await slow).user_id == "slow"


async def test_concurrent_callers_of_a_user_share_one_engine(tmp_path: Path) -> None:
    async with service(tmp_path) as memory, AsyncExitStack() as stack:
        engines = await asyncio.gather(*(stack.enter_async_context(memory.user("ada")) for _ in range(20)))
        assert len(set(map(id, engines))) == 1


@pytest.mark.sqlite_only
async def test_a_failed_opening_is_reported_and_tried_again(tmp_path: Path) -> None:
    path = database_file(tmp_path, "ada")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"no database at all" * 10)
    async with service(tmp_path) as memory:
        told = await asyncio.gather(*(borrowed(memory, "ada") for _ in range(5)), return_exceptions=True)
        assert [type(error) for error in told] == [DamagedStoreError] * 5
        path.unlink()
        await add(memory, "ada", "hello")
        assert await page_count(memory, "ada") == 1


async def test_a_cancelled_caller_does_not_cancel_the_opening(tmp_path: Path) -> None:
    async with service(tmp_path) as memory, asyncio.TaskGroup() as group:
        with locked(tmp_path, "ada"):
            waiting = [group.create_task(borrowed(memory, "ada")) for _ in range(3)]
            await add(memory, "eve", "by now they all wait")
            waiting[0].cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting[0]
            assert not waiting[1].done()
        assert await waiting[1] is await waiting[2]


async def test_a_user_can_be_opened_after_a_cancelled_call(tmp_path: Path) -> None:
    async with service(tmp_path, max_open_users=1) as memory:
        with locked(tmp_path, "ada"), anyio.move_on_after(0.1) as gave_up:
            await borrowed(memory, "ada")
        assert gave_up.cancelled_caught
        await add(memory, "ada", "hello")
        await add(memory, "eve", "hello")
        assert await page_count(memory, "ada") == 1


async def test_an_invalid_user_id_evicts_no_open_user(tmp_path: Path) -> None:
    async with service(tmp_path, max_open_users=1) as memory:
        async with memory.user("ada") as before:
            pass
        for user_id in (" ", "a\0b", "x" * 10_001):
            with pytest.raises(ArgumentError, match=r"^user_id: "):
                await borrowed(memory, user_id)
        assert await borrowed(memory, "ada") is before


# Closing -----------------------------------------------------------------------------------------------------------


async def test_the_most_recently_used_users_stay_open(tmp_path: Path) -> None:
    async with service(tmp_path, max_open_users=2) as memory:
        for user_id in ("a", "b", "c", "a", "d"):
            await add(memory, user_id, f"I am {user_id}")
        await until(lambda: open_users() == {"a", "d"})
        assert [await page_count(memory, user_id) for user_id in "abcd"] == [2, 1, 1, 1]


def page_indexes() -> int:
    return sum(type(each) is PageIndex for each in gc.get_objects())


async def test_a_closed_memory_releases_its_ram_at_once(tmp_path: Path) -> None:
    """Vectors that wait for the garbage collector would take hundreds of MB on a server with many users."""
    embedder = WordEmbedder()
    await embedder.load()
    gc.collect()
    before = page_indexes()  # from memories that other tests have open
    gc.disable()
    try:
        async with service(tmp_path, embedder, max_open_users=1) as memory:
            for user_id in "abc":
                async with memory.user(user_id) as engine:
                    await engine.add("I keep bees", "")
                    await engine.retrieve("bees")
                del engine
            await until(lambda: open_users() == {"c"})
            await until(lambda: page_indexes() == before + 1)
    finally:
        gc.enable()


async def test_a_reopened_user_has_semantic_search_at_once(tmp_path: Path) -> None:
    embedder = WordEmbedder()
    await embedder.load()
    async with service(tmp_path, embedder, max_open_users=1) as memory:
        for user_id in ("ada", "eve"):
            await add(memory, user_id, "I keep bees")
        for user_id in ("ada", "eve") * 5:
            async with memory.user(user_id) as engine:
                assert (await engine.retrieve("bees")).is_semantic


async def test_users_beyond_the_limit_are_closed_once_idle(
    tmp_path: Path,
) -> None:
    users = {f"user{number}" for number in range(6)}
    async with service(tmp_path, max_open_users=2) as memory:
        async with AsyncExitStack() as stack:
            engines = await asyncio.gather(*(stack.enter_async_context(memory.user(user_id)) for user_id in users))
            assert open_users() == users
            await asyncio.gather(*(engine.add("hello", "") for engine in engines))
        await until(lambda: len(open_users()) == 2)
        assert await asyncio.gather(*(page_count(memory, user_id) for user_id in users)) == [1] * 6


async def test_a_slow_close_does_not_delay_other_users(tmp_path: Path) -> None:
    embedder = StubbornEmbedder()
    async with service(tmp_path, embedder, max_open_users=1) as memory, asyncio.TaskGroup() as group:
        async with memory.user("slow") as before:
            await before.add("hello", "")
            await embedder.is_at_work.wait()
        await borrowed(memory, "eve")
        again = [group.create_task(borrowed(memory, "slow")) for _ in range(3)]
        await borrowed(memory, "bob")
        assert not any(task.done() for task in again)
        again[0].cancel()
        embedder.gate.set()
        after = await again[1]
        assert after is not before
        assert await again[2] is after
        assert await page_count(memory, "slow") == 1


async def test_the_model_is_loaded_before_a_memory_is_open(tmp_path: Path) -> None:
    embedder = SlowEmbedder()
    async with service(tmp_path, embedder) as made:
        assert not await made.has_memory("ada")
        await embedder.is_loading.wait()
        assert not open_users()


async def test_close_does_not_wait_for_a_model(tmp_path: Path) -> None:
    embedder = SlowEmbedder()
    async with service(tmp_path, embedder) as made:
        await add(made, "ada", "I moved to Leeds.")
        await embedder.is_loading.wait()
    assert not embedder.has_waited


async def test_a_memory_that_is_only_looked_at_loads_no_model(tmp_path: Path) -> None:
    async with service(tmp_path) as made:
        await add(made, "ada", "I moved to Leeds.")
    embedder = SlowEmbedder()
    async with MemoryService(Settings(data_storage_path=tmp_path), embedder=embedder, only_looks=True) as looking:
        assert await page_count(looking, "ada") == 1
    assert not embedder.is_loading.is_set()


async def test_close_waits_for_openings_and_refuses_their_callers(tmp_path: Path) -> None:
    async with service(tmp_path) as memory, asyncio.TaskGroup() as group:
        await add(memory, "eve", "hello")
        with locked(tmp_path, "ada"):
            waiting = [asyncio.gather(borrowed(memory, "ada"), return_exceptions=True) for _ in range(3)]
            await add(memory, "eve", "by now they all wait")
            closing = group.create_task(memory.close())
            await asyncio.sleep(0)
            with pytest.raises(StorageError, match="shutting down"):
                await borrowed(memory, "eve")
            assert not closing.done()
        await closing
        for [told] in await asyncio.gather(*waiting):
            assert isinstance(told, StorageError)
            assert "shutting down" in str(told)
        assert not open_users()


async def test_a_cancelled_close_still_closes_the_service(tmp_path: Path) -> None:
    embedder = StubbornEmbedder()
    async with service(tmp_path, embedder) as memory, asyncio.TaskGroup() as group:
        await add(memory, "ada", "hello")
        await embedder.is_at_work.wait()
        closing = group.create_task(memory.close())
        await asyncio.sleep(POLL_S)
        closing.cancel()
        await asyncio.sleep(POLL_S)
        assert not closing.done()
        embedder.gate.set()
        with pytest.raises(asyncio.CancelledError):
            await closing
        assert not open_users()


# Many users---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
async def test_many_users_lose_and_double_no_page(tmp_path: Path, seed: int) -> None:
    users, workers, rounds = [f"user{number}" for number in range(50)], 20, 8
    chosen = random.Random(seed)  # noqa: S311 - which user comes next
    told: dict[str, set[str]] = defaultdict(set)
    begun: dict[str, set[str]] = defaultdict(set)

    async def work(memory: MemoryService, worker: int) -> None:
        for number in range(rounds):
            user_id, text = chosen.choice(users), f"{worker}-{number}"
            begun[user_id].add(text)
            patience_s = chosen.choice([None, None, None, 0.0, 0.005, 0.02])
            with anyio.move_on_after(patience_s):
                await add(memory, user_id, text)
                told[user_id].add(text)

    async with service(tmp_path, max_open_users=5) as memory:
        await asyncio.gather(*(work(memory, worker) for worker in range(workers)))
        await until(lambda: len(open_users()) <= 5)
    assert not open_users()
    assert any(told.values())
    for user_id in begun:
        pages = stored_pages(tmp_path, user_id) if is_stored(tmp_path, user_id) else []
        stored = [page.user_input for page in pages]
        assert len(stored) == len(set(stored))
        assert told[user_id] <= set(stored) <= begun[user_id]


MANY_USERS = """
import asyncio, logging, resource, sys
from pathlib import Path
from memoryos_mcp.config import Settings
from memoryos_mcp.engine.service import MemoryService

async def main():
    folder, soft, hard = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    async with MemoryService(Settings(data_storage_path=Path(folder), embedding_model_name="none")) as service:
        for number in range(25):
            async with service.user(f"user{number}") as engine:
                await engine.add("hello", "")
    print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])

logging.basicConfig(level="WARNING", format="%(name)s: %(message)s")
asyncio.run(main())
"""


@pytest.mark.sqlite_only
@pytest.mark.skipif(sys.platform == "win32", reason="POSIX limits")
@pytest.mark.parametrize(("soft", "hard", "raised", "fitting"), [(300, 600, 600, 8), (300, 4000, 3280, None)])
def test_the_limit_of_open_files_limits_open_users(
    tmp_path: Path, soft: int, hard: int, raised: int, fitting: int | None
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MANY_USERS, str(tmp_path), str(soft), str(hard)],
        capture_output=True,
        check=True,
        encoding="utf-8",
        timeout=LIMIT_S,
        env=serve_environment(tmp_path),
    )
    assert done.stdout.strip() == str(raised)
    lowered = [line for line in done.stderr.splitlines() if line.startswith("memoryos_mcp.config.descriptors: ")]
    assert len(lowered) == (fitting is not None)
    assert all(f"at most {fitting} memories can be open at the same time, not 200" in line for line in lowered)
