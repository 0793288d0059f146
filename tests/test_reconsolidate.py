"""reconsolidate, with real stores and a fake LLM behind a real server."""

import asyncio
import json
import signal
import subprocess
import sys
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from memoryos_mcp.cli.commands import common
from memoryos_mcp.cli.main import cli
from memoryos_mcp.config import Settings
from memoryos_mcp.consolidation import loops, worker
from memoryos_mcp.embedding import bundled
from memoryos_mcp.engine.service import MemoryService
from memoryos_mcp.errors import BudgetSpentError, ConfigError, MemoryOSError
from memoryos_mcp.model.stats import Stats
from memoryos_mcp.storage.sqlite.paths import database_file
from tests.llm_server import Answer, Asked, Hang, LlmServer, api_error, completion, llm_server
from tests.memories import load_once
from tests.servers import clean_environment

LIMIT_S = 60
KEY = "sk-live-4f9a8b7c6d5e"
USER = "ada"
BATCH_PAGES = 4
# With these settings every page leaves short-term memory, is organised and is learned from at once.
SMALL: dict[str, Any] = {
    "short_term_capacity": 0,
    "consolidation_batch_pages": BATCH_PAGES,
    "consolidation_idle_s": 0.0,
    "mid_term_heat_threshold": 1.0,
}
SAID = [
    *(f"My pottery class glazed bowl number {number} in the kiln." for number in range(6)),
    *(f"My chess club in Porto played opening number {number}." for number in range(5)),
]

pytestmark = pytest.mark.usefixtures("bare_environment")


def answer(asked: Asked) -> Answer:
    """Reply like a good LLM: one topic for all pages of a batch, and one fact from the first page."""
    form = asked.body["response_format"]["json_schema"]
    if form["name"] == "lessons":
        fact = {"action": "add", "fact": 0, "about": "user", "text": "The user's number is known.", "pages": [1]}
        return completion(json.dumps({"facts": [{**fact, "since": "", "until": ""}], "traits": []}))
    pages = form["schema"]["properties"]["pages"]["properties"]
    reply = {
        "topics": [{"topic": 1, "segment": "", "keywords": ["pastime"], "summary": "What the user does."}],
        "pages": {number: {"continues": False, "topic": 1} for number in pages},
        "chains": [{"first": int(number), "summary": "What was said."} for number in pages],
    }
    return completion(json.dumps(reply))


def sorted_batches(server: LlmServer) -> int:
    """Return the number of batches that the LLM was asked to organise."""
    return sum(body["response_format"]["json_schema"]["name"] == "organised" for body in server.bodies)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundled, "_load", load_once)
    monkeypatch.setattr(worker, "POLL_S", 0.05)
    monkeypatch.setattr(worker, "GATHER_S", 0.0)


async def remember_without_llm(data: Path) -> Stats:
    """Fill a memory without an LLM, and return the statistics once everything is organised and learned from."""
    async with MemoryService(Settings(data_storage_path=data, **SMALL)) as service, service.user(USER) as engine:
        for text in SAID:
            await engine.add(text, "I see.")
        while True:
            stats = await engine.stats()
            if stats.is_settled and not stats.counts.backlog:
                return stats
            await asyncio.sleep(0.05)


async def state(data: Path) -> Stats:
    """Return the statistics of the memory, opened without an LLM."""
    async with MemoryService(Settings(data_storage_path=data, **SMALL)) as service, service.user(USER) as engine:
        return await engine.stats()


def flags(data: Path) -> list[str]:
    small = [text for name, value in SMALL.items() for text in (f"--{name.replace('_', '-')}", str(value))]
    return ["--data-storage-path", str(data), "--user-id", USER, "--llm-model", "tiny", *small]


async def run(data: Path, *arguments: str, server: LlmServer | None = None) -> Result:
    environment = {} if server is None else {"MEMORYOS_OPENAI_BASE_URL": server.base_url}
    command = ["reconsolidate", *flags(data), *arguments]
    environment["MEMORYOS_OPENAI_API_KEY"] = KEY if server else ""
    return await asyncio.to_thread(CliRunner().invoke, cli, command, env=environment)


def outcome(result: Result) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def content(data: Path) -> bytes:
    return database_file(data, USER).read_bytes()


