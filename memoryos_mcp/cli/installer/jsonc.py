"""JSON with comments and trailing commas, as in clients' files: one member is added, changed or removed.

The text is scanned into values with their positions. Only the span of the change is edited; all else stays character by
character. The result is read again and compared with the expected value before it is returned.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memoryos_mcp.errors import ClientFileError

_MAX_DEPTH = 200
_BETWEEN = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
# Possessive quantifiers: without backtracking, nothing is stored for each character.
_TOKEN = re.compile(
    r"""(?P<string>"(?:[^"\\\x00-\x1f]++|\\.)*+")
      | (?P<mark>[{}\[\]:,])
      | (?P<plain>[-+.\w]+)""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class _Node:
    """A value at ``text[start:end]``. The members of an object are in order, duplicates included."""

    start: int
    end: int
    value: Any
    members: "tuple[_Member, ...]" = ()


@dataclass(frozen=True, slots=True)
class _Member:
    """A member of an object; ``start`` is the index of its key, ``comma`` of the comma after it, None without one."""

    key: str
    start: int
    node: _Node
    comma: int | None


@dataclass(frozen=True, slots=True)
class _Style:
    """The layout of a file; ``is_in_lines`` is true for more than one line, and for an empty file."""

    newline: str
    indent: str
    is_in_lines: bool


def read(text: str) -> Mapping[str, Any]:
    """Return the object in a text; an empty text holds an empty object."""
    try:
        value = json.loads(text)  # many times faster than the scanner, which comments and trailing commas need
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else dict(_object(text).value)


def with_member(text: str, path: Sequence[str], value: Any) -> str:
    """Return the text with a value for the member at a path, given as keys from the outermost object down.

    Missing objects on the path are created. Of an existing member only the value is replaced.
    """
    root, style = _object(text), _style(text)
    if not text.strip():
        blank = text or style.newline
        text, root = "{}" + blank, _Node(0, 2, {})
    objects = _on_the_way(root, path)
    inner, depth = objects[-1], len(objects)
    found = _only(inner, path[depth - 1])
    if found is not None and depth == len(path):
        changed = text[: found.node.start] + _shown(value, style, depth) + text[found.node.end :]
    else:
        changed = _inserted(text, inner, path[depth - 1], _with({}, path[depth:], value), style, depth)
    return _checked(changed, _with(root.value, path, value))


def without_member(text: str, path: Sequence[str]) -> str:
    """Return the text without the member at a path; the text itself if there is none."""
    root = _object(text)
    objects = _on_the_way(root, path)
    if len(objects) < len(path) or (found := _only(objects[-1], path[-1])) is None:
        return text
    wanted = json.loads(json.dumps(root.value))
    inner = wanted
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    head, rest = _around(text, objects[-1].members, found)
    try:
        return _checked(head + rest, wanted)
    except ClientFileError:  # a line comment before the member needs its line end
        return _checked(head + _style(text).newline + rest, wanted)


def _around(text: str, members: Sequence[_Member], found: _Member) -> tuple[str, str]:
    """Return the text before and after a member, without the space before it and without its comma."""
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
    """Return the text with a member after the last one, with the comma and indent of the members around it."""
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
    """Return the index after a comment on the same line, or the index itself without one."""
    match = re.compile(r"[ \t]*(?://[^\r\n]*|/\*[^\r\n]*?\*/(?=[ \t]*[\r\n]))").match(text, at)
    return match.end() if match else at


def _key(key: str) -> str:
    return json.dumps(key, ensure_ascii=False) + ": "


def _shown(value: Any, style: _Style, depth: int) -> str:
    """Return a value as JSON in the layout of the file."""
    if not style.is_in_lines:
        return json.dumps(value, ensure_ascii=False)
    shown = json.dumps(value, ensure_ascii=False, indent=style.indent)
    return shown.replace("\n", style.newline + style.indent * depth)


