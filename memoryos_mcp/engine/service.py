"""Opens each user's engine on demand, and shares the models between engines. Use one service per process.

The engine and its libraries are imported when the first user's engine is opened, so that a server starts quickly.
"""

import asyncio
import importlib
import logging
import os
import threading
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

import anyio
import anyio.to_thread

from memoryos_mcp.config import Settings
from memoryos_mcp.config.descriptors import fitting_users
from memoryos_mcp.consolidation.loops import BackgroundTasks, to_the_end
from memoryos_mcp.engine.imports import Imports
from memoryos_mcp.engine.recovery import Recovery
from memoryos_mcp.errors import StorageError
from memoryos_mcp.llm.providers import endpoint_of
from memoryos_mcp.model.callers import Caller
from memoryos_mcp.model.pages import utc_now
from memoryos_mcp.storage.stores import STORE_THREADS, make_stores
from memoryos_mcp.text.user_ids import user_folder_name

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

    from memoryos_mcp.embedding import Embedder
    from memoryos_mcp.engine.engine import MemoryEngine
    from memoryos_mcp.engine.wiring import Components
    from memoryos_mcp.llm.analysis import Analyst
    from memoryos_mcp.llm.chat import ChatModel, Purpose
    from memoryos_mcp.llm.user_chat import Spent
    from memoryos_mcp.storage.interface import Stores
    from memoryos_mcp.storage.values import Pending

logger = logging.getLogger(__name__)

# Fewer than the stores' threads, so that open users have free threads even while others wait for locked files to open.
OPENINGS_AT_ONCE = 3
# Maximum number of users that are being closed at once. Other users are opened only afterwards, to limit open files.
CLOSINGS_AT_ONCE = 16
# A survey of the open memories uses only a few threads, so that calls can use the others.
# The caller of the survey waits at most SURVEY_LIMIT_S.
SURVEYED_AT_ONCE = 2
SURVEY_LIMIT_S = 5.0


@dataclass(slots=True, eq=False)
class _User:
    """A user whose engine is open or is being opened.

    Attributes:
        opening: The task that opens the engine. The task continues even if the callers that wait for it are cancelled.
        uses: Number of callers that use the engine or wait for it.
    """

    user_id: str
    opening: "asyncio.Task[MemoryEngine]" = field(init=False)
    uses: int = 0

    @property
    def is_idle(self) -> bool:
        return not self.uses and self.opening.done()

    @property
    def is_lost(self) -> bool:
        """Whether the engine must be reopened, because its file was replaced or removed, or has become writable."""
        is_open = self.opening.done() and not self.opening.cancelled() and self.opening.exception() is None
        return is_open and not self.opening.result().is_in_place()


@dataclass(frozen=True, slots=True)
class Backlog:
    """The pending work of all open memories together.

    Attributes:
        pages: Number of pages waiting to be organised.
        oldest_age_s: Seconds since the oldest of these pages was added; 0 if there are none.
        unembedded_pages: Number of pages waiting for vectors, whether they are organised or not.
        unread_users: Number of open memories whose work could not be read within the time limit. The other numbers do
            not include the work of these memories.
    """

    pages: int
    oldest_age_s: float
    unembedded_pages: int
    unread_users: int


@dataclass(slots=True, eq=False)
class _Survey:
    """The pending work of all open memories, read in the background.

    A partial result is available while memories are still being read.
    """

    users: int
    found: "list[Pending]" = field(default_factory=list)
    task: asyncio.Task[None] = field(init=False)

    def backlog(self, now: datetime) -> Backlog:
        added = [each.oldest_backlog_at for each in self.found if each.oldest_backlog_at is not None]
        return Backlog(
            pages=sum(each.backlog for each in self.found),
            # The age must not be negative if the clock was set back.
            oldest_age_s=max(0.0, (now - min(added)).total_seconds()) if added else 0.0,
            unembedded_pages=sum(each.unembedded for each in self.found),
            unread_users=self.users - len(self.found),
        )


class Memories(Protocol):
    """Access to the users' memories, limited to the rights of one caller."""

    @property
    def settings(self) -> Settings:
        """The validated settings."""
        ...

    def now(self) -> datetime:
        """Return the current time in the configured time zone."""
        ...

    def user(self, user_id: str) -> "AbstractAsyncContextManager[MemoryEngine]":
        """Yield a user's engine.

        Raises:
            ArgumentError: The id is not a valid user id.
            StorageError: The store could not be opened.
        """
        ...


