"""A server over HTTP with invalid tokens, foreign hosts, bad bodies, slow clients and too many requests."""

import asyncio
import contextlib
import json
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from memoryos_mcp.model.callers import Scope, token_id_of
from memoryos_mcp.server.http import timeouts
from memoryos_mcp.server.http.guard import BodyGuard
from memoryos_mcp.server.http.timeouts import PatientProtocol
from memoryos_mcp.storage.sqlite.tokens import TokenStore, token_file
from tests.http_server import INITIALIZE, MCP_HEADERS, HttpServer, asker, bearer, open_session, raw_call, tool_call
from tests.issuer import AUDIENCE, Issuer, issuer_server, rsa_key, unsigned
from tests.memories import NO_MODEL
from tests.servers import stored_pages

LIMIT_S = 90
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
IDLE_CONNECTIONS = 300
TEN_MB = 10_000_000
READ_AT_ONCE = 400_000
ROUTES = [
    *((method, "/mcp") for method in ("GET", "POST", "DELETE", "OPTIONS", "PUT")),
    *(("GET", path) for path in ("/sse", "/health/live", "/health/ready", "/metrics", "/nothing", "/")),
    ("POST", "/messages?session_id=0123456789abcdef0123456789abcdef"),
]
SECRET = "marzipan-in-the-attic"  # noqa: S105 - text of a dialogue, not a password


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with issuer_server() as running:
        yield running


async def status(http: httpx2.AsyncClient, server: HttpServer, headers: dict[str, str]) -> int:
    """Return the HTTP status of an `initialize` request with these headers."""
    answer = await http.post(f"{server.url}/mcp", headers=MCP_HEADERS | headers, content=json.dumps(INITIALIZE))
    assert answer.status_code != 401 or answer.headers["www-authenticate"].startswith("Bearer")
    return answer.status_code


async def test_an_invalid_token_is_refused_on_every_private_route(http_server: HttpServer) -> None:
    token, revoked = http_server.add_token("ada"), http_server.add_token("ada")
    long_ago = TokenStore(token_file(http_server.folder), clock=lambda: LONG_AGO)
    long_ago.revoke(token_id_of(revoked))
    expired = long_ago.add("ada", {Scope.ADMIN}, LONG_AGO + timedelta(days=1))
    long_ago.close()
    swapped = f"{token[:17]}{'A' * 43}"
    bad = [
        revoked,
        expired,
        swapped,
        token[:-1],
        f"{token}x",
        token.upper(),
        token_id_of(token),
        "mos_",
        "a.b.c",
        "é",
    ]
    shown = [f"Bearer {each}".encode() for each in bad]
    shown += [
        token.encode(),
        f"Basic {token}".encode(),
        f"Bearer{token}".encode(),
        b"Bearer \xff\xfe",
        b"B",
        b"x" * 20_000,
    ]
    async with asyncio.timeout(LIMIT_S), httpx2.AsyncClient() as http:
        for value in shown:
            headers = [(b"authorization", value), *((k.encode(), v.encode()) for k, v in MCP_HEADERS.items())]
            for method, path in [("POST", "/mcp"), ("GET", "/sse"), ("GET", "/metrics"), ("POST", "/messages")]:
                answer = await http.request(method, http_server.url + path, headers=headers, content=b"{}")
                assert answer.status_code == 401, (value[:80], path)
                assert token not in answer.text
        two = [("authorization", f"Bearer {token}"), ("authorization", f"Bearer {token}"), *MCP_HEADERS.items()]
        twice = await http.post(f"{http_server.url}/mcp", headers=two, content=json.dumps(INITIALIZE))
        assert twice.status_code == 401
        assert await status(http, http_server, {}) == 401
        assert await status(http, http_server, {"authorization": f"bEARER {token}"}) == 200
    assert "Traceback" not in http_server.stderr
    assert not any(each[17:] in http_server.stderr for each in (token, revoked, expired))


