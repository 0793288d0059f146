"""The daemon: a background process that opens the memory for all hooks with the same settings.

The daemon moves turns from the spool to the memory, and answers recall requests. It ends after a time without requests.
"""

import asyncio
import json
import logging
import os
import secrets
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from memoryos_mcp.config import Settings
from memoryos_mcp.engine.engine import MemoryEngine
from memoryos_mcp.engine.service import MemoryService
from memoryos_mcp.errors import ArgumentError, MemoryOSError
from memoryos_mcp.model.knowledge import Kind
from memoryos_mcp.retrieval.rendering import KNOWN, TRAITS, WISHES, trait_line
from memoryos_mcp.retrieval.rendering import fact_line as shown_fact
from memoryos_mcp.server.hooks import spool
from memoryos_mcp.server.hooks.hook import ADDRESS, MEMORY, folder_of, stamp
from memoryos_mcp.server.hooks.relevance import relevant_text
from memoryos_mcp.storage.stores import file_of
from memoryos_mcp.text.quoting import framed, section

logger = logging.getLogger(__name__)

RECALL_TOKENS = 800
PROJECT_CHARS = 200
HEAD_ITEMS = 12
LOCK_WAIT_S = 10.0
# Seconds between two attempts to store turns that could not be stored.
RETRY_S = 5.0
LOCK = "lock"
LINE_BYTES = 64_000_000
PROMPT_KEPT_S = 7 * 86_400


class Daemon:
    """The daemon of the hooks that share the folder ``folder``. It ends after ``idle_s`` seconds without a request."""

    def __init__(self, settings: Settings, service: MemoryService, folder: str, mark: str, idle_s: float) -> None:
        self._settings = settings
        self._service = service
        self._folder = folder
        self._address = str(Path(folder, ADDRESS))
        self._stamp = mark
        self._idle_s = idle_s
        self._token = secrets.token_hex(16)
        self._asked_at = time.monotonic()
        self._storing = asyncio.Lock()
        self._is_over = asyncio.Event()

    async def run(self) -> None:
        """Serve requests until none has arrived for ``idle_s`` seconds, or until the settings have changed."""
        server = await self._listen()
        if os.name != "nt":
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._is_over.set)
        try:
            while not self._is_over.is_set():
                await self._store_waiting()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._is_over.wait(), min(RETRY_S, self._idle_s))
                if time.monotonic() - self._asked_at >= self._idle_s:
                    break
        finally:
            server.close()
            spool.remove(self._address)

    async def _listen(self) -> asyncio.Server:
        spool.remove(self._address)
        if os.name == "nt":
            server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=LINE_BYTES)
            spool.write(self._address, {"port": server.sockets[0].getsockname()[1], "token": self._token})
            return server
        os.chdir(self._folder)  # the path of a socket has a limit of about 100 bytes
        before = os.umask(0o177)
        try:
            return await asyncio.start_unix_server(self._serve, ADDRESS, limit=LINE_BYTES)
        finally:
            os.umask(before)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._asked_at = time.monotonic()
        try:
            if os.name == "nt" and not secrets.compare_digest(await reader.readline(), self._token.encode() + b"\n"):
                return
            reply = await self._reply(json.loads(await reader.readline()))
            writer.write(json.dumps(reply).encode() + b"\n")
            await writer.drain()
        except ConnectionError:
            pass  # a hook that only wakes the daemon does not wait for the reply
        except (OSError, ValueError, MemoryOSError) as error:
            spool.log(self._folder, f"daemon: a request failed: {type(error).__name__}")
        finally:
            self._asked_at = time.monotonic()
            writer.close()

    async def _reply(self, request: dict[str, object]) -> dict[str, object]:
        if request.get("stamp") != self._stamp:
            self._is_over.set()
            return {"is_stale": True}
        match request.get("op"):
            case "wake":
                await self._store_waiting()
            case "store":
                turn = request.get("turn")
                async with self._service.user(self._settings.user_id) as engine:
                    await _store(engine, turn if isinstance(turn, dict) else {})
            case "recall":
                await self._store_waiting()
                return {"text": await self._recall(request)}
            case "head":
                return {"text": await self._head()}
        return {"ok": True}

    async def _recall(self, request: dict[str, object]) -> str:
        async with self._service.user(self._settings.user_id) as engine:
            return await relevant_text(
                engine,
                str(request.get("prompt") or ""),
                session=str(request.get("session") or ""),
                project=project_of(request.get("cwd")),
                max_tokens=RECALL_TOKENS,
            )

    async def _head(self) -> str:
        """Return the user's wishes, strongest traits and newest facts as text."""
        async with self._service.user(self._settings.user_id) as engine:
            profile = await engine.profile()
        wishes = [shown_fact(fact) for fact in profile.user_facts if fact.kind is Kind.WISH]
        facts = [(fact.about, shown_fact(fact)) for fact in profile.user_facts if fact.kind is not Kind.WISH]
        lines = [
            *section(WISHES, wishes[-HEAD_ITEMS:]),
            *section(TRAITS, map(trait_line, profile.traits[:HEAD_ITEMS])),
            *(section(KNOWN[facts[0][0]], [line for _, line in facts[-HEAD_ITEMS:]]) if facts else ()),
        ]
        return "\n".join(framed(lines)) if lines else ""

    async def _store_waiting(self) -> None:
        """Move the turns from the spool to the memory, oldest first. Invalid turns are deleted."""
        async with self._storing:
            for path in spool.waiting(self._folder):
                turn = spool.read(path)
                try:
                    async with self._service.user(self._settings.user_id) as engine:
                        await _store(engine, turn)
                except ArgumentError as error:
                    spool.log(self._folder, f"daemon: a turn was refused: its {error.argument} is not valid")
                except (MemoryOSError, OSError) as error:
                    spool.log(self._folder, f"daemon: turns wait: {type(error).__name__}")
                    return
                spool.remove(path)


