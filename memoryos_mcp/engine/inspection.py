"""Reads memories by id, and returns long lists of memories in parts."""

import base64
import binascii
import json
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta, tzinfo

from memoryos_mcp.errors import ArgumentError
from memoryos_mcp.model.heat import HeatWeights, cooling, heat_history
from memoryos_mcp.model.ids import Kind, not_there, read_id, read_ids
from memoryos_mcp.model.knowledge import About
from memoryos_mcp.model.pages import Page, Source, Tier, estimate_tokens, project_name
from memoryos_mcp.model.segments import Segment
from memoryos_mcp.model.views import (
    ListEntry,
    ListRequest,
    MemoryView,
    PageView,
    Place,
    SegmentView,
    State,
    TopicView,
)
from memoryos_mcp.retrieval.budget import SMALLEST_EXCERPT_TOKENS, quote
from memoryos_mcp.storage.user_data import UserData
from memoryos_mcp.text.terms import query_words

LISTED, LISTED_AT_MOST = 20, 100
# Enough for the longest page that the default settings allow, in most languages.
LOOK_TOKENS = 50_000
TOPIC_MAX_CHARS = 200
WORDS_MAX_CHARS = 200
DAYS_AT_MOST = 1_000
CHAINS_OF_A_TOPIC = 30
CURSOR_MAX_CHARS = 1_000
# Stores have no greater numbers.
GREATEST_NUMBER = (1 << 63) - 1

_PAGES = (Kind.PAGE,)
_KINDS: dict[str, tuple[Kind, ...]] = {
    "pages": _PAGES,
    Tier.SHORT_TERM: _PAGES,
    Tier.BACKLOG: _PAGES,
    Tier.MID_TERM: _PAGES,
    "segments": (Kind.SEGMENT,),
    "knowledge": (Kind.FACT,),
    "profile": (Kind.TRAIT,),
    "long_term": (Kind.TRAIT, Kind.FACT),
}
TIERS = tuple(_KINDS)
_STATES = {Kind.FACT: set(State), Kind.SEGMENT: {State.CURRENT, State.ARCHIVED}}


@dataclass(frozen=True, slots=True)
class ListPart:
    """One part of a list of memories.

    Attributes:
        cursor: The cursor of the next part; None if this is the last part.
    """

    entries: Sequence[ListEntry]
    cursor: str | None


async def look(
    store: UserData, ids: Sequence[str], max_tokens: int, heat: Callable[[Segment], float]
) -> list[MemoryView]:
    """Return the memories with the given ids, in the order of ``ids``.

    If the pages together exceed ``max_tokens``, the longest pages are shortened.
    """
    known_ids = read_ids(ids)
    views = await store.look(known_ids)
    missing = [each for each, found in zip(known_ids, views, strict=True) if found is None]
    if missing:
        raise not_there(missing)
    found = [each for each in views if each is not None]
    limit = _page_limit([_tokens(each.page) for each in found if isinstance(each, PageView)], max_tokens)
    return [
        replace(each, heat=heat(each.segment)) if isinstance(each, SegmentView) else _fitted(each, limit)
        for each in found
    ]


