"""Real server processes, and clients of them."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from memoryos_mcp.storage.sqlite.connections import SqliteConnection
from memoryos_mcp.storage.sqlite.paths import database_file
from tests.stores import is_postgres, rows, store_environment

Era = Literal["auto", "legacy"]
ERAS: tuple[Era, ...] = ("auto", "legacy")
REPLY_LIMIT_S = 30.0
EXIT_LIMIT_S = 20.0
POLL_S = 0.02
READ_TOOLS = ["retrieve_memory", "get_user_profile", "get_memory_stats", "get_memory", "list_memories"]
TOOLS = ["add_memory", *READ_TOOLS, "correct_memory", "forget_memory"]
STATUS, CONFIG, PROFILE = "memoryos://status", "memoryos://config", "memoryos://profile"
USER = "default_user"
# Limits so small that embedding and consolidation run with nearly every page.
BUSY_BACKGROUND = {"short_term_capacity": 2, "consolidation_batch_pages": 3, "consolidation_idle_s": 0.1}


def serve_command(folder: Path, settings: Mapping[str, object] | None = None, python: Sequence[str] = ()) -> list[str]:
    """Return the command line of a server on a data folder, with settings as flags and options for the interpreter."""
    flags = [text for name, value in (settings or {}).items() for text in (f"--{name.replace('_', '-')}", str(value))]
    return [sys.executable, *python, "-m", "memoryos_mcp", "serve", "--data-storage-path", str(folder), *flags]


def clean_environment(added: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return this process's environment without our variables, OpenTelemetry's, and those of terminals and warnings."""
    # A test worker has no terminal, but inherits the variables with its size. Warnings about encodings are for our own
    # code; in a program, packages of others would write theirs to stderr.
    ours = ("MEMORYOS_", "OTEL_", "COLUMNS", "LINES", "PYTHONWARNDEFAULTENCODING")
    kept = {n: value for n, value in os.environ.items() if not n.upper().startswith(ours)}
    return kept | dict(added or {})


