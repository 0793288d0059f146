"""Computes one vector for each page: the mean of the vectors of the page's windows (parts of its text)."""

from collections.abc import Sequence
from dataclasses import replace

from memoryos_mcp.model.pages import Page
from memoryos_mcp.model.segments import Vector, mean_vector
from memoryos_mcp.storage.interface import Store


async def with_vectors(store: Store, pages: Sequence[Page]) -> list[Page]:
    """Return the pages with their vectors, in the same order. The vector of an unembedded page is None."""
    block = await store.page_vectors([page.seq for page in pages])
    windows: dict[int, list[Vector]] = {}
    for seq, vector in zip(block.seqs.tolist(), block.vectors, strict=True):
        windows.setdefault(seq, []).append(vector)
    return [replace(page, vector=mean_vector(windows.get(page.seq, ()))) for page in pages]
