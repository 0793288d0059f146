"""The benchmark's metrics, compared with examples computed by hand."""

from math import isnan, log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.metrics import (
    UNRANKED,
    Place,
    all_at,
    any_at,
    fraction_at,
    ndcg_at,
    paired_bootstrap,
    places,
)

PLACES = st.lists(
    st.one_of(st.none(), st.integers(UNRANKED, 30)),
    min_size=1,
    max_size=8,
    unique_by=lambda place: place or object(),
)


def test_a_gold_page_is_found_at_its_place_in_the_ranking() -> None:
    assert places(["c", "x", "a"], ["a", "b", "c"]) == (3, None, 1)


def test_a_page_in_every_answer_is_found_without_a_rank() -> None:
    assert places(["c", "a"], ["a", "b"], unranked=["c"]) == (UNRANKED, 1)


def test_the_better_of_two_ranks_of_a_page_counts() -> None:
    assert places(["a"], ["b", "a", "a"]) == (2,)


@pytest.mark.parametrize(
    ("found", "k", "any_", "all_", "fraction"),
    [
        ((3, 12, None, 5), 5, 1.0, 0.0, 0.5),
        ((3, 12, None, 5), 2, 0.0, 0.0, 0.0),
        ((3, 12, None, 5), 20, 1.0, 0.0, 0.75),
        ((3, 5), 5, 1.0, 1.0, 1.0),
        ((UNRANKED, 6), 5, 1.0, 0.0, 0.5),
        ((None,), 20, 0.0, 0.0, 0.0),
    ],
)
def test_any_all_and_fraction_count_gold_pages_in_the_top_k(
    found: tuple[Place, ...], k: int, any_: float, all_: float, fraction: float
) -> None:
    assert (any_at(found, k), all_at(found, k), fraction_at(found, k)) == (any_, all_, fraction)


def test_ndcg_of_one_gold_page_is_its_discount() -> None:
    assert ndcg_at((1,), 10) == 1.0
    assert ndcg_at((3,), 10) == pytest.approx(1 / log2(4))
    assert ndcg_at((11,), 10) == 0.0


def test_ndcg_of_several_gold_pages_compares_with_best_order() -> None:
    # 1/log2(3) + 1/log2(6) of 1/log2(2) + 1/log2(3) + 1/log2(4).
    assert ndcg_at((2, 5, None), 10) == pytest.approx((0.63093 + 0.38685) / (1 + 0.63093 + 0.5), abs=1e-5)


def test_ndcg_is_1_if_gold_pages_fill_the_top_k() -> None:
    assert ndcg_at((1, 2, 3, None), 3) == pytest.approx(1.0)


def test_ndcg_puts_pages_of_every_answer_first() -> None:
    # The ranked page at place 10 moves to 11 and still counts.
    assert ndcg_at((UNRANKED, 10), 10) == pytest.approx((1 + 1 / log2(12)) / (1 + 1 / log2(3)))


def test_ndcg_is_1_with_pages_of_every_answer_before_a_full_k() -> None:
    assert ndcg_at((UNRANKED, 1), 1) == pytest.approx(1.0)
    # Two of three ranked gold pages fit the first two places: 1/log2(2) + 1/log2(3) of that and 1/log2(4).
    assert ndcg_at((UNRANKED, 1, 3, None), 2) == pytest.approx((1 + 0.63093) / (1 + 0.63093 + 0.5), abs=1e-5)


@given(found=PLACES, k=st.integers(1, 20))
def test_every_metric_lies_between_none_and_all(found: list[Place], k: int) -> None:
    assert all_at(found, k) <= fraction_at(found, k) <= any_at(found, k)
    assert 0.0 <= ndcg_at(found, k) <= 1.0 + 1e-9


@given(found=PLACES, k=st.integers(1, 20))
def test_more_places_never_find_fewer_gold_pages(found: list[Place], k: int) -> None:
    assert fraction_at(found, k) <= fraction_at(found, k + 1)


def test_the_bootstrap_interval_of_a_constant_lead_is_a_point() -> None:
    interval = paired_bootstrap([0.75] * 40, [0.5] * 40)
    assert (interval.mean, interval.low, interval.high) == (0.25, 0.25, 0.25)


def test_the_bootstrap_interval_reflects_the_standard_error() -> None:
    # 100 questions, half of them won by 1: the mean's standard error is 0.05.
    interval = paired_bootstrap([1.0, 0.0] * 50, [0.0] * 100)
    assert interval.mean == 0.5
    assert interval.low == pytest.approx(0.5 - 1.96 * 0.05, abs=0.015)
    assert interval.high == pytest.approx(0.5 + 1.96 * 0.05, abs=0.015)


def test_the_bootstrap_is_paired_and_reproducible() -> None:
    # Both vary much but together, so only pairing makes the difference significant.
    theirs = [0.0, 1.0] * 30
    interval = paired_bootstrap([value + 0.5 for value in theirs], theirs)
    assert (interval.low, interval.high) == (0.5, 0.5)
    assert paired_bootstrap(theirs, theirs[::-1]) == paired_bootstrap(theirs, theirs[::-1])


def test_there_is_no_interval_without_questions() -> None:
    assert isnan(paired_bootstrap([], []).mean)