def serve_environment(folder: Path, added: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of a program that uses the memories of a data folder."""
    return clean_environment(store_environment(folder) | dict(added or {}))


def wait_until(is_true: Callable[[], bool], what: object, limit_s: float = REPLY_LIMIT_S) -> None:
    """Poll a condition until it holds, or fail after the limit with ``what`` in the message."""
    give_up_at = time.monotonic() + limit_s
    while not is_true():
        assert time.monotonic() < give_up_at, f"not within {limit_s:.0f} s: {what}"
        time.sleep(POLL_S)


class PipeServer:
    """A server process, and a client that writes and reads raw lines of JSON-RPC.

    ``lines`` contains every byte of stdout. As a context manager, it always ends the process.
    """

    def __init__(
        self,
        folder: Path,
        settings: Mapping[str, object] | None = None,
        *,
        env: Mapping[str, str] | None = None,
        python: Sequence[str] = (),
        cwd: Path | None = None,
        log: Path | None = None,
    ) -> None:
        self.folder = folder
        self.log = log or folder.parent / f"{folder.name}.stderr.log"
        self.lines: list[bytes] = []
        self._replies: dict[int, dict[str, Any]] = {}
        self._arrived = threading.Condition()
        self._writing = threading.Lock()
        self._last_id = 0
        self._is_ended = False
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as stderr:
            self.process = subprocess.Popen(
                serve_command(folder, settings, python),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=serve_environment(folder, env),
                cwd=cwd,
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        try:
            self.initialise()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    @property
    def stderr(self) -> str:
        """The log so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def initialise(self) -> dict[str, Any]:
        """Open a session of the older era, and return the server's answer."""
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "pipe", "version": "1"}}
        said = self.reply(self.send("initialize", client))
        self.write_line(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        result: dict[str, Any] = said["result"]
        return result

    def write_line(self, line: str | bytes) -> None:
        """Write one line as it is."""
        assert self.process.stdin is not None
        data = line if isinstance(line, bytes) else line.encode()
        with self._writing:
            self.process.stdin.write(data + b"\n")
            self.process.stdin.flush()

    def send(self, method: str, params: Mapping[str, Any] | None = None) -> int:
        """Send a request and return its id."""
        with self._writing:
            self._last_id += 1
            request = self._last_id
        self.write_line(json.dumps({"jsonrpc": "2.0", "id": request, "method": method, "params": params or {}}))
        return request

    def send_call(self, tool: str, arguments: Mapping[str, Any] | None = None) -> int:
        """Send a tool call and return its id."""
        return self.send("tools/call", {"name": tool, "arguments": arguments or {}})

    def send_raw_call(self, tool: str, arguments_json: str) -> int:
        """Send a tool call with a JSON text as its arguments, and return its id."""
        with self._writing:
            self._last_id += 1
            request = self._last_id
        head = f'{{"jsonrpc":"2.0","id":{request},"method":"tools/call","params":{{"name":"{tool}","arguments":'
        self.write_line(head + arguments_json + "}}")
        return request

    def reply(self, request: int, limit_s: float = REPLY_LIMIT_S) -> dict[str, Any]:
        """Return the reply to a request."""
        with self._arrived:
            came = self._arrived.wait_for(lambda: request in self._replies or self._is_ended, limit_s)
            assert request in self._replies, (
                f"request {request}: {'the server ended' if came else f'no reply within {limit_s:.0f} s'}"
            )
            return self._replies[request]

    def result(self, request: int, limit_s: float = REPLY_LIMIT_S) -> dict[str, Any]:
        """Return the result of a tool call, which may be an error."""
        reply = self.reply(request, limit_s)
        assert "result" in reply, reply
        result: dict[str, Any] = reply["result"]
        return result

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return its structured result; a tool error fails."""
        result = self.result(self.send_call(tool, arguments))
        assert not result.get("isError"), result["content"][0]["text"]
        structured: dict[str, Any] = result["structuredContent"]
        return structured

    def refusal(self, tool: str, **arguments: Any) -> str:
        """Call a tool that must refuse, and return the text of its error."""
        return refusal_text(self.result(self.send_call(tool, arguments)))

    def add(self, user_input: str, agent_response: str = "Noted.", **more: Any) -> str:
        """Add a page and return its id."""
        page_id: str = self.call("add_memory", user_input=user_input, agent_response=agent_response, **more)["page_id"]
        return page_id

    def stats(self) -> dict[str, Any]:
        """Return the state of the memory."""
        return self.call("get_memory_stats")

    def replies(self) -> dict[int, dict[str, Any]]:
        """Return all replies so far, by request id."""
        with self._arrived:
            return dict(self._replies)

    def wait_for_replies(self, requests: Iterable[int], limit_s: float = REPLY_LIMIT_S) -> None:
        """Wait until every one of the requests is answered."""
        for request in requests:
            self.reply(request, limit_s)

    def wait_until_settled(self, limit_s: float = 60.0) -> dict[str, Any]:
        """Wait until every page is embedded and none waits for consolidation, and return the state."""
        settled: dict[str, Any] = {}

        def is_settled() -> bool:
            stats = self.stats()
            settled.update(stats)
            return bool(stats["backlog_pages"] == 0 and stats["unembedded_pages"] == 0)

        wait_until(is_settled, settled, limit_s)
        return settled

    def wait_until_semantic(self) -> None:
        """Wait until the model and the index are loaded, so that retrieval compares meaning."""
        wait_until(lambda: bool(self.stats()["search_mode"] == "hybrid"), "the model and the index are loaded")

    def wait_until_embedded(self, limit_s: float = 60.0) -> None:
        """Wait until every page has its vectors."""
        wait_until(lambda: bool(self.stats()["unembedded_pages"] == 0), "every page is embedded", limit_s)

    def close_stdin(self) -> None:
        """Close stdin, as a client does when it leaves."""
        if self.process.stdin is not None and not self.process.stdin.closed:
            with suppress(BrokenPipeError):
                self.process.stdin.close()

    def wait_for_exit(self, limit_s: float = EXIT_LIMIT_S) -> int:
        """Wait until the process ends by itself, read all its output, and return the exit code."""
        code = self.process.wait(limit_s)
        self._reader.join(limit_s)
        return code

    def close(self) -> int:
        """End the session as a client does, by closing stdin, and return the exit code."""
        self.close_stdin()
        return self.wait_for_exit()

    def kill(self) -> None:
        """Kill the process, and read the rest of its output."""
        self.process.send_signal(signal.SIGKILL)
        self.wait_for_exit()

    def end(self) -> None:
        """End the process and close its pipes, in any state."""
        try:
            self.close_stdin()
            self.process.wait(EXIT_LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            self._reader.join(EXIT_LIMIT_S)
            if self.process.stdout is not None:
                self.process.stdout.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
            try:
                message = json.loads(line)
            except ValueError:
                continue  # tests of `lines` find lines that are not JSON
            if isinstance(message, dict) and isinstance(message.get("id"), int) and "method" not in message:
                with self._arrived:
                    self._replies[message["id"]] = message
                    self._arrived.notify_all()
        with self._arrived:
            self._is_ended = True
            self._arrived.notify_all()


def refusal_text(result: Mapping[str, Any]) -> str:
    """Return the text of a tool's error. Fails if the call succeeded."""
    assert result.get("isError") is True, "the call was not refused"
    text: str = result["content"][0]["text"]
    return text


def page_id_of(reply: Mapping[str, Any]) -> str | None:
    """Return the page id in a reply to add_memory, or None if the call failed."""
    structured = reply.get("result", {}).get("structuredContent")
    return structured["page_id"] if structured else None


@asynccontextmanager
async def sdk_client(
    folder: Path, era: Era, settings: Mapping[str, object] | None = None, env: Mapping[str, str] | None = None
) -> AsyncIterator[Client]:
    """Yield the SDK's client, connected to a new server process."""
    command = serve_command(folder, settings)
    parameters = StdioServerParameters(
        command=command[0], args=command[1:], env=store_environment(folder) | dict(env or {})
    )
    with (folder.parent / f"{folder.name}.stderr.log").open("a", encoding="utf-8") as errlog:
        async with Client(stdio_client(parameters, errlog=errlog), mode=era) as client:
            yield client


@dataclass(frozen=True, slots=True)
class StoredPage:
    """A page on disk."""

    page_id: str
    user_input: str
    agent_response: str
    tier: str
    segment: int | None


def open_store(folder: Path, user_id: str = USER) -> SqliteConnection:
    """Return a connection to a user's file by our own SQLite. The caller closes it."""
    connection = SqliteConnection(str(database_file(folder, user_id)))
    connection.set_busy_timeout(10_000)
    return connection


def stored_pages(folder: Path, user_id: str = USER) -> list[StoredPage]:
    """Check the whole file of a user, and return its pages in order of arrival."""
    assert is_postgres() or rows(folder, "PRAGMA integrity_check", user_id) == [("ok",)]
    sql = "SELECT page_id, user_input, agent_response, tier, segment FROM pages ORDER BY seq"
    return [StoredPage(*row) for row in rows(folder, sql, user_id)]