async def test_only_jwts_of_the_issuer_for_this_server_are_valid(data: Path, issuer: Issuer) -> None:
    settings = {"oidc_issuer": issuer.url, "oidc_audience": AUDIENCE, **NO_MODEL}
    with HttpServer(data, settings) as server:
        bad = {
            "for another audience": issuer.token(aud="https://other.example.com"),
            "for no audience": issuer.token(aud=None),
            "expired": issuer.token(exp=int(time.time()) - 3600),
            "not yet": issuer.token(nbf=int(time.time()) + 3600),
            "of another issuer": issuer.token(iss="https://evil.example"),
            "signed by a stranger": issuer.token(rsa_key("stranger")),
            "unsigned": unsigned({"alg": "none"}, issuer.claims()),
            "of nobody": issuer.token(sub=None),
            "of a user who cannot be": issuer.token(sub="a\x00b"),
        }
        async with asyncio.timeout(LIMIT_S), httpx2.AsyncClient() as http:
            assert await status(http, server, {}) == 401
            for what, token in bad.items():
                assert await status(http, server, bearer(token)) == 401, what
            async with asker(server, issuer.token(scope="memory:write")) as zoe:
                await zoe.add("My issuer knows me.")
                assert (await zoe.call("get_memory_stats"))["user_id"] == "zoë"
            async with asker(server, issuer.token()) as reader:
                assert "add_memory" not in await reader.tools()
        assert "Traceback" not in server.stderr
    assert len(stored_pages(data, "zoë")) == 1


async def test_one_users_session_does_not_exist_for_another(http_server: HttpServer) -> None:
    ada, eve = http_server.add_token("owner"), http_server.add_token("eve")
    other_of_ada = http_server.add_token("owner")
    add = tool_call("add_memory", user_input="Eve was here.", agent_response="")
    async with asyncio.timeout(LIMIT_S), httpx2.AsyncClient() as http:
        session = await open_session(http, http_server, ada)
        made_up = await raw_call(http, http_server, eve, add, "0" * 32)
        for token in (eve, other_of_ada):
            answer = await raw_call(http, http_server, token, add, session)
            assert (answer.status_code, answer.text) == (made_up.status_code, made_up.text)
            assert answer.status_code == 404
            for method in ("GET", "DELETE"):
                headers = {**MCP_HEADERS, **bearer(token), "mcp-session-id": session}
                assert (await http.request(method, f"{http_server.url}/mcp", headers=headers)).status_code == 404
        assert (await raw_call(http, http_server, None, add, session)).status_code == 401
        stats = await raw_call(http, http_server, ada, tool_call("get_memory_stats"), session)
        assert stats.status_code == 200
        assert '"total_pages":0' in stats.text.replace(" ", "").replace("\\", "")


async def test_one_users_sse_stream_refuses_messages_of_another(http_server: HttpServer) -> None:
    ada, eve = http_server.add_token("ada"), http_server.add_token("eve")
    async with (
        asyncio.timeout(LIMIT_S),
        httpx2.AsyncClient() as http,
        http.stream("GET", f"{http_server.url}/sse", headers=bearer(ada)) as stream,
    ):
        lines = stream.aiter_lines()
        path = next(
            line.removeprefix("data: ")
            for line in [await anext(lines), await anext(lines)]
            if line.startswith("data: ")
        )
        posts = {
            token: await http.post(
                http_server.url + path, headers=MCP_HEADERS | bearer(token), content=json.dumps(INITIALIZE)
            )
            for token in (eve, None, ada)
        }
        assert [answer.status_code for answer in posts.values()] == [404, 401, 202]
        made_up = await http.post(
            f"{http_server.url}/messages?session_id={'0' * 32}", headers=MCP_HEADERS | bearer(eve), content=b"{}"
        )
        assert (made_up.status_code, made_up.text) == (posts[eve].status_code, posts[eve].text)
        async for line in lines:
            if line.startswith("data: "):
                assert json.loads(line.removeprefix("data: "))["id"] == INITIALIZE["id"]
                break


