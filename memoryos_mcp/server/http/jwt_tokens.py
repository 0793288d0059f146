"""Tokens of an OAuth or OIDC issuer: JWTs, checked against the issuer's published keys.

A token is trusted only after its signature was checked. It never decides where keys are fetched: the address comes from
the settings or from the issuer's own metadata. Keys are cached. Tokens with made-up key ids cannot make the server ask
the issuer more often than every ASK_AGAIN_S.
"""

import asyncio
import ipaddress
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import httpx2
import jwt
from jwt.types import Options

from memoryos_mcp.errors import ArgumentError, ConfigError, IssuerError
from memoryos_mcp.model.callers import Scope
from memoryos_mcp.text.user_ids import user_folder_name

logger = logging.getLogger(__name__)

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
SCOPE_PREFIX = "memory:"
KEYS_FRESH_S = 300.0
# While the issuer is down, cached keys stay valid this long.
KEYS_USABLE_S = 3600.0
ASK_AGAIN_S = 30.0
# Without any key every JWT is refused, so the issuer is asked again sooner.
ASK_AGAIN_WITHOUT_KEYS_S = 5.0
FETCH_TIMEOUT_S = 10.0
LEEWAY_S = 10.0
TOKEN_MAX_CHARS = 16_384

# RFC 8725, section 3.11: a logout token of the same issuer for the same audience is not an access token.
_TYPES = frozenset({"", "jwt", "at+jwt", "application/at+jwt"})
_REQUIRED = ["exp", "iss", "aud", "sub"]
_WITH_SIGNATURE: Options = {"require": _REQUIRED, "enforce_minimum_key_length": True}
_WITHOUT_SIGNATURE: Options = {
    "require": _REQUIRED,
    "verify_signature": False,
    "verify_exp": True,
    "verify_nbf": True,
    "verify_aud": True,
    "verify_iss": True,
}
_OPENID, _OAUTH = "/.well-known/openid-configuration", "/.well-known/oauth-authorization-server"


@dataclass(frozen=True, slots=True)
class JwtGrant:
    """The content of a valid JWT.

    Attributes:
        user_id: The token's ``sub``.
        client_id: The token's ``azp`` or ``client_id``; empty if it has neither.
        audience: The one of the token's audiences that is this server.
    """

    user_id: str
    scopes: frozenset[Scope]
    client_id: str
    issuer: str
    audience: str
    expires_at: datetime


