"""The Dockerfile is linted and built; both images serve without a network and stop cleanly."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import anyio
import psutil
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from memoryos_mcp import __version__
from memoryos_mcp.storage.sqlite.paths import database_file
from tests.containers import LIMIT_S, Image, are_possible, built, container_process, read_only_mounts, volume_mounts
from tests.servers import EXIT_LIMIT_S, USER, wait_until

pytestmark = pytest.mark.campaign

ROOT = Path(__file__).parent.parent
RECIPE = ROOT / "Dockerfile"
HADOLINT = Path(sys.executable).parent / "hadolint"
# Prints the HTTP status of the reply to a client's first message; the argument is a token.
INITIALIZE = """
import json, sys
from http.client import HTTPConnection
client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client})
headers = {"Authorization": f"Bearer {sys.argv[1]}", "Content-Type": "application/json",
           "Accept": "application/json, text/event-stream"}
connection = HTTPConnection("127.0.0.1", 8000, timeout=30)
connection.request("POST", "/mcp", body=body, headers=headers)
print(connection.getresponse().status)
"""
needs_linter = pytest.mark.skipif(not HADOLINT.exists(), reason="there is no hadolint here")
needs_namespaces = pytest.mark.skipif(not are_possible(), reason="only root can make containers here")


def lint(recipe: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [HADOLINT, "--no-color", recipe], capture_output=True, check=False, encoding="utf-8", timeout=LIMIT_S
    )


@needs_linter
def test_the_linter_accepts_the_dockerfile() -> None:
    done = lint(RECIPE)
    assert (done.returncode, done.stdout) == (0, "")


@needs_linter
@pytest.mark.parametrize(
    ("good", "bad", "rule"),
    [
        ("FROM python:3.13-slim AS build", "FROM python AS build", "DL3006"),
        ("WORKDIR /src", "WORKDIR src", "DL3000"),
        ("--from=build", "--from=built", "DL3022"),
        ('CMD ["serve"]', "CMD serve", "DL3025"),
    ],
)
def test_the_linter_finds_mistakes(tmp_path: Path, good: str, bad: str, rule: str) -> None:
    text = RECIPE.read_text(encoding="utf-8")
    assert good in text
    (tmp_path / "Dockerfile").write_text(text.replace(good, bad), encoding="utf-8")
    done = lint(tmp_path / "Dockerfile")
    assert done.returncode != 0
    assert rule in done.stdout


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Image]]:
    folder = tmp_path_factory.mktemp("images")
    yield built(RECIPE.read_text(encoding="utf-8"), ROOT, folder)
    shutil.rmtree(folder)


@needs_namespaces
def test_the_images_contain_package_model_and_extras(images: dict[str, Image]) -> None:
    for name in ("stdio", "http"):
        names = "memoryos_mcp.embedding.bundled, opentelemetry.sdk, psycopg, psycopg_pool"
        program = f"import {names}; print(memoryos_mcp.__file__)"
        command = images[name].run(["python", "-c", program])
        done = subprocess.run(command, capture_output=True, check=True, encoding="utf-8", timeout=LIMIT_S)
        assert done.stdout.startswith("/opt/memoryos/lib/")
        assert images[name].labels["org.opencontainers.image.version"] == __version__


@needs_namespaces
async def test_the_image_for_stdio_serves_a_client(images: dict[str, Image], tmp_path: Path) -> None:
    image, volume = images["stdio"], tmp_path / "volume"
    assert image.health_check is None
    command = image.run([*image.entry_point, *image.command], volume_mounts(image, volume))
    parameters = StdioServerParameters(command=command[0], args=command[1:])
    with (tmp_path / "stderr.log").open("w", encoding="utf-8") as errlog:
        async with Client(stdio_client(parameters, errlog=errlog), mode="legacy") as client:
            assert client.server_info is not None
            assert client.server_info.version == __version__
            added = await client.call_tool("add_memory", {"user_input": "I row.", "agent_response": "Nice."})
            assert not added.is_error
            # Search by meaning works without a network, because the image contains the model.
            with anyio.fail_after(LIMIT_S):
                while True:
                    stats = (await client.call_tool("get_memory_stats", {})).structured_content or {}
                    if (stats["search_mode"], stats["unembedded_pages"]) == ("hybrid", 0):
                        break
                    await anyio.sleep(0.1)
    stored = database_file(volume, USER)
    assert stored.exists()
    assert {path.stat().st_uid for path in (volume, stored)} == {int(image.user.partition(":")[0])} != {0}


@contextmanager
def running(image: Image, volume: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run the image like Compose does."""
    command = image.run([*image.entry_point, *image.command], read_only_mounts(image, volume))
    with (volume.parent / "stderr.log").open("wb") as stderr:
        started = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=stderr)
    try:
        yield started
    finally:
        with suppress(psutil.NoSuchProcess):
            # The process has another user by now, so it does not end with `unshare`.
            for inside in psutil.Process(started.pid).children(recursive=True):
                inside.kill()
        started.kill()
        started.wait(EXIT_LIMIT_S)


def in_container(image: Image, process: int, command: list[str]) -> subprocess.CompletedProcess[str]:
    entered = image.run_beside(process, command)
    return subprocess.run(entered, capture_output=True, check=False, encoding="utf-8", timeout=LIMIT_S)


@needs_namespaces
def test_the_image_for_http_needs_a_token_and_stops_cleanly(images: dict[str, Image], tmp_path: Path) -> None:
    image, volume = images["http"], tmp_path / "volume"
    check = image.health_check
    assert check is not None
    with running(image, volume) as started:
        wait_until(lambda: "listening on" in (tmp_path / "stderr.log").read_text(encoding="utf-8"), "it listens")
        process = container_process(started)
        assert in_container(image, process, check).returncode == 0
        made = in_container(image, process, ["memoryos-mcp", "token", "add", "ada", "--json"])
        assert made.returncode == 0, made.stderr
        token = json.loads(made.stdout)["token"]
        for given, status in ((token, 200), (f"{token}x", 401)):
            asked = in_container(image, process, ["python", "-c", INITIALIZE, given])
            assert asked.stdout.strip() == str(status), asked.stderr
        os.kill(process, signal.SIGTERM)
        assert started.wait(EXIT_LIMIT_S) == 0


@needs_namespaces
def test_the_image_health_check_fails_without_a_server(images: dict[str, Image]) -> None:
    image = images["http"]
    assert image.health_check is not None
    done = subprocess.run(image.run(image.health_check), capture_output=True, check=False, timeout=LIMIT_S)
    assert done.returncode == 1
    assert b"ConnectionRefusedError" in done.stderr
