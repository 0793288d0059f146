"""The demo: a short conversation with a real server, a restart, and what it remembers afterwards.

The server runs as a client would run it: its own process, MCP over stdio, default settings, an empty folder. The
conversation is in `demo_script`; everything shown as remembered was returned by the server.
"""

import json
import shutil
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TextIO, TypeVar

import anyio
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError
from mcp_types import TextContent, TextResourceContents
from pydantic import BaseModel
from rich.console import Console
from rich.padding import Padding
from rich.panel import Panel
from rich.progress import Progress, SpinnerColumn, TextColumn
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from memoryos_mcp.cli.commands.demo_script import CONVERSATION, QUESTIONS, Exchange, Look, Question
from memoryos_mcp.cli.terminal import make_console, table
from memoryos_mcp.config import BATCH_PAGES
from memoryos_mcp.engine.tools.pages import AddMemoryResult, RetrievedPage, ShortTermPage
from memoryos_mcp.engine.tools.results import GetMemoryStatsResult, RetrievedSegment, RetrieveMemoryResult, SegmentStats
from memoryos_mcp.errors import MemoryOSError
from memoryos_mcp.model.pages import utc_now
from memoryos_mcp.text.amounts import amount
from memoryos_mcp.text.terms import stem, stems

SERVER_COMMAND = (sys.executable, "-m", "memoryos_mcp", "serve")
WIDTH_COLUMNS = 80
CALL_TIMEOUT_S = 60.0
SETTLE_TIMEOUT_S = 60.0
POLL_S = 0.05
# Retrievals are counted as visits about once a second.
VISITS_TIMEOUT_S = 5.0
# Few, so that retrieval has to choose.
PAGES_ASKED_FOR = 3
SIGNALS_SHOWN = 3
EVENING_HOUR = 19
MINUTES_APART = 3
RECENT_SHOWN, PAGES_SHOWN, FACTS_SHOWN, TRAITS_SHOWN, KEYWORDS_SHOWN = 2, 1, 2, 2, 3
LABEL_COLUMNS = 9
LOG_LINES_SHOWN = 5

ResultT = TypeVar("ResultT", bound=BaseModel)


COLOURS: Mapping[Look, str] = {
    Look.SHORT_TERM: "cyan",
    Look.MID_TERM: "yellow",
    Look.KNOWLEDGE: "green",
    Look.PROFILE: "magenta",
}


async def run_demo(server_command: Sequence[str] | None = None) -> None:
    """Show the demo on stdout; takes about ten seconds.

    Args:
        server_command: Starts the server, without the option for its folder; None means this package's server.
    """
    console = make_console()
    console.width = min(console.width, WIDTH_COLUMNS)
    failures: list[BaseException] = []
    with tempfile.TemporaryDirectory(prefix="memoryos-demo-", ignore_cleanup_errors=True) as folder:
        log_file = Path(folder) / "server.log"
        with log_file.open("w", encoding="utf-8") as log:
            try:
                await _Demo(console, server_command or SERVER_COMMAND, Path(folder) / "memory", log).run()
            except* (MemoryOSError, MCPError, OSError, anyio.BrokenResourceError, anyio.ClosedResourceError) as group:
                failures = list(_leaves(group))
        if failures:
            last_words = log_file.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_LINES_SHOWN:]
            told = "\n".join([str(failures[0]) or type(failures[0]).__name__, *last_words])
            msg = f"the demo's server failed: {told}"
            raise MemoryOSError(msg) from failures[0]


