"""Settings of the HTTP server: transports, address, issuer of tokens and limits."""

from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_settings import BaseSettings

from memoryos_mcp.config.checks import host_names, lower_or_none, server_url, web_origins

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_PORT_MAX = 65_535


class HttpSettings(BaseSettings):
    """What the server needs to know to be reached over HTTP."""

    transport: Annotated[Literal["stdio", "http", "sse", "all"], BeforeValidator(lower_or_none)] = Field(
        default="stdio",
        description="How clients reach the server: stdin and stdout, Streamable HTTP, SSE, or (all) both of these.",
    )
    host: str = Field(default="127.0.0.1", min_length=1, description="Address to listen on; 0.0.0.0 is every one.")
    port: int = Field(default=8000, strict=True, ge=0, le=_PORT_MAX, description="Port to listen on; 0: any free one.")
    public_url: Annotated[str | None, AfterValidator(server_url)] = Field(
        default=None, description="Address under which clients reach the server through a proxy. Null: host and port."
    )
    allowed_hosts: Annotated[list[str], AfterValidator(host_names)] = Field(
        default=[], description="Further names that requests may address the server by."
    )
    allowed_origins: Annotated[list[str], AfterValidator(web_origins)] = Field(
        default=[], description="Origins of web pages that may call the server from a browser."
    )
    oidc_issuer: Annotated[str | None, AfterValidator(server_url)] = Field(
        default=None, description="OAuth or OIDC issuer whose JWTs are good here, beside the server's own tokens."
    )
    oidc_audience: str | None = Field(
        default=None, description="Audience that these have to be made out to. Null: `public_url` with /mcp."
    )
    oidc_jwks_url: Annotated[str | None, AfterValidator(server_url)] = Field(
        default=None, description="Where the issuer's keys are. Null: as its metadata says."
    )
    max_body_bytes: int = Field(
        default=4_194_304, strict=True, ge=1024, le=1_000_000_000, description="Largest body of a request, bytes."
    )
    requests_per_second: float = Field(
        default=50.0,
        strict=True,
        gt=0,
        le=1_000_000,
        description="Requests of one token in the long run; twice as many may come at once.",
    )
    max_requests_at_once: int = Field(
        default=256, strict=True, ge=1, le=100_000, description="Requests of all that are worked on at once."
    )
    max_sessions: int = Field(
        default=2000,
        strict=True,
        ge=1,
        le=1_000_000,
        description="Client sessions of all tokens that are open at once.",
    )
    max_sessions_per_token: int = Field(
        default=64,
        strict=True,
        ge=1,
        le=1_000_000,
        description="Client sessions of one token; one more ends the one that was idle for longest.",
    )
    session_idle_s: float = Field(
        default=1800.0,
        strict=True,
        gt=0,
        le=604_800,
        description="Idle time after which a client session ends, seconds.",
    )
    shutdown_grace_s: int = Field(
        default=10, strict=True, ge=0, le=3600, description="Longest wait for calls under way when stopping, seconds."
    )
    log_format: Annotated[Literal["text", "json"], BeforeValidator(lower_or_none)] = Field(
        default="text", description="Form of the lines on stderr; json has a request id in each."
    )

    @property
    def hosts(self) -> frozenset[str]:
        """Names that requests may address the server by."""
        own = {self.host.lower()} - {"0.0.0.0", "::"}  # noqa: S104 - removed here, not listened on
        public = {urlsplit(self.public_url).hostname or ""} if self.public_url else set()
        return frozenset({*own, *public, *self.allowed_hosts, *LOOPBACK})

    @property
    def is_only_for_this_machine(self) -> bool:
        """Whether only programs on this machine can reach the server, directly or through a proxy."""
        return self.hosts <= LOOPBACK and self.host.lower() in LOOPBACK

    @property
    def resource_url(self) -> str | None:
        """URL of the server's MCP endpoint, for which tokens may be issued; None without `public_url`."""
        return self.public_url.rstrip("/") + "/mcp" if self.public_url else None