async def test_the_llm_redoes_all_work_of_the_fallback(data: Path) -> None:
    async with asyncio.timeout(LIMIT_S), llm_server(answer) as server:
        before = await remember_without_llm(data)
        assert before.counts.mid_term == len(SAID)
        result = await run(data, "--json", server=server)
        done = outcome(result)
        assert (result.exit_code, done["ended"], done["error"]) == (0, "done", None)
        assert (done["pages"], done["left"]) == (len(SAID), 0)
        assert (done["calls"], done["failed_calls"]) == (len(server.asked), 0)
        assert (done["prompt_tokens"], done["completion_tokens"]) == (11 * done["calls"], 7 * done["calls"])
        assert sorted_batches(server) == 3
        after = await state(data)
        assert {segment.summariser for segment, _ in after.top_segments} == {"tiny"}
        assert after.counts.mid_term == len(SAID)
        asked = len(server.asked)
        again = outcome(await run(data, "--json", server=server))
        assert (again["ended"], again["pages"], again["calls"]) == ("done", 0, 0)
        assert len(server.asked) == asked


async def test_a_dry_run_estimates_batches_without_a_call(data: Path) -> None:
    async with asyncio.timeout(LIMIT_S), llm_server(answer) as server:
        await remember_without_llm(data)
        before = await asyncio.to_thread(content, data)
        told = outcome(await run(data, "--dry-run", "--json", server=server))
        assert server.asked == []
        assert await asyncio.to_thread(content, data) == before
        assert (told["pages"], told["batches"]) == (len(SAID), 3)
        await run(data, server=server)
        assert told["batches"] == sorted_batches(server)
        assert told["calls"] > told["batches"]
        sent = sum(len(json.dumps(body["messages"])) for body in server.bodies) / 4
        assert sent / 3 < told["prompt_tokens"] < sent * 3


async def test_the_printed_result_names_pages_and_calls(data: Path) -> None:
    async with asyncio.timeout(LIMIT_S), llm_server(answer) as server:
        await remember_without_llm(data)
        assert "11 pages would be redone in 3 batches" in (await run(data, "--dry-run", server=server)).stdout
        result = await run(data, server=server)
        assert result.stdout.startswith("11 of 11 pages were redone with ")
        for arguments in ((), ("--dry-run",)):
            assert (await run(data, *arguments, server=server)).stdout.startswith("There is nothing to redo")


