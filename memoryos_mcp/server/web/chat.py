"""The view Chat: a playground in which the LLM answers with the help of the memory."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator
from contextlib import aclosing
from dataclasses import asdict, dataclass
from typing import Any

from starlette.responses import Response, StreamingResponse

from memoryos_mcp.engine import responding
from memoryos_mcp.errors import ArgumentError, MemoryOSError
from memoryos_mcp.model.knowledge import About
from memoryos_mcp.model.pages import page_marks
from memoryos_mcp.model.profile import Trait
from memoryos_mcp.retrieval import rendering
from memoryos_mcp.retrieval.recall import Recall, RecalledFact, RecalledPage
from memoryos_mcp.server.web.visits import Visit, fact_path, get, memory_path, post

Parts = AsyncGenerator[Recall | str | responding.Response, None]


@dataclass(frozen=True, slots=True)
class Item:
    """A memory in a prompt, as the web page shows it.

    Attributes:
        path: The address of the web page that shows the memory.
        link: The first part of the memory's text, which is a link to ``path``.
        text: The other part of the memory's text.
        marks: Warnings about the memory, such as "gives orders".
    """

    path: str
    link: str
    text: str
    marks: list[str]


@dataclass(frozen=True, slots=True)
class Used:
    """The memories in a prompt.

    Attributes:
        summary: A sentence about the size of the memories, and about memories that were left out.
        groups: The title and the memories of each kind.
    """

    summary: str
    groups: list[tuple[str, list[Item]]]


async def chat(visit: Visit) -> Response:
    """Show the form for a message."""
    return _page(visit)


async def answer(visit: Visit) -> Response:
    """Answer a message, and show the whole answer."""
    query, pieces, used = visit.given("query"), list[str](), None
    whole: responding.Response | None = None
    try:
        async with aclosing(_parts(visit)) as parts:
            async for part in parts:
                match part:
                    case str():
                        pieces.append(part)
                    case Recall():
                        used = _used(part)
                    case responding.Response():
                        whole = part
    except MemoryOSError as error:
        return _page(visit, 400 if isinstance(error, ArgumentError) else 502, query=query, problem=str(error))
    shown = {"question": query, "answer": "".join(pieces).strip(), "used": used, "end": _end(whole)}
    return _page(visit, exchange=shown)


async def stream(visit: Visit) -> Response:
    """Send an answer to the script in the browser while the LLM writes the answer. Each line is a JSON object."""
    return StreamingResponse(_lines(visit), media_type="application/x-ndjson")


async def _lines(visit: Visit) -> AsyncIterator[str]:
    """Yield a line with the memories in the prompt, lines with pieces of the answer, and a last line.

    The last line says whether the exchange was remembered (see `_end`) or, after an error, what the problem is.
    """
    whole: responding.Response | None = None
    try:
        async with aclosing(_parts(visit)) as parts:
            async for part in parts:
                match part:
                    case str():
                        yield _line(piece=part)
                    case Recall():
                        yield _line(used=asdict(_used(part)))
                    case responding.Response():
                        whole = part
        yield _line(end=_end(whole))
    except MemoryOSError as error:
        yield _line(problem=str(error))


def _line(**values: Any) -> str:
    return json.dumps(values) + "\n"


async def _parts(visit: Visit) -> Parts:
    """Yield the parts of the answer; see `MemoryEngine.respond_in_parts`."""
    is_remembered = bool(visit.given("remember"))
    if is_remembered and not visit.may_write:
        raise ArgumentError(
            argument="remember", problem="is not possible, because you may only read this memory; ask without it"
        )
    async with aclosing(visit.engine.respond_in_parts(visit.given("query"), remember=is_remembered)) as parts:
        async for part in parts:
            yield part


def _page(visit: Visit, status: int = 200, **values: Any) -> Response:
    shown = {"query": "", "problem": "", "exchange": None, "is_remembered": bool(visit.given("remember"))} | values
    return visit.page("chat.html", status, has_llm=visit.engine.has_llm, **shown)


def _end(whole: responding.Response | None) -> dict[str, str]:
    """Return whether the exchange was stored, as ``text``, and the address of the stored page or "", as ``path``."""
    if whole is None or whole.page_id is None:
        return {"text": "Not remembered.", "path": ""}
    return {"text": "Remembered.", "path": memory_path(whole.page_id)}


def _used(recall: Recall) -> Used:
    found = {
        "What you want in every answer": _facts(recall.wishes),
        "Profile": map(_trait_item, recall.traits),
        "Known about you": _facts(recall.user_facts),
        rendering.KNOWN[About.ASSISTANT]: _facts(recall.assistant_facts),
        rendering.FOUND: map(_page_item, recall.pages),
        rendering.NEWEST: map(_page_item, recall.short_term),
    }
    groups = [(title, items) for title, each in found.items() if (items := list(each))]
    ways = "by meaning and keywords" if recall.is_semantic else "by keywords only"
    summary = f"About {recall.tokens:,} tokens, found {ways}." if groups else rendering.NOTHING
    if recall.left_out is not None:
        summary += f" {rendering.left_out_text(recall.left_out)}."
    return Used(summary, groups)


def _facts(facts: Iterable[RecalledFact]) -> Iterator[Item]:
    for each in facts:
        yield Item(fact_path(each.fact), each.fact.text, rendering.period(each.fact), [])


def _trait_item(trait: Trait) -> Item:
    return Item(memory_path(f"trait:{trait.dimension}"), trait.dimension, f"{trait.level} - {trait.reason}", [])


def _page_item(recalled: RecalledPage) -> Item:
    page, quote = recalled.page, recalled.quote
    text = "\n".join(side for side in (quote.user_input, quote.agent_response) if side)
    marks = page_marks(page, is_excerpt=quote.is_excerpt)
    return Item(memory_path(page.page_id), f"{page.occurred_at:%Y-%m-%d %H:%M}", text, marks)


ADDRESSES = (
    get("/chat", chat),
    # A person who may only read may ask, if nothing is remembered.
    post("/chat", answer, writes=False),
    post("/chat/stream", stream, writes=False),
)
