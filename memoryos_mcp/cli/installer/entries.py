"""Makes the entry for this server in the configuration file of a client, and recognises existing entries."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from memoryos_mcp.cli.installer.catalogue import Client, Http
from memoryos_mcp.errors import ArgumentError

NAME = "memoryos"
# A requirement for the distribution of another project, which has the same name as our command.
_FOREIGN = re.compile(r"memoryos-mcp(?![-\w])(?:[=@<>~!\[].*)?")
_RUNNERS = frozenset({"uvx", "pipx", "uv"})


class Kind(StrEnum):
    """The program that an entry starts: this program, another project called memoryos-mcp, or any other program."""

    OURS = "ours"
    OTHER_PROJECT = "other project"
    FOREIGN = "foreign"


@dataclass(frozen=True, slots=True)
class Local:
    """A server that the client starts. ``command`` is an absolute path."""

    command: str
    args: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Remote:
    """A running server. Clients reach it over Streamable HTTP.

    ``token_variable`` is the name of an environment variable that contains the token.
    """

    url: str
    token: str | None = field(default=None, repr=False)
    token_variable: str | None = None


def this_command() -> tuple[str, ...]:
    """Return a command line that starts this program. It works in any folder and does not need PATH."""
    scripts = Path(sys.executable).parent
    script = scripts / ("memoryos-mcp.exe" if os.name == "nt" else "memoryos-mcp")
    if script.is_file() and os.access(script, os.X_OK):
        return (str(script),)
    # -P: the client's working folder may have files with the names of standard modules.
    return (sys.executable, "-P", "-m", "memoryos_mcp")


def entry_of(client: Client, server: Local | Remote, present: Any = None) -> dict[str, Any]:
    """Return the entry for a server in the form that a client requires.

    ``present`` is the existing entry, if any. Keys that the user has added to the existing entry are kept.
    """
    added = dict(present) if isinstance(present, Mapping) else dict(client.usual)
    if isinstance(server, Local):
        added = _without(added, {*client.fixed, *_remote_keys(client)})
        return {**client.fixed, "command": server.command, "args": list(server.args), **added}
    if client.http is None:
        raise ArgumentError(
            argument="--http", problem=f"{client.title} does not support HTTP: {client.instead_of_http}"
        )
    http = client.http
    added = _without(added, {"env", *client.fixed, *_remote_keys(client)})
    entry = {**http.fixed, http.url_key: server.url, **_token(client, http, server), **added}
    before = present if isinstance(present, Mapping) else {}
    # An existing token is kept only if the address is the same.
    is_same = before.get(http.url_key) == server.url and server.token is None and server.token_variable is None
    if is_same and http.variable_key is not None and http.variable_key in before:
        entry[http.variable_key] = before[http.variable_key]
    headers = {**_headers(before, http, with_token=is_same), **entry.get(http.headers_key, {})}
    return {**entry, http.headers_key: headers} if headers else entry


def _headers(entry: Mapping[str, Any], http: Http, *, with_token: bool) -> dict[str, Any]:
    """Return the headers in an entry. Without ``with_token``, the ``Authorization`` header is left out."""
    headers = entry.get(http.headers_key)
    if not isinstance(headers, Mapping):
        return {}
    return {key: value for key, value in headers.items() if with_token or key.lower() != "authorization"}


def _without(entry: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    """Return a copy of an entry without ``command``, ``args`` and ``keys``."""
    ours = {"command", "args", *keys}
    return {key: value for key, value in entry.items() if key not in ours}


def _remote_keys(client: Client) -> set[str]:
    if client.http is None:
        return set()
    http = client.http
    return {http.url_key, http.headers_key, *http.fixed, *([http.variable_key] if http.variable_key else [])}


def _token(client: Client, http: Http, server: Remote) -> dict[str, Any]:
    if server.token_variable is not None:
        if http.variable_key is not None:
            return {http.variable_key: server.token_variable}
        if http.reference is None:
            problem = f"{client.title} does not support environment variables; use --token"
            raise ArgumentError(argument="--token-variable", problem=problem)
        reference = http.reference.replace("NAME", server.token_variable)
        return {http.headers_key: {"Authorization": f"Bearer {reference}"}}
    if server.token is not None:
        return {http.headers_key: {"Authorization": f"Bearer {server.token}"}}
    return {}


def kind_of(client: Client, entry: Any) -> Kind:
    """Return the kind of an entry. Entries that were made by earlier installations of this program are also `OURS`."""
    if not isinstance(entry, Mapping):
        return Kind.FOREIGN
    words = _words(entry)
    if words:
        return _kind_of_command(words)
    if client.http is not None and isinstance(entry.get(client.http.url_key), str):
        known = _remote_keys(client) | client.fixed.keys() | client.usual.keys()
        return Kind.OURS if set(entry) <= known else Kind.FOREIGN
    return Kind.FOREIGN


def _kind_of_command(words: Sequence[str]) -> Kind:
    program = file_name(words[0])
    if program in _RUNNERS and any(_FOREIGN.fullmatch(word) for word in words[1:]) and "--from" not in words:
        return Kind.OTHER_PROJECT
    if program == "memoryos-mcp" and words[1:2] == ["serve"]:
        return Kind.OURS
    is_module = any(pair == ("-m", "memoryos_mcp") for pair in pairwise(words))
    return Kind.OURS if is_module or ("memoryos-mcp-server" in " ".join(words)) else Kind.FOREIGN


def _words(entry: Mapping[str, Any]) -> list[str]:
    """Return the words of the command line in an entry, or an empty list if there is no command line."""
    command, args = entry.get("command"), entry.get("args", [])
    if not isinstance(command, str) or not command.strip():
        return []
    return [command, *(word for word in args if isinstance(word, str))] if isinstance(args, list) else [command]


def file_name(command: str) -> str:
    """Return the name of a program in lower case, without its folder and without ``.exe`` or ``.cmd``.

    ``command`` can be a path of Windows, Linux or macOS.
    """
    return PureWindowsPath(PurePosixPath(command).name).name.lower().removesuffix(".exe").removesuffix(".cmd")


def problem_of(entry: Mapping[str, Any]) -> str | None:
    """Return the reason why a client cannot run the command line in an entry.

    Return None if the client can run it, or if the entry has no command line.
    """
    words = _words(entry)
    if not words:
        return None
    command = Path(words[0])
    if not command.is_absolute():
        return f"its command {words[0]} is not an absolute path, so a desktop client cannot find it"
    if not command.is_file():
        return f"its command {command} no longer exists"
    return None if os.access(command, os.X_OK) else f"its command {command} is not executable"


def quoted(words: Sequence[str]) -> str:
    """Return a command line as text, quoted for the shell."""
    return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)
