import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, Completion, PromptReference, TextContent, TextResourceContents

from memoryos_mcp.config import Settings
from memoryos_mcp.engine.service import MemoryService
from memoryos_mcp.engine.tools import core_tools
from memoryos_mcp.model.callers import Caller, Scope
from memoryos_mcp.server.assembly import make_server
from memoryos_mcp.server.tool_calls import listing
from tests.fakes import Clock, ScriptedAnalyst, WordEmbedder
from tests.memories import NO_MODEL
from tests.servers import (
    BUSY_BACKGROUND,
    CONFIG,
    ERAS,
    PROFILE,
    READ_TOOLS,
    STATUS,
    TOOLS,
    Era,
    PipeServer,
    refusal_text,
)

LIMIT_S = 60
POLL_S = 0.01
EVERY_ERA = pytest.mark.parametrize("era", ERAS)

READER = Caller("ada", frozenset({Scope.READ}))
WRITER = Caller("ada", frozenset({Scope.READ, Scope.WRITE}))
EVE = Caller("eve", frozenset({Scope.READ, Scope.WRITE}))
ADMIN = Caller("root", frozenset({Scope.READ, Scope.WRITE, Scope.ADMIN}))
AGENT = Caller("agent", frozenset({Scope.READ, Scope.WRITE, Scope.ACT_AS}))
READING_AGENT = Caller("agent", frozenset({Scope.READ, Scope.ACT_AS}))

# The caller of the current request.
_CALLER: ContextVar[Caller] = ContextVar("_CALLER")


@dataclass(frozen=True, slots=True)
class CallerClient:
    """A client of one caller."""

    client: Client
    caller: Caller

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        result = await self._result(tool, arguments)
        assert not result.is_error, result.content
        structured: dict[str, Any] | None = result.structured_content
        assert structured is not None
        return structured

    async def refusal(self, tool: str, **arguments: Any) -> str:
        result = await self._result(tool, arguments)
        assert result.is_error
        [content] = result.content
        assert isinstance(content, TextContent)
        return content.text

    async def add(self, text: str, **arguments: Any) -> None:
        await self.call("add_memory", user_input=text, agent_response="", **arguments)

    async def tools(self) -> dict[str, dict[str, Any]]:
        """Return the input schema of every listed tool."""
        _CALLER.set(self.caller)
        return {tool.name: tool.input_schema for tool in (await self.client.list_tools()).tools}

    async def resources(self) -> list[str]:
        _CALLER.set(self.caller)
        return [str(one.uri) for one in (await self.client.list_resources()).resources]

    async def read(self, uri: str) -> str:
        _CALLER.set(self.caller)
        [contents] = (await self.client.read_resource(uri)).contents
        assert isinstance(contents, TextResourceContents)
        return contents.text

    async def topics(self, typed: str, prompt: str = "recall", argument: str = "topic") -> Completion:
        """Return the suggestions for a prompt's argument."""
        _CALLER.set(self.caller)
        asked = PromptReference(type="ref/prompt", name=prompt)
        return (await self.client.complete(asked, {"name": argument, "value": typed})).completion

    async def settled(self) -> None:
        """Wait until every page has a topic."""
        while (await self.call("get_memory_stats"))["backlog_pages"]:  # noqa: ASYNC110 - a client gets no event
            await asyncio.sleep(POLL_S)

    async def _result(self, tool: str, arguments: dict[str, Any]) -> CallToolResult:
        _CALLER.set(self.caller)
        result = await self.client.call_tool(tool, arguments)
        assert isinstance(result, CallToolResult)
        return result


def test_the_schemas_that_headers_are_checked_with_are_those_of_the_tools() -> None:
    server = make_server(MemoryService(Settings()), lambda _: Caller("ada", frozenset(Scope)))
    assert server.get_tool_input_schema is not None
    schemas = {tool.name: server.get_tool_input_schema(tool.name) for tool in core_tools.TOOLS}
    listed = [listing(tool, may_act_as=True) for tool in core_tools.TOOLS]
    assert schemas == {tool.name: tool.input_schema for tool in listed}
    assert server.get_tool_input_schema("no_such_tool") is None


class OneServer:
    """A server that clients of several callers use."""

    def __init__(self, service: MemoryService, era: Era) -> None:
        self._server = make_server(service, lambda _: _CALLER.get())
        self._era = era

    @asynccontextmanager
    async def client_of(self, caller: Caller) -> AsyncIterator[CallerClient]:
        async with Client(self._server, mode=self._era) as client:
            yield CallerClient(client, caller)


