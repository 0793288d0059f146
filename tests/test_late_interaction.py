"""Late interaction: similarity of pages to a query, from their own tokens and those of neighbouring pages."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryos_mcp.embedding.token_vectors import encode
from memoryos_mcp.retrieval.late_interaction import (
    IN_QUESTION,
    NEIGHBOURS,
    OTHER_SIDE,
    TokenMatches,
    match_tokens,
    maxsim,
)
from memoryos_mcp.retrieval.query import Side
from memoryos_mcp.storage.values import TokenRows

# Orthogonal vectors: rows of a Hadamard matrix, whose coordinates have the same size.
DIMENSION = 8
WORDS = np.array(
    [[(-1) ** (row & column).bit_count() for column in range(DIMENSION)] for row in range(DIMENSION)], dtype=np.float32
) / np.sqrt(DIMENSION, dtype=np.float32)
TEA, RAIN, OTHER = 0, 1, 7
Told = tuple[int, list[int], list[int]]


def rows(*windows: Told, asked: bool = False) -> TokenRows:
    """Return the rows of windows, each given as its page, the user's words and the assistant's words.

    Args:
        windows: The windows in the order of their pages.
        asked: Whether all words are in questions.
    """
    words = [word for _, user, agent in windows for word in (*user, *agent)]
    counts = np.zeros((len(windows), 4), dtype=np.int64)
    counts[:, [int(asked), 2 + int(asked)]] = [(len(user), len(agent)) for _, user, agent in windows] or 0
    return TokenRows(
        seqs=np.array([seq for seq, _, _ in windows], dtype=np.int64),
        counts=counts,
        codes=encode(WORDS[words]) if words else np.zeros((0, DIMENSION // 2), dtype=np.uint8),
    )


def covered(
    *windows: Told,
    asked: tuple[int, ...] = (TEA, RAIN),
    weights: tuple[float, ...] | None = None,
    side: Side | None = None,
    seqs: tuple[int, ...] | None = None,
    sessions: tuple[int, ...] | None = None,
    in_questions: bool = False,
) -> dict[int, tuple[float, float, int]]:
    """Return the best similarity, that of the first window, and the best part of each page."""
    pages = np.array(seqs or sorted({seq for seq, _, _ in windows}), dtype=np.int64)
    found = maxsim(
        match_tokens(WORDS[list(asked)], rows(*windows, asked=in_questions), side),
        np.array(weights or [1.0] * len(asked)),
        side,
        pages,
        np.array(sessions or [1] * len(pages)),
        np.array([max(1, sum(seq == page for page, _, _ in windows)) for seq in pages.tolist()]),
    )
    return {
        int(seq): (float(best), float(first), int(part))
        for seq, best, first, part in zip(pages, found.best, found.first, found.best_part, strict=True)
    }


def test_similarity_counts_matches_of_both_sides() -> None:
    found = covered((1, [TEA], [RAIN]), (20, [TEA], [OTHER]), (40, [OTHER], [OTHER]))
    assert [found[seq][0] for seq in (1, 20, 40)] == pytest.approx([1, 0.5, 0], abs=1e-3)


def test_a_rare_word_counts_more() -> None:
    found = covered((1, [TEA], []), (20, [RAIN], []), weights=(1.0, 3.0))
    assert (found[1][0], found[20][0]) == pytest.approx((0.25, 0.75), abs=1e-3)


def test_words_of_the_named_side_count_more() -> None:
    pages: list[Told] = [(1, [TEA, RAIN], []), (20, [], [TEA, RAIN])]
    by_user = covered(*pages, side=Side.USER)
    assert (by_user[1][0], by_user[20][0]) == pytest.approx((1, OTHER_SIDE), abs=1e-3)
    by_agent = covered(*pages, side=Side.AGENT)
    assert (by_agent[1][0], by_agent[20][0]) == pytest.approx((OTHER_SIDE, 1), abs=1e-3)


def test_a_match_in_a_question_counts_less_if_a_side_is_named() -> None:
    page: Told = (1, [TEA, RAIN], [])
    assert covered(page, in_questions=True, side=Side.USER)[1][0] == pytest.approx(IN_QUESTION, abs=1e-3)
    assert covered(page, in_questions=True)[1][0] == pytest.approx(1, abs=1e-3)


def test_near_pages_of_the_same_session_add_missing_matches() -> None:
    pages: list[Told] = [(1, [TEA], []), (2, [RAIN], []), (11, [TEA], [])]
    assert covered(*pages)[1][0] == pytest.approx((1 + NEIGHBOURS[1]) / 2, abs=1e-3)
    assert covered(*pages, sessions=(1, 2, 2))[1][0] == pytest.approx(0.5, abs=1e-3)
    assert covered(*pages)[11][0] == pytest.approx(0.5, abs=1e-3)


def test_neighbours_count_less_for_a_long_page() -> None:
    short = covered((1, [RAIN], []), (2, [TEA], []))
    long = covered((1, [RAIN], []), (2, [TEA], []), (2, [TEA], []), (2, [OTHER], []), (2, [OTHER], []))
    assert short[2][0] > long[2][0] > 0.5


def test_best_and_first_windows_are_scored_separately() -> None:
    found = covered((1, [OTHER], []), (1, [TEA, RAIN], []), (1, [TEA], []))
    assert found[1][:2] == pytest.approx((1, 0), abs=1e-3)
    assert found[1][2] == 1


def test_a_page_without_token_vectors_has_similarity_0() -> None:
    assert covered((2, [TEA, RAIN], []), seqs=(1, 2, 30), sessions=(1, 2, 3))[1] == (0, 0, -1)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=12), st.data())
def test_similarity_agrees_with_a_count_of_words(sizes: list[tuple[int, int]], data: st.DataObject) -> None:
    words = st.integers(0, 7)
    windows = [
        (
            100 * (number // 2),
            data.draw(st.lists(words, min_size=users, max_size=users)),
            data.draw(st.lists(words, min_size=agents, max_size=agents)),
        )
        for number, (users, agents) in enumerate(sizes)
    ]
    for seq, (best, first, part) in covered(*windows).items():
        own = [{*user, *agent} for page, user, agent in windows if page == seq]
        plain = [len({TEA, RAIN} & said) / 2 for said in own]
        assert best == pytest.approx(max(plain), abs=1e-3)
        assert first == pytest.approx(plain[0], abs=1e-3)
        assert plain[part] == max(plain)


def test_without_windows_there_are_no_matches() -> None:
    matches = match_tokens(WORDS[[TEA]], rows(), None)
    assert isinstance(matches, TokenMatches)
    assert matches.user.shape == matches.agent.shape == (0, 1)
