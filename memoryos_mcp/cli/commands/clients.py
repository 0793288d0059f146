"""The commands ``memoryos-mcp install`` and ``uninstall``, which write the files of MCP clients."""

import sys
from collections.abc import Callable
from typing import Any

import click

from memoryos_mcp.cli.command_line import EXIT_FAILED, Choice, Command, config_option, json_option, setting_option
from memoryos_mcp.cli.installer.catalogue import CLIENTS


def client_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that select the clients, and how to change their files."""
    for option in (
        json_option,
        click.option("--force", "is_forced", is_flag=True, help="Also if another program's entry has the name."),
        click.option("--name", default="memoryos", show_default=True, help="What the entry is called."),
        click.option("--dry-run", "is_dry_run", is_flag=True, help="Only show what would change."),
        click.option(
            "--scope", type=Choice(["user", "project"]), help="For all of your work (default), or this folder."
        ),
        click.option("--client", "clients", multiple=True, type=Choice([*CLIENTS, "all"]), help="May be repeated."),
    ):
        command = option(command)
    return command


class ClientCommand(Command):
    """A command with ``--client``, which it suggests when a client is named without the option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the command line."""
        named = [word for word in args if word in (*CLIENTS, "all")]
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            # The subclasses concern an option, and suggest one themselves.
            if type(error) is not click.UsageError or not named:
                raise
            msg = f"{error.message}. Did you mean '--client {named[0]}'?"
            raise click.UsageError(msg, ctx) from error


@click.command(
    cls=ClientCommand,
    examples=[
        ("memoryos-mcp install", "which clients are on this machine"),
        ("memoryos-mcp install --client cursor --dry-run", "only show what would change in its file"),
        ("memoryos-mcp install --client all", "add it to each of them"),
    ],
)
@client_options
@click.option("--http", "url", metavar="URL", help="A server that runs elsewhere, instead of one the client starts.")
@click.option("--token", metavar="TOKEN", help="What that server asks for; - reads it from stdin or asks for it.")
@click.option("--token-variable", metavar="NAME", help="Have the client take the token from this variable.")
@click.option("--link", "is_link", is_flag=True, help="Print a link that has the client add it; change no file.")
@config_option
@setting_option("user_id")
@setting_option("data_storage_path")
def install(clients: tuple[str, ...], as_json: bool, url: str | None, is_link: bool, **given: Any) -> None:
    """Add the server to an MCP client.

    Shows what changes in its file; without --client, lists the clients on this machine.
    """
    from memoryos_mcp.cli.commands import installing
    from memoryos_mcp.cli.commands.installing.outcomes import Asked

    local = [given.pop(name) for name in ("config_file", "user_id", "data_storage_path")]
    token, variable = given.pop("token"), given.pop("token_variable")
    if not clients:
        installing.list_clients("install", as_json=as_json)
        return
    server = installing.server_of(url, token, variable, *local)
    if is_link:
        from memoryos_mcp.cli.commands.install_links import show_links

        show_links(clients, given["name"], server, as_json=as_json)
    elif not installing.change_clients(Asked(clients, as_json=as_json, **given), server):
        sys.exit(EXIT_FAILED)


@click.command(
    cls=ClientCommand,
    examples=[("memoryos-mcp uninstall --client cursor", "everything else in the file stays")],
)
@client_options
def uninstall(clients: tuple[str, ...], as_json: bool, **given: Any) -> None:
    """Take the server out of an MCP client again.

    Everything else in its file stays; without --client, lists the clients on this machine.
    """
    from memoryos_mcp.cli.commands import installing
    from memoryos_mcp.cli.commands.installing.outcomes import Asked

    if not clients:
        installing.list_clients("uninstall", as_json=as_json)
    elif not installing.change_clients(Asked(clients, as_json=as_json, **given), None):
        sys.exit(EXIT_FAILED)
