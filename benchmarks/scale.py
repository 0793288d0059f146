"""Several server processes on one PostgreSQL database, of which one is killed again and again.

Run ``python -m benchmarks.scale``; ``--quick`` takes fewer users and kills. The database, the servers, the client and
an LLM that answers by rules are processes of one machine. A second part compares one server with two.
"""

import asyncio
import json
import random
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import click
from rich.console import Console

from benchmarks import scale_processes
from benchmarks.client import ServerError
from benchmarks.figures import Figure, percentile_ms, print_figures
from benchmarks.fleet import Server, fleet, poll, running
from benchmarks.llm_server import MODEL, LlmServer, running_llm_server
from benchmarks.postgres import OWNER, PostgresServer
from benchmarks.scale_audit import Reader, audit, isolation, none_of, pending
from benchmarks.scale_filings import Interrupted, batches, filing_figures, held, install, takeover_figures
from benchmarks.scale_load import Load, make_tokens, marker_of
from benchmarks.scale_processes import Say, measure_processes
from memoryos_mcp.llm.chat import Purpose

PARTS = ("kills", "processes")
SERVERS = 3
# Small batches, so that many are organised while servers are killed.
BUSY = {
    "short_term_capacity": 0,
    "consolidation_batch_pages": 2,
    "consolidation_idle_s": 1.0,
    "llm_model": MODEL,
}
# The LLM answers after this time, for which a server holds the lease of the user.
LLM_LATENCY_MS = 1_000
DOWN_S = 2.0
# A server is killed when it is organising pages, or after this time.
HELD_LIMIT_S, HELD_EVERY_S = 10.0, 0.05
# The transactions of a killed server end within this time.
ENDED_S = 0.2
READ_EVERY_S = 0.5
FOLLOWED_USERS = 50
SEARCHED_PAGES = 200
# The background work of all users ends within this time.
SETTLE_LIMIT_S = 300.0


@dataclass(frozen=True, slots=True)
class Size:
    """The amount of work.

    Attributes:
        users: Number of users.
        kills: How often a server is killed and started again.
        alive_s: Mean time between two kills.
    """

    users: int
    kills: int
    alive_s: float


WHOLE = Size(users=1_000, kills=10, alive_s=12.0)
QUICK = Size(users=100, kills=3, alive_s=6.0)


@contextmanager
def database() -> Iterator[PostgresServer]:
    """Start a PostgreSQL server whose commits are durable. It is ended, and its files are removed, at the end."""
    server = PostgresServer(is_durable=True)
    try:
        yield server
    finally:
        server.close()


async def kill_often(
    servers: list[Server], load: Load, size: Size, superuser_url: str, say: Say
) -> tuple[list[Interrupted], int]:
    """Kill random servers while the load runs; then end the load.

    Return the users whose work was interrupted and not taken over at once, and the number of all interruptions.
    """
    draw, interrupted, interruptions = random.Random(load.seed), list[Interrupted](), 0  # noqa: S311 - made-up data
    for kill in range(size.kills):
        await asyncio.sleep(size.alive_s * (0.5 + draw.random()))
        server = draw.choice(servers)

        async def is_working(server: Server = server) -> bool:
            return bool(await asyncio.to_thread(held, superuser_url, server.name))

        await poll(is_working, HELD_EVERY_S, HELD_LIMIT_S)
        before = await asyncio.to_thread(held, superuser_url, server.name)
        await server.kill()
        await asyncio.sleep(ENDED_S)
        found = await asyncio.to_thread(held, superuser_url, server.name)
        interrupted += found
        interruptions += len({each.user_no for each in (*before, *found)})
        say(f"kill {kill + 1} of {size.kills}: {len(load.took_s):,} calls so far, {len(found)} users interrupted")
        await asyncio.sleep(DOWN_S * draw.random())
        await server.start()
    await asyncio.sleep(size.alive_s)
    load.is_over = True
    return interrupted, interruptions


async def measure_kills(
    database: PostgresServer, folder: Path, size: Size, settings: dict[str, object], say: Say
) -> list[Figure]:
    """Kill servers under load, and compare the database with what was acknowledged."""
    url, superuser_url = database.make("kills"), database.url("kills", OWNER)
    tokens = make_tokens(url, [f"user-{number:05d}" for number in range(size.users)])
    install(superuser_url)
    load = Load([], tokens, seed=1)
    async with running_llm_server(latency_ms=LLM_LATENCY_MS) as llm:
        load.servers = fleet(SERVERS, url, folder, {**BUSY, **settings, "openai_base_url": llm.base_url})
        async with running(load.servers):
            return await _measure_kills(load, url, superuser_url, size, llm, say)


