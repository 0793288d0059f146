"""Speed of a memory in PostgreSQL, compared with bare statements and with the same memory in files.

Run ``python -m benchmarks.database``. It starts a PostgreSQL server on this machine, with commits that are on disk when
they return. Adds alternate with bare inserts on a connection of the same kind, and questions with those to files.
"""

import asyncio
import json
import random
import tempfile
import time
from collections.abc import Callable, Coroutine
from datetime import timedelta
from pathlib import Path
from statistics import mean
from typing import Any, TypeVar

import click
import psycopg
from pydantic import SecretStr
from rich.console import Console

from benchmarks.figures import Figure, percentile_ms, print_figures
from benchmarks.postgres import PostgresServer
from benchmarks.synthetic import USER_ID, Grammar
from memoryos_mcp import MemoryService, Settings
from memoryos_mcp.model.pages import Turn, utc_now
from memoryos_mcp.storage.postgres.database import _Borrowed
from memoryos_mcp.storage.postgres.store import PostgresStore
from memoryos_mcp.storage.stores import make_stores
from memoryos_mcp.storage.values import StoreOptions

ADDS, QUESTIONS, OPENINGS = 300, 150, 20
SMALL_PAGES, PAGES = 500, 1_000
PAGES_PER_WRITE = 200
POLL_S = 0.1
# The last, incomplete batch waits for this silence.
IDLE_S = 1.0
ADD_AT_MOST, OPEN_AT_MOST = 2.0, 3.0
# A question may take this many times as long as with files, and the time of three round trips in addition.
QUESTION_RATIO, ROUND_TRIPS = 1.5, 3

T = TypeVar("T")


def turns(count: int) -> list[Turn]:
    """Return made-up turns, a minute apart."""
    grammar, start = Grammar(random.Random(1)), utc_now() - timedelta(days=30)  # noqa: S311 - not for cryptography
    return [grammar.turn(start + timedelta(minutes=number)) for number in range(count)]


