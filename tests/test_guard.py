"""The guards in front of every route, each around an application that records requests."""

import asyncio
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Message, Receive, Scope, Send

from memoryos_mcp.config.http import LOOPBACK
from memoryos_mcp.server.http import guard, rates
from memoryos_mcp.server.http.guard import BodyGuard, HostGuard, RateGuard
from tests.fakes import Seconds

LIMIT_S = 20
MAX_BYTES = 100
HEADER_TEXT = st.text(st.characters(min_codepoint=0, max_codepoint=255), max_size=60)
# Parts of URLs, which test the edge cases of their parser.
URL_PARTS = [
    *"http https :// // : [ ] ::1 127.0.0.1 localhost evil.example @ / ? # % null 8000 v1.x . *".split(),
    *("\\", " ", "\t", "\xbd", "\xb2"),
]
URL_LIKE = st.lists(st.sampled_from(URL_PARTS), max_size=8).map("".join)


class App:
    """An application that records requests, and answers 200 after reading the body."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.types: list[str] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self._came = asyncio.Semaphore(0)

    async def arrived(self, count: int) -> None:
        """Wait until ``count`` more requests have arrived with their whole bodies."""
        for _ in range(count):
            await self._came.acquire()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.types.append(scope["type"])
        if scope["type"] != "http":
            return
        body, more = b"", True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        self.bodies.append(body)
        self._came.release()
        await self.may_answer.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})


class Answer:
    """The messages that an application has sent."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}


def http_scope(headers: Iterable[tuple[str, str]] = (), method: str = "POST", caller: str = "") -> Scope:
    raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    return {"type": "http", "method": method, "path": "/mcp", "headers": raw, "caller": caller}


def sending(*messages: Message) -> Receive:
    """Return the ``receive`` of a client that sends these messages and no more."""
    left = list(messages)

    async def receive() -> Message:
        if not left:
            await asyncio.Event().wait()
        return left.pop(0)

    return receive


def part(body: bytes, *, more: bool = False) -> Message:
    return {"type": "http.request", "body": body, "more_body": more}


async def ask(app: object, scope: Scope, *messages: Message) -> Answer:
    answer = Answer()
    async with asyncio.timeout(LIMIT_S):
        await app(scope, sending(*(messages or (part(b""),))), answer.send)  # type: ignore[operator]
    return answer


async def host_status(
    *headers: tuple[str, str], hosts: Iterable[str] = LOOPBACK, origins: Sequence[str] = (), method: str = "POST"
) -> int:
    return (await ask(HostGuard(App(), frozenset(hosts), origins), http_scope(headers, method))).status


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8000", "localhost", "LocalHost:1", "[::1]:8000", "[::1]"])
async def test_an_allowed_host_passes_with_any_port(host: str) -> None:
    assert await host_status(("host", host)) == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "evil.example:8000",
        "",
        ":8000",
        "[::1",
        "::1",
        "127.0.0.1@evil.example",
        "evil@127.0.0.1:8000",
        "127.0.0.1:8000.evil.example",
        "localhost:8000@evil.example",
        "localhost:http",
        "[localhost]",
        "0.0.0.1",
        "127.1",
        "2130706433",
        "localhost.",
        "evil.example#localhost",
        "*",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "OPTIONS"])
async def test_an_unknown_host_is_refused_for_every_method(host: str, method: str) -> None:
    assert await host_status(("host", host), method=method) == 421


async def test_a_request_without_a_host_or_with_two_is_refused() -> None:
    assert await host_status() == 421
    assert await host_status(("host", "localhost"), ("host", "localhost")) == 421
    assert await host_status(("host", "localhost"), ("host", "evil.example")) == 421


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("localhost", "http://localhost"),
        ("127.0.0.1:3000", "http://127.0.0.1:3000"),
        ("[::1]:8443", "https://[::1]:8443"),
        ("localhost", "HTTP://LOCALHOST"),
    ],
)
async def test_pages_of_the_servers_own_address_may_call(host: str, origin: str) -> None:
    assert await host_status(("host", host), ("origin", origin)) == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
