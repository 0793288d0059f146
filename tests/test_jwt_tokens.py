"""JWTs of a real issuer on this machine: which are valid, and when keys are fetched."""

import asyncio
import json
import logging
import time
from collections.abc import Iterator
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp.server.auth.provider import AccessToken

from memoryos_mcp.errors import ConfigError, IssuerError
from memoryos_mcp.model.callers import Scope
from memoryos_mcp.server.http import jwt_tokens
from memoryos_mcp.server.http.jwt_tokens import (
    FETCH_AGAIN_S,
    FETCH_AGAIN_WITHOUT_KEYS_S,
    KEYS_FRESH_S,
    KEYS_USABLE_S,
    JwtVerifier,
)
from tests.fakes import Seconds
from tests.issuer import AUDIENCE, JWKS, OAUTH, OPENID, Issuer, ec_key, issuer_server, jwk, rsa_key, unsigned
from tests.llm_server import free_port

LIMIT_S = 30


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with issuer_server() as running:
        yield running


@pytest.fixture
def seconds() -> Seconds:
    return Seconds()


@pytest.fixture
def verifier(issuer: Issuer, seconds: Seconds) -> JwtVerifier:
    return JwtVerifier(issuer.url, AUDIENCE, monotonic=seconds)


async def verified(verifier: JwtVerifier, *tokens: str) -> list[AccessToken | None]:
    async with asyncio.timeout(LIMIT_S):
        return [await verifier.verify(token) for token in tokens]


async def test_a_valid_token_has_a_user_and_an_expiry(verifier: JwtVerifier, issuer: Issuer) -> None:
    until = int(time.time()) + 60
    (grant,) = await verified(verifier, issuer.token(scope="openid memory:write", azp="claude", exp=until))
    assert grant is not None
    assert (grant.subject, grant.scopes, grant.client_id) == ("zoë", ["write"], "claude")
    assert (grant.claims, grant.resource, grant.expires_at) == ({"iss": issuer.url}, AUDIENCE, until)
    assert grant.token == ""
    assert issuer.asked == [OPENID, JWKS]


@pytest.mark.parametrize(
    "changed",
    [
        {"exp": 1},
        {"exp": None},
        {"exp": "soon"},
        {"exp": 1e300},
        {"exp": float("nan")},
        {"nbf": 1e12},
        {"aud": None},
        {"aud": "https://other.example.com"},
        {"aud": [AUDIENCE, 7]},
        {"aud": AUDIENCE + "/"},
        {"iss": None},
        {"iss": "https://evil.example.com"},
        {"iss": ["x"]},
        {"sub": None},
        {"sub": ""},
        {"sub": " "},
        {"sub": 42},
        {"sub": "\x00"},
        {"sub": "x" * 10_001},
    ],
    ids=str,
)
async def test_wrong_claims_are_refused(changed: dict[str, Any], verifier: JwtVerifier, issuer: Issuer) -> None:
    good, bad = issuer.token(), issuer.token(**changed)
    assert [grant is None for grant in await verified(verifier, good, bad)] == [False, True]


async def test_a_token_for_several_audiences_is_accepted(verifier: JwtVerifier, issuer: Issuer) -> None:
    (grant,) = await verified(verifier, issuer.token(aud=["https://other.example.com", AUDIENCE]))
    assert grant is not None
    assert grant.resource == AUDIENCE


async def test_a_signature_by_another_key_is_refused(verifier: JwtVerifier, issuer: Issuer) -> None:
    assert await verified(verifier, issuer.token(key=rsa_key("stranger"))) == [None]
    head, _, rest = issuer.token().partition(".")
    other = issuer.token(sub="ann").split(".")[1]
    assert await verified(verifier, f"{head}.{other}.{rest.rpartition('.')[2]}") == [None]


async def test_a_token_without_a_signature_is_refused(verifier: JwtVerifier, issuer: Issuer) -> None:
    for algorithm in ("none", "None", "NONE", "", None):
        assert await verified(verifier, unsigned({"alg": algorithm, "kid": "first"}, issuer.claims())) == [None]
    assert await verified(verifier, issuer.token().rpartition(".")[0] + ".") == [None]


async def test_a_public_key_is_not_used_as_a_shared_secret(verifier: JwtVerifier, issuer: Issuer) -> None:
    published = rsa_key("first").public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    hmac = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256)
    signing_input = unsigned({"alg": "HS256", "kid": "first", "typ": "JWT"}, issuer.claims()).rstrip(".")
    signature = jwt.utils.base64url_encode(hmac.sign(signing_input.encode(), published)).decode()
    assert await verified(verifier, f"{signing_input}.{signature}") == [None]


