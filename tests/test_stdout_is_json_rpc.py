import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.programs import INSPECTOR, NODE, program
from tests.servers import BUSY_BACKGROUND, ERAS, Era, PipeServer, clean_environment, serve_command

pytestmark = pytest.mark.campaign

INSPECTOR_LIMIT_S = 60
ROUNDS = 40
REPLY_KEYS = ({"jsonrpc", "id", "result"}, {"jsonrpc", "id", "error"})


def refuse_constant(name: str) -> float:
    pytest.fail(f"{name} is not JSON")


def check_line(line: bytes) -> dict[str, Any]:
    """Return the message in a line of stdout, which must be strict JSON-RPC."""
    assert line.endswith(b"\n")
    assert b"\r" not in line
    message = json.loads(line.decode("utf-8", "strict"), parse_constant=refuse_constant)
    assert isinstance(message, dict)
    assert message["jsonrpc"] == "2.0"
    assert message.keys() in REPLY_KEYS or message.keys() <= {"jsonrpc", "method", "params"}
    return message


def send_round(server: PipeServer, number: int) -> list[int]:
    """Send valid and invalid requests of every kind without waiting, and return their ids."""
    tools: list[tuple[str, dict[str, Any]]] = [
        ("add_memory", {"user_input": f"I moved to town {number}.", "agent_response": "你好 😀 \u2028 done."}),
        ("add_memory", {"user_input": "line\nbreak\r\n\x07", "agent_response": "x" * 200}),
        ("add_memory", {"user_input": "", "agent_response": ""}),
        ("add_memory", {"user_input": 5}),
        ("add_memory", {"user_input": "x", "agent_response": "", "timestamp": "never"}),
        ("retrieve_memory", {"query": f"town {number}"}),
        ("retrieve_memory", {"query": "town", "max_results": 0}),
        ("get_user_profile", {"include_assistant_knowledge": True}),
        ("get_memory_stats", {}),
        ("list_memories", {"limit": 3}),
        ("get_memory", {"ids": ["k1"]}),
        ("correct_memory", {"id": "k999999", "wrong": True}),
        ("no_such_tool", {}),
    ]
    requests = [server.send_call(name, arguments) for name, arguments in tools]
    requests.append(server.send_raw_call("add_memory", r'{"user_input":"\ud800","agent_response":"\u0000"}'))
    requests += [server.send("resources/read", {"uri": f"memoryos://{name}"}) for name in ("status", "profile", "nope")]
    requests += [server.send("prompts/get", {"name": name}) for name in ("use_memory", "recall")]
    requests += [server.send(method) for method in ("tools/list", "ping", "no/such/method")]
    server.write_line(b"this is no message \xff")
    return requests


@pytest.mark.parametrize(("python", "rounds"), [([], ROUNDS), (["-X", "dev"], 8)], ids=["plain", "development mode"])
def test_a_long_session_writes_only_json_rpc(data: Path, python: list[str], rounds: int) -> None:
    settings = {**BUSY_BACKGROUND, "log_level": "DEBUG"}
    with PipeServer(data, settings, python=python, env={"PYTHONWARNINGS": "default"}) as server:
        requests = [request for number in range(rounds) for request in send_round(server, number)]
        server.wait_for_replies(requests, limit_s=90)
        server.wait_until_settled()
        assert server.close() == 0
    messages = [check_line(line) for line in server.lines]
    answered = [message["id"] for message in messages if message.get("id") is not None]
    assert len(requests) > 15 * rounds
    assert len(answered) == len(set(answered))
    assert set(requests) <= set(answered)
    assert server.stderr
    assert "Traceback" not in server.stderr


def test_a_server_without_a_usable_memory_writes_only_json_rpc(data: Path) -> None:
    file = data / "users" / "default_user" / "memory.db"
    file.parent.mkdir(parents=True)
    file.write_text("no database\n" * 100, encoding="utf-8")
    with PipeServer(data) as server:
        server.wait_for_replies(send_round(server, 0))
        assert server.close() == 0
    assert len([check_line(line) for line in server.lines]) > 10


@pytest.fixture
def inspector() -> list[str]:
    """The command of the official inspector. The test is skipped if it is not installed."""
    return [program(NODE), program(INSPECTOR), "--cli"]


def inspected(inspector: list[str], data: Path, era: Era, *options: str) -> dict[str, Any]:
    """Return the result of one request that the inspector sends to its own server."""
    command = [*inspector, *serve_command(data), "--protocol-era", era, "--format", "json", "-q", *options]
    environment = clean_environment({"HOME": str(data.parent), "NO_COLOR": "1"})
    done = subprocess.run(
        command, capture_output=True, encoding="utf-8", timeout=INSPECTOR_LIMIT_S, env=environment, check=False
    )
    assert done.stdout, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)["result"]
    return answer


@pytest.mark.parametrize("era", ERAS)
def test_the_official_inspector_lists_and_calls_the_tools(inspector: list[str], data: Path, era: Era) -> None:
    def call(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        options = ("--method", "tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments))
        return inspected(inspector, data, era, *options)

    tools = inspected(inspector, data, era, "--method", "tools/list")["tools"]
    assert {"add_memory", "retrieve_memory", "get_memory"} <= {tool["name"] for tool in tools}
    added = call("add_memory", {"user_input": "I keep bees.", "agent_response": "Sweet."})["structuredContent"]
    found = call("retrieve_memory", {"query": "bees"})["structuredContent"]
    assert [page["page_id"] for page in found["short_term_memory"]] == [added["page_id"]]
    refused = call("retrieve_memory", {"query": "bees", "max_results": 0})
    assert refused["isError"] is True
    assert refused["content"][0]["text"].startswith("max_results: ")


@pytest.mark.parametrize("era", ERAS)
def test_the_official_inspector_reads_resources_and_prompts(inspector: list[str], data: Path, era: Era) -> None:
    resources = inspected(inspector, data, era, "--method", "resources/list")["resources"]
    assert len(resources) == 3
    status = inspected(inspector, data, era, "--method", "resources/read", "--uri", "memoryos://status")
    assert json.loads(status["contents"][0]["text"])["total_pages"] == 0
    prompts = inspected(inspector, data, era, "--method", "prompts/list")["prompts"]
    assert [prompt["name"] for prompt in prompts] == ["use_memory", "recall"]
