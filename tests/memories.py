"""Real memories for the tests of retrieval: a SQLite file, the bundled embedder, and a clock that stands still."""

import asyncio
import functools
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from mcp.client.client import Client
from mcp_types import CallToolResult

from memoryos_mcp.config import Settings
from memoryos_mcp.embedding import Passage, bundled
from memoryos_mcp.embedding.bundled import BundledEmbedder
from memoryos_mcp.engine.engine import MemoryEngine
from memoryos_mcp.engine.service import MemoryService
from memoryos_mcp.engine.tools.results import RetrieveMemoryResult
from memoryos_mcp.model.callers import Caller, Scope
from memoryos_mcp.model.pages import Window
from memoryos_mcp.model.stats import Stats
from memoryos_mcp.server.assembly import make_server
from tests.fakes import Clock

USER = "ada"
POLL_S = 0.01
# As a model that nobody has: then words answer alone.
NO_MODEL: dict[str, Any] = {"embedding_model_name": "none"}
# Nothing heats a segment but its pages, so that queries and the moment of a promotion change no ranking.
STEADY_HEAT = {"heat_alpha": 0.0, "mid_term_heat_threshold": 1e9}
# Nothing is filed before so many pages wait, and no silence is long enough.
UNFILED: dict[str, Any] = {"consolidation_batch_pages": 100, "consolidation_idle_s": 1e6}


# Loading takes longer than most of what is asked of the model, and changes nothing.
load_once = functools.cache(bundled._load)


class LentEmbedder(BundledEmbedder):
    """The bundled embedder, shared by services that would each close it. Can be told to wait before pages."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.gate.set()

    async def embed_pages(self, passages: Sequence[Passage]) -> list[list[Window]]:
        await self.gate.wait()
        return await super().embed_pages(passages)

    async def aclose(self) -> None:
        """Do nothing: it is only lent."""

    async def end(self) -> None:
        await super().aclose()


@dataclass(frozen=True, slots=True)
class Said:
    """A turn to add; without a time it is said now."""

    user_input: str
    agent_response: str = "I see."
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Memory:
    """One user's memory, and the service that it is part of."""

    service: MemoryService
    engine: MemoryEngine

    async def add(self, turns: Iterable[Said]) -> list[str]:
        """Add turns in order and return the ids of their pages."""
        return [
            (await self.engine.add(turn.user_input, turn.agent_response, timestamp=turn.at)).page_id for turn in turns
        ]

    async def settled(self) -> Stats:
        """Wait until the background has nothing to do; the caller's time limit ends a vain wait."""
        while not _is_settled(stats := await self.engine.stats()):
            # What failed waits for a clock that stands still.
            assert not any(health.failed_attempts for health in stats.health.values()), stats.health
            await asyncio.sleep(POLL_S)
        return await self.engine.stats()  # the counts before were taken a little earlier than it was seen to be settled

    async def call_retrieve(self, **arguments: Any) -> CallToolResult:
        """Call the tool through a client of the SDK; the result may be an error."""
        async with Client(make_server(self.service, lambda _: Caller(USER, frozenset({Scope.READ})))) as client:
            result = await client.call_tool("retrieve_memory", arguments)
        assert isinstance(result, CallToolResult)
        return result

    async def retrieve(self, **arguments: Any) -> RetrieveMemoryResult:
        """Ask the tool through a client of the SDK; an error fails."""
        result = await self.call_retrieve(**arguments)
        assert not result.is_error, result.content
        return RetrieveMemoryResult.model_validate(result.structured_content, strict=True, extra="forbid")


def _is_settled(stats: Stats) -> bool:
    is_embedded = stats.space is None or (stats.is_semantic and not stats.counts.unembedded)
    return stats.is_settled and is_embedded


@asynccontextmanager
async def memory(folder: Path, embedder: LentEmbedder | None, **settings: Any) -> AsyncIterator[Memory]:
    """Yield a memory with background work that runs at once; without an embedder words answer alone."""
    chosen: dict[str, Any] = {"short_term_capacity": 0, "consolidation_batch_pages": 4, "consolidation_idle_s": 0.0}
    chosen |= {} if embedder else NO_MODEL
    async with (
        MemoryService(
            Settings(data_storage_path=folder, timezone="UTC", **{**chosen, **settings}),
            clock=Clock(),
            embedder=embedder,
        ) as service,
        service.user(USER) as engine,
    ):
        yield Memory(service, engine)
