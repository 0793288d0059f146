"""Asking: adds a conversation to a running server and asks questions about it, through the MCP tools."""

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
# Large enough for all pages, because the ranking is measured and not the budget.
MAX_TOKENS = 200_000
EXPLAINED_MAX_TOKENS = 1_000_000


@dataclass(frozen=True, slots=True)
class Answer:
    """A server's answer; pages have the names of the data set.

    Attributes:
        pages: Best first.
        short_term: The pages that it hands over apart from those it found.
        wishes: The pages that state the wishes in the answer. An answer contains all wishes of the user.
        search_mode: The search mode that the server reports.
        ranking: The name of its ranking.
        took_s: Time from the call to the parsed answer, at the client.
    """

    pages: list[str]
    short_term: list[str]
    wishes: list[str]
    search_mode: str
    ranking: str
    took_s: float


@dataclass(frozen=True, slots=True)
class Explained:
    """A server's answer with scores; pages have the names of the data set.

    Attributes:
        pages: Best first.
        short_term: The pages that it hands over apart from those it found.
    """

    pages: list[Scored]
    short_term: list[str]


@dataclass(frozen=True, slots=True)
class FedServer:
    """A server that contains a conversation. Create it with `feed`.

    Attributes:
        server: The running server.
        names: Maps the server's page ids to those of the data set.
        add_s: Duration of each ``add_memory``, seconds.
        settled_s: Time from the first page until no page is pending, seconds.
    """

    server: MemoryServer
    names: Mapping[str, str]
    add_s: Sequence[float]
    settled_s: float

    async def ask(self, question: str) -> Answer:
        """Return the server's answer to a question.

        Raises:
            ServerError: It refused.
        """
        reply = await self.server.call(
            "retrieve_memory", query=question, max_results=MAX_RESULTS, max_tokens=MAX_TOKENS
        )
        content = reply.content
        wishes = [fact for fact in content["retrieved_user_knowledge"] if fact["kind"] == "wish"]
        return Answer(
            pages=self._of(content["retrieved_pages"]),
            short_term=self._of(content["short_term_memory"]),
            wishes=[self.names[page] for fact in wishes for page in fact["evidence"]],
            search_mode=content["search_mode"],
            ranking=content["ranking"],
            took_s=reply.took_s,
        )

    async def explain(self, question: str) -> Explained:
        """Return as many pages as possible, best first, with the contribution of each signal to their scores.

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
    """Add every page, wait until none is pending, and return the server.

    Args:
        server: A running server with an empty memory.
        conversation: The conversation to add.
        progress: Shows the progress.
        title: Title of the progress bar.

    Raises:
        ServerError: The server rejected a page, or its background work does not end.
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
