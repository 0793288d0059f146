"""Ends the work of a thread when the task that waits for the thread is cancelled."""

import asyncio
from collections.abc import Callable
from typing import ParamSpec

from memoryos_mcp.errors import StorageError

P = ParamSpec("P")


def cancellable(report: Callable[P, None]) -> Callable[P, None]:
    """Return a function that calls ``report``, or raises `StorageError` if the current task has been cancelled.

    The error ends the work of the thread that calls the function.
    """
    task = asyncio.current_task()

    def checking(*args: P.args, **kwargs: P.kwargs) -> None:
        if task is not None and task.cancelling():
            msg = "the command was stopped; run it again"
            raise StorageError(msg)
        report(*args, **kwargs)

    return checking
