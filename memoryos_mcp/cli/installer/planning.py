"""Changes of a client's file, planned and carried out: one entry is added, updated or removed."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from memoryos_mcp.cli.installer import entries, files, jsonc, toml
from memoryos_mcp.cli.installer.catalogue import Client
from memoryos_mcp.cli.installer.places import Found
from memoryos_mcp.errors import ClientFileError

# How many backups are compared with the expected result of a removal.
_BACKUPS_TRIED = 10
_EDITORS = {"json": jsonc, "toml": toml}


class Action(StrEnum):
    """What a change does."""

    ADD = "add"
    UPDATE = "update"
    REMOVE = "remove"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Plan:
    """A change of one file, not made yet; ``before`` and ``after`` are the file's texts."""

    found: Found
    action: Action
    file: files.ClientFile = field(repr=False)
    before: str = field(repr=False)
    after: str = field(repr=False)
    has_token: bool = False

    def carry_out(self, now: datetime) -> Path | None:
        """Write the file and return its backup; None if there is nothing to write, or there was no file."""
        if self.action is Action.NOTHING:
            return None
        is_private = self.found.scope == "user" or self.has_token
        return files.write(self.file, self.file.encoded(self.after), now, is_private=is_private)


def entries_of(client: Client, file: files.ClientFile) -> dict[str, Any]:
    """Return all entries of a client's file by name."""
    with _naming(file.path):
        held: Any = _EDITORS[client.form].read(file.text)
    for key in client.path:
        held = held.get(key) if isinstance(held, dict) else None
    return dict(held) if isinstance(held, dict) else {}


def plan_install(found: Found, server: entries.Local | entries.Remote, name: str, *, is_forced: bool) -> Plan:
    """Return the change that adds or updates a server in a client's file."""
    client, file = found.client, files.read(found.file)
    present = entries_of(client, file).get(name)
    if present is not None and not is_forced:
        check_ours(found, present, name, "replace")
    entry = entries.entry_of(client, server, present)
    if entry == present:
        return Plan(found, Action.NOTHING, file, file.text, file.text)
    with _naming(found.file):
        after = _EDITORS[client.form].with_member(file.text, (*client.path, name), entry)
    action = Action.ADD if present is None else Action.UPDATE
    has_token = isinstance(server, entries.Remote) and server.token is not None
    return Plan(found, action, file, file.text, after, has_token)


def plan_uninstall(found: Found, name: str, *, is_forced: bool) -> Plan:
    """Return the change that removes a server from a client's file.

    If nothing else has changed since the server was added, the file becomes byte for byte what it was before.
    """
    client, file = found.client, files.read(found.file)
    present = entries_of(client, file).get(name)
    if present is None:
        return Plan(found, Action.NOTHING, file, file.text, file.text)
    if not is_forced:
        check_ours(found, present, name, "take out")
    after = _before_it(found, file, present, name)
    if after is None:
        with _naming(found.file):
            after = _EDITORS[client.form].without_member(file.text, (*client.path, name))
    return Plan(found, Action.REMOVE, file, file.text, after)


def _before_it(found: Found, file: files.ClientFile, present: Any, name: str) -> str | None:
    """Return the text of a backup that differs from the file only by the entry; None if there is none."""
    client, path = found.client, (*found.client.path, name)
    if not isinstance(present, Mapping):  # not written by this program
        return None
    for backup in files.backups(found.file)[:_BACKUPS_TRIED]:
        try:
            copy = files.read(backup)
            if entries_of(client, copy).get(name) is None:
                again = _EDITORS[client.form].with_member(copy.text, path, present)
                if copy.encoded(again) == file.content:
                    return copy.text
        except ClientFileError:
            continue
    return None


def check_ours(found: Found, present: Any, name: str, doing: str) -> None:
    """Refuse to touch a foreign entry."""
    kind = entries.kind_of(found.client, present)
    if kind is entries.Kind.OURS:
        return
    whose = (
        "belongs to another project called memoryos-mcp"
        if kind is entries.Kind.OTHER_PROJECT
        else "was not written by this program"
    )
    msg = (
        f'{found.file} has an entry "{name}" that {whose}; it was left as it is. '
        f"Give --force to {doing} it, or --name for another name"
    )
    raise ClientFileError(msg)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Add the path of the file to errors about its text."""
    try:
        yield
    except ClientFileError as error:
        if str(error).startswith(str(path)):
            raise
        msg = f"{path} was left as it is: {error}"
        raise ClientFileError(msg) from error
