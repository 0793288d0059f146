"""Limits processes to a share of a core, so that the cores of one machine suffice for several of them.

A process that has used more than its share is stopped by SIGSTOP until it may continue. This needs no rights beyond
those of the user who runs the process, and it works wherever these signals exist.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress

import psutil

TICK_S = 0.005
# A process that was idle may use this much more at once.
CREDIT_S = 0.05


@asynccontextmanager
async def throttled(pids: Iterable[int], share: float) -> AsyncIterator[None]:
    """Limit each process to ``share`` of a core until the context ends."""
    tasks = [asyncio.get_running_loop().create_task(_limit(psutil.Process(pid), share)) for pid in pids]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def cpu_s(pid: int) -> float:
    """Return the CPU seconds of a process since its start."""
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


async def _limit(process: psutil.Process, share: float) -> None:
    credit_s, before, used_before = 0.0, time.monotonic(), cpu_s(process.pid)
    try:
        while True:
            now, used = time.monotonic(), cpu_s(process.pid)
            credit_s = min(CREDIT_S, credit_s + share * (now - before) - (used - used_before))
            before, used_before = now, used
            if credit_s < 0:
                process.suspend()
            else:
                process.resume()
            await asyncio.sleep(TICK_S)
    finally:
        with suppress(psutil.NoSuchProcess):
            process.resume()
