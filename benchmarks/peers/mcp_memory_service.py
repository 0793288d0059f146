"""mcp-memory-service: ``memory_store`` and ``memory_search`` over MCP, with its SQLite store and hybrid search.

Documentation: ``memory server``; the extra ``sqlite`` with ``MCP_MEMORY_USE_ONNX`` needs no PyTorch. A conversation's
id lets it keep similar memories; the mode ``hybrid`` adds keyword search.
"""

# /// script
# requires-python = ">=3.11"
# dependencies = ["mcp-memory-service[sqlite]>=12.4,<13"]
#
# [tool.peer]
# title = "mcp-memory-service, hybrid"
# packages = ["mcp-memory-service", "mcp", "sqlite-vec"]
# weights = "int8"
# model-folder = ".cache/mcp_memory/onnx_models/all-MiniLM-L6-v2/onnx"
# sqlite-extensions = true
# command = ["{python}", "{programs}/memory", "server"]
# env = { MCP_MEMORY_USE_ONNX = "1", MCP_MEMORY_BASE_DIR = "{data}", MCP_MEMORY_SQLITE_PATH = "{data}/memory.db" }
# ///

import re

from benchmarks.datasets import Page
from benchmarks.peers.driving import Answer, Driver, Ranking, called
from benchmarks.pipe import Pipe

TAGS = re.compile(r"^   Created: \S+ \[(.+)\]$", re.MULTILINE)


class Client(Driver):
    """The client of a running server."""

    def __init__(self, pipe: Pipe) -> None:
        super().__init__(pipe)
        self._names: dict[str, str] = {}

    async def add(self, page: Page) -> float:
        """Store a page as one memory; its tag is its id, which the server writes in lower case."""
        self._names[page.page_id.lower()] = page.page_id
        kept = {"tags": [page.page_id], "timestamp": page.timestamp.isoformat()}
        given = {"content": page.text, "conversation_id": "conversation", "metadata": kept}
        return (await called(self.pipe, "memory_store", **given)).took_s

    async def settle(self) -> None:
        """Do nothing: a memory is stored when ``memory_store`` returns."""

    async def ask(self, question: str) -> Answer:
        """Search with the default limit."""
        reply = await called(self.pipe, "memory_search", query=question, mode="hybrid")
        return Answer(reply.took_s, reply.text)

    async def rank(self, question: str, limit: int) -> Ranking:
        """Search with a limit."""
        reply = await called(self.pipe, "memory_search", query=question, mode="hybrid", limit=limit)
        tags = [tag for line in TAGS.findall(reply.text) for tag in line.split(", ")]
        # It adds tags of its own.
        return Ranking([self._names[tag] for tag in dict.fromkeys(tags) if tag in self._names])