class JwtVerifier:
    """Checks JWTs of one issuer for one audience. Safe to share between the tasks of a loop.

    Args:
        issuer: The issuer's URL, exactly as in ``iss``; https, or http on this machine.
        audience: The issuer's name for this server, which must be among ``aud``.
        jwks_url: Where the issuer's keys are; None asks its metadata, of OpenID Connect or else of OAuth (RFC 8414).
        monotonic: Monotonic clock in seconds.

    Raises:
        ConfigError: An address is not an https URL, or the audience is blank.
    """

    def __init__(
        self,
        issuer: str,
        audience: str,
        jwks_url: str | None = None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        for name, url in (("issuer", issuer), ("jwks_url", jwks_url)):
            if url is not None and not _is_safe(url):
                msg = f"{name}: is no https address (http is for this machine only); write it like https://login.example.com"
                raise ConfigError(msg)
        if not audience.strip():
            msg = "audience: is blank; give the name that the issuer has for this server, mostly its URL"
            raise ConfigError(msg)
        self._issuer = issuer
        self._audience = audience
        self._keys = _IssuerKeys(issuer, jwks_url, monotonic)

    async def verify(self, token: str) -> JwtGrant | None:
        """Return the content of a JWT; None for any text that is not a JWT valid here.

        Scopes are read from ``scope`` and ``scp``: ``read``, ``write``, ``admin`` and ``act-as``, also with the prefix
        ``memory:``. A token that names none of them may read.

        Raises:
            IssuerError: The issuer's keys could not be fetched, so the token could not be checked.
        """
        if len(token) > TOKEN_MAX_CHARS or not token.isascii():
            return None
        try:
            # Foreign and expired tokens are refused before the issuer is asked for keys.
            header = jwt.get_unverified_header(token)
            self._decoded(token, None, _WITHOUT_SIGNATURE)
            key_id, kind = header.get("kid"), header.get("typ") or ""
            if header.get("alg") not in ALGORITHMS or str(kind).lower() not in _TYPES:
                return _none_for("of another kind")
            key = await self._keys.find(key_id)
            if key is None:
                return _none_for("of an unknown key")
            return self._grant(self._decoded(token, key, _WITH_SIGNATURE))
        except (jwt.PyJWTError, ArgumentError, OverflowError, ValueError) as error:
            return _none_for(type(error).__name__)

    def _decoded(self, token: str, key: jwt.PyJWK | None, options: Options) -> dict[str, Any]:
        return jwt.decode(
            token,
            "" if key is None else key,
            algorithms=ALGORITHMS,
            options=options,
            audience=self._audience,
            issuer=self._issuer,
            leeway=LEEWAY_S,
        )

    def _grant(self, claims: Mapping[str, Any]) -> JwtGrant:
        user_folder_name(claims["sub"])
        client = claims.get("azp") or claims.get("client_id")
        return JwtGrant(
            user_id=claims["sub"],
            scopes=_scopes(claims),
            client_id=client if isinstance(client, str) else "",
            issuer=self._issuer,
            audience=self._audience,
            expires_at=datetime.fromtimestamp(int(claims["exp"]), UTC),
        )


class _IssuerKeys:
    """The issuer's public keys by key id, fetched when needed but not too often."""

    def __init__(self, issuer: str, jwks_url: str | None, monotonic: Callable[[], float]) -> None:
        self._issuer = issuer
        self._jwks_url = jwks_url
        self._monotonic = monotonic
        self._fetching = asyncio.Lock()
        self._keys: list[jwt.PyJWK] = []
        self._fetched_at: float | None = None
        self._asked_at: float | None = None
        self._failure: IssuerError | None = None

    async def find(self, key_id: str | None) -> jwt.PyJWK | None:
        """Return the key with this id, or the only key if the token names none; None if there is no such key.

        Raises:
            IssuerError: The keys could not be fetched, and no cached key that is still valid has this id.
        """
        key = self._held(key_id, KEYS_FRESH_S)
        if key is not None:
            return key
        async with self._fetching:
            if self._held(key_id, KEYS_FRESH_S) is None and self._may_ask():
                await self._ask()
        key = self._held(key_id, KEYS_USABLE_S)
        if key is None and self._failure is not None:
            raise IssuerError(str(self._failure)) from self._failure
        return key

    def _held(self, key_id: str | None, age_s: float) -> jwt.PyJWK | None:
        """Return the key if it was fetched less than ``age_s`` seconds ago."""
        if self._fetched_at is None or self._monotonic() - self._fetched_at >= age_s:
            return None
        if key_id is None:
            return self._keys[0] if len(self._keys) == 1 else None
        return next((key for key in self._keys if key.key_id == key_id), None)

    def _may_ask(self) -> bool:
        pause_s = ASK_AGAIN_S if self._keys else ASK_AGAIN_WITHOUT_KEYS_S
        return self._asked_at is None or self._monotonic() - self._asked_at >= pause_s

    async def _ask(self) -> None:
        try:
            self._keys = await self._fetched()
        except IssuerError as error:
            logger.warning("%s", error)
            self._failure = error
        else:
            self._fetched_at, self._failure = self._monotonic(), None
        finally:
            self._asked_at = self._monotonic()  # also after a cancellation

    async def _fetched(self) -> list[jwt.PyJWK]:
        try:
            async with asyncio.timeout(FETCH_TIMEOUT_S), httpx2.AsyncClient(timeout=FETCH_TIMEOUT_S) as client:
                url = self._jwks_url or await self._discovered(client)
                found = await _json_object(client, url)
            keys = jwt.PyJWKSet.from_dict(found).keys
        except TimeoutError as error:
            msg = f"the issuer {self._issuer} did not give its keys within {FETCH_TIMEOUT_S:.0f} s"
            raise IssuerError(msg) from error
        except (httpx2.HTTPError, httpx2.InvalidURL, jwt.PyJWTError, ValueError) as error:
            msg = f"the issuer {self._issuer} could not be asked for its keys ({type(error).__name__})"
            raise IssuerError(msg) from error
        ours = [key for key in keys if key.algorithm_name in ALGORITHMS and key.public_key_use in {None, "sig"}]
        if not ours:
            msg = f"the issuer {self._issuer} gives no key that signs by one of {', '.join(ALGORITHMS)}"
            raise IssuerError(msg)
        return ours

    async def _discovered(self, client: httpx2.AsyncClient) -> str:
        """Return the address of the keys from the issuer's metadata."""
        parts = urlsplit(self._issuer)
        path = parts.path.rstrip("/")
        server = f"{parts.scheme}://{parts.netloc}"
        try:
            metadata = await _json_object(client, f"{server}{path}{_OPENID}")
        except (httpx2.HTTPStatusError, ValueError):
            metadata = await _json_object(client, f"{server}{_OAUTH}{path}")
        if metadata.get("issuer") != self._issuer:
            msg = f"the issuer {self._issuer} calls itself otherwise; write it to the letter, or set the keys' address"
            raise IssuerError(msg)
        url = metadata.get("jwks_uri")
        if not isinstance(url, str) or not _is_safe(url):
            msg = f"the issuer {self._issuer} names no https address of its keys; set it yourself"
            raise IssuerError(msg)
        return url


async def _json_object(client: httpx2.AsyncClient, url: str) -> dict[str, Any]:
    """Return the object at an address.

    Raises:
        httpx2.HTTPError: There is no answer, or its status is not OK.
        ValueError: The answer is not a JSON object.
    """
    response = await client.get(url, headers={"accept": "application/json"})
    response.raise_for_status()
    found = response.json()
    if not isinstance(found, dict):
        msg = "no JSON object"
        raise ValueError(msg)  # noqa: TRY004 - the answer is wrong, not an argument
    return found


def _scopes(claims: Mapping[str, Any]) -> frozenset[Scope]:
    """Return the token's scopes that are ours, from space-separated text or a list; read if there are none."""
    named: set[str] = set()
    for value in (claims.get("scope"), claims.get("scp")):
        if isinstance(value, str):
            named.update(value.split())
        elif isinstance(value, list):
            named.update(part for part in value if isinstance(part, str))
    ours = {name.removeprefix(SCOPE_PREFIX) for name in named}
    return frozenset(scope for scope in Scope if scope.value in ours) or frozenset({Scope.READ})


def _none_for(why: str) -> JwtGrant | None:
    """Log why a token is refused, without quoting it, and return None."""
    logger.info("a JWT was refused: %s", why)
    return None


def _is_safe(url: str) -> bool:
    """Return whether answers from there cannot be changed on the way: https, or this machine itself."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        if parts.port == 0 or not host or "@" in parts.netloc or " " in url or not url.isprintable():
            return False
    except ValueError:
        return False
    if parts.scheme == "https":
        return True
    return parts.scheme == "http" and _is_loopback(host)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
