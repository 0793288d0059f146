"""install and uninstall: real files of clients, invalid files, and the servers that the entries start."""

import json
import os
import shutil
import stat
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest
from click.testing import CliRunner, Result
from mcp.client.client import Client as McpClient
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.types import CallToolResult

from memoryos_mcp.cli.commands.installing.outcomes import masked
from memoryos_mcp.cli.installer import entries, files, hooks, jsonc, planning
from memoryos_mcp.cli.installer.catalogue import CLIENTS, Client
from memoryos_mcp.cli.installer.places import Location, Machine, locations_of
from memoryos_mcp.cli.main import cli
from memoryos_mcp.errors import ClientFileError
from memoryos_mcp.server.hooks.dialects import EVENTS
from tests.test_client_texts import FILES

LIMIT_S = 120
NOW = datetime(2026, 5, 8, 12, tzinfo=UTC)
TOKEN = "mem_4f9a8b7c6d5e"  # noqa: S105 - of no account
URL = "http://127.0.0.1:8000/mcp"
LOCAL = entries.Local("/opt/memory/bin/memoryos-mcp", ("serve",))

pytestmark = pytest.mark.usefixtures("bare_environment")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new home folder, and a new project as the working folder."""
    for name in ("XDG_CONFIG_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "APPDATA", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    folder, project = tmp_path / "home", tmp_path / "project"
    folder.mkdir()
    project.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("USERPROFILE", str(folder))
    monkeypatch.chdir(project)
    return folder


def run(*arguments: str, stdin: str = "") -> Result:
    return CliRunner().invoke(cli, list(arguments), input=stdin)


def refused(*arguments: str, told: str) -> None:
    """Run a command that must fail with this reason."""
    result = run(*arguments)
    said = result.stderr + str(result.exception or "")
    assert result.exit_code == 1, result.output
    assert told in said


def file_of(client: Client, home: Path) -> Path:
    """Return the path of a client's user file, and create its folder as the client would."""
    (found,) = locations_of(client, "user", Machine.this())
    found.file.parent.mkdir(parents=True, exist_ok=True)
    assert found.file.is_relative_to(home)
    return found.file


def real_file(client: Client, home: Path) -> Path:
    """Return a client's file with the content of a real one."""
    file = file_of(client, home)
    shutil.copyfile(next(FILES.glob(f"{client.name}.*")), file)
    return file


def held(client: Client, file: Path) -> dict[str, Any]:
    text = file.read_bytes().decode("utf-8-sig")
    value: Any = tomllib.loads(text) if client.form == "toml" else jsonc.read(text)
    for key in client.path:
        value = value[key]
    return dict(value)


def beside(file: Path) -> list[Path]:
    return sorted(path for path in file.parent.iterdir() if path != file)


FILE_CLIENTS = [client for client in CLIENTS.values() if client.own_command is None]
BY_NAME = pytest.mark.parametrize("client", FILE_CLIENTS, ids=lambda client: client.name)


@BY_NAME
def test_uninstall_restores_a_real_file_byte_by_byte(client: Client, home: Path) -> None:
    file = real_file(client, home)
    before = file.read_bytes()
    result = run("install", "--client", client.name)
    assert result.exit_code == 0, result.output
    assert "memoryos added" in result.stdout
    assert "was not found" not in result.stdout
    assert held(client, file)["memoryos"]["command"] == entries.this_command()[0]
    (backup,) = beside(file)
    assert backup.read_bytes() == before
    assert str(backup) in result.stdout
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    again = run("install", "--client", client.name)
    assert (again.exit_code, beside(file)) == (0, [backup])
    assert "nothing to do" in again.stdout
    taken_out = run("uninstall", "--client", client.name)
    assert taken_out.exit_code == 0
    assert client.then in result.stdout
    assert client.then not in taken_out.stdout
    assert f"if {client.title} is running" in taken_out.stdout
    assert file.read_bytes() == before


@BY_NAME
@pytest.mark.parametrize("content", [None, b"", b"\n", b"\xef\xbb\xbf"], ids=["missing", "empty", "blank", "mark"])
def test_an_empty_file_is_written(client: Client, content: bytes | None, home: Path) -> None:
    file = file_of(client, home)
    if content is not None:
        file.write_bytes(content)
    assert run("install", "--client", client.name).exit_code == 0
    assert set(held(client, file)) == {"memoryos"}
    assert file.read_bytes().startswith(b"\xef\xbb\xbf") is (content == b"\xef\xbb\xbf")
    if content is None:
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert run("uninstall", "--client", client.name).exit_code == 0
    if content is None:
        assert client.form == "toml" or held(client, file) == {}
    else:
        assert file.read_bytes() == content