class _ReadOnlyMemories:
    """Access to the memories for a caller with read-only rights.

    For a user without a memory, an empty temporary memory is opened.
    """

    def __init__(self, service: "MemoryService") -> None:
        self._service = service

    @property
    def settings(self) -> Settings:
        return self._service.settings

    def now(self) -> datetime:
        return self._service.now()

    @asynccontextmanager
    async def user(self, user_id: str) -> "AsyncIterator[MemoryEngine]":
        if await self._service.has_memory(user_id):
            async with self._service.user(user_id) as engine:
                yield engine
        else:
            async with self._service.empty_memory(user_id) as engine:
                yield engine


class MemoryService:
    """Opens and closes the memories of all users in a process.

    Use it as an async context manager, which closes every engine at the end.

    Args:
        settings: Validated settings.
        clock: Returns the current time, with a time zone.
        embedder: An embedder to use instead of the configured one.
        chat: An LLM client to use instead of the configured one.
        analyst: An analyst to use instead of the one that calls the LLM.
        catches_up: Whether the service itself opens memories with unfinished background work and completes this work.
            Use this for a server with many users.
        tracer: Creates a span for each LLM call; None disables tracing.
        only_looks: Whether to open all memories read-only; see `MemoryEngine.begin`.
        stores: The stores of the memories. The service closes them. None lets the service create them.

    Attributes:
        imports: The imports of uploaded files.

    Raises:
        ConfigError: The settings of the LLM are not valid.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Callable[[], datetime] = utc_now,
        embedder: "Embedder | None" = None,
        chat: "ChatModel | None" = None,
        analyst: "Analyst | None" = None,
        catches_up: bool = False,
        tracer: "Tracer | None" = None,
        only_looks: bool = False,
        stores: "Stores | None" = None,
    ) -> None:
        self.settings = settings
        self._only_looks = only_looks
        self._clock = clock
        self._embedder = embedder
        self._chat = chat
        self._analyst = analyst
        self._tracer = tracer
        self._endpoint = endpoint_of(settings, os.environ)
        self._components: Components | None = None
        self._capacity_users = settings.max_open_users
        self._users: OrderedDict[str, _User] = OrderedDict()  # the first user is closed first
        self._closings: dict[str, asyncio.Task[None]] = {}
        self._loading: asyncio.Task[None] | None = None
        self._model_loading: asyncio.Task[None] | None = None
        self._survey: _Survey | None = None
        self._tasks = BackgroundTasks()
        self._opening_slots = asyncio.Semaphore(OPENINGS_AT_ONCE)
        self._ending = asyncio.Lock()
        self._recovery = self._make_recovery() if catches_up else None
        self.imports = Imports(self.user)
        self._stores = stores
        self._stores_lock = threading.Lock()
        self._is_closed = False

    async def __aenter__(self) -> Self:
        if self._recovery is not None:
            self._recovery.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @asynccontextmanager
    async def user(self, user_id: str) -> "AsyncIterator[MemoryEngine]":
        """Yield a user's engine, and open it if necessary.

        The engine stays open at least until the end of the ``async with`` block.

        Raises:
            ArgumentError: The id is not a valid user id.
            StorageError: The store could not be opened.
        """
        user = await self._borrow(user_id)
        try:
            yield user.opening.result()
        finally:
            self._give_back(user)

    def as_seen_by(self, caller: Caller) -> Memories:
        """Return the service, or a read-only view of it if ``caller`` is not allowed to change memories."""
        return self if caller.may_write else _ReadOnlyMemories(self)

    async def has_memory(self, user_id: str) -> bool:
        """Return whether a user already has a memory.

        Raises:
            ArgumentError: The id is not a valid user id.
        """
        if user_id in self._users:
            return True
        stores = (await self._load_components()).stores
        return await anyio.to_thread.run_sync(stores.footprint, user_id) is not None

    @asynccontextmanager
    async def empty_memory(self, user_id: str) -> "AsyncIterator[MemoryEngine]":
        """Yield an empty temporary memory. It is deleted at the end of the ``async with`` block.

        Raises:
            StorageError: The memory could not be created.
        """
        components = await self._load_components()
        engine_module = importlib.import_module("memoryos_mcp.engine.engine")
        async with self._opening_slots:
            self._refuse_if_closed()
            with TemporaryDirectory(prefix="memoryos-") as folder:
                settings = self.settings.model_copy(update={"data_storage_path": Path(folder), "database_url": None})
                stores = await anyio.to_thread.run_sync(make_stores, settings, self._clock)
                try:
                    apart = replace(components, stores=stores)
                    engine: MemoryEngine = await engine_module.MemoryEngine.begin(user_id, settings, apart)
                    try:
                        yield engine
                    finally:
                        await to_the_end(engine.close())
                finally:
                    stores.close()

    @asynccontextmanager
    async def _guest(self, user_id: str) -> "AsyncIterator[MemoryEngine]":
        """Yield a user's engine, as `user` does.

        After the ``async with`` block, this engine is the first to be closed if too many engines are open.
        """
        user = await self._borrow(user_id)
        try:
            yield user.opening.result()
        finally:
            self._give_back(user, is_guest=True)

    @property
    def open_users(self) -> int:
        """Number of users whose memory is open."""
        return len(self._users)

    @property
    def llm_spent(self) -> "Mapping[Purpose, Spent]":
        """LLM usage since the process started, by purpose."""
        return {} if self._components is None else self._components.tally.spent

    async def backlog(self) -> Backlog:
        """Return the total pending work of all open memories.

        Memories that cannot be read within 5 s are not included. Their number is returned as ``unread_users``.
        """
        survey = self._survey
        if survey is None or survey.task.done():  # concurrent callers share one survey
            users = list(self._users.values())
            survey = self._survey = _Survey(len(users))
            survey.task = self._tasks.start(self._look(survey, users))
        await asyncio.wait([survey.task], timeout=SURVEY_LIMIT_S)
        return survey.backlog(self._clock())

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called. After that, `user` raises StorageError."""
        return self._is_closed

    @property
    def is_shared(self) -> bool:
        """Whether other servers can use the memories too; False until the first memory is opened."""
        return self._stores is not None and self._stores.is_shared

    def now(self) -> datetime:
        """Return the current time in the configured time zone."""
        return self._clock().astimezone(self.settings.zone)

    async def close(self) -> None:
        """Close all engines, including those that are being opened. Later calls of `user` raise StorageError."""
        self._is_closed = True
        await to_the_end(self._end())

    async def _end(self) -> None:
        async with self._ending:
            if self._recovery is not None:
                await self._recovery.close()
            await self.imports.close()
            if self._model_loading is not None:
                self._model_loading.cancel()
            await self._tasks.wait()
            for user in list(self._users.values()):
                self._begin_closing(user)
            await self._tasks.wait()
            if self._stores is not None:  # other servers are told only when no memory is open
                await anyio.to_thread.run_sync(self._stores.close)
            if self._components is not None:
                await self._components.aclose()

    async def _look(self, survey: _Survey, users: Sequence[_User]) -> None:
        """Read the pending work of each user in ``users``, and add it to ``survey``.

        Memories that are being opened or cannot be read are skipped. At most `SURVEYED_AT_ONCE` memories are read at a
        time.
        """
        remaining = iter(users)

        async def read_next() -> None:
            for user in remaining:
                if user.opening.done():
                    with suppress(StorageError):
                        survey.found.append(await user.opening.result().waiting())

        await asyncio.gather(*(read_next() for _ in range(SURVEYED_AT_ONCE)))

    async def _borrow(self, user_id: str) -> _User:
        """Open a user's engine if necessary, and return the user.

        The engine stays open at least until `_give_back` is called.
        """
        while (closing := self._closings.get(user_id)) is not None:
            await asyncio.shield(closing)
        self._refuse_if_closed()
        user = self._users.get(user_id)
        if user is not None and user.is_lost:
            # Calls in progress fail, because their file is no longer valid. New calls use the current file.
            await user.opening.result().keep_lost()
            if self._users.get(user_id) is user:
                self._begin_closing(user)
                await asyncio.shield(self._closings[user_id])
            return await self._borrow(user_id)
        if user is None:
            user = self._users[user_id] = _User(user_id)
            if self._recovery is not None:
                self._recovery.forget(user_id)
            user.opening = self._tasks.start(self._open(user_id))
        user.uses += 1
        try:
            await asyncio.shield(user.opening)
            self._refuse_if_closed()
        except BaseException:
            self._give_back(user)
            raise
        return user

    def _give_back(self, user: _User, *, is_guest: bool = False) -> None:
        user.uses -= 1
        if self._users.get(user.user_id) is user:
            self._users.move_to_end(user.user_id, last=not is_guest)
            self._close_surplus()

    async def _open(self, user_id: str) -> "MemoryEngine":
        try:
            components = await self._load_components()
            # An invalid user id raises ArgumentError here, before an open user is closed to make room.
            user_folder_name(user_id)
            self._close_surplus()
            async with self._opening_slots:
                while len(self._closings) >= CLOSINGS_AT_ONCE:
                    await asyncio.wait(self._closings.values(), return_when=asyncio.FIRST_COMPLETED)
                self._refuse_if_closed()
                engine_module = importlib.import_module("memoryos_mcp.engine.engine")
                engine: MemoryEngine = await engine_module.MemoryEngine.begin(
                    user_id, self.settings, components, only_looks=self._only_looks
                )
                return engine
        except BaseException:
            del self._users[user_id]  # so that the next caller tries again
            raise

    def _close_surplus(self) -> None:
        """If too many engines are open, start to close idle engines, the least recently used first."""
        surplus = max(0, len(self._users) - self._capacity_users)
        if surplus:
            idle = (user for user in self._users.values() if user.is_idle)
            for user in list(islice(idle, surplus)):
                self._begin_closing(user)

    def _begin_closing(self, user: _User) -> None:
        del self._users[user.user_id]
        self._closings[user.user_id] = self._tasks.start(self._close(user))

    async def _close(self, user: _User) -> None:
        """Close a user's memory. A failure is logged, and does not affect other users."""
        engine = user.opening.result()
        try:
            try:
                await self._note_unfinished_work(user.user_id, engine)
            finally:
                await engine.close()
        except StorageError as error:
            logger.warning("a memory was not closed properly; it can be opened again: %s", type(error).__name__)
        except Exception:
            logger.exception("a memory was not closed properly; it can be opened again")
        finally:
            del self._closings[user.user_id]

    async def _note_unfinished_work(self, user_id: str, engine: "MemoryEngine") -> None:
        if self._recovery is not None and (at := await engine.next_work_at()) is not None:
            self._recovery.note(user_id, at)

    def _make_recovery(self) -> Recovery:
        async def wait(timeout_s: float) -> bool:
            return await (await anyio.to_thread.run_sync(self._made_stores)).wait_for_work(timeout_s)

        capacity_users = self.settings.max_open_users
        return Recovery(self._users_with_work, wait, self._guest, self._is_busy, capacity_users, self._clock)

    def _made_stores(self) -> "Stores":
        """Return the users' stores. The first call creates them; call it in a thread, because it blocks."""
        with self._stores_lock:
            if self._stores is None:
                self._stores = make_stores(self.settings, self._clock, threads=STORE_THREADS)
            return self._stores

    def _users_with_work(self) -> list[str]:
        from memoryos_mcp.embedding.embedders import configured_model

        model = self._embedder.model if self._embedder else configured_model(self.settings)
        return self._made_stores().users_with_work(model.to_json() if model else None)

    def _is_busy(self) -> bool:
        return any(user.uses for user in self._users.values())

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            msg = "the memory service is shutting down; nothing was stored. Try again after it has restarted"
            raise StorageError(msg)

    async def _load_components(self) -> "Components":
        while self._components is None:
            if self._loading is None:
                self._loading = self._tasks.start(self._load())
            await asyncio.shield(self._loading)
        return self._components

    async def _load(self) -> None:
        try:
            self._capacity_users = fitting_users(self.settings.max_open_users, besides=CLOSINGS_AT_ONCE)
            if self._embedder is None:
                self._embedder = await anyio.to_thread.run_sync(self._configured_embedder)
            if self._embedder is not None and not self._only_looks:
                # The model is loaded while libraries are imported. Memories report a failure: they try it again.
                self._model_loading = self._tasks.start(self._embedder.load())
            self._components = await anyio.to_thread.run_sync(self._make_components)
        finally:
            self._loading = None

    def _configured_embedder(self) -> "Embedder | None":
        from memoryos_mcp.embedding.embedders import configured_embedder

        return configured_embedder(self.settings)

    def _make_components(self) -> "Components":
        from memoryos_mcp.engine.wiring import Overrides, make_components

        overrides = Overrides(
            embedder=self._embedder,
            chat=self._chat,
            analyst=self._analyst,
            tracer=self._tracer,
            stores=self._made_stores(),
        )
        return make_components(self.settings, self._endpoint, self._clock, overrides)
