"""Identifies the caller of each HTTP request by the request's token."""

import logging
from collections.abc import Collection

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from memoryos_mcp.errors import MemoryOSError
from memoryos_mcp.model.callers import Caller
from memoryos_mcp.server.http import access
from memoryos_mcp.server.http.guard import refusal
from memoryos_mcp.server.web.guard import is_page

logger = logging.getLogger(__name__)

_CALLER = "memoryos.caller"
_BEARER = "bearer "


class CallerGuard:
    """Refuses requests without a valid bearer token, unless no token is needed.

    A refusal has the status 401, or 503 if the token cannot be checked at the moment.

    Routes read the caller of a request with `caller_of`. The SDK reads the owner of a session from ``scope["user"]``.

    Args:
        app: The guarded application.
        verifier: Checks tokens.
        anonymous: The caller of requests without a token, until a static token is created. If it is None, every request
            needs a token.
        open_paths: Paths that need no token, because they reveal nothing about users. Web pages need no token either,
            because they have their own sign-in.
        metadata_url: The URL from which clients learn the token issuer. None if there is no issuer.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        verifier: access.BearerVerifier,
        anonymous: Caller | None,
        open_paths: Collection[str],
        metadata_url: str | None,
    ) -> None:
        self._app = app
        self._verifier = verifier
        self._anonymous = anonymous
        self._open_paths = frozenset(open_paths)
        self._challenge = 'Bearer error="invalid_token"'
        if metadata_url:
            self._challenge += f', resource_metadata="{metadata_url}"'

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on to the guarded application, or refuse it."""
        if scope["type"] != "http" or scope["path"] in self._open_paths or is_page(scope["path"]):
            await self._app(scope, receive, send)
            return
        try:
            token = await self._token(scope)
        except MemoryOSError as error:
            logger.warning("a token could not be checked: %s", error)
            answer = refusal(503, "tokens cannot be checked at the moment; try again", retry_after="10")
            await answer(scope, receive, send)
            return
        if token is None:
            problem = "a valid token is required; send it as `Authorization: Bearer ...`"
            await refusal(401, problem, www_authenticate=self._challenge)(scope, receive, send)
            return
        scope["user"] = AuthenticatedUser(token)
        scope[_CALLER] = access.caller_of(token)
        await self._app(scope, receive, send)

    async def _token(self, scope: Scope) -> AccessToken | None:
        shown = Headers(scope=scope).getlist("authorization")
        if not shown:
            return await self._without_token()
        if len(shown) > 1 or not shown[0].lower().startswith(_BEARER):
            return None
        return await self._verifier.verify_token(shown[0][len(_BEARER) :].strip())

    async def _without_token(self) -> AccessToken | None:
        caller = self._anonymous
        if caller is None or await self._verifier.is_needed():
            return None
        scopes = [str(each) for each in caller.scopes]
        return AccessToken(token="", client_id="", scopes=scopes, subject=caller.user_id)


def caller_of(scope: Scope) -> Caller:
    """Return the caller of a request that passed `CallerGuard`."""
    caller: Caller = scope[_CALLER]
    return caller
