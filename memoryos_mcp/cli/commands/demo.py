"""The command ``memoryos-mcp demo``: start a real server, add a conversation, restart the server, and ask questions.

As with a real client, the server runs in another process, over stdio. Its data folder is empty at the start.
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
# Visits are counted about once a second.
VISITS_TIMEOUT_S = 5.0
# A small number, so that retrieval has to choose.
MAX_RESULTS = 3
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
    """Run the demo, and print its output to stdout.

    ``server_command`` is the command line that starts the server, without ``--data-storage-path``. None means the
    server of this package.
    """
    console = make_console()
    console.width = min(console.width, WIDTH_COLUMNS)
    failure: BaseException | None = None
    with tempfile.TemporaryDirectory(prefix="memoryos-demo-", ignore_cleanup_errors=True) as folder:
        log_file = Path(folder) / "server.log"
        with log_file.open("w", encoding="utf-8") as log:
            try:
                await _Demo(console, server_command or SERVER_COMMAND, Path(folder) / "memory", log).run()
            except* (MemoryOSError, MCPError, OSError, anyio.BrokenResourceError, anyio.ClosedResourceError) as group:
                failure = group
        while isinstance(failure, BaseExceptionGroup):
            failure = failure.exceptions[0]
        if failure is not None:
            log_end = log_file.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_LINES_SHOWN:]
            lines = "\n".join([str(failure) or type(failure).__name__, *log_end])
            msg = f"the demo failed: {lines}\nto check this installation, run memoryos-mcp doctor"
            raise MemoryOSError(msg) from failure


class _Demo:
    """The steps of the demo. The stderr of the server is written to the file ``log``."""

    def __init__(self, console: Console, server_command: Sequence[str], data_folder: Path, log: TextIO) -> None:
        self._console = console
        self._server_command = server_command
        self._data_folder = data_folder
        self._log = log
        self._visits: Counter[str] = Counter()

    async def run(self) -> None:
        """Run all parts of the demo, and print what happens."""
        self._console.print(Rule(Text("MemoryOS: last month's conversation, remembered today", style="bold")))
        self._note(
            "A real server runs in another process with an empty folder: MCP over stdio, default settings, "
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
        """Start a server. Yield a connected client, and the number of seconds until the server's first reply."""
        arguments = [*self._server_command[1:], "--data-storage-path", str(self._data_folder)]
        parameters = StdioServerParameters(command=self._server_command[0], args=arguments)
        started = time.perf_counter()
        transport = stdio_client(parameters, errlog=self._log)
        async with Client(transport, read_timeout_seconds=CALL_TIMEOUT_S) as client:
            yield client, time.perf_counter() - started

    async def _converse(self, client: Client) -> None:
        """Add the conversation to the memory page by page, and print what the user said."""
        added = Table.grid(padding=(0, 2, 0, 0), expand=True)
        added.add_column(style="dim", width=len("2000-01-01"), no_wrap=True)
        added.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
        took_ms: list[float] = []
        for exchange, said_at in _dated(CONVERSATION):
            started = time.perf_counter()
            said = {"user_input": exchange.user_input, "agent_response": exchange.agent_response}
            arguments = {**said, "timestamp": said_at.isoformat()}
            receipt = await _call(client, "add_memory", AddMemoryResult, arguments)
            took_ms.append(_ms_since(started))
            added.add_row(receipt.timestamp[:10], Text(exchange.user_input))
        self._console.print(Padding(added, (1, 0, 1, 2)))
        self._note(
            f"{len(took_ms)} pages were added; each was on disk before the call returned. A call took "
            f"{statistics.median(took_ms):.1f} ms (median). The first call, which opens the store, took "
            f"{took_ms[0]:.0f} ms."
        )

    async def _settle(self, client: Client) -> GetMemoryStatsResult:
        """Wait until all pages are embedded and no other background work is due. Return the latest statistics."""
        batch_pages = (await _config(client))["consolidation_batch_pages"] or BATCH_PAGES

        def is_settled(stats: GetMemoryStatsResult) -> bool:
            # A topic has no visits yet and a recency below 1, so the number of its new pages decides whether it is hot.
            is_hot = any(segment.l_interaction >= stats.heat_threshold for segment in stats.top_segments)
            return not stats.unembedded_pages and stats.backlog_pages < batch_pages and not is_hot

        started = time.perf_counter()
        stats = await self._wait(client, "embedding, finding topics, learning about the user", is_settled)
        self._note(f"Embedding, finding topics and learning took {_ms_since(started) / 1e3:.1f} s in the background.")
        return stats

    async def _warm_up(self, client: Client) -> None:
        started = time.perf_counter()
        stats = await self._wait(client, "loading the embedding model", lambda stats: stats.search_mode == "hybrid")
        self._note(
            f"All {stats.total_pages} pages are still in the memory. Keyword search worked at once. "
            f"Search by meaning was ready {_ms_since(started) / 1e3:.1f} s later."
        )

    async def _wait(
        self, client: Client, what: str, is_done: Callable[[GetMemoryStatsResult], bool]
    ) -> GetMemoryStatsResult:
        """Show a spinner until ``is_done`` returns True for the server's statistics, and return these statistics.

        Raise `MemoryOSError` after `SETTLE_TIMEOUT_S` seconds. ``what`` is the text next to the spinner.
        """
        give_up_at = time.monotonic() + SETTLE_TIMEOUT_S
        columns = (TextColumn(" "), SpinnerColumn(), TextColumn("[dim]{task.description} ..."))
        progress = Progress(*columns, console=self._console, transient=True, disable=not self._console.is_terminal)
        with progress:
            progress.add_task(what, total=None)
            while not is_done(stats := await _stats(client)):
                if time.monotonic() > give_up_at:
                    msg = (
                        f"{what} took longer than {SETTLE_TIMEOUT_S:.0f} s; run memoryos-mcp doctor to find the cause. "
                        f"The server's statistics: {stats.model_dump_json()}"
                    )
                    raise MemoryOSError(msg)
                await anyio.sleep(POLL_S)
        return stats

    async def _ask(self, client: Client, question: Question) -> None:
        started = time.perf_counter()
        arguments = {"query": question.text, "max_results": MAX_RESULTS, "explain": True}
        result = await _call(client, "retrieve_memory", RetrieveMemoryResult, arguments)
        took_ms = _ms_since(started)
        self._visits.update({page.segment_id for page in result.retrieved_pages if page.segment_id})
        colour = COLOURS[question.look]
        found = Table.grid(padding=(0, 1, 0, 0))
        found.add_column(style=colour, width=LABEL_COLUMNS)
        found.add_column()
        for label, text in _shown(result, question.look):
            found.add_row(label, text)
        remark = (
            f"The reply contains {amount(result.short_term_count, 'recent page')}, "
            f"{amount(result.total_pages_found, 'older page')} and "
            f"{amount(result.total_user_knowledge_found, 'fact')}: about {result.token_estimate} tokens."
        )
        if question is QUESTIONS[0]:
            found.add_row("", Text(remark, style="dim"))
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
        tiers = (
            ("short-term", Look.SHORT_TERM, f"the last {stats.short_term_pages} pages, word for word"),
            (
                "backlog",
                None,
                f"{backlog} not yet organised, but already found by search" if stats.backlog_pages else "",
            ),
            ("mid-term", Look.MID_TERM, f"{pages} in {amount(stats.segments, 'topic')}: {topics}"),
            (
                "long-term",
                Look.PROFILE,
                f"{learned}, learned from topics that reached a heat of {stats.heat_threshold:g}",
            ),
        )
        rows = [(Text(tier, style=COLOURS[look] if look else ""), text) for tier, look, text in tiers if text]
        self._console.print(Padding(table(rows, "bold", ""), (1, 0)))

    async def _show_heat(self, client: Client, before: GetMemoryStatsResult) -> None:
        """Print the heat of each topic before and after the questions."""
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
        self._note(f"Questions about a topic raise its heat. Heat before and after: {'; '.join(changes)}.")

    def _show_next(self) -> None:
        command = shutil.which("memoryos-mcp", path=str(Path(sys.executable).parent)) or "memoryos-mcp"
        block = {"mcpServers": {"memoryos": {"command": command, "args": ["serve"]}}}
        self._console.print(Rule(Text("Your turn", style="bold")))
        for title, line in (
            ("Add the server to an MCP client: ", f"{command} install"),
            ("Or by hand, in its mcp.json:     ", json.dumps(block)),
            ("Start the server over stdio:     ", f"{command} serve"),
        ):
            self._console.print(Text.assemble((title, "dim"), line), soft_wrap=True)

    def _part(self, title: str, first_reply_s: float) -> None:
        self._console.print()
        self._console.print(Rule(Text(title, style="bold"), align="left"))
        self._note(f"The server replied {first_reply_s:.2f} s after its process was started.")

    def _note(self, text: str) -> None:
        self._console.print(Padding(Text(text), (0, 0, 0, 2)))


