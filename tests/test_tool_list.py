"""The list of tools: its length, and its descriptions, schemas and bounds."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.servers import BUSY_BACKGROUND, PipeServer

# Length of the list of the protocol's official memory server, measured in the same way.
WHOLE_MAX_CHARS = 11_900
WITHOUT_RESULTS_MAX_CHARS = 6_600
INSTRUCTIONS_MAX_CHARS = 800
WHEN = re.compile(r"Call (?:once )?(?:when|whenever|after|before)\b")
# Arguments that pass the checks. Their content does not matter.
GIVEN: dict[str, dict[str, Any]] = {
    "add_memory": {"user_input": "I keep bees.", "agent_response": ""},
    "retrieve_memory": {"query": "bees"},
    "get_user_profile": {},
    "get_memory_stats": {},
    "get_memory": {"ids": ["s1"]},
    "list_memories": {},
    "correct_memory": {"id": "k999", "wrong": True},
    "forget_memory": {"query": "bees"},
}
REFUSED_ALL_THE_SAME = {"correct_memory": "id: "}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PipeServer]:
    """A server with one topic, for all tests that change nothing."""
    with PipeServer(tmp_path_factory.mktemp("listed") / "data", BUSY_BACKGROUND) as running:
        for number in range(6):
            running.add(f"I am a beekeeper and I love my {number} hives.")
        running.wait_until_settled()
        yield running


def tools_of(server: PipeServer) -> dict[str, dict[str, Any]]:
    listed = server.result(server.send("tools/list"))["tools"]
    return {tool["name"]: tool for tool in listed}


def arguments_of(server: PipeServer) -> list[tuple[str, str, dict[str, Any]]]:
    """Return every argument of every tool: the tool, its name and its schema."""
    return [
        (tool, name, schema)
        for tool, listed in tools_of(server).items()
        for name, schema in listed["inputSchema"].get("properties", {}).items()
    ]


def test_the_list_is_no_longer_than_the_official_servers(server: PipeServer) -> None:
    tools = tools_of(server).values()
    without_results = [{name: said for name, said in tool.items() if name != "outputSchema"} for tool in tools]
    assert len(json.dumps(list(tools))) <= WHOLE_MAX_CHARS
    assert len(json.dumps(without_results)) <= WITHOUT_RESULTS_MAX_CHARS


def test_every_description_begins_with_when_to_call(server: PipeServer) -> None:
    assert [name for name, tool in tools_of(server).items() if not WHEN.match(tool["description"])] == []


def test_instructions_do_not_repeat_descriptions(data: Path) -> None:
    with PipeServer(data) as server:
        assert len(server.initialise()["instructions"]) <= INSTRUCTIONS_MAX_CHARS


def test_no_argument_is_a_choice_between_a_type_and_null(server: PipeServer) -> None:
    for tool, name, schema in arguments_of(server):
        assert isinstance(schema["type"], str), (tool, name)
        assert not schema.keys() & {"anyOf", "oneOf", "title", "$ref"}, (tool, name)
        assert schema["description"], (tool, name)
        assert "null" not in json.dumps(schema), (tool, name)


def test_every_optional_argument_may_be_null(server: PipeServer) -> None:
    for tool, listed in tools_of(server).items():
        optional = listed["inputSchema"]["properties"].keys() - GIVEN[tool].keys()
        result = server.result(server.send_call(tool, GIVEN[tool] | dict.fromkeys(optional)))
        if tool in REFUSED_ALL_THE_SAME:
            assert result["content"][0]["text"].startswith(REFUSED_ALL_THE_SAME[tool])
        else:
            assert not result.get("isError"), result["content"]


def test_a_required_argument_may_not_be_null(server: PipeServer) -> None:
    for tool, listed in tools_of(server).items():
        for name in listed["inputSchema"].get("required", []):
            assert server.refusal(tool, **GIVEN[tool] | {name: None}).startswith(f"{name}: ")


def test_the_listed_bounds_are_enforced(server: PipeServer) -> None:
    bounded = [(tool, name, schema) for tool, name, schema in arguments_of(server) if schema["type"] == "integer"]
    assert len(bounded) == 5
    for tool, name, schema in bounded:
        for fits in (schema["minimum"], schema["maximum"]):
            assert not server.result(server.send_call(tool, GIVEN[tool] | {name: fits})).get("isError")
        for beyond in (schema["minimum"] - 1, schema["maximum"] + 1):
            assert server.refusal(tool, **GIVEN[tool] | {name: beyond}).startswith(f"{name}: ")


def test_every_result_matches_its_schema(server: PipeServer) -> None:
    calls = GIVEN | {"retrieve_memory": {"query": "hives", "explain": True}}
    facts = [one["id"] for one in server.call("list_memories", tier="knowledge")["memories"]]
    page = server.add("And I sell honey.")
    calls["get_memory"] = {"ids": [page, "s1", "c1", *facts]}
    for tool, listed in tools_of(server).items():
        schema = listed["outputSchema"]
        Draft202012Validator.check_schema(schema)
        assert schema["required"] == list(schema["properties"])
        if tool not in REFUSED_ALL_THE_SAME:
            result = server.call(tool, **calls[tool])
            Draft202012Validator(schema).validate(result)
            assert result.keys() == schema["properties"].keys()
