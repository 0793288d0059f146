"""When pages are old enough to be forgotten, although the clock may be wrong.

A clock that runs ahead makes every page look old, and what is forgotten is gone for good. So the file keeps when it was
last looked at for old pages. Where that look does not show a clock that went on from day to day, or where all pages
would go, they are forgotten only after a second look, a day later. A clock that leaps once more would tell that day
wrongly. So servers must have watched the clock go on for a while in between, and the wait begins again with a leap.
"""

import time
from dataclasses import dataclass
from datetime import datetime

import apsw

from memoryos_mcp.storage.sqlite.mapping import from_us

_DAY_US = 86_400_000_000
_MINUTE_US = 60_000_000
# A look that comes later than this after the one before it comes from a clock that leapt, or after a long pause.
LONGEST_GAP_US = 2 * _DAY_US
# How long after the first look the second one forgets.
WAIT_US = _DAY_US
# A second look that comes later than this is a first one again.
LONGEST_WAIT_US = 100 * _DAY_US
# How long servers must have run between the two looks, together. One that runs for an hour a day has done so by then.
WATCHED_US = 30 * _MINUTE_US
# Clocks that are set right, and pauses that no clock counts, are shorter than this.
LEAP_US = 10 * _MINUTE_US
# How often a server looks while a second look is waited for; a look tells of no more than twice that.
LOOK_EVERY_US = 5 * _MINUTE_US
# What is kept of the present wait: when it began, and how long it was watched. No export contains it.
WATCHED_KEY = "retention_watched"
# It goes on while the machine sleeps; on Windows and macOS another one does.
_STEADY_CLOCK = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))


def steady_us() -> int:
    """Return the time by a clock that nobody sets, microseconds since some moment."""
    return (time.monotonic_ns() if _STEADY_CLOCK is None else time.clock_gettime_ns(_STEADY_CLOCK)) // 1000


@dataclass(frozen=True, slots=True)
class Seen:
    """What a process has seen of the clock since its previous look.

    Attributes:
        passed_us: How long ago that was by the steady clock, microseconds; 0 for the first look.
        has_leapt: Whether the clock went on otherwise than the steady one.
    """

    passed_us: int
    has_leapt: bool


class Watch:
    """What one process sees of the clock from look to look."""

    def __init__(self) -> None:
        self._looked: tuple[int, int] | None = None

    def look(self, now_us: int) -> Seen:
        """Take note of a look, and return what was seen since the previous one."""
        present_us = steady_us()
        before_us, steady_before_us = self._looked or (now_us, present_us)
        self._looked = now_us, present_us
        passed_us = present_us - steady_before_us
        return Seen(passed_us, abs(now_us - before_us - passed_us) > LEAP_US)


def may_forget(connection: apsw.Connection, before_us: int, now_us: int, seen: Seen) -> bool:
    """Take note of a look that found pages said before a moment, and return whether they may be forgotten now.

    Args:
        connection: Inside the caller's transaction.
        before_us: The moment, microseconds.
        now_us: The present by the clock that may be wrong.
        seen: What the caller's process saw of that clock since its previous look.
    """
    looked_us, waits_since_us = _last_look(connection)
    if waits_since_us is not None and 0 <= now_us - waits_since_us <= LONGEST_WAIT_US and not seen.has_leapt:
        watched_us = _watched_us(connection, waits_since_us) + min(seen.passed_us, 2 * LOOK_EVERY_US)
        _keep_look(connection, now_us, waits_since_us)  # until no old page is left
        _keep_watched(connection, waits_since_us, watched_us)
        return now_us - waits_since_us >= WAIT_US and watched_us >= WATCHED_US
    newest_us = connection.execute("SELECT max(occurred_us) FROM pages").get
    is_steady = looked_us is not None and abs(now_us - looked_us) <= LONGEST_GAP_US and not seen.has_leapt
    is_trusted = waits_since_us is None and is_steady and newest_us is not None and newest_us >= before_us
    _keep_look(connection, now_us, None if is_trusted else now_us)
    return is_trusted


def nothing_old(connection: apsw.Connection, now_us: int) -> None:
    """Take note of a look that found no old page."""
    _keep_look(connection, now_us, None)


def waits_until(connection: apsw.Connection) -> datetime | None:
    """Return from when on a second look forgets; None if none is waited for."""
    if not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'retention'").get:
        return None  # a file of an earlier version
    looked_us, waits_since_us = _last_look(connection)
    if waits_since_us is None or looked_us is None:
        return None
    left_us = max(0, WATCHED_US - _watched_us(connection, waits_since_us))
    return from_us(max(waits_since_us + WAIT_US, looked_us + left_us))


def _last_look(connection: apsw.Connection) -> tuple[int | None, int | None]:
    row: tuple[int, int | None] | None = connection.execute(
        "SELECT looked_us, waits_since_us FROM retention"
    ).fetchone()
    return (None, None) if row is None else row


def _keep_look(connection: apsw.Connection, looked_us: int, waits_since_us: int | None) -> None:
    connection.execute("INSERT OR REPLACE INTO retention VALUES (1, ?, ?)", (looked_us, waits_since_us))


def _watched_us(connection: apsw.Connection, waits_since_us: int) -> int:
    """Return how long the present wait was watched; what is kept of an earlier one does not count."""
    kept: str | None = connection.execute("SELECT value FROM meta WHERE key = ?", (WATCHED_KEY,)).get
    began, _, watched = (kept or "").partition(" ")
    return int(watched) if began == str(waits_since_us) and watched.isdecimal() else 0


def _keep_watched(connection: apsw.Connection, waits_since_us: int, watched_us: int) -> None:
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (WATCHED_KEY, f"{waits_since_us} {watched_us}"))
