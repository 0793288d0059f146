"""The ASGI application with all routes of the server, and the guards in front of them.

A request passes `PageHeaders`, `HostGuard`, `PageGuard`, `CallerGuard`, `ClosingGuard`, `BodyGuard` and `RateGuard` in
this order, then reaches its route.
"""

import time
from typing import TYPE_CHECKING, Any, cast

from mcp.server.auth.routes import build_resource_metadata_url
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.sse import SseServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from memoryos_mcp.config import Settings
from memoryos_mcp.engine.service import MemoryService
from memoryos_mcp.model.callers import Caller
from memoryos_mcp.model.callers import Scope as MayDo
from memoryos_mcp.server.assembly import make_server
from memoryos_mcp.server.http.access import BearerVerifier
from memoryos_mcp.server.http.callers import CallerGuard, caller_of
from memoryos_mcp.server.http.guard import BodyGuard, HostGuard, RateGuard, refusal
from memoryos_mcp.server.http.jwt_tokens import SCOPE_PREFIX
from memoryos_mcp.server.http.metrics import CONTENT_TYPE, Metrics
from memoryos_mcp.server.http.request_ids import RequestIds
from memoryos_mcp.server.http.sessions import PostGuard, SessionGuard, UnreadReplies
from memoryos_mcp.server.http.shutdown import Closing, ClosingGuard
from memoryos_mcp.server.web.guard import PageGuard, PageHeaders, is_page, session_of
from memoryos_mcp.server.web.pages import ERROR_HANDLERS, make_routes
from memoryos_mcp.server.web.sessions import Sessions
from memoryos_mcp.storage.capabilities import Rates, SignIn, SignIns

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

MCP_PATH, SSE_PATH, MESSAGES_PATH = "/mcp", "/sse", "/messages"
LIVE_PATH, READY_PATH, METRICS_PATH = "/health/live", "/health/ready", "/metrics"


def make_app(
    service: MemoryService,
    settings: Settings,
    verifier: BearerVerifier,
    closing: Closing,
    tracer: "Tracer | None" = None,
    *,
    has_sessions: bool = True,
    rates: Rates | None = None,
    sign_ins: SignIns | None = None,
) -> Starlette:
    """Return the ASGI application. When its lifespan ends, all sessions end, but ``service`` stays open.

    If ``has_sessions`` is false, the requests of one Streamable HTTP client may go to different servers. ``rates``
    counts each caller's requests over all servers. ``sign_ins`` contains the sign-ins to the web pages of all servers.
    """
    metrics = Metrics(service)
    server = make_server(service, _who)
    server.middleware += [closing, metrics]
    if tracer is not None:
        from memoryos_mcp.server.tracing import CallSpans

        server.middleware.append(CallSpans(tracer, _transport))
    # Answers are plain JSON, because a shutdown would cut off event streams and the answers on them.
    sessions = StreamableHTTPSessionManager(
        server,
        json_response=True,
        stateless=not has_sessions,
        max_request_body_size=settings.max_body_bytes,
        max_sessions=settings.max_sessions,
        session_idle_timeout=settings.session_idle_s,
    )

    async def show_metrics(request: Request) -> Response:
        if not caller_of(request.scope).is_admin:
            return refusal(403, "metrics need a token with the scope admin")
        return Response(await metrics.text(), media_type=CONTENT_TYPE)

    async def ready(_: Request) -> Response:
        return refusal(503, "the server is closing") if closing.has_begun else JSONResponse({"status": "ok"})

    routes: list[BaseRoute] = [Route(LIVE_PATH, _live), Route(READY_PATH, ready), Route(METRICS_PATH, show_metrics)]
    if settings.transport in {"http", "all"}:
        app = StreamableHTTPASGIApp(sessions)
        guarded = (
            SessionGuard(app, caller=_key, max_per_caller=settings.max_sessions_per_token)
            if has_sessions
            else PostGuard(app)
        )
        routes.append(Route(MCP_PATH, guarded))
    if settings.transport in {"sse", "all"}:
        routes += _sse_routes(server, settings.max_body_bytes)
    metadata_url = None
    if settings.oidc_issuer and settings.resource_url:
        metadata_url = build_resource_metadata_url(AnyHttpUrl(settings.resource_url))
        routes.append(_metadata_route(str(metadata_url.path), settings.resource_url, settings.oidc_issuer))
    is_for_one = settings.is_only_for_this_machine and not settings.oidc_issuer
    anonymous = Caller(settings.user_id, frozenset({MayDo.ADMIN})) if is_for_one else None

    async def without_token() -> Caller | None:
        return None if anonymous is None or await verifier.is_needed() else anonymous

    async def is_valid(sign_in: SignIn) -> bool:
        return await verifier.is_current(sign_in) if sign_in.has_token else await without_token() is not None

    signed_in = Sessions(time.monotonic, sign_ins, is_valid)
    routes += make_routes(service, signed_in, verifier.sign_in)
    open_paths = {LIVE_PATH, READY_PATH, (metadata_url and metadata_url.path) or LIVE_PATH}
    return Starlette(
        routes=routes,
        middleware=[
            Middleware(RequestIds),
            Middleware(PageHeaders),
            Middleware(HostGuard, hosts=settings.hosts, origins=settings.allowed_origins),
            Middleware(PageGuard, sessions=signed_in, anonymous=without_token),
            Middleware(
                CallerGuard,
                verifier=verifier,
                anonymous=anonymous,
                open_paths=open_paths,
                metadata_url=str(metadata_url) if metadata_url else None,
            ),
            Middleware(ClosingGuard, closing=closing),
            Middleware(BodyGuard, max_bytes=settings.max_body_bytes),
            Middleware(
                RateGuard,
                caller=_key,
                per_second=settings.requests_per_second,
                max_at_once=settings.max_requests_at_once,
                clock=time.monotonic,
                rates=rates,
            ),
        ],
        exception_handlers=ERROR_HANDLERS,
        lifespan=lambda _: sessions.run(),
    )


