"""A real issuer of JWTs on loopback: its metadata, its keys, and tokens signed with them."""

import base64
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

AUDIENCE = "https://memory.example.com/mcp"
OPENID, OAUTH, JWKS = "/.well-known/openid-configuration", "/.well-known/oauth-authorization-server", "/keys"


@cache
def rsa_key(name: str, bits: int = 2048) -> rsa.RSAPrivateKey:
    """Return the key with a name and a size. It is made once, because that takes long."""
    del name
    return rsa.generate_private_key(public_exponent=65537, key_size=bits)


@cache
def ec_key(name: str) -> ec.EllipticCurvePrivateKey:
    """Return the key with a name."""
    del name
    return ec.generate_private_key(ec.SECP256R1())


def jwk(key: PrivateKeyTypes, key_id: str | None, **more: str) -> dict[str, Any]:
    """Return the public half of a key as an issuer publishes it."""
    algorithm = jwt.algorithms.get_default_algorithms()["RS256" if isinstance(key, rsa.RSAPrivateKey) else "ES256"]
    published: dict[str, Any] = algorithm.to_jwk(key.public_key(), as_dict=True)
    return published | more | ({} if key_id is None else {"kid": key_id})


def unsigned(header: Mapping[str, Any], claims: Mapping[str, Any]) -> str:
    """Return a token with an empty signature."""
    parts = (base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in (header, claims))
    return ".".join((*parts, ""))


class Issuer:
    """An issuer whose answers a test sets.

    Attributes:
        keys: The published keys.
        paths: The answers by path. Other paths are answered with 404.
        asked: The requested paths, in order.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.keys: list[dict[str, Any]] = [jwk(rsa_key("first"), "first")]
        self.paths: dict[str, Any] = {
            OPENID: {"issuer": url, "jwks_uri": f"{url}{JWKS}"},
            JWKS: {"keys": self.keys},
        }
        self.asked: list[str] = []
        self.may_answer = threading.Event()
        self.may_answer.set()

    def claims(self, **changed: Any) -> dict[str, Any]:
        """Return the claims of a valid token with changes. Claims that are changed to None are left out."""
        claims = {"iss": self.url, "aud": AUDIENCE, "sub": "zoë", "exp": int(time.time()) + 600} | changed
        return {name: value for name, value in claims.items() if value is not None}

    def token(
        self, key: PrivateKeyTypes | None = None, key_id: str | None = "first", algorithm: str = "RS256", **changed: Any
    ) -> str:
        """Return a signed token with these claims changed."""
        headers = {} if key_id is None else {"kid": key_id}
        signer: Any = key or rsa_key("first")
        content = json.dumps(self.claims(**changed)).encode()
        return jwt.PyJWS().encode(content, signer, algorithm=algorithm, headers=headers)


@contextmanager
def issuer_server() -> Iterator[Issuer]:
    """Yield a running issuer on a free port."""
    issuers: list[Issuer] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            issuer = issuers[0]
            issuer.asked.append(self.path)
            issuer.may_answer.wait(30)
            answer = issuer.paths.get(self.path)
            body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(404 if answer is None else 200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Do not log."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        issuers.append(Issuer(f"http://127.0.0.1:{server.server_address[1]}"))
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield issuers[0]
        finally:
            issuers[0].may_answer.set()
            server.shutdown()
            thread.join(10)
