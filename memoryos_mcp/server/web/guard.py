"""Protects the web pages: adds security headers, and requires a session for each request."""

import logging
from collections.abc import Awaitable, Callable
from urllib.parse import quote

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memoryos_mcp.errors import MemoryOSError
from memoryos_mcp.model.callers import Caller
from memoryos_mcp.server.web.sessions import Session, Sessions
from memoryos_mcp.storage.capabilities import SignIn

logger = logging.getLogger(__name__)

PREFIX = "/ui"
# Followed by the port, because browsers send the cookies of all ports of this machine to each of them.
COOKIE = "memoryos_session"
SIGN_IN, ENTER, STATIC = f"{PREFIX}/sign-in", f"{PREFIX}/enter", f"{PREFIX}/static/"
_SESSION = "memoryos.session"
# Scripts, styles and pictures come from this server alone, and nothing in a page's own text is run.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    # Without an address of origin, the server could not check where a form comes from.
    "referrer-policy": "same-origin",
}


class PageHeaders:
    """Adds security headers to every response from the web pages, including refusals."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and add the headers to its response."""
        if scope["type"] != "http" or not is_page(scope["path"]):
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                protect(MutableHeaders(scope=message))
            await send(message)

        await self._app(scope, receive, with_headers)


def protect(headers: MutableHeaders) -> None:
    """Add the headers that protect a web page."""
    for name, value in _HEADERS.items():
        headers[name] = value
    headers.setdefault("cache-control", "no-store")


class PageGuard:
    """Finds the session of each request for a web page.

    A person without a session is sent to the sign-in form. Requests for other paths are passed on unchanged.

    Args:
        app: The guarded application.
        sessions: The sessions of signed-in people.
        anonymous: A function that returns the user id and rights of people without a session. It returns None if
            everybody must sign in.
    """

    def __init__(self, app: ASGIApp, sessions: Sessions, anonymous: Callable[[], Awaitable[Caller | None]]) -> None:
        self._app = app
        self._sessions = sessions
        self._anonymous = anonymous

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or send the person to the sign-in form."""
        if scope["type"] != "http" or not is_page(scope["path"]):
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        try:
            session, is_new = await self._session(request)
        except MemoryOSError as error:
            logger.warning("a session could not be checked: %s", error)
            problem = "Sessions cannot be checked at the moment. Try again later."
            await PlainTextResponse(problem, 503, headers={"retry-after": "10"})(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start" and is_new and session is not None:
                set_cookie(MutableHeaders(scope=message), request, session)
            await send(message)

        scope[_SESSION] = session
        path: str = scope["path"]
        if session is None and path not in {SIGN_IN, ENTER} and not path.startswith(STATIC):
            await _sign_in_first(request)(scope, receive, guarded)
            return
        await self._app(scope, receive, guarded)

    async def _session(self, request: Request) -> tuple[Session | None, bool]:
        key = request.cookies.get(cookie_name(request, COOKIE))
        session = None if key is None else await self._sessions.find(key)
        if session is not None or request.scope["path"].startswith(STATIC):
            return session, False
        caller = await self._anonymous()
        return (None, False) if caller is None else (await self._sessions.begin(SignIn(caller)), True)


def is_page(path: str) -> bool:
    """Return whether a path belongs to the web pages."""
    return path == PREFIX or path.startswith(f"{PREFIX}/")


def session_of(scope: Scope) -> Session | None:
    """Return the session of a request that passed `PageGuard`; None if nobody is signed in."""
    session: Session | None = scope.get(_SESSION)
    return session


def set_cookie(headers: MutableHeaders, request: Request, session: Session) -> None:
    """Add the cookie of a session to the headers of a response."""
    add_cookie(headers, request, COOKIE, session.key)


def add_cookie(headers: MutableHeaders, request: Request, name: str, value: str, max_age_s: int | None = None) -> None:
    """Add a cookie for the web pages to the headers of a response. Scripts and other sites cannot read the cookie.

    Args:
        headers: The headers of the response.
        request: The request that is answered.
        name: The name of the cookie; the server's port is added to it.
        value: The value, of letters, digits, ``-``, ``_`` and ``.``.
        max_age_s: Time in seconds after which the browser removes the cookie; None means at the end of the browser's
            session.
    """
    response = Response()
    response.set_cookie(
        cookie_name(request, name),
        value,
        max_age=max_age_s,
        path=PREFIX,
        secure=request.url.scheme == "https" or request.headers.get("x-forwarded-proto") == "https",
        httponly=True,
        samesite="strict",
    )
    headers.append("set-cookie", response.headers["set-cookie"])


def cookie_name(request: Request, name: str) -> str:
    """Return ``name`` with the port of this server, because browsers share cookies between ports."""
    return f"{name}_{request.url.port or 'default'}"


def _sign_in_first(request: Request) -> Response:
    if "hx-request" in request.headers:
        # A part of a page cannot show the page for signing in, so the browser loads that page.
        return PlainTextResponse("Sign in first.", status_code=401, headers={"hx-redirect": SIGN_IN})
    if request.method not in {"GET", "HEAD"}:
        return RedirectResponse(f"{SIGN_IN}?ended=1", status_code=303)
    # The path as it was sent: a name in it may contain an escaped character, such as a question mark.
    path = request.scope.get("raw_path", request.url.path.encode()).decode("latin-1").split("?")[0]
    query = f"?{request.url.query}" if request.url.query else ""
    return RedirectResponse(f"{SIGN_IN}?to={quote(path + query, safe='')}", status_code=303)
