"""Definition of a tool: its name and description, its arguments, its result and the function behind it."""

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


def text_time(moment: datetime) -> str:
    """Return a time as results show it: ISO 8601, to the second."""
    return moment.isoformat(timespec="seconds")


def shown_heat(heat: float) -> float:
    """Return heat rounded down, so that heat just below the threshold does not look as if it had reached it."""
    return math.floor(heat * 1000) / 1000
