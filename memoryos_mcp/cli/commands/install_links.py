"""Links that add the server to a client when they are opened: ``memoryos-mcp install --link``.

Cursor: https://cursor.com/docs/mcp/install-links. VS Code: https://code.visualstudio.com/api/extension-guides/ai/mcp,
"MCP URL handler". The entry is the one that the client's file would contain under the server's name.
"""

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import quote

import click

from memoryos_mcp.cli.commands.installing import check_name
from memoryos_mcp.cli.commands.installing.outcomes import ALL
from memoryos_mcp.cli.installer.catalogue import CLIENTS
from memoryos_mcp.cli.installer.entries import Local, Remote, entry_of
from memoryos_mcp.cli.terminal import prepare_stdout
from memoryos_mcp.errors import ArgumentError


def cursor_link(name: str, entry: Mapping[str, object]) -> str:
    """Return the link that adds a server to Cursor under a name."""
    config = base64.b64encode(_compact(entry)).decode()
    return f"cursor://anysphere.cursor-deeplink/mcp/install?name={quote(name, safe='')}&config={quote(config, safe='')}"


def vscode_link(name: str, entry: Mapping[str, object]) -> str:
    """Return the link that adds a server to VS Code under a name."""
    return f"vscode:mcp/install?{quote(_compact({'name': name, **entry}), safe='')}"


LINKS: Mapping[str, Callable[[str, Mapping[str, object]], str]] = {"cursor": cursor_link, "vscode": vscode_link}


def show_links(clients: Sequence[str], name: str, server: Local | Remote, *, as_json: bool) -> None:
    """Print each client's link alone on a line, so that it can be passed to a program that opens links.

    `ALL` among the clients means every client with links.

    Raises:
        ArgumentError: A client does not support links, or the name is not valid.
    """
    prepare_stdout()
    check_name(name)
    wanted = list(LINKS) if ALL in clients else list(dict.fromkeys(clients))
    for client in wanted:
        if client not in LINKS:
            problem = f"{CLIENTS[client].title} takes none, but {' and '.join(LINKS)} do; leave it away"
            raise ArgumentError(argument="--link", problem=problem)
    made = {client: LINKS[client](name, entry_of(CLIENTS[client], server)) for client in wanted}
    if as_json:
        click.echo(json.dumps({"links": made}))
        return
    for link in made.values():
        click.echo(link)
    if isinstance(server, Remote) and server.token is not None:
        click.echo("memoryos-mcp: the link holds the token; whoever sees the one has the other", err=True)


def _compact(value: Mapping[str, object]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
