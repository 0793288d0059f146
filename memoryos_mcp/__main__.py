"""``python -m memoryos_mcp`` is the command ``memoryos-mcp``, and this is where both begin.

Loading the command line takes a moment, in which Ctrl-C is to end the program as it does later: in one line.
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
    """Run the command line; without a command it serves."""
    _loaded().serve_by_default()


def _loaded() -> ModuleType:
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:  # else it is ignored, as in a shell's background
        signal.signal(signal.SIGINT, _end)
    from memoryos_mcp.cli import main as command_line

    signal.signal(signal.SIGINT, handler)
    return command_line


def _end(_number: int, _frame: FrameType | None) -> None:
    # Raised in the middle of an import, an exception may be taken for one of the module's and swallowed.
    os.write(STDERR, b"\nmemoryos-mcp: interrupted\n")
    os._exit(EXIT_INTERRUPTED)


if __name__ == "__main__":
    main()
