"""When pages are old enough to be forgotten, although the clock may be wrong.

A clock that runs ahead makes every page look old, and what is forgotten is gone for good. So the file keeps when it was
last looked at for old pages. Where that look does not show a clock that went on from day to day, or where all pages
would go, they are forgotten only after a second look, a day later.
"""

from datetime import datetime

import apsw

from memoryos_mcp.storage.rows import from_us

_DAY_US = 86_400_000_000
# A look that comes later than this after the one before it comes from a clock that leapt, or after a long pause.
LONGEST_GAP_US = 2 * _DAY_US
# How long after the first look the second one forgets.
WAIT_US = _DAY_US
# A second look that comes later than this is a first one again.
LONGEST_WAIT_US = 100 * _DAY_US


def may_forget(connection: apsw.Connection, before_us: int, now_us: int) -> bool:
    """Take note of a look that found pages said before a moment, and return whether they may be forgotten now.

    Args:
        connection: Inside the caller's transaction.
        before_us: The moment, microseconds.
        now_us: The present by the clock that may be wrong.
    """
    looked_us, waits_since_us = _last_look(connection)
    if waits_since_us is not None and WAIT_US <= now_us - waits_since_us <= LONGEST_WAIT_US:
        _keep_look(connection, now_us, waits_since_us)  # until no old page is left
        return True
    if waits_since_us is not None and 0 <= now_us - waits_since_us < WAIT_US:
        _keep_look(connection, now_us, waits_since_us)
        return False
    newest_us = connection.execute("SELECT max(occurred_us) FROM pages").get
    went_on = waits_since_us is None and looked_us is not None and abs(now_us - looked_us) <= LONGEST_GAP_US
    is_trusted = went_on and newest_us is not None and newest_us >= before_us
    _keep_look(connection, now_us, None if is_trusted else now_us)
    return is_trusted


def nothing_old(connection: apsw.Connection, now_us: int) -> None:
    """Take note of a look that found no old page."""
    _keep_look(connection, now_us, None)


def waits_until(connection: apsw.Connection) -> datetime | None:
    """Return from when on a second look forgets; None if none is waited for."""
    if not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'retention'").get:
        return None  # a file of an earlier version
    _, waits_since_us = _last_look(connection)
    return None if waits_since_us is None else from_us(waits_since_us + WAIT_US)


def _last_look(connection: apsw.Connection) -> tuple[int | None, int | None]:
    row: tuple[int, int | None] | None = connection.execute(
        "SELECT looked_us, waits_since_us FROM retention"
    ).fetchone()
    return (None, None) if row is None else row


def _keep_look(connection: apsw.Connection, looked_us: int, waits_since_us: int | None) -> None:
    connection.execute("INSERT OR REPLACE INTO retention VALUES (1, ?, ?)", (looked_us, waits_since_us))
