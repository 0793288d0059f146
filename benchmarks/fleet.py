"""Several server processes on one database, and a client that spreads its calls over them."""

import asyncio
import os
import random
import re
import signal
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import click

from benchmarks.client import Reply, ServerError
from benchmarks.http_client import Connection

START_TIMEOUT_S = 120.0
# A server that has not ended by itself after this time is killed.
STOP_TIMEOUT_S = 60.0
# A call that does not succeed on any server within this time fails.
CALL_LIMIT_S = 120.0
RETRY_S = 0.05
# Errors of a connection whose server was killed.
_BROKEN = (OSError, asyncio.IncompleteReadError)
_LISTENING = re.compile(rb"(?:listening|running) on http://127\.0\.0\.1:(\d+)")


class Server:
    """One server process over HTTP on loopback. After it was killed, it starts again on the same port.

    Args:
        name: The name of the server in the database's list of connections.
        command: The module to run, with its arguments. ``--port`` and a number are added.
        database_url: The address of the database; empty for a server that needs none.
    """

    def __init__(self, name: str, command: Sequence[str], database_url: str = "") -> None:
        self.name = name
        self._command = command
        self._environment = {key: value for key, value in os.environ.items() if not key.startswith("MEMORYOS_")}
        self._environment["MEMORYOS_DATABASE_URL"] = f"{database_url}?application_name={name}" if database_url else ""
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
        arguments = ("-m", *self._command, "--port", str(self.port))
        process = await asyncio.create_subprocess_exec(
            sys.executable, *arguments, stdout=DEVNULL, stderr=PIPE, env=self._environment
        )
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
            try:
                async with asyncio.timeout(STOP_TIMEOUT_S):
                    await process.wait()
            except TimeoutError:
                self.warnings.append(f"{self.name} did not end, and was killed")
                process.kill()
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
async def running(servers: list[Server]) -> AsyncIterator[list[Server]]:
    """Start servers, and yield them. They are stopped at the end."""
    try:
        for server in servers:  # the first one makes the tables
            await server.start()
        yield servers
    finally:
        await asyncio.gather(*(server.stop() for server in servers))


def fleet(count: int, database_url: str, folder: Path, settings: Mapping[str, object]) -> list[Server]:
    """Return servers of one database, which are not started yet."""
    flags = {"transport": "http", "data_storage_path": folder, "log_level": "INFO", **settings}
    texts = [text for name, value in flags.items() for text in (f"--{name.replace('_', '-')}", str(value))]
    command = ("memoryos_mcp", "serve", *texts)
    return [Server(f"server-{number}", command, database_url) for number in range(1, count + 1)]


class Spread:
    """A client that sends each call to a random server of several, over its own connections.

    Not for concurrent calls.

    Attributes:
        last: The server of the last call.
    """

    def __init__(self, servers: list[Server], draw: random.Random) -> None:
        self.last = servers[0]
        self._servers = servers
        self._draw = draw
        self._connections: dict[int, Connection] = {}

    async def once(
        self, token: str, tool: str, arguments: dict[str, Any], servers: Sequence[Server] = ()
    ) -> Reply | None:
        """Call a tool on a random server; return None if it is not known whether the server has received the call.

        With ``servers``, the server is one of these.
        """
        server = self.last = self._draw.choice(servers or self._servers)
        connection = self._connections.get(server.port)
        if connection is None:
            connection = self._connections[server.port] = Connection("127.0.0.1", server.port)
        try:
            return await connection.call(token, tool, arguments)
        except _BROKEN:
            await connection.close()
            return None

    async def until_answered(
        self, token: str, tool: str, arguments: dict[str, Any], servers: Sequence[Server] = ()
    ) -> Reply:
        """Call a tool on random servers until one answers."""
        give_up_at = time.monotonic() + CALL_LIMIT_S
        while (reply := await self.once(token, tool, arguments, servers)) is None:
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
