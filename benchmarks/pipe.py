"""A minimal client: JSON-RPC lines over a process's pipes, so that only the server's time is measured."""

import asyncio
import json
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from benchmarks.client import Reply, ServerError

LINE_MAX_BYTES = 64 * 1024 * 1024
START_TIMEOUT_S = 60.0


class Pipe:
    """A running server and its pipes. Create it with `opened`."""

    def __init__(self, process: Process) -> None:
        self.pid = process.pid
        self._process = process
        self._last_id = 0

    async def call(self, tool: str, **arguments: object) -> Reply:
        """Return a tool's answer; its time is from writing the request until the reply is read.

        Raises:
            ServerError: The tool returned an error.
        """
        reply = await self.request("tools/call", {"name": tool, "arguments": arguments})
        if reply.content.get("isError"):
            message = f"{tool} failed: {reply.content['content']}"
            raise ServerError(message)
        return Reply(content=reply.content["structuredContent"], took_s=reply.took_s)

    async def request(self, method: str, params: dict[str, Any]) -> Reply:
        """Return a request's result.

        Raises:
            ServerError: The server rejected the request or has ended.
        """
        self._last_id += 1
        line = json.dumps({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params}).encode() + b"\n"
        reader, writer = self._process.stdout, self._process.stdin
        if reader is None or writer is None:
            message = "the pipes of the server were not opened"
            raise ServerError(message)
        began = time.perf_counter()
        writer.write(line)
        while answer := await reader.readline():
            took_s = time.perf_counter() - began
            message = json.loads(answer)
            if message.get("id") == self._last_id:
                if "error" in message:
                    raise ServerError(message["error"]["message"])
                return Reply(content=message["result"], took_s=took_s)
        text = "the server has ended"
        raise ServerError(text)


def initialize_params() -> dict[str, Any]:
    """Return the first messages of a client."""
    return {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "speed", "version": "1"}}


@asynccontextmanager
async def opened(*arguments: str) -> AsyncIterator[Pipe]:
    """Start ``python ARGUMENTS`` as an MCP server, initialise it and yield it; closing its stdin stops it."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, stdin=PIPE, stdout=PIPE, limit=LINE_MAX_BYTES
    )
    pipe = Pipe(process)
    try:
        async with asyncio.timeout(START_TIMEOUT_S):
            await pipe.request("initialize", initialize_params())
            await pipe.request("tools/list", {})
        yield pipe
    finally:
        if process.stdin is not None:
            process.stdin.close()
        await process.wait()


def memory_server(data_folder: object, user_id: str, *options: str) -> tuple[str, ...]:
    """Return the arguments of the real server, with further options."""
    where = ("--data-storage-path", str(data_folder), "--user-id", user_id)
    return ("-m", "memoryos_mcp", "serve", *where, "--log-level", "WARNING", *options)


BARE_SERVER = ("-m", "benchmarks.bare_server")
