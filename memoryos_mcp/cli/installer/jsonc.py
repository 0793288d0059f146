"""Edits JSON with comments and trailing commas: adds, changes or removes one member.

The text is parsed into values with their positions. Only the characters that have to change are edited. The result is
parsed again and compared with the expected value before it is returned.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from memoryos_mcp.errors import ClientFileError

_MAX_DEPTH = 200
_BETWEEN = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
# Possessive quantifiers avoid backtracking, which would need memory for each character.
_TOKEN = re.compile(
    r"""(?P<string>"(?:[^"\\\x00-\x1f]++|\\.)*+")
      | (?P<mark>[{}\[\]:,])
      | (?P<plain>[-+.\w]+)""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class _Node:
    """A JSON value and its position: the text of the value is ``text[start:end]``.

    ``members`` contains the members of an object in order, including duplicates, and ``items`` the items of a list.
    Both are empty for other values.
    """

    start: int
    end: int
    value: Any
    members: "tuple[_Member, ...]" = ()
    items: "tuple[_Node, ...]" = ()


@dataclass(frozen=True, slots=True)
class _Member:
    """A member of an object.

    ``start`` is the index at which the key begins. ``comma`` is the index of the comma after the member, or None if
    there is no comma.
    """

    key: str
    start: int
    node: _Node
    comma: int | None


@dataclass(frozen=True, slots=True)
class _Style:
    """The layout of a JSON text.

    ``is_in_lines`` is True if new members are written on separate lines. This is the case if the text has several
    lines, is empty, or is an empty object.
    """

    newline: str
    indent: str
    is_in_lines: bool


def read(text: str) -> Mapping[str, Any]:
    """Return the object in a JSON text, or an empty object if the text is blank."""
    try:
        value = json.loads(text)  # much faster than the scanner, which is only needed for comments and trailing commas
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else dict(_object(text).value)


def with_member(text: str, path: Sequence[str], value: Any) -> str:
    """Return the text after setting one member to a value.

    ``path`` contains the keys that lead to the member, beginning with the outermost object. Missing objects on the path
    are created. The value of an existing member is replaced.
    """
    root, style = _object(text), _style(text)
    if not text.strip():
        blank = text or style.newline
        text, root = "{}" + blank, _Node(0, 2, {})
    objects = _objects_on(root, path)
    inner, depth = objects[-1], len(objects)
    found = _member(inner, path[depth - 1])
    if found is not None and depth == len(path):
        changed = text[: found.node.start] + _shown(value, style, depth) + text[found.node.end :]
    else:
        changed = _inserted(text, inner, path[depth - 1], _with({}, path[depth:], value), style, depth)
    return _checked(changed, _with(root.value, path, value))


def without_member(text: str, path: Sequence[str]) -> str:
    """Return the text without the member at a path of keys. If there is no such member, return the text unchanged."""
    root = _object(text)
    objects = _objects_on(root, path)
    if len(objects) < len(path) or (found := _member(objects[-1], path[-1])) is None:
        return text
    expected = deepcopy(root.value)
    inner = expected
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    head, rest = _around(text, objects[-1].members, found)
    try:
        return _checked(head + rest, expected)
    except ClientFileError:  # a line comment before the member has to end with a line break
        return _checked(head + _style(text).newline + rest, expected)


def with_item(text: str, path: Sequence[str], value: Any) -> str:
    """Return the text after adding an item at the end of the list at a path of keys. A missing list is created."""
    root = _object(text)
    objects = _objects_on(root, path)
    found = _member(objects[-1], path[-1]) if len(objects) == len(path) else None
    if found is None or found.node.value == []:
        return with_member(text, path, [value])
    items, style = found.node.items, _style(text)
    if not items:
        msg = f'"{path[-1]}" is not a list; correct the file, then run the command again'
        raise ClientFileError(msg)
    before = text[: items[-1].start]
    blank = before[len(before.rstrip(" \t\r\n")) :]
    if "\n" in blank:
        indent = blank[blank.rindex("\n") + 1 :]
        added = style.newline + indent + _shown(value, style, 0).replace(style.newline, style.newline + indent)
    else:
        added = " " + json.dumps(value, ensure_ascii=False)
    at = items[-1].end
    return _checked(text[:at] + "," + added + text[at:], _with(root.value, path, [*found.node.value, value]))