@BY_NAME
def test_a_dry_run_only_shows_the_change(client: Client, home: Path) -> None:
    file = real_file(client, home)
    before = file.read_bytes()
    shown = run("install", "--client", client.name, "--dry-run").stdout
    assert "would be added" in shown
    assert any(line.startswith("+") and "memoryos" in line for line in shown.splitlines())
    assert (file.read_bytes(), beside(file)) == (before, [])


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b'{"mcpServers": {', "not valid JSON (line 1, column 17)"),
        (b'{"mcpServers": []}', '"mcpServers" is not an object'),
        (b'{"mcpServers": {}, "mcpServers": {}}', "occurs more than once"),
        (b"[1, 2]", "not a JSON object"),
        (b'{"name": "\xe9"}', "not valid UTF-8"),
        ('{"mcpServers": {}}'.encode("utf-16"), "UTF-16"),
        (b"\x00" * 100, "not valid JSON"),
        (b'{"a": "' + b"x" * files.MAX_BYTES + b'"}', "larger than"),
        (b'{"mcpServers": {"memoryos": {"command": "node", "args": ["memory.js"]}}}', "not written by this program"),
        (b'{"mcpServers": {"memoryos": {"command": "uvx", "args": ["memoryos-mcp"]}}}', "to another project"),
        (b'{"mcpServers": {"memoryos": {"command": "uvx", "args": ["memoryos-mcp@2.1"]}}}', "to another project"),
        (b'{"mcpServers": {"memoryos": "on"}}', "not written by this program"),
        (b'{"mcpServers": {"memoryos": {"url": "https://a.example", "oauth": {}}}}', "not written by this program"),
    ],
)
def test_an_invalid_file_is_reported_and_not_changed(content: bytes, told: str, home: Path) -> None:
    file = file_of(CLIENTS["cursor"], home)
    file.write_bytes(content)
    refused("install", "--client", "cursor", told=told)
    refused("install", "--client", "cursor", told=str(file))
    if "is not an object" in told or "more than once" in told:
        assert "nothing to do" in run("uninstall", "--client", "cursor").stdout
    else:
        refused("uninstall", "--client", "cursor", told=told)
    assert file.read_bytes() == content
    assert beside(file) == []


def test_an_entry_of_another_program_needs_force(home: Path) -> None:
    file = file_of(CLIENTS["cursor"], home)
    file.write_text('{"mcpServers": {"memoryos": {"command": "node"}}}', encoding="utf-8")
    assert run("install", "--client", "cursor", "--force").exit_code == 0
    assert held(CLIENTS["cursor"], file)["memoryos"]["args"] == ["serve"]
    file.write_text('{"mcpServers": {"memoryos": {"command": "node"}}}', encoding="utf-8")
    assert run("uninstall", "--client", "cursor", "--force").exit_code == 0
    assert held(CLIENTS["cursor"], file) == {}


def test_a_toml_entry_that_is_not_a_table_is_not_removed(home: Path) -> None:
    file = file_of(CLIENTS["codex"], home)
    file.write_text('model = "a"\n', encoding="utf-8")
    run("install", "--client", "codex")
    file.write_text('[mcp_servers]\nmemoryos = "on"\n', encoding="utf-8")
    refused("uninstall", "--client", "codex", told="not written by this program")
    refused("uninstall", "--client", "codex", "--force", told="not written as a single table")
    assert file.read_text(encoding="utf-8") == '[mcp_servers]\nmemoryos = "on"\n'


def test_an_older_entry_is_updated_and_keeps_the_users_keys(home: Path) -> None:
    file = file_of(CLIENTS["cline"], home)
    old = {"command": "/gone/bin/memoryos-mcp", "args": ["serve"], "env": {"A": "b"}, "autoApprove": ["get_memory"]}
    file.write_text(json.dumps({"mcpServers": {"memoryos": old}}), encoding="utf-8")
    result = run("install", "--client", "cline", "--user-id", "ada")
    assert "updated" in result.stdout
    new = held(CLIENTS["cline"], file)["memoryos"]
    assert new == {**old, "command": entries.this_command()[0], "args": ["serve", "--user-id", "ada"]}
    run("uninstall", "--client", "cline")
    assert held(CLIENTS["cline"], file) == {}


def test_a_local_entry_can_become_a_remote_one_and_back(home: Path) -> None:
    for client in FILE_CLIENTS:
        if client.http is not None:
            local = entries.entry_of(client, LOCAL)
            remote = entries.entry_of(client, entries.Remote(URL, TOKEN), local)
            assert remote[client.http.url_key] == URL
            assert "command" not in remote
            assert entries.kind_of(client, remote) is entries.Kind.OURS
            assert entries.entry_of(client, LOCAL, remote) == local


