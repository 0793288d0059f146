"""The engine: one user's memory, as callers meet it. What follows from their pages is the upkeep's work."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from memoryos_mcp.background import Health
from memoryos_mcp.config import Settings
from memoryos_mcp.consolidation.accounts import StoredAccount
from memoryos_mcp.errors import ArgumentError
from memoryos_mcp.heat import HeatWeights
from memoryos_mcp.knowledge import About, Fact
from memoryos_mcp.pages import make_turn, storable
from memoryos_mcp.parts import Parts
from memoryos_mcp.profile import Trait, most_telling_first
from memoryos_mcp.retrieval.recall import Recall
from memoryos_mcp.retrieval.retrieving import Candidates
from memoryos_mcp.segments import Segment
from memoryos_mcp.spaces import Move
from memoryos_mcp.storage.paths import database_file
from memoryos_mcp.storage.sqlite import SqliteStore, StoreOptions
from memoryos_mcp.storage.values import Counts, Receipt, UsageEntry, Waiting
from memoryos_mcp.upkeep import Upkeep

QUERY_MAX_CHARS = 20_000
RESULTS_AT_MOST = 100
TOKENS_AT_LEAST, TOKENS_AT_MOST = 100, 1_000_000


@dataclass(frozen=True, slots=True)
class ProfileView:
    """The long-term memory of a user; the most telling traits first, facts oldest first."""

    traits: Sequence[Trait]
    user_facts: Sequence[Fact]
    assistant_facts: Sequence[Fact]


@dataclass(frozen=True, slots=True)
class LlmStats:
    """What the LLM does and costs.

    Attributes:
        name: The model.
        today: Its calls of this day, by purpose.
        total: Its calls of all days, by purpose.
    """

    name: str
    today: Sequence[UsageEntry]
    total: Sequence[UsageEntry]


@dataclass(frozen=True, slots=True)
class Stats:
    """The state of a user's memory.

    Attributes:
        hottest: Segments with their heat, hottest first.
        health: Per background loop.
        is_semantic: Whether retrieval compares meaning now.
        is_settled: Whether the background has nothing to do now; pages may wait for their batch to be due.
        space: Identity of the model whose vectors answer, None while words answer alone.
        move: The change to another model that is under way; None without one.
        recipe: Name and version of the ranking.
        llm: None without an LLM.
    """

    counts: Counts
    hottest: Sequence[tuple[Segment, float]]
    health: Mapping[str, Health]
    is_semantic: bool
    is_settled: bool
    space: str | None
    move: Move | None
    recipe: str
    llm: "LlmStats | None"


class MemoryEngine:
    """One user's memory. Make it with `open`, end it with `close`; safe to share between tasks."""

    def __init__(self, user_id: str, settings: Settings, parts: Parts, store: SqliteStore, folder: Path) -> None:
        self.user_id = user_id
        self._settings = settings
        self._parts = parts
        self._store = store
        self._heat = HeatWeights(
            alpha=settings.heat_alpha, beta=settings.heat_beta, gamma=settings.heat_gamma, mu_s=settings.heat_mu_s
        )
        self._account = StoredAccount(store, zone=settings.zone, clock=parts.clock)
        self._analyst = parts.make_analyst(self._account, folder)
        self._upkeep = Upkeep(settings, parts, store, self._analyst, self._heat)

    @classmethod
    async def open(cls, user_id: str, settings: Settings, parts: Parts) -> "MemoryEngine":
        """Return a user's memory with its background work begun.

        Raises:
            ArgumentError: The id cannot name a user.
            StorageError: The store could not be opened.
        """
        options = StoreOptions(
            assistant_id=settings.assistant_id,
            short_term_capacity=settings.short_term_capacity,
            session_gap_s=settings.session_gap_s,
            knowledge_capacity=settings.long_term_knowledge_capacity,
        )
        folder = settings.data_storage_path
        store = await SqliteStore.open(
            folder, user_id, options, threads=parts.threads, clock=parts.clock, checks=parts.checks
        )
        engine = cls(user_id, settings, parts, store, database_file(folder, user_id).parent)
        engine._upkeep.start()
        return engine

    async def add(
        self,
        user_input: str,
        agent_response: str,
        *,
        timestamp: str | datetime | None = None,
        meta_data: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Receipt:
        """Store one turn; on return it is on disk, and all that follows from it goes on in the background.

        Args:
            user_input: What the user said; may be empty if the assistant's side is not.
            agent_response: What the assistant answered.
            timestamp: When it was said; ISO 8601 or a datetime; None means now, no zone means the user's.
            meta_data: The caller's own notes, kept as JSON.
            idempotency_key: Turns with an equal key are one page.

        Raises:
            ArgumentError: An argument cannot be used; nothing was stored.
            StorageError: The disk failed; nothing was stored.
        """
        turn = make_turn(
            user_input=user_input,
            agent_response=agent_response,
            timestamp=timestamp,
            meta_data=meta_data,
            idempotency_key=idempotency_key,
            max_page_chars=self._settings.max_page_chars,
            zone=self._settings.zone,
            now=self._parts.clock(),
        )
        (receipt,) = await self._store.add_pages([turn])
        self._upkeep.page_added(receipt.pending)
        return receipt

    async def retrieve(self, query: str, *, max_results: int | None = None, max_tokens: int | None = None) -> Recall:
        """Return what all three tiers know about a query.

        Args:
            query: What is asked.
            max_results: Pages at most beside the short-term ones, 1 to 100; None means the setting's number.
            max_tokens: Budget of all texts together, 100 to 1,000,000; None means the setting's number.

        Raises:
            ArgumentError: An argument cannot be used.
            StorageError: The store could not be read.
        """
        if not query.strip():
            raise ArgumentError(argument="query", problem="is empty; ask for something")
        if len(query) > QUERY_MAX_CHARS:
            raise ArgumentError(argument="query", problem=f"is over {QUERY_MAX_CHARS:,} characters; shorten it")
        results = self._settings.retrieval_queue_capacity if max_results is None else max_results
        tokens = self._settings.retrieval_max_tokens if max_tokens is None else max_tokens
        _check_range("max_results", results, 1, RESULTS_AT_MOST)
        _check_range("max_tokens", tokens, TOKENS_AT_LEAST, TOKENS_AT_MOST)
        await self._upkeep.until_loaded()
        retrieving = self._upkeep.spaces.retrieving
        with retrieving.mirror.querying():
            recall = await retrieving.retrieve(storable(query), max_results=results, max_tokens=tokens)
        self._upkeep.visited(segment.segment for segment, _ in recall.segments)
        return recall

    async def candidates(self, query: str) -> Candidates:
        """Return what may answer a query, with every signal that the ranking goes by; it is tuned on this.

        Raises:
            StorageError: The store could not be read.
        """
        retrieving = self._upkeep.spaces.retrieving
        await retrieving.mirror.refresh()
        _, candidates = await retrieving.candidates(storable(query))
        return candidates

    async def profile(self) -> ProfileView:
        """Return profile and knowledge as they stand.

        Raises:
            StorageError: The store could not be read.
        """
        traits, user_facts, assistant_facts = await asyncio.gather(
            self._store.traits(), self._store.facts(About.USER), self._store.facts(About.ASSISTANT)
        )
        return ProfileView(traits=most_telling_first(traits), user_facts=user_facts, assistant_facts=assistant_facts)

    async def stats(self) -> Stats:
        """Return how much there is, what is hot, and how the background work fares.

        Raises:
            StorageError: The store could not be read.
        """
        counts, hottest = await asyncio.gather(self._store.counts(), self._hottest())
        spaces = self._upkeep.spaces
        embedder = spaces.retrieving.embedder
        return Stats(
            counts=counts,
            hottest=hottest,
            health=self._upkeep.health,
            is_semantic=embedder is not None,
            is_settled=await self._upkeep.is_settled(),
            space=embedder.identity if embedder else None,
            move=await spaces.move(),
            recipe=spaces.retrieving.recipe,
            llm=await self._llm_stats(),
        )

    async def next_work_at(self) -> datetime | None:
        """Return when there is something to derive from pages, at the earliest now; None if all is derived.

        Raises:
            StorageError: The store could not be read.
        """
        return await self._upkeep.next_work_at()

    async def waiting(self) -> Waiting:
        """Return what the background has before it; cheap enough to be asked of every open memory at once.

        Raises:
            StorageError: The store could not be read.
        """
        return await self._upkeep.spaces.waiting()

    async def topics(self) -> list[str]:
        """Return the keywords of all topics, each once, those of the hottest topic first.

        Raises:
            StorageError: The store could not be read.
        """
        return list(dict.fromkeys(word for segment, _ in await self._hottest() for word in segment.keywords))

    async def reconsolidate(self) -> int:
        """Have the LLM do again all that was organised or learned without it; return how many pages wait for that.

        Raises:
            StorageError: The store could not be written.
        """
        waiting = await self._store.mark_degraded(self._parts.stand_in.name)
        self._upkeep.redo()
        return waiting

    async def close(self) -> None:
        """End the background work, keep the visits, close the files. What was not yet derived is derived next time."""
        try:
            await self._upkeep.close()
        finally:
            await self._store.close()

    async def _hottest(self) -> list[tuple[Segment, float]]:
        """Return the segments with their heat, hottest first."""
        now = self._parts.clock()
        heats = [(segment, segment.heat(now, self._heat)) for segment in await self._store.segments()]
        return sorted(heats, key=lambda pair: -pair[1])

    async def _llm_stats(self) -> LlmStats | None:
        if self._analyst is self._parts.stand_in:
            return None
        today, total = await asyncio.gather(self._store.usage(self._account.today), self._store.usage(None))
        return LlmStats(name=self._analyst.name, today=today, total=total)


def _check_range(argument: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise ArgumentError(argument=argument, problem=f"is out of range; give {low:,} to {high:,}")
