"""Real memories for the tests of retrieval: a SQLite file, the bundled embedder, and a fixed clock."""

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
# Without a model, only keywords are compared.
NO_MODEL: dict[str, Any] = {"embedding_model_name": "none"}
# Only pages heat a segment, so that neither queries nor the time of a promotion change the ranking.
STEADY_HEAT = {"heat_alpha": 0.0, "mid_term_heat_threshold": 1e9}
# Pages are organised only when so many wait, however long the silence.
UNFILED: dict[str, Any] = {"consolidation_batch_pages": 100, "consolidation_idle_s": 1e6}


# Loading takes longer than most tests' use of the model, and the model does not change.
load_once = functools.cache(bundled._load)


class LentEmbedder(BundledEmbedder):
    """The bundled embedder, which services share although each would close it. On request it waits before pages."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.gate.set()

    async def embed_pages(self, passages: Sequence[Passage]) -> list[list[Window]]:
        await self.gate.wait()
        return await super().embed_pages(passages)

    async def aclose(self) -> None:
        """Do nothing, because other services use it too."""

    async def end(self) -> None:
        await super().aclose()


@dataclass(frozen=True, slots=True)
class Said:
    """A turn to add. Without a time, it was said now."""

    user_input: str
    agent_response: str = "I see."
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Memory:
    """One user's memory, and its service."""

    service: MemoryService
    engine: MemoryEngine

    async def add(self, turns: Iterable[Said]) -> list[str]:
        """Add turns in order and return the ids of their pages."""
        return [
            (await self.engine.add(turn.user_input, turn.agent_response, timestamp=turn.at)).page_id for turn in turns
        ]

    async def settled(self) -> Stats:
        """Wait until the background is idle. The caller's time limit applies."""
        while not _is_settled(stats := await self.engine.stats()):
            # Failed work would wait for the clock, which is fixed.
            assert not any(health.failed_attempts for health in stats.health.values()), stats.health
            await asyncio.sleep(POLL_S)
        return await self.engine.stats()  # the earlier counts are from before the memory was settled

    async def call_retrieve(self, **arguments: Any) -> CallToolResult:
        """Call the tool through the SDK's client, and return the result, which may be an error."""
        async with Client(make_server(self.service, lambda _: Caller(USER, frozenset({Scope.READ})))) as client:
            result = await client.call_tool("retrieve_memory", arguments)
        assert isinstance(result, CallToolResult)
        return result

    async def retrieve(self, **arguments: Any) -> RetrieveMemoryResult:
        """Call the tool through the SDK's client, and return the result. Fails on an error."""
        result = await self.call_retrieve(**arguments)
        assert not result.is_error, result.content
        return RetrieveMemoryResult.model_validate(result.structured_content, strict=True, extra="forbid")


def _is_settled(stats: Stats) -> bool:
    is_embedded = stats.space is None or (stats.is_semantic and not stats.counts.unembedded)
    return stats.is_settled and is_embedded


@asynccontextmanager
async def memory(folder: Path, embedder: LentEmbedder | None, **settings: Any) -> AsyncIterator[Memory]:
    """Yield a memory whose background work runs at once. Without an embedder, only keywords are compared."""
    chosen: dict[str, Any] = {"short_term_capacity": 0, "consolidation_batch_pages": 4, "consolidation_idle_s": 0.0}
    chosen |= {"timezone": "UTC"}
    chosen |= {} if embedder else NO_MODEL
    async with (
        MemoryService(
            Settings(data_storage_path=folder, **{**chosen, **settings}),
            clock=Clock(),
            embedder=embedder,
        ) as service,
        service.user(USER) as engine,
    ):
        yield Memory(service, engine)
