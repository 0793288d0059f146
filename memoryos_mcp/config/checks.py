"""Validators for single settings.

Each validator returns the value to use, or raises `ValueError` with a message for users.
"""

import json
import os
import re
import warnings
import zoneinfo
from pathlib import Path
from urllib.parse import urlsplit

import platformdirs
from pydantic import JsonValue, SecretStr

from memoryos_mcp.config.problems import CONTROL, UNSTORABLE, nearest_name
from memoryos_mcp.errors import ConfigError

APP_NAME = "memoryos-mcp"
_NO_HOME = "data_storage_path: this account has no home folder for memories; set data_storage_path to an absolute path"

# A placeholder in an MCP bundle. If the user enters nothing, the client passes the placeholder or an empty text.
_UNANSWERED = re.compile(r"\$\{user_config\.[^}]*\}")
_HOST_AND_PORT = re.compile(r"(?:\[[^\[\]]*\]|[^\[\]:]*)(?::[0-9]*)?")
_SURROGATE = re.compile("[\ud800-\udfff]")
_PLACEHOLDER_KEY = re.compile(
    r"""
    (?:sk-)?(?:proj-)?
    (?: (?:your|insert|enter|paste|replace).*   # your-api-key
      | [x*.…]+                                 # xxx
      | .*(?:\.\.\.|…).*                        # sk-...
      | change[-_ ]?(?:me|it|this) | todo | placeholder | (?:openai[-_ ]?)?api[-_ ]?key
      | <.*> | \[.*\] | \$?\{.*\} | %.*%        # a client's template without a value
    )?
    """,
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)


def is_unanswered(text: str) -> bool:
    """Return whether ``text`` is a placeholder of an MCP bundle, such as ``${user_config.api_key}``.

    Some clients pass the placeholder if the user has not entered a value.
    """
    return _UNANSWERED.fullmatch(text.strip()) is not None


def storable_text(text: str) -> str:
    """Return the text unchanged. Raise `ValueError` if it cannot be stored as UTF-8."""
    if "\x00" in text or _SURROGATE.search(text):
        raise ValueError(UNSTORABLE)
    return text


def name_text(text: str) -> str:
    """Return the text unchanged. Raise `ValueError` if it is blank or cannot be stored as UTF-8."""
    if not text.strip():
        msg = "is blank; enter a text or omit this value"
        raise ValueError(msg)
    return storable_text(text)


def dimension_name(name: str) -> str:
    """Return the name of a profile dimension without surrounding spaces. Raise `ValueError` if it is not valid.

    Control characters are not allowed, because they could break a prompt.
    """
    if CONTROL.search(name):
        msg = "contains a control character, such as a line break; remove it"
        raise ValueError(msg)
    return name_text(name).strip()


def different_names(names: list[str]) -> list[str]:
    """Return the names unchanged. Raise `ValueError` if two names are equal apart from upper and lower case."""
    numbers: dict[str, int] = {}
    for number, name in enumerate(names, start=1):
        first = numbers.setdefault(name.casefold(), number)
        if first != number:
            msg = f"contains the same name twice (items {first} and {number}); remove one of them"
            raise ValueError(msg)
    return names


def folder_path(value: object) -> object:
    """Return the absolute path of a folder. Raise `ValueError` if the path is blank or not valid."""
    if isinstance(value, str | Path) and not str(value).strip():
        msg = "is blank; enter the path of a folder, or leave the setting out to use the platform's user data folder"
        raise ValueError(msg)
    return _path(value)


def file_path(value: object) -> object:
    """Return the absolute path of a file; None if the path is blank."""
    return None if isinstance(value, str | Path) and not str(value).strip() else _path(value)


def _path(value: object) -> object:
    """Return an absolute path, with ``~`` expanded. Raise `ValueError` if the path is not valid.

    A value that is not a path is returned unchanged, so that the type check rejects it.
    """
    if not isinstance(value, str | Path):
        return value
    text = str(value)
    if CONTROL.search(text):
        msg = "contains a control character, perhaps from a single backslash in JSON; write two backslashes, or use /"
        raise ValueError(msg)
    try:
        os.fsencode(text)
        return Path(text).expanduser().absolute()
    except UnicodeError as error:
        msg = "contains characters that cannot be in a file name; remove them"
        raise ValueError(msg) from error
    except (RuntimeError, OSError) as error:
        msg = "depends on a home folder or working folder that does not exist; use an absolute path"
        raise ValueError(msg) from error


def default_folder() -> Path:
    """Return the platform's folder for user data.

    Raises:
        ConfigError: This account has no such folder.
    """
    try:
        folder = platformdirs.user_data_path(APP_NAME, appauthor=False)
    except RuntimeError as error:
        raise ConfigError(_NO_HOME) from error
    if not folder.is_absolute():  # an older platformdirs returned an empty path, which would mean the working folder
        raise ConfigError(_NO_HOME)
    return folder


