"""The command ``memoryos-mcp add``: store one page."""

import sys
from collections.abc import Iterator, Mapping

from memoryos_mcp.cli.commands.common import open_memory, tool_result
from memoryos_mcp.cli.terminal import minute, note, one_line, print_report
from memoryos_mcp.config import Settings
from memoryos_mcp.engine.tools.arguments import check
from memoryos_mcp.engine.tools.core_tools import add_memory
from memoryos_mcp.engine.tools.pages import AddMemoryArguments, AddMemoryResult
from memoryos_mcp.errors import ArgumentError

STDIN = "-"


async def add(settings: Settings, given: Mapping[str, str], *, as_json: bool) -> None:
    """Store one page in the configured user's memory, and print the id of the page.

    ``given`` contains the arguments of the tool ``add_memory``. The JSON output is the result of this tool. If
    ``user_input`` is ``-``, the text is read from stdin.
    """
    text = _from_stdin() if given["user_input"] == STDIN else given["user_input"]
    arguments = check(AddMemoryArguments, {**given, "user_input": text})
    async with open_memory(settings, is_created=True) as (service, _):
        result = await tool_result(AddMemoryResult, add_memory, service, arguments)
    print_report(result, _lines(result), as_json=as_json)


def _from_stdin() -> str:
    if sys.stdin.isatty():
        note("enter the text, then press Ctrl-D (on Windows Ctrl-Z and Enter)")
    try:
        return sys.stdin.buffer.read().decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        raise ArgumentError(argument="stdin", problem="the text is not in UTF-8; convert it to UTF-8") from None


def _lines(result: AddMemoryResult) -> Iterator[str]:
    yield f"{'Stored' if result.is_new else 'Already stored'}: {one_line(result.page_id)}, {minute(result.timestamp)}"
    if result.redacted:
        yield f"Secrets removed: {', '.join(result.redacted)}"
