"""Recovery: reopens the memories of users with unfinished background work, so that the work is completed."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import anyio.to_thread

from memoryos_mcp.consolidation.loops import BackgroundLoop
from memoryos_mcp.errors import StorageError

if TYPE_CHECKING:
    from memoryos_mcp.engine.engine import MemoryEngine

logger = logging.getLogger(__name__)

# Number of users opened at once; the remaining capacity is for callers.
AT_ONCE = 2
POLL_S = 0.5
# While callers are being served, the loop pauses for this many times as long as it has worked.
PAUSE_PER_WORK = 4.0
# Time limit for one user, and the delay after a failure, for example if a model is unreachable.
USER_LIMIT_S = 60.0
RETRY_AFTER = timedelta(minutes=5)


class Recovery:
    """Reopens the memories of users with unfinished work, a few at a time.

    Each memory stays open until no work is due or the time limit is reached.

    Args:
        find: Returns the users with unfinished work. It is called once, at the start, in a thread.
        borrow: Opens a user's memory. If too many memories are open, this one is closed before all others.
        is_busy: Returns whether any caller is being served.
        clock: Returns the current time.
    """

    def __init__(
        self,
        find: Callable[[], Sequence[str]],
        borrow: "Callable[[str], AbstractAsyncContextManager[MemoryEngine]]",
        is_busy: Callable[[], bool],
        clock: Callable[[], datetime],
    ) -> None:
        self._find = find
        self._borrow = borrow
        self._is_busy = is_busy
        self._clock = clock
        self._due: dict[str, datetime] = {}
        self._has_looked = False
        self._loop = BackgroundLoop("catching up", self._step, poll_s=POLL_S, clock=clock)

    def start(self) -> None:
        """Start the loop. It first searches for all users with unfinished work."""
        self._loop.start()

    async def close(self) -> None:
        """Stop the loop. The next start will find all work that is still unfinished."""
        await self._loop.close()

    def note(self, user_id: str, at: datetime) -> None:
        """Record the time at which the next work is due for a user whose memory is being closed."""
        self._due[user_id] = at

    def forget(self, user_id: str) -> None:
        """Remove the recorded time at which a user's next work is due, because the user's memory is being opened.

        The user's engine does this work while the memory is open.
        """
        self._due.pop(user_id, None)

    async def _step(self) -> bool:
        if not self._has_looked:
            for user_id in await anyio.to_thread.run_sync(self._find):
                self._due.setdefault(user_id, self._clock())
            self._has_looked = True
            if self._due:
                logger.info("%d users have pages that are not organised yet, or have no vectors yet", len(self._due))
        now = self._clock()
        due = [user_id for user_id, at in self._due.items() if at <= now][:AT_ONCE]
        began = time.monotonic()
        await asyncio.gather(*map(self._finish_work, due))
        if due and self._is_busy():
            await asyncio.sleep(PAUSE_PER_WORK * (time.monotonic() - began))
        return bool(due)

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
