"""The verifier of bearer tokens: static tokens and JWTs."""

import asyncio
import logging
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend
from mcp.server.auth.provider import AccessToken, TokenVerifier
from pydantic import AnyHttpUrl
from starlette.requests import HTTPConnection

from memoryos_mcp.errors import IssuerError, StorageError
from memoryos_mcp.model.callers import Caller, Scope, token_id_of
from memoryos_mcp.server.http.access import BearerVerifier, caller_of
from memoryos_mcp.server.http.jwt_tokens import JwtVerifier
from memoryos_mcp.storage.sqlite.tokens import TokenStore, token_file
from tests.fakes import START, Clock
from tests.issuer import AUDIENCE, Issuer, issuer_server

LIMIT_S = 30


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with issuer_server() as running:
        yield running


@pytest.fixture
def tokens(tmp_path: Path) -> TokenStore:
    return TokenStore(token_file(tmp_path), clock=Clock())


@pytest.fixture
def verifier(tokens: TokenStore, issuer: Issuer) -> BearerVerifier:
    return BearerVerifier(tokens, JwtVerifier(issuer.url, AUDIENCE), resource=AUDIENCE)


async def verify(verifier: TokenVerifier, token: str) -> AccessToken | None:
    async with asyncio.timeout(LIMIT_S):
        return await verifier.verify_token(token)


async def test_a_static_token_is_identified_by_its_id(
    verifier: BearerVerifier, tokens: TokenStore, issuer: Issuer
) -> None:
    token = tokens.add("Zoë", {Scope.WRITE}, START + timedelta(days=1))
    access = await verify(verifier, token)
    assert access == AccessToken(
        token="",
        client_id=token_id_of(token),
        scopes=["read", "write"],
        expires_at=int((START + timedelta(days=1)).timestamp()),
        resource=AUDIENCE,
        subject="Zoë",
    )
    assert caller_of(access) == Caller("Zoë", frozenset({Scope.READ, Scope.WRITE}), token_id_of(token))
    assert issuer.asked == []


async def test_a_jwt_is_identified_by_client_issuer_and_subject(verifier: BearerVerifier, issuer: Issuer) -> None:
    claims = issuer.claims(scope="memory:admin", client_id="claude")
    access = await verify(verifier, issuer.token(**claims))
    assert access == AccessToken(
        token="",
        client_id="claude",
        scopes=["read", "write", "admin"],
        expires_at=claims["exp"],
        resource=AUDIENCE,
        subject="zoë",
        claims={"iss": issuer.url},
    )
    assert caller_of(access) == Caller("zoë", frozenset({Scope.READ, Scope.WRITE, Scope.ADMIN}), "claude")


@pytest.mark.parametrize(
    ("scopes", "named"),
    [
        ({Scope.READ}, ["read"]),
        ({Scope.ACT_AS}, ["read", "act-as"]),
        ({Scope.ACT_AS, Scope.ADMIN}, ["read", "write", "admin", "act-as"]),
    ],
)
async def test_a_scope_includes_lower_scopes(
    scopes: set[Scope], named: list[str], verifier: BearerVerifier, tokens: TokenStore
) -> None:
    access = await verify(verifier, tokens.add("ann", scopes))
    assert access is not None
    assert access.scopes == named


@pytest.mark.parametrize("token", ["", "x", "mos_", "mos_0123456789ab_" + "A" * 43, "a.b.c"])
async def test_an_unknown_token_is_not_valid(token: str, verifier: BearerVerifier, issuer: Issuer) -> None:
    assert await verify(verifier, token) is None
    assert issuer.asked == []


async def test_jwts_are_refused_without_an_issuer(tokens: TokenStore, issuer: Issuer) -> None:
    assert await verify(BearerVerifier(tokens, None), issuer.token()) is None


async def test_an_uncheckable_token_is_an_error(
    verifier: BearerVerifier, tokens: TokenStore, issuer: Issuer, tmp_path: Path
) -> None:
    issuer.paths.clear()
    with pytest.raises(IssuerError):
        await verify(verifier, issuer.token())
    token = tokens.add("ann", {Scope.READ})
    token_file(tmp_path).write_bytes(b"no database" * 1000)
    with pytest.raises(StorageError):
        await verify(verifier, token)


async def test_many_concurrent_requests_are_all_answered(verifier: BearerVerifier, tokens: TokenStore) -> None:
    made = [tokens.add(f"user {number}", {Scope.READ}) for number in range(10)]
    async with asyncio.timeout(LIMIT_S):
        found = await asyncio.gather(*(verifier.verify_token(token) for token in made * 10))
    assert [access and access.subject for access in found] == [f"user {number}" for number in range(10)] * 10


async def test_the_sdk_middleware_accepts_both_kinds_of_token(tokens: TokenStore, issuer: Issuer) -> None:
    verifier = BearerVerifier(tokens, JwtVerifier(issuer.url, AUDIENCE), resource=AUDIENCE)
    door = BearerAuthBackend(verifier, resource_server_url=AnyHttpUrl(AUDIENCE))

    async def is_let_in(token: str) -> bool:
        headers = [(b"authorization", f"Bearer {token}".encode())]
        async with asyncio.timeout(LIMIT_S):
            return await door.authenticate(HTTPConnection({"type": "http", "headers": headers})) is not None

    assert [await is_let_in(token) for token in (tokens.add("ann", {Scope.READ}), issuer.token(), "x")] == [
        True,
        True,
        False,
    ]


async def test_logs_and_results_contain_no_token(
    verifier: BearerVerifier, tokens: TokenStore, issuer: Issuer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    static, foreign = tokens.add("ann", {Scope.READ}), issuer.token()
    told = repr([await verify(verifier, token) for token in (static, foreign, static[:-1], foreign[:-1])])
    secrets = [static.split("_", 2)[2], static.split("_", 2)[2][:-1], *foreign.split(".")]
    assert not any(secret in text for secret in secrets for text in (told, caplog.text))
