"""Reopens the memories of users with unfinished background work, so that the work is completed."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import anyio.to_thread

from memoryos_mcp.consolidation.loops import LEASE_TTL_S, BackgroundLoop
from memoryos_mcp.errors import StorageError

if TYPE_CHECKING:
    from memoryos_mcp.engine.engine import MemoryEngine

logger = logging.getLogger(__name__)

# Maximum number of users opened at once, and never more than half of all; the remaining capacity is for callers.
AT_ONCE = 4
POLL_S = 0.5
# While callers are being served, the loop pauses for this many times the CPU time of the process during its work.
# Waiting for an LLM takes none, so that a slow LLM does not delay other users.
PAUSE_PER_WORK = 4.0
# Time limit for one user, and the delay after a failure, for example if a model is unreachable.
USER_LIMIT_S = 60.0
RETRY_AFTER = timedelta(minutes=5)
# After the start, and after another server has ended, work is searched for until the leases of processes that were
# killed have expired, and once more then. On a shared database, the leases of servers that ended count no more. The
# pause between two searches is at least LOOK_EVERY, and PAUSE_PER_LOOK times the CPU time of the process during a
# search.
LOOK_FOR = timedelta(seconds=LEASE_TTL_S + 1)
LOOK_EVERY = timedelta(seconds=2)
PAUSE_PER_LOOK = 10.0
# How long a call that waits for the end of another server takes at most.
WATCH_S = 60.0


class Recovery:
    """Reopens the memories of users with unfinished work, a few at a time.

    Each memory stays open until no work is due or the time limit is reached.

    Args:
        find: Returns the users with unfinished work. This function is called in a thread: several times after the start
            of this process, and again whenever ``wait`` has returned True.
        wait: Waits for a sign that another server has ended, but at most the given number of seconds. Returns whether
            there was such a sign; see `Stores.wait_for_work`.
        borrow: Opens a user's memory. If too many memories are open, those that this function opened are closed first.
        is_busy: Returns whether any caller is being served.
        capacity_users: Maximum number of users whose memories are open.
        clock: Returns the current time.
    """

    def __init__(
        self,
        find: Callable[[], Sequence[str]],
        wait: Callable[[float], Awaitable[bool]],
        borrow: "Callable[[str], AbstractAsyncContextManager[MemoryEngine]]",
        is_busy: Callable[[], bool],
        capacity_users: int,
        clock: Callable[[], datetime],
    ) -> None:
        self._find = find
        self._wait = wait
        self._borrow = borrow
        self._is_busy = is_busy
        self._at_once = max(1, min(AT_ONCE, capacity_users // 2))
        self._clock = clock
        self._due: dict[str, datetime] = {}
        self._look_at: datetime | None = clock()
        self._look_until = clock() + LOOK_FOR
        self._loop = BackgroundLoop("catching up", self._step, poll_s=POLL_S, clock=clock)
        self._watching = BackgroundLoop("watching", self._watch, poll_s=POLL_S, clock=clock)

    def start(self) -> None:
        """Start the background loops. They first search for all users with unfinished work."""
        self._loop.start()
        self._watching.start()

    async def close(self) -> None:
        """Stop the background loops. After the next start, all unfinished work is found again."""
        await self._watching.close()
        await self._loop.close()

    def note(self, user_id: str, at: datetime) -> None:
        """Record that a user's next work is due at the time ``at``. Call this before the user's memory is closed."""
        self._due[user_id] = at

    def forget(self, user_id: str) -> None:
        """Delete the time that `note` recorded for a user. Call this before the user's memory is opened."""
        self._due.pop(user_id, None)

    async def _watch(self) -> bool:
        if await self._wait(WATCH_S):
            logger.info("another server has ended; searching for its unfinished work")
            self._look_at = self._clock()
            self._look_until = self._look_at + LOOK_FOR
        return True

    async def _look(self) -> None:
        """Search for users with unfinished work, and set the time of the next search."""
        began, began_at = time.process_time(), self._clock()
        self._look_at = began_at + LOOK_EVERY  # if the search fails
        found = list(await anyio.to_thread.run_sync(self._find))
        known = {user_id: self._due.get(user_id, self._clock()) for user_id in found}
        self._due = {**known, **self._due}  # begins with the users found, in their order
        if found:
            logger.info("%d users have pages that are not organised yet or have no vectors", len(found))
        pause = max(LOOK_EVERY, timedelta(seconds=PAUSE_PER_LOOK * (time.process_time() - began)))
        now = self._clock()
        is_last = began_at >= self._look_until
        self._look_at = None if is_last else min(now + pause, max(now, self._look_until))

    async def _step(self) -> bool:
        worked = await asyncio.gather(*(self._work_off() for _ in range(self._at_once)), return_exceptions=True)
        for each in worked:
            if isinstance(each, BaseException):  # raised only now, when no other user's work is under way
                raise each
        return any(worked)

    async def _work_off(self) -> bool:
        """Finish all due work, one user at a time. Return whether any work was due."""
        has_worked = False
        while (user_id := await self._next_user()) is not None:
            has_worked = True
            began = time.process_time()
            await self._finish_work(user_id)
            if self._is_busy():
                # The CPU time is that of all users whose work is being done.
                await asyncio.sleep(PAUSE_PER_WORK * (time.process_time() - began) / self._at_once)
        return has_worked

    async def _next_user(self) -> str | None:
        """Return the first user whose work is due, and delete the due time. Return None if no work is due."""
        if self._look_at is not None and self._look_at <= self._clock():
            await self._look()
        now = self._clock()
        user_id = next((user_id for user_id, at in self._due.items() if at <= now), None)
        if user_id is not None:
            self.forget(user_id)  # a memory that is open already is not opened, which would do this too
        return user_id

    async def _finish_work(self, user_id: str) -> None:
        """Open a user's memory, and keep it open until no work is due or the time limit is reached."""
        try:
            async with asyncio.timeout(USER_LIMIT_S), self._borrow(user_id) as engine:
                while (at := await engine.next_work_at()) is not None and at <= self._clock():  # noqa: ASYNC110
                    await asyncio.sleep(POLL_S)
        except TimeoutError:
            pass  # closing the user calls `note` for the remaining work
        except StorageError as error:
            logger.warning("a user's background work failed and will be tried again later: %s", type(error).__name__)
            self.note(user_id, self._clock() + RETRY_AFTER)
