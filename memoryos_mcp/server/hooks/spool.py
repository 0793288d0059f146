"""The private folder of hooks: it contains the spool (turns not yet in the memory), the daemon's address, and the log.

This module imports nothing from this package, because the process of a hook must start quickly.
"""

import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress

WAITING = ".turn"
LOG_BYTES = 256_000


def root_folder(environment: Mapping[str, str]) -> str:
    """Return the folder that contains the private folders of this account's hooks."""
    if os.name == "nt":
        base = environment.get("LOCALAPPDATA") or os.path.expanduser("~/AppData/Local")
    else:
        base = environment.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return os.path.join(base, "memoryos-mcp", "hooks")


def make_private(folder: str) -> None:
    """Create a folder if it is missing, and let only this account access it."""
    os.makedirs(folder, 0o700, exist_ok=True)
    os.chmod(folder, 0o700)


def write(path: str, content: object) -> None:
    """Write a value as JSON to a private file, atomically. The file is on disk when the function returns."""
    part = f"{path}.{os.getpid()}.part"
    try:
        handle = os.open(part, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(json.dumps(content).encode())
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except OSError:
        with suppress(OSError):
            os.unlink(part)
        raise


def read(path: str) -> dict[str, object]:
    """Return the JSON object in a file, or an empty dictionary if the file is missing or damaged."""
    try:
        with open(path, "rb") as file:
            content = json.loads(file.read())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def put(folder: str, turn: Mapping[str, object]) -> None:
    """Add a turn to the spool."""
    write(os.path.join(folder, f"{time.time_ns():020}-{os.getpid()}{WAITING}"), turn)


def waiting(folder: str) -> list[str]:
    """Return the paths of the turns in the spool, oldest first."""
    return sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(WAITING))


def remove(path: str) -> None:
    """Delete a file if it exists."""
    with suppress(FileNotFoundError):
        os.unlink(path)


def log(folder: str, message: str) -> None:
    """Add a line to the log. The message must not contain text of the dialogue."""
    with suppress(OSError):
        make_private(folder)
        path = os.path.join(folder, "hook.log")
        if os.path.exists(path) and os.stat(path).st_size > LOG_BYTES:
            os.replace(path, path.replace(".log", ".old.log"))
        handle = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {message}\n")