class _Demo:
    """The demo, step by step; ``log`` receives the server's stderr."""

    def __init__(self, console: Console, server_command: Sequence[str], data_folder: Path, log: TextIO) -> None:
        self._console = console
        self._server_command = server_command
        self._data_folder = data_folder
        self._log = log
        self._visits: Counter[str] = Counter()

    async def run(self) -> None:
        """Run both parts of the demo."""
        self._console.print(Rule(Text("MemoryOS: what was said last month, remembered today", style="bold")))
        self._note(
            "A real server in a process of its own, on an empty folder: MCP over stdio, default settings, "
            "no API key, no network."
        )
        async with self._server() as (client, first_reply_s):
            self._part("Part 1: a month of conversation", first_reply_s)
            await self._converse(client)
            before = await self._settle(client)
            self._show_tiers(before)
        async with self._server() as (client, first_reply_s):
            self._part("Part 2: the server was stopped and started again", first_reply_s)
            await self._warm_up(client)
            for question in QUESTIONS:
                await self._ask(client, question)
            await self._show_heat(client, before)
        self._show_next()

    @asynccontextmanager
    async def _server(self) -> AsyncIterator[tuple[Client, float]]:
        """Yield a client of a new server on the folder, and the seconds from process start to the first reply."""
        arguments = [*self._server_command[1:], "--data-storage-path", str(self._data_folder)]
        parameters = StdioServerParameters(command=self._server_command[0], args=arguments)
        started = time.perf_counter()
        transport = stdio_client(parameters, errlog=self._log)
        async with Client(transport, read_timeout_seconds=CALL_TIMEOUT_S) as client:
            yield client, time.perf_counter() - started

    async def _converse(self, client: Client) -> None:
        """Add the conversation page by page, and show it."""
        added = Table.grid(padding=(0, 2, 0, 0), expand=True)
        added.add_column(style="dim", width=len("2000-01-01"), no_wrap=True)
        added.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
        took_ms: list[float] = []
        for exchange, said_at in _dated(CONVERSATION):
            started = time.perf_counter()
            said = {"user_input": exchange.user_input, "agent_response": exchange.agent_response}
            given = {**said, "timestamp": said_at.isoformat()}
            receipt = await _call(client, "add_memory", AddMemoryResult, given)
            took_ms.append(_ms_since(started))
            added.add_row(receipt.timestamp[:10], Text(exchange.user_input))
        self._console.print(Padding(added, (1, 0, 1, 2)))
        self._note(
            f"{len(took_ms)} pages added, each on disk before its receipt: p50 {statistics.median(took_ms):.1f} ms "
            f"a call; the first, which opens the store, {took_ms[0]:.0f} ms."
        )

    async def _settle(self, client: Client) -> GetMemoryStatsResult:
        """Wait until everything is embedded and no consolidation is due; return the statistics."""
        batch_pages = (await _config(client))["consolidation_batch_pages"] or BATCH_PAGES

        def is_settled(stats: GetMemoryStatsResult) -> bool:
            # Without visits and with a recency under 1, a topic is hot if it has this many unread pages.
            is_hot = any(segment.l_interaction >= stats.heat_threshold for segment in stats.top_segments)
            return not stats.unembedded_pages and stats.backlog_pages < batch_pages and not is_hot

        started = time.perf_counter()
        stats = await self._wait(client, "embedding, finding topics, learning about the user", is_settled)
        self._note(
            f"Embedded, sorted into topics and learned from in the background: {_ms_since(started) / 1e3:.1f} s."
        )
        return stats

    async def _warm_up(self, client: Client) -> None:
        started = time.perf_counter()
        stats = await self._wait(client, "loading the embedding model", lambda stats: stats.search_mode == "hybrid")
        self._note(
            f"All {stats.total_pages} pages are there. Words are searched from the first call on, meaning after "
            f"another {_ms_since(started) / 1e3:.1f} s."
        )

    async def _wait(
        self, client: Client, what: str, is_done: Callable[[GetMemoryStatsResult], bool]
    ) -> GetMemoryStatsResult:
        """Return the first statistics for which ``is_done`` is true."""
        give_up_at = time.monotonic() + SETTLE_TIMEOUT_S
        columns = (TextColumn(" "), SpinnerColumn(), TextColumn("[dim]{task.description} ..."))
        progress = Progress(*columns, console=self._console, transient=True, disable=not self._console.is_terminal)
        with progress:
            progress.add_task(what, total=None)
            while not is_done(stats := await _stats(client)):
                if time.monotonic() > give_up_at:
                    msg = f"{what}: not done after {SETTLE_TIMEOUT_S:.0f} s; {stats.model_dump_json()}"
                    raise MemoryOSError(msg)
                await anyio.sleep(POLL_S)
        return stats

    async def _ask(self, client: Client, question: Question) -> None:
        started = time.perf_counter()
        arguments = {"query": question.text, "max_results": PAGES_ASKED_FOR, "explain": True}
        result = await _call(client, "retrieve_memory", RetrieveMemoryResult, arguments)
        took_ms = _ms_since(started)
        self._visits.update({page.segment_id for page in result.retrieved_pages if page.segment_id})
        colour = COLOURS[question.look]
        found = Table.grid(padding=(0, 1, 0, 0))
        found.add_column(style=colour, width=LABEL_COLUMNS)
        found.add_column()
        for label, text in _shown(result, question.look):
            found.add_row(label, text)
        beside = (
            f"The reply also holds {amount(result.short_term_count, 'recent page')}, "
            f"{amount(result.total_pages_found, 'page')} found and "
            f"{amount(result.total_user_knowledge_found, 'fact')}: about {result.token_estimate} tokens."
        )
        if question is QUESTIONS[0]:
            found.add_row("", Text(beside, style="dim"))
        self._console.print(
            Panel(
                found,
                title=Text(question.text, style="bold"),
                title_align="left",
                subtitle=Text(f"{question.look.value}{_reason(result, question.look)}, {took_ms:.0f} ms", style=colour),
                subtitle_align="right",
                border_style=colour,
            )
        )

    def _show_tiers(self, stats: GetMemoryStatsResult) -> None:
        pages, backlog = amount(stats.mid_term_pages, "page"), amount(stats.backlog_pages, "page")
        topics = ", ".join(f"{_keywords(segment)} ({segment.page_count})" for segment in stats.top_segments)
        learned = f"{amount(stats.traits, 'trait')} and {amount(stats.user_knowledge, 'fact')}"
        told = (
            ("short-term", Look.SHORT_TERM, f"the last {stats.short_term_pages} pages, word for word"),
            ("backlog", None, f"{backlog} waiting for the next batch, found already" if stats.backlog_pages else ""),
            ("mid-term", Look.MID_TERM, f"{pages} in {amount(stats.segments, 'topic')}: {topics}"),
            ("long-term", Look.PROFILE, f"{learned}, learned from topics that reached heat {stats.heat_threshold:g}"),
        )
        rows = [(Text(tier, style=COLOURS[look] if look else ""), text) for tier, look, text in told if text]
        self._console.print(Padding(table(rows, "bold", ""), (1, 0)))

    async def _show_heat(self, client: Client, before: GetMemoryStatsResult) -> None:
        """Show how the questions have warmed the topics."""
        with anyio.move_on_after(VISITS_TIMEOUT_S):
            await self._wait(
                client,
                "counting visits",
                lambda stats: all(s.n_visit >= self._visits[s.segment_id] for s in stats.top_segments),
            )
        earlier = {segment.segment_id: segment.heat for segment in before.top_segments}
        changes = [
            f"{_keywords(segment)} {earlier.get(segment.segment_id, 0.0):.1f} → {segment.heat:.1f}"
            for segment in (await _stats(client)).top_segments
        ]
        self._note(f"Being asked about warms a topic. Heat before and now: {'; '.join(changes)}.")

    def _show_next(self) -> None:
        command = shutil.which("memoryos-mcp", path=str(Path(sys.executable).parent)) or "memoryos-mcp"
        block = {"mcpServers": {"memoryos": {"command": command, "args": ["serve"]}}}
        self._console.print(Rule(Text("Your turn", style="bold")))
        for title, line in (
            ("Add it to an MCP client:       ", f"{command} install"),
            ("Or by hand, in its mcp.json:   ", json.dumps(block)),
            ("The server itself, over stdio: ", f"{command} serve"),
        ):
            self._console.print(Text.assemble((title, "dim"), line), soft_wrap=True)

    def _part(self, title: str, first_reply_s: float) -> None:
        self._console.print()
        self._console.print(Rule(Text(title, style="bold"), align="left"))
        self._note(f"First reply {first_reply_s:.2f} s after the start of the process.")

    def _note(self, text: str) -> None:
        self._console.print(Padding(Text(text), (0, 0, 0, 2)))


