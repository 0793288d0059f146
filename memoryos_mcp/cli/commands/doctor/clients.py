"""Checks of the MCP clients on this machine: whether they can start or reach the server."""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx2

from memoryos_mcp.cli.commands.doctor.checks import Check, Verdict, failed, parts, passed, warned
from memoryos_mcp.cli.commands.installing import clients_here
from memoryos_mcp.cli.installer import entries, files, planning
from memoryos_mcp.cli.installer.catalogue import Http
from memoryos_mcp.cli.installer.places import Found, Machine
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
# The forms in clients' files are ${NAME} and ${env:NAME}; clients ask their user for other names in braces.
_VARIABLE = re.compile(r"\$\{(?:env:)?([^}]+)\}")
_SESSION = "mcp-session-id"


@dataclass(frozen=True, slots=True)
class _Trouble:
    """Why a client does not start or reach a server; without a ``fix`` the entry should be made again."""

    found: str
    fix: str | None = None
    verdict: Verdict = Verdict.FAIL


async def check_clients() -> AsyncIterator[Check]:
    """Yield a check for each client's file, or a single one if there are no clients."""
    try:
        here = clients_here(Machine.this())
    except ClientFileError as error:  # only a warning: a server in a container needs no clients here
        yield warned("clients", *parts(error))
        return
    if not here:
        yield passed(
            "clients", "no MCP client was found on this machine", "docs/clients.md explains how to add one by hand"
        )
    for found_file in here:
        yield await _check(found_file)


async def _check(found: Found) -> Check:
    name = f"client_{found.client.name}"
    try:
        listed = planning.entries_of(found.client, files.read(found.file))
    except ClientFileError as error:
        return failed(name, error)
    again = f"memoryos-mcp install --client {found.client.name}"
    ours, others = dict[str, Mapping[str, Any]](), list[str]()
    for key, entry in listed.items():
        kind = entries.kind_of(found.client, entry)
        if kind is entries.Kind.OTHER_PROJECT:
            others.append(key)
        elif kind is entries.Kind.OURS and (key == entries.NAME or isinstance(entry.get("command"), str)):
            ours[key] = entry
    for key, entry in ours.items():
        trouble = await _trouble_of(entry, found.client.http)
        if trouble is not None:
            option = "" if key == entries.NAME else f" --name {key}"
            fix = trouble.fix or f"{again}{option}"
            return Check(name=name, verdict=trouble.verdict, found=f'"{key}": {trouble.found}', fix=fix)
    if others:
        told = f'"{others[0]}" starts another project whose package is called memoryos-mcp'
        return warned(name, told, f"take it out of {found.file}, then {again}")
    if ours:
        return passed(name, f"added in {found.file}")
    if entries.NAME in listed:
        told = f'"{entries.NAME}" in {found.file} is not an entry of this program'
        return warned(name, told, f"{again} --force replaces it, --name NAME adds one")
    return passed(name, f"not added in {found.file}", f"{again} adds it")


async def _trouble_of(entry: Mapping[str, Any], http: Http | None) -> _Trouble | None:
    if http is not None and "command" not in entry:
        return await _reaching(entry, http, os.environ)
    problem = entries.problem_of(entry)
    return None if problem is None else _Trouble(problem)


async def _reaching(entry: Mapping[str, Any], http: Http, environment: Mapping[str, str]) -> _Trouble | None:
    """Return why a client does not reach the server of its entry; None if it does.

    The request is the one that the client would send: the token goes to the address in the same entry.
    """
    url = str(entry[http.url_key])
    headers, missing = _headers(entry, http, environment)
    try:
        address = without_credentials(url)
        async with asyncio.timeout(TIMEOUT_S):
            status, is_mcp = await _greet(url, headers)
    except (httpx2.InvalidURL, httpx2.UnsupportedProtocol, ValueError):
        return _Trouble("its address is not valid", "correct it with --http URL")
    except (TimeoutError, httpx2.HTTPError):
        return _Trouble(
            f"no server answers at {address}",
            "start it there with memoryos-mcp serve --transport http, or correct the address with --http URL",
        )
    if status in {401, 403} and missing:
        # The variable may be set where the client runs.
        return _Trouble(
            f"the server at {address} asks for a token, and the variable for it, {missing[0]}, is not set here",
            f"set {missing[0]} where the client is started",
            Verdict.WARN,
        )
    if status in {401, 403}:
        return _Trouble(
            f"the server at {address} does not accept the entry's token (HTTP {status})",
            "memoryos-mcp token add USER makes one where the server runs; give it with --http URL --token -",
        )
    if status != httpx2.codes.OK or not is_mcp:
        return _Trouble(
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
