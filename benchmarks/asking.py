"""Asking: a conversation fed to a running server and asked about, through the MCP tools as any client would."""

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from rich.progress import Progress, TaskID

from benchmarks.ablation import RERANKED_PAGES, Scored
from benchmarks.client import MemoryServer
from benchmarks.datasets import Conversation, Page
from benchmarks.metrics import CUTS

MAX_RESULTS = max(CUTS)
# Enough that no page is cut or left out: what is measured is the ranking, not the budget.
MAX_TOKENS = 200_000
EXPLAINED_MAX_TOKENS = 1_000_000


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server found. Pages have the data set's names.

    Attributes:
        pages: Best first.
        short_term: The pages that it hands over apart from those it found.
        search_mode: What it compared, in its own word.
        ranking: Its name of its ranking.
        took_s: From the call to the parsed answer, as the client sees it.
    """

    pages: list[str]
    short_term: list[str]
    search_mode: str
    ranking: str
    took_s: float


@dataclass(frozen=True, slots=True)
class Explained:
    """What a server found, with its reasons. Pages have the data set's names.

    Attributes:
        pages: Best first.
        short_term: The pages that it hands over apart from those it found.
    """

    pages: list[Scored]
    short_term: list[str]


@dataclass(frozen=True, slots=True)
class FedServer:
    """A server that knows a conversation. Make it with `feed`.

    Attributes:
        server: The running server.
        names: The server's names of the pages as keys, the data set's as values.
        add_s: What each ``add_memory`` took, seconds.
        settled_s: From the first page to no page waiting.
    """

    server: MemoryServer
    names: Mapping[str, str]
    add_s: Sequence[float]
    settled_s: float

    async def ask(self, question: str) -> Answer:
        """Return what the server finds.

        Raises:
            ServerError: It refused.
        """
        reply = await self.server.call(
            "retrieve_memory", query=question, max_results=MAX_RESULTS, max_tokens=MAX_TOKENS
        )
        content = reply.content
        return Answer(
            pages=self._of(content["retrieved_pages"]),
            short_term=self._of(content["short_term_memory"]),
            search_mode=content["search_mode"],
            ranking=content["ranking"],
            took_s=reply.took_s,
        )

    async def explain(self, question: str) -> Explained:
        """Return the best pages, as many as can be had, with what each signal adds to their scores.

        Raises:
            ServerError: It refused.
        """
        reply = await self.server.call(
            "retrieve_memory",
            query=question,
            max_results=RERANKED_PAGES,
            max_tokens=EXPLAINED_MAX_TOKENS,
            explain=True,
        )
        found = reply.content["retrieved_pages"]
        return Explained(
            pages=[
                Scored(page_id=name, score=page["score"], shares=page["signals"])
                for name, page in zip(self._of(found), found, strict=True)
            ],
            short_term=self._of(reply.content["short_term_memory"]),
        )

    def _of(self, entries: Sequence[dict[str, Any]]) -> list[str]:
        return [self.names[entry["page_id"]] for entry in entries]


async def feed(server: MemoryServer, conversation: Conversation, progress: Progress, title: str) -> FedServer:
    """Add every page, wait until none waits for anything, and return the server.

    Args:
        server: Running, with an empty memory.
        conversation: What to add.
        progress: Shows how far it is.
        title: What it shows beside.

    Raises:
        ServerError: The server refused a page, or its background work does not end.
    """
    names: dict[str, str] = {}
    add_s = []
    began = time.perf_counter()
    async with shown(progress, f"{title}: adding", len(conversation.pages)) as bar:
        for page in conversation.pages:
            reply = await server.call("add_memory", **_arguments(page))
            add_s.append(reply.took_s)
            names[reply.content["page_id"]] = page.page_id
            progress.advance(bar)
    async with shown(progress, f"{title}: settling", len(conversation.pages)) as bar:
        await server.settle(lambda waiting: progress.update(bar, completed=max(0, len(names) - waiting)))
    return FedServer(server, names, add_s, settled_s=time.perf_counter() - began)


@asynccontextmanager
async def shown(progress: Progress, title: str, total: int) -> AsyncIterator[TaskID]:
    """Show a bar of ``total`` steps while the block runs."""
    bar = progress.add_task(title, total=total)
    try:
        yield bar
    finally:
        progress.remove_task(bar)


def _arguments(page: Page) -> dict[str, str]:
    return {
        "user_input": page.user_input,
        "agent_response": page.agent_response,
        "timestamp": page.timestamp.isoformat(),
        "idempotency_key": page.page_id,
    }