def _dated(conversation: Sequence[Exchange]) -> Iterator[tuple[Exchange, datetime]]:
    """Yield each exchange with its time, in the evening of its day; those of one evening are minutes apart."""
    today = utc_now().astimezone().replace(hour=EVENING_HOUR, minute=0, second=0, microsecond=0)
    turns_of_day: Counter[int] = Counter()
    for exchange in conversation:
        day = exchange.days_ago
        yield exchange, today - timedelta(days=day) + timedelta(minutes=MINUTES_APART * turns_of_day[day])
        turns_of_day[day] += 1


async def _call(client: Client, tool: str, model: type[ResultT], arguments: dict[str, Any]) -> ResultT:
    """Return a tool's validated result."""
    result = await client.call_tool(tool, arguments)
    if result.is_error or result.structured_content is None:
        said = " ".join(part.text for part in result.content if isinstance(part, TextContent))
        msg = f"{tool} was refused: {said}"
        raise MemoryOSError(msg)
    return model.model_validate(result.structured_content)


async def _stats(client: Client) -> GetMemoryStatsResult:
    return await _call(client, "get_memory_stats", GetMemoryStatsResult, {})


async def _config(client: Client) -> Any:
    """Return the server's current settings."""
    (content,) = (await client.read_resource("memoryos://config")).contents
    return json.loads(content.text) if isinstance(content, TextResourceContents) else {}


