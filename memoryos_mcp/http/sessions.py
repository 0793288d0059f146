"""Client sessions of Streamable HTTP: each takes memory until it ends, so a caller has only so many."""

import logging
from collections import OrderedDict
from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

logger = logging.getLogger(__name__)

SESSION_HEADER = "mcp-session-id"


class SessionGuard:
    """Ends a caller's idlest session when they open one too many, so that a forgotten one locks nobody out.

    Args:
        app: What is guarded; it opens a session where a request names none, and ends one on DELETE.
        caller: Returns who sent a request, as a key; callers without one share it.
        max_per_caller: Sessions of one caller.
    """

    def __init__(self, app: ASGIApp, caller: Callable[[Scope], str], *, max_per_caller: int) -> None:
        self._app = app
        self._caller = caller
        self._max_per_caller = max_per_caller
        # Per caller, how many requests of each session are under way; the session that was used longest ago is first.
        self._in_use: dict[str, OrderedDict[str, int]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and end a session if this one has opened one too many."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        key, named = self._caller(scope), Headers(scope=scope).get(SESSION_HEADER)
        opened = status = None

        async def watched(message: Message) -> None:
            nonlocal opened, status
            if message["type"] == "http.response.start":
                status, opened = message["status"], Headers(raw=message["headers"]).get(SESSION_HEADER)
            await send(message)

        if named is not None:
            self._count(key, named, 1)
        try:
            await self._app(scope, receive, watched)
        finally:
            if named is not None:
                self._count(key, named, -1)
        if named is None and opened is not None:
            await self._opened(key, opened, scope)
        elif named is not None and (status == 404 or scope["method"] == "DELETE"):
            self._forget(key, named)

    def _count(self, key: str, name: str, change: int) -> None:
        sessions = self._in_use.get(key)
        if sessions is not None and name in sessions:
            sessions[name] += change
            sessions.move_to_end(name)

    async def _opened(self, key: str, name: str, scope: Scope) -> None:
        sessions = self._in_use.setdefault(key, OrderedDict())
        sessions[name] = 0
        while len(sessions) > self._max_per_caller:
            others = [other for other in sessions if other != name]
            idlest = next((other for other in others if not sessions[other]), others[0])
            self._forget(key, idlest)
            await self._end(idlest, scope)
            logger.info("a session was ended: its caller has opened more than max_sessions_per_token")

    async def _end(self, name: str, scope: Scope) -> None:
        """End a session as its client would."""
        ending = {**scope, "method": "DELETE", "headers": [(SESSION_HEADER.encode(), name.encode())]}

        async def nothing() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def unheard(_: Message) -> None:
            return

        await self._app(ending, nothing, unheard)

    def _forget(self, key: str, name: str) -> None:
        sessions = self._in_use.get(key)
        if sessions is not None:
            sessions.pop(name, None)
            if not sessions:
                del self._in_use[key]
