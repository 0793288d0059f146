"""Serves web pages that show the configured user's memory, for the command ``ui``. Only this machine can open them."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress

import anyio
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from memoryos_mcp.config import Settings
from memoryos_mcp.config.http import LOOPBACK
from memoryos_mcp.engine.service import MemoryService
from memoryos_mcp.errors import ModelError
from memoryos_mcp.model.callers import Caller, Scope
from memoryos_mcp.server.http.guard import HostGuard
from memoryos_mcp.server.http.serving import listen, serve_until_signal
from memoryos_mcp.server.http.shutdown import Closing
from memoryos_mcp.server.web.guard import ENTER, PREFIX, PageGuard, PageHeaders
from memoryos_mcp.server.web.pages import ERROR_HANDLERS, make_routes
from memoryos_mcp.server.web.sessions import Sessions
from memoryos_mcp.server.web.visits import OwnMachine, prepare_views

HOST = "127.0.0.1"
GRACE_S = 1


async def serve_pages(
    settings: Settings,
    port: int,
    *,
    only_reads: bool,
    opened: Callable[[str], None],
    clients: Callable[[], Sequence[tuple[str, str]]],
) -> None:
    """Serve the web pages on the loopback interface until a signal stops the server.

    Args:
        settings: The settings; ``user_id`` is the user whose memory is shown.
        port: The port; 0 for any free one.
        only_reads: Whether the memory is opened read-only.
        opened: Called when the server starts, with a link to the web pages. The link works only once.
        clients: Returns the MCP clients on this machine; see `OwnMachine`.

    Raises:
        ConfigError: The port cannot be used.
    """
    scopes = {Scope.READ} if only_reads else {Scope.READ, Scope.WRITE}
    sessions = Sessions(time.monotonic)
    with listen(HOST, port) as listening:
        async with MemoryService(settings, only_looks=only_reads) as service:
            app = make_page_app(service, sessions, OwnMachine(clients))
            key = sessions.one_time_key(Caller(settings.user_id, frozenset(scopes)))
            link = f"http://{HOST}:{listening.getsockname()[1]}{ENTER}?key={key}"
            async with anyio.create_task_group() as group:
                group.start_soon(anyio.to_thread.run_sync, opened, link)
                group.start_soon(anyio.to_thread.run_sync, prepare_views)
                if only_reads:
                    group.start_soon(_load_to_look, service, settings.user_id)
                await serve_until_signal(app, listening, Closing(), GRACE_S)
                group.cancel_scope.cancel()


def make_page_app(service: MemoryService, sessions: Sessions, machine: OwnMachine | None = None) -> Starlette:
    """Return an ASGI application that serves only the web pages, not MCP.

    It refuses requests whose ``Host`` header is not a loopback name or address.
    """
    return Starlette(
        routes=[Route("/", _to_pages), *make_routes(service, sessions, machine=machine)],
        middleware=[
            Middleware(PageHeaders),
            Middleware(HostGuard, hosts=LOOPBACK, origins=()),
            Middleware(PageGuard, sessions=sessions, anonymous=_nobody),
        ],
        exception_handlers=ERROR_HANDLERS,
    )


async def _load_to_look(service: MemoryService, user_id: str) -> None:
    """Load the embedding model for a memory that was opened read-only, because no background loop loads it."""
    with suppress(ModelError):  # search uses keywords only
        if await service.has_memory(user_id):
            async with service.user(user_id) as engine:
                await engine.load_to_look()


async def _to_pages(_: Request) -> Response:
    return RedirectResponse(f"{PREFIX}/", status_code=303)


async def _nobody() -> Caller | None:
    return None
