"""The calls per second of one server and of two on one database.

A machine with few cores cannot give each server its own, next to the database and the clients. So each server gets a
fixed share of a core, and the rest is for the others. One server and two servers are measured in turns.
"""

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
from pydantic import SecretStr

from benchmarks.figures import Figure
from benchmarks.fleet import Server, Spread, fleet, poll, running
from benchmarks.load import Mix
from benchmarks.postgres import PostgresServer
from benchmarks.scale_load import make_tokens
from benchmarks.synthetic import Grammar
from benchmarks.throttle import cpu_s, throttled
from memoryos_mcp.config import Settings
from memoryos_mcp.model.pages import utc_now
from memoryos_mcp.storage.stores import make_stores
from memoryos_mcp.storage.values import StoreOptions

SHARE = 0.25
CLIENTS_PER_SERVER = 8
# Numbers of servers, in this order, so that a machine that becomes slower or faster affects both.
ORDER = (1, 2, 2, 1)
# The short-term pages, and two full batches. Incomplete batches wait until the measurement is over.
PAGES = 27
IDLE_S = 36_000.0
AT_LEAST = 1.6
# A server whose users are open is idle when it uses less than this share of a core for a second.
IDLE_CORES = 0.1
IDLE_LIMIT_S = 120.0
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Size:
    """The amount of work.

    Attributes:
        users: Number of users with `PAGES` pages each.
        round_s: Duration of a measurement.
        warm_s: Duration of the same load before it.
    """

    users: int
    round_s: float
    warm_s: float


WHOLE = Size(users=20, round_s=15.0, warm_s=5.0)
QUICK = Size(users=10, round_s=6.0, warm_s=2.0)


@dataclass(slots=True)
class Total:
    """What the rounds with one number of servers have measured together."""

    calls: int = 0
    seconds: float = 0.0
    cpu_s: float = 0.0
    idle_s: float = 0.0

    def add(self, other: "Total") -> None:
        """Add a round."""
        self.calls += other.calls
        self.seconds += other.seconds
        self.cpu_s += other.cpu_s
        self.idle_s += other.idle_s

    @property
    def rate(self) -> float:
        """Calls per second."""
        return self.calls / self.seconds

    @property
    def cores(self) -> float:
        """How many cores the servers have used."""
        return self.cpu_s / self.seconds

    @property
    def idle(self) -> float:
        """The part of the machine's cores that was idle, 0 to 1."""
        return self.idle_s / self.seconds


async def measure_processes(
    database: PostgresServer, folder: Path, size: Size, settings: dict[str, object], say: Say
) -> list[Figure]:
    """Compare one server with two, and the same with bare servers."""
    url = database.make("processes")
    users = [f"user-{number:05d}" for number in range(size.users)]
    await _fill(url, users)
    tokens = make_tokens(url, users)
    totals = {1: Total(), 2: Total()}
    floors = {1: Total(), 2: Total()}
    for place, count in enumerate(ORDER):
        mix = Mix(users, place)

        def memory_call(mix: Mix = mix) -> tuple[str, str, dict[str, str]]:
            user, tool, arguments = mix.draw()
            return tokens[user], tool, arguments

        async with running(fleet(count, url, folder, {**settings, "consolidation_idle_s": IDLE_S})) as servers:
            await _open_all(servers, tokens)
            totals[count].add(found := await _round(servers, memory_call, size))
        say(f"{count} of 2 servers: {found.rate:.1f} calls/s, {found.cores:.2f} cores")
    shorter = replace(size, round_s=size.round_s / 2, warm_s=size.warm_s / 2)
    for count in ORDER:
        bare = [Server(f"bare-{number}", ("benchmarks.bare_server",)) for number in range(count)]
        async with running(bare) as servers:
            floors[count].add(found := await _round(servers, _echo, shorter))
        say(f"{count} of 2 bare servers: {found.rate:.1f} calls/s, {found.cores:.2f} cores")
    if not all(total.calls for total in (*totals.values(), *floors.values())):
        message = f"A server answered no call in {size.round_s:g} s. Try again on a machine with less to do."
        raise SystemExit(message)
    ratio, floor = totals[2].rate / totals[1].rate, floors[2].rate / floors[1].rate
    return [
        Figure(
            what=f"calls/s of two servers, {SHARE:g} of a core each; floor: bare servers",
            floor=f"{floors[1].rate:.0f} and {floors[2].rate:.0f}, {floor:.2f} x",
            ours=f"{totals[1].rate:.1f} and {totals[2].rate:.1f}",
            ratio=ratio,
            target=f">= {AT_LEAST} x",
            is_reached=ratio >= AT_LEAST,
        ),
        Figure(
            what="of that: cores used by one and by two servers; idle share of the machine",
            floor=f"{floors[1].cores:.2f} and {floors[2].cores:.2f}",
            ours=f"{totals[1].cores:.2f} and {totals[2].cores:.2f}; {totals[1].idle:.0%} and {totals[2].idle:.0%}",
            ratio=None,
            target="-",
            is_reached=True,
        ),
    ]


def _echo() -> tuple[str, str, dict[str, str]]:
    return "none", "echo", {"user_input": "Hello.", "agent_response": "Hello."}


async def _fill(url: str, users: Sequence[str]) -> None:
    """Write the users' pages."""
    grammar = Grammar(random.Random(3))  # noqa: S311 - made-up data
    stores = make_stores(Settings(database_url=SecretStr(url)), utc_now)
    for user in users:
        store = await stores.open(user, StoreOptions("default_assistant_profile", 7, 1800, 100))
        await store.add_pages([grammar.turn(utc_now()) for _ in range(PAGES)])
        await store.close()
    stores.close()


async def _open_all(servers: Sequence[Server], tokens: dict[str, str]) -> None:
    """Open each user on each server, and wait until the background work of all servers is done."""
    for server in servers:
        spread = Spread([server], random.Random(4))  # noqa: S311 - made-up data
        for token in tokens.values():
            await spread.until_answered(token, "retrieve_memory", {"query": "the garden fence"})
        await spread.close()

    async def is_idle() -> bool:
        used_s = [cpu_s(server.pid) for server in servers]
        await asyncio.sleep(1)
        return all(cpu_s(server.pid) - used < IDLE_CORES for server, used in zip(servers, used_s, strict=True))

    await poll(is_idle, 0, IDLE_LIMIT_S)


async def _round(servers: list[Server], draw: Callable[[], tuple[str, str, dict[str, str]]], size: Size) -> Total:
    """Call the servers as fast as they answer, while each may use `SHARE` of a core."""
    total, is_over, is_counted = Total(), False, False

    async def call(number: int) -> None:
        spread = Spread(servers, random.Random(number))  # noqa: S311 - made-up data
        while not is_over:
            await spread.until_answered(*draw())
            total.calls += is_counted
        await spread.close()

    pids = [server.pid for server in servers]
    async with throttled(pids, SHARE), asyncio.TaskGroup() as group:
        for number in range(CLIENTS_PER_SERVER * len(servers)):
            group.create_task(call(number))
        await asyncio.sleep(size.warm_s)
        began, used_s = time.monotonic(), sum(map(cpu_s, pids))
        psutil.cpu_percent()  # begins its interval
        is_counted = True
        await asyncio.sleep(size.round_s)
        is_counted, is_over = False, True
        total.seconds = time.monotonic() - began
        total.cpu_s = sum(map(cpu_s, pids)) - used_s
        total.idle_s = (1 - psutil.cpu_percent() / 100) * total.seconds
    return total
