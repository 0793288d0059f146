"""The checks of doctor, with real servers that reply correctly, wrongly or not at all."""

import asyncio
import json
import platform
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import apsw
import pytest
from click.testing import CliRunner, Result

from memoryos_mcp.cli.commands.doctor import machine, models
from memoryos_mcp.cli.main import cli
from memoryos_mcp.llm.providers import PRESETS, Preset
from memoryos_mcp.storage.sqlite import connections
from memoryos_mcp.storage.sqlite.paths import database_file
from tests.http_server import HttpServer
from tests.llm_server import (
    Answer,
    Answering,
    Asked,
    Hang,
    LlmServer,
    Reply,
    api_error,
    completion,
    embeddings,
    free_port,
    html,
    json_reply,
    llm_server,
)
from tests.memories import USER, Said, memory
from tests.servers import clean_environment

LIMIT_S = 60
KEY = "sk-live-4f9a8b7c6d5e"
PASSWORD = "hunter2"  # noqa: S105 - of no account
WELL = completion('{"ok": true}')

pytestmark = pytest.mark.usefixtures("bare_environment", "home")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new home folder without clients."""
    for name in ("XDG_CONFIG_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "APPDATA", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("USERPROFILE", str(folder))
    return folder


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "LONGEST_PAUSE_S", 0.01)


async def run(data: Path, *arguments: str, **environment: str) -> Result:
    command = ["doctor", "--data-storage-path", str(data), *arguments]
    async with asyncio.timeout(LIMIT_S):
        return await asyncio.to_thread(CliRunner().invoke, cli, command, env=environment)


async def ask(server: LlmServer, data: Path, *arguments: str, **environment: str) -> dict[str, dict[str, Any]]:
    """Return the checks by name, with a key and an LLM, and without an embedding model."""
    flags = ("--json", "--openai-base-url", server.base_url, "--llm-model", "tiny", "--embedding-model-name", "none")
    arguments = (*flags, *arguments)
    return checks(await run(data, *arguments, **{"MEMORYOS_OPENAI_API_KEY": KEY, **environment}))


def checks(result: Result) -> dict[str, dict[str, Any]]:
    found = json.loads(result.stdout)
    assert found.keys() == {"checks", "ok"}
    assert all(check.keys() == {"name", "verdict", "found", "fix"} for check in found["checks"])
    verdicts = [check["verdict"] for check in found["checks"]]
    assert set(verdicts) <= {"ok", "warn", "fail"}
    assert found["ok"] is ("fail" not in verdicts)
    assert result.exit_code == ("fail" in verdicts)
    return {check["name"]: check for check in found["checks"]}


def with_models(answer: Answer, names: Sequence[str]) -> Answering:
    """Return a server's reply to chats, or its list of models."""
    listed = json_reply({"object": "list", "data": [{"id": name, "object": "model"} for name in names]})
    return lambda asked: listed if asked.path.endswith("/models") else answer


def files_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def chats(server: LlmServer) -> list[Asked]:
    return [asked for asked in server.asked if asked.path.endswith("/chat/completions")]


async def test_without_an_llm_the_check_passes_and_explains_how(data: Path) -> None:
    found = checks(await run(data, "--json"))
    assert {check["verdict"] for check in found.values()} == {"ok"}
    assert "no LLM is configured, and none is required" in found["llm"]["found"]
    assert "llm_provider" in found["llm"]["fix"]


async def test_a_key_in_the_environment_alone_enables_no_llm(data: Path) -> None:
    found = checks(await run(data, "--json", DASHSCOPE_API_KEY=KEY))
    assert "set llm_provider to qwen" in found["llm"]["fix"]
    assert "DASHSCOPE_API_KEY alone does not enable an LLM" in found["llm"]["fix"]


async def test_the_llm_gets_one_small_request_without_memory_text(data: Path) -> None:
    async with llm_server(WELL) as server:
        found = await ask(server, data, "--embedding-model-name", "memoryos-small")
        (asked,) = server.asked
    assert [check["verdict"] for check in found.values()] == ["ok"] * 8
    assert "11 prompt tokens, 7 reply tokens" in found["llm"]["found"]
    assert "json_schema" in found["llm_reply"]["found"]
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.body["response_format"]["json_schema"]["schema"]["required"] == ["ok"]
    assert sum(len(message["content"]) for message in asked.body["messages"]) < 500
    assert files_in(data) == []


