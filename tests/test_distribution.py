"""The published archives: their contents, and the wheel without a checkout."""

import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from memoryos_mcp import __version__
from memoryos_mcp.cli.commands.bundle import archive, bundled_files
from tests.servers import clean_environment

pytestmark = pytest.mark.campaign

ROOT = Path(__file__).parent.parent
SCRIPTS = Path(sys.executable).parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LIMIT_S = 300
MAX_WHEEL_BYTES = 40_000_000


def run(command: Sequence[str | Path], folder: Path) -> str:
    environment = clean_environment({"UV_SYSTEM_CERTS": "true", "UV_PYTHON_DOWNLOADS": "never"})
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(
        command, cwd=folder, capture_output=True, encoding="utf-8", timeout=LIMIT_S, check=False, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def tracked(*folders: str) -> set[str]:
    listed = subprocess.run(["git", "ls-files", *folders], cwd=ROOT, capture_output=True, check=True)
    return set(listed.stdout.decode().splitlines())


def test_the_lock_has_every_dependency_with_hashes() -> None:
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    entries = re.findall(r"^([\w.-]+)==(\S+)(.*?)(?=^\S|\Z)", text, re.MULTILINE | re.DOTALL)
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}", rest) for _, _, rest in entries)
    versions = {canonicalize_name(name): version for name, version, _ in entries}
    for requirement in map(Requirement, PROJECT["project"]["dependencies"]):
        assert versions[canonicalize_name(requirement.name)] in requirement.specifier
    assert not re.search(r"://|index|\bfile:", text)
    told = (ROOT / "docs" / "security.md").read_text(encoding="utf-8").partition("## Packages of others")[2]
    named = {name for row in re.findall(r"^\| (`.*?) \|", told, re.MULTILINE) for name in re.findall(r"`([^`]+)`", row)}
    assert len(named) > 10
    assert named <= versions.keys()


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the source archive, and the wheel built from it."""
    folder = tmp_path_factory.mktemp("dist")
    run([SCRIPTS / "uv", "build", "--quiet", "--python", sys.executable, "--out-dir", folder, ROOT], folder)
    (source,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return source, wheel


@pytest.fixture(scope="module")
def installed(archives: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of commands of an environment with the wheel."""
    folder = tmp_path_factory.mktemp("installed")
    uv = SCRIPTS / "uv"
    run([uv, "venv", "--quiet", "--python", sys.executable, folder / "venv"], folder)
    scripts = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
    run(
        [uv, "pip", "install", "--quiet", "--only-binary", ":all:", "--python", scripts / "python", archives[1]], folder
    )
    return scripts


def test_the_wheel_contains_only_the_files_of_the_package(archives: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(archives[1]) as opened:
        names = set(opened.namelist())
    assert {name for name in names if ".dist-info/" not in name} == tracked("memoryos_mcp")
    assert archives[1].stat().st_size < MAX_WHEEL_BYTES


def test_the_source_archive_has_the_files_of_pyproject(archives: tuple[Path, Path]) -> None:
    with tarfile.open(archives[0]) as opened:
        names = {member.name.partition("/")[2] for member in opened.getmembers()}
    included = PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert all((ROOT / name).exists() for name in included)
    assert tracked(*included) <= names


def test_a_package_index_can_render_the_readme(archives: tuple[Path, Path]) -> None:
    shown = run([SCRIPTS / "twine", "check", "--strict", *archives], archives[0].parent)
    assert shown.count("PASSED") == len(archives)


def test_wheel_and_checkout_make_the_same_bundle(installed: Path, tmp_path: Path) -> None:
    told = json.loads(run([installed / "memoryos-mcp", "bundle", "--json"], tmp_path))
    made = (tmp_path / told["file"]).read_bytes()
    assert made == archive(bundled_files())


async def test_the_distributions_command_serves_by_default(installed: Path, tmp_path: Path) -> None:
    parameters = StdioServerParameters(
        command=str(installed / PROJECT["project"]["name"]),
        env={"MEMORYOS_DATA_STORAGE_PATH": str(tmp_path / "data")},
        cwd="/",
    )
    with (tmp_path / "stderr.log").open("w", encoding="utf-8") as errlog:
        async with Client(stdio_client(parameters, errlog=errlog), mode="legacy") as client:
            assert client.server_info is not None
            assert client.server_info.version == __version__
            found = await client.call_tool("retrieve_memory", {"query": "anything"})
            assert not found.is_error


def test_the_distributions_command_has_all_commands(installed: Path, tmp_path: Path) -> None:
    for name in PROJECT["project"]["scripts"]:
        assert run([installed / name, "--version"], tmp_path).strip() == f"memoryos-mcp, version {__version__}"
