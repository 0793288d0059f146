"""The command ``memoryos-mcp search``: what the memory contains about a question, as assistants receive it."""

import asyncio
import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import click
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.text import Text

from memoryos_mcp.cli.commands.only_looking import INDENT, day, heading, minute, opened_to_look, print_parts, rows
from memoryos_mcp.cli.terminal import make_console, one_line, plain
from memoryos_mcp.config import Settings
from memoryos_mcp.engine.engine import MemoryEngine
from memoryos_mcp.engine.tools.arguments import RetrieveMemoryArguments, check
from memoryos_mcp.engine.tools.core_tools import retrieve_memory
from memoryos_mcp.engine.tools.pages import RetrievedPage, ShortTermPage
from memoryos_mcp.engine.tools.results import KnowledgeEntry, RetrieveMemoryResult
from memoryos_mcp.errors import ArgumentError, ModelError
from memoryos_mcp.model.knowledge import About
from memoryos_mcp.retrieval.budget import ELLIPSIS, roots
from memoryos_mcp.retrieval.recall import LeftOut
from memoryos_mcp.retrieval.rendering import KNOWN, TRAITS, WISHES, left_out_text
from memoryos_mcp.text.stemming import folded

# Time limit for loading the model; after that, search uses words only.
PATIENCE_S = 15.0
FOUND_STYLE = "bold yellow"
# Share of the visible characters that may precede the first match.
LEAD_SHARE = 0.25
SMALLEST_SNIPPET_CHARS = 24

_WORDS = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Form:
    """How a result is shown.

    Attributes:
        is_full: Whether pages are shown in full, not as one line each.
        is_explained: Whether the reasons for finding them are shown.
        as_json: Whether the tool's result is printed as one JSON object.
    """

    is_full: bool
    is_explained: bool
    as_json: bool


async def search_memory(settings: Settings, query: str, form: Form, *, max_results: int | None) -> None:
    """Print what the configured user's memory contains about a query; counts no visits and changes nothing.

    Args:
        settings: Select the user and the embedding model.
        query: A question or a few words.
        form: How the result is shown.
        max_results: Maximum number of older pages, in addition to the most recent ones; None means the setting.

    Raises:
        ArgumentError: The query is not valid.
        click.Abort: The memory does not exist.
        StorageError: The memory cannot be read.
    """
    console = make_console()
    given = {"query": query, "max_results": max_results, "explain": form.is_explained}
    arguments = check(RetrieveMemoryArguments, {name: value for name, value in given.items() if value is not None})
    if not query.strip():
        raise ArgumentError(argument="QUERY", problem="is empty; ask for something")
    async with opened_to_look(settings) as (service, engine):
        problem = await _load(engine, settings)
        result = (await retrieve_memory(service, settings.user_id, arguments)).result
        assert isinstance(result, RetrieveMemoryResult)  # noqa: S101 - for the type checker: the tool's own
        if problem is not None:
            way = "by words alone" if result.search_mode == "lexical" else "by the previous embedding model"
            click.echo(f"memoryos-mcp: search goes {way}: {plain(str(problem))}", err=True)
        if form.as_json:
            click.echo(json.dumps(result.model_dump(mode="json")))
        else:
            print_parts(console, _parts(result, form, console))
        if isinstance(problem, TimeoutError):
            # The thread that loads the model cannot be stopped, so the process exits without waiting for it.
            sys.stdout.flush()
            os._exit(0)


class _TooSlowError(TimeoutError):
    def __str__(self) -> str:
        return f"the embedding model was not ready within {PATIENCE_S:.0f} s; memoryos-mcp warmup loads it"


