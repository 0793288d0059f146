"""Retention with a clock that is right, pauses or jumps."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from memoryos_mcp.consolidation.worker import RETENTION_EVERY, WAITING_RETENTION_EVERY
from memoryos_mcp.model.pages import Turn
from memoryos_mcp.storage.sql import page_table, retention
from memoryos_mcp.storage.sql.moments import to_us
from memoryos_mcp.storage.sqlite import schema
from memoryos_mcp.storage.sqlite.connections import SqliteConnection, set_up
from memoryos_mcp.storage.values import StoreOptions

OPTIONS = StoreOptions(assistant_id="a", short_term_capacity=7, session_gap_s=1800, knowledge_capacity=100)
START = datetime(2026, 5, 8, 12, tzinfo=UTC)
RETENTION = timedelta(days=365)
POLL = timedelta(minutes=1)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


class Machine:
    """A memory on a machine whose clock may jump, checked for old pages as by a server."""

    def __init__(self, connection: SqliteConnection) -> None:
        self.passed = timedelta()
        self.is_forgotten = False
        self._connection = connection
        self._leapt = timedelta()
        set_up(connection)
        schema.migrate(connection, "ada")
        self._restart()

    @property
    def clock(self) -> datetime:
        return START + self.passed + self._leapt

    def steady_us(self) -> int:
        return self.passed // timedelta(microseconds=1)

    def add_page(self) -> None:
        turns = [Turn("I like tea.", "Ok.", self.clock)]
        page_table.add_pages(self._connection, turns, to_us(self.clock), OPTIONS, None)

    def leap(self, **by: float) -> None:
        self._leapt += timedelta(**by)

    def run(self, how_long: timedelta) -> None:
        """Run a server from its start to its end."""
        self._restart()
        self.go_on(how_long)

    def go_on(self, how_long: timedelta) -> None:
        """Let a running server run on."""
        until = self.passed + how_long
        while self.passed <= until:
            self._look_if_due()
            self.passed += POLL

    def _restart(self) -> None:
        self._watch = retention.ClockWatch()
        self._looked_at: datetime | None = None
        self._waits = False

    def _look_if_due(self) -> None:
        every = WAITING_RETENTION_EVERY if self._waits else RETENTION_EVERY
        if self._looked_at is not None and timedelta() <= self.clock - self._looked_at < every:
            return
        now_us, before_us = to_us(self.clock), to_us(self.clock - RETENTION)
        seen = self._watch.observe(now_us)
        if not self._connection.execute("SELECT EXISTS (SELECT 1 FROM pages WHERE occurred_us < ?)", (before_us,)).get:
            retention.record_nothing_old(self._connection, now_us)
        elif retention.may_forget(self._connection, before_us, now_us, seen):
            self.is_forgotten = True
        self._looked_at, self._waits = self.clock, retention.waits_until(self._connection) is not None


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    """Return a machine with one page, which a server has checked once."""
    with closing(SqliteConnection(":memory:")) as connection:
        machine = Machine(connection)
        monkeypatch.setattr(retention, "steady_us", machine.steady_us)
        machine.add_page()
        machine.run(HOUR)
        yield machine


def test_a_server_that_always_runs_forgets_a_page_on_its_day(machine: Machine) -> None:
    for _ in range(364):
        machine.go_on(DAY)
        machine.add_page()
    assert not machine.is_forgotten
    machine.go_on(2 * DAY)
    assert machine.is_forgotten


def test_a_running_server_forgets_the_last_page_a_day_later(machine: Machine) -> None:
    machine.go_on(RETENTION)
    assert not machine.is_forgotten
    machine.go_on(3 * DAY)
    assert machine.is_forgotten


@pytest.mark.parametrize("session", [HOUR, timedelta(minutes=10)])
def test_daily_sessions_forget_old_pages_after_a_pause(machine: Machine, session: timedelta) -> None:
    machine.passed += 2 * RETENTION
    machine.run(session)
    assert not machine.is_forgotten
    for _ in range(5):
        machine.passed += DAY - session
        machine.run(session)
    assert machine.is_forgotten


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("leaps", [[4000, 2], [4000, 1.5, 1.5, 1.5], [4000, -4000, 4002], [4000, -4000, 4000, 1]])
def test_jumps_within_minutes_forget_nothing(machine: Machine, leaps: list[float], restarts: bool) -> None:
    for days in leaps:
        machine.leap(days=days)
        (machine.run if restarts else machine.go_on)(timedelta(minutes=2))
    machine.go_on(timedelta(minutes=15))
    assert not machine.is_forgotten


@pytest.mark.parametrize("days", [2, 1, -1])
def test_an_observed_jump_restarts_the_wait(machine: Machine, days: int) -> None:
    machine.leap(days=4000)
    machine.go_on(20 * HOUR)
    machine.leap(days=days)
    machine.go_on(23 * HOUR)
    assert not machine.is_forgotten
    machine.go_on(2 * HOUR)
    assert machine.is_forgotten


def test_a_clock_that_is_set_right_ends_the_wait(machine: Machine) -> None:
    machine.leap(days=4000)
    machine.go_on(23 * HOUR)
    machine.leap(days=-4000)
    machine.run(timedelta(minutes=1))
    machine.leap(days=4001)
    machine.run(HOUR)
    assert not machine.is_forgotten


def test_small_daily_jumps_do_not_count_as_a_running_clock(machine: Machine) -> None:
    machine.passed += timedelta(days=360)
    machine.run(HOUR)
    machine.add_page()
    for _ in range(5):
        machine.leap(days=1.9)
        machine.go_on(timedelta(minutes=1))
    assert not machine.is_forgotten
