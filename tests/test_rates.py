"""Request rates of callers, over all servers that share a database."""

import asyncio
import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.postgres import OWNER
from memoryos_mcp.errors import StorageError
from memoryos_mcp.server.http import rates as http_rates
from memoryos_mcp.server.http.rates import SHARE_S, SharedRates, burst_of
from memoryos_mcp.storage.capabilities import Grant
from memoryos_mcp.storage.postgres import rates as postgres_rates
from memoryos_mcp.storage.postgres.stores import PostgresStores
from tests.fakes import Clock, Seconds
from tests.postgres import server

LIMIT_S = 20
DATABASE = "rates"


class Buckets:
    """Rates in this process, by a clock that a test sets."""

    def __init__(self, clock: Seconds) -> None:
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}
        self.failure: StorageError | None = None
        self.calls = 0
        self.may_answer = threading.Event()
        self.may_answer.set()

    def draw(self, caller: str, requests: int, *, per_second: float, burst: float) -> Grant:
        self.calls += 1
        self.may_answer.wait(LIMIT_S)
        if self.failure is not None:
            raise self.failure
        left, since = self._buckets.get(caller, (burst, self._clock.now))
        left = min(burst, left + (self._clock.now - since) * per_second)
        granted = min(requests, int(left))
        self._buckets[caller] = (left - granted, self._clock.now)
        return Grant(granted, 0.0 if granted == requests else (requests - left + granted) / per_second)


# A server ----------------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(
    per_second=st.floats(0.05, 200),
    steps=st.lists(
        st.tuples(st.floats(0, 2) | st.just(0.0), st.sampled_from("ab"), st.integers(0, 2), st.integers(1, 30)),
        min_size=1,
        max_size=30,
    ),
)
def test_all_servers_together_keep_to_the_rate(per_second: float, steps: list[tuple[float, str, int, int]]) -> None:
    async def run() -> dict[str, list[float]]:
        clock = Seconds()
        buckets = Buckets(clock)
        servers = [SharedRates(buckets, per_second, clock) for _ in range(3)]
        admitted: dict[str, list[float]] = {"a": [], "b": []}
        for pause_s, caller, number, requests in steps:
            clock.now += pause_s
            for _ in range(requests):
                wait_s = await servers[number].wait_s(caller)
                assert wait_s is not None
                assert wait_s >= 0
                admitted[caller] += [] if wait_s else [clock.now]
        return admitted

    reserve = 3 * max(1.0, per_second * SHARE_S)  # what servers took out of the bucket earlier
    for times in asyncio.run(run()).values():
        for first, begin in enumerate(times):
            for last in range(first, len(times)):
                most = burst_of(per_second) + reserve + (times[last] - begin) * per_second
                assert last - first + 1 <= most + 1e-6


@settings(max_examples=30, deadline=None)
@given(per_second=st.floats(1, 60), servers=st.integers(1, 3))
def test_a_busy_caller_gets_its_rate_with_few_calls(per_second: float, servers: int) -> None:
    duration_s = 4

    async def run() -> tuple[int, int]:
        clock = Seconds()
        buckets = Buckets(clock)
        guards = [SharedRates(buckets, per_second, clock) for _ in range(servers)]
        admitted = 0
        for _ in range(duration_s * 20):
            for guard in guards:
                while await guard.wait_s("a") == 0:
                    admitted += 1
            clock.now += 0.05
        return admitted, buckets.calls

    admitted, calls = asyncio.run(run())
    wanted = burst_of(per_second) + duration_s * per_second
    share = max(1, int(per_second * SHARE_S))
    assert wanted - share - 1 - per_second * SHARE_S - 0.05 * per_second <= admitted <= wanted + 1e-6
    # Each call gets a share, or tells the server to wait until there is one.
    assert calls <= admitted / share + servers * (duration_s * per_second / share + 2)


@given(per_second=st.floats(0.05, 50))
def test_a_caller_who_waits_as_told_is_admitted(per_second: float) -> None:
    async def run() -> None:
        clock = Seconds()
        shared = SharedRates(Buckets(clock), per_second, clock)
        while (wait_s := await shared.wait_s("a")) == 0:
            pass
        assert wait_s is not None
        clock.now += wait_s + 1e-6
        assert await shared.wait_s("a") == 0

    asyncio.run(run())


async def test_requests_that_arrive_at_once_share_the_calls() -> None:
    clock = Seconds()
    buckets = Buckets(clock)
    shared = SharedRates(buckets, 50.0, clock)
    async with asyncio.timeout(LIMIT_S):
        waits = await asyncio.gather(*(shared.wait_s("a") for _ in range(150)))
    assert waits.count(0.0) == 100
    assert buckets.calls == 11


