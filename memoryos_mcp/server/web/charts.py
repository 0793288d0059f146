"""Coordinates of the charts. The functions are pure; templates draw their results as SVG."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import groupby

from memoryos_mcp.model.heat import HeatPoint

# The colours of heat, from 0: `static/style.css` has a class for each.
HOTTEST = 4
DAYS_PER_WEEK = 7
# A day in the calendar, with the gap to the next one; room for the names of months and weekdays.
CELL, MONTHS_ROOM, WEEKDAYS_ROOM = 13, 16, 30
# Weeks of a block of the calendar. On a phone, the blocks are below each other.
BLOCK_WEEKS = 27
_CHAR = 7.5
_LINE = 16


def level(value: float, most: float) -> int:
    """Return the number of the colour for a value, from 0 (for the value 0) to `HOTTEST` (for ``most`` or more)."""
    if value <= 0 or most <= 0:
        return 0
    return max(1, min(HOTTEST, int(HOTTEST * value / most)))


# The calendar ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Day:
    """A day in the calendar. ``x`` and ``y`` are the upper left corner of the day's square."""

    day: date
    pages: int
    level: int
    x: int
    y: int


@dataclass(frozen=True, slots=True)
class Block:
    """A block of consecutive weeks in the calendar.

    Attributes:
        months: The x position and the name of each month.
        weeks: The days of each week, from Monday. The first and last week of the period may be incomplete.
    """

    width: int
    height: int
    months: Sequence[tuple[int, str]]
    weeks: Sequence[Sequence[Day]]


