"""The components that the engines of a process share: models, threads and the clock. Built once, for the first user."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from memoryos_mcp.config import Settings
from memoryos_mcp.config.masks import without_credentials, without_secrets
from memoryos_mcp.embedding import Embedder, EmbeddingModel
from memoryos_mcp.embedding.api import ApiEmbedder
from memoryos_mcp.embedding.bundled import NAME as BUNDLED_NAME
from memoryos_mcp.embedding.bundled import BundledEmbedder
from memoryos_mcp.embedding.embedders import Embedders
from memoryos_mcp.embedding.sentence_transformers import SentenceTransformersEmbedder
from memoryos_mcp.llm.analysis import Analyst
from memoryos_mcp.llm.analyst import LlmAnalyst
from memoryos_mcp.llm.chat import ChatModel
from memoryos_mcp.llm.extractive import ExtractiveAnalyst
from memoryos_mcp.llm.openai_chat import OpenAIChat
from memoryos_mcp.llm.providers import Endpoint
from memoryos_mcp.llm.recording import LOG_NAME, RecordingChat
from memoryos_mcp.llm.replaying import ReplayChat
from memoryos_mcp.llm.user_chat import Account, Tally, UserChat
from memoryos_mcp.retrieval.index.adaptive import AdaptiveIndex
from memoryos_mcp.storage.interface import Stores
from memoryos_mcp.storage.stores import make_stores

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

# Short transactions spend as much time in Python as in SQLite, so many threads would wait for one another. But a file
# that another process has locked can block a thread for up to 30 s.
STORE_THREADS = 8


@dataclass(frozen=True, slots=True)
class Overrides:
    """Components to use instead of those that the settings name.

    Attributes:
        tracer: Creates a span for each call of the LLM; None creates none.
    """

    embedder: Embedder | None = None
    chat: ChatModel | None = None
    analyst: Analyst | None = None
    tracer: "Tracer | None" = None


@dataclass(frozen=True, slots=True)
class Components:
    """Components that engines share; close them after the engines.

    Attributes:
        embedders: The configured model, and those whose vectors are still in use.
        fallback: The analyst that works without an LLM, or when the LLM fails.
        make_chat: Returns a user's LLM client for a usage account and the user's folder; None without an LLM.
        make_analyst: Returns the analyst that uses such a client; without an LLM, the fallback.
        chat: The LLM that all users share; None without one.
        tally: Total usage of the LLM.
        stores: The users' memories.
        clock: Returns the present time, with a zone.
    """

    embedders: Embedders
    fallback: Analyst
    make_chat: Callable[[Account, Path], ChatModel | None]
    make_analyst: Callable[[ChatModel | None], Analyst]
    chat: ChatModel | None
    tally: Tally
    stores: Stores
    clock: Callable[[], datetime]

    async def aclose(self) -> None:
        """Stop the threads and release the models."""
        self.stores.close()
        await self.embedders.aclose()
        if self.chat is not None:
            await self.chat.aclose()


def make_components(
    settings: Settings, endpoint: Endpoint | None, clock: Callable[[], datetime], given: Overrides
) -> Components:
    """Return the components that the settings name, or the overrides given for them. Blocking: it imports libraries."""
    embedder = given.embedder
    if embedder is None and (model := configured_model(settings)) is not None:
        embedder = make_embedder(model, settings)
    AdaptiveIndex(1)  # imports faiss now, in this thread, and not later in the event loop
    fallback = ExtractiveAnalyst(topic_threshold=settings.mid_term_similarity_threshold)
    chat = given.chat or configured_chat(settings, endpoint)
    tally = Tally()

    asked = None if chat is None else _traced(chat, given.tracer)

    def make_chat(account: Account, folder: Path) -> ChatModel | None:
        if asked is None:
            return None
        logged = RecordingChat(asked, folder / LOG_NAME, clock=clock, memory=account) if settings.llm_log else asked
        return UserChat(logged, account, tally, settings.llm_daily_token_limit)

    def make_analyst(users_chat: ChatModel | None) -> Analyst:
        if given.analyst is not None:
            return given.analyst
        if users_chat is None:
            return fallback
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
        stores=make_stores(settings, clock, threads=STORE_THREADS),
        clock=clock,
    )


def configured_model(settings: Settings) -> EmbeddingModel | None:
    """Return the configured embedding model; None if the settings want none, then search uses keywords only."""
    if settings.wants_no_embedder:
        return None
    if settings.uses_bundled_embedder:
        return EmbeddingModel(BUNDLED_NAME)
    kwargs = json.dumps(without_secrets(settings.embedding_model_kwargs or {}), sort_keys=True)
    return EmbeddingModel(settings.embedding_model_name, without_credentials(settings.embedding_base_url), kwargs)


def make_embedder(model: EmbeddingModel, settings: Settings) -> Embedder:
    """Return the embedder of a model, not loaded yet.

    Args:
        model: The configured model, or a previous one.
        settings: Their API key is used only for their base URL, their secret model arguments only for their model.
    """
    if model == EmbeddingModel(BUNDLED_NAME):
        return BundledEmbedder()
    if model.base_url is not None:
        is_configured_api = model.base_url == without_credentials(settings.embedding_base_url)
        return ApiEmbedder(
            model,
            settings.embedding_key if is_configured_api else None,
            timeout_s=settings.embedding_timeout_s,
            base_url=settings.embedding_base_url if is_configured_api else None,
        )
    return SentenceTransformersEmbedder(
        model,
        settings.embedding_model_kwargs or {} if model == configured_model(settings) else json.loads(model.kwargs),
    )


def configured_chat(settings: Settings, endpoint: Endpoint | None) -> ChatModel | None:
    """Return the configured LLM, or the replay of a recorded one; None without one."""
    if settings.llm_replay_file is not None:
        return ReplayChat(settings.llm_replay_file, model_name=settings.llm_model)
    if endpoint is None:
        return None
    return OpenAIChat(
        endpoint, timeout_s=settings.llm_timeout_s, max_concurrent_calls=settings.llm_max_concurrent_calls
    )


def _traced(chat: ChatModel, tracer: "Tracer | None") -> ChatModel:
    if tracer is None:
        return chat
    from memoryos_mcp.llm.tracing import TracedChat  # an optional dependency

    return TracedChat(chat, tracer)