def _style(text: str) -> _Style:
    newline = "\r\n" if "\r\n" in text else "\n"
    match = re.search(r"[{\[,]\s*?\n([ \t]+)(?=[\"\]}/])", text)
    return _Style(newline, match[1] if match else "  ", "\n" in text.strip() or len(text.strip()) <= 2)


def _object(text: str) -> _Node:
    """Return the object in a text."""
    if not text.strip():
        return _Node(0, 0, {})
    node = _Scanner(text).whole()
    if not isinstance(node.value, dict):
        msg = "it is not a JSON object"
        raise ClientFileError(msg)
    return node


def _on_the_way(root: _Node, path: Sequence[str]) -> list[_Node]:
    """Return the objects from the outermost down to the one for the last key, as far as they exist."""
    objects = [root]
    for key in path[:-1]:
        member = _only(objects[-1], key)
        if member is None:
            break
        if not isinstance(member.node.value, dict):
            msg = f'"{key}" is not an object; correct it, then run the command again'
            raise ClientFileError(msg)
        objects.append(member.node)
    return objects


def _only(node: _Node, key: str) -> _Member | None:
    found = [member for member in node.members if member.key == key]
    if len(found) > 1:
        msg = f'"{key}" occurs twice, and a client reads only one of them; delete one, then run the command again'
        raise ClientFileError(msg)
    return found[0] if found else None


def _with(held: Mapping[str, Any], path: Sequence[str], value: Any) -> Any:
    """Return an object with a value for the member at a path."""
    return {**held, path[0]: _with(held.get(path[0], {}), path[1:], value)} if path else value


def _checked(text: str, wanted: Any) -> str:
    """Return a text if it has the expected content."""
    if read(text) != wanted:
        msg = "it is laid out in a way that this command cannot change safely; change it by hand"
        raise ClientFileError(msg)
    return text


def _skipped(text: str, at: int) -> int:
    """Return where the next token begins, after space and comments."""
    match = _BETWEEN.match(text, at)
    return at if match is None else match.end()


class _Scanner:
    """Scans one text from its first token to its last."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._significant()
        self._kind, self._start, self._end = next(self._tokens)

    def whole(self) -> _Node:
        """Return the one value of the text."""
        node = self._value(0)
        if self._kind != "end":
            raise self._fault()
        return node

    def _significant(self) -> Iterator[tuple[str, int, int]]:
        """Yield kind, start and end of each token except space and comments, then a token for the end."""
        at = _skipped(self._text, 0)
        while at < len(self._text):
            match = _TOKEN.match(self._text, at)
            if match is None:
                self._start = at
                raise self._fault()
            yield match[0] if match.lastgroup == "mark" else str(match.lastgroup), at, match.end()
            at = _skipped(self._text, match.end())
        yield "end", at, at

    def _next(self) -> None:
        self._kind, self._start, self._end = next(self._tokens)

    def _value(self, depth: int) -> _Node:
        if depth > _MAX_DEPTH:
            msg = f"it is nested more than {_MAX_DEPTH} levels deep"
            raise ClientFileError(msg)
        if self._kind == "{":
            return self._members(depth)
        if self._kind == "[":
            return self._items(depth)
        if self._kind not in ("string", "plain"):
            raise self._fault()
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
                raise self._fault()
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
        items: list[Any] = []
        self._next()
        while self._kind != "]":
            items.append(self._value(depth + 1).value)
            if self._kind != ",":
                break
            self._next()
        end = self._end
        self._take("]")
        return _Node(start, end, items)

    def _take(self, mark: str) -> None:
        if self._kind != mark:
            raise self._fault()
        self._next()

    def _loaded(self) -> Any:
        try:
            return json.loads(self._text[self._start : self._end])
        except ValueError as error:
            raise self._fault() from error

    def _fault(self) -> ClientFileError:
        line = self._text.count("\n", 0, self._start) + 1
        column = self._start - (self._text.rfind("\n", 0, self._start) + 1) + 1
        return ClientFileError(f"it is not valid JSON (line {line}, column {column}); correct it there")
