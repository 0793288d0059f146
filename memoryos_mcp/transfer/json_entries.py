"""Reads JSON documents of any size, one entry at a time.

The end of an entry is found by counting brackets. Then each entry is parsed separately, because parsing a document of
one gigabyte takes several gigabytes of RAM. An entry that is too long is skipped without being loaded into RAM. Damage
inside an entry affects only that entry. Other streaming parsers stop at an unpaired surrogate, which some exports
contain.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

from memoryos_mcp.errors import ImportFormatError

CHUNK_BYTES = 1 << 18
ENTRY_MAX_BYTES = 64 << 20
MAX_DEPTH = 200
OUTLINE_BYTES = 1 << 18

TOO_LONG = "longer than 64 MB"
TOO_DEEP = f"nested deeper than {MAX_DEPTH} levels"
NOT_JSON = "not valid JSON"
_CUT_OFF = "the file is cut off"

_BLANK = re.compile(rb"[ \t\r\n]*+")
_MARK = re.compile(rb'[\[\]{}"]')
_REST_OF_TEXT = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_SCALAR = re.compile(rb"[^,\]} \t\r\n]*+")
_OUTLINE_MARK = re.compile(rb'"((?:[^"\\]|\\.)*+)"[ \t\r\n]*+(:)?|[\[\]{}"]', re.DOTALL)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Bytes(Protocol):
    """A stream that bytes can be read from."""

    def read(self, size: int, /) -> bytes:
        """Return at most ``size`` of the next bytes, or ``b""`` at the end."""
        ...


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a document. A single value and a list that contains only this value give equal entries.

    Attributes:
        section: The top-level key under which the entry was found, or empty if the document is a list.
        number: The position in the section, from 1.
        value: The parsed JSON, or None if there is a problem.
        problem: Why the entry could not be read, or None if it was read. It contains no text of the entry.
    """

    section: str
    number: int
    value: Any
    problem: str | None


@dataclass(frozen=True, slots=True)
class Outline:
    """The keys at the beginning of a document, without their values.

    Attributes:
        top: Keys of the top-level object, or empty if the document is a list.
        inner: Keys of the objects in a list. The list is the document itself or a value in the top-level object.
    """

    top: frozenset[str]
    inner: frozenset[str]


def entries(stream: Bytes, *, name: str = "The file", max_bytes: int = ENTRY_MAX_BYTES) -> Iterator[Entry]:
    """Yield the entries of a document.

    If the document is a list, its elements are the entries. If the document is an object, its values are the entries.
    If such a value is itself a list or an object, its elements or values are entries instead.

    Args:
        stream: The document, in UTF-8.
        name: The document's name in error messages.
        max_bytes: Maximum size of an entry. For a larger entry, `Entry.problem` is set instead of `Entry.value`.

    Raises:
        ImportFormatError: The document is empty, cut off, or damaged between its entries.
    """
    window = _Window(stream, name)
    opener = window.peek()
    if opener not in (b"[", b"{"):
        message = f"{name} does not contain a JSON list or object; choose another file."
        raise ImportFormatError(message)
    for number, key in enumerate(window.members(), 1):
        if opener == b"[":
            yield Entry("", number, *_parsed(*window.cut(max_bytes)))
        elif window.peek() in (b"[", b"{"):
            for inner, _ in enumerate(window.members(), 1):
                yield Entry(key, inner, *_parsed(*window.cut(max_bytes)))
        else:
            yield Entry(key, 1, *_parsed(*window.cut(max_bytes)))
    if window.peek():
        window.fail("there is data after the end")


def outline(stream: Bytes) -> Outline:
    """Return the keys in the first `OUTLINE_BYTES` of a document; see `Outline`.

    The JSON is not checked. A text without JSON objects has no keys.
    """
    head = stream.read(OUTLINE_BYTES)
    top, inner, open_marks = set(), set(), ""
    for match in _OUTLINE_MARK.finditer(head):
        mark = match[0][:1].decode()
        if match[2] and open_marks == "{":
            top.add(match[1].decode(errors="replace"))
        elif match[2] and open_marks in ("[{", "{[{"):
            inner.add(match[1].decode(errors="replace"))
        elif mark in "[{":
            open_marks += mark
        elif mark in "]}":
            open_marks = open_marks[:-1]
    return Outline(frozenset(top), frozenset(inner))


def parse(text: bytes) -> tuple[Any, str | None]:
    """Parse short JSON. Return ``(value, None)``, or ``(None, problem)`` if the JSON is not valid."""
    try:
        return json.loads(text.decode("utf-8")), None
    except (ValueError, RecursionError):
        return None, NOT_JSON


def _parsed(text: bytes | None, problem: str | None) -> tuple[Any, str | None]:
    return (None, problem) if text is None else parse(text)


