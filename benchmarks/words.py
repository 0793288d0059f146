"""An embedder that counts words: its vectors are the same on every machine."""

import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memoryos_mcp.embedding import EmbeddedQuery, EmbeddingModel, Passage
from memoryos_mcp.model.pages import Window, page_text
from memoryos_mcp.text.terms import stems

DIMENSION = 512
# With so few bits, sums of products are exact, so order and processor do not matter.
STEPS = 1024


class WordEmbedder:
    """An embedder by which texts with common words are similar. Implements `memoryos_mcp.embedding.Embedder`."""

    def __init__(self) -> None:
        self.model = EmbeddingModel("words")
        self.identity = f"words:{DIMENSION}:1"
        self.has_tokens = False
        self.dimension = DIMENSION
        self.is_loaded = False

    async def load(self) -> None:
        """Do nothing."""
        self.is_loaded = True

    async def embed_query(self, query: str) -> EmbeddedQuery:
        """Return the vector of a query, without token vectors."""
        await self.load()
        return EmbeddedQuery(self._vector(query), np.zeros((0, DIMENSION), dtype=np.float32), [])

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a vector for each text, shape ``(texts, dimension)``."""
        await self.load()
        return np.stack([self._vector(text) for text in texts])

    async def embed_pages(self, passages: Sequence[Passage]) -> list[list[Window]]:
        """Return one window for each page."""
        await self.load()
        texts = [page_text(passage.user_input, passage.agent_response) for passage in passages]
        return [[Window(0, len(text), self._vector(text))] for text in texts]

    async def aclose(self) -> None:
        """Release nothing."""
        self.is_loaded = False

    def _vector(self, text: str) -> NDArray[np.float32]:
        """Return the counts of a text's stems at hashed positions, with about unit length."""
        vector = np.full(DIMENSION, 1 / STEPS, dtype=np.float32)
        for stem in stems(text):
            vector[zlib.crc32(stem.encode()) % DIMENSION] += 1
        return np.asarray(np.round(STEPS * vector / np.linalg.norm(vector)) / STEPS, dtype=np.float32)
