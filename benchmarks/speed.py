"""Speed and memory of the server, compared with floors that are measured in the same run.

Run ``python -m benchmarks.speed``; ``--quick`` omits the largest memory. The server is measured at the pipes of the
real command, as a client over stdio is. A floor is the cost of the same work without the server. Calls of floor and
server alternate, so that other load on the machine affects both.
"""

import asyncio
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from statistics import median

import click
import numpy as np
import psutil
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress, TaskID

from benchmarks.figures import MB, POLL_S, Figure, percentile_ms, print_figures
from benchmarks.floors import BareStore, bare_query, read_once
from benchmarks.pipe import BARE_SERVER, initialize_params, memory_server, opened
from benchmarks.retrieval_speed import measure_retrieval
from benchmarks.synthetic import USER_ID, Grammar, write_memory
from memoryos_mcp.cli.commands.installing import local_server
from memoryos_mcp.cli.installer import files, planning
from memoryos_mcp.cli.installer.catalogue import CLIENTS
from memoryos_mcp.cli.installer.entries import NAME
from memoryos_mcp.cli.installer.places import Location
from memoryos_mcp.cli.main import SWITCH_INTERVAL_S
from memoryos_mcp.config import Settings
from memoryos_mcp.embedding.bundled import BundledEmbedder
from memoryos_mcp.engine.service import MemoryService
from memoryos_mcp.model.pages import utc_now
from memoryos_mcp.storage.sqlite.paths import database_file

STARTS = 11
ADDS = 300
FACTS, FACT_AFTER_S = 50, 20.0
QUERIES = 150
OPENINGS = 5
WRITERS, PAGES_PER_WRITER = 4, 150
SIZES = (1_000, 10_000, 100_000)
ROOT = Path(__file__).parent.parent

_INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize_params()}


def _versus(what: str, floor: float, ours: float, unit: str, at_most: float) -> Figure:
    return Figure(
        what=what,
        floor=f"{floor:.2f} {unit}",
        ours=f"{ours:.2f} {unit}",
        ratio=ours / floor,
        target=f"at most {at_most:g} x",
        is_reached=ours <= at_most * floor,
    )


def measure_start(folder: Path, advance: Callable[[], None]) -> list[Figure]:
    """Time from the start of the process to the first reply, as started here and as by a desktop client."""
    floor, ours, bare, clients = [], [], [], []
    held = _command_of_a_client(folder)
    for _ in range(STARTS):
        floor.append(_first_reply_s([sys.executable, *BARE_SERVER]))
        ours.append(_first_reply_s([sys.executable, *memory_server(folder, USER_ID)]))
        # The bare server is a module in this folder, which is found from the working folder.
        bare.append(_first_reply_s([sys.executable, *BARE_SERVER], env={}, cwd=ROOT))
        clients.append(_first_reply_s(held, env={}, cwd=Path(ROOT.anchor)))
        advance()
    return [
        _versus("process start to the first reply, median", median(floor), median(ours), "s", 1.3),
        _versus("the same by a client's file, no environment", median(bare), median(clients), "s", 1.3),
    ]


def _first_reply_s(command: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> float:
    began = time.perf_counter()
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env, cwd=cwd
    ) as process:
        if process.stdin is None or process.stdout is None:
            message = "the pipes of a process were not opened"
            raise RuntimeError(message)
        process.stdin.write(json.dumps(_INITIALIZE).encode() + b"\n")
        process.stdin.flush()
        reply = process.stdout.readline()
        took_s = time.perf_counter() - began
        process.stdin.close()
        process.wait()
    if not reply:
        message = f"{command[0]} ended without a reply"
        raise RuntimeError(message)
    return took_s


def _command_of_a_client(folder: Path) -> list[str]:
    """Add the server to a client's file with ``memoryos-mcp install``, and return the command line in it."""
    client, file = CLIENTS["claude-desktop"], folder / "claude_desktop_config.json"
    folder.mkdir(parents=True, exist_ok=True)
    found = Location(client, "user", file, is_client_there=True)
    server = local_server(None, USER_ID, str(folder))
    planning.plan_install(found, server, NAME, is_forced=False).carry_out(utc_now())
    entry = planning.entries_of(client, files.read(file))[NAME]
    return [entry["command"], *entry["args"]]


