"""Computes the coordinates of charts. The templates draw them as SVG."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

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
        label: A short name, which stands beside the bar.
        text: What held in the period.
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
    """A mark on the axis of time."""

    x: float
    label: str


@dataclass(frozen=True, slots=True)
class PeriodChart:
    """Periods as bars under each other, above an axis of time.

    Attributes:
        now_x: The place of the current time.
    """

    width: int
    height: int
    bars: Sequence[PeriodBar]
    ticks: Sequence[Tick]
    now_x: float


def period_chart(periods: Sequence[Period], now: datetime) -> PeriodChart:
    """Return a chart of periods, in their order. Periods without an end last until the end of the axis."""
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
    """Yield the beginnings of some years, months or days between two times, with their names."""
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
