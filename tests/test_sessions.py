"""Limits on sessions and unread replies, without a running server."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from memoryos_mcp.config.logs import SELDOM_S, Seldom
from memoryos_mcp.server.http import sessions
from memoryos_mcp.server.http.guard import BodyGuard
from memoryos_mcp.server.http.sessions import SessionGuard, UnreadReplies
from tests.test_guard import Answer, ask, http_scope, part, sending

LIMIT_S = 20
STREAM = "0123456789abcdef0123456789abcdef"
NAMED = [("mcp-session-id", "s"), ("content-type", "application/json"), ("content-length", "80")]


def call(number: int | str, method: str = "tools/call", **params: Any) -> Message:
    return part(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode())


class Sdk:
    """An application that records messages and never answers a call."""

    def __init__(self) -> None:
        self.said: list[tuple[str, dict[str, Any]]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        said = json.loads((await receive())["body"])
        names = [value.decode() for name, value in scope["headers"] if name == b"mcp-session-id"]
        self.said.append((names[0], said))
        if "id" in said:
            await asyncio.Event().wait()


async def test_a_call_is_cancelled_when_its_client_disconnects() -> None:
    sdk = Sdk()
    guarded = BodyGuard(SessionGuard(sdk, lambda _: "ada", max_per_caller=4), 1000)
    for _ in range(2):
        answer = await ask(guarded, http_scope(NAMED), call(5), {"type": "http.disconnect"})
        assert answer.status == 0
        (called, _), (cancelled, told) = sdk.said
        assert called == cancelled == "s"
        assert (told["method"], told["params"]) == ("notifications/cancelled", {"requestId": 5})
        sdk.said.clear()


async def test_an_id_in_use_is_refused_in_its_session_only() -> None:
    guarded = SessionGuard(Sdk(), lambda scope: str(scope["caller"]), max_per_caller=4)
    async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
        held = [
            group.create_task(ask(guarded, http_scope(headers, caller=caller), call(5)))
            for headers, caller in ((NAMED, "ada"), (NAMED, "eve"), ([("mcp-session-id", "t")], "ada"))
        ]
        await asyncio.sleep(0)
        assert (await ask(guarded, http_scope(NAMED, caller="ada"), call("5"))).status == 409
        assert not any(each.done() for each in held)
        for each in held:
            each.cancel()


class Client:
    """A client with an open stream of `UnreadReplies`, which reads replies only after ``reads`` is set."""

    def __init__(self, unread: UnreadReplies, name: str = STREAM, caller: str = "ada") -> None:
        self.reads = asyncio.Event()
        self.sent: list[bytes] = []
        self._unread = unread
        self._scope: dict[str, Any] = {"caller": caller, "query_string": f"session_id={name}".encode()}
        self._name = name
        self._say: Send | None = None
        self._is_open = asyncio.Event()

    async def listen(self) -> None:
        async def serve(send: Send) -> None:
            self._say = send
            await self.say(f"event: endpoint\r\ndata: /messages?session_id={self._name}\r\n\r\n".encode())
            self._is_open.set()
            await asyncio.Event().wait()

        await self._unread.stream({**http_scope(method="GET"), **self._scope}, self._take, serve)

    async def say(self, body: bytes) -> None:
        assert self._say is not None
        await self._say({"type": "http.response.body", "body": body, "more_body": True})

    async def reply(self, number: int, size: int = 0) -> None:
        said = f'{{"jsonrpc":"2.0","id":{number},"result":"{"x" * size}"}}'
        await self.say(f"event: message\r\ndata: {said}\r\n\r\n".encode())

    async def post(self, message: Message) -> int:
        await self._is_open.wait()
        answer = Answer()
        await self._unread.post({**http_scope(), **self._scope}, sending(message), answer.send, _accept)
        return answer.status

    async def _take(self, message: Message) -> None:
        if self.sent and self.sent[-1].startswith(b"event: message"):
            await self.reads.wait()
        self.sent.append(message["body"])


async def _settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def _accept(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 202, "headers": []})
    await send({"type": "http.response.body", "body": b""})


async def with_clients(use: Callable[..., Awaitable[None]], *callers: str) -> None:
    """Run ``use`` with a client for each caller, while their streams are open."""
    unread = UnreadReplies(lambda scope: str(scope["caller"]))
    clients = [Client(unread, f"{number:032x}", caller) for number, caller in enumerate(callers)]
    async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
        streams = [group.create_task(client.listen()) for client in clients]
        await use(*clients)
        for stream in streams:
            stream.cancel()


async def test_unread_replies_of_a_token_are_limited_over_all_streams() -> None:
    async def use(first: Client, second: Client, other: Client) -> None:
        for client in (first, second):
            for number in range(sessions.UNREAD_AT_MOST // 2):
                assert await client.post(call(number)) == 202
                await client.reply(number)
        assert [await each.post(call(99)) for each in (first, second, other)] == [429, 429, 202]
        first.reads.set()
        await _settle()
        assert await second.post(call(100)) == 202

    await with_clients(use, "ada", "ada", "eve")


async def test_bytes_of_unread_replies_are_limited_for_one_and_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "UNREAD_BYTES", 3000)
    monkeypatch.setattr(sessions, "UNREAD_BYTES_OF_ALL", 5000)
    monkeypatch.setattr(sessions, "REPLY_BYTES", 10)

    async def use(ada: Client, eve: Client, bob: Client) -> None:
        for client in (ada, eve):
            assert [await client.post(call(number)) for number in (1, 2)] == [202, 202]
            await client.reply(1, 2995)
        assert await ada.post(call(3)) == 429
        assert await bob.post(call(1)) == 429
        ada.reads.set()
        await _settle()
        assert [await each.post(call(4)) for each in (ada, eve, bob)] == [202, 429, 202]

    await with_clients(use, "ada", "eve", "bob")


async def test_a_cancelled_call_frees_its_id() -> None:
    async def use(ada: Client) -> None:
        for number in range(2 * sessions.UNREAD_AT_MOST):
            assert await ada.post(call(number)) == 202
            assert await ada.post(call(number)) == 409
            cancelling = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}}
            assert await ada.post(part(json.dumps(cancelling).encode())) == 202

    await with_clients(use, "ada")


def test_repeated_lines_are_logged_once_a_minute_with_a_count(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    logger = logging.getLogger("memoryos_mcp.seldom")
    seldom = Seldom(lambda: now)
    logger.addFilter(seldom)
    with caplog.at_level(logging.INFO, logger.name):
        for second in range(int(SELDOM_S) + 1):
            now = float(second)
            logger.info("ended: %d", second)
            logger.error("failed")
    logger.removeFilter(seldom)
    told = [record.getMessage() for record in caplog.records]
    assert told.count("failed") == SELDOM_S + 1
    assert [each for each in told if each != "failed"] == [
        "ended: 0",
        "ended: 60 (59 similar messages were suppressed)",
    ]
