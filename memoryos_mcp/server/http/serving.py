"""Serves MCP over HTTP. At shutdown, running calls are answered and memories are closed before the process ends."""

import asyncio
import logging
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING

import anyio
import uvicorn
from starlette.applications import Starlette

from memoryos_mcp.config import Settings
from memoryos_mcp.config.logs import Seldom
from memoryos_mcp.engine.service import MemoryService
from memoryos_mcp.errors import ConfigError, StorageError
from memoryos_mcp.model.pages import utc_now
from memoryos_mcp.server.http.access import BearerVerifier
from memoryos_mcp.server.http.app import make_app
from memoryos_mcp.server.http.jwt_tokens import JwtVerifier
from memoryos_mcp.server.http.shutdown import Closing
from memoryos_mcp.server.http.timeouts import PatientProtocol
from memoryos_mcp.storage.capabilities import Tokens
from memoryos_mcp.storage.stores import STORE_THREADS, make_stores

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

    from memoryos_mcp.storage.interface import Stores

logger = logging.getLogger(__name__)

# Maximum idle time of a connection between two requests. It is longer than the minute for which proxies reuse a
# connection.
KEEP_ALIVE_S = 75
BACKLOG = 2048
# Time for the request on a connection that was accepted right before the server stopped listening.
ARRIVAL_S = 0.2
# This logger quotes invalid messages, which may contain dialogue. The client gets the error anyway.
_TALKATIVE = "mcp.server.sse"
# Loggers that write a line for some requests. Their lines are limited, because callers could otherwise fill the log.
_SELDOM = (
    "memoryos_mcp.server.http.callers",
    "memoryos_mcp.server.http.jwt_tokens",
    "memoryos_mcp.server.http.sessions",
    "mcp.server.streamable_http_manager",
    "uvicorn.error",
)


async def serve_http(settings: Settings, tracer: "Tracer | None" = None) -> None:
    """Serve MCP over HTTP until a signal stops the server.

    Running calls then have ``shutdown_grace_s`` seconds to finish.

    Raises:
        ConfigError: The host and port cannot be used, or no audience is set for the issuer's tokens.
    """
    logging.getLogger(_TALKATIVE).setLevel(logging.CRITICAL)
    seldom = Seldom()
    for name in _SELDOM:
        logging.getLogger(name).addFilter(seldom)
    listening = listen(settings.host, settings.port)
    with listening, closing(make_stores(settings, utc_now, threads=STORE_THREADS)) as stores:
        await _serve(settings, stores, listening, tracer)


async def _serve(settings: Settings, stores: "Stores", listening: socket.socket, tracer: "Tracer | None") -> None:
    host, port = listening.getsockname()[:2]
    verifier = BearerVerifier(stores.tokens, _jwts(settings), resource=settings.resource_url)
    _warn_of_tokens(settings, stores.tokens)
    shutdown = Closing()
    async with MemoryService(settings, catches_up=True, tracer=tracer, stores=stores) as service:
        app = make_app(
            service,
            settings,
            verifier,
            shutdown,
            tracer,
            has_sessions=not stores.is_shared,
            rates=stores.rates,
            sign_ins=stores.sign_ins,
        )
        shown = f"[{host}]" if ":" in host else host
        logger.info("listening on http://%s:%d", shown, port)
        await serve_until_signal(app, listening, shutdown, settings.shutdown_grace_s)


async def serve_until_signal(app: Starlette, listening: socket.socket, closing: Closing, grace_s: int) -> None:
    """Serve an application until a signal stops it. Running calls then have ``grace_s`` seconds to finish."""
    config = uvicorn.Config(
        app,
        http=PatientProtocol,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=grace_s,
    )
    server = _Server(config, listening)
    async with anyio.create_task_group() as group:
        group.start_soon(_stop_on_signal, server, closing)
        await server.serve([listening])
        group.cancel_scope.cancel()


def _warn_of_tokens(settings: Settings, tokens: Tokens) -> None:
    try:
        if tokens.is_needed():
            tokens.entries()
        elif not settings.is_only_for_this_machine and not settings.oidc_issuer:
            logger.warning(
                "all callers are refused, because no token exists yet; create one with `memoryos-mcp token add USER`"
            )
    except StorageError as error:
        logger.warning("tokens cannot be checked; until this is solved, requests may get status 503: %s", error)


def _jwts(settings: Settings) -> JwtVerifier | None:
    if settings.oidc_issuer is None:
        return None
    audience = settings.oidc_audience or settings.resource_url
    if audience is None:
        message = (
            "oidc_audience: is missing; set oidc_audience or public_url, so that tokens for other servers are refused"
        )
        raise ConfigError(message)
    return JwtVerifier(settings.oidc_issuer, audience, jwks_url=settings.oidc_jwks_url)


class _Server(uvicorn.Server):
    """A uvicorn server without uvicorn's signal handlers, which would end the process before memories are closed."""

    def __init__(self, config: uvicorn.Config, listening: socket.socket) -> None:
        super().__init__(config)
        self._listening = listening

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def stop_listening(self) -> None:
        """Refuse new connections, and answer the requests on connections that the system has already accepted.

        If this server refuses a connection, a proxy sends the request to another server. If the connection is reset
        later, the proxy cannot repeat the request. So this method accepts the waiting connections right before it
        closes the socket, and gives the clients time to send their requests.
        """
        if not self.started:
            return
        waiting = []
        try:
            while True:
                waiting.append(self._listening.accept()[0])
        except OSError:  # no connection is waiting
            # This call takes a microsecond. Closing by asyncio takes longer, and connections could arrive meanwhile.
            with suppress(OSError):
                self._listening.shutdown(socket.SHUT_RDWR)
        for server in self.servers:
            server.close()
        loop = asyncio.get_running_loop()
        for accepted in waiting:
            accepted.setblocking(False)
            with suppress(OSError):  # the client has hung up
                await loop.connect_accepted_socket(self._protocol, accepted)
        await asyncio.sleep(ARRIVAL_S)

    def _protocol(self) -> asyncio.Protocol:
        return PatientProtocol(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on an address.

    Raises:
        ConfigError: The address cannot be used.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        message = f"host and port: cannot listen on {host}:{port} ({error.strerror}); choose another host or port"
        raise ConfigError(message) from error
    # Without this, the body of an answer waits 40 ms until the client has acknowledged the headers. Connections inherit
    # the option; asyncio sets it only on sockets that were created with an explicit protocol.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


async def _stop_on_signal(server: _Server, closing: Closing) -> None:
    """Stop the server at a signal.

    After the first signal, the server stops when running calls are answered or the grace time is over. A second signal
    stops it at once.
    """
    numbers = [signal.SIGINT, signal.SIGTERM] if sys.platform != "win32" else [signal.SIGINT]
    with anyio.open_signal_receiver(*numbers) as signals:
        async with anyio.create_task_group() as group:
            is_stopping = False
            async for number in signals:
                logger.info("%s: closing", signal.Signals(number).name)
                if is_stopping:
                    server.handle_exit(number, None)
                else:
                    is_stopping = True
                    group.start_soon(_stop, server, closing, number)


async def _stop(server: _Server, closing: Closing, number: int) -> None:
    began, grace_s = anyio.current_time(), server.config.timeout_graceful_shutdown or 0
    await server.stop_listening()
    await closing.drain(grace_s)
    server.config.timeout_graceful_shutdown = max(1, round(grace_s - (anyio.current_time() - began)))
    server.handle_exit(number, None)
