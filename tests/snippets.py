"""A place to run the snippets of README and docs: a home folder with a memory, a checkout, and commands on the PATH.

`Place.fill` first replaces a snippet's placeholders: tokens, ids and paths.
"""

import json
import os
import pty
import re
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from memoryos_mcp.cli.commands.demo_script import CONVERSATION, Exchange
from tests.documents import ROOT
from tests.foreign_memories import make_reference, write_reference
from tests.http_server import HttpServer
from tests.postgres import database_of
from tests.servers import PipeServer, clean_environment, open_store, wait_until

LINE_LIMIT_S = 90
EXIT_LIMIT_S = 30
TYPING_S = 0.2
# Other programs, whose stand-ins only record how they were called.
STAND_INS = ("claude",)
# The address of a database in the pages.
DATABASE = "postgresql://memoryos@db.example.org/memoryos"
# The answer to every question of a command.
_ANSWER = b"y\n"
_LISTENING = re.compile(r"listening on http://127\.0\.0\.1:(\d+)")
# The time of a page about a journey, after the demo's conversation.
_TODAY = datetime(2026, 2, 8, 18, 0, tzinfo=UTC)
_JOURNEY = Exchange(29, "We planned the trip to Lisbon today.", "When do you leave?")
# With these, topics are made and facts learned at once.
_EAGER = {"consolidation_batch_pages": 3, "consolidation_idle_s": 1.5, "heat_beta": 5}


@dataclass(frozen=True, slots=True)
class Done:
    """The result of a line."""

    code: int
    stdout: str
    stderr: str


@dataclass
class Place:
    """A folder in which snippets are run.

    Attributes:
        folder: The folder that contains everything else.
        port: The port of a server that a snippet starts.
        token: The token that replaces ``mos_...``.
        prelude: Lines that change the shell, and are run before all later lines of a document.
        started: How clients have started a server so far.
    """

    folder: Path
    port: int = 0
    token: str = ""
    prelude: list[str] = field(default_factory=list)
    started: set[str] = field(default_factory=set)

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def data(self) -> Path:
        return self.home / "data"

    @property
    def checkout(self) -> Path:
        return self.folder / "checkout"

    @property
    def commands(self) -> Path:
        return self.folder / "bin"

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a user, with the folder of the memory as our only variable."""
        return clean_environment(
            {
                "HOME": str(self.home),
                "PATH": f"{self.commands}{os.pathsep}{os.environ['PATH']}",
                "MEMORYOS_DATA_STORAGE_PATH": str(self.data),
                "MEMORYOS_PORT": str(self.port),
            }
        )

    def fill(self, text: str) -> str:
        """Return a snippet with its placeholders replaced."""
        here = f"127.0.0.1:{self.port or 8000}"
        for sign, value in (
            ("/absolute/path/to/checkout/.venv/bin/memoryos-mcp", str(self.commands / "memoryos-mcp")),
            ("/absolute/path/to/checkout", str(self.checkout)),
            ("/absolute/path/to/memoryos-mcp", str(self.commands / "memoryos-mcp")),
            ("mos_...", self.token),
            ("Bearer TOKEN", f"Bearer {self.token}"),
            ("127.0.0.1:8000", here),
        ):
            text = text.replace(sign, value)
        if DATABASE in text:
            text = text.replace(DATABASE, database_of(self.data))
        text = re.sub(r"\bp_\.\.\.", lambda _: self._one("SELECT page_id FROM pages LIMIT 1"), text)
        return re.sub(r"\bk12\b", lambda _: self._one("SELECT 'k' || fact FROM facts LIMIT 1"), text)

    def run(self, line: str) -> Done:
        """Run a line in a shell, in the checkout, at a terminal that answers yes. Fails if it takes too long."""
        if line.startswith(("export ", "cd ", "source ", ". ", "eval ")):
            self.prelude.append(line)
        with _answering_terminal() as terminal:
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", "\n".join([*self.prelude, line])],
                stdin=terminal,
                capture_output=True,
                encoding="utf-8",
                check=False,
                timeout=LINE_LIMIT_S,
                cwd=self.checkout,
                env=self.environment,
                start_new_session=True,  # questions for a password go to this terminal
            )
        return Done(done.returncode, done.stdout, done.stderr)

    @contextmanager
    def serving(self, line: str) -> Iterator[None]:
        """Run a line that serves over HTTP within the block, then end it as an operator does."""
        log = self.folder / "serving.log"
        with log.open("wb") as stderr:
            process = subprocess.Popen(
                ["bash", "-euo", "pipefail", "-c", "\n".join([*self.prelude, f"exec env {line}"])],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                cwd=self.checkout,
                env=self.environment,
            )
        try:
            wait_until(
                lambda: process.poll() is not None or _LISTENING.search(log.read_text(encoding="utf-8")) is not None,
                f"`{line}` listens",
            )
            found = _LISTENING.search(log.read_text(encoding="utf-8"))
            assert found, log.read_text(encoding="utf-8")
            self.port = int(found[1])
            yield
            process.terminate()
            assert process.wait(EXIT_LIMIT_S) == 0, log.read_text(encoding="utf-8")
        finally:
            process.kill()
            process.communicate()
            self.port = 0

    def calls_of(self, program: str) -> list[list[str]]:
        """Return the arguments of each call of a stand-in."""
        record = self.folder / f"{program}.calls"
        return [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()] if record.exists() else []

    def _one(self, query: str) -> str:
        with closing(open_store(self.data)) as store:
            row = store.execute(query).fetchone()
        assert row is not None, f"nothing is left for: {query}"
        return str(row[0])


@contextmanager
def _answering_terminal() -> Iterator[int]:
    """Yield a terminal at which the answer is typed repeatedly, because a program may drop earlier input."""
    person, terminal = pty.openpty()
    is_over = threading.Event()

    def type_on() -> None:
        while not is_over.wait(TYPING_S):
            os.write(person, _ANSWER)

    typist = threading.Thread(target=type_on, daemon=True)
    typist.start()
    try:
        yield terminal
    finally:
        is_over.set()
        typist.join()
        os.close(person)
        os.close(terminal)


def make_memory(folder: Path) -> None:
    """Make the demo's memory, with facts learned from it."""
    said = sorted([*CONVERSATION, _JOURNEY], key=lambda exchange: -exchange.days_ago)
    with PipeServer(folder, _EAGER) as server:
        for second, exchange in enumerate(said):
            said_at = _TODAY - timedelta(days=exchange.days_ago) + timedelta(seconds=second)
            server.add(exchange.user_input, exchange.agent_response, timestamp=said_at.isoformat())
        server.wait_until_settled()
        wait_until(lambda: bool(server.stats()["is_settled"] and server.stats()["user_knowledge"]), "facts are learned")


