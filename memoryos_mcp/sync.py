"""The class `Memoryos`: the library without `await`, with the same interface as the original MemoryOS.

The event loop runs in its own thread. The class therefore works where another event loop is already running, such as in
a notebook, and many threads can use the same object. All errors are raised as exceptions from `memoryos_mcp.errors`.
"""

import asyncio
import os
import threading
import weakref
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from memoryos_mcp.config import Settings
from memoryos_mcp.config.sources import check_data_folder, load_settings
from memoryos_mcp.consolidation.forgetting import DryRun, Selection
from memoryos_mcp.engine.engine import MemoryEngine
from memoryos_mcp.engine.inspection import ListPart
from memoryos_mcp.engine.service import Memories, MemoryService
from memoryos_mcp.engine.tools.arguments import Arguments, GetUserProfileArguments, NoArguments
from memoryos_mcp.engine.tools.core_tools import get_memory_stats, get_user_profile
from memoryos_mcp.engine.tools.definitions import Answer
from memoryos_mcp.errors import MemoryOSError, StorageError
from memoryos_mcp.model.forgotten import ForgetReceipt
from memoryos_mcp.model.stats import ProfileView
from memoryos_mcp.model.views import MemoryView
from memoryos_mcp.retrieval.recall import Recall
from memoryos_mcp.storage.values import Corrected

T = TypeVar("T")
Tool = Callable[[Memories, str, Any], Awaitable[Answer]]
Work = Callable[[MemoryService, MemoryEngine], Awaitable[T]]

# How long the garbage collector waits for an unreferenced memory to close.
# No page is lost if the memory does not close in time, because all pages are already on disk.
COLLECT_LIMIT_S = 10.0
# How often an open memory checks whether the main thread has ended.
MAIN_THREAD_POLL_S = 0.2


