"""Several server processes on one PostgreSQL database, of which one is killed again and again.

Run ``python -m benchmarks.scale``; ``--quick`` takes fewer users and kills. The database, the servers and the client
are processes of one machine.
"""

import asyncio
import json
import random
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import click
from pydantic import SecretStr
from rich.console import Console
from rich.progress import Progress

from benchmarks.client import ServerError
from benchmarks.figures import Figure, percentile_ms, print_figures
from benchmarks.fleet import Server, Spread, fleet, poll
from benchmarks.postgres import OWNER, PostgresServer
from benchmarks.scale_audit import Reader, Sent, audit, isolation, none_of, pending
from benchmarks.synthetic import Grammar
from memoryos_mcp.config import Settings
from memoryos_mcp.model.callers import Scope
from memoryos_mcp.model.pages import utc_now
from memoryos_mcp.storage.stores import make_stores

SERVERS = 3
CLIENTS = 12
# So small that nearly every page is organised while servers are killed.
BUSY = {"short_term_capacity": 2, "consolidation_batch_pages": 3, "consolidation_idle_s": 1.0}
ALIVE_S, DOWN_S = 6.0, 2.0
READ_EVERY_S = 0.5
FOLLOWED_USERS = 50
# The background work of all users ends within this time.
SETTLE_LIMIT_S = 900.0
_MARKED = re.compile(r"I am (user-\d+) with remark(\d+)x\.")


@dataclass(frozen=True, slots=True)
class Size:
    """The amount of work.

    Attributes:
        users: Number of users.
        kills: How often a server is killed and started again.
    """

    users: int
    kills: int


WHOLE = Size(users=1_000, kills=10)
QUICK = Size(users=100, kills=3)


@dataclass(slots=True)
class Load:
    """Adds and questions of random users, spread at random over the servers, until `is_over` is set."""

    servers: list[Server]
    tokens: dict[str, str]
    seed: int
    sent: Sent = field(default_factory=Sent)
    took_s: list[float] = field(default_factory=list)
    answers: int = 0
    foreign: int = 0
    repeated: int = 0
    is_over: bool = False
    _pages: int = 0

    async def run(self) -> None:
        """Run `CLIENTS` clients."""
        async with asyncio.TaskGroup() as group:
            for number in range(CLIENTS):
                group.create_task(self._client(random.Random(f"{self.seed}/{number}")))  # noqa: S311 - made-up data

    async def _client(self, draw: random.Random) -> None:
        spread, grammar, users = Spread(self.servers, draw), Grammar(draw), sorted(self.tokens)
        try:
            while not self.is_over:
                user = draw.choice(users)
                if draw.randrange(2):
                    await self._add(spread, user, grammar, has_key=bool(draw.randrange(2)))
                else:
                    await self._ask(spread, user, grammar)
        finally:
            await spread.close()

    async def _add(self, spread: Spread, user: str, grammar: Grammar, *, has_key: bool) -> None:
        """Add a page. With a key, the call is repeated on any server until it is acknowledged."""
        self._pages += 1
        marker, turn = str(self._pages), grammar.turn(utc_now())
        arguments = {
            "user_input": f"I am {user} with remark{marker}x. {turn.user_input}",
            "agent_response": turn.agent_response,
        }
        if has_key:
            arguments["idempotency_key"] = marker
            reply = await spread.until_answered(self.tokens[user], "add_memory", arguments)
            self.repeated += not reply.content["is_new"]
        else:
            answer = await spread.once(self.tokens[user], "add_memory", arguments)
            if answer is None:
                self.sent.unknown.add(marker)
                return
            reply = answer
        self.sent.acknowledged[marker] = reply.content["page_id"]
        self.took_s.append(reply.took_s)

    async def _ask(self, spread: Spread, user: str, grammar: Grammar) -> None:
        """Ask a question. Every page of the answer must be the user's."""
        reply = await spread.until_answered(self.tokens[user], "retrieve_memory", {"query": grammar.question()})
        pages = [*reply.content["retrieved_pages"], *reply.content["short_term_memory"]]
        self.foreign += sum(marker_of(page["user_input"])[0] not in {user, ""} for page in pages)
        self.answers += 1
        self.took_s.append(reply.took_s)


def marker_of(text: str) -> tuple[str, str]:
    """Return the user and the marker in a page; empty texts if an excerpt does not contain them."""
    found = _MARKED.search(text)
    return (found[1], found[2]) if found else ("", "")


def make_tokens(url: str, users: list[str]) -> dict[str, str]:
    """Make a token for each user."""
    stores = make_stores(Settings(database_url=SecretStr(url)), utc_now)
    try:
        return {user: stores.tokens.add(user, {Scope.WRITE}) for user in users}
    finally:
        stores.close()


@contextmanager
def database() -> Iterator[PostgresServer]:
    """Start a PostgreSQL server whose commits are durable. It is ended, and its files are removed, at the end."""
    server = PostgresServer(is_durable=True)
    try:
        yield server
    finally:
        server.close()


