"""Stdout as a person or a pipe reads it: what was stored is shown and never obeyed, colour only where somebody sees it.

Rich decides about colour: none in a pipe, with NO_COLOR or where TERM is dumb; with FORCE_COLOR also in a pipe.
"""

import errno
import io
import os
import sys
from typing import NoReturn

from rich.console import Console

# Where there is no terminal and COLUMNS does not say either.
PIPED_COLUMNS = 120

# What a terminal obeys is shown by Unicode's pictures of it, or by U+FFFD where it has none; so are marks that would
# have text be read in another order than it stands in.
_SHOWN = (
    {code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n"}
    | dict.fromkeys(range(0x7F, 0xA0), 0xFFFD)
    | dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)], 0xFFFD)
)


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


def plain(text: str) -> str:
    """Return a text that a terminal shows as it is: no escape sequence; lines and tabs stay."""
    return text.translate(_SHOWN)


def one_line(text: str) -> str:
    """Return a text that a terminal shows as it is, in one line."""
    return plain(" ".join(text.split()))
