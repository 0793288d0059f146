"""Runs commands in this process, because a new process would spend most of its time on imports."""

import asyncio
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
from memoryos_mcp.embedding import bundled
from tests.memories import load_once
from tests.servers import clean_environment


class _Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


def run_here(
    *arguments: object, env: Mapping[str, str] | None = None, stdin: bytes = b"", is_terminal: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run any command but ``serve``, one at a time. Its stdin contains ``stdin``, and seems to be a terminal if wanted.

    A command has its own event loop, so it runs in a thread if a loop is running already. The bundled model is loaded
    once for all commands.
    """
    line = [str(argument) for argument in arguments]
    given = (_Terminal if is_terminal else io.TextIOWrapper)(io.BytesIO(stdin), encoding="utf-8")
    stdout, stderr = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    root, ours = logging.getLogger(), logging.getLogger("memoryos_mcp")
    before = root.handlers[:], root.level, ours.level
    root.handlers[:] = []
    try:
        with (
            patch.dict(os.environ, clean_environment(env), clear=True),
            patch("os._exit", side_effect=AssertionError("the model was not ready")),
            patch("sys.stdin", given),
            patch.object(bundled, "_load", load_once),
            redirect_stdout(stdout),
            redirect_stderr(stderr),
            ThreadPoolExecutor(1) as thread,
        ):
            code = thread.submit(_exit_code, line).result() if _is_in_loop() else _exit_code(line)
    finally:
        root.handlers[:] = before[0]
        root.setLevel(before[1])
        ours.setLevel(before[2])
    texts = [stream.buffer.getvalue().decode() for stream in (stdout, stderr)]
    return subprocess.CompletedProcess(line, code, *texts)


def run_on(data: Path, *arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a command on a data folder. Fails if the exit code is not ``code``."""
    done = run_here(*arguments, "--data-storage-path", data)
    assert done.returncode == code, done.stderr
    return done


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _exit_code(line: list[str]) -> int:
    try:
        run(cli, line)
    except SystemExit as ended:
        assert ended.code is None or isinstance(ended.code, int)
        return ended.code or 0