def _dated(conversation: Sequence[Exchange]) -> Iterator[tuple[Exchange, datetime]]:
    """Yield each exchange and its time. All times are in the evening; exchanges on the same day are minutes apart."""
    today = utc_now().astimezone().replace(hour=EVENING_HOUR, minute=0, second=0, microsecond=0)
    turns_of_day: Counter[int] = Counter()
    for exchange in conversation:
        day = exchange.days_ago
        yield exchange, today - timedelta(days=day) + timedelta(minutes=MINUTES_APART * turns_of_day[day])
        turns_of_day[day] += 1


async def _call(client: Client, tool: str, model: type[ResultT], arguments: dict[str, Any]) -> ResultT:
    """Call a tool, and return its validated result."""
    result = await client.call_tool(tool, arguments)
    if result.is_error or result.structured_content is None:
        text = " ".join(part.text for part in result.content if isinstance(part, TextContent))
        msg = f"the tool {tool} failed: {text}"
        raise MemoryOSError(msg)
    return model.model_validate(result.structured_content)


async def _stats(client: Client) -> GetMemoryStatsResult:
    return await _call(client, "get_memory_stats", GetMemoryStatsResult, {})


async def _config(client: Client) -> Any:
    """Return the server's current settings."""
    (content,) = (await client.read_resource("memoryos://config")).contents
    return json.loads(content.text) if isinstance(content, TextResourceContents) else {}