def without_item(text: str, path: Sequence[str], index: int) -> str:
    """Return the text without one item of the list at a path of keys. The list must have other items too."""
    root = _object(text)
    found = _member(_objects_on(root, path)[-1], path[-1])
    items = () if found is None else found.node.items
    start, end = (items[index - 1].end, items[index].end) if index else (items[0].start, items[1].start)
    left = [item.value for place, item in enumerate(items) if place != index]
    return _checked(text[:start] + text[end:], _with(root.value, path, left))


def _around(text: str, members: Sequence[_Member], found: _Member) -> tuple[str, str]:
    """Return the text before a member and the text after the member.

    The whitespace before the member and one comma next to the member, if any, are left out.
    """
    index = members.index(found)
    start = len(text[: found.start].rstrip(" \t\r\n"))
    if found.comma is not None:
        return text[:start], text[found.comma + 1 :]
    rest = text[found.node.end :]
    if index:
        comma = members[index - 1].comma or 0
        return text[:comma] + text[comma + 1 : start], rest
    return text[:start], rest.lstrip(" \t\r\n") if text[start - 1] == "{" else rest


def _inserted(text: str, inner: _Node, key: str, value: Any, style: _Style, depth: int) -> str:
    """Return the text after adding a member at the end of the object ``inner``.

    The new member has the same layout as the other members.
    """
    if not inner.members:
        if not style.is_in_lines:
            middle, rest = f"{_key(key)}{_shown(value, style, depth)}", inner.start + 1
            return text[:rest] + middle + text[rest:]
        line = style.newline + style.indent * depth
        rest = inner.start + 1
        closing = style.newline + style.indent * (depth - 1) if text[rest : inner.end - 1] == "" else ""
        return text[:rest] + line + _key(key) + _shown(value, style, depth) + closing + text[rest:]
    last = inner.members[-1]
    before = text[: last.start]
    blank = before[len(before.rstrip(" \t\r\n")) :]
    in_lines = "\n" in blank
    if in_lines:
        indent = blank[blank.rindex("\n") + 1 :]
        lead, shown = style.newline + indent, _shown(value, style, 0).replace(style.newline, style.newline + indent)
    else:
        lead, shown = " ", json.dumps(value, ensure_ascii=False)
    at = last.node.end if last.comma is None else last.comma + 1
    if in_lines:
        at = _after_comment(text, at)
    if last.comma is not None:
        return text[:at] + lead + _key(key) + shown + "," + text[at:]
    return text[: last.node.end] + "," + text[last.node.end : at] + lead + _key(key) + shown + text[at:]


def _after_comment(text: str, at: int) -> int:
    """Return the index after the comment that follows ``at`` on the same line, or ``at`` if there is no comment."""
    match = re.compile(r"[ \t]*(?://[^\r\n]*|/\*[^\r\n]*?\*/(?=[ \t]*[\r\n]))").match(text, at)
    return match.end() if match else at


def _key(key: str) -> str:
    return json.dumps(key, ensure_ascii=False) + ": "


def _shown(value: Any, style: _Style, depth: int) -> str:
    """Return a value as JSON text with the indentation and line ends of ``style``.

    Lines after the first are indented by ``depth`` more levels.
    """
    if not style.is_in_lines:
        return json.dumps(value, ensure_ascii=False)
    shown = json.dumps(value, ensure_ascii=False, indent=style.indent)
    return shown.replace("\n", style.newline + style.indent * depth)


def _style(text: str) -> _Style:
    newline = "\r\n" if "\r\n" in text else "\n"
    match = re.search(r"[{\[,]\s*?\n([ \t]+)(?=[\"\]}/])", text)
    return _Style(newline, match[1] if match else "  ", "\n" in text.strip() or len(text.strip()) <= 2)


def _object(text: str) -> _Node:
    """Parse a JSON object, and return its node (its value with positions). A blank text counts as an empty object.

    Raise `ClientFileError` if the text is not a JSON object.
    """
    if not text.strip():
        return _Node(0, 0, {})
    node = _Scanner(text).whole()
    if not isinstance(node.value, dict):
        msg = "the content is not a JSON object; correct the file, then run the command again"
        raise ClientFileError(msg)
    return node


