"""Links for ``memoryos-mcp install --link``. When the user opens a link, the client adds the server.

A link contains the entry that ``install`` without ``--link`` would write to the client's file. The formats of the
links are documented at https://cursor.com/docs/mcp/install-links and, under "MCP URL handler", at
https://code.visualstudio.com/api/extension-guides/ai/mcp.
"""

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import quote

from memoryos_mcp.cli.commands.installing import check_name
from memoryos_mcp.cli.commands.installing.outcomes import ALL
from memoryos_mcp.cli.installer.catalogue import CLIENTS
from memoryos_mcp.cli.installer.entries import Local, Remote, entry_of
from memoryos_mcp.cli.terminal import note, print_report
from memoryos_mcp.errors import ArgumentError


def cursor_link(name: str, entry: Mapping[str, object]) -> str:
    """Return a link that adds a server to Cursor. ``entry`` is the server's entry in Cursor's configuration file."""
    config = base64.b64encode(_compact(entry)).decode()
    return f"cursor://anysphere.cursor-deeplink/mcp/install?name={quote(name, safe='')}&config={quote(config, safe='')}"


def vscode_link(name: str, entry: Mapping[str, object]) -> str:
    """Return a link that adds a server to VS Code. ``entry`` is the server's entry in VS Code's configuration file."""
    return f"vscode:mcp/install?{quote(_compact({'name': name, **entry}), safe='')}"


LINKS: Mapping[str, Callable[[str, Mapping[str, object]], str]] = {"cursor": cursor_link, "vscode": vscode_link}


def show_links(clients: Sequence[str], name: str, server: Local | Remote, *, as_json: bool) -> None:
    """Print a link for each client, one per line. `ALL` in ``clients`` means every client that supports links."""
    check_name(name)
    wanted = list(LINKS) if ALL in clients else list(dict.fromkeys(clients))
    for client in wanted:
        if client not in LINKS:
            problem = (
                f"{CLIENTS[client].title} does not support links; omit --link, or use --client with "
                f"{' or '.join(LINKS)}"
            )
            raise ArgumentError(argument="--link", problem=problem)
    links = {client: LINKS[client](name, entry_of(CLIENTS[client], server)) for client in wanted}
    print_report({"links": links}, links.values(), as_json=as_json)
    if isinstance(server, Remote) and server.token is not None and not as_json:
        note("the link contains the token, so keep the link secret")


def _compact(value: Mapping[str, object]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
