"""Removes API keys and credentials from settings, so that the settings are safe to show."""

import os
import re
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from pydantic import JsonValue

_KWARGS_DEPTH_SHOWN = 8
_HIDDEN = "***"
_SECRET_NAME = re.compile(r"token(?!i[sz]er)|key|secret|passw|auth|credential|cookie|bearer", re.IGNORECASE)
_SECRET_VALUE = re.compile(r"://[^/\s]*@|\b(?:sk|hf|pk)[-_]\w{6}|\bbearer\s|\bbasic\s", re.IGNORECASE)


def path_text(path: Path) -> str:
    """Return a path as text; bytes that are not valid UTF-8 become U+FFFD."""
    return os.fsencode(path).decode("utf-8", "replace")


def without_credentials(url: str | None) -> str | None:
    """Return a URL without its user name, password, query and fragment."""
    if url is None:
        return None
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def without_secrets(value: JsonValue) -> JsonValue:
    """Return a copy of a JSON value without the secrets in its objects and lists (see `masked`)."""
    if isinstance(value, dict):
        return {
            name: without_secrets(inner)
            for name, inner in value.items()
            if not _SECRET_NAME.search(name) and not _is_secret(inner)
        }
    return [without_secrets(inner) for inner in value if not _is_secret(inner)] if isinstance(value, list) else value


def _is_secret(value: JsonValue) -> bool:
    return isinstance(value, str) and _SECRET_VALUE.search(value) is not None


def masked(value: JsonValue, *, depth: int = 0) -> JsonValue:
    """Return a copy of a JSON value with ``***`` in place of secrets and deeply nested values.

    The value of an object member is a secret if the member's name looks like the name of a key or password. A string
    is a secret if it looks like a key or contains credentials.
    """
    if isinstance(value, dict | list) and depth >= _KWARGS_DEPTH_SHOWN:
        return _HIDDEN
    if isinstance(value, dict):
        return {
            name: _HIDDEN if _SECRET_NAME.search(name) else masked(inner, depth=depth + 1)
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [masked(inner, depth=depth + 1) for inner in value]
    return _HIDDEN if _is_secret(value) else value
