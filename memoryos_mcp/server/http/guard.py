"""Guard: what a request has to pass before anything is done for it, on every route.

Pure ASGI, one class a check, each knowing nothing of the others: who may be addressed, how much may be sent and how
slowly, and how often one caller may ask.
"""

import math
import re
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection

import anyio
from mcp_types import INVALID_REQUEST
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memoryos_mcp.config.http import LOOPBACK

# A body has to be there within this time: a page's worth takes a slow line a few seconds.
BODY_TIMEOUT_S = 20.0
# What a request still does after its answer, such as handing an accepted message on, has to be done within this time.
AFTER_ANSWER_S = 10.0
# Callers whose rate is remembered; the least recently seen are forgotten, which only gives them a fresh start.
CALLERS_REMEMBERED = 10_000
# What one caller may hold open to listen to: a stream for each window of a few editors.
STREAMS_PER_CALLER = 64
# One caller may take this share of what is worked on at once, but may always have a few requests under way.
SHARE_OF_ONE = 8
ALWAYS_AT_ONCE = 8

_AUTHORITY = re.compile(r"(?:\[([0-9a-f.]*:[0-9a-f:.]*)\]|([^:\[\]]+))(?::[0-9]{1,5})?", re.IGNORECASE)
_ORIGIN = re.compile(r"https?://(.+)", re.IGNORECASE)
# What a browser says of a request that a page of another site, or of another port of this machine, had it send.
_OF_ANOTHER_PAGE = frozenset({"cross-site", "same-site"})


def refusal(status: int, problem: str, **headers: str) -> JSONResponse:
    """Return a refusal that says what is wrong and what to do.

    It is an error of JSON-RPC that answers no request in particular: what else the body may hold, clients do not show.
    """
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": INVALID_REQUEST, "message": problem}}
    return JSONResponse(body, status_code=status, headers={k.replace("_", "-"): v for k, v in headers.items()})