async def timed(seconds: list[float], work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Append the duration of ``work`` to ``seconds``, and return its result."""
    began = time.perf_counter()
    result = await work()
    seconds.append(time.perf_counter() - began)
    return result


async def add_row(url: str) -> Figure:
    """Compare adding a page with a bare insert and its commit, over the same pool of connections and threads.

    The figure also tells the duration of the same insert on a connection of its own in this thread. An asyncio program
    cannot insert in this way, because its other tasks would stand still meanwhile.
    """
    stores = make_stores(Settings(database_url=SecretStr(url)), utc_now, threads=4)
    store = await stores.open("adds", StoreOptions("helper", 7, 1800, 200))
    assert isinstance(store, PostgresStore)  # noqa: S101 - it is in a database
    database = store._database
    blocking: list[float] = []
    bare: list[float] = []
    ours: list[float] = []
    sql = "INSERT INTO public.bare (said, answered) VALUES ($1, $2) RETURNING seq"

    async def insert(turn: Turn) -> None:
        borrowed = _Borrowed(database._deployment)
        await database._run(lambda: borrowed.run(lambda raw: _insert(raw, sql, turn)), afterwards=borrowed.end)

    with psycopg.connect(url, autocommit=True, cursor_factory=psycopg.RawCursor) as connection:
        connection.execute("CREATE TABLE bare (seq bigint GENERATED ALWAYS AS IDENTITY, said text, answered text)")
        connection.execute("GRANT ALL ON bare TO PUBLIC")
        for turn in turns(ADDS):
            began = time.perf_counter()
            _insert(connection, sql, turn)
            blocking.append(time.perf_counter() - began)
            await timed(bare, lambda turn=turn: insert(turn))  # type: ignore[misc]
            await timed(ours, lambda turn=turn: store.add_pages([turn]))  # type: ignore[misc]
    await store.close()
    stores.close()
    ratio = percentile_ms(ours, 50) / percentile_ms(bare, 50)
    floor, added = (
        f"{percentile_ms(each, 50):.2f}, {percentile_ms(each, 95):.2f}, {mean(each) * 1e3:.2f} ms"
        for each in (bare, ours)
    )
    return Figure(
        "add a page: p50, p95, and mean with the indexing of its words; floor: bare INSERT RETURNING and commit "
        f"({percentile_ms(blocking, 50):.2f} ms without the pool and the change of threads)",
        floor,
        added,
        ratio,
        f"p50 <= {ADD_AT_MOST} x",
        ratio <= ADD_AT_MOST,
    )


def _insert(connection: psycopg.Connection[Any], sql: str, turn: Turn) -> None:
    with connection.transaction():
        connection.execute(sql, (turn.user_input, turn.agent_response)).fetchone()


async def fill(service: MemoryService, pages: int) -> None:
    """Fill a memory, and wait until its pages are organised and embedded."""
    async with service.user(USER_ID) as engine:
        missing = turns(pages)
        for first in range(0, pages, PAGES_PER_WRITE):
            await engine._store.add_pages(missing[first : first + PAGES_PER_WRITE])
        while (work := await engine.waiting()).backlog or work.unembedded:
            await asyncio.sleep(POLL_S)


async def question_row(folder: Path, url: str, pages: int) -> Figure:
    """Compare questions to a memory in the database with questions to the same memory in files."""
    files = MemoryService(Settings(data_storage_path=folder, consolidation_idle_s=IDLE_S))
    database = MemoryService(
        Settings(data_storage_path=folder, database_url=SecretStr(url), consolidation_idle_s=IDLE_S)
    )
    took: tuple[list[float], list[float]] = ([], [])
    trips: list[float] = []
    async with files, database:
        await fill(files, pages)
        await fill(database, pages)
        grammar = Grammar(random.Random(2))  # noqa: S311 - not for cryptography
        with psycopg.connect(url, autocommit=True, cursor_factory=psycopg.RawCursor) as connection:
            async with files.user(USER_ID) as one, database.user(USER_ID) as other:
                for _ in range(QUESTIONS):
                    question = grammar.question()
                    for seconds, engine in zip(took, (one, other), strict=True):
                        await timed(seconds, lambda engine=engine, question=question: engine.retrieve(question))  # type: ignore[misc]
                    began = time.perf_counter()
                    connection.execute("SELECT 1").fetchone()
                    trips.append(time.perf_counter() - began)
    floor, ours, trip = (percentile_ms(each, 50) for each in (*took, trips))
    most = QUESTION_RATIO * floor + ROUND_TRIPS * trip
    return Figure(
        f"question at {pages:,} pages, p50; floor: the same in files",
        f"{floor:.1f} ms",
        f"{ours:.1f} ms",
        ours / floor,
        f"<= {most:.1f} ms",
        ours <= most,
    )


async def open_row(folder: Path, url: str) -> Figure:
    """Compare opening a memory in the database, and its first question, with the same in files."""
    took: tuple[list[float], list[float]] = ([], [])
    for number, settings in enumerate(
        (
            Settings(data_storage_path=folder, consolidation_idle_s=IDLE_S),
            Settings(data_storage_path=folder, database_url=SecretStr(url), consolidation_idle_s=IDLE_S),
        )
    ):
        async with MemoryService(settings) as service:
            await fill(service, SMALL_PAGES)
        for _ in range(OPENINGS):
            async with MemoryService(settings) as service:
                began = time.perf_counter()
                async with service.user(USER_ID) as engine:
                    await engine.listed(limit=1)
                took[number].append(time.perf_counter() - began)
    floor, ours = (percentile_ms(each, 50) for each in took)
    return Figure(
        f"open a user of {SMALL_PAGES} pages, p50; floor: the same in files",
        f"{floor:.1f} ms",
        f"{ours:.1f} ms",
        ours / floor,
        f"<= {OPEN_AT_MOST} x",
        ours / floor <= OPEN_AT_MOST,
    )


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--pages", type=click.IntRange(min=100), default=PAGES, show_default=True, help="Pages of the memories.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write all figures here.")
def main(pages: int, json_file: Path | None) -> None:
    """Measure adding, asking and opening with PostgreSQL, compared with floors of the same run."""
    server = PostgresServer(is_durable=True)
    try:
        with tempfile.TemporaryDirectory(prefix="memoryos-benchmark-") as folder:
            figures = [
                asyncio.run(add_row(server.make("adds"))),
                asyncio.run(question_row(Path(folder) / "questions", server.make("questions"), pages)),
                asyncio.run(open_row(Path(folder) / "openings", server.make("openings"))),
            ]
    finally:
        server.close()
    print_figures(Console(), figures)
    if json_file:
        json_file.write_text(
            json.dumps([{"what": each.what, "ratio": each.ratio} for each in figures], indent=1) + "\n"
        )


if __name__ == "__main__":
    main()
