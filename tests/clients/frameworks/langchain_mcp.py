"""Calls the tools of the server of docs/frameworks.md: `langchain_mcp.py store|find`."""

import asyncio
import os
import sys

from recipe import client, memory_tools

CALLS = {
    "store": ("add_memory", {"user_input": "I keep bees on the roof.", "agent_response": "How many hives?"}),
    "find": ("retrieve_memory", {"query": "Where do I keep bees?"}),
}


async def main():
    client.connections["memoryos"]["env"] = dict(os.environ)
    tools = {tool.name: tool for tool in await memory_tools()}
    assert len(tools) == 8
    name, arguments = CALLS[sys.argv[1]]
    output = str(await tools[name].ainvoke(arguments))
    assert ("I keep bees on the roof." in output) == (sys.argv[1] == "find"), output


asyncio.run(main())
