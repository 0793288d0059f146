"""Translation of the SQL of `storage.sql` to PostgreSQL.

The SQL of `storage.sql` is written for SQLite. Only placeholders and the constructs in `_REWRITES` are different in
PostgreSQL.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

_LIST = r"(SELECT CAST\(value AS \w+\) FROM json_array_elements_text\(CAST\([^()]+ AS json\)\))"
# Pairs of a pattern and its replacement. The SQL that they are applied to contains no string constants.
_REWRITES: tuple[tuple[re.Pattern[str], str], ...] = (
    # Lists of numbers or texts are passed as JSON.
    (
        re.compile(r"SELECT value FROM json_each\(([^()]+)\)"),
        r"SELECT CAST(value AS bigint) FROM json_array_elements_text(CAST(\1 AS json))",
    ),
    (re.compile(r"json_each\(([^()]+)\)"), r"json_array_elements_text(CAST(\1 AS json))"),
    # Under row-level security, an index is used to look up a list only if the list is an array, because the conversion
    # of the list's values is not leakproof (see "Rules and Privileges" in the manual).
    (re.compile(rf"\bNOT IN \({_LIST}\)"), r"<> ALL(ARRAY(\1))"),
    (re.compile(rf"\bIN \({_LIST}\)"), r"= ANY(ARRAY(\1))"),
    (re.compile(r"json_group_array\((\w+)\)"), r"coalesce(CAST(json_agg(\1) AS text), '[]')"),
    (re.compile(r"json_array\(([^()]+)\)"), r"CAST(json_build_array(\1) AS text)"),
    (re.compile(r"CAST\((\w+) AS BLOB\)"), r"convert_to(\1, 'UTF8')"),
    (re.compile(r"\binstr\("), "strpos("),
    (re.compile(r" INDEXED BY \w+"), ""),
    # The type of a parameter that is only compared with NULL is unknown.
    (re.compile(r"(\?\d+) IS NULL"), r"CAST(\1 AS text) IS NULL"),
    # The key of every table begins with the column ``user_no``.
    (re.compile(r"ON CONFLICT \("), "ON CONFLICT (user_no, "),
)
_CONSTANT = re.compile(r"'(?:[^']|'')*'")
_PLACEHOLDER = re.compile(r"\?(\d*)|(?<![:\w]):([a-z_]+)|\x00(\d+);")


@lru_cache(maxsize=2_000)
def translate(sql: str) -> tuple[str, tuple[int | str, ...]]:
    """Return a statement in PostgreSQL's SQL, and the keys of its parameters.

    The key of a parameter is its position, from 0, or its name.
    """
    constants: list[str] = []

    def hide(found: re.Match[str]) -> str:
        constants.append(found[0])
        return f"\x00{len(constants) - 1};"

    text = _CONSTANT.sub(hide, sql)
    for pattern, replacement in _REWRITES:
        text = pattern.sub(replacement, text)
    keys: list[int | str] = []
    numbered = 0

    def number(found: re.Match[str]) -> str:
        nonlocal numbered
        if found[3]:
            return constants[int(found[3])]
        key: int | str = found[2] or int(found[1] or numbered + 1) - 1
        if isinstance(key, int):
            numbered = max(numbered, key + 1)
        if key not in keys:
            keys.append(key)
        return f"${keys.index(key) + 1}"

    return _PLACEHOLDER.sub(number, text), tuple(keys)


def values(keys: Sequence[int | str], bindings: Sequence[Any] | Mapping[str, Any] | None) -> list[Any]:
    """Return the parameters of a statement in the order of its ``keys``."""
    given: Callable[[Any], Any] = (bindings or ()).__getitem__
    return [plain(given(key)) for key in keys]


def plain(value: Any) -> Any:
    """Return a boolean as a number, an enum member as a string, and any other value unchanged."""
    if isinstance(value, bool):
        return int(value)
    return str(value) if isinstance(value, str) and type(value) is not str else value
