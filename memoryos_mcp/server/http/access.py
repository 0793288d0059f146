"""Who is calling over HTTP: one verifier over static tokens and an issuer's JWTs."""

import anyio
import anyio.to_thread
from mcp.server.auth.provider import AccessToken

from memoryos_mcp.model.callers import TOKEN_PREFIX, Caller, Scope
from memoryos_mcp.server.http.jwt_tokens import JwtVerifier
from memoryos_mcp.storage.sqlite.tokens import TokenStore

# An access token is handed around and may be printed; nothing here needs what the client showed.
_NOT_KEPT = ""
_INCLUDED = {
    Scope.READ: frozenset({Scope.READ}),
    Scope.WRITE: frozenset({Scope.READ, Scope.WRITE}),
    Scope.ADMIN: frozenset({Scope.READ, Scope.WRITE, Scope.ADMIN}),
    Scope.ACT_AS: frozenset({Scope.READ, Scope.ACT_AS}),
}


class BearerVerifier:
    """Says who shows a bearer token: the SDK's ``TokenVerifier``. Safe to share between tasks.

    A token that begins as ours do is looked up in the file and nowhere else; any other is held to be a JWT.

    Args:
        tokens: The static tokens; None for none.
        jwts: Checks an issuer's tokens; None refuses them.
        resource: This server's own URL, which static tokens are for; None if nobody asks.
    """

    def __init__(self, tokens: TokenStore | None, jwts: JwtVerifier | None, *, resource: str | None = None) -> None:
        self._tokens = tokens
        self._jwts = jwts
        self._resource = resource
        self._threads = anyio.CapacityLimiter(1)  # the file has one connection

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return who shows a token and what they may do; None if it is not valid.

        The scopes include those that they imply; ``token`` is left empty.

        Raises:
            IssuerError: A JWT could not be checked because its issuer gives no keys.
            StorageError: A static token could not be checked because the file could not be read.
        """
        if token.startswith(TOKEN_PREFIX):
            return await self._static(token)
        return await self._jwt(token)

    async def _static(self, token: str) -> AccessToken | None:
        tokens = self._tokens
        if tokens is None:
            return None
        entry = await anyio.to_thread.run_sync(tokens.find, token, limiter=self._threads)
        if entry is None:
            return None
        return AccessToken(
            token=_NOT_KEPT,
            client_id=entry.token_id,
            scopes=_with_included(entry.scopes),
            expires_at=None if entry.expires_at is None else int(entry.expires_at.timestamp()),
            resource=self._resource,
            subject=entry.user_id,
        )

    async def _jwt(self, token: str) -> AccessToken | None:
        grant = None if self._jwts is None else await self._jwts.verify(token)
        if grant is None:
            return None
        return AccessToken(
            token=_NOT_KEPT,
            client_id=grant.client_id,
            scopes=_with_included(grant.scopes),
            expires_at=int(grant.expires_at.timestamp()),
            resource=grant.audience,
            subject=grant.user_id,
            claims={"iss": grant.issuer},
        )


def caller_of(access: AccessToken) -> Caller:
    """Return who is calling, of what `BearerVerifier` said about their token."""
    return Caller(
        user_id=access.subject or "",
        scopes=frozenset(Scope(name) for name in access.scopes),
        token_id=access.client_id,
    )


def _with_included(scopes: frozenset[Scope]) -> list[str]:
    """Return the names of scopes and of those that they include, from the least on."""
    all_scopes = frozenset[Scope]().union(*(_INCLUDED[scope] for scope in scopes))
    return [scope.value for scope in Scope if scope in all_scopes]
