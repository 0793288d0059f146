"""Clients of other projects use the memory over every transport, with and without a token.

`test_http` and `test_server_stdio` do the same with the client of the SDK. `tests.clients` describes the input and the
output of the scripts.
"""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from memoryos_mcp.model.callers import Scope
from memoryos_mcp.model.pages import utc_now
from memoryos_mcp.storage.sqlite.tokens import TokenStore, token_file
from tests.http_server import HttpServer, asker
from tests.programs import FASTMCP_PYTHON, INSPECTOR, NODE, NODE_PACKAGES, OLD_SDK_PYTHON, program
from tests.servers import BUSY_BACKGROUND, USER, PipeServer, clean_environment, serve_command, stored_pages

pytestmark = pytest.mark.campaign

LIMIT_S = 120
SCRIPTS = Path(__file__).parent / "clients"
COMMANDS: dict[str, Callable[[], list[str]]] = {
    "old-sdk": lambda: [program(OLD_SDK_PYTHON), script("old_sdk.py")],
    "fastmcp": lambda: [program(FASTMCP_PYTHON), script("fastmcp_client.py")],
    "inspector": lambda: [sys.executable, script("inspector.py"), "auto", program(NODE), program(INSPECTOR)],
    "typescript-1": lambda: [program(NODE), script("typescript.mjs"), program(NODE_PACKAGES), "1"],
    "typescript-2": lambda: [program(NODE), script("typescript.mjs"), program(NODE_PACKAGES), "2"],
}
PATHS = {"http": "/mcp", "sse": "/sse"}
HANDSHAKE, STATELESS = "2025-11-25", "2026-07-28"
# The protocol version that each client has to negotiate; the inspector does not print it.
PROTOCOLS: dict[str, str | None] = {
    "old-sdk": HANDSHAKE,
    "fastmcp": STATELESS,
    "inspector": None,
    "typescript-1": HANDSHAKE,
    "typescript-2": STATELESS,
}
# Over SSE this client requests nothing else.
OTHER_PROTOCOLS = {("fastmcp", "sse"): HANDSHAKE}
# Some clients show the server's message, others only the HTTP status.
REASON = re.compile(r"a valid token is required; send it as `Authorization: Bearer \.\.\.`|\b401\b")
TOOLS = [
    "add_memory",
    "retrieve_memory",
    "get_user_profile",
    "get_memory_stats",
    "get_memory",
    "list_memories",
    "correct_memory",
    "forget_memory",
]
STATUS = "memoryos://status"
SAID, ASKED = "I keep bees on the roof.", "Where do I keep them?"
OTHERS_SAID = "I keep ants in the cellar."

every_client = pytest.mark.parametrize("client", COMMANDS)


def script(name: str) -> str:
    return str(SCRIPTS / name)


