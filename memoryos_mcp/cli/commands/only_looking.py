"""Shared helpers of the commands that show a memory: opening it read-only, layout and times."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import click
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from memoryos_mcp.cli.commands.common import is_there
from memoryos_mcp.config import Settings
from memoryos_mcp.engine.engine import MemoryEngine
from memoryos_mcp.engine.service import MemoryService

# Indentation of a list under its heading.
INDENT = (0, 0, 0, 2)


@asynccontextmanager
async def opened_to_look(settings: Settings) -> AsyncIterator[tuple[MemoryService, MemoryEngine]]:
    """Yield the configured user's memory, read-only and without background work.

    Raises:
        click.Abort: The memory does not exist, which was reported on stderr.
        StorageError: The memory cannot be opened.
    """
    if not await is_there(settings):
        raise click.Abort
    async with MemoryService(settings, only_looks=True) as service, service.user(settings.user_id) as engine:
        yield service, engine


def heading(title: str, beside: str = "") -> Text:
    """Return the title of a section, with a note beside it."""
    return Text.assemble((f"\n{title}", "bold"), (f"  {beside}" if beside else "", "dim"))


def rows(*columns: str) -> Table:
    """Return an empty table with one column per style; the last one takes the remaining width."""
    table = Table.grid(padding=(0, 2, 0, 0))
    for style in columns[:-1]:
        table.add_column(style=style, no_wrap=True)
    table.add_column(style=columns[-1], overflow="fold")
    return table


def print_parts(console: Console, parts: Iterable[RenderableType]) -> None:
    """Print the parts of an output; in a pipe, without trailing blanks."""
    for index, part in enumerate(parts):
        with console.capture() as capture:
            console.print(part)
        # A heading begins with an empty line, which the first part does not need.
        shown = capture.get() if index else capture.get().removeprefix("\n")
        lines = shown.split("\n")
        console.file.write("\n".join(lines if console.is_terminal else (line.rstrip() for line in lines)))


def day(timestamp: str) -> str:
    """Return the day of a result's timestamp."""
    return timestamp[:10]


def minute(timestamp: str) -> str:
    """Return a result's timestamp, to the minute."""
    return timestamp[:16].replace("T", " ")
