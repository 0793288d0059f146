"""What is known of each MCP client: where its file is, what an entry looks like there, what it cannot do."""

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
        folder: What the client itself makes, so that it tells whether the client is there. Begins with one of the bases
            of `memoryos_mcp.cli.installer.places`; may hold ``*``.
        file: The file's path in it.
        platforms: Where there is such a place.
    """

    folder: str
    file: str
    platforms: tuple[Platform, ...] = EVERYWHERE


@dataclass(frozen=True, slots=True)
class Http:
    """What an entry for a server over Streamable HTTP looks like.

    Attributes:
        url_key: Under which the address stands.
        fixed: What stands beside it.
        headers_key: Under which headers stand.
        reference: How a value names a variable of the environment, with ``NAME`` in its place; None if it cannot.
        variable_key: Under which the name of a token's variable stands, where there is a key for it.
    """

    url_key: str = "url"
    fixed: Mapping[str, Any] = field(default_factory=dict)
    headers_key: str = "headers"
    reference: str | None = None
    variable_key: str | None = None


@dataclass(frozen=True, slots=True)
class Client:
    """An MCP client.

    Attributes:
        name: As it is named on the command line.
        title: As its makers name it.
        path: Keys down to the object that holds a member for each server.
        user: Places for all of a user's work; the first one is made if none is there.
        project: File for one project, from the project's folder; None if the client knows none.
        form: How its files are written.
        fixed: What a stdio entry holds beside command and arguments.
        usual: What a new entry holds as well; one that is there keeps its own.
        http: Of an entry for a server over HTTP; None if the client cannot have one.
        instead_of_http: What to do, where it cannot.
        then: What makes the client see the change.
        own_command: The client's command, where its user file is changed through that only.
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
            then="quit Claude Desktop wholly, also from the tray, and start it again",
            instead_of_http="its file lists only servers that it starts itself: leave --http away, or add the address "
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
