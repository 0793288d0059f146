"""Logging to stderr. Libraries log only from WARNING on, because their records may contain dialogue."""

import json
import logging
import math
import sys
import time
from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Literal

# Id of the current HTTP request; added to records.
request_id: ContextVar[str | None] = ContextVar("request_id", default=None)
SELDOM_S = 60.0


def log_to_stderr(level: str, form: Literal["text", "json"] = "text") -> None:
    """Log records of this package from ``level`` on to stderr, as lines of text or as one JSON object per line."""
    handler = logging.StreamHandler(sys.stderr)
    if form == "json":
        handler.setFormatter(_JsonFormatter())
    else:
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("memoryos_mcp").setLevel(level)


class Seldom(logging.Filter):
    """Passes at most one warning per place in the code in `SELDOM_S`, so that callers cannot fill the log.

    The next warning contains the number of suppressed ones. Errors always pass. ``clock`` is monotonic, in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        # By place: the time at which the last record passed, and the number of records suppressed since then.
        self._last: dict[tuple[str, int], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to log a record, after adding the number of suppressed records to its message."""
        if record.levelno >= logging.ERROR:
            return True
        place, now = (record.name, record.lineno), self._clock()
        since, left_out = self._last.get(place, (-math.inf, 0))
        if now - since < SELDOM_S:
            self._last[place] = (since, left_out + 1)
            return False
        self._last[place] = (now, 0)
        if left_out:
            record.msg, record.args = f"{record.getMessage()} ({left_out:,} more of these since the last one)", ()
        return True


class _JsonFormatter(logging.Formatter):
    """Formats a record as one line of JSON: time, level, logger, message and, if present, request id and traceback."""

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
