"""Calls the tools of the server of docs/frameworks.md: `llama_index_mcp.py store|find`."""

import asyncio
import os
import sys

from recipe import client, memory_tools

CALLS = {
    "store": ("add_memory", {"user_input": "I keep bees on the roof.", "agent_response": "How many hives?"}),
    "find": ("retrieve_memory", {"query": "Where do I keep bees?"}),
}


async def main():
    client.env = dict(os.environ)
    tools = {tool.metadata.name: tool for tool in await memory_tools()}
    assert len(tools) == 8
    name, arguments = CALLS[sys.argv[1]]
    output = await tools[name].acall(**arguments)
    assert ("I keep bees on the roof." in output.content) == (sys.argv[1] == "find"), output


asyncio.run(main())
