"""Query time: finds time spans such as "last May" in a query, and rates how near pages are to these spans.

Patterns made from dateparser's data find time phrases in twelve languages. Then dateparser parses the phrases. The
library is imported when the first query is parsed.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

LANGUAGES = ("en", "de", "fr", "es", "it", "pt", "nl", "ru", "zh", "ja", "ko", "ar")
# Only this many characters of a query are searched for time phrases. The rest of a longer query is probably pasted.
QUERY_MAX_CHARS = 1_000
SPANS_MAX = 4
EARLIEST_YEAR, LATEST_YEAR = 1900, 2100

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - days are in the user's time zone

_MONTHS = "january february march april may june july august september october november december".split()
# Keys in dateparser's data for relative phrases about past or present days, weeks, months and years.
_RELATIVE = re.compile(
    r"(?:[0-9]+|\\1) (?:day|week|month|year)s? ago|(?:last|this) (?:mon|tues|wednes|thurs|fri|satur|sun)day"
)
# English months that are also other words. They count as months if they begin with a capital letter, are next to a
# number, or follow a word such as "in".
_AMBIGUOUS = frozenset({"may", "march", "august"})
_BEFORE_MONTH = r"(?:in|of|on|last|this|since|until|till|by|during|early|late|mid|around|from|to)\s+"
_YEAR = r"(?:19|20)\d\d"
_DAY = r"\d{1,2}(?:st|nd|rd|th|\.|er|º|ª)?"
_ISO = re.compile(rf"\b{_YEAR}-\d\d(?:-\d\d)?\b")
_BARE_YEAR = re.compile(rf"(?<![\d.,:/-]){_YEAR}(?![\d:/-]|[.,]\d)")
_UNSPACED = frozenset({"zh", "ja", "ko"})
_NUMBERS = {
    word: str(number)
    for number, word in enumerate("zero one two three four five six seven eight nine ten eleven twelve".split())
} | {"a": "1", "an": "1", "a couple of": "2", "a few": "3"}
_AGO = re.compile(
    rf"\b({'|'.join(sorted(_NUMBERS, key=len, reverse=True))})\s+(day|week|month|year)s?\s+ago\b", re.IGNORECASE
)


class Unit(StrEnum):
    """The unit of a time span."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    YEAR = "year"


# Nearness of a page within a span, by the span's unit. In the days after a span, people still talk about its events. A
# page from these days gets a share of the nearness.
_WITHIN = {Unit.DAY: 2.0, Unit.WEEK: 1.5, Unit.MONTH: 1.0, Unit.YEAR: 0.3}
_AFTER_SHARE = 0.5
_AFTER_DAYS = {Unit.DAY: 7, Unit.WEEK: 7, Unit.MONTH: 15, Unit.YEAR: 0}


@dataclass(frozen=True, slots=True)
class Span:
    """A time span in a query.

    Attributes:
        begin: First day of the span, a datetime without a time zone.
        days: Number of days in the span.
        unit: The unit in which the query expresses the span.
        recurs: Whether the span has no year and therefore recurs every year.
    """

    begin: datetime
    days: int
    unit: Unit
    recurs: bool

    def __str__(self) -> str:
        """Return the first and the last day of the span as text, without the year if the span recurs."""
        form = "%m-%d" if self.recurs else "%Y-%m-%d"
        first, last = (day.strftime(form) for day in (self.begin, self.begin + timedelta(days=self.days - 1)))
        return first if self.days == 1 else f"{first} to {last}"


@cache
def load() -> None:
    """Compile the patterns and import the parser, so that the first query is as fast as later ones.

    This takes a few tenths of a second. A second call does nothing.
    """
    time_spans("yesterday", datetime(2000, 1, 2))  # noqa: DTZ001 - times of queries have no zone


def is_loaded() -> bool:
    """Return whether `load` has finished in this process."""
    return load.cache_info().currsize > 0


def time_spans(query: str, now: datetime) -> list[Span]:
    """Return the distinct time spans in a query, at most `SPANS_MAX`.

    ``now`` is the current time in the user's time zone.
    """
    text = query[:QUERY_MAX_CHARS]
    found: dict[Span, None] = {}
    taken: list[tuple[int, int]] = []
    for start, end, phrase, language in _phrases(text):
        if any(start < last and first < end for first, last in taken):
            continue
        span = _span(phrase, language, now)
        if span is not None:
            taken.append((start, end))
            found.setdefault(span)
        if len(found) == SPANS_MAX:
            break
    return list(found)


