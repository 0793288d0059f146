"""The arguments of install and uninstall, and the report of their outcomes."""

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
# Secrets of other servers, whatever they look like; the name of a variable is not a secret.
_SECRET = re.compile(
    r"""((?i:token|key|secret|passw(?:or)?d|passphrase|pat|authorization|cookie|credentials?)["']?\s*[:=]\s*)
        (?:"(?!(?i:bearer)\ |\$)(?:\\.|[^"\\])+"|'(?!(?i:bearer)\ |\$)[^'\n]+')""",
    re.VERBOSE,
)
_COLOURS = {"+": "green", "-": "red", "@": "cyan"}
_DONE = {
    Action.ADD: ("added", "would be added"),
    Action.UPDATE: ("updated", "would be updated"),
    Action.REMOVE: ("taken out", "would be taken out"),
    Action.NOTHING: ("nothing to do", "nothing to do"),
}


@dataclass(frozen=True, slots=True)
class Asked:
    """The arguments of install and uninstall.

    Attributes:
        clients: Names, or `ALL` for those on this machine.
        scope: None means the user's.
        name: Name of the entry.
        is_forced: Whether another program's entry of that name may be changed.
    """

    clients: Sequence[str]
    scope: Scope | None = None
    name: str = entries.NAME
    is_dry_run: bool = False
    is_forced: bool = False
    as_json: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome for one file.

    Attributes:
        action: What was or would be done; None if it was refused.
        change: A diff, or the command that makes the change; without tokens.
        problem: Why it was refused.
    """

    client: Client
    file: Path | None
    action: Action | None
    change: str = ""
    backup: Path | None = None
    problem: str | None = None
    is_client_there: bool = True

    @property
    def then(self) -> str | None:
        """How to make the client load the change; None without a change."""
        if self.action in (None, Action.NOTHING):
            return None
        if self.action is Action.REMOVE:
            return f"if {self.client.title} runs, the server may go on until it is started again"
        return self.client.then


def shown_change(file: Path, before: str, after: str) -> str:
    """Return the diff of two texts without tokens and keys; for very long texts, only the part that differs."""
    # Masked before the comparison: the diff of two tokens would reveal how they end.
    before, after = masked(before), masked(after)
    lines = [*before.splitlines(), *after.splitlines()]
    if max(map(len, lines), default=0) <= LONG_LINE_CHARS and len(lines) <= MANY_LINES:
        return "\n".join(unified_diff(before.splitlines(), after.splitlines(), str(file), str(file), lineterm="", n=2))
    start = _alike(before, after)
    end = _alike(before[start:][::-1], after[start:][::-1])
    stretches = [(mark, text[start : len(text) - end]) for mark, text in (("-", before), ("+", after))]
    return "\n".join(f"{mark} ...{stretch}..." for mark, stretch in stretches if stretch)


def _alike(one: str, other: str) -> int:
    """Return the length of the common prefix of two texts."""
    shorter = min(len(one), len(other))
    return next((index for index in range(shorter) if one[index] != other[index]), shorter)


def masked(text: str) -> str:
    """Return a text with its tokens and apparent keys masked."""
    return redact(_SECRET.sub(r'\1"********"', _TOKEN.sub(r"\1********", text))).text


def tell(asked: Asked, outcomes: Sequence[Outcome], cautions: Sequence[str]) -> bool:
    """Print the outcomes, with errors and cautions on stderr, and return whether none failed."""
    is_ok = all(outcome.problem is None for outcome in outcomes)
    changes = [_json(outcome, asked) for outcome in outcomes]
    print_report({"changes": changes, "cautions": list(cautions), "ok": is_ok}, [], as_json=asked.as_json)
    if not asked.as_json:
        for outcome in outcomes:
            _print(outcome, asked)
        for caution in cautions:
            note(caution)
    return is_ok


def _print(outcome: Outcome, asked: Asked) -> None:
    client = outcome.client
    if outcome.action is None:
        note(f"{client.title}: {plain(outcome.problem or '')}")
        return
    if outcome.change:
        for line in outcome.change.splitlines():
            shown = "".join(char if char.isprintable() or char == "\t" else "?" for char in line)
            click.secho(shown, fg=_COLOURS.get(line[:1]))
    done = _DONE[outcome.action][asked.is_dry_run]
    click.echo(
        f"{client.title}: {asked.name} {done} ({outcome.file})"
        if outcome.action is not Action.NOTHING
        else f"{client.title}: {done}, {outcome.file} is as it should be"
    )
    if not outcome.is_client_there and outcome.action is not Action.NOTHING:
        click.echo(f"  {client.title} was not found on this machine; the file is where it would look")
    if outcome.backup is not None:
        click.echo(f"  the previous file is kept as {outcome.backup}")
    if outcome.then is not None and not asked.is_dry_run:
        click.echo(f"  {outcome.then}")


def _json(outcome: Outcome, asked: Asked) -> dict[str, object]:
    return {
        "client": outcome.client.name,
        "file": None if outcome.file is None else str(outcome.file),
        "action": "refused" if outcome.action is None else str(outcome.action),
        "is_done": outcome.action is not None and not asked.is_dry_run,
        "change": outcome.change,
        "backup": None if outcome.backup is None else str(outcome.backup),
        "problem": outcome.problem,
        "is_client_there": outcome.is_client_there,
        "then": outcome.then,
    }
