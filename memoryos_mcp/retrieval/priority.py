"""Query priority: loading a user's vectors gives way while a query is answered."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress

# Total time for which one load gives way.
PATIENCE_S = 1.0


class QueryPriority:
    """Knows whether any query of one user is being answered. Shared by retrieval and loading."""

    def __init__(self) -> None:
        self._queries = 0
        self._is_quiet = asyncio.Event()
        self._is_quiet.set()

    @contextmanager
    def querying(self) -> Iterator[None]:
        """Make loads give way while a query is answered."""
        self._queries += 1
        self._is_quiet.clear()
        try:
            yield
        finally:
            self._queries -= 1
            if not self._queries:
                self._is_quiet.set()

    def patiently(self) -> Callable[[], Awaitable[None]]:
        """Return what one load awaits before each of its pieces.

        It waits while queries are answered, but for a limited total time, or many queries would block a load.
        """
        left_s = PATIENCE_S

        async def give_way() -> None:
            nonlocal left_s
            began = time.monotonic()
            with suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self._is_quiet.wait()
            left_s = max(0.0, left_s - (time.monotonic() - began))

        return give_way
