"""Definition of a tool: how it is listed, and how a call is checked and answered."""

import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import mcp_types as types
from pydantic import BaseModel

from memoryos_mcp.engine.service import Memories, MemoryService
from memoryos_mcp.model.callers import Caller
from memoryos_mcp.server.arguments import USER_ID, USER_ID_SCHEMA, Arguments, check, take_user_id
from memoryos_mcp.server.schemas import input_schema, output_schema


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a tool: a model for programs and a text for readers."""

    result: BaseModel
    text: str


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool as it is listed and called.

    Attributes:
        reads_only: Whether it leaves the memory unchanged.
        call: Takes the service, the user and the checked arguments.
        destroys: Whether a call may remove data that cannot be restored.
    """

    name: str
    title: str
    description: str
    arguments: type[Arguments]
    result: type[BaseModel]
    reads_only: bool
    call: Callable[[Memories, str, Any], Awaitable[Answer]]
    destroys: bool = False

    async def run(self, service: MemoryService, caller: Caller, given: dict[str, Any]) -> types.CallToolResult:
        """Check the arguments, call the tool and return the protocol's result.

        Raises:
            MemoryOSError: The call failed; the message says what to do.
        """
        user_id = caller.user_id
        if caller.may_act_as:
            named, given = take_user_id(given)
            user_id = user_id if named is None else named
        arguments = check(self.arguments, given, beside=[USER_ID] if caller.may_act_as else [])
        answer = await self.call(service.as_seen_by(caller), user_id, arguments)
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=answer.text)],
            structured_content=answer.result.model_dump(mode="json"),
        )

    def listing(self, *, may_act_as: bool) -> types.Tool:
        """Return the tool as a client sees it; callers who may act as another user can name one."""
        schema = input_schema(self.arguments)
        if may_act_as:
            schema["properties"] = {**schema["properties"], USER_ID: USER_ID_SCHEMA}
        return types.Tool(
            name=self.name,
            title=self.title,
            description=self.description,
            input_schema=schema,
            output_schema=output_schema(self.result),
            annotations=types.ToolAnnotations(
                read_only_hint=self.reads_only,
                # The hint has a meaning only for tools that write.
                destructive_hint=None if self.reads_only else self.destroys,
                open_world_hint=False,
            ),
        )


def text_time(moment: datetime) -> str:
    """Return a time as results show it: ISO 8601, to the second."""
    return moment.isoformat(timespec="seconds")


def shown_heat(heat: float) -> float:
    """Return heat rounded down, so that heat just below the threshold does not look as if it had reached it."""
    return math.floor(heat * 1000) / 1000
