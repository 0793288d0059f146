"""A process with little more than the bundled model: it embeds texts from stdin and prints its RAM.

Stdin is a JSON list of texts; the last one is embedded as a page.
"""

import asyncio
import json
import sys

import psutil

from memoryos_mcp.embedding import Passage
from memoryos_mcp.embedding.bundled import BundledEmbedder


async def _embed(texts: list[str], page: str) -> None:
    embedder = BundledEmbedder()
    await embedder.embed(texts)
    await embedder.embed_pages([Passage(page, "")])
    sys.stdout.write(f"{psutil.Process().memory_info().rss}\n")
    await embedder.aclose()


if __name__ == "__main__":
    *texts, page = json.load(sys.stdin)
    asyncio.run(_embed(texts, page))
