"""Background loops and tasks. All asyncio tasks of the package are created in this module."""

import asyncio
import contextvars
import logging
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

from memoryos_mcp.errors import LeaseLostError, MemoryOSError, ModelClosedError, StorageError
from memoryos_mcp.model.stats import Health

if TYPE_CHECKING:  # the service imports this module before the storage libraries are needed
    from memoryos_mcp.storage.interface import Store
    from memoryos_mcp.storage.values import Lease

T = TypeVar("T")

logger = logging.getLogger(__name__)

LEASE_TTL_S = 30.0
# If another process has the lease, how long to wait before asking for it again. Every added page wakes loops that ask.
LEASE_RETRY_S = 0.5
FIRST_BACKOFF_S = 1.0
LONGEST_BACKOFF_S = 300.0


class BackgroundLoop:
    """Repeats a step in a background task.

    If a step returns True, the next step follows at once. Otherwise it follows after a pause, which `wake` ends early.
    The pause is longer after a step that returns None. A failed step is retried after a pause that grows with each
    failure. A failure never ends the loop.

    Args:
        name: The loop's name in logs and statistics.
        step: Does some work, and returns whether there is more. It returns None if there will be no work until the
            memory is changed.
        poll_s: Maximum number of seconds to pause while there is no work.
        idle_s: Maximum number of seconds to pause after a step that returned None; None if the same as ``poll_s``.
        clock: Returns the current time, which determines when a failed step is retried.
        save_health: Stores the loop's health after each failure, and after the first success that follows a failure.
    """

    def __init__(
        self,
        name: str,
        step: Callable[[], Awaitable[bool | None]],
        *,
        poll_s: float,
        idle_s: float | None = None,
        clock: Callable[[], datetime],
        save_health: Callable[[Health], Awaitable[None]] | None = None,
    ) -> None:
        self.name = name
        self._save_health = save_health
        self.health = Health()
        self._step = step
        self._poll_s = poll_s
        self._idle_s = poll_s if idle_s is None else idle_s
        self._clock = clock
        self._awake = asyncio.Event()
        self._retry_at = clock()
        self._is_closing = False
        self._has_nothing_to_do = False
        self._task: asyncio.Task[None] | None = None
        self._first_pause: asyncio.TimerHandle | None = None

    @property
    def is_resting(self) -> bool:
        """Whether the last step found no work. After `wake`, this is False until the next step has ended."""
        return self._has_nothing_to_do and not self._awake.is_set()

    def start(self, *, has_work: bool = True) -> None:
        """Start the loop with an immediate first step. Without work, the loop begins with a long pause instead."""
        if self._is_closing:
            return
        self._has_nothing_to_do = not has_work
        if has_work or self._awake.is_set():
            self._begin()
        else:
            # A timer instead of a task: most memories on a busy server are closed before this pause ends.
            self._first_pause = asyncio.get_running_loop().call_later(self._idle_s, self._begin)

    def wake(self) -> None:
        """End the current pause, so that the next step begins now. A pause after a failure is not ended."""
        self._awake.set()
        if self._first_pause is not None:
            self._begin()

    async def close(self) -> None:
        """Cancel the loop and wait until it has ended. A transaction in progress is finished first."""
        # If a step fails while it is being cancelled, the cancellation is lost. This flag ends the loop even then.
        self._is_closing = True
        self._end_first_pause()
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        # Break the reference cycle between the loop and the step's owner, so that a closed memory is freed at once.
        self._step = _nothing
        self._save_health = None

    def _begin(self) -> None:
        self._end_first_pause()
        # A separate context: the data of the request that wakes the loop must not outlive the request.
        self._task = asyncio.create_task(  # noqa: TID251 - the owner
            self._run(), name=f"memoryos-{self.name}", context=contextvars.Context()
        )

    def _end_first_pause(self) -> None:
        if self._first_pause is not None:
            self._first_pause.cancel()
            self._first_pause = None

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
        """Wait until `wake` is called or the pause is over."""
        # Not asyncio.wait_for: before Python 3.12 it may swallow a cancellation that coincides with the wake-up.
        with suppress(TimeoutError):
            async with asyncio.timeout(pause_s):
                await self._awake.wait()
        self._awake.clear()

    async def _try_step(self) -> float:
        """Run one step. Return the number of seconds to pause before the next step."""
        self._awake.clear()
        self._has_nothing_to_do = False
        try:
            has_more = await self._step()
        except LeaseLostError:
            return self._poll_s
        except Exception as error:
            if isinstance(error, ModelClosedError) or not threading.main_thread().is_alive():
                return self._poll_s  # a program that ends can start no threads; its next start continues the work
            if not isinstance(error, MemoryOSError):
                logger.exception("%s: unexpected failure", self.name)
            return await self._failed(error)
        if self.health.failed_attempts:
            self.health = Health(0, self.health.last_error, self.health.last_error_at)
            await self._store_health()
        if has_more is None:
            self._has_nothing_to_do = True
            return self._idle_s
        return 0.0 if has_more else self._poll_s

    async def _failed(self, error: Exception) -> float:
        attempts = self.health.failed_attempts + 1
        text = str(error) if isinstance(error, MemoryOSError) else f"unexpected {type(error).__name__}"
        self.health = Health(attempts, text, self._clock())
        pause_s = min(LONGEST_BACKOFF_S, FIRST_BACKOFF_S * 2.0 ** min(attempts - 1, 20))
        self._retry_at = self._clock() + timedelta(seconds=pause_s)
        logger.warning("%s failed (attempt %d), next attempt in %.0f s: %s", self.name, attempts, pause_s, text)
        await self._store_health()
        return pause_s

    async def _store_health(self) -> None:
        """Store the loop's health. Errors are ignored, because the store itself may have failed."""
        if self._save_health is not None:
            with suppress(MemoryOSError):
                await self._save_health(self.health)


