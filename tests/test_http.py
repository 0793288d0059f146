"""A server over HTTP: transports, rights of callers, limits on sessions, and shutdown."""

import asyncio
import json
import os
import re
import shutil
import signal
import socket
from collections import Counter
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import TextResourceContents

from memoryos_mcp.model.callers import Scope, token_id_of
from memoryos_mcp.server.http.serving import listen
from memoryos_mcp.storage.sqlite.paths import database_file
from memoryos_mcp.storage.sqlite.tokens import token_file
from tests.commands import run_here
from tests.http_server import (
    INITIALIZE,
    LEGACY,
    MCP_HEADERS,
    MODERN,
    SSE,
    WAYS,
    Asker,
    HttpServer,
    Way,
    asker,
    bearer,
    open_session,
    raw_call,
    tool_call,
)
from tests.memories import NO_MODEL
from tests.servers import BUSY_BACKGROUND, CONFIG, PROFILE, READ_TOOLS, STATUS, TOOLS, stored_pages

LIMIT_S = 120
USERS = 50
WRITERS = 8
EVERY_WAY = pytest.mark.parametrize("way", WAYS, ids=str)


async def status_of(server: HttpServer, path: str, token: str | None) -> int:
    async with httpx2.AsyncClient(timeout=30) as http:
        return (await http.get(server.url + path, headers=bearer(token))).status_code


async def call_status(server: HttpServer, token: str | None) -> int:
    """Return the HTTP status of a call without a session. 400 means that the call passed every guard."""
    async with httpx2.AsyncClient(timeout=30) as http:
        return (await raw_call(http, server, token, tool_call("get_memory_stats"))).status_code


@EVERY_WAY
async def test_every_transport_and_era_supports_all_operations(http_server: HttpServer, way: Way) -> None:
    name = f"Zoë of {way}"
    async with asyncio.timeout(LIMIT_S), asker(http_server, http_server.add_token(name), way) as zoe:
        assert await zoe.tools() == TOOLS
        page = await zoe.add("I keep bees on the roof.")
        found = await zoe.call("retrieve_memory", query="bees")
        assert [hit["page_id"] for hit in found["short_term_memory"]] == [page]
        assert (await zoe.call("get_user_profile"))["user_id"] == name
        assert (await zoe.call("get_memory_stats"))["total_pages"] == 1
        assert [str(one.uri) for one in (await zoe.client.list_resources()).resources] == [STATUS, PROFILE]
        assert json.loads(await read(zoe, STATUS))["user_id"] == name
        assert await zoe.refusal("no_such_tool") == f"no such tool; the tools are: {', '.join(TOOLS)}"
    assert [stored.page_id for stored in stored_pages(http_server.folder, name)] == [page]


def test_nagles_algorithm_is_off_for_connections() -> None:
    with (
        listen("127.0.0.1", 0) as listening,
        socket.create_connection(listening.getsockname()),
        listening.accept()[0] as accepted,
    ):
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.parametrize(("transport", "served", "absent"), [("http", MODERN, "/sse"), ("sse", SSE, "/mcp")])
async def test_only_the_configured_transport_is_served(data: Path, transport: str, served: Way, absent: str) -> None:
    with HttpServer(data, NO_MODEL, transport=transport) as server:
        async with asyncio.timeout(LIMIT_S):
            async with asker(server, None, served) as user:
                assert await user.tools() == TOOLS
            assert await status_of(server, absent, None) == 404
            assert (
                await status_of(server, "/health/live", None) == await status_of(server, "/health/ready", None) == 200
            )


@EVERY_WAY
async def test_a_read_token_lists_and_calls_only_reading_tools(http_server: HttpServer, way: Way) -> None:
    name = f"reader of {way}"
    reading, writing = http_server.add_token(name, Scope.READ), http_server.add_token(name)
    async with (
        asyncio.timeout(LIMIT_S),
        asker(http_server, writing, way) as writer,
        asker(http_server, reading, way) as reader,
    ):
        await writer.add("I keep bees.")
        assert await reader.tools() == READ_TOOLS
        refusal = await reader.refusal("add_memory", user_input="I keep ants.", agent_response="")
        assert refusal == f"no such tool; the tools are: {', '.join(READ_TOOLS)}"
        found = await reader.call("retrieve_memory", query="bees")
        assert [page["user_input"] for page in found["short_term_memory"]] == ["I keep bees."]
        assert (await reader.call("get_memory_stats"))["total_pages"] == 1


