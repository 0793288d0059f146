"""docs/clients.md agrees with the code: blocks, files and command lines."""

import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from memoryos_mcp.cli.installer import entries, jsonc, toml
from memoryos_mcp.cli.installer.catalogue import CLIENTS, Client, Place, Platform
from memoryos_mcp.cli.main import cli

PAGE = Path(__file__).parent.parent / "docs" / "clients.md"
LOCAL = entries.Local("/absolute/path/to/memoryos-mcp", ("serve",))
REMOTE = entries.Remote("http://127.0.0.1:8000/mcp", "TOKEN")
UNIX = {"home": "~", "xdg": "~/.config", "codex": "~/.codex", "claude": "~"}
BASES: dict[Platform, dict[str, str]] = {
    "linux": {**UNIX, "config": "~/.config"},
    "macos": {**UNIX, "config": "~/Library/Application Support"},
    "windows": {
        "home": "%USERPROFILE%",
        "config": "%APPDATA%",
        "local": "%LOCALAPPDATA%",
        "codex": "%USERPROFILE%/.codex",
        "claude": "%USERPROFILE%",
    },
}

pytestmark = pytest.mark.usefixtures("bare_environment")
BY_NAME = pytest.mark.parametrize("client", CLIENTS.values(), ids=lambda client: client.name)


@cache
def page() -> str:
    return PAGE.read_text(encoding="utf-8")


def section(title: str) -> str:
    """Return the text between a heading and the next heading of any level."""
    found = re.search(rf"^##+ {re.escape(title)}\n(.*?)(?=^##|\Z)", page(), re.MULTILINE | re.DOTALL)
    assert found is not None, f"no heading {title!r}"
    return found[1]


def command_lines() -> list[str]:
    return [line for block in re.findall(r"```sh\n(.*?)```", page(), re.DOTALL) for line in block.splitlines()]


@BY_NAME
def test_the_blocks_of_a_client_are_those_that_install_writes(client: Client) -> None:
    form = "toml" if client.form == "toml" else "json"
    blocks = re.findall(rf"```{form}\n(.*?)```", section(client.title), re.DOTALL)
    servers: list[entries.Local | entries.Remote] = [LOCAL] if client.http is None else [LOCAL, REMOTE]
    read = toml.read if client.form == "toml" else jsonc.read
    expected: list[Any] = [{client.path[0]: {"memoryos": entries.entry_of(client, server)}} for server in servers]
    assert [read(block) for block in blocks] == expected


@BY_NAME
def test_the_table_has_the_places_of_clients_files(client: Client) -> None:
    (row,) = [line for line in section("Where the files are").splitlines() if line.startswith(f"| {client.title} |")]
    cells = [cell.strip() for cell in row.strip("| ").split(" | ")]
    for cell, platform in zip(cells[1:4], ("macos", "windows", "linux"), strict=True):
        expected = [shown(place, platform) for place in client.user if platform in place.platforms]
        assert re.findall(r"`(.+?)`", cell) == expected[:2]
    assert cells[4] == (f"`{client.project}`" if client.project else "none")


def shown(place: Place, platform: Platform) -> str:
    base, _, rest = place.folder.partition("/")
    path = "/".join(filter(None, (BASES[platform][base.strip("{}")], rest, place.file)))
    return path.replace("/", "\\") if platform == "windows" else path


def test_the_page_names_every_client() -> None:
    assert re.findall(r"`([a-z-]+)`", section("In one command").split("The names are")[1].split(".")[0]) == list(
        CLIENTS
    )


def test_the_page_names_clients_with_token_variables() -> None:
    able = [c.title for c in CLIENTS.values() if c.http and (c.http.reference or c.http.variable_key)]
    told = section("A server at an address").replace("\n", " ")
    assert f"{', '.join(able[:-1])} and {able[-1]} can do that" in told


@pytest.mark.parametrize("line", command_lines())
def test_every_command_line_of_the_page_works(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_CONFIG_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "memory.json").write_text("{}", encoding="utf-8")
    program, *words = shlex.split(line.replace("~", str(tmp_path)))
    assert program == "memoryos-mcp"
    result = CliRunner().invoke(cli, words, input="TOKEN\n")
    assert result.exit_code == 0, result.output


def test_the_page_never_installs_the_other_project() -> None:
    assert not re.search(r"(?:pip install|uvx|pipx run) [^\n`]*\bmemoryos-mcp\b(?!-server)", page())
