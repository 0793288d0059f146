"""Background loops continue after failures and end on `close`."""

import asyncio
import threading
import time
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from memoryos_mcp.config import Settings
from memoryos_mcp.consolidation import loops, worker
from memoryos_mcp.consolidation.loops import BackgroundLoop, BackgroundTasks, LeaseKeeper
from memoryos_mcp.engine.service import MemoryService
from memoryos_mcp.errors import LeaseLostError, ModelError, StorageError
from memoryos_mcp.model.pages import Turn, utc_now
from memoryos_mcp.model.stats import Health
from memoryos_mcp.retrieval import query_time
from memoryos_mcp.retrieval.index.adaptive import AdaptiveIndex
from memoryos_mcp.retrieval.index.faiss_index import FaissIndex
from memoryos_mcp.storage.sql.store import SqlStore
from memoryos_mcp.storage.threads import StoreThreads
from memoryos_mcp.storage.values import StoreOptions
from tests.fakes import START, Clock
from tests.memories import NO_MODEL, USER, memory
from tests.stores import open_one
from tests.test_engine import until

pytestmark = pytest.mark.both_stores(in_campaign=True)

LIMIT_S = 10


@asynccontextmanager
async def two_stores(folder: Path, clock: Callable[[], datetime]) -> AsyncIterator[tuple[SqlStore, SqlStore]]:
    """Open the same user's memory twice."""
    options = StoreOptions("helper", 3, 1800, 100)
    one, other = [await open_one(folder, "ada", options, clock=clock) for _ in range(2)]
    async with asyncio.timeout(LIMIT_S):
        yield one.store, other.store
    await one.close()
    await other.close()


async def nothing() -> bool:
    return False


async def test_a_wake_up_during_close_does_not_keep_the_loop_alive() -> None:
    async with asyncio.timeout(LIMIT_S):
        for _ in range(200):
            loop = BackgroundLoop("test", nothing, poll_s=60, clock=Clock())
            loop.start()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            loop.wake()
            await loop.close()


async def test_an_idle_memory_organises_pages_of_other_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "POLL_S", 0.05)
    async with memory(tmp_path, None) as idle, asyncio.timeout(worker.IDLE_POLL_S / 5):
        other = await open_one(tmp_path, USER, StoreOptions("helper", 0, 1800, 100), clock=Clock())

        async def is_done() -> bool:
            return await idle.engine._worker.is_settled() and not (await idle.engine.waiting()).backlog

        for number in range(2):
            await until(is_done)
            await other.store.add_pages([Turn(f"I like tea {number}.", "Noted.", START)])
        await until(is_done)
        await other.close()


@pytest.mark.parametrize("idle_s", [0.0, 0.05])
async def test_pages_are_organised_without_a_poll(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, idle_s: float
) -> None:
    monkeypatch.setattr(worker, "POLL_S", 10.0 * LIMIT_S)  # a poll would come too late
    clock = Clock()
    # Without a model, the loop that embeds pages wakes nobody.
    settings = Settings(data_storage_path=tmp_path, short_term_capacity=0, consolidation_idle_s=idle_s, **NO_MODEL)
    async with MemoryService(settings, clock=clock) as service, service.user(USER) as engine:

        async def is_done() -> bool:
            return not (await engine.waiting()).backlog

        for number in range(2):
            await asyncio.sleep(0.2)  # the loops have nothing to do and pause
            await engine.add(f"I like tea {number}.", "Noted.")
            clock.move(seconds=1)
            async with asyncio.timeout(LIMIT_S):
                await until(is_done)


async def test_an_open_memory_prepares_the_first_query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "PREPARE_AFTER_S", 0.0)
    query_time.load.cache_clear()

    async def is_loaded() -> bool:
        return query_time.is_loaded()

    async with memory(tmp_path, None), asyncio.timeout(LIMIT_S):
        await until(is_loaded)


async def test_a_build_of_an_index_ends_with_its_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    started, ended = threading.Event(), threading.Event()

    def build(_index: AdaptiveIndex, is_cancelled: Callable[[], bool]) -> None:
        started.set()
        while not is_cancelled():
            time.sleep(0.01)
        ended.set()

    monkeypatch.setattr(AdaptiveIndex, "settle", build)
    async with asyncio.timeout(LIMIT_S):
        tasks = BackgroundTasks()
        tasks.start(FaissIndex(4).settle())
        await asyncio.to_thread(started.wait)
        await tasks.cancel()
        assert await asyncio.to_thread(ended.wait, LIMIT_S)


async def test_steps_follow_immediately_while_there_is_more_work() -> None:
    done = asyncio.Event()
    left = [3]

    async def step() -> bool:
        left[0] -= 1
        if not left[0]:
            done.set()
        return left[0] > 0

    loop = BackgroundLoop("test", step, poll_s=60, clock=Clock())
    loop.start()
    async with asyncio.timeout(LIMIT_S):
        await done.wait()
    await loop.close()
    assert left == [0]


