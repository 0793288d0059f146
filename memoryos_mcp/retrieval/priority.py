"""Query priority: the loading of a user's vectors pauses while a query is answered."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress

# Maximum total pause of one load.
PAUSE_LIMIT_S = 1.0


class QueryPriority:
    """Records whether a query of one user is being answered. Retrieval and loading share it."""

    def __init__(self) -> None:
        self._queries = 0
        self._is_quiet = asyncio.Event()
        self._is_quiet.set()

    @contextmanager
    def querying(self) -> Iterator[None]:
        """Pause loads while a query is answered."""
        self._queries += 1
        self._is_quiet.clear()
        try:
            yield
        finally:
            self._queries -= 1
            if not self._queries:
                self._is_quiet.set()

    def pauses(self) -> Callable[[], Awaitable[None]]:
        """Return a function for one load to await before each block: it returns when no query is being answered.

        The total pause is limited, so that many queries cannot block a load.
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
