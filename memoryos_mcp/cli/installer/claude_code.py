"""Changes the user's configuration file of Claude Code with the command ``claude mcp``.

This command locks the file. Without a lock, changes could be lost, because running sessions of Claude Code often
rewrite the whole file. Simultaneous writes could also damage the file. The file of a project is changed without this
command.
"""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from memoryos_mcp.cli.installer import entries
from memoryos_mcp.cli.installer.catalogue import Client
from memoryos_mcp.errors import ArgumentError, ClientFileError

LIMIT_S = 60
# Keys of an entry that the client's command can write.
_EXPRESSIBLE = frozenset({"type", "command", "args", "url", "headers"})


def add_command(client: Client, name: str, entry: Mapping[str, Any]) -> list[str]:
    """Return the command line that adds an entry for all projects of a user."""
    if lost := sorted(key for key, value in entry.items() if value and key not in _EXPRESSIBLE):
        msg = (
            f"{client.title}'s command cannot write these keys of the entry: {', '.join(lost)}; the entry was not "
            f"changed. Copy these keys. Remove the entry with: {entries.quoted(remove_command(client, name))}. Run "
            "memoryos-mcp install again. Add the keys to the new entry by hand"
        )
        raise ClientFileError(msg)
    start = [str(client.own_command), "mcp", "add", "--scope", "user", "--transport"]
    if "command" in entry:
        return [*start, "stdio", name, "--", entry["command"], *entry["args"]]
    headers = [f"{key}: {value}" for key, value in entry.get("headers", {}).items()]
    if any("Bearer" in header and "${" not in header for header in headers):
        problem = (
            f"{client.title} can store this token for all projects only if the token is in a command line, which "
            "other accounts of this machine can read; use --token-variable NAME or --scope project"
        )
        raise ArgumentError(argument="--token", problem=problem)
    return [*start, "http", name, entry["url"], *(word for header in headers for word in ("--header", header))]


def remove_command(client: Client, name: str) -> list[str]:
    """Return the command line that removes an entry."""
    return [str(client.own_command), "mcp", "remove", "--scope", "user", name]


def run(client: Client, commands: Sequence[Sequence[str]]) -> None:
    """Run command lines of the client one after the other. Raise `ClientFileError` if one of them fails."""
    program = shutil.which(str(client.own_command))
    if program is None:
        msg = (
            f"only the command {client.own_command} can change {client.title}'s file, and it is not on the PATH; "
            f"install it or add its folder to the PATH, then run: {_quoted(commands)}"
        )
        raise ClientFileError(msg)
    for index, command in enumerate(commands):
        remaining = _quoted(commands[index:])
        try:
            done = subprocess.run(  # noqa: S603 - no shell, and the words are ours
                [program, *command[1:]],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=LIMIT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            msg = f"{program} could not be run ({type(error).__name__}); run this yourself: {remaining}"
            raise ClientFileError(msg) from error
        if done.returncode:
            output = (done.stderr or done.stdout).strip().splitlines()
            reason = output[0] if output else f"exit code {done.returncode}"
            msg = f"{program} failed ({reason}); run this yourself: {remaining}"
            raise ClientFileError(msg)


def _quoted(commands: Sequence[Sequence[str]]) -> str:
    return " && ".join(map(entries.quoted, commands))
