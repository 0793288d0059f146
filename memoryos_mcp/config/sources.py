"""Reads the settings from the config file, the environment and command-line flags, once at startup.

Environment variables (``MEMORYOS_*``) override the file, and flags override both. An error message is one line. It
states where the invalid setting is and which values are allowed. It never quotes invalid text, which may be an API key.
"""

import errno
import logging
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import EnvSettingsSource

from memoryos_mcp.config import ENV_PREFIX, Settings
from memoryos_mcp.config.checks import is_unanswered
from memoryos_mcp.config.file import parse_json, read_config_file
from memoryos_mcp.config.problems import UNSTORABLE, config_error, kind_of, nearest_name, shown_key
from memoryos_mcp.config.values import allowed_texts, describe_values, takes_null, value_type

CONFIG_FILE_VARIABLE = f"{ENV_PREFIX}CONFIG"
OTHER_VARIABLES = frozenset(
    {"CONFIG", "EVAL_DATA", "GGUF", "INSPECTOR"}
)  # variables that are not settings, without the prefix

_PATHS = frozenset(name for name in Settings.model_fields if value_type(name) is Path)
_TRUE_TEXTS = frozenset({"true", "1", "yes", "on"})
_FALSE_TEXTS = frozenset({"false", "0", "no", "off"})

logger = logging.getLogger(__name__)

# Subfolder of the data folder that contains the memories.
_MEMORIES = "users"
# Error codes of a full disk. The disk may get free space again without the user's help.
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


def load_settings(config_file: Path | None, overrides: Mapping[str, Any]) -> Settings:
    """Return the settings from the config file, the environment and ``overrides``. Later sources override earlier ones.

    Args:
        config_file: Path of the config file. None means the path in the environment variable ``MEMORYOS_CONFIG``; if
            that is not set either, no file is read.
        overrides: Settings from command-line flags, by name; None means that the flag was not used. A string is
            parsed as the setting's type.

    Raises:
        ConfigError: A setting is unknown or out of range, or the file cannot be read. The message is one line and
            does not quote invalid strings.
    """
    path = _config_path(config_file)
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    if path is not None:
        for name, value in read_config_file(path).items():
            if value is not None or name not in Settings.model_fields:
                values[name] = value
                origins[name] = f"{path}: {shown_key(name)}"
    for name, text in _variables().items():
        values[name] = _from_text(name, text)
        origins[name] = f"{ENV_PREFIX}{name.upper()}"
    for name, value in overrides.items():
        if value is not None:
            values[name] = _from_text(name, value)
            origins[name] = shown_key(name)
    for name in values.keys() & _PATHS:
        values[name] = _against(path, values[name])
    _warn_of_unknown_variables(os.environ)
    # `Settings` would not reject all unknown names: its constructor has further arguments, such as `_env_file`.
    unknown = [_unknown_key(name, origins[name]) for name in values if name not in Settings.model_fields]
    try:
        settings = Settings(**{name: value for name, value in values.items() if name in Settings.model_fields})
    except ValidationError as error:
        raise config_error([*unknown, *_problems(error, origins)]) from error
    if unknown:
        raise config_error(unknown)
    return settings


def check_data_folder(settings: Settings, *, may_only_read: bool = False) -> None:
    """Create the data folder if it does not exist, and check that it is writable.

    If the settings need no data folder, do nothing. A new folder is accessible only to this account.

    Args:
        settings: The settings, including the path of the folder.
        may_only_read: Whether a folder that is not writable causes a warning in the log instead of an error. This
            applies only if the folder contains memories or the disk is full.

    Raises:
        ConfigError: The folder cannot be created or is not writable.
    """
    if not settings.needs_data_folder:
        return
    folder = settings.data_storage_path
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder, prefix=".write-test-") as file:
            file.write(b"memory")
            file.flush()
    except (FileExistsError, NotADirectoryError) as error:
        problem = f"data_storage_path: {folder} or one of its parents is a file; choose another folder"
        raise config_error([problem]) from error
    except OSError as error:
        reason = error.strerror or type(error).__name__
        if may_only_read and ((folder / _MEMORIES).is_dir() or error.errno in _FULL):
            logger.warning(
                "data folder %s is not writable (%s); memories can only be read until it is writable", folder, reason
            )
            return
        fix = "free some disk space" if error.errno in _FULL else "make it writable for this account"
        problem = (
            f"data_storage_path: {folder} cannot be created or written ({reason}); {fix}, or choose another folder"
        )
        raise config_error([problem]) from error