async def _nothing() -> bool:
    return False


async def to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine. The coroutine runs to its end even if the caller is cancelled.

    If the caller is cancelled, CancelledError is raised after the coroutine has ended.
    """
    task = asyncio.create_task(work)  # noqa: TID251 - the owner
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        with anyio.CancelScope(shield=True):  # otherwise a cancelled scope would interrupt every wait
            while not task.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # otherwise asyncio logs it as never retrieved
        raise


class BackgroundTasks:
    """Tasks that continue when their caller is cancelled. At the end, the owner must call `wait` or `cancel`."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Start a task and return it.

        Await it with `asyncio.shield`. Otherwise, cancelling the caller would also cancel the task.
        """
        # A separate context: the data of a request, such as its token, must not outlive the request.
        task = asyncio.create_task(work, context=contextvars.Context())  # noqa: TID251 - the owner
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def wait(self) -> None:
        """Wait for all tasks, including tasks that are started while waiting."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def cancel(self) -> None:
        """Cancel all tasks and wait until they have ended."""
        for task in self._tasks:
            task.cancel()
        await self.wait()

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # otherwise asyncio logs it as never retrieved


class LeaseKeeper:
    """Shares one user's lease among the background loops of this process.

    A lease allows only one process at a time to do the background work. The first loop that needs the lease takes it,
    and the last one releases it. In between, a task renews the lease.

    Attributes:
        is_elsewhere: Whether another process had the lease when this process last needed it.
    """

    def __init__(self, store: "Store", ttl_s: float) -> None:
        self._store = store
        self._ttl_s = ttl_s
        self.is_elsewhere = False
        self._refused_at_s = -LEASE_RETRY_S
        self._may_be_taken = False
        self._lock = asyncio.Lock()
        self._holders = 0
        self._lease: Lease | None = None
        self._heartbeat: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def hold(self) -> "AsyncIterator[Lease | None]":
        """Yield the lease, or None if another process has it. Background work needs the lease."""
        await asyncio.sleep(max(0.0, self._refused_at_s + LEASE_RETRY_S - time.monotonic()))
        async with self._lock:
            self._may_be_taken = True
            lease = self._lease = await self._store.take_lease(self._ttl_s)
            self._holders += 1
            self.is_elsewhere = lease is None
            if lease is None:
                self._refused_at_s = time.monotonic()
            if lease is not None and self._heartbeat is None:
                self._heartbeat = asyncio.create_task(self._beat())  # noqa: TID251 - the owner
        try:
            yield lease
        finally:
            await self._give_back()

    async def close(self) -> None:
        """Release a lease that a cancelled loop has not released. Call this after all loops have ended."""
        heartbeat, self._heartbeat, self._lease = self._heartbeat, None, None
        if heartbeat is not None:
            heartbeat.cancel()
            await asyncio.wait([heartbeat])
        if self._may_be_taken:
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
            self._may_be_taken = False

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self._ttl_s / 3)
            try:
                # If the lease was lost meanwhile, this takes a new lease, which is released like the first.
                self._lease = await self._store.take_lease(self._ttl_s) or self._lease
            except StorageError as error:
                logger.warning(
                    "the lease for the background work was not renewed, so another process can start this work: %s",
                    type(error).__name__,
                )
