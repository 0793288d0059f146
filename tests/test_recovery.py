"""Users who were closed with unfinished work are opened again to finish it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest

from memoryos_mcp.config import Settings
from memoryos_mcp.consolidation import loops, worker
from memoryos_mcp.consolidation.loops import LEASE_TTL_S
from memoryos_mcp.embedding import Passage
from memoryos_mcp.engine import recovery
from memoryos_mcp.engine.service import MemoryService
from memoryos_mcp.errors import ModelError, StorageError
from memoryos_mcp.model.pages import Window, utc_now
from memoryos_mcp.storage.sqlite.paths import database_file
from memoryos_mcp.storage.stores import make_stores
from memoryos_mcp.storage.values import StoreOptions
from tests.fakes import Clock, ScriptedAnalyst, WordEmbedder

pytestmark = pytest.mark.both_stores(in_campaign=True)

LIMIT_S = 60
POLL_S = 0.02
MODEL = WordEmbedder().model.to_json()
BATCH = 10
USERS = [f"user{number}" for number in range(6)]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "POLL_S", 0.02)
    monkeypatch.setattr(worker, "POLL_S", 0.05)


class DeadEmbedder(WordEmbedder):
    """Fails on every page."""

    async def embed_pages(self, passages: Any) -> list[list[Window]]:
        raise ModelError("the model is not there")


class WatchedEmbedder(WordEmbedder):
    """Counts the pages that it embeds."""

    def __init__(self) -> None:
        super().__init__()
        self.pages = 0

    async def embed_pages(self, passages: Any) -> list[list[Window]]:
        passages = list[Passage](passages)
        self.pages += len(passages)
        return await super().embed_pages(passages)


@asynccontextmanager
async def service(
    folder: Path, clock: Clock, embedder: WordEmbedder | None = None, *, catches_up: bool = True, **settings: Any
) -> AsyncIterator[MemoryService]:
    chosen: dict[str, Any] = {"short_term_capacity": 0, "consolidation_batch_pages": BATCH, **settings}
    made = MemoryService(
        Settings(data_storage_path=folder, **chosen),
        clock=clock,
        embedder=embedder or WordEmbedder(),
        analyst=ScriptedAnalyst(),
        catches_up=catches_up,
    )
    async with asyncio.timeout(LIMIT_S), made:
        yield made


async def add(service: MemoryService, user_id: str, pages: int) -> None:
    async with service.user(user_id) as engine:
        for number in range(pages):
            await engine.add(f"{user_id} waters plant {number}", "")


async def written_and_closed_at_once(folder: Path, clock: Clock, pages: int = BATCH) -> None:
    """Create users whose pages have neither vectors nor topics, and close them."""
    async with service(folder, clock, DeadEmbedder(), catches_up=False, consolidation_batch_pages=100) as memory:
        for user_id in USERS:
            await add(memory, user_id, pages)


def users_with_work(folder: Path) -> list[str]:
    with closing(make_stores(Settings(data_storage_path=folder), Clock())) as stores:
        return [*stores.users_with_work(MODEL)]


async def until_nobody_waits(folder: Path, but: str = "") -> None:
    while {*users_with_work(folder)} - {but}:  # noqa: ASYNC110 - files tell nobody
        await asyncio.sleep(POLL_S)


async def test_users_with_unfinished_work_are_opened_at_the_start(tmp_path: Path) -> None:
    clock = Clock()
    await written_and_closed_at_once(tmp_path, clock)
    assert sorted(users_with_work(tmp_path)) == USERS
    embedder = WatchedEmbedder()
    async with service(tmp_path, clock, embedder, max_open_users=2):
        await until_nobody_waits(tmp_path)
    assert embedder.pages == len(USERS) * BATCH


async def test_without_recovery_no_other_user_is_opened(tmp_path: Path) -> None:
    clock = Clock()
    await written_and_closed_at_once(tmp_path, clock)
    async with service(tmp_path, clock, catches_up=False) as memory:
        await add(memory, "ada", 1)
        await asyncio.sleep(1)
        assert memory.open_users == 1
    assert set(users_with_work(tmp_path)) >= set(USERS)


async def test_a_user_closed_for_room_is_reopened_when_work_is_due(tmp_path: Path) -> None:
    clock = Clock()
    async with service(tmp_path, clock, max_open_users=1, consolidation_idle_s=60) as memory:
        for user_id in USERS:
            await add(memory, user_id, 3)
        await asyncio.sleep(1)
        assert set(users_with_work(tmp_path)) == set(USERS)  # too few pages for a batch, and no silence yet
        clock.now += timedelta(minutes=10)
        await until_nobody_waits(tmp_path, but=USERS[-1])  # this user is still open and polls the clock


async def test_recovery_does_not_close_users_of_callers(tmp_path: Path) -> None:
    clock = Clock()
    await written_and_closed_at_once(tmp_path, clock)
    async with service(tmp_path, clock, max_open_users=3) as memory:
        async with memory.user("ada") as before:
            await before.add("hello", "")
        await until_nobody_waits(tmp_path, but="ada")
        async with memory.user("ada") as after:
            assert after is before


@pytest.mark.sqlite_only
async def test_an_unreadable_file_does_not_block_other_users(tmp_path: Path) -> None:
    clock = Clock()
    await written_and_closed_at_once(tmp_path, clock)
    database_file(tmp_path, USERS[0]).write_bytes(b"no database at all" * 100)
    with apsw.Connection(str(database_file(tmp_path, USERS[1]))) as connection:
        connection.execute("UPDATE meta SET value = 'another' WHERE key = 'user_id'")
    async with service(tmp_path, clock) as memory:
        await until_nobody_waits(tmp_path, but="another")
        assert database_file(tmp_path, USERS[0]).read_bytes().startswith(b"no database")
        await add(memory, "ada", 1)


@pytest.mark.sqlite_only
async def test_the_search_for_unfinished_work_changes_no_file(tmp_path: Path) -> None:
    await written_and_closed_at_once(tmp_path, Clock())
    before = contents(tmp_path)
    assert sorted(users_with_work(tmp_path)) == USERS
    assert contents(tmp_path) == before


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


async def test_close_ends_a_recovery_in_progress(tmp_path: Path) -> None:
    clock = Clock()
    await written_and_closed_at_once(tmp_path, clock)
    async with service(tmp_path, clock, DeadEmbedder()) as memory:
        while not memory.open_users:  # noqa: ASYNC110 - nobody is told
            await asyncio.sleep(POLL_S)
    assert memory.open_users == 0
    assert sorted(users_with_work(tmp_path)) == USERS


class FakeEngine:
    """Has no work."""

    async def next_work_at(self) -> None:
        return None


class Borrower:
    """Opens fake engines, and notes the users."""

    def __init__(self) -> None:
        self.borrowed: list[str] = []
        self.is_borrowed = asyncio.Event()

    @asynccontextmanager
    async def borrow(self, user_id: str) -> AsyncIterator[Any]:
        self.borrowed.append(user_id)
        self.is_borrowed.set()
        yield FakeEngine()


async def never(_: float) -> bool:
    await asyncio.Event().wait()
    return False


@pytest.mark.sqlite_only
async def test_a_user_who_is_open_already_is_borrowed_once() -> None:
    users = Borrower()
    made = recovery.Recovery(lambda: ["ada"], never, users.borrow, lambda: False, 2, Clock())
    made.start()
    async with asyncio.timeout(LIMIT_S):
        await users.is_borrowed.wait()
        for _ in range(100):  # turns of the event loop
            await asyncio.sleep(0)
    await made.close()
    assert users.borrowed == ["ada"]


@pytest.mark.sqlite_only
async def test_a_search_that_fails_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "LOOK_EVERY", timedelta(0))
    monkeypatch.setattr(loops, "FIRST_BACKOFF_S", 0.01)
    users, searches = Borrower(), iter([StorageError("the database cannot be reached")])

    def find() -> list[str]:
        if (error := next(searches, None)) is not None:
            raise error
        return ["ada"]

    made = recovery.Recovery(find, never, users.borrow, lambda: False, 4, utc_now)
    made.start()
    async with asyncio.timeout(LIMIT_S):
        await users.is_borrowed.wait()
    await made.close()
    assert users.borrowed[0] == "ada"


@pytest.mark.sqlite_only
@pytest.mark.parametrize("pause", [timedelta(seconds=2), timedelta(days=1)])
async def test_work_with_an_old_lease_is_found_after_the_lease_has_ended(
    monkeypatch: pytest.MonkeyPatch, pause: timedelta
) -> None:
    monkeypatch.setattr(recovery, "LOOK_EVERY", pause)
    clock, users = Clock(), Borrower()
    start = clock.now

    def find() -> list[str]:
        return ["ada"] if clock.now - start > timedelta(seconds=LEASE_TTL_S) else []

    made = recovery.Recovery(find, never, users.borrow, lambda: False, 2, clock)
    made.start()
    async with asyncio.timeout(LIMIT_S):
        while not users.borrowed:
            clock.now += timedelta(seconds=1)
            await asyncio.sleep(POLL_S)
    await made.close()
    assert users.borrowed[0] == "ada"


async def test_work_that_another_process_does_is_due_later(tmp_path: Path) -> None:
    settings = Settings(
        data_storage_path=tmp_path, embedding_model_name="none", short_term_capacity=0, consolidation_batch_pages=1
    )
    stores = make_stores(settings, utc_now)
    async with MemoryService(settings) as memory, memory.user("ada") as engine:
        other = await stores.open("ada", StoreOptions("helper", 0, 1800, 100))
        async with asyncio.timeout(LIMIT_S):
            while (lease := await other.take_lease(60.0)) is None:  # noqa: ASYNC110 - the engine has it at its start
                await asyncio.sleep(POLL_S)
            await engine.add("My cat is called Miu.", "Noted.")
            while not (await engine.next_work_at() or utc_now()) > utc_now() + timedelta(seconds=1):  # noqa: ASYNC110
                await asyncio.sleep(POLL_S)
            await other.release_lease(lease)
            while await engine.next_work_at() is not None:  # noqa: ASYNC110 - another task's state
                await asyncio.sleep(POLL_S)
        await other.close()
    stores.close()
