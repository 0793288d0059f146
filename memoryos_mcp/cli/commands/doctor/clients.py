"""Checks whether the MCP clients on this machine can start or reach the server."""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx2

from memoryos_mcp.cli.commands.doctor.checks import Check, Verdict, failed_by, parts, passed, warned
from memoryos_mcp.cli.commands.installing import clients_here
from memoryos_mcp.cli.installer import entries, files, hooks, planning
from memoryos_mcp.cli.installer.catalogue import Http
from memoryos_mcp.cli.installer.places import Location, Machine
from memoryos_mcp.config.http import LOOPBACK
from memoryos_mcp.config.masks import without_credentials
from memoryos_mcp.errors import ClientFileError

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
# Clients' files refer to variables as ${NAME} or ${env:NAME}. Clients prompt for other names in braces.
_VARIABLE = re.compile(r"\$\{(?:env:)?([^}]+)\}")
_SESSION = "mcp-session-id"


@dataclass(frozen=True, slots=True)
class _Problem:
    """A reason why a client cannot start or reach the server.

    If ``fix`` is None, the user should run ``memoryos-mcp install`` again.
    """

    found: str
    fix: str | None = None
    verdict: Verdict = Verdict.FAIL


async def check_clients() -> AsyncIterator[Check]:
    """Check the configuration file of each installed client, and yield the results.

    If no client is installed, yield one result that says so.
    """
    try:
        here = clients_here(Machine.this())
    except ClientFileError as error:  # only a warning, because a server in a container needs no clients
        yield warned("clients", *parts(error))
        return
    if not here:
        yield passed(
            "clients",
            "no MCP client was found on this machine",
            "docs/clients.md explains how to configure one by hand",
        )
    for location in here:
        yield await _check(location)


async def _check(location: Location) -> Check:
    client, file = location.client, location.file
    name = f"client_{client.name}"
    try:
        listed = planning.entries_of(client, files.read(file))
    except ClientFileError as error:
        return failed_by(name, error)
    install = f"memoryos-mcp install --client {client.name}"
    ours, others = dict[str, Mapping[str, Any]](), list[str]()
    for key, entry in listed.items():
        kind = entries.kind_of(client, entry)
        if kind is entries.Kind.OTHER_PROJECT:
            others.append(key)
        elif kind is entries.Kind.OURS and (key == entries.NAME or isinstance(entry.get("command"), str)):
            ours[key] = entry
    for key, entry in ours.items():
        problem = await _problem_of(entry, client.http)
        if problem is not None:
            option = "" if key == entries.NAME else f" --name {key}"
            fix = problem.fix or f"{install}{option}"
            return Check(name=name, verdict=problem.verdict, found=f'"{key}": {problem.found}', fix=fix)
    if others:
        text = f'"{others[0]}" starts a different project, which is also called memoryos-mcp'
        return warned(name, text, f"remove it from {file}, then run {install}")
    if ours:
        return passed(name, f"the server is configured in {file}{_hooks_of(location)}")
    if entries.NAME in listed:
        text = f'"{entries.NAME}" in {file} was not added by this program'
        return warned(
            name, text, f"to replace it, run {install} --force; to add the server under another name, use --name NAME"
        )
    return passed(name, f"the server is not configured in {file}", f"to add the server, run {install}")


def _hooks_of(location: Location) -> str:
    """Return ", with hooks" if a client has hooks of this program, else an empty string."""
    if location.client.name not in hooks.HOOK_FILES:
        return ""
    path = hooks.file_of(location.client.name, "user", Machine.this())
    try:
        return ", with hooks" if hooks.has_hooks(files.read(path).text) else ""
    except ClientFileError:
        return ""


async def _problem_of(entry: Mapping[str, Any], http: Http | None) -> _Problem | None:
    if http is not None and "command" not in entry:
        return await _reaching(entry, http, os.environ)
    problem = entries.problem_of(entry)
    return None if problem is None else _Problem(problem)


async def _reaching(entry: Mapping[str, Any], http: Http, environment: Mapping[str, str]) -> _Problem | None:
    """Return the reason why a client cannot reach its configured server, or None if the client can reach the server.

    ``entry`` is the server's entry in the client's configuration file. The token in the entry is sent only to the
    address in the entry.
    """
    url = str(entry[http.url_key])
    headers, missing = _headers(entry, http, environment)
    try:
        address = without_credentials(url)
        async with asyncio.timeout(TIMEOUT_S):
            status, is_mcp = await _greet(url, headers)
    except (httpx2.InvalidURL, httpx2.UnsupportedProtocol, ValueError):
        return _Problem("its address is not valid", "run install again with a valid --http URL")
    except (TimeoutError, httpx2.HTTPError):
        return _Problem(
            f"no server replied at {address}",
            "start the server there with memoryos-mcp serve --transport http, "
            "or run install again with the correct --http URL",
        )
    if status in {401, 403} and missing:
        # The client may be started with other environment variables.
        return _Problem(
            f"the server at {address} requires a token, and the variable {missing[0]} with the token is not set here",
            f"set {missing[0]} in the client's environment",
            Verdict.WARN,
        )
    if status in {401, 403}:
        return _Problem(
            f"the server at {address} does not accept the entry's token (HTTP {status})",
            "make a token with memoryos-mcp token add USER where the server runs, "
            "and run install again with --http URL --token -",
        )
    if status != httpx2.codes.OK or not is_mcp:
        return _Problem(
            f"the server at {address} is not an MCP server (HTTP {status})",
            "run install again with the correct --http URL; the usual path is /mcp",
        )
    return None


def _headers(entry: Mapping[str, Any], http: Http, environment: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return an entry's HTTP headers, and the names of the unset environment variables in these headers.

    Each environment variable in a header is replaced with its value. A header that contains an unset variable is left
    out.
    """
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
    """Send one request to an address. Return the HTTP status, and whether the reply is from an MCP server."""
    parts = urlsplit(url)
    # Requests to an address on this machine do not use a proxy.
    is_remote = parts.hostname not in LOOPBACK
    async with httpx2.AsyncClient(headers=headers, timeout=TIMEOUT_S, trust_env=is_remote) as client:
        if parts.path.rstrip("/").endswith("/sse"):
            async with client.stream("GET", url, headers={"accept": "text/event-stream"}) as stream:
                return stream.status_code, stream.headers.get("content-type", "").startswith("text/event-stream")
        reply = await client.post(url, json=_HELLO, headers=_HEADERS)
        if session := reply.headers.get(_SESSION):
            await client.delete(url, headers={_SESSION: session})
        return reply.status_code, '"protocolVersion"' in reply.text
