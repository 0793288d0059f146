"""Check of a client's HTTP entry: whether the server at its address answers, and accepts its token."""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx2

from memoryos_mcp.cli.commands.doctor.checks import Verdict
from memoryos_mcp.cli.installer.catalogue import Http
from memoryos_mcp.config.http import LOOPBACK
from memoryos_mcp.config.masks import without_credentials

TIMEOUT_S = 5.0

_HEADERS = {"accept": "application/json, text/event-stream"}
_HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "memoryos-mcp doctor", "version": "1"},
    },
}
# The forms in clients' files are ${NAME} and ${env:NAME}; clients ask their user for other names in braces.
_VARIABLE = re.compile(r"\$\{(?:env:)?([^}]+)\}")
_SESSION = "mcp-session-id"


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a client does not start or reach a server.

    Attributes:
        fix: What to do; None if the entry should be made again.
    """

    found: str
    fix: str | None = None
    verdict: Verdict = Verdict.FAIL


async def reaching(entry: Mapping[str, Any], http: Http, environment: Mapping[str, str]) -> Trouble | None:
    """Return why a client does not reach the server of its entry; None if it does.

    The request is the one that the client would send: the token goes to the address in the same entry.

    Args:
        entry: An entry with an address.
        http: The keys of address and headers in the entry.
        environment: Values of the variables in the entry.
    """
    url = str(entry[http.url_key])
    headers, missing = _headers(entry, http, environment)
    try:
        address = without_credentials(url)
        async with asyncio.timeout(TIMEOUT_S):
            status, is_mcp = await _greet(url, headers)
    except (httpx2.InvalidURL, httpx2.UnsupportedProtocol, ValueError):
        return Trouble("its address is not valid", "correct it with --http URL")
    except (TimeoutError, httpx2.HTTPError):
        return Trouble(
            f"no server answers at {address}",
            "start it there with memoryos-mcp serve --transport http, or correct the address with --http URL",
        )
    if status in {401, 403} and missing:
        # The variable may be set where the client runs.
        return Trouble(
            f"the server at {address} asks for a token, and the variable for it, {missing[0]}, is not set here",
            f"set {missing[0]} where the client is started",
            Verdict.WARN,
        )
    if status in {401, 403}:
        return Trouble(
            f"the server at {address} does not accept the entry's token (HTTP {status})",
            "memoryos-mcp token add USER makes one where the server runs; give it with --http URL --token -",
        )
    if status != httpx2.codes.OK or not is_mcp:
        return Trouble(
            f"what answers at {address} is not an MCP server (HTTP {status})",
            "correct the address with --http URL; its path is /mcp unless a proxy says otherwise",
        )
    return None


def _headers(entry: Mapping[str, Any], http: Http, environment: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return the entry's headers with their variables filled in, and the names of variables that are not set."""
    written = entry.get(http.headers_key)
    headers = {str(key): str(value) for key, value in written.items()} if isinstance(written, Mapping) else {}
    if http.variable_key is not None and isinstance(variable := entry.get(http.variable_key), str):
        headers["Authorization"] = f"Bearer ${{{variable}}}"
    named = [name for value in headers.values() for name in _VARIABLE.findall(value)]
    missing = [name for name in named if not environment.get(name)]
    filled = {
        key: _VARIABLE.sub(lambda found: environment[found[1]], value)
        for key, value in headers.items()
        if not {*_VARIABLE.findall(value)} & {*missing}
    }
    return filled, missing


async def _greet(url: str, headers: Mapping[str, str]) -> tuple[int, bool]:
    """Return the HTTP status of a server's answer, and whether an MCP server sent it."""
    parts = urlsplit(url)
    # Addresses on this machine are not requested through a proxy from the environment.
    is_elsewhere = parts.hostname not in LOOPBACK
    async with httpx2.AsyncClient(headers=headers, timeout=TIMEOUT_S, trust_env=is_elsewhere) as client:
        if parts.path.rstrip("/").endswith("/sse"):
            async with client.stream("GET", url, headers={"accept": "text/event-stream"}) as stream:
                return stream.status_code, stream.headers.get("content-type", "").startswith("text/event-stream")
        reply = await client.post(url, json=_HELLO, headers=_HEADERS)
        if session := reply.headers.get(_SESSION):
            await client.delete(url, headers={_SESSION: session})
        return reply.status_code, '"protocolVersion"' in reply.text
