"""Output to a terminal or a pipe.

Rich uses no colour if stdout is a pipe, NO_COLOR is set, or TERM is dumb. If FORCE_COLOR is set, Rich uses colour in a
pipe too.
"""

import errno
import io
import json
import os
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import NoReturn

import click
from pydantic import BaseModel
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from memoryos_mcp.cli.command_line import PROGRAM

# Stored text is shown to people in the same form as to models. It cannot control the terminal.
from memoryos_mcp.text.quoting import one_line as one_line
from memoryos_mcp.text.quoting import plain as plain

# Width if stdout is not a terminal and COLUMNS is not set.
PIPED_COLUMNS = 120


class _StdoutConsole(Console):
    def on_broken_pipe(self) -> NoReturn:
        """Raise `BrokenPipeError`, which `command_line` handles. The base class would exit instead."""
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def prepare_stdout() -> None:
    """Make stdout replace characters that cannot be encoded. By default, such a character causes an error."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def make_console() -> Console:
    """Return a console for stdout."""
    prepare_stdout()
    is_width_known = "COLUMNS" in os.environ or (sys.stdout is not None and sys.stdout.isatty())
    return _StdoutConsole(highlight=False, markup=False, emoji=False, width=None if is_width_known else PIPED_COLUMNS)


def note(text: str) -> None:
    """Print a line to stderr, beginning with the program's name."""
    click.echo(f"{PROGRAM}: {text}", err=True)


def confirmed(question: str) -> bool:
    """Ask a question on stderr, and return whether the answer is yes."""
    # With the event loop's handler, Ctrl-C would not end the prompt.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return click.confirm(question, err=True)
    finally:
        signal.signal(signal.SIGINT, handler)


def print_report(result: object, parts: Iterable[RenderableType], *, as_json: bool) -> None:
    """Print ``result`` as JSON, or print ``parts`` as a report for people.

    Strings in ``parts`` are printed unchanged. All other parts, such as tables, are wrapped to fit the width of the
    terminal. If stdout is not a terminal, trailing spaces are removed from these other parts.
    """
    prepare_stdout()
    if as_json:
        click.echo(json.dumps(result.model_dump(mode="json") if isinstance(result, BaseModel) else result))
        return
    console = make_console()
    for index, part in enumerate(parts):
        if isinstance(part, str):
            click.echo(part)
            continue
        with console.capture() as capture:
            console.print(part)
        # A heading begins with an empty line, which is not needed at the top.
        shown = capture.get() if index else capture.get().removeprefix("\n")
        lines = shown.split("\n")
        console.file.write("\n".join(lines if console.is_terminal else (line.rstrip() for line in lines)))


def heading(title: str, remark: str = "") -> Text:
    """Return the title of a section, followed by a remark in a dim style."""
    return Text.assemble((f"\n{title}", "bold"), (f"  {remark}" if remark else "", "dim"))


def table(rows: Iterable[Sequence[RenderableType]], *styles: str, indent: int = 2) -> Padding:
    """Return an indented table with one column for each of ``styles``. The last column takes the remaining width."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    for style in styles[:-1]:
        grid.add_column(style=style, no_wrap=True)
    grid.add_column(style=styles[-1], overflow="fold")
    for row in rows:
        grid.add_row(*row)
    return Padding(grid, (0, 0, 0, indent))


def section(
    title: str, remark: str, rows: Iterable[Sequence[RenderableType]], *styles: str
) -> Iterator[RenderableType]:
    """Yield a heading and a table, or nothing if there are no rows. ``styles`` contains one style for each column."""
    if filled := list(rows):
        yield heading(title, remark)
        yield table(filled, *styles)


def day(timestamp: str) -> str:
    """Return the date of an ISO timestamp."""
    return timestamp[:10]


def minute(timestamp: str) -> str:
    """Return the date, hour and minute of an ISO timestamp."""
    return timestamp[:16].replace("T", " ")
