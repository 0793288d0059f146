"""The parts that the engines of a process share: the models, the threads, the clock. Made once, with the first user."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

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
from memoryos_mcp.llm.current import CurrentChat
from memoryos_mcp.llm.extractive import ExtractiveAnalyst
from memoryos_mcp.llm.metering import Account, MeteredChat, Tally
from memoryos_mcp.llm.openai_chat import OpenAIChat
from memoryos_mcp.llm.providers import Endpoint
from memoryos_mcp.llm.reading import Forgettings
from memoryos_mcp.llm.recording import LOG_NAME, RecordingChat
from memoryos_mcp.llm.replaying import ReplayChat
from memoryos_mcp.retrieval.index import VectorIndex
from memoryos_mcp.retrieval.index.adaptive import AdaptiveIndex
from memoryos_mcp.storage.sqlite.database import Checks
from memoryos_mcp.storage.sqlite.threads import StoreThreads

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

# Short transactions are as much Python as SQLite, so many threads wait for one another; but a file that another
# process has locked holds one for as long as 30 s.
STORE_THREADS = 8


@dataclass(frozen=True, slots=True)
class Overrides:
    """Components that are there already, instead of those that the settings name.

    Attributes:
        embedder: Instead of the configured one.
        chat: Instead of the configured LLM.
        analyst: Instead of the one that asks the LLM.
        tracer: Makes a span of each call of the LLM; None makes none.
    """

    embedder: Embedder | None = None
    chat: ChatModel | None = None
    analyst: Analyst | None = None
    tracer: "Tracer | None" = None


class UserAccount(Account, Forgettings, Protocol):
    """What a user's LLM asks of their memory, beside what it is given to read."""


@dataclass(frozen=True, slots=True)
class Components:
    """What engines share; `aclose` it after them.

    Attributes:
        embedders: The configured model, and those whose vectors are still in use.
        make_index: Makes an empty index of vectors of a length.
        fallback: Organises and learns without an LLM, or where it fails.
        make_chat: Makes a user's way to the LLM, from where its calls are counted and the user's folder; None without
            an LLM.
        make_analyst: Makes a user's analyst, which asks in that way; without an LLM it is the fallback.
        chat: The LLM that all of them ask; None without one.
        tally: What its calls came to.
        threads: Where stores do their blocking work.
        clock: Returns the present, with a zone.
        checks: When users' files were last read for damage.
    """

    embedders: Embedders
    make_index: Callable[[int], VectorIndex]
    fallback: Analyst
    make_chat: Callable[[UserAccount, Path], ChatModel | None]
    make_analyst: Callable[[ChatModel | None], Analyst]
    chat: ChatModel | None
    tally: Tally
    threads: StoreThreads
    clock: Callable[[], datetime]
    checks: Checks = field(default_factory=Checks)

    async def aclose(self) -> None:
        """End the threads and let the models go."""
        self.threads.close()
        await self.embedders.aclose()
        if self.chat is not None:
            await self.chat.aclose()


def make_components(
    settings: Settings, endpoint: Endpoint | None, clock: Callable[[], datetime], given: Overrides
) -> Components:
    """Return the parts that settings name. Blocks: it imports libraries.

    Args:
        settings: Which models, and how they are asked.
        endpoint: Where the LLM is; None without one.
        clock: Returns the present, with a zone.
        given: Components that are there already.
    """
    embedder = given.embedder
    if embedder is None and (model := configured_model(settings)) is not None:
        embedder = make_embedder(model, settings)
    AdaptiveIndex(1)  # imports its library here, in a thread, and not with the first user
    fallback = ExtractiveAnalyst(topic_threshold=settings.mid_term_similarity_threshold)
    chat = given.chat or configured_chat(settings, endpoint)
    tally = Tally()

    asked = None if chat is None else _traced(chat, given.tracer)

    def make_chat(account: UserAccount, folder: Path) -> ChatModel | None:
        if asked is None:
            return None
        logged = (
            RecordingChat(asked, folder / LOG_NAME, clock=clock, forgettings=account) if settings.llm_log else asked
        )
        return CurrentChat(MeteredChat(logged, account, tally, settings.llm_daily_token_limit), account)

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
        make_index=AdaptiveIndex,
        fallback=fallback,
        make_chat=make_chat,
        make_analyst=make_analyst,
        chat=chat,
        tally=tally,
        threads=StoreThreads(STORE_THREADS),
        clock=clock,
    )


def configured_model(settings: Settings) -> EmbeddingModel | None:
    """Return the embedding model that settings name; None if they want none: then words answer alone."""
    if settings.wants_no_embedder:
        return None
    if settings.uses_bundled_embedder:
        return EmbeddingModel(BUNDLED_NAME)
    kwargs = json.dumps(without_secrets(settings.embedding_model_kwargs or {}), sort_keys=True)
    return EmbeddingModel(settings.embedding_model_name, without_credentials(settings.embedding_base_url), kwargs)


def make_embedder(model: EmbeddingModel, settings: Settings) -> Embedder:
    """Return the embedder of a model, not loaded yet.

    Args:
        model: The configured one, or one of before.
        settings: Their key is for the API at their base URL, and the secrets among their arguments for their model.
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
    """Return the LLM that settings name, or what replays one; None without one.

    Args:
        settings: How it is asked.
        endpoint: Where it is; None without one.
    """
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
    from memoryos_mcp.llm.tracing import TracedChat  # its library is an extra

    return TracedChat(chat, tracer)