async def test_each_check_is_printed_on_one_line_in_order(data: Path) -> None:
    async with llm_server(completion("Certainly!")) as server:
        result = await run(data, "--openai-base-url", server.base_url, "--embedding-model-name", "none")
    assert (result.exit_code, result.stderr) == (1, "")
    lines = [line.split(maxsplit=2) for line in result.stdout.splitlines()]
    assert [(mark, name) for mark, name, _ in lines] == [
        ("ok", "python"),
        ("warn", "settings"),
        ("ok", "data_folder"),
        ("ok", "memory"),
        ("ok", "clients"),
        ("ok", "embedding_model"),
        ("ok", "llm"),
        ("fail", "llm_reply"),
    ]
    assert "set llm_model" in lines[1][2]
    assert lines[5][2] == "no embedding model is configured, so search uses only keywords"


async def test_the_bundled_model_passes_with_its_dimension(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "SLOW_LOAD_S", 1000.0)
    quick = checks(await run(data, "--json"))["embedding_model"]
    monkeypatch.setattr(models, "SLOW_LOAD_S", 0.0)
    slow = checks(await run(data, "--json"))["embedding_model"]
    assert (quick["verdict"], quick["fix"]) == ("ok", None)
    assert quick["found"] == "memoryos-small on this machine works; its vectors have 384 dimensions"
    assert re.fullmatch(re.escape(quick["found"]) + r", loaded in \d+\.\d s", slow["found"])


async def test_an_embeddings_api_gets_a_probe_and_a_query(data: Path) -> None:
    async with llm_server(embeddings([[3.0, 4.0]])) as server:
        url = server.base_url.replace("//", f"//user:{PASSWORD}@")
        arguments = ("--json", "--embedding-base-url", url, "--embedding-model-name", "tiny")
        result = await run(data, *arguments, MEMORYOS_EMBEDDING_API_KEY=KEY)
        probe, query = server.asked
    found = checks(result)["embedding_model"]
    assert (found["verdict"], found["fix"]) == ("ok", None)
    works = f"tiny at the embeddings API {server.base_url} works; its vectors have 2 dimensions"
    assert found["found"].startswith(works)
    assert query.body["input"] != probe.body["input"]
    assert query.headers["authorization"].startswith("Basic ")  # the login in the address takes precedence over the key
    assert KEY not in result.output
    assert PASSWORD not in result.output
    assert files_in(data) == []


async def test_a_refusing_embeddings_api_fails_with_what_to_set(data: Path) -> None:
    async with llm_server(api_error(401)) as server:
        found = checks(await run(data, "--json", "--embedding-base-url", server.base_url))
    assert found["embedding_model"]["verdict"] == "fail"
    assert found["embedding_model"]["fix"] == "set embedding_api_key"


async def test_a_failing_embeddings_api_is_shown_with_its_models(data: Path) -> None:
    answer = with_models(api_error(404, "model not found"), ["tiny-embed", f"leaked-{KEY}"])
    arguments = ("--json", "--embedding-model-name", "tiny", "--embedding-base-url")
    async with llm_server(answer) as server:
        result = await run(data, *arguments, server.base_url, MEMORYOS_EMBEDDING_API_KEY=KEY)
    found = checks(result)["embedding_model"]
    assert "has no such model or path" in found["found"]
    assert found["fix"].endswith("the server has these models: tiny-embed")
    assert KEY not in result.output
    models, nothing = json_reply({"data": [{"id": "tiny"}]}), html("Not found", status=404)
    answering: Answering = lambda asked: models if asked.path == "/v1/models" else nothing  # noqa: E731
    async with llm_server(answering) as server:
        found = checks(await run(data, *arguments, server.base_url.removesuffix("/v1")))["embedding_model"]
        assert f"an API replies at {server.base_url}: set embedding_base_url to that address" in found["fix"]


