"""Decides when the fallback replaces a failing analyst, and when the fallback's results become final.

An analyst organises pages and extracts facts and traits from them. The fallback is the analyst that needs no LLM.
"""

from collections.abc import Awaitable, Callable

from memoryos_mcp.errors import BudgetSpentError, ModelError, ReplyFormatError

ATTEMPTS_BEFORE_FALLBACK = 5

# Counts a failed attempt at a piece of work, and returns the number of failed attempts so far.
Count = Callable[[], Awaitable[int]]


async def should_fall_back(failure: ModelError, count: Count, *, failed_steps: int = 0) -> bool:
    """Return whether the fallback (the analyst without an LLM) must do the work of a failing analyst now.

    The result is True if the LLM budget is spent, or if the analyst has failed five times at the same piece of work.

    Args:
        failure: The error that the analyst raised.
        count: Function that counts this attempt as failed, and returns the number of failed attempts at the piece of
            work. It is not called if the budget is spent.
        failed_steps: Number of consecutive steps in which the analyst failed on every batch. After five such steps,
            the result is True, even if this piece of work has failed fewer times.
    """
    if isinstance(failure, BudgetSpentError):
        return True
    return max(await count(), failed_steps) >= ATTEMPTS_BEFORE_FALLBACK


async def becomes_final(failure: BaseException, count: Count) -> bool:
    """Return whether the result of the fallback (the analyst without an LLM) becomes final.

    It becomes final after the fifth unusable answer of the LLM, which is then not asked again.

    Args:
        failure: The error that the analyst with the LLM raised. Only a `ReplyFormatError` is an unusable answer.
        count: Function that counts one more unusable answer, and returns the number of unusable answers. It is not
            called for other errors.
    """
    return isinstance(failure, ReplyFormatError) and await count() >= ATTEMPTS_BEFORE_FALLBACK
