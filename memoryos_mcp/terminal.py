"""Stdout as a person or a pipe reads it."""

import io
import sys


def prepare_stdout() -> None:
    """Have a character that a console cannot show replaced: it is no reason to fail."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
