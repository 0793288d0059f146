"""Shutdown: new requests are refused, and running calls are answered before their connections are closed."""

from typing import Any

import anyio
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from starlette.types import ASGIApp, Receive, Scope, Send

from memoryos_mcp.server.http.guard import refusal

# Seconds between two counts of the running calls. Two counts of 0 in a row are needed, because an accepted message may
# become a call in between.
SETTLE_S = 0.1


class Closing:
    """Tracks whether the server is closing. As middleware, it also counts the running calls."""

    def __init__(self) -> None:
        self.has_begun = False
        self._calls = 0

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Count a call while it is running."""
        self._calls += 1
        try:
            return await call_next(ctx)
        finally:
            self._calls -= 1

    async def drain(self, grace_s: float) -> None:
        """Begin to refuse new requests. Wait until every call is answered, but at most ``grace_s`` seconds."""
        self.has_begun = True
        quiet = 0
        with anyio.move_on_after(grace_s):
            while quiet < 2:
                await anyio.sleep(SETTLE_S)
                quiet = 0 if self._calls else quiet + 1


class ClosingGuard:
    """Refuses requests with 503 once the server is closing.

    GET and HEAD requests are still passed on, so that health checks work.
    """

    def __init__(self, app: ASGIApp, closing: Closing) -> None:
        self._app = app
        self._closing = closing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on to the guarded application, or refuse it if the server is closing."""
        if self._closing.has_begun and scope["type"] == "http" and scope["method"] not in {"GET", "HEAD"}:
            await refusal(503, "the server is closing; try again soon", retry_after="5")(scope, receive, send)
        else:
            await self._app(scope, receive, send)
