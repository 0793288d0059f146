"""Windows of a text, and tokens in questions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryos_mcp.embedding.windowing import WINDOW_BYTES, first_window, in_questions, stretches, windows


def asked(text: str) -> str:
    """Return a text with everything except its questions blanked; each character is a token."""
    asks = in_questions(text, np.arange(len(text)))
    return "".join(char if asking else "·" for char, asking in zip(text, asks, strict=True))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("We keep bees", "············"),
        ("Why?", "Why?"),
        ("Yes. Why? So.", "···· Why?····"),
        ("It was 3.5 or more?", "It was 3.5 or more?"),
        ("See x.org/?q=1 now.", "···················"),
        ('He said "why?" and left.', 'He said "why?"··········'),
        ("Really?! Yes!", "Really?!·····"),
        ("a list\nwhat is it?\nan end", "·······what is it?·······"),
        ("我养蜂。你呢？好。", "····你呢？··"),
        ("كيف حالك؟ بخير.", "كيف حالك؟······"),
    ],
)
def test_a_question_ends_with_a_question_mark(text: str, expected: str) -> None:
    assert asked(text) == expected


@given(st.text(alphabet="ab .?!\n。？", max_size=40))
def test_without_a_question_mark_there_is_no_question(text: str) -> None:
    assert set(asked(text.replace("?", "").replace("？", ""))) <= {"·"}


@pytest.mark.parametrize("text", ["." * 1_000_000 + "x", "?!" * 500_000 + "x", "." + '"' * 1_000_000 + "x"])
def test_a_page_of_punctuation_takes_no_longer_than_words(text: str) -> None:
    # Quadratic time would exceed the time limit.
    assert not in_questions(text, np.array([0, len(text) - 1])).any()


@given(st.text(alphabet="ab .?!\n。é😀", max_size=40).map(lambda text: text * 120))
def test_windows_fit_and_cover_all_but_white_space(text: str) -> None:
    found = windows(text)
    starts_and_ends = [0, *(place for span in found for place in span), len(text)]
    assert starts_and_ends == sorted(starts_and_ends)
    if text.strip():
        assert not "".join(text[a:b] for a, b in zip(starts_and_ends[::2], starts_and_ends[1::2], strict=True)).strip()
        assert all(text[start:end] == text[start:end].strip() != "" for start, end in found)
        assert first_window(text) == text[slice(*found[0])]
    assert all(len(text[start:end].strip().encode()) <= WINDOW_BYTES for start, end in found)


@pytest.mark.parametrize("text", ["." * 1_000_000, "a" * 1_000_000, " " * 1_000_000, "?!" * 500_000])
def test_windows_of_a_repeated_mark_are_found_quickly(text: str) -> None:
    assert len(windows(text)) <= 1 + len(text) // WINDOW_BYTES * 4 / 3


@given(st.text(alphabet="ab .\n", max_size=60), st.integers(1, 20))
def test_stretches_are_consecutive_and_fit_their_window(text: str, window_tokens: int) -> None:
    found = stretches(text, np.arange(len(text)), window_tokens)
    assert [found[0].first, *(each.last for each in found)] == [*(each.first for each in found), len(text)]
    assert all(each.last - each.first <= window_tokens for each in found)
    assert all(each.last > each.first for each in found[:-1])


def test_a_stretch_ends_with_a_line_in_its_second_half() -> None:
    text = "a\nbb\ncc dd ee"
    found = stretches(text, np.arange(len(text)), 8)
    assert [text[each.start : each.end] for each in found] == ["a\nbb", "cc dd ee"]