async def test_a_failed_step_is_reported_and_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "FIRST_BACKOFF_S", 1)
    succeeded = asyncio.Event()
    failures: list[Exception] = [ModelError("first"), RuntimeError("a secret text"), LeaseLostError("taken")]
    clock = Clock()
    health_seen: list[Health] = []
    tried_at: list[datetime] = []

    async def step() -> bool:
        health_seen.append(loop.health)
        tried_at.append(clock.now)
        if failures:
            raise failures.pop(0)
        succeeded.set()
        return False

    loop = BackgroundLoop("test", step, poll_s=0.001, clock=clock)
    loop.start()
    async with asyncio.timeout(LIMIT_S):
        while not succeeded.is_set():
            await asyncio.sleep(0.001)
            clock.move(seconds=0.25)
        await asyncio.sleep(0)
    await loop.close()
    assert [health.failed_attempts for health in health_seen[:4]] == [0, 1, 2, 2]
    assert loop.health.failed_attempts == 0
    assert loop.health.last_error == "unexpected RuntimeError"
    assert loop.health.last_error_at == tried_at[1]
    assert tried_at[1] - tried_at[0] >= timedelta(seconds=1)
    assert tried_at[2] - tried_at[1] >= timedelta(seconds=2)


async def test_retry_pauses_follow_the_clock_and_grow_to_a_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loops, "LONGEST_BACKOFF_S", 8.0)
    clock = Clock()
    tried_at: list[float] = []

    async def step() -> bool:
        tried_at.append((clock.now - START).total_seconds())
        message = "down"
        raise ModelError(message)

    loop = BackgroundLoop("test", step, poll_s=0.001, clock=clock)
    loop.start()
    async with asyncio.timeout(LIMIT_S):
        while len(tried_at) < 7:
            tries = len(tried_at)
            for _ in range(5):  # time for a premature retry
                await asyncio.sleep(0.002)
            assert len(tried_at) in {tries, tries + 1}
            clock.move(seconds=1)
    await loop.close()
    assert tried_at == [0, 1, 3, 7, 15, 23, 31]


async def test_a_clock_that_is_set_back_does_not_delay_the_retry() -> None:
    clock = Clock()
    tries: list[datetime] = []
    tried, tried_twice = asyncio.Event(), asyncio.Event()

    async def step() -> bool:
        tries.append(clock.now)
        (tried_twice if tried.is_set() else tried).set()
        message = "down"
        raise ModelError(message)

    loop = BackgroundLoop("test", step, poll_s=0.001, clock=clock)
    loop.start()
    async with asyncio.timeout(LIMIT_S):
        await tried.wait()
        clock.move(days=-1)
        await tried_twice.wait()
    await loop.close()
    assert tries[1] < tries[0]


async def test_a_loop_may_be_closed_before_its_start() -> None:
    await BackgroundLoop("test", nothing, poll_s=1, clock=Clock()).close()


async def test_a_wake_up_does_not_shorten_the_pause_after_a_failure() -> None:
    tries: list[int] = []
    failed = asyncio.Event()

    async def step() -> bool:
        tries.append(1)
        failed.set()
        message = "down"
        raise ModelError(message)

    loop = BackgroundLoop("test", step, poll_s=0.001, clock=Clock())
    loop.start()
    async with asyncio.timeout(LIMIT_S):
        await failed.wait()
        for _ in range(50):
            loop.wake()
            await asyncio.sleep(0)
    await loop.close()
    assert len(tries) == 1


async def test_a_lease_is_renewed_during_a_slow_model_call(tmp_path: Path) -> None:
    async with two_stores(tmp_path, utc_now) as (store, other):
        async with LeaseKeeper(store, ttl_s=1.5).hold() as lease:
            assert lease is not None
            until = asyncio.get_running_loop().time() + 4.0
            while asyncio.get_running_loop().time() < until:
                assert await other.take_lease(1.5) is None
                await asyncio.sleep(0.02)
        assert await other.take_lease(0.3) is not None


async def test_close_releases_the_lease_of_a_cancelled_holder(tmp_path: Path) -> None:
    async with two_stores(tmp_path, Clock()) as (store, other):
        keeper = LeaseKeeper(store, ttl_s=0.03)
        holding = keeper.hold()
        assert await holding.__aenter__() is not None  # the context is not exited
        assert await other.take_lease(30) is None
        await keeper.close()
        lease = await other.take_lease(30)
        assert lease is not None
        await asyncio.sleep(0.1)  # longer than several renewals would take
        assert await store.take_lease(30) is None
        await keeper.close()  # does not release the lease of the other holder
        assert await store.take_lease(30) is None
        await holding.__aexit__(None, None, None)


async def test_a_lease_is_free_after_close_at_any_moment(tmp_path: Path) -> None:
    clock = Clock()
    async with two_stores(tmp_path, clock) as (store, other):
        for turns in range(60):
            keeper = LeaseKeeper(store, ttl_s=30)

            async def step(keeper: LeaseKeeper = keeper) -> bool:
                async with keeper.hold():
                    await asyncio.sleep(0)
                return True

            loop = BackgroundLoop("test", step, poll_s=60, clock=clock)
            loop.start()
            for _ in range(turns):
                await asyncio.sleep(0)
            await loop.close()
            await keeper.close()
            lease = await other.take_lease(30)
            assert lease is not None
            await other.release_lease(lease)