async def _store(engine: MemoryEngine, turn: dict[str, object]) -> None:
    """Store one turn. Raise `ArgumentError` if the turn is not valid."""
    if not turn:
        raise ArgumentError(argument="turn", problem="is damaged")
    notes = {"client": turn.get("client"), "session": turn.get("session")}
    at = turn.get("at")
    await engine.add(
        str(turn.get("user") or ""),
        str(turn.get("agent") or ""),
        timestamp=datetime.fromtimestamp(at, UTC) if isinstance(at, int | float) else None,
        meta_data={name: value for name, value in notes.items() if value},
        idempotency_key=str(turn["key"]),
        project=project_of(turn.get("cwd")),
    )


def project_of(folder: object) -> str | None:
    """Return the project name for a working folder, or None if no folder is given.

    The name is the folder name of the Git repository or, outside a repository, of the working folder.
    """
    if not isinstance(folder, str) or not folder:
        return None
    path = Path(folder)
    top = next((each for each in (path, *path.parents) if (each / ".git").exists()), path)
    return top.name[:PROJECT_CHARS] or None


async def run_daemon(settings: Settings, arguments: Sequence[str], idle_s: float) -> None:
    """Run a daemon for the hooks with these settings.

    If another daemon with these settings runs and does not end within `LOCK_WAIT_S` seconds, do nothing.

    ``arguments`` are the options of the command line. They determine the daemon's folder.
    """
    folder = folder_of(arguments)
    spool.make_private(folder)
    mark = stamp(arguments)
    with _opened(folder) as lock:
        until = time.monotonic() + LOCK_WAIT_S
        while not _is_locked(lock):
            if time.monotonic() > until:
                return
            await asyncio.sleep(0.1)
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        _remove_old_prompts(folder)
        spool.write(str(Path(folder, MEMORY)), {"stamp": mark, "file": _readable_file(settings)})
        try:
            async with MemoryService(settings) as service:
                await Daemon(settings, service, folder, mark, idle_s).run()
        except Exception as error:
            spool.log(folder, f"daemon: ended: {type(error).__name__}")
            raise


def _opened(folder: str) -> IO[str]:
    return Path(folder, LOCK).open("a", encoding="utf-8")


def _is_locked(file: IO[str]) -> bool:
    """Lock a file for the rest of this process. Return False if the file cannot be locked."""
    try:
        if os.name == "nt":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _readable_file(settings: Settings) -> str | None:
    """Return the path of the memory's file if hooks may search it without the daemon, else None."""
    file = None if settings.project_isolation else file_of(settings)
    return str(file.absolute()) if file else None


def _remove_old_prompts(folder: str) -> None:
    for path in Path(folder).glob("*.prompt"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > PROMPT_KEPT_S:
                path.unlink()
