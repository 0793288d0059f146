"""The cost of retrieval: time compared with a forward pass of the query, growth with the memory, bytes per page."""

import asyncio
import itertools
import random
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import apsw
import psutil
from rich.progress import Progress

from benchmarks.figures import MB, POLL_S, Figure, percentile_ms
from benchmarks.floors import BareModel
from benchmarks.pipe import memory_server, opened
from benchmarks.synthetic import USER_ID, Grammar, write_memory
from memoryos_mcp.config import Settings
from memoryos_mcp.embedding import Passage
from memoryos_mcp.embedding.bundled import BundledEmbedder
from memoryos_mcp.engine.service import MemoryService
from memoryos_mcp.model.pages import Turn, page_text, utc_now
from memoryos_mcp.retrieval.retrieving import CODE_BYTES_AT_MOST
from memoryos_mcp.storage.sqlite.paths import database_file

SIZES = (10_000, 100_000, 1_000_000)
QUERIES = 200
ENCODINGS = 100
LONG_PAGES = 60
# The average page of the BEAM data set.
LONG_PAGE_CHARS = 5_500
# Tables of the index in SQLite's file.
INDEX_TABLES = ("page_words%", "page_vectors%", "page_tokens%", "pages_outline%", "names%")
KB = 1e3
READY_AFTER_S = 900.0


async def measure_retrieval(quick: bool, progress: Progress) -> list[Figure]:
    """Return every row of the table; ``quick`` omits the largest memory."""
    sizes = SIZES[:2] if quick else SIZES
    embedder, model = BundledEmbedder(), BareModel()
    figures: list[Figure] = []
    p50s: dict[int, float] = {}
    resident: dict[int, int] = {}
    with tempfile.TemporaryDirectory(prefix="memoryos-speed-") as name:
        for size in sizes:
            folder = Path(name) / str(size)
            written = progress.add_task(f"writing {size:,} pages", total=size)
            await write_memory(folder, size, embedder, partial(progress.advance, written))
            asked = progress.add_task(f"asking {size:,} pages", total=QUERIES)
            found, p50s[size], resident[size] = await _queries(folder, size, model, partial(progress.advance, asked, 1))
            figures += found if size == SIZES[0] else []
            if size == SIZES[0]:
                figures += [*_short_page_bytes(folder, size), await _code_bytes(folder)]
        figures += _growth(p50s, resident)
        figures.append(await _long_page_bytes(Path(name) / "long", progress))
        figures.append(await _encoding(embedder, model))
    await embedder.aclose()
    return figures


async def _queries(
    folder: Path, size: int, model: BareModel, advance: Callable[[], None]
) -> tuple[list[Figure], float, int]:
    """Return the rows of p50 and p99 with the floor, the p50 in ms, and the server's resident bytes."""
    grammar = Grammar(random.Random(2))  # noqa: S311 - made-up data
    floor, ours = [], []
    async with opened(*memory_server(folder, USER_ID)) as server, asyncio.timeout(READY_AFTER_S):
        while (await server.call("retrieve_memory", query="warm up")).content["search_mode"] != "hybrid":
            await asyncio.sleep(POLL_S)
        while not (await server.call("get_memory_stats")).content["is_settled"]:
            await asyncio.sleep(POLL_S)
        for _ in range(QUERIES):
            question = grammar.question()
            floor.append(model.forward(question))
            ours.append((await server.call("retrieve_memory", query=question)).took_s)
            advance()
        resident = psutil.Process(server.pid).memory_info().rss
    forward, p50 = percentile_ms(floor, 50), percentile_ms(ours, 50)
    return (
        [
            _versus_forward(f"retrieve_memory p50, {size:,} pages", forward, p50, 6),
            _versus_forward(f"retrieve_memory p99, {size:,} pages", forward, percentile_ms(ours, 99), 12),
        ],
        p50,
        resident,
    )


def _versus_forward(what: str, forward_ms: float, ours_ms: float, at_most: float) -> Figure:
    return Figure(
        what=what,
        floor=f"{forward_ms:.1f} ms (a forward pass)",
        ours=f"{ours_ms:.1f} ms",
        ratio=ours_ms / forward_ms,
        target=f"at most {at_most:g} x",
        is_reached=ours_ms <= at_most * forward_ms,
    )