async def test_only_admins_see_metrics_and_settings(http_server: HttpServer) -> None:
    admin = http_server.add_token("root", Scope.ADMIN)
    others = [http_server.add_token("ada", scope) for scope in (Scope.READ, Scope.WRITE, Scope.ACT_AS)]
    async with asyncio.timeout(LIMIT_S), httpx2.AsyncClient() as http:
        async with asker(http_server, admin) as root:
            await root.add("I am root.")
            assert "data_storage_path" in json.loads(await read(root, CONFIG))
        for token in others:
            answer = await http.get(f"{http_server.url}/metrics", headers=bearer(token))
            assert answer.status_code == 403
            assert "memoryos_" not in answer.text
            async with asker(http_server, token) as other:
                with pytest.raises(MCPError, match="the resource is unknown"):
                    await read(other, CONFIG)
        assert await status_of(http_server, "/metrics", None) == 401


async def test_calls_are_counted_by_tool_and_outcome(http_server: HttpServer) -> None:
    admin, token = http_server.add_token("root", Scope.ADMIN), http_server.add_token("caller")
    added = 'memoryos_tool_calls_total{outcome="ok",tool="add_memory"}'
    made_up = 'memoryos_tool_calls_total{outcome="refused",tool="unknown"}'

    async def counted() -> dict[str, float]:
        lines = (await http.get(f"{http_server.url}/metrics", headers=bearer(admin))).text.splitlines()
        assert not any("made_up" in line for line in lines), "a name that a client made up is a label"
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}

    async with asyncio.timeout(LIMIT_S), httpx2.AsyncClient() as http, asker(http_server, token) as caller:
        before = await counted()
        await caller.add("I am counted.")
        for number in range(3):
            await caller.refusal(f"made_up_{number}")
        after = await counted()
    assert after[added] - before.get(added, 0) == 1
    assert after[made_up] - before.get(made_up, 0) == 3
    assert after["memoryos_open_users"] >= 1


async def test_without_any_token_the_configured_user_is_served(data: Path) -> None:
    with HttpServer(data, {"user_id": "solo", **NO_MODEL}) as server:
        async with asyncio.timeout(LIMIT_S):
            for way in WAYS:
                async with asker(server, None, way) as user:
                    await user.add(f"Just me, {way}.")
                    assert (await user.call("get_memory_stats"))["user_id"] == "solo"
            assert await status_of(server, "/metrics", None) == 200
    assert [page.user_input for page in stored_pages(data, "solo")] == [f"Just me, {way}." for way in WAYS]


async def test_after_the_first_token_every_call_needs_one(data: Path) -> None:
    with HttpServer(data, NO_MODEL) as server:
        async with asyncio.timeout(LIMIT_S):
            async with AsyncExitStack() as stack:
                early = [await stack.enter_async_context(asker(server, None, way)) for way in WAYS]
                for one in early:
                    await one.add("Nobody else is here.")
                made = await asyncio.to_thread(run_token_command, data, "add", "ada")
                assert [await answered_or_none(one, "get_memory_stats") for one in early] == [None] * len(WAYS)
            assert await call_status(server, None) == 401
            assert await status_of(server, "/metrics", None) == 401
            assert await status_of(server, "/health/ready", None) == 200
            for way in WAYS:
                async with asker(server, made, way) as ada:
                    assert (await ada.call("get_memory_stats"))["total_pages"] == 0


@pytest.mark.parametrize("lost", ["emptied", "removed", "the folder is removed"])
async def test_a_server_that_lost_its_tokens_refuses_all_callers(data: Path, lost: str) -> None:
    file = token_file(data)
    with HttpServer(data, NO_MODEL) as server:
        await asyncio.to_thread(run_token_command, data, "add", "ada")
        async with asyncio.timeout(LIMIT_S):
            assert await call_status(server, None) == 401
            if lost == "emptied":
                os.truncate(file, 0)
            elif lost == "removed":
                file.unlink()
            else:
                shutil.rmtree(data)
            assert await call_status(server, None) == 401
            assert await status_of(server, "/metrics", None) == 401
    if lost == "the folder is removed":
        return  # a new folder is a new server
    with HttpServer(data, NO_MODEL) as server:
        async with asyncio.timeout(LIMIT_S):
            assert await call_status(server, None) == 401
        assert "restore it from a backup" in server.stderr


