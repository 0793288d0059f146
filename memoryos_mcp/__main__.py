"""Entry point of ``memoryos-mcp`` and ``python -m memoryos_mcp``.

Ctrl-C ends the program with a one-line message, even while Python is still importing modules.
"""

import gc
import os
import signal
import sys
from types import FrameType, ModuleType

EXIT_INTERRUPTED = 130  # the same value as in `cli.command_line`, which is not imported yet
STDERR = 2
# Thresholds of the garbage collector. A call creates thousands of objects, so with Python's own thresholds a busy
# server collects all the time, and answers a tenth fewer calls. A start also takes a twentieth longer.
GC_THRESHOLDS = 10_000, 20, 20


def main() -> None:
    """Run the program with its command-line arguments."""
    if sys.argv[1:2] == ["hook"] and not {"-h", "--help"}.intersection(sys.argv):
        from memoryos_mcp.server.hooks import hook  # a client waits for it, so nothing else is imported

        hook.main(sys.argv[2:])
    _loaded().main()


def serve_by_default() -> None:
    """Run the program with its command-line arguments. If they contain no command, run ``serve``."""
    _loaded().serve_by_default()


def _loaded() -> ModuleType:
    gc.set_threshold(*GC_THRESHOLDS)
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:  # otherwise SIGINT is ignored on purpose, as in a background job
        signal.signal(signal.SIGINT, _end)
    from memoryos_mcp.cli import main as command_line

    signal.signal(signal.SIGINT, handler)
    return command_line


def _end(_number: int, _frame: FrameType | None) -> None:
    # No exception is raised, because the import in progress could swallow it.
    os.write(STDERR, b"\nmemoryos-mcp: interrupted\n")
    os._exit(EXIT_INTERRUPTED)


if __name__ == "__main__":
    main()
