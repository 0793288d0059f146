"""The command ``memoryos-mcp show``: print memories, chosen by their ids, with evidence and history."""

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from memoryos_mcp.cli.commands.common import open_memory, tool_result
from memoryos_mcp.cli.terminal import minute, one_line, plain, print_report, table
from memoryos_mcp.config import Settings
from memoryos_mcp.engine.tools.arguments import check
from memoryos_mcp.engine.tools.memory_arguments import GetMemoryArguments
from memoryos_mcp.engine.tools.memory_results import (
    FactBeside,
    GetMemoryResult,
    ShownChain,
    ShownFact,
    ShownMemory,
    ShownSegment,
    ShownTrait,
)
from memoryos_mcp.engine.tools.memory_tools import get_memory
from memoryos_mcp.engine.tools.pages import ShownPage
from memoryos_mcp.model.ids import Kind
from memoryos_mcp.model.pages import page_marks

if TYPE_CHECKING:
    from memoryos_mcp.engine.engine import MemoryEngine
    from memoryos_mcp.engine.inspection import ListPart

# More tokens than any page has with default settings, so that pages are printed in full.
WHOLE_TOKENS = 1_000_000
# Number of pages and of facts that are shown with a topic or a chain.
SHOWN_OF_TOPIC = 20

Line = tuple[str, str | None]


async def show_memories(settings: Settings, ids: Sequence[str], *, as_json: bool) -> None:
    """Print the memories with these ids. The JSON output is the result of the tool ``get_memory``."""
    arguments = check(GetMemoryArguments, {"ids": list(ids), "max_tokens": WHOLE_TOKENS})
    async with open_memory(settings, only_reads=True) as (service, engine):
        result = await tool_result(GetMemoryResult, get_memory, service, arguments)
        contents = {} if as_json else {memory.id: await _contents(engine, memory) for memory in result.memories}
    print_report(
        result, (part for each in result.memories for part in _parts(each, contents[each.id])), as_json=as_json
    )


async def _contents(engine: "MemoryEngine", memory: ShownMemory) -> "list[ListPart]":
    """Return the first pages and the first facts of a topic, or the first pages of a chain."""
    match memory:
        case ShownSegment():
            return [
                await engine.listed(topic=memory.id, is_by_time=True, limit=SHOWN_OF_TOPIC),
                await engine.listed(tier="knowledge", topic=memory.id, limit=SHOWN_OF_TOPIC),
            ]
        case ShownChain():
            return [await engine.listed(chain=int(memory.id[1:]), is_by_time=True, limit=SHOWN_OF_TOPIC)]
    return []


def _parts(memory: ShownMemory, contents: "Sequence[ListPart]") -> Iterator[RenderableType]:
    yield Text.assemble((one_line(memory.id), "bold cyan"), f"  {memory.kind}")
    yield table([(name, Text(plain(text))) for name, text in _lines(memory) if text], "dim", "")
    for part in contents:
        rows = [(one_line(e.id), minute(e.at.isoformat()), Text(one_line(e.beginning))) for e in part.entries]
        if rows:
            yield table(rows, "cyan", "dim", "", indent=4)
        if part.cursor is not None:
            what = f"facts --topic {memory.id}" if part.entries[0].kind is Kind.FACT else f"--topic {memory.id}"
            is_topic = isinstance(memory, ShownSegment)
            yield f"    There are more{f': memoryos-mcp list {what}' if is_topic else '.'}"
    yield ""


def _lines(memory: ShownMemory) -> Iterator[Line]:
    match memory:
        case ShownPage():
            yield from _page(memory)
        case ShownFact():
            yield from _fact(memory)
        case ShownTrait():
            yield from _trait(memory)
        case ShownSegment():
            yield from _segment(memory)
        case ShownChain():
            yield "summary", memory.summary
            yield "pages", f"{memory.page_count:,}, the newest first"


def _page(page: ShownPage) -> Iterator[Line]:
    yield "said", minute(page.timestamp)
    yield "tier", page.tier
    yield "topic", page.segment_id
    yield "chain", page.chain_id and f"{page.chain_id}: {one_line(page.chain_summary or '')}"
    yield "note", ", ".join(page_marks(page, is_excerpt=page.excerpt))
    yield "user", page.user_input
    yield "assistant", page.agent_response
    for name, neighbour in (("before it", page.previous_page), ("after it", page.next_page)):
        if neighbour is not None:
            yield name, f"{neighbour.page_id}, {minute(neighbour.timestamp)}: {neighbour.beginning}"
    yield "meta data", None if page.meta_data is None else json.dumps(page.meta_data, ensure_ascii=False)


def _segment(segment: ShownSegment) -> Iterator[Line]:
    yield "state", segment.state
    yield "heat", f"{segment.heat:.2f} ({segment.n_visit:,} visits, {segment.l_interaction:,} new pages)"
    yield "keywords", ", ".join(segment.keywords)
    yield "summary", segment.summary
    yield "pages", f"{segment.page_count:,}, the newest first, then facts"


def _fact(fact: ShownFact) -> Iterator[Line]:
    yield "text", fact.text
    yield "about", f"the {fact.about}"
    yield "state", fact.state
    yield "since", minute(fact.valid_from)
    yield "until", fact.valid_until and minute(fact.valid_until)
    yield "ended", fact.ended_by
    yield "learned by", fact.learned_by
    yield "said in", ", ".join(fact.evidence)
    yield from (("replaces", _beside(each)) for each in fact.supersedes)
    if fact.superseded_by is not None:
        yield "replaced by", _beside(fact.superseded_by)


def _trait(trait: ShownTrait) -> Iterator[Line]:
    yield "level", trait.level or "no longer a trait"
    yield "reason", trait.reason
    yield "since", trait.updated_at and minute(trait.updated_at)
    yield "learned by", trait.learned_by
    yield "shown in", ", ".join(trait.evidence)
    for past in trait.history:
        ended = f", {past.ended_by}" if past.ended_by else ""
        yield "before", f"{past.level}, until {minute(past.held_until)}{ended}: {past.reason}"


def _beside(fact: FactBeside) -> str:
    return f"{fact.id}: {fact.text}{f', {fact.ended_by}' if fact.ended_by else ''}"