@pytest.mark.parametrize("way", [MODERN, LEGACY], ids=str)
async def test_clients_show_that_a_token_is_missing(http_server: HttpServer, way: Way) -> None:
    async with asyncio.timeout(LIMIT_S):
        reason = pytest.RaisesExc(MCPError, match="^a valid token is required; send it as `Authorization: Bearer ...`$")
        with pytest.RaisesGroup(reason, flatten_subgroups=True):
            async with asker(http_server, None, way):
                pytest.fail("a server with tokens let somebody in without one")


@EVERY_WAY
async def test_a_revoked_token_is_refused_at_the_next_call(http_server: HttpServer, way: Way) -> None:
    name = f"revoked of {way}"
    revoked, other = http_server.add_token(name), http_server.add_token(name)
    async with asyncio.timeout(LIMIT_S):
        async with AsyncExitStack() as stack:
            ada = await stack.enter_async_context(asker(http_server, revoked, way))
            page = await ada.add("While it holds.")
            await asyncio.to_thread(run_token_command, http_server.folder, "revoke", token_id_of(revoked))
            assert await answered_or_none(ada, "add_memory", user_input="Too late.", agent_response="") is None
        assert await call_status(http_server, revoked) == 401
        async with asker(http_server, other, way) as ada:
            found = await ada.call("retrieve_memory", query="late")
            assert [hit["page_id"] for hit in found["short_term_memory"]] == [page]


async def test_an_expired_token_is_refused(http_server: HttpServer) -> None:
    store = http_server.tokens()
    short = store.add("ada", {Scope.WRITE}, datetime.now(UTC) + timedelta(seconds=1))
    async with asyncio.timeout(LIMIT_S):
        while store.find(short) is not None:  # noqa: ASYNC110 - another process's clock gives no event
            await asyncio.sleep(0.05)
        assert await call_status(http_server, short) == 401
    store.close()


async def test_a_client_without_a_token_is_shown_the_issuer(data: Path) -> None:
    settings = {"oidc_issuer": "https://id.example", "public_url": "https://memory.example", **NO_MODEL}
    with HttpServer(data, settings) as server:
        async with httpx2.AsyncClient() as http:
            refused = await http.post(f"{server.url}/mcp", json=INITIALIZE, headers=MCP_HEADERS)
            assert refused.status_code == 401
            told = re.search(r'resource_metadata="([^"]+)"', refused.headers["www-authenticate"])
            assert told is not None
            assert told[1] == "https://memory.example/.well-known/oauth-protected-resource/mcp"
            shown = await http.get(told[1].replace("https://memory.example", server.url))
    assert shown.json() == {
        "resource": "https://memory.example/mcp",
        "authorization_servers": ["https://id.example"],
        "scopes_supported": ["memory:read", "memory:write"],
        "bearer_methods_supported": ["header"],
    }


async def test_only_an_act_as_token_may_name_another_user(http_server: HttpServer) -> None:
    agent_token = http_server.add_token("agent", Scope.WRITE, Scope.ACT_AS)
    eve_token = http_server.add_token("eve")
    async with (
        asyncio.timeout(LIMIT_S),
        asker(http_server, agent_token) as agent,
        asker(http_server, eve_token) as eve,
    ):
        await agent.add("Eve paints.", user_id="eve")
        assert (await eve.call("get_memory_stats"))["total_pages"] == 1
        for tool in TOOLS:
            given = {"add_memory": {"user_input": "a", "agent_response": ""}, "retrieve_memory": {"query": "a"}}
            await eve.refusal(tool, user_id="agent", **given.get(tool, {}))
        assert (await agent.call("get_memory_stats"))["total_pages"] == 0