async def _measure_kills(
    load: Load, url: str, superuser_url: str, size: Size, llm: LlmServer, say: Say
) -> list[Figure]:
    reader = Reader(url, sorted(load.tokens)[:FOLLOWED_USERS])
    began = time.monotonic()
    async with asyncio.TaskGroup() as group:
        following = group.create_task(_follow(reader))
        async with asyncio.TaskGroup() as calling:
            calling.create_task(load.run())
            killing = calling.create_task(kill_often(load.servers, load, size, superuser_url, say))
        loaded_s = time.monotonic() - began
        calls, took_s = len(load.took_s), list(load.took_s)
        settled_s = await _settle(superuser_url, say)
        following.cancel()
    reader.read()
    lost = reader.lost()
    reader.close()
    say("each server searches for pages that others have written")
    unread = await load.unread(SEARCHED_PAGES)
    interrupted, interruptions = killing.result()
    asked = (await llm.tally()).of[Purpose.ORGANISE].calls
    say(
        f"{load.repeated} pages were stored by a call whose answer was lost; "
        f"{len(load.sent.unknown)} calls without a key had no answer"
    )
    return [
        Figure(
            what=f"{calls:,} calls of {size.users:,} users, {SERVERS} servers, {size.kills} kills",
            floor="-",
            ours=f"{calls / loaded_s:.0f} calls/s",
            ratio=None,
            target="-",
            is_reached=True,
        ),
        Figure(
            what="of that: a call, p50 and p99",
            floor="-",
            ours=f"{percentile_ms(took_s, 50):.0f}, {percentile_ms(took_s, 99):.0f} ms",
            ratio=None,
            target="-",
            is_reached=True,
        ),
        *audit(superuser_url, load.sent, marker_of),
        *filing_figures(superuser_url),
        _llm_calls(asked, batches(superuser_url), interruptions),
        *takeover_figures(superuser_url, interrupted),
        none_of(f"of {reader.changes:,} changes that a reader followed, lost", lost),
        none_of(f"of {load.searched:,} pages searched for by another server at once, not found", load.unfound),
        none_of(f"of {SEARCHED_PAGES} pages searched for by all other servers at the end, not found", unread),
        none_of(f"of {load.answers:,} answers, pages of another user", load.foreign),
        *isolation(url),
        Figure(
            what="from the last call until all pages are organised",
            floor="-",
            ours="never" if settled_s is None else f"{settled_s:.0f} s",
            ratio=None,
            target=f"<= {SETTLE_LIMIT_S:.0f} s",
            is_reached=settled_s is not None,
        ),
        none_of("warnings and errors in the logs of the servers", sum(len(each.warnings) for each in load.servers)),
    ]


def _llm_calls(calls: int, number: int, interrupted: int) -> Figure:
    """Compare the calls to the LLM with the batches. A call that a kill interrupts is repeated."""
    return Figure(
        what=f"calls to the LLM for {number:,} batches, {interrupted} of them interrupted by a kill",
        floor=f"{number:,}",
        ours=f"{calls:,}",
        ratio=calls / number if number else None,
        target=f"<= {number + interrupted:,}",
        is_reached=calls <= number + interrupted,
    )


async def _follow(reader: Reader) -> None:
    while True:
        await asyncio.to_thread(reader.read)
        await asyncio.sleep(READ_EVERY_S)


async def _settle(superuser_url: str, say: Say) -> float | None:
    """Wait until all pages are organised. Return the seconds, or None if some are not within the limit."""
    said_at = 0.0

    async def is_settled() -> bool:
        nonlocal said_at
        left = await asyncio.to_thread(pending, superuser_url)
        if time.monotonic() > said_at + 5:
            said_at = time.monotonic()
            say(f"{len(left)} users have pages that are not organised yet")
        return not left

    return await poll(is_settled, 1.0, SETTLE_LIMIT_S)


async def measure(parts: tuple[str, ...], size: Size, other_size: scale_processes.Size, embedding: str) -> list[Figure]:
    """Return every line of the table."""
    say = partial(click.echo, err=True)
    settings: dict[str, object] = {"embedding_model_name": embedding, "requests_per_second": 100_000.0}
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="memoryos-scale-") as name, database() as server:
        if "kills" in parts:
            figures += await measure_kills(server, Path(name), size, settings, say)
        if "processes" in parts:
            figures += await measure_processes(server, Path(name), other_size, settings, say)
    return figures


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--quick", is_flag=True, help="Fewer users and kills.")
@click.option(
    "--part",
    "parts",
    type=click.Choice(PARTS),
    multiple=True,
    default=PARTS,
    help="Only this part: kills under load, or one process compared with two.",
)
@click.option("--users", type=click.IntRange(min=2), help="Number of users.")
@click.option("--open-users", type=click.IntRange(min=1), help="Number of users when one server is compared with two.")
@click.option("--kills", type=click.IntRange(min=1), help="How often a server is killed.")
@click.option(
    "--embedding",
    type=click.Choice(["none", "bundled"]),
    default="none",
    show_default=True,
    help="The embedding model of the servers.",
)
@click.option(
    "--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the figures to this file too."
)
def main(
    quick: bool,
    parts: tuple[str, ...],
    users: int | None,
    open_users: int | None,
    kills: int | None,
    embedding: str,
    json_file: Path | None,
) -> None:
    """Check and measure several servers on one PostgreSQL database."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends the servers too
    given = QUICK if quick else WHOLE
    size = Size(users or given.users, kills or given.kills, given.alive_s)
    other_size = scale_processes.QUICK if quick else scale_processes.WHOLE
    other_size = replace(other_size, users=open_users or other_size.users)
    try:
        figures = asyncio.run(measure(parts, size, other_size, embedding))
    except* ServerError as errors:
        raise click.ClickException(str(errors.exceptions[0])) from None
    print_figures(Console(width=None if sys.stdout.isatty() else 150), figures, title="Several servers on one database")
    if json_file is not None:
        json_file.write_text(json.dumps([asdict(figure) for figure in figures], indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
