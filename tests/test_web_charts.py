"""Charts: tiles fill their rectangle, and the calendar has each day once."""

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryos_mcp.model.heat import HeatPoint
from memoryos_mcp.server.web.charts import HOTTEST, Tile, at_intervals, calendar, heat_chart, level, treemap

NOW = datetime(2026, 5, 8, tzinfo=UTC)


@given(st.lists(st.integers(1, 10_000), min_size=1, max_size=60), st.integers(50, 2000), st.integers(50, 2000))
def test_tiles_fill_the_rectangle_in_proportion(sizes: list[int], width: int, height: int) -> None:
    sizes = sorted(sizes, reverse=True)
    tiles = treemap(sizes, width, height)
    share = width * height / sum(sizes)
    for tile, size in zip(tiles, sizes, strict=True):
        assert tile.width * tile.height == pytest.approx(size * share)
        assert 0 <= tile.x <= tile.x + tile.width <= width + 1e-6
        assert 0 <= tile.y <= tile.y + tile.height <= height + 1e-6
    for tile, other in pairwise(tiles):
        is_beside = min(tile.x + tile.width, other.x + other.width) - max(tile.x, other.x) < 1e-6
        is_below = min(tile.y + tile.height, other.y + other.height) - max(tile.y, other.y) < 1e-6
        assert is_beside or is_below


def test_equal_tiles_are_square() -> None:
    assert {(tile.width, tile.height) for tile in treemap([1, 1, 1, 1], 200, 200)} == {(100, 100)}


def test_a_title_is_cut_to_the_lines_of_its_tile() -> None:
    assert Tile(0, 0, 100, 60).lines("kiln, glaze") == ["kiln, glaze"]
    assert Tile(0, 0, 100, 24).lines("pottery, kilns, glazing") == ["pottery,…"]
    assert Tile(0, 0, 100, 60).lines("incomprehensibilities") == ["incomprehen…"]
    assert Tile(0, 0, 10, 60).lines("kiln") == []
    assert Tile(0, 0, 100, 60).lines("") == []


@given(st.dates(date(1950, 1, 1), date(2150, 1, 1)), st.lists(st.integers(0, 9), max_size=380))
def test_a_calendar_has_each_day_once(first: date, pages: list[int]) -> None:
    blocks = calendar(first, pages)
    days = [day for block in blocks for week in block.weeks for day in week]
    assert [day.day for day in days] == [first + timedelta(days=number) for number in range(len(pages))]
    assert [day.pages for day in days] == pages
    for block in blocks:
        assert all(week[0].day.weekday() == 0 for week in block.weeks[1:])
        assert len({(day.x, day.y) for week in block.weeks for day in week}) == sum(map(len, block.weeks))
        assert all(day.x < block.width and day.y < block.height for week in block.weeks for day in week)


def test_only_nothing_has_the_coldest_colour() -> None:
    assert [level(value, 5) for value in (0, 0.01, 2.6, 4.99, 5, 900)] == [0, 1, 2, 3, HOTTEST, HOTTEST]
    assert level(1, 0) == 0


def test_a_chart_of_heat_keeps_its_extremes_in_few_points() -> None:
    past = [HeatPoint(NOW + timedelta(minutes=n), float(n % 7)) for n in range(20_000)]
    future = [HeatPoint(past[-1].at + timedelta(days=n), 1.0) for n in range(3)]
    chart = heat_chart(past, future, 5.0, width=640)
    points = [tuple(map(float, point.split(","))) for point in chart.past.split()]
    assert len(points) <= 4 * chart.width
    assert max(y for _, y in points) == chart.bottom
    assert [value for _, value in chart.heats] == [0, 2, 4, 6]
    assert points[-1][0] == chart.now_x
    assert min(y for _, y in points) < chart.limit_y


def test_a_chart_of_a_single_moment_can_be_drawn() -> None:
    points = [HeatPoint(NOW, 0.0)]
    assert heat_chart(points, points, 5.0, width=330).past
    assert at_intervals(points, 5) == points