def list_request(
    *,
    tier: str,
    topic: str,
    state: str,
    after: str | datetime,
    before: str | datetime,
    zone: tzinfo | None,
    chain: int | None = None,
    source: str = "",
    words: str = "",
    is_by_time: bool = False,
    about: str = "",
    project: str | None = None,
) -> ListRequest:
    """Validate the arguments of `MemoryEngine.listed`, and return them as a request.

    A time without a zone is in ``zone``, or in the local time zone if ``zone`` is None.
    """
    if tier and tier not in TIERS:
        raise ArgumentError(argument="tier", problem=f"is not valid; use one of {', '.join(TIERS)}")
    if state and state not in set(State):
        raise ArgumentError(argument="state", problem=f"is not valid; use one of {', '.join(State)}")
    if about and about not in set(About):
        raise ArgumentError(argument="about", problem=f"is not valid; use one of {', '.join(About)}")
    wanted = State(state) if state else State.CURRENT
    kinds = [kind for kind in _KINDS[tier or "pages"] if wanted in _STATES.get(kind, {State.CURRENT})]
    if not kinds:
        problem = (
            f"'{wanted}' does not apply to this tier; use 'superseded' only for knowledge, "
            "and 'archived' only for knowledge and segments"
        )
        raise ArgumentError(argument="state", problem=problem)
    request = ListRequest(
        kinds=kinds,
        tier=Tier(tier) if tier in set(Tier) else None,
        state=wanted,
        after=_moment("after", after, zone),
        before=_moment("before", before, zone),
        topic=_topic(topic),
        chain=chain,
        source=_source(source),
        words=_words(words),
        is_by_time=is_by_time,
        about=About(about) if about else None,
        project=project_name(project),
    )
    if kinds != [Kind.PAGE] and (request.source or request.words or is_by_time):
        problem = (
            "must be a tier of pages, because 'source', 'words' and 'is_by_time' apply only to pages; choose such a "
            "tier, or leave these arguments out"
        )
        raise ArgumentError(argument="tier", problem=problem)
    if request.after is not None and request.before is not None and request.after >= request.before:
        raise ArgumentError(argument="before", problem="must be later than 'after'")
    return request


async def listed(store: UserData, request: ListRequest, cursor: str, limit: int) -> ListPart:
    """Return the part of the requested list that starts at ``cursor``. If ``cursor`` is empty, return the first part.

    Memories that are added between two calls cause neither duplicates nor gaps.
    """
    if not 1 <= limit <= LISTED_AT_MOST:
        raise ArgumentError(argument="limit", problem=f"is out of range; use a value from 1 to {LISTED_AT_MOST}")
    place = _place(cursor, request) if cursor else None
    found = await store.listed(request, place, limit + 1)
    entries = found[:limit]
    has_more = len(found) > limit
    return ListPart(entries, _cursor(request, Place(entries[-1].kind, entries[-1].after)) if has_more else None)


async def page_counts(store: UserData, request: ListRequest, first: date, last: date, zone: tzinfo | None) -> list[int]:
    """Return the number of pages that match ``request`` for each day from ``first`` to ``last``.

    A day begins at midnight in ``zone``, or in the local time zone if ``zone`` is None.
    """
    days = (last - first).days + 1
    if not 1 <= days <= DAYS_AT_MOST or last == date.max:
        problem = f"must be on or after 'first', at most {DAYS_AT_MOST - 1:,} days later"
        raise ArgumentError(argument="last", problem=problem)
    starts = [_moment("first", (first + timedelta(days=number)).isoformat(), zone) for number in range(days + 1)]
    return await store.page_counts(request, [start for start in starts if start is not None])


async def topic(
    store: UserData,
    segment_id: str,
    *,
    title_of: Callable[[Segment], str],
    weights: HeatWeights,
    threshold: float,
    now: datetime,
) -> TopicView:
    """Return a segment with its chains and its heat over time."""
    known = read_id(segment_id)
    if known.kind is not Kind.SEGMENT:
        raise ArgumentError(argument="segment_id", problem="is not the id of a segment; use an id like s1")
    (view,) = await store.look([known])
    if not isinstance(view, SegmentView):
        raise not_there([known], "segment_id")
    pages = await store.segment_pages(known.number, CHAINS_OF_A_TOPIC)
    segment = view.segment
    counters = {"n_visit": segment.n_visit, "l_interaction": segment.l_interaction}
    return TopicView(
        segment=segment,
        state=view.state,
        title=title_of(segment),
        heat=segment.heat(now, weights),
        weights=weights,
        threshold=threshold,
        now=now,
        pages=pages,
        history=heat_history(
            pages.times, **counters, last_visit=segment.last_visit, now=now, weights=weights, threshold=threshold
        ),
        future=cooling(**counters, last_visit=segment.last_visit, now=now, weights=weights),
    )


def _fitted(view: MemoryView, limit: int | None) -> MemoryView:
    if not isinstance(view, PageView) or limit is None:
        return view
    text = quote(view.page.user_input, view.page.agent_response, limit, frozenset())
    if text is None or not text.is_excerpt:
        return view
    page = replace(view.page, user_input=text.user_input, agent_response=text.agent_response)
    return replace(view, page=page, is_excerpt=True)


