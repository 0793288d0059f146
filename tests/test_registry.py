"""Data for registries and links: valid by the registry's schema, and the same everywhere."""

import base64
import copy
import json
import re
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft7Validator
from pydantic import SecretStr

from memoryos_mcp import __version__
from memoryos_mcp.cli.commands.bundle.manifest import USER_SETTINGS
from memoryos_mcp.cli.commands.install_links import LINKS, cursor_link, vscode_link
from memoryos_mcp.cli.commands.installing import server_of
from memoryos_mcp.cli.installer.catalogue import CLIENTS
from memoryos_mcp.cli.installer.entries import entry_of
from memoryos_mcp.cli.main import cli
from memoryos_mcp.config import ENV_PREFIX, Settings
from memoryos_mcp.config.sources import load_settings
from memoryos_mcp.config.values import allowed_texts, value_type
from memoryos_mcp.errors import ArgumentError

ROOT = Path(__file__).parent.parent
SERVER = json.loads((ROOT / "server.json").read_text(encoding="utf-8"))
SCHEMA = json.loads((ROOT / "tests" / "registry" / "server.schema.json").read_text(encoding="utf-8"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
(PACKAGE,) = SERVER["packages"]
VARIABLES: list[dict[str, Any]] = PACKAGE["environmentVariables"]


# server.json


def test_server_json_is_valid_by_the_registrys_schema() -> None:
    Draft7Validator.check_schema(SCHEMA)
    assert SERVER["$schema"] == SCHEMA["$id"]
    assert [error.message for error in Draft7Validator(SCHEMA).iter_errors(SERVER)] == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["name"], "memoryos"),
        (["description"], "x" * 101),
        (["packages", 0, "version"], "latest"),
        (["packages", 0, "transport"], {"type": "pipe"}),
        (["packages", 0, "environmentVariables", 0, "isSecret"], "yes"),
        (["packages", 0, "packageArguments", 0], {"type": "positional"}),
    ],
    ids=lambda part: ".".join(map(str, part)) if isinstance(part, list) else None,
)
def test_the_registrys_schema_refuses_what_is_wrong(path: list[str | int], value: object) -> None:
    broken: Any = copy.deepcopy(SERVER)
    *way, last = path
    place = broken
    for step in way:
        place = place[step]
    place[last] = value
    assert not Draft7Validator(SCHEMA).is_valid(broken)


def test_the_version_is_the_same_everywhere() -> None:
    assert {SERVER["version"], PACKAGE["version"], PROJECT["version"]} == {__version__}


