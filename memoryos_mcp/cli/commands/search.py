"""The command ``memoryos-mcp search``: search a memory as an assistant would."""

import asyncio
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext

from rich.console import Console, RenderableType
from rich.text import Text

from memoryos_mcp.cli.commands.common import open_memory, tool_result
from memoryos_mcp.cli.terminal import (
    day,
    heading,
    make_console,
    minute,
    note,
    one_line,
    plain,
    print_report,
    section,
    table,
)
from memoryos_mcp.config import Settings
from memoryos_mcp.engine.engine import MemoryEngine
from memoryos_mcp.engine.tools.arguments import RetrieveMemoryArguments, check
from memoryos_mcp.engine.tools.core_tools import retrieve_memory
from memoryos_mcp.engine.tools.pages import RetrievedPage, ShortTermPage
from memoryos_mcp.engine.tools.results import KnowledgeEntry, RetrieveMemoryResult, UnderstoodQuery
from memoryos_mcp.errors import ArgumentError, ModelError
from memoryos_mcp.model.knowledge import About
from memoryos_mcp.model.pages import page_marks
from memoryos_mcp.retrieval.budget import ELLIPSIS, matches, roots
from memoryos_mcp.retrieval.recall import LeftOut
from memoryos_mcp.retrieval.rendering import KNOWN, TRAITS, WISHES, left_out_text

# Seconds to wait for the embedding model; after that, search uses only keywords.
LOAD_TIMEOUT_S = 15.0
FOUND_STYLE = "bold yellow"
# Share of a snippet's visible characters that come before the first match.
LEAD_SHARE = 0.25
SMALLEST_SNIPPET_CHARS = 24


async def search_memory(
    settings: Settings,
    query: str,
    *,
    max_results: int | None,
    project: str | None,
    is_full: bool,
    is_explained: bool,
    as_json: bool,
) -> None:
    """Print the pages, facts and traits in the configured user's memory that match a query.

    The memory is not changed. The JSON output is the result of the tool ``retrieve_memory``.
    """
    given = {"query": query, "max_results": max_results, "project": project, "explain": is_explained}
    arguments = check(RetrieveMemoryArguments, {name: value for name, value in given.items() if value is not None})
    if not query.strip():
        raise ArgumentError(argument="query", problem="the query is empty; enter a question or a few words")
    async with open_memory(settings, only_reads=True) as (service, engine):
        problem = await _load(engine, settings)
        result = await tool_result(RetrieveMemoryResult, retrieve_memory, service, arguments)
        if problem is not None:
            way = "only keywords" if result.search_mode == "lexical" else "the previous embedding model"
            note(f"search uses {way}: {plain(str(problem))}")
        print_report(result, _parts(result, is_full=is_full), as_json=as_json)
        if isinstance(problem, TimeoutError):
            # The thread that loads the model cannot be stopped, so the process exits without waiting for it.
            sys.stdout.flush()
            os._exit(0)


class _TooSlowError(TimeoutError):
    def __str__(self) -> str:
        return f"the embedding model was not ready within {LOAD_TIMEOUT_S:.0f} s; run memoryos-mcp warmup once"


async def _load(engine: MemoryEngine, settings: Settings) -> Exception | None:
    """Load the embedding model without downloading it.

    Return the error if loading fails or takes too long, else None.
    """
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    if settings.wants_no_embedder:
        return None
    spinner = Console(stderr=True).status("loading the embedding model") if sys.stderr.isatty() else nullcontext()
    try:
        with spinner:
            async with asyncio.timeout(LOAD_TIMEOUT_S):
                await engine.load_to_look()
    except TimeoutError:
        return _TooSlowError()
    except ModelError as error:
        return error
    return None


