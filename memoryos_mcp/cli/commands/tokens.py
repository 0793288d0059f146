"""The command ``memoryos-mcp token``: make, list and revoke tokens for clients that connect over HTTP.

A running server needs no restart, because it looks up the token of each request.
"""

import json
import re
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memoryos_mcp.cli.command_line import Choice, Group, config_option, json_option, setting_option
from memoryos_mcp.config import Settings
from memoryos_mcp.config.problems import nearest_name
from memoryos_mcp.config.sources import check_data_folder, load_settings
from memoryos_mcp.errors import ArgumentError
from memoryos_mcp.model.callers import Scope

if TYPE_CHECKING:
    from memoryos_mcp.model.callers import TokenEntry
    from memoryos_mcp.storage.interface import Stores

_DURATION = re.compile("([0-9]{1,6})([hdw])")
_DATE = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


def takes_place(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options ``--config``, ``--data-storage-path`` and ``--database-url`` to ``command``.

    The settings are loaded according to these options, and passed to ``command`` as its first argument.
    """

    @config_option
    @setting_option("data_storage_path")
    @setting_option("database_url")
    @wraps(command)
    def with_settings(config_file: Path | None, **given: Any) -> None:
        flags = {name: given.pop(name) for name in ("data_storage_path", "database_url")}
        command(load_settings(config_file, flags), **given)

    return with_settings


@click.group(cls=Group, short_help="Manage the tokens of clients that connect over HTTP.")
def token() -> None:
    """Make, list and revoke the tokens of clients that connect over HTTP.

    A running server needs no restart after a change.
    """


@token.command("add", short_help="Make a token for the memory of USER.")
@click.argument("user")
@click.option(
    "--scope",
    "scopes",
    type=Choice([scope.value for scope in Scope]),
    multiple=True,
    default=(Scope.WRITE.value,),
    show_default=True,
    help="Permission of the token. May be repeated. read: only read memories. write: read and change memories. admin: "
    "also see the server's settings and metrics. act-as: read the memory of any user whose id is passed in a call.",
)
@click.option(
    "--expires",
    metavar="WHEN",
    help="When the token expires: after a duration like 12h, 30d or 4w, or at the end of a day like 2027-01-31. "
    "Default: never.",
)
@json_option
@takes_place
def add(settings: Settings, user: str, scopes: Sequence[str], expires: str | None, as_json: bool) -> None:
    """Make a token for the memory of USER, and print it.

    The token is shown only once. Only the token is printed to stdout. Its scopes, its expiry and how to use it are
    printed to stderr.
    """
    check_data_folder(settings)
    expires_at = None if expires is None else expiry(expires, now=datetime.now(UTC), zone=settings.zone)
    from memoryos_mcp.model.callers import token_id_of

    with closing(_stores(settings)) as stores:
        try:
            token = stores.tokens.add(user, {Scope(scope) for scope in scopes}, expires_at)
        except ArgumentError as error:
            hint = "'--expires'" if error.argument == "expires_at" else "'USER'"
            raise click.BadParameter(str(error), param_hint=hint) from error
        token_id = token_id_of(token)
        entry = next(entry for entry in stores.tokens.entries() if entry.token_id == token_id)
    if as_json:
        click.echo(json.dumps({"token": token, **_described(entry)}, ensure_ascii=False))
        return
    from memoryos_mcp.cli.terminal import one_line

    click.echo(token)
    click.echo(
        f"This token is not shown again. It gives access to the memory of {one_line(user)} "
        f"({', '.join(sorted(entry.scopes))}; expires: {_time(entry.expires_at, settings.zone, 'never')}).\n"
        f'A client sends it in the header "Authorization: Bearer <token>".\n'
        f"To revoke it: memoryos-mcp token revoke {token_id}",
        err=True,
    )


@token.command("list", short_help="List all tokens, including expired and revoked ones.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
@takes_place
def list_tokens(settings: Settings, as_json: bool) -> None:
    """List all tokens, including expired and revoked ones.

    The command shows the id and the properties of each token. The token itself is not stored.
    """
    with closing(_stores(settings)) as stores:
        entries = stores.tokens.entries()
    from memoryos_mcp.cli.terminal import prepare_stdout

    prepare_stdout()
    if as_json:
        click.echo(json.dumps([_described(entry) for entry in entries], ensure_ascii=False, indent=2))
    elif entries:
        _print_table(entries, settings.zone)
    else:
        click.echo("There are no tokens. To make one, run memoryos-mcp token add USER.")


@token.command("revoke", short_help="Revoke a token.")
@click.argument("token_id", metavar="ID")
@json_option
@takes_place
def revoke(settings: Settings, token_id: str, as_json: bool) -> None:
    """Revoke the token with this ID.

    The server refuses all further requests with this token.
    """
    from memoryos_mcp.model.callers import token_id_of

    token_id = token_id_of(token_id)  # the user may pass the whole token, which contains the id
    with closing(_stores(settings)) as stores:
        try:
            is_new = stores.tokens.revoke(token_id)
        except ArgumentError as error:
            near = nearest_name(token_id, [entry.token_id for entry in stores.tokens.entries()])
            fix = f"did you mean {near}?" if near else "to see all ids, run memoryos-mcp token list"
            msg = f"no token has this id; {fix}"
            raise click.BadParameter(msg, param_hint="'ID'") from error
    if as_json:
        click.echo(json.dumps({"id": token_id, "is_new": is_new}))
        return
    click.echo(f"Token {token_id} is revoked." if is_new else f"Token {token_id} was already revoked.")


def expiry(text: str, *, now: datetime, zone: tzinfo | None) -> datetime:
    """Return the time at which a token expires.

    ``text`` is a duration, such as ``12h``, ``30d`` or ``4w``, or a date, such as ``2027-01-31``. With a date, the
    token is valid until the end of that day. ``zone`` is the time zone of the date. None means the time zone of this
    machine.
    """
    text = text.strip().lower()
    msg = "this is not a valid duration or date; use a value like 12h, 30d, 4w or 2027-01-31"
    try:
        if duration := _DURATION.fullmatch(text):
            at = now + int(duration[1]) * _UNITS[duration[2]]
        elif _DATE.fullmatch(text):
            midnight = datetime.combine(date.fromisoformat(text) + timedelta(days=1), time.min, tzinfo=zone)
            at = midnight.astimezone(UTC)
        else:
            raise click.BadParameter(msg, param_hint="'--expires'")
    except OverflowError as error:
        msg = "the time is too far in the future; for a token that does not expire, omit this option"
        raise click.BadParameter(msg, param_hint="'--expires'") from error
    except ValueError as error:
        raise click.BadParameter(msg, param_hint="'--expires'") from error
    if at <= now:
        msg = "the time is in the past; choose a later time"
        raise click.BadParameter(msg, param_hint="'--expires'")
    return at


def _stores(settings: Settings) -> "Stores":
    from memoryos_mcp.storage.stores import make_stores

    return make_stores(settings, lambda: datetime.now(UTC))


def _described(entry: "TokenEntry") -> dict[str, object]:
    """Return the properties of a token as JSON values. Times are ISO 8601 strings in UTC."""
    return {
        "id": entry.token_id,
        "user_id": entry.user_id,
        "scopes": sorted(entry.scopes),
        "created_at": entry.created_at.isoformat(),
        "expires_at": entry.expires_at and entry.expires_at.isoformat(),
        "revoked_at": entry.revoked_at and entry.revoked_at.isoformat(),
        "state": entry.state(datetime.now(UTC)),
    }


def _print_table(entries: Sequence["TokenEntry"], zone: tzinfo | None) -> None:
    from rich.table import Table
    from rich.text import Text

    from memoryos_mcp.cli.terminal import make_console, one_line

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("id", "user", "scopes", "created", "expires", "state"):
        table.add_column(title, no_wrap=title != "user", overflow="fold")
    now = datetime.now(UTC)
    for entry in entries:
        table.add_row(
            entry.token_id,
            Text(one_line(entry.user_id)),
            ", ".join(sorted(entry.scopes)),
            _time(entry.created_at, zone),
            _time(entry.expires_at, zone, "never"),
            entry.state(now),
        )
    make_console().print(table)


def _time(moment: datetime | None, zone: tzinfo | None, without: str = "") -> str:
    return without if moment is None else moment.astimezone(zone).strftime("%Y-%m-%d %H:%M")
