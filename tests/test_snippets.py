"""Every snippet of README and docs is run, or is in the list of exceptions with another check.

Blocks of commands are run line by line in a shell, and their output is compared if the page shows it. Settings are
loaded, a client's block is started like the client would, and scripts are run. Commands in sentences are parsed.
"""

import asyncio
import importlib
import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import anyio
import click
import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from memoryos_mcp.cli.main import cli
from memoryos_mcp.config import Settings
from memoryos_mcp.config.sources import load_settings
from tests.documents import ROOT, Block, blocks, documents, spans
from tests.http_server import HttpServer
from tests.llm_server import Asked, Reply, completion, llm_server
from tests.snippets import Place, entries_of, make_memory, prepare, tell_of
from tests.test_readme import DEMO_LINE, TEST_LINE

LIMIT_S = 90
SAID = "You repair them."
IMAGE = "memoryos-mcp-server"
# Directives for the site's generator are not snippets.
OF_THE_SITE = {"{include} ../README.md", "{toctree}"}
# Languages of blocks that are not run: output, which is compared if it follows the commands.
SHOWN = {"text"}


def is_run_by_ci(line: str) -> None:
    """`.ci/run` runs the line in a fresh clone; `test_readme` checks that."""
    security = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    assert line in {DEMO_LINE, TEST_LINE} or f"\n{line}\n" in security


def brings_an_extra(line: str) -> None:
    """Not installed again: the line names an extra that exists."""
    program, *arguments = shlex.split(line)
    assert Path(program).name == "pip"
    assert arguments[0] == "install"
    (extra,) = re.findall(r"^\.\[([\w-]+)\]$", arguments[-1])
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert extra in project["optional-dependencies"]


def is_a_benchmarks_line(line: str) -> None:
    """Not run, because it takes minutes: the benchmark parses the arguments, with an existing file for FILE."""
    module, arguments = re.fullmatch(r"(?:\S*python) -m (benchmarks\.\w+) ?(.*)", line).groups()  # type: ignore[union-attr]
    is_package = Path(ROOT, *module.split(".")).is_dir()
    command: click.Command = importlib.import_module(f"{module}.__main__" if is_package else module).main
    command.make_context(module, shlex.split(arguments.replace("FILE", __file__)))


def is_our_command(line: str) -> None:
    """Not run: the arguments are parsed."""
    _, name, *arguments = shlex.split(line)
    command: click.Command = cli.commands[name]
    while isinstance(command, click.Group) and arguments:
        command, *arguments = command.commands[arguments[0]], *arguments[1:]
    if arguments:  # otherwise the sentence is about the command itself
        _parse(command, arguments)


def _parse(command: click.Command, arguments: list[str]) -> None:
    try:
        command.make_context(command.name, list(arguments))
    except click.BadParameter as error:
        # A word in capitals is a placeholder.
        standing = [word for word in arguments if re.fullmatch(r"[A-Z_]+", word) and f"'{word}'" in error.message]
        if not (standing and error.param is not None and isinstance(error.param.type, click.Choice)):
            raise
        _parse(command, [str(error.param.type.choices[0]) if word in standing else word for word in arguments])


def is_dockers(line: str) -> None:
    """Not run: the names are in the Dockerfile, and the arguments of the inner command are parsed."""
    _, verb, *words = shlex.split(line)
    if not words:
        return  # the sentence only mentions the command
    inner: list[str] = []
    match verb:
        case "compose":
            services = re.findall(r"^  (\w+):$", (ROOT / "compose.yaml").read_text(encoding="utf-8"), re.MULTILINE)
            more: list[list[str]] = [[], ["--build"], ["--scale", f"{services[0]}=4"]]
            assert words in (*(["up", "--detach", *each] for each in more), ["exec", services[0], *words[2:]])
            inner = words[2:] if words[0] == "exec" else []
        case "build":
            recipe = (ROOT / "Dockerfile").read_text(encoding="utf-8")
            given = dict(pairwise(words))
            assert f" AS {given.get('--target', 'build')}\n" in recipe
            assert f"ARG {given.get('--build-arg', '').partition('=')[0]}" in recipe or "--build-arg" not in given
            assert (given["--tag"].split(":")[0], words[-1]) == (IMAGE, ".")
        case "exec":
            inner = words[1:]
        case "run":
            (place,) = [place for place, word in enumerate(words) if re.fullmatch(rf"{IMAGE}(:\w+)?", word)]
            inner = ["memoryos-mcp", *words[place + 1 :]] if words[place + 1 :] else []
        case _:
            pytest.fail(f"nothing says what to check of: {line}")
    if inner:
        is_our_command(shlex.join(inner))