async def test_every_route_refuses_foreign_hosts_and_origins(http_server: HttpServer) -> None:
    token = http_server.add_token("root", Scope.ADMIN)
    async with asyncio.timeout(LIMIT_S), httpx2.AsyncClient() as http:
        for method, path in ROUTES:
            for shown in (bearer(token), {}):
                for host in ("evil.example", f"evil.example:{http_server.port}", "127.0.0.1.evil.example"):
                    answer = await http.request(method, http_server.url + path, headers=shown | {"host": host})
                    assert answer.status_code == 421, (method, path, host)
                for origin in ("http://evil.example", "null", "http://localhost.evil.example", "http://localhost:5173"):
                    answer = await http.request(method, http_server.url + path, headers=shown | {"origin": origin})
                    assert answer.status_code == 403, (method, path, origin)
                    assert "access-control-allow-origin" not in answer.headers
        page_here = bearer(token) | {"origin": http_server.url}
        assert await status(http, http_server, page_here) == 200


async def test_only_a_handshake_opens_a_session(data: Path) -> None:
    with HttpServer(data, {"max_sessions_per_token": 2, "requests_per_second": 10_000.0, **NO_MODEL}) as server:
        token = server.add_token("ada")
        async with asyncio.timeout(LIMIT_S), httpx2.AsyncClient() as http:
            session = await open_session(http, server, token)
            shown = MCP_HEADERS | bearer(token)
            for method in ("GET", "DELETE", "POST", "OPTIONS", "HEAD", "PUT"):
                for body in (b"", json.dumps(tool_call("get_memory_stats")).encode(), b'{"method":"initialize"}'):
                    answer = await http.request(method, f"{server.url}/mcp", headers=shown, content=body)
                    assert answer.status_code in {400, 405}
                    assert "mcp-session-id" not in answer.headers
            refused = await http.post(f"{server.url}/mcp", headers=shown | {"accept": "image/*"}, json=INITIALIZE)
            assert refused.status_code == 406
            answer = await raw_call(http, server, token, tool_call("get_memory_stats"), session)
            assert answer.status_code == 200
            head = await http.head(f"{server.url}/sse", headers=bearer(token))
            assert head.status_code == 405


async def test_concurrent_calls_with_one_id_are_all_answered(data: Path) -> None:
    with HttpServer(data, {"requests_per_second": 10_000.0, **NO_MODEL}) as server:
        token = server.add_token("ada", Scope.READ)
        async with asyncio.timeout(LIMIT_S), httpx2.AsyncClient(timeout=10) as http:
            session = await open_session(http, server, token)
            for _ in range(2):
                same = tool_call("retrieve_memory", query="hello there")
                answers = await asyncio.gather(*(raw_call(http, server, token, same, session) for _ in range(30)))
                assert {answer.status_code for answer in answers} == {200, 409}
                assert all("its own id" in each.text for each in answers if each.status_code == 409)
            assert (await raw_call(http, server, token, same | {"id": "2"}, session)).status_code == 200
        assert server.stop() == 0
        assert "Traceback" not in server.stderr


async def test_callers_cannot_fill_the_log(data: Path) -> None:
    with HttpServer(data, {"max_sessions_per_token": 1, "requests_per_second": 10_000.0, **NO_MODEL}) as server:
        token = server.add_token("ada")
        async with asyncio.timeout(LIMIT_S), httpx2.AsyncClient() as http:
            for _ in range(20):
                await open_session(http, server, token)
            token_file(data).write_bytes(b"not a database" * 1000)
            for _ in range(20):
                assert await status(http, server, bearer(token)) == 503
        assert server.stderr.count("a session was ended") == 1
        assert server.stderr.count("a token could not be checked") == 1


