"""Traces as a collector receives them: a span for each call, only if configured, and without dialogue."""

import asyncio
import json
import logging
import signal
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from benchmarks.llm_server import reply_to
from memoryos_mcp import __version__
from memoryos_mcp.config.telemetry import open_tracing
from memoryos_mcp.model.callers import Scope
from tests.http_server import (
    WAYS,
    HttpServer,
    asker,
    open_session,
    raw_call,
    tool_call,
)
from tests.llm_server import Answer, Asked, api_error, completion, free_port, llm_server
from tests.memories import NO_MODEL
from tests.servers import PipeServer, clean_environment, wait_until
from tests.trace_collector import Collector, attributes

LIMIT_S = 120
# Names, texts, keys and ids of callers contain this word, which may not reach the collector.
MARKER = "zqmarker"
TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PARENT = f"00-{TRACE}-{CALLER}-01"
ADD = "tools/call add_memory"
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


def answer(asked: Asked) -> Answer:
    return completion(json.dumps(reply_to(asked.body["messages"])), tokens=(11, 7))


async def test_spans_of_calls_contain_no_text_user_or_key(data: Path) -> None:
    settings: dict[str, object] = {
        "short_term_capacity": 0,
        "consolidation_batch_pages": len(WAYS),
        "llm_model": "tiny",
        "mid_term_heat_threshold": 3,
        **NO_MODEL,
    }
    user, key = f"{MARKER}-user", f"{MARKER}-key"
    with Collector() as collector:
        env = {**collector.environment, "MEMORYOS_OPENAI_API_KEY": key}
        async with asyncio.timeout(LIMIT_S), llm_server(answer) as llm:
            settings["openai_base_url"] = llm.base_url
            with HttpServer(data, {**settings, "user_id": user}, env=env) as server:
                token = server.add_token(user, Scope.WRITE, Scope.ACT_AS)
                for way in WAYS:
                    async with asker(server, token, way) as one:
                        await one.add(f"I am called {MARKER}.", meta_data={MARKER: MARKER})
                        await one.call("retrieve_memory", query=MARKER)
                        await one.refusal("add_memory", user_input=MARKER)
                        await one.refusal(MARKER, **{MARKER: MARKER})
                        await one.refusal("retrieve_memory", query=MARKER, max_results=MARKER)
                await llm.was_asked(2)
                while not collector.spans_of("chat learn"):  # noqa: ASYNC110 - another process
                    await asyncio.sleep(0.02)
            assert llm.asked[0].headers["authorization"] == f"Bearer {key}"
            assert MARKER in json.dumps(llm.bodies)
        received = b"\n".join(collector.received)
        assert MARKER.encode() not in received
        assert token.split("_", 2)[2].encode() not in received
        assert (collector.resource["service.name"], collector.resource["service.version"]) == (
            "memoryos-mcp",
            __version__,
        )
        told = {"mcp.method.name": "tools/call", "gen_ai.operation.name": "execute_tool"}
        for transport, times in (("http", 2), ("sse", 1)):
            spans = [attributes(span) for span in collector.spans if span.name.startswith("tools/call")]
            spans = [span for span in spans if span["memoryos.transport"] == transport]
            assert spans == times * [
                {**told, "gen_ai.tool.name": tool, "memoryos.transport": transport, "memoryos.outcome": outcome}
                for tool, outcome in (
                    ("add_memory", "ok"),
                    ("retrieve_memory", "ok"),
                    ("add_memory", "refused"),
                    ("unknown", "refused"),
                    ("retrieve_memory", "refused"),
                )
            ]
        asked = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "tiny"}
        cost = {"gen_ai.usage.input_tokens": 11, "gen_ai.usage.output_tokens": 7}
        for purpose in ("organise", "learn"):
            assert attributes(collector.spans_of(f"chat {purpose}")[0]) == {
                **asked,
                **cost,
                "memoryos.purpose": purpose,
            }
        assert {span.name for span in collector.spans} == {
            ADD,
            "tools/call retrieve_memory",
            "tools/call unknown",
            "chat organise",
            "chat learn",
        }
        assert not any(span.events or span.status.message or span.trace_state for span in collector.spans)


async def test_a_call_joins_the_trace_of_its_message_or_request(data: Path) -> None:
    other = TRACE[::-1]
    in_message = {"_meta": {"traceparent": f"00-{other}-{CALLER}-01", "tracestate": f"vendor={MARKER}"}}
    call = tool_call("get_memory_stats")
    with Collector() as collector, HttpServer(data, NO_MODEL, env=collector.environment) as server:
        async with asyncio.timeout(LIMIT_S):
            for named, message in (
                (None, call),
                (PARENT, call),
                (PARENT, {**call, "params": {**call["params"], **in_message}}),
                (f"00-{MARKER}-01", call),
                (None, {**call, "params": {**call["params"], "_meta": {"traceparent": [MARKER]}}}),
            ):
                headers = {} if named is None else {"traceparent": named, "tracestate": f"vendor={MARKER}"}
                async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
                    session = await open_session(http, server, None)
                    assert (await raw_call(http, server, None, message, session)).status_code == 200
        assert server.stop() == 0
        parents = [span.parent_span_id.hex() for span in collector.spans]
        assert parents == ["", CALLER, CALLER, "", ""]
        traces = [span.trace_id.hex() for span in collector.spans]
        assert traces[1:3] == [TRACE, other]
        assert len(set(traces)) == len(traces)
        assert MARKER.encode() not in b"".join(collector.received)


