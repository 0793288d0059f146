"""The view Timeline: the pages by day, newest first, with a calendar of the activity of a year."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta, tzinfo
from itertools import groupby
from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response

from memoryos_mcp.errors import ArgumentError
from memoryos_mcp.model.ids import Kind, numbered_id
from memoryos_mcp.model.pages import EARLIEST_YEAR, Source
from memoryos_mcp.model.views import ListEntry
from memoryos_mcp.server.web import charts
from memoryos_mcp.server.web.visits import Visit, get

PAGES_AT_ONCE = 40
LATEST_YEAR = 2200
ONE_DAY = timedelta(days=1)
A_YEAR = timedelta(days=365)


@dataclass(frozen=True, slots=True)
class Asked:
    """The filters in the address of a timeline.

    Attributes:
        day: The day of the listed pages; None means all days.
        year: The year of the listed pages and of the calendar. If it is None, pages of all years are listed. The
            calendar then shows the last twelve months or, if ``day`` is not in these, the year of ``day``.
    """

    topic: str
    source: str
    words: str
    day: date | None
    year: int | None

    @classmethod
    def of(cls, visit: Visit) -> "Asked":
        """Return the filters in the address that a person has requested.

        Raises:
            ArgumentError: The day or the year is not valid.
        """
        topic, source, words = (visit.asked(name).strip() for name in ("topic", "source", "words"))
        return cls(topic, source, words, _day(visit.asked("day").strip()), _year(visit.asked("year").strip()))

    @property
    def filters(self) -> Mapping[str, str]:
        """The filters that apply to both the list and the calendar."""
        return {"topic": self.topic, "source": self.source, "words": self.words}

    @property
    def has_filters(self) -> bool:
        """Whether any filter except the year is set."""
        return any(self.filters.values()) or self.day is not None

    def query(self, **more: str) -> str:
        """Return the filters and further parameters as the query of an address (the part after ``?``)."""
        own = {**self.filters, "day": str(self.day or ""), "year": str(self.year or ""), **more}
        return urlencode({name: value for name, value in own.items() if value})

    def on(self, day: date | None, year: int | None = None) -> str:
        """Return the query of an address with the same filters but another day and year. None removes the value."""
        return replace(self, day=day, year=year).query()

    def listed(self) -> Mapping[str, Any]:
        """Return the filters of the list as arguments of `MemoryEngine.listed`."""
        first, last = self.day, self.day
        if first is None and self.year is not None:
            first, last = date(self.year, 1, 1), date(self.year, 12, 31)
        after = "" if first is None else first.isoformat()
        before = "" if last is None else (last + ONE_DAY).isoformat()
        return {**self.filters, "after": after, "before": before, "is_by_time": True, "limit": PAGES_AT_ONCE}


async def timeline(visit: Visit) -> Response:
    """Show the pages by day, and the calendar. If there is a cursor, show only the pages from the cursor on."""
    asked, cursor, engine = Asked.of(visit), visit.asked("cursor"), visit.engine
    part, segments = await asyncio.gather(engine.listed(**asked.listed(), cursor=cursor), engine.segments())
    zone = visit.memories.settings.zone
    shown: dict[str, Any] = {
        "asked": asked,
        "cursor": cursor,
        "days": _days(part.entries, zone),
        "older": None if part.cursor is None else asked.query(cursor=part.cursor),
        "titles": {each.segment.segment: each.title for each in segments},
        "segment_id": lambda number: numbered_id(Kind.SEGMENT, number),
    }
    if visit.is_part:
        return visit.page("timeline_pages.html", **shown)
    calendar = {} if cursor else await _calendar(visit, asked, zone)
    chosen = {numbered_id(Kind.SEGMENT, each.segment.segment): each.title for each in segments}
    return visit.page("timeline.html", **shown, **calendar, topic_title=chosen.get(asked.topic), sources=list(Source))


async def _calendar(visit: Visit, asked: Asked, zone: tzinfo | None) -> dict[str, Any]:
    """Return the template's values for the calendar, and for the links to the previous and next year."""
    today = visit.memories.now().date()
    year = asked.year or (None if asked.day is None or today - A_YEAR <= asked.day <= today else asked.day.year)
    first, last = (today - A_YEAR, today) if year is None else (date(year, 1, 1), date(year, 12, 31))
    pages, earlier = await asyncio.gather(
        visit.engine.page_counts(first, last, **asked.filters),
        visit.engine.listed(**{**asked.listed(), "after": "", "before": first.isoformat(), "limit": 1}),
    )
    busiest = max(range(len(pages)), key=pages.__getitem__)
    return {
        "calendar": charts.calendar(first, pages),
        "first": first,
        "last": last,
        "page_count": sum(pages),
        "day_count": sum(map(bool, pages)),
        "busiest": (first + timedelta(days=busiest), pages[busiest]),
        "earlier": earlier.entries[0].at.astimezone(zone).year if earlier.entries else None,
        "later": year + 1 if year is not None and year < today.year else None,
        "is_past": year is not None,
    }


def _days(entries: Sequence[ListEntry], zone: tzinfo | None) -> list[tuple[date, list[tuple[datetime, ListEntry]]]]:
    """Return the pages of each day, with their local times."""
    timed = [(entry.at.astimezone(zone), entry) for entry in entries]
    return [(day, list(group)) for day, group in groupby(timed, key=lambda pair: pair[0].date())]


def _day(text: str) -> date | None:
    try:
        day = date.fromisoformat(text) if text else None
    except ValueError as error:
        raise ArgumentError(argument="day", problem="is not a valid day; write it like 2026-05-08") from error
    if day is not None:
        _check_year("day", day.year)
    return day


def _year(text: str) -> int | None:
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(LATEST_YEAR))):
        raise ArgumentError(argument="year", problem="is not a valid year; write it like 2026")
    _check_year("year", int(text))
    return int(text)


def _check_year(argument: str, year: int) -> None:
    if not EARLIEST_YEAR <= year <= LATEST_YEAR:
        problem = f"is out of range; use a year from {EARLIEST_YEAR} to {LATEST_YEAR}"
        raise ArgumentError(argument=argument, problem=problem)


ADDRESSES = (get("/timeline", timeline),)