def test_a_token_is_kept_only_for_the_same_address(home: Path) -> None:
    other = f"{URL}2"
    for client in FILE_CLIENTS:
        if client.http is not None:
            key = client.http.headers_key
            entry = entries.entry_of(client, entries.Remote(URL, TOKEN))
            entry[key]["X-Team"] = "memory"
            assert entries.entry_of(client, entries.Remote(URL), entry) == entry
            moved = entries.entry_of(client, entries.Remote(other), entry)
            assert moved == {**entry, client.http.url_key: other, key: {"X-Team": "memory"}}
            assert entries.entry_of(client, entries.Remote(URL, TOKEN), moved) == entry
    codex = CLIENTS["codex"]
    entry = entries.entry_of(codex, entries.Remote(URL, token_variable="MEM"))  # noqa: S106 - a variable's name
    assert entries.entry_of(codex, entries.Remote(URL), entry) == entry
    assert entries.entry_of(codex, entries.Remote(other), entry) == {"url": other}


def test_the_block_in_mcp_json_is_recognised() -> None:
    shipped = json.loads((FILES.parent.parent / "mcp.json").read_text(encoding="utf-8"))["mcpServers"]
    assert list(shipped) == [entries.NAME]
    assert entries.kind_of(CLIENTS["claude-desktop"], shipped[entries.NAME]) is entries.Kind.OURS


def test_a_link_is_followed_even_to_a_missing_target(home: Path, tmp_path: Path) -> None:
    for name in ("there.json", "not-there.json"):
        target, link = tmp_path / "dotfiles" / name, file_of(CLIENTS["cursor"], home)
        target.parent.mkdir(exist_ok=True)
        if name == "there.json":
            target.write_text('{"mcpServers": {"a": {}}}', encoding="utf-8")
        link.unlink(missing_ok=True)
        link.symlink_to(target)
        assert run("install", "--client", "cursor").exit_code == 0
        assert link.is_symlink()
        assert "memoryos" in held(CLIENTS["cursor"], target)


def test_a_folder_or_pipe_in_place_of_the_file_is_reported(home: Path) -> None:
    file = file_of(CLIENTS["cursor"], home)
    file.mkdir()
    refused("install", "--client", "cursor", told=f"{file} is a folder")
    file.rmdir()
    os.mkfifo(file)
    refused("install", "--client", "cursor", told=f"{file} is not a regular file")


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_read_only_file_is_not_changed(what: str, home: Path) -> None:
    file = real_file(CLIENTS["cursor"], home)
    before = file.read_bytes()
    path = file if what == "file" else file.parent
    mode = path.stat().st_mode
    path.chmod(0o444 if what == "file" else 0o555)
    try:
        refused("install", "--client", "cursor", told="read-only")
    finally:
        path.chmod(mode)
    assert file.read_bytes() == before
    assert beside(file) == []


def test_a_client_that_is_not_installed_is_reported(home: Path) -> None:
    shown = run("install", "--client", "zed").stdout
    assert "Zed was not found on this machine; Zed reads this file once it is installed" in shown
    told = json.loads(run("install", "--client", "codex", "--json").stdout)
    assert [change["is_client_there"] for change in told["changes"]] == [False]


def test_a_folder_that_cannot_be_created_is_reported(home: Path) -> None:
    (home / ".cursor").write_text("a file", encoding="utf-8")
    refused("install", "--client", "cursor", told="cannot be read")


def test_a_path_that_is_not_unicode_is_refused(home: Path) -> None:
    client = CLIENTS["cursor"]
    file = real_file(client, home)
    before = file.read_bytes()
    server = entries.Local("/opt/\udcff/memoryos-mcp", ("serve",))
    plan = planning.plan_install(
        Location(client, "user", file, is_client_there=True), server, "memoryos", is_forced=False
    )
    with pytest.raises(ClientFileError, match="not valid Unicode"):
        plan.carry_out(NOW)
    assert (file.read_bytes(), beside(file)) == (before, [])


def test_permissions_and_owner_are_kept(home: Path) -> None:
    file = real_file(CLIENTS["cursor"], home)
    file.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(file, 1234, 1235)
    before = file.stat()
    assert run("install", "--client", "cursor").exit_code == 0
    after = file.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)


