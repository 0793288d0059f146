"""Traces of tool calls. A span contains the tool, transport, outcome and duration of a call, but no conversation text.

The SDK also creates spans if tracing is set up for the whole process. These spans contain names, ids and error texts
from clients and libraries. The spans of this module contain only names that are defined by the server.
"""

from collections.abc import Callable, Mapping
from typing import Any, cast

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from opentelemetry.context import Context
from opentelemetry.trace import SpanKind, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from memoryos_mcp.server.call_status import CALL_METHOD, Outcome, outcome_of, tool_of

_PARENT = "traceparent"


class CallSpans:
    """Middleware that creates a span for each tool call, in the client's own trace if the client sent a trace id."""

    def __init__(self, tracer: Tracer, transport: Callable[[ServerRequestContext[Any, Any]], str]) -> None:
        self._tracer = tracer
        self._transport = transport

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Create a span for a tool call."""
        if ctx.method != CALL_METHOD:
            return await call_next(ctx)
        tool, outcome = tool_of(ctx), Outcome.FAILED
        with self._tracer.start_as_current_span(
            f"{CALL_METHOD} {tool}",
            context=_parent(ctx),
            kind=SpanKind.SERVER,
            attributes={
                "mcp.method.name": CALL_METHOD,
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": tool,
                "memoryos.transport": self._transport(ctx),
            },
            # The text of an error may contain text from the client.
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                result = await call_next(ctx)
                outcome = outcome_of(result)
            finally:
                span.set_attribute("memoryos.outcome", outcome.value)
                if outcome is not Outcome.OK:
                    span.set_status(StatusCode.ERROR)
        return result


def _parent(ctx: ServerRequestContext[Any, Any]) -> Context | None:
    """Return the context of the client's span, or None if the client sent no span.

    The context is read from the MCP message, or else from the HTTP headers. The field ``tracestate`` is ignored,
    because it may contain any text.
    """
    meta = cast(Mapping[str, object], ctx.meta or {})
    named = meta.get(_PARENT) or (ctx.request and ctx.request.headers.get(_PARENT))
    return TraceContextTextMapPropagator().extract({_PARENT: named}) if isinstance(named, str) else None
