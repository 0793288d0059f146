"""Limits on the RAM that each caller can use for sessions of Streamable HTTP and for unread replies over SSE."""

import json
import logging
import math
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp_types import JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, RequestId, jsonrpc_message_adapter
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import ValidationError
from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memoryos_mcp.server.http.guard import refusal

logger = logging.getLogger(__name__)

SESSION_HEADER = "mcp-session-id"
# The SDK stores a session's first message until the session ends. The message normally has a few hundred bytes.
OPENING_BYTES_AT_MOST = 64 * 1024
# Maximum number of one caller's calls over SSE whose replies the client has not read yet.
UNREAD_AT_MOST = 32
# Maximum total size of these replies in bytes, for one caller and for all callers. A call without a reply counts as
# REPLY_BYTES. Otherwise many calls could be accepted before the size of their first reply is known.
UNREAD_BYTES = 64 * 1024 * 1024
UNREAD_BYTES_OF_ALL = 256 * 1024 * 1024
REPLY_BYTES = 4 * 1024 * 1024
# Number of copies of a stream's last message that the SDK stores until the next message.
COPIES_OF_LAST = 5
# Time limit for sending a stream's last messages after it has ended.
LAST_SEND_S = 1.0
# Time limit for passing the cancellation of a call to its session.
CANCELLING_S = 5.0
_RETRY_AFTER_S = "10"
_METHODS = ("GET", "POST", "DELETE")
_CANCELLED = "notifications/cancelled"
_REPLY = b"event: message"
_REPLY_ID = re.compile(rb'event: message\r\ndata: {"jsonrpc":"2.0","id":(-?\d+|"(?:[^"\\]|\\.)*")')
_STREAM_NAME = re.compile(rb"session_id=([0-9a-f]{32})")


