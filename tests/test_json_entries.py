"""Reading of JSON documents one entry at a time. A damaged entry does not affect the others."""

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryos_mcp.errors import ImportFormatError
from memoryos_mcp.transfer import json_entries
from memoryos_mcp.transfer.json_entries import MAX_DEPTH, NOT_JSON, TOO_DEEP, TOO_LONG, Entry, entries, outline

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


class Dribble:
    """A stream that returns at most a few bytes at a time."""

    def __init__(self, data: bytes, size: int) -> None:
        self._data, self._size = io.BytesIO(data), size

    def read(self, size: int, /) -> bytes:
        return self._data.read(min(size, self._size))


def read(text: str | bytes, **limits: Any) -> list[Entry]:
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    return list(entries(io.BytesIO(data), **limits))


@given(
    document=st.lists(JSON, max_size=5), ascii_only=st.booleans(), indent=st.none() | st.just(2), size=st.integers(1, 9)
)
def test_entries_of_a_list_equal_a_whole_parse(
    document: list[Any], ascii_only: bool, indent: int | None, size: int
) -> None:
    text = json.dumps(document, ensure_ascii=ascii_only, indent=indent)
    data = Dribble(text.encode("utf-8"), size)
    assert [entry.value for entry in entries(data)] == document


@given(document=st.dictionaries(st.text(), JSON, max_size=4), size=st.integers(1, 9))
def test_entries_of_an_object_equal_a_whole_parse(document: dict[str, Any], size: int) -> None:
    data = Dribble(json.dumps(document).encode("utf-8"), size)
    expected: list[tuple[str, Any]] = []
    for key, value in document.items():
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else [value]
        expected += [(key, each) for each in inner]
    assert [(entry.section, entry.value) for entry in entries(data)] == expected


@given(document=st.lists(JSON, min_size=1, max_size=4) | st.dictionaries(st.text(), JSON, min_size=1), data=st.data())
def test_an_incomplete_document_is_refused(document: Any, data: st.DataObject) -> None:
    text = json.dumps(document).encode("utf-8")
    kept = data.draw(st.integers(0, len(text) - 1))
    with pytest.raises(ImportFormatError):
        read(text[:kept])


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused_and_outlined(data: bytes) -> None:
    outline(io.BytesIO(data))
    try:
        read(b"[" + data)
    except ImportFormatError as error:
        assert "byte" in str(error)


@pytest.mark.parametrize("text", ["", "  \n", "7", '"text"', "null", "nonsense"])
def test_a_document_without_list_or_object_is_refused(text: str) -> None:
    with pytest.raises(ImportFormatError, match="does not contain a JSON list or object"):
        read(text)


@pytest.mark.parametrize("text", ["[1 2]", "[1,]", "[,1]", '{"a" 1}', "{1: 2}", "[1}", "[1] [2]", '{"a": [1}'])
def test_damage_between_entries_is_refused_with_its_position(text: str) -> None:
    with pytest.raises(ImportFormatError, match=r"damaged at byte \d+"):
        read(text)


@pytest.mark.parametrize(
    ("damaged", "problem"),
    [
        *((text, NOT_JSON) for text in (b'{"a": }', b"[1, 2 3]", b"{]", b"nonsense", b'"a\nb"', b"[1 2]", b"1" * 5000)),
        (b'"\xff"', NOT_JSON),
        (b"[" * 100_000 + b"]" * 100_000, TOO_DEEP),
        (b"[" * MAX_DEPTH + b"0" + b"]" * MAX_DEPTH, None),
    ],
)
def test_the_entry_after_a_damaged_one_is_read(damaged: bytes, problem: str | None) -> None:
    first, second = read(b"[" + damaged + b", 7]")
    assert (first.problem, second.value, second.problem) == (problem, 7, None)
    assert (first.value is None) == (problem is not None)


def test_a_lone_surrogate_is_read() -> None:
    assert [entry.value for entry in read(r'["\ud83d cut", 7]')] == ["\ud83d cut", 7]


def test_a_byte_order_mark_is_skipped() -> None:
    assert [entry.value for entry in read(b"\xef\xbb\xbf[7]")] == [7]


def test_the_entry_after_one_that_is_too_long_is_read() -> None:
    long = json.dumps({"text": "x" * 1000})
    assert [entry.problem for entry in read(f"[{long}, 7]", max_bytes=1000)] == [TOO_LONG, None]
    assert [entry.problem for entry in read(f"[{long}, 7]", max_bytes=len(long))] == [None, None]


def test_an_error_does_not_quote_the_document() -> None:
    with pytest.raises(ImportFormatError) as caught:
        read('["my secret" my secret]')
    assert "secret" not in str(caught.value)


def test_an_incomplete_document_has_an_outline() -> None:
    beginning = (
        '{"conversations": [{"user_input": "a {quoted: [brace}", "more": {"deep": 1}, "text": "cut [{\\"fake\\": '
    )
    found = outline(io.BytesIO(beginning.encode()))
    assert found.top == {"conversations"}
    assert found.inner == {"user_input", "more", "text"}
    assert outline(io.BytesIO(b'[{"a": 1, "b"')).inner == {"a"}
    assert outline(io.BytesIO(b"nothing")) == json_entries.Outline(frozenset(), frozenset())
