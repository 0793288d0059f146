"""Real servers over HTTP, their tokens, and clients of them."""

import json
import re
import signal
import socket
import subprocess
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import httpx2
from mcp.client.client import Client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

from memoryos_mcp.model.callers import Scope
from memoryos_mcp.storage.sqlite.tokens import TokenStore, token_file
from tests.servers import Era, serve_command, serve_environment

START_LIMIT_S = 30.0
EXIT_LIMIT_S = 30.0
# The first message of a client of the older era.
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}},
}
MCP_HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
_LISTENING = re.compile(r"listening on http://127\.0\.0\.\d+:(\d+)")


@dataclass(frozen=True, slots=True)
class Way:
    """A transport and an era of the protocol."""

    transport: Literal["http", "sse"]
    era: Era

    def __str__(self) -> str:
        return f"{self.transport}-{self.era}"


MODERN, LEGACY, SSE = Way("http", "auto"), Way("http", "legacy"), Way("sse", "legacy")
WAYS = (MODERN, LEGACY, SSE)


class HttpServer:
    """A server process on a free port. As a context manager, it always ends the process."""

    def __init__(
        self,
        folder: Path,
        settings: Mapping[str, object] | None = None,
        *,
        transport: str = "all",
        name: str = "http",
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.log = folder.parent / f"{folder.name}.{name}.log"
        flags = {"transport": transport, "host": "127.0.0.1", "port": 0, **(settings or {})}
        self.process = subprocess.Popen(
            serve_command(folder, flags),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=serve_environment(folder, env),
        )
        self.stdout = b""
        self.port = 0
        self._logged = ""
        self._is_listening = threading.Event()
        self._readers = [threading.Thread(target=read, daemon=True) for read in (self._read_log, self._read_stdout)]
        for reader in self._readers:
            reader.start()

    def __enter__(self) -> Self:
        if not self._is_listening.wait(START_LIMIT_S) or not self.port:
            self.kill()
            raise AssertionError(f"the server does not listen:\n{self.stderr}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            try:
                code = self.stop()
            except subprocess.TimeoutExpired:
                self.kill()
                raise
            if kind is None:
                assert code == 0, self.stderr
        if kind is None:
            assert self.stdout == b"", "stdout is not for the server's words"
            assert not is_listened_on(self.port), "something still listens on the port"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def stderr(self) -> str:
        """The log so far."""
        return self._logged

    def send_signal(self, number: int) -> None:
        self.process.send_signal(number)

    def wait_for_exit(self) -> int:
        """Wait until the process ends, read all its output, and return the exit code."""
        code = self.process.wait(EXIT_LIMIT_S)
        for reader in self._readers:
            reader.join(EXIT_LIMIT_S)
        return code

    def stop(self) -> int:
        """End the server as an operator does and return its exit code."""
        self.send_signal(signal.SIGTERM)
        return self.wait_for_exit()

    def kill(self) -> None:
        """Kill the process."""
        self.send_signal(signal.SIGKILL)
        self.wait_for_exit()

    def tokens(self) -> TokenStore:
        """Return the tokens of the data folder, which can be changed while the server runs."""
        return TokenStore(token_file(self.folder), clock=lambda: datetime.now(UTC))

    def add_token(self, user_id: str, *scopes: Scope) -> str:
        """Make a token while the server runs."""
        store = self.tokens()
        try:
            return store.add(user_id, set(scopes) or {Scope.WRITE})
        finally:
            store.close()

    def _read_log(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as stream:
            for line in stream:
                self._logged += line.decode(errors="replace")
                if found := _LISTENING.search(self._logged if not self.port else ""):
                    self.port = int(found[1])
                    self._is_listening.set()
        self._is_listening.set()

    def _read_stdout(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as stream:
            self.stdout = stream.read()


class Asker:
    """A client with one token."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return its structured result; a tool error fails."""
        result = await self.result(tool, **arguments)
        assert not result.is_error, result.content
        structured: dict[str, Any] | None = result.structured_content
        assert structured is not None
        return structured

    async def refusal(self, tool: str, **arguments: Any) -> str:
        """Call a tool that must refuse, and return the text of its error."""
        result = await self.result(tool, **arguments)
        assert result.is_error
        [content] = result.content
        assert isinstance(content, TextContent)
        return content.text

    async def add(self, text: str, **more: Any) -> str:
        """Add a page and return its id."""
        page_id: str = (await self.call("add_memory", user_input=text, agent_response="Noted.", **more))["page_id"]
        return page_id

    async def result(self, tool: str, **arguments: Any) -> CallToolResult:
        result = await self.client.call_tool(tool, arguments)
        assert isinstance(result, CallToolResult)
        return result

    async def tools(self) -> list[str]:
        return [tool.name for tool in (await self.client.list_tools()).tools]


@asynccontextmanager
async def asker(server: HttpServer, token: str | None, way: Way = MODERN) -> AsyncIterator[Asker]:
    """Yield the SDK's client, connected to a running server."""
    headers = bearer(token)
    if way.transport == "sse":
        async with Client(sse_client(f"{server.url}/sse", headers=headers), mode=way.era) as client:
            yield Asker(client)
        return
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(f"{server.url}/mcp", http_client=http), mode=way.era) as client,
    ):
        yield Asker(client)


def bearer(token: str | None) -> dict[str, str]:
    """Return the headers with a token, or none for None."""
    return {} if token is None else {"Authorization": f"Bearer {token}"}


def tool_call(tool: str, **arguments: Any) -> dict[str, Any]:
    """Return a tool call of the older era. Outside a session, it passes every guard and is then refused."""
    return {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


async def raw_call(
    http: httpx2.AsyncClient, server: HttpServer, token: str | None, message: Mapping[str, Any], session: str = ""
) -> httpx2.Response:
    """Post a message to /mcp and return the whole answer."""
    headers = MCP_HEADERS | bearer(token) | ({"mcp-session-id": session} if session else {})
    return await http.post(f"{server.url}/mcp", headers=headers, content=json.dumps(message))


async def open_session(http: httpx2.AsyncClient, server: HttpServer, token: str | None) -> str:
    """Open a session of the older era, and return its id."""
    answer = await raw_call(http, server, token, INITIALIZE)
    assert answer.status_code == 200, answer.text
    session: str = answer.headers["mcp-session-id"]
    await raw_call(http, server, token, {"jsonrpc": "2.0", "method": "notifications/initialized"}, session)
    return session


def is_listened_on(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