class Memoryos:
    """One user's memory, for programs without ``async``. Close it after use, or use it in a ``with`` statement.

    If you do not close an object, it closes itself when the main thread ends or when no reference to it remains.
    Several threads may share an object. An object cannot be used in a forked process: open another one in the child
    process, or start the child process with "spawn".

    Args:
        user_id: Id of the user; any text.
        openai_api_key: API key of the LLM; None or empty means no key. Without an LLM, topics and facts are found by
            rules, and `get_response` is not available.
        data_storage_path: Folder that contains all memories. Default: the user data folder of the platform.
        openai_base_url: Base URL of an OpenAI-compatible API. Default: the API of OpenAI, if there is a key.
        assistant_id: Name of the assistant. Facts about the assistant are stored under this name.
        short_term_capacity: Maximum number of pages in short-term memory.
        mid_term_capacity: Maximum number of topic segments. If there are more, those with the lowest heat are archived.
        long_term_knowledge_capacity: Maximum number of current facts about the user. The same limit applies to facts
            about the assistant. Older facts are archived, but searches still find them.
        retrieval_queue_capacity: Maximum number of pages that a retrieval returns in addition to short-term pages.
        mid_term_heat_threshold: Minimum heat at which traits are extracted from a segment.
        mid_term_similarity_threshold: Minimum similarity between a page and the segment that it joins, 0 to 2.
        llm_model: Name of the LLM.
        embedding_model_name: Name or folder of the embedding model.
        embedding_model_kwargs: Additional arguments for the embedding model.
        settings: Any other settings by name. All arguments override the environment variables ``MEMORYOS_*``.

    Raises:
        ConfigError: A setting is not valid.
        StorageError: The memory could not be opened.
    """

    def __init__(
        self,
        user_id: str,
        openai_api_key: str | None = None,
        data_storage_path: str | Path | None = None,
        openai_base_url: str | None = None,
        assistant_id: str = "default_assistant_profile",
        short_term_capacity: int = 10,
        mid_term_capacity: int = 2000,
        long_term_knowledge_capacity: int = 3000,
        retrieval_queue_capacity: int = 7,
        mid_term_heat_threshold: float = 5.0,
        mid_term_similarity_threshold: float = 0.6,
        llm_model: str = "gpt-4o-mini",
        embedding_model_name: str = "memoryos-small",
        embedding_model_kwargs: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        named = {
            "user_id": user_id,
            "openai_api_key": openai_api_key,
            "data_storage_path": data_storage_path,
            "openai_base_url": openai_base_url,
            "assistant_id": assistant_id,
            "short_term_capacity": short_term_capacity,
            "mid_term_capacity": mid_term_capacity,
            "long_term_knowledge_capacity": long_term_knowledge_capacity,
            "retrieval_queue_capacity": retrieval_queue_capacity,
            "mid_term_heat_threshold": mid_term_heat_threshold,
            "mid_term_similarity_threshold": mid_term_similarity_threshold,
            "llm_model": llm_model,
            "embedding_model_name": embedding_model_name,
            "embedding_model_kwargs": None if embedding_model_kwargs is None else dict(embedding_model_kwargs),
        }
        chosen = load_settings(None, {**settings, **named})
        check_data_folder(chosen, may_only_read=True)
        self._thread = _MemoryThread(chosen)
        self._finalizer = weakref.finalize(self, self._thread.end, COLLECT_LIMIT_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def add_memory(
        self,
        user_input: str,
        agent_response: str,
        timestamp: str | datetime | None = None,
        meta_data: Mapping[str, Any] | None = None,
    ) -> str:
        """Store one turn on disk, and return the id of its page.

        Args:
            user_input: What the user said.
            agent_response: What the assistant answered.
            timestamp: When the turn was said; None means now. A time without a zone is in the user's time zone.
            meta_data: Your own notes, stored with the page.

        Raises:
            ArgumentError: An argument is not valid; nothing was stored.
            StorageError: The turn could not be written to disk; nothing was stored.
        """

        async def add(_: MemoryService, engine: MemoryEngine) -> str:
            receipt = await engine.add(user_input, agent_response, timestamp=timestamp, meta_data=meta_data)
            return receipt.page_id

        return self._thread.call(add)

    def get_response(
        self,
        query: str,
        relationship_with_user: str = "friend",
        style_hint: str = "",
        user_conversation_meta_data: Mapping[str, Any] | None = None,
    ) -> str:
        """Return the LLM's answer to a query, based on the user's memory. The query and the answer become a new page.

        Args:
            query: The user's message.
            relationship_with_user: The assistant's relationship with the user.
            style_hint: The desired style of the answer.
            user_conversation_meta_data: Your own notes. They are included in the prompt and stored with the page.

        Raises:
            ArgumentError: An argument is not valid.
            ConfigError: No LLM is configured.
            ModelError: The LLM did not return a complete answer; nothing was stored.
            StorageError: The store could not be read or written.
        """

        async def respond(_: MemoryService, engine: MemoryEngine) -> str:
            response = await engine.respond(
                query,
                relationship=relationship_with_user,
                style_hint=style_hint,
                meta_data=user_conversation_meta_data,
            )
            return response.text

        return self._thread.call(respond)

    def get_user_profile_summary(self) -> str:
        """Return the user's traits as text, one per line. If there are no traits, return the text "None".

        Raises:
            StorageError: The store could not be read.
        """
        return str(self._profile()["user_profile"])

    def get_assistant_knowledge_summary(self) -> list[dict[str, Any]]:
        """Return the facts about the assistant. Each is a dictionary with ``knowledge``, ``timestamp`` and other keys.

        Raises:
            StorageError: The store could not be read.
        """
        knowledge: list[dict[str, Any]] = self._profile()["assistant_knowledge"]
        return knowledge

    def retrieve(self, query: str, *, max_results: int | None = None, max_tokens: int | None = None) -> Recall:
        """Return the memories of all three tiers that are relevant to a query. `Recall.text` is their text.

        Args:
            query: A question or keywords.
            max_results: Maximum number of pages to return in addition to short-term pages, 1 to 100. None means
                at most ``retrieval_queue_capacity`` pages, without pages that score far below the best page.
            max_tokens: Token budget of the result, 100 to 1,000,000. None means ``retrieval_max_tokens``.

        Raises:
            ArgumentError: An argument is not valid.
            StorageError: The store could not be read.
        """
        return self._thread.call(
            lambda _, engine: engine.retrieve(query, max_results=max_results, max_tokens=max_tokens)
        )

    def profile(self) -> ProfileView:
        """Return what is known: the user's traits, and the current facts about the user and the assistant.

        Raises:
            StorageError: The store could not be read.
        """
        return self._thread.call(lambda _, engine: engine.profile())

    def listed(
        self,
        *,
        tier: str = "",
        topic: str = "",
        state: str = "",
        after: str | datetime = "",
        before: str | datetime = "",
        cursor: str = "",
        limit: int | None = None,
        words: str = "",
    ) -> ListPart:
        """Return one part of a list of memories, newest first. Each entry has an id and the beginning of its text.

        Args:
            tier: The memories to list: pages (the default), short_term, backlog, mid_term, segments, knowledge (facts),
                profile (traits) or long_term (traits and facts).
            topic: Id of a segment, or part of a segment's keyword; empty means any topic.
            state: current (the default), superseded (only for facts) or archived (only for facts and segments).
            after: Earliest time, inclusive; empty means no limit.
            before: Latest time, exclusive; empty means no limit.
            cursor: The cursor of the previous part; empty means the beginning of the list.
            limit: Maximum number of memories, 1 to 100; None means 20.
            words: Words that each page must contain; empty means no such filter.

        Raises:
            ArgumentError: An argument is not valid.
            StorageError: The store could not be read.
        """
        return self._thread.call(
            lambda _, engine: engine.listed(
                tier=tier,
                topic=topic,
                state=state,
                after=after,
                before=before,
                cursor=cursor,
                limit=limit,
                words=words,
            )
        )

    def look(self, ids: Sequence[str], *, max_tokens: int | None = None) -> list[MemoryView]:
        """Return the memories with the given ids, each with its evidence and history.

        Args:
            ids: Ids of pages, segments, chains, facts and traits, at most 50.
            max_tokens: Token budget for the texts of all pages together, 100 to 1,000,000. None means 50,000.

        Raises:
            ArgumentError: An argument is not valid, or an id does not exist.
            StorageError: The store could not be read.
        """
        return self._thread.call(lambda _, engine: engine.look(ids, max_tokens=max_tokens))

    def correct(
        self,
        memory_id: str,
        *,
        text: str | None = None,
        level: str | None = None,
        reason: str | None = None,
        is_wrong: bool = False,
        is_restored: bool = False,
        is_dry_run: bool = False,
    ) -> Corrected:
        """Correct a fact or trait on behalf of the user, and return the change.

        Args:
            memory_id: Id of a fact (k1) or trait (trait:NAME).
            text: The correct text of a fact.
            level: The correct level of a trait: Low, Medium or High.
            reason: The reason for the trait's level.
            is_wrong: Whether the fact or trait is wrong and has no replacement.
            is_restored: Whether to undo the last correction of the fact or trait.
            is_dry_run: Whether to return the change without making it.

        Raises:
            ArgumentError: The correction is not valid; nothing was changed.
            StorageError: The store could not be written; nothing was changed.
        """
        return self._thread.call(
            lambda _, engine: engine.correct(
                memory_id,
                text=text,
                level=level,
                reason=reason,
                is_wrong=is_wrong,
                is_restored=is_restored,
                is_dry_run=is_dry_run,
            )
        )

    def plan_forgetting(self, selection: Selection) -> DryRun:
        """Return what `forget` would delete: counts, samples and a handle. Nothing is forgotten yet.

        Raises:
            ArgumentError: The selection is empty or contradictory, or an id does not exist.
            StorageError: The store could not be read.
        """
        return self._thread.call(lambda _, engine: engine.plan_forgetting(selection))

    def forget(self, handle: str) -> ForgetReceipt:
        """Forget the memories that a dry run selected, and return the receipt.

        Args:
            handle: The handle that `plan_forgetting` returned.

        Raises:
            ArgumentError: The handle is unknown or expired; nothing was forgotten.
            StorageError: The store could not be written.
        """
        return self._thread.call(lambda _, engine: engine.forget(handle))

    def get_memory_stats(self) -> dict[str, Any]:
        """Return the result of the tool ``get_memory_stats``: counts, and the state of the background work.

        Raises:
            StorageError: The store could not be read.
        """
        return self._call_tool(get_memory_stats, NoArguments())

    def force_mid_term_analysis(self) -> None:
        """Organise all pending pages, and extract traits from all segments regardless of their heat.

        Raises:
            ModelError: The LLM did not return a usable answer. The background work continues.
            StorageError: The store could not be read or written, or another process does this memory's background work.
        """
        self._thread.call(lambda _, engine: engine.analyse())

    def close(self) -> None:
        """Stop the background work and close the files. After that, all other methods raise StorageError.

        Closing a closed memory has no effect.
        """
        self._finalizer.detach()
        self._thread.end(None)

    def _profile(self) -> dict[str, Any]:
        return self._call_tool(get_user_profile, GetUserProfileArguments(include_assistant_knowledge=True))

    def _call_tool(self, tool: Tool, arguments: Arguments) -> dict[str, Any]:
        async def call(service: MemoryService, engine: MemoryEngine) -> dict[str, Any]:
            answer = await tool(service, engine.user_id, arguments)
            return answer.result.model_dump()

        return self._thread.call(call)


class _MemoryThread:
    """A thread that runs an event loop and keeps the memory of the configured user open."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._process = os.getpid()
        self._is_ended = False
        # Reentrant, because the garbage collector may call `end` during `end`.
        self._end_lock = threading.RLock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ending = asyncio.Event()
        opened: Future[None] = Future()
        # This thread is not a daemon, so the threads that it starts are not daemons either. The interpreter therefore
        # waits for all of them. A daemon thread that loads a model while the interpreter exits would abort the process.
        self._thread = threading.Thread(target=self._run, args=(opened,), name="memoryos", daemon=False)
        self._thread.start()
        try:
            opened.result()
        except BaseException:  # including Ctrl-C
            self.end(0.0)
            raise

    def call(self, work: Work[T]) -> T:
        """Run ``work`` in the event loop, and return its result.

        Raises:
            MemoryOSError: The call comes from the memory's own thread, or from a forked process.
            StorageError: The memory was closed before or during the call.
        """
        if os.getpid() != self._process:
            msg = (
                "this memory was opened before the process forked; open another Memoryos in the child process, "
                'or use the start method "spawn" for child processes'
            )
            raise MemoryOSError(msg)
        if threading.current_thread() is self._thread:
            msg = "a call from the memory's own thread would block forever; call the memory from another thread"
            raise MemoryOSError(msg)
        if self._is_ended or self._loop is None:
            raise StorageError(_CLOSED)
        coroutine = self._work(work)
        try:
            future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        except RuntimeError as error:  # the loop was closed in the meantime
            coroutine.close()
            raise StorageError(_CLOSED) from error
        try:
            return future.result()
        except CancelledError:
            raise StorageError(_CLOSED) from None
        except BaseException:
            future.cancel()  # after Ctrl-C, the call must not continue
            raise

    def end(self, limit_s: float | None) -> None:
        """Close the memory, and wait until it is closed or ``limit_s`` seconds have passed; None means no limit.

        If the time runs out, the memory's thread continues to close the memory. In a forked process, this method does
        nothing.
        """
        if os.getpid() != self._process:
            return
        with self._end_lock:
            if not self._is_ended:
                self._is_ended = True
                if self._loop is not None:
                    with suppress(RuntimeError):  # the loop ended with the main thread
                        self._loop.call_soon_threadsafe(self._ending.set)
        # The garbage collector may call this method in any thread, including the memory's own.
        if threading.current_thread() is not self._thread:
            self._thread.join(limit_s)

    def _run(self, opened: "Future[None]") -> None:
        try:
            # Debug mode is off, because it would report slow steps of this private loop on stderr.
            asyncio.run(self._live(opened), debug=False)
        except BaseException as error:  # noqa: BLE001 - raised to the caller
            if not opened.done():
                opened.set_exception(error)

    async def _live(self, opened: "Future[None]") -> None:
        with self._end_lock:
            self._loop = asyncio.get_running_loop()
        async with (
            MemoryService(self._settings) as self._service,
            self._service.user(self._settings.user_id) as self._engine,
        ):
            opened.set_result(None)
            await self._until_ended()

    async def _until_ended(self) -> None:
        # The main thread is polled, because the interpreter runs exit hooks only after this thread has ended.
        while not self._is_ended and threading.main_thread().is_alive():
            with suppress(TimeoutError):
                async with asyncio.timeout(MAIN_THREAD_POLL_S):
                    await self._ending.wait()

    async def _work(self, work: Work[T]) -> T:
        async with self._service.user(self._settings.user_id) as engine:
            return await work(self._service, engine)


_CLOSED = "the memory is closed; open another Memoryos"
