"""basic-memory: ``write_note`` and ``search_notes`` over MCP (``basic-memory mcp``); hybrid search is its default.

Its least similarity suits its own default model; with MiniLM, more is found without it.
"""

# /// script
# requires-python = ">=3.12"
# dependencies = ["basic-memory>=0.24,<0.25"]
# [tool.peer]
# title = "basic-memory, hybrid"
# packages = ["basic-memory", "mcp", "fastembed", "sqlite-vec"]
# weights = "int8"
# model-folder = "fastembed_cache/fast-all-MiniLM-L6-v2"
# sqlite-extensions = true
# command = ["{python}", "{programs}/basic-memory", "mcp"]
# [tool.peer.env]
# BASIC_MEMORY_HOME = "{data}/notes"
# BASIC_MEMORY_CONFIG_DIR = "{data}/config"
# BASIC_MEMORY_SEMANTIC_EMBEDDING_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
# BASIC_MEMORY_SEMANTIC_MIN_SIMILARITY = "0"
# ///

import asyncio

from benchmarks.datasets import Page
from benchmarks.figures import POLL_S
from benchmarks.peers.driving import Answer, Driver, Ranking, called


class Client(Driver):
    """The client of a running server."""

    _last = ""

    async def add(self, page: Page) -> float:
        """Write a page as one note; its title is its id."""
        self._last = page.text
        return (await called(self.pipe, "write_note", title=page.page_id, directory="pages", content=page.text)).took_s

    async def settle(self) -> None:
        """Wait until the last note is found by its meaning, since vectors are made in the background."""
        while not await self._titles(self._last, 1, search_type="vector"):
            await asyncio.sleep(POLL_S)

    async def ask(self, question: str) -> Answer:
        """Search with the question alone."""
        reply = await called(self.pipe, "search_notes", query=question)
        return Answer(reply.took_s, reply.text)

    async def rank(self, question: str, limit: int) -> Ranking:
        """Search with a page size."""
        return Ranking(await self._titles(question, limit))

    async def _titles(self, query: str, limit: int, **options: str) -> list[str]:
        options |= {"query": query, "output_format": "json"}
        reply = await called(self.pipe, "search_notes", page_size=limit, **options)
        return [note["title"] for note in reply.content["structuredContent"]["result"]["results"]]
