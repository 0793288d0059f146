"""The cost of consolidation with an LLM in calls, tokens and time, compared with sequential calls.

Run ``python -m benchmarks.consolidation --data FILE``. The LLM is `benchmarks.llm_server`, a process of its own that
answers by simple rules after a given latency, so everything but the model is measured. The rules determine the numbers
of topics and facts, so calls and tokens of a real model differ somewhat.
"""

import asyncio
import itertools
import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

import click
import psutil
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks.client import ServerError
from benchmarks.datasets import Conversation, Page, load
from benchmarks.figures import percentile_ms
from benchmarks.llm_server import MODEL, LlmServer, Tally, running_llm_server
from benchmarks.pipe import Pipe, memory_server, opened
from benchmarks.synthetic import USER_ID
from benchmarks.words import WordEmbedder
from memoryos_mcp.cli.main import SWITCH_INTERVAL_S
from memoryos_mcp.config import Settings
from memoryos_mcp.engine.engine import MemoryEngine
from memoryos_mcp.engine.service import MemoryService
from memoryos_mcp.llm.chat import Purpose

LATENCY_MS = 200.0
# Sequential calls per page of the reference: continuity, meta information, and a share of the analysis.
REFERENCE_CALLS = "3 to 3.5"
SEQUENTIAL_CALLS = 3
CALLS_PER_PAGE_MAX = 0.6
FIXED_SHARE_MAX = 0.4
WALL_SHARE_MAX = 0.1
USERS_FACTOR_MAX = 1.5
PAGES = 300
SLOW_PAGES = 60
USERS = 20
REPEATS = 3
FLOOR_CALLS = 20
ADDS = 600
# Pages that are added to one server before the next server has its turn.
TURN_PAGES = 50
CONCURRENT_CALLS = 64
# The last, incomplete batch waits for a silence, which is short where time is measured.
IDLE_S = 0.05
# So short that every page is a batch of its own.
SLOW_IDLE_S = 0.1
POLL_S = 0.05
SETTLE_TIMEOUT_S = 300.0


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table.

    Attributes:
        baseline: The figure of the baseline; None without one.
        ratio: Our figure divided by the baseline.
        target: The target as text; None without one.
        is_reached: Whether the target was reached.
    """

    what: str
    ours: str
    baseline: str | None = None
    ratio: float | None = None
    target: str | None = None
    is_reached: bool | None = None


@dataclass(frozen=True, slots=True)
class Took:
    """Durations of a run, seconds.

    Attributes:
        wall_s: Time from the first add to the last commit.
        adding_s: Time until the last add was acknowledged.
        cpu_s: CPU time of the process with the memory, of all its threads.
        llm_cpu_s: CPU time of the LLM's process.
        all_cpu_s: CPU time of the whole machine.
        tally: The LLM server's counts.
    """

    wall_s: float
    adding_s: float
    cpu_s: float
    llm_cpu_s: float
    all_cpu_s: float
    tally: Tally


# Figures ------------------------------------------------------------------------------------------------------------


def calls_row(tally: Tally, pages: int, feeding: str, *, has_target: bool) -> Row:
    """Return the row of a whole conversation's calls, by purpose."""
    per_page = tally.calls / pages
    by_purpose = ", ".join(f"{purpose} {counts.calls}" for purpose, counts in tally.of.items() if counts.calls)
    repairs = sum(counts.repairs for counts in tally.of.values())
    return Row(
        what=f"LLM calls per page, {pages} pages {feeding} ({by_purpose}, of these repairs {repairs})",
        baseline=f"{REFERENCE_CALLS} (the reference)",
        ours=f"{per_page:.2f}",
        ratio=per_page / SEQUENTIAL_CALLS,
        target=f"at most {CALLS_PER_PAGE_MAX:g}" if has_target else None,
        is_reached=per_page <= CALLS_PER_PAGE_MAX if has_target else None,
    )