def test_a_file_changed_by_another_program_is_not_written(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client = CLIENTS["cursor"]
    file = real_file(client, home)
    plan = planning.plan_install(
        Location(client, "user", file, is_client_there=True), LOCAL, "memoryos", is_forced=False
    )
    before = file.read_bytes()
    newer = before.replace(b"browser", b"browser2")
    file.write_bytes(newer)
    with pytest.raises(ClientFileError, match="changed by another program"):
        plan.carry_out(NOW)
    assert (file.read_bytes(), beside(file)) == (newer, [])
    file.unlink()
    with pytest.raises(ClientFileError, match="changed by another program"):
        plan.carry_out(NOW)
    assert list(file.parent.iterdir()) == []
    file.write_bytes(before)
    sync = os.fsync

    def sync_and_change(descriptor: int) -> None:
        file.write_bytes(newer)
        sync(descriptor)

    monkeypatch.setattr("memoryos_mcp.cli.installer.files.os.fsync", sync_and_change)
    with pytest.raises(ClientFileError, match="changed by another program"):
        plan.carry_out(NOW)
    assert (file.read_bytes(), beside(file)) == (newer, [])


def test_uninstall_keeps_later_changes_of_the_file(home: Path) -> None:
    client = CLIENTS["claude-desktop"]
    file = real_file(client, home)
    run("install", "--client", client.name)
    changed = file.read_bytes().replace(b"Europe/Lisbon", b"Europe/Porto")
    file.write_bytes(changed)
    assert run("uninstall", "--client", client.name).exit_code == 0
    assert file.read_bytes() == next(FILES.glob("claude-desktop.*")).read_bytes().replace(b"Lisbon", b"Porto")


def test_one_invalid_file_does_not_stop_the_others(home: Path) -> None:
    broken, good = file_of(CLIENTS["cursor"], home), real_file(CLIENTS["gemini"], home)
    broken.write_text("{", encoding="utf-8")
    result = run("install", "--client", "all", "--json")
    told = json.loads(result.stdout)
    assert (result.exit_code, told["ok"]) == (1, False)
    actions = {change["client"]: change["action"] for change in told["changes"]}
    assert actions == {"cursor": "refused", "gemini": "add"}
    assert "memoryos" in held(CLIENTS["gemini"], good)


def test_an_unreadable_home_folder_has_no_clients(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Path) -> bool:
        raise PermissionError

    monkeypatch.setattr(Path, "is_dir", refuse)
    assert "No MCP client was found" in run("install").stdout


def test_without_a_client_option_clients_are_listed(home: Path) -> None:
    assert "No MCP client was found" in run("install").stdout
    real_file(CLIENTS["windsurf"], home)
    run("install", "--client", "windsurf")
    assert "The server is in all of these files" in run("install").stdout
    file_of(CLIENTS["zed"], home).write_text("{", encoding="utf-8")
    shown = run("install").stdout
    assert [line.split()[:2] for line in shown.splitlines()[:2]] == [["windsurf", "added"], ["zed", "unreadable"]]
    assert "--client all" in shown
    listed = json.loads(run("uninstall", "--json").stdout)
    assert [each["state"] for each in listed["clients"]] == ["added", "unreadable"]
    assert listed["known"] == list(CLIENTS)


@pytest.mark.parametrize("client", [c for c in CLIENTS.values() if c.project], ids=lambda client: client.name)
def test_a_projects_file_is_in_the_working_folder(client: Client, home: Path) -> None:
    assert run("install", "--client", client.name, "--scope", "project").exit_code == 0
    file = Path.cwd() / str(client.project)
    assert "memoryos" in held(client, file)
    assert stat.S_IMODE(file.stat().st_mode) & 0o077 == 0o044
    assert not list(home.iterdir())


def test_a_new_project_file_with_a_token_is_private(home: Path) -> None:
    result = run("install", "--client", "cursor", "--scope", "project", "--http", URL, "--token", "-", stdin=TOKEN)
    assert "do not commit this file" in result.stderr
    assert stat.S_IMODE((Path.cwd() / ".cursor" / "mcp.json").stat().st_mode) == 0o600


def test_unsupported_requests_name_an_alternative(home: Path) -> None:
    for name in ("claude-desktop", "cline", "windsurf"):
        refused(
            "install", "--client", name, "--scope", "project", told="has no configuration file for a single project"
        )
    refused("install", "--client", "claude-desktop", "--http", URL, told="Settings, Connectors")
    for name in ("cline", "zed"):
        arguments = ("install", "--client", name, "--http", URL, "--token-variable", "TOKEN")
        refused(*arguments, told="does not support environment variables")
    assert not list(home.iterdir())


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--http", "ftp://a"), "the address is not valid"),
        (("--http", "http://[::1"), "the address is not valid"),
        (("--http", "localhost:8000"), "the address is not valid"),
        (("--http", "http://u:p@a/mcp"), "contains a user name"),
        (("--http", URL, "--token", "a b"), "--token"),
        (("--http", URL, "--token", " "), "--token"),
        (("--http", URL, "--token", "a", "--token-variable", "B"), "one of them"),
        (("--http", URL, "--token-variable", "a b"), "not a valid name of an environment variable"),
        (("--http", URL, "--user-id", "ada"), "settings"),
        (("--token", "a"), "--http URL"),
        (("--name", "a b"), "--name"),
        (("--config", "not-there.json"), "not-there.json"),
        (("--user-id", ""), "user_id"),
    ],
)
def test_invalid_arguments_are_refused_before_any_change(arguments: tuple[str, ...], told: str, home: Path) -> None:
    file = real_file(CLIENTS["cursor"], home)
    before = file.read_bytes()
    result = run("install", "--client", "cursor", *arguments)
    assert result.exit_code != 0
    assert told in str(result.exception)
    assert file.read_bytes() == before


