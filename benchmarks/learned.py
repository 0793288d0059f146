"""Memories that an LLM makes of a conversation, from recorded replies, without a network."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import anyio

from benchmarks.client import ServerError
from benchmarks.datasets import Conversation
from benchmarks.words import WordEmbedder
from memoryos_mcp.config import Settings
from memoryos_mcp.engine.engine import MemoryEngine
from memoryos_mcp.engine.service import MemoryService
from memoryos_mcp.llm.chat import ChatModel, ChatReply, ChatRequest, Listener, Purpose
from memoryos_mcp.llm.log_lines import request_key
from memoryos_mcp.llm.replaying import ReplayChat
from memoryos_mcp.model.knowledge import About, Fact
from memoryos_mcp.model.pages import Turn, utc_now
from memoryos_mcp.model.stats import Stats
from memoryos_mcp.storage.sqlite.store import SqliteStore
from memoryos_mcp.storage.threads import StoreThreads
from memoryos_mcp.storage.values import FactQuery, StoreOptions

# Silences after which an incomplete batch is due: first so long that only full batches are, then none.
SILENCES_S = (86_400.0, 0.0)
LEASE_S = 3.0
POLL_S = 0.1
# Time between two replies of concurrent calls; a multiple of the time in which a reply is stored.
TURN_S = 0.2
FACTS_AT_MOST = 10_000


@dataclass(frozen=True, slots=True)
class Learned:
    """The memory that an LLM made of a conversation.

    Attributes:
        calls_per_page: Number of calls per page, including repairs.
        prompt_tokens_per_page: Tokens as the LLM counts them, else one for four bytes.
        facts: Current and ended facts.
        names: Maps the store's page ids to those of the data set.
    """

    calls_per_page: float
    prompt_tokens_per_page: float
    facts: Sequence[Fact]
    names: Mapping[str, str]


class _InTurn:
    """Replays recorded replies. Those about traits come one after another, in the order of the file.

    Calls about traits are concurrent, and the last reply decides a trait. So without a fixed order, traits would differ
    from run to run.
    """

    def __init__(self, replay: Path) -> None:
        self._chat: ChatModel = ReplayChat(replay, model_name="")
        self.name = self._chat.name
        lines = replay.read_text(encoding="utf-8").splitlines() if replay.exists() else []
        self._places = {json.loads(line)["custom_id"]: place for place, line in enumerate(lines) if line.strip()}

    async def complete(self, request: ChatRequest, listener: Listener | None = None) -> ChatReply:
        """Return the recorded reply to a request, when it is its turn."""
        if request.purpose is Purpose.LEARN:
            await anyio.sleep(TURN_S * self._places.get(request_key(request), 0))
        return await self._chat.complete(request, listener)

    async def aclose(self) -> None:
        """Close the replay."""
        await self._chat.aclose()


async def learn(folder: Path, conversation: Conversation, replay: Path) -> Learned:
    """Fill a memory, and organise it and learn from it with recorded replies of an LLM.

    All pages are added before the first one is read, and vectors are made of words. So the prompts are the same in each
    run and on each machine. Vectors of a model differ in their last digits, which can change a prompt.

    Raises:
        ServerError: The file lacks replies; the message names the file with their requests.
    """
    threads = StoreThreads(2)
    options = StoreOptions("default_assistant_profile", 7, 1800, FACTS_AT_MOST)
    behind = (
        utc_now() - conversation.pages[-1].timestamp
    )  # heat falls with time, so the time must be that of the recording

    def clock() -> datetime:
        return utc_now() - behind

    store = await SqliteStore.open(folder, conversation.id, options, threads=threads, clock=clock)
    turns = [
        Turn(page.user_input, page.agent_response, page.timestamp, idempotency_key=page.page_id)
        for page in conversation.pages
    ]
    receipts = await store.add_pages(turns)
    for silence_s in SILENCES_S:
        settings = Settings(
            data_storage_path=folder, llm_replay_file=replay, consolidation_idle_s=silence_s, timezone="UTC"
        )
        chat = _InTurn(replay)
        async with (
            MemoryService(settings, clock=clock, embedder=WordEmbedder(), chat=chat) as service,
            service.user(conversation.id) as engine,
        ):
            stats = await settled(engine)
    facts = [fact for about in About for fact in await store.facts(FactQuery(about, is_past=True, limit=FACTS_AT_MOST))]
    facts += [fact for about in About for fact in await store.facts(FactQuery(about))]
    lease = await store.take_lease(LEASE_S)
    while lease and await store.drop_spaces(lease, (), clock() + timedelta(days=1)):
        pass  # the next process uses another model
    await store.close()
    threads.close()
    spent = stats.llm.total if stats.llm else ()
    pages = len(receipts)
    return Learned(
        calls_per_page=sum(entry.calls for entry in spent) / pages,
        prompt_tokens_per_page=sum(entry.prompt_tokens for entry in spent) / pages,
        facts=facts,
        names={receipt.page_id: page.page_id for receipt, page in zip(receipts, conversation.pages, strict=True)},
    )


async def settled(engine: MemoryEngine) -> Stats:
    """Wait until a memory has no unfinished work, and return its figures.

    Raises:
        ServerError: A part of the work failed.
    """
    while not (stats := await engine.stats()).is_settled:
        failed = next((health.last_error for health in stats.health.values() if health.failed_attempts), None)
        if failed is not None:
            raise ServerError(failed)
        await anyio.sleep(POLL_S)
    return stats