def token_rows(tally: Tally, pages: int) -> list[Row]:
    """Return the rows of prompt tokens: per page, share of fixed text, and one learn call compared with two."""
    prompt = sum(counts.prompt_tokens for counts in tally.of.values())
    system = sum(counts.system_tokens for counts in tally.of.values())
    schema = sum(counts.schema_tokens for counts in tally.of.values())
    per_purpose = ", ".join(f"{p} {c.prompt_tokens / c.calls:,.0f} a call" for p, c in tally.of.items() if c.calls)
    learn = tally.of[Purpose.LEARN]
    one_call = learn.prompt_tokens
    two_calls = one_call + (learn.prompt_tokens - learn.system_tokens)
    return [
        Row(f"prompt tokens per page ({per_purpose})", f"{prompt / pages:,.0f}"),
        Row(
            what="share of fixed text in the prompts: system messages",
            ours=f"{100 * system / prompt:.1f} %",
            target=f"under {100 * FIXED_SHARE_MAX:.0f} %",
            is_reached=system < FIXED_SHARE_MAX * prompt,
        ),
        Row(
            "the same with the schema in response_format counted in",
            f"{100 * (system + schema) / (prompt + schema):.1f} %",
        ),
        Row(
            what="learning: prompt tokens per page, one call for profile and facts, against two (estimate: the user "
            "message twice, the instructions once in two halves)",
            baseline=f"{two_calls / pages:,.0f}",
            ours=f"{one_call / pages:,.0f}",
            ratio=one_call / two_calls if two_calls else None,
        ),
    ]


def one_user_row(took: Took, call_s: float) -> Row:
    """Return the row of one user at a latency, compared with sequential calls."""
    sequential_s = PAGES * SEQUENTIAL_CALLS * call_s
    return Row(
        what=f"first add to all consolidated, {PAGES} pages, one user, over stdio, {LATENCY_MS:.0f} ms latency "
        f"({_parts(took)})",
        baseline=f"{sequential_s:.0f} s ({SEQUENTIAL_CALLS} calls a page of {1e3 * call_s:.0f} ms)",
        ours=f"{took.wall_s:.1f} s",
        ratio=took.wall_s / sequential_s,
        target=f"at most {WALL_SHARE_MAX:g} x",
        is_reached=took.wall_s <= WALL_SHARE_MAX * sequential_s,
    )


def users_row(alone: Took, together: Took, cores: int) -> Row:
    """Return the row of many users at once, compared with the larger of one user's time and the CPU time per core.

    The CPU time is that of the memory and of the LLM's server. Wall time cannot be shorter.
    """
    cpu_share_s = (together.cpu_s + together.llm_cpu_s) / cores
    floor_s = max(alone.wall_s, cpu_share_s)
    return Row(
        what=f"the same in process, {USERS} users at once, vectors known ({_parts(together)})",
        baseline=f"larger of {alone.wall_s:.1f} s (one user, CPU {alone.cpu_s:.1f} s) and {cpu_share_s:.1f} s "
        f"(CPU of both processes / {cores} cores)",
        ours=f"{together.wall_s:.1f} s",
        ratio=together.wall_s / floor_s,
        target=f"at most {USERS_FACTOR_MAX:g} x",
        is_reached=together.wall_s <= USERS_FACTOR_MAX * floor_s,
    )


def hanging_row(percent: float, without_s: Sequence[list[float]], hanging_s: list[float]) -> Row:
    """Return the row of a percentile of adding while the LLM hangs; noise is the difference of two runs without an LLM.

    Args:
        percent: The percentile.
        without_s: Seconds of each add, for two servers without an LLM.
        hanging_s: Seconds of each add, for the server whose LLM hangs.
    """
    first, second = (percentile_ms(samples, percent) for samples in without_s)
    ours = percentile_ms(hanging_s, percent)
    noise = abs(first - second)
    return Row(
        what=f"add_memory acknowledged while the LLM hangs, p{percent:g} of {len(hanging_s)}",
        baseline=f"{first:.2f} and {second:.2f} ms (two servers without an LLM)",
        ours=f"{ours:.2f} ms",
        ratio=2 * ours / (first + second),
        target=f"within noise: at most {max(first, second) + noise:.2f} ms",
        is_reached=ours <= max(first, second) + noise,
    )