async def test_a_cross_site_fetch_without_an_origin_is_refused(site: str) -> None:
    """For an image in a foreign page, for example, browsers send no origin."""
    fetched, host = ("sec-fetch-site", site), ("host", "localhost")
    assert await host_status(host, fetched, method="GET") == 403
    origin = ("origin", "https://app.example.org")
    assert await host_status(host, fetched, origin, origins=[origin[1]]) == 200
    for ours in ("none", "same-origin"):
        assert await host_status(host, ("sec-fetch-site", ours), method="GET") == 200


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "null",
        "",
        "http://localhost.evil.example",
        "http://localhost@evil.example",
        "http://evil@localhost",
        "http://localhost:3000",
        "http://127.0.0.1",
        "http://localhost:8000.evil.example",
        "ftp://localhost",
        "http://localhost/",
        "localhost",
        "file://",
        "http://[::1",
        "https://app.example.org.evil.example",
        "https://app.example.org:444",
    ],
)
async def test_a_page_of_an_unknown_origin_may_not_call(origin: str) -> None:
    origins = ["https://app.example.org"]
    assert await host_status(("host", "localhost"), ("origin", origin), origins=origins) == 403


async def test_loopback_origins_need_a_loopback_host() -> None:
    origins, hosts = ["https://app.example.org"], ["memory.example.org"]
    host = ("host", "memory.example.org")
    assert await host_status(host, ("origin", "https://app.example.org"), hosts=hosts, origins=origins) == 200
    assert await host_status(host, ("origin", "https://APP.example.org"), hosts=hosts, origins=origins) == 200
    assert await host_status(host, ("origin", "http://localhost:3000"), hosts=hosts, origins=origins) == 403
    assert await host_status(host, ("origin", "https://memory.example.org"), hosts=hosts, origins=origins) == 403


async def test_an_allowed_origin_does_not_hide_a_foreign_one() -> None:
    headers = [("host", "localhost"), ("origin", "http://localhost"), ("origin", "http://evil.example")]
    assert await host_status(*headers) == 403
    assert await host_status(headers[0], headers[2], headers[1]) == 403


@given(host=HEADER_TEXT | URL_LIKE, origin=st.none() | HEADER_TEXT | URL_LIKE)
def test_no_header_text_makes_the_host_guard_fail(host: str, origin: str | None) -> None:
    headers = [("host", host), *([] if origin is None else [("origin", origin)])]
    assert asyncio.run(host_status(*headers)) in {200, 403, 421}


@given(host=HEADER_TEXT | URL_LIKE)
def test_only_hosts_that_contain_an_allowed_name_pass(host: str) -> None:
    if asyncio.run(host_status(("host", host))) == 200:
        assert any(name in host.lower() for name in LOOPBACK)


@pytest.mark.parametrize("scope_type", ["lifespan", "websocket"])
async def test_scopes_other_than_http_are_passed_on_unchanged(scope_type: str) -> None:
    app = App()
    for guarded in (HostGuard(app, LOOPBACK, []), BodyGuard(app, MAX_BYTES), rated(app, Seconds())):
        await guarded({"type": scope_type}, sending(), Answer().send)
    assert app.types == [scope_type] * 3


@given(parts=st.lists(st.binary(max_size=80), min_size=1, max_size=6), is_declared=st.booleans())
def test_a_body_arrives_whole_or_is_refused_for_its_size(parts: list[bytes], is_declared: bool) -> None:
    async def run() -> None:
        app, body = App(), b"".join(parts)
        headers = [("content-length", str(len(body)))] if is_declared else []
        messages = [part(each, more=place < len(parts) - 1) for place, each in enumerate(parts)]
        answer = await ask(BodyGuard(app, MAX_BYTES), http_scope(headers), *messages)
        if len(body) > MAX_BYTES:
            assert (answer.status, app.bodies) == (413, [])
            assert "connection" not in answer.headers
        else:
            assert (answer.status, app.bodies) == (200, [body])

    asyncio.run(run())


async def test_a_body_declared_too_large_is_refused_unread() -> None:
    app, answer = App(), Answer()

    async def receive() -> Message:
        pytest.fail("it was read")

    scope = http_scope([("content-length", str(MAX_BYTES + 1))])
    await BodyGuard(app, MAX_BYTES)(scope, receive, answer.send)
    assert (answer.status, app.types) == (413, [])


@pytest.mark.parametrize("declared", ["0", "-1", "1", "", "abc", "1e3", "0x10", "\xb2"])
async def test_a_false_content_length_admits_no_larger_body(declared: str) -> None:
    app = App()
    answer = await ask(BodyGuard(app, MAX_BYTES), http_scope([("content-length", declared)]), part(b"x" * 101))
    assert (answer.status, app.types) == (413, [])