async def test_a_shared_secret_among_the_issuers_keys_is_not_used(verifier: JwtVerifier, issuer: Issuer) -> None:
    secret = b"k" * 32
    published = {"kty": "oct", "k": jwt.utils.base64url_encode(secret).decode(), "kid": "shared"}
    issuer.paths[JWKS] = {"keys": [*issuer.keys, published]}
    token = jwt.encode(issuer.claims(), secret, algorithm="HS256", headers={"kid": "shared"})
    assert await verified(verifier, token) == [None]


async def test_an_encryption_key_does_not_verify_signatures(verifier: JwtVerifier, issuer: Issuer) -> None:
    issuer.paths[JWKS] = {"keys": [*issuer.keys, jwk(rsa_key("secret"), "secret", use="enc")]}
    assert await verified(verifier, issuer.token(key=rsa_key("secret"), key_id="secret")) == [None]


async def test_a_key_that_is_too_short_is_refused(verifier: JwtVerifier, issuer: Issuer) -> None:
    short = rsa_key("short", 1024)
    issuer.paths[JWKS] = {"keys": [*issuer.keys, jwk(short, "short")]}
    with pytest.warns(jwt.InsecureKeyLengthWarning):
        token = issuer.token(key=short, key_id="short")
    assert await verified(verifier, token) == [None]


async def test_the_key_decides_the_algorithm(verifier: JwtVerifier, issuer: Issuer) -> None:
    issuer.paths[JWKS] = {"keys": [jwk(rsa_key("first"), "first", alg="RS512"), jwk(ec_key("curve"), "curve")]}
    fits = issuer.token(algorithm="RS512"), issuer.token(key=ec_key("curve"), key_id="curve", algorithm="ES256")
    assert None not in await verified(verifier, *fits)
    assert await verified(verifier, issuer.token(algorithm="RS256"), issuer.token(key_id="curve")) == [None, None]


async def test_a_logout_token_is_refused(verifier: JwtVerifier, issuer: Issuer) -> None:
    def typed(kind: str) -> str:
        headers = {"kid": "first", "typ": kind}
        return jwt.encode(issuer.claims(), rsa_key("first"), algorithm="RS256", headers=headers)

    grants = await verified(verifier, typed("logout+jwt"), typed("at+jwt"), typed("application/at+JWT"))
    assert [grant is not None for grant in grants] == [False, True, True]


async def test_a_token_without_a_key_id_is_checked_with_the_only_key(verifier: JwtVerifier, issuer: Issuer) -> None:
    assert None not in await verified(verifier, issuer.token(key_id=None))
    issuer.paths[JWKS] = {"keys": [*issuer.keys, jwk(rsa_key("second"), "second")]}
    assert await verified(JwtVerifier(issuer.url, AUDIENCE), issuer.token(key_id=None)) == [None]


@pytest.mark.parametrize(
    ("claims", "scopes"),
    [
        ({}, {Scope.READ}),
        ({"scope": "openid profile"}, {Scope.READ}),
        ({"scope": 7, "scp": {"admin": True}}, {Scope.READ}),
        ({"scope": "readwrite memory:memory:admin"}, {Scope.READ}),
        ({"scope": "read  write"}, {Scope.READ, Scope.WRITE}),
        ({"scope": "memory:act-as"}, {Scope.ACT_AS}),
        ({"scp": ["memory:write", None, "email"]}, {Scope.WRITE}),
        ({"scp": "admin", "scope": "memory:write"}, {Scope.ADMIN, Scope.WRITE}),
    ],
)
async def test_scopes_may_have_the_prefix_and_default_to_read(
    claims: dict[str, Any], scopes: set[Scope], verifier: JwtVerifier, issuer: Issuer
) -> None:
    (grant,) = await verified(verifier, issuer.token(**claims))
    assert grant is not None
    assert set(grant.scopes) == scopes


@settings(max_examples=150, deadline=None)
@given(
    text=st.text()
    | st.text(st.characters(categories=["Cs"]))
    | st.builds(
        unsigned,
        st.dictionaries(
            st.sampled_from(["alg", "kid", "typ", "crit", "b64", "jku"]),
            st.none() | st.booleans() | st.text(max_size=8) | st.lists(st.text(max_size=3), max_size=2),
        ),
        st.dictionaries(
            st.sampled_from(["exp", "iss", "aud", "sub", "nbf", "iat"]), st.none() | st.floats() | st.text()
        ),
    )
)
def test_no_text_makes_a_check_fail_or_asks_the_issuer(text: str) -> None:
    verifier = JwtVerifier("http://127.0.0.1:9", AUDIENCE)
    assert asyncio.run(verifier.verify(text)) is None