def fetches_a_model(line: str) -> None:
    """Not run without a network: the arguments are parsed; `test_sentence_transformers` runs the command."""
    assert " warmup " in line
    is_our_command(line.removeprefix(".venv/bin/"))


def makes_its_own_environment(line: str) -> None:
    """uv runs the same command for its version; the line with pipx names the same folder."""
    program, *arguments = shlex.split(line)
    if program == "pipx":
        assert arguments == ["install", "."]
        return
    assert arguments[:3] == ["--from", ".", "memoryos-mcp-server"]
    is_our_command(shlex.join(["memoryos-mcp", *arguments[3:]]))
    uvx = [str(Path(sys.executable).parent / "uvx"), *arguments[:3], "--version"]
    done = subprocess.run(uvx, cwd=ROOT, capture_output=True, check=False, encoding="utf-8", timeout=LIMIT_S)
    assert "memoryos-mcp, version" in done.stdout, done.stderr


def runs_tests(line: str) -> None:
    """Not run: the test file or the marker exists."""
    _, *arguments = shlex.split(line)
    if "-m" in arguments:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
        markers = [marker.partition(":")[0] for marker in project["tool"]["pytest"]["ini_options"]["markers"]]
        assert arguments in [["-n", "logical", "-m", marker] for marker in markers]
    else:
        assert all((ROOT / argument).is_file() for argument in arguments)


@dataclass(frozen=True, slots=True)
class Instead:
    """Lines that are not run, and the check that is made instead."""

    begins: str
    check: Callable[[str], None]


NOT_RUN = (
    Instead(r"python3 -m venv ", is_run_by_ci),
    Instead(r"(?:uvx --from|pipx install) ", makes_its_own_environment),
    Instead(r"\.venv/bin/pip install -q --(?:require-hashes|no-deps) ", is_run_by_ci),
    Instead(r"(?:\.venv/bin/)?pip install ", brings_an_extra),
    Instead(r"(?:\.venv/bin/)?python -m benchmarks\.", is_a_benchmarks_line),
    Instead(r"docker ", is_dockers),
    Instead(r"memoryos-mcp ui$", is_our_command),
    Instead(r"\.venv/bin/pytest ", runs_tests),
    Instead(r"\.venv/bin/memoryos-mcp warmup .*BAAI/", fetches_a_model),
)
# Of commands in sentences, only those that merely change the log of a fake are run.
OURS = re.compile(r"memoryos-mcp [a-z]")
OF_CLAUDE = re.compile(r"claude mcp ")


def is_session(block: Block) -> bool:
    """Return whether a block shows a command line after a dollar sign, and below it the output."""
    return block.kind == "text" and block.text.startswith("$ ")


ALL = [block for document in documents() for block in blocks(document)]
OF_A_SHELL = sorted({block.document for block in ALL if block.kind == "sh" or is_session(block)})


def of_kind(*kinds: str) -> list[Block]:
    return [block for block in ALL if block.kind in kinds]


def instead_of(line: str) -> Instead | None:
    return next((instead for instead in NOT_RUN if re.match(instead.begins, line)), None)


def lines_of(block: Block) -> list[str]:
    """Return the lines of a script as a shell reads them, without those that are empty or only a comment."""
    joined = block.text.replace("\\\n", " ")
    assert "<<" not in joined, f"{block}: a here document is more than one line"
    return [line.strip() for line in joined.splitlines() if line.strip() and not line.strip().startswith("#")]


def matches(shown: str, printed: str) -> bool:
    """Return whether printed output matches the output in a page, in which ``...`` matches anything."""
    parts = [re.escape(part) for part in "\n".join(line.rstrip() for line in shown.strip().splitlines()).split("...")]
    lines = "\n".join(line.rstrip() for line in printed.strip().splitlines())
    return re.fullmatch(".*?".join(parts), lines, re.DOTALL) is not None


