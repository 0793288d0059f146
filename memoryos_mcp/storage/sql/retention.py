"""Decides when old pages are forgotten, taking into account that the system clock may be wrong.

If the clock is ahead, every page looks old, and forgetting cannot be undone. The time of the last check for old pages
is therefore stored in the memory. Old pages are forgotten at once only if the clock has advanced normally since that
check, and if not all pages are old. Otherwise, they are forgotten by a second check at least a day later. Between the
two checks, servers must have run for a while without a jump of the clock. A jump restarts the wait.
"""

import time
from dataclasses import dataclass
from datetime import datetime

from memoryos_mcp.storage.sql.connection import Connection
from memoryos_mcp.storage.sql.moments import from_us

_DAY_US = 86_400_000_000
_MINUTE_US = 60_000_000
# The clock is trusted if at most this much time has passed since the previous check.
LONGEST_GAP_US = 2 * _DAY_US
# The minimum time between the first and the second check.
WAIT_US = _DAY_US
# After a longer wait, the second check is treated as a first check.
LONGEST_WAIT_US = 100 * _DAY_US
# The total time that servers must have run between the two checks; an hour a day is enough.
WATCHED_US = 30 * _MINUTE_US
# The system clock has jumped if its progress differs by more than this from that of the monotonic clock.
LEAP_US = 10 * _MINUTE_US
# The interval between a server's checks during the wait. At most twice this interval is counted for one check.
CHECK_EVERY_US = 5 * _MINUTE_US
# Key of the note about the current wait: its start, and how long servers have run since then. It is not exported.
WATCHED_KEY = "retention_watched"
# A monotonic clock that also advances while the machine sleeps. Its name depends on the operating system.
_STEADY_CLOCK = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))


def steady_us() -> int:
    """Return the microseconds since an arbitrary start, measured with a monotonic clock, which cannot be set."""
    return (time.monotonic_ns() if _STEADY_CLOCK is None else time.clock_gettime_ns(_STEADY_CLOCK)) // 1000


@dataclass(frozen=True, slots=True)
class ClockReading:
    """The time since the previous check by this process, and whether the system clock has jumped since then.

    Attributes:
        passed_us: Microseconds since the previous check, measured with the monotonic clock; 0 for the first check.
        has_leapt: Whether the system clock has jumped, compared with the monotonic clock.
    """

    passed_us: int
    has_leapt: bool


class ClockWatch:
    """Measures the time between two checks by this process, and detects whether the system clock was set meanwhile."""

    def __init__(self) -> None:
        self._previous: tuple[int, int] | None = None

    def observe(self, now_us: int) -> ClockReading:
        """Return the time since the previous call, and whether the system clock has jumped since then.

        ``now_us`` is the current time of the system clock.
        """
        present_us = steady_us()
        before_us, steady_before_us = self._previous or (now_us, present_us)
        self._previous = now_us, present_us
        passed_us = present_us - steady_before_us
        return ClockReading(passed_us, abs(now_us - before_us - passed_us) > LEAP_US)


def may_forget(connection: Connection, before_us: int, now_us: int, reading: ClockReading) -> bool:
    """Record a check that found pages older than ``before_us``; return whether these pages may be forgotten now.

    ``now_us`` is the current time of the system clock, which may be wrong. ``reading`` is the result of
    `ClockWatch.observe` for this check.
    """
    checked_us, waits_since_us = _last_check(connection)
    if waits_since_us is not None and 0 <= now_us - waits_since_us <= LONGEST_WAIT_US and not reading.has_leapt:
        watched_us = _watched_us(connection, waits_since_us) + min(reading.passed_us, 2 * CHECK_EVERY_US)
        _store_check(connection, now_us, waits_since_us)  # the wait ends when no old pages are left
        _store_watched(connection, waits_since_us, watched_us)
        return now_us - waits_since_us >= WAIT_US and watched_us >= WATCHED_US
    newest_us = connection.execute("SELECT max(occurred_us) FROM pages").get
    is_steady = checked_us is not None and abs(now_us - checked_us) <= LONGEST_GAP_US and not reading.has_leapt
    is_trusted = waits_since_us is None and is_steady and newest_us is not None and newest_us >= before_us
    _store_check(connection, now_us, None if is_trusted else now_us)
    return is_trusted


def record_nothing_old(connection: Connection, now_us: int) -> None:
    """Record a check that found no old pages."""
    _store_check(connection, now_us, None)


def waits_until(connection: Connection) -> datetime | None:
    """Return the earliest time at which old pages can be forgotten; None if forgetting is not delayed.

    If the clock may be wrong when old pages are found, forgetting is delayed until a second check for old pages.
    """
    checked_us, waits_since_us = _last_check(connection)
    if waits_since_us is None or checked_us is None:
        return None
    left_us = max(0, WATCHED_US - _watched_us(connection, waits_since_us))
    return from_us(max(waits_since_us + WAIT_US, checked_us + left_us))


def _last_check(connection: Connection) -> tuple[int | None, int | None]:
    row: tuple[int, int | None] | None = connection.execute(
        "SELECT looked_us, waits_since_us FROM retention"
    ).fetchone()
    return (None, None) if row is None else row


def _store_check(connection: Connection, checked_us: int, waits_since_us: int | None) -> None:
    connection.execute(
        "INSERT INTO retention (slot, looked_us, waits_since_us) VALUES (1, ?, ?) "
        "ON CONFLICT (slot) DO UPDATE SET looked_us = excluded.looked_us, waits_since_us = excluded.waits_since_us",
        (checked_us, waits_since_us),
    )


def _watched_us(connection: Connection, waits_since_us: int) -> int:
    """Return how many microseconds servers have run during the wait that began at ``waits_since_us``; 0 if unknown."""
    note: str | None = connection.execute("SELECT value FROM meta WHERE key = ?", (WATCHED_KEY,)).get
    began, _, watched = (note or "").partition(" ")
    return int(watched) if began == str(waits_since_us) and watched.isdecimal() else 0


def _store_watched(connection: Connection, waits_since_us: int, watched_us: int) -> None:
    connection.execute(
        "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (WATCHED_KEY, f"{waits_since_us} {watched_us}"),
    )
