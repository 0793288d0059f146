"""Removing keys and credentials from settings, so that the settings are safe to show."""

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
    """Remove the secrets inside a JSON value.

    A member or item is a secret if its name looks like the name of a key or password, or its value looks like one.
    """
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
    """Return a JSON value in which ``***`` replaces secrets and deeply nested values.

    A value is a secret if its name looks like the name of a key or password, or if it looks like one itself.
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