def _who(ctx: ServerRequestContext[Any, Any]) -> Caller:
    return caller_of(cast(Request, ctx.request).scope)


def _transport(ctx: ServerRequestContext[Any, Any]) -> str:
    return "http" if cast(Request, ctx.request).url.path == MCP_PATH else "sse"


def _sse_routes(server: Server[Any], max_body_bytes: int) -> list[BaseRoute]:
    """Return the two routes of SSE, the older transport: one opens a stream, the other accepts messages."""
    transport = SseServerTransport(MESSAGES_PATH, max_request_body_size=max_body_bytes)

    unread = UnreadReplies(_key)

    class Stream:
        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            if scope["method"] != "GET":  # the router treats HEAD as GET
                await refusal(405, "use GET", allow="GET")(scope, receive, send)
                return

            async def serve(watched: Send) -> None:
                async with transport.connect_sse(scope, receive, watched) as (incoming, outgoing):
                    await server.run(incoming, outgoing, server.create_initialization_options())

            await unread.stream(scope, send, serve)

    class Messages:
        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            await unread.post(scope, receive, send, transport.handle_post_message)

    return [Route(SSE_PATH, Stream(), methods=["GET"]), Route(MESSAGES_PATH, Messages())]


def _metadata_route(path: str, resource: str, issuer: str) -> Route:
    """Return a route for the protected-resource metadata (RFC 9728).

    The metadata tells clients which issuer creates tokens. The SDK's own route adds a slash to an issuer URL without a
    path, but clients compare these URLs character by character.
    """
    metadata = {
        "resource": resource,
        "authorization_servers": [issuer],
        "scopes_supported": [f"{SCOPE_PREFIX}{each}" for each in (MayDo.READ, MayDo.WRITE)],
        "bearer_methods_supported": ["header"],
    }

    async def show(_: Request) -> Response:
        return JSONResponse(metadata, headers={"cache-control": "public, max-age=3600"})

    return Route(path, show)


def _key(scope: Scope) -> str:
    """Return a key that identifies the caller of a request: the token's id together with the user's id.

    The token's id is not enough, because an issuer may give all users of a program the same id.
    """
    session = session_of(scope)
    if session is None and "user" not in scope:
        return "signing in" if is_page(scope["path"]) else ""
    caller = caller_of(scope) if session is None else session.caller
    return f"{caller.token_id} {caller.user_id}"


async def _live(_: Request) -> Response:
    return JSONResponse({"status": "ok"})
