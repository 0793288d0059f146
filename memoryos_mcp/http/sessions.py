"""What takes memory until a client lets it go: sessions of Streamable HTTP, and replies on SSE that nobody reads.

A caller has only so many of either.
"""

import json
import logging
import re
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memoryos_mcp.http.guard import refusal

logger = logging.getLogger(__name__)

SESSION_HEADER = "mcp-session-id"
# What a session begins with is kept as long as it lasts; a client's name and abilities take some hundred bytes.
OPENING_BYTES_AT_MOST = 64 * 1024
# Calls over SSE of one caller whose replies were not read yet; each may be some megabytes.
UNREAD_AT_MOST = 32
_RETRY_AFTER_S = "10"
_STREAM_NAME = re.compile(rb"session_id=([0-9a-f]{32})")


class SessionGuard:
    """Ends a caller's idlest session before they open one too many, so that a forgotten one locks nobody out.

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
        """Pass the request on, after a session was ended if this one opens one too many."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        key, named = self._caller(scope), Headers(scope=scope).get(SESSION_HEADER)
        if named is None:
            await self._begin(key, scope, receive, send)
        else:
            await self._go_on(key, named, scope, receive, send)

    async def _go_on(self, key: str, name: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what is sent in a session."""
        status = 0

        async def watched(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        self._count(key, name, 1)
        try:
            await self._app(scope, receive, watched)
        finally:
            self._count(key, name, -1)
        if status == 404 or scope["method"] == "DELETE":
            self._forget(key, name)

    async def _begin(self, key: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what is sent outside of a session, and may open one."""
        opened: str | None = None

        async def watched(message: Message) -> None:
            nonlocal opened
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message["headers"])
                opened = headers.get(SESSION_HEADER)
                if message["status"] == 503:
                    headers.setdefault("retry-after", _RETRY_AFTER_S)
            await send(message)

        if scope["method"] == "POST":
            receive, size, said = await _read(receive)
            if said.get("method") == "initialize":
                if size > OPENING_BYTES_AT_MOST:
                    problem = f"what begins a session is larger than {OPENING_BYTES_AT_MOST} bytes; send less"
                    await refusal(413, problem)(scope, receive, send)
                    return
                await self._make_room(key, scope)
        await self._app(scope, receive, watched)
        if opened is not None:
            self._in_use.setdefault(key, OrderedDict())[opened] = 0
            await self._make_room(key, scope, leaving=0)

    def _count(self, key: str, name: str, change: int) -> None:
        sessions = self._in_use.get(key)
        if sessions is not None and name in sessions:
            sessions[name] += change
            sessions.move_to_end(name)

    async def _make_room(self, key: str, scope: Scope, leaving: int = 1) -> None:
        """End a caller's idlest sessions until there is room for so many more."""
        sessions = self._in_use.get(key, OrderedDict())
        while len(sessions) > self._max_per_caller - leaving:
            idlest = next((name for name, uses in sessions.items() if not uses), next(iter(sessions)))
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


class UnreadReplies:
    """Refuses a caller's calls over SSE while too many of their replies wait for somebody to read them.

    A call is answered at once there, and its reply comes by the stream: it waits in memory until the client takes it.

    Args:
        caller: Returns who sent a request, as a key; callers without one share it.
    """

    def __init__(self, caller: Callable[[Scope], str]) -> None:
        self._caller = caller
        # Per caller and stream, how many replies were not taken yet.
        self._waiting: dict[str, Counter[str]] = {}

    async def stream(self, scope: Scope, send: Send, serve: Callable[[Send], Awaitable[None]]) -> None:
        """Serve a stream, counting the replies that the connection has taken."""
        key, name = self._caller(scope), ""

        async def watched(message: Message) -> None:
            nonlocal name
            await send(message)
            body: bytes = message.get("body", b"")
            if not name and (found := _STREAM_NAME.search(body)):
                name = found[1].decode()
            elif body.startswith(b"event: message"):
                self._add(key, name, -1)

        try:
            await serve(watched)
        finally:
            self._add(key, name, -self._waiting.get(key, Counter())[name])

    async def post(self, scope: Scope, receive: Receive, send: Send, hand_on: ASGIApp) -> None:
        """Hand a message on, or refuse it with 429."""
        if scope["method"] != "POST":
            await hand_on(scope, receive, send)
            return
        key, name = self._caller(scope), QueryParams(scope["query_string"]).get("session_id", "")
        receive, _, said = await _read(receive)
        is_call = "method" in said and "id" in said
        if is_call and sum(self._waiting.get(key, Counter()).values()) >= UNREAD_AT_MOST:
            problem = "too many replies of this token wait on its streams; read them first"
            await refusal(429, problem, retry_after="1")(scope, receive, send)
            return
        self._add(key, name, int(is_call))
        status = 0

        async def watched(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await hand_on(scope, receive, watched)
        finally:
            if status != 202:
                self._add(key, name, -int(is_call))

    def _add(self, key: str, name: str, change: int) -> None:
        waiting = self._waiting.setdefault(key, Counter())
        waiting[name] = max(0, waiting[name] + change)
        if not waiting[name]:
            del waiting[name]
        if not waiting:
            del self._waiting[key]


async def _read(receive: Receive) -> tuple[Receive, int, dict[str, Any]]:
    """Return what receives a request's body once more, its bytes, and the JSON object in it, empty if it is none."""
    messages: list[Message] = []
    while True:
        messages.append(await receive())
        if messages[-1]["type"] != "http.request" or not messages[-1].get("more_body"):
            break
    body = b"".join(message.get("body", b"") for message in messages)

    async def again() -> Message:
        return messages.pop(0) if messages else await receive()

    try:
        said = json.loads(body)
    except (ValueError, RecursionError):  # whoever it is handed on to tells
        said = None
    return again, len(body), said if isinstance(said, dict) else {}
