"""Settings of the HTTP server, such as its address, token issuer and limits."""

from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, StrictFloat, StrictInt
from pydantic_settings import BaseSettings

from memoryos_mcp.config.checks import host_names, lower_or_none, server_url, web_origins

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_PORT_MAX = 65_535


class HttpSettings(BaseSettings):
    """The settings of the HTTP server."""

    transport: Annotated[Literal["stdio", "http", "sse", "all"], BeforeValidator(lower_or_none)] = Field(
        default="stdio",
        description="How clients connect to the server: `stdio` is stdin and stdout, `http` is Streamable HTTP, `sse` "
        "is HTTP with server-sent events, and `all` is both `http` and `sse`.",
    )
    host: str = Field(
        default="127.0.0.1",
        min_length=1,
        description="Address to listen on. 0.0.0.0 listens on all network interfaces.",
    )
    port: StrictInt = Field(default=8000, ge=0, le=_PORT_MAX, description="Port to listen on. 0 means any free port.")
    public_url: Annotated[str | None, AfterValidator(server_url)] = Field(
        default=None,
        description="URL at which clients reach the server if it is behind a proxy, like https://memory.example.org. "
        "Null means that clients use `host` and `port`.",
    )
    allowed_hosts: Annotated[list[str], AfterValidator(host_names)] = Field(
        default=[],
        description="Additional host names that are accepted in requests to the server, like memory.example.org.",
    )
    allowed_origins: Annotated[list[str], AfterValidator(web_origins)] = Field(
        default=[],
        description="Origins of web pages that may call the server from a browser, like https://app.example.org.",
    )
    oidc_issuer: Annotated[str | None, AfterValidator(server_url)] = Field(
        default=None,
        description="URL of an OAuth or OIDC issuer. The server accepts JWTs of this issuer in addition to its own "
        "tokens.",
    )
    oidc_audience: str | None = Field(
        default=None,
        description="Audience that JWTs of `oidc_issuer` must have. Null means `public_url` followed by /mcp.",
    )
    oidc_jwks_url: Annotated[str | None, AfterValidator(server_url)] = Field(
        default=None,
        description="URL of the issuer's public keys. Null means the URL in the issuer's metadata.",
    )
    max_body_bytes: StrictInt = Field(
        default=4_194_304, ge=1024, le=1_000_000_000, description="Maximum size of a request body, in bytes."
    )
    requests_per_second: Annotated[StrictFloat, Field(gt=0, le=1_000_000)] = Field(
        default=50.0,
        description="Maximum average number of requests per second per token, counted over all servers that use "
        "the same database. Up to twice this number may arrive at once.",
    )
    max_requests_at_once: Annotated[StrictInt, Field(ge=1, le=100_000)] = Field(
        default=256,
        description="Maximum number of requests that the server handles at the same time, for all clients together.",
    )
    max_sessions: Annotated[StrictInt, Field(ge=1, le=1_000_000)] = Field(
        default=2000,
        description="Maximum number of client sessions that are open at the same time, for all tokens together.",
    )
    max_sessions_per_token: Annotated[StrictInt, Field(ge=1, le=1_000_000)] = Field(
        default=64,
        description="Maximum number of client sessions that are open at the same time for one token. When another "
        "session is opened, the one that has been idle longest is closed.",
    )
    session_idle_s: StrictFloat = Field(
        default=1800.0, gt=0, le=604_800, description="Idle time after which a client session ends, in seconds."
    )
    shutdown_grace_s: StrictInt = Field(
        default=10,
        ge=0,
        le=3600,
        description="Maximum time to wait for running calls when the server stops, in seconds.",
    )
    log_format: Annotated[Literal["text", "json"], BeforeValidator(lower_or_none)] = Field(
        default="text",
        description="Format of the log on stderr. With `json`, each line about a request contains the request's id.",
    )

    @property
    def hosts(self) -> frozenset[str]:
        """Host names that are accepted in requests to the server, in lower case."""
        own = {self.host.lower()} - {"0.0.0.0", "::"}  # noqa: S104 - nothing listens on this address here
        public = {urlsplit(self.public_url).hostname or ""} if self.public_url else set()
        return frozenset({*own, *public, *self.allowed_hosts, *LOOPBACK})

    @property
    def is_only_for_this_machine(self) -> bool:
        """Whether only programs on this machine can reach the server, directly or through a proxy."""
        return self.hosts <= LOOPBACK and self.host.lower() in LOOPBACK

    @property
    def resource_url(self) -> str | None:
        """The public URL of the server's MCP endpoint; None if `public_url` is not set.

        JWTs can have this URL as their audience.
        """
        return self.public_url.rstrip("/") + "/mcp" if self.public_url else None
