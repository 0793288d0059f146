"""TOML as in Codex's file: one table is appended, replaced or removed; the rest stays character by character.

The standard library reads TOML but does not write it. The result of a change is read again and compared with the
expected content before it is returned.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, time
from typing import Any

from memoryos_mcp.errors import ClientFileError

_BARE = re.compile(r"[A-Za-z0-9_-]+")
# Strings and comments, which may contain text like a header, and the marks of structure.
_STRING = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}' r"|'''.*?'{3,5}" r'|"(?:\\.|[^"\\\n])*"' r"|'[^'\n]*'|#[^\n]*|[\[\]{}=\n]", re.DOTALL
)


def read(text: str) -> Mapping[str, Any]:
    """Return the table in a text."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        where = re.search(r"\(at .+?\)", str(error))
        msg = f"it is not valid TOML {where[0] if where else '(nested too deeply)'}; correct it there"
        raise ClientFileError(msg) from error


def with_member(text: str, path: Sequence[str], value: Mapping[str, Any]) -> str:
    """Return the text with a table at a path, given as keys from the outermost table down.

    An existing table is replaced in place. Values are texts, numbers, booleans, times, and lists and tables of these.
    """
    held = read(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    block = _table(path, value).replace("\n", newline)
    there = _at(held, path)
    if there is not None:
        start, end = _span(text, path)
        changed = text[:start] + block + text[end:]
    elif not text:
        changed = block + newline
    elif text.endswith("\n"):
        changed = text + newline + block + newline
    else:
        changed = text + newline * 2 + block
    return _checked(changed, _with(held, path, value))


def without_member(text: str, path: Sequence[str]) -> str:
    """Return the text without the table at a path; the text itself if there is none."""
    held = read(text)
    if _at(held, path) is None:
        return text
    start, end = _span(text, path)
    head, rest = text[:start], text[end:]
    rest = rest.removeprefix("\r").removeprefix("\n")
    if re.search(r"\n\r?\n\Z|\A\r?\n\Z", head):
        head = _without_newline(head)
    if not rest and not text.endswith("\n"):
        head = _without_newline(head)
    return _checked(head + rest, _with(held, path, None))


def _without_newline(text: str) -> str:
    return text.removesuffix("\n").removesuffix("\r")


def _at(held: Mapping[str, Any], path: Sequence[str]) -> Any:
    value: Any = held
    for before, key in zip(("", *path), path, strict=False):
        if not isinstance(value, Mapping):
            msg = f'"{before}" is not a table; correct it, then run the command again'
            raise ClientFileError(msg)
        value = value.get(key)
        if value is None:
            return None
    return value


def _with(held: Mapping[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    """Return the expected content. None as the value removes the member, and the tables that this leaves empty."""
    key, rest = path[0], path[1:]
    new = _with(held.get(key, {}), rest, value) if rest else value
    others = {name: kept for name, kept in held.items() if name != key}
    return others if new is None or (value is None and new == {} and rest) else {**others, key: new}


def _checked(text: str, wanted: Mapping[str, Any]) -> str:
    """Return a text if it has the expected content."""
    try:
        is_as_wanted = _without_empty(tomllib.loads(text)) == _without_empty(wanted)
    except ValueError:
        is_as_wanted = False
    if not is_as_wanted:
        msg = "it is laid out in a way that this command cannot change safely; change it by hand"
        raise ClientFileError(msg)
    return text


def _without_empty(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table without the empty tables at its top, whose presence depends on their last header."""
    return {key: value for key, value in table.items() if value != {}}


def _table(path: Sequence[str], value: Mapping[str, Any]) -> str:
    """Return a table under its header, with each inner table on one line."""
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
    # Basic strings of TOML are strings of JSON, except that TOML also requires DEL to be escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _span(text: str, path: Sequence[str]) -> tuple[int, int]:
    """Return start and end of a table with its inner tables, without comments and blank lines after it."""
    headers = list(_headers(text))
    ours = [index for index, (_, keys) in enumerate(headers) if keys[: len(path)] == list(path)]
    if not ours or ours != list(range(ours[0], ours[-1] + 1)):
        name = ".".join(map(_key, path))
        msg = f"[{name}] is not written as one table there; change it by hand"
        raise ClientFileError(msg)
    start = headers[ours[0]][0]
    end = headers[ours[-1] + 1][0] if ours[-1] + 1 < len(headers) else len(text)
    lines = re.findall(r"[^\n]*\n|[^\n]+", text[start:end])
    while lines and (not lines[-1].strip() or lines[-1].lstrip().startswith("#")):
        lines.pop()
    length = len("".join(lines))
    return start, start + len(_without_newline(text[start : start + length]))


def _headers(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the start of each header's line, and the header's keys."""
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
