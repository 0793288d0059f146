"""Traces: sets up OpenTelemetry if its own environment variables ask for it. Its libraries are imported only then."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Thread
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from memoryos_mcp import __version__

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

logger = logging.getLogger(__name__)

# Unsent spans are dropped after this time: a collector that does not answer must not keep a client waiting.
CLOSE_LIMIT_S = 3.0
_SCOPE = "memoryos_mcp"
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_EXPORTERS = "OTEL_TRACES_EXPORTER"
_DISABLED = "OTEL_SDK_DISABLED"
_OTLP, _NONE, _OVER_HTTP = "otlp", "none", "http/protobuf"


@dataclass(frozen=True, slots=True)
class Tracing:
    """A tracer that is not registered globally, so that libraries do not add spans of their own.

    Attributes:
        tracer: Creates spans. Safe to share between tasks and threads; a thread of its own sends them.
        shutdown: Sends the remaining spans and ends that thread.
    """

    tracer: "Tracer"
    shutdown: Callable[[], None]

    def close(self) -> None:
        """Send the remaining spans, for 3 s at most; blocks."""
        closing = Thread(target=self.shutdown, name="memoryos-traces", daemon=True)
        closing.start()
        closing.join(CLOSE_LIMIT_S)


def open_tracing(environ: Mapping[str, str]) -> Tracing | None:
    """Return the tracing that the environment asks for, or None; if it is not possible, the log says what to change.

    Args:
        environ: The process's environment; OpenTelemetry's own libraries read further variables from it.
    """
    if not _is_asked_for(environ):
        return None
    protocol = _first(environ, _PROTOCOLS) or _OVER_HTTP
    if protocol != _OVER_HTTP:
        logger.warning("no traces: %s is the only protocol there is; set %s to it", _OVER_HTTP, _PROTOCOLS[1])
        return None
    try:
        where, tracing = _where(environ), _otlp()
    except ImportError:
        logger.warning(
            "no traces: they are asked for by %s, but the extra `otel` is not installed; in a checkout run "
            "`pip install '.[otel]'`",
            next(name for name in (*_ENDPOINTS, _EXPORTERS) if environ.get(name)),
        )
        return None
    except (ValueError, OSError) as error:
        logger.warning("no traces: a variable OTEL_* cannot be used (%s); correct or unset it", type(error).__name__)
        return None
    logger.info("traces are sent by OTLP to %s", where)
    return tracing


def _is_asked_for(environ: Mapping[str, str]) -> bool:
    if environ.get(_DISABLED, "").strip().lower() == "true":
        return False
    exporters = {name for part in environ.get(_EXPORTERS, "").split(",") if (name := part.strip())}
    if not exporters:
        return _first(environ, _ENDPOINTS) is not None
    if exporters - {_OTLP, _NONE}:
        logger.warning("%s: traces can only be sent by otlp; set it to that, or to none", _EXPORTERS)
    return _OTLP in exporters


def _where(environ: Mapping[str, str]) -> str:
    """Return the host and port of the collector, without other parts of its URL, such as a password."""
    named = _first(environ, _ENDPOINTS)
    return (urlsplit(named).netloc.rpartition("@")[2] or "the named collector") if named else "localhost:4318"


def _first(environ: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    """Return the value of the first variable that is not blank."""
    return next((value for name in names if (value := environ.get(name, "").strip())), None)


def _otlp() -> Tracing:
    """Return a tracer that sends spans in batches; the environment sets the destination and which are left out.

    Raises:
        ImportError: The extra is not installed.
        ValueError: A variable is out of range.
        OSError: A certificate that a variable names does not exist.
    """
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    ours = {SERVICE_NAME: "memoryos-mcp", SERVICE_VERSION: __version__}
    resource = Resource(ours).merge(OTELResourceDetector().detect())
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return Tracing(provider.get_tracer(_SCOPE, __version__), provider.shutdown)