@pytest.mark.campaign
async def test_fifty_concurrent_users_find_only_their_own_pages(data: Path) -> None:
    """Each user's secret is a unique word, so another user's word in any answer is a leak."""
    settings: dict[str, object] = {**BUSY_BACKGROUND, "requests_per_second": 10_000.0}
    users = [f"user-{number}" for number in range(USERS)]
    secrets = {user: f"zq{number:02}xsecret" for number, user in enumerate(users)}
    with HttpServer(data, settings) as server:
        tokens = {user: server.add_token(user) for user in users}
        admin = server.add_token("root", Scope.ADMIN)
        seen: dict[str, list[str]] = {user: [] for user in users}

        async def use(number: int, user: str) -> None:
            victim = users[(number + 1) % USERS]
            async with asker(server, tokens[user], WAYS[number % len(WAYS)]) as one:
                for text in ("My code word is {}.", "Never tell anybody {}.", "I love {} and pottery."):
                    await one.add(text.format(secrets[user]))
                for query in ("my code word", "Never tell anybody", secrets[victim][:4], f"what does {victim} love?"):
                    found = await one.result("retrieve_memory", query=query, max_results=20)
                    seen[user].append(found.model_dump_json())
                for tool, given in (
                    ("get_user_profile", {"include_assistant_knowledge": True}),
                    ("get_user_profile", {"user_id": victim}),
                    ("get_memory_stats", {}),
                    ("get_memory_stats", {"user_id": victim}),
                    ("retrieve_memory", {"query": "code word", "user_id": victim}),
                    ("retrieve_memory", {"query": "code word", "max_results": "all"}),
                    ("no_such_tool", {}),
                ):
                    seen[user].append((await one.result(tool, **given)).model_dump_json())
                seen[user] += [await read(one, uri) for uri in (STATUS, PROFILE)]
                for uri in (CONFIG, f"memoryos://profile/{victim}"):
                    with pytest.raises(MCPError) as refused:
                        await read(one, uri)
                    seen[user].append(str(refused.value))

        async with asyncio.timeout(LIMIT_S), httpx2.AsyncClient() as http:
            await asyncio.gather(*(use(number, user) for number, user in enumerate(users)))
            shown = (await http.get(f"{server.url}/metrics", headers=bearer(admin))).text
        assert server.stop() == 0
        logged = server.stderr
    for user in users:
        texts = "\n".join(seen[user])
        assert secrets[user] in texts, "a user who finds nothing of their own proves nothing"
        assert set(re.findall(r"zq\d\dxsecret", texts)) == {secrets[user]}
        assert {page.user_input for page in stored_pages(data, user)} == {
            text.format(secrets[user])
            for text in ("My code word is {}.", "Never tell anybody {}.", "I love {} and pottery.")
        }
    for place in (shown, logged):
        assert "xsecret" not in place
        assert "pottery" not in place
        assert not any(user in place for user in users)
        assert not any(token.split("_", 2)[2] in place for token in (*tokens.values(), admin))
    assert "Traceback" not in logged


async def test_sigterm_answers_running_calls_and_loses_nothing(data: Path) -> None:
    acknowledged: set[str] = set()
    with HttpServer(data, {"requests_per_second": 10_000.0}) as server:
        token = server.add_token("ada")
        slowest: set[Way] = set(WAYS)
        under_way = asyncio.Event()

        async def write(name: str, way: Way) -> None:
            with suppress(Exception):  # clients may fail in any way after the server has ended
                async with asker(server, token, way) as ada:
                    for number in range(1000):
                        page = await ada.add(f"{name} says {number}.")
                        acknowledged.add(page)
                        if number > 2:
                            slowest.discard(way)
                        if not slowest:
                            under_way.set()

        async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
            writers = [
                group.create_task(write(f"Writer {number}", WAYS[number % len(WAYS)])) for number in range(WRITERS)
            ]
            await under_way.wait()
            server.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(server.wait_for_exit) == 0
            # Some answers may not be read yet, and an SSE client may wait for answers that will never come.
            await asyncio.wait(writers, timeout=5)
            for writer in writers:
                writer.cancel()
        assert "Traceback" not in server.stderr
    stored = [page.page_id for page in stored_pages(data, "ada")]
    assert acknowledged == set(stored)
    assert len(stored) == len(set(stored)) > 0


