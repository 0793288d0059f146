"""Reading the config file as strict JSON. Errors name the place in the file."""

import json
import math
from pathlib import Path
from typing import Any

from memoryos_mcp.config.problems import config_error, kind_of, shown_key

_CONFIG_FILE_MAX_BYTES = 1_048_576
_NUMBER_MAX_DIGITS = 300  # a larger number does not fit into a float


def read_config_file(path: Path) -> dict[str, Any]:
    """Return the settings in a config file, not validated; raise `ConfigError` if it is not one JSON object."""
    try:
        with path.open("rb") as file:
            data = file.read(_CONFIG_FILE_MAX_BYTES + 1)
    except FileNotFoundError as error:
        raise config_error([f"{path}: the config file does not exist; create it or name another file"]) from error
    except (OSError, ValueError) as error:
        # Windows raises PermissionError for a folder.
        is_folder = isinstance(error, IsADirectoryError | PermissionError) and path.is_dir()
        reason = "it is a folder" if is_folder else getattr(error, "strerror", None) or "unusable path"
        raise config_error([f"{path}: the config file cannot be read ({reason})"]) from error
    if len(data) > _CONFIG_FILE_MAX_BYTES:
        problem = f"{path}: larger than {_CONFIG_FILE_MAX_BYTES:,} bytes, so not a config file; name another file"
        raise config_error([problem])
    try:
        loaded = parse_json(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise config_error([f"{path}: not UTF-8 at byte {error.start}; save the file as UTF-8"]) from error
    except ValueError as error:
        raise config_error([f"{path}: {error}"]) from error
    if not isinstance(loaded, dict):
        raise config_error([f"{path}: contains {kind_of(loaded)}; a config file must be one JSON object of settings"])
    return loaded


def parse_json(text: str) -> Any:
    """Return the parsed JSON; raise `ValueError` with a message for users if it is invalid or has a key twice."""
    try:
        return json.loads(
            text, object_pairs_hook=_object, parse_int=_json_int, parse_float=_json_float, parse_constant=_json_constant
        )
    except json.JSONDecodeError as error:
        hint = "; write a backslash twice" if "escape" in error.msg else ""
        msg = f"not JSON at line {error.lineno}, column {error.colno} ({error.msg}{hint})"
        raise ValueError(msg) from error
    except RecursionError as error:
        msg = "nested too deeply"
        raise ValueError(msg) from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            msg = f"{shown_key(name)} occurs twice; keep one"
            raise ValueError(msg)
        found[name] = value
    return found


def _json_int(digits: str) -> int:
    if len(digits) > _NUMBER_MAX_DIGITS:
        msg = f"contains a number with more than {_NUMBER_MAX_DIGITS} digits"
        raise ValueError(msg)
    return int(digits)


def _json_float(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        msg = "contains a number that is too large"
        raise ValueError(msg)
    return number


def _json_constant(name: str) -> float:
    msg = f"contains {name}, which is not a JSON number"
    raise ValueError(msg)
