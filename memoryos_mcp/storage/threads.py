"""Threads for blocking work on stores: shared by all users of a process, and never left behind."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

import anyio

T = TypeVar("T")


class StoreThreads:
    """A bounded pool of threads. What is begun is waited for, even by a caller that is cancelled meanwhile.

    So a connection is never used by a thread that nobody knows of, and a transaction ends before its lock is given up.

    Args:
        count: How many calls may run at once.
    """

    def __init__(self, count: int) -> None:
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="memoryos-store")

    async def run(self, work: Callable[[], T]) -> T:
        """Return what ``work`` returns, run in a thread; a cancellation is taken note of when it has ended."""
        call = asyncio.get_running_loop().run_in_executor(self._pool, work)
        try:
            return await asyncio.shield(call)
        except asyncio.CancelledError:
            with anyio.CancelScope(shield=True):
                await _ended(call)
            call.exception()  # seen here, or asyncio would complain that nobody looked
            raise

    def close(self) -> None:
        """Let the threads end; call it when every store is closed."""
        self._pool.shutdown(wait=False)


async def _ended(call: asyncio.Future[T]) -> None:
    """Wait until a call has ended, however often the waiting is cancelled."""
    while not call.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([call])
