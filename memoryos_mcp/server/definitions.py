"""What a tool is: how it is listed, and how a call of it is checked and answered."""

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
    """What a tool returns: a model for programs and a text for readers."""

    result: BaseModel
    text: str


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool as it is listed and called.

    Attributes:
        reads_only: Whether it leaves the memory as it was.
        call: Takes the service, the user and the checked arguments.
        destroys: Whether it may take away what cannot be brought back.
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
        """Return the protocol's result of a call.

        Raises:
            MemoryOSError: The call failed; the text says what to do.
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
        """Return the tool as a client sees it who may name another user, or may not."""
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
                # Only of a tool that writes does it say something.
                destructive_hint=None if self.reads_only else self.destroys,
                open_world_hint=False,
            ),
        )


def text_time(moment: datetime) -> str:
    """Return a time as results tell it: ISO 8601, to the second."""
    return moment.isoformat(timespec="seconds")


def shown_heat(heat: float) -> float:
    """Return heat rounded down: what is just under the threshold must not look as if it had reached it."""
    return math.floor(heat * 1000) / 1000
