"""When pages are old enough to be forgotten, although the clock may be wrong.

A clock that runs ahead makes every page look old, and forgetting cannot be undone. So the file records when it was last
checked for old pages. Old pages are forgotten at once only if the clock advanced normally since that check and not all
pages are old. Otherwise a second check must find them a day later. As the clock may jump again, servers must have
watched it advance for a while in between; a jump restarts the wait.
"""

import time
from dataclasses import dataclass
from datetime import datetime

import apsw

from memoryos_mcp.storage.sqlite.mapping import from_us

_DAY_US = 86_400_000_000
_MINUTE_US = 60_000_000
# A longer gap between two checks means that the clock jumped, or a long pause.
LONGEST_GAP_US = 2 * _DAY_US
# How long after the first check the second one forgets.
WAIT_US = _DAY_US
# A second check that comes later than this counts as a first one.
LONGEST_WAIT_US = 100 * _DAY_US
# How long servers must have run in total between the two checks; a server that runs for an hour a day meets this.
WATCHED_US = 30 * _MINUTE_US
# Normal corrections of the clock, and pauses that no clock counts, are shorter than this.
LEAP_US = 10 * _MINUTE_US
# How often a server checks during the wait; a check counts for at most twice this time.
CHECK_EVERY_US = 5 * _MINUTE_US
# Key of the present wait: when it began, and how long it was watched. It is not exported.
WATCHED_KEY = "retention_watched"
# CLOCK_BOOTTIME advances while the machine sleeps; on Windows and macOS other clocks do.
_STEADY_CLOCK = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))


def steady_us() -> int:
    """Return the time by a clock that is never set, in microseconds since an arbitrary moment."""
    return (time.monotonic_ns() if _STEADY_CLOCK is None else time.clock_gettime_ns(_STEADY_CLOCK)) // 1000


@dataclass(frozen=True, slots=True)
class ClockReading:
    """What a process has observed of the clock since its previous check.

    Attributes:
        passed_us: Microseconds since then by the steady clock; 0 for the first check.
        has_leapt: Whether the clock advanced differently from the steady one.
    """

    passed_us: int
    has_leapt: bool


class ClockWatch:
    """One process's observation of the clock from check to check."""

    def __init__(self) -> None:
        self._previous: tuple[int, int] | None = None

    def observe(self, now_us: int) -> ClockReading:
        """Record a check, and return what was observed since the previous one."""
        present_us = steady_us()
        before_us, steady_before_us = self._previous or (now_us, present_us)
        self._previous = now_us, present_us
        passed_us = present_us - steady_before_us
        return ClockReading(passed_us, abs(now_us - before_us - passed_us) > LEAP_US)


def may_forget(connection: apsw.Connection, before_us: int, now_us: int, seen: ClockReading) -> bool:
    """Record a check that found pages said before ``before_us``, and return whether they may be forgotten now.

    ``now_us`` is by the clock that may be wrong, of which the caller's process observed ``seen``.
    """
    looked_us, waits_since_us = _last_check(connection)
    if waits_since_us is not None and 0 <= now_us - waits_since_us <= LONGEST_WAIT_US and not seen.has_leapt:
        watched_us = _watched_us(connection, waits_since_us) + min(seen.passed_us, 2 * CHECK_EVERY_US)
        _store_check(connection, now_us, waits_since_us)  # until no old page is left
        _store_watched(connection, waits_since_us, watched_us)
        return now_us - waits_since_us >= WAIT_US and watched_us >= WATCHED_US
    newest_us = connection.execute("SELECT max(occurred_us) FROM pages").get
    is_steady = looked_us is not None and abs(now_us - looked_us) <= LONGEST_GAP_US and not seen.has_leapt
    is_trusted = waits_since_us is None and is_steady and newest_us is not None and newest_us >= before_us
    _store_check(connection, now_us, None if is_trusted else now_us)
    return is_trusted


def record_nothing_old(connection: apsw.Connection, now_us: int) -> None:
    """Record a check that found no old page."""
    _store_check(connection, now_us, None)


def waits_until(connection: apsw.Connection) -> datetime | None:
    """Return when a second check can forget pages; None if none is awaited."""
    if not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'retention'").get:
        return None  # a file of an earlier version
    looked_us, waits_since_us = _last_check(connection)
    if waits_since_us is None or looked_us is None:
        return None
    left_us = max(0, WATCHED_US - _watched_us(connection, waits_since_us))
    return from_us(max(waits_since_us + WAIT_US, looked_us + left_us))


def _last_check(connection: apsw.Connection) -> tuple[int | None, int | None]:
    row: tuple[int, int | None] | None = connection.execute(
        "SELECT looked_us, waits_since_us FROM retention"
    ).fetchone()
    return (None, None) if row is None else row


def _store_check(connection: apsw.Connection, looked_us: int, waits_since_us: int | None) -> None:
    connection.execute("INSERT OR REPLACE INTO retention VALUES (1, ?, ?)", (looked_us, waits_since_us))


def _watched_us(connection: apsw.Connection, waits_since_us: int) -> int:
    """Return how long the present wait was watched; the record of an earlier wait does not count."""
    kept: str | None = connection.execute("SELECT value FROM meta WHERE key = ?", (WATCHED_KEY,)).get
    began, _, watched = (kept or "").partition(" ")
    return int(watched) if began == str(waits_since_us) and watched.isdecimal() else 0


def _store_watched(connection: apsw.Connection, waits_since_us: int, watched_us: int) -> None:
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (WATCHED_KEY, f"{waits_since_us} {watched_us}"))
