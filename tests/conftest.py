"""What the tests share: pipes to real servers that are ended whatever happens."""

import logging
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryos_mcp.llm.providers import PRESETS
from tests.servers import PipeServer

# A shell that starts the tests in its background has them ignore Ctrl-C, and with them every process that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder that does not exist yet."""
    return tmp_path / "data"


@pytest.fixture
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No variable of ours or of a provider; the log's level is put back."""
    variables = {name for preset in PRESETS.values() for name in preset.key_variables}
    for name in list(os.environ):
        if name.upper().startswith("MEMORYOS_") or name in variables:
            monkeypatch.delenv(name)
    logger = logging.getLogger("memoryos_mcp")
    level = logger.level
    yield
    logger.setLevel(level)


@pytest.fixture
def server(data: Path) -> Iterator[PipeServer]:
    """A running server on a data folder of its own."""
    with PipeServer(data) as running:
        yield running
