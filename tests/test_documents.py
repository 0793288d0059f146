"""The pages of docs agree with the code: names, defaults and limits."""

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import anyio
import pytest
from mcp.client.client import Client
from pydantic import BaseModel

from memoryos_mcp.cli.command_line import NOT_AS_FLAGS
from memoryos_mcp.cli.main import cli
from memoryos_mcp.config import Settings
from memoryos_mcp.config.values import describe_values
from memoryos_mcp.embedding.embedders import configured_model
from memoryos_mcp.engine.service import MemoryService
from memoryos_mcp.engine.tools.core_tools import TOOLS
from memoryos_mcp.engine.tools.definitions import ToolDefinition
from memoryos_mcp.engine.tools.forget_tool import RESULTS_FOUND
from memoryos_mcp.llm.providers import PRESETS
from memoryos_mcp.model.records import FORMAT_VERSION
from memoryos_mcp.server.assembly import make_server
from memoryos_mcp.server.stdio import local_caller
from tests.documents import DOCS, ROOT, everything, joined, json_blocks, section, table, text_of
from tests.test_readme import DEMO_LINE


def fields(model: type[BaseModel]) -> Iterator[str]:
    """Yield every key of a result, including keys of nested results."""
    for name, field in model.model_fields.items():
        yield name
        for part in (field.annotation, *get_args(field.annotation)):
            if isinstance(part, type) and issubclass(part, BaseModel):
                yield from fields(part)


def project() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return found


def default_of(name: str) -> str:
    return "platform's" if name == "data_storage_path" else f"`{json.dumps(Settings.model_fields[name].default)}`"


def test_each_tool_has_exactly_one_section() -> None:
    titles = re.findall(r"^## (\w+_\w+)$", section("Tools"), re.MULTILINE)
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
        elif tool.name == "forget_memory" and name == "max_results":
            assert documented[name] == str(RESULTS_FOUND)
        elif name in of_settings and field.default is None:
            assert documented[name] == str(Settings.model_fields[of_settings[name]].default)
        elif field.default in ("", None):
            assert documented[name] in {"none", "now"}
        else:
            assert documented[name] == str(field.default).lower().strip('"')


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_every_key_of_a_result_is_named(tool: ToolDefinition) -> None:
    named = set(re.findall(r"`(\w+)`", section("Tools")))
    assert set(fields(tool.result)) <= named


def test_the_readme_names_the_main_tools_and_counts_the_others() -> None:
    named = [row[0].strip("`") for row in table("What your assistant gets")]
    assert set(named) < {tool.name for tool in TOOLS}
    words = {3: "Three", 4: "Four", 5: "Five", 6: "Six", 7: "Seven"}
    assert f"\n{words[len(TOOLS) - len(named)]} more " in section("What your assistant gets")


async def test_every_resource_and_prompt_is_described(tmp_path: Path) -> None:
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


def test_the_settings_table_agrees_with_the_code() -> None:
    expected = [
        [f"`{name}`", default_of(name), describe_values(name), str(field.description)]
        for name, field in Settings.model_fields.items()
    ]
    assert table("Every key") == expected


def test_the_providers_table_agrees_with_the_code() -> None:
    rows = {row[0].strip("`"): row[1:] for row in table("With an LLM")}
    assert list(rows) == list(PRESETS)
    for name, preset in PRESETS.items():
        variables, address = rows[name]
        assert re.findall(r"`(\w+)`", variables) == list(preset.key_variables)
        assert address == f"`{preset.base_url}`"
        assert preset.key_variables or variables == "none"


def test_the_example_config_has_every_key_with_its_default() -> None:
    example: dict[str, Any] = json.loads((ROOT / "config.example.json").read_text(encoding="utf-8"))
    expected = {name: field.default for name, field in Settings.model_fields.items()} | {"data_storage_path": None}
    assert example == expected


