"""Runs an agent with the server of docs/frameworks.md: `pydantic_ai_mcp.py store|find`."""

import asyncio
import os
import sys

from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from recipe import make_agent, server

CALLS = {
    "store": ("add_memory", {"user_input": "I keep bees on the roof.", "agent_response": "How many hives?"}),
    "find": ("retrieve_memory", {"query": "Where do I keep bees?"}),
}


def model(messages, info):
    last = messages[-1].parts[-1]
    if last.part_kind == "tool-return":
        return ModelResponse(parts=[TextPart(str(last.content))])
    assert len(info.function_tools) == 8, info.function_tools
    return ModelResponse(parts=[ToolCallPart(*CALLS[sys.argv[1]])])


async def main():
    server.client.transport.env = dict(os.environ)
    agent = make_agent(FunctionModel(model))
    async with agent:
        result = await agent.run("Go on.")
    assert ("I keep bees on the roof." in result.output) == (sys.argv[1] == "find"), result.output


asyncio.run(main())