async def test_without_a_terminal_progress_is_printed_in_lines(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(common, "LINE_EVERY_S", 0.0)
    async with asyncio.timeout(LIMIT_S), llm_server(answer) as server:
        await remember_without_llm(data)
        result = await run(data, "--json", server=server)
    assert "of 11 pages: " in result.stderr
    assert outcome(result)["ended"] == "done"


async def test_a_missing_memory_has_no_work_and_is_not_created(data: Path) -> None:
    async with asyncio.timeout(LIMIT_S), llm_server(answer) as server:
        for arguments in (("--json",), ("--json", "--dry-run")):
            result = await run(data, *arguments, server=server)
            assert (result.exit_code, outcome(result)["pages"]) == (0, 0)
    assert not database_file(data, USER).parent.parent.exists()


@pytest.mark.parametrize("arguments", [(), ("--dry-run",)])
async def test_without_an_llm_the_error_names_the_settings(arguments: tuple[str, ...], data: Path) -> None:
    async with asyncio.timeout(LIMIT_S):
        result = await run(data, *arguments)
    assert isinstance(result.exception, ConfigError)
    assert "llm_provider" in str(result.exception)
    assert result.stdout == ""


async def test_three_failures_in_a_row_end_the_command(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "FIRST_BACKOFF_S", 0.05)
    async with asyncio.timeout(LIMIT_S):
        await remember_without_llm(data)
        async with llm_server(api_error(401, f"Incorrect API key provided: {KEY}")) as refusing:
            result = await run(data, "--json", server=refusing)
        failed = outcome(result)
        assert (result.exit_code, failed["ended"], failed["left"]) == (1, "failed", len(SAID))
        assert "refused the key" in failed["error"]
        assert isinstance(result.exception, MemoryOSError)
        assert "finished work is kept" in str(result.exception)
        after = await state(data)
        assert (after.counts.degraded, after.counts.mid_term) == (len(SAID), len(SAID))
        async with llm_server(answer) as server:
            assert outcome(await run(data, "--json", server=server))["left"] == 0
    assert KEY not in result.output + str(result.exception)


async def test_failures_between_successes_do_not_end_the_command(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "FIRST_BACKOFF_S", 0.1)
    monkeypatch.setattr(loops, "LONGEST_BACKOFF_S", 0.1)
    batches_asked = count(1)

    def falters(asked: Asked) -> Answer:
        """Reply to every third batch only."""
        if asked.body["response_format"]["json_schema"]["name"] == "lessons":
            return answer(asked)
        return api_error(401) if next(batches_asked) % 3 else answer(asked)

    async with asyncio.timeout(LIMIT_S), llm_server(falters) as server:
        await remember_without_llm(data)
        done = outcome(await run(data, "--json", "--consolidation-batch-pages", "3", server=server))
    assert (done["ended"], done["left"]) == ("done", 0)
    assert done["failed_calls"] >= 2


async def test_a_spent_budget_ends_the_command(data: Path) -> None:
    async with asyncio.timeout(LIMIT_S), llm_server(answer) as server:
        await remember_without_llm(data)
        result = await run(data, "--json", "--llm-daily-token-limit", "1", server=server)
        spent = outcome(result)
        assert (result.exit_code, spent["ended"]) == (1, "budget_spent")
        assert "llm_daily_token_limit" in spent["error"]
        assert isinstance(result.exception, BudgetSpentError)
        assert 0 < spent["left"] < len(SAID)
        assert sorted_batches(server) == 1


async def test_a_budget_too_small_for_a_call_counts_as_spent(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "FIRST_BACKOFF_S", 0.05)
    refusal = "90 tokens are spent today and llm_daily_token_limit is 80"

    async def refused(*_: object) -> None:
        raise BudgetSpentError(refusal)

    async with asyncio.timeout(LIMIT_S), llm_server(answer) as server:
        await remember_without_llm(data)
        monkeypatch.setattr("memoryos_mcp.llm.user_chat.UserChat._check_budget", refused)
        result = await run(data, "--json", "--llm-daily-token-limit", "80", server=server)
    assert (outcome(result)["ended"], outcome(result)["error"]) == ("budget_spent", refusal)


async def test_with_a_spent_budget_no_request_is_sent(data: Path) -> None:
    async with asyncio.timeout(LIMIT_S), llm_server(answer) as server:
        await remember_without_llm(data)
        result = await run(data, "--json", "--llm-daily-token-limit", "0", server=server)
        assert (outcome(result)["ended"], server.asked) == ("budget_spent", [])


@pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot send Ctrl-C to one process")
async def test_ctrl_c_ends_the_command_and_loses_nothing(data: Path) -> None:
    async with asyncio.timeout(LIMIT_S), llm_server(Hang()) as server:
        await remember_without_llm(data)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "memoryos_mcp", "reconsolidate", *flags(data)),
            env=clean_environment({"MEMORYOS_OPENAI_API_KEY": KEY, "MEMORYOS_OPENAI_BASE_URL": server.base_url}),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            await server.was_asked(1)
            process.send_signal(signal.SIGINT)
            stdout, stderr = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
        assert (process.returncode, stdout) == (130, b"")
        assert b"stopped; finished work is kept" in stderr
        assert b"Traceback" not in stderr
        assert KEY.encode() not in stderr
        after = await state(data)
        assert (after.counts.mid_term, after.counts.degraded) == (len(SAID), len(SAID))


async def test_without_an_llm_the_exit_code_is_2(data: Path) -> None:
    command = [sys.executable, "-m", "memoryos_mcp", "reconsolidate", *flags(data)]
    async with asyncio.timeout(LIMIT_S):
        done = await asyncio.to_thread(
            subprocess.run, command, env=clean_environment(), capture_output=True, timeout=LIMIT_S, check=False
        )
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"llm_provider" in done.stderr


async def test_the_key_is_in_no_output(data: Path) -> None:
    async with asyncio.timeout(LIMIT_S), llm_server(answer) as server:
        await remember_without_llm(data)
        for arguments in (("--dry-run",), ("--log-level", "DEBUG"), ("--json",)):
            result = await run(data, *arguments, server=server)
            assert result.exit_code == 0
            assert KEY not in result.output