async def _load(engine: MemoryEngine, settings: Settings) -> Exception | None:
    """Load the embedding model if that is quick, and return why it failed. Nothing is downloaded."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    if settings.wants_no_embedder:
        return None
    spinner = Console(stderr=True).status("loading the embedding model") if sys.stderr.isatty() else nullcontext()
    try:
        with spinner:
            async with asyncio.timeout(PATIENCE_S):
                await engine.load_to_look()
    except TimeoutError:
        return _TooSlowError()
    except ModelError as error:
        return error
    return None


def _parts(result: RetrieveMemoryResult, form: Form, console: Console) -> Iterator[RenderableType]:
    found = roots(result.query)
    way = "by words and meaning" if result.search_mode == "hybrid" else "by words alone"
    if form.is_explained:
        yield from _understood(result)
    if result.retrieved_pages:
        yield heading("Earlier pages", f"best first, found {way}")
        for page in result.retrieved_pages:
            yield from _page(page, form, found, console)
    wishes = [fact for fact in result.retrieved_user_knowledge if fact.kind == "wish"]
    facts = [fact for fact in result.retrieved_user_knowledge if fact.kind != "wish"]
    yield from _facts(KNOWN[About.USER], "best first", facts, found)
    yield from _facts(KNOWN[About.ASSISTANT], "best first", result.retrieved_assistant_knowledge, found)
    is_found = result.retrieved_pages or facts or result.retrieved_assistant_knowledge
    if not is_found:
        yield Text("No earlier page and no fact was found.")
    if result.short_term_memory:
        yield heading("Most recent pages", "the last two, and what bears on the question")
        for recent in reversed(result.short_term_memory):
            yield from _page(recent, form, found, console)
    yield from _facts(WISHES, "newest first", wishes, found)
    if result.user_profile != "None":
        yield heading(TRAITS, "what bears on the question")
        for trait in result.user_profile.split("\n"):
            yield Padding(highlighted(one_line(trait), found), INDENT)
    if result.left_out is not None:
        left_out = LeftOut(**result.left_out.model_dump())
        yield Text(f"\n{left_out_text(left_out)}; --retrieval-max-tokens {left_out.max_tokens} shows all.", style="dim")


def _understood(result: RetrieveMemoryResult) -> Iterator[RenderableType]:
    asked = result.understood
    if asked is None:
        return
    words = ", ".join(f"{one_line(word)} (on {count:,} pages)" for word, count in asked.words.items())
    yield heading("Understood as", f"ranking {result.ranking}")
    lines = rows("dim", "")
    lines.add_row("about", Text(one_line(asked.subject)))
    lines.add_row("words", Text(words or "none that tell anything"))
    if asked.side:
        lines.add_row("said by", f"the {asked.side}, rather")
    if asked.times:
        lines.add_row("times", ", ".join(asked.times))
    if asked.several:
        lines.add_row("asks for", "several things, so sessions take turns")
    yield Padding(lines, INDENT)


def _page(page: ShortTermPage, form: Form, found: frozenset[str], console: Console) -> Iterator[RenderableType]:
    topic = (page.segment_id or "") if isinstance(page, RetrievedPage) else ""
    notes = [
        *([f"from {page.source}"] if page.source != "conversation" else []),
        *(["gives orders"] if page.gives_orders else []),
        *(["excerpt"] if page.excerpt and form.is_full else []),
    ]
    head = Text.assemble(
        "  ", (minute(page.timestamp) if form.is_full else day(page.timestamp), "dim"),
        "  ", (one_line(page.page_id), "cyan"), f"  {topic}" if topic else "",
        (f"  ({', '.join(notes)})" if notes else "", "dim"),
    )  # fmt: skip
    sides = [("user", page.user_input), ("assistant", page.agent_response)]
    if form.is_full:
        yield head
        said = rows("dim", "")
        for who, text in sides:
            if text.strip():
                said.add_row(f"{who}:", highlighted(plain(text), found))
        yield Padding(said, (0, 0, 0, 4))
    else:
        line = one_line(" / ".join(text for _, text in sides if text.strip()))
        room = max(SMALLEST_SNIPPET_CHARS, console.width - head.cell_len - 2)
        whole = Text.assemble(head, "  ", snippet(line, found, room))
        whole.truncate(console.width, overflow="ellipsis")
        yield whole
    if isinstance(page, RetrievedPage) and page.signals is not None:
        shares = sorted(page.signals.items(), key=lambda item: -abs(item[1]))
        why = ", ".join(f"{name} {share:+.2f}" for name, share in shares if share)
        yield Padding(Text(f"{page.score:.2f} = {why}", style="dim"), (0, 0, 0, 4))


def _facts(title: str, order: str, facts: Sequence[KnowledgeEntry], found: frozenset[str]) -> Iterator[RenderableType]:
    if not facts:
        return
    yield heading(title, order)
    table = rows("dim", "cyan", "")
    for fact in facts:
        until = f" (until {day(fact.valid_until)})" if fact.valid_until else ""
        table.add_row(day(fact.timestamp), fact.knowledge_id, highlighted(one_line(fact.knowledge) + until, found))
    yield Padding(table, INDENT)


def highlighted(text: str, found: frozenset[str]) -> Text:
    """Return a text with the words highlighted that contain a root of the query."""
    shown = Text(text)
    for start, end in _places(text, found):
        shown.stylize(FOUND_STYLE, start, end)
    return shown


def snippet(line: str, found: frozenset[str], room: int) -> Text:
    """Return a line, which begins a little before the first match if no match is in its first ``room`` characters."""
    first = next((start for start, end in _places(line, found) if end > room), None)
    if first is None or any(end <= room for _, end in _places(line, found)):
        return highlighted(line, found)
    begin = line.rfind(" ", 0, max(0, first - int(room * LEAD_SHARE))) + 1
    return Text.assemble(ELLIPSIS, highlighted(line[begin:], found))


def _places(text: str, found: frozenset[str]) -> Iterator[tuple[int, int]]:
    """Yield the spans of words that contain a root; in scripts without spaces, the spans of the root itself."""
    for match in _WORDS.finditer(text):
        word = match[0]
        plain_word = folded(word)
        for root in found:
            if root not in plain_word:
                continue
            at = word.casefold().find(root)
            if root.isascii() or at < 0:
                yield match.span()
            else:
                yield match.start() + at, match.start() + at + len(root)