def _shown(result: RetrieveMemoryResult, look: Look) -> Iterator[tuple[str, Text]]:
    """Yield the best memories in a retrieval result as lines. Each line has a label and a text.

    ``look`` selects the kind of memories, such as facts. Short-term pages are shown newest first.
    """
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
    """Return a text about a page: where it was found, its score, and the largest components of the score."""
    largest = sorted((page.signals or {}).items(), key=lambda signal: -abs(signal[1]))[:SIGNALS_SHOWN]
    parts = ", ".join(f"{name} {share:+.1f}" for name, share in largest)
    score = f"score {page.score:.2f} ({parts})"
    if page.segment_id is None:
        return f"; in the {page.tier}; {score}"
    topic = topics[page.segment_id]
    return f"; topic {_keywords(topic)}, heat {topic.heat:.1f}; {score}"


def _reason(result: RetrieveMemoryResult, look: Look) -> str:
    """Return a phrase that says whether the best page was found by its words or by its meaning.

    A page that shares no word with the question was found by its meaning. The phrase is empty if no page was found, or
    if ``look`` is not `Look.MID_TERM`.
    """
    if look is not Look.MID_TERM or not result.retrieved_pages or result.understood is None:
        return ""
    best = result.retrieved_pages[0]
    said = {*stems(best.user_input), *stems(best.agent_response)}
    return f", found by its {'words' if said & set(map(stem, result.understood.words)) else 'meaning'}"


def _keywords(segment: RetrievedSegment | SegmentStats) -> str:
    return "/".join(segment.keywords[:KEYWORDS_SHOWN])


def _ms_since(started: float) -> float:
    return (time.perf_counter() - started) * 1e3
