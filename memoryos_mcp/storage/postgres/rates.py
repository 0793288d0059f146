"""Request rates of HTTP callers across all servers that share a database."""

import hashlib
import threading
import time
from collections.abc import Callable

from memoryos_mcp.errors import StorageError
from memoryos_mcp.storage.capabilities import Grant
from memoryos_mcp.storage.postgres.database import Deployment

# A caller's bucket is deleted when it is full and has not been used for at least this time.
KEPT_S = 60.0
# Refills a caller's bucket according to the database's clock, and takes requests out of it. If the clock was set back,
# nothing is added. Parameters: the caller, the number of requests, the number per second, and the capacity.
_DRAW = """
INSERT INTO rates AS known (caller, requests, granted, drawn_at)
VALUES ($1, $4 - $2, $2, clock_timestamp())
ON CONFLICT (caller) DO UPDATE SET (requests, granted, drawn_at) = (
    SELECT bucket.requests - least($2, floor(bucket.requests)), least($2, floor(bucket.requests)), now
    FROM clock_timestamp() AS now, LATERAL (
        SELECT least($4, known.requests + greatest(0, extract(epoch FROM now - known.drawn_at)) * $3) AS requests
    ) AS bucket
)
RETURNING granted, requests
"""
_CLEAN = """
DELETE FROM rates WHERE caller IN (
    SELECT caller FROM rates WHERE drawn_at < clock_timestamp() - make_interval(secs => $1) FOR UPDATE SKIP LOCKED
)
"""


class PostgresRates:
    """The token buckets (rate limits) of all callers, stored in one database. Implements `Rates`.

    Args:
        deployment: A function that returns the connections to the database.
    """

    def __init__(self, deployment: Callable[[], Deployment]) -> None:
        self._deployment = deployment
        self._lock = threading.Lock()
        self._clean_at = time.monotonic()

    def draw(self, caller: str, requests: int, *, per_second: float, burst: float) -> Grant:
        deployment = self._deployment()
        if (problem := deployment.look_again()) is not None:
            raise StorageError(problem)
        if self._is_time_to_clean():
            full_after_s = max(KEPT_S, burst / per_second)
            deployment.retried(lambda raw: raw.execute(_CLEAN, (full_after_s,)))
        parameters = (hashlib.sha256(caller.encode()).digest(), float(requests), per_second, burst)
        granted, left = deployment.retried(lambda raw: raw.execute(_DRAW, parameters).fetchone()) or (0.0, 0.0)
        return Grant(int(granted), 0.0 if granted == requests else (requests - left) / per_second)

    def _is_time_to_clean(self) -> bool:
        with self._lock:
            now = time.monotonic()
            is_time = now >= self._clean_at
            if is_time:
                self._clean_at = now + KEPT_S
            return is_time