def _variables() -> dict[str, Any]:
    """Return the settings in environment variables, as strings. Placeholders of MCP bundles are left out."""
    found = EnvSettingsSource(Settings)()
    return {name: text for name, text in found.items() if not (isinstance(text, str) and is_unanswered(text))}


def _config_path(config_file: Path | None) -> Path | None:
    named = config_file if config_file is not None else os.environ.get(CONFIG_FILE_VARIABLE)
    if not named:
        return None
    try:
        return Path(named).expanduser().absolute()
    except (RuntimeError, OSError) as error:
        problem = (
            f"{named}: this path depends on a home folder or working folder that does not exist; use an absolute path"
        )
        raise config_error([problem]) from error


def _from_text(name: str, value: Any) -> Any:
    """Convert the text of a variable or flag to the setting's type. Invalid text is returned unchanged."""
    if name not in Settings.model_fields or not isinstance(value, str):
        return value
    if takes_null(name) and value.strip() == "null":
        return None
    try:
        return _parsed(value, value_type(name))
    except ValueError:
        return value


def _parsed(text: str, kind: object) -> Any:
    if kind is float:
        return float(text)
    if kind is int:
        return _whole_number(text)
    if kind is bool:
        folded = text.strip().lower()
        return folded in _TRUE_TEXTS if folded in _TRUE_TEXTS | _FALSE_TEXTS else text
    return parse_json(text) if kind in (list, dict) else text


def _whole_number(text: str) -> float:
    """Return the number in ``text``: an int if it is whole ("7", "1e6"), else a float ("7.5").

    The setting must be whole, so its validation rejects a float.

    Raises:
        ValueError: ``text`` is not a number.
    """
    try:
        return int(text)
    except ValueError:
        number = float(text)
        return int(number) if number.is_integer() else number


def _against(config_file: Path | None, path: Any) -> Any:
    """Resolve a relative path against the config file's folder. Any other value is returned unchanged."""
    if config_file is None or not isinstance(path, str | Path):
        return path
    text = str(path)
    return path if not text.strip() or text.startswith("~") else str(config_file.parent / text)


def _warn_of_unknown_variables(environment: Mapping[str, str]) -> None:
    known = {name.upper() for name in Settings.model_fields} | OTHER_VARIABLES
    for variable in sorted(environment):
        prefix, name = variable[: len(ENV_PREFIX)].upper(), variable[len(ENV_PREFIX) :].upper()
        if prefix == ENV_PREFIX and name not in known:
            close = nearest_name(name, known)
            hint = f"; did you mean {ENV_PREFIX}{close}?" if close else ""
            logger.warning("environment variable %s is not a setting and is ignored%s", shown_key(variable), hint)


def _unknown_key(name: str, where: str) -> str:
    close = nearest_name(name, Settings.model_fields)
    return f"{where} is not a setting" + (f"; did you mean {close}?" if close else "")


def _problems(error: ValidationError, origins: Mapping[str, str]) -> list[str]:
    """Return a message for each invalid setting. The messages do not quote invalid strings."""
    found: dict[str, str] = {}
    for problem in error.errors(include_url=False):
        name, *inner = problem["loc"]
        phrase = f"{origins[str(name)]} {_problem(str(name), problem)}"
        if value_type(str(name)) is list and inner:
            phrase += f" (item {int(inner[0]) + 1})"
        found.setdefault(str(name), phrase)
    return list(found.values())


def _problem(name: str, problem: ErrorDetails) -> str:
    if problem["type"] == "value_error":
        return str(problem["ctx"]["error"])
    if problem["type"] == "string_unicode":
        return UNSTORABLE
    if problem["type"] == "literal_error":
        close = nearest_name(str(problem["input"]), allowed_texts(name))
        meant = f"; did you mean {close}?" if close else ""
        return f"must be {describe_values(name)}{meant}"
    return f"must be {describe_values(name)}, not {kind_of(problem['input'])}"
