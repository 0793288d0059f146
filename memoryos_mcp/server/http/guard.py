"""The checks that every request must pass before it reaches its route.

Each check is a separate ASGI middleware. `HostGuard` checks the host and the origin, `BodyGuard` the size and speed of
the body, and `RateGuard` the caller's request rate.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

import anyio
from mcp_types import INVALID_REQUEST
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memoryos_mcp.config.http import LOOPBACK
from memoryos_mcp.server.http.rates import OwnRates, SharedRates
from memoryos_mcp.server.web.guard import STATIC, is_page
from memoryos_mcp.server.web.visits import shown
from memoryos_mcp.storage.capabilities import Rates

# Time limit for receiving a whole body. On a slow line, a page takes a few seconds.
BODY_TIMEOUT_S = 20.0
# Time limit for work that continues after the answer, such as passing on an accepted message.
AFTER_ANSWER_S = 10.0
# Maximum number of one caller's open streams. Each window of an editor needs one.
STREAMS_PER_CALLER = 64
# One caller may have 1/SHARE_OF_ONE of all concurrent requests, but at least ALWAYS_AT_ONCE.
SHARE_OF_ONE = 8
ALWAYS_AT_ONCE = 8

_AUTHORITY = re.compile(r"(?:\[([0-9a-f.]*:[0-9a-f:.]*)\]|([^:\[\]]+))(?::[0-9]{1,5})?", re.IGNORECASE)
_ORIGIN = re.compile(r"https?://(.+)", re.IGNORECASE)
# Values of Sec-Fetch-Site in requests from web pages of another site, or of another port of this machine.
_OF_ANOTHER_PAGE = frozenset({"cross-site", "same-site"})


class Refusal(JSONResponse):
    """A response that refuses a request. MCP clients get a JSON-RPC error, and browsers get a web page."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response."""
        if not is_page(scope["path"]):
            await super().__call__(scope, receive, send)
            return
        problem = json.loads(bytes(self.body))["error"]["message"]
        page = shown("problem.html", Request(scope), self.status_code, title="That did not work", problem=problem)
        page.headers.update({k: v for k, v in self.headers.items() if not k.startswith("content-")})
        await page(scope, receive, send)


def refusal(status: int, problem: str, **headers: str) -> Refusal:
    """Return a response that refuses a request.

    Args:
        status: The HTTP status.
        problem: What is wrong, and what to do.
        headers: Additional headers. Underscores in their names become hyphens.
    """
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": INVALID_REQUEST, "message": problem}}
    return Refusal(body, status_code=status, headers={k.replace("_", "-"): v for k, v in headers.items()})


class HostGuard:
    """Refuses requests for another host (421), and requests from web pages of an unknown origin (403).

    A web page can make its visitor's browser send requests to this machine, but it cannot set the headers ``Host``
    and ``Origin``.

    Args:
        app: The guarded application.
        hosts: The server's names in lower case, without ports.
        origins: Origins of other web pages that may call the server, as ``scheme://host[:port]``. Web pages from the
            server's own host and port need not be listed. They may request web pages and, if this host is a loopback
            host, all other paths.
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str], origins: Collection[str]) -> None:
        self._app = app
        self._hosts = frozenset(hosts)
        self._origins = frozenset(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on to the guarded application, or refuse it because of its host or origin."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or _host_name(hosts[0]) not in self._hosts:
            answer = refusal(
                421, "the Host header does not name this server; to allow the name, add it to allowed_hosts"
            )
            await answer(scope, receive, send)
        elif not all(self._is_known(origin, hosts[0], scope["path"]) for origin in origins) or (
            not origins and headers.get("sec-fetch-site") in _OF_ANOTHER_PAGE
        ):
            answer = refusal(
                403,
                "web pages of this origin may not call this server; to allow it, add the origin to allowed_origins",
            )
            await answer(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _is_known(self, origin: str, host: str, path: str) -> bool:
        if origin.lower() in self._origins:
            return True
        found = _ORIGIN.fullmatch(origin)
        is_same = found is not None and found[1].lower() == host.lower()
        return is_same and (is_page(path) or _host_name(host) in LOOPBACK)


def _host_name(authority: str) -> str | None:
    """Return the host name from ``name[:port]``, in lower case and without brackets, or None for any other form."""
    found = _AUTHORITY.fullmatch(authority)
    return found and (found[1] or found[2]).lower()


class BodyGuard:
    """Reads the whole body of a request before passing the request on.

    A body that is too large (413) or arrives too slowly (408) is refused. A request is cancelled when its client
    disconnects.
    """

    def __init__(self, app: ASGIApp, max_bytes: int, timeout_s: float = BODY_TIMEOUT_S) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._timeout_s = timeout_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on to the guarded application. Refuse it if its body is too large or arrives too slowly."""
        if scope["type"] != "http" or scope["method"] in {"GET", "HEAD", "OPTIONS"}:
            await self._app(scope, receive, send)
            return
        declared = Headers(scope=scope).get("content-length", "0")
        is_too_large = declared.isdecimal() and int(declared) > self._max_bytes
        body: list[Message] = []
        try:
            if not is_too_large:
                with anyio.fail_after(self._timeout_s):
                    is_too_large = not await self._read(receive, body)
        except TimeoutError:
            await refusal(408, "the body did not arrive in time; send it again", connection="close")(
                scope, receive, send
            )
            return
        if body and body[-1]["type"] == "http.disconnect":
            return
        if is_too_large:
            problem = f"the body is larger than {self._max_bytes} bytes; send a smaller request"
            # The connection stays open, because a client that is cut off while sending would not see the answer.
            await refusal(413, problem)(scope, receive, send)
            return
        await self._run(body, scope, receive, send)

    async def _run(self, body: list[Message], scope: Scope, receive: Receive, send: Send) -> None:
        """Call the application with a complete body. If the client disconnects, the call is cancelled."""
        gone, is_answered = anyio.Event(), False

        async def replay() -> Message:
            if body:
                return body.pop(0)
            await gone.wait()
            return {"type": "http.disconnect"}

        async def noted(message: Message) -> None:
            nonlocal is_answered
            is_answered = is_answered or _is_last(message)
            await send(message)

        async def watch(running: anyio.CancelScope) -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            gone.set()
            # A disconnect is also reported after the answer was sent.
            if is_answered:
                await anyio.sleep(AFTER_ANSWER_S)
            running.cancel()

        try:
            async with anyio.create_task_group() as group:
                group.start_soon(watch, group.cancel_scope)
                await self._app(scope, replay, noted)
                group.cancel_scope.cancel()
        except ExceptionGroup as errors:
            [error] = errors.exceptions
            raise error from error.__cause__

    async def _read(self, receive: Receive, body: list[Message]) -> bool:
        """Append the ASGI messages of a request to ``body``.

        Return True when the body is complete, or False as soon as it is too large.
        """
        size, more = 0, True
        while more:
            message = await receive()
            body.append(message)
            size += len(message.get("body", b""))
            more = message.get("more_body", False)
            if size > self._max_bytes:
                return False
        return True