def run(client: str, home: Path, **job: Any) -> dict[str, Any]:
    """Run a client, and return its output, which must be one line of JSON."""
    job = {"token": None, "say": SAID, "ask": ASKED, "read": STATUS, "calls": []} | job
    done = subprocess.run(
        [*COMMANDS[client](), json.dumps(job)],
        capture_output=True,
        encoding="utf-8",
        timeout=LIMIT_S,
        check=False,
        env=clean_environment({"HOME": str(home)}),
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
    [line] = done.stdout.splitlines()
    answer: dict[str, Any] = json.loads(line)
    return answer


def run_over_http(client: str, server: HttpServer, transport: str, token: str | None) -> dict[str, Any]:
    return run(client, server.folder.parent, transport=transport, url=server.url + PATHS[transport], token=token)


def check(answer: Mapping[str, Any], client: str, transport: str, folder: Path, user_id: str) -> None:
    """Check that a client did all its steps, and saw only the memory of this user."""
    assert answer.keys() == {"protocol", "tools", "receipt", "found", "resource", "results", "complaints"}, answer
    assert answer["complaints"] == []
    assert answer["protocol"] == OTHER_PROTOCOLS.get((client, transport), PROTOCOLS[client])
    assert answer["tools"] == TOOLS
    [page] = stored_pages(folder, user_id)
    assert page.user_input == SAID
    assert answer["receipt"]["page_id"] == page.page_id
    [hit] = answer["found"]["short_term_memory"]
    assert (hit["page_id"], hit["user_input"]) == (page.page_id, SAID)
    assert answer["found"]["retrieved_pages"] == []
    status = json.loads(answer["resource"])
    assert (status["user_id"], status["total_pages"]) == (user_id, 1)


@every_client
def test_over_stdio_a_client_lists_stores_finds_and_reads(client: str, data: Path) -> None:
    answer = run(client, data.parent, transport="stdio", command=serve_command(data))
    check(answer, client, "stdio", data, USER)


@every_client
def test_clients_accept_every_result_and_may_send_null(client: str, data: Path) -> None:
    """Each client validates results against the listed schemas."""
    with PipeServer(data, BUSY_BACKGROUND) as server:
        page, *_ = [server.add(f"I keep bees on roof number {number}.") for number in range(6)]
        server.wait_until_settled()
    nothing = dict.fromkeys(("max_results", "max_tokens", "style_hint"))
    calls: list[tuple[str, dict[str, Any]]] = [
        ("retrieve_memory", {"query": "bees", "explain": True, **nothing}),
        ("get_user_profile", {"include_assistant_knowledge": True}),
        ("get_memory_stats", {}),
        ("get_memory", {"ids": [page, "s1", "c1"], "max_tokens": None}),
        ("list_memories", {"tier": None, "topic": None, "limit": None}),
        ("forget_memory", {"query": "bees", "ids": None, "max_results": None, "confirm": None}),
    ]
    answer = run(client, data.parent, transport="stdio", command=serve_command(data), calls=calls)
    assert answer.get("complaints") == [], answer
    found, _, _, shown, listed, dry_run = answer["results"]
    assert found["understood"]["words"]
    assert [memory["kind"] for memory in shown["memories"]] == ["page", "segment", "chain"]
    assert len(listed["memories"]) == 7
    assert dry_run["status"] == "dry_run"


@every_client
def test_tokens_have_no_effect_over_stdio(client: str, data: Path) -> None:
    """Over stdio there is no token; the settings select the user."""
    tokens = TokenStore(token_file(data), clock=utc_now)
    tokens.add("eve", {Scope.WRITE})
    tokens.close()
    answer = run(client, data.parent, transport="stdio", command=serve_command(data))
    check(answer, client, "stdio", data, USER)
    assert [folder.name for folder in (data / "users").iterdir()] == [USER]


@pytest.mark.parametrize("transport", PATHS)
@every_client
def test_over_http_no_token_is_needed_before_one_exists(client: str, transport: str, data: Path) -> None:
    with HttpServer(data, transport=transport) as server:
        answer = run_over_http(client, server, transport, None)
        check(answer, client, transport, data, USER)


@pytest.mark.parametrize("transport", PATHS)
@every_client
async def test_over_http_a_token_selects_the_users_memory(client: str, transport: str, data: Path) -> None:
    with HttpServer(data) as server:
        ada, eve = server.add_token("ada"), server.add_token("eve")
        async with asyncio.timeout(LIMIT_S), asker(server, eve) as other:
            page = await other.add(OTHERS_SAID)
            refused = await asyncio.to_thread(run_over_http, client, server, transport, None)
            assert refused.keys() == {"refusal"}, refused
            assert REASON.search(refused["refusal"])
            answer = await asyncio.to_thread(run_over_http, client, server, transport, ada)
            check(answer, client, transport, data, "ada")
            found = await other.call("retrieve_memory", query=ASKED)
            assert [hit["page_id"] for hit in found["short_term_memory"]] == [page]
        assert sorted(folder.name for folder in (data / "users").iterdir()) == ["ada", "eve"]