def prepare(folder: Path, memory: Path) -> Place:
    """Return a place with a copy of a memory that is not open, and with a memory of the reference."""
    place = Place(folder)
    place.home.mkdir(parents=True)
    shutil.copytree(memory, place.data)
    (place.home / "memory.json").write_text('{"user_id": "ada"}', encoding="utf-8")
    write_reference(place.home / "memoryos_data", make_reference(), user="ada")
    _lay_out_checkout(place)
    _lay_out_commands(place)
    return place


def tell_of(server: HttpServer, place: Place) -> None:
    """Make the place's snippets use a running server."""
    place.port = server.port
    place.token = server.add_token("ada")


def _lay_out_checkout(place: Place) -> None:
    programs = place.checkout / ".venv" / "bin"
    programs.mkdir(parents=True)
    for entry in ROOT.iterdir():
        if entry.name not in {".venv", ".git", "site"}:
            (place.checkout / entry.name).symlink_to(entry)
    for name in ("memoryos-mcp", "sphinx-build"):
        (programs / name).symlink_to(Path(sys.executable).with_name(name))


def _lay_out_commands(place: Place) -> None:
    place.commands.mkdir()
    (place.commands / "memoryos-mcp").symlink_to(Path(sys.executable).with_name("memoryos-mcp"))
    for name in STAND_INS:
        fallback = place.commands / name
        record = "import json, sys; print(json.dumps(sys.argv[1:]))\n"
        script = f"#!/bin/sh\n{shlex.quote(sys.executable)} -c '{record}' \"$@\" >> {place.folder / name}.calls\n"
        fallback.write_text(script, encoding="utf-8")
        fallback.chmod(0o755)


def entries_of(block: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the servers in a client's block, or none for any other block."""
    for key in ("mcpServers", "servers", "context_servers", "mcp_servers"):
        if isinstance(block.get(key), dict):
            return dict(block[key])
    return {}