def upper(value: object) -> object:
    """Return a string in upper case without surrounding spaces. Any other value is returned unchanged."""
    return value.strip().upper() if isinstance(value, str) else value


def lower_or_none(value: object) -> object:
    """Return a string in lower case without surrounding spaces; None if it is blank.

    Any value that is not a string is returned unchanged.
    """
    return (value.strip().lower() or None) if isinstance(value, str) else value


def is_placeholder(text: str) -> bool:
    """Return whether ``text`` is blank, or a placeholder for an API key such as ``your-api-key``."""
    return _PLACEHOLDER_KEY.fullmatch(text.strip()) is not None


def api_url(url: str | None) -> str | None:
    """Return the URL of an API without surrounding spaces; None if it is blank or a placeholder."""
    if url is None or is_placeholder(url):
        return None
    return _address(storable_text(url.strip()), "is not a valid URL of an API; write it like https://api.openai.com/v1")


def server_url(url: str | None) -> str | None:
    """Return the URL of a server without surrounding spaces; None if it is blank.

    Raise `ValueError` if the URL has parts other than scheme, host, port and path.
    """
    if url is None or not url.strip():
        return None
    msg = "is not a valid URL of a server; write it like https://memory.example.org"
    url = _address(storable_text(url.strip()), msg)
    parts = urlsplit(url)
    if parts.query or parts.fragment or parts.username or not url.isprintable():
        raise ValueError(msg)
    return url


def chroma_url(url: str | None) -> str | None:
    """Return the URL of a Chroma server; None if it is blank. Raise `ValueError` if the URL has a path."""
    url = server_url(url)
    if url is not None and urlsplit(url).path.strip("/"):
        msg = "must not have a path; write it like http://localhost:8000"
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
    """Return host names in lower case, without the brackets of IPv6 addresses.

    Raise `ValueError` if a name is not valid.
    """
    cleaned = [name.strip().lower().strip("[]") for name in names]
    if not all(cleaned) or any("/" in name or " " in name for name in cleaned):
        msg = "contains an invalid host name; write names without scheme and port, like memory.example.org"
        raise ValueError(msg)
    return cleaned


def web_origins(origins: list[str]) -> list[str]:
    """Return web origins in lower case, without trailing slashes.

    Raise `ValueError` if an origin is not valid.
    """
    cleaned = [origin.strip().lower().rstrip("/") for origin in origins]
    for origin in cleaned:
        parts = urlsplit(origin)
        if not parts.scheme or not parts.hostname or parts.path:
            msg = "contains an invalid origin; write origins like https://app.example.org"
            raise ValueError(msg)
    return cleaned


def zone_name(name: str) -> str:
    """Return the name of a time zone without surrounding spaces. An empty name is allowed.

    Raise `ValueError` if there is no such time zone.
    """
    name = name.strip()
    if not name:
        return ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EncodingWarning)  # zoneinfo itself causes a warning if tzdata is installed
            zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EncodingWarning)
            known = zoneinfo.available_timezones()
        close = nearest_name(name, known)
        msg = "is not an IANA time zone; write it like Europe/Berlin, or leave it empty to use this machine's time zone"
        if close:
            msg = f"is not an IANA time zone; did you mean {close}?"
        elif not known:
            msg = "cannot be looked up, because this machine has no time zone database; run `pip install tzdata`"
        raise ValueError(msg) from error
    return name


def json_object(value: dict[str, JsonValue] | None) -> dict[str, JsonValue] | None:
    """Return the value unchanged. Raise `ValueError` if it cannot be encoded as plain JSON."""
    try:
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        msg = "is not plain JSON; remove NaN, infinity and halves of surrogate pairs, and use fewer levels of nesting"
        raise ValueError(msg) from error
    return value


def database_url(url: SecretStr | None) -> SecretStr | None:
    """Return the address of a PostgreSQL database; None if it is missing or empty."""
    text = "" if url is None else url.get_secret_value().strip()
    if not text:
        return None
    if not text.startswith(("postgresql://", "postgres://")):
        msg = "must begin with postgresql://, like postgresql://USER:PASSWORD@HOST/DATABASE"
        raise ValueError(msg)
    try:
        parts = urlsplit(text)
        hosts = parts.netloc.rpartition("@")[2].split(",")
        is_valid = (
            parts.netloc.count("@") <= 1
            and "@" not in parts.path + parts.query + parts.fragment
            and all(_HOST_AND_PORT.fullmatch(host) for host in hosts)
        )
    except ValueError:
        is_valid = False
    if not is_valid or CONTROL.search(text):
        # Parts of such a password would be taken for the host or the database, which messages show.
        msg = (
            "is not a valid address; write it like postgresql://USER:PASSWORD@HOST/DATABASE, and in USER and PASSWORD "
            "write @ as %40, / as %2F, ? as %3F, # as %23 and % as %25"
        )
        raise ValueError(msg)
    return SecretStr(text)