@pytest.mark.campaign
async def test_a_kill_neither_loses_nor_doubles_acknowledged_pages(data: Path) -> None:
    users = [f"user-{number}" for number in range(WRITERS)]
    acknowledged: dict[str, dict[str, str]] = {user: {} for user in users}
    settings: dict[str, object] = {**BUSY_BACKGROUND, "requests_per_second": 10_000.0}
    for number in range(3):
        with HttpServer(data, settings, name=f"run-{number}") as server:
            tokens = {user: server.add_token(user) for user in users}
            enough = asyncio.Event()

            async def write(user: str, token: str, way: Way, server: HttpServer, round_number: int) -> None:
                with suppress(Exception):  # the server is killed during their calls
                    async with asker(server, token, way) as one:
                        for count in range(1000):
                            text = f"{user} in round {round_number} says {count}."
                            acknowledged[user][await one.add(text)] = text
                            if count > 5 * round_number:
                                enough.set()  # noqa: B023 - awaited within the round

            async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
                writers = [
                    group.create_task(write(user, tokens[user], WAYS[place % len(WAYS)], server, number))
                    for place, user in enumerate(users)
                ]
                await enough.wait()
                await asyncio.to_thread(server.kill)
                for writer in writers:
                    writer.cancel()
    with HttpServer(data, settings, name="last") as server:
        for user in users:
            token = server.add_token(user)
            async with asyncio.timeout(LIMIT_S), asker(server, token) as one:
                total = (await one.call("get_memory_stats"))["total_pages"]
            stored = stored_pages(data, user)
            texts = {page.page_id: page.user_input for page in stored}
            assert len(stored) == total == len(texts)
            assert texts.items() >= acknowledged[user].items()
            assert max(Counter(texts.values()).values(), default=1) == 1
    assert sum(map(len, acknowledged.values())) > WRITERS


async def test_open_streams_do_not_delay_the_shutdown(data: Path) -> None:
    with HttpServer(data, NO_MODEL) as server:
        token = server.add_token("ada")
        async with asyncio.timeout(LIMIT_S):
            with suppress(Exception):  # their streams are cut off
                async with AsyncExitStack() as stack:
                    for way in (SSE, LEGACY, SSE):
                        ada = await stack.enter_async_context(asker(server, token, way))
                        await ada.tools()
                    server.send_signal(signal.SIGTERM)
                    assert await asyncio.to_thread(server.wait_for_exit) == 0
            assert server.process.poll() == 0
        assert "Traceback" not in server.stderr


async def answered_or_none(one: Asker, tool: str, **arguments: Any) -> object | None:
    """Return the answer, or None if the server refuses the request or the client stops waiting.

    Over SSE, the SDK's client only logs a refusal, so its caller waits until a time limit.
    """
    try:
        async with asyncio.timeout(1):
            return await one.result(tool, **arguments)
    except (MCPError, TimeoutError, httpx2.HTTPError, ExceptionGroup):
        return None


async def read(one: Asker, uri: str) -> str:
    [contents] = (await one.client.read_resource(uri)).contents
    assert isinstance(contents, TextResourceContents)
    return contents.text


def run_token_command(folder: Path, *arguments: str) -> str:
    done = run_here("token", *arguments, "--data-storage-path", folder)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


async def test_the_idlest_of_too_many_sessions_is_ended(data: Path) -> None:
    with HttpServer(data, {"max_sessions_per_token": 3, "requests_per_second": 10_000.0, **NO_MODEL}) as server:
        store = server.tokens()
        ada, bob = store.add("ada", {Scope.READ}), store.add("bob", {Scope.READ})
        store.close()
        async with asyncio.timeout(LIMIT_S), httpx2.AsyncClient(timeout=30) as http:
            bobs = await open_session(http, server, bob)
            adas = [await open_session(http, server, ada) for _ in range(3)]

            async def answers(token: str, session: str) -> bool:
                return (await raw_call(http, server, token, tool_call("get_memory_stats"), session)).status_code == 200

            assert await answers(ada, adas[0])  # so the second session is idle for longest
            adas += [await open_session(http, server, ada) for _ in range(2)]
            assert [await answers(ada, session) for session in adas] == [True, False, False, True, True]
            for _ in range(10):  # the newer protocol opens no session, and so ends none
                async with asker(server, ada, MODERN) as asking:
                    await asking.call("get_memory_stats")
            assert await answers(ada, adas[0])
            assert await answers(bob, bobs)
            await http.delete(f"{server.url}/mcp", headers=bearer(ada) | {"mcp-session-id": adas[0]})
            adas.append(await open_session(http, server, ada))
            assert [await answers(ada, session) for session in adas[3:]] == [True] * 3