@pytest.mark.parametrize("text", ["", ".", "..", "a.b.c", "é", "eyJ" * 10_000, "mos_0123456789ab_x"])
async def test_text_that_is_no_jwt_is_refused_without_a_fetch(text: str, verifier: JwtVerifier, issuer: Issuer) -> None:
    assert await verified(verifier, text) == [None]
    assert issuer.asked == []


async def test_an_expired_or_foreign_token_is_refused_without_a_fetch(verifier: JwtVerifier, issuer: Issuer) -> None:
    tokens = issuer.token(exp=1), issuer.token(aud="x"), issuer.token(iss="https://x.example.com")
    assert await verified(verifier, *tokens) == [None] * 3
    assert issuer.asked == []


async def test_keys_are_cached_and_fetched_again_after_a_while(
    verifier: JwtVerifier, issuer: Issuer, seconds: Seconds
) -> None:
    await verified(verifier, *[issuer.token()] * 5)
    seconds.now += KEYS_FRESH_S - 1
    await verified(verifier, issuer.token())
    assert issuer.asked == [OPENID, JWKS]
    issuer.paths[JWKS] = {"keys": [jwk(rsa_key("second"), "second")]}
    seconds.now += 1
    assert await verified(verifier, issuer.token()) == [None]
    assert issuer.asked == [OPENID, JWKS] * 2


async def test_a_new_key_is_fetched_when_it_is_first_used(
    verifier: JwtVerifier, issuer: Issuer, seconds: Seconds
) -> None:
    await verified(verifier, issuer.token())
    issuer.paths[JWKS] = {"keys": [*issuer.keys, jwk(rsa_key("second"), "second")]}
    seconds.now += FETCH_AGAIN_S
    assert None not in await verified(verifier, issuer.token(key=rsa_key("second"), key_id="second"))


async def test_invented_key_ids_do_not_cause_many_fetches(
    verifier: JwtVerifier, issuer: Issuer, seconds: Seconds
) -> None:
    made_up = [issuer.token(key_id=f"key {number}") for number in range(10)]
    async with asyncio.timeout(LIMIT_S):
        assert await asyncio.gather(*map(verifier.verify, made_up)) == [None] * 10
        assert issuer.asked == [OPENID, JWKS]
        seconds.now += FETCH_AGAIN_S
        assert await asyncio.gather(*map(verifier.verify, made_up)) == [None] * 10
    assert issuer.asked == [OPENID, JWKS] * 2


async def test_concurrent_checks_share_one_fetch(verifier: JwtVerifier, issuer: Issuer) -> None:
    async with asyncio.timeout(LIMIT_S):
        grants = await asyncio.gather(*(verifier.verify(issuer.token()) for _ in range(20)))
    assert None not in grants
    assert issuer.asked == [OPENID, JWKS]


async def test_after_a_cancelled_fetch_the_next_check_fetches_again(
    verifier: JwtVerifier, issuer: Issuer, seconds: Seconds
) -> None:
    issuer.may_answer.clear()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await verifier.verify(issuer.token())
    issuer.may_answer.set()
    seconds.now += FETCH_AGAIN_WITHOUT_KEYS_S
    assert None not in await verified(verifier, issuer.token())


async def test_with_a_jwks_url_no_metadata_is_fetched(issuer: Issuer) -> None:
    issuer.paths = {"/elsewhere": {"keys": issuer.keys}}
    verifier = JwtVerifier(issuer.url, AUDIENCE, f"{issuer.url}/elsewhere")
    assert None not in await verified(verifier, issuer.token())
    assert issuer.asked == ["/elsewhere"]


async def test_without_openid_metadata_that_of_oauth_is_used(issuer: Issuer) -> None:
    name = f"{issuer.url}/tenant/7"
    issuer.paths[f"{OAUTH}/tenant/7"] = {"issuer": name, "jwks_uri": f"{issuer.url}{JWKS}"}
    assert None not in await verified(JwtVerifier(name, AUDIENCE), issuer.token(iss=name))
    assert issuer.asked == [f"/tenant/7{OPENID}", f"{OAUTH}/tenant/7", JWKS]


async def test_an_issuer_whose_url_ends_with_a_slash_works(issuer: Issuer) -> None:
    name = f"{issuer.url}/"
    issuer.paths[OPENID] = {"issuer": name, "jwks_uri": f"{issuer.url}{JWKS}"}
    assert None not in await verified(JwtVerifier(name, AUDIENCE), issuer.token(iss=name))