def test_shown_output_is_compared_with_the_printed_output() -> None:
    assert matches("Stored p_...\nDone.\n", "Stored p_12ab  \nDone.\n\n")
    assert not matches("Stored p_...\nDone.", "Stored p_12ab\n")
    assert not matches("Done.", "Done, nearly.")


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a memory that is copied for each page."""
    folder = tmp_path_factory.mktemp("memory") / "data"
    make_memory(folder)
    return folder


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory, memory: Path) -> Place:
    """The place of all snippets that change nothing in it."""
    return prepare(tmp_path_factory.mktemp("snippets") / "place", memory)


@pytest.fixture(scope="module")
def served(prepared: Place) -> Iterator[Place]:
    """The same, with a server over HTTP."""
    with HttpServer(prepared.data) as server:
        tell_of(server, prepared)
        yield prepared


def test_every_snippet_has_a_kind_that_is_run() -> None:
    kinds = {"sh", "sql", "json", "jsonc", "toml", "python", *SHOWN, *OF_THE_SITE}
    assert [f"{block}: {block.kind!r}" for block in ALL if block.kind not in kinds] == []


def test_every_exception_is_in_a_page() -> None:
    lines = [line for block in of_kind("sh") for line in lines_of(block)]
    inline = [span for document in documents() for span in spans(document)]
    for instead in NOT_RUN:
        assert any(re.match(instead.begins, line) for line in chain(lines, inline)), instead.begins


@pytest.mark.parametrize("document", OF_A_SHELL)
def test_commands_print_what_the_page_shows(
    document: str, tmp_path_factory: pytest.TempPathFactory, memory: Path
) -> None:
    place = prepare(tmp_path_factory.mktemp("p") / "p", memory)  # a path that fits into a line of output
    for block in (block for block in ALL if block.document == document):
        if is_session(block):
            line, _, shown = block.text.removeprefix("$ ").partition("\n")
            printed = run_line(place, place.fill(line), ExitStack())
            assert matches(shown, printed), f"{block}: it printed\n{printed}"
        elif block.kind == "sh":
            run_block(place, block)


def run_block(place: Place, block: Block) -> None:
    """Run a block line by line, and compare its output with the output in the page."""
    printed = []
    with ExitStack() as servers:
        for line in lines_of(block):
            if instead := instead_of(line):
                instead.check(line)
            else:
                printed.append(run_line(place, place.fill(line), servers))
        if place.port:
            anyio.run(is_answered, place)
    if block.output is not None:
        assert matches(block.output, "".join(printed)), f"{block}: it printed\n{''.join(printed)}"


def run_line(place: Place, line: str, servers: ExitStack) -> str:
    """Run a line and return its output; an HTTP server runs until the end of the block."""
    if re.search(r"memoryos-mcp serve\b.*--transport", line):
        servers.enter_context(place.serving(line))
        return ""
    done = place.run(line)
    assert done.code == 0, f"`{line}` ended with {done.code}:\n{done.stdout}{done.stderr}"
    if done.stdout.startswith("mos_"):
        place.token = done.stdout.strip()
    return done.stdout


async def is_answered(place: Place) -> None:
    """Ask the server of a block for its health and, with the token made last, for its tools."""
    address = f"http://127.0.0.1:{place.port}"
    headers = {"Authorization": f"Bearer {place.token}"} if place.token else {}
    with anyio.fail_after(LIMIT_S):
        async with (
            httpx2.AsyncClient(timeout=30, headers=headers) as http,
            Client(streamable_http_client(f"{address}/mcp", http_client=http)) as client,
        ):
            assert (await http.get(f"{address}/health/live")).status_code == 200
            assert (await client.list_tools()).tools


@pytest.mark.parametrize("block", of_kind("json", "jsonc", "toml"), ids=str)
async def test_blocks_of_settings_and_clients_are_valid(
    block: Block, tmp_path: Path, request: pytest.FixtureRequest, bare_environment: None
) -> None:
    place: Place = request.getfixturevalue("served" if "127.0.0.1:8000" in block.text else "prepared")
    text = place.fill(block.text)
    if block.kind == "jsonc":
        text = re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE)
    value: dict[str, Any] = tomllib.loads(text) if block.kind == "toml" else json.loads(text)
    if entries := entries_of(value):
        for entry in entries.values():
            await start(entry, place)
        return
    assert set(value) <= set(Settings.model_fields), f"{block} is neither a client's block nor settings"
    file = tmp_path / "config.json"
    file.write_text(text, encoding="utf-8")
    assert load_settings(file, {}).model_fields_set >= set(value)


async def start(entry: dict[str, Any], place: Place) -> None:
    """Start a server from a client's configuration, in an empty environment, and list its tools."""
    address = next((entry[key] for key in ("url", "serverUrl", "httpUrl") if key in entry), None)
    with anyio.fail_after(LIMIT_S):
        if entry.get("command") == "docker":
            is_dockers(shlex.join([entry["command"], *entry["args"]]))
            return
        if address is None:
            assert Path(entry["command"]).is_absolute()
            if (how := json.dumps([entry.get(key) for key in ("command", "args", "env")])) in place.started:
                return  # nothing but the client that it is for differs from a block before
            place.started.add(how)
            environment = {"HOME": str(place.home), **entry.get("env", {})}
            parameters = StdioServerParameters(
                command=entry["command"], args=entry.get("args", []), env=environment, cwd="/"
            )
            with (place.folder / "client.log").open("a", encoding="utf-8") as errlog:
                async with Client(stdio_client(parameters, errlog=errlog)) as client:
                    assert (await client.list_tools()).tools
            return
        headers = entry.get("headers") or entry.get("http_headers", {})
        if entry.get("type") == "sse" or address.endswith("/sse"):
            async with Client(sse_client(address, headers=headers), mode="legacy") as client:
                assert (await client.list_tools()).tools
            return
        async with (
            httpx2.AsyncClient(timeout=30, headers=headers) as http,
            Client(streamable_http_client(address, http_client=http)) as client,
        ):
            assert (await client.list_tools()).tools


