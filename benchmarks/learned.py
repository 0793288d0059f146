"""Learned: what an LLM makes of a conversation, from the replies that a file holds, without a network."""

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
from memoryos_mcp.model.knowledge import About, Fact
from memoryos_mcp.model.pages import Turn, utc_now
from memoryos_mcp.model.stats import Stats
from memoryos_mcp.storage.sqlite.store import SqliteStore
from memoryos_mcp.storage.sqlite.threads import StoreThreads
from memoryos_mcp.storage.values import FactQuery, StoreOptions

# Silences after which an incomplete batch is due: full batches first, then the rest, however long either takes.
SILENCES_S = (86_400.0, 0.0)
LEASE_S = 3.0
POLL_S = 0.1
FACTS_AT_MOST = 10_000


@dataclass(frozen=True, slots=True)
class Learned:
    """What an LLM made of a conversation.

    Attributes:
        calls_per_page: Second rounds included.
        prompt_tokens_per_page: As the LLM counts them, else one for four bytes.
        facts: Those that hold at the end, and those that held before.
        names: The store's names of the pages as keys, the data set's as values.
    """

    calls_per_page: float
    prompt_tokens_per_page: float
    facts: Sequence[Fact]
    names: Mapping[str, str]


async def learn(folder: Path, conversation: Conversation, replay: Path) -> Learned:
    """Fill a memory and have the LLM of a replay file organise and learn from all of it.

    All pages are there before the first is read, and vectors are of words, so that the prompts are the same in each run
    and on each machine: a model's vectors differ in their last digits, which can turn what is asked next.

    Raises:
        ServerError: The file lacks replies; says where their requests were written.
    """
    threads = StoreThreads(2)
    options = StoreOptions("default_assistant_profile", 7, 1800, FACTS_AT_MOST)
    behind = utc_now() - conversation.pages[-1].timestamp  # heat falls with time: it is to be as it was then

    def clock() -> datetime:
        return utc_now() - behind

    store = await SqliteStore.open(folder, conversation.id, options, threads=threads, clock=clock)
    turns = [
        Turn(page.user_input, page.agent_response, page.timestamp, idempotency_key=page.page_id)
        for page in conversation.pages
    ]
    receipts = await store.add_pages(turns)
    for silence_s in SILENCES_S:
        settings = Settings(data_storage_path=folder, llm_replay_file=replay, consolidation_idle_s=silence_s)
        async with (
            MemoryService(settings, clock=clock, embedder=WordEmbedder()) as service,
            service.user(conversation.id) as engine,
        ):
            stats = await _settled(engine)
    facts = [fact for about in About for fact in await store.facts(FactQuery(about, is_past=True, limit=FACTS_AT_MOST))]
    facts += [fact for about in About for fact in await store.facts(FactQuery(about))]
    lease = await store.take_lease(LEASE_S)
    while lease and await store.drop_spaces(lease, (), clock() + timedelta(days=1)):
        pass  # whoever opens it next has a model of its own
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


async def _settled(engine: MemoryEngine) -> Stats:
    while not (stats := await engine.stats()).is_settled:
        failed = next((health.last_error for health in stats.health.values() if health.failed_attempts), None)
        if failed is not None:
            raise ServerError(failed)
        await anyio.sleep(POLL_S)
    return stats
