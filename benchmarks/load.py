"""The load that one server can handle: calls of a thousand users over a hundred connections, and in process.

Run ``python -m benchmarks.load``; ``--quick`` takes fewer users and shorter times. Client and server are processes of
their own on one machine. One call of five adds a page, the others are queries. Each call is for a random user, so most
calls have to open a memory.
"""

import asyncio
import json
import os
import random
import re
import sys
import tempfile
import time
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import click
import psutil
from rich.console import Console
from rich.progress import Progress

from benchmarks.client import ServerError
from benchmarks.figures import MB, Figure, percentile_ms, print_figures
from benchmarks.http_client import Connection
from benchmarks.synthetic import Grammar, copy_memory, write_memory
from memoryos_mcp.config import Settings
from memoryos_mcp.embedding.bundled import BundledEmbedder
from memoryos_mcp.engine.service import MemoryService
from memoryos_mcp.model.callers import Scope
from memoryos_mcp.model.pages import utc_now
from memoryos_mcp.storage.sqlite.tokens import TokenStore, token_file

ADDS_IN = 5
CONNECTIONS = 100
START_TIMEOUT_S = 120.0
RESIDENT_MB = 1_200
# Changes of RAM that do not count as growth, and open files in addition to those of open users.
FLAT_SHARE = 0.05
DESCRIPTORS_BESIDE = 400
DESCRIPTORS_PER_USER = 14


@dataclass(frozen=True, slots=True)
class Size:
    """The amount of work.

    Attributes:
        users: Number of users with memories.
        pages: Pages in each memory.
        strangers: Number of users with one call each.
        flat_out_s: Duration of the maximum load, over HTTP and in process.
        steady_s: Duration of half of that load.
        rest_s: Duration of watching memory afterwards.
    """

    users: int
    pages: int
    strangers: int
    flat_out_s: float
    steady_s: float
    rest_s: float


WHOLE = Size(users=1_000, pages=500, strangers=10_000, flat_out_s=60, steady_s=60, rest_s=300)
QUICK = Size(users=50, pages=100, strangers=300, flat_out_s=10, steady_s=10, rest_s=10)

Call = Callable[[str, str, dict[str, str]], Awaitable[None]]


class Mix:
    """The random calls, from one seed."""

    def __init__(self, users: list[str], seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - made-up data
        self._grammar = Grammar(self._random)
        self._users = users

    def draw(self) -> tuple[str, str, dict[str, str]]:
        """Return a user, a tool and its arguments."""
        user = self._random.choice(self._users)
        if self._random.randrange(ADDS_IN):
            return user, "retrieve_memory", {"query": self._grammar.question()}
        turn = self._grammar.turn(utc_now())
        return user, "add_memory", {"user_input": turn.user_input, "agent_response": turn.agent_response}


async def write_users(folder: Path, size: Size, progress: Progress) -> list[str]:
    """Write every user's memory: one is generated, the others are copies under their own names."""
    embedder = BundledEmbedder()
    await write_memory(folder, size.pages, embedder, lambda _: None)
    await embedder.aclose()
    users = [f"user-{number:05d}" for number in range(size.users)]
    task = progress.add_task("writing memories", total=len(users))
    for user in users:
        copy_memory(folder, folder, user)
        progress.advance(task)
    return users


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[tuple[str, int, psutil.Process]]:
    """Start the server as a process and yield its address; it is stopped at the end."""
    arguments = ("-m", "memoryos_mcp", "serve", "--transport", "http", "--port", "0", "--requests-per-second", "100000")
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, "--data-storage-path", str(folder), stderr=PIPE
    )
    if process.stderr is None:
        message = "the server's stderr was not opened"
        raise ServerError(message)
    try:
        async with asyncio.timeout(START_TIMEOUT_S):
            while (
                found := re.search(rb"listening on http://(.+):(\d+)", line := await process.stderr.readline())
            ) is None:
                if not line:
                    message = "the server did not start"
                    raise ServerError(message)
        async with asyncio.TaskGroup() as group:
            drain = group.create_task(_drain(process.stderr))
            yield found[1].decode(), int(found[2]), psutil.Process(process.pid)
            process.terminate()
            await process.wait()
            await drain
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _drain(stream: asyncio.StreamReader) -> None:
    while line := await stream.readline():
        if b" ERROR " in line or b" WARNING " in line:
            click.echo(line.decode().rstrip(), err=True)


