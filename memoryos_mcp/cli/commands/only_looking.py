"""What the commands share that show a memory in the terminal: how it is opened, and how times and ids are told."""

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

# How a list is set in under its heading.
INDENT = (0, 0, 0, 2)


@asynccontextmanager
async def opened_to_look(settings: Settings) -> AsyncIterator[tuple[MemoryService, MemoryEngine]]:
    """Yield the configured user's memory, in which nothing changes and no background work is done.

    Raises:
        click.Abort: There is none; that was told on stderr, and none was made.
        StorageError: It cannot be opened.
    """
    if not await is_there(settings):
        raise click.Abort
    async with MemoryService(settings, only_looks=True) as service, service.user(settings.user_id) as engine:
        yield service, engine


def heading(title: str, beside: str = "") -> Text:
    """Return the title of a section, with what is to be known about it."""
    return Text.assemble((f"\n{title}", "bold"), (f"  {beside}" if beside else "", "dim"))


def rows(*columns: str) -> Table:
    """Return an empty list with columns that stand as in the styles given, the last one as wide as there is room."""
    table = Table.grid(padding=(0, 2, 0, 0))
    for style in columns[:-1]:
        table.add_column(style=style, no_wrap=True)
    table.add_column(style=columns[-1], overflow="fold")
    return table


def print_parts(console: Console, parts: Iterable[RenderableType]) -> None:
    """Print what a command shows; in a pipe without the blanks that fill a line up."""
    for index, part in enumerate(parts):
        with console.capture() as capture:
            console.print(part)
        # A heading keeps a line from what stands before it; before the first there is nothing.
        shown = capture.get() if index else capture.get().removeprefix("\n")
        lines = shown.split("\n")
        console.file.write("\n".join(lines if console.is_terminal else (line.rstrip() for line in lines)))


def day(timestamp: str) -> str:
    """Return the day of a time as results tell it."""
    return timestamp[:10]


def minute(timestamp: str) -> str:
    """Return a time as results tell it, to the minute."""
    return timestamp[:16].replace("T", " ")
