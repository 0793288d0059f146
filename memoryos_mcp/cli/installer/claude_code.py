"""Changes to Claude Code's user file, made by Claude Code's own command.

Running sessions rewrite the whole file again and again. The next rewrite loses changes of other programs, and two
writes at once have damaged the file. The client's command takes part in its locking. A project's file is small and
edited by people; it is changed directly, like any other.
"""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from memoryos_mcp.cli.installer import entries
from memoryos_mcp.cli.installer.catalogue import Client
from memoryos_mcp.errors import ArgumentError, ClientFileError

LIMIT_S = 60
# Keys of an entry that the client's command can express.
_SAID = frozenset({"type", "command", "args", "url", "headers"})


def add_command(client: Client, name: str, entry: Mapping[str, Any]) -> list[str]:
    """Return the command line that adds an entry for all of a user's projects."""
    if lost := sorted(key for key, value in entry.items() if value and key not in _SAID):
        msg = (
            f"the entry contains {', '.join(lost)}, which {client.title}'s command would lose; it was left as it is. "
            f"Note that down, take the entry out with {entries.typed(remove_command(client, name))}, run this command "
            "again and add it by hand"
        )
        raise ClientFileError(msg)
    start = [str(client.own_command), "mcp", "add", "--scope", "user", "--transport"]
    if "command" in entry:
        return [*start, "stdio", name, "--", entry["command"], *entry["args"]]
    headers = [f"{key}: {value}" for key, value in entry.get("headers", {}).items()]
    if any("Bearer" in header and "${" not in header for header in headers):
        problem = (
            f"{client.title} takes a token for all projects only on its command line, where others can read it; "
            "give --token-variable NAME, or --scope project"
        )
        raise ArgumentError(argument="--token", problem=problem)
    return [*start, "http", name, entry["url"], *(word for header in headers for word in ("--header", header))]


def remove_command(client: Client, name: str) -> list[str]:
    """Return the command line that removes an entry."""
    return [str(client.own_command), "mcp", "remove", "--scope", "user", name]


def run(client: Client, commands: Sequence[Sequence[str]]) -> None:
    """Run command lines of the client, one after the other."""
    program = shutil.which(str(client.own_command))
    if program is None:
        msg = (
            f"{client.title}'s command {client.own_command} is not on the PATH, and only that command may change its "
            f"file; type where it is installed: {_typed(commands)}"
        )
        raise ClientFileError(msg)
    for done_before, command in enumerate(commands):
        typed = _typed(commands[done_before:])
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
            msg = f"{program} could not be run ({type(error).__name__}); type: {typed}"
            raise ClientFileError(msg) from error
        if done.returncode:
            said = (done.stderr or done.stdout).strip().splitlines()
            msg = f"{program} refused ({said[0] if said else f'exit code {done.returncode}'}); type: {typed}"
            raise ClientFileError(msg)


def _typed(commands: Sequence[Sequence[str]]) -> str:
    return " && ".join(map(entries.typed, commands))