async def kill_often(servers: list[Server], load: Load, kills: int, progress: Progress) -> None:
    """Kill random servers while the load runs; then end the load."""
    task, draw = progress.add_task("kills", total=kills), random.Random(load.seed)  # noqa: S311 - made-up data
    for _ in range(kills):
        await asyncio.sleep(ALIVE_S * (0.5 + draw.random()))
        server = draw.choice(servers)
        await server.kill()
        await asyncio.sleep(DOWN_S * draw.random())
        await server.start()
        progress.advance(task)
    await asyncio.sleep(ALIVE_S)
    load.is_over = True


async def measure_kills(
    database: PostgresServer, folder: Path, size: Size, embedding: str, progress: Progress
) -> list[Figure]:
    """Kill servers under load, and compare the database with what was acknowledged."""
    url, superuser_url = database.make("kills"), database.url("kills", OWNER)
    tokens = make_tokens(url, [f"user-{number:05d}" for number in range(size.users)])
    settings = {**BUSY, "embedding_model_name": embedding, "requests_per_second": 100_000.0}
    async with fleet(SERVERS, url, folder, settings) as servers:
        load, reader = Load(servers, tokens, seed=1), Reader(url, sorted(tokens)[:FOLLOWED_USERS])
        began = time.monotonic()
        async with asyncio.TaskGroup() as group:
            following = group.create_task(_follow(reader))
            async with asyncio.TaskGroup() as calling:
                calling.create_task(load.run())
                calling.create_task(kill_often(servers, load, size.kills, progress))
            loaded_s = time.monotonic() - began
            settled_s = await _settle(superuser_url, progress)
            following.cancel()
        reader.read()
        lost = reader.lost()
        reader.close()
        warnings = sum(len(server.warnings) for server in servers)
    calls = len(load.took_s)
    figures = [
        Figure(
            what=f"{calls:,} calls of {size.users:,} users, {SERVERS} servers, {size.kills} kills: answered",
            floor=f"{percentile_ms(load.took_s, 50):.0f} ms p50, {percentile_ms(load.took_s, 99):.0f} ms p99",
            ours=f"{calls / loaded_s:.0f} calls/s",
            ratio=None,
            target="-",
            is_reached=True,
        ),
        *audit(superuser_url, load.sent, marker_of),
        none_of(f"of {reader.changes:,} changes that a reader followed, lost", lost),
        none_of(f"of {load.answers:,} answers, pages of another user", load.foreign),
        *isolation(url),
        Figure(
            what="from the last call until all pages are organised",
            floor="-",
            ours="never" if settled_s is None else f"{settled_s:.0f} s",
            ratio=None,
            target=f"within {SETTLE_LIMIT_S:.0f} s",
            is_reached=settled_s is not None,
        ),
        none_of("warnings and errors in the logs of the servers", warnings),
    ]
    click.echo(
        f"{load.repeated} pages were stored by a call whose answer was lost; "
        f"{len(load.sent.unknown)} calls without a key had no answer",
        err=True,
    )
    return figures


async def _follow(reader: Reader) -> None:
    while True:
        await asyncio.to_thread(reader.read)
        await asyncio.sleep(READ_EVERY_S)


async def _settle(superuser_url: str, progress: Progress) -> float | None:
    """Wait until all pages are organised. Return the seconds, or None if some are not within the limit."""
    task = progress.add_task("users whose pages are not organised yet", total=None)

    async def is_settled() -> bool:
        left = await asyncio.to_thread(pending, superuser_url)
        progress.update(task, description=f"{len(left)} users have pages that are not organised yet")
        return not left

    return await poll(is_settled, 1.0, SETTLE_LIMIT_S)


async def measure(size: Size, embedding: str, progress: Progress) -> list[Figure]:
    """Return every line of the table."""
    with tempfile.TemporaryDirectory(prefix="memoryos-scale-") as name, database() as server:
        return await measure_kills(server, Path(name), size, embedding, progress)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--quick", is_flag=True, help="Fewer users and kills.")
@click.option("--users", type=click.IntRange(min=2), help="Number of users.")
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
def main(quick: bool, users: int | None, kills: int | None, embedding: str, json_file: Path | None) -> None:
    """Check and measure several servers on one PostgreSQL database."""
    given = QUICK if quick else WHOLE
    size = Size(users or given.users, kills or given.kills)
    with Progress(console=Console(stderr=True), transient=True) as progress:
        try:
            figures = asyncio.run(measure(size, embedding, progress))
        except* ServerError as errors:
            raise click.ClickException(str(errors.exceptions[0])) from None
    print_figures(Console(width=None if sys.stdout.isatty() else 150), figures, title="Several servers on one database")
    if json_file is not None:
        json_file.write_text(json.dumps([asdict(figure) for figure in figures], indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