class HostGuard:
    """Lets only requests through that address this server by a name of its own, and pages only of known origins.

    A web page can make its visitor's browser send requests to this machine; it cannot choose ``Host`` and ``Origin``.

    Args:
        app: What is guarded.
        hosts: Names without ports that the server may be addressed by, lower-cased.
        origins: Origins that may call it from a browser, ``scheme://host[:port]``. Where loopback is among ``hosts``,
            the address itself that a request is sent to is one too.
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str], origins: Collection[str]) -> None:
        self._app = app
        self._hosts = frozenset(hosts)
        self._origins = frozenset(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on or refuse it: 421 for a foreign host, 403 for a foreign origin."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or _host_name(hosts[0]) not in self._hosts:
            answer = refusal(421, "this server does not go by that name; name it in allowed_hosts if it should")
            await answer(scope, receive, send)
        elif not all(self._is_known(origin, hosts[0]) for origin in origins) or (
            not origins and headers.get("sec-fetch-site") in _OF_ANOTHER_PAGE
        ):
            answer = refusal(
                403, "pages of that origin may not call this server; name it in allowed_origins if they may"
            )
            await answer(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _is_known(self, origin: str, host: str) -> bool:
        if origin.lower() in self._origins:
            return True
        found = _ORIGIN.fullmatch(origin)
        return found is not None and found[1].lower() == host.lower() and _host_name(host) in LOOPBACK


def _host_name(authority: str) -> str | None:
    """Return the lower-cased name in ``name[:port]``, without brackets; None if that is not its form."""
    found = _AUTHORITY.fullmatch(authority)
    return found and (found[1] or found[2]).lower()


class BodyGuard:
    """Hands a request on once its body is there: not too large (413) and not too slowly sent (408).

    When its client has gone, a request is ended, and gives back what it holds.

    Args:
        app: What is guarded.
        max_bytes: Of a body.
        timeout_s: For all of a body.
    """

    def __init__(self, app: ASGIApp, max_bytes: int, timeout_s: float = BODY_TIMEOUT_S) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._timeout_s = timeout_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with its whole body until its client leaves, or refuse it."""
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
            await refusal(408, "the body did not come in time; send it again", connection="close")(scope, receive, send)
            return
        if body and body[-1]["type"] == "http.disconnect":
            return
        if is_too_large:
            problem = f"the body is larger than {self._max_bytes} bytes; send less at once"
            # Hung up on in the middle of sending, a client would not see the answer; what still comes is thrown away.
            await refusal(413, problem)(scope, receive, send)
            return
        await self._run(body, scope, receive, send)

    async def _run(self, body: list[Message], scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application on a body that is there, and end it when its client has gone."""
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
            # A server says so too when the answer has been sent.
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
        """Read until the body or the connection ends; return whether it stayed within its size."""
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
    """Lets each caller ask so often, and so much at once, of which one has a share; more is refused with 429.

    A request is under way until the connection has taken its answer: what its client does not read waits in memory.
    What is only listened to, by GET, is not counted among these: each caller may hold `STREAMS_PER_CALLER` open.

    Args:
        app: What is guarded; runs after the caller is known.
        caller: Returns who sent a request, as a key; callers without one share it.
        per_second: Requests of one caller in the long run; twice as many may come at once.
        max_at_once: Requests of all callers that are worked on at once.
        clock: Seconds of a clock that never goes back.
    """

    def __init__(
        self,
        app: ASGIApp,
        caller: Callable[[Scope], str],
        *,
        per_second: float,
        max_at_once: int,
        clock: Callable[[], float],
    ) -> None:
        self._app = app
        self._caller = caller
        self._per_second = per_second
        self._burst = max(1.0, 2 * per_second)
        self._max_at_once = max_at_once
        self._clock = clock
        self._at_once = 0
        self._max_of_one = max(ALWAYS_AT_ONCE, max_at_once // SHARE_OF_ONE)
        self._of_each: Counter[str] = Counter()
        self._streams: Counter[str] = Counter()
        # Per caller what is left of the burst, and since when that is so.
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif scope["method"] == "GET":
            await self._listen(scope, receive, send)
        else:
            await self._work(scope, receive, send)

    async def _work(self, scope: Scope, receive: Receive, send: Send) -> None:
        key = self._caller(scope)
        wait_s = self._wait_s(key)
        if wait_s > 0:
            answer = refusal(429, "too many requests with this token", retry_after=str(math.ceil(wait_s)))
            await answer(scope, receive, send)
            return
        if self._at_once >= self._max_at_once or self._of_each[key] >= self._max_of_one:
            await refusal(429, "too many requests at once; try again", retry_after="1")(scope, receive, send)
            return
        self._at_once += 1
        self._of_each[key] += 1
        try:
            await self._app(scope, receive, _until_taken(send))
        finally:
            self._at_once -= 1
            self._of_each[key] -= 1
            if not self._of_each[key]:
                del self._of_each[key]

    async def _listen(self, scope: Scope, receive: Receive, send: Send) -> None:
        key = self._caller(scope)
        if self._streams[key] >= STREAMS_PER_CALLER:
            problem = "too many streams are open with this token; close one"
            await refusal(429, problem, retry_after="10")(scope, receive, send)
            return
        self._streams[key] += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._streams[key] -= 1
            if not self._streams[key]:
                del self._streams[key]

    def _wait_s(self, key: str) -> float:
        """Return how long the caller has to wait, 0 if it need not; then it is counted."""
        now = self._clock()
        left, since = self._left.pop(key, (self._burst, now))
        left = min(self._burst, left + (now - since) * self._per_second)
        is_let = left >= 1
        self._left[key] = (left - is_let, now)
        if len(self._left) > CALLERS_REMEMBERED:
            self._left.popitem(last=False)
        return 0.0 if is_let else (1 - left) / self._per_second


def _until_taken(send: Send) -> Send:
    """Return what sends the end of an answer only once the connection has taken what came before.

    A server that holds much unsent takes a message and waits before the next one.
    """

    async def send_in_two(message: Message) -> None:
        if _is_last(message) and message.get("body"):
            await send({**message, "more_body": True})
            message = {"type": "http.response.body", "body": b""}
        await send(message)

    return send_in_two


def _is_last(message: Message) -> bool:
    return message["type"] == "http.response.body" and not message.get("more_body", False)
