"""Plans to add hooks to a client's settings, or to remove them. Hooks are commands that a client runs at events."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memoryos_mcp.cli.installer import entries, files, jsonc
from memoryos_mcp.cli.installer.catalogue import Scope
from memoryos_mcp.cli.installer.entries import Local
from memoryos_mcp.cli.installer.places import Machine
from memoryos_mcp.errors import ClientFileError
from memoryos_mcp.server.hooks.dialects import EVENTS

# Seconds after which a client ends a hook; a hook of ours is over much earlier.
TIMEOUT_S = 10
_BACKUPS_TRIED = 10


@dataclass(frozen=True, slots=True)
class HookFile:
    """The paths of the files that contain a client's hooks, and the form of the entries.

    Attributes:
        user: Path of the file for all projects. It begins with the name of a base folder, as in `Place.folder`.
        project: Path of a project's file, relative to the project's folder.
        is_grouped: Whether each entry is a group that contains a list of hooks.
        timeout: Time after which the client stops a hook, in the client's unit.
        version: Value of the file's member ``version``. None if the file has no such member.
        then: What the user has to do so that the hooks run.
    """

    user: str
    project: str
    then: str
    is_grouped: bool = True
    timeout: int = TIMEOUT_S
    version: int | None = None


HOOK_FILES: Mapping[str, HookFile] = {
    "claude-code": HookFile(
        "{claude}/.claude/settings.json", ".claude/settings.json", "restart Claude Code; /hooks shows the hooks"
    ),
    "codex": HookFile("{codex}/hooks.json", ".codex/hooks.json", "restart Codex, and trust the hooks in /hooks"),
    "gemini": HookFile(
        "{home}/.gemini/settings.json",
        ".gemini/settings.json",
        "restart Gemini CLI; /hooks panel shows the hooks",
        timeout=TIMEOUT_S * 1000,
    ),
    "cursor": HookFile(
        "{home}/.cursor/hooks.json",
        ".cursor/hooks.json",
        "restart Cursor; Settings, Hooks shows the hooks",
        is_grouped=False,
        version=1,
    ),
}


@dataclass(frozen=True, slots=True)
class TextPlan:
    """A planned change to the text of a client's file. ``after`` is the new text."""

    path: Path
    file: files.ClientFile
    after: str

    @property
    def changes(self) -> bool:
        """Whether the plan changes the text."""
        return self.after != self.file.text


def file_of(client: str, scope: Scope, machine: Machine) -> Path:
    """Return the path of the file that contains a client's hooks."""
    found = HOOK_FILES[client]
    if scope == "project":
        return machine.project / found.project
    base, _, rest = found.user.partition("/")
    if client == "claude-code" and machine.base("claude") != machine.home:
        rest = rest.removeprefix(".claude/")
    return machine.base(base.strip("{}")) / rest


def plan_install(client: str, path: Path, server: Local) -> TextPlan:
    """Return a plan to add this program's hooks to a client's file, or to update them."""
    file = files.read(path)
    return TextPlan(path, file, _installed(client, _without_ours(client, file.text, is_kept=True), server))


def plan_uninstall(client: str, path: Path) -> TextPlan:
    """Return a plan to remove this program's hooks from a client's file.

    If the file has not changed since the hooks were added, the plan restores the previous file byte for byte.
    """
    file = files.read(path)
    after = _without_ours(client, file.text)
    if after != file.text:
        after = _text_before(client, file, after)
    return TextPlan(path, file, after)


def has_hooks(text: str) -> bool:
    """Return whether the text of a client's file contains hooks of this program."""
    content = jsonc.read(text).get("hooks")
    lists = content.values() if isinstance(content, Mapping) else ()
    return any(_is_ours(item) for items in lists if isinstance(items, list) for item in items)


def _installed(client: str, text: str, server: Local) -> str:
    form = HOOK_FILES[client]
    if form.version is not None and "version" not in jsonc.read(text):
        text = jsonc.with_member(text, ("version",), form.version)
    for event, name in EVENTS[client].items():
        # The first word of ``args`` is ``serve``; the others are options.
        words = [server.command, *server.args[: server.args.index("serve")], "hook", event, "--client", client]
        line = entries.quoted([*words, *server.args[server.args.index("serve") + 1 :]])
        hook: dict[str, Any] = {"command": line, "timeout": form.timeout}
        entry = {"hooks": [{"type": "command", **hook}]} if form.is_grouped else hook
        path = ("hooks", name)
        items = _items(text, name)
        ours = [place for place, item in enumerate(items) if _is_ours(item)]
        if not ours:
            text = jsonc.with_item(text, path, entry)
        elif items[ours[0]] != entry:
            new = [entry if place == ours[0] else item for place, item in enumerate(items)]
            text = jsonc.with_member(text, path, new)
    return text


def _items(text: str, name: str) -> list[Any]:
    hooks = jsonc.read(text).get("hooks")
    items = hooks.get(name) if isinstance(hooks, Mapping) else None
    return items if isinstance(items, list) else []


def _without_ours(client: str, text: str, *, is_kept: bool = False) -> str:
    """Return the text without the hooks of this program.

    With ``is_kept``, hooks for the events in `EVENTS` are kept, because the caller updates them in place. Hooks for
    other events, which an earlier version may have added, are still removed.
    """
    hooks = jsonc.read(text).get("hooks")
    if not isinstance(hooks, Mapping):
        return text
    for name in hooks:
        if is_kept and name in EVENTS[client].values():
            continue
        path, items = ("hooks", name), _items(text, name)
        for place in reversed([place for place, item in enumerate(items) if _is_ours(item)]):
            is_last = len(_items(text, name)) == 1
            text = jsonc.without_member(text, path) if is_last else jsonc.without_item(text, path, place)
    is_empty = jsonc.read(text).get("hooks") == {}
    return jsonc.without_member(text, ("hooks",)) if is_empty and hooks else text


def _text_before(client: str, file: files.ClientFile, otherwise: str) -> str:
    """Return the file's text before the hooks were added, or ``otherwise`` if no backup contains this text."""
    server = _server_in(client, file.text)
    for backup in files.backups(file.path)[:_BACKUPS_TRIED] if server else ():
        try:
            copy = files.read(backup)
            if not has_hooks(copy.text) and _installed(client, copy.text, server) == file.text:  # type: ignore[arg-type]
                return copy.text
        except ClientFileError:
            continue
    return otherwise


def _server_in(client: str, text: str) -> Local | None:
    """Return the server that this program's hooks in a text use, or None if the text contains no such hooks."""
    import shlex

    for item in _items(text, EVENTS[client]["prompt"]):
        if _is_ours(item):
            words = shlex.split(_commands(item)[0])
            if "hook" in words:
                at = words.index("hook")
                return Local(words[0], (*words[1:at], "serve", *words[at + 4 :]))
    return None


def _commands(item: Any) -> list[str]:
    """Return the command lines of an entry or of a group of entries."""
    if not isinstance(item, Mapping):
        return []
    inner = item.get("hooks")
    found = inner if isinstance(inner, list) else [item]
    return [str(each.get("command", "")) for each in found if isinstance(each, Mapping)]


def _is_ours(item: Any) -> bool:
    commands = _commands(item)
    return bool(commands) and all(
        ("memoryos-mcp" in command or "memoryos_mcp" in command) and " hook " in command for command in commands
    )
