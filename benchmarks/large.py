"""Questions to a large memory in PostgreSQL, which is searched in the database, compared with a smaller memory.

Run ``python -m benchmarks.large``. It starts a PostgreSQL server on this machine, and for each memory one server of the
real command. Their calls alternate, so that other load on the machine affects both.
"""

import asyncio
import json
import random
import tempfile
from functools import partial
from pathlib import Path

import click
import psutil
import psycopg
from pydantic import SecretStr
from rich.console import Console
from rich.progress import Progress

from benchmarks.figures import MB, POLL_S, Figure, percentile_ms, print_figures
from benchmarks.pipe import Pipe, memory_server, opened
from benchmarks.postgres import OWNER, PostgresServer
from benchmarks.synthetic import OPTIONS, Grammar, write_pages
from memoryos_mcp.config import Settings
from memoryos_mcp.embedding.bundled import BundledEmbedder
from memoryos_mcp.model.pages import utc_now
from memoryos_mcp.storage.stores import make_stores

SMALL_PAGES, LARGE_PAGES = 10_000, 200_000
QUESTIONS = 150
READY_AFTER_S = 900.0
SLOWER_AT_MOST = 3.0
# The server of the larger memory may need this much more memory: caches of words and of the database's replies.
MORE_MB = 30


async def measure(server: PostgresServer, folder: Path, sizes: tuple[int, int], progress: Progress) -> list[Figure]:
    """Return the rows of the table for memories of these numbers of pages."""
    url = server.make("large")
    stores = make_stores(Settings(database_url=SecretStr(url)), utc_now, threads=2)
    embedder = BundledEmbedder()
    for size in sizes:
        task = progress.add_task(f"writing {size:,} pages", total=size)
        await write_pages(await stores.open(f"user{size}", OPTIONS), size, embedder, partial(progress.advance, task))
    stores.close()
    await embedder.aclose()
    with psycopg.connect(server.url("large", OWNER), autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
    task = progress.add_task("asking", total=QUESTIONS)
    first, second = (memory_server(folder, f"user{size}", "--database-url", url) for size in sizes)
    async with opened(*first) as small, opened(*second) as large, asyncio.timeout(READY_AFTER_S):
        took: tuple[list[float], list[float]] = ([], [])
        before = [await _ready(each) for each in (small, large)]
        grammar = Grammar(random.Random(2))  # noqa: S311 - made-up data
        for _ in range(QUESTIONS):
            question = grammar.question()
            for seconds, each in zip(took, (small, large), strict=True):
                seconds.append((await each.call("retrieve_memory", query=question)).took_s)
            progress.advance(task)
        after = [_resident_mb(each) for each in (small, large)]
    return [_time_row(sizes, took), *_resident_rows(sizes, before, after)]


def _time_row(sizes: tuple[int, int], took: tuple[list[float], list[float]]) -> Figure:
    floor, ours = (percentile_ms(each, 50) for each in took)
    return Figure(
        f"retrieve_memory p50, {sizes[0]:,} to {sizes[1]:,} pages",
        f"{floor:.1f} ms",
        f"{ours:.1f} ms",
        ours / floor,
        f"under {SLOWER_AT_MOST:g} x",
        ours < SLOWER_AT_MOST * floor,
    )


def _resident_rows(sizes: tuple[int, int], before: list[float], after: list[float]) -> list[Figure]:
    return [
        Figure(
            f"resident memory of the server {when}, {sizes[0]:,} to {sizes[1]:,} pages",
            f"{small:.0f} MB",
            f"{large:.0f} MB",
            large / small,
            f"at most {MORE_MB} MB more",
            large <= small + MORE_MB,
        )
        for when, (small, large) in (("when ready", before), ("after the questions", after))
    ]


async def _ready(server: Pipe) -> float:
    """Wait until a server searches by vectors and has no work left. Return its resident memory in MB."""
    while (await server.call("retrieve_memory", query="warm up")).content["search_mode"] != "hybrid":
        await asyncio.sleep(POLL_S)
    while not (await server.call("get_memory_stats")).content["is_settled"]:
        await asyncio.sleep(POLL_S)
    return _resident_mb(server)


def _resident_mb(server: Pipe) -> float:
    return float(psutil.Process(server.pid).memory_info().rss) / MB


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--small", type=click.IntRange(min=100), default=SMALL_PAGES, show_default=True, help="Pages of one memory."
)
@click.option(
    "--large", type=click.IntRange(min=100), default=LARGE_PAGES, show_default=True, help="Pages of the other."
)
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write all figures here.")
def main(small: int, large: int, json_file: Path | None) -> None:
    """Measure questions to a large and to a small memory in one PostgreSQL database."""
    server = PostgresServer()
    try:
        with tempfile.TemporaryDirectory(prefix="memoryos-benchmark-") as folder, Progress() as progress:
            figures = asyncio.run(measure(server, Path(folder), (small, large), progress))
    finally:
        server.close()
    print_figures(Console(), figures)
    if json_file:
        rows = [{"what": each.what, "ratio": each.ratio} for each in figures]
        json_file.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
