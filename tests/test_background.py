"""Background loops go on after failures and end when they are told to."""

import asyncio

import pytest

from memoryos_mcp import background
from memoryos_mcp.background import BackgroundLoop
from memoryos_mcp.errors import LeaseLostError, ModelError
from tests.fakes import START, Clock

LIMIT_S = 10


async def test_a_wake_up_that_meets_the_closing_does_not_keep_the_loop_alive() -> None:
    async def nothing() -> bool:
        return False

    async with asyncio.timeout(LIMIT_S):
        for _ in range(200):
            loop = BackgroundLoop("test", nothing, poll_s=60, clock=Clock())
            loop.start()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            loop.wake()
            await loop.close()


async def test_work_goes_on_at_once_while_there_is_more() -> None:
    done = asyncio.Event()
    left = [3]

    async def step() -> bool:
        left[0] -= 1
        if not left[0]:
            done.set()
        return left[0] > 0

    loop = BackgroundLoop("test", step, poll_s=60, clock=Clock())
    loop.start()
    async with asyncio.timeout(LIMIT_S):
        await done.wait()
    await loop.close()
    assert left == [0]


async def test_a_failure_is_visible_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "FIRST_BACKOFF_S", 0.001)
    succeeded = asyncio.Event()
    failures: list[Exception] = [ModelError("first"), RuntimeError("a secret text"), LeaseLostError("taken")]
    health_seen = []

    async def step() -> bool:
        health_seen.append(loop.health)
        if failures:
            raise failures.pop(0)
        succeeded.set()
        return False

    loop = BackgroundLoop("test", step, poll_s=0.001, clock=Clock())
    loop.start()
    async with asyncio.timeout(LIMIT_S):
        await succeeded.wait()
        await asyncio.sleep(0)
    await loop.close()
    assert [health.failed_attempts for health in health_seen] == [0, 1, 2, 2]
    assert loop.health.failed_attempts == 0
    assert loop.health.last_error == "unexpected RuntimeError"
    assert loop.health.last_error_at == START


async def test_closing_before_the_start_is_no_error() -> None:
    async def nothing() -> bool:
        return False

    await BackgroundLoop("test", nothing, poll_s=1, clock=Clock()).close()