@asynccontextmanager
async def one_server(folder: Path, era: Era, **settings_given: Any) -> AsyncIterator[OneServer]:
    settings = Settings(data_storage_path=folder, **settings_given)
    async with (
        asyncio.timeout(LIMIT_S),
        MemoryService(settings, clock=Clock(), embedder=WordEmbedder(), analyst=ScriptedAnalyst()) as service,
    ):
        yield OneServer(service, era)


@EVERY_ERA
async def test_two_callers_of_one_server_have_separate_memories(tmp_path: Path, era: Era) -> None:
    async with one_server(tmp_path, era) as server, server.client_of(WRITER) as ada, server.client_of(EVE) as eve:
        await asyncio.gather(*(who.add(f"My pottery secret is {n}.") for n in range(5) for who in (ada, eve)))
        await ada.add("My secret is blue.")
        found = await eve.call("retrieve_memory", query="What is the secret?")
        assert not any("blue" in page["user_input"] for page in found["short_term_memory"] + found["retrieved_pages"])
        assert [(await who.call("get_memory_stats"))["total_pages"] for who in (ada, eve)] == [6, 5]
        assert [(await who.call("get_user_profile"))["user_id"] for who in (ada, eve)] == ["ada", "eve"]
        assert [json.loads(await who.read(STATUS))["user_id"] for who in (ada, eve)] == ["ada", "eve"]


@EVERY_ERA
async def test_a_reading_caller_sees_and_calls_no_tool_that_writes(tmp_path: Path, era: Era) -> None:
    async with (
        one_server(tmp_path, era) as server,
        server.client_of(WRITER) as writer,
        server.client_of(READER) as reader,
    ):
        assert list(await reader.tools()) == READ_TOOLS
        assert list(await writer.tools()) == TOOLS
        await writer.add("I keep bees.")
        refusal = await reader.refusal("add_memory", user_input="I keep ants.", agent_response="")
        assert refusal == f"no such tool; the tools are: {', '.join(READ_TOOLS)}"
        assert refusal == await reader.refusal("no_such_tool")
        assert await writer.refusal("no_such_tool") == f"no such tool; the tools are: {', '.join(TOOLS)}"
        assert (await reader.call("get_memory_stats"))["total_pages"] == 1
        found = await reader.call("retrieve_memory", query="bees")
        assert [page["user_input"] for page in found["short_term_memory"]] == ["I keep bees."]


@EVERY_ERA
async def test_only_callers_with_act_as_may_name_another_user(tmp_path: Path, era: Era) -> None:
    async with one_server(tmp_path, era) as server, server.client_of(AGENT) as agent, server.client_of(EVE) as eve:
        await agent.add("Eve paints.", user_id="eve")
        await agent.add("I am the agent.")
        assert (await agent.call("get_memory_stats", user_id="eve"))["total_pages"] == 1
        assert (await agent.call("get_memory_stats"))["user_id"] == "agent"
        assert (await agent.call("get_user_profile", user_id="eve"))["user_id"] == "eve"
        found = await eve.call("retrieve_memory", query="Who paints?")
        assert [page["user_input"] for page in found["short_term_memory"]] == ["Eve paints."]
        for tool in TOOLS:
            given = {"add_memory": {"user_input": "a", "agent_response": ""}, "retrieve_memory": {"query": "a"}}
            refusal = await eve.refusal(tool, user_id="agent", **given.get(tool, {}))
            assert refusal.startswith("user_id: is not a valid argument; ")
        assert (await agent.call("get_memory_stats"))["total_pages"] == 1


@EVERY_ERA
async def test_user_id_is_listed_only_for_callers_with_act_as(tmp_path: Path, era: Era) -> None:
    async with (
        one_server(tmp_path, era) as server,
        server.client_of(AGENT) as agent,
        server.client_of(READING_AGENT) as reading_agent,
        server.client_of(ADMIN) as admin,
        server.client_of(READER) as reader,
    ):
        theirs = await agent.tools()
        assert list(theirs) == TOOLS
        for schema in theirs.values():
            assert schema["properties"]["user_id"]["description"] == "Owner of the memory. Default: the caller."
            assert "user_id" not in schema.get("required", [])
        assert await reading_agent.tools() == {name: theirs[name] for name in READ_TOOLS}
        for plain in (await admin.tools(), await reader.tools()):
            for name, schema in plain.items():
                properties = {key: one for key, one in theirs[name]["properties"].items() if key != "user_id"}
                assert schema == theirs[name] | {"properties": properties}


async def test_user_id_is_suggested_only_to_callers_with_act_as(tmp_path: Path) -> None:
    async with one_server(tmp_path, "auto") as server, server.client_of(AGENT) as agent, server.client_of(EVE) as eve:
        suggested = await agent.refusal("get_memory_stats", userid="eve")
        assert suggested == "userid: is not a valid argument; did you mean user_id?"
        refused = await eve.refusal("get_memory_stats", userid="x")
        assert refused == "userid: is not a valid argument; valid arguments: none"


