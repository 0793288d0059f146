"""Identifies HTTP callers by their bearer tokens, which are JWTs or static tokens created by the operator."""

from collections.abc import Iterable
from datetime import UTC, datetime

import anyio
import anyio.to_thread
from mcp.server.auth.provider import AccessToken

from memoryos_mcp.model.callers import TOKEN_PREFIX, Caller, Scope, TokenEntry
from memoryos_mcp.model.pages import utc_now
from memoryos_mcp.server.http.jwt_tokens import NO_TOKEN, JwtVerifier
from memoryos_mcp.storage.capabilities import SignIn, Tokens

_INCLUDED = {
    Scope.READ: frozenset({Scope.READ}),
    Scope.WRITE: frozenset({Scope.READ, Scope.WRITE}),
    Scope.ADMIN: frozenset({Scope.READ, Scope.WRITE, Scope.ADMIN}),
    Scope.ACT_AS: frozenset({Scope.READ, Scope.ACT_AS}),
}


class BearerVerifier:
    """Checks bearer tokens. Implements the SDK's ``TokenVerifier``. Safe to share between tasks.

    A token that begins with `TOKEN_PREFIX` is looked up among the static tokens. Any other token is treated as a JWT.

    Args:
        tokens: The static tokens.
        jwts: Checks JWTs. If it is None, every JWT is refused.
        resource: This server's own URL, which is returned as the audience of static tokens. None if no URL is set.
    """

    def __init__(self, tokens: Tokens, jwts: JwtVerifier | None, *, resource: str | None = None) -> None:
        self._tokens = tokens
        self._jwts = jwts
        self._resource = resource
        self._threads = anyio.CapacityLimiter(1)  # a look-up takes much less time than a tool call

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return the user and the scopes of a token; None if the token is not valid.

        A scope may imply other scopes, which are returned too.

        The field ``token`` of the result is empty, so that the token cannot be logged by mistake.

        Raises:
            IssuerError: The issuer's keys for a JWT could not be fetched.
            StorageError: The static tokens could not be read.
        """
        if token.startswith(TOKEN_PREFIX):
            return await self._static(token)
        content = None if self._jwts is None else await self._jwts.verify(token)
        return content and content.model_copy(update={"scopes": _with_included(content.scopes)})

    async def sign_in(self, token: str) -> SignIn | None:
        """Return the person who signs in to the web pages with a token; None if the token is not valid.

        Raises:
            IssuerError: The issuer's keys for a JWT could not be fetched.
            StorageError: The static tokens could not be read.
        """
        access = await self.verify_token(token)
        if access is None:
            return None
        issuer = (access.claims or {}).get("iss")
        expires_at = None if issuer is None else datetime.fromtimestamp(access.expires_at or 0, UTC)
        return SignIn(caller_of(access), issuer, expires_at)

    async def is_current(self, sign_in: SignIn) -> bool:
        """Return whether the token of a signed-in person is still valid and has the same scopes.

        Raises:
            StorageError: The static tokens could not be read.
        """
        if sign_in.issuer is not None:
            return self._jwts is not None and self._jwts.is_current(sign_in.issuer, sign_in.expires_at, utc_now())
        find, token_id = self._tokens.find_by_id, sign_in.caller.token_id
        entry = await anyio.to_thread.run_sync(find, token_id, limiter=self._threads)
        return entry is not None and caller_of(self._access(entry)) == sign_in.caller

    async def is_needed(self) -> bool:
        """Return whether callers need a token: True as soon as any static token has been created.

        Raises:
            StorageError: The static tokens could not be read.
        """
        return await anyio.to_thread.run_sync(self._tokens.is_needed, limiter=self._threads)

    async def _static(self, token: str) -> AccessToken | None:
        entry = await anyio.to_thread.run_sync(self._tokens.find, token, limiter=self._threads)
        return None if entry is None else self._access(entry)

    def _access(self, entry: TokenEntry) -> AccessToken:
        return AccessToken(
            token=NO_TOKEN,
            client_id=entry.token_id,
            scopes=_with_included(entry.scopes),
            expires_at=None if entry.expires_at is None else int(entry.expires_at.timestamp()),
            resource=self._resource,
            subject=entry.user_id,
        )


def caller_of(access: AccessToken) -> Caller:
    """Convert a result of `BearerVerifier.verify_token` to a caller."""
    return Caller(
        user_id=access.subject or "",
        scopes=frozenset(Scope(name) for name in access.scopes),
        token_id=access.client_id,
    )


def _with_included(scopes: Iterable[str]) -> list[str]:
    """Return the names of the scopes and of all scopes that they imply, weakest scope first."""
    all_scopes = frozenset[Scope]().union(*(_INCLUDED[Scope(scope)] for scope in scopes))
    return [scope.value for scope in Scope if scope in all_scopes]
