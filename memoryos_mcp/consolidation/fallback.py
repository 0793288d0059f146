"""The fallback policy: when the fallback replaces a failing analyst, and when its results become final."""

from collections.abc import Awaitable, Callable

from memoryos_mcp.errors import BudgetSpentError, ModelError, ReplyFormatError

ATTEMPTS_BEFORE_FALLBACK = 5

# Counts a failed attempt at a piece of work, and returns the number of attempts so far.
Count = Callable[[], Awaitable[int]]


async def should_fall_back(failure: ModelError, count: Count, *, failed_steps: int = 0) -> bool:
    """Return whether the fallback does the work now: at once if the budget is spent, otherwise after five failures.

    Args:
        failure: Error of the analyst.
        count: Counts the failed attempt; not called if the budget is spent.
        failed_steps: Number of consecutive steps in which the analyst answered nothing; five are enough too.
    """
    if isinstance(failure, BudgetSpentError):
        return True
    return max(await count(), failed_steps) >= ATTEMPTS_BEFORE_FALLBACK


async def becomes_final(failure: BaseException, count: Count) -> bool:
    """Return whether the fallback's result becomes final: the analyst has given five unusable answers."""
    return isinstance(failure, ReplyFormatError) and await count() >= ATTEMPTS_BEFORE_FALLBACK