@pytest.mark.parametrize("user_id", [None, "", " ", 5, True, ["eve"], {"id": "eve"}, "a\0b", "x" * 10_001])
async def test_an_invalid_user_id_is_refused(tmp_path: Path, user_id: object) -> None:
    async with one_server(tmp_path, "auto") as server, server.client_of(AGENT) as agent:
        refusal = await agent.refusal("add_memory", user_input="a", agent_response="", user_id=user_id)
        assert refusal.startswith("user_id: ")
        assert "x" * 100 not in refusal
        assert (await agent.call("get_memory_stats"))["total_pages"] == 0
    assert [folder.name for folder in (tmp_path / "users").iterdir()] == ["agent"]


@EVERY_ERA
async def test_the_settings_are_a_resource_for_admins_only(tmp_path: Path, era: Era) -> None:
    async with one_server(tmp_path, era) as server, server.client_of(ADMIN) as admin:
        assert await admin.resources() == [STATUS, CONFIG, PROFILE]
        assert json.loads(await admin.read(CONFIG))["data_storage_path"] == str(tmp_path)
        for caller in (READER, WRITER, AGENT):
            async with server.client_of(caller) as other:
                assert await other.resources() == [STATUS, PROFILE]
                for uri in (CONFIG, "memoryos://nothing"):
                    with pytest.raises(MCPError, match=f"^the resource is unknown; use one of: {STATUS}, {PROFILE}$"):
                        await other.read(uri)
                assert json.loads(await other.read(STATUS))["user_id"] == caller.user_id
                assert "<memory>" in await other.read(PROFILE)


@EVERY_ERA
async def test_a_callers_suggested_topics_are_their_own(tmp_path: Path, era: Era) -> None:
    async with (
        one_server(tmp_path, era, **BUSY_BACKGROUND) as server,
        server.client_of(WRITER) as ada,
        server.client_of(EVE) as eve,
    ):
        for text in ("My pottery is drying.", "My bees swarmed.", "The potatoes rot.", "It rains.", "It snows."):
            await ada.add(text)
        await eve.add("I paint.")
        await ada.settled()
        offered = await ada.topics("")
        assert offered.total == len(offered.values) == len(set(offered.values))
        assert not offered.has_more
        assert (await ada.topics("POT")).values == [topic for topic in offered.values if topic.startswith("pot")]
        assert {"pottery", "potatoes"} <= set((await ada.topics("pot")).values)
        for fitting_nothing in (ada.topics("xyz"), ada.topics("pot", "use_memory"), ada.topics("pot", "nothing")):
            assert (await fitting_nothing).values == []
        assert (await ada.topics("pot", argument="nothing")).values == []
        assert (await eve.topics("")).values == []


async def test_at_most_100_topics_are_suggested_at_once(tmp_path: Path) -> None:
    async with one_server(tmp_path, "auto", **BUSY_BACKGROUND) as server, server.client_of(WRITER) as ada:
        for first in ascii_lowercase:
            await ada.add(" ".join(f"craft{first}{second}" for second in ascii_lowercase))
        await ada.settled()
        offered = await ada.topics("craft")
        assert offered.total is not None
        assert offered.total > len(offered.values) == 100
        assert offered.has_more


@EVERY_ERA
async def test_the_caller_is_determined_for_each_request(tmp_path: Path, era: Era) -> None:
    async with one_server(tmp_path, era) as server, server.client_of(WRITER) as writer:
        await writer.add("I am Ada.")
        eve, reader = replace(writer, caller=EVE), replace(writer, caller=READER)
        assert (await eve.call("get_memory_stats"))["total_pages"] == 0
        assert (await reader.call("get_memory_stats"))["total_pages"] == 1
        assert "no such tool" in await reader.refusal("add_memory", user_input="a", agent_response="")
        await writer.add("I am still Ada.")


def test_over_stdio_only_act_as_allows_another_user(data: Path) -> None:
    with PipeServer(data, {"act_as": "true", **NO_MODEL}) as server:
        server.call("add_memory", user_input="Eve paints.", agent_response="", user_id="eve")
        assert server.call("get_memory_stats", user_id="eve")["total_pages"] == 1
        assert server.stats()["total_pages"] == 0
    with PipeServer(data, {"user_id": "eve", **NO_MODEL}) as server:
        assert server.stats()["total_pages"] == 1
        refused = server.result(server.send_call("get_memory_stats", {"user_id": "default_user"}))
        assert refusal_text(refused) == "user_id: is not a valid argument; valid arguments: none"
