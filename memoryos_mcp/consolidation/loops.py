"""Background loops: work that continues while callers are served. All tasks are created here."""

import asyncio
import contextvars
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

from memoryos_mcp.errors import LeaseLostError, MemoryOSError, StorageError
from memoryos_mcp.model.stats import Health

if TYPE_CHECKING:  # a service has errands before the first user is opened
    from memoryos_mcp.storage.interface import Store
    from memoryos_mcp.storage.values import Lease

T = TypeVar("T")

logger = logging.getLogger(__name__)

FIRST_BACKOFF_S = 1.0
LONGEST_BACKOFF_S = 300.0


class BackgroundLoop:
    """Repeats a step of work: at once while there is more, else when woken or after a pause.

    A failed step is tried again after a growing pause; a failure never ends the loop.

    Args:
        name: Its name in logs and stats.
        step: Does some work, and returns whether there is more.
        poll_s: Longest pause while there is nothing to do.
        clock: Returns the present time; it decides when a failed step is tried again.
        keep: Stores the health each time a step fails, and when one works again.
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
        """Start, with a first step at once."""
        self._awake.set()
        self._task = asyncio.create_task(self._run(), name=f"memoryos-{self.name}")  # noqa: TID251 - the owner

    def wake(self) -> None:
        """Do a step soon."""
        self._awake.set()

    async def close(self) -> None:
        """Cancel the loop and wait until it has ended; a transaction in progress is finished first."""
        # A step that fails while it is cancelled would swallow the cancellation; this flag remains.
        self._is_closing = True
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        # The step refers to its owner, which otherwise only the collector of cycles would free.
        self._step = _nothing
        self._keep = None

    async def _run(self) -> None:
        while not self._is_closing:
            pause_s = await self._try_step()
            if self._is_closing:
                return
            if self.health.failed_attempts:
                # Waking the loop does not shorten the pause, and a clock that was set back does not lengthen it.
                while 0 < (rest_s := (self._retry_at - self._clock()).total_seconds()) <= pause_s:
                    await self._wait(min(rest_s, self._poll_s))
            elif pause_s > 0:
                await self._wait(pause_s)

    async def _wait(self, pause_s: float) -> None:
        """Return when woken, or after the pause."""
        # Not asyncio.wait_for: before Python 3.12 it may swallow a cancellation that coincides with the wake-up.
        with suppress(TimeoutError):
            async with asyncio.timeout(pause_s):
                await self._awake.wait()
        self._awake.clear()

    async def _try_step(self) -> float:
        """Do one step and return the pause until the next, in seconds."""
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
        """Store the health. Errors are ignored: the failure to be stored may be that of the store."""
        if self._keep is not None:
            with suppress(MemoryOSError):
                await self._keep(self.health)


async def _nothing() -> bool:
    return False


async def to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of work; a cancellation takes effect only when the work has ended."""
    task = asyncio.create_task(work)  # noqa: TID251 - the owner
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        with anyio.CancelScope(shield=True):  # a cancelled scope would interrupt the wait again and again
            while not task.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # retrieved, or asyncio would report it as lost
        raise


class Errands:
    """Tasks that continue when a waiting caller is cancelled; their owner waits for all of them at the end."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def begin(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Start work and return its task; wait for it with `asyncio.shield`, or a cancellation would end it."""
        # In a context of its own: a request's data, such as its token, must end with the request.
        task = asyncio.create_task(work, context=contextvars.Context())  # noqa: TID251 - the owner
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        return task

    async def finished(self) -> None:
        """Wait until no task is left, including those started meanwhile."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def cancelled(self) -> None:
        """Cancel all tasks and wait until they have ended."""
        for task in self._tasks:
            task.cancel()
        await self.finished()

    def _forget(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # retrieved, or asyncio would report it as lost


class LeaseKeeper:
    """Shares one user's lease among this process's loops: the first holder takes it, the last gives it back.

    It is renewed while it is held, however long a step takes.
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
            yield lease
        finally:
            await self._give_back()

    async def close(self) -> None:
        """Give back the lease of a cancelled holder; call it when every holder has ended."""
        heartbeat, self._heartbeat, self._lease = self._heartbeat, None, None
        if heartbeat is not None:
            heartbeat.cancel()
            await asyncio.wait([heartbeat])
        await self._store.release_lease()

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
                # If the lease was lost meanwhile, this is another one, which is given back in the end.
                self._lease = await self._store.take_lease(self._ttl_s) or self._lease
            except StorageError as error:
                logger.warning("the lease could not be renewed: %s", type(error).__name__)