class SessionGuard:
    """Limits the number of each caller's Streamable HTTP sessions, and refuses request ids that are in use.

    Only a successful `initialize` opens a session. If a caller exceeds the limit, the caller's least recently used
    session is ended, so that abandoned sessions do not lock the caller out. A request is refused if another request of
    its session is running with the same id. The SDK would answer only one of the two. A call is cancelled when its
    client disconnects.

    Args:
        app: The guarded application. It opens a session for a request without a session id. It ends a session on
            DELETE.
        caller: Returns a key that identifies the sender of a request. All callers with an empty key share one limit.
        max_per_caller: Maximum number of sessions of one caller.
    """

    def __init__(self, app: ASGIApp, caller: Callable[[Scope], str], *, max_per_caller: int) -> None:
        self._app = app
        self._caller = caller
        self._max_per_caller = max_per_caller
        # For each caller and session, the number of running requests. The least recently used session comes first.
        self._in_use: dict[str, OrderedDict[str, int]] = {}
        # Caller, session and request id of the running calls.
        self._calls: set[tuple[str, str, str]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on to the guarded application, or refuse it."""
        if scope["type"] != "http" or _needs_no_session(scope):
            await self._app(scope, receive, send)
            return
        key, name = self._caller(scope), Headers(scope=scope).get(SESSION_HEADER)
        message, size = None, 0
        if scope["method"] == "POST":
            receive, size, message = await _read(receive)
            if message is None:
                await refusal(400, "the body is not a JSON-RPC 2.0 message; correct it")(scope, receive, send)
                return
        if name is not None:
            await self._go_on(key, name, message, scope, receive, send)
        elif isinstance(message, JSONRPCRequest) and message.method == "initialize":
            await self._begin(key, size, scope, receive, send)
        elif scope["method"] in _METHODS:
            problem = f"the session id is missing; send it in the header {SESSION_HEADER}, or call initialize first"
            await refusal(400, problem)(scope, receive, send)
        else:
            await refusal(405, f"use {', '.join(_METHODS)}", allow=", ".join(_METHODS))(scope, receive, send)

    async def _go_on(
        self, key: str, name: str, message: JSONRPCMessage | None, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Pass a session's request on to the guarded application.

        If the session does not exist (status 404), or if the request deletes it, the session is no longer counted.

        Args:
            key: Identifies the caller.
            name: The session id.
            message: The message in the body; None if the request is not a POST request.
            scope: The request.
            receive: Returns the body of the request.
            send: Receives the answer.
        """
        status = 0

        async def watched(answer: Message) -> None:
            nonlocal status
            status = answer.get("status", status)
            await send(answer)

        self._count(key, name, 1)
        try:
            if isinstance(message, JSONRPCRequest):
                await self._call(key, name, message.id, scope, receive, watched)
            else:
                await self._app(scope, receive, watched)
        finally:
            self._count(key, name, -1)
        if status == 404 or scope["method"] == "DELETE":
            self._forget(key, name)

    async def _call(
        self, key: str, name: str, request_id: RequestId, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Pass a call on to the application. If its client disconnects, cancel the call.

        The call is refused if another running call of the session has the same request id. ``key`` identifies the
        caller, and ``name`` is the session id.
        """
        call = (key, name, str(request_id))
        if call in self._calls:
            await _refuse_id(scope, receive, send)
            return
        self._calls.add(call)
        try:
            await self._app(scope, receive, send)
        except anyio.get_cancelled_exc_class():
            with anyio.move_on_after(CANCELLING_S, shield=True):
                await self._cancel(request_id, scope)
            raise
        finally:
            self._calls.discard(call)

    async def _begin(self, key: str, size: int, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on an `initialize` request, which opens a session. Refuse it if it is too large."""
        opened: str | None = None

        async def watched(message: Message) -> None:
            nonlocal opened
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message["headers"])
                if message["status"] < 400:
                    opened = headers.get(SESSION_HEADER)
                elif message["status"] == 503:
                    headers.setdefault("retry-after", _RETRY_AFTER_S)
            await send(message)

        if size > OPENING_BYTES_AT_MOST:
            problem = f"the initialize request is larger than {OPENING_BYTES_AT_MOST} bytes; send a smaller request"
            await refusal(413, problem)(scope, receive, send)
            return
        await self._make_room(key, scope)
        await self._app(scope, receive, watched)
        if opened is not None:
            self._in_use.setdefault(key, OrderedDict())[opened] = 0
            await self._make_room(key, scope, free=0)

    def _count(self, key: str, name: str, change: int) -> None:
        sessions = self._in_use.get(key)
        if sessions is not None and name in sessions:
            sessions[name] += change
            sessions.move_to_end(name)

    async def _make_room(self, key: str, scope: Scope, free: int = 1) -> None:
        """End sessions of a caller until the caller may open ``free`` more sessions.

        Idle sessions are ended before busy sessions. Within each of these groups, the least recently used session is
        ended first.
        """
        sessions = self._in_use.get(key, OrderedDict())
        while len(sessions) > self._max_per_caller - free:
            idlest = next((name for name, uses in sessions.items() if not uses), next(iter(sessions)))
            self._forget(key, idlest)
            await self._end(idlest, scope)
            logger.info("a session was ended, because its caller opened more than max_sessions_per_token sessions")

    async def _end(self, name: str, scope: Scope) -> None:
        """End a session. For this, send a DELETE request to the application, as a client would."""
        headers = [(SESSION_HEADER.encode(), name.encode())]
        await self._request({**scope, "method": "DELETE", "headers": headers}, b"")

    async def _cancel(self, request_id: RequestId, scope: Scope) -> None:
        """Cancel a call. For this, send an MCP notification to the application, as a client would."""
        cancelling = {"jsonrpc": "2.0", "method": _CANCELLED, "params": {"requestId": request_id}}
        headers = [each for each in scope["headers"] if each[0] != b"content-length"]
        await self._request({**scope, "headers": headers}, json.dumps(cancelling).encode())

    async def _request(self, scope: Scope, body: bytes) -> None:
        """Send a request to the application and ignore its answer."""

        async def receive() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        async def ignore(_: Message) -> None:
            return

        await self._app(scope, receive, ignore)

    def _forget(self, key: str, name: str) -> None:
        sessions = self._in_use.get(key)
        if sessions is not None:
            sessions.pop(name, None)
            if not sessions:
                del self._in_use[key]


class PostGuard:
    """Refuses all requests other than POST with the status 405, for a server without sessions.

    Clients of the older protocol versions also send GET, to open a stream, and DELETE, to end a session. A server
    without sessions does not support these requests.

    Args:
        app: The guarded application. It has no sessions, and treats each request independently.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on to the guarded application, or refuse it."""
        if scope["type"] != "http" or scope["method"] == "POST" or _needs_no_session(scope):
            await self._app(scope, receive, send)
        else:
            await refusal(405, "use POST; this server has no sessions", allow="POST")(scope, receive, send)


class UnreadReplies:
    """Refuses calls over SSE while too many replies are unread.

    A call over SSE is accepted at once. Its reply is sent later on a stream, and stays in RAM until the client reads
    it.

    Args:
        caller: Returns a key that identifies the sender of a request. All callers with an empty key share one limit.
    """

    def __init__(self, caller: Callable[[Scope], str]) -> None:
        self._caller = caller
        # The unread data of each stream, by the keys of caller and stream.
        self._unread: dict[tuple[str, str], _Unread] = {}

    async def stream(self, scope: Scope, send: Send, serve: Callable[[Send], Awaitable[None]]) -> None:
        """Run ``serve`` for a new stream, and count the stream's unread bytes and replies."""
        key, name, unread = self._caller(scope), "", _Unread()
        put, waiting = anyio.create_memory_object_stream[Message](math.inf)

        async def queue(message: Message) -> None:
            nonlocal name
            body: bytes = message.get("body", b"")
            if not name and (found := _STREAM_NAME.search(body)):
                name = found[1].decode()
                self._unread[key, name] = unread
            unread.add(body)
            put.send_nowait(message)

        try:
            async with anyio.create_task_group() as group:
                group.start_soon(_send_all, waiting, send, unread)
                with put:
                    await serve(queue)
                group.cancel_scope.deadline = anyio.current_time() + LAST_SEND_S
        finally:
            self._unread.pop((key, name), None)

    async def post(self, scope: Scope, receive: Receive, send: Send, app: ASGIApp) -> None:
        """Pass a message on to ``app``, or refuse it.

        A refusal has the status 429 if too many replies are unread, and 409 if the message's request id is in use.
        """
        key, name = self._caller(scope), QueryParams(scope["query_string"]).get("session_id", "")
        unread = self._unread.get((key, name))
        if scope["method"] != "POST" or unread is None:
            await app(scope, receive, send)
            return
        receive, _, message = await _read(receive)
        if isinstance(message, JSONRPCRequest):
            await self._call(key, unread, str(message.id), scope, receive, send, app)
            return
        await app(scope, receive, send)
        if isinstance(message, JSONRPCNotification) and message.method == _CANCELLED:
            unread.calls.discard(str((message.params or {}).get("requestId")))

    async def _call(
        self, key: str, unread: "_Unread", call: str, scope: Scope, receive: Receive, send: Send, app: ASGIApp
    ) -> None:
        if call in unread.calls:
            await _refuse_id(scope, receive, send)
            return
        of_one = [each for (caller, _), each in self._unread.items() if caller == key]
        kept = COPIES_OF_LAST * sum(each.last for each in of_one if each is not unread)
        number = sum(len(each.calls) + each.replies for each in of_one)
        if number >= UNREAD_AT_MOST or _size(of_one) + kept >= UNREAD_BYTES:
            problem = "too many replies on this token's streams are unread; read them, or close a stream"
            await refusal(429, problem, retry_after="1")(scope, receive, send)
            return
        if _size(self._unread.values()) >= UNREAD_BYTES_OF_ALL:
            await refusal(429, "too many replies of all callers are unread; try again", retry_after="1")(
                scope, receive, send
            )
            return
        unread.calls.add(call)
        status = 0

        async def watched(answer: Message) -> None:
            nonlocal status
            status = answer.get("status", status)
            await send(answer)

        try:
            await app(scope, receive, watched)
        finally:
            if status != 202:
                unread.calls.discard(call)


@dataclass(slots=True)
class _Unread:
    """Tracks the unread data of one stream.

    Attributes:
        calls: Ids of the calls that have no reply yet.
        replies: Number of unread replies.
        size: Number of unread bytes.
        last: Number of bytes in the last reply.
    """

    calls: set[str] = field(default_factory=set)
    replies: int = 0
    size: int = 0
    last: int = 0

    def add(self, body: bytes) -> None:
        """Count a message as unread. If it is a reply, its call is no longer counted as a call without a reply."""
        self.size += len(body)
        if body.startswith(_REPLY):
            self.last = len(body)
            self.replies += 1
            if found := _REPLY_ID.match(body):
                self.calls.discard(str(json.loads(found[1])))

    def take(self, size: int, *, is_reply: bool) -> None:
        """Count a message of ``size`` bytes as read; ``is_reply`` is true if the message is the reply to a call."""
        self.size -= size
        self.replies -= is_reply


def _size(unread: Iterable[_Unread]) -> int:
    """Return the number of unread bytes in several streams. A call without a reply counts as `REPLY_BYTES`."""
    return sum(each.size + len(each.calls) * REPLY_BYTES for each in unread)


async def _send_all(waiting: MemoryObjectReceiveStream[Message], send: Send, unread: _Unread) -> None:
    """Send each message from ``waiting`` to the client, until ``waiting`` is closed.

    A message is counted as read in ``unread`` once the client has read it or the network's buffers contain it.
    """
    with waiting:
        async for message in waiting:
            body: bytes = message.get("body", b"")
            size, is_reply = len(body), body.startswith(_REPLY)
            await send(message)
            if message.get("more_body"):
                del message, body  # the connection has its own copy
                # This returns only after the message was read, or is in the buffers of the network.
                await send({"type": "http.response.body", "body": b"", "more_body": True})
            unread.take(size, is_reply=is_reply)


async def _refuse_id(scope: Scope, receive: Receive, send: Send) -> None:
    problem = "another request with this id is still running in this session; give each request its own id"
    await refusal(409, problem)(scope, receive, send)


def _needs_no_session(scope: Scope) -> bool:
    """Return whether a request uses one of the newer protocol versions, which have no sessions."""
    version = Headers(scope=scope).get(MCP_PROTOCOL_VERSION_HEADER)
    return version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS


async def _read(receive: Receive) -> tuple[Receive, int, JSONRPCMessage | None]:
    """Read the body of a request.

    Returns:
        A ``receive`` that returns the same body again, the size of the body in bytes, and the JSON-RPC message in it.
        The message is None if the body is not a valid message.
    """
    messages: list[Message] = []
    while True:
        messages.append(await receive())
        if messages[-1]["type"] != "http.request" or not messages[-1].get("more_body"):
            break
    body = b"".join(message.get("body", b"") for message in messages)

    async def again() -> Message:
        return messages.pop(0) if messages else await receive()

    try:
        said = jsonrpc_message_adapter.validate_json(body, by_name=False)
    except ValidationError:
        said = None
    return again, len(body), said
