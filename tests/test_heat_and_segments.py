"""Heat decays with the clock; segments are matched by cosine and keywords."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryos_mcp.model.heat import HeatPoint, HeatWeights, cooling, heat, heat_history, prominence, recency
from memoryos_mcp.model.segments import jaccard, mean_vector, segment_match

NOW = datetime(2026, 5, 8, tzinfo=UTC)


def test_heat_is_the_sum_of_visits_pages_and_recency() -> None:
    assert heat(n_visit=2, l_interaction=3, last_visit=NOW, now=NOW, weights=HeatWeights()) == 6.0


def test_heat_weights_scale_each_part() -> None:
    weights = HeatWeights(alpha=2, beta=3, gamma=5, mu_s=1e7)
    assert heat(n_visit=1, l_interaction=1, last_visit=NOW, now=NOW, weights=weights) == 10.0


def test_recency_falls_to_a_third_or_so_after_mu() -> None:
    assert recency(NOW - timedelta(seconds=1e7), NOW, 1e7) == pytest.approx(np.exp(-1))


def test_a_visit_in_the_future_counts_as_now() -> None:
    assert recency(NOW + timedelta(days=1), NOW, 1e7) == 1.0


@given(st.floats(0, 1e9), st.floats(0, 1e9))
def test_heat_never_grows_by_waiting(first_s: float, more_s: float) -> None:
    earlier = recency(NOW - timedelta(seconds=first_s), NOW, 1e7)
    later = recency(NOW - timedelta(seconds=first_s + more_s), NOW, 1e7)
    assert 0 <= later <= earlier <= 1


def history(days: list[float], **counters: int) -> list[HeatPoint]:
    """Return the history of pages so many days ago, with recency switched off."""
    times = [NOW - timedelta(days=ago) for ago in days]
    given = {"n_visit": 0, "l_interaction": 0, **counters}
    visited = NOW - timedelta(days=2)
    weights = HeatWeights(gamma=0.0)
    return heat_history(times, **given, last_visit=visited, now=NOW, weights=weights, threshold=3.0)


def steps(points: list[HeatPoint]) -> list[float]:
    """Return the values of a history, without repetitions."""
    return [point.heat for place, point in enumerate(points) if not place or point.heat != points[place - 1].heat]


def test_the_history_of_heat_ends_with_the_present_heat() -> None:
    assert steps(history([9, 8, 7], l_interaction=3)) == [0, 1, 2, 3]
    assert steps(history([9, 8, 7, 6], l_interaction=1)) == [0, 1, 2, 3, 0, 1]
    assert steps(history([9, 8, 7, 6, 5], l_interaction=0)) == [0, 1, 2, 3, 0, 1, 2, 0]
    assert steps(history([9], l_interaction=1, n_visit=4)) == [0, 1, 5]
    assert steps(history([], n_visit=4)) == [0, 4]


@given(
    st.lists(st.floats(0, 900), max_size=30).map(lambda days: sorted(days, reverse=True)),
    st.integers(0, 40),
    st.integers(0, 5),
    st.floats(-1, 900),
)
def test_each_history_is_in_order_and_exact_at_its_end(
    days: list[float], l_interaction: int, n_visit: int, visited: float
) -> None:
    last_visit = NOW - timedelta(days=visited)
    counters = {"n_visit": n_visit, "l_interaction": l_interaction}
    times = [NOW - timedelta(days=ago) for ago in days]
    points = heat_history(times, **counters, last_visit=last_visit, now=NOW, weights=HeatWeights(), threshold=5.0)
    assert [point.at for point in points] == sorted(point.at for point in points)
    now = heat(**counters, last_visit=last_visit, now=NOW, weights=HeatWeights())
    assert points[-1] == HeatPoint(NOW, now)
    future = cooling(**counters, last_visit=last_visit, now=NOW, weights=HeatWeights())
    assert future[0] == points[-1]
    assert all(later.heat <= earlier.heat for earlier, later in pairwise(future))


def test_a_large_read_segment_outranks_a_small_one() -> None:
    large = prominence(n_visit=0, page_count=227, last_visit=NOW - timedelta(days=30), now=NOW, mu_s=1e7)
    small = prominence(n_visit=0, page_count=4, last_visit=NOW, now=NOW, mu_s=1e7)
    assert large > small


@given(st.integers(0, 10**6), st.integers(1, 10**6), st.floats(0, 1e9), st.floats(0, 1e9))
def test_prominence_grows_with_size_and_visits(visits: int, pages: int, first_s: float, more_s: float) -> None:
    def at(visits: int, pages: int, ago_s: float) -> float:
        last = NOW - timedelta(seconds=ago_s)
        return prominence(n_visit=visits, page_count=pages, last_visit=last, now=NOW, mu_s=1e7)

    assert at(visits, pages, first_s) < at(visits + 1, pages, first_s)
    assert at(visits, pages, first_s) < at(visits, pages + 1, first_s)
    assert at(visits, pages, first_s + more_s) <= at(visits, pages, first_s)
    assert at(visits, pages, first_s) >= (visits + pages) / 2


def test_a_match_is_cosine_plus_keyword_overlap() -> None:
    east, north = np.array([1, 0], dtype=np.float32), np.array([0, 1], dtype=np.float32)
    assert segment_match(east, {"a", "b"}, east, {"b", "c"}) == pytest.approx(1 + 1 / 3)
    assert segment_match(east, {"a"}, north, {"a"}) == pytest.approx(1.0)


def test_without_vectors_keywords_replace_the_cosine() -> None:
    assert segment_match(None, {"a", "b"}, None, {"a", "b"}) == pytest.approx(2.0)
    assert segment_match(None, {"a"}, None, {"b"}) == 0.0
    assert segment_match(None, frozenset(), None, frozenset()) == 0.0


@given(st.sets(st.text(max_size=3)), st.sets(st.text(max_size=3)))
def test_jaccard_is_symmetric_and_between_0_and_1(left: set[str], right: set[str]) -> None:
    assert jaccard(left, right) == jaccard(right, left)
    assert 0 <= jaccard(left, right) <= 1


def test_a_mean_vector_has_unit_length() -> None:
    mean = mean_vector([np.array([2, 0], dtype=np.float32), np.array([0, 2], dtype=np.float32)])
    assert mean is not None
    assert float(np.linalg.norm(mean)) == pytest.approx(1.0)
    assert mean_vector([]) is None
    assert mean_vector([np.zeros(2, dtype=np.float32)]) is None
