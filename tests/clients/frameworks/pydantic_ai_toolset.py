"""Runs an agent with the toolset of docs/frameworks.md: `pydantic_ai_toolset.py store|find`."""

import asyncio
import sys

from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from recipe import make_agent

from memoryos_mcp import MemoryEngine

CALLS = {
    "store": ("add_memory", {"user_input": "I keep bees on the roof.", "agent_response": "How many hives?"}),
    "find": ("retrieve_memory", {"query": "Where do I keep bees?"}),
}


def model(messages, info):
    last = messages[-1].parts[-1]
    if last.part_kind == "tool-return":
        return ModelResponse(parts=[TextPart(str(last.content))])
    assert {tool.name for tool in info.function_tools} == {"add_memory", "retrieve_memory"}
    return ModelResponse(parts=[ToolCallPart(*CALLS[sys.argv[1]])])


async def main():
    async with MemoryEngine.open("ada") as memory:
        result = await make_agent(FunctionModel(model), memory).run("Go on.")
    assert ("I keep bees on the roof." in result.output) == (sys.argv[1] == "find"), result.output


asyncio.run(main())
