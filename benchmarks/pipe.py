"""A minimal client: JSON-RPC lines over a process's pipes, so that only the server's time is measured."""

import asyncio
import json
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO, Any

from benchmarks.client import Reply, ServerError

LINE_MAX_BYTES = 64 * 1024 * 1024
START_TIMEOUT_S = 60.0
# A server that still runs this long after its stdin was closed is killed.
END_TIMEOUT_S = 30.0


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

    def notify(self, method: str) -> None:
        """Send a notification, which has no answer."""
        if self._process.stdin is not None:
            self._process.stdin.write(json.dumps({"jsonrpc": "2.0", "method": method}).encode() + b"\n")


def initialize_params() -> dict[str, Any]:
    """Return the first messages of a client."""
    return {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "speed", "version": "1"}}


@asynccontextmanager
async def opened(
    *arguments: str,
    python: str = sys.executable,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stderr: IO[bytes] | None = None,
    start_timeout_s: float = START_TIMEOUT_S,
) -> AsyncIterator[Pipe]:
    """Start ``PYTHON ARGUMENTS`` as an MCP server, initialise it and yield it; closing its stdin stops it.

    Args:
        arguments: The arguments of Python.
        python: The interpreter.
        env: All environment variables; None for those of this process.
        cwd: Its working folder.
        stderr: A file for its stderr; None for that of this process.
        start_timeout_s: Time until it has listed its tools, seconds.
    """
    process = await asyncio.create_subprocess_exec(
        python, *arguments, stdin=PIPE, stdout=PIPE, stderr=stderr, limit=LINE_MAX_BYTES, env=env, cwd=cwd
    )
    pipe = Pipe(process)
    try:
        async with asyncio.timeout(start_timeout_s):
            await pipe.request("initialize", initialize_params())
            pipe.notify("notifications/initialized")
            await pipe.request("tools/list", {})
        yield pipe
    finally:
        if process.stdin is not None:
            process.stdin.close()
        try:
            async with asyncio.timeout(END_TIMEOUT_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


def memory_server(data_folder: object, user_id: str, *options: str) -> tuple[str, ...]:
    """Return the arguments of the real server, with further options."""
    where = ("--data-storage-path", str(data_folder), "--user-id", user_id)
    return ("-m", "memoryos_mcp", "serve", *where, "--log-level", "WARNING", *options)


BARE_SERVER = ("-m", "benchmarks.bare_server")
