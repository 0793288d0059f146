"""Tracing calls of tools: which tool, over what, how it ended and how long it took, and nothing of what was said.

The protocol's library makes spans too, for whatever tracing is set up for the whole process. They hold names, ids and
error texts as clients and libraries write them, so traces are made here instead, of names that the server knows.
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
    """A server's middleware that makes each call of a tool a span, of the client's own trace if it names one.

    Args:
        tracer: Makes the spans.
        transport: Tells what a call came over.
    """

    def __init__(self, tracer: Tracer, transport: Callable[[ServerRequestContext[Any, Any]], str]) -> None:
        self._tracer = tracer
        self._transport = transport

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Time a call on its way through the server."""
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
            # An error's text may be the client's.
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
    """Return the span that the client made the call in: of the message, or else of the request over HTTP.

    None without one. What vendors may put beside it (`tracestate`) is any text, and left out.
    """
    meta = cast(Mapping[str, object], ctx.meta or {})
    named = meta.get(_PARENT) or (ctx.request and ctx.request.headers.get(_PARENT))
    return TraceContextTextMapPropagator().extract({_PARENT: named}) if isinstance(named, str) else None
