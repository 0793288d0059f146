"""Ranking: signals, their weighted sum, and the order of candidates."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryos_mcp.retrieval import ranking, signals

numbers = st.lists(st.floats(-100, 100), min_size=1, max_size=20)


@given(numbers)
def test_z_scores_have_mean_0_and_are_never_nan(values: list[float]) -> None:
    scores = signals.z_scores(np.array(values))
    assert np.isfinite(scores).all()
    assert abs(float(scores.mean())) < 1e-6


def test_neighbours_are_near_and_in_the_same_session() -> None:
    seqs, sessions = np.array([1, 2, 3, 9]), np.array([1, 1, 2, 2])
    assert signals.within(seqs, sessions, 1).tolist() == [
        [False, True, False, False],
        [True, False, False, False],
        [False, False, False, False],
        [False, False, False, False],
    ]
    assert signals.within(seqs, sessions, 6)[2, 3]


def test_neighbours_add_their_values() -> None:
    near = np.array([[False, True], [True, False]])
    values = np.array([0.0, 4.0])
    assert signals.around(values, near).tolist() == [4.0, 0.0]


def test_the_first_candidates_of_a_session_lead() -> None:
    seqs, sessions = np.array([3, 8, 13, 20]), np.array([5, 5, 9, 5])
    found = signals.lead(seqs, sessions)
    assert found[[0, 2]].tolist() == [1.0, 1.0]
    assert found[0] > found[1] > found[3] > 0


def test_candidates_are_compared_with_the_best_of_them() -> None:
    seqs, axes = np.array([2, 5, 7, 9]), np.eye(3, dtype=np.float32)
    # Page 5 has two windows, page 9 none.
    pages, vectors = np.array([2, 5, 5, 7]), axes[[0, 0, 1, 2]]
    found = signals.like_best(seqs, np.array([2]), pages, vectors)
    assert found is not None
    assert found.tolist() == pytest.approx([1, 0.5**0.5, 0, 0])
    assert signals.like_best(seqs, np.array([9]), pages, vectors) is None
    assert signals.like_best(seqs, np.array([2]), np.zeros(0, np.int64), axes[:0]) is None


def test_a_page_counts_by_its_nearest_fact_and_is_neutral_without_one() -> None:
    seqs = np.array([3, 8, 13, 20])
    pages, cosines = np.array([8, 20, 8, 99, 1, 20]), np.array([0.2, 0.4, 0.6, 0.9, 0.9, 0.1])
    found = signals.told(seqs, pages, cosines)
    assert found[[0, 2, 3]].tolist() == [0.0, 0.0, 0.0]
    few = 2 / (2 + signals.TOLD_PAGES)  # two values are one standard deviation from their mean
    assert found[1] == pytest.approx(few)
    assert signals.told(seqs, np.array([8]), np.array([0.5])).tolist() == [0.0] * 4
    assert signals.told(seqs, np.zeros(0, np.int64), np.zeros(0)).tolist() == [0.0] * 4


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=30), st.integers(1, 30), st.data())
def test_only_eligible_candidates_are_returned_best_first(values: list[float], limit: int, data: st.DataObject) -> None:
    count = len(values)
    eligible = np.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)))
    found = {"words": np.array(values)}
    ranked = ranking.rank(ranking.WORDS, np.arange(count), found, np.ones(count, dtype=int), eligible, limit)
    scores = [entry.score for entry in ranked]
    assert scores == sorted(scores, reverse=True)
    assert len(ranked) == min(limit, int(eligible.sum()))
    assert all(eligible[entry.seq] for entry in ranked)


def test_equal_pages_come_newest_first() -> None:
    found = {"words": np.ones(3)}
    ranked = ranking.rank(ranking.WORDS, np.array([4, 9, 2]), found, np.ones(3, dtype=int), np.ones(3, dtype=bool), 3)
    assert [entry.seq for entry in ranked] == [9, 4, 2]


@pytest.mark.parametrize("recipe", [ranking.TOKENS, ranking.WINDOWS, ranking.WORDS])
@given(st.lists(st.floats(-10, 10), min_size=3, max_size=3), st.data())
def test_the_shares_of_the_signals_add_up_to_the_score(
    recipe: ranking.Recipe, values: list[float], data: st.DataObject
) -> None:
    chosen = data.draw(st.sets(st.sampled_from(sorted(recipe.weights))))
    found = {name: np.roll(values, place) for place, name in enumerate(sorted(chosen))}
    for entry in ranking.rank(recipe, np.array([1, 2, 3]), found, np.array([1, 2, 3]), np.ones(3, dtype=bool), 3):
        assert entry.score == pytest.approx(sum(entry.shares.values()), abs=1e-9)
        assert entry.shares.keys() == chosen


def test_context_counts_less_for_a_long_page() -> None:
    context = {"words_around": np.array([0.0, 1.0, 1.0])}
    windows = np.array([1, 1, 10])
    ranked = ranking.rank(ranking.WORDS, np.array([1, 2, 3]), context, windows, np.ones(3, dtype=bool), 3)
    assert [entry.seq for entry in ranked] == [2, 3, 1]
    assert ranked[0].score > 5 * ranked[1].score > 0


def test_spreading_results_alternates_sessions_and_is_a_share() -> None:
    seqs, sessions = np.array([1, 2, 3, 4]), np.array([1, 1, 1, 2])
    found = {"time": np.array([1.0, 0.95, 0.9, 0.85])}
    ones = np.ones(4, dtype=int)
    plain = ranking.rank(ranking.TOKENS, seqs, found, ones, ones > 0, 4)
    assert [entry.seq for entry in plain] == [1, 2, 3, 4]
    apart = ranking.rank(ranking.TOKENS, seqs, found, ones, ones > 0, 4, sessions)
    assert [entry.seq for entry in apart] == [1, 4, 2, 3]
    assert [entry.shares["spread"] for entry in apart] == pytest.approx([0, 0, -ranking.SPREAD, -2 * ranking.SPREAD])
    for entry in apart:
        assert entry.score == pytest.approx(sum(entry.shares.values()))
    assert [entry.score for entry in apart] == sorted((entry.score for entry in apart), reverse=True)
