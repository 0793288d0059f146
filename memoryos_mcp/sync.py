"""The library without `await`: `Memoryos`, with the reference's constructor and methods.

An event loop runs in a thread of its own, so that it works where another loop runs already, as in a notebook, and may
be called from many threads at once. Errors are raised as the exceptions of `memoryos_mcp.errors`, never returned.
"""

import asyncio
import os
import threading
import weakref
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from memoryos_mcp.config import Settings
from memoryos_mcp.config.sources import check_data_folder, load_settings
from memoryos_mcp.engine.engine import MemoryEngine
from memoryos_mcp.engine.service import MemoryService
from memoryos_mcp.engine.tools.arguments import GetUserProfileArguments, NoArguments, check
from memoryos_mcp.engine.tools.core_tools import get_memory_stats, get_user_profile
from memoryos_mcp.engine.tools.memory_arguments import CorrectMemoryArguments
from memoryos_mcp.engine.tools.memory_tools import correct_memory
from memoryos_mcp.errors import MemoryOSError, StorageError

T = TypeVar("T")
Work = Callable[[MemoryService, MemoryEngine], Awaitable[T]]

# How long the collector of garbage waits for a memory that nothing refers to; every page is on disk already.
COLLECT_LIMIT_S = 10.0
# How often an open memory looks whether the main thread has ended.
MAIN_THREAD_POLL_S = 0.2


