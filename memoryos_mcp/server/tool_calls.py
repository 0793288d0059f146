"""Lists and calls tools. The results are MCP types."""

from typing import Any

import mcp_types as types

from memoryos_mcp.engine.service import MemoryService
from memoryos_mcp.engine.tools.arguments import USER_ID, USER_ID_SCHEMA, check, take_user_id
from memoryos_mcp.engine.tools.definitions import ToolDefinition
from memoryos_mcp.engine.tools.schemas import input_schema, output_schema
from memoryos_mcp.model.callers import Caller


async def call(
    tool: ToolDefinition, service: MemoryService, caller: Caller, given: dict[str, Any]
) -> types.CallToolResult:
    """Check the arguments, call the tool and return its result as an MCP type.

    Raises:
        MemoryOSError: The arguments are not valid, or the call failed. The message says what to do.
    """
    user_id = caller.user_id
    if caller.may_act_as:
        named, given = take_user_id(given)
        user_id = user_id if named is None else named
    arguments = check(tool.arguments, given, also_known=[USER_ID] if caller.may_act_as else [])
    answer = await tool.call(service.as_seen_by(caller), user_id, arguments)
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=answer.text)],
        structured_content=answer.result.model_dump(mode="json"),
    )


def listing(tool: ToolDefinition, *, may_act_as: bool) -> types.Tool:
    """Convert the definition of a tool to the MCP type that clients receive.

    The argument ``user_id`` is included only if the caller may act as another user.
    """
    schema = input_schema(tool.arguments)
    if may_act_as:
        schema["properties"] = {**schema["properties"], USER_ID: USER_ID_SCHEMA}
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=schema,
        output_schema=output_schema(tool.result),
        annotations=types.ToolAnnotations(
            read_only_hint=tool.reads_only,
            # In MCP, this hint applies only to tools that write.
            destructive_hint=None if tool.reads_only else tool.destroys,
            open_world_hint=False,
        ),
    )
