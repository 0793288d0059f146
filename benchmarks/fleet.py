"""Several server processes on one database, and a client that spreads its calls over them."""

import asyncio
import os
import random
import re
import signal
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import click

from benchmarks.client import Reply, ServerError
from benchmarks.http_client import Connection

START_TIMEOUT_S = 120.0
# A call that does not succeed on any server within this time fails.
CALL_LIMIT_S = 120.0
RETRY_S = 0.05
# Errors of a connection whose server was killed.
_BROKEN = (OSError, asyncio.IncompleteReadError)
_LISTENING = re.compile(rb"listening on http://127\.0\.0\.1:(\d+)")


class Server:
    """One server process over HTTP on loopback. After it was killed, it starts again on the same port."""

    def __init__(self, database_url: str, folder: Path, settings: Mapping[str, object]) -> None:
        flags = {"transport": "http", "data_storage_path": folder, "log_level": "INFO", **settings}
        self._flags = [text for name, value in flags.items() for text in (f"--{name.replace('_', '-')}", str(value))]
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("MEMORYOS_")}
        self._environment["MEMORYOS_DATABASE_URL"] = database_url
        self._process: Process | None = None
        self._drain: asyncio.Task[None] | None = None
        self.port = 0
        self.warnings: list[str] = []

    @property
    def pid(self) -> int:
        """The id of the running process."""
        if self._process is None:
            message = "the server does not run"
            raise ServerError(message)
        return self._process.pid

    async def start(self) -> None:
        """Start the process, and return when it listens."""
        arguments = ("-m", "memoryos_mcp", "serve", *self._flags, "--port", str(self.port))
        process = await asyncio.create_subprocess_exec(sys.executable, *arguments, stderr=PIPE, env=self._environment)
        self._process, stderr = process, process.stderr
        if stderr is None:
            message = "the server's stderr was not opened"
            raise ServerError(message)
        async with asyncio.timeout(START_TIMEOUT_S):
            while (found := _LISTENING.search(line := await stderr.readline())) is None:
                self._note(line)
                if not line:
                    message = f"the server did not start: {self.warnings[-1:]}"
                    raise ServerError(message)
        self.port = int(found[1])
        self._drain = asyncio.get_running_loop().create_task(self._read(stderr))

    async def kill(self) -> None:
        """End the process at once, as the loss of its machine would."""
        await self._end(signal.SIGKILL)

    async def stop(self) -> None:
        """End the process as an operator does."""
        await self._end(signal.SIGTERM)

    async def _end(self, number: int) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(ProcessLookupError):
            process.send_signal(number)
        await process.wait()
        if self._drain is not None:
            await self._drain

    async def _read(self, stderr: asyncio.StreamReader) -> None:
        while line := await stderr.readline():
            self._note(line)

    def _note(self, line: bytes) -> None:
        if b" ERROR " in line or b" WARNING " in line or b"Error" in line:
            self.warnings.append(line.decode(errors="replace").rstrip())
            click.echo(self.warnings[-1], err=True)


@asynccontextmanager
async def fleet(
    count: int, database_url: str, folder: Path, settings: Mapping[str, object]
) -> AsyncIterator[list[Server]]:
    """Start servers on one database, and yield them. They are stopped at the end."""
    servers = [Server(database_url, folder, settings) for _ in range(count)]
    try:
        for server in servers:  # the first one makes the tables
            await server.start()
        yield servers
    finally:
        await asyncio.gather(*(server.stop() for server in servers))


class Spread:
    """A client that sends each call to a random server of several, over its own connections.

    Not for concurrent calls.
    """

    def __init__(self, servers: list[Server], draw: random.Random) -> None:
        self._servers = servers
        self._draw = draw
        self._connections: dict[int, Connection] = {}

    async def once(self, token: str, tool: str, arguments: dict[str, Any]) -> Reply | None:
        """Call a tool on a random server; return None if it is not known whether the server has received the call."""
        server = self._draw.choice(self._servers)
        connection = self._connections.get(server.port)
        if connection is None:
            connection = self._connections[server.port] = Connection("127.0.0.1", server.port)
        try:
            return await connection.call(token, tool, arguments)
        except _BROKEN:
            await connection.close()
            return None

    async def until_answered(self, token: str, tool: str, arguments: dict[str, Any]) -> Reply:
        """Call a tool on random servers until one answers."""
        give_up_at = time.monotonic() + CALL_LIMIT_S
        while (reply := await self.once(token, tool, arguments)) is None:
            if time.monotonic() > give_up_at:
                message = f"no server answered {tool}"
                raise ServerError(message)
            await asyncio.sleep(RETRY_S)
        return reply

    async def close(self) -> None:
        """Close the connections."""
        for connection in self._connections.values():
            await connection.close()


async def poll(is_true: Callable[[], Awaitable[bool]], every_s: float, limit_s: float) -> float | None:
    """Poll a condition; return after how many seconds it was true, or None if it was not true within the limit."""
    began = time.monotonic()
    while not await is_true():
        if time.monotonic() - began > limit_s:
            return None
        await asyncio.sleep(every_s)
    return time.monotonic() - began
