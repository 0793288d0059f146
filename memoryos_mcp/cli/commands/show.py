"""The command ``memoryos-mcp show``: print memories, chosen by their ids, with evidence and history."""

import json
from collections.abc import Iterator, Sequence

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
from memoryos_mcp.model.pages import page_marks

# More tokens than any page has with default settings, so that pages are printed in full.
WHOLE_TOKENS = 1_000_000

Line = tuple[str, str | None]


async def show_memories(settings: Settings, ids: Sequence[str], *, as_json: bool) -> None:
    """Print the memories with these ids. The JSON output is the result of the tool ``get_memory``."""
    arguments = check(GetMemoryArguments, {"ids": list(ids), "max_tokens": WHOLE_TOKENS})
    async with open_memory(settings, only_reads=True) as (service, _):
        result = await tool_result(GetMemoryResult, get_memory, service, arguments)
    print_report(result, (part for memory in result.memories for part in _parts(memory)), as_json=as_json)


def _parts(memory: ShownMemory) -> Iterator[RenderableType]:
    yield Text.assemble((one_line(memory.id), "bold cyan"), f"  {memory.kind}")
    yield table([(name, Text(plain(text))) for name, text in _lines(memory) if text], "dim", "")
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
            yield f"pages ({memory.page_count:,})", ", ".join(memory.newest_pages)


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
    yield f"pages ({segment.page_count:,})", ", ".join(segment.newest_pages)


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