@pytest.mark.parametrize("path", ["/mcp", "/messages"])
async def test_a_body_of_ten_megabytes_is_refused_declared_or_not(http_server: HttpServer, path: str) -> None:
    token = http_server.add_token("ada")

    async def dripping() -> AsyncIterator[bytes]:
        for _ in range(TEN_MB // 100_000):
            yield b"x" * 100_000

    async with asyncio.timeout(LIMIT_S), httpx2.AsyncClient(timeout=30) as http:
        for content in (b"x" * TEN_MB, dripping()):
            headers = MCP_HEADERS | bearer(token)
            answer = await http.post(http_server.url + path, headers=headers, content=content)
            assert answer.status_code == 413
            assert "4194304 bytes" in answer.text
        assert await status(http, http_server, bearer(token)) == 200


async def test_malformed_bodies_are_refused_and_not_logged(http_server: HttpServer) -> None:
    token = http_server.add_token("ada")
    bodies = [
        b"",
        b"{",
        json.dumps({"x": SECRET}).encode(),
        f'{{"jsonrpc": "2.0", "id": 1, "method": "{SECRET}"'.encode(),
        json.dumps({"jsonrpc": "2.0", "id": {"a": SECRET}, "method": 5}).encode(),
        json.dumps([INITIALIZE, INITIALIZE, SECRET]).encode(),
        json.dumps(SECRET).encode(),
        b"null",
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
        b'{"jsonrpc":"2.0","id":1e999,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}',
    ]
    async with (
        asyncio.timeout(LIMIT_S),
        httpx2.AsyncClient() as http,
        http.stream("GET", f"{http_server.url}/sse", headers=bearer(token)) as stream,
    ):
        lines = stream.aiter_lines()
        stream_path = [await anext(lines), await anext(lines)][1].removeprefix("data: ")
        session = await open_session(http, http_server, token)
        for body in bodies:
            for path, more in (("/mcp", {}), ("/mcp", {"mcp-session-id": session}), (stream_path, {})):
                headers = MCP_HEADERS | bearer(token) | more
                answer = await http.post(http_server.url + path, headers=headers, content=body)
                assert answer.status_code < 500, (body[:60], path)
                assert SECRET not in answer.text
                assert "pydantic" not in answer.text
        for path in ("/messages", "/messages?session_id=x", "/messages?session_id=%00", "/mcp?a=%ff"):
            answer = await http.post(http_server.url + path, headers=MCP_HEADERS | bearer(token), content=b"{}")
            assert 400 <= answer.status_code < 500
        assert await status(http, http_server, bearer(token)) == 200
    assert SECRET not in http_server.stderr


async def test_data_that_is_not_http_is_refused(http_server: HttpServer) -> None:
    heads = [
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET\r\n\r\n",
        b"GET /health/live HTTP/1.1\r\n\r\n",
        b"GET /health/live HTTP/1.1\r\nHost: a\r\nHost: localhost\r\n\r\n",
        b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 200_000 + b"\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ]
    token = http_server.add_token("ada")
    async with asyncio.timeout(LIMIT_S), httpx2.AsyncClient() as http:
        for head in heads:
            reader, writer = await asyncio.open_connection("127.0.0.1", http_server.port)
            writer.write(head)
            answer = b""
            with contextlib.suppress(ConnectionError):  # data that was still being sent is cut off
                answer = await reader.readline()
            assert answer == b"" or answer.startswith(b"HTTP/1.1 4"), head[:60]
            writer.close()
        assert await status(http, http_server, bearer(token)) == 200
    assert "Traceback" not in http_server.stderr


async def test_hundreds_of_silent_connections_do_not_hinder_callers(
    http_server: HttpServer,
) -> None:
    token = http_server.add_token("caller")
    async with asyncio.timeout(LIMIT_S), AsyncExitStack() as stack:
        for _ in range(IDLE_CONNECTIONS):
            _, writer = await asyncio.open_connection("127.0.0.1", http_server.port)
            stack.callback(writer.close)
        async with asker(http_server, token) as ada:
            pages = {await ada.add(f"Remark {number}.") for number in range(5)}
            assert (await ada.call("get_memory_stats"))["total_pages"] == len(pages) == 5


async def test_a_disconnect_during_an_add_leaves_no_partial_page(data: Path) -> None:
    with HttpServer(data, NO_MODEL) as server:
        token = server.add_token("ada")
        rounds = 20
        async with asyncio.timeout(LIMIT_S), httpx2.AsyncClient() as http:
            session = await open_session(http, server, token)
            for number in range(rounds):
                text = f"Number {number} " + "x" * 5000
                body = json.dumps(tool_call("add_memory", user_input=text, agent_response="")).encode()
                headers = MCP_HEADERS | bearer(token) | {"mcp-session-id": session, "content-length": str(len(body))}
                head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
                _, writer = await asyncio.open_connection("127.0.0.1", server.port)
                writer.write(f"POST /mcp HTTP/1.1\r\nHost: localhost\r\n{head}\r\n".encode())
                writer.write(body if number % 2 else body[:3000])
                await writer.drain()
                writer.close()
            async with asker(server, token) as ada:
                last = await ada.add("Still here.")
                assert (await ada.call("retrieve_memory", query="still"))["short_term_memory"][-1]["page_id"] == last
        assert server.stop() == 0
        assert "Traceback" not in server.stderr
    texts = [page.user_input for page in stored_pages(data, "ada")]
    assert len(texts) == len(set(texts))
    assert set(texts) <= {"Still here.", *(f"Number {number} " + "x" * 5000 for number in range(1, rounds, 2))}


async def test_the_rate_of_requests_with_one_token_is_limited(data: Path) -> None:
    with HttpServer(data, {"requests_per_second": 0.5, **NO_MODEL}) as server:
        busy, calm = server.add_token("ada"), server.add_token("bob")
        async with asyncio.timeout(LIMIT_S), httpx2.AsyncClient() as http:
            answers = [await raw_call(http, server, busy, INITIALIZE) for _ in range(5)]
            assert answers[0].status_code == 200
            assert answers[-1].status_code == 429
            assert 1 <= int(answers[-1].headers["retry-after"]) <= 2
            assert "too many requests" in answers[-1].text
            assert await status(http, server, bearer(calm)) == 200
            for path in ("/health/live", "/health/ready"):
                assert (await http.get(server.url + path)).status_code == 200


async def test_excess_concurrent_requests_are_refused_without_loss(data: Path) -> None:
    settings = {"max_requests_at_once": 2, "requests_per_second": 10_000.0, **NO_MODEL}
    with HttpServer(data, settings) as server:
        token = server.add_token("ada")
        async with asyncio.timeout(LIMIT_S), httpx2.AsyncClient(timeout=60) as http:
            session = await open_session(http, server, token)
            add = tool_call("add_memory", user_input="One of many.", agent_response="")
            numbered = [add | {"id": number} for number in range(10, 60)]
            answers = await asyncio.gather(*(raw_call(http, server, token, each, session) for each in numbered))
        told = [answer.status_code for answer in answers]
        assert set(told) <= {200, 429}
        assert all(answer.headers["retry-after"] == "1" for answer in answers if answer.status_code == 429)
        assert server.stop() == 0
    assert len(stored_pages(data, "ada")) == told.count(200) > 0


async def _echo(request: Request) -> Response:
    return PlainTextResponse(await request.body() or b"x" * TEN_MB)


@asynccontextmanager
async def server_with_timeouts(body_timeout_s: float = 20.0) -> AsyncIterator[int]:
    """Yield the port of a server in this process with the time limits of `PatientProtocol`."""
    app: ASGIApp = Starlette(routes=[Route("/", _echo, methods=["GET", "POST"])])
    config = uvicorn.Config(
        BodyGuard(app, 1000, body_timeout_s),
        http=PatientProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    server.capture_signals = contextlib.nullcontext  # type: ignore[assignment, method-assign]
    listening = socket.create_server(("127.0.0.1", 0))
    async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
        group.create_task(server.serve([listening]))
        try:
            yield listening.getsockname()[1]
        finally:
            server.should_exit = True


@pytest.fixture
def short_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeouts, "HEAD_TIMEOUT_S", 0.2)
    monkeypatch.setattr(timeouts, "READ_TIMEOUT_S", 0.2)


async def drip_until_closed(writer: asyncio.StreamWriter, reader: asyncio.StreamReader, drop: bytes) -> bytes:
    """Send ``drop`` again and again until the server disconnects, and return what it sent."""

    async def drip() -> None:
        with contextlib.suppress(ConnectionError):
            while True:
                writer.write(drop)
                await writer.drain()
                await asyncio.sleep(0.02)

    async with asyncio.TaskGroup() as group:
        dripping = group.create_task(drip())
        said = b""
        with contextlib.suppress(ConnectionError):
            said = await reader.read()
        dripping.cancel()
    writer.close()
    return said


@pytest.mark.usefixtures("short_timeouts")
@pytest.mark.parametrize(
    ("begin", "drop"),
    [
        (b"", b""),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n", b""),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n", b"X: y\r\n"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\nGET / HT", b"T"),
    ],
)
async def test_a_head_that_never_ends_is_cut_off(begin: bytes, drop: bytes) -> None:
    async with server_with_timeouts() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(begin)
        said = await drip_until_closed(writer, reader, drop)
        assert said.count(b"HTTP/1.1 200") == begin.count(b"\r\n\r\n")


@pytest.mark.parametrize("drop", [b"", b"x"])
async def test_a_body_that_never_ends_gets_408_and_is_cut_off(drop: bytes) -> None:
    async with server_with_timeouts(body_timeout_s=0.2) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900\r\n\r\n{")
        said = await drip_until_closed(writer, reader, drop)
        assert said.startswith(b"HTTP/1.1 408") or drop


@pytest.mark.usefixtures("short_timeouts")
@pytest.mark.parametrize(
    ("begin", "status_line", "drop"),
    [
        (b"GET /nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900\r\n\r\n", b"HTTP/1.1 404", b"x"),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900000\r\n\r\n", b"HTTP/1.1 413", b"x"),
        # The rest of the body arrives at once, and no further request follows.
        (b"GET /nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n", b"HTTP/1.1 404", b""),
    ],
)
async def test_a_body_that_goes_on_after_its_answer_is_cut_off(begin: bytes, status_line: bytes, drop: bytes) -> None:
    """A refusal is sent before the body was read, and the connection must still have a time limit."""
    async with server_with_timeouts() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(begin)
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(status_line)
        writer.write(b"x")
        await drip_until_closed(writer, reader, drop)


@pytest.mark.usefixtures("short_timeouts")
async def test_an_unread_answer_is_cut_off_but_a_slow_reader_is_not() -> None:
    async with server_with_timeouts() as port:
        slow, idle = [await asyncio.open_connection("127.0.0.1", port, limit=READ_AT_ONCE) for _ in range(2)]
        for _, writer in (slow, idle):
            writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        size = 0
        while part := await slow[0].read(READ_AT_ONCE):
            size += len(part)
            await asyncio.sleep(0.05)
        assert size > TEN_MB
        with contextlib.suppress(ConnectionError):
            assert len(await idle[0].read(-1)) < TEN_MB
        for _, writer in (slow, idle):
            writer.close()


@pytest.mark.usefixtures("short_timeouts")
async def test_a_connection_stays_open_between_requests() -> None:
    async with server_with_timeouts(body_timeout_s=5) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for pause_s in (0.0, 0.5, 0.5):
            await asyncio.sleep(pause_s)
            writer.write(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n")
            await asyncio.sleep(pause_s)
            writer.write(b"ok")
            answer = await reader.readuntil(b"\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 200")
            assert await reader.readexactly(2) == b"ok"
        writer.close()
