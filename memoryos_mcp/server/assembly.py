"""Builds the MCP server, which passes requests to tools, resources and prompts, and reports errors to clients.

Tools and resources that a caller has no right to use are not listed, and requests for them fail as if they did not
exist.
"""

import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS

from memoryos_mcp import __version__
from memoryos_mcp.engine.service import Memories, MemoryService
from memoryos_mcp.engine.tools.arguments import GetUserProfileArguments, NoArguments
from memoryos_mcp.engine.tools.core_tools import TOOLS, get_memory_stats, get_user_profile
from memoryos_mcp.engine.tools.definitions import ToolDefinition
from memoryos_mcp.errors import ArgumentError, MemoryOSError
from memoryos_mcp.model.callers import Caller
from memoryos_mcp.server.guides import INSTRUCTIONS, PROMPTS, is_about_a_topic, prompt
from memoryos_mcp.server.tool_calls import call, listing
from memoryos_mcp.text.quoting import one_line

logger = logging.getLogger(__name__)

Context = ServerRequestContext[Any, Any]
# Returns the caller who sent a request.
FindCaller = Callable[[Context], Caller]
# The protocol's limit on the number of suggestions in one completion.
MAX_COMPLETIONS = 100


def make_server(service: MemoryService, find_caller: FindCaller) -> Server[dict[str, Any]]:
    """Return an MCP server for all protocol versions, with and without sessions. It runs on any transport.

    Args:
        service: The service that opens the users' memories. The code that created it must close it.
        find_caller: Returns the caller of a request. Requests on the same connection may have different callers.
    """
    surface = _Surface(service, find_caller)
    return Server(
        "memoryos",
        version=__version__,
        title="MemoryOS",
        description="Long-term memory of the user across conversations.",
        instructions=INSTRUCTIONS,
        get_tool_input_schema=_input_schema_of,
        on_list_tools=surface.list_tools,
        on_call_tool=surface.call_tool,
        on_list_resources=surface.list_resources,
        on_read_resource=surface.read_resource,
        on_list_prompts=surface.list_prompts,
        on_get_prompt=surface.get_prompt,
        on_completion=surface.complete,
    )