EXPECTED_HTTP: Mapping[str, Mapping[str, Any]] = {
    "cline": {"type": "streamableHttp", "url": URL, "disabled": False, "autoApprove": [], "timeout": 60},
    "cursor": {"url": URL},
    "vscode": {"type": "http", "url": URL},
    "claude-code": {"type": "http", "url": URL},
    "windsurf": {"serverUrl": URL},
    "zed": {"url": URL},
    "codex": {"url": URL},
    "gemini": {"httpUrl": URL},
}


@pytest.mark.parametrize("name", EXPECTED_HTTP)
def test_a_remote_entry_has_the_form_of_the_client(name: str, home: Path) -> None:
    client = CLIENTS[name]
    assert client.http is not None
    scope = ("--scope", "project") if client.own_command else ()
    file = Path.cwd() / str(client.project) if scope else file_of(client, home)
    arguments = ("--client", name, *scope, "--http", URL.removesuffix("/mcp"))
    for further in ((), ("--dry-run",), ("--json",)):
        result = run("install", *arguments, *further, "--token", "-", stdin=f"{TOKEN}\n")
        assert result.exit_code == 0, result.output
        assert TOKEN not in result.output
    headers = {client.http.headers_key: {"Authorization": f"Bearer {TOKEN}"}}
    assert held(client, file)["memoryos"] == {**EXPECTED_HTTP[name], **headers}
    shown = run("uninstall", *arguments[:2], *scope)
    assert shown.exit_code == 0
    assert TOKEN not in shown.output


def test_a_token_on_the_command_line_causes_a_warning(home: Path) -> None:
    file_of(CLIENTS["cursor"], home)
    result = run("install", "--client", "cursor", "--http", "http://far.example", "--token", TOKEN)
    assert result.exit_code == 0
    assert "other accounts on this machine can read a token" in result.stderr
    assert "others on the network can read it; use an https" in result.stderr
    assert TOKEN not in result.output


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cursor", {"headers": {"Authorization": "Bearer ${env:MEM}"}}),
        ("vscode", {"headers": {"Authorization": "Bearer ${env:MEM}"}}),
        ("windsurf", {"headers": {"Authorization": "Bearer ${env:MEM}"}}),
        ("gemini", {"headers": {"Authorization": "Bearer ${MEM}"}}),
        ("codex", {"bearer_token_env_var": "MEM"}),
    ],
)
def test_a_client_can_read_the_token_from_a_variable(name: str, expected: Mapping[str, Any], home: Path) -> None:
    file = file_of(CLIENTS[name], home)
    result = run("install", "--client", name, "--http", URL, "--token-variable", "MEM")
    assert result.exit_code == 0, result.output
    entry = held(CLIENTS[name], file)["memoryos"]
    assert expected.items() <= entry.items()


def test_keys_of_other_servers_are_masked_in_long_lines_too(home: Path) -> None:
    key = "sk-proj-" + "Ab1" * 16
    others = {f"server{number}": {"command": "x", "env": {"OPENAI_API_KEY": key}} for number in range(20)}
    file = file_of(CLIENTS["cursor"], home)
    file.write_text(json.dumps({"mcpServers": others}), encoding="utf-8")
    shown = run("install", "--client", "cursor").stdout
    assert key not in shown
    assert max(map(len, shown.splitlines())) < 400


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ('"GITHUB_TOKEN": "hunter2"', "hunter2"),
        ('"Authorization": "Basic dXNlcjpwYXNz"', "dXNlcjpwYXNz"),
        ('"authorization": "bearer hunter2"', "hunter2"),
        ('"Authorization": "Bearer ab}\'hunter2"', "hunter2"),
        ('"Authorization": "Bearer ab\\"hunter2"', "hunter2"),
        ('"password" : "a\\"hunter2"', "hunter2"),
        ("api_key = 'hunter2'", "hunter2"),
        ('http_headers = { X-Api-Key = "hunter2" }', "hunter2"),
    ],
)
def test_values_with_names_of_secrets_are_masked(text: str, secret: str) -> None:
    assert secret not in masked(text)
    assert masked(text).count('"') % 2 == 0


@pytest.mark.parametrize(
    "text",
    [
        '"Authorization": "Bearer ${env:MEM}"',
        'bearer_token_env_var = "MEM"',
        '"API_KEY": "${input:key}"',
        '"command": "/opt/bin/memoryos-mcp"',
        '"keys": []',
    ],
)
def test_other_values_are_shown(text: str) -> None:
    assert masked(text) == text


@pytest.mark.parametrize("indent", [None, 2])
def test_old_and_new_token_are_masked(indent: int | None, home: Path) -> None:
    older = "mem_4f9a8b7cwxyz"
    others = {f"server{number}": {"command": "x" * 50} for number in range(20)}
    file = file_of(CLIENTS["cursor"], home)
    entry = entries.entry_of(CLIENTS["cursor"], entries.Remote(URL, older))
    file.write_text(json.dumps({"mcpServers": {**others, "memoryos": entry}}, indent=indent), encoding="utf-8")
    result = run("install", "--client", "cursor", "--http", URL, "--token", "-", stdin=TOKEN)
    assert "updated" in result.stdout
    assert TOKEN in file.read_text(encoding="utf-8")
    for secret in (TOKEN, older, TOKEN[-4:], older[-4:]):
        assert secret not in result.output


