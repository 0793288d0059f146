"""Callers of HTTP: the token a request shows decides whose memory it is about and what may be done."""

import logging
from collections.abc import Callable, Collection

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken, TokenVerifier
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from memoryos_mcp.errors import MemoryOSError
from memoryos_mcp.model.callers import Caller
from memoryos_mcp.server.http import access
from memoryos_mcp.server.http.guard import refusal

logger = logging.getLogger(__name__)

_CALLER = "memoryos.caller"
_BEARER = "bearer "


class CallerGuard:
    """Lets only requests through whose caller is known: by a bearer token, or, where none is needed, as the one user.

    What follows finds the caller by `caller_of`, and the SDK finds whom a session belongs to.

    Args:
        app: What is guarded.
        verifier: Tells tokens.
        anonymous: Returns who calls without a token, None if nobody may.
        open_paths: Served to anybody, since they tell nothing of anybody.
        metadata_url: Where a client learns who gives tokens; None if that is nobody.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        verifier: TokenVerifier,
        anonymous: Callable[[], Caller | None],
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
        """Pass the request on or refuse it: 401 without a good token, 503 if it cannot be told now."""
        if scope["type"] != "http" or scope["path"] in self._open_paths:
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
            problem = "give a valid token as `Authorization: Bearer ...`"
            await refusal(401, problem, www_authenticate=self._challenge)(scope, receive, send)
            return
        scope["user"] = AuthenticatedUser(token)
        scope[_CALLER] = access.caller_of(token)
        await self._app(scope, receive, send)

    async def _token(self, scope: Scope) -> AccessToken | None:
        shown = Headers(scope=scope).getlist("authorization")
        if not shown:
            return self._without_token()
        if len(shown) > 1 or not shown[0].lower().startswith(_BEARER):
            return None
        return await self._verifier.verify_token(shown[0][len(_BEARER) :].strip())

    def _without_token(self) -> AccessToken | None:
        caller = self._anonymous()
        if caller is None:
            return None
        scopes = [str(each) for each in caller.scopes]
        return AccessToken(token="", client_id="", scopes=scopes, subject=caller.user_id)


def caller_of(scope: Scope) -> Caller:
    """Return who sent a request that passed `CallerGuard`."""
    caller: Caller = scope[_CALLER]
    return caller