def nearness(spans: Sequence[Span], days: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return how near each day is to the closest of the time spans, from 0 (far) to 2, shape ``(n,)``.

    Within a span, the value is 2 if the span's unit is a day, 1.5 for a week, 1 for a month and 0.3 for a year. The
    value is half as large for up to 7 days after a day or week, and up to 15 days after a month. If the unit is a day,
    the other days of the same month have 0.5. All other days have 0.

    ``days`` contains numbers of days since 1970-01-01, shape ``(n,)``.
    """
    worth = {day: max((_near(span, day) for span in spans), default=0.0) for day in set(days.tolist())}
    return np.array([worth[day] for day in days.tolist()], dtype=np.float64)


def _near(span: Span, day_number: int) -> float:
    day = _EPOCH + timedelta(days=day_number)
    best = 0.0
    for begin in _begins(span, day):
        apart = (day - begin).days
        if 0 <= apart < span.days:
            best = max(best, _WITHIN[span.unit])
        elif span.days <= apart < span.days + _AFTER_DAYS[span.unit]:
            best = max(best, _WITHIN[span.unit] * _AFTER_SHARE)
        elif span.unit is Unit.DAY and (begin.year, begin.month) == (day.year, day.month):
            best = max(best, _WITHIN[Unit.MONTH] * _AFTER_SHARE)
    return best


def _begins(span: Span, day: datetime) -> Iterator[datetime]:
    if not span.recurs:
        yield span.begin
        return
    for year in (day.year, day.year - 1):
        try:
            yield span.begin.replace(year=year)
        except ValueError:  # 29 February
            continue


def _phrases(text: str) -> Iterator[tuple[int, int, str, str]]:
    """Yield each time phrase in ``text``: its start, its end, the phrase to parse, and its language code."""
    for match in _ISO.finditer(text):
        yield match.start(), match.end(), match[0], "en"
    for match in _AGO.finditer(text):
        yield match.start(), match.end(), f"{_NUMBERS[match[1].lower()]} {match[2].lower()}s ago", "en"
    for language, pattern in _patterns():
        for match in pattern.finditer(text):
            if _is_date(match):
                yield match.start(), match.end(), match["phrase"], language
    for match in _BARE_YEAR.finditer(text):
        yield match.start(), match.end(), match[0], "en"


def _is_date(match: re.Match[str]) -> bool:
    """Return whether a match is a date. In "I may march", for example, neither "may" nor "march" is a date."""
    phrase = match["phrase"]
    return phrase.lower() not in _AMBIGUOUS or phrase[0].isupper() or bool(match["before"])


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((language, _pattern(_data(language), language)) for language in LANGUAGES)


def _data(language: str) -> dict[str, Any]:
    data: dict[str, Any] = import_module(f"dateparser.data.date_translation_data.{language}").info
    return data


def _pattern(data: dict[str, Any], language: str) -> re.Pattern[str]:
    """Return a pattern for one language. It matches time phrases, such as "yesterday" and dates that name a month."""
    named = [(name, month) for month in _MONTHS for name in data[month]]
    full = [
        re.escape(name) for name, _ in named if len(name) > 3 or not name.isascii() or name in {"may", "mai", "mei"}
    ]
    # "Dec" is a month only next to a number. Short names in other languages may be English words, as in "set 5 alarms".
    short = [re.escape(name) for name, _ in named if len(name) <= 3 and language == "en"]
    relative = [
        re.escape(words)
        for kind, all_words in data["relative-type"].items()
        if _RELATIVE.fullmatch(kind)
        for words in all_words
    ]
    counted = [
        words.replace("(\\d++[.,]?\\d*+)", r"\d{1,3}")
        for kind, all_words in data.get("relative-type-regex", {}).items()
        if _RELATIVE.fullmatch(kind)
        for words in all_words
        if len(words) > len("(\\d++[.,]?\\d*+)") + 2
    ]
    months, any_month = _any(full), _any([*full, *short])
    if language in _UNSPACED:
        dated = rf"(?:{_YEAR}\s*[年년]\s*)?{months}(?:\s*\d{{1,2}}\s*[日号號일])?"
        return re.compile(rf"(?P<before>)?(?P<phrase>{_any([*relative, *counted])}|{dated})")
    of = r"(?:\s+(?:of|de|del|di|do))?\s+"
    dated = (
        rf"{_DAY}{of}{any_month}\b\.?(?:,?{of}{_YEAR})?|{any_month}\.?\s+{_DAY}\b(?:,?\s+{_YEAR})?"
        rf"|{any_month}\.?,?{of}{_YEAR}|{months}"
    )
    before = rf"(?P<before>{_BEFORE_MONTH})?" if language == "en" else "(?P<before>)?"
    return re.compile(rf"(?<!\w){before}(?P<phrase>{_any([*relative, *counted])}|{dated})(?!\w)", re.IGNORECASE)


def _any(parts: Sequence[str]) -> str:
    return f"(?:{'|'.join(sorted(parts, key=len, reverse=True))})"


def _span(phrase: str, language: str, now: datetime) -> Span | None:
    parsed = _parser(language, now.replace(tzinfo=None)).get_date_data(phrase)
    day, unit = parsed.date_obj, parsed.period
    if day is None or unit not in set(Unit) or not EARLIEST_YEAR <= day.year <= LATEST_YEAR:
        return None
    day = day.replace(tzinfo=None, hour=0, minute=0, second=0, microsecond=0)
    recurs = unit in {Unit.DAY, Unit.MONTH} and _names_month(phrase, language) and not re.search(_YEAR, phrase)
    match Unit(unit):
        case Unit.DAY:
            return Span(day, 1, Unit.DAY, recurs)
        case Unit.WEEK:
            return Span(day - timedelta(days=day.weekday()), 7, Unit.WEEK, recurs=False)
        case Unit.MONTH:
            first = day.replace(day=1)
            return Span(first, ((first + timedelta(days=32)).replace(day=1) - first).days, Unit.MONTH, recurs)
        case Unit.YEAR:
            first = day.replace(month=1, day=1)
            return Span(first, (first.replace(year=first.year + 1) - first).days, Unit.YEAR, recurs=False)


def _names_month(phrase: str, language: str) -> bool:
    names = [re.escape(name) for month in _MONTHS for name in _data(language)[month]]
    return re.search(rf"(?<![^\W\d]){_any(names)}", phrase, re.IGNORECASE) is not None


def _parser(language: str, now: datetime) -> Any:
    from dateparser.date import DateDataParser

    return DateDataParser(languages=[language], settings={"RELATIVE_BASE": now, "PREFER_DATES_FROM": "past"})