class RateGuard:
    """Limits each caller's request rate and the number of concurrent requests. Excess requests are refused (429).

    The limit per caller is ``max_at_once / SHARE_OF_ONE`` concurrent requests, but at least `ALWAYS_AT_ONCE`. A request
    counts as running until the client has read the answer, because unread answers stay in memory. Streams (GET) and
    static files do not count as requests, but web pages do. Each caller may have at most `STREAMS_PER_CALLER` open
    streams.

    Args:
        app: The guarded application.
        caller: Returns a key that identifies the sender of a request. All callers with an empty key share one limit.
        per_second: Allowed average number of requests per second from one caller. A burst may have twice this number.
        max_at_once: Maximum number of concurrent requests of all callers.
        clock: Monotonic clock in seconds.
        rates: Counts requests over all servers. If it is None or fails, only the requests of this process count.
    """

    def __init__(
        self,
        app: ASGIApp,
        caller: Callable[[Scope], str],
        *,
        per_second: float,
        max_at_once: int,
        clock: Callable[[], float],
        rates: Rates | None = None,
    ) -> None:
        self._app = app
        self._caller = caller
        self._own = OwnRates(per_second, clock)
        self._shared = None if rates is None else SharedRates(rates, per_second, clock)
        self._max_at_once = max_at_once
        self._max_of_one = max(ALWAYS_AT_ONCE, max_at_once // SHARE_OF_ONE)
        self._of_each: Counter[str] = Counter()
        self._streams: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on to the guarded application, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif scope["method"] == "GET" and (not is_page(scope["path"]) or scope["path"].startswith(STATIC)):
            await self._listen(scope, receive, send)
        else:
            await self._work(scope, receive, send)

    async def _work(self, scope: Scope, receive: Receive, send: Send) -> None:
        key = self._caller(scope)
        if self._of_each.total() >= self._max_at_once or self._of_each[key] >= self._max_of_one:
            await refusal(429, "too many requests at once; try again", retry_after="1")(scope, receive, send)
            return
        with _counted(self._of_each, key):
            wait_s = None if self._shared is None else await self._shared.wait_s(key)
            if wait_s is None:
                wait_s = self._own.wait_s(key)
            if wait_s == 0:
                await self._app(scope, receive, _until_read(send))
                return
        answer = refusal(429, "too many requests with this token; try again", retry_after=str(math.ceil(wait_s)))
        await answer(scope, receive, send)

    async def _listen(self, scope: Scope, receive: Receive, send: Send) -> None:
        key = self._caller(scope)
        if self._streams[key] >= STREAMS_PER_CALLER:
            problem = "too many streams are open with this token; close one"
            await refusal(429, problem, retry_after="10")(scope, receive, send)
            return
        with _counted(self._streams, key):
            await self._app(scope, receive, send)


@contextmanager
def _counted(counts: Counter[str], key: str) -> Iterator[None]:
    """Add 1 to the count of a key, and subtract 1 when the ``with`` block ends."""
    counts[key] += 1
    try:
        yield
    finally:
        counts[key] -= 1
        if not counts[key]:
            del counts[key]


def _until_read(send: Send) -> Send:
    """Return a function like ``send``. At the end of an answer, it waits until the client has read most of the answer.

    The web server does not wait after a large message. It waits before the next message, until most data is sent.
    Therefore, the function splits the last message of an answer into two: one with the body, and an empty one. The
    empty message waits until the client has read most of the body.
    """

    async def send_in_two(message: Message) -> None:
        if _is_last(message) and message.get("body"):
            await send({**message, "more_body": True})
            message = {"type": "http.response.body", "body": b""}
        await send(message)

    return send_in_two


def _is_last(message: Message) -> bool:
    return message["type"] == "http.response.body" and not message.get("more_body", False)
