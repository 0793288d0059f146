"""A real collector of traces: an HTTP server on this machine that accepts OTLP."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span

END_LIMIT_S = 10.0


class Collector:
    """A running collector, to be used as a context manager.

    Attributes:
        received: Head and body of every request.
    """

    def __init__(self) -> None:
        self.received: list[bytes] = []
        self._bodies: list[bytes] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                collector.received.append(f"{self.requestline}\n{self.headers}".encode() + body)
                collector._bodies.append(body)
                answer = ExportTraceServiceResponse().SerializeToString()
                self.send_response(200)
                self.send_header("content-type", "application/x-protobuf")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: object) -> None:
                """Do not log."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(END_LIMIT_S)

    @property
    def environment(self) -> dict[str, str]:
        """The variables with which a server sends spans here without delay."""
        endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"
        return {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_BSP_SCHEDULE_DELAY": "20"}

    @property
    def spans(self) -> list[Span]:
        """Every span so far, in the order in which they ended."""
        return [
            span
            for body in self._bodies
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def spans_of(self, name: str) -> list[Span]:
        return [span for span in self.spans if span.name == name]

    @property
    def resource(self) -> dict[str, str]:
        """The attributes of the process that sent the spans."""
        [first, *_] = ExportTraceServiceRequest.FromString(self._bodies[0]).resource_spans
        return {each.key: each.value.string_value for each in first.resource.attributes}


def attributes(span: Span) -> dict[str, str | int]:
    return {each.key: each.value.string_value or each.value.int_value for each in span.attributes}
