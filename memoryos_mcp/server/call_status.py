"""Names and outcomes of tool calls, for metrics and traces."""

from enum import StrEnum
from typing import Any

import mcp_types as types
from mcp.server.context import HandlerResult, ServerRequestContext

from memoryos_mcp.engine.tools.core_tools import TOOLS

CALL_METHOD = "tools/call"
_TOOL_NAMES = frozenset(tool.name for tool in TOOLS)


class Outcome(StrEnum):
    """How a tool call ended."""

    OK = "ok"
    REFUSED = "refused"
    FAILED = "failed"


def tool_of(context: ServerRequestContext[Any, Any]) -> str:
    """Return the called tool's name. Names of unknown tools become ``unknown``, to limit the number of metrics."""
    name = (context.params or {}).get("name")
    return name if isinstance(name, str) and name in _TOOL_NAMES else "unknown"


def outcome_of(result: HandlerResult) -> Outcome:
    """Return the outcome of a call that returned ``result``: ``REFUSED`` if it is marked as an error, otherwise ``OK``.

    ``result`` is a ``CallToolResult``, or the JSON object that is sent to the client.
    """
    if isinstance(result, types.CallToolResult):
        is_error = bool(result.is_error)
    else:
        is_error = isinstance(result, dict) and result.get("isError") is True
    return Outcome.REFUSED if is_error else Outcome.OK
