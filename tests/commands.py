"""The command line in this process: output and exit code as a process has them, without its second of imports."""

import io
import logging
import os
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

from memoryos_mcp.cli.command_line import run
from memoryos_mcp.cli.main import cli
from tests.servers import clean_environment


def run_here(*arguments: object, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run any command but ``serve``, and return what it wrote and its exit code; one at a time.

    It runs in a thread of its own, because it has an event loop of its own.
    """
    command = [str(argument) for argument in arguments]
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    root, ours = logging.getLogger(), logging.getLogger("memoryos_mcp")
    before = root.handlers[:], root.level, ours.level
    root.handlers[:] = []
    try:
        with (
            Path(os.devnull).open(encoding="utf-8") as nothing,
            patch("sys.stdin", nothing),
            patch.dict(os.environ, clean_environment(env), clear=True),
            redirect_stdout(out),
            redirect_stderr(err),
            ThreadPoolExecutor(1) as thread,
        ):
            code = thread.submit(_exit_code, command).result()
    finally:
        root.handlers[:] = before[0]
        root.setLevel(before[1])
        ours.setLevel(before[2])
    return subprocess.CompletedProcess(command, code, out.detach().getvalue(), err.detach().getvalue())


def _exit_code(command: list[str]) -> int:
    try:
        run(cli, command)
    except SystemExit as ended:
        assert isinstance(ended.code, int)
        return ended.code
