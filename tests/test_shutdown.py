"""During shutdown, a server finishes calls in progress and refuses new ones."""

import asyncio
import json
import signal
import socket
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

import httpx2
import pytest
from mcp.server.context import ServerRequestContext

from memoryos_mcp.server.http.shutdown import Closing, ClosingGuard
from tests.http_server import INITIALIZE, MCP_HEADERS, HttpServer
from tests.test_guard import App, ask, http_scope

LIMIT_S = 30
CONTEXT = cast(ServerRequestContext[Any, Any], None)


class Call:
    """A call that ends on an event."""

    def __init__(self) -> None:
        self.has_begun, self.may_end = asyncio.Event(), asyncio.Event()

    async def __call__(self, _: object) -> Any:
        self.has_begun.set()
        await self.may_end.wait()
        return "the answer"


async def test_shutdown_waits_for_calls_in_progress() -> None:
    closing, calls = Closing(), [Call(), Call()]
    async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
        answers = [group.create_task(closing(CONTEXT, call)) for call in calls]
        for call in calls:
            await call.has_begun.wait()
        drained = group.create_task(closing.drain(LIMIT_S))
        for call in calls:
            await asyncio.sleep(0.5)
            assert not drained.done()
            call.may_end.set()
        await drained
        assert [str(await answer) for answer in answers] == ["the answer"] * 2


async def test_shutdown_waits_only_for_the_grace_time() -> None:
    closing, call = Closing(), Call()
    async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
        group.create_task(closing(CONTEXT, call))
        await call.has_begun.wait()
        await closing.drain(0.3)
        call.may_end.set()


async def test_a_failed_call_is_no_longer_in_progress() -> None:
    closing = Closing()

    async def fail(_: object) -> Any:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        await closing(CONTEXT, fail)
    async with asyncio.timeout(LIMIT_S):
        await closing.drain(10 * LIMIT_S)


@pytest.mark.parametrize(("method", "status"), [("POST", 503), ("DELETE", 503), ("GET", 200)])
async def test_only_reading_calls_are_allowed_during_shutdown(method: str, status: int) -> None:
    closing = Closing()
    guarded = ClosingGuard(App(), closing)
    assert (await ask(guarded, http_scope(method=method))).status == 200
    await closing.drain(0)
    answer = await ask(guarded, http_scope(method=method))
    assert answer.status == status
    assert ("retry-after" in answer.headers) == (status == 503)


def test_requests_on_accepted_connections_are_answered_although_the_server_is_told_to_stop(tmp_path: Path) -> None:
    body = json.dumps(INITIALIZE).encode()
    lines = ["POST /mcp HTTP/1.1", "Host: 127.0.0.1", *(f"{name}: {value}" for name, value in MCP_HEADERS.items())]
    request = "\r\n".join([*lines, f"Content-Length: {len(body)}", "Connection: close", "", ""]).encode() + body
    with HttpServer(tmp_path / "data", transport="http") as server, ExitStack() as stack:
        assert httpx2.get(f"{server.url}/health/ready").status_code == 200
        # While the process is halted, the system accepts connections for it.
        server.send_signal(signal.SIGSTOP)
        address = ("127.0.0.1", server.port)
        clients = [stack.enter_context(socket.create_connection(address, timeout=LIMIT_S)) for _ in range(8)]
        for client in clients:
            client.sendall(request)
        server.send_signal(signal.SIGTERM)
        server.send_signal(signal.SIGCONT)
        answers = {client.makefile("rb").readline() for client in clients}
        assert server.wait_for_exit() == 0
    assert answers == {ANSWERED}


ANSWERED = b"HTTP/1.1 200 OK\r\n"
