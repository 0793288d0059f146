"""The supported MCP clients: their configuration files, the form of the entries in them, and unsupported features."""

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
    """A path where a client's configuration file can be.

    Attributes:
        folder: A folder that exists only if the client is installed, such as ``{home}/.cursor``. `Machine.base`
            returns the folder for the name in braces. ``*`` is a wildcard.
        file: Path of the file, relative to the folder.
    """

    folder: str
    file: str
    platforms: tuple[Platform, ...] = EVERYWHERE


@dataclass(frozen=True, slots=True)
class Http:
    """The form of a client's entries for servers over Streamable HTTP.

    Attributes:
        url_key: Key of the server's address.
        fixed: Other keys and values that every entry contains.
        headers_key: Key of the HTTP headers.
        reference: Placeholder that the client replaces with the value of the environment variable ``NAME``. None if
            the client does not replace placeholders.
        variable_key: Key for the name of the environment variable that contains the token. None if the client
            has no such key.
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
        name: Name on the command line.
        title: Name that is shown to users.
        path: Keys that lead to the object with the entries, beginning with the outermost key.
        user: Possible paths of the user's file. The first path is used if the client is not installed.
        project: Path of a project's file, relative to the project's folder. None if the client has no such file.
        then: What the user has to do so that the client loads a change.
        form: Format of the file.
        fixed: Other keys and values that every entry for a server over stdio contains.
        usual: Other keys and values that a new entry contains. They are not added to an existing entry.
        http: Form of the entries for servers over HTTP. None if the client does not support HTTP.
        instead_of_http: What the user can do instead if the client does not support HTTP.
        own_command: The client's own program that changes the user's file. None if this installer changes the file.
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
            instead_of_http="its file can only contain servers that it starts; omit --http, or add the address "
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
            then="Cline loads the change at once and lists the server under MCP Servers",
            usual={"disabled": False, "autoApprove": [], "timeout": 60},
            http=Http(fixed={"type": "streamableHttp"}),
        ),
        Client(
            name="cursor",
            title="Cursor",
            path=_SERVERS,
            user=(Place("{home}/.cursor", "mcp.json"),),
            project=".cursor/mcp.json",
            then="Cursor loads the change at once; switch the server on under Settings, MCP",
            fixed={"type": "stdio"},
            http=Http(reference="${env:NAME}"),
        ),
        Client(
            name="vscode",
            title="VS Code",
            path=("servers",),
            user=tuple(Place(f"{{config}}/{editor}/User", "mcp.json") for editor in _EDITORS[:3]),
            project=".vscode/mcp.json",
            then='VS Code loads the change at once; start the server with "MCP: List Servers"',
            fixed={"type": "stdio"},
            http=Http(fixed={"type": "http"}, reference="${env:NAME}"),
        ),
        Client(
            name="claude-code",
            title="Claude Code",
            path=_SERVERS,
            user=(Place("{claude}", ".claude.json"),),
            project=".mcp.json",
            then="restart Claude Code; /mcp shows the server",
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
            then="Zed loads the change at once; the settings of the Agent Panel show the server",
            http=Http(),
        ),
        Client(
            name="codex",
            title="Codex",
            path=("mcp_servers",),
            user=(Place("{codex}", "config.toml"),),
            project=".codex/config.toml",
            then="restart Codex; /mcp shows the server",
            form="toml",
            http=Http(headers_key="http_headers", variable_key="bearer_token_env_var"),
        ),
        Client(
            name="gemini",
            title="Gemini CLI",
            path=_SERVERS,
            user=(Place("{home}/.gemini", "settings.json"),),
            project=".gemini/settings.json",
            then="restart Gemini CLI; /mcp shows the server",
            http=Http(url_key="httpUrl", reference="${NAME}"),
        ),
    )
}
