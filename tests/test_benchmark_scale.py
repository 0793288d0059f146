"""The benchmark of several servers on one database, with few users and kills."""

import asyncio
import signal
import socket
import sys
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from benchmarks import scale, scale_processes
from benchmarks.scale import Size, database, measure_kills
from benchmarks.scale_load import marker_of
from benchmarks.scale_processes import measure_processes
from benchmarks.throttle import throttled

pytestmark = pytest.mark.campaign

LIMIT_S = 300
POLL_S = 0.02
SETTINGS: dict[str, object] = {"embedding_model_name": "none", "requests_per_second": 100_000.0}


def ignore(_: str) -> None:
    """Say nothing about the progress."""


async def test_nothing_is_lost_or_doubled_by_kills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scale, "SEARCHED_PAGES", 20)
    size = Size(users=8, kills=2, alive_s=2.0)
    async with asyncio.timeout(LIMIT_S):
        with database() as server:
            figures = await measure_kills(server, tmp_path, size, SETTINGS, ignore)
    assert [figure.what for figure in figures if figure.target == "0" and not figure.is_reached] == []
    assert int(figures[0].what.split()[0].replace(",", "")) > 10
    (organised,) = (figure.what for figure in figures if figure.what.startswith("pages organised twice"))
    assert " of 0 in 0 batches" not in organised


async def test_one_server_is_compared_with_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scale_processes, "ORDER", (1, 2))
    monkeypatch.setattr(scale_processes, "IDLE_LIMIT_S", 1.0)
    size = scale_processes.Size(users=2, round_s=6.0, warm_s=1.0)
    async with asyncio.timeout(LIMIT_S):
        with database() as server:
            figures = await measure_processes(server, tmp_path, size, SETTINGS, ignore)
    assert figures[0].ratio is not None
    assert figures[0].ratio > 0


async def test_a_throttled_process_is_stopped_and_continues_at_the_end() -> None:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", "while True: pass")
    try:
        seen = psutil.Process(process.pid)
        async with asyncio.timeout(LIMIT_S), throttled([process.pid], 0.1):
            while seen.status() != psutil.STATUS_STOPPED:  # noqa: ASYNC110 - the system tells nobody
                await asyncio.sleep(POLL_S)
        assert seen.status() != psutil.STATUS_STOPPED
    finally:
        process.kill()
        await process.wait()


async def test_an_interrupt_ends_all_servers_and_the_database() -> None:
    arguments = ("-m", "benchmarks.scale", "--quick", "--part", "kills", "--users", "4")
    process = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=DEVNULL, stderr=PIPE)
    assert process.stderr is not None
    async with asyncio.timeout(LIMIT_S):
        while b"kill 1 of" not in (line := await process.stderr.readline()):
            assert line, "the benchmark has ended"
        children = psutil.Process(process.pid).children(recursive=True)
        addresses = {child.environ().get("MEMORYOS_DATABASE_URL", "") for child in children} - {""}
        process.send_signal(signal.SIGINT)
        await asyncio.gather(process.wait(), process.stderr.read())
    assert len(children) > 1
    assert [child for child in children if child.is_running()] == []
    (address,) = {urlsplit(address).netloc.partition("@")[2] for address in addresses}
    host, port = address.split(":")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)))


def test_the_marker_of_a_page_names_its_user() -> None:
    assert marker_of("I am user-00007 with remark12x. It rained.") == ("user-00007", "12")
    assert marker_of("It rained.") == ("", "")
