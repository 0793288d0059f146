"""Traces of tool calls: each span has the tool, transport, outcome and duration, but no text from a conversation.

The SDK also makes spans if tracing is set up for the whole process. Its spans contain names, ids and error texts from
clients and libraries. The spans made here contain only names that the server knows.
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
    """Middleware that makes a span for each tool call, in the client's own trace if the call names one."""

    def __init__(self, tracer: Tracer, transport: Callable[[ServerRequestContext[Any, Any]], str]) -> None:
        self._tracer = tracer
        self._transport = transport

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Make a span for a tool call."""
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
            # The text of an error may quote the client.
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
    """Return the client's span that the message or else the HTTP request names, or None if neither does.

    `tracestate` is ignored, because it may contain any text.
    """
    meta = cast(Mapping[str, object], ctx.meta or {})
    named = meta.get(_PARENT) or (ctx.request and ctx.request.headers.get(_PARENT))
    return TraceContextTextMapPropagator().extract({_PARENT: named}) if isinstance(named, str) else None
