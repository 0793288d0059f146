"""Metrics for Prometheus. They contain no user ids, no conversation text and no API keys."""

import time
from collections.abc import Iterator
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from memoryos_mcp.engine.service import MemoryService
from memoryos_mcp.server.call_status import CALL_METHOD, Outcome, outcome_of, tool_of

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """The metrics of one server. As middleware, an instance of this class also counts tool calls."""

    def __init__(self, service: MemoryService) -> None:
        self._service = service
        registry = self._registry = CollectorRegistry()
        self._calls = Counter(
            "memoryos_tool_calls_total", "Number of tool calls.", ["tool", "outcome"], registry=registry
        )
        self._took = Histogram(
            "memoryos_tool_call_seconds", "Duration of tool calls.", ["tool"], buckets=_BUCKETS_S, registry=registry
        )

        def gauge(name: str, described: str) -> Gauge:
            return Gauge(name, described, registry=registry)

        self._open_users = gauge("memoryos_open_users", "Open memories.")
        self._unread_users = gauge(
            "memoryos_unread_users",
            "Open memories that are missing from the page counts, because they could not be read in time.",
        )
        self._backlog_pages = gauge(
            "memoryos_backlog_pages", "Pages of open memories that are not assigned to a topic yet."
        )
        self._backlog_age = gauge(
            "memoryos_backlog_age_seconds", "Age of the oldest page that is not assigned to a topic yet."
        )
        self._unembedded_pages = gauge("memoryos_unembedded_pages", "Pages of open memories without vectors.")
        registry.register(_LlmCounts(service))

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Count a tool call and record its duration."""
        if ctx.method != CALL_METHOD:
            return await call_next(ctx)
        tool, began, outcome = tool_of(ctx), time.perf_counter(), Outcome.FAILED
        try:
            result = await call_next(ctx)
            outcome = outcome_of(result)
        finally:
            self._calls.labels(tool, outcome).inc()
            self._took.labels(tool).observe(time.perf_counter() - began)
        return result

    async def text(self) -> bytes:
        """Return all metrics in Prometheus' text format.

        This takes a few seconds at most, even if a memory cannot be read.
        """
        backlog = await self._service.backlog()
        self._open_users.set(self._service.open_users)
        self._unread_users.set(backlog.unread_users)
        self._backlog_pages.set(backlog.pages)
        self._backlog_age.set(backlog.oldest_age_s)
        self._unembedded_pages.set(backlog.unembedded_pages)
        return generate_latest(self._registry)


class _LlmCounts(Collector):
    """Reports the service's counts of LLM calls and tokens to Prometheus."""

    def __init__(self, service: MemoryService) -> None:
        self._service = service

    def collect(self) -> Iterator[Metric]:
        calls = CounterMetricFamily("memoryos_llm_calls", "Number of LLM calls.", labels=["purpose", "outcome"])
        tokens = CounterMetricFamily(
            "memoryos_llm_tokens", "Tokens in prompts and replies of the LLM.", labels=["purpose", "kind"]
        )
        for purpose, spent in self._service.llm_spent.items():
            calls.add_metric([purpose, Outcome.OK], spent.calls)
            calls.add_metric([purpose, Outcome.FAILED], spent.failed_calls)
            tokens.add_metric([purpose, "prompt"], spent.prompt_tokens)
            tokens.add_metric([purpose, "completion"], spent.completion_tokens)
        return iter((calls, tokens))