async def flat_out(call: Call, mix: Mix, for_s: float) -> float:
    """Return the calls per second of `CONNECTIONS` tasks."""
    until, done = time.perf_counter() + for_s, 0

    async def work() -> None:
        nonlocal done
        while time.perf_counter() < until:
            await call(*mix.draw())
            done += 1

    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(CONNECTIONS):
            group.create_task(work())
    return done / (time.perf_counter() - began)


async def offered(calls: list[Call], mix: Mix, per_second: float, for_s: float) -> list[float]:
    """Return the seconds of each call since it was due, including the wait for a free connection."""
    took: list[float] = []
    waiting: asyncio.Queue[float | None] = asyncio.Queue()

    async def work(call: Call) -> None:
        while (due := await waiting.get()) is not None:
            await call(*mix.draw())
            took.append(time.perf_counter() - due)

    async with asyncio.TaskGroup() as group:
        for call in calls:
            group.create_task(work(call))
        began = time.perf_counter()
        for number in range(int(per_second * for_s)):
            due = began + number / per_second
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            waiting.put_nowait(due)
        for _ in calls:
            waiting.put_nowait(None)
    return took


async def in_process(folder: Path, mix: Mix, for_s: float) -> float:
    """Return the calls per second of the service in process."""
    async with MemoryService(Settings(data_storage_path=folder)) as service:

        async def call(user: str, tool: str, arguments: dict[str, str]) -> None:
            async with service.user(user) as engine:
                if tool == "add_memory":
                    await engine.add(arguments["user_input"], arguments["agent_response"])
                else:
                    await engine.retrieve(arguments["query"])

        await call(*mix.draw())
        return await flat_out(call, mix, for_s)


async def measure(size: Size, progress: Progress) -> list[Figure]:
    """Return every line of the table."""
    with tempfile.TemporaryDirectory(prefix="memoryos-load-") as name:
        folder = Path(name)
        users = await write_users(folder, size, progress)
        task = progress.add_task("in process, flat out", total=None)
        bare = await in_process(folder, Mix(users, seed=1), size.flat_out_s)
        progress.update(task, total=1, completed=1)
        strangers = [f"stranger-{number:05d}" for number in range(size.strangers)]
        tokens = TokenStore(token_file(folder), clock=utc_now)
        secrets = {user: tokens.add(user, {Scope.WRITE}) for user in (*users, *strangers)}
        tokens.close()
        async with served(folder) as (host, port, process):
            return await _over_http(size, users, strangers, secrets, (host, port, process), bare, progress)


