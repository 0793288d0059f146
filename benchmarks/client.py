"""The server under test: the real command over stdio, with an MCP client."""

import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

CALL_TIMEOUT_S = 120.0
STATS_POLL_S = 0.2
# Background work without progress for this long counts as stuck.
STANDSTILL_S = 180.0


class ServerError(Exception):
    """The server rejected a call, or its background work does not end."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a tool call.

    Attributes:
        content: The structured content.
        took_s: Time from the call to the parsed answer, at the client.
        text: The text for a model; empty if it was not read.
    """

    content: dict[str, Any]
    took_s: float
    text: str = ""


class MemoryServer:
    """A running server. Create it with `running_server`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def call(self, tool: str, **arguments: object) -> Reply:
        """Return a tool's answer.

        Raises:
            ServerError: The tool returned an error.
        """
        began = time.perf_counter()
        result = await self._client.call_tool(tool, arguments, read_timeout_seconds=CALL_TIMEOUT_S)
        took_s = time.perf_counter() - began
        text = " ".join(getattr(block, "text", "") for block in result.content)
        if result.is_error or not isinstance(result.structured_content, dict):
            message = f"{tool} failed: {text}"
            raise ServerError(message)
        return Reply(content=result.structured_content, took_s=took_s, text=text)

    async def settle(self, on_waiting: Callable[[int], None] | None = None) -> dict[str, Any]:
        """Wait until no page is pending for filing or embedding, and return the stats.

        Without an embedding model, no page is pending for embedding.

        Args:
            on_waiting: Called repeatedly with the number of pending pages.

        Raises:
            ServerError: There was no progress for `STANDSTILL_S`.
        """
        moved, least = time.monotonic(), sys.maxsize
        while True:
            stats = (await self.call("get_memory_stats")).content
            unembedded = stats["unembedded_pages"] if stats["embedding_space"] else 0
            waiting = int(stats["backlog_pages"]) + int(unembedded) + (not stats["is_settled"])
            if on_waiting:
                on_waiting(waiting)
            if not waiting:
                return stats
            if waiting < least:
                moved, least = time.monotonic(), waiting
            elif time.monotonic() - moved > STANDSTILL_S:
                message = (
                    f"{waiting} pages still wait after {STANDSTILL_S:.0f} s without progress: {stats['background']}"
                )
                raise ServerError(message)
            await anyio.sleep(STATS_POLL_S)


@asynccontextmanager
async def running_server(
    data_folder: Path, user_id: str, *flags: str, env: Mapping[str, str] | None = None
) -> AsyncIterator[MemoryServer]:
    """Start the server and yield it; at the end its stdin is closed, which stops it.

    Args:
        data_folder: Its data folder.
        user_id: The user whose memory it serves.
        flags: Additional arguments of ``memoryos-mcp serve``.
        env: Additional environment variables.
    """
    serve = ["-m", "memoryos_mcp", "serve", "--data-storage-path", str(data_folder), "--user-id", user_id]
    # The SDK passes on only the variables that a process needs, so the caller's MEMORYOS_* settings have no effect.
    parameters = StdioServerParameters(
        command=sys.executable,
        args=[*serve, "--log-level", "WARNING", *flags],
        env=dict(env or {}),
        encoding_error_handler="replace",
    )
    try:
        async with Client(stdio_client(parameters)) as client:
            # The client reads the tools' result types once, which must not be part of the first measured call.
            await client.list_tools()
            yield MemoryServer(client)
    except ExceptionGroup as group:
        raise _only_one(group) from None


def _only_one(error: Exception) -> Exception:
    """Return the single error in the SDK's nested exception groups, or the group if it contains several."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
