"""The one policy of falling back: when the fallback does an analyst's work, and when its work stays."""

from collections.abc import Awaitable, Callable

from memoryos_mcp.errors import BudgetSpentError, ModelError, ReplyFormatError

ATTEMPTS_BEFORE_FALLBACK = 5

# Counts a failed attempt on some work, and returns how many there were.
Count = Callable[[], Awaitable[int]]


async def takes_over(failure: ModelError, count: Count, *, steps_in_vain: int = 0) -> bool:
    """Return whether the fallback does the work now: at once if the budget is spent, else after enough attempts.

    Args:
        failure: Error of the analyst.
        count: Called only for a failure that counts as an attempt.
        steps_in_vain: Steps in a row without an answer to anything; as many as attempts are enough, too.
    """
    if isinstance(failure, BudgetSpentError):
        return True
    return max(await count(), steps_in_vain) >= ATTEMPTS_BEFORE_FALLBACK


async def stays(failure: BaseException, count: Count) -> bool:
    """Return whether the fallback's work stays: the analyst answered every attempt at it, but never usably."""
    return isinstance(failure, ReplyFormatError) and await count() >= ATTEMPTS_BEFORE_FALLBACK
