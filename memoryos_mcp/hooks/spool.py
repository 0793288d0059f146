"""The hooks' private folder: turns that wait to be stored, the daemon's address, and the log.

This module imports nothing from this package, because the process of a hook must start quickly.
"""

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

WAITING = ".turn"
LOG_BYTES = 256_000


def root_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder of all hooks of this account."""
    if os.name == "nt":
        base = environment.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    else:
        base = environment.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "memoryos-mcp" / "hooks"


def make_private(folder: Path) -> None:
    """Create a folder that only this account may use."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder.chmod(0o700)


def write(path: Path, content: object) -> None:
    """Write a value as JSON to a private file, in one step. When it returns, the file is on disk."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        handle = os.open(part, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(json.dumps(content).encode())
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError:
        with suppress(OSError):
            part.unlink()
        raise


def read(path: Path) -> dict[str, object]:
    """Return the JSON object in a file; an empty one if the file is missing or damaged."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def put(folder: Path, turn: Mapping[str, object]) -> None:
    """Keep a turn until the daemon has stored it."""
    write(folder / f"{time.time_ns():020}-{turn['key']}{WAITING}", turn)


def waiting(folder: Path) -> Iterator[Path]:
    """Yield the files of the turns that wait to be stored, oldest first."""
    yield from sorted(each for each in folder.iterdir() if each.name.endswith(WAITING))


def log(folder: Path, message: str) -> None:
    """Add a line to the log. The message must not contain text of the dialogue."""
    with suppress(OSError):
        make_private(folder)
        path = folder / "hook.log"
        if path.exists() and path.stat().st_size > LOG_BYTES:
            path.replace(path.with_suffix(".old.log"))
        handle = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {message}\n")
