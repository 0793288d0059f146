"""Commands run in this process: for most, importing the program again would take longer than all else that they do."""

import io
import logging
import os
import subprocess
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

import pytest

from memoryos_mcp.cli import command_line
from memoryos_mcp.cli.main import cli
from memoryos_mcp.embedding import bundled
from tests.memories import load_once
from tests.servers import clean_environment


def run_here(*arguments: object, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command to its exit code, its stdin empty and its stdout no terminal, in an environment of its own.

    The bundled model is loaded once for all commands.
    """
    line = [*map(str, arguments)]
    stdin, stdout, stderr = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(3))
    logger = logging.getLogger("memoryos_mcp")
    level = logger.level
    try:
        with (
            patch.dict(os.environ, clean_environment(env), clear=True),
            patch("os._exit", side_effect=AssertionError("the model was not ready")),
            patch("sys.stdin", stdin),
            patch.object(bundled, "_load", load_once),
            redirect_stdout(stdout),
            redirect_stderr(stderr),
            pytest.raises(SystemExit) as ended,
        ):
            command_line.run(cli, line)
    finally:
        logger.setLevel(level)
    code = ended.value.code
    assert code is None or isinstance(code, int)
    texts = [stream.buffer.getvalue().decode() for stream in (stdout, stderr)]
    return subprocess.CompletedProcess(line, code or 0, *texts)


def run_on(data: Path, *arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a command on a data folder; another exit code than the expected one fails."""
    done = run_here(*arguments, "--data-storage-path", data)
    assert done.returncode == code, done.stderr
    return done