def take(conversations: Sequence[Conversation], first: int, count: int) -> list[Page]:
    """Return a number of pages from a conversation and the following ones, which are repeated if necessary."""
    turned = [*conversations[first:], *conversations[:first]]
    return list(itertools.islice(itertools.cycle(page for one in turned for page in one.pages), count))


def _parts(took: Took) -> str:
    return (
        f"adding {took.adding_s:.1f} s, {took.tally.calls} calls, at most {took.tally.most_at_once} at once, "
        f"CPU {took.cpu_s:.1f} s, LLM's {took.llm_cpu_s:.1f} s, "
        f"others' {max(0.0, took.all_cpu_s - took.cpu_s - took.llm_cpu_s):.1f} s"
    )


class _Clock:
    """Measures the durations of a run, from its construction."""

    def __init__(self, process: psutil.Process, llm: LlmServer) -> None:
        self._process = process
        self._llm = llm
        self._at_start = self._read()

    def _read(self) -> tuple[float, float, float, float]:
        ours, machine = self._process.cpu_times(), psutil.cpu_times()
        return (
            time.perf_counter(),
            ours.user + ours.system,
            self._llm.cpu_s,
            sum(machine) - machine.idle - machine.iowait,
        )

    def so_far(self) -> list[float]:
        """Return seconds: wall time, and CPU time of the process, the LLM and the machine."""
        return [now - then for now, then in zip(self._read(), self._at_start, strict=True)]

    async def stop(self, adding_s: float) -> Took:
        """Return the durations of the run."""
        wall_s, cpu_s, llm_cpu_s, all_cpu_s = self.so_far()
        return Took(wall_s, adding_s, cpu_s, llm_cpu_s, all_cpu_s, await self._llm.tally())


# Over stdio ---------------------------------------------------------------------------------------------------------


def _server(folder: Path, llm: LlmServer, *flags: str) -> tuple[str, ...]:
    return (*memory_server(folder, USER_ID), "--openai-base-url", llm.base_url, "--llm-model", MODEL, *flags)


async def _add(server: Pipe, page: Page) -> float:
    """Add a page and return how long the answer took, seconds."""
    said = {"user_input": page.user_input, "agent_response": page.agent_response}
    return (await server.call("add_memory", **said, timestamp=page.timestamp.isoformat())).took_s


async def _poll(is_settled: Callable[[], Awaitable[bool]]) -> None:
    """Wait until all pages are consolidated.

    Raises:
        TimeoutError: Pages are still pending after `SETTLE_TIMEOUT_S`.
    """
    async with asyncio.timeout(SETTLE_TIMEOUT_S):
        while not await is_settled():
            await asyncio.sleep(POLL_S)


async def _settle(server: Pipe, *, backlog: int = 0) -> None:
    """Wait until at most ``backlog`` pages wait for their batch and no other work is pending."""

    async def is_settled() -> bool:
        stats = (await server.call("get_memory_stats")).content
        failures = {name: loop["last_error"] for name, loop in stats["background"].items() if loop["last_error"]}
        if failures:
            message = f"the background work failed, so the run is worth nothing: {failures}"
            raise ServerError(message)
        return bool(stats["is_settled"]) and stats["backlog_pages"] <= backlog

    await _poll(is_settled)


async def count_calls(folder: Path, pages: Sequence[Page], size: int, *flags: str) -> Tally:
    """Return the LLM server's counts for the consolidation of pages.

    Args:
        folder: The data folder.
        pages: The pages to add.
        size: Pages that are added at once. Due batches are consolidated before more are added.
        flags: Additional arguments of ``memoryos-mcp serve``.
    """
    async with running_llm_server(latency_ms=LATENCY_MS) as llm, opened(*_server(folder, llm, *flags)) as server:
        for start in range(0, len(pages), size):
            for page in pages[start : start + size]:
                await _add(server, page)
            await _settle(server, backlog=0 if size == 1 or start + size >= len(pages) else size - 1)
        return await llm.tally()


