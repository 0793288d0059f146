"""Output on stdout, for a person or a pipe. Stored text cannot control the terminal.

Rich decides about colour: none in a pipe, with NO_COLOR or where TERM is dumb; with FORCE_COLOR also in a pipe.
"""

import errno
import io
import os
import sys
from typing import NoReturn

from rich.console import Console

# A terminal is shown stored text in the same form as a model.
from memoryos_mcp.text.quoting import one_line as one_line
from memoryos_mcp.text.quoting import plain as plain

# Width without a terminal and without COLUMNS.
PIPED_COLUMNS = 120


class _StdoutConsole(Console):
    def on_broken_pipe(self) -> NoReturn:
        """Raise, so that the command line handles a reader that has left."""
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def prepare_stdout() -> None:
    """Replace characters that the console cannot show, instead of failing."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def make_console() -> Console:
    """Return a console for stdout, as wide as the terminal."""
    prepare_stdout()
    is_width_known = "COLUMNS" in os.environ or (sys.stdout is not None and sys.stdout.isatty())
    return _StdoutConsole(highlight=False, markup=False, emoji=False, width=None if is_width_known else PIPED_COLUMNS)