async def test_a_body_that_never_ends_is_refused_after_the_time_limit() -> None:
    app = App()
    for messages in ([part(b"{", more=True)], [part(b"x", more=True)] * 5):
        answer = await ask(BodyGuard(app, MAX_BYTES, timeout_s=0.01), http_scope(), *messages)
        assert (answer.status, answer.headers["connection"]) == (408, "close")
    assert app.types == []


async def test_a_slow_body_is_refused_although_parts_arrive() -> None:
    app, answer = App(), Answer()

    async def receive() -> Message:
        await asyncio.sleep(0.005)
        return part(b"", more=True)

    async with asyncio.timeout(LIMIT_S):
        await BodyGuard(app, MAX_BYTES, timeout_s=0.05)(http_scope(), receive, answer.send)
    assert (answer.status, app.types) == (408, [])


async def test_a_request_with_an_incomplete_body_is_dropped() -> None:
    app = App()
    answer = await ask(BodyGuard(app, MAX_BYTES), http_scope(), part(b"{", more=True), {"type": "http.disconnect"})
    assert (answer.status, app.types) == (0, [])


async def test_a_request_is_cancelled_when_its_client_disconnects() -> None:
    app = App()
    app.may_answer.clear()
    limited = rated(app, Seconds(), max_at_once=1)
    for _ in range(3):
        answer = await ask(BodyGuard(limited, MAX_BYTES), http_scope(), part(b"{}"), {"type": "http.disconnect"})
        assert answer.status == 0
    app.may_answer.set()
    assert (await ask(limited, http_scope())).status == 200


@pytest.mark.parametrize(("after_answer_s", "is_done"), [(LIMIT_S, True), (0.05, False)])
async def test_work_after_an_answer_has_a_time_limit(
    after_answer_s: float, is_done: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "AFTER_ANSWER_S", after_answer_s)
    is_answered, done = asyncio.Event(), asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 202, "headers": []})
        await send({"type": "http.response.body", "body": b""})
        is_answered.set()
        await asyncio.sleep(0.1 if is_done else LIMIT_S)
        done.set()

    messages = [part(b"{}")]

    async def receive() -> Message:
        if messages:
            return messages.pop()
        await is_answered.wait()
        return {"type": "http.disconnect"}

    async with asyncio.timeout(LIMIT_S):
        await BodyGuard(app, MAX_BYTES)(http_scope(), receive, Answer().send)
    assert done.is_set() == is_done


async def test_an_error_of_the_application_passes_the_body_guard() -> None:
    async def failing(scope: Scope, receive: Receive, send: Send) -> None:
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        await ask(BodyGuard(failing, MAX_BYTES), http_scope(), part(b"{}"))


async def test_a_request_counts_until_its_answer_was_read() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"large"})

    limited = RateGuard(app, caller=lambda _: "", per_second=1000, max_at_once=1, clock=Seconds())
    sent: list[Message] = []
    has_read, waits = asyncio.Event(), asyncio.Event()

    async def send(message: Message) -> None:
        if sent and sent[-1].get("body"):  # the previous part was not read yet
            waits.set()
            await has_read.wait()
        sent.append(message)

    async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
        group.create_task(limited(http_scope(), sending(part(b"")), send))
        await waits.wait()
        assert (await ask(limited, http_scope())).status == 429
        has_read.set()
    assert b"".join(message.get("body", b"") for message in sent) == b"large"
    assert [message.get("more_body", False) for message in sent] == [False, True, False]
    assert (await ask(limited, http_scope())).status == 200


def rated(app: App, clock: Seconds, per_second: float = 5.0, max_at_once: int = 4) -> RateGuard:
    return RateGuard(
        app, caller=lambda scope: str(scope["caller"]), per_second=per_second, max_at_once=max_at_once, clock=clock
    )


@given(
    per_second=st.floats(0.01, 1000),
    pauses=st.lists(st.floats(0, 3) | st.just(0.0), min_size=1, max_size=80),
    callers=st.lists(st.sampled_from("ab"), min_size=80, max_size=80),
)
def test_no_caller_exceeds_the_rate_in_any_window(per_second: float, pauses: list[float], callers: list[str]) -> None:
    async def run() -> dict[str, list[float]]:
        clock = Seconds()
        limited = rated(App(), clock, per_second)
        admitted: dict[str, list[float]] = {"a": [], "b": []}
        for pause, caller in zip(pauses, callers, strict=False):
            clock.now += pause
            answer = await ask(limited, http_scope(caller=caller))
            assert answer.status in {200, 429}
            if answer.status == 200:
                admitted[caller].append(clock.now)
        return admitted

    burst = max(1.0, 2 * per_second)
    for times in asyncio.run(run()).values():
        for first, begin in enumerate(times):
            for last in range(first, len(times)):
                assert last - first + 1 <= burst + (times[last] - begin) * per_second + 1e-6