async def measure_calls(folder: Path, pages: Sequence[Page]) -> list[Row]:
    """Count calls and tokens of a whole conversation, added in three ways, concurrently because no time is measured."""
    batch = Settings(data_storage_path=folder).batch_pages(has_llm=True)
    at_once, steadily, slowly = await asyncio.gather(
        count_calls(folder / "at once", pages, len(pages)),
        count_calls(folder / "steadily", pages, batch),
        count_calls(folder / "slowly", pages[:SLOW_PAGES], 1, "--consolidation-idle-s", str(SLOW_IDLE_S)),
    )
    return [
        calls_row(at_once, len(pages), "added at once", has_target=True),
        calls_row(steadily, len(pages), "added one batch after another", has_target=True),
        calls_row(slowly, SLOW_PAGES, "added with a longer silence than the idle time after each", has_target=False),
        *token_rows(at_once, len(pages)),
    ]


async def time_one_user(folder: Path, pages: Sequence[Page], llm: LlmServer) -> Took:
    """Time one user over stdio."""
    async with opened(*_server(folder, llm, "--consolidation-idle-s", str(IDLE_S))) as server:
        await llm.reset()
        clock = _Clock(psutil.Process(server.pid), llm)
        for page in pages:
            await _add(server, page)
        adding_s, *_ = clock.so_far()
        await _settle(server)
        return await clock.stop(adding_s)


async def measure_one_user(folder: Path, pages: Sequence[Page], llm: LlmServer) -> list[Row]:
    """Time one user at the usual latency, compared with sequential calls, and without latency."""
    await llm.set_mode(latency_ms=LATENCY_MS)
    call_s = await asyncio.to_thread(llm.sequential_call_s, FLOOR_CALLS)
    row = one_user_row(await time_one_user(folder / "late", pages, llm), call_s)
    await llm.set_mode(latency_ms=0)
    took = await time_one_user(folder / "prompt", pages, llm)
    return [row, Row(f"the same without latency ({_parts(took)})", f"{took.wall_s:.1f} s")]


async def measure_hanging(folder: Path, pages: Sequence[Page], llm: LlmServer) -> list[Row]:
    """Time adding while the LLM hangs, in turns with two servers without an LLM, so that noise affects all."""
    await llm.set_mode(hangs=True)
    await llm.reset()
    async with (
        opened(*memory_server(folder / "first", USER_ID)) as first,
        opened(*memory_server(folder / "second", USER_ID)) as second,
        opened(*_server(folder / "hanging", llm)) as hanging,
    ):
        turns: list[tuple[Pipe, list[float]]] = [(first, []), (second, []), (hanging, [])]
        for number, start in enumerate(range(0, len(pages), TURN_PAGES)):
            # Each server is equally often early and late.
            for server, samples in turns[number % 3 :] + turns[: number % 3]:
                samples += [await _add(server, page) for page in pages[start : start + TURN_PAGES]]
                # The other servers are idle while one is timed.
                await _rest(server, is_hanging=server is hanging)
        if not (await llm.tally()).calls:
            message = "the LLM was not asked while it hung, so the run is worth nothing"
            raise ServerError(message)
    without, ours = [samples for _, samples in turns[:2]], turns[2][1]
    return [hanging_row(50, without, ours), hanging_row(99, without, ours)]


async def _rest(server: Pipe, *, is_hanging: bool) -> None:
    """Wait until a server is idle or waits only for its LLM."""
    if not is_hanging:
        await _settle(server, backlog=sys.maxsize)
        return

    async def is_embedded() -> bool:
        return not (await server.call("get_memory_stats")).content["unembedded_pages"]

    await _poll(is_embedded)


# In process ---------------------------------------------------------------------------------------------------------