async def measure_adds(folder: Path, advance: Callable[[], None]) -> list[Figure]:
    """Time of adds during embedding and consolidation, compared with a bare commit plus a bare tool call."""
    grammar = Grammar(random.Random(1))  # noqa: S311 - made-up data
    floor, ours = [], []
    with BareStore(folder / "bare.db") as bare_store:
        async with opened(*BARE_SERVER) as bare, opened(*memory_server(folder, USER_ID)) as server:
            for _ in range(ADDS):
                turn = grammar.turn(utc_now())
                sides = {"user_input": turn.user_input, "agent_response": turn.agent_response}
                began = time.perf_counter()
                bare_store.add(**sides)
                commit_s = time.perf_counter() - began
                floor.append(commit_s + (await bare.call("echo", **sides)).took_s)
                ours.append((await server.call("add_memory", **sides)).took_s)
                advance()
            waiting = (await server.call("get_memory_stats")).content
            note = f"{ADDS - waiting['unembedded_pages']} pages embedded, {waiting['mid_term_pages']} filed meanwhile"
    return [
        _versus(f"add_memory acknowledged, p50 ({note})", percentile_ms(floor, 50), percentile_ms(ours, 50), "ms", 2),
        _versus("add_memory acknowledged, p99", percentile_ms(floor, 99), percentile_ms(ours, 99), "ms", 8),
    ]


async def measure_facts(folder: Path, advance: Callable[[], None]) -> Figure:
    """Time from adding a page until the profile shows its fact, with no other work pending."""
    waits_s = []
    async with opened(*memory_server(folder, USER_ID)) as server, asyncio.timeout(FACTS * FACT_AFTER_S):
        for number in range(FACTS):
            await server.call("add_memory", user_input=f"I'm allergic to additive E{number}.", agent_response="Nice.")
            began = time.perf_counter()
            while f"additive E{number}." not in str((await server.call("get_user_profile")).content):
                await asyncio.sleep(POLL_S)
            waits_s.append(time.perf_counter() - began)
            advance()
    p50, p95 = (percentile_ms(waits_s, percent) / 1e3 for percent in (50, 95))
    return Figure(
        what="from a page's receipt to its fact in the profile, no LLM, p50 and p95",
        floor="-",
        ours=f"{p50:.2f} and {p95:.2f} s",
        ratio=None,
        target="p95 under 2 s",
        is_reached=p95 < 2,
    )


async def measure_queries(
    folder: Path, vectors: NDArray[np.float32], embedder: BundledEmbedder, advance: Callable[[], None]
) -> tuple[Figure, float, int]:
    """Return the p50 of retrieval with its floor, the p50 in ms, and the server's resident bytes."""
    grammar = Grammar(random.Random(2))  # noqa: S311 - made-up data
    floor, ours = [], []
    search = bare_query(database_file(folder, USER_ID), vectors, embedder)
    async with opened(*memory_server(folder, USER_ID)) as server:
        while (await server.call("retrieve_memory", query="warm up")).content["search_mode"] != "hybrid":
            await asyncio.sleep(POLL_S)
        for _ in range(QUERIES):
            question = grammar.question()
            floor.append(await search(question))
            reply = await server.call("retrieve_memory", query=question)
            ours.append(reply.took_s)
            advance()
        resident = psutil.Process(server.pid).memory_info().rss
    name = f"retrieve_memory p50, {len(vectors):,} pages"
    p50 = percentile_ms(ours, 50)
    return _versus(name, percentile_ms(floor, 50), p50, "ms", 2), p50, resident


