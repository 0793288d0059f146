"""Plans to add, update or remove one entry in a client's configuration file."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from memoryos_mcp.cli.installer import entries, files, jsonc, toml
from memoryos_mcp.cli.installer.catalogue import Client
from memoryos_mcp.cli.installer.places import Location
from memoryos_mcp.errors import ClientFileError

# Number of backups to compare with the expected result of a removal.
_BACKUPS_TRIED = 10
_EDITORS = {"json": jsonc, "toml": toml}


class Action(StrEnum):
    """The change that a plan makes to an entry."""

    ADD = "add"
    UPDATE = "update"
    REMOVE = "remove"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Plan:
    """A planned change to a client's configuration file.

    ``before`` is the text of the file before the change, and ``after`` the text after the change.
    """

    location: Location
    action: Action
    file: files.ClientFile = field(repr=False)
    before: str = field(repr=False)
    after: str = field(repr=False)
    has_token: bool = False

    def carry_out(self, now: datetime) -> Path | None:
        """Write the file and return the path of its backup.

        Return None if nothing changes, or if the file did not exist.
        """
        if self.action is Action.NOTHING:
            return None
        is_private = self.location.scope == "user" or self.has_token
        return files.write(self.file, self.file.encoded(self.after), now, is_private=is_private)


def entries_of(client: Client, file: files.ClientFile) -> dict[str, Any]:
    """Return all entries in a client's configuration file. The keys are the names of the entries."""
    with _naming(file.path):
        content: Any = _EDITORS[client.form].read(file.text)
    for key in client.path:
        content = content.get(key) if isinstance(content, dict) else None
    return dict(content) if isinstance(content, dict) else {}


def plan_install(location: Location, server: entries.Local | entries.Remote, name: str, *, is_forced: bool) -> Plan:
    """Return a plan to add a server's entry to a client's configuration file, or to update the entry.

    Without ``is_forced``, raise `ClientFileError` if an existing entry with this name belongs to another program.
    """
    client, file = location.client, files.read(location.file)
    present = entries_of(client, file).get(name)
    if present is not None and not is_forced:
        check_ours(location, present, name, "replace")
    entry = entries.entry_of(client, server, present)
    if entry == present:
        return Plan(location, Action.NOTHING, file, file.text, file.text)
    with _naming(location.file):
        after = _EDITORS[client.form].with_member(file.text, (*client.path, name), entry)
    action = Action.ADD if present is None else Action.UPDATE
    has_token = isinstance(server, entries.Remote) and server.token is not None
    return Plan(location, action, file, file.text, after, has_token)


def plan_uninstall(location: Location, name: str, *, is_forced: bool) -> Plan:
    """Return a plan to remove an entry from a client's configuration file.

    If the file has not changed since the entry was added, the plan restores the previous file byte for byte. Without
    ``is_forced``, raise `ClientFileError` if the entry belongs to another program.
    """
    client, file = location.client, files.read(location.file)
    present = entries_of(client, file).get(name)
    if present is None:
        return Plan(location, Action.NOTHING, file, file.text, file.text)
    if not is_forced:
        check_ours(location, present, name, "remove")
    after = _text_before_install(location, file, present, name)
    if after is None:
        with _naming(location.file):
            after = _EDITORS[client.form].without_member(file.text, (*client.path, name))
    return Plan(location, Action.REMOVE, file, file.text, after)


def _text_before_install(location: Location, file: files.ClientFile, present: Any, name: str) -> str | None:
    """Return the text of the file before the entry was added, or None if this text is unknown.

    Backups contain earlier texts of the file. The function adds the entry to a copy of each of these texts, newest
    first. If the result equals the current file, the text of this backup is returned.
    """
    client, path = location.client, (*location.client.path, name)
    if not isinstance(present, Mapping):  # not written by this program
        return None
    for backup in files.backups(location.file)[:_BACKUPS_TRIED]:
        try:
            copy = files.read(backup)
            if entries_of(client, copy).get(name) is None:
                reinstalled = _EDITORS[client.form].with_member(copy.text, path, present)
                if copy.encoded(reinstalled) == file.content:
                    return copy.text
        except ClientFileError:
            continue
    return None


def check_ours(location: Location, present: Any, name: str, doing: str) -> None:
    """Raise `ClientFileError` if an entry belongs to another program.

    ``doing`` is the verb in the message, such as "replace".
    """
    kind = entries.kind_of(location.client, present)
    if kind is entries.Kind.OURS:
        return
    is_namesake = kind is entries.Kind.OTHER_PROJECT
    whose = "belongs to another project called memoryos-mcp" if is_namesake else "was not written by this program"
    msg = (
        f'{location.file} contains an entry "{name}" that {whose}; the entry was not changed. '
        f"Use --force to {doing} it, or choose another --name"
    )
    raise ClientFileError(msg)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Add ``path`` to the message of a `ClientFileError` from the ``with`` block."""
    try:
        yield
    except ClientFileError as error:
        if str(error).startswith(str(path)):
            raise
        msg = f"{path} was not changed: {error}"
        raise ClientFileError(msg) from error
