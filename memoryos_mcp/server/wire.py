"""File objects through which the SDK reads stdin and writes stdout.

They handle four cases in which the SDK alone would fail:

- A message contains a lone surrogate: the SDK's parser would refuse it.
- A line is not a message: the SDK would not answer it.
- The input ends while requests are under way: the SDK would cancel them.
- The client no longer reads stdout: the SDK would raise an error.
"""

import io
import json
import logging
import os
import re
import select
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import mcp_types as types
from pydantic import ValidationError

logger = logging.getLogger(__name__)

# How long to wait for replies after the end of input. A cancelled request may never get a reply.
DRAIN_TIMEOUT_S = 10.0

# One JSON escape: a surrogate pair, a lone surrogate (captured), or any other escape.
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)"
)
_ID = r'"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d{1,18})(?=\s*[,}])'
_FIRST_ID = re.compile(_ID)
_REPLY_ID = re.compile(r'\{"jsonrpc":"2\.0",' + _ID)


class _PendingRequests:
    """The ids of requests that have no reply yet. Safe to share between threads."""

    def __init__(self) -> None:
        self._ids: set[int | str] = set()
        self._changed = threading.Condition()

    def add(self, request_id: int | str) -> None:
        with self._changed:
            self._ids.add(request_id)

    def discard(self, request_id: int | str) -> None:
        with self._changed:
            self._ids.discard(request_id)
            self._changed.notify_all()

    def wait_for_replies(self, timeout_s: float) -> None:
        with self._changed:
            if not self._changed.wait_for(lambda: not self._ids, timeout_s):
                logger.warning(
                    "stdin ended before %d requests were answered; they are cancelled. "
                    "Close stdin after the last answer",
                    len(self._ids),
                )


class Replies:
    """Stdout for the SDK. Writes whole lines, one at a time, and may be used from any thread."""

    def __init__(self, descriptor: int, pending: _PendingRequests) -> None:
        self._descriptor = descriptor
        self._pending = pending
        self._lock = threading.Lock()
        self._is_gone = False

    def write(self, text: str) -> int:
        """Write a line to stdout, and return the number of its characters.

        If the client no longer reads stdout, the line is dropped, and the same number is returned. No error is raised,
        so that the server continues until stdin ends.
        """
        with self._lock:
            try:
                self._write(text.encode())
            except OSError:
                if not self._is_gone:
                    logger.warning("the client no longer reads replies; its requests are still being processed")
                self._is_gone = True
        if found := _REPLY_ID.match(text):
            self._pending.discard(json.loads(found[1]))
        return len(text)

    def flush(self) -> None:
        """Do nothing, because `write` does not buffer."""

    def _write(self, line: bytes) -> None:
        left = memoryview(line)
        while left and not self._is_gone:
            try:
                left = left[os.write(self._descriptor, left) :]
            except BlockingIOError:  # the pipe is non-blocking and full, because the client reads slowly
                select.select([], [self._descriptor], [])


class Requests(io.TextIOWrapper):
    """Stdin for the SDK. Returns only lines that are valid messages.

    At the end of stdin, `readline` first waits until all requests are answered, but at most `DRAIN_TIMEOUT_S` seconds.
    """

    def __init__(self, buffer: io.BufferedReader, pending: _PendingRequests, replies: Replies) -> None:
        super().__init__(buffer, encoding="utf-8", errors="replace")
        self._pending = pending
        self._replies = replies

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]  # typeshed has no default for text
        """Return the next line that is a valid message, or "" at the end of input.

        An invalid line is not returned. It is answered with an error, or ignored if it is blank.
        """
        while line := super().readline(size):
            line = repair(line)
            try:
                message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValidationError:
                self._refuse(line)
                continue
            if isinstance(message, types.JSONRPCRequest):
                self._pending.add(message.id)
            return line
        self._pending.wait_for_replies(DRAIN_TIMEOUT_S)
        return ""

    def _refuse(self, line: str) -> None:
        """Answer an invalid line with an error. The error contains the line's request id if one can be found."""
        if not line.strip():
            return
        found = _FIRST_ID.search(line)
        request = json.loads(found[1]) if found else None
        text = "the line is not a JSON-RPC message, or its JSON is nested too deeply or has a number out of range"
        error = {"code": types.PARSE_ERROR, "message": text}
        self._replies.write(json.dumps({"jsonrpc": "2.0", "id": request, "error": error}) + "\n")


def repair(line: str) -> str:
    """Return a line of JSON in which every escaped lone surrogate is replaced with the escape of U+FFFD."""
    if "\\ud" not in line and "\\uD" not in line:
        return line
    return _ESCAPE.sub(lambda escape: r"\ufffd" if escape[1] else escape[0], line)


@contextmanager
def claimed_wire() -> Iterator[tuple[Requests, Replies]]:
    """Yield file objects for stdin and stdout that are reserved for MCP messages.

    Until the ``with`` block ends, all other output goes to stderr.
    """
    sys.stdout.flush()
    wire_in, wire_out = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    pending = _PendingRequests()
    replies = Replies(wire_out, pending)
    try:
        yield Requests(os.fdopen(wire_in, "rb", closefd=False), pending, replies), replies
    finally:
        os.dup2(wire_in, 0)
        os.dup2(wire_out, 1)
