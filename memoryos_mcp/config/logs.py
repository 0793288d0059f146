"""Logging to stderr. Libraries log only at WARNING and above, because their other records may contain dialogue."""

import json
import logging
import math
import sys
import time
from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Literal

# Id of the current HTTP request. It is added to log records in JSON.
request_id: ContextVar[str | None] = ContextVar("request_id", default=None)
SELDOM_S = 60.0


def log_to_stderr(level: str, form: Literal["text", "json"] = "text") -> None:
    """Set up logging to stderr, as lines of text or as one JSON object per line.

    Records of this package are logged at ``level`` and above, and those of libraries at WARNING and above.
    """
    handler = logging.StreamHandler(sys.stderr)
    if form == "json":
        handler.setFormatter(_JsonFormatter())
    else:
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("memoryos_mcp").setLevel(level)


class Seldom(logging.Filter):
    """A log filter that suppresses repeated records, so that callers cannot fill the log.

    For each line of code that logs, at most one record passes every `SELDOM_S` seconds. The message of this record
    states how many records were suppressed before it. Errors always pass. ``clock`` returns monotonic time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        # For each line of code: when the last record passed, and the number of records suppressed since then.
        self._last: dict[tuple[str, int], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to log a record.

        If earlier records of the same line of code were suppressed, add their number to the record's message.
        """
        if record.levelno >= logging.ERROR:
            return True
        place, now = (record.name, record.lineno), self._clock()
        since, left_out = self._last.get(place, (-math.inf, 0))
        if now - since < SELDOM_S:
            self._last[place] = (since, left_out + 1)
            return False
        self._last[place] = (now, 0)
        if left_out:
            record.msg, record.args = f"{record.getMessage()} ({left_out:,} similar messages were suppressed)", ()
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