def _tokens(page: Page) -> int:
    return estimate_tokens(page.user_input) + estimate_tokens(page.agent_response)


def _page_limit(tokens: Sequence[int], room: int) -> int | None:
    """Return the length in tokens to which long pages must be shortened, so that all pages fit into ``room`` tokens.

    If all pages already fit, return None.
    """
    if sum(tokens) <= room:
        return None
    left = room
    for place, size in enumerate(sorted(tokens)):
        share = left // (len(tokens) - place)
        if size > share:
            return max(SMALLEST_EXCERPT_TOKENS, share)
        left -= size
    return None


def _moment(argument: str, moment: str | datetime, zone: tzinfo | None) -> datetime | None:
    if isinstance(moment, str) and not moment.strip():
        return None
    try:
        read = moment if isinstance(moment, datetime) else datetime.fromisoformat(moment.strip())
        if read.tzinfo is not None:
            return read
        return read.replace(tzinfo=zone) if zone is not None else read.astimezone()
    except (ValueError, OverflowError, OSError) as error:
        problem = "is not a valid time; write it like 2026-05-08 or 2026-05-08T13:56:00+02:00, or leave it out"
        raise ArgumentError(argument=argument, problem=problem) from error


def _source(source: str) -> Source | None:
    if source and source not in set(Source):
        raise ArgumentError(argument="source", problem=f"is not valid; use one of {', '.join(Source)}")
    return Source(source) if source else None


def _words(words: str) -> tuple[str, ...]:
    if len(words) > WORDS_MAX_CHARS:
        raise ArgumentError(argument="words", problem=f"is longer than {WORDS_MAX_CHARS} characters; use fewer words")
    found = tuple(query_words(words))
    if words.strip() and not found:
        raise ArgumentError(argument="words", problem="contains no letters or digits; pass words to search for")
    return found


def _topic(topic: str) -> int | str | None:
    topic = topic.strip()
    if len(topic) > TOPIC_MAX_CHARS:
        problem = f"is longer than {TOPIC_MAX_CHARS} characters; pass a segment's id or a keyword"
        raise ArgumentError(argument="topic", problem=problem)
    try:
        (known,) = read_ids([topic])
    except ArgumentError:
        return topic or None
    return known.number if known.kind is Kind.SEGMENT else topic


# Cursors --------------------------------------------------------------------------------------------------------------


def _cursor(request: ListRequest, place: Place) -> str:
    text = json.dumps([_mark(request), place.kind, place.after])
    return base64.urlsafe_b64encode(text.encode()).decode("ascii")


def _place(cursor: str, request: ListRequest) -> Place:
    try:
        if len(cursor) > CURSOR_MAX_CHARS:
            raise ValueError  # noqa: TRY301
        mark, kind, after = json.loads(base64.b64decode(cursor.encode("ascii"), altchars=b"-_", validate=True))
        place = Place(Kind(kind), tuple(after) if isinstance(after, list) else after)
    except (ValueError, TypeError, RecursionError, binascii.Error) as error:
        problem = (
            "is not valid; pass 'next_cursor' of the previous result, or leave out 'cursor' to start at the beginning"
        )
        raise ArgumentError(argument="cursor", problem=problem) from error
    is_fitting = _has_type(after, place.kind, request) and place.kind in request.kinds
    if mark != _mark(request) or not is_fitting:
        problem = (
            "was returned for different arguments; pass the same arguments as in the previous call, "
            "or leave out 'cursor' to start at the beginning"
        )
        raise ArgumentError(argument="cursor", problem=problem)
    return place


def _has_type(after: object, kind: Kind, request: ListRequest) -> bool:
    if kind is Kind.TRAIT:
        return type(after) is str
    numbers = after if request.is_by_time and isinstance(after, list) else [after]
    return len(numbers) == 1 + request.is_by_time and all(
        type(number) is int and abs(number) <= GREATEST_NUMBER for number in numbers
    )


def _mark(request: ListRequest) -> int:
    """Return the checksum of a request. A cursor contains it, so that a cursor of another request is rejected."""
    further = (request.chain, request.about, request.source, request.words, request.is_by_time)
    return zlib.crc32(f"{request!r}{further if any(further) else ''}".encode())
