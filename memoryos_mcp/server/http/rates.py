"""Counts the requests of each caller, in this process or over all servers that share a database."""

import logging
import math
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import anyio
import anyio.to_thread

from memoryos_mcp.errors import StorageError
from memoryos_mcp.storage.capabilities import Grant, Rates

logger = logging.getLogger(__name__)

# Number of callers whose rate is tracked. The least recently seen caller is dropped, which only resets its rate.
CALLERS_REMEMBERED = 10_000
# A server takes the requests of this time out of the database at once. A caller at its limit waits for that long.
SHARE_S = 0.2
# Time limit for the database. If it does not answer, each server counts for itself, and tries again later.
DRAW_TIMEOUT_S, RETRY_S = 1.0, 5.0
DRAWS_AT_ONCE = 2


class OwnRates:
    """Limits the request rate of each caller. Only requests to this process are counted.

    Args:
        per_second: Allowed average number of requests per second from one caller. A burst may have twice this number.
        clock: Monotonic clock in seconds.
    """

    def __init__(self, per_second: float, clock: Callable[[], float]) -> None:
        self._per_second = per_second
        self._burst = burst_of(per_second)
        self._clock = clock
        # For each caller, the number of requests that may still arrive at once, and when that number was computed.
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait_s(self, caller: str) -> float:
        """Return how many seconds a caller must wait. If the result is 0, the request is admitted and counted."""
        now = self._clock()
        left, since = self._left.pop(caller, (self._burst, now))
        left = min(self._burst, left + (now - since) * self._per_second)
        is_admitted = left >= 1
        self._left[caller] = (left - is_admitted, now)
        if len(self._left) > CALLERS_REMEMBERED:
            self._left.popitem(last=False)
        return 0.0 if is_admitted else (1 - left) / self._per_second


@dataclass(slots=True, eq=False)
class _Share:
    """The requests of one caller that this server may still admit.

    Attributes:
        requests: Number of requests that may be admitted without asking the database again.
        draw_at: The earliest time at which the server may ask the database for more requests.
        drawing: A lock that is held while the server asks the database.
    """

    requests: int = 0
    draw_at: float = -math.inf
    drawing: anyio.Lock = field(default_factory=anyio.Lock)


class SharedRates:
    """Limits the request rate of each caller. Requests to all servers that share a database are counted.

    A server reserves several requests of a caller at once in the database. A caller that has reached its limit
    is refused without a query to the database.

    Args:
        rates: The counts in the database.
        per_second: Allowed average number of requests per second from one caller. A burst may have twice this number.
        clock: Monotonic clock in seconds.
    """

    def __init__(self, rates: Rates, per_second: float, clock: Callable[[], float]) -> None:
        self._rates = rates
        self._per_second = per_second
        self._burst = burst_of(per_second)
        self._share = max(1, int(per_second * SHARE_S))
        self._clock = clock
        self._shares: OrderedDict[str, _Share] = OrderedDict()
        self._retry_at = -math.inf
        self._is_alone = False
        self._threads = anyio.CapacityLimiter(DRAWS_AT_ONCE)

    async def wait_s(self, caller: str) -> float | None:
        """Return how many seconds a caller must wait. If the result is 0, the request is admitted and counted.

        Return None if the database has failed in this call or within the last `RETRY_S` seconds.
        """
        share = self._shares.pop(caller, None) or _Share()
        self._shares[caller] = share
        if len(self._shares) > CALLERS_REMEMBERED:
            self._shares.popitem(last=False)
        async with share.drawing:
            now = self._clock()
            if not share.requests and now >= max(share.draw_at, self._retry_at):
                await self._draw(caller, share)
            if share.requests:
                share.requests -= 1
                return 0.0
            return None if now < self._retry_at else share.draw_at - now

    async def _draw(self, caller: str, share: _Share) -> None:
        draw = partial(self._rates.draw, caller, self._share, per_second=self._per_second, burst=self._burst)
        problem = f"the database did not answer within {DRAW_TIMEOUT_S:.0f} s; check the database and the network"
        with anyio.move_on_after(DRAW_TIMEOUT_S):
            try:
                grant: Grant = await anyio.to_thread.run_sync(draw, abandon_on_cancel=True, limiter=self._threads)
            except StorageError as error:
                problem = str(error)
            else:
                share.requests, share.draw_at = grant.requests, self._clock() + grant.wait_s
                if self._is_alone:
                    logger.info("the database works again, so requests are counted over all servers together")
                    self._is_alone = False
                return
        self._retry_at = self._clock() + RETRY_S
        if not self._is_alone:
            logger.warning("the database failed, so this server counts requests by itself: %s", problem)
            self._is_alone = True


def burst_of(per_second: float) -> float:
    """Return how many requests a caller may send in one burst, if ``per_second`` is the allowed average."""
    return max(1.0, 2 * per_second)
