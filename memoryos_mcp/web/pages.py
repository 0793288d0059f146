"""All addresses of the pages, and the address for signing in."""

from collections.abc import Awaitable, Callable
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from memoryos_mcp.engine.service import MemoryService
from memoryos_mcp.errors import MemoryOSError
from memoryos_mcp.model.callers import Caller
from memoryos_mcp.web import chat, exchange, now, status
from memoryos_mcp.web.guard import ENTER, PREFIX, SIGN_IN, STATIC, session_of, set_cookie
from memoryos_mcp.web.sessions import Session, Sessions
from memoryos_mcp.web.visits import STATIC_FOLDER, OwnMachine, Visit, post, shown

ADDRESSES = (*now.ADDRESSES, *chat.ADDRESSES, *exchange.ADDRESSES, *status.ADDRESSES)

# Returns the caller of an access token; None if the token is not valid.
Check = Callable[[str], Awaitable[Caller | None]]


def make_routes(
    service: MemoryService, sessions: Sessions, check: Check | None = None, machine: OwnMachine | None = None
) -> list[BaseRoute]:
    """Return the routes of all pages. They need `guard.PageGuard` in front of them.

    Args:
        service: The memories.
        sessions: Who is signed in.
        check: Checks an access token with which somebody wants to sign in. With None, nobody can sign in by a token.
        machine: The machine of the only person who can open the pages; None if they are served to several persons.
    """

    async def enter(request: Request) -> Response:
        session = sessions.redeem(request.query_params.get("key", ""))
        if session is None:
            problem = "This link was used before, or belongs to a program that has ended. Run memoryos-mcp ui again."
            return shown("problem.html", request, 403, session=None, title="This link has expired", problem=problem)
        return _signed_in(request, session, f"{PREFIX}/")

    async def sign_in(request: Request) -> Response:
        target = _inside(unquote(request.query_params.get("to", "")))
        if check is None or request.method == "GET":
            status = 200 if check is not None else 403
            return shown("sign_in.html", request, status, session=None, can_sign_in=check is not None, problem=None)
        form = await request.form(max_files=0)
        token = str(form.get("token", "")).strip()
        try:
            caller = await check(token)
        except MemoryOSError:
            problem = "Tokens cannot be checked at the moment. Try again later."
            return shown("sign_in.html", request, 503, session=None, can_sign_in=True, problem=problem)
        if caller is None:
            problem = "This token is not valid. It may have expired, or was revoked."
            return shown("sign_in.html", request, 403, session=None, can_sign_in=True, problem=problem)

        async def is_valid() -> bool:
            return await check(token) == caller

        return _signed_in(request, sessions.begin(caller, is_valid), target)

    async def sign_out(visit: Visit) -> Response:
        sessions.end(visit.session)
        return shown("problem.html", visit.request, session=None, title="Signed out", problem="Your session has ended.")

    leave = post("/sign-out", sign_out, writes=False)
    return [
        Route(PREFIX, _to_first_page),
        Mount(STATIC.removesuffix("/"), _Files(directory=STATIC_FOLDER)),
        Route(ENTER, enter, methods=["GET"]),
        Route(SIGN_IN, sign_in, methods=["GET", "POST"]),
        *(address.route(service, machine) for address in (*ADDRESSES, leave)),
        Route(f"{PREFIX}/{{rest:path}}", _missing),
    ]


class _Files(StaticFiles):
    """The static files. Their addresses contain digests, so browsers may keep them."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def kept(message: dict[str, object]) -> None:
            if message["type"] == "http.response.start":
                headers = message["headers"]
                assert isinstance(headers, list)  # noqa: S101 - of ASGI
                headers.append((b"cache-control", b"public, max-age=31536000, immutable"))
            await send(message)

        await super().__call__(scope, receive, kept)  # type: ignore[arg-type]


async def _to_first_page(_: Request) -> Response:
    return RedirectResponse(f"{PREFIX}/", status_code=303)


async def _missing(request: Request) -> Response:
    problem = "There is no page with this address."
    return shown("problem.html", request, 404, session=session_of(request.scope), title="Not found", problem=problem)


def _signed_in(request: Request, session: Session, target: str) -> Response:
    response = RedirectResponse(target, status_code=303)
    set_cookie(response.headers, request, session)
    return response


def _inside(target: str) -> str:
    """Return an address of our pages, or that of the first page if ``target`` is another address."""
    return target if target.startswith(f"{PREFIX}/") and "\\" not in target and "//" not in target else f"{PREFIX}/"