# Its blocks need other packages; `test_frameworks` runs them.
FRAMEWORKS = "docs/frameworks.md"


@pytest.mark.parametrize("block", [block for block in of_kind("python") if block.document != FRAMEWORKS], ids=str)
async def test_scripts_run_without_errors(block: Block, prepared: Place, tmp_path: Path) -> None:
    async with llm_server(reply) as server:
        script = block.text.replace("http://localhost:8080/v1", server.base_url)
        environment = {**prepared.environment, "HOME": str(tmp_path)}
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            script,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={name: value for name, value in environment.items() if not name.startswith("MEMORYOS_")},
        )
        with anyio.fail_after(LIMIT_S):
            stdout, stderr = await process.communicate()
    assert process.returncode == 0, stderr.decode()
    assert stdout.strip(), "it shows nothing"
    assert ("respon" in script) == stdout.decode().rstrip().endswith(SAID)


def reply(_: Asked) -> Reply:
    return completion(SAID)


@pytest.mark.parametrize("document", documents(), ids=lambda path: path.stem)
async def test_a_command_in_a_sentence_is_valid(document: Path, request: pytest.FixtureRequest) -> None:
    shown = [line for block in blocks(document) if block.kind == "text" for line in block.text.splitlines()]
    for span in (*spans(document), *shown):
        if instead := instead_of(span):
            instead.check(span)
        elif OURS.match(span):
            is_our_command(span)
        elif OF_CLAUDE.match(span):
            await is_taken_by_claude(span, request.getfixturevalue("served"))


async def is_taken_by_claude(line: str, place: Place) -> None:
    """Have the stand-in for `claude` called, and start what it is told to add."""
    before = len(place.calls_of("claude"))
    done = place.run(place.fill(line))
    assert done.code == 0, done.stderr
    (arguments,) = place.calls_of("claude")[before:]
    context = claude_mcp_add.make_context("add", arguments[2:])
    assert arguments[:2] == ["mcp", "add"]
    given = context.params
    if given["transport"] == "stdio":
        await start({"command": given["target"][0], "args": list(given["target"][1:])}, place)
    else:
        headers = dict(header.split(": ", 1) for header in given["header"])
        (address,) = given["target"]
        await start({"url": address, "type": given["transport"], "headers": headers}, place)


@click.command()
@click.option("-s", "--scope", type=click.Choice(["local", "user", "project"]))
@click.option("-t", "--transport", type=click.Choice(["stdio", "http", "sse"]), default="stdio")
@click.option("-H", "--header", multiple=True)
@click.option("-e", "--env", multiple=True)
@click.argument("name")
@click.argument("target", nargs=-1, required=True)
def claude_mcp_add(**_: Any) -> None:
    """Take what `claude mcp add` is documented to take."""