def test_the_page_names_the_settings_without_a_flag() -> None:
    flags = {option for parameter in cli.commands["serve"].params for option in parameter.opts}
    documented = {f"--{name.replace('_', '-')}" for name in Settings.model_fields if name not in NOT_AS_FLAGS}
    assert flags == documented | {"--config", "--help-settings"}
    assert all(f"`{name}` has no flag" in joined(section("Configuration")) for name in NOT_AS_FLAGS)
    assert "--config FILE" in section("Configuration")


def test_the_page_shows_the_present_export_format() -> None:
    assert f'"format":"memoryos","version":{FORMAT_VERSION}}}' in text_of(DOCS / "import-and-export.md")


def test_every_command_is_described() -> None:
    page = joined(text_of(DOCS / "command-line.md"))
    assert all(f"`memoryos-mcp {name}" in page for name in cli.commands)


def test_each_base_dependency_is_listed_with_a_reason() -> None:
    rows = table("What it stands on")
    expected = {}
    for dependency in project()["dependencies"]:
        requirement, _, marker = dependency.partition(";")
        name, bounds = re.fullmatch(r"([\w-]+(?:\[\w+\])?)(.+)", requirement.strip()).groups()  # type: ignore[union-attr]
        expected[f"`{name}`"] = f"`{bounds}`" + (", Windows only" if "win32" in marker else "")
    assert {row[0]: row[1] for row in rows} == expected
    assert all(len(row) == 3 and row[2] for row in rows)


def test_every_extra_is_listed_with_its_packages() -> None:
    extras = {name: packages for name, packages in project()["optional-dependencies"].items() if name != "dev"}
    rows = dict(re.findall(r"^\| \*\*([\w-]+)\*\* \| (.+?) \| ", section("What it stands on"), re.MULTILINE))
    assert rows.keys() == extras.keys()
    pattern = r"([\w-]+(?:\[[\w,]+\])?)(.+)"
    for name, packages in extras.items():
        for package, bounds in (re.fullmatch(pattern, each).groups() for each in packages):  # type: ignore[union-attr]
            assert f"`{package}`" in rows[name]
            assert f"`{bounds}`" in rows[name]


def test_the_blocks_about_embedding_models_are_valid_settings() -> None:
    found = json_blocks("Embedding models")
    assert len(found) == 2
    for block in found:
        model = configured_model(Settings(**json.loads(block)))
        assert model is not None
        assert model.base_url is not None


def test_base_dependencies_have_bounds_and_exclude_torch() -> None:
    for dependency in project()["dependencies"]:
        assert re.search(r"<\d|==\d|tzdata", dependency), dependency
        assert not dependency.startswith("torch")


def test_no_page_installs_the_other_project() -> None:
    text = everything().replace(DEMO_LINE, "")
    assert not re.search(r"(?:install|uvx|pipx run) [^\n`]*\bmemoryos-mcp\b(?!-server)", text)


def test_every_benchmark_is_described() -> None:
    sources = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "benchmarks").glob("*.py")}
    # Helpers of other benchmarks.
    inner = {"bare_server", "llm_server", "resident"}
    runnable = {name for name, text in sources.items() if '\nif __name__ == "__main__":' in text} - inner
    runnable |= {path.parent.name for path in (ROOT / "benchmarks").glob("*/__main__.py")}
    assert set(re.findall(r"^\.venv/bin/python -m benchmarks\.(\w+)", section("Benchmarks"), re.MULTILINE)) == runnable


@pytest.mark.parametrize("picture", sorted(DOCS.rglob("*.svg")), ids=lambda path: path.stem)
def test_every_picture_has_a_text_alternative(picture: Path) -> None:
    text = picture.read_text(encoding="utf-8")
    title, desc = re.search(r'aria-labelledby="([\w-]+) ([\w-]+)"', text).groups()  # type: ignore[union-attr]
    assert 'role="img"' in text
    assert re.search(rf'<title id="{title}">[^<]{{10,}}</title>', text)
    assert re.search(rf'<desc id="{desc}">[^<]{{100,}}</desc>', text)
    assert "prefers-color-scheme: dark" in text
