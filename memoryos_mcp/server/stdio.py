"""Serves MCP over stdin and stdout. Models are loaded after the client's first request has been answered."""

import logging
import os
import signal
import sys
from typing import IO, TYPE_CHECKING, Any, cast

import anyio
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.stdio import stdio_server

from memoryos_mcp.config import Settings
from memoryos_mcp.engine.service import MemoryService
from memoryos_mcp.errors import MemoryOSError
from memoryos_mcp.model.callers import Caller, Scope
from memoryos_mcp.server.assembly import make_server
from memoryos_mcp.server.wire import claimed_wire

if TYPE_CHECKING:
    from memoryos_mcp.config.telemetry import Tracing

logger = logging.getLogger(__name__)

CLOSE_TIMEOUT_S = 20.0


async def serve_stdio(settings: Settings, tracing: "Tracing | None" = None) -> None:
    """Serve the configured user until stdin ends or the process receives SIGINT or SIGTERM.

    After a signal, this function closes all memories and ``tracing``. It then ends the process, because the thread
    that waits for stdin cannot be stopped. If stdin ends, the function closes all memories and returns. The caller
    must then close ``tracing``.
    """
    with claimed_wire() as (requests, replies):
        tracer = tracing.tracer if tracing is not None else None
        async with MemoryService(settings, tracer=tracer) as service, anyio.create_task_group() as group:
            if sys.platform != "win32":
                group.start_soon(_stop_on_signal, service, tracing)
            caller = local_caller(settings)
            server = make_server(service, lambda _: caller)
            if tracer is not None:
                from memoryos_mcp.server.tracing import CallSpans

                server.middleware.append(CallSpans(tracer, lambda _: "stdio"))
            server.middleware.append(_WarmUp(service, settings.user_id, group))
            files = anyio.wrap_file(requests), anyio.wrap_file(cast(IO[str], replies))
            async with stdio_server(*files) as (incoming, outgoing):
                await server.run(incoming, outgoing, server.create_initialization_options())
            group.cancel_scope.cancel()


def local_caller(settings: Settings) -> Caller:
    """Return the caller of all requests over stdio: the configured user.

    The caller has all rights, but may act as other users only if the setting ``act_as`` is on.
    """
    scopes = {Scope.READ, Scope.WRITE, Scope.ADMIN} | ({Scope.ACT_AS} if settings.act_as else set())
    return Caller(settings.user_id, frozenset(scopes))


class _WarmUp:
    """Middleware that opens the memory after the first answer, so that loading models does not delay that answer."""

    def __init__(self, service: MemoryService, user_id: str, group: anyio.abc.TaskGroup) -> None:
        self._service = service
        self._user_id = user_id
        self._group = group
        self._has_begun = False

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        result = await call_next(ctx)
        if not self._has_begun:
            self._has_begun = True
            self._group.start_soon(self._open)
        return result

    async def _open(self) -> None:
        try:
            async with self._service.user(self._user_id):
                pass
        except MemoryOSError as error:
            # A traceback would not help the user.
            logger.error("the memory could not be opened; the next call tries again: %s", error)  # noqa: TRY400


async def _stop_on_signal(service: MemoryService, tracing: "Tracing | None") -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for number in signals:
            logger.info("%s: closing", signal.Signals(number).name)
            with anyio.move_on_after(CLOSE_TIMEOUT_S, shield=True):
                await service.close()
            if tracing is not None:
                tracing.close()
            logging.shutdown()
            os._exit(0)
