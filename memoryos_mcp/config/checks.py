"""Validators of single settings: each returns the value to use, or raises `ValueError` with what is allowed."""

import json
import os
import re
import warnings
import zoneinfo
from pathlib import Path
from urllib.parse import urlsplit

import platformdirs
from pydantic import JsonValue

from memoryos_mcp.config.problems import CONTROL, UNSTORABLE, nearest_name
from memoryos_mcp.errors import ConfigError

APP_NAME = "memoryos-mcp"
_NO_HOME = "data_storage_path: this account has no home folder to put memory in; set it to an absolute path"

# Template of an MCP bundle. A client whose user gave no answer may pass it on, or an empty text.
_UNANSWERED = re.compile(r"\$\{user_config\.[^}]*\}")
_SURROGATE = re.compile("[\ud800-\udfff]")
_PLACEHOLDER_KEY = re.compile(
    r"""
    (?:sk-)?(?:proj-)?
    (?: (?:your|insert|enter|paste|replace).*   # your-api-key
      | [x*.…]+                                 # xxx
      | .*(?:\.\.\.|…).*                        # sk-...
      | change[-_ ]?(?:me|it|this) | todo | placeholder | (?:openai[-_ ]?)?api[-_ ]?key
      | <.*> | \[.*\] | \$?\{.*\} | %.*%        # a client's template that nobody filled in
    )?
    """,
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)


def is_unanswered(text: str) -> bool:
    """Return whether a text is a template that a client did not replace with its user's answer."""
    return _UNANSWERED.fullmatch(text.strip()) is not None


def storable_text(text: str) -> str:
    """Return the text if it can be stored as UTF-8."""
    if "\x00" in text or _SURROGATE.search(text):
        raise ValueError(UNSTORABLE)
    return text


def name_text(text: str) -> str:
    """Return the text if it is not blank."""
    if not text.strip():
        msg = "is blank; give it a text or leave it out"
        raise ValueError(msg)
    return storable_text(text)


def dimension_name(name: str) -> str:
    """Return the name without surrounding blanks; one that could break the lines of a prompt is refused."""
    if CONTROL.search(name):
        msg = "holds a control character; write each name on one line"
        raise ValueError(msg)
    return name_text(name).strip()


def different_names(names: list[str]) -> list[str]:
    """Return the names if they differ by more than case."""
    numbers: dict[str, int] = {}
    for number, name in enumerate(names, start=1):
        first = numbers.setdefault(name.casefold(), number)
        if first != number:
            msg = f"holds one name twice, as items {first} and {number}; keep one"
            raise ValueError(msg)
    return names


def folder_path(value: object) -> object:
    """Return the absolute path; a blank one is refused."""
    if isinstance(value, str | Path) and not str(value).strip():
        msg = "is blank; name a folder or leave it out for the platform's"
        raise ValueError(msg)
    return _path(value)


def file_path(value: object) -> object:
    """Return the absolute path; None for a blank one."""
    return None if isinstance(value, str | Path) and not str(value).strip() else _path(value)


def _path(value: object) -> object:
    """Return the absolute path, `~` expanded; other types are left to the type check."""
    if not isinstance(value, str | Path):
        return value
    text = str(value)
    if CONTROL.search(text):
        msg = "holds a control character; in JSON write each backslash twice, or use /"
        raise ValueError(msg)
    try:
        os.fsencode(text)
        return Path(text).expanduser().absolute()
    except UnicodeError as error:
        msg = "holds characters that no file name can hold; write it in plain Unicode"
        raise ValueError(msg) from error
    except (RuntimeError, OSError) as error:
        msg = "cannot be made absolute (no such home or working folder); write the whole path"
        raise ValueError(msg) from error


def default_folder() -> Path:
    """Return the platform's folder for users' data.

    Raises:
        ConfigError: This account has none.
    """
    try:
        folder = platformdirs.user_data_path(APP_NAME, appauthor=False)
    except RuntimeError as error:
        raise ConfigError(_NO_HOME) from error
    if not folder.is_absolute():  # returned by older platformdirs in this case; it would be the working directory
        raise ConfigError(_NO_HOME)
    return folder


def upper(value: object) -> object:
    """Return a text in upper case without surrounding blanks."""
    return value.strip().upper() if isinstance(value, str) else value


def lower_or_none(value: object) -> object:
    """Return a text in lower case without surrounding blanks; None for a blank one."""
    return (value.strip().lower() or None) if isinstance(value, str) else value


def is_placeholder(text: str) -> bool:
    """Return whether a text is empty or a placeholder for a key."""
    return _PLACEHOLDER_KEY.fullmatch(text.strip()) is not None


def api_url(url: str | None) -> str | None:
    """Return the URL without surrounding blanks; None for a blank or a placeholder."""
    if url is None or is_placeholder(url):
        return None
    return _address(storable_text(url.strip()), "is no address of an API; write it like https://api.openai.com/v1")


def server_url(url: str | None) -> str | None:
    """Return the URL without surrounding blanks; None for a blank one. Only scheme, host, port and path are allowed."""
    if url is None or not url.strip():
        return None
    msg = "is no address of a server; write it like https://memory.example.org"
    url = _address(storable_text(url.strip()), msg)
    parts = urlsplit(url)
    if parts.query or parts.fragment or parts.username or not url.isprintable():
        raise ValueError(msg)
    return url


def _address(url: str, problem: str) -> str:
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError as error:
        raise ValueError(problem) from error
    if not is_usable or CONTROL.search(url) or " " in url:
        raise ValueError(problem)
    return url


def host_names(names: list[str]) -> list[str]:
    """Return host names in lower case without brackets."""
    cleaned = [name.strip().lower().strip("[]") for name in names]
    if not all(cleaned) or any("/" in name or " " in name for name in cleaned):
        msg = "holds what is no host name; write names without scheme and port, like memory.example.org"
        raise ValueError(msg)
    return cleaned


def web_origins(origins: list[str]) -> list[str]:
    """Return origins in lower case without a trailing slash."""
    cleaned = [origin.strip().lower().rstrip("/") for origin in origins]
    for origin in cleaned:
        parts = urlsplit(origin)
        if not parts.scheme or not parts.hostname or parts.path:
            msg = "holds what is no origin; write them like https://app.example.org"
            raise ValueError(msg)
    return cleaned


def zone_name(name: str) -> str:
    """Return the name of an existing time zone, or an empty text."""
    name = name.strip()
    if not name:
        return ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EncodingWarning)  # from zoneinfo itself if tzdata is installed
            zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EncodingWarning)
            known = zoneinfo.available_timezones()
        close = nearest_name(name, known)
        msg = "is no IANA time zone; write it like Europe/Berlin, or leave it empty for this machine's"
        if close:
            msg = f"is no IANA time zone; did you mean {close}?"
        elif not known:
            msg = "cannot be looked up: this machine has no time zone database; pip install tzdata"
        raise ValueError(msg) from error
    return name


def json_object(value: dict[str, JsonValue] | None) -> dict[str, JsonValue] | None:
    """Return the value if it can be written as plain JSON."""
    try:
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        msg = "is not plain JSON (NaN, half of a surrogate pair, or nested too deep)"
        raise ValueError(msg) from error
    return value
