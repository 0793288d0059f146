"""The engine: one user's memory, as callers meet it. What follows from their pages is the upkeep's work."""

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import anyio.to_thread

from memoryos_mcp.background import Errands, Health
from memoryos_mcp.config import Settings
from memoryos_mcp.config.sources import check_data_folder, load_settings
from memoryos_mcp.consolidation.accounts import StoredAccount
from memoryos_mcp.errors import ArgumentError, StorageError
from memoryos_mcp.heat import HeatWeights
from memoryos_mcp.knowledge import About, Fact
from memoryos_mcp.llm.chat import ChatRequest, Usage
from memoryos_mcp.pages import make_turn, storable, utc_now
from memoryos_mcp.parts import Given, Parts, make_parts
from memoryos_mcp.profile import Trait, most_telling_first
from memoryos_mcp.providers import endpoint_of
from memoryos_mcp.responding import (
    DEFAULT_RELATIONSHIP,
    Manner,
    Response,
    listen,
    llm_of,
    memory_tokens,
    response_request,
)
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
    """One user's memory. Make it with `open`; safe to share between tasks.

    A process that serves many users makes a `MemoryService` instead, which shares the models among them.
    """

    def __init__(self, user_id: str, settings: Settings, parts: Parts, store: SqliteStore, folder: Path) -> None:
        self.user_id = user_id
        self._settings = settings
        self._parts = parts
        self._store = store
        self._heat = HeatWeights(
            alpha=settings.heat_alpha, beta=settings.heat_beta, gamma=settings.heat_gamma, mu_s=settings.heat_mu_s
        )
        self._account = StoredAccount(store, zone=settings.zone, clock=parts.clock)
        self._chat = parts.make_chat(self._account, folder)
        self._analyst = parts.make_analyst(self._chat)
        self._errands = Errands()
        self._upkeep = Upkeep(settings, parts, store, self._analyst, self._heat)

    @classmethod
    @asynccontextmanager
    async def open(
        cls, user_id: str, *, config_file: Path | None = None, **settings: Any
    ) -> AsyncIterator["MemoryEngine"]:
        """Yield a user's memory with models of its own, all of it closed at the end.

        Args:
            user_id: Whose; any text.
            config_file: A config.json; None means the one that ``MEMORYOS_CONFIG`` names, if any.
            settings: Settings by their names. They go before the environment's, and those before the file's.

        Raises:
            ConfigError: A setting cannot be used.
            ArgumentError: The id cannot name a user.
            StorageError: The store could not be opened.
        """
        chosen = load_settings(config_file, {**settings, "user_id": user_id})
        await anyio.to_thread.run_sync(check_data_folder, chosen)
        endpoint = endpoint_of(chosen, os.environ)
        parts = await anyio.to_thread.run_sync(make_parts, chosen, endpoint, utc_now, Given())
        try:
            engine = await cls.begin(user_id, chosen, parts)
            try:
                yield engine
            finally:
                await engine.close()
        finally:
            await parts.aclose()

    @classmethod
    async def begin(cls, user_id: str, settings: Settings, parts: Parts) -> "MemoryEngine":
        """Return a user's memory, its background work begun, on parts that others share; `close` it before these.

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

    async def respond(
        self,
        query: str,
        *,
        relationship: str = DEFAULT_RELATIONSHIP,
        style_hint: str = "",
        meta_data: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
        max_reply_tokens: int | None = None,
        remember: bool = True,
    ) -> Response:
        """Return what the LLM answers, knowing what all three tiers know; then the exchange is remembered.

        Args:
            query: What the user says.
            relationship: What the assistant is to the user.
            style_hint: The wished style.
            meta_data: The caller's own notes, kept with the page.
            max_tokens: Of memory that is shown to the LLM, 100 to 1,000,000; None means the setting's number.
            max_reply_tokens: Tokens of the reply; a longer one is a ModelError. At least 1; None leaves it to the LLM.
            remember: Whether query and answer become a page.

        Raises:
            ArgumentError: An argument cannot be used.
            ConfigError: There is no LLM.
            ModelError: The LLM gave no whole answer; nothing was stored.
            StorageError: The store could not be read, or the page not be stored.
        """
        chat, manner = llm_of(self._chat), Manner(relationship, style_hint, max_reply_tokens)
        request, recalled = await self._response_request(query, manner, meta_data, max_tokens)
        text, usage = await listen(chat, request)
        page_id = (await self.add(query, text, meta_data=meta_data)).page_id if remember else None
        return Response(text, usage, recalled, page_id)

    async def respond_streaming(
        self,
        query: str,
        *,
        relationship: str = DEFAULT_RELATIONSHIP,
        style_hint: str = "",
        meta_data: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
        max_reply_tokens: int | None = None,
        remember: bool = True,
    ) -> AsyncGenerator[str, None]:
        """Yield what `respond` returns, piece by piece as the LLM writes it.

        The exchange is remembered when the last piece has been taken. Whoever stops before that ends the call of the
        LLM, and nothing is stored; `contextlib.aclosing` around the loop does so at once.

        Raises:
            MemoryOSError: As `respond` does, also after some pieces have come.
        """
        chat, manner = llm_of(self._chat), Manner(relationship, style_hint, max_reply_tokens)
        request, _ = await self._response_request(query, manner, meta_data, max_tokens)
        pieces: asyncio.Queue[str | None] = asyncio.Queue()
        listening = self._errands.begin(listen(chat, request, pieces.put_nowait))
        listening.add_done_callback(lambda _: pieces.put_nowait(None))
        try:
            while (piece := await pieces.get()) is not None:
                yield piece
            text, _ = await _outcome(listening)
        finally:
            listening.cancel()
            await asyncio.wait([listening])
        if remember:
            await self.add(query, text, meta_data=meta_data)

    async def _response_request(
        self, query: str, manner: Manner, meta_data: Mapping[str, Any] | None, max_tokens: int | None
    ) -> tuple[ChatRequest, int]:
        """Return what is asked of the LLM, and how many tokens of memory are in it.

        What cannot be stored afterwards is refused before the LLM is asked.
        """
        settings, now = self._settings, self._parts.clock()
        if manner.reply_tokens is not None:
            _check_range("max_reply_tokens", manner.reply_tokens, 1, TOKENS_AT_MOST)
        make_turn(
            user_input=query,
            agent_response="",
            timestamp=None,
            meta_data=meta_data,
            idempotency_key=None,
            max_page_chars=settings.max_page_chars,
            zone=settings.zone,
            now=now,
        )
        wanted = settings.retrieval_max_tokens if max_tokens is None else max_tokens
        room = memory_tokens(query, manner, wanted=wanted, max_prompt_tokens=settings.llm_max_prompt_tokens)
        recall = await self.retrieve(query, max_tokens=room if wanted >= TOKENS_AT_LEAST <= room else wanted)
        return response_request(storable(query), recall, manner, now=now, zone=settings.zone), recall.tokens

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

    async def analyse(self) -> None:
        """File all pages that wait, and learn from all topics, however cool; return when that is done.

        Raises:
            ModelError: The LLM had no usable answer; what is left is done in the background.
            StorageError: The store could not be written.
        """
        await self._upkeep.analyse()

    async def close(self) -> None:
        """End the background work, keep the visits, close the files. What was not yet derived is derived next time."""
        await self._errands.cancelled()
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


async def _outcome(listening: "asyncio.Task[tuple[str, Usage]]") -> tuple[str, Usage]:
    """Return what a task returns that has ended.

    Raises:
        StorageError: It was cancelled, as the memory was closed meanwhile.
    """
    if listening.cancelled():
        msg = "the memory was closed before the answer was whole; nothing was stored"
        raise StorageError(msg)
    return await listening


def _check_range(argument: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise ArgumentError(argument=argument, problem=f"is out of range; give {low:,} to {high:,}")
