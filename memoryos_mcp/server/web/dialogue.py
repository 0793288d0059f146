"""The views of one page of dialogue and of one chain of pages."""

import asyncio

from starlette.responses import Response

from memoryos_mcp.errors import ArgumentError
from memoryos_mcp.model.ids import Kind, numbered_id
from memoryos_mcp.model.pages import Source, Tier
from memoryos_mcp.model.views import ChainView, PageView, SegmentView
from memoryos_mcp.retrieval.fitting import TOKENS_AT_MOST
from memoryos_mcp.server.web.visits import Visit, get

# A longer text is shown in part until the reader asks for all of it. In HTML, it can be five times as long.
TEXT_TOKENS = 8_000
NOTES_CHARS = 4_000
CHAIN_PAGES = 20
SOURCES = {
    Source.CONVERSATION: "a conversation",
    Source.TOOL: "the result of a tool",
    Source.WEB: "a web page",
    Source.DOCUMENT: "a document",
}
TIERS = {
    Tier.SHORT_TERM: "short-term: one of the newest pages",
    Tier.BACKLOG: "waits to be sorted into a topic",
    Tier.MID_TERM: "mid-term: sorted into a topic",
}


async def page(visit: Visit) -> Response:
    """Show a page of dialogue: its text, its topic and chain, and the facts and traits learned from it."""
    is_whole = bool(visit.asked("whole"))
    try:
        [view] = await visit.engine.look(
            [visit.request.path_params["id"]], max_tokens=TOKENS_AT_MOST if is_whole else TEXT_TOKENS
        )
        if not isinstance(view, PageView):
            return _gone(visit, "page")
        learned, topic = await asyncio.gather(visit.engine.learned_from(view.page.page_id), _topic(visit, view))
    except ArgumentError:
        return _gone(visit, "page")
    return visit.page(
        "page.html",
        view=view,
        page=view.page,
        day=view.page.occurred_at.astimezone(visit.memories.settings.zone).date(),
        topic=topic,
        learned=learned,
        source=SOURCES[view.page.source],
        tier=TIERS[view.page.tier],
        notes_chars=None if is_whole else NOTES_CHARS,
        now=visit.memories.now(),
    )


async def chain(visit: Visit) -> Response:
    """Show a chain: its summary, and its pages from the newest to the oldest."""
    try:
        [view] = await visit.engine.look([visit.request.path_params["id"]])
        if not isinstance(view, ChainView):
            return _gone(visit, "chain")
        part = await visit.engine.listed(chain=view.chain, cursor=visit.asked("cursor"), limit=CHAIN_PAGES)
        ids = [entry.id for entry in part.entries]
        pages = await visit.engine.look(ids, max_tokens=TEXT_TOKENS) if ids else []
    except ArgumentError as error:
        if error.argument != "cursor":
            return _gone(visit, "chain")
        problem = "This list cannot be continued from here. Open the chain again."
        return visit.page("problem.html", 400, title="That is not possible", problem=problem)
    return visit.page("chain.html", view=view, pages=pages, cursor=part.cursor)


async def _topic(visit: Visit, view: PageView) -> SegmentView | None:
    if view.page.segment is None:
        return None
    [topic] = await visit.engine.look([numbered_id(Kind.SEGMENT, view.page.segment)])
    return topic if isinstance(topic, SegmentView) else None


def _gone(visit: Visit, what: str) -> Response:
    problem = f"This {what} does not exist. It may have been forgotten. Choose a view from the menu."
    return visit.page("problem.html", 404, title="Not found", problem=problem)


ADDRESSES = (get("/pages/{id}", page), get("/chains/{id}", chain))
