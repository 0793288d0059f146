"""A server that ends, or whose machine is lost, is noticed by the other servers of its database."""

import asyncio
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from pydantic import SecretStr

from benchmarks.postgres import OWNER
from memoryos_mcp.config import Settings
from memoryos_mcp.engine import recovery
from memoryos_mcp.engine.service import MemoryService
from memoryos_mcp.errors import LeaseLostError
from memoryos_mcp.model.pages import Turn, utc_now
from memoryos_mcp.storage.postgres import watch
from memoryos_mcp.storage.postgres.stores import PostgresStores
from memoryos_mcp.storage.postgres.watch import LOCK_KEY, Watch
from memoryos_mcp.storage.sqlite.words import tokenizer
from memoryos_mcp.storage.stores import make_stores
from memoryos_mcp.storage.values import Archived, StoreOptions
from tests.fakes import ScriptedAnalyst, WordEmbedder
from tests.postgres import database_of, server
from tests.servers import wait_until
from tests.test_recovery import DeadEmbedder

LIMIT_S = 60


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Watch, Watch]]:
    """The watches of two servers, both connected."""
    url = database_of(tmp_path)
    one, other = Watch(url, "here"), Watch(url, "here")
    assert not one.wait(0.0)
    assert not other.wait(0.0)
    yield one, other
    one.close()
    other.close()


def test_the_end_of_a_server_is_announced(pair: tuple[Watch, Watch], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Watch, "_listed", staticmethod(lambda _connection: set()))  # only the announcement is left
    one, other = pair
    timer = threading.Timer(0.2, one.close)
    timer.start()
    assert other.wait(LIMIT_S)
    timer.join()


def test_the_loss_of_a_server_is_noticed_by_its_lock(pair: tuple[Watch, Watch], tmp_path: Path) -> None:
    _, other = pair
    name = database_of(tmp_path).rpartition("/")[2]
    with psycopg.connect(server().url(name, OWNER), autocommit=True) as connection:
        sql = "SELECT pid FROM pg_locks WHERE classid = %s AND locktype = 'advisory' ORDER BY pid"
        first = connection.execute(sql, (LOCK_KEY,)).fetchone()
        assert first is not None
        connection.execute("SELECT pg_terminate_backend(%s)", first)
    assert other.wait(LIMIT_S)
    assert not other.wait(0.0)


def test_a_lost_connection_counts_as_the_loss_of_servers(
    pair: tuple[Watch, Watch], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one, _ = pair
    name = database_of(tmp_path).rpartition("/")[2]
    with psycopg.connect(server().url(name, OWNER), autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE classid = %s", (LOCK_KEY,))
    assert not one.wait(0.0)
    assert "does not answer" in caplog.text
    assert one.wait(LIMIT_S)


def test_work_is_looked_for_although_no_server_has_ended(
    pair: tuple[Watch, Watch], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "LOOK_EVERY_S", 0.0)
    one, _ = pair
    one._look_at = time.monotonic()
    assert one.wait(0.0)


async def test_a_server_finishes_the_work_of_one_that_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # After its start it looks for work once. Later it looks only if another server has ended.
    monkeypatch.setattr(recovery, "LOOK_FOR", timedelta(0))
    url = SecretStr(database_of(tmp_path))
    settings = Settings(
        data_storage_path=tmp_path, database_url=url, short_term_capacity=0, consolidation_batch_pages=4
    )

    def service(embedder: WordEmbedder) -> MemoryService:
        return MemoryService(settings, embedder=embedder, analyst=ScriptedAnalyst(), catches_up=True)

    async with asyncio.timeout(LIMIT_S), service(WordEmbedder()) as running:
        async with service(DeadEmbedder()) as ending, ending.user("ada") as engine:
            for number in range(3):  # less than a batch, and without vectors
                await engine.add(f"ada waters plant {number}", "")
            assert (await engine.stats()).counts.unembedded == 3
        while not running.open_users:  # noqa: ASYNC110 - another service's work
            await asyncio.sleep(0.05)
        async with running.user("ada") as engine:
            while (await engine.stats()).counts.unembedded:  # noqa: ASYNC110 - another task's work
                await asyncio.sleep(0.05)


async def test_the_lease_of_a_server_that_ended_is_free(pair: tuple[Watch, Watch], tmp_path: Path) -> None:
    url = SecretStr(database_of(tmp_path))
    options = StoreOptions("helper", 0, 1800, 100)
    both = [PostgresStores(url.get_secret_value(), utc_now, threads=1, tokenize=tokenizer()) for _ in pair]
    for stores, own in zip(both, pair, strict=True):
        stores._watch = own
    first, second = [await stores.open("ada", options) for stores in both]
    both.append(PostgresStores(url.get_secret_value(), utc_now, threads=1, tokenize=tokenizer()))
    unseen = await both[2].open("ada", options)
    await first.add_pages([Turn("One page.", "Noted.", utc_now())])

    lease = await first.take_lease(LIMIT_S)
    assert lease is not None
    assert await second.take_lease(LIMIT_S) is None
    assert await first.take_lease(LIMIT_S) == lease
    assert both[1].users_with_work(None) == []
    pair[0].close()
    # The database needs a moment to see that a connection has ended.
    wait_until(lambda: both[1].users_with_work(None) == ["ada"], "work of the server that ended")
    taken = await second.take_lease(LIMIT_S)
    assert taken is not None
    with pytest.raises(LeaseLostError):
        await first.commit(lease, Archived(()))
    # A process that other processes cannot see keeps its lease until it expires.
    await second.release_lease(taken)
    assert await unseen.take_lease(LIMIT_S) is not None
    assert await second.take_lease(LIMIT_S) is None
    for store in (first, second, unseen):
        await store.close()
    for stores in both:
        stores.close()


async def test_interrupted_work_is_found_before_other_work(tmp_path: Path) -> None:
    url = database_of(tmp_path)
    stores = make_stores(Settings(database_url=SecretStr(url)), utc_now, threads=2)
    names = [f"user{number}" for number in range(12)]
    for name in names:
        store = await stores.open(name, StoreOptions("helper", 0, 1800, 100))
        await store.add_pages([Turn("One page.", "Noted.", utc_now())])
        if name == "user7":  # the holder of this lease is lost, and the lease has ended
            await store.take_lease(0.0)
        await store.close()
    first, *others = stores.users_with_work(None)
    stores.close()
    assert first == "user7"
    assert sorted([first, *others]) == sorted(names)