async def test_a_silent_local_embeddings_api_gets_a_start_command(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memoryos_mcp.llm.api.FIRST_PAUSE_S", 0.01)
    port = free_port()
    preset = Preset(base_url=f"http://localhost:{port}/v1")
    monkeypatch.setattr(models, "PRESETS", {**PRESETS, "llama.cpp": preset})
    found = checks(await run(data, "--json", "--embedding-base-url", f"http://127.0.0.1:{port}/v1"))
    assert found["embedding_model"]["found"] == f"nothing answers at http://127.0.0.1:{port}/v1"
    assert "start llama.cpp with: llama-server -m MODEL.gguf --embeddings" in found["embedding_model"]["fix"]


async def test_a_model_that_cannot_be_loaded_fails_with_the_fix(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    found = checks(await run(data, "--json", "--embedding-model-name", "maker/model"))["embedding_model"]
    assert found["verdict"] == "fail"
    assert found["found"] == "the embedding model maker/model cannot be loaded: it needs optional packages"
    assert "pip install '.[sentence-transformers]'" in found["fix"]


@pytest.mark.parametrize(
    ("key_arguments", "environment", "told"),
    [
        ((), {"MEMORYOS_OPENAI_API_KEY": KEY}, "key set (from openai_api_key)"),
        (("--llm-provider", "deepseek"), {"DEEPSEEK_API_KEY": KEY}, "key set (from the variable DEEPSEEK_API_KEY)"),
        ((), {"MEMORYOS_OPENAI_API_KEY": "sk-..."}, "key not set"),
    ],
)
async def test_the_settings_check_names_the_source_of_the_key(
    key_arguments: tuple[str, ...], environment: dict[str, str], told: str, data: Path
) -> None:
    async with llm_server(WELL) as server:
        url = server.base_url.replace("//", f"//user:{PASSWORD}@") + "?token=t0k3n"
        result = await run(data, "--json", "--openai-base-url", url, *key_arguments, **environment)
        settings = checks(result)["settings"]["found"]
        assert f"address {server.base_url}, model gpt-4o-mini" in settings
    assert told in settings
    assert PASSWORD not in result.output
    assert "t0k3n" not in result.output


@pytest.mark.parametrize(
    ("answer", "problem", "fix"),
    [
        (api_error(401, "Incorrect API key", code="invalid_api_key"), "refused the key", "check openai_api_key"),
        (api_error(404, "model 'tiny' not found"), "no such model or path", "check llm_model"),
        (api_error(402, "Insufficient Balance"), "no credit left", "billing"),
        (api_error(429, "quota", code="insufficient_quota"), "no credit left", "billing"),
        (html("<h1>Welcome</h1>"), "is not a chat API", "ends in /v1"),
        (html("<h1>Not found</h1>", status=404), "no such model or path", "openai_base_url"),
        (html("Method not allowed", status=405), "refused the request", "ends in /v1"),
        (Reply(b"", 307, {"location": "https://elsewhere.example/"}), "redirects to another", "set openai_base_url"),
        (api_error(503, "overloaded"), "HTTP 503", "reason in the server's log"),
        (Reply(WELL.body, headers=WELL.headers, sent_bytes=20), "broke before the reply was complete", "try again"),
    ],
)
async def test_an_api_error_fails_with_problem_and_fix(answer: Answer, problem: str, fix: str, data: Path) -> None:
    async with llm_server(answer) as server:
        found = await ask(server, data)
        assert server.base_url in found["llm"]["found"]
    assert found["llm"]["verdict"] == "fail"
    assert problem in found["llm"]["found"]
    assert fix in found["llm"]["fix"]
    assert "llm_reply" not in found


async def test_an_unknown_model_gets_similar_models_as_a_hint(data: Path) -> None:
    names = [*(f"embedding-{number}" for number in range(20)), f"leaked-{KEY}", "odd\x1b[2J", "", "tiny-2"]
    answer = with_models(api_error(404, "model not found"), names)
    async with llm_server(answer) as server:
        found = await ask(server, data)
    listed = found["llm"]["fix"].partition("the server has these models: ")[2]
    assert listed.startswith("tiny-2, ")
    assert listed.count(",") == 9
    assert listed.endswith(" and 11 more")
    assert KEY not in listed
    assert "odd" not in listed


async def test_models_are_not_listed_if_the_model_exists(data: Path) -> None:
    answer = with_models(api_error(402, "pay"), ["tiny", "huge"])
    async with llm_server(answer) as server:
        assert "the server has these models" not in (await ask(server, data))["llm"]["fix"]


async def test_an_address_without_v1_gets_the_correct_one_as_a_hint(data: Path) -> None:
    models, nothing = json_reply({"data": [{"id": "tiny"}]}), html("Not found", status=404)
    answering: Answering = lambda asked: models if asked.path == "/v1/models" else nothing  # noqa: E731
    async with llm_server(answering) as server:
        found = await ask(server, data, "--openai-base-url", server.base_url.removesuffix("/v1") + "/")
        assert f"an API replies at {server.base_url}: set openai_base_url to that address" in found["llm"]["fix"]


@pytest.mark.parametrize("listing", [html("<p>"), json_reply({"data": "none"}), api_error(401), Hang()])
async def test_an_endpoint_without_a_list_of_models_is_no_failure(
    listing: Answer, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models, "PROBE_TIMEOUT_S", 0.5)
    refused = api_error(404, "model not found")
    answering: Answering = lambda asked: listing if asked.path.endswith("/models") else refused  # noqa: E731
    async with llm_server(answering) as server:
        found = await ask(server, data)
    assert "no such model" in found["llm"]["found"]
    assert "the server has these models" not in found["llm"]["fix"]


@pytest.mark.parametrize(
    ("provider", "started_with"), [("ollama", "ollama serve"), ("llama.cpp", "llama-server"), ("vllm", "vllm serve")]
)
async def test_a_silent_local_llm_gets_a_start_command(
    provider: str, started_with: str, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"http://127.0.0.1:{free_port()}/v1"
    found = checks(await run(data, "--json", "--llm-provider", provider, "--openai-base-url", url))
    assert found["llm"]["found"] == f"nothing answers at {url}"
    assert started_with in found["llm"]["fix"]


async def test_silence_fails_after_the_time_limit_of_the_settings(data: Path) -> None:
    async with llm_server(with_models(Hang(), ["tiny"])) as server:
        found = await ask(server, data, "--llm-timeout-s", "0.3")
        assert len(chats(server)) == 1
    assert "did not finish its reply within 0.3 s" in found["llm"]["found"]
    assert "llm_timeout_s" in found["llm"]["fix"]


async def test_the_doctor_waits_less_than_the_configured_timeout(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "LONGEST_WAIT_S", 1.0)
    async with asyncio.timeout(LIMIT_S), llm_server(Hang()) as server:
        found = await ask(server, data, "--llm-timeout-s", "3600")
        await server.hung_up.wait()
    assert "did not finish its reply within 1 s" in found["llm"]["found"]
    assert "llm_timeout_s" not in found["llm"]["fix"]


@pytest.mark.parametrize(
    ("reply", "verdict", "problem"),
    [
        (completion("Certainly! It is done."), "fail", "the reply contains no JSON object"),
        (completion(""), "fail", "the reply is empty"),
        (completion('{"ok": tr', finish_reason="length"), "fail", "the reply was cut"),
        (completion('{"okay": 1}'), "warn", "not the requested object"),
    ],
)
async def test_an_invalid_reply_is_reported_with_its_consequence(
    reply: Answer, verdict: str, problem: str, data: Path
) -> None:
    async with llm_server(reply) as server:
        found = await ask(server, data)
    assert found["llm"]["verdict"] == "ok"
    assert found["llm_reply"]["verdict"] == verdict
    assert problem in found["llm_reply"]["found"]
    assert "larger model" in found["llm_reply"]["fix"]


async def test_a_provider_without_response_format_gets_a_prompt(data: Path) -> None:
    fenced = completion('Here it is:\n```json\n{"ok": true}\n```')
    async with llm_server(fenced) as server:
        found = await ask(server, data, "--llm-provider", "anthropic")
        assert '{"ok": true}' in server.bodies[0]["messages"][0]["content"]
    assert found["llm_reply"]["verdict"] == "ok"
    assert "only the prompt asks for JSON" in found["llm_reply"]["found"]


async def test_an_invalid_setting_is_a_failed_check(data: Path, tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text('{"llm_modle": "x"}', encoding="utf-8")
    unknown = checks(await run(data, "--json", "--config", str(config)))
    keyless = checks(await run(data, "--json", "--llm-provider", "openai"))
    assert list(unknown) == ["python", "settings", "clients"]
    assert "llm_modle" in unknown["settings"]["found"]
    assert keyless["settings"]["verdict"] == "fail"
    assert "OPENAI_API_KEY" in keyless["settings"]["fix"]
    assert keyless["data_folder"]["verdict"] == "ok"
    assert "llm" not in keyless


async def test_an_unwritable_folder_fails_and_other_checks_run(data: Path) -> None:
    taken = data / "file"
    async with llm_server(WELL) as server:
        await anyio.Path(data).write_text("a file", encoding="utf-8")
        found = await ask(server, taken)
    assert found["data_folder"]["verdict"] == "fail"
    assert "choose another folder" in found["data_folder"]["fix"]
    assert found["llm"]["verdict"] == "ok"


async def test_a_replay_file_means_no_call_and_no_new_file(data: Path, tmp_path: Path) -> None:
    replies = tmp_path / "replies.jsonl"
    async with llm_server(WELL) as server:
        found = await ask(server, data, "--llm-replay-file", str(replies))
        assert server.asked == []
    assert str(replies) in found["llm"]["found"]
    assert sorted(files_in(tmp_path)) == [data.name, "home"]


@pytest.mark.parametrize("as_json", [(), ("--json",)])
@pytest.mark.parametrize(
    "answer",
    [
        WELL,
        completion(f"The key is {KEY}"),
        completion(json.dumps({"ok": KEY})),
        api_error(401, f"Incorrect API key provided: {KEY}", code=KEY),
        api_error(400, f"unknown parameter {KEY}", param=KEY),
        api_error(404, f"no such model for {KEY}"),
        html(f"<p>{KEY}</p>", status=502),
        Reply(b"", 302, {"location": f"https://example.org/?key={KEY}"}),
    ],
)
async def test_the_key_is_in_no_output(answer: Answer, as_json: tuple[str, ...], data: Path) -> None:
    models = with_models(answer, [KEY, f"x{KEY}x", "other"])
    async with llm_server(models) as server:
        url = server.base_url.replace("//", f"//user:{PASSWORD}@")
        arguments = ["--openai-base-url", url, "--embedding-model-name", "none", "--log-level", "DEBUG", *as_json]
        result = await run(data, *arguments, MEMORYOS_OPENAI_API_KEY=KEY)
        assert chats(server)
    assert "llm" in result.stdout
    for secret in (KEY, KEY[:10], KEY[-6:], PASSWORD):
        assert secret not in result.output


async def test_json_output_and_exit_code_show_a_failure(data: Path) -> None:
    async with llm_server(api_error(401)) as server:
        environment = clean_environment({"MEMORYOS_OPENAI_API_KEY": KEY, "MEMORYOS_OPENAI_BASE_URL": server.base_url})
        command = [sys.executable, "-m", "memoryos_mcp", "doctor", "--json", "--data-storage-path", str(data)]
        done = await asyncio.to_thread(
            subprocess.run, command, env=environment, capture_output=True, timeout=LIMIT_S, check=False
        )
    assert (done.returncode, done.stderr) == (1, b"")
    assert json.loads(done.stdout)["ok"] is False


async def test_placeholders_and_mistyped_providers_are_reported(data: Path) -> None:
    held = await run(data, "--llm-provider", "openai", OPENAI_API_KEY="your-api-key")
    assert "OPENAI_API_KEY contains only a placeholder" in held.stdout
    mistyped = await run(data, "--llm-provider", "opnai")
    assert "did you mean openai?" in mistyped.stdout


async def test_an_address_with_the_path_of_chats_is_accepted(data: Path) -> None:
    async with llm_server(WELL) as server:
        result = await run(data, "--openai-base-url", f"{server.base_url}/chat/completions/", "--llm-model", "tiny")
    assert result.exit_code == 0, result.stdout


async def test_a_missing_replay_file_is_a_warning(data: Path, tmp_path: Path) -> None:
    result = await run(data, "--llm-replay-file", str(tmp_path / "nope.jsonl"))
    assert "does not exist yet" in result.stdout


async def test_an_unsupported_python_is_a_warning(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fine = checks(await run(data, "--json", "--embedding-model-name", "none"))["python"]
    assert fine["found"].startswith(f"{platform.python_version()}, 64-bit, ")
    assert fine["verdict"] == "ok"
    monkeypatch.setattr(machine, "NEWEST_PYTHON", (3, 10))
    old = checks(await run(data, "--json", "--embedding-model-name", "none"))["python"]
    assert (old["verdict"], "install a 64-bit Python, version 3.11 to 3.10" in old["fix"]) == ("warn", True)
    monkeypatch.setattr(machine, "BITS", 32)
    assert checks(await run(data, "--json", "--embedding-model-name", "none"))["python"]["verdict"] == "fail"


async def test_the_memory_check_reads_the_memory_if_it_exists(data: Path) -> None:
    flags = ("--json", "--embedding-model-name", "none", "--user-id", USER)
    assert "has no memory yet; the first page will create it" in checks(await run(data, *flags))["memory"]["found"]
    async with memory(data, None) as ours:
        await ours.add([Said("I keep bees."), Said("And hens.")])
        in_use = checks(await run(data, *flags))["memory"]
    at_rest = checks(await run(data, *flags))["memory"]
    file = database_file(data, USER)
    for found in (in_use, at_rest):
        assert found["verdict"] == "ok"
        assert re.fullmatch(
            rf"SQLite 3\.\d+\.\d+; {USER}: 2 pages in {re.escape(str(file))}, no damage", found["found"]
        )


async def test_an_old_sqlite_is_a_failed_check(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "SQLITE_AT_LEAST", (9, 0, 0))
    found = checks(await run(data, "--json", "--embedding-model-name", "none"))["memory"]
    assert found["verdict"] == "fail"
    assert found["found"].endswith("is older than 9.0.0")
    assert found["fix"] == "reinstall the apsw package"


async def test_a_damaged_memory_fails_and_is_not_changed(data: Path) -> None:
    flags = ("--json", "--embedding-model-name", "none", "--user-id", USER)
    file = database_file(data, USER)
    async with memory(data, None) as ours:
        await ours.add([Said("I keep bees.")])
    for content in (b"not a memory" * 1000, file.read_bytes()[:8192] + b"\xff" * 8192, b""):
        file.write_bytes(content)
        found = checks(await run(data, *flags))["memory"]
        assert (found["verdict"], file.read_bytes()) == ("fail", content)
        assert found["fix"]


async def test_an_index_that_differs_from_its_table_fails(data: Path) -> None:
    flags = ("--json", "--embedding-model-name", "none", "--user-id", USER)
    file = database_file(data, USER)
    async with memory(data, None) as ours:
        await ours.add([Said("I keep bees.")])
    with closing(apsw.Connection(str(file))) as connection:
        connection.pragma("writable_schema", True)
        row = connection.execute("SELECT * FROM sqlite_schema WHERE name = 'pages_outline'").get
        connection.execute("DELETE FROM sqlite_schema WHERE name = 'pages_outline'")
    with closing(apsw.Connection(str(file))) as connection:
        connection.execute("UPDATE pages SET session = session + 1")
        connection.pragma("writable_schema", True)
        connection.execute("INSERT INTO sqlite_schema VALUES (?, ?, ?, ?, ?)", row)
    found = checks(await run(data, *flags))["memory"]
    assert found["verdict"] == "fail"
    assert "is damaged" in found["found"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("tier = 'short-term'", "SQLite reports that the file is malformed"),
        ("organised_by = CAST(x'ff' AS TEXT)", "contains text that is damaged on disk"),
    ],
)
async def test_the_doctor_fails_where_a_server_fails(data: Path, change: str, told: str) -> None:
    flags = ("--json", "--embedding-model-name", "none", "--user-id", USER)
    file = database_file(data, USER)
    async with memory(data, None) as ours:
        await ours.add([Said("I keep bees.")])
    with closing(apsw.Connection(str(file))) as connection:
        connection.pragma("ignore_check_constraints", True)
        connection.execute(f"UPDATE pages SET {change}, checksum = checksum + 1")  # noqa: S608 - constant
    before = file.read_bytes()
    found = checks(await run(data, *flags))["memory"]
    assert (found["verdict"], file.read_bytes()) == ("fail", before)
    assert told in found["found"]
    assert "backup" in found["fix"].lower()
    assert "export" not in found["fix"]


def client_file(home: Path, entry: object, name: str = "memoryos") -> Path:
    file = home / ".cursor" / "mcp.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps({"mcpServers": {name: entry}}), encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("name", "entry", "verdict", "told", "fix"),
    [
        ("other", {"command": "npx"}, "ok", "not configured in", "install --client cursor"),
        ("memoryos", {"command": "/gone/memoryos-mcp", "args": ["serve"]}, "fail", "no longer exists", "install"),
        ("memoryos", {"command": "memoryos-mcp", "args": ["serve"]}, "fail", "not an absolute path", "--client cursor"),
        ("mine", {"command": "memoryos-mcp", "args": ["serve"]}, "fail", '"mine": its command', "--name mine"),
        ("memoryos", {"command": __file__, "args": ["-m", "memoryos_mcp"]}, "fail", "is not executable", "install"),
        ("memory", {"command": "uvx", "args": ["memoryos-mcp"]}, "warn", "starts a different project", "remove it"),
        (
            "memory",
            {"command": "/x/uv", "args": ["tool", "run", "memoryos-mcp==2"]},
            "warn",
            "a different project",
            "remove",
        ),
        ("memoryos", {"command": "node", "args": ["x.js"]}, "warn", "was not added by this program", "--force"),
        ("memoryos", {"url": "http://127.0.0.1:1/mcp"}, "fail", "no server replied at http://127.0.0.1:1/mcp", "start"),
        ("memoryos", {"url": "http://me:pw@127.0.0.1:1/mcp?k=pw"}, "fail", "at http://127.0.0.1:1/mcp", "--http"),
        ("memoryos", {"url": "no address"}, "fail", "its address is not valid", "--http URL"),
        ("memoryos", {"url": "http://[::1/mcp"}, "fail", "its address is not valid", "--http URL"),
        ("memoryos", {"command": sys.executable, "args": ["-m", "memoryos_mcp", "serve"]}, "ok", "configured in", None),
    ],
)
async def test_a_clients_entry_is_checked(
    name: str, entry: object, verdict: str, told: str, fix: str | None, data: Path, home: Path
) -> None:
    file = client_file(home, entry, name)
    before = file.read_bytes()
    found = checks(await run(data, "--json", "--embedding-model-name", "none"))["client_cursor"]
    assert (found["verdict"], file.read_bytes()) == (verdict, before)
    assert told in found["found"]
    assert found["fix"] is None if fix is None else fix in found["fix"]


async def test_the_server_of_an_entry_gets_the_token_of_the_entry(
    data: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def found(entry: Mapping[str, object]) -> dict[str, Any]:
        client_file(home, entry)
        return checks(await run(data, "--json", "--embedding-model-name", "none"))["client_cursor"]

    monkeypatch.delenv("TEAM_TOKEN", raising=False)
    with HttpServer(home / "served") as server:
        token = server.add_token("ada")
        for path in ("/mcp", "/sse"):
            url = f"{server.url}{path}"
            bearer = {"Authorization": f"Bearer {token}"}
            assert (await found({"url": url, "headers": bearer}))["verdict"] == "ok"
            refused = await found({"url": url, "headers": {"Authorization": f"Bearer {token}x"}})
            assert (refused["verdict"], "does not accept" in refused["found"]) == ("fail", True)
            assert token not in json.dumps(refused)
            assert "token add USER" in refused["fix"]
            by_variable = {"url": url, "headers": {"Authorization": "Bearer ${env:TEAM_TOKEN}"}}
            unset = await found(by_variable)
            assert (unset["verdict"], "set TEAM_TOKEN" in unset["fix"]) == ("warn", True)
            asked_for = await found({"url": url, "headers": {"Authorization": "Bearer ${input:token}"}})
            assert (asked_for["verdict"], "input:token" in asked_for["found"]) == ("warn", True)
            with monkeypatch.context() as patch:
                patch.setenv("TEAM_TOKEN", token)
                assert (await found(by_variable))["verdict"] == "ok"
        elsewhere = await found({"url": f"{server.url}/health/live"})
        assert (elsewhere["verdict"], "not an MCP server" in elsewhere["found"]) == ("fail", True)


async def test_an_unreadable_client_file_is_a_failed_check(data: Path, home: Path) -> None:
    file = client_file(home, {})
    file.write_text("{", encoding="utf-8")
    found = checks(await run(data, "--json", "--embedding-model-name", "none"))["client_cursor"]
    assert found["verdict"] == "fail"
    assert str(file) in found["found"]
    assert "correct the file" in found["fix"]


async def test_an_account_without_a_home_folder_is_only_a_warning(data: Path, home: Path) -> None:
    def homeless() -> Path:
        raise RuntimeError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "home", homeless)
        found = checks(await run(data, "--json", "--embedding-model-name", "none"))["clients"]
        listed = CliRunner().invoke(cli, ["install"])
    assert (found["verdict"], "no home folder" in found["found"]) == ("warn", True)
    assert "set HOME" in str(listed.exception)


async def test_an_entry_of_install_passes(data: Path, home: Path) -> None:
    client_file(home, {"command": "/gone/memoryos-mcp", "args": ["serve"]})
    assert CliRunner().invoke(cli, ["install", "--client", "cursor"]).exit_code == 0
    found = checks(await run(data, "--json", "--embedding-model-name", "none"))["client_cursor"]
    assert (found["verdict"], found["fix"]) == ("ok", None)
