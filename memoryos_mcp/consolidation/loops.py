"""Background loops: work that goes on while callers are served. The one place that makes tasks."""

import asyncio
import contextvars
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

from memoryos_mcp.errors import LeaseLostError, MemoryOSError, StorageError
from memoryos_mcp.llm.reading import reading_since
from memoryos_mcp.model.stats import Health

if TYPE_CHECKING:  # a service has errands before the first user's libraries are there
    from memoryos_mcp.storage.interface import Store
    from memoryos_mcp.storage.values import Lease

T = TypeVar("T")

logger = logging.getLogger(__name__)

FIRST_BACKOFF_S = 1.0
LONGEST_BACKOFF_S = 300.0


class BackgroundLoop:
    """Does a step of work again and again: at once while there is more, else when woken or after a while.

    A failed step is tried again after a growing pause; a failure never ends the loop.

    Args:
        name: What it is called in logs and stats.
        step: Does some work, and returns whether there is more.
        poll_s: The longest pause while there is nothing to do.
        clock: Returns the present; it decides when a failed step is tried again.
        keep: Keeps how it fares, each time a step fails, and when one works again.
    """

    def __init__(
        self,
        name: str,
        step: Callable[[], Awaitable[bool]],
        *,
        poll_s: float,
        clock: Callable[[], datetime],
        keep: Callable[[Health], Awaitable[None]] | None = None,
    ) -> None:
        self.name = name
        self._keep = keep
        self.health = Health()
        self._step = step
        self._poll_s = poll_s
        self._clock = clock
        self._awake = asyncio.Event()
        self._retry_at = clock()
        self._is_closing = False
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin, with a first step at once."""
        self._awake.set()
        self._task = asyncio.create_task(self._run(), name=f"memoryos-{self.name}")  # noqa: TID251 - the owner

    def wake(self) -> None:
        """Do a step soon."""
        self._awake.set()

    async def close(self) -> None:
        """Cancel the loop and wait until it has ended; a transaction that runs is finished first."""
        # A step that fails while it is cancelled would make the cancellation be forgotten; this is not.
        self._is_closing = True
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        # The step knows its owner, whose RAM would wait for the collector of cycles otherwise.
        self._step = _nothing
        self._keep = None

    async def _run(self) -> None:
        while not self._is_closing:
            pause_s = await self._try_step()
            if self._is_closing:
                return
            if self.health.failed_attempts:
                # What wakes the loop is no reason to try again sooner, but a clock that was put back is no reason to
                # wait longer.
                while 0 < (rest_s := (self._retry_at - self._clock()).total_seconds()) <= pause_s:
                    await self._wait(min(rest_s, self._poll_s))
            elif pause_s > 0:
                await self._wait(pause_s)

    async def _wait(self, pause_s: float) -> None:
        """Return when woken, or after the pause."""
        # Not asyncio.wait_for: before Python 3.12 it may swallow a cancellation that meets the wake-up.
        with suppress(TimeoutError):
            async with asyncio.timeout(pause_s):
                await self._awake.wait()
        self._awake.clear()

    async def _try_step(self) -> float:
        """Do one step and return the pause until the next, seconds."""
        self._awake.clear()
        try:
            has_more = await self._step()
        except LeaseLostError:
            return self._poll_s
        except MemoryOSError as error:
            return await self._failed(error)
        except Exception as error:
            logger.exception("%s: unexpected failure", self.name)
            return await self._failed(error)
        if self.health.failed_attempts:
            self.health = Health(0, self.health.last_error, self.health.last_error_at)
            await self._kept()
        return 0.0 if has_more else self._poll_s

    async def _failed(self, error: Exception) -> float:
        attempts = self.health.failed_attempts + 1
        text = str(error) if isinstance(error, MemoryOSError) else f"unexpected {type(error).__name__}"
        self.health = Health(attempts, text, self._clock())
        pause_s = min(LONGEST_BACKOFF_S, FIRST_BACKOFF_S * 2.0 ** min(attempts - 1, 20))
        self._retry_at = self._clock() + timedelta(seconds=pause_s)
        logger.warning("%s failed (attempt %d), next try in %.0f s: %s", self.name, attempts, pause_s, text)
        await self._kept()
        return pause_s

    async def _kept(self) -> None:
        """Keep how it fares; a store that fails is what may have to be told."""
        if self._keep is not None:
            with suppress(MemoryOSError):
                await self._keep(self.health)


async def _nothing() -> bool:
    return False


async def to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """Return what work returns; a cancellation is taken note of when it has ended."""
    task = asyncio.create_task(work)  # noqa: TID251 - the owner
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        with anyio.CancelScope(shield=True):  # a scope that is cancelled would interrupt the waiting again and again
            while not task.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # seen here, or asyncio would complain that nobody looked
        raise


class Errands:
    """Work that goes on whoever waits for it and is cancelled meanwhile; its owner waits for all of it in the end."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def begin(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Return the task that does the work; wait for it with `asyncio.shield`, or a cancellation would end it."""
        # In a context of its own: what a request knows, such as its token, ends with the request.
        task = asyncio.create_task(work, context=contextvars.Context())  # noqa: TID251 - the owner
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        return task

    async def finished(self) -> None:
        """Wait until nothing is under way, also of what is begun meanwhile."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def cancelled(self) -> None:
        """Cancel what is under way, and wait until it has ended."""
        for task in self._tasks:
            task.cancel()
        await self.finished()

    def _forget(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # seen here, or asyncio would complain where nobody waited


class LeaseKeeper:
    """Shares one user's lease among this process's loops: taken with the first, given back with the last.

    While it is held it is renewed, however long a model takes over one step.
    """

    def __init__(self, store: "Store", ttl_s: float) -> None:
        self._store = store
        self._ttl_s = ttl_s
        self._lock = asyncio.Lock()
        self._holders = 0
        self._lease: Lease | None = None
        self._heartbeat: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def hold(self) -> "AsyncIterator[Lease | None]":
        """Yield the lease, or None while another process holds it."""
        async with self._lock:
            lease = self._lease = await self._store.take_lease(self._ttl_s)
            self._holders += 1
            if lease is not None and self._heartbeat is None:
                self._heartbeat = asyncio.create_task(self._beat())  # noqa: TID251 - the owner
        try:
            with reading_since(await self._store.forgettings()):
                yield lease
        finally:
            await self._give_back()

    async def close(self) -> None:
        """Give back what a cancelled holder has left behind; call it when every holder has ended."""
        heartbeat, self._heartbeat, self._lease = self._heartbeat, None, None
        if heartbeat is not None:
            heartbeat.cancel()
            await asyncio.wait([heartbeat])
        await self._store.release_leases()

    async def _give_back(self) -> None:
        async with self._lock:
            self._holders -= 1
            if self._holders:
                return
            heartbeat, self._heartbeat = self._heartbeat, None
            if heartbeat is not None:
                heartbeat.cancel()
                await asyncio.wait([heartbeat])
            lease, self._lease = self._lease, None
            if lease is not None:
                await self._store.release_lease(lease)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self._ttl_s / 3)
            try:
                # Where it was lost meanwhile this one is another; it is this that is given back in the end.
                self._lease = await self._store.take_lease(self._ttl_s) or self._lease
            except StorageError as error:
                logger.warning("the lease could not be renewed: %s", type(error).__name__)
