"""The arguments of the commands install and uninstall, and functions that print their results."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path

import click

from memoryos_mcp.cli.installer import entries
from memoryos_mcp.cli.installer.catalogue import Client, Scope
from memoryos_mcp.cli.installer.planning import Action
from memoryos_mcp.cli.terminal import note, plain, print_report
from memoryos_mcp.text.secrets import redact

ALL = "all"
LONG_LINE_CHARS = 400
MANY_LINES = 10_000
_TOKEN = re.compile(r"((?i:bearer) )(?!\$)(?:\\.|[^\"\\\s])+")
# Values whose names suggest that they are secrets of other servers. References to variables are not secrets.
_SECRET = re.compile(
    r"""((?i:token|key|secret|passw(?:or)?d|passphrase|pat|authorization|cookie|credentials?)["']?\s*[:=]\s*)
        (?:"(?!(?i:bearer)\ |\$)(?:\\.|[^"\\])+"|'(?!(?i:bearer)\ |\$)[^'\n]+')""",
    re.VERBOSE,
)
_COLOURS = {"+": "green", "-": "red", "@": "cyan"}
_DONE = {
    Action.ADD: ("added", "would be added"),
    Action.UPDATE: ("updated", "would be updated"),
    Action.REMOVE: ("removed", "would be removed"),
    Action.NOTHING: ("nothing to do", "nothing to do"),
}


@dataclass(frozen=True, slots=True)
class Request:
    """The arguments of the command install or uninstall. If ``scope`` is None, the scope is ``user``."""

    clients: Sequence[str]
    scope: Scope | None = None
    name: str = entries.NAME
    is_dry_run: bool = False
    is_forced: bool = False
    as_json: bool = False
    has_hooks: bool = False
    has_rules: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of changing one client's configuration file. ``action`` is None after an error.

    ``change`` is a diff of the file, or the commands with which the client itself changes the file. All tokens in
    ``change`` are masked.
    """

    client: Client
    file: Path | None
    action: Action | None
    change: str = ""
    backup: Path | None = None
    problem: str | None = None
    is_client_there: bool = True
    also: str | None = None
    next_step: str | None = None

    @property
    def then(self) -> str | None:
        """What the user has to do after the change, such as restarting the client. None if nothing was changed."""
        if self.action in (None, Action.NOTHING):
            return None
        if self.also is not None:
            return self.next_step
        if self.action is Action.REMOVE:
            return f"if {self.client.title} is running, restart it to stop the server"
        return self.client.then


def shown_change(file: Path, before: str, after: str) -> str:
    """Return a diff of a file's text before and after a change. Tokens and keys are masked.

    If the text is very long, return only the part that differs.
    """
    # The texts are masked first. Otherwise the part that differs could begin inside a token and show the rest of it.
    before, after = masked(before), masked(after)
    lines = [*before.splitlines(), *after.splitlines()]
    if max(map(len, lines), default=0) <= LONG_LINE_CHARS and len(lines) <= MANY_LINES:
        return "\n".join(unified_diff(before.splitlines(), after.splitlines(), str(file), str(file), lineterm="", n=2))
    start = _common_prefix(before, after)
    end = _common_prefix(before[start:][::-1], after[start:][::-1])
    stretches = [(mark, text[start : len(text) - end]) for mark, text in (("-", before), ("+", after))]
    return "\n".join(f"{mark} ...{stretch}..." for mark, stretch in stretches if stretch)


def _common_prefix(one: str, other: str) -> int:
    shorter = min(len(one), len(other))
    return next((index for index in range(shorter) if one[index] != other[index]), shorter)


def masked(text: str) -> str:
    """Return the text with all tokens and probable keys masked."""
    return redact(_SECRET.sub(r'\1"********"', _TOKEN.sub(r"\1********", text))).text


def print_outcomes(request: Request, outcomes: Sequence[Outcome], cautions: Sequence[str]) -> bool:
    """Print the outcomes, and return whether all changes succeeded. Errors and warnings are printed to stderr."""
    is_ok = all(outcome.problem is None for outcome in outcomes)
    changes = [_json(outcome, request) for outcome in outcomes]
    print_report({"changes": changes, "cautions": list(cautions), "ok": is_ok}, [], as_json=request.as_json)
    if not request.as_json:
        for outcome in outcomes:
            _print(outcome, request)
        for caution in cautions:
            note(caution)
    return is_ok


def _print(outcome: Outcome, request: Request) -> None:
    client = outcome.client
    if outcome.action is None:
        note(f"{client.title}: {plain(outcome.problem or '')}")
        return
    if outcome.change:
        for line in outcome.change.splitlines():
            shown = "".join(char if char.isprintable() or char == "\t" else "?" for char in line)
            click.secho(shown, fg=_COLOURS.get(line[:1]))
    done = _DONE[outcome.action][request.is_dry_run]
    click.echo(
        f"{client.title}: {outcome.also or request.name} {done} ({outcome.file})"
        if outcome.action is not Action.NOTHING
        else f"{client.title}: {done}, {outcome.file} is up to date"
    )
    if not outcome.is_client_there and outcome.action is not Action.NOTHING:
        click.echo(
            f"  {client.title} was not found on this machine; {client.title} reads this file once it is installed"
        )
    if outcome.backup is not None:
        click.echo(f"  a backup of the previous file is in {outcome.backup}")
    if outcome.then is not None and not request.is_dry_run:
        click.echo(f"  {outcome.then}")


def _json(outcome: Outcome, request: Request) -> dict[str, object]:
    return {
        "client": outcome.client.name,
        "file": None if outcome.file is None else str(outcome.file),
        "action": "refused" if outcome.action is None else str(outcome.action),
        "is_done": outcome.action is not None and not request.is_dry_run,
        "change": outcome.change,
        "backup": None if outcome.backup is None else str(outcome.backup),
        "problem": outcome.problem,
        "is_client_there": outcome.is_client_there,
        "then": outcome.then,
    }
