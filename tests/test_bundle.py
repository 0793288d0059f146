"""The MCP bundle: the official tool accepts it, and a client can start its server."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from packaging.requirements import Requirement
from pydantic import SecretStr

from memoryos_mcp import __version__
from memoryos_mcp.cli.commands.bundle import DEFAULT_NAME, DISTRIBUTION, archive, bundled_files
from memoryos_mcp.cli.commands.bundle.manifest import ENTRY_POINT, USER_SETTINGS, UserSetting
from memoryos_mcp.cli.main import cli
from memoryos_mcp.config import Settings
from memoryos_mcp.config.sources import load_settings
from memoryos_mcp.config.values import value_type
from memoryos_mcp.errors import StorageError
from memoryos_mcp.storage.sqlite.paths import database_file
from tests.programs import MCPB, NODE, NODE_PACKAGES, program
from tests.servers import USER, clean_environment, sdk_client

pytestmark = pytest.mark.campaign

ROOT = Path(__file__).parent.parent
HOST = ROOT / "tests" / "clients" / "mcpb_host.mjs"
UV = Path(sys.executable).parent / "uv"
LIMIT_S = 120
# The first start downloads the server's requirements.
FIRST_START_LIMIT_S = 300.0


def bundle(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["bundle", *arguments])


def mcpb(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the official tool."""
    return subprocess.run(
        [program(NODE), program(MCPB), *arguments], capture_output=True, encoding="utf-8", timeout=LIMIT_S, check=False
    )


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a bundle that the command wrote and the official tool unpacked."""
    folder = tmp_path_factory.mktemp("bundle")
    assert bundle(str(folder)).exit_code == 0
    done = mcpb("unpack", folder / DEFAULT_NAME, folder / "unpacked")
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "unpacked"


def manifest_of(folder: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    return loaded


# Contents


def test_the_official_validator_accepts_the_bundle(unpacked: Path) -> None:
    done = mcpb("validate", unpacked)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Manifest schema validation passes!" in done.stdout
    assert "Icon validation passed" in done.stdout
    assert manifest_of(unpacked)["manifest_version"] == "0.4"


@pytest.mark.parametrize("missing", ["name", "author", "server"])
def test_the_official_validator_refuses_an_incomplete_bundle(unpacked: Path, tmp_path: Path, missing: str) -> None:
    broken = shutil.copytree(unpacked, tmp_path / "broken", ignore=shutil.ignore_patterns(".venv"))
    shown = manifest_of(unpacked)
    del shown[missing]
    (broken / "manifest.json").write_text(json.dumps(shown), encoding="utf-8")
    done = mcpb("validate", broken)
    assert done.returncode != 0
    assert missing in done.stdout


async def test_the_manifest_has_the_servers_tools_and_prompts(unpacked: Path, data: Path) -> None:
    shown = manifest_of(unpacked)
    async with sdk_client(data, "auto") as client:
        tools = (await client.list_tools()).tools
        assert shown["tools"] == [{"name": tool.name, "description": tool.description} for tool in tools]
        prompts = (await client.list_prompts()).prompts
        assert [each["name"] for each in shown["prompts"]] == [each.name for each in prompts]
        for each, told in zip(prompts, shown["prompts"], strict=True):
            arguments = {argument.name: "the sea" for argument in each.arguments or []}
            (message,) = (await client.get_prompt(each.name, arguments)).messages
            text = told["text"]
            for name, value in arguments.items():
                text = text.replace(f"${{arguments.{name}}}", value)
            assert message.content.model_dump()["text"] == text


def test_the_manifest_agrees_with_the_project(unpacked: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    shown = manifest_of(unpacked)
    assert (shown["name"], shown["version"]) == (project["name"], project["version"]) == (DISTRIBUTION, __version__)
    assert (shown["description"], shown["license"]) == (project["description"], project["license"])
    assert sorted(shown["keywords"]) == sorted(project["keywords"])
    assert [shown["author"]] == project["authors"]
    assert sorted(shown["compatibility"]["runtimes"]["python"].split(",")) == sorted(
        project["requires-python"].split(",")
    )
    assert (unpacked / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_the_bundle_requires_the_projects_dependencies(unpacked: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    bundled = tomllib.loads((unpacked / "pyproject.toml").read_text(encoding="utf-8"))
    assert bundled["tool"]["uv"] == {"package": False}

    needed = {Requirement(each) for each in project["dependencies"]}
    assert {Requirement(each) for each in bundled["project"]["dependencies"]} == needed


def test_the_bundle_contains_the_files_of_the_package(unpacked: Path) -> None:
    package = ROOT / "memoryos_mcp"
    listed = subprocess.run(["git", "ls-files", "memoryos_mcp"], cwd=ROOT, capture_output=True, check=True)
    tracked = {Path(name) for name in listed.stdout.decode().splitlines()}
    folder = (unpacked / ENTRY_POINT).parent
    inside = {path.relative_to(folder) for path in (folder / package.name).rglob("*") if path.is_file()}
    assert {path for path in inside if "__pycache__" not in path.parts} >= tracked
    with zipfile.ZipFile(unpacked.parent / DEFAULT_NAME) as opened:
        names = opened.namelist()
    assert not [name for name in names if "__pycache__" in name or "/." in name]


def test_the_same_files_make_the_same_bundle() -> None:
    files = bundled_files()
    backwards = dict(reversed(files.items()))
    assert list(backwards) != list(files)
    assert archive(backwards) == archive(files)


# The command


def test_the_command_prints_the_data_for_a_registry(tmp_path: Path) -> None:
    done = bundle(str(tmp_path / "memory.mcpb"), "--json")
    told = json.loads(done.stdout)
    data = (tmp_path / "memory.mcpb").read_bytes()
    assert told == {
        "file": str(tmp_path / "memory.mcpb"),
        "version": __version__,
        "files": len(bundled_files()),
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    assert [each.name for each in tmp_path.iterdir()] == ["memory.mcpb"]


def test_a_file_is_replaced_only_with_force(tmp_path: Path) -> None:
    file = tmp_path / "mine.txt"
    file.write_text("precious", encoding="utf-8")
    refused = bundle(str(file))
    assert refused.exit_code != 0
    assert "already exists" in str(refused.exception)
    assert file.read_text(encoding="utf-8") == "precious"
    assert bundle(str(file), "--force").exit_code == 0
    assert zipfile.is_zipfile(file)


def test_a_missing_folder_is_reported(tmp_path: Path) -> None:
    refused = bundle(str(tmp_path / "nowhere" / "memory.mcpb"))
    assert "the folder does not exist" in str(refused.exception)
    assert not list(tmp_path.iterdir())


def test_an_invalid_file_name_is_reported_and_leaves_no_file(tmp_path: Path) -> None:
    refused = bundle(str(tmp_path / ("x" * 300)))
    assert isinstance(refused.exception, StorageError)
    assert "cannot be written" in str(refused.exception)
    assert not list(tmp_path.iterdir())


# Fields


@pytest.mark.parametrize("asked", USER_SETTINGS, ids=lambda asked: asked.name)
def test_each_field_sets_a_setting_and_keys_are_hidden(unpacked: Path, asked: UserSetting) -> None:
    shown = manifest_of(unpacked)
    option = shown["user_config"][asked.name]
    assert shown["server"]["mcp_config"]["env"][asked.variable] == asked.template
    assert option.get("sensitive", False) is (value_type(asked.setting) is SecretStr)
    assert (option["type"] == "directory") is (value_type(asked.setting) is Path)
    assert not option["required"]


@pytest.mark.parametrize("answer", ["", None], ids=["empty", "template"])
def test_an_empty_field_sets_nothing(
    bare_environment: None, monkeypatch: pytest.MonkeyPatch, answer: str | None
) -> None:
    for asked in USER_SETTINGS:
        monkeypatch.setenv(asked.variable, asked.template if answer is None else answer)
    assert load_settings(None, {}) == Settings()


def config_of_host(folder: Path, answers: Mapping[str, str]) -> dict[str, Any]:
    """Return the command, arguments and environment of a client, from a bundle and its user's values."""
    module = Path(program(NODE_PACKAGES)) / "node_modules" / "@anthropic-ai" / "mcpb" / "dist" / "index.js"
    done = subprocess.run(
        [program(NODE), HOST, module, folder, json.dumps(answers)],
        capture_output=True,
        check=True,
        encoding="utf-8",
        timeout=LIMIT_S,
    )
    config: dict[str, Any] = json.loads(done.stdout)
    return config


