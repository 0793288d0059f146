"""The command ``memoryos-mcp bundle``: the server as one file that a desktop client installs when it is opened.

The bundle is made from the package's files and its installation metadata, so that an installed wheel makes the same
bundle as a checkout.
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
# The earliest time in the ZIP format: bundles do not depend on the times of files.
_NO_TIME = (1980, 1, 1, 0, 0, 0)
_UNIX, _PLAIN_FILE = 3, 0o100644 << 16
_SERVER = '''\
"""What the client starts: the memory, over stdin and stdout."""

from memoryos_mcp.cli.main import serve_by_default

if __name__ == "__main__":
    serve_by_default()
'''
_PYPROJECT = """\
# Says what the server needs. The client has uv fetch it when the server is first started.
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
    """Write the bundle, and print its size and SHA-256.

    The target is a file, or a folder in which the bundle is named by distribution and version.
    """
    files = bundled_files()
    data = archive(files)
    try:
        file = target / DEFAULT_NAME if target.is_dir() else target
        _put_in_place(file, data, is_forced=is_forced)
    except OSError as error:
        msg = f"{target} cannot be written ({error.strerror or type(error).__name__}); name another file"
        raise StorageError(msg) from error
    sha256 = hashlib.sha256(data).hexdigest()
    told = {"file": str(file), "version": __version__, "files": len(files), "bytes": len(data), "sha256": sha256}
    lines = (
        f"{file}: {len(files)} files, {len(data) / 1e6:.1f} MB, SHA-256 {sha256}",
        "Open it with a client that supports MCP bundles, such as Claude Desktop.",
    )
    print_report(told, lines, as_json=as_json)


def bundled_files() -> dict[str, bytes]:
    """Return the contents of the bundle, by path."""
    told = _installed()
    about = {
        "name": DISTRIBUTION,
        "summary": told.metadata["Summary"],
        "author": told.metadata["Author"],
        "license": told.metadata["License-Expression"],
        "python": told.metadata["Requires-Python"],
        "keywords": told.metadata["Keywords"],
    }
    files = {
        "manifest.json": f"{json.dumps(manifest(about), indent=2, ensure_ascii=False)}\n".encode(),
        "pyproject.toml": _pyproject(told, about).encode(),
        ICON: (_HERE / "data" / ICON).read_bytes(),
        _LICENSE: (told.read_text(f"licenses/{_LICENSE}") or told.metadata["License-Expression"]).encode(),
        ENTRY_POINT: _SERVER.encode(),
    }
    folder = Path(ENTRY_POINT).parent
    return files | {(folder / _PACKAGE.name / path).as_posix(): data for path, data in _package_files()}


def archive(files: Mapping[str, bytes]) -> bytes:
    """Return files as a ZIP archive; the same files always give the same bytes."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as opened:
        for path, data in sorted(files.items()):
            entry = zipfile.ZipInfo(path, _NO_TIME)
            entry.create_system, entry.external_attr = _UNIX, _PLAIN_FILE
            opened.writestr(entry, data, zipfile.ZIP_DEFLATED, 9)
    return packed.getvalue()


def _installed() -> metadata.Distribution:
    try:
        told = metadata.distribution(DISTRIBUTION)
    except metadata.PackageNotFoundError as error:
        msg = f"{DISTRIBUTION} is not installed, so what it needs is not known; install it with pip and try again"
        raise ConfigError(msg) from error
    if told.version != __version__:
        msg = f"{DISTRIBUTION} {told.version} is installed, but this is {__version__}; install it again"
        raise ConfigError(msg)
    return told


def _pyproject(told: metadata.Distribution, about: Mapping[str, str]) -> str:
    # A requirement may contain quotes; a JSON string is a valid TOML string.
    needed = sorted(each for each in told.requires or [] if "extra ==" not in each)
    return _PYPROJECT.format(
        version=json.dumps(__version__),
        python=json.dumps(about["python"]),
        dependencies="\n".join(f"    {json.dumps(each)}," for each in needed),
    )


def _package_files() -> Iterator[tuple[Path, bytes]]:
    """Yield the package's files with their relative paths, without caches and hidden files."""
    for path in _PACKAGE.rglob("*"):
        inside = path.relative_to(_PACKAGE)
        if path.is_file() and not any(part.startswith((".", "__pycache__")) for part in inside.parts):
            yield inside, path.read_bytes()


def _put_in_place(file: Path, data: bytes, *, is_forced: bool) -> None:
    if not file.parent.is_dir():
        raise ArgumentError(argument=str(file), problem="the folder does not exist; create it or name another")
    if file.exists() and not is_forced:
        raise ArgumentError(argument=str(file), problem="exists already; name a new file, or add --force")
    beside = file.with_name(f".{secrets.token_hex(8)}.mcpb")
    try:
        beside.write_bytes(data)
        beside.replace(file)
    finally:
        beside.unlink(missing_ok=True)