async def test_a_failing_database_is_asked_again_later(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    clock = Seconds()
    buckets = Buckets(clock)
    shared = SharedRates(buckets, 1.0, clock)
    buckets.failure = StorageError("the database cannot be reached")
    assert [await shared.wait_s("a") for _ in range(4)] == [None] * 4
    clock.now += http_rates.RETRY_S
    assert await shared.wait_s("b") is None
    assert buckets.calls == 2
    clock.now += http_rates.RETRY_S
    buckets.failure = None
    assert await shared.wait_s("a") == 0
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", "the database failed, so this server counts requests by itself: the database cannot be reached"),
        ("INFO", "the database works again, so requests are counted over all servers together"),
    ]


async def test_a_database_that_hangs_delays_few_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_rates, "DRAW_TIMEOUT_S", 0.05)
    clock = Seconds()
    buckets = Buckets(clock)
    buckets.may_answer.clear()
    shared = SharedRates(buckets, 50.0, clock)
    async with asyncio.timeout(LIMIT_S):
        assert await asyncio.gather(*(shared.wait_s("a") for _ in range(20))) == [None] * 20
    assert buckets.calls == 1
    buckets.may_answer.set()


# The database ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def stores() -> Iterator[PostgresStores]:
    """Stores of a database in which nobody has sent a request yet."""
    with closing(PostgresStores(server().make(DATABASE), Clock(), threads=1, tokenize=str.split)) as opened:
        assert opened.engine
        run_sql("DELETE FROM memoryos.rates")
        yield opened


def run_sql(statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(server().url(DATABASE, OWNER), autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def drawn(stores: PostgresStores, requests: int, caller: str = "a", per_second: float = 0.001) -> int:
    return stores.rates.draw(caller, requests, per_second=per_second, burst=20.0).requests


def test_a_bucket_is_refilled_by_the_databases_clock(stores: PostgresStores) -> None:
    grants = [stores.rates.draw("a", 8, per_second=0.001, burst=20.0) for _ in range(4)]
    assert [grant.requests for grant in grants] == [8, 8, 4, 0]
    assert [grant.wait_s == 0 for grant in grants] == [True, True, False, False]
    assert 7_000 < grants[-1].wait_s <= 8_000
    run_sql("UPDATE memoryos.rates SET drawn_at = drawn_at - interval '3000 s'")
    assert [drawn(stores, 8), drawn(stores, 8)] == [3, 0]
    run_sql("UPDATE memoryos.rates SET drawn_at = drawn_at - interval '10 days'")
    assert [drawn(stores, 8) for _ in range(4)] == [8, 8, 4, 0]
    run_sql("UPDATE memoryos.rates SET drawn_at = drawn_at + interval '10 days'")  # the clock was set back
    assert drawn(stores, 8) == 0
    assert drawn(stores, 8, caller="b") == 8


def test_servers_that_draw_at_once_get_no_more_together(stores: PostgresStores) -> None:
    other = PostgresStores(server().url(DATABASE), Clock(), threads=1, tokenize=str.split)
    with closing(other), ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda number: drawn((stores, other)[number % 2], 3), range(40)))
    assert sum(found) == 20
    assert found.count(3) == 6


def test_old_buckets_are_deleted_and_callers_are_not_named(stores: PostgresStores) -> None:
    for caller in ("mem_secret zoë", "b"):
        drawn(stores, 3, caller, per_second=1.0)
    assert b"secret" not in b"".join(bytes(row[0]) for row in run_sql("SELECT caller FROM memoryos.rates"))  # type: ignore[call-overload]
    run_sql("UPDATE memoryos.rates SET drawn_at = drawn_at - interval '50 s'")
    stores.rates._clean_at = 0.0
    drawn(stores, 3, "c", per_second=1.0)
    assert run_sql("SELECT count(*) FROM memoryos.rates") == [(3,)]
    run_sql("UPDATE memoryos.rates SET drawn_at = drawn_at - interval '50 s'")
    stores.rates._clean_at = 0.0
    drawn(stores, 3, "c", per_second=1.0)
    assert run_sql("SELECT count(*) FROM memoryos.rates") == [(1,)]
    run_sql(f"UPDATE memoryos.rates SET drawn_at = drawn_at - interval '{postgres_rates.KEPT_S + 1} s'")  # noqa: S608
    stores.rates._clean_at = 0.0
    drawn(stores, 3, "d", per_second=0.001)  # the other bucket is not full yet
    assert run_sql("SELECT count(*) FROM memoryos.rates") == [(2,)]


def test_a_database_without_the_table_raises_a_storage_error(stores: PostgresStores) -> None:
    run_sql("ALTER TABLE memoryos.rates RENAME TO gone")
    try:
        with pytest.raises(StorageError):
            drawn(stores, 1)
    finally:
        run_sql("ALTER TABLE memoryos.gone RENAME TO rates")
    assert drawn(stores, 1) == 1
