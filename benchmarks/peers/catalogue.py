"""The peers, as their adapters describe them, and how each is installed and started."""

import importlib
import os
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.peers.driving import Driver, LibraryClient
from benchmarks.pipe import Pipe

ROOT = Path(__file__).parent.parent.parent
OURS = "ours"
NAMES = (OURS, "mem0", "chroma", "mcp_memory_service", "basic_memory", "txtai", "memoryos")

_METADATA = re.compile(r"^# /// script\n((?:#.*\n)+?)# ///$", re.MULTILINE)
# No telemetry and no downloads: models come from packages.
_SWITCHED_OFF = {
    "ANONYMIZED_TELEMETRY": "False",
    "BASIC_MEMORY_NO_PROMOS": "1",
    "DO_NOT_TRACK": "1",
    "FASTMCP_CHECK_FOR_UPDATES": "off",
    "HF_HUB_OFFLINE": "1",
    "MEM0_TELEMETRY": "False",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
}


@dataclass(frozen=True, slots=True)
class Peer:
    """A peer, by the metadata of its adapter.

    Attributes:
        name: Name of the adapter's module.
        title: Its name in the tables.
        python: Minimum Python version, such as ``(3, 12)``.
        dependencies: Requirements for pip.
        alone: Requirements that are installed without their own dependencies.
        packages: The packages whose versions are shown.
        weights: The form of MiniLM that it gets, ``int8`` or ``fp32``; None if it brings its own.
        model_folder: Where it looks for the model, within its home folder; empty for none.
        needs_sqlite_extensions: Whether its SQLite must load extensions.
        command: Its command line with placeholders; empty for a library.
        env: Further environment variables with placeholders.
        client: The class of its clients.
    """

    name: str
    title: str
    python: tuple[int, ...]
    dependencies: Sequence[str]
    alone: Sequence[str]
    packages: Sequence[str]
    weights: str | None
    model_folder: str
    needs_sqlite_extensions: bool
    command: Sequence[str]
    env: Mapping[str, str]
    client: Callable[[Pipe], Driver]

    def command_line(self, python: Path, data: Path) -> list[str]:
        """Return the command that starts it on a data folder."""
        command = self.command or ("{python}", "-m", f"benchmarks.peers.{self.name}", "{data}")
        return [_filled(part, python, data) for part in command]

    def environment(self, python: Path, data: Path, home: Path) -> dict[str, str]:
        """Return all its environment variables."""
        return {
            **{name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "TMPDIR") if name in os.environ},
            **_SWITCHED_OFF,
            "HOME": str(home),
            "PYTHONPATH": "" if self.command else str(ROOT),
            "PYTHONUTF8": "1",
            "FASTEMBED_CACHE_PATH": str(home / "fastembed_cache"),
            **{name: _filled(value, python, data) for name, value in self.env.items()},
        }


def known(name: str) -> Peer:
    """Return the peer that the metadata of an adapter describes.

    Raises:
        ValueError: The adapter has no metadata.
        KeyError: It lacks a key.
    """
    found = _METADATA.search((Path(__file__).parent / f"{name}.py").read_text(encoding="utf-8"))
    if found is None:
        message = f"{name} has no inline script metadata"
        raise ValueError(message)
    metadata: dict[str, Any] = tomllib.loads(re.sub(r"^# ?", "", found[1], flags=re.MULTILINE))
    peer = metadata["tool"]["peer"]
    return Peer(
        name=name,
        title=peer["title"],
        python=tuple(int(number) for number in re.findall(r"\d+", metadata["requires-python"])),
        dependencies=metadata["dependencies"],
        alone=peer.get("alone", ()),
        packages=peer["packages"],
        weights=peer.get("weights"),
        model_folder=peer.get("model-folder", ""),
        needs_sqlite_extensions=peer.get("sqlite-extensions", False),
        command=peer.get("command", ()),
        env=peer.get("env", {}),
        client=importlib.import_module(f"benchmarks.peers.{name}").Client if "command" in peer else LibraryClient,
    )


def _filled(text: str, python: Path, data: Path) -> str:
    return text.format(python=python, programs=python.parent, data=data)
