"""The routes of all web pages, and of signing in and out."""

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from memoryos_mcp.engine.service import MemoryService
from memoryos_mcp.errors import MemoryOSError
from memoryos_mcp.server.web import chat, dialogue, exchange, forgetting, now, profile, search, status, timeline, topics
from memoryos_mcp.server.web.guard import ENTER, PREFIX, SIGN_IN, STATIC, is_page, protect, session_of, set_cookie
from memoryos_mcp.server.web.sessions import Session, Sessions
from memoryos_mcp.server.web.visits import STATIC_FOLDER, OwnMachine, Visit, post, shown
from memoryos_mcp.storage.capabilities import SignIn

ADDRESSES = (
    *now.ADDRESSES,
    *search.ADDRESSES,
    *dialogue.ADDRESSES,
    *timeline.ADDRESSES,
    *topics.ADDRESSES,
    *profile.ADDRESSES,
    *forgetting.ADDRESSES,
    *chat.ADDRESSES,
    *exchange.ADDRESSES,
    *status.ADDRESSES,
)

# Returns who signs in by an access token; None if the token is not valid.
Check = Callable[[str], Awaitable[SignIn | None]]


def make_routes(
    service: MemoryService, sessions: Sessions, check: Check | None = None, machine: OwnMachine | None = None
) -> list[BaseRoute]:
    """Return the routes of all web pages. The caller must put a `guard.PageGuard` in front of them.

    Args:
        service: Opens the memories.
        sessions: The sessions of signed-in people.
        check: A function that returns the person to whom an access token belongs, or None if the token is not valid.
            If ``check`` is None, nobody can sign in with a token.
        machine: The user's machine if the command ``ui`` serves the web pages there; otherwise None.
    """
    door = _Door(sessions, check)
    leave = post("/sign-out", door.sign_out, writes=False)
    return [
        Route(PREFIX, _to_first_page),
        Mount(STATIC.removesuffix("/"), _Files(directory=STATIC_FOLDER)),
        Route(ENTER, door.enter, methods=["GET"]),
        Route(SIGN_IN, door.sign_in, methods=["GET", "POST"]),
        *(address.route(service, machine) for address in (*ADDRESSES, leave)),
        Route(f"{PREFIX}/{{rest:path}}", _missing),
    ]


class _Door:
    """Begins and ends sessions."""

    def __init__(self, sessions: Sessions, check: Check | None) -> None:
        self._sessions = sessions
        self._check = check

    async def enter(self, request: Request) -> Response:
        """Sign in with a one-time key."""
        session = await self._sessions.redeem(request.query_params.get("key", ""))
        if session is None:
            problem = "This link was already used or has expired. Run memoryos-mcp ui to get a new link."
            earlier = session_of(request.scope)
            return shown("problem.html", request, 403, session=earlier, title="This link has expired", problem=problem)
        return await self._signed_in(request, session, f"{PREFIX}/")

    async def sign_in(self, request: Request) -> Response:
        """Show the form for an access token. If the form was submitted with a valid token, sign in."""
        check = self._check
        if check is None or request.method != "POST":
            problem = (
                "Your session has ended. Nothing was changed. Sign in and try again."
                if "ended" in request.query_params
                else None
            )
            return self._sign_in_page(request, 403 if check is None else 200, problem)
        form = await request.form(max_files=0)
        token = str(form.get("token", "")).strip()
        try:
            sign_in = await check(token)
            if sign_in is None:
                return self._sign_in_page(request, 403, "This token is not valid. It may have expired, or was revoked.")
            target = _inside(request.query_params.get("to", ""))
            return await self._signed_in(request, await self._sessions.begin(sign_in), target)
        except MemoryOSError:
            return self._sign_in_page(request, 503, "Tokens cannot be checked at the moment. Try again later.")

    async def sign_out(self, visit: Visit) -> Response:
        """End the session."""
        await self._sessions.end(visit.session)
        return shown("problem.html", visit.request, title="Signed out", problem="Your session has ended.")

    def _sign_in_page(self, request: Request, status: int, problem: str | None) -> Response:
        return shown("sign_in.html", request, status, can_sign_in=self._check is not None, problem=problem)

    async def _signed_in(self, request: Request, session: Session, target: str) -> Response:
        earlier = session_of(request.scope)
        if earlier is not None:
            await self._sessions.end(earlier)
        response = RedirectResponse(target, status_code=303)
        set_cookie(response.headers, request, session)
        return response


class _Files(StaticFiles):
    """The static files. Their addresses contain digests, so browsers may cache the files."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        """Return a response that browsers may cache."""
        response = super().file_response(*args, **kwargs)
        response.headers["cache-control"] = "public, max-age=31536000, immutable"
        return response


async def _to_first_page(_: Request) -> Response:
    return RedirectResponse(f"{PREFIX}/", status_code=303)


async def _missing(request: Request) -> Response:
    problem = "This address does not exist. Choose a view from the menu."
    return shown("problem.html", request, 404, session=session_of(request.scope), title="Not found", problem=problem)


def _inside(target: str) -> str:
    """Return ``target`` if it is the address of a web page; otherwise, return the address of the start page."""
    path = target.split("?")[0]
    is_ours = path.startswith(f"{PREFIX}/") and not any(each in path for each in ("//", "\\", "/."))
    return target if is_ours else f"{PREFIX}/"


async def _refused(request: Request, error: Exception) -> Response:
    """Answer a request that no route accepts, such as one with a wrong method or an invalid form."""
    assert isinstance(error, HTTPException)  # noqa: S101 - for this type only
    if not is_page(request.url.path):
        return PlainTextResponse(error.detail, error.status_code, headers=error.headers)
    title = HTTPStatus(error.status_code).phrase.capitalize()
    response = shown(
        "problem.html", request, error.status_code, session=session_of(request.scope), title=title, problem=error.detail
    )
    response.headers.update(error.headers or {})
    return response


async def _failed(request: Request, _: Exception) -> Response:
    """Answer a request after an unexpected error. This response passes no middleware, so headers are added here."""
    if not is_page(request.url.path):
        return PlainTextResponse("Internal Server Error", 500)
    problem = "An unexpected error occurred. Try again. If the error occurs again, read the server's log."
    title = "That did not work"
    response = shown("problem.html", request, 500, session=session_of(request.scope), title=title, problem=problem)
    protect(response.headers)
    return response


# For the application that has the routes: it answers errors of all its routes, also of others.
ERROR_HANDLERS = {HTTPException: _refused, Exception: _failed}