async def test_with_all_sessions_taken_callers_reuse_their_own(data: Path) -> None:
    limits = {"max_sessions": 3, "max_sessions_per_token": 2, "requests_per_second": 10_000.0, **NO_MODEL}
    with HttpServer(data, limits) as server:
        store = server.tokens()
        ada, bob, eve = (store.add(name, {Scope.READ}) for name in ("ada", "bob", "eve"))
        store.close()
        async with asyncio.timeout(LIMIT_S), httpx2.AsyncClient(timeout=30) as http:
            for token in (ada, ada, bob):
                await open_session(http, server, token)
            refused = await raw_call(http, server, eve, INITIALIZE)
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "10")
            assert await open_session(http, server, ada)  # it replaces one of her own sessions
            large = json.loads(json.dumps(INITIALIZE))
            large["params"]["capabilities"] = {"experimental": {"x": {"y": "z" * 70_000}}}
            assert (await raw_call(http, server, bob, large)).status_code == 413


@pytest.mark.campaign
async def test_sse_calls_are_refused_while_replies_are_unread(data: Path) -> None:
    with HttpServer(data, {"transport": "all", "requests_per_second": 10_000.0}) as server:
        store = server.tokens()
        ada, bob = (store.add(name, {Scope.READ, Scope.WRITE}) for name in ("ada", "bob"))
        store.close()
        async with asyncio.timeout(LIMIT_S), httpx2.AsyncClient(timeout=30) as http:
            async with asker(server, ada, MODERN) as asking:
                pages = [await asking.add("word " * 10_000) for _ in range(20)]
            call = tool_call("get_memory", ids=pages, max_tokens=1_000_000)
            for _ in range(2):  # in the second round, replies of the first stream no longer count
                async with http.stream("GET", f"{server.url}/sse", headers=bearer(ada)) as stream:
                    lines = stream.aiter_lines()
                    while not (line := await anext(lines)).startswith("data: /messages"):
                        pass
                    url = server.url + line.removeprefix("data: ")
                    await http.post(url, headers=bearer(ada), json=INITIALIZE)
                    codes = [
                        (await http.post(url, headers=bearer(ada), json={**call, "id": number + 2})).status_code
                        for number in range(60)
                    ]
                    assert set(codes) == {202, 429}
                    assert codes.count(202) <= 40
                    async with asker(server, bob, MODERN) as asking:
                        assert await asking.call("get_memory_stats")


@pytest.mark.parametrize("scopes", [{Scope.ACT_AS}, {Scope.READ}])
async def test_a_caller_who_only_reads_creates_no_memory(http_server: HttpServer, scopes: set[Scope]) -> None:
    reader = http_server.add_token("back-end", *scopes)
    writer = http_server.add_token("new", Scope.WRITE, Scope.ACT_AS)
    more = {"user_id": "new"} if Scope.ACT_AS in scopes else {}
    async with asyncio.timeout(LIMIT_S), asker(http_server, reader, MODERN) as asking:
        found = await asking.call("retrieve_memory", query="tea", **more)
        assert (found["retrieved_pages"], found["short_term_memory"]) == ([], [])
        profile = await asking.call("get_user_profile", **more)
        name = profile["user_id"]
        assert name == more.get("user_id", "back-end")
        assert (await asking.call("get_memory_stats", **more))["total_pages"] == 0
        assert (await asking.call("list_memories", **more))["memories"] == []
        assert not database_file(http_server.folder, name).parent.exists()
        if more:
            async with asker(http_server, writer, MODERN) as adding:
                await adding.add("I like tea.")
            assert (await asking.call("get_memory_stats", **more))["total_pages"] == 1
