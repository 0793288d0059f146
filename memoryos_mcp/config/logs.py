"""Logs on stderr: our own records from a level on, libraries' only from WARNING: they may hold what was said."""

import json
import logging
import math
import sys
import time
from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Literal

# Which request of HTTP a record belongs to.
request_id: ContextVar[str | None] = ContextVar("request_id", default=None)
SELDOM_S = 60.0


def log_to_stderr(level: str, form: Literal["text", "json"] = "text") -> None:
    """Log from ``level`` on, as lines to read or as one JSON object a line."""
    handler = logging.StreamHandler(sys.stderr)
    if form == "json":
        handler.setFormatter(_JsonFormatter())
    else:
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("memoryos_mcp").setLevel(level)


class Seldom(logging.Filter):
    """Lets one warning of a kind through in `SELDOM_S`, so that callers cannot fill the log; errors always.

    The next one tells how many were left out. Of one kind is what is logged in one place of the code.

    Args:
        clock: Seconds of a clock that never goes back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        # Per place, when the last record was let through and how many were left out since.
        self._last: dict[tuple[str, int], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is logged; one that others were left out before says so."""
        if record.levelno >= logging.ERROR:
            return True
        place, now = (record.name, record.lineno), self._clock()
        since, left_out = self._last.get(place, (-math.inf, 0))
        if now - since < SELDOM_S:
            self._last[place] = (since, left_out + 1)
            return False
        self._last[place] = (now, 0)
        if left_out:
            record.msg, record.args = f"{record.getMessage()} ({left_out:,} more since the last such line)", ()
        return True


class _JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, logger, message, and where there are, the request's id and the traceback."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, str] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if (current := request_id.get()) is not None:
            entry["request_id"] = current
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json.dumps(entry, ensure_ascii=False)
