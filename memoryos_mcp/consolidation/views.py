"""Pages as an analyst sees them: with the mean of their windows' vectors."""

from collections.abc import Sequence

from memoryos_mcp.llm.analysis import PageView
from memoryos_mcp.model.pages import Page
from memoryos_mcp.model.segments import Vector, mean_vector
from memoryos_mcp.storage.interface import Store


async def page_views(store: Store, pages: Sequence[Page]) -> list[PageView]:
    """Return the pages with their vectors, in the same order."""
    block = await store.page_vectors([page.seq for page in pages])
    windows: dict[int, list[Vector]] = {}
    for seq, vector in zip(block.seqs.tolist(), block.vectors, strict=True):
        windows.setdefault(seq, []).append(vector)
    return [PageView(page=page, vector=mean_vector(windows.get(page.seq, ()))) for page in pages]
