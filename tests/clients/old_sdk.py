"""The memory as `mcp` of the 1.x line uses it, the SDK of most programs that were not written lately."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
from mcp import ClientSession
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from pydantic import AnyUrl


@asynccontextmanager
async def streams(job: dict[str, Any]) -> AsyncIterator[tuple[Any, Any]]:
    headers = {"Authorization": f"Bearer {job['token']}"} if job["token"] else {}
    if job["transport"] == "stdio":
        async with stdio_client(StdioServerParameters(command=job["command"][0], args=job["command"][1:])) as ends:
            yield ends
    elif job["transport"] == "sse":
        async with sse_client(job["url"], headers=headers) as ends:
            yield ends
    else:
        async with (
            httpx.AsyncClient(headers=headers, timeout=60) as http,
            streamable_http_client(job["url"], http_client=http) as (incoming, outgoing, _),
        ):
            yield incoming, outgoing


async def use(job: dict[str, Any]) -> dict[str, Any]:
    complaints = []

    async def listen(message: object) -> None:
        if isinstance(message, Exception):
            complaints.append(repr(message))

    async with streams(job) as ends, ClientSession(*ends, message_handler=listen) as session:
        protocol = (await session.initialize()).protocolVersion
        tools = [tool.name for tool in (await session.list_tools()).tools]
        receipt = await session.call_tool("add_memory", {"user_input": job["say"], "agent_response": "Noted."})
        found = await session.call_tool("retrieve_memory", {"query": job["ask"]})
        [contents] = (await session.read_resource(AnyUrl(job["read"]))).contents
        results = [(await session.call_tool(tool, arguments)).structuredContent for tool, arguments in job["calls"]]
    return {
        "protocol": protocol,
        "tools": tools,
        "receipt": receipt.structuredContent,
        "found": found.structuredContent,
        "resource": contents.text,
        "results": results,
        "complaints": complaints,
    }


def innermost(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def main() -> None:
    try:
        async with asyncio.timeout(60):
            answer = await use(json.loads(sys.argv[1]))
    except* httpx.HTTPStatusError as errors:
        answer = {"refusal": str(innermost(errors))}
    sys.stdout.write(json.dumps(answer) + "\n")


asyncio.run(main())
