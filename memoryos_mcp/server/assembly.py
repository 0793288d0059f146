"""Makes the MCP server: dispatches calls to tools, resources and prompts, and turns errors into clear answers."""

import json
import logging
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS

from memoryos_mcp import __version__
from memoryos_mcp.errors import ArgumentError, MemoryOSError
from memoryos_mcp.server.arguments import GetUserProfileArguments, NoArguments
from memoryos_mcp.server.guides import INSTRUCTIONS, PROMPTS, prompt
from memoryos_mcp.server.tools import TOOLS, get_memory_stats, get_user_profile
from memoryos_mcp.service import MemoryService

logger = logging.getLogger(__name__)

Context = Any  # what the SDK knows of the request; nothing here needs it
_BY_NAME = {tool.name: tool for tool in TOOLS}

_RESOURCES = [
    types.Resource(
        uri="memoryos://status",
        name="status",
        title="State of the memory",
        description="Pages per tier, hot topics, health of the background work.",
        mime_type="application/json",
    ),
    types.Resource(
        uri="memoryos://config",
        name="config",
        title="Settings in force",
        description="Every setting of this server; keys are only said to be set or not.",
        mime_type="application/json",
    ),
    types.Resource(
        uri="memoryos://profile",
        name="profile",
        title="Profile of the user",
        description="Traits and facts, as text.",
        mime_type="text/plain",
    ),
]


def make_server(service: MemoryService, user_id: str) -> Server[dict[str, Any]]:
    """Return an MCP server over one user's memory, ready to be run on any transport; both protocol eras.

    Args:
        service: The memory; whoever made it closes it.
        user_id: Whose memory every call is about.
    """
    surface = _Surface(service, user_id)
    return Server(
        "memoryos",
        version=__version__,
        title="MemoryOS",
        description="Long-term memory of the user across conversations.",
        instructions=INSTRUCTIONS,
        on_list_tools=surface.list_tools,
        on_call_tool=surface.call_tool,
        on_list_resources=surface.list_resources,
        on_read_resource=surface.read_resource,
        on_list_prompts=surface.list_prompts,
        on_get_prompt=surface.get_prompt,
    )


class _Surface:
    """The protocol's requests, answered for one user."""

    def __init__(self, service: MemoryService, user_id: str) -> None:
        self._service = service
        self._user_id = user_id
        self._readers: dict[str, Callable[[], Awaitable[str]]] = {
            "memoryos://status": self._status,
            "memoryos://config": self._config,
            "memoryos://profile": self._profile,
        }

    async def list_tools(self, _: Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=_listings())

    async def call_tool(self, _: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = _BY_NAME.get(params.name)
        if tool is None:
            return _refusal(f"no such tool; known are: {', '.join(_BY_NAME)}")
        try:
            return await tool.run(self._service, self._user_id, params.arguments or {})
        except MemoryOSError as error:
            logger.info("%s refused: %s", tool.name, type(error).__name__)
            return _refusal(str(error))
        except Exception:
            logger.exception("%s failed unexpectedly", tool.name)
            return _refusal(f"{tool.name} failed unexpectedly; the server's log says where")

    async def list_resources(self, _: Context, __: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=_RESOURCES)

    async def read_resource(self, _: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        uri = str(params.uri)
        reader = self._readers.get(uri)
        if reader is None:
            raise MCPError(code=INVALID_PARAMS, message=f"no such resource; known are: {', '.join(self._readers)}")
        try:
            text = await reader()
        except MemoryOSError as error:
            raise MCPError(code=INTERNAL_ERROR, message=str(error)) from error
        kind = next(resource.mime_type for resource in _RESOURCES if resource.uri == uri)
        return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, mime_type=kind, text=text)])

    async def list_prompts(self, _: Context, __: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=PROMPTS)

    async def get_prompt(self, _: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        try:
            return prompt(params.name, params.arguments or {})
        except ArgumentError as error:
            raise MCPError(code=INVALID_PARAMS, message=str(error)) from error

    async def _status(self) -> str:
        answer = await get_memory_stats(self._service, self._user_id, NoArguments())
        return answer.result.model_dump_json(indent=2)

    async def _config(self) -> str:
        return json.dumps(self._service.settings.public(), indent=2, ensure_ascii=False)

    async def _profile(self) -> str:
        arguments = GetUserProfileArguments(include_assistant_knowledge=True)
        return (await get_user_profile(self._service, self._user_id, arguments)).text


@cache
def _listings() -> list[types.Tool]:
    """Return the tools as listed; made once, when a client first asks, because schemas take time."""
    return [tool.listing() for tool in TOOLS]


def _refusal(message: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=message)], is_error=True)
