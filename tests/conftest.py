"""Fixtures that all tests share."""

import logging
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from memoryos_mcp.llm.providers import PRESETS
from tests.http_server import HttpServer
from tests.servers import PipeServer

# A shell that runs the tests in the background makes them, and all their processes, ignore Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# The tests start hundreds of processes. Without cached bytecode, each would compile the whole package.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return twice the number of cores, because many tests wait for a server or a time limit.

    The campaign gets one worker for each core: its language model needs a whole core.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores if config.option.markexpr == "campaign" else 2 * cores


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the tests that are marked with ``both_stores`` on SQLite and on PostgreSQL.

    With ``both_stores(in_campaign=True)``, the tests on PostgreSQL belong to the campaign. Tests that are also marked
    with ``sqlite_only`` run on SQLite alone.
    """
    marker = metafunc.definition.get_closest_marker("both_stores")
    if marker is not None and metafunc.definition.get_closest_marker("sqlite_only") is None:
        marks = [pytest.mark.campaign] if marker.kwargs.get("in_campaign") else []
        parameters = ["sqlite", pytest.param("postgres", marks=marks)]
        metafunc.parametrize("store_engine", parameters, indirect=True)


@pytest.fixture(autouse=True)
def store_engine(request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of the database that holds the memories of this test; see `pytest_generate_tests`."""
    name = str(getattr(request, "param", "sqlite"))
    if name == "sqlite":
        yield name
        return
    from tests.postgres import use_postgres

    with use_postgres():
        yield name


@pytest.fixture(autouse=True)
def log_level() -> None:
    """Undo what a command that an earlier test ran in this process did to the log level."""
    logging.getLogger("memoryos_mcp").setLevel(logging.NOTSET)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder that does not exist yet."""
    return tmp_path / "data"


@pytest.fixture
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove our variables and those of LLM providers."""
    variables = {name for preset in PRESETS.values() for name in preset.key_variables}
    for name in list(os.environ):
        if name.upper().startswith("MEMORYOS_") or name in variables:
            monkeypatch.delenv(name)


@pytest.fixture
def server(data: Path) -> Iterator[PipeServer]:
    """A running server with its own data folder."""
    with PipeServer(data) as running:
        yield running


@pytest.fixture(scope="module")
def http_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    """A running server with every transport and with tokens. The tests of a file share it, each with other users."""
    with HttpServer(tmp_path_factory.mktemp("http") / "data", {"requests_per_second": 10_000.0}) as running:
        running.add_token("somebody")
        yield running
        assert running.stop() == 0
        assert "Traceback" not in running.stderr
