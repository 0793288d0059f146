"""This server: ``add_memory`` and ``retrieve_memory`` over MCP, with its defaults."""

# /// script
# requires-python = ">=3.11"
# dependencies = ["."]
#
# [tool.peer]
# title = "this server"
# packages = ["memoryos-mcp-server"]
# command = ["{python}", "-m", "memoryos_mcp", "serve", "--data-storage-path", "{data}", "--log-level", "WARNING"]
# ///

import asyncio

from benchmarks.asking import MAX_TOKENS
from benchmarks.datasets import Page
from benchmarks.figures import POLL_S
from benchmarks.peers.driving import Answer, Driver, Ranking, called
from benchmarks.pipe import Pipe


class Client(Driver):
    """The client of a running server."""

    def __init__(self, pipe: Pipe) -> None:
        super().__init__(pipe)
        self._names: dict[str, str] = {}

    async def add(self, page: Page) -> float:
        """Add a page."""
        given = {"user_input": page.user_input, "agent_response": page.agent_response}
        reply = await self.pipe.call("add_memory", **given, timestamp=page.timestamp.isoformat())
        self._names[reply.content["page_id"]] = page.page_id
        return reply.took_s

    async def settle(self) -> None:
        """Wait until all pages have vectors; by keywords they are found at once."""
        while (await self.pipe.call("get_memory_stats")).content["unembedded_pages"]:
            await asyncio.sleep(POLL_S)

    async def ask(self, question: str) -> Answer:
        """Call ``retrieve_memory`` with the question alone."""
        reply = await called(self.pipe, "retrieve_memory", query=question)
        return Answer(reply.took_s, reply.text)

    async def rank(self, question: str, limit: int) -> Ranking:
        """Call ``retrieve_memory`` for more pages than its budget allows."""
        reply = await self.pipe.call("retrieve_memory", query=question, max_results=limit, max_tokens=MAX_TOKENS)
        found, newest = reply.content["retrieved_pages"], reply.content["short_term_memory"]
        return Ranking(*([self._names[page["page_id"]] for page in pages] for pages in (found, newest)))