async def test_a_failed_llm_call_is_a_span_with_its_error_type(data: Path) -> None:
    settings: dict[str, object] = {"short_term_capacity": 0, "consolidation_batch_pages": 1, **NO_MODEL}
    with Collector() as collector:
        async with asyncio.timeout(LIMIT_S), llm_server(api_error(401, MARKER)) as llm:
            settings["openai_base_url"] = llm.base_url
            with HttpServer(data, settings, env=collector.environment) as server:
                async with asker(server, None) as user:
                    await user.add(MARKER)
                while not (spans := collector.spans_of("chat organise")):  # noqa: ASYNC110 - another process
                    await asyncio.sleep(0.02)
        assert attributes(spans[0])["error.type"] == "ModelError"
        assert not spans[0].events
        assert spans[0].status.code == 2
        assert MARKER.encode() not in b"".join(collector.received)


@pytest.mark.parametrize("ends_by", ["the end of stdin", "SIGTERM"])
def test_over_stdio_spans_are_sent_before_the_process_ends(data: Path, ends_by: str) -> None:
    with Collector() as collector:
        # Spans are sent only when the process ends, not by the timer.
        env = {**collector.environment, "OTEL_BSP_SCHEDULE_DELAY": "3600000"}
        with PipeServer(data, NO_MODEL, env=env) as server:
            server.add(f"I am called {MARKER}.")
            assert collector.spans == []
            if ends_by == "SIGTERM":
                server.process.send_signal(signal.SIGTERM)
                assert server.wait_for_exit() == 0
            else:
                assert server.close() == 0
            assert "traces are sent by OTLP to 127.0.0.1:" in server.stderr
        [span] = collector.spans
        assert (span.name, attributes(span)["memoryos.transport"]) == (ADD, "stdio")
        assert MARKER.encode() not in b"".join(collector.received)


def test_a_missing_collector_affects_neither_calls_nor_shutdown(data: Path) -> None:
    env = {ENDPOINT: f"http://127.0.0.1:{free_port()}", "OTEL_BSP_SCHEDULE_DELAY": "20"}
    with PipeServer(data, NO_MODEL, env=env) as server:
        page = server.add(f"I am called {MARKER}.")
        wait_until(lambda: "export" in server.stderr.lower(), "the log reports the missing collector")
        assert server.call("retrieve_memory", query=MARKER)["short_term_memory"][0]["page_id"] == page
        assert server.close() == 0
        assert MARKER not in server.stderr


def test_without_tracing_opentelemetry_is_not_imported() -> None:
    statement = (
        "import sys, memoryos_mcp.cli.main, memoryos_mcp.server.stdio, memoryos_mcp.server.http.serving\n"
        "import memoryos_mcp.config.telemetry as traces\n"
        "environments = {}, {'OTEL_TRACES_EXPORTER': 'none', 'OTEL_EXPORTER_OTLP_ENDPOINT': 'http://127.0.0.1:1'}\n"
        "assert [traces.open_tracing(each) for each in environments] == [None, None]\n"
        "print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", statement], capture_output=True, check=True, timeout=60, env=clean_environment()
    )
    loaded = done.stdout.decode().split()
    assert "mcp" in loaded
    assert not [name for name in loaded if name.startswith(("opentelemetry.sdk", "opentelemetry.exporter", "requests"))]
    assert done.stderr == b""


def test_tracing_without_the_extra_names_what_to_install(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    assert open_tracing({ENDPOINT: "http://127.0.0.1:1"}) is None
    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert f"{ENDPOINT} is set" in record.getMessage()
    assert "pip install '.[otel]'" in record.getMessage()


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"OTEL_TRACES_EXPORTER": "console"}, "contains an exporter that is not supported"),
        ({ENDPOINT: "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "set OTEL_EXPORTER_OTLP_PROTOCOL"),
        ({ENDPOINT: "http://[127.0.0.1"}, "an environment variable OTEL_* has an invalid value"),
        ({ENDPOINT: "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"}, None),
        ({ENDPOINT: " "}, None),
    ],
)
def test_unusable_tracing_options_cause_a_warning_only(
    caplog: pytest.LogCaptureFixture, environ: dict[str, str], said: str | None
) -> None:
    assert open_tracing(environ) is None
    messages = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(messages) == (said is not None)
    assert said is None or said in messages[0]
