"""Server time and bytes of each view in the browser, compared with floors of the same run.

Run it as ``python -m benchmarks.page``. The real application is called in this process, with real cookies and
templates, so that no network is measured. The floors are an empty page of the same application, and a bare query of the
same store for the newest pages.
"""

import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import apsw
import click
import httpx2
from rich.console import Console

from benchmarks.facts import made_up
from benchmarks.figures import POLL_S, Figure, percentile_ms, print_figures
from benchmarks.synthetic import OPTIONS, USER_ID, Grammar, write_memory
from memoryos_mcp.config import Settings
from memoryos_mcp.embedding.bundled import BundledEmbedder
from memoryos_mcp.engine.engine import MemoryEngine
from memoryos_mcp.engine.service import MemoryService
from memoryos_mcp.model.callers import Caller, Scope
from memoryos_mcp.model.knowledge import About, AddFact, Lessons
from memoryos_mcp.model.pages import utc_now
from memoryos_mcp.server.http.page_server import make_page_app
from memoryos_mcp.server.web.guard import ENTER, PREFIX
from memoryos_mcp.server.web.sessions import Sessions
from memoryos_mcp.server.web.visits import MENU, memory_path, prepare_views
from memoryos_mcp.storage.sqlite.paths import database_file
from memoryos_mcp.storage.sqlite.store import SqliteStore
from memoryos_mcp.storage.threads import StoreThreads
from memoryos_mcp.storage.values import Learning

SIZES, LARGE = (100, 10_000), 100_000
FACTS = 1_000
ANSWERS = 20
READY_AFTER_S = 600.0
# The targets, at 10,000 pages.
TIME_MS, BYTES = 100, 200_000
EMPTY = f"{PREFIX}/no-such-page"
ORIGIN = "http://127.0.0.1:8000"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--large", is_flag=True, help=f"Also measure {LARGE:,} pages.")
@click.option("--pages", "only", type=click.IntRange(min=1), default=None, help="Measure only this number of pages.")
def main(large: bool, only: int | None) -> None:
    """Measure the server time and the bytes of each view."""
    sizes = (only,) if only else (*SIZES, LARGE) if large else SIZES
    console = Console(width=140)
    figures: list[Figure] = []
    for size in sizes:
        found = asyncio.run(measured(size))
        print_figures(console, found, f"The views of {size:,} pages and {FACTS:,} facts")
        figures += found
    sys.exit(0 if all(figure.is_reached for figure in figures) else 1)


async def measured(pages: int) -> list[Figure]:
    """Return the figures of a made-up memory: the floors first, then the views."""
    with tempfile.TemporaryDirectory(prefix="memoryos-page-") as name:
        folder = Path(name)
        embedder = BundledEmbedder()
        await write_memory(folder, pages, embedder, lambda _: None)
        await embedder.aclose()
        await _add_facts(folder, pages)
        settings = Settings(data_storage_path=folder, user_id=USER_ID)
        async with MemoryService(settings) as service, service.user(USER_ID) as engine:
            await _settled(engine)
            prepare_views()  # as ``ui`` does when it starts
            sessions = Sessions(time.monotonic)
            transport = httpx2.ASGITransport(make_page_app(service, sessions))
            async with httpx2.AsyncClient(transport=transport, base_url=ORIGIN, timeout=60) as http:
                key = sessions.one_time_key(Caller(USER_ID, frozenset({Scope.READ, Scope.WRITE})))
                await http.get(ENTER, params={"key": key})
                return await _figures(http, engine, folder)


async def _figures(http: httpx2.AsyncClient, engine: MemoryEngine, folder: Path) -> list[Figure]:
    empty_ms, _ = await _timed(lambda: http.get(EMPTY))
    query_ms = _bare_query_ms(folder)
    figures = [
        Figure("an empty page; a bare query of the store", "", f"{empty_ms:.1f}; {query_ms:.2f} ms", None, "", True)
    ]
    for what, address in await _addresses(engine):
        ms, answers = await _timed(lambda address=address: http.get(address))  # type: ignore[misc]
        status, size = answers[0].status_code, max(len(answer.content) for answer in answers)
        slowest = max(answer.elapsed / timedelta(milliseconds=1) for answer in answers)
        figures.append(
            Figure(
                what=what if status == 200 else f"{what} (status {status})",
                floor=f"{empty_ms + query_ms:.1f} ms",
                ours=f"{ms:.1f} ms (first {answers[0].elapsed / timedelta(milliseconds=1):.1f}, "
                f"slowest {slowest:.1f}), {size / 1000:.1f} kB",
                ratio=ms / (empty_ms + query_ms),
                target=f"{TIME_MS} ms, {BYTES // 1000} kB",
                is_reached=status == 200 and ms < TIME_MS and size < BYTES,
            )
        )
    return figures


async def _addresses(engine: MemoryEngine) -> list[tuple[str, str]]:
    """Return the title and the address of each view, and of a page of each kind of memory."""
    [page] = (await engine.listed(limit=1)).entries
    question = Grammar(random.Random(3)).question()  # noqa: S311 - made-up data
    views = [(title, f"{PREFIX}{path}") for path, title in MENU]
    found = ("Search: results", f"{PREFIX}/search?q={question.replace(' ', '+')}")
    kinds = {"page": page.id, "topic": "s1", "chain": "c1", "fact": "k1"}
    return [*views, found, *((f"One {kind}", memory_path(memory_id)) for kind, memory_id in kinds.items())]


async def _timed(
    call: Callable[[], Awaitable[httpx2.Response]],
) -> tuple[float, list[httpx2.Response]]:
    """Return the median time in milliseconds, and the answers."""
    seconds, answers = [], []
    for _ in range(ANSWERS):
        began = time.perf_counter()
        answers.append(await call())
        seconds.append(time.perf_counter() - began)
        answers[-1].elapsed = timedelta(seconds=seconds[-1])
    return percentile_ms(seconds, 50), answers


def _bare_query_ms(folder: Path) -> float:
    """Return the median time of reading the newest pages without our code."""
    connection = apsw.Connection(str(database_file(folder, USER_ID)), flags=apsw.SQLITE_OPEN_READONLY)
    seconds = []
    for _ in range(ANSWERS):
        began = time.perf_counter()
        connection.execute("SELECT * FROM pages ORDER BY seq DESC LIMIT 50").fetchall()
        seconds.append(time.perf_counter() - began)
    connection.close()
    return percentile_ms(seconds, 50)


async def _add_facts(folder: Path, pages: int) -> None:
    threads = StoreThreads(2)
    options = replace(OPTIONS, knowledge_capacity=FACTS)
    store = await SqliteStore.open(folder, USER_ID, options, threads=threads, clock=utc_now)
    lease = await store.take_lease(60)
    assert lease is not None  # noqa: S101 - the store is new
    facts = tuple(
        AddFact(About.USER, fact.text, None, utc_now() - timedelta(hours=n), (n % pages + 1,))
        for n, fact in enumerate(made_up()[:FACTS])
    )
    learning = Learning(segments=(), pages=[], lessons=Lessons((), facts), traits=(), learner="benchmark")
    await store.commit(lease, learning)
    await store.release_lease(lease)
    await store.close()
    threads.close()


async def _settled(engine: MemoryEngine) -> None:
    """Wait until no work in the background would be measured too."""
    async with asyncio.timeout(READY_AFTER_S):
        while True:
            stats = await engine.stats()
            if stats.is_settled and stats.is_semantic and not stats.counts.unembedded:
                return
            await asyncio.sleep(POLL_S)


if __name__ == "__main__":
    main()
