"""The components that the engines of a process share: models, threads and the clock.

Classes that only some settings use are imported where they are created, so that other servers start more quickly.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio.to_thread

from memoryos_mcp.config import Settings
from memoryos_mcp.embedding import Embedder
from memoryos_mcp.embedding.embedders import Embedders, configured_embedder, make_embedder
from memoryos_mcp.llm.analysis import Analyst
from memoryos_mcp.llm.chat import ChatModel
from memoryos_mcp.llm.extractive import ExtractiveAnalyst
from memoryos_mcp.llm.providers import Endpoint
from memoryos_mcp.llm.recording import LOG_NAME, RecordingChat
from memoryos_mcp.llm.user_chat import Account, Tally, UserChat
from memoryos_mcp.retrieval.index.choice import choose_index
from memoryos_mcp.retrieval.index.interface import MakeIndex
from memoryos_mcp.retrieval.strategies import choose_strategy
from memoryos_mcp.retrieval.strategy import RetrievalStrategy
from memoryos_mcp.storage.interface import Stores
from memoryos_mcp.storage.stores import STORE_THREADS, make_stores

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer


@dataclass(frozen=True, slots=True)
class Overrides:
    """Components that replace the configured ones. None means that a component is not replaced.

    ``tracer`` creates a span for each LLM call. If it is None, calls are not traced.
    """

    embedder: Embedder | None = None
    chat: ChatModel | None = None
    analyst: Analyst | None = None
    tracer: "Tracer | None" = None
    stores: Stores | None = None


@dataclass(frozen=True, slots=True)
class Components:
    """The components that the engines of a process share. Close them after the engines.

    Attributes:
        embedders: The configured embedding model, and the models of existing vector spaces.
        fallback: The analyst that works without an LLM. It is used if there is no LLM, or if the LLM fails.
        make_chat: Returns a user's LLM client, or None if no LLM is configured. The arguments are the user's `Account`,
            in which the tokens of LLM calls are counted, and the user's folder.
        make_analyst: Takes an LLM client or None. Returns the analyst in `Overrides`, if there is one. Otherwise,
            returns an analyst that uses the client, or ``fallback`` if the client is None.
        chat: The LLM client that all users share; None if no LLM is configured.
        tally: Total LLM usage since the process started.
        make_index: Creates the vector index of a memory.
        strategy: Ranks the pages that answer a query.
        stores: Opens the users' stores.
        clock: Returns the current time, with a time zone.
    """

    embedders: Embedders
    fallback: Analyst
    make_chat: Callable[[Account, Path], ChatModel | None]
    make_analyst: Callable[[ChatModel | None], Analyst]
    chat: ChatModel | None
    tally: Tally
    make_index: MakeIndex
    strategy: RetrievalStrategy
    stores: Stores
    clock: Callable[[], datetime]

    async def aclose(self) -> None:
        """Stop the threads and release the models."""
        if (close := getattr(self.make_index, "close", None)) is not None:
            await anyio.to_thread.run_sync(close)
        self.stores.close()
        await self.embedders.aclose()
        if self.chat is not None:
            await self.chat.aclose()


def make_components(
    settings: Settings, endpoint: Endpoint | None, clock: Callable[[], datetime], overrides: Overrides
) -> Components:
    """Return the configured components. Components in ``overrides`` are used instead of the configured ones.

    Call this in a thread, because it imports libraries and blocks.
    """
    embedder = overrides.embedder or configured_embedder(settings)
    make_index = choose_index(settings)
    fallback = ExtractiveAnalyst(topic_threshold=settings.mid_term_similarity_threshold)
    chat = overrides.chat or configured_chat(settings, endpoint)
    tally = Tally()
    traced = None if chat is None else _traced(chat, overrides.tracer)

    def make_chat(account: Account, folder: Path) -> ChatModel | None:
        if traced is None:
            return None
        logged = RecordingChat(traced, folder / LOG_NAME, clock=clock, memory=account) if settings.llm_log else traced
        return UserChat(logged, account, tally, settings.llm_daily_token_limit)

    def make_analyst(users_chat: ChatModel | None) -> Analyst:
        if overrides.analyst is not None:
            return overrides.analyst
        if users_chat is None:
            return fallback
        from memoryos_mcp.llm.analyst import LlmAnalyst

        return LlmAnalyst(
            users_chat,
            max_topics=settings.max_topics,
            max_prompt_tokens=settings.llm_max_prompt_tokens,
            dimensions=settings.profile_dimensions,
            fallback=fallback,
        )

    return Components(
        embedders=Embedders(embedder, partial(make_embedder, settings=settings)),
        fallback=fallback,
        make_chat=make_chat,
        make_analyst=make_analyst,
        chat=chat,
        tally=tally,
        make_index=make_index,
        strategy=choose_strategy(settings.retrieval_strategy),
        stores=overrides.stores or make_stores(settings, clock, threads=STORE_THREADS),
        clock=clock,
    )


def configured_chat(settings: Settings, endpoint: Endpoint | None) -> ChatModel | None:
    """Return a client that replays ``llm_replay_file``, or else the client of the configured LLM.

    Return None if neither is configured.
    """
    if settings.llm_replay_file is not None:
        from memoryos_mcp.llm.replaying import ReplayChat

        return ReplayChat(settings.llm_replay_file, model_name=settings.llm_model)
    if endpoint is None:
        return None
    from memoryos_mcp.llm.openai_chat import OpenAIChat

    return OpenAIChat(
        endpoint, timeout_s=settings.llm_timeout_s, max_concurrent_calls=settings.llm_max_concurrent_calls
    )


def _traced(chat: ChatModel, tracer: "Tracer | None") -> ChatModel:
    if tracer is None:
        return chat
    from memoryos_mcp.llm.tracing import TracedChat  # an optional dependency

    return TracedChat(chat, tracer)
