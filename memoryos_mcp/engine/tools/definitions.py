"""Definitions of tools: name, description, arguments, result and function."""

import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import BaseModel

from memoryos_mcp.engine.service import Memories
from memoryos_mcp.engine.tools.arguments import Arguments


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a tool call in two forms: a Pydantic model for programs, and text for models and people."""

    result: BaseModel
    text: str


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """The definition of a tool.

    Attributes:
        reads_only: Whether the tool leaves the memory unchanged.
        call: The function of the tool. Its arguments are the memories, the user id and the validated arguments.
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


def text_time(moment: datetime) -> str:
    """Return a time as a string in the format of tool results: ISO 8601 with seconds."""
    return moment.isoformat(timespec="seconds")


def shown_heat(heat: float) -> float:
    """Return the heat with three decimals, rounded down, so that rounding does not lift it to a threshold."""
    return math.floor(heat * 1000) / 1000
