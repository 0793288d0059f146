"""Checks JWTs of an OAuth or OIDC issuer against the issuer's published keys.

A token is trusted only after its signature was checked. Keys are fetched from the URL in the settings or in the
issuer's metadata, never from a URL in a token. Fetched keys are cached. Tokens with unknown key ids cause at most one
fetch every `FETCH_AGAIN_S` seconds.
"""

import asyncio
import ipaddress
import logging
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import httpx2
import jwt
from jwt.types import Options
from mcp.server.auth.provider import AccessToken

from memoryos_mcp.errors import ArgumentError, ConfigError, IssuerError
from memoryos_mcp.model.callers import Scope
from memoryos_mcp.text.user_ids import user_folder_name

logger = logging.getLogger(__name__)

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
SCOPE_PREFIX = "memory:"
# An `AccessToken` might be printed, so it does not contain the client's token.
NO_TOKEN = ""
KEYS_FRESH_S = 300.0
# While the issuer is down, cached keys stay valid this long.
KEYS_USABLE_S = 3600.0
FETCH_AGAIN_S = 30.0
# Without any key every JWT is refused, so keys are fetched again sooner.
FETCH_AGAIN_WITHOUT_KEYS_S = 5.0
FETCH_TIMEOUT_S = 10.0
LEEWAY_S = 10.0
TOKEN_MAX_CHARS = 16_384

# RFC 8725, section 3.11: other kinds of token, such as logout tokens, are not access tokens.
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


