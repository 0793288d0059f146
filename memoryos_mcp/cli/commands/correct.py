"""The command ``memoryos-mcp correct``: correct or restore a fact or trait."""

from collections.abc import Iterator, Mapping

from memoryos_mcp.cli.commands.common import open_memory, tool_result
from memoryos_mcp.cli.terminal import one_line, print_report
from memoryos_mcp.config import Settings
from memoryos_mcp.engine.tools.arguments import check
from memoryos_mcp.engine.tools.memory_arguments import CorrectMemoryArguments
from memoryos_mcp.engine.tools.memory_results import CorrectMemoryResult
from memoryos_mcp.engine.tools.memory_tools import correct_memory

_DONE = {
    "corrected": "Corrected. To undo it: memoryos-mcp correct {} --restore",
    "restored": "Restored: {} is valid again.",
    "dry_run": "This was a dry run; nothing was changed.",
}


async def correct(settings: Settings, given: Mapping[str, object], *, as_json: bool) -> None:
    """Correct a fact or trait, or undo its correction, and print the change.

    ``given`` contains the arguments of the tool ``correct_memory``. The JSON output is the result of this tool.
    """
    arguments = check(CorrectMemoryArguments, dict(given))
    async with open_memory(settings) as (service, _):
        result = await tool_result(CorrectMemoryResult, correct_memory, service, arguments)
    print_report(result, _lines(result), as_json=as_json)


def _lines(result: CorrectMemoryResult) -> Iterator[str]:
    now = f" ({one_line(result.holds_now)})" if result.holds_now else ""
    yield one_line(result.corrected)
    yield f"  before: {one_line(result.before) if result.before is not None else 'none'}"
    yield f"  after{now}: {one_line(result.after) if result.after is not None else 'none'}"
    yield _DONE[result.status].format(one_line(result.corrected))