async def _over_http(
    size: Size,
    users: list[str],
    strangers: list[str],
    secrets: dict[str, str],
    server: tuple[str, int, psutil.Process],
    bare: float,
    progress: Progress,
) -> list[Figure]:
    host, port, process = server

    async def call_by(connection: Connection, user: str, tool: str, arguments: dict[str, str]) -> None:
        await connection.call(secrets[user], tool, arguments)

    connections = [Connection(host, port) for _ in range(CONNECTIONS)]
    calls: list[Call] = [partial(call_by, connection) for connection in connections]
    mix = Mix(users, seed=2)
    await calls[0](*mix.draw())
    capacity = await _shared_flat_out(calls, mix, size.flat_out_s, progress)
    alone = await _one_by_one(calls[0], mix, progress)
    task = progress.add_task("half of that, offered", total=None)
    steady = await offered(calls, mix, capacity / 2, size.steady_s)
    progress.update(task, total=1, completed=1)
    resident = process.memory_info().rss / MB
    rest = progress.add_task("at rest", total=int(size.rest_s))
    for _ in range(int(size.rest_s)):
        await asyncio.sleep(1)
        progress.advance(rest)
    rested = process.memory_info().rss / MB
    touched = progress.add_task("touching strangers", total=len(strangers))
    open_most = 0
    for number, user in enumerate(strangers):
        await calls[number % CONNECTIONS](user, "retrieve_memory", {"query": "who am I?"})
        if number % 100 == 0:
            open_most = max(open_most, process.num_fds())
        progress.advance(touched)
    for connection in connections:
        await connection.close()
    limit = Settings().max_open_users
    p50, p99 = percentile_ms(alone, 50), percentile_ms(steady, 99)
    most = DESCRIPTORS_BESIDE + DESCRIPTORS_PER_USER * limit
    return [
        Figure(
            what=f"{size.users:,} users, {size.pages} pages each, flat out over {CONNECTIONS} connections",
            floor=f"{bare:.0f} calls/s in process",
            ours=f"{capacity:.0f} calls/s",
            ratio=capacity / bare,
            target="at least 0.6 x",
            is_reached=capacity >= 0.6 * bare,
        ),
        Figure(
            what=f"p99 of {len(steady):,} calls at half of that, no error",
            floor=f"{p50:.1f} ms (p50 of one connection)",
            ours=f"{p99:.1f} ms",
            ratio=p99 / p50,
            target="under 15 x",
            is_reached=p99 < 15 * p50,
        ),
        Figure(
            what="resident memory after it",
            floor="-",
            ours=f"{resident:.0f} MB",
            ratio=None,
            target=f"under {RESIDENT_MB:,} MB",
            is_reached=resident < RESIDENT_MB,
        ),
        Figure(
            what=f"the same after {size.rest_s:.0f} s more",
            floor=f"{resident:.0f} MB",
            ours=f"{rested:.0f} MB",
            ratio=rested / resident,
            target="flat",
            is_reached=rested <= (1 + FLAT_SHARE) * resident,
        ),
        Figure(
            what=f"descriptors while {len(strangers):,} users are touched once each",
            floor=f"{limit} users may be open",
            ours=f"{open_most}",
            ratio=None,
            target=f"at most {most:,}",
            is_reached=open_most <= most,
        ),
        Figure(
            what="resident memory after that",
            floor=f"{rested:.0f} MB",
            ours=f"{process.memory_info().rss / MB:.0f} MB",
            ratio=process.memory_info().rss / MB / rested,
            target=f"under {RESIDENT_MB:,} MB",
            is_reached=process.memory_info().rss / MB < RESIDENT_MB,
        ),
    ]


async def _shared_flat_out(calls: list[Call], mix: Mix, for_s: float, progress: Progress) -> float:
    """Return the calls per second of all connections."""
    task = progress.add_task("over HTTP, flat out", total=None)
    free: asyncio.Queue[Call] = asyncio.Queue()
    for call in calls:
        free.put_nowait(call)

    async def by_any(user: str, tool: str, arguments: dict[str, str]) -> None:
        call = await free.get()
        try:
            await call(user, tool, arguments)
        finally:
            free.put_nowait(call)

    capacity = await flat_out(by_any, mix, for_s)
    progress.update(task, total=1, completed=1)
    return capacity


async def _one_by_one(call: Call, mix: Mix, progress: Progress, count: int = 200) -> list[float]:
    """Return the seconds of each of several sequential calls."""
    took = []
    task = progress.add_task("one connection", total=count)
    for _ in range(count):
        drawn = mix.draw()
        began = time.perf_counter()
        await call(*drawn)
        took.append(time.perf_counter() - began)
        progress.advance(task)
    return took


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--quick", is_flag=True, help="Fewer users and shorter times; the figures mean little.")
@click.option(
    "--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the figures to this file too."
)
def main(quick: bool, json_file: Path | None) -> None:
    """Measure the load that one server can handle, over HTTP and in process."""
    if "OPENBLAS_NUM_THREADS" not in os.environ:
        # The server sets this for its process; here NumPy is already imported.
        os.environ["OPENBLAS_NUM_THREADS"] = "1"
        os.execv(sys.executable, [sys.executable, "-m", "benchmarks.load", *sys.argv[1:]])  # noqa: S606 - itself
    with Progress(console=Console(stderr=True), transient=True) as progress:
        figures = asyncio.run(measure(QUICK if quick else WHOLE, progress))
    print_figures(Console(width=None if sys.stdout.isatty() else 150), figures)
    if json_file is not None:
        json_file.write_text(json.dumps([asdict(figure) for figure in figures], indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
