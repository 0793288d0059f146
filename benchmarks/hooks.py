"""How long a hook takes, and how much of ten recorded sessions is captured and recalled.

``python -m benchmarks.hooks --part times`` measures hook processes beside ``python -c pass`` and a round trip over a
socket. ``--part rates`` plays the ten sessions of ``sessions.json`` with hooks, each in a memory of its own, and prints
what the assistant of the recording reached by calling tools.

In the recording, the users' messages are written; the assistant is a language model that was connected to this server
over stdio. It got the server's instructions and tools, and decided at each message which tools to call. The questions
were asked in new sessions, of a model that had not seen the first ones.
"""

import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import click

from memoryos_mcp.server.hooks import spool
from memoryos_mcp.server.hooks.daemon import LOCK
from memoryos_mcp.server.hooks.hook import ADDRESS, STARTED

LIMIT_S = 120.0


@dataclass(frozen=True, slots=True)
class Session:
    """A recorded session.

    Attributes:
        turns: What the user and the assistant say, and whether the assistant called ``add_memory`` in this turn.
        questions: Questions of a later session, each with the text that the answer needs, and whether a tool that the
            assistant called until then returned this text.
    """

    turns: Sequence[tuple[str, str, bool]]
    questions: Sequence[tuple[str, str, bool]]


SESSIONS = [Session(**each) for each in json.loads(Path(__file__).with_name("sessions.json").read_text("utf-8"))]
QUESTIONS = [each for session in SESSIONS for each in session.questions]


@dataclass(frozen=True, slots=True)
class Place:
    """A folder with a state folder and a memory of its own."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a hook."""
        return {**os.environ, "XDG_STATE_HOME": str(self.folder / "state")}

    @property
    def state(self) -> Path:
        """The hooks' private folder."""
        return next(each for each in (self.folder / "state/memoryos-mcp/hooks").iterdir() if each.is_dir())

    def hook(self, event: str, given: dict[str, str], wait_s: float = 1.0) -> str:
        """Run a hook and return its stdout."""
        command = [str(Path(sys.executable).parent / "memoryos-mcp"), "hook", event, "--wait", str(wait_s)]
        line = [*command, "--data-storage-path", str(self.folder / "data")]
        text = json.dumps({**given, "cwd": str(self.folder)})
        return subprocess.run(
            line, input=text, env=self.environment, capture_output=True, encoding="utf-8", check=True, timeout=LIMIT_S
        ).stdout

    def turn(self, session: str, prompt: str, answer: str) -> None:
        """Run the hooks of one turn."""
        self.hook("prompt", {"session_id": session, "prompt": prompt})
        self.hook("stop", {"session_id": session, "last_assistant_message": answer})

    def until(self, is_true: Callable[[], bool]) -> None:
        """Wait for a condition."""
        give_up_at = time.monotonic() + LIMIT_S
        while not is_true():
            if time.monotonic() > give_up_at:
                msg = "the daemon did not become ready"
                raise TimeoutError(msg)
            time.sleep(0.05)

    def ready(self) -> None:
        """Start the daemon, and wait until it answers and has stored what waited."""
        self.hook("session-start", {"session_id": "ready"})
        self.until(lambda: (self.state / ADDRESS).exists() and not list(spool.waiting(str(self.state))))

    def kill(self) -> None:
        """Kill the daemon and keep hooks from starting another."""
        with suppress(OSError, ValueError):
            os.kill(int((self.state / LOCK).read_text(encoding="utf-8")), signal.SIGKILL)
        (self.state / STARTED).touch()


def percentiles(values: Sequence[float]) -> tuple[float, float]:
    """Return the median and the 95th percentile of seconds, in milliseconds."""
    return statistics.median(values) * 1000, statistics.quantiles(values, n=20)[-1] * 1000


