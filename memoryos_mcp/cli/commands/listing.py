"""The command ``memoryos-mcp list``: list pages, topics, facts or traits, newest first."""

import shlex
from collections.abc import Iterator, Mapping

from rich.console import RenderableType
from rich.text import Text

from memoryos_mcp.cli.command_line import PROGRAM
from memoryos_mcp.cli.commands.common import open_memory, tool_result
from memoryos_mcp.cli.terminal import minute, one_line, print_report, table
from memoryos_mcp.config import Settings
from memoryos_mcp.engine.tools.arguments import check
from memoryos_mcp.engine.tools.memory_arguments import ListMemoriesArguments
from memoryos_mcp.engine.tools.memory_results import ListMemoriesResult
from memoryos_mcp.engine.tools.memory_tools import list_memories
from memoryos_mcp.model.pages import ORDERS

# The tier of the tool for each kind of memory that can be listed.
_TIERS = {"pages": "pages", "topics": "segments", "facts": "knowledge", "traits": "profile"}


async def show_list(settings: Settings, given: Mapping[str, object], *, as_json: bool) -> None:
    """Print some memories of one kind, such as the 20 newest pages.

    The JSON output is the result of the tool ``list_memories``. ``given`` contains the arguments of this tool, except
    that ``tier`` is ``pages``, ``topics``, ``facts`` or ``traits``.
    """
    arguments = check(ListMemoriesArguments, {**given, "tier": _TIERS[str(given["tier"])]})
    async with open_memory(settings, only_reads=True) as (service, _):
        result = await tool_result(ListMemoriesResult, list_memories, service, arguments)
    print_report(result, _parts(result, given), as_json=as_json)


def _parts(result: ListMemoriesResult, given: Mapping[str, object]) -> Iterator[RenderableType]:
    if not result.memories:
        yield f"The list of {given['tier']} is empty."
        return
    rows = (
        (
            one_line(entry.id),
            minute(entry.timestamp),
            entry.segment_id or "",
            Text(f"{one_line(entry.beginning)}{f'  ({ORDERS})' if entry.gives_orders else ''}"),
        )
        for entry in result.memories
    )
    yield table(rows, "cyan", "dim", "", "", indent=0)
    if result.next_cursor is not None:
        options = [
            f"--{name}={value}" for name, value in given.items() if name not in {"tier", "cursor"} and value is not None
        ]
        line = [PROGRAM, "list", str(given["tier"]), *options, "--cursor", result.next_cursor]
        yield f"\nMore: {shlex.join(line)}"
