"""A minimal HTTP client: one persistent connection, and requests of the stateless protocol version."""

import asyncio
import json
import time
from typing import Any, Self

from benchmarks.client import Reply, ServerError

PROTOCOL = "2026-07-28"
_META = {
    "io.modelcontextprotocol/protocolVersion": PROTOCOL,
    "io.modelcontextprotocol/clientInfo": {"name": "load", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
BODY_MAX_BYTES = 64 * 1024 * 1024


class Connection:
    """A connection to the server, opened by the first call and again after the server has closed it.

    Args:
        host: Address of the server.
        port: Its port.
    """

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection."""
        if self._writer is not None:
            self._writer.close()
            self._reader = self._writer = None

    async def call(self, token: str, tool: str, arguments: dict[str, Any]) -> Reply:
        """Return a tool's answer; its time is from writing the request until the reply's body is read.

        Raises:
            ServerError: The server rejected the call, or the tool returned an error.
        """
        params = {"name": tool, "arguments": arguments, "_meta": _META}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
        head = (
            f"POST /mcp HTTP/1.1\r\nHost: {self._host}:{self._port}\r\nAuthorization: Bearer {token}\r\n"
            f"Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
            f"MCP-Protocol-Version: {PROTOCOL}\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        began = time.perf_counter()
        status, answer = await self._exchange(head.encode() + body)
        took_s = time.perf_counter() - began
        if status != 200:
            message = f"{tool}: status {status}: {answer[:200].decode(errors='replace')}"
            raise ServerError(message)
        message = json.loads(answer)
        result = message.get("result")
        if result is None or result.get("isError"):
            text = f"{tool} failed: {str(message)[:300]}"
            raise ServerError(text)
        return Reply(content=result["structuredContent"], took_s=took_s)

    async def _exchange(self, request: bytes) -> tuple[int, bytes]:
        if self._reader is None or self._writer is None or self._reader.at_eof():
            self._reader, self._writer = await asyncio.open_connection(self._host, self._port, limit=BODY_MAX_BYTES)
        self._writer.write(request)
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in head[1:] if ": " in line)
        length = headers.get("content-length")
        if length is None:
            message = "the reply has no length: the server chose a stream"
            raise ServerError(message)
        return int(head[0].split(" ", 2)[1]), await self._reader.readexactly(int(length))
