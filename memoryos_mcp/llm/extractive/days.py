"""Adds dates after relative dates in a text, as in "yesterday [7 May 2026]" or "last month [April 2026]".

If a relative date has two possible meanings ("next Friday", said on a Wednesday), both dates are added. If it has more
than two, no date is added.

``dateparser``, which parses the times in queries, is not suitable here. The library returns only one of two possible
days, and returns a single day for "June 2026". It also mistakes "we" and "may" for days.
"""

import re
from datetime import date, datetime, timedelta

_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8}
_NUMBERS |= {"nine": 9, "ten": 10}
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_COUNT = rf"(?P<count>\d{{1,3}}|{'|'.join(_NUMBERS)})"
_UNIT = r"(?P<unit>day|week|month|year)s?"
_RELATIVE = re.compile(
    rf"\b(?:(?P<day>today|tonight|tomorrow|yesterday|last night|the day after tomorrow)"
    rf"|(?P<which>next|this|last) (?P<period>week|month|year|weekend|{'|'.join(_WEEKDAYS)})"
    rf"|in (?P<ahead>{_COUNT} {_UNIT})(?! of\b)"
    rf"|{_COUNT.replace('count', 'count_ago')} {_UNIT.replace('unit', 'unit_ago')} ago)\b"
    r"(?!['’]s)",
    re.IGNORECASE | re.ASCII,  # without ASCII, "ſix" would match, which is not in _NUMBERS
)
_FROM_TODAY = {
    "today": 0,
    "tonight": 0,
    "tomorrow": 1,
    "the day after tomorrow": 2,
    "yesterday": -1,
    "last night": -1,
}
_STEP = {"next": 1, "this": 0, "last": -1}


def with_days(text: str, said_at: datetime) -> str:
    """Return ``text`` with a date in brackets after each relative date. Text with a "[" is returned unchanged."""
    if "[" in text:
        return text

    def with_date(match: re.Match[str]) -> str:
        try:
            day = _date_of(match, said_at.date())
        except (OverflowError, ValueError):  # the year is before 1 or after 9999
            day = None
        return f"{match[0]} [{day}]" if day else match[0]

    return _RELATIVE.sub(with_date, text)


def _date_of(match: re.Match[str], said: date) -> str | None:
    """Return the date that words such as "yesterday" refer to; None if the meaning is not clear.

    If two dates are possible, the returned text contains both.
    """
    if match["day"]:
        return _day(said + timedelta(days=_FROM_TODAY[match["day"].lower()]))
    if match["which"]:
        return _period(_STEP[match["which"].lower()], match["period"].lower(), said)
    if match["ahead"]:
        return _away(_number(match["count"]), match["unit"].lower(), said)
    return _away(-_number(match["count_ago"]), match["unit_ago"].lower(), said)


def _number(text: str) -> int:
    return _NUMBERS.get(text.lower()) or int(text)


def _away(count: int, unit: str, said: date) -> str:
    if unit == "day":
        return _day(said + timedelta(days=count))
    if unit == "week":
        return _week(said + timedelta(weeks=count))
    if unit == "month":
        return _month(said, count)
    return str(said.replace(year=said.year + count, day=1).year)


def _period(step: int, period: str, said: date) -> str | None:
    if period == "week":
        return _week(said + timedelta(weeks=step))
    if period == "month":
        return _month(said, step)
    if period == "year":
        return str(said.year + step)
    monday = said - timedelta(days=said.weekday())
    if period == "weekend":
        is_weekend = said.weekday() >= _WEEKDAYS.index("saturday")
        if step > 0 and not is_weekend:
            return None
        saturday = monday + timedelta(days=5, weeks=step)
        return f"{_short(saturday)} to {_day(saturday + timedelta(days=1))}"
    place = _WEEKDAYS.index(period)
    in_week = monday + timedelta(days=place)
    if step == 0:
        return _day(in_week) if in_week >= said else None
    other = in_week + timedelta(weeks=step)
    # For example, "next Friday" said on a Friday or Saturday can only mean the Friday of next week.
    if (in_week - said).days * step <= 0:
        return _day(other)
    first, second = sorted((in_week, other))
    return f"{_short(first)} or {_day(second)}" if first.year == second.year else f"{_day(first)} or {_day(second)}"


def _month(said: date, count: int) -> str:
    year, month = divmod(said.year * 12 + said.month - 1 + count, 12)
    return f"{date(year, month + 1, 1):%B %Y}"


def _week(day: date) -> str:
    return f"week of {_day(day - timedelta(days=day.weekday()))}"


def _day(day: date) -> str:
    return f"{day.day} {day:%B %Y}"


def _short(day: date) -> str:
    return f"{day.day} {day:%B}"