def _parts(result: RetrieveMemoryResult, *, is_full: bool) -> Iterator[RenderableType]:
    found = roots(result.query)
    way = "by keywords and meaning" if result.search_mode == "hybrid" else "by keywords only"
    if result.understood is not None:
        yield from section("Understood as", f"ranking {result.ranking}", _understood(result.understood), "dim", "")
    if result.retrieved_pages:
        yield heading("Older pages", f"best first, found {way}")
        for page in result.retrieved_pages:
            yield from _page(page, found, is_full=is_full)
    wishes = [fact for fact in result.retrieved_user_knowledge if fact.kind == "wish"]
    facts = [fact for fact in result.retrieved_user_knowledge if fact.kind != "wish"]
    yield from _facts(KNOWN[About.USER], "best first", facts, found)
    yield from _facts(KNOWN[About.ASSISTANT], "best first", result.retrieved_assistant_knowledge, found)
    if not (result.retrieved_pages or facts or result.retrieved_assistant_knowledge):
        yield Text("No older page and no fact was found.")
    if result.short_term_memory:
        yield heading("Most recent pages", "the last two, and others related to the query")
        for recent in reversed(result.short_term_memory):
            yield from _page(recent, found, is_full=is_full)
    yield from _facts(WISHES, "newest first", wishes, found)
    if result.user_profile != "None":
        traits = ((highlighted(one_line(trait), found),) for trait in result.user_profile.split("\n"))
        yield from section(TRAITS, "related to the query", traits, "")
    if result.left_out is not None:
        left_out = LeftOut(**result.left_out.model_dump())
        yield Text(
            f"\n{left_out_text(left_out)}; --retrieval-max-tokens {left_out.max_tokens} shows everything.", style="dim"
        )


def _understood(query: UnderstoodQuery) -> Iterator[tuple[str, RenderableType]]:
    words = ", ".join(f"{one_line(word)} (on {count:,} pages)" for word, count in query.words.items())
    yield "about", Text(one_line(query.subject))
    yield "words", Text(words or "none to search for")
    if query.side:
        yield "said by", f"preferably the {query.side}"
    if query.times:
        yield "times", ", ".join(query.times)
    if query.several:
        yield "asks for", "several things, so results come from different sessions"


def _page(page: ShortTermPage, found: frozenset[str], *, is_full: bool) -> Iterator[RenderableType]:
    topic = (page.segment_id or "") if isinstance(page, RetrievedPage) else ""
    notes = page_marks(page, is_excerpt=page.excerpt and is_full)
    head = Text.assemble(
        "  ", (minute(page.timestamp) if is_full else day(page.timestamp), "dim"),
        "  ", (one_line(page.page_id), "cyan"), f"  {topic}" if topic else "",
        (f"  ({', '.join(notes)})" if notes else "", "dim"),
    )  # fmt: skip
    said = [
        (side, text) for side, text in (("user", page.user_input), ("assistant", page.agent_response)) if text.strip()
    ]
    if is_full:
        yield head
        yield table([(f"{side}:", highlighted(plain(text), found)) for side, text in said], "dim", "", indent=4)
    else:
        width = make_console().width
        room = max(SMALLEST_SNIPPET_CHARS, width - head.cell_len - 2)
        line = Text.assemble(head, "  ", snippet(one_line(" / ".join(text for _, text in said)), found, room))
        line.truncate(width, overflow="ellipsis")
        yield line
    if isinstance(page, RetrievedPage) and page.signals is not None:
        shares = sorted(page.signals.items(), key=lambda item: -abs(item[1]))
        why = ", ".join(f"{name} {share:+.2f}" for name, share in shares if share)
        yield table([(Text(f"{page.score:.2f} = {why}", style="dim"),)], "", indent=4)


def _facts(title: str, order: str, facts: Sequence[KnowledgeEntry], found: frozenset[str]) -> Iterator[RenderableType]:
    rows = []
    for fact in facts:
        until = f" (until {day(fact.valid_until)})" if fact.valid_until else ""
        rows.append((day(fact.timestamp), fact.knowledge_id, highlighted(one_line(fact.knowledge) + until, found)))
    yield from section(title, order, rows, "dim", "cyan", "")


def highlighted(text: str, found: frozenset[str]) -> Text:
    """Return the text with the words of the query highlighted. ``found`` contains the `roots` of the query."""
    shown = Text(text)
    for start, end in matches(text, found):
        shown.stylize(FOUND_STYLE, start, end)
    return shown


def snippet(line: str, found: frozenset[str], room: int) -> Text:
    """Return the line with the words of the query highlighted. ``found`` contains the `roots` of the query.

    Only the first ``room`` characters will be visible. If they contain no match, an ellipsis replaces the beginning of
    the line, and the rest starts shortly before the first match.
    """
    first = next((start for start, end in matches(line, found) if end > room), None)
    if first is None or any(end <= room for _, end in matches(line, found)):
        return highlighted(line, found)
    begin = line.rfind(" ", 0, max(0, first - int(room * LEAD_SHARE))) + 1
    return Text.assemble(ELLIPSIS, highlighted(line[begin:], found))
