"""Messages about invalid settings. A message is one line. It never quotes invalid text, which may be an API key."""

import difflib
import re
from collections.abc import Iterable, Sequence
from types import NoneType

from memoryos_mcp.errors import ConfigError

_SHOWN_NUMBER_MAX = 10**15
# For longer values, the message states the length, because the length may be the mistake.
_TEXT_MAX_CHARS = 60
_LIST_MAX_ITEMS = 100
_PROBLEMS_SHOWN = 3

UNSTORABLE = "contains a NUL character or half of a surrogate pair; write it in plain Unicode"
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
# Names of settings are plain words; any other key may be a misplaced secret.
_PLAIN_KEY = re.compile(r"(?!sk-)[A-Za-z_$][A-Za-z_.$-]{0,62}\d{0,2}")


def config_error(problems: Sequence[str]) -> ConfigError:
    """Return an error with a one-line message: the first few problems, and the number of further problems."""
    line = "; ".join(problems[:_PROBLEMS_SHOWN])
    if len(problems) > _PROBLEMS_SHOWN:
        line += f"; and {len(problems) - _PROBLEMS_SHOWN} more"
    return ConfigError(CONTROL.sub("?", line))


def shown_key(name: str) -> str:
    """Return the text that represents a key of the config file in an error message.

    The result is the key itself or, if the key may be a misplaced secret, only its length.
    """
    return name if _PLAIN_KEY.fullmatch(name) else f"a key of {len(name)} characters"


def kind_of(value: object) -> str:
    """Return the text that represents a value in an error message.

    For a number or a boolean, the result is the value itself, such as ``true``. For very large integers and all other
    values, the result is only the type, such as "a list".
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"{value:,}" if abs(value) < _SHOWN_NUMBER_MAX else "a number with more than 15 digits"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str):
        shown = "a text" if value else "an empty text"
        return shown if len(value) <= _TEXT_MAX_CHARS else f"a text of {len(value):,} characters"
    if isinstance(value, list) and len(value) > _LIST_MAX_ITEMS:
        return f"a list of {len(value):,} items"
    kinds = {dict: "an object", list: "a list", NoneType: "null"}
    return kinds.get(type(value), type(value).__name__)


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """Return the name in ``known`` that is most similar to ``name``; None if no name is similar enough."""
    by_folded = {_folded(one): one for one in known}
    close = difflib.get_close_matches(_folded(name[:100]), by_folded, n=1, cutoff=0.6)
    return by_folded[close[0]] if close else None


def _folded(name: str) -> str:
    return name.lower().replace("-", "_").replace(" ", "_")
