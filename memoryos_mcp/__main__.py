"""Entry point of ``memoryos-mcp`` and ``python -m memoryos_mcp``.

Importing the command line takes a moment. Ctrl-C ends the program with one line even then.
"""

import os
import signal
from types import FrameType, ModuleType

EXIT_INTERRUPTED = 130  # as in `command_line`, which is not loaded yet
STDERR = 2


def main() -> None:
    """Run the command line."""
    _loaded().main()


def serve_by_default() -> None:
    """Run the command line; without a command, serve."""
    _loaded().serve_by_default()


def _loaded() -> ModuleType:
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:  # otherwise it is ignored, as in a background job
        signal.signal(signal.SIGINT, _end)
    from memoryos_mcp.cli import main as command_line

    signal.signal(signal.SIGINT, handler)
    return command_line


def _end(_number: int, _frame: FrameType | None) -> None:
    # An exception raised during an import may be taken for an import error and swallowed.
    os.write(STDERR, b"\nmemoryos-mcp: interrupted\n")
    os._exit(EXIT_INTERRUPTED)


if __name__ == "__main__":
    main()