def _objects_on(root: _Node, path: Sequence[str]) -> list[_Node]:
    """Return the nested objects that lead to the member at ``path``, beginning with the outermost object.

    The list ends before the first missing object. Raise `ClientFileError` if a value on the path is not an object.
    """
    objects = [root]
    for key in path[:-1]:
        member = _member(objects[-1], key)
        if member is None:
            break
        if not isinstance(member.node.value, dict):
            msg = f'"{key}" is not an object; correct the file, then run the command again'
            raise ClientFileError(msg)
        objects.append(member.node)
    return objects


def _member(node: _Node, key: str) -> _Member | None:
    found = [member for member in node.members if member.key == key]
    if len(found) > 1:
        msg = f'"{key}" occurs more than once in an object; delete the duplicates, then run the command again'
        raise ClientFileError(msg)
    return found[0] if found else None


def _with(content: Mapping[str, Any], path: Sequence[str], value: Any) -> Any:
    """Return a copy of ``content`` with a new value for the member at ``path``."""
    return {**content, path[0]: _with(content.get(path[0], {}), path[1:], value)} if path else value


def _checked(text: str, expected: Any) -> str:
    """Return the text unchanged. Raise `ClientFileError` if the parsed text is not equal to ``expected``."""
    if read(text) != expected:
        msg = "this command cannot change a file with this layout safely; change the file by hand"
        raise ClientFileError(msg)
    return text


def _skipped(text: str, at: int) -> int:
    """Return the index after the whitespace and comments at ``at``, or ``at`` if there are none."""
    match = _BETWEEN.match(text, at)
    return at if match is None else match.end()


class _Scanner:
    """A parser of JSON with comments and trailing commas. It produces nodes with positions."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._scan()
        self._kind, self._start, self._end = next(self._tokens)

    def whole(self) -> _Node:
        """Parse the whole text, and return its node."""
        node = self._value(0)
        if self._kind != "end":
            raise self._error()
        return node

    def _scan(self) -> Iterator[tuple[str, int, int]]:
        """Yield the kind, the start and the end of each token. The last token has the kind ``end``.

        Whitespace and comments are skipped.
        """
        at = _skipped(self._text, 0)
        while at < len(self._text):
            match = _TOKEN.match(self._text, at)
            if match is None:
                self._start = at
                raise self._error()
            yield match[0] if match.lastgroup == "mark" else str(match.lastgroup), at, match.end()
            at = _skipped(self._text, match.end())
        yield "end", at, at

    def _next(self) -> None:
        self._kind, self._start, self._end = next(self._tokens)

    def _value(self, depth: int) -> _Node:
        if depth > _MAX_DEPTH:
            msg = f"the file has more than {_MAX_DEPTH} nested levels; change the file by hand"
            raise ClientFileError(msg)
        if self._kind == "{":
            return self._members(depth)
        if self._kind == "[":
            return self._items(depth)
        if self._kind not in ("string", "plain"):
            raise self._error()
        start, end = self._start, self._end
        value = self._loaded()
        self._next()
        return _Node(start, end, value)

    def _members(self, depth: int) -> _Node:
        start = self._start
        members: list[_Member] = []
        self._next()
        while self._kind != "}":
            if self._kind != "string":
                raise self._error()
            key, key_start = self._loaded(), self._start
            self._next()
            self._take(":")
            node = self._value(depth + 1)
            comma = self._start if self._kind == "," else None
            members.append(_Member(key, key_start, node, comma))
            if comma is None:
                break
            self._next()
        end = self._end
        self._take("}")
        return _Node(start, end, {member.key: member.node.value for member in members}, tuple(members))

    def _items(self, depth: int) -> _Node:
        start = self._start
        items: list[_Node] = []
        self._next()
        while self._kind != "]":
            items.append(self._value(depth + 1))
            if self._kind != ",":
                break
            self._next()
        end = self._end
        self._take("]")
        return _Node(start, end, [item.value for item in items], items=tuple(items))

    def _take(self, mark: str) -> None:
        if self._kind != mark:
            raise self._error()
        self._next()

    def _loaded(self) -> Any:
        try:
            return json.loads(self._text[self._start : self._end])
        except ValueError as error:
            raise self._error() from error

    def _error(self) -> ClientFileError:
        line = self._text.count("\n", 0, self._start) + 1
        column = self._start - (self._text.rfind("\n", 0, self._start) + 1) + 1
        return ClientFileError(f"the file is not valid JSON (line {line}, column {column}); correct the file")