async def measure_opening(folder: Path, pages: int, advance: Callable[[], None]) -> list[Figure]:
    """Median time to open a large memory in a process with loaded models."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)  # as the command does
    read_s, lexical_s, full_s = [], [], []
    for _ in range(OPENINGS):
        async with MemoryService(Settings(data_storage_path=folder)) as service:
            async with service.user("somebody else") as other:
                while not (await other.stats()).is_semantic:
                    await asyncio.sleep(POLL_S)
            read_s.append(read_once(database_file(folder, USER_ID)))
            began = time.perf_counter()
            async with service.user(USER_ID) as engine:
                await engine.retrieve("the violin by the river")
                lexical_s.append(time.perf_counter() - began)
                while not (await engine.stats()).is_semantic:
                    await asyncio.sleep(POLL_S)
                await engine.retrieve("the violin by the river")
                full_s.append(time.perf_counter() - began)
        advance()
    floor, lexical, full = (median(samples) for samples in (read_s, lexical_s, full_s))
    read = f"{floor * 1e3:.0f} ms (file read once)"
    what = f"opening a user with {pages:,} pages"
    return [
        Figure(f"{what}, to lexical search", read, f"{lexical * 1e3:.0f} ms", None, "under 100 ms", lexical < 0.1),
        Figure(f"{what}, to full search", read, f"{full:.2f} s", None, "under 2 s", full < 2),
    ]


async def measure_writers(folder: Path) -> Figure:
    """Throughput of several server processes that write to one user at once; every page must exist once."""

    async def write(writer: int) -> list[str]:
        async with opened(*memory_server(folder, USER_ID)) as server:
            said = [f"Writer {writer} says number {number}." for number in range(PAGES_PER_WRITER)]
            replies = [await server.call("add_memory", user_input=text, agent_response="Noted.") for text in said]
            return [reply.content["page_id"] for reply in replies]

    began = time.perf_counter()
    receipts = [page_id for ids in await asyncio.gather(*map(write, range(WRITERS))) for page_id in ids]
    took_s = time.perf_counter() - began
    async with opened(*memory_server(folder, USER_ID)) as server:
        kept = (await server.call("get_memory_stats")).content["total_pages"]
    sent = WRITERS * PAGES_PER_WRITER
    return Figure(
        what=f"{sent} pages by {WRITERS} processes on one folder",
        floor="-",
        ours=f"{kept} kept, {len(set(receipts))} receipts, {took_s:.1f} s with the starts",
        ratio=None,
        target="none lost, doubled, refused",
        is_reached=kept == len(set(receipts)) == sent,
    )


async def measure(sizes: tuple[int, ...], progress: Progress) -> list[Figure]:
    """Return every row of the table."""

    def step(title: str, total: int) -> Callable[[], None]:
        task: TaskID = progress.add_task(title, total=total)
        return lambda: progress.advance(task)

    with tempfile.TemporaryDirectory(prefix="memoryos-speed-") as name:
        base = Path(name)
        figures = await asyncio.to_thread(measure_start, base / "start", step("starts", STARTS))
        figures += await measure_adds(base / "adds", step("adds", ADDS))
        figures.append(await measure_facts(base / "facts", step("facts", FACTS)))
        embedder = BundledEmbedder()
        p50s: list[float] = []
        for size in sizes:
            folder = base / str(size)
            written = progress.add_task(f"writing {size:,} pages", total=size)
            vectors = await write_memory(folder, size, embedder, partial(progress.advance, written))
            figure, p50, resident = await measure_queries(folder, vectors, embedder, step(f"{size:,} pages", QUERIES))
            figures.append(figure)
            p50s.append(p50)
        if sizes == SIZES:
            figures += _of_the_largest(p50s, vectors.nbytes, resident)
        del vectors
        figures += await measure_opening(base / str(sizes[-1]), sizes[-1], step("openings", OPENINGS))
        figures.append(await measure_writers(base / "writers"))
        await embedder.aclose()
    return figures


def _of_the_largest(p50s: list[float], vector_bytes: int, resident: int) -> list[Figure]:
    growth = p50s[-1] / p50s[-2]
    allowed = 2.5 * vector_bytes + 250 * MB
    return [
        Figure(
            what=f"retrieve_memory p50, growth from {SIZES[-2]:,} to {SIZES[-1]:,} pages",
            floor="-",
            ours=f"{growth:.1f} x",
            ratio=None,
            target="under 6 x",
            is_reached=growth < 6,
        ),
        Figure(
            what=f"resident memory at {SIZES[-1]:,} pages",
            floor=f"{vector_bytes / MB:.0f} MB (the vectors)",
            ours=f"{resident / MB:.0f} MB",
            ratio=resident / vector_bytes,
            target=f"at most 2.5 x + 250 MB = {allowed / MB:.0f} MB",
            is_reached=resident <= allowed,
        ),
    ]


@click.command()
@click.option("--quick", is_flag=True, help="Omit the largest memory.")
@click.option("--retrieval", is_flag=True, help="Measure only retrieval, with up to a million pages, and the index.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write the figures to this file too.")
def main(quick: bool, retrieval: bool, json_file: Path | None) -> None:
    """Measure the server's speed and memory, compared with floors."""
    with Progress(console=Console(stderr=True)) as progress:
        if retrieval:
            figures = asyncio.run(measure_retrieval(quick, progress))
        else:
            figures = asyncio.run(measure(SIZES[:2] if quick else SIZES, progress))
    print_figures(Console(width=None if sys.stdout.isatty() else 150), figures)
    if json_file is not None:
        json_file.write_text(json.dumps([asdict(figure) for figure in figures], indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