@given(per_second=st.floats(0.01, 50))
def test_a_caller_who_waits_for_retry_after_is_admitted(per_second: float) -> None:
    async def run() -> None:
        clock = Seconds()
        limited = rated(App(), clock, per_second)
        answers = [await ask(limited, http_scope()) for _ in range(int(max(1.0, 2 * per_second)) + 1)]
        assert [answer.status for answer in answers] == [200] * (len(answers) - 1) + [429]
        wait_s = int(answers[-1].headers["retry-after"])
        assert wait_s >= 1
        clock.now += wait_s
        assert (await ask(limited, http_scope())).status == 200

    asyncio.run(run())


async def test_one_callers_rate_does_not_affect_another_caller() -> None:
    limited = rated(App(), Seconds(), per_second=1)
    assert [(await ask(limited, http_scope(caller="a"))).status for _ in range(4)] == [200, 200, 429, 429]
    assert [(await ask(limited, http_scope(caller="b"))).status for _ in range(2)] == [200, 200]


async def test_too_many_concurrent_requests_are_refused() -> None:
    app = App()
    limited = rated(app, Seconds(), per_second=1000, max_at_once=2)
    app.may_answer.clear()
    async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
        held = [group.create_task(ask(limited, http_scope(caller=caller))) for caller in "ab"]
        await app.arrived(2)
        refused = await ask(limited, http_scope(caller="c"))
        assert (refused.status, refused.headers["retry-after"]) == (429, "1")
        app.may_answer.set()
        assert [(await each).status for each in held] == [200, 200]
    assert (await ask(limited, http_scope())).status == 200

    async def failing(scope: Scope, receive: Receive, send: Send) -> None:
        raise ConnectionResetError

    breaking = RateGuard(failing, caller=lambda _: "", per_second=1000, max_at_once=1, clock=Seconds())
    for _ in range(3):
        with pytest.raises(ConnectionResetError):
            await ask(breaking, http_scope())


async def test_a_cancelled_request_no_longer_counts() -> None:
    app = App()
    limited = rated(app, Seconds(), max_at_once=1)
    app.may_answer.clear()
    async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
        held = group.create_task(ask(limited, http_scope()))
        await app.arrived(1)
        held.cancel()
    app.may_answer.set()
    assert (await ask(limited, http_scope())).status == 200


async def test_an_open_stream_is_not_counted_as_a_request() -> None:
    app = App()
    limited = rated(app, Seconds(), max_at_once=1)
    app.may_answer.clear()
    async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
        streams = [group.create_task(ask(limited, http_scope(method="GET"))) for _ in range(5)]
        await app.arrived(len(streams))
        app.may_answer.set()
        assert (await ask(limited, http_scope())).status == 200


async def test_one_callers_open_streams_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "STREAMS_PER_CALLER", 2)
    app = App()
    limited = rated(app, Seconds())
    app.may_answer.clear()
    listening = http_scope(method="GET", caller="ada")
    async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
        streams = [group.create_task(ask(limited, listening)) for _ in range(2)]
        await app.arrived(2)
        refused = await ask(limited, listening)
        assert refused.status == 429
        assert refused.headers["retry-after"] == "10"
        others = group.create_task(ask(limited, http_scope(method="GET", caller="eve")))
        await app.arrived(1)
        streams[0].cancel()
        app.may_answer.set()
        assert (await others).status == 200
    assert (await ask(limited, listening)).status == 200


async def test_only_a_limited_number_of_callers_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "CALLERS_REMEMBERED", 3)
    clock = Seconds()
    limited = rated(App(), clock, per_second=0.5)
    for caller in "abcd":
        assert (await ask(limited, http_scope(caller=caller))).status == 200
    assert [(await ask(limited, http_scope(caller=caller))).status for caller in "dcb"] == [429, 429, 429]
    assert (await ask(limited, http_scope(caller="a"))).status == 200