def test_variables_that_a_client_does_not_pass_on_are_reported(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYOS_USER_ID", "ada")
    result = run("install", "--client", "cursor", "--dry-run")
    assert "MEMORYOS_USER_ID is set here, but perhaps not when a client starts the server" in result.stderr


def test_a_database_is_passed_on_unless_its_address_has_a_password(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url, password = "postgresql://ada@db.example.org/memories?sslmode=verify-full", "geheim-42"
    assert run("install", "--client", "cursor", "--database-url", url).exit_code == 0
    file = file_of(CLIENTS["cursor"], home)
    assert held(CLIENTS["cursor"], file)["memoryos"]["args"] == ["serve", "--database-url", url]
    before = file.read_bytes()
    for secret in (url.replace("ada@", f"ada:{password}@"), f"{url}&password={password}"):
        told = "--database-url: the address contains a password, which the client's file would show; put database_url"
        refused("install", "--client", "cursor", "--database-url", secret, told=told)
        refused("install", "--client", "cursor", "--link", "--database-url", secret, told=told)
        monkeypatch.setenv("MEMORYOS_DATABASE_URL", secret)
        result = run("install", "--client", "vscode")
        assert "MEMORYOS_DATABASE_URL is set here, but perhaps not when a client starts" in result.stderr
        assert password not in result.output
    assert file.read_bytes() == before
    config = home / "memory.json"
    config.write_text(json.dumps({"database_url": secret}), encoding="utf-8")
    assert run("install", "--client", "cursor", "--config", str(config)).exit_code == 0
    assert held(CLIENTS["cursor"], file)["memoryos"]["args"] == ["serve", "--config", str(config)]
    refused(
        "install", "--client", "cursor", "--http", URL, "--database-url", url, told="cannot be combined with --config"
    )


LINUX = {"XDG_CONFIG_HOME": "/x/config", "CODEX_HOME": "/x/codex", "CLAUDE_CONFIG_DIR": "/x/claude"}
WINDOWS = {"APPDATA": "/u/AppData/Roaming", "LOCALAPPDATA": "/u/AppData/Local"}


@pytest.mark.parametrize(
    ("platform", "environment", "name", "expected"),
    [
        ("linux", {}, "claude-desktop", "/u/.config/Claude/claude_desktop_config.json"),
        ("linux", LINUX, "claude-desktop", "/x/config/Claude/claude_desktop_config.json"),
        ("linux", {"XDG_CONFIG_HOME": "relative"}, "vscode", "/u/.config/Code/User/mcp.json"),
        ("linux", LINUX, "vscode", "/x/config/Code/User/mcp.json"),
        ("linux", LINUX, "zed", "/x/config/zed/settings.json"),
        ("linux", LINUX, "codex", "/x/codex/config.toml"),
        ("linux", LINUX, "claude-code", "/x/claude/.claude.json"),
        ("linux", {}, "claude-code", "/u/.claude.json"),
        ("macos", LINUX, "zed", "/u/.config/zed/settings.json"),
        ("macos", {}, "claude-desktop", "/u/Library/Application Support/Claude/claude_desktop_config.json"),
        ("macos", {}, "vscode", "/u/Library/Application Support/Code/User/mcp.json"),
        ("macos", {}, "cline", "/u/.cline/data/settings/cline_mcp_settings.json"),
        ("windows", WINDOWS, "claude-desktop", "/u/AppData/Roaming/Claude/claude_desktop_config.json"),
        ("windows", {}, "claude-desktop", "/u/AppData/Roaming/Claude/claude_desktop_config.json"),
        ("windows", WINDOWS, "zed", "/u/AppData/Roaming/Zed/settings.json"),
        ("windows", WINDOWS, "gemini", "/u/.gemini/settings.json"),
        ("windows", WINDOWS, "windsurf", "/u/.codeium/windsurf/mcp_config.json"),
    ],
)
def test_each_platform_has_its_places_of_files(
    platform: Any, environment: Mapping[str, str], name: str, expected: str
) -> None:
    machine = Machine(platform, Path("/u"), environment, Path("/p"))
    (found,) = locations_of(CLIENTS[name], "user", machine)
    assert (found.file.as_posix(), found.is_client_there) == (expected, False)


def test_packaged_claude_desktop_and_editors_of_cline_are_found(tmp_path: Path) -> None:
    packaged = tmp_path / "AppData/Local/Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude"
    packaged.mkdir(parents=True)
    machine = Machine("windows", tmp_path, {}, tmp_path)
    found = locations_of(CLIENTS["claude-desktop"], "user", machine)
    assert [each.file for each in found] == [packaged / "claude_desktop_config.json"]
    (tmp_path / "AppData/Roaming/Claude").mkdir(parents=True)
    assert len(locations_of(CLIENTS["claude-desktop"], "user", machine)) == 2
    for editor in ("Code", "Cursor"):
        (tmp_path / f"AppData/Roaming/{editor}/User/globalStorage/saoudrizwan.claude-dev").mkdir(parents=True)
    there = [each.file for each in locations_of(CLIENTS["cline"], "user", machine)]
    assert [file.parts[-6] for file in there] == ["Code", "Cursor"]


STAND_IN = """#!{python}
import json, sys
from pathlib import Path
file, words = Path({file!r}), sys.argv[1:]
with Path({log!r}).open("a", encoding="utf-8") as log:
    log.write(json.dumps(words) + "\\n")
held = json.loads(file.read_text(encoding="utf-8"))
if words[:2] == ["mcp", "remove"]:
    del held["mcpServers"][words[-1]]
elif "--" in words:
    at = words.index("--")
    entry = {{"type": "stdio", "command": words[at + 1], "args": words[at + 2:], "env": {{}}}}
    held["mcpServers"][words[at - 1]] = entry
else:
    sys.exit("no stdio\\nfurther")
file.write_text(json.dumps(held), encoding="utf-8")
"""


@pytest.fixture
def claude(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install a fake of Claude Code's command, and return the log of its calls."""
    file, log, script = home / ".claude.json", tmp_path / "claude.log", tmp_path / "bin" / "claude"
    file.write_text('{"numStartups": 3, "mcpServers": {}}', encoding="utf-8")
    script.parent.mkdir()
    text = STAND_IN.format(python=sys.executable, file=str(file), log=str(log))
    script.write_text(text, encoding="utf-8")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(script.parent), prepend=os.pathsep)
    return log


def test_claude_codes_user_file_is_changed_by_its_command(claude: Path, home: Path) -> None:
    command = entries.this_command()
    dry = run("install", "--client", "claude-code", "--dry-run")
    assert "claude mcp add --scope user --transport stdio memoryos -- " in dry.stdout
    assert not claude.exists()
    for arguments in ((), (), ("--user-id", "ada")):
        result = run("install", "--client", "claude-code", *arguments)
        assert result.exit_code == 0, result.output
    assert run("uninstall", "--client", "claude-code").exit_code == 0
    assert run("uninstall", "--client", "claude-code").exit_code == 0
    start = ["mcp", "add", "--scope", "user", "--transport", "stdio", "memoryos", "--", *command, "serve"]
    remove = ["mcp", "remove", "--scope", "user", "memoryos"]
    called = [json.loads(line) for line in claude.read_text(encoding="utf-8").splitlines()]
    assert called == [start, remove, [*start, "--user-id", "ada"], remove]
    assert beside(home / ".claude.json") == []


def test_an_error_of_claude_codes_command_is_reported(claude: Path, home: Path) -> None:
    arguments = ("install", "--client", "claude-code", "--http", URL)
    refused(*arguments, "--token-variable", "MEM", told="failed (no stdio)")
    refused(*arguments, "--token", TOKEN, told="use --token-variable NAME")
    (line,) = claude.read_text(encoding="utf-8").splitlines()
    assert json.loads(line)[-3:] == [URL, "--header", "Authorization: Bearer ${MEM}"]
    (home / ".claude.json").write_text('{"mcpServers": {"memoryos": {"command": "node"}}}', encoding="utf-8")
    refused("install", "--client", "claude-code", told="not written by this program")
    refused("uninstall", "--client", "claude-code", told="not written by this program")


def test_the_users_keys_in_claude_codes_entry_are_not_lost(claude: Path, home: Path) -> None:
    run("install", "--client", "claude-code")
    file = home / ".claude.json"
    text = file.read_text(encoding="utf-8").replace('"env": {}', '"env": {"MEMORYOS_LLM_MODEL": "a"}, "timeout": 9')
    file.write_text(text, encoding="utf-8")
    assert "nothing to do" in run("install", "--client", "claude-code").stdout
    refused(
        "install",
        "--client",
        "claude-code",
        "--user-id",
        "ada",
        told="cannot write these keys of the entry: env, timeout",
    )
    assert file.read_text(encoding="utf-8") == text


def test_finished_claude_commands_are_not_suggested_again(claude: Path, home: Path) -> None:
    run("install", "--client", "claude-code", "--http", URL)  # the fake command refuses this one
    entry = {"type": "http", "url": f"{URL}2"}
    (home / ".claude.json").write_text(json.dumps({"mcpServers": {"memoryos": entry}}), encoding="utf-8")
    refused("install", "--client", "claude-code", "--http", URL, told="run this yourself: claude mcp add --scope user")
    assert "memoryos" not in held(CLIENTS["claude-code"], home / ".claude.json")


def test_without_claude_codes_command_the_command_is_shown(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(home))
    refused(
        "install", "--client", "claude-code", told="add its folder to the PATH, then run: claude mcp add --scope user"
    )


def test_the_entry_of_each_client_starts_the_server(home: Path) -> None:
    """The environment is empty and the working folder is the root; equal command lines are started once."""
    config = home / "memory.json"
    config.write_text('{"embedding_model_name": "none"}', encoding="utf-8")
    settings = ("--config", str(config), "--user-id", "ada", "--data-storage-path", str(home / "data"))
    lines = set()
    for name, client in CLIENTS.items():
        scope = ("--scope", "project") if client.own_command else ()
        result = run("install", "--client", name, *scope, *settings)
        assert result.exit_code == 0, result.output
        file = Path.cwd() / str(client.project) if scope else file_of(client, home)
        entry = held(client, file)["memoryos"]
        assert entries.problem_of(entry) is None
        lines.add((entry["command"], *entry["args"]))

    async def speak(line: Sequence[str]) -> None:
        # `env -i` removes the variables that the SDK adds.
        bare = list(line) if os.name == "nt" else ["-i", *line]
        command = bare.pop(0) if os.name == "nt" else "/usr/bin/env"
        parameters = StdioServerParameters(command=command, args=bare, env={}, cwd="/")
        with anyio.fail_after(LIMIT_S):
            async with McpClient(stdio_client(parameters)) as server:
                added = await server.call_tool("add_memory", {"user_input": "I keep bees.", "agent_response": "Oh!"})
                found = await server.call_tool("retrieve_memory", {"query": "bees"})
        for reply in (added, found):
            assert isinstance(reply, CallToolResult)
            assert not reply.is_error, reply.content
        assert "I keep bees." in json.dumps(found.structured_content)

    for line in lines:
        anyio.run(speak, line)
    assert (home / "data" / "users" / "ada").is_dir()


def test_stdout_of_a_process_is_only_json(home: Path) -> None:
    file = real_file(CLIENTS["codex"], home)
    command = [sys.executable, "-m", "memoryos_mcp", "install", "--client", "codex", "--json"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=LIMIT_S, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    (change,) = json.loads(done.stdout)["changes"]
    assert (change["action"], change["is_done"], change["file"]) == ("add", True, str(file))


def test_without_the_script_the_installed_module_is_started(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memoryos_mcp.cli.installer.entries.os.access", lambda *_: False)
    command = entries.this_command()
    assert command == (sys.executable, "-P", "-m", "memoryos_mcp")
    (Path.cwd() / "json.py").write_text("raise SystemExit('the wrong module')", encoding="utf-8")
    done = subprocess.run([*command, "--version"], capture_output=True, encoding="utf-8", timeout=LIMIT_S, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", ["codex", "gemini", "cursor"])
def test_hooks_are_added_and_removed_byte_for_byte(name: str, home: Path) -> None:
    file = hooks.file_of(name, "user", Machine.this())
    file.parent.mkdir(parents=True, exist_ok=True)
    event = EVENTS[name]["stop"]
    before = f'{{\r\n\t// mine\r\n\t"hooks": {{ "{event}": [ {{ "command": "say done" }}, ], }},\r\n}}\r\n'
    file.write_bytes(before.encode())
    done = run("install", "--client", name, "--hooks", "--user-id", "ada b")
    assert done.exit_code == 0, done.output
    written = jsonc.read(file.read_bytes().decode())["hooks"]
    assert {event for event, items in written.items() if "memoryos" in json.dumps(items)} == set(EVENTS[name].values())
    assert written[event][0] == {"command": "say done"}
    assert "up to date" in run("install", "--client", name, "--hooks", "--user-id", "ada b").output
    assert run("uninstall", "--client", name).exit_code == 0
    assert file.read_bytes().decode() == before


def test_rules_are_added_and_removed_byte_for_byte(home: Path) -> None:
    file = Path("AGENTS.md")
    for before in (b"# Mine\r\n", b"# Mine", b""):
        file.write_bytes(before)
        assert run("install", "--client", "vscode", "--rules", "--scope", "project").exit_code == 0
        assert file.read_bytes().startswith(before)
        assert b"add_memory" in file.read_bytes()
        assert run("uninstall", "--client", "vscode", "--scope", "project").exit_code == 0
        assert file.read_bytes().rstrip(b"\r\n") == before.rstrip(b"\r\n")


def test_a_client_without_hooks_is_told_about_rules(home: Path) -> None:
    refused("install", "--client", "zed", "--hooks", told="use --rules")


def test_a_dry_run_of_hooks_changes_nothing(home: Path) -> None:
    assert run("install", "--client", "gemini", "--hooks", "--dry-run").exit_code == 0
    assert not (home / ".gemini").exists()
