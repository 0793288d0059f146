"""Serving over stdin and stdout: nothing but JSON-RPC reaches the wire, and every way to end is a clean one."""

import io
import logging
import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anyio
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.stdio import stdio_server

from memoryos_mcp.config import Settings
from memoryos_mcp.errors import MemoryOSError
from memoryos_mcp.server.assembly import make_server
from memoryos_mcp.service import MemoryService

logger = logging.getLogger(__name__)

CLOSE_TIMEOUT_S = 20.0

# One JSON escape: a whole surrogate pair, half of one (captured), or any other.
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)"
)


@contextmanager
def claimed_wire() -> Iterator[tuple[io.TextIOWrapper, io.TextIOWrapper]]:
    """Yield stdin and stdout as UTF-8 texts of our own; whatever else writes to stdout goes to stderr meanwhile."""
    wire_in, wire_out = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    try:
        yield (
            _RepairedLines(os.fdopen(wire_in, "rb", closefd=False), encoding="utf-8", errors="replace"),
            io.TextIOWrapper(os.fdopen(wire_out, "wb", closefd=False), encoding="utf-8", newline="\n"),
        )
    finally:
        os.dup2(wire_in, 0)
        os.dup2(wire_out, 1)


class _RepairedLines(io.TextIOWrapper):
    """Lines of JSON in which half a surrogate pair, which no parser takes, stands as U+FFFD.

    Without this, a request that holds one would be dropped unanswered and its caller would wait for ever.
    """

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]  # typeshed names no default for text
        return repair(super().readline(size))


def repair(line: str) -> str:
    """Return a line of JSON with every lone surrogate escape replaced by that of U+FFFD."""
    if "\\ud" not in line and "\\uD" not in line:
        return line
    return _ESCAPE.sub(lambda escape: r"\ufffd" if escape[1] else escape[0], line)


async def serve_stdio(settings: Settings) -> None:
    """Serve the configured user until stdin ends or a signal asks to stop.

    On SIGINT and SIGTERM this does not return: once everything is closed it ends the process, because the thread that
    waits for stdin can't be told to stop.
    """
    with claimed_wire() as (wire_in, wire_out):
        async with MemoryService(settings) as service, anyio.create_task_group() as group:
            if sys.platform != "win32":
                group.start_soon(_stop_on_signal, service)
            server = make_server(service, settings.user_id)
            server.middleware.append(_Warmth(service, settings.user_id, group))
            async with stdio_server(anyio.wrap_file(wire_in), anyio.wrap_file(wire_out)) as (incoming, outgoing):
                await server.run(incoming, outgoing, server.create_initialization_options())
            group.cancel_scope.cancel()


class _Warmth:
    """Opens the user's memory once the first request has been answered: models load while the client thinks."""

    def __init__(self, service: MemoryService, user_id: str, group: anyio.abc.TaskGroup) -> None:
        self._service = service
        self._user_id = user_id
        self._group = group
        self._is_begun = False

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        result = await call_next(ctx)
        if not self._is_begun:
            self._is_begun = True
            self._group.start_soon(self._open)
        return result

    async def _open(self) -> None:
        try:
            async with self._service.user(self._user_id):
                pass
        except MemoryOSError as error:
            logger.error("the memory could not be opened: %s", error)  # noqa: TRY400 - the text says it all


async def _stop_on_signal(service: MemoryService) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for number in signals:
            logger.info("%s: closing", signal.Signals(number).name)
            with anyio.move_on_after(CLOSE_TIMEOUT_S, shield=True):
                await service.close()
            logging.shutdown()
            os._exit(0)
