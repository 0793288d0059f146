"""Query priority: the loading of a user's vectors pauses while a query of this user is being answered."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress

# Maximum total pause of one load.
PAUSE_LIMIT_S = 1.0


class QueryPriority:
    """Pauses the loading of one user's vectors during queries. Retrieval and loading share one instance."""

    def __init__(self) -> None:
        self._queries = 0
        self._is_quiet = asyncio.Event()
        self._is_quiet.set()

    @contextmanager
    def querying(self) -> Iterator[None]:
        """Return a context manager that pauses the loading of vectors while its ``with`` block answers a query."""
        self._queries += 1
        self._is_quiet.clear()
        try:
            yield
        finally:
            self._queries -= 1
            if not self._queries:
                self._is_quiet.set()

    def pauses(self) -> Callable[[], Awaitable[None]]:
        """Return a function that waits until no query is running.

        Call this method once for each load of the vectors. Await the returned function before each block of
        vectors. The pauses of one load take at most `PAUSE_LIMIT_S` in total, so that many queries cannot prevent the
        load.
        """
        left_s = PAUSE_LIMIT_S

        async def give_way() -> None:
            nonlocal left_s
            began = time.monotonic()
            with suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self._is_quiet.wait()
            left_s = max(0.0, left_s - (time.monotonic() - began))

        return give_way
