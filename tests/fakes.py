"""Fakes with which tests control time, faults and latency. Each implements the protocol of the real object."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta

from benchmarks import words
from memoryos_mcp.errors import ModelError
from memoryos_mcp.llm.analysis import Organised, Run, Surroundings, Topic
from memoryos_mcp.llm.extractive import ExtractiveAnalyst
from memoryos_mcp.model.knowledge import Lessons
from memoryos_mcp.model.pages import Page
from memoryos_mcp.model.segments import Digest, Segment

START = datetime(2026, 5, 8, 12, 0, tzinfo=UTC)


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now

    def move(self, **by: float) -> None:
        self.now += timedelta(**by)


class Seconds:
    """A clock of seconds that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class WordEmbedder(words.WordEmbedder):
    """An embedder whose vectors follow from words, and which fails on request."""

    def __init__(self) -> None:
        super().__init__()
        self.failure: ModelError | None = None

    async def load(self) -> None:
        if self.failure is not None:
            raise self.failure
        await super().load()


class ScriptedAnalyst:
    """The extractive analyst, which on request fails, returns nonsense or waits."""

    name = "scripted"

    def __init__(self) -> None:
        self.failure: Exception | None = None
        self.gate: asyncio.Event | None = None
        self.organised: list[list[int]] = []
        self.learned: list[list[int]] = []
        self.most_organised_at_once = 0
        self._organising = 0
        self._real = ExtractiveAnalyst()

    async def organise(self, batch: Sequence[Page], around: Surroundings) -> Organised:
        self.organised.append([view.seq for view in batch])
        self._organising += 1
        self.most_organised_at_once = max(self.most_organised_at_once, self._organising)
        try:
            await self._pass()
            return await self._real.organise(batch, around)
        finally:
            self._organising -= 1

    async def joined_digest(
        self, known: Segment | None, topics: Sequence[Topic], pages: Callable[[], Awaitable[Sequence[Page]]]
    ) -> Digest:
        return await self._real.joined_digest(known, topics, pages)

    async def joined_summary(self, earlier: str, run: Run, pages: Callable[[], Awaitable[Sequence[Page]]]) -> str:
        return await self._real.joined_summary(earlier, run, pages)

    def portion(self, pages: Sequence[Page]) -> int:
        return self._real.portion(pages)

    async def learn(self, pages: Sequence[Page], around: Surroundings) -> Lessons:
        self.learned.append([view.seq for view in pages])
        await self._pass()
        return await self._real.learn(pages, around)

    async def _pass(self) -> None:
        if self.gate is not None:
            await self.gate.wait()
        if self.failure is not None:
            raise self.failure
