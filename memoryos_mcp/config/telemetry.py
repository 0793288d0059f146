"""Tracing with OpenTelemetry.

The environment variables of OpenTelemetry enable tracing. Its libraries are imported only if tracing is enabled.
"""

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

# At shutdown, unsent spans are dropped after this time. A collector that does not answer must not delay the client.
CLOSE_LIMIT_S = 3.0
_SCOPE = "memoryos_mcp"
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_EXPORTERS = "OTEL_TRACES_EXPORTER"
_DISABLED = "OTEL_SDK_DISABLED"
_OTLP, _NONE, _OVER_HTTP = "otlp", "none", "http/protobuf"


@dataclass(frozen=True, slots=True)
class Tracing:
    """A tracer that is not registered globally, so that libraries do not add their own spans.

    Tasks and threads can share the tracer. ``shutdown`` sends the spans that have not been sent yet.
    """

    tracer: "Tracer"
    shutdown: Callable[[], None]

    def close(self) -> None:
        """Send the remaining spans. Wait for at most `CLOSE_LIMIT_S` seconds."""
        closing = Thread(target=self.shutdown, name="memoryos-traces", daemon=True)
        closing.start()
        closing.join(CLOSE_LIMIT_S)


def open_tracing(environ: Mapping[str, str]) -> Tracing | None:
    """Return a tracer if environment variables enable tracing, else None.

    If tracing is enabled but not possible, log the reason and return None. OpenTelemetry's libraries do not use
    ``environ``, but read the environment of the process.
    """
    if not _is_enabled(environ):
        return None
    protocol = _first(environ, _PROTOCOLS) or _OVER_HTTP
    if protocol != _OVER_HTTP:
        logger.warning(
            "no traces are sent, because only the protocol %s is supported; set %s to this protocol",
            _OVER_HTTP,
            next(name for name in _PROTOCOLS if environ.get(name, "").strip()),
        )
        return None
    try:
        where, tracing = _where(environ), _otlp()
    except ImportError:
        logger.warning(
            "no traces are sent: %s is set, but the extra `otel` is not installed; to install it, run "
            "`pip install '.[otel]'` in a checkout",
            next(name for name in (*_ENDPOINTS, _EXPORTERS) if environ.get(name)),
        )
        return None
    except (ValueError, OSError) as error:
        logger.warning(
            "no traces are sent, because an environment variable OTEL_* has an invalid value (%s); correct or unset it",
            type(error).__name__,
        )
        return None
    logger.info("traces are sent by OTLP to %s", where)
    return tracing


def _is_enabled(environ: Mapping[str, str]) -> bool:
    if environ.get(_DISABLED, "").strip().lower() == "true":
        return False
    exporters = {name for part in environ.get(_EXPORTERS, "").split(",") if (name := part.strip())}
    if not exporters:
        return _first(environ, _ENDPOINTS) is not None
    if exporters - {_OTLP, _NONE}:
        logger.warning("%s contains an exporter that is not supported; set this variable to otlp or none", _EXPORTERS)
    return _OTLP in exporters


def _where(environ: Mapping[str, str]) -> str:
    """Return the collector's host and port for the log. The rest of the URL may contain a password."""
    named = _first(environ, _ENDPOINTS)
    return (urlsplit(named).netloc.rpartition("@")[2] or "the configured collector") if named else "localhost:4318"


def _first(environ: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    """Return the value of the first variable in ``names`` that is not blank; None if all are blank."""
    return next((value for name in names if (value := environ.get(name, "").strip())), None)


def _otlp() -> Tracing:
    """Return a tracer that sends spans in batches to the collector that the environment variables specify.

    Raise `ImportError` if the extra ``otel`` is not installed, and `ValueError` or `OSError` if a variable is invalid.
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