class Memoryos:
    """One user's memory, for programs without an event loop of their own. Close it after use, or use it with ``with``.

    What is not closed is closed when the main thread ends, or when nothing refers to it any more. Safe to share between
    threads. After a fork the child's copy refuses every call: make another one there, or start processes with "spawn".

    Args:
        user_id: Whose memory; any text.
        openai_api_key: Key of the LLM. Empty or left out for none: then topics and facts are found without an LLM, and
            only `get_response` is not to be had.
        data_storage_path: Folder of all memories. Default: the platform's user data folder.
        openai_base_url: Address of an OpenAI-compatible API. Default: OpenAI's, if there is a key.
        assistant_id: Which assistant the knowledge about the assistant belongs to.
        short_term_capacity: Pages kept verbatim.
        mid_term_capacity: Topic segments kept.
        long_term_knowledge_capacity: Current facts about the user, and as many about the assistant; older ones are
            archived, and found when asked for.
        retrieval_queue_capacity: Pages retrieved for a response.
        mid_term_heat_threshold: Heat from which a segment is promoted to profile and knowledge.
        mid_term_similarity_threshold: Match from which a page joins a segment, 0 to 2.
        llm_model: Name of the LLM.
        embedding_model_name: Name or folder of the embedding model.
        embedding_model_kwargs: Further arguments of its constructor.
        settings: Any other setting by its name. They, and those above, go before MEMORYOS_* environment variables.

    Raises:
        ConfigError: A setting cannot be used.
        StorageError: The memory cannot be opened.
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
        embedding_model_name: str = "all-MiniLM-L6-v2",
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
        """Store one turn, and return the id of its page; it is on disk then.

        Args:
            user_input: What the user said.
            agent_response: What the assistant answered.
            timestamp: When it was said; None means now, no zone means the user's.
            meta_data: Your own notes, kept with the page.

        Raises:
            ArgumentError: An argument cannot be used; nothing was stored.
            StorageError: The disk failed; nothing was stored.
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
        """Return the LLM's answer, made with all that is remembered; the exchange is remembered in its turn.

        Args:
            query: What the user says.
            relationship_with_user: What the assistant is to the user.
            style_hint: The wished style.
            user_conversation_meta_data: Your own notes, told to the LLM and kept with the page.

        Raises:
            ArgumentError: An argument cannot be used.
            ConfigError: There is no LLM.
            ModelError: The LLM gave no whole answer; nothing was stored.
            StorageError: The store failed.
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
        """Return the profile as text, one trait a line; "None" while there is none.

        Raises:
            StorageError: The store could not be read.
        """
        return str(self._profile()["user_profile"])

    def get_assistant_knowledge_summary(self) -> list[dict[str, Any]]:
        """Return the facts about the assistant, each with ``knowledge``, ``timestamp`` and what else is known of it.

        Raises:
            StorageError: The store could not be read.
        """
        knowledge: list[dict[str, Any]] = self._profile()["assistant_knowledge"]
        return knowledge

    def correct_memory(
        self,
        memory_id: str,
        text: str | None = None,
        level: str | None = None,
        reason: str | None = None,
        wrong: bool = False,
        restore: bool = False,
        dry_run: bool = False,
    ) -> dict[str, Any]:
        """Correct a fact or trait, and return what held before and what holds now, as the tool of that name does.

        Args:
            memory_id: Id of the fact, k1, or trait, trait:NAME.
            text: What is right instead of a fact.
            level: What is right of a trait: Low, Medium or High.
            reason: Why the trait is so.
            wrong: It is wrong and has no replacement.
            restore: Take its last correction back.
            dry_run: Change nothing.

        Raises:
            ArgumentError: It cannot be carried out; nothing was changed.
            StorageError: The store could not be written; nothing was changed.
        """
        given = {"text": text, "level": level, "reason": reason, "wrong": wrong, "restore": restore, "dry_run": dry_run}
        arguments = check(CorrectMemoryArguments, {"id": memory_id, **given})

        async def correct(service: MemoryService, engine: MemoryEngine) -> dict[str, Any]:
            answer = await correct_memory(service, engine.user_id, arguments)
            return answer.result.model_dump()

        return self._thread.call(correct)

    def get_memory_stats(self) -> dict[str, Any]:
        """Return how much is remembered and how the background work fares, as the tool of that name does.

        Raises:
            StorageError: The store could not be read.
        """

        async def stats(service: MemoryService, engine: MemoryEngine) -> dict[str, Any]:
            answer = await get_memory_stats(service, engine.user_id, NoArguments())
            return answer.result.model_dump()

        return self._thread.call(stats)

    def force_mid_term_analysis(self) -> None:
        """File all pages that wait in topics, and learn from every topic now, however cool it is.

        Raises:
            ModelError: The LLM had no usable answer; what is left is done in the background.
            StorageError: The store failed, or another process does this memory's background work.
        """

        async def analyse(_: MemoryService, engine: MemoryEngine) -> None:
            await engine.analyse()

        self._thread.call(analyse)

    def close(self) -> None:
        """End the background work and close the files; later calls are refused. May be called twice."""
        self._finalizer.detach()
        self._thread.end(None)

    def _profile(self) -> dict[str, Any]:
        async def profile(service: MemoryService, engine: MemoryEngine) -> dict[str, Any]:
            arguments = GetUserProfileArguments(include_assistant_knowledge=True)
            answer = await get_user_profile(service, engine.user_id, arguments)
            return answer.result.model_dump()

        return self._thread.call(profile)


class _MemoryThread:
    """A thread with an event loop in which one user's memory is held open.

    Args:
        settings: Checked settings, which name the user.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._process = os.getpid()
        self._is_ended = False
        # Whoever collects what nothing refers to may do so in the middle of `end`.
        self._end_lock = threading.RLock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ending = asyncio.Event()
        opened: Future[None] = Future()
        # Not a daemon, so neither are the threads that it starts: the interpreter waits for them. A daemon that loads a
        # model while the interpreter ends would abort the process.
        self._thread = threading.Thread(target=self._run, args=(opened,), name="memoryos", daemon=False)
        self._thread.start()
        try:
            opened.result()
        except BaseException:  # Ctrl-C included
            self.end(0.0)
            raise

    def call(self, work: Work[T]) -> T:
        """Return what work in the loop returns.

        Raises:
            MemoryOSError: It is called where it could only wait for itself, or in a process that has no such thread.
            StorageError: The memory is closed, or was meanwhile.
        """
        if os.getpid() != self._process:
            msg = 'this memory was opened before the process forked; open it in the child, or start it with "spawn"'
            raise MemoryOSError(msg)
        if threading.current_thread() is self._thread:
            msg = "called from the memory's own thread, which would wait for itself; call it from another thread"
            raise MemoryOSError(msg)
        if self._is_ended or self._loop is None:
            raise StorageError(_CLOSED)
        calling = self._work(work)
        try:
            future = asyncio.run_coroutine_threadsafe(calling, self._loop)
        except RuntimeError as error:  # it was closed this moment
            calling.close()
            raise StorageError(_CLOSED) from error
        try:
            return future.result()
        except CancelledError:
            raise StorageError(_CLOSED) from None
        except BaseException:
            future.cancel()  # as Ctrl-C does, which must not leave a call behind
            raise

    def end(self, limit_s: float | None) -> None:
        """Close the memory, and wait until that is done, at most so long; None waits as long as it takes."""
        if os.getpid() != self._process:
            return
        with self._end_lock:
            if not self._is_ended:
                self._is_ended = True
                if self._loop is not None:
                    with suppress(RuntimeError):  # the loop ended with the main thread
                        self._loop.call_soon_threadsafe(self._ending.set)
        # What nothing refers to any more may be collected in any thread, also in this one.
        if threading.current_thread() is not self._thread:
            self._thread.join(limit_s)

    def _run(self, opened: "Future[None]") -> None:
        try:
            asyncio.run(self._live(opened))
        except BaseException as error:  # noqa: BLE001 - it is the caller's
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
        # The interpreter runs no hook of a program before it has waited for all threads.
        while not self._is_ended and threading.main_thread().is_alive():
            with suppress(TimeoutError):
                async with asyncio.timeout(MAIN_THREAD_POLL_S):
                    await self._ending.wait()

    async def _work(self, work: Work[T]) -> T:
        async with self._service.user(self._settings.user_id) as engine:
            return await work(self._service, engine)


_CLOSED = "the memory is closed; open another Memoryos"