def _growth(p50s: dict[int, float], resident: dict[int, int]) -> list[Figure]:
    base = SIZES[0]
    figures = [
        Figure(
            what=f"retrieve_memory p50, {base:,} to {size:,} pages",
            floor=f"{p50s[base]:.1f} ms",
            ours=f"{p50s[size]:.1f} ms",
            ratio=p50s[size] / p50s[base],
            target=f"under {limit:g} x",
            is_reached=p50s[size] < limit * p50s[base],
        )
        for size, limit in zip(SIZES[1:], (1.5, 3.0), strict=True)
        if size in p50s
    ]
    for small, large in itertools.pairwise(sorted(resident)):
        per_page = (resident[large] - resident[small]) / (large - small)
        what = f"resident bytes per page, {small:,} to {large:,} pages"
        figures.append(_bytes(what, per_page, 2.5))
    return figures


def _bytes(what: str, found: float, limit_kb: float) -> Figure:
    return Figure(what, "-", f"{found / KB:.2f} KB", None, f"under {limit_kb:g} KB", found < limit_kb * KB)


def _index_bytes(folder: Path) -> int:
    """Return the row of the size of the index in the file."""
    connection = apsw.Connection(str(database_file(folder, USER_ID)), flags=apsw.SQLITE_OPEN_READONLY)
    where = " OR ".join(["name LIKE ?"] * len(INDEX_TABLES))
    size = connection.execute(f"SELECT sum(pgsize) FROM dbstat WHERE {where}", INDEX_TABLES).get  # noqa: S608 - constant
    connection.close()
    return int(size)


def _short_page_bytes(folder: Path, size: int) -> list[Figure]:
    return [_bytes("index on disk per short page", _index_bytes(folder) / size, 12)]


async def _code_bytes(folder: Path) -> Figure:
    """Return the row of the maximum bytes of token vectors that a query reads."""
    grammar = Grammar(random.Random(3))  # noqa: S311 - made-up data
    async with MemoryService(Settings(data_storage_path=folder)) as service, service.user(USER_ID) as engine:
        while not (await engine.stats()).is_semantic:
            await asyncio.sleep(POLL_S)
        most = max([(await engine.candidates(grammar.question())).code_bytes for _ in range(QUERIES)])
    return Figure(
        what="token codes read per query, most",
        floor="-",
        ours=f"{most / MB:.2f} MB",
        ratio=None,
        target=f"at most {CODE_BYTES_AT_MOST / MB:g} MB",
        is_reached=0 < most <= CODE_BYTES_AT_MOST,
    )


async def _long_page_bytes(folder: Path, progress: Progress) -> Figure:
    """Return the row of the index size of long pages, embedded by the server's background work."""
    grammar = Grammar(random.Random(4))  # noqa: S311 - made-up data
    task = progress.add_task("embedding long pages", total=LONG_PAGES)
    settings = Settings(data_storage_path=folder)
    async with MemoryService(settings) as service, service.user(USER_ID) as engine:
        for _ in range(LONG_PAGES):
            turn = _long_turn(grammar)
            await engine.add(turn.user_input, turn.agent_response)
        while left := (await engine.stats()).counts.unembedded:
            progress.update(task, completed=LONG_PAGES - left)
            await asyncio.sleep(POLL_S)
    return _bytes(f"index on disk per page of {LONG_PAGE_CHARS:,} characters", _index_bytes(folder) / LONG_PAGES, 64)


def _long_turn(grammar: Grammar) -> Turn:
    sides = []
    for chars in (LONG_PAGE_CHARS // 5, LONG_PAGE_CHARS - LONG_PAGE_CHARS // 5):
        text = ""
        while len(text) < chars:
            text += grammar.sentence() + " "
        sides.append(text[:chars])
    return Turn(sides[0], sides[1], utc_now())


async def _encoding(embedder: BundledEmbedder, model: BareModel) -> Figure:
    """Return the row of the cost of encoding a page, compared with a forward pass of its text and the previous one."""
    grammar = Grammar(random.Random(5))  # noqa: S311 - made-up data
    floor, ours = [], []
    before = ""
    for _ in range(ENCODINGS):
        turn = grammar.turn(utc_now())
        text = page_text(turn.user_input, turn.agent_response)
        floor.append(model.forward(before, text))
        began = asyncio.get_running_loop().time()
        await embedder.embed_pages([Passage(turn.user_input, turn.agent_response)])
        ours.append(asyncio.get_running_loop().time() - began)
        before = text
    forward, own = percentile_ms(floor, 50), percentile_ms(ours, 50)
    return _versus_forward("encoding an added page, with tokenizing and codes", forward, own, 1.2)
