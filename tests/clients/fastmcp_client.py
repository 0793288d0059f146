"""The memory as the client of `fastmcp` uses it."""

import asyncio
import json
import sys
from typing import Any

import httpx2
from fastmcp import Client
from fastmcp.client.transports import SSETransport, StdioTransport, StreamableHttpTransport
from mcp.shared.exceptions import MCPError


def transport(job: dict[str, Any]) -> Any:
    if job["transport"] == "stdio":
        return StdioTransport(job["command"][0], job["command"][1:], keep_alive=False)
    return {"http": StreamableHttpTransport, "sse": SSETransport}[job["transport"]](job["url"], auth=job["token"])


async def use(job: dict[str, Any]) -> dict[str, Any]:
    complaints = []

    async def listen(message: object) -> None:
        if isinstance(message, Exception):
            complaints.append(repr(message))

    async with Client(transport(job), message_handler=listen, timeout=60) as client:
        tools = [tool.name for tool in await client.list_tools()]
        receipt = await client.call_tool("add_memory", {"user_input": job["say"], "agent_response": "Noted."})
        found = await client.call_tool("retrieve_memory", {"query": job["ask"]})
        [contents] = await client.read_resource(job["read"])
        results = [(await client.call_tool(tool, arguments)).structured_content for tool, arguments in job["calls"]]
        return {
            "protocol": client.protocol_version,
            "tools": tools,
            "receipt": receipt.structured_content,
            "found": found.structured_content,
            "resource": contents.text,
            "results": results,
            "complaints": complaints,
        }


async def main() -> None:
    try:
        async with asyncio.timeout(60):
            answer = await use(json.loads(sys.argv[1]))
    except (httpx2.HTTPStatusError, MCPError) as error:
        answer = {"refusal": str(error)}
    sys.stdout.write(json.dumps(answer) + "\n")


asyncio.run(main())