class _Window:
    """The part of a document that is in RAM, and the current position in it."""

    def __init__(self, stream: Bytes, name: str) -> None:
        self._stream = stream
        self._name = name
        self._bytes = b""
        self._at = 0
        self._passed = 0
        self._more()
        if self._bytes.startswith(_BYTE_ORDER_MARK):
            self._at = len(_BYTE_ORDER_MARK)

    def peek(self) -> bytes:
        """Return the next byte that is not whitespace, or ``b""`` at the end. The byte is not consumed."""
        while True:
            blank = _BLANK.match(self._bytes, self._at)
            self._at = blank.end() if blank else self._at
            if self._at < len(self._bytes):
                return self._bytes[self._at : self._at + 1]
            if not self._more():
                return b""

    def members(self) -> Iterator[str]:
        """Yield the key of each member of the object at the current position. For a list, yield "" for each element.

        Before requesting the next key, the caller must consume the member's value with `cut` or `members`.
        """
        is_object = self._take(b"[{") == b"{"
        closer = b"}" if is_object else b"]"
        number = 0
        while self.peek() != closer:
            if number:
                self._take(b",")
            number += 1
            yield self._key() if is_object else ""
        self._take(closer)

    def cut(self, max_bytes: int) -> tuple[bytes | None, str | None]:
        """Consume the value that begins at the current position, and return ``(bytes, None)``.

        A value that is too large or too deeply nested is also consumed. The result is then ``(None, problem)``.

        Raises:
            ImportFormatError: A value is missing at this position, or the file ends inside the value.
        """
        first = self.peek()
        if not first or first in b",:]}":
            self.fail("a value is missing" if first else _CUT_OFF)
        pieces, size, deepest = [], 0, 0
        for piece, depth in self._pieces(first):
            size, deepest = size + len(piece), max(deepest, depth)
            if size <= max_bytes and deepest <= MAX_DEPTH:
                pieces.append(piece)
            else:
                pieces.clear()
        if deepest > MAX_DEPTH:
            return None, TOO_DEEP
        return (b"".join(pieces), None) if size <= max_bytes else (None, TOO_LONG)

    def fail(self, problem: str) -> NoReturn:
        """Raise ImportFormatError with the problem and the current position."""
        message = f"{self._name} is damaged at byte {self._passed + self._at:,}: {problem}. Get the file again"
        raise ImportFormatError(message)

    def _key(self) -> str:
        if (first := self.peek()) != b'"':
            self.fail("a key is missing" if first else _CUT_OFF)
        text, problem = self.cut(CHUNK_BYTES)
        key, problem = _parsed(text, problem)
        if problem:
            self.fail(f"a key is {problem}")
        self._take(b":")
        return str(key)

    def _take(self, expected: bytes) -> bytes:
        found = self.peek()
        if not found:
            self.fail(_CUT_OFF)
        if found not in expected:
            self.fail(f"{' or '.join(map(chr, expected))} is missing")
        self._at += 1
        return found

    def _pieces(self, first: bytes) -> Iterator[tuple[bytes, int]]:
        """Read the next value, and yield it in pieces. ``first`` is the first byte of the value.

        Each piece is a pair: some bytes of the value, and the maximum depth of nesting so far.
        """
        if first in b'[{"':
            yield from self._bracketed()
            return
        while True:
            scalar = _SCALAR.match(self._bytes, self._at)
            start, self._at = self._at, scalar.end() if scalar else self._at
            yield self._bytes[start : self._at], 0
            if self._at < len(self._bytes) or not self._more():
                return

    def _bracketed(self) -> Iterator[tuple[bytes, int]]:
        start, depth, deepest, is_in_text = self._at, 0, 0, False
        while True:
            if is_in_text:
                rest = _REST_OF_TEXT.match(self._bytes, self._at)
                self._at = rest.end() if rest else self._at
                is_in_text = self._bytes[self._at : self._at + 1] != b'"'
                self._at += not is_in_text
                needs_more = is_in_text
            elif mark := _MARK.search(self._bytes, self._at):
                self._at, is_in_text = mark.end(), mark[0] == b'"'
                depth += (mark[0] in b"[{") - (mark[0] in b"]}")
                deepest = max(deepest, depth)
                needs_more = False
            else:
                self._at, needs_more = len(self._bytes), True
            if not depth and not is_in_text and not needs_more:
                break
            if needs_more:
                # At most a backslash remains. The character that it escapes is in the next chunk.
                yield self._bytes[start : self._at], deepest
                if not self._more():
                    self.fail(_CUT_OFF)
                start = 0
        yield self._bytes[start : self._at], deepest

    def _more(self) -> bool:
        """Read the next chunk and drop the consumed bytes. Return False at the end of the document."""
        chunk = self._stream.read(CHUNK_BYTES)
        self._passed += self._at
        self._bytes, self._at = self._bytes[self._at :] + chunk, 0
        return bool(chunk)
