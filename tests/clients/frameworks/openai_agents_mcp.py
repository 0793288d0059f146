"""Runs an agent with the server of docs/frameworks.md: `openai_agents_mcp.py store|find`."""

import asyncio
import os
import sys

from agents import Runner
from agents.testing import ScriptedModel, assistant_message, function_call
from recipe import make_agent, server

CALLS = {
    "store": ("add_memory", {"user_input": "I keep bees on the roof.", "agent_response": "How many hives?"}),
    "find": ("retrieve_memory", {"query": "Where do I keep bees?"}),
}


async def main():
    server.params.env = dict(os.environ)
    name, arguments = CALLS[sys.argv[1]]
    model = ScriptedModel([[function_call(name, arguments, call_id="1")], [assistant_message("Done.")]])
    async with server:
        result = await Runner.run(make_agent(model), "Go on.")
    assert len(model.calls[0].tools) == 8
    [output] = [item.output for item in result.new_items if item.type == "tool_call_output_item"]
    assert ("I keep bees on the roof." in str(output)) == (sys.argv[1] == "find"), output


asyncio.run(main())
