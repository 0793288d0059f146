"""Stand-ins for what must be forced: time, faults and latency. Each implements the protocol of what it stands for."""

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from memoryos_mcp.embedding import EmbeddedQuery, EmbeddingModel, Passage
from memoryos_mcp.errors import ModelError
from memoryos_mcp.knowledge import CorrectedFact, Fact, Lessons
from memoryos_mcp.llm import Organised, PageView, Run, Surroundings, Topic
from memoryos_mcp.llm.extractive import ExtractiveAnalyst
from memoryos_mcp.pages import Page, Window, page_text
from memoryos_mcp.profile import Trait
from memoryos_mcp.segments import Digest, Segment
from memoryos_mcp.terms import stems

START = datetime(2026, 5, 8, 12, 0, tzinfo=UTC)
DIMENSION = 512


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now

    def move(self, **by: float) -> None:
        self.now += timedelta(**by)


class WordEmbedder:
    """Texts with common words are near one another. Can be told to fail."""

    def __init__(self) -> None:
        self.failure: ModelError | None = None
        self.model = EmbeddingModel("words")
        self.identity = f"words:{DIMENSION}:1"
        self.has_tokens = False
        self.dimension = DIMENSION
        self.is_loaded = False

    async def load(self) -> None:
        if self.failure is not None:
            raise self.failure
        self.is_loaded = True

    async def embed_query(self, query: str) -> EmbeddedQuery:
        await self.load()
        return EmbeddedQuery(self._vector(query), np.zeros((0, DIMENSION), dtype=np.float32), [])

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        await self.load()
        return np.stack([self._vector(text) for text in texts])

    async def embed_pages(self, passages: Sequence[Passage]) -> list[list[Window]]:
        await self.load()
        texts = [page_text(passage.user_input, passage.agent_response) for passage in passages]
        return [[Window(0, len(text), self._vector(text))] for text in texts]

    async def aclose(self) -> None:
        self.is_loaded = False

    def _vector(self, text: str) -> NDArray[np.float32]:
        vector = np.full(DIMENSION, 1e-3, dtype=np.float32)
        for stem in stems(text):
            vector[zlib.crc32(stem.encode()) % DIMENSION] += 1
        return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)


class ScriptedAnalyst:
    """The extractive analyst, unless it is told to fail, to answer nonsense or to wait."""

    name = "scripted"

    def __init__(self) -> None:
        self.failure: Exception | None = None
        self.gate: asyncio.Event | None = None
        self.organised: list[list[int]] = []
        self.learned: list[list[int]] = []
        self.most_at_once = 0
        self._at_once = 0
        self._real = ExtractiveAnalyst()

    async def organise(self, batch: Sequence[PageView], around: Surroundings) -> Organised:
        self.organised.append([view.page.seq for view in batch])
        await self._pass()
        return await self._real.organise(batch, around)

    async def joined_digest(
        self, known: Segment | None, topics: Sequence[Topic], pages: Callable[[], Awaitable[Sequence[PageView]]]
    ) -> Digest:
        return await self._real.joined_digest(known, topics, pages)

    async def joined_summary(self, earlier: str, run: Run, pages: Callable[[], Awaitable[Sequence[PageView]]]) -> str:
        return await self._real.joined_summary(earlier, run, pages)

    def portion(self, pages: Sequence[Page]) -> int:
        return self._real.portion(pages)

    async def learn(
        self,
        pages: Sequence[PageView],
        traits: Sequence[Trait],
        facts: Sequence[Fact],
        corrected: Sequence[CorrectedFact] = (),
    ) -> Lessons:
        self.learned.append([view.page.seq for view in pages])
        await self._pass()
        return await self._real.learn(pages, traits, facts, corrected)

    async def _pass(self) -> None:
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            if self.gate is not None:
                await self.gate.wait()
            if self.failure is not None:
                raise self.failure
        finally:
            self._at_once -= 1
