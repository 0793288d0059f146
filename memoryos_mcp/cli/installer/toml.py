"""Edits TOML, the format of Codex's configuration file: appends, replaces or removes one table.

This module edits the text itself, because the standard library cannot write TOML. The text outside the table is not
changed. The result is parsed again and compared with the expected content before it is returned.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, time
from typing import Any

from memoryos_mcp.errors import ClientFileError

_BARE = re.compile(r"[A-Za-z0-9_-]+")
# Structural characters, and strings and comments, which may contain text that looks like a header.
_STRING = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}' r"|'''.*?'{3,5}" r'|"(?:\\.|[^"\\\n])*"' r"|'[^'\n]*'|#[^\n]*|[\[\]{}=\n]", re.DOTALL
)


def read(text: str) -> Mapping[str, Any]:
    """Parse TOML text and return its content."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        where = re.search(r"\(at .+?\)", str(error))
        msg = f"the file is not valid TOML {where[0] if where else '(nested too deeply)'}; correct the file"
        raise ClientFileError(msg) from error


def with_member(text: str, path: Sequence[str], value: Mapping[str, Any]) -> str:
    """Return the text after adding or replacing one table.

    ``path`` contains the keys that lead to the table, beginning with the outermost table. ``value`` contains strings,
    numbers, booleans, times, and lists and tables of these.
    """
    content = read(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    block = _table(path, value).replace("\n", newline)
    if _at(content, path) is not None:
        start, end = _span(text, path)
        changed = text[:start] + block + text[end:]
    elif not text:
        changed = block + newline
    elif text.endswith("\n"):
        changed = text + newline + block + newline
    else:
        changed = text + newline * 2 + block
    return _checked(changed, _with(content, path, value))


def without_member(text: str, path: Sequence[str]) -> str:
    """Return the text without the table at a path of keys. If there is no such table, return the text unchanged."""
    content = read(text)
    if _at(content, path) is None:
        return text
    start, end = _span(text, path)
    head, rest = text[:start], text[end:]
    rest = rest.removeprefix("\r").removeprefix("\n")
    if re.search(r"\n\r?\n\Z|\A\r?\n\Z", head):
        head = _without_newline(head)
    if not rest and not text.endswith("\n"):
        head = _without_newline(head)
    return _checked(head + rest, _with(content, path, None))


def _without_newline(text: str) -> str:
    return text.removesuffix("\n").removesuffix("\r")


def _at(content: Mapping[str, Any], path: Sequence[str]) -> Any:
    value: Any = content
    for before, key in zip(("", *path), path, strict=False):
        if not isinstance(value, Mapping):
            msg = f'"{before}" is not a table; correct the file, then run the command again'
            raise ClientFileError(msg)
        value = value.get(key)
        if value is None:
            return None
    return value


def _with(content: Mapping[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    """Return a copy of the content with a new value at a path of keys.

    A value of None removes the member at the path. Tables that become empty are removed too.
    """
    key, rest = path[0], path[1:]
    new = _with(content.get(key, {}), rest, value) if rest else value
    others = {name: each for name, each in content.items() if name != key}
    return others if new is None or (value is None and new == {} and rest) else {**others, key: new}


def _checked(text: str, expected: Mapping[str, Any]) -> str:
    """Return the text unchanged. Raise `ClientFileError` if the parsed text is not equal to ``expected``.

    Empty inner tables are ignored in the comparison.
    """
    try:
        is_as_expected = _without_empty(tomllib.loads(text)) == _without_empty(expected)
    except ValueError:
        is_as_expected = False
    if not is_as_expected:
        msg = "this command cannot change a file with this layout safely; change the file by hand"
        raise ClientFileError(msg)
    return text


def _without_empty(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a table without its empty inner tables."""
    return {key: value for key, value in table.items() if value != {}}


def _table(path: Sequence[str], value: Mapping[str, Any]) -> str:
    """Return a table as TOML text that begins with the table's header. Each inner table is on one line."""
    lines = [f"[{'.'.join(map(_key, path))}]", *(f"{_key(key)} = {_shown(each)}" for key, each in value.items())]
    return "\n".join(lines)


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else json.dumps(key)


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return (
            "{ " + ", ".join(f"{_key(key)} = {_shown(each)}" for key, each in value.items()) + " }" if value else "{}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(map(_shown, value)) + "]"
    if isinstance(value, date | time):
        return value.isoformat()
    # A JSON string is also a valid basic string in TOML if DEL is escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _span(text: str, path: Sequence[str]) -> tuple[int, int]:
    """Return the start index and the end index of a table, including its inner tables.

    Comments and blank lines after the table are not included.
    """
    headers = list(_headers(text))
    ours = [index for index, (_, keys) in enumerate(headers) if keys[: len(path)] == list(path)]
    if not ours or ours != list(range(ours[0], ours[-1] + 1)):
        name = ".".join(map(_key, path))
        msg = f"[{name}] is not written as a single table; change the file by hand"
        raise ClientFileError(msg)
    start = headers[ours[0]][0]
    end = headers[ours[-1] + 1][0] if ours[-1] + 1 < len(headers) else len(text)
    lines = re.findall(r"[^\n]*\n|[^\n]+", text[start:end])
    while lines and (not lines[-1].strip() or lines[-1].lstrip().startswith("#")):
        lines.pop()
    length = len("".join(lines))
    return start, start + len(_without_newline(text[start : start + length]))


def _headers(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the index at which each header line starts, and the keys in this header."""
    depth, line, has_equals = 0, 0, False
    for match in _STRING.finditer(text):
        mark = match[0]
        if mark == "\n":
            if depth == 0:
                line, has_equals = match.end(), False
        elif mark == "=":
            has_equals = True
        elif mark in ("[", "{"):
            if depth == 0 and not has_equals and not text[line : match.start()].strip():
                end = text.find("\n", line)
                yield line, _header_keys(text[line : end if end >= 0 else len(text)].rstrip("\r"))
                has_equals = True
            depth += 1
        elif mark in ("]", "}"):
            depth -= 1


def _header_keys(line: str) -> list[str]:
    table: Any = tomllib.loads(line)
    keys = []
    while table:
        table = table[0] if isinstance(table, list) else table
        if not table:
            break
        ((key, table),) = table.items()
        keys.append(key)
    return keys