def _shown(result: RetrieveMemoryResult, look: Look) -> Iterator[tuple[str, Text]]:
    """Yield the best results of one tier, as labels and texts."""
    if look is Look.SHORT_TERM:
        for page in reversed(result.short_term_memory[-RECENT_SHOWN:]):
            yield from _page(page, "")
    elif look is Look.MID_TERM:
        topics = {segment.segment_id: segment for segment in result.segments}
        for found in result.retrieved_pages[:PAGES_SHOWN]:
            yield from _page(found, _origin(found, topics))
    elif look is Look.KNOWLEDGE:
        for fact in result.retrieved_user_knowledge[:FACTS_SHOWN]:
            yield "fact", Text(fact.knowledge)
            yield "", Text(f"said {fact.timestamp[:10]}; score {fact.score:.2f}", style="dim")
    else:
        for trait in result.user_profile.splitlines()[:TRAITS_SHOWN]:
            yield "trait", Text(trait)


def _page(page: ShortTermPage, origin: str) -> Iterator[tuple[str, Text]]:
    if page.user_input:
        yield "user", Text(page.user_input)
    if page.agent_response:
        yield "assistant", Text(page.agent_response)
    yield "", Text(f"said {page.timestamp[:10]}{origin}", style="dim")


def _origin(page: RetrievedPage, topics: Mapping[str, RetrievedSegment]) -> str:
    """Return where a page was found, and the main parts of its score."""
    largest = sorted((page.signals or {}).items(), key=lambda signal: -abs(signal[1]))[:SIGNALS_SHOWN]
    parts = ", ".join(f"{name} {share:+.1f}" for name, share in largest)
    score = f"score {page.score:.2f} ({parts})"
    if page.segment_id is None:
        return f"; waiting in the {page.tier}; {score}"
    topic = topics[page.segment_id]
    return f"; topic {_keywords(topic)}, heat {topic.heat:.1f}; {score}"


def _reason(result: RetrieveMemoryResult, look: Look) -> str:
    """Return whether the best page was found by its words, or by its meaning if it has no word of the question."""
    if look is not Look.MID_TERM or not result.retrieved_pages or result.understood is None:
        return ""
    best = result.retrieved_pages[0]
    said = {*stems(best.user_input), *stems(best.agent_response)}
    return f", found by its {'words' if said & set(map(stem, result.understood.words)) else 'meaning'}"


def _keywords(segment: RetrievedSegment | SegmentStats) -> str:
    return "/".join(segment.keywords[:KEYWORDS_SHOWN])


def _ms_since(started: float) -> float:
    return (time.perf_counter() - started) * 1e3


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error
