"""The commands ``memoryos-mcp install`` and ``memoryos-mcp uninstall``, with their options."""

import sys
from collections.abc import Callable
from typing import Any

import click

from memoryos_mcp.cli.command_line import EXIT_FAILED, Choice, Command, config_option, json_option, setting_option
from memoryos_mcp.cli.installer.catalogue import CLIENTS


def client_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add to ``command`` the options that ``install`` and ``uninstall`` have in common."""
    for option in (
        json_option,
        click.option(
            "--force",
            "is_forced",
            is_flag=True,
            help="Change or remove the server's entry in the client's file even if another program added the entry.",
        ),
        click.option(
            "--name",
            default="memoryos",
            show_default=True,
            help="Name of the server in the client's configuration file.",
        ),
        click.option("--dry-run", "is_dry_run", is_flag=True, help="Only show what would change."),
        click.option(
            "--scope",
            type=Choice(["user", "project"]),
            help="Which configuration file of the client to change. user: the file for all projects of your account "
            "(the default). project: the file for the current folder.",
        ),
        click.option(
            "--client",
            "clients",
            multiple=True,
            type=Choice([*CLIENTS, "all"]),
            help="Client whose configuration file is changed. May be repeated. Without this option, the clients are "
            "only listed.",
        ),
    ):
        command = option(command)
    return command


class ClientCommand(Command):
    """A command that suggests ``--client`` if the name of a client is used without this option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments. If an unexpected argument is the name of a client, the error suggests ``--client``."""
        named = [word for word in args if word in (*CLIENTS, "all")]
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            # Subclasses are errors about an option, and have their own suggestions.
            if type(error) is not click.UsageError or not named:
                raise
            msg = f"{error.message}. Did you mean '--client {named[0]}'?"
            raise click.UsageError(msg, ctx) from error


@click.command(
    cls=ClientCommand,
    examples=[
        ("memoryos-mcp install", "list the clients on this machine"),
        ("memoryos-mcp install --client claude-code --hooks", "store and recall without tool calls"),
        ("memoryos-mcp install --client all", "add the server to all clients on this machine"),
    ],
)
@client_options
@click.option(
    "--http",
    "url",
    metavar="URL",
    help="Address of a running server. Without this option, the client starts the server.",
)
@click.option(
    "--token",
    metavar="TOKEN",
    help="Token for the server at URL. With -, the token is read from stdin; on a terminal, a prompt asks for it.",
)
@click.option("--token-variable", metavar="NAME", help="Environment variable from which the client reads the token.")
@click.option(
    "--link",
    "is_link",
    is_flag=True,
    help="Only print a link. Opening the link adds the server to the client. No file is changed.",
)
@click.option(
    "--hooks",
    "has_hooks",
    is_flag=True,
    help="Also add hooks that store and recall memories without tool calls.",
)
@click.option(
    "--rules",
    "has_rules",
    is_flag=True,
    help="Also add rules that ask the assistant to use the memory.",
)
@config_option
@setting_option("user_id")
@setting_option("data_storage_path")
@setting_option("database_url")
def install(clients: tuple[str, ...], as_json: bool, url: str | None, is_link: bool, **given: Any) -> None:
    """Add the server to an MCP client.

    The command changes the client's configuration file, and prints the changes. Without --client, the command only
    lists the clients on this machine.
    """
    from memoryos_mcp.cli.commands import installing
    from memoryos_mcp.cli.commands.installing.outcomes import Request

    local = [given.pop(name) for name in ("config_file", "user_id", "data_storage_path", "database_url")]
    token, variable = given.pop("token"), given.pop("token_variable")
    if not clients:
        installing.list_clients("install", as_json=as_json)
        return
    server = installing.server_of(url, token, variable, *local)
    if is_link:
        from memoryos_mcp.cli.commands.install_links import show_links

        show_links(clients, given["name"], server, as_json=as_json)
    elif not installing.change_clients(Request(clients, as_json=as_json, **given), server):
        sys.exit(EXIT_FAILED)


@click.command(
    cls=ClientCommand, examples=[("memoryos-mcp uninstall --client cursor", "remove the server from Cursor's file")]
)
@client_options
def uninstall(clients: tuple[str, ...], as_json: bool, **given: Any) -> None:
    """Remove the server from an MCP client.

    The rest of the client's configuration file is not changed. Without --client, the command only lists the clients
    on this machine.
    """
    from memoryos_mcp.cli.commands import installing
    from memoryos_mcp.cli.commands.installing.outcomes import Request

    if not clients:
        installing.list_clients("uninstall", as_json=as_json)
    elif not installing.change_clients(Request(clients, as_json=as_json, **given), None):
        sys.exit(EXIT_FAILED)
