"""Reads the config file as strict JSON. Messages about syntax errors contain the line and column."""

import json
import math
from pathlib import Path
from typing import Any

from memoryos_mcp.config.problems import config_error, kind_of, shown_key

_CONFIG_FILE_MAX_BYTES = 1_048_576
_NUMBER_MAX_DIGITS = 300  # a number with more digits may not fit into a float


def read_config_file(path: Path) -> dict[str, Any]:
    """Return the settings in a config file without validating them.

    Raises:
        ConfigError: The file cannot be read, or is not a JSON object.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_CONFIG_FILE_MAX_BYTES + 1)
    except FileNotFoundError as error:
        raise config_error([f"{path}: the config file does not exist; create it or choose another file"]) from error
    except (OSError, ValueError) as error:
        # Windows raises PermissionError for a folder.
        is_folder = isinstance(error, IsADirectoryError | PermissionError) and path.is_dir()
        reason = "it is a folder" if is_folder else getattr(error, "strerror", None) or "the path is not valid"
        raise config_error([f"{path}: the config file cannot be read ({reason}); choose another file"]) from error
    if len(data) > _CONFIG_FILE_MAX_BYTES:
        problem = (
            f"{path}: the file is larger than {_CONFIG_FILE_MAX_BYTES:,} bytes and cannot be a config file; "
            "choose another file"
        )
        raise config_error([problem])
    try:
        loaded = parse_json(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise config_error([f"{path}: the file is not valid UTF-8 at byte {error.start}; save it as UTF-8"]) from error
    except ValueError as error:
        raise config_error([f"{path}: {error}"]) from error
    if not isinstance(loaded, dict):
        raise config_error([f"{path}: the file contains {kind_of(loaded)}; it must contain a JSON object of settings"])
    return loaded


def parse_json(text: str) -> Any:
    """Parse JSON strictly, and return the value.

    Raises:
        ValueError: ``text`` is not valid JSON, or a key occurs twice in an object. The message is meant for users.
    """
    try:
        return json.loads(
            text, object_pairs_hook=_object, parse_int=_json_int, parse_float=_json_float, parse_constant=_json_constant
        )
    except json.JSONDecodeError as error:
        hint = "; write a backslash twice" if "escape" in error.msg else ""
        msg = f"invalid JSON at line {error.lineno}, column {error.colno} ({error.msg}{hint}); correct it"
        raise ValueError(msg) from error
    except RecursionError as error:
        msg = "the JSON is nested too deeply; remove some levels"
        raise ValueError(msg) from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            msg = f"{shown_key(name)} occurs twice; remove one occurrence"
            raise ValueError(msg)
        found[name] = value
    return found


def _json_int(digits: str) -> int:
    if len(digits) > _NUMBER_MAX_DIGITS:
        msg = f"the JSON contains a number with more than {_NUMBER_MAX_DIGITS} digits; write a shorter number"
        raise ValueError(msg)
    return int(digits)


def _json_float(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        msg = "the JSON contains a number that is too large; write a smaller number"
        raise ValueError(msg)
    return number


def _json_constant(name: str) -> float:
    msg = f"the JSON contains {name}, which is not allowed; write a number or null"
    raise ValueError(msg)