class _Surface:
    """Handlers for MCP requests."""

    def __init__(self, service: MemoryService, find_caller: FindCaller) -> None:
        self._service = service
        self._find_caller = find_caller

    async def list_tools(self, context: Context, _: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        caller = self._find_caller(context)
        return types.ListToolsResult(tools=_listings(may_write=caller.may_write, may_act_as=caller.may_act_as))

    async def call_tool(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        caller = self._find_caller(context)
        known = {tool.name: tool for tool in _tools(may_write=caller.may_write)}
        tool = known.get(params.name)
        if tool is None:
            return _tool_error(f"no such tool; the tools are: {', '.join(known)}")
        try:
            return await call(tool, self._service, caller, params.arguments or {})
        except MemoryOSError as error:
            logger.info("%s refused: %s", tool.name, type(error).__name__)
            return _tool_error(str(error))
        except Exception:
            logger.exception("%s failed unexpectedly", tool.name)
            return _tool_error(f"{tool.name} failed unexpectedly; see the server's log")

    async def list_resources(
        self, context: Context, _: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=[one.listing for one in _resources(self._find_caller(context))])

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        caller, uri = self._find_caller(context), str(params.uri)
        known = {one.listing.uri: one for one in _resources(caller)}
        resource = known.get(uri)
        if resource is None:
            raise MCPError(code=INVALID_PARAMS, message=f"the resource is unknown; use one of: {', '.join(known)}")
        try:
            text = await resource.read(self._service.as_seen_by(caller), caller.user_id)
        except MemoryOSError as error:
            raise MCPError(code=INTERNAL_ERROR, message=str(error)) from error
        contents = types.TextResourceContents(uri=uri, mime_type=resource.listing.mime_type, text=text)
        return types.ReadResourceResult(contents=[contents])

    async def complete(self, context: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        """Return the memory's topics that begin with the typed text.

        Return no topics if the typed text is not for the argument ``topic`` of a prompt.
        """
        ref, typed = params.ref, params.argument.value.casefold()
        fitting: list[str] = []
        if isinstance(ref, types.PromptReference) and is_about_a_topic(ref.name, params.argument.name):
            try:
                caller = self._find_caller(context)
                async with self._service.as_seen_by(caller).user(caller.user_id) as engine:
                    topics = map(one_line, await engine.topics())
                    fitting = [topic for topic in topics if topic.casefold().startswith(typed)]
            except MemoryOSError as error:
                raise MCPError(code=INTERNAL_ERROR, message=str(error)) from error
        shown = fitting[:MAX_COMPLETIONS]
        completion = types.Completion(values=shown, total=len(fitting), has_more=len(shown) < len(fitting))
        return types.CompleteResult(completion=completion)

    # Prompts are the same for all callers.

    async def list_prompts(self, _: Context, __: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=PROMPTS)

    async def get_prompt(self, _: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        try:
            return prompt(params.name, params.arguments or {})
        except ArgumentError as error:
            raise MCPError(code=INVALID_PARAMS, message=str(error)) from error


@dataclass(frozen=True, slots=True)
class _Resource:
    """A resource: its entry in the list of resources, and the function that reads it."""

    listing: types.Resource
    read: Callable[[Memories, str], Awaitable[str]]
    is_for_admins: bool = False


async def _status(service: Memories, user_id: str) -> str:
    answer = await get_memory_stats(service, user_id, NoArguments())
    return answer.result.model_dump_json(indent=2)


async def _config(service: Memories, user_id: str) -> str:  # noqa: ARG001 - settings are the same for all users
    return json.dumps(service.settings.public(), indent=2, ensure_ascii=False)


async def _profile(service: Memories, user_id: str) -> str:
    arguments = GetUserProfileArguments(include_assistant_knowledge=True)
    return (await get_user_profile(service, user_id, arguments)).text


_RESOURCES = (
    _Resource(
        types.Resource(
            uri="memoryos://status",
            name="status",
            title="State of the memory",
            description="Pages per tier, hot topics, health of the background work.",
            mime_type="application/json",
        ),
        _status,
    ),
    _Resource(
        types.Resource(
            uri="memoryos://config",
            name="config",
            title="Settings in use",
            description="Every setting of this server. Keys are not shown, only whether they are set.",
            mime_type="application/json",
        ),
        _config,
        is_for_admins=True,
    ),
    _Resource(
        types.Resource(
            uri="memoryos://profile",
            name="profile",
            title="Profile of the user",
            description="Traits and facts, as text.",
            mime_type="text/plain",
        ),
        _profile,
    ),
)


def _resources(caller: Caller) -> Sequence[_Resource]:
    return [one for one in _RESOURCES if caller.is_admin or not one.is_for_admins]


def _tools(*, may_write: bool) -> Sequence[ToolDefinition]:
    return [tool for tool in TOOLS if may_write or tool.reads_only]


@cache
def _listings(*, may_write: bool, may_act_as: bool) -> list[types.Tool]:
    """Return the tools for callers with these rights. The list is cached, because building the schemas takes time."""
    return [listing(tool, may_act_as=may_act_as) for tool in _tools(may_write=may_write)]


def _input_schema_of(name: str) -> Mapping[str, Any] | None:
    """Return the input schema of a tool, or None if there is no tool of this name.

    The MCP library checks the headers of each call by this schema. Without this function, it would list all tools for
    each call. The caller's rights are checked later, when the tool is called.
    """
    schemas = {tool.name: tool.input_schema for tool in _listings(may_write=True, may_act_as=True)}
    return schemas.get(name)


def _tool_error(message: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=message)], is_error=True)