async def test_a_step_that_fails_when_cancelled_does_not_block_close() -> None:
    began = asyncio.Event()

    async def step() -> bool:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            msg = "it could not be tidied up"
            raise ModelError(msg)
        return False

    async with asyncio.timeout(5):
        loop = BackgroundLoop("stubborn", step, poll_s=60, clock=Clock())
        loop.start()
        await began.wait()
        await loop.close()
    assert loop.health.failed_attempts == 1


async def test_work_is_finished_although_its_caller_is_cancelled() -> None:
    begun, may_end, done = asyncio.Event(), asyncio.Event(), []

    async def work() -> None:
        begun.set()
        await may_end.wait()
        done.append(True)

    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        task = group.create_task(loops.to_the_end(work()))
        await begun.wait()
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0)
        assert not task.done()
        may_end.set()
    assert task.cancelled()
    assert done


async def test_closed_threads_refuse_calls() -> None:
    def stop() -> None:
        raise StopIteration

    threads = StoreThreads(1)
    async with asyncio.timeout(10):
        with pytest.raises(RuntimeError, match="StopIteration"):
            await threads.run(stop)
        assert await threads.run(lambda: 7) == 7
        threads.close()
        with pytest.raises(StorageError, match="closed"):
            await threads.run(lambda: 7)


async def test_a_cancelled_check_that_waits_for_its_thread_is_not_made() -> None:
    threads, may_end, done = StoreThreads(1), threading.Event(), []
    try:
        async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
            long = group.create_task(threads.run(may_end.wait))
            check = group.create_task(threads.run(lambda: done.append("check"), on_cancelled=lambda: None))
            write = group.create_task(threads.run(lambda: done.append("write")))
            await asyncio.sleep(0)
            check.cancel()
            await asyncio.wait([check])  # although the thread is still at work
            write.cancel()
            assert not long.done()
            may_end.set()
    finally:
        may_end.set()
        threads.close()
    assert check.cancelled()
    assert write.cancelled()
    assert done == ["write"]


async def test_a_loop_rests_until_it_is_woken() -> None:
    results: list[bool | None] = [False, None]
    waits = asyncio.Event()

    async def step() -> bool | None:
        await waits.wait()
        return results.pop(0) if results else None

    loop = BackgroundLoop("test", step, poll_s=0.001, clock=utc_now, idle_s=60)
    assert not loop.is_resting
    loop.start()
    assert not loop.is_resting
    waits.set()
    async with asyncio.timeout(LIMIT_S):
        while not loop.is_resting:  # noqa: ASYNC110 - another task's state
            await asyncio.sleep(0.001)
    assert not results
    loop.wake()
    assert not loop.is_resting
    await loop.close()


async def test_health_is_saved_after_failures_and_the_next_success(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "FIRST_BACKOFF_S", 0.001)
    failures: list[Exception] = [ModelError("first"), ModelError("second")]
    kept: list[tuple[int, str | None]] = []
    recovered = asyncio.Event()

    async def step() -> bool:
        if failures:
            raise failures.pop(0)
        return False

    async def save(health: Health) -> None:
        kept.append((health.failed_attempts, health.last_error))
        if not health.failed_attempts:
            recovered.set()
        msg = "the disk is full"
        raise StorageError(msg)  # a failure to save must not end the loop

    loop = BackgroundLoop("test", step, poll_s=0.001, clock=utc_now, save_health=save)
    loop.start()
    async with asyncio.timeout(LIMIT_S):
        await recovered.wait()
    await loop.close()
    assert kept == [(1, "first"), (2, "second"), (0, "second")]


@pytest.mark.parametrize("woken", ["before the start", "later", "never"])
async def test_a_loop_without_work_begins_when_woken_or_after_a_pause(woken: str) -> None:
    steps, caller = asyncio.Event(), ContextVar("caller", default="nobody")
    callers = []

    async def step() -> bool:
        callers.append(caller.get())
        steps.set()
        return False

    loop = BackgroundLoop("test", step, poll_s=60, clock=Clock(), idle_s=0.05 if woken == "never" else 60)
    caller.set("a request")
    if woken == "before the start":
        loop.wake()
    loop.start(has_work=False)
    assert loop.is_resting == (woken != "before the start")
    if woken == "later":
        loop.wake()
    async with asyncio.timeout(LIMIT_S):
        await steps.wait()
    await loop.close()
    assert callers == ["nobody"]


async def test_a_loop_that_never_had_work_is_freed_when_it_is_closed() -> None:
    loop = BackgroundLoop("test", nothing, poll_s=60, clock=Clock())
    loop.start(has_work=False)
    await loop.close()
    gone = weakref.ref(loop)
    del loop
    assert gone() is None


async def test_a_closed_loop_does_not_start() -> None:
    loop = BackgroundLoop("test", nothing, poll_s=60, clock=Clock())
    await loop.close()
    tasks = asyncio.all_tasks()
    loop.start()
    assert asyncio.all_tasks() == tasks
    loop.start(has_work=False)
    gone = weakref.ref(loop)
    del loop
    assert gone() is None
