"""Facts about each MCP client: where its file is, what an entry looks like, and what it does not support."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Form = Literal["json", "toml"]
Scope = Literal["user", "project"]
Platform = Literal["linux", "macos", "windows"]

EVERYWHERE: tuple[Platform, ...] = ("linux", "macos", "windows")

_EDITORS = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf")


@dataclass(frozen=True, slots=True)
class Place:
    """A file in which a client may keep its servers.

    Attributes:
        folder: Created by the client, so it shows whether the client is installed. Begins with a base folder of
            `memoryos_mcp.cli.installer.places`; may contain ``*``.
        file: The file's path in the folder.
    """

    folder: str
    file: str
    platforms: tuple[Platform, ...] = EVERYWHERE


@dataclass(frozen=True, slots=True)
class Http:
    """The form of an entry for a server over Streamable HTTP.

    Attributes:
        fixed: Further keys of every entry.
        reference: How a value refers to the environment variable ``NAME``; None if it cannot.
        variable_key: Key for the name of a token's variable; None if the client has none.
    """

    url_key: str = "url"
    fixed: Mapping[str, Any] = field(default_factory=dict)
    headers_key: str = "headers"
    reference: str | None = None
    variable_key: str | None = None


@dataclass(frozen=True, slots=True)
class Client:
    """An MCP client: ``name`` on the command line, ``title`` for people.

    Attributes:
        path: Keys down to the object that has a member for each server.
        user: Places for all of a user's work; the first one is created if none exists.
        project: Path of a project's file, from the project's folder; None if there is none.
        fixed: Further keys of every stdio entry.
        usual: Further keys of a new entry; an existing entry keeps its own.
        http: None if the client does not support servers over HTTP.
        instead_of_http: Advice for such a client.
        then: How the user makes the client see the change.
        own_command: The client's command, if its user file is changed only by that command.
    """

    name: str
    title: str
    path: tuple[str, ...]
    user: tuple[Place, ...]
    project: str | None
    then: str
    form: Form = "json"
    fixed: Mapping[str, Any] = field(default_factory=dict)
    usual: Mapping[str, Any] = field(default_factory=dict)
    http: Http | None = None
    instead_of_http: str = ""
    own_command: str | None = None


_SERVERS = ("mcpServers",)

CLIENTS: Mapping[str, Client] = {
    client.name: client
    for client in (
        Client(
            name="claude-desktop",
            title="Claude Desktop",
            path=_SERVERS,
            user=(
                Place("{config}/Claude", "claude_desktop_config.json"),
                Place(
                    "{local}/Packages/Claude_*/LocalCache/Roaming/Claude", "claude_desktop_config.json", ("windows",)
                ),
            ),
            project=None,
            then="quit Claude Desktop completely, also from the tray, and start it again",
            instead_of_http="its file lists only servers that it starts itself: leave --http out, or add the address "
            "under Settings, Connectors",
        ),
        Client(
            name="cline",
            title="Cline",
            path=_SERVERS,
            user=(
                Place("{home}/.cline", "data/settings/cline_mcp_settings.json"),
                *(
                    Place(
                        f"{{config}}/{editor}/User/globalStorage/saoudrizwan.claude-dev",
                        "settings/cline_mcp_settings.json",
                    )
                    for editor in _EDITORS
                ),
            ),
            project=None,
            then="Cline sees it at once; MCP Servers shows it",
            usual={"disabled": False, "autoApprove": [], "timeout": 60},
            http=Http(fixed={"type": "streamableHttp"}),
        ),
        Client(
            name="cursor",
            title="Cursor",
            path=_SERVERS,
            user=(Place("{home}/.cursor", "mcp.json"),),
            project=".cursor/mcp.json",
            then="Cursor sees it at once; switch it on under Settings, MCP",
            fixed={"type": "stdio"},
            http=Http(reference="${env:NAME}"),
        ),
        Client(
            name="vscode",
            title="VS Code",
            path=("servers",),
            user=tuple(Place(f"{{config}}/{editor}/User", "mcp.json") for editor in _EDITORS[:3]),
            project=".vscode/mcp.json",
            then='VS Code sees it at once; "MCP: List Servers" starts it',
            fixed={"type": "stdio"},
            http=Http(fixed={"type": "http"}, reference="${env:NAME}"),
        ),
        Client(
            name="claude-code",
            title="Claude Code",
            path=_SERVERS,
            user=(Place("{claude}", ".claude.json"),),
            project=".mcp.json",
            then="start Claude Code again; /mcp shows it",
            fixed={"type": "stdio"},
            http=Http(fixed={"type": "http"}, reference="${NAME}"),
            own_command="claude",
        ),
        Client(
            name="windsurf",
            title="Windsurf",
            path=_SERVERS,
            user=(Place("{home}/.codeium/windsurf", "mcp_config.json"),),
            project=None,
            then="press Refresh in Cascade's list of MCP servers",
            http=Http(url_key="serverUrl", reference="${env:NAME}"),
        ),
        Client(
            name="zed",
            title="Zed",
            path=("context_servers",),
            user=(
                Place("{xdg}/zed", "settings.json", ("linux", "macos")),
                Place("{config}/Zed", "settings.json", ("windows",)),
            ),
            project=".zed/settings.json",
            then="Zed sees it at once; the settings of the Agent Panel show it",
            http=Http(),
        ),
        Client(
            name="codex",
            title="Codex",
            path=("mcp_servers",),
            user=(Place("{codex}", "config.toml"),),
            project=".codex/config.toml",
            then="start Codex again; /mcp shows it",
            form="toml",
            http=Http(headers_key="http_headers", variable_key="bearer_token_env_var"),
        ),
        Client(
            name="gemini",
            title="Gemini CLI",
            path=_SERVERS,
            user=(Place("{home}/.gemini", "settings.json"),),
            project=".gemini/settings.json",
            then="start Gemini CLI again; /mcp shows it",
            http=Http(url_key="httpUrl", reference="${NAME}"),
        ),
    )
}