def test_the_name_is_the_same_everywhere() -> None:
    assert PACKAGE["identifier"] == PROJECT["name"]
    marks = re.findall(r"mcp-name: ?(\S+)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert marks == [SERVER["name"]]
    labels = re.findall(r'io\.modelcontextprotocol\.server\.name="([^"]+)"', (ROOT / "Dockerfile").read_text("utf-8"))
    assert labels == [SERVER["name"]]


def test_the_registrys_command_line_is_valid() -> None:
    # `uvx NAME ARGUMENTS` runs the script with the name of the distribution.
    assert PACKAGE["runtimeHint"] == "uvx"
    assert PROJECT["scripts"][PACKAGE["identifier"]].startswith("memoryos_mcp.__main__:")
    (argument,) = PACKAGE["packageArguments"]
    assert isinstance(cli.commands[argument["value"]], click.Command)
    assert argument["value"] == "serve"
    assert PACKAGE["transport"] == {"type": Settings.model_fields["transport"].default}


def test_registry_and_bundle_have_the_same_settings() -> None:
    assert [each["name"] for each in VARIABLES] == [asked.variable for asked in USER_SETTINGS]


@pytest.mark.parametrize("variable", VARIABLES, ids=lambda variable: variable["name"])
def test_a_variable_is_a_setting_with_its_default_and_its_values(variable: dict[str, Any]) -> None:
    name = variable["name"].removeprefix(ENV_PREFIX).lower()
    default = Settings.model_fields[name].default
    assert variable.get("default") == (default if isinstance(default, str) else None)
    assert variable.get("isSecret", False) is (value_type(name) is SecretStr)
    assert (variable.get("format") == "filepath") is (value_type(name) is Path)
    assert sorted(variable.get("choices", [])) == sorted(allowed_texts(name))


def test_the_registrys_defaults_are_valid_settings(bare_environment: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in VARIABLES:
        monkeypatch.setenv(variable["name"], variable.get("default", ""))
    assert load_settings(None, {}) == Settings()


# Links

ENTRIES = st.fixed_dictionaries(
    {"command": st.text(min_size=1), "args": st.lists(st.text()), "env": st.dictionaries(st.text(), st.text())}
)


def of_cursor(link: str) -> tuple[str, dict[str, Any]]:
    """Return the name and the entry that Cursor reads in a link."""
    parts = urlsplit(link)
    assert (parts.scheme, parts.netloc, parts.path) == ("cursor", "anysphere.cursor-deeplink", "/mcp/install")
    query = parse_qs(parts.query, strict_parsing=True, keep_blank_values=True)
    assert list(query) == ["name", "config"]
    return query["name"][0], json.loads(base64.b64decode(query["config"][0], validate=True))


def of_vscode(link: str) -> dict[str, Any]:
    """Return the entry that VS Code reads in a link."""
    start, _, encoded = link.partition("?")
    assert start == "vscode:mcp/install"
    loaded: dict[str, Any] = json.loads(unquote(encoded, errors="strict"))
    return loaded


@given(name=st.text(min_size=1), entry=ENTRIES)
def test_a_client_reads_the_entry_from_a_link(name: str, entry: dict[str, Any]) -> None:
    for link in (cursor_link(name, entry), vscode_link(name, entry)):
        assert re.fullmatch(r"[!-~]+", link)
        assert not set('<>"`()[]{}|\\^ ') & set(link)  # these characters would end the link in a document
    assert of_cursor(cursor_link(name, entry)) == (name, entry)
    assert of_vscode(vscode_link(name, entry)) == {"name": name, **entry}


def test_links_in_the_document_start_the_distribution() -> None:
    text = (ROOT / "docs" / "bundle.md").read_text(encoding="utf-8")
    (cursor,) = re.findall(r"cursor://\S+", text)
    (vscode,) = re.findall(r"vscode:mcp/\S+", text)
    entry = {"command": "uvx", "args": [PROJECT["name"], "serve"]}
    assert cursor == cursor_link("memoryos", entry)
    assert vscode == vscode_link("memoryos", {"type": "stdio", **entry})


@pytest.mark.parametrize("name", LINKS)
def test_the_link_contains_the_entry_that_install_writes(name: str) -> None:
    done = CliRunner().invoke(cli, ["install", "--client", name, "--link", "--user-id", "ada"])
    assert done.exit_code == 0
    (link,) = done.stdout.splitlines()
    entry = entry_of(CLIENTS[name], server_of(None, None, None, None, "ada", None))
    assert link == LINKS[name]("memoryos", entry)
    assert Path(entry["command"]).is_absolute()
    told = CliRunner().invoke(cli, ["install", "--client", name, "--link", "--user-id", "ada", "--json"])
    assert json.loads(told.stdout) == {"links": {name: link}}


def test_all_means_every_client_that_supports_links() -> None:
    done = CliRunner().invoke(cli, ["install", "--client", "all", "--link", "--json"])
    assert json.loads(done.stdout)["links"].keys() == LINKS.keys()


def test_a_client_without_links_is_refused() -> None:
    done = CliRunner().invoke(cli, ["install", "--client", "zed", "--link"])
    assert isinstance(done.exception, ArgumentError)
    assert "Zed does not support links; omit --link, or use --client with cursor or vscode" in str(done.exception)


def test_a_link_with_a_token_causes_a_warning() -> None:
    address = ["--http", "http://127.0.0.1:8000/mcp", "--link"]
    done = CliRunner().invoke(cli, ["install", "--client", "cursor", *address, "--token", "t0k3n"])
    assert of_cursor(done.stdout.strip())[1]["headers"] == {"Authorization": "Bearer t0k3n"}
    assert done.stderr.endswith("\nmemoryos-mcp: the link contains the token, so keep the link secret\n")
    done = CliRunner().invoke(cli, ["install", "--client", "cursor", *address, "--token-variable", "MEMORY_TOKEN"])
    assert done.stderr == ""
