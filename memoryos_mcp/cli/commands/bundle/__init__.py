"""The command ``memoryos-mcp bundle``: pack the server into one file that desktop clients can install.

The bundle contains only the package's files and metadata. It is identical whether it is built from an installed wheel
or from a checkout.
"""

import hashlib
import io
import json
import secrets
import zipfile
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path

import memoryos_mcp
from memoryos_mcp import __version__
from memoryos_mcp.cli.commands.bundle.manifest import ENTRY_POINT, ICON, manifest
from memoryos_mcp.cli.terminal import print_report
from memoryos_mcp.errors import ArgumentError, ConfigError, StorageError

DISTRIBUTION = "memoryos-mcp-server"
DEFAULT_NAME = f"{DISTRIBUTION}-{__version__}.mcpb"

_HERE = Path(__file__).parent
_PACKAGE = Path(memoryos_mcp.__file__).parent
_LICENSE = "LICENSE"
# The earliest time in the ZIP format. With a fixed time, bundles do not depend on when files were modified.
_NO_TIME = (1980, 1, 1, 0, 0, 0)
_UNIX, _PLAIN_FILE = 3, 0o100644 << 16
_SERVER = '''\
"""Starts the memory server over stdin and stdout for a client."""

from memoryos_mcp.cli.main import serve_by_default

if __name__ == "__main__":
    serve_by_default()
'''
_PYPROJECT = """\
# The packages that the server needs. The client installs them with uv when it first starts the server.
[project]
name = "memoryos-mcp-bundle"
version = {version}
requires-python = {python}
dependencies = [
{dependencies}
]

[tool.uv]
package = false
"""


def write_bundle(target: Path, *, is_forced: bool, as_json: bool) -> None:
    """Write the bundle to a file or into a folder, and print the size and the SHA-256 of the bundle.

    With ``is_forced``, an existing file is replaced.
    """
    files = bundled_files()
    data = archive(files)
    try:
        file = target / DEFAULT_NAME if target.is_dir() else target
        _write(file, data, is_forced=is_forced)
    except OSError as error:
        msg = f"{target} cannot be written ({error.strerror or type(error).__name__}); choose another file"
        raise StorageError(msg) from error
    sha256 = hashlib.sha256(data).hexdigest()
    result = {"file": str(file), "version": __version__, "files": len(files), "bytes": len(data), "sha256": sha256}
    lines = (
        f"{file}: {len(files)} files, {len(data) / 1e6:.1f} MB, SHA-256 {sha256}",
        "Open this file with a client that supports MCP bundles, such as Claude Desktop.",
    )
    print_report(result, lines, as_json=as_json)


def bundled_files() -> dict[str, bytes]:
    """Return the files of the bundle as a mapping from path to content."""
    installed = _installed()
    about = {
        "name": DISTRIBUTION,
        "summary": installed.metadata["Summary"],
        "author": installed.metadata["Author"],
        "license": installed.metadata["License-Expression"],
        "python": installed.metadata["Requires-Python"],
        "keywords": installed.metadata["Keywords"],
    }
    files = {
        "manifest.json": f"{json.dumps(manifest(about), indent=2, ensure_ascii=False)}\n".encode(),
        "pyproject.toml": _pyproject(installed, about).encode(),
        ICON: (_HERE / "data" / ICON).read_bytes(),
        _LICENSE: (installed.read_text(f"licenses/{_LICENSE}") or installed.metadata["License-Expression"]).encode(),
        ENTRY_POINT: _SERVER.encode(),
    }
    folder = Path(ENTRY_POINT).parent
    return files | {(folder / _PACKAGE.name / path).as_posix(): data for path, data in _package_files()}


def archive(files: Mapping[str, bytes]) -> bytes:
    """Return a ZIP archive of the files. The same files always result in the same bytes."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as opened:
        for path, data in sorted(files.items()):
            entry = zipfile.ZipInfo(path, _NO_TIME)
            entry.create_system, entry.external_attr = _UNIX, _PLAIN_FILE
            opened.writestr(entry, data, zipfile.ZIP_DEFLATED, 9)
    return packed.getvalue()


def _installed() -> metadata.Distribution:
    try:
        installed = metadata.distribution(DISTRIBUTION)
    except metadata.PackageNotFoundError as error:
        msg = f"{DISTRIBUTION} is not installed, so its requirements are unknown; install it with pip and try again"
        raise ConfigError(msg) from error
    if installed.version != __version__:
        msg = (
            f"{DISTRIBUTION} {installed.version} is installed, but version {__version__} is running; "
            "reinstall the package with pip"
        )
        raise ConfigError(msg)
    return installed


def _pyproject(installed: metadata.Distribution, about: Mapping[str, str]) -> str:
    # A requirement may contain quotes; a JSON string is a valid TOML string.
    needed = sorted(each for each in installed.requires or [] if "extra ==" not in each)
    return _PYPROJECT.format(
        version=json.dumps(__version__),
        python=json.dumps(about["python"]),
        dependencies="\n".join(f"    {json.dumps(each)}," for each in needed),
    )


def _package_files() -> Iterator[tuple[Path, bytes]]:
    """Yield the relative path and the content of each file in the package, except caches and hidden files."""
    for path in _PACKAGE.rglob("*"):
        inside = path.relative_to(_PACKAGE)
        if path.is_file() and not any(part.startswith((".", "__pycache__")) for part in inside.parts):
            yield inside, path.read_bytes()


def _write(file: Path, data: bytes, *, is_forced: bool) -> None:
    if not file.parent.is_dir():
        raise ArgumentError(argument=str(file), problem="the folder does not exist; create it or choose another path")
    if file.exists() and not is_forced:
        raise ArgumentError(
            argument=str(file), problem="this file already exists; choose another name, or use --force to replace it"
        )
    unfinished = file.with_name(f".{secrets.token_hex(8)}.mcpb")
    try:
        unfinished.write_bytes(data)
        unfinished.replace(file)
    finally:
        unfinished.unlink(missing_ok=True)