@pytest.mark.parametrize(
    ("path", "answer", "said"),
    [
        (
            OPENID,
            {"issuer": "https://other.example.com", "jwks_uri": "https://x.example.com"},
            "contains a different issuer",
        ),
        (OPENID, None, "HTTPStatusError"),
        (JWKS, None, "HTTPStatusError"),
        (JWKS, b"<html>", "JSONDecodeError"),
        (JWKS, b"\xff", "Error"),
        (JWKS, ["keys"], "ValueError"),
        (JWKS, {}, "PyJWKSetError"),
        (JWKS, {"keys": "x"}, "PyJWKSetError"),
        (JWKS, {"keys": [{"kty": "oct", "k": "AAAA"}]}, "has no signing key"),
    ],
)
async def test_a_wrong_answer_of_the_issuer_is_an_issuer_error(
    path: str, answer: Any, said: str, verifier: JwtVerifier, issuer: Issuer
) -> None:
    issuer.paths[path] = answer
    with pytest.raises(IssuerError, match=said) as raised:
        await verified(verifier, issuer.token())
    assert issuer.url in str(raised.value)


@pytest.mark.parametrize("url", ["http://keys.example.com/", "file:///etc/passwd", "", 7, None])
async def test_an_unsafe_address_in_the_metadata_is_refused(url: Any, verifier: JwtVerifier, issuer: Issuer) -> None:
    issuer.paths[OPENID] = {"issuer": issuer.url, "jwks_uri": url}
    with pytest.raises(IssuerError, match="contains no https address"):
        await verified(verifier, issuer.token())


async def test_an_unreachable_issuer_is_an_issuer_error(issuer: Issuer) -> None:
    verifier = JwtVerifier(issuer.url, AUDIENCE, f"http://127.0.0.1:{free_port()}/keys")
    with pytest.raises(IssuerError, match="ConnectError"):
        await verified(verifier, issuer.token())


async def test_after_a_failure_there_is_a_pause_before_the_next_fetch(
    verifier: JwtVerifier, issuer: Issuer, seconds: Seconds
) -> None:
    keys = issuer.paths.pop(JWKS)
    for _ in range(3):
        with pytest.raises(IssuerError):
            await verified(verifier, issuer.token())
    assert issuer.asked == [OPENID, JWKS]
    issuer.paths[JWKS] = keys
    seconds.now += FETCH_AGAIN_WITHOUT_KEYS_S
    assert None not in await verified(verifier, issuer.token())


async def test_a_fetch_from_a_silent_issuer_times_out(
    verifier: JwtVerifier, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jwt_tokens, "FETCH_TIMEOUT_S", 0.2)
    issuer.may_answer.clear()
    with pytest.raises(IssuerError, match=r"did not return its keys|Timeout"):
        await verified(verifier, issuer.token())


async def test_cached_keys_stay_valid_for_an_hour_of_downtime(
    verifier: JwtVerifier, issuer: Issuer, seconds: Seconds
) -> None:
    late = int(time.time()) + 10_000
    known, unknown = issuer.token(exp=late), issuer.token(key_id="new", exp=late)
    await verified(verifier, known)
    issuer.paths.clear()
    seconds.now += KEYS_FRESH_S
    assert None not in await verified(verifier, known)
    with pytest.raises(IssuerError):
        await verified(verifier, unknown)
    seconds.now += KEYS_USABLE_S - KEYS_FRESH_S
    with pytest.raises(IssuerError):
        await verified(verifier, known)


@pytest.mark.parametrize(
    "url",
    [
        "http://login.example.com",
        "http://127.0.0.1.example.com",
        "http://10.0.0.1",
        "ftp://127.0.0.1",
        "login.example.com",
        "https://",
        "https://user:word@login.example.com",
        "https://login.example.com/\n",
        "https://[::1",
        "",
    ],
)
def test_an_unsafe_address_in_the_settings_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="issuer: must be an https address"):
        JwtVerifier(url, AUDIENCE)
    with pytest.raises(ConfigError, match="jwks_url: must be an https address"):
        JwtVerifier("https://login.example.com", AUDIENCE, url)


@pytest.mark.parametrize("url", ["https://login.example.com/x/", "http://localhost:8080", "http://[::1]:80"])
def test_https_and_loopback_addresses_are_accepted(url: str) -> None:
    JwtVerifier(url, AUDIENCE, url)
    with pytest.raises(ConfigError, match="audience: must not be blank"):
        JwtVerifier(url, " ")


async def test_the_log_has_the_reason_but_no_part_of_a_token(
    verifier: JwtVerifier, issuer: Issuer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    tokens = [issuer.token(), issuer.token(aud="strange"), issuer.token(key_id="made up"), issuer.token(sub=" ")]
    await verified(verifier, *tokens)
    said = [record.message for record in caplog.records if record.name.startswith("memoryos_mcp")]
    assert [text.rpartition(": ")[2] for text in said] == [
        "InvalidAudienceError",
        "its key is unknown",
        "ArgumentError",
    ]
    assert not any(part in caplog.text for token in tokens for part in token.split("."))
    assert json.dumps("strange") not in caplog.text
