"""reembed and warmup, with real stores, real models, and a tiny model behind a real API."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from memoryos_mcp.cli.commands import common
from memoryos_mcp.cli.main import cli
from memoryos_mcp.config import Settings
from memoryos_mcp.consolidation import loops
from memoryos_mcp.embedding import bundled
from memoryos_mcp.embedding.bundled import IDENTITY
from memoryos_mcp.embedding.revision import PROBE
from memoryos_mcp.engine.service import MemoryService
from memoryos_mcp.errors import ConfigError, ModelError
from memoryos_mcp.model.stats import Stats
from memoryos_mcp.storage.sqlite.paths import database_file
from tests.llm_server import Answer, Answering, Asked, LlmServer, api_error, embeddings, free_port, llm_server
from tests.memories import load_once
from tests.servers import clean_environment

LIMIT_S = 60
USER = "ada"
KEY = "sk-live-4f9a8b7c6d5e"
PASSWORD = "hunter2"  # noqa: S105 - of no account
PAGES = 5
DIMENSION = 8
KEPT = "finished work is kept"

pytestmark = pytest.mark.usefixtures("bare_environment")


def answers(*, turned: float = 1.0) -> Callable[[Asked], Answer]:
    """Reply like a tiny embedding model; the other sign is a model with the same name and other weights."""

    def answer(asked: Asked) -> Answer:
        return embeddings(
            [[turned * float(text.count(letter) + 1) for letter in "aeiourst"] for text in asked.body["input"]]
        )

    return answer


def fails_after(requests: int) -> Answering:
    """Reply to the probe and to a number of requests, and refuse all later ones."""
    left = requests

    def answer(asked: Asked) -> Answer:
        nonlocal left
        if asked.body["input"] == [PROBE]:
            return answers()(asked)
        left -= 1
        return answers()(asked) if left >= 0 else api_error(401, f"no {KEY}")

    return answer


@pytest.fixture(autouse=True)
def model_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundled, "_load", load_once)


async def remember(data: Path, pages: int = PAGES) -> Stats:
    """Add pages, and return the statistics once all pages have vectors of the bundled model."""
    given = Settings(data_storage_path=data)
    async with MemoryService(given) as service, service.user(USER) as engine:
        for number in range(pages):
            await engine.add(f"My chess club in Porto met for evening number {number}.", "I see.")
        while not ((stats := await engine.stats()).is_semantic and not stats.counts.unembedded and stats.move is None):  # noqa: ASYNC110 - the state is another task's
            await asyncio.sleep(0.05)
        return stats


def flags(data: Path, server: LlmServer | None = None) -> list[str]:
    there = [] if server is None else ["--embedding-base-url", server.base_url, "--embedding-model-name", "tiny"]
    return ["--data-storage-path", str(data), "--user-id", USER, *there]


async def run(*arguments: str, **environment: str) -> Result:
    return await asyncio.to_thread(CliRunner().invoke, cli, arguments, env=environment)


async def done(*arguments: str) -> dict[str, Any]:
    """Run a command that must succeed, and return its JSON."""
    result = await run(*arguments, "--json")
    assert result.exit_code == 0, (result.output, result.exception)
    found: dict[str, Any] = json.loads(result.stdout)
    return found


async def process(*arguments: str) -> tuple[int, str, str]:
    """Run the command in another process, and return its exit code, stdout and stderr."""
    command = [sys.executable, "-m", "memoryos_mcp", *arguments]
    ended = await asyncio.to_thread(
        subprocess.run, command, env=clean_environment(), capture_output=True, timeout=LIMIT_S, check=False
    )
    return ended.returncode, ended.stdout.decode(), ended.stderr.decode()


def content(data: Path) -> bytes:
    return database_file(data, USER).read_bytes()


# Status


async def test_the_status_shows_both_models_and_changes_nothing(data: Path) -> None:
    async with asyncio.timeout(LIMIT_S), llm_server(answers()) as server:
        await remember(data)
        before = await asyncio.to_thread(content, data)
        status = await done("reembed", "--status", *flags(data, server))
        told = await run("reembed", "--status", *flags(data, server))
        assert server.asked == []
        assert await asyncio.to_thread(content, data) == before
    configured, bundled = status["spaces"]
    assert status["pages"] == PAGES
    assert configured == {"model": "tiny", "is_configured": True, "space": None, "pages_left": PAGES, "used_at": None}
    assert (bundled["model"], bundled["is_configured"]) == ("memoryos-small", False)
    assert (bundled["space"], bundled["pages_left"]) == (IDENTITY, 0)
    assert timedelta() <= datetime.now(UTC) - datetime.fromisoformat(bundled["used_at"]) < timedelta(minutes=5)
    assert told.stdout.splitlines() == [
        "tiny (configured): 0 of 5 pages have vectors",
        "memoryos-small: 5 of 5 pages have vectors",
        "A running server embeds the other pages in the background. To embed them now, run memoryos-mcp reembed.",
    ]


async def test_the_status_of_a_finished_model_has_no_hint(data: Path) -> None:
    async with asyncio.timeout(LIMIT_S):
        await remember(data)
        result = await run("reembed", "--status", *flags(data))
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == "memoryos-small (configured): 5 of 5 pages have vectors\n"


async def test_without_a_model_the_status_shows_stored_vectors(data: Path) -> None:
    none = ("reembed", "--status", *flags(data), "--embedding-model-name", "none")
    async with asyncio.timeout(LIMIT_S):
        await remember(data)
        told = await run(*none)
        (space,) = (await done(*none))["spaces"]
    assert told.stdout.splitlines() == [
        "memoryos-small: 5 of 5 pages have vectors",
        "No embedding model is configured: search uses only keywords.",
    ]
    assert (space["model"], space["is_configured"]) == ("memoryos-small", False)


async def test_only_the_last_space_of_a_model_is_configured(data: Path) -> None:
    async with asyncio.timeout(LIMIT_S), llm_server(answers()) as server:
        await remember(data)
        await done("reembed", *flags(data, server))
        server.answer_with(answers(turned=-1.0))
        status = await done("reembed", *flags(data, server))
    assert [(space["model"], space["is_configured"]) for space in status["spaces"]] == [
        ("tiny", True),
        ("tiny", False),
        ("memoryos-small", False),
    ]


# Re-embedding


async def test_reembed_embeds_all_pages_only_once_per_model(data: Path) -> None:
    async with asyncio.timeout(LIMIT_S), llm_server(answers()) as server:
        await remember(data)
        status = await done("reembed", *flags(data, server))
        assert [(space["model"], space["pages_left"]) for space in status["spaces"]] == [
            ("tiny", 0),
            ("memoryos-small", 0),
        ]
        assert status["spaces"][0]["space"].startswith(f"tiny:{DIMENSION}:")
        texts = [text for body in server.bodies for text in body["input"]]
        assert len([text for text in texts if "Porto" in text]) == PAGES
        asked = len(server.asked)
        told = await run("reembed", *flags(data))
        assert told.exit_code == 0
        assert told.stdout.splitlines()[0] == "memoryos-small (configured): 5 of 5 pages have vectors"
        assert len(server.asked) == asked
        assert (await remember(data, 0)).space == IDENTITY


async def test_without_a_terminal_progress_is_printed_in_lines(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(common, "LINE_EVERY_S", 0.0)
    async with asyncio.timeout(LIMIT_S), llm_server(answers()) as server:
        await remember(data)
        result = await run("reembed", *flags(data, server))
    assert result.exit_code == 0
    assert "0 of 5 pages: embedding" in result.stderr
    assert "5 of 5 pages: embedding" in result.stderr
    assert "pages: embedding" not in result.stdout


@pytest.mark.parametrize("arguments", [(), ("--status",)])
async def test_a_missing_memory_is_reported_once_and_not_created(arguments: tuple[str, ...], data: Path) -> None:
    async with asyncio.timeout(LIMIT_S), llm_server(api_error(401)) as server:
        status = await done("reembed", *arguments, *flags(data, server))
        told = await run("reembed", *arguments, *flags(data, server))
        assert server.asked == []
    assert (status["pages"], len(status["spaces"])) == (0, 1)
    assert told.stderr == (
        f"memoryos-mcp: user ada has no memory in {data} yet; to use another memory, set user_id or data_storage_path\n"
    )
    assert not database_file(data, USER).parent.exists()


@pytest.mark.parametrize("command", ["reembed", "warmup"])
async def test_without_a_model_the_exit_code_is_2(command: str, data: Path) -> None:
    none = (*flags(data), "--embedding-model-name", "none")
    async with asyncio.timeout(LIMIT_S):
        result = await run(command, *none, "--json")
        code, stdout, stderr = await process(command, *none)
    assert isinstance(result.exception, ConfigError)
    assert (code, stdout, stderr.count("\n")) == (2, "", 1)
    assert "embedding_model_name is 'none'" in stderr
    assert stderr.endswith("set it to the name of a model\n")


@pytest.mark.parametrize("command", ["reembed", "warmup"])
async def test_an_unusable_model_is_reported_in_one_line(command: str, data: Path) -> None:
    async with asyncio.timeout(LIMIT_S), llm_server(api_error(401)) as refusing:
        await remember(data)
        before = await asyncio.to_thread(content, data)
        code, stdout, stderr = await process(command, *flags(data, refusing))
        assert await asyncio.to_thread(content, data) == before
        assert len(refusing.asked) == 1
        as_json = await run(command, *flags(data, refusing), "--json")
    assert (code, stdout) == (1, "")
    assert stderr == (
        f"memoryos-mcp: the embeddings API at {refusing.base_url} requires a key (HTTP 401); set embedding_api_key\n"
    )
    assert (as_json.exit_code, as_json.stdout, str(as_json.exception)) == (1, "", stderr[14:-1])


async def test_after_repeated_failures_finished_work_is_kept(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "FIRST_BACKOFF_S", 0.05)
    async with asyncio.timeout(LIMIT_S):
        await remember(data, 20)
        async with llm_server(fails_after(1)) as server:
            result = await run("reembed", *flags(data, server), MEMORYOS_EMBEDDING_API_KEY=KEY)
            status = await done("reembed", "--status", *flags(data, server))
            server.answer_with(answers())
            whole = await done("reembed", *flags(data, server))
        assert (await remember(data, 0)).counts.unembedded == 0
    assert (result.exit_code, result.stdout) == (1, "")
    assert isinstance(result.exception, ModelError)
    assert "the work failed 3 times in a row: the embeddings API" in str(result.exception)
    assert KEPT in str(result.exception)
    assert KEY not in result.output + str(result.exception)
    assert 0 < status["spaces"][0]["pages_left"] < 20
    assert whole["spaces"][0]["pages_left"] == 0


# Warmup


async def test_warmup_prints_the_properties_of_the_model(data: Path) -> None:
    async with asyncio.timeout(LIMIT_S), llm_server(answers()) as server:
        told = await run("warmup", *flags(data))
        bundled = await done("warmup", *flags(data))
        behind_api = await done("warmup", *flags(data, server))
    assert told.stdout.startswith("memoryos-small is ready: loaded in ")
    assert told.stdout.endswith(" s, 384 dimensions.\n")
    assert bundled.keys() == {"model", "space", "dimension", "loaded_s"}
    assert (bundled["model"], bundled["space"], bundled["dimension"]) == ("memoryos-small", IDENTITY, 384)
    assert 0 < bundled["loaded_s"] < LIMIT_S
    assert (behind_api["model"], behind_api["dimension"]) == ("tiny", DIMENSION)
    assert behind_api["space"].startswith(f"tiny:{DIMENSION}:")
    assert not database_file(data, USER).parent.exists()


async def test_no_secret_of_the_model_is_printed_or_stored(data: Path) -> None:
    async with asyncio.timeout(LIMIT_S), llm_server(answers()) as server:
        await remember(data)
        url = server.base_url.replace("//", f"//user:{PASSWORD}@")
        given = [*flags(data), "--embedding-base-url", url, "--embedding-model-name", "tiny", "--log-level", "DEBUG"]
        for command in (("warmup",), ("reembed",), ("reembed", "--status"), ("reembed", "--status", "--json")):
            result = await run(*command, *given, MEMORYOS_EMBEDDING_API_KEY=KEY)
            assert result.exit_code == 0, result.output
            assert KEY not in result.output
            assert PASSWORD not in result.output
        assert server.asked[0].headers["authorization"].startswith("Basic ")  # takes precedence over the key
    stored = b"".join(file.read_bytes() for file in database_file(data, USER).parent.iterdir())
    assert KEY.encode() not in stored
    assert PASSWORD.encode() not in stored


async def test_an_unreachable_api_is_reported_after_three_attempts(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memoryos_mcp.llm.api.FIRST_PAUSE_S", 0.01)
    url = f"http://127.0.0.1:{free_port()}/v1"
    async with asyncio.timeout(LIMIT_S):
        result = await run("warmup", *flags(data), "--embedding-base-url", url)
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"nothing answers at {url}" in str(result.exception)