class JwtVerifier:
    """Checks JWTs of one issuer for one audience. Safe to share between the tasks of an event loop.

    Args:
        issuer: The issuer's URL, exactly as in the claim ``iss``. It must use https, or http on this machine.
        audience: The issuer's name for this server. The claim ``aud`` must contain it.
        jwks_url: The URL of the issuer's keys. If it is None, the URL is read from the issuer's OpenID Connect
            metadata, or else from its OAuth metadata (RFC 8414).
        monotonic: Monotonic clock in seconds.

    Raises:
        ConfigError: The issuer or ``jwks_url`` is not an https URL, or the audience is blank.
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
                msg = (
                    f"{name}: must be an https address, such as https://login.example.com (http is allowed for this "
                    "machine only)"
                )
                raise ConfigError(msg)
        if not audience.strip():
            msg = "audience: must not be blank; set it to the issuer's name for this server, usually the server's URL"
            raise ConfigError(msg)
        self._issuer = issuer
        self._audience = audience
        self._keys = _IssuerKeys(issuer, jwks_url, monotonic)

    async def verify(self, token: str) -> AccessToken | None:
        """Return the user and the scopes of a JWT, or None if the JWT is not valid for this server.

        Scopes are read from the claims ``scope`` and ``scp``. Known scopes are ``read``, ``write``, ``admin`` and
        ``act-as``, with or without the prefix ``memory:``. A JWT without a known scope gets ``read``. The field
        ``token`` of the result is empty.

        Raises:
            IssuerError: The issuer's keys could not be fetched, so the token could not be checked.
        """
        if len(token) > TOKEN_MAX_CHARS or not token.isascii():
            return None
        try:
            # Foreign and expired tokens are refused before any keys are fetched.
            header = jwt.get_unverified_header(token)
            self._decoded(token, None, _WITHOUT_SIGNATURE)
            key_id, kind = header.get("kid"), header.get("typ") or ""
            if header.get("alg") not in ALGORITHMS or str(kind).lower() not in _TYPES:
                return _refused("its algorithm or type is not accepted")
            key = await self._keys.find(key_id)
            if key is None:
                return _refused("its key is unknown")
            return self._content(self._decoded(token, key, _WITH_SIGNATURE))
        except (jwt.PyJWTError, ArgumentError, OverflowError, ValueError) as error:
            return _refused(type(error).__name__)

    def is_current(self, issuer: str, expires_at: datetime | None, now: datetime) -> bool:
        """Return whether a token that was valid earlier is from this issuer and has not expired."""
        has_expired = expires_at is None or expires_at + timedelta(seconds=LEEWAY_S) <= now
        return issuer == self._issuer and not has_expired

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

    def _content(self, claims: Mapping[str, Any]) -> AccessToken:
        user_folder_name(claims["sub"])
        client = claims.get("azp") or claims.get("client_id")
        return AccessToken(
            token=NO_TOKEN,
            client_id=client if isinstance(client, str) else "",
            scopes=_scopes(claims),
            # A time beyond all dates raises an error.
            expires_at=int(datetime.fromtimestamp(int(claims["exp"]), UTC).timestamp()),
            resource=self._audience,
            subject=claims["sub"],
            claims={"iss": self._issuer},
        )


class _IssuerKeys:
    """Fetches and caches the issuer's public keys. Limits how often the keys are fetched."""

    def __init__(self, issuer: str, jwks_url: str | None, monotonic: Callable[[], float]) -> None:
        self._issuer = issuer
        self._jwks_url = jwks_url
        self._monotonic = monotonic
        self._lock = asyncio.Lock()
        self._keys: list[jwt.PyJWK] = []
        self._fetched_at: float | None = None
        self._attempted_at: float | None = None
        self._failure: IssuerError | None = None

    async def find(self, key_id: str | None) -> jwt.PyJWK | None:
        """Return the key with this id, or None if the issuer has no such key.

        If the id is None, return the issuer's only key, or None if there are several keys.

        Raises:
            IssuerError: The keys could not be fetched, and no valid cached key has this id.
        """
        key = self._cached(key_id, KEYS_FRESH_S)
        if key is not None:
            return key
        async with self._lock:
            if self._cached(key_id, KEYS_FRESH_S) is None and self._may_fetch():
                await self._refresh()
        key = self._cached(key_id, KEYS_USABLE_S)
        if key is None and self._failure is not None:
            raise IssuerError(str(self._failure)) from self._failure
        return key

    def _cached(self, key_id: str | None, age_s: float) -> jwt.PyJWK | None:
        """Return the cached key with this id; None if there is none, or the keys are at least ``age_s`` seconds old."""
        if self._fetched_at is None or self._monotonic() - self._fetched_at >= age_s:
            return None
        if key_id is None:
            return self._keys[0] if len(self._keys) == 1 else None
        return next((key for key in self._keys if key.key_id == key_id), None)

    def _may_fetch(self) -> bool:
        pause_s = FETCH_AGAIN_S if self._keys else FETCH_AGAIN_WITHOUT_KEYS_S
        return self._attempted_at is None or self._monotonic() - self._attempted_at >= pause_s

    async def _refresh(self) -> None:
        try:
            self._keys = await self._fetch()
        except IssuerError as error:
            logger.warning("%s", error)
            self._failure = error
        else:
            self._fetched_at, self._failure = self._monotonic(), None
        finally:
            self._attempted_at = self._monotonic()  # also after a cancellation

    async def _fetch(self) -> list[jwt.PyJWK]:
        try:
            async with asyncio.timeout(FETCH_TIMEOUT_S), httpx2.AsyncClient(timeout=FETCH_TIMEOUT_S) as client:
                url = self._jwks_url or await self._discover(client)
                found = await _json_object(client, url)
            keys = jwt.PyJWKSet.from_dict(found).keys
        except TimeoutError as error:
            msg = (
                f"the issuer {self._issuer} did not return its keys within {FETCH_TIMEOUT_S:.0f} s; "
                "check the issuer and the network"
            )
            raise IssuerError(msg) from error
        except (httpx2.HTTPError, httpx2.InvalidURL, jwt.PyJWTError, ValueError) as error:
            msg = (
                f"the keys of the issuer {self._issuer} could not be fetched ({type(error).__name__}); "
                "check oidc_issuer, oidc_jwks_url and the network"
            )
            raise IssuerError(msg) from error
        ours = [key for key in keys if key.algorithm_name in ALGORITHMS and key.public_key_use in {None, "sig"}]
        if not ours:
            msg = (
                f"the issuer {self._issuer} has no signing key for any of these algorithms: {', '.join(ALGORITHMS)}; "
                "add a key at the issuer, or correct oidc_jwks_url"
            )
            raise IssuerError(msg)
        return ours

    async def _discover(self, client: httpx2.AsyncClient) -> str:
        """Read the issuer's metadata, and return the URL of the issuer's keys."""
        parts = urlsplit(self._issuer)
        path = parts.path.rstrip("/")
        server = f"{parts.scheme}://{parts.netloc}"
        try:
            metadata = await _json_object(client, f"{server}{path}{_OPENID}")
        except (httpx2.HTTPStatusError, ValueError):
            metadata = await _json_object(client, f"{server}{_OAUTH}{path}")
        if metadata.get("issuer") != self._issuer:
            msg = (
                f"the metadata of the issuer {self._issuer} contains a different issuer; correct oidc_issuer, or set "
                "oidc_jwks_url"
            )
            raise IssuerError(msg)
        url = metadata.get("jwks_uri")
        if not isinstance(url, str) or not _is_safe(url):
            msg = f"the metadata of the issuer {self._issuer} contains no https address for its keys; set oidc_jwks_url"
            raise IssuerError(msg)
        return url


async def _json_object(client: httpx2.AsyncClient, url: str) -> dict[str, Any]:
    """Return the JSON object at a URL.

    Raises:
        HTTPError: The request failed.
        ValueError: The answer is not a JSON object.
    """
    response = await client.get(url, headers={"accept": "application/json"})
    response.raise_for_status()
    found = response.json()
    if not isinstance(found, dict):
        msg = "the answer is not a JSON object"
        raise ValueError(msg)  # noqa: TRY004 - the data is wrong, not the type of an argument
    return found


def _scopes(claims: Mapping[str, Any]) -> list[str]:
    """Return the scopes in a token's claims. Unknown scopes are left out. If none are left, return only ``read``."""
    named: set[str] = set()
    for value in (claims.get("scope"), claims.get("scp")):
        if isinstance(value, str):
            named.update(value.split())
        elif isinstance(value, list):
            named.update(part for part in value if isinstance(part, str))
    ours = {name.removeprefix(SCOPE_PREFIX) for name in named}
    return [scope.value for scope in Scope if scope.value in ours] or [Scope.READ.value]


def _refused(why: str) -> AccessToken | None:
    """Log why a token is refused, and return None. The log line does not contain the token."""
    logger.info("a JWT was refused: %s", why)
    return None


def _is_safe(url: str) -> bool:
    """Return whether a URL uses https, or http on this machine. Answers from any other URL could be forged."""
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
