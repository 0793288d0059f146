"""The README says what the program does: its names, defaults, bounds and command lines are those of the code."""

import json
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

import anyio
import pytest
from mcp.client.client import Client
from pydantic import BaseModel

from memoryos_mcp.cli import NOT_AS_FLAGS, cli
from memoryos_mcp.config import Settings
from memoryos_mcp.config.values import describe_values
from memoryos_mcp.parts import configured_model
from memoryos_mcp.providers import PRESETS
from memoryos_mcp.server.assembly import make_server
from memoryos_mcp.server.definitions import ToolDefinition
from memoryos_mcp.server.tools import TOOLS
from memoryos_mcp.service import MemoryService
from memoryos_mcp.stdio import local_caller

ROOT = Path(__file__).parent.parent
DEMO_LINE = "python3 -m venv .venv && .venv/bin/pip install -q . && .venv/bin/memoryos-mcp demo"
TEST_LINE = "python3 -m venv .venv && .venv/bin/pip install -q -e '.[dev]' && .venv/bin/pytest"


@cache
def readme() -> str:
    return (ROOT / "README.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    """Return the text under a heading, down to the next heading of the same level or a higher one."""
    heading = re.search(rf"^(#+) {re.escape(title)}$", readme(), re.MULTILINE)
    assert heading is not None, f"no heading {title!r}"
    rest = readme()[heading.end() :]
    end = re.search(rf"^#{{1,{len(heading[1])}}} ", rest, re.MULTILINE)
    return rest[: end.start()] if end else rest


def table(title: str) -> list[list[str]]:
    """Return the cells of the table rows under a heading that begin with a name in code."""
    rows = [line.strip("| ").split(" | ") for line in section(title).splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in row] for row in rows]


def fields(model: type[BaseModel]) -> Iterator[str]:
    """Yield every key of a result, also those of the results inside it."""
    for name, field in model.model_fields.items():
        yield name
        for part in (field.annotation, *get_args(field.annotation)):
            if isinstance(part, type) and issubclass(part, BaseModel):
                yield from fields(part)


def dependencies() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return list(project["dependencies"])


def default_of(name: str) -> str:
    return "platform's" if name == "data_storage_path" else f"`{json.dumps(Settings.model_fields[name].default)}`"


def test_the_first_screen_has_the_two_command_lines_and_no_others() -> None:
    lines = [line for line in readme().splitlines() if line.startswith("python3 ")]
    assert lines == [DEMO_LINE, TEST_LINE]
    assert readme().index(TEST_LINE) < readme().index("\n## ")


@pytest.mark.skipif(shutil.which("bash") is None, reason="the script is bash's")
def test_ci_runs_the_command_lines_of_the_readme() -> None:
    script = ROOT / ".ci" / "run"
    done = subprocess.run(
        ["bash", script, "--show"],
        capture_output=True,
        check=True,
        encoding="utf-8",
        timeout=30,
        stdin=subprocess.DEVNULL,
    )
    assert done.stdout.splitlines() == [DEMO_LINE, TEST_LINE]
    text = script.read_text(encoding="utf-8")
    assert re.search(r'^step .* line "\$work/demo" "\$demo_line"$', text, re.MULTILINE)
    assert re.search(r'^ +line "\$work/checkout" "\$test_line" ', text, re.MULTILINE)


def test_the_client_block_is_that_of_mcp_json_with_an_absolute_command() -> None:
    (block,) = re.findall(r"```json\n(.*?)```", section("Add it to a client"), re.DOTALL)
    shown, shipped = json.loads(block), json.loads((ROOT / "mcp.json").read_text(encoding="utf-8"))
    command = shown["mcpServers"]["memoryos"].pop("command")
    assert command.startswith("/")
    assert Path(command).name == shipped["mcpServers"]["memoryos"].pop("command")
    assert shown == shipped


def test_every_tool_has_a_section_and_no_section_is_about_another() -> None:
    titles = re.findall(r"^### (\w+_\w+)$", section("What the tools do"), re.MULTILINE)
    assert sorted(titles) == sorted(tool.name for tool in TOOLS)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_every_argument_of_a_tool_is_in_its_table(tool: ToolDefinition) -> None:
    assert [row[0] for row in table(tool.name)] == [f"`{name}`" for name in tool.arguments.model_fields]


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_required_arguments_and_defaults_are_those_of_the_tool(tool: ToolDefinition) -> None:
    documented = {row[0].strip("`"): row[1].strip("`") for row in table(tool.name)}
    of_settings = {"max_results": "retrieval_queue_capacity", "max_tokens": "retrieval_max_tokens"}
    for name, field in tool.arguments.model_fields.items():
        if field.is_required():
            assert documented[name] == "required"
        elif name in of_settings and field.default is None:
            assert documented[name] == str(Settings.model_fields[of_settings[name]].default)
        elif field.default in ("", None):
            assert documented[name] in {"none", "now"}
        else:
            assert documented[name] == str(field.default).lower().strip('"')


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_every_key_of_a_result_is_named(tool: ToolDefinition) -> None:
    named = set(re.findall(r"`(\w+)`", section("What the tools do")))
    assert set(fields(tool.result)) <= named


async def test_every_resource_and_prompt_stands_in_the_readme(tmp_path: Path) -> None:
    settings = Settings(data_storage_path=tmp_path)
    with anyio.fail_after(30):
        async with (
            MemoryService(settings) as service,
            Client(make_server(service, lambda _: local_caller(settings))) as client,
        ):
            uris = [str(resource.uri) for resource in (await client.list_resources()).resources]
            prompts = (await client.list_prompts()).prompts
    assert [row[0].strip("`") for row in table("Resources and prompts")] == uris
    for prompt in prompts:
        assert f"`{prompt.name}`" in section("Resources and prompts")
        assert all(f"`{argument.name}`" in section("Resources and prompts") for argument in prompt.arguments or [])


def test_the_settings_table_is_what_the_code_says() -> None:
    expected = [
        [f"`{name}`", default_of(name), describe_values(name), str(field.description)]
        for name, field in Settings.model_fields.items()
    ]
    assert table("Settings") == expected


def test_the_providers_table_is_what_the_code_says() -> None:
    rows = {row[0].strip("`"): row[1:] for row in table("With an LLM")}
    assert list(rows) == list(PRESETS)
    for name, preset in PRESETS.items():
        variables, address = rows[name]
        assert re.findall(r"`(\w+)`", variables) == list(preset.key_variables)
        assert address == f"`{preset.base_url}`"
        assert preset.key_variables or variables == "none"


def test_the_example_configuration_holds_every_key_with_its_default() -> None:
    example: dict[str, Any] = json.loads((ROOT / "config.example.json").read_text(encoding="utf-8"))
    expected = {name: field.default for name, field in Settings.model_fields.items()} | {"data_storage_path": None}
    assert example == expected


def test_the_flags_that_the_readme_leaves_out_are_those_that_do_not_exist() -> None:
    flags = {option for parameter in cli.commands["serve"].params for option in parameter.opts}
    documented = {f"--{name.replace('_', '-')}" for name in Settings.model_fields if name not in NOT_AS_FLAGS}
    assert flags == documented | {"--config"}
    assert all(f"`{name}` has no flag" in section("Settings") for name in NOT_AS_FLAGS)
    assert "--config FILE" in section("Settings")


def test_every_command_stands_in_the_readme() -> None:
    assert all(f"`memoryos-mcp {name}`" in section("Settings") for name in cli.commands)


def test_what_it_stands_on_are_the_base_dependencies_with_their_bounds_and_a_reason() -> None:
    rows = table("What it stands on")
    expected = {}
    for dependency in dependencies():
        requirement, _, marker = dependency.partition(";")
        name, bounds = re.fullmatch(r"([\w-]+(?:\[\w+\])?)(.+)", requirement.strip()).groups()  # type: ignore[union-attr]
        expected[f"`{name}`"] = f"`{bounds}`" + (", Windows only" if "win32" in marker else "")
    assert {row[0]: row[1] for row in rows} == expected
    assert all(len(row) == 3 and row[2] for row in rows)


def test_every_extra_stands_there_with_what_it_brings() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {name: packages for name, packages in project["optional-dependencies"].items() if name != "dev"}
    rows = dict(re.findall(r"^\| \*\*([\w-]+)\*\* \| (.+?) \| ", section("What it stands on"), re.MULTILINE))
    assert rows.keys() == extras.keys()
    for name, packages in extras.items():
        for package, bounds in (re.fullmatch(r"([\w-]+)(.+)", each).groups() for each in packages):  # type: ignore[union-attr]
            assert f"`{package}`" in rows[name]
            assert f"`{bounds}`" in rows[name]


def test_the_blocks_about_embedding_models_are_settings_that_can_be_used() -> None:
    blocks = re.findall(r"```json\n(.*?)```", section("Embedding models"), re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        model = configured_model(Settings(**json.loads(block)))
        assert model is not None
        assert model.base_url is not None


def test_every_base_dependency_is_bounded_and_none_is_torch() -> None:
    for dependency in dependencies():
        assert re.search(r"<\d|==\d|tzdata", dependency), dependency
        assert not dependency.startswith("torch")


def test_nobody_is_told_to_install_the_package_of_somebody_else() -> None:
    assert not re.search(
        r"(?:install|uvx|pipx run) [^\n`]*\bmemoryos-mcp\b(?!-server)", readme().replace(DEMO_LINE, "")
    )


def test_the_place_for_the_benchmark_figures_is_under_benchmarks() -> None:
    assert "benchmarks.retrieval --data" in section("Benchmarks")
    assert "benchmarks.speed" in section("Benchmarks")
    assert "benchmarks.consolidation --data" in section("Benchmarks")