@pytest.mark.parametrize("how", ["nothing answered", "answers left as templates", "all answered"])
async def test_a_client_starts_the_server_of_the_bundle(unpacked: Path, tmp_path: Path, data: Path, how: str) -> None:
    answers = {"data_folder": str(data), "user_id": "ada", "llm_model": "none", "llm_api_key": "sk-..."}
    config = config_of_host(unpacked, answers if how == "all answered" else {})
    environment = config["env"]
    if how == "answers left as templates":
        environment = manifest_of(unpacked)["server"]["mcp_config"]["env"]
    home = tmp_path / "home"
    folder, user = (data, "ada") if how == "all answered" else (home / "share" / "memoryos-mcp", USER)
    # A desktop client starts it with an almost empty environment, in another working folder.
    bare = {
        "HOME": str(home),
        "XDG_DATA_HOME": str(home / "share"),
        "PATH": f"{UV.parent}{os.pathsep}{os.defpath}",
        "UV_PYTHON": sys.executable,
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_CACHE_DIR": str(unpacked.parent / "cache"),
        "UV_SYSTEM_CERTS": "true",
    }
    assert UV.exists()
    network = {name: value for name, value in clean_environment().items() if name.lower().endswith("_proxy")}
    parameters = StdioServerParameters(
        command=config["command"], args=config["args"], env=network | bare | environment, cwd="/"
    )
    with (tmp_path / "stderr.log").open("w", encoding="utf-8") as errlog:
        async with Client(
            stdio_client(parameters, errlog=errlog), read_timeout_seconds=FIRST_START_LIMIT_S, mode="legacy"
        ) as client:
            assert client.server_info is not None
            assert client.server_info.version == __version__
            added = await client.call_tool(
                "add_memory", {"user_input": "I row on the lake.", "agent_response": "Nice."}
            )
            assert not added.is_error
            found = await client.call_tool("retrieve_memory", {"query": "rowing"})
            assert "I row on the lake." in json.dumps(found.structured_content)
    assert database_file(folder, user).exists()
