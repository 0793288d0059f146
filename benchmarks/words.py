"""Words: vectors of the words of a text, the same on every machine, for what must not turn on a model's rounding."""

import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memoryos_mcp.embedding import EmbeddedQuery, EmbeddingModel, Passage
from memoryos_mcp.model.pages import Window, page_text
from memoryos_mcp.text.terms import stems

DIMENSION = 512
# Of so coarse numbers every order of adding products gives the same sum, and so do all processors.
STEPS = 1024


class WordEmbedder:
    """Texts with common words are near one another. Implements `memoryos_mcp.embedding.Embedder`."""

    def __init__(self) -> None:
        self.model = EmbeddingModel("words")
        self.identity = f"words:{DIMENSION}:1"
        self.has_tokens = False
        self.dimension = DIMENSION
        self.is_loaded = False

    async def load(self) -> None:
        """There is nothing to load."""
        self.is_loaded = True

    async def embed_query(self, query: str) -> EmbeddedQuery:
        """Return the vector of a question, without token vectors."""
        await self.load()
        return EmbeddedQuery(self._vector(query), np.zeros((0, DIMENSION), dtype=np.float32), [])

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a vector for each text, of shape (texts, dimension)."""
        await self.load()
        return np.stack([self._vector(text) for text in texts])

    async def embed_pages(self, passages: Sequence[Passage]) -> list[list[Window]]:
        """Return one window for each page."""
        await self.load()
        texts = [page_text(passage.user_input, passage.agent_response) for passage in passages]
        return [[Window(0, len(text), self._vector(text))] for text in texts]

    async def aclose(self) -> None:
        """There is nothing to free."""
        self.is_loaded = False

    def _vector(self, text: str) -> NDArray[np.float32]:
        """Return the counts of a text's stems, each in a place of its own but for chance, at about unit length."""
        vector = np.full(DIMENSION, 1 / STEPS, dtype=np.float32)
        for stem in stems(text):
            vector[zlib.crc32(stem.encode()) % DIMENSION] += 1
        return np.asarray(np.round(STEPS * vector / np.linalg.norm(vector)) / STEPS, dtype=np.float32)