def timed(work: Callable[[], object]) -> float:
    """Return how many seconds a call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def times(place: Place, rounds: int) -> dict[str, tuple[float, float]]:
    """Return p50 and p95 in milliseconds of hooks and of the two floors, measured in turn."""
    for number, session in enumerate(SESSIONS):
        for said, answered, _ in session.turns:
            place.turn(f"s{number}", said, answered)
    place.ready()
    # The first query loads the model.
    said = SESSIONS[0].turns[0][0]
    place.until(lambda: bool(place.hook("prompt", {"session_id": "w", "prompt": said}, 30.0)))
    left, right = socket.socketpair()

    def answer() -> None:
        while part := left.recv(100):
            left.sendall(part)

    echo = threading.Thread(target=answer)
    echo.start()

    def round_trip() -> None:
        right.sendall(b"ping")
        right.recv(100)

    def stop() -> None:
        place.hook("stop", {"session_id": "t", "last_assistant_message": "Understood."})

    found: dict[str, list[float]] = {}

    def measure(name: str, work: Callable[[], object]) -> None:
        found.setdefault(name, []).append(timed(work))

    for kind in ("warm", "cold"):
        for number in range(rounds):
            measure("python -c pass", lambda: subprocess.run([sys.executable, "-c", "pass"], check=True))
            measure("socket round trip", round_trip)
            prompt = {"session_id": "t", "prompt": QUESTIONS[number % len(QUESTIONS)][0]}
            measure(f"prompt, {kind}", lambda prompt=prompt: place.hook("prompt", prompt))  # type: ignore[misc]
            measure(f"stop, {kind}", stop)
        place.kill()
    right.close()
    left.close()
    return {name: percentiles(values) for name, values in found.items()}


def rates(place: Place, session: Session) -> tuple[int, int]:
    """Return how many turns of a session are stored, and how many of its questions recall the text that they need."""
    for said, answered, _ in session.turns:
        place.turn("first", said, answered)
    place.ready()
    # The first query loads the model.
    place.until(lambda: bool(place.hook("prompt", {"session_id": "w", "prompt": session.turns[0][0]}, 30.0)))
    line = [sys.executable, "-m", "memoryos_mcp", "stats", "--json", "--data-storage-path", str(place.folder / "data")]
    stats = json.loads(subprocess.run(line, capture_output=True, encoding="utf-8", check=True).stdout)
    told = [
        text in place.hook("prompt", {"session_id": "q", "prompt": asked}, 30.0) for asked, text, _ in session.questions
    ]
    return int(stats["stats"]["total_pages"]), sum(told)


def print_rates(folder: Path) -> None:
    """Play every session, and print what hooks and the recorded tool calls capture and recall."""
    stored = told = 0
    for number, session in enumerate(SESSIONS):
        place = Place(folder / str(number))
        place.folder.mkdir()
        try:
            found = rates(place, session)
        finally:
            place.kill()
        stored, told = stored + found[0], told + found[1]
    turns = [called for session in SESSIONS for *_, called in session.turns]
    helped = sum(was_told for *_, was_told in QUESTIONS)
    for how, pages, questions in (("with hooks", stored, told), ("by tool calls", sum(turns), helped)):
        print(f"{how}: {pages} of {len(turns)} turns are stored, {questions} of {len(QUESTIONS)} questions are helped")  # noqa: T201 - it is the result


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--part", type=click.Choice(["times", "rates"]), required=True, help="What is measured.")
@click.option("--rounds", type=click.IntRange(1, 1_000), default=50, show_default=True, help="Number of rounds.")
def main(part: str, rounds: int) -> None:
    """Run one part and print its table."""
    with tempfile.TemporaryDirectory(prefix="memoryos-hooks-") as folder:
        if part == "rates":
            print_rates(Path(folder))
            return
        place = Place(Path(folder))
        try:
            for name, (p50, p95) in times(place, rounds).items():
                print(f"{name:<20} p50 {p50:7.1f} ms   p95 {p95:7.1f} ms")  # noqa: T201 - it is the result
        finally:
            place.kill()


if __name__ == "__main__":
    main()