def calendar(first: date, pages: Sequence[int]) -> list[Block]:
    """Return the blocks of a calendar, with weeks as columns and weekdays as rows.

    Args:
        first: The first day of the calendar.
        pages: The number of pages on each day from ``first`` on.
    """
    most = max(pages, default=0)
    monday = first - timedelta(days=first.weekday())
    days = [first + timedelta(days=number) for number in range(len(pages))]
    weeks = [
        [(day, count) for day, count in week]
        for _, week in groupby(zip(days, pages, strict=True), key=lambda pair: (pair[0] - monday).days // DAYS_PER_WEEK)
    ]
    return [_block(weeks[place : place + BLOCK_WEEKS], most) for place in range(0, len(weeks), BLOCK_WEEKS)]


def _block(weeks: Sequence[Sequence[tuple[date, int]]], most: int) -> Block:
    placed: list[list[Day]] = []
    months: list[tuple[int, str]] = []
    for column, week in enumerate(weeks):
        x = WEEKDAYS_ROOM + column * CELL
        placed.append([Day(day, n, level(n, most), x, MONTHS_ROOM + day.weekday() * CELL) for day, n in week])
        last = week[-1][0]
        # A name needs two weeks of room.
        begins = last.day <= DAYS_PER_WEEK and column < len(weeks) - 1
        if begins or (column == 0 and last.day <= 2 * DAYS_PER_WEEK):
            months.append((x, f"{last:%b}"))
    return Block(WEEKDAYS_ROOM + BLOCK_WEEKS * CELL, MONTHS_ROOM + DAYS_PER_WEEK * CELL, months, placed)


# The map of topics ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tile:
    """A rectangle of a treemap."""

    x: float
    y: float
    width: float
    height: float

    def lines(self, text: str) -> list[str]:
        """Return the beginning of a text, in lines that fit into the tile; [] if the tile is too small."""
        room = int((self.width - 8) / _CHAR)
        rows = int((self.height - 6) / _LINE)
        if room < 4 or rows < 1:
            return []
        lines: list[str] = []
        for word in text.split():
            if lines and len(lines[-1]) + 1 + len(word) <= room:
                lines[-1] += f" {word}"
            elif len(lines) == rows:
                return [*lines[:-1], f"{lines[-1][: room - 1]}…"]
            else:
                lines.append(word if len(word) <= room else f"{word[: room - 1]}…")
        return lines


def treemap(sizes: Sequence[float], width: float, height: float) -> list[Tile]:
    """Return a tile for each size, with an area in proportion to the size. The tiles fill the whole rectangle.

    The tiles are nearly square: "Squarified Treemaps" (Bruls, Huizing, van Wijk, 2000).

    Args:
        sizes: Positive numbers, the largest first.
        width: Width of the rectangle.
        height: Height of the rectangle.
    """
    total = sum(sizes)
    left = [size * width * height / total for size in sizes]
    x = y = 0.0
    tiles: list[Tile] = []
    while left:
        side = min(width, height)
        count = 1
        while count < len(left) and _worst(left[: count + 1], side) <= _worst(left[:count], side):
            count += 1
        row, left = left[:count], left[count:]
        thickness = sum(row) / side if left else max(width, height)
        place = 0.0
        for area in row:
            length = side * area / sum(row)
            if width >= height:
                tiles.append(Tile(x, y + place, thickness, length))
            else:
                tiles.append(Tile(x + place, y, length, thickness))
            place += length
        if width >= height:
            x, width = x + thickness, width - thickness
        else:
            y, height = y + thickness, height - thickness
    return tiles


def _worst(row: Sequence[float], side: float) -> float:
    """Return the highest ratio of length to width among the tiles of a row; 1 if all tiles are squares."""
    total = sum(row)
    return max(side**2 * max(row) / total**2, total**2 / (side**2 * min(row)))


# Heat over time -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HeatChart:
    """The chart of a topic's heat.

    Attributes:
        past: The line until now, as the ``points`` of an SVG polyline.
        future: The line from now on, in the same form.
        limit_y: The y position of the threshold.
        now_x: The x position of the current time.
        days: The labels below the chart: x position and day.
        heats: The labels beside the chart: y position and heat.
    """

    width: int
    height: int
    left: int
    bottom: int
    past: str
    future: str
    limit_y: float
    now_x: float
    days: Sequence[tuple[float, date]]
    heats: Sequence[tuple[float, float]]


_TICKS = 4
_DAY_ROOM = 120


def heat_chart(
    past: Sequence[HeatPoint], future: Sequence[HeatPoint], threshold: float, *, width: int, height: int = 240
) -> HeatChart:
    """Return the chart of a topic's past and expected future heat, with the threshold."""
    left, top, right, bottom = 44, 12, width - 12, height - 26
    first, last = past[0].at, future[-1].at
    span_s = max(1.0, (last - first).total_seconds())
    most = 1.1 * max(threshold, *(point.heat for point in (*past, *future)))

    def x_of(at: datetime) -> float:
        return left + (right - left) * (at - first).total_seconds() / span_s

    def y_of(heat: float) -> float:
        return bottom - (bottom - top) * heat / most

    def line(points: Sequence[HeatPoint]) -> str:
        places = [(round(x_of(point.at), 1), round(y_of(point.heat), 1)) for point in points]
        return " ".join(f"{x:g},{y:g}" for x, y in _thinned(places))

    count = min(_TICKS, width // _DAY_ROOM)
    ticks = [first + (last - first) * number / count for number in range(count + 1)]
    return HeatChart(
        width=width,
        height=height,
        left=left,
        bottom=bottom,
        past=line(past),
        future=line(future),
        limit_y=round(y_of(threshold), 1),
        now_x=round(x_of(past[-1].at), 1),
        days=[(round(x_of(at), 1), at.date()) for at in ticks],
        heats=[(round(y_of(value), 1), value) for value in _round_values(most)],
    )


def _round_values(most: float) -> list[float]:
    """Return at most six round values at equal distances, from 0 up to ``most``."""
    scale = 10 ** math.floor(math.log10(most / _TICKS))
    step = next(step for each in (1, 2, 5, 10) if most / (step := each * scale) <= _TICKS + 1)
    return [step * number for number in range(int(most / step) + 1)]


def _thinned(places: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the visible points of a line: the first, highest, lowest and last point in each column of pixels."""
    seen: list[tuple[float, float]] = []
    for _, group in groupby(places, key=lambda place: int(place[0])):
        column = list(group)
        numbers = range(len(column))
        highest = min(numbers, key=lambda number: column[number][1])
        lowest = max(numbers, key=lambda number: column[number][1])
        seen += [column[number] for number in sorted({0, highest, lowest, len(column) - 1})]
    return seen


def at_intervals(points: Sequence[HeatPoint], count: int) -> list[HeatPoint]:
    """Return the last point in each of ``count`` equal intervals of time. Intervals without points are left out."""
    first, span = points[0].at, points[-1].at - points[0].at
    if not span:
        return [points[-1]]
    latest = {min(count - 1, int(count * ((point.at - first) / span))): point for point in points}
    return list(latest.values())


# Signed bars ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SignedBar:
    """A horizontal bar of a signed value.

    Attributes:
        x: Left end of the bar.
        width: Length of the bar.
        zero: Position of the value 0, which is one of the bar's ends.
    """

    x: float
    width: float
    zero: float


def signed_bars(rows: Sequence[Sequence[float]], width: float) -> list[list[SignedBar]]:
    """Return a bar for each value. All bars have the same scale and the same zero, and fit into ``width``."""
    low = min((value for row in rows for value in row), default=0.0)
    high = max((value for row in rows for value in row), default=0.0)
    low, high = min(low, 0.0), max(high, 0.0)
    span = high - low or 1.0
    zero = round(-low / span * width, 1)
    return [
        [
            SignedBar(round(zero + min(value, 0.0) / span * width, 1), round(abs(value) / span * width, 1), zero)
            for value in row
        ]
        for row in rows
    ]


# Periods ------------------------------------------------------------------------------------------------------------

PERIODS_WIDTH, PERIOD_HEIGHT = 360, 26
_LABELS_WIDTH, _AXIS_HEIGHT = 60, 22
_TICKS_AT_MOST = 5
_SMALLEST_BAR = 3.0
_DAYS_WITHOUT_MONTHS = 90
# Distances between the marks on the axis, in months.
_MONTHS = (1, 3, 6, *(12 * years for years in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)))


@dataclass(frozen=True, slots=True)
class Period:
    """A period to be drawn.

    Attributes:
        label: A short name, shown beside the bar.
        text: A description, shown as the tooltip of the bar, such as the text of a fact.
        end: The end of the period; None if it has not ended.
    """

    label: str
    text: str
    begin: datetime
    end: datetime | None


@dataclass(frozen=True, slots=True)
class PeriodBar:
    """The bar of a period. Lengths are in units of the SVG.

    Attributes:
        is_past: Whether the period has ended.
    """

    period: Period
    x: float
    y: float
    width: float
    is_past: bool


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark on the time axis."""

    x: float
    label: str


@dataclass(frozen=True, slots=True)
class PeriodChart:
    """A chart of periods: one horizontal bar for each period, and a time axis at the bottom.

    Attributes:
        now_x: The x position of the current time.
    """

    width: int
    height: int
    bars: Sequence[PeriodBar]
    ticks: Sequence[Tick]
    now_x: float


def period_chart(periods: Sequence[Period], now: datetime) -> PeriodChart:
    """Return a chart of periods in the given order. A period without an end extends to the end of the axis."""
    first = min([now, *(period.begin for period in periods)])
    last = max([now, *(period.begin for period in periods), *(period.end for period in periods if period.end)])
    length = max(last - first, timedelta(days=1))

    def x(moment: datetime) -> float:
        return round(_LABELS_WIDTH + (PERIODS_WIDTH - _LABELS_WIDTH - 4) * ((moment - first) / length), 1)

    bars = []
    for place, period in enumerate(periods):
        begin, end = x(period.begin), x(period.end or last)
        width = max(round(end - begin, 1), _SMALLEST_BAR)
        is_past = period.end is not None and period.end <= now
        bars.append(PeriodBar(period, min(begin, PERIODS_WIDTH - width), PERIOD_HEIGHT * place + 5, width, is_past))
    ticks = [Tick(x(moment), label) for moment, label in _ticks(first, first + length)]
    return PeriodChart(PERIODS_WIDTH, PERIOD_HEIGHT * len(periods) + _AXIS_HEIGHT, bars, ticks, x(now))


def _ticks(first: datetime, last: datetime) -> Iterator[tuple[datetime, str]]:
    """Yield the time and the label of each mark on a time axis, at most six marks.

    If the axis is shorter than 90 days, days are marked, otherwise months or years.
    """
    midnight = first.replace(hour=0, minute=0, second=0, microsecond=0)
    days = (last - midnight).days
    if days < _DAYS_WITHOUT_MONTHS:
        step = days // _TICKS_AT_MOST + 1
        for number in range(step, days + 1, step):
            moment = midnight + timedelta(days=number)
            yield moment, f"{moment:%m-%d}"
        return
    first_month = midnight.year * 12 + midnight.month - 1
    last_month = last.year * 12 + last.month - 1
    step = next(each for each in _MONTHS if (last_month - first_month) // each <= _TICKS_AT_MOST)
    for number in range(first_month // step * step + step, last_month + 1, step):
        year, month = divmod(number, 12)
        name = f"{year:04}" if step >= 12 else f"{year:04}-{month + 1:02}"
        yield midnight.replace(year=year, month=month + 1, day=1), name


# Bars ---------------------------------------------------------------------------------------------------------------

BARS_WIDTH, BARS_HEIGHT = 400, 150
_LEFT, _TOP, _BOTTOM = 56, 8, 24
_GAP_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar with its value. Lengths are in units of the SVG."""

    label: str
    value: int
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class BarChart:
    """A chart of vertical bars, side by side.

    Attributes:
        left: The x position of the vertical axis.
        top: The y position of the highest value.
        base: The y position of the value 0.
        highest: The highest value.
    """

    width: int
    height: int
    left: int
    top: int
    base: int
    highest: int
    bars: Sequence[Bar]


def bar_chart(values: Sequence[tuple[str, int]]) -> BarChart:
    """Return a chart of values, each with its label, from left to right. No value may be negative."""
    base, highest = BARS_HEIGHT - _BOTTOM, max((value for _, value in values), default=0)
    step = (BARS_WIDTH - _LEFT) / max(1, len(values))
    bars = []
    for place, (label, value) in enumerate(values):
        height = round((base - _TOP) * value / highest, 1) if highest else 0.0
        x = round(_LEFT + step * (place + _GAP_SHARE / 2), 1)
        bars.append(Bar(label, value, x, round(base - height, 1), round(step * (1 - _GAP_SHARE), 1), height))
    return BarChart(BARS_WIDTH, BARS_HEIGHT, _LEFT, _TOP, base, highest, bars)
