"""The service: one per process. It opens users' engines as they are asked for and shares the models among them.

The engine and its libraries are imported with the first user that is opened, so that a server answers its first
message without them.
"""

import asyncio
import importlib
import logging
import os
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import anyio
import anyio.to_thread

from memoryos_mcp.config import Settings
from memoryos_mcp.errors import StorageError
from memoryos_mcp.pages import utc_now
from memoryos_mcp.providers import endpoint_of

if TYPE_CHECKING:
    from memoryos_mcp.embedding import Embedder
    from memoryos_mcp.engine import MemoryEngine, Parts
    from memoryos_mcp.llm import Analyst
    from memoryos_mcp.llm.chat import ChatModel
    from memoryos_mcp.llm.extractive import ExtractiveAnalyst
    from memoryos_mcp.llm.metering import Account

logger = logging.getLogger(__name__)

# Short transactions are as much Python as SQLite, so many threads wait for one another; but a file that another
# process has locked holds one for as long as 30 s.
STORE_THREADS = 8


class MemoryService:
    """All users of a process. Use it as an async context manager; on exit every engine is closed.

    Args:
        settings: Checked settings.
        clock: Returns the present, with a zone.
        embedder: Instead of the configured one.
        chat: Instead of the configured LLM.
        analyst: Instead of the one that asks the LLM.

    Raises:
        ConfigError: The LLM is configured, but not so that it can be asked.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Callable[[], datetime] = utc_now,
        embedder: "Embedder | None" = None,
        chat: "ChatModel | None" = None,
        analyst: "Analyst | None" = None,
    ) -> None:
        self.settings = settings
        self._clock = clock
        self._embedder = embedder
        self._chat = chat
        self._analyst = analyst
        self._endpoint = endpoint_of(settings, os.environ)
        self._parts: Parts | None = None
        self._engines: OrderedDict[str, MemoryEngine] = OrderedDict()
        self._uses: dict[str, int] = {}
        self._lock = asyncio.Lock()
        self._is_closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @asynccontextmanager
    async def user(self, user_id: str) -> "AsyncIterator[MemoryEngine]":
        """Yield a user's engine, opened if need be; it stays open at least as long as it is used here.

        Raises:
            ArgumentError: The id cannot name a user.
            StorageError: The store could not be opened.
        """
        engine = await self._borrow(user_id)
        try:
            yield engine
        finally:
            self._uses[user_id] -= 1

    def now(self) -> datetime:
        """Return the present in the users' zone."""
        return self._clock().astimezone(self.settings.zone)

    async def close(self) -> None:
        """Close every engine; later calls of `user` are refused."""
        async with self._lock:
            self._is_closed = True
            engines, self._engines = list(self._engines.values()), OrderedDict()
            await asyncio.gather(*map(_close, engines))
            if self._parts is not None:
                self._parts.threads.close()
                if self._parts.embedder is not None:
                    await self._parts.embedder.aclose()
            if self._chat is not None:
                await self._chat.aclose()

    async def _borrow(self, user_id: str) -> "MemoryEngine":
        async with self._lock:
            if self._is_closed:
                msg = "the memory service is shutting down; nothing was stored"
                raise StorageError(msg)
            if user_id not in self._engines:
                await self._make_room()
                parts = await self._load_parts()
                engine_module = importlib.import_module("memoryos_mcp.engine")
                self._engines[user_id] = await engine_module.MemoryEngine.open(user_id, self.settings, parts)
            self._engines.move_to_end(user_id)
            self._uses[user_id] = self._uses.get(user_id, 0) + 1
            return self._engines[user_id]

    async def _make_room(self) -> None:
        """Close the users that were not used for longest, as far as they are over the limit and idle."""
        idle = [user_id for user_id in self._engines if not self._uses.get(user_id)]
        surplus = len(self._engines) + 1 - self.settings.max_open_users
        for user_id in idle[: max(0, surplus)]:
            self._uses.pop(user_id, None)
            await _close(self._engines.pop(user_id))

    async def _load_parts(self) -> "Parts":
        if self._parts is None:
            self._parts = await anyio.to_thread.run_sync(self._make_parts)
        return self._parts

    def _make_parts(self) -> "Parts":
        from memoryos_mcp.embedding.bundled import BundledEmbedder
        from memoryos_mcp.engine import Parts
        from memoryos_mcp.llm.extractive import ExtractiveAnalyst
        from memoryos_mcp.storage.threads import StoreThreads
        from memoryos_mcp.vectors.growing import GrowingIndex

        embedder = self._embedder
        if embedder is None and self.settings.uses_bundled_embedder:
            embedder = BundledEmbedder()
        if embedder is None:
            logger.warning(
                "the embedding model named in embedding_model_name is not there: search goes by words alone. "
                "Set it to all-MiniLM-L6-v2, the bundled model"
            )
        stand_in = ExtractiveAnalyst(topic_threshold=self.settings.mid_term_similarity_threshold)
        dimension = embedder.dimension if embedder else 1
        GrowingIndex(dimension)  # imports its library here, in a thread, and not with the first user
        return Parts(
            embedder=embedder,
            make_index=lambda: GrowingIndex(dimension),
            stand_in=stand_in,
            make_analyst=self._analyst_maker(stand_in),
            threads=StoreThreads(STORE_THREADS),
            clock=self._clock,
        )

    def _analyst_maker(self, stand_in: "ExtractiveAnalyst") -> "Callable[[Account, Path], Analyst] | None":
        from memoryos_mcp.llm.analyst import LlmAnalyst
        from memoryos_mcp.llm.metering import MeteredChat
        from memoryos_mcp.llm.recording import LOG_NAME, RecordingChat

        analyst, settings = self._analyst, self.settings
        if analyst is not None:
            return lambda account, folder: analyst  # noqa: ARG005 - it counts nothing
        chat = self._chat = self._chat or self._configured_chat()
        if chat is None:
            return None

        def make(account: "Account", folder: Path) -> "Analyst":
            logged = RecordingChat(chat, folder / LOG_NAME, clock=self._clock) if settings.llm_log else chat
            return LlmAnalyst(
                MeteredChat(logged, account, settings.llm_daily_token_limit),
                max_topics=settings.max_topics,
                max_prompt_tokens=settings.llm_max_prompt_tokens,
                dimensions=settings.profile_dimensions,
                stand_in=stand_in,
            )

        return make

    def _configured_chat(self) -> "ChatModel | None":
        from memoryos_mcp.llm.openai_chat import OpenAIChat
        from memoryos_mcp.llm.recording import ReplayChat

        settings = self.settings
        if settings.llm_replay_file is not None:
            return ReplayChat(settings.llm_replay_file, model_name=settings.llm_model)
        if self._endpoint is None:
            return None
        return OpenAIChat(
            self._endpoint, timeout_s=settings.llm_timeout_s, max_concurrent_calls=settings.llm_max_concurrent_calls
        )


async def _close(engine: "MemoryEngine") -> None:
    """Close one memory to the end; that it cannot be closed in order is no other user's business."""
    from memoryos_mcp.background import to_the_end

    try:
        await to_the_end(engine.close())
    except StorageError as error:
        logger.warning("a memory could not be closed in order: %s", type(error).__name__)