async def time_users(folder: Path, pages: Sequence[Page], users: int, llm: LlmServer) -> Took:
    """Time users who add the same pages at once in this process; their memories are open before the measurement.

    Vectors are of words, so that no model's time is measured.
    """
    settings = Settings(
        data_storage_path=folder,
        openai_base_url=llm.base_url,
        llm_model=MODEL,
        consolidation_idle_s=IDLE_S,
        llm_max_concurrent_calls=CONCURRENT_CALLS,
    )

    async def add_all(engine: MemoryEngine) -> None:
        for page in pages:
            await engine.add(page.user_input, page.agent_response, timestamp=page.timestamp)

    async def settle(engine: MemoryEngine) -> None:
        async def is_settled() -> bool:
            stats = await engine.stats()
            failures = {name: health.last_error for name, health in stats.health.items() if health.last_error}
            if failures:
                message = f"the background work failed, so the run is worth nothing: {failures}"
                raise ServerError(message)
            return stats.is_settled and not stats.counts.backlog

        await _poll(is_settled)

    async with MemoryService(settings, embedder=WordEmbedder()) as service, AsyncExitStack() as stack:
        engines = [await stack.enter_async_context(service.user(f"user {number}")) for number in range(users)]
        await llm.reset()
        clock = _Clock(psutil.Process(), llm)
        await asyncio.gather(*map(add_all, engines))
        adding_s, *_ = clock.so_far()
        # One after another, because polling all of them would be measured too.
        for engine in engines:
            await settle(engine)
        return await clock.stop(adding_s)


async def measure_users(folder: Path, pages: Sequence[Page], llm: LlmServer) -> list[Row]:
    """Time many concurrent users, compared with a single one."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)  # as the command does
    await llm.set_mode(latency_ms=LATENCY_MS)
    # The imports of the first call must not be measured.
    await time_users(folder / "warm", pages[: math.ceil(len(pages) / 10)], 1, llm)
    alone = [await time_users(folder / f"alone {n}", pages, 1, llm) for n in range(REPEATS)]
    together = await time_users(folder / "together", pages, USERS, llm)
    return [
        users_row(sorted(alone, key=lambda took: took.wall_s)[REPEATS // 2], together, len(os.sched_getaffinity(0)))
    ]


# Report -------------------------------------------------------------------------------------------------------------


async def measure(conversations: Sequence[Conversation], first: int, progress: Progress) -> list[Row]:
    """Return every line of the table."""
    pages = take(conversations, first, PAGES)
    with tempfile.TemporaryDirectory(prefix="memoryos-consolidation-") as name:
        base = Path(name)
        async with running_llm_server() as llm:
            steps: list[tuple[str, Callable[[], Awaitable[list[Row]]]]] = [
                ("calls and tokens", lambda: measure_calls(base / "calls", conversations[first].pages)),
                ("one user", lambda: measure_one_user(base / "one", pages, llm)),
                ("many users", lambda: measure_users(base / "many", pages, llm)),
                ("hanging", lambda: measure_hanging(base / "hanging", take(conversations, first, ADDS), llm)),
            ]
            rows: list[Row] = []
            for title, step in progress.track(steps, description="consolidation"):
                progress.console.print(f"[dim]{title}[/dim]")
                rows += await step()
    return rows


def print_rows(console: Console, rows: Sequence[Row]) -> None:
    """Print the table."""
    table = Table(title="Consolidation with an LLM, compared with baselines of the same run")
    for column in ("what", "baseline", "ours", "ratio", "to reach", "verdict"):
        table.add_column(column, justify="left" if column == "what" else "right")
    verdicts = {None: "", True: "reached", False: "[bold red]missed[/bold red]"}
    for row in rows:
        ratio = "" if row.ratio is None else f"{row.ratio:.2f} x"
        table.add_row(row.what, row.baseline or "", row.ours, ratio, row.target or "", verdicts[row.is_reached])
    console.print(table)


@click.command()
@click.option(
    "--data",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    required=True,
    help="Conversations, in a format that benchmarks.retrieval reads.",
)
@click.option(
    "--conversation",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Number of the conversation, from 1.",
)
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write the rows to this file too.")
def main(data: Path, conversation: int, json_file: Path | None) -> None:
    """Measure the cost of consolidation with an LLM."""
    conversations = load(data).conversations
    if conversation > len(conversations):
        message = f"there are only {len(conversations)}"
        raise click.BadParameter(message, param_hint="--conversation")
    with Progress(console=Console(stderr=True)) as progress:
        rows = asyncio.run(measure(conversations, conversation - 1, progress))
    print_rows(Console(width=None if sys.stdout.isatty() else 170), rows)
    if json_file is not None:
        json_file.write_text(json.dumps([asdict(row) for row in rows], indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
