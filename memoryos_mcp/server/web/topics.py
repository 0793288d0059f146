"""The view Topics: a map of all topics, and the details of one topic."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response

from memoryos_mcp.errors import ArgumentError
from memoryos_mcp.model.heat import recency
from memoryos_mcp.model.ids import Kind, numbered_id
from memoryos_mcp.model.views import State, TitledSegment, TopicView
from memoryos_mcp.server.web import charts
from memoryos_mcp.server.web.visits import Visit, get

TOPICS_AT_ONCE = 100
ARCHIVED_AT_ONCE = 50
# Size of the map, and its most topics: on a wide screen, and on a phone.
WIDE, NARROW = (1140, 460, 80), (360, 520, 30)
CHART_WIDTHS = {"wide": 640, "narrow": 330}
PAGES_AT_ONCE = 20
FACTS = 10
HEATS = 14

_ORDERS: Mapping[str, tuple[str, Callable[[TitledSegment], Any]]] = {
    "heat": ("Heat", lambda each: -each.heat),
    "pages": ("Pages", lambda each: -each.segment.page_count),
    "visits": ("Visits", lambda each: -each.segment.n_visit),
    "title": ("Topic", lambda each: each.title.casefold()),
}


async def topics(visit: Visit) -> Response:
    """Show a map of the topics, and a table of them."""
    if visit.asked("state") == State.ARCHIVED:
        return await _archived(visit)
    order, start = visit.asked("sort", "heat"), _start(visit.asked("start", "0"))
    if order not in _ORDERS:
        raise ArgumentError(argument="sort", problem=f"is not valid; use one of {', '.join(_ORDERS)}")
    found, archived = await asyncio.gather(
        visit.engine.segments(), visit.engine.listed(tier="segments", state=State.ARCHIVED, limit=1)
    )
    threshold = visit.memories.settings.mid_term_heat_threshold
    ordered = sorted(found, key=_ORDERS[order][1])
    largest = sorted(found, key=lambda each: -each.segment.page_count)
    return visit.page(
        "topics.html",
        maps={name: _map(largest, threshold, *size) for name, size in (("wide", WIDE), ("narrow", NARROW))},
        topics=ordered[start : start + TOPICS_AT_ONCE],
        total=len(found),
        start=start,
        next_start=start + TOPICS_AT_ONCE if start + TOPICS_AT_ONCE < len(found) else None,
        order=order,
        orders={name: title for name, (title, _) in _ORDERS.items()},
        has_archived=bool(archived.entries),
        threshold=threshold,
        topic_id=_id,
        level=lambda heat: charts.level(heat, threshold),
    )


async def topic(visit: Visit) -> Response:
    """Show one topic: why it is hot, its heat over time, its chains, pages and facts."""
    segment_id, engine, cursor = visit.request.path_params["id"], visit.engine, visit.asked("cursor")
    found = await engine.topic(segment_id)
    pages = await engine.listed(topic=segment_id, is_by_time=True, cursor=cursor, limit=PAGES_AT_ONCE)
    shown: dict[str, Any] = {
        "topic": found,
        "segment_id": _id(found.segment.segment),
        "entries": pages.entries,
        "older": None if pages.cursor is None else urlencode({"cursor": pages.cursor}),
    }
    if visit.is_part:
        return visit.page("topic_pages.html", **shown)
    facts = await engine.listed(tier="knowledge", topic=segment_id, limit=FACTS)
    return visit.page(
        "topic.html",
        **shown,
        cursor=cursor,
        facts=facts.entries,
        has_more_facts=facts.cursor is not None,
        charts={
            name: charts.heat_chart(found.history, found.future, found.threshold, width=width)
            for name, width in CHART_WIDTHS.items()
        },
        heats=charts.at_intervals(found.history, HEATS),
        parts=_parts(found),
        highest=max(found.history, key=lambda point: point.heat),
        chain_id=lambda number: numbered_id(Kind.CHAIN, number),
    )


async def _archived(visit: Visit) -> Response:
    part = await visit.engine.listed(
        tier="segments", state=State.ARCHIVED, cursor=visit.asked("cursor"), limit=ARCHIVED_AT_ONCE
    )
    older = None if part.cursor is None else urlencode({"state": State.ARCHIVED, "cursor": part.cursor})
    return visit.page("topics_archived.html", entries=part.entries, older=older)


def _map(largest: list[TitledSegment], threshold: float, width: int, height: int, at_most: int) -> dict[str, Any]:
    """Return the tiles of the largest topics, each with its topic, its colour and the lines of its title."""
    mapped = [each for each in largest[:at_most] if each.segment.page_count]
    tiles = charts.treemap([each.segment.page_count for each in mapped], width, height) if mapped else []
    return {
        "width": width,
        "height": height,
        "tiles": [
            (tile, each, charts.level(each.heat, threshold), tile.lines(each.title))
            for tile, each in zip(tiles, mapped, strict=True)
        ],
    }


def _parts(found: TopicView) -> list[tuple[str, str, float, float]]:
    """Return the parts of a topic's heat: the name, value and weight of each part, and value times weight."""
    segment, weights = found.segment, found.weights
    recent = recency(segment.last_visit, found.now, weights.mu_s)
    return [
        ("Searches", f"{segment.n_visit:,}", weights.alpha, weights.alpha * segment.n_visit),
        ("New pages", f"{segment.l_interaction:,}", weights.beta, weights.beta * segment.l_interaction),
        ("Recency", f"{recent:.2f}", weights.gamma, weights.gamma * recent),
    ]


def _id(number: int) -> str:
    return numbered_id(Kind.SEGMENT, number)


def _start(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 9):
        raise ArgumentError(argument="start", problem="is not valid; use a number such as 100")
    return int(text)


ADDRESSES = (get("/topics", topics), get("/topics/{id}", topic))
