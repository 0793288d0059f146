"""Stdout as a person or a pipe reads it: what was stored is shown and never obeyed, colour only where somebody sees it.

Rich decides about colour: none in a pipe, with NO_COLOR or where TERM is dumb; with FORCE_COLOR also in a pipe.
"""

import errno
import io
import os
import sys
from typing import NoReturn

from rich.console import Console

# What a terminal is shown of stored text is what a model is shown.
from memoryos_mcp.text.quoting import one_line as one_line
from memoryos_mcp.text.quoting import plain as plain

# Where there is no terminal and COLUMNS does not say either.
PIPED_COLUMNS = 120


class _StdoutConsole(Console):
    def on_broken_pipe(self) -> NoReturn:
        """Leave it to the command line what becomes of a reader who has gone."""
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def prepare_stdout() -> None:
    """Have a character that a console cannot show replaced: it is no reason to fail."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def make_console() -> Console:
    """Return what prints to stdout, as wide as the terminal."""
    prepare_stdout()
    is_width_known = "COLUMNS" in os.environ or (sys.stdout is not None and sys.stdout.isatty())
    return _StdoutConsole(highlight=False, markup=False, emoji=False, width=None if is_width_known else PIPED_COLUMNS)
