"""Requests that share a pass of a model; events replace the time that a model takes."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryos_mcp.embedding.batching import MicroBatches, batches
from memoryos_mcp.errors import ModelError

LIMIT_S = 10


class Doubling:
    """Returns the doubles of numbers; each pass waits for an event."""

    def __init__(self) -> None:
        self.passes: list[list[int]] = []
        self.has_begun = threading.Event()
        self.may_go_on = threading.Event()
        self.failure: Exception | None = None

    def __call__(self, numbers: list[int]) -> list[int]:
        self.passes.append(numbers)
        self.has_begun.set()
        assert self.may_go_on.wait(LIMIT_S)
        if self.failure is not None:
            raise self.failure
        return [2 * number for number in numbers]


@pytest.fixture
def doubling() -> Doubling:
    return Doubling()


@pytest.fixture
def thread() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as thread:
        yield thread


async def begun(doubling: Doubling) -> None:
    assert await asyncio.to_thread(doubling.has_begun.wait, LIMIT_S)


async def outcome(asking: MicroBatches[int, int], number: int) -> int | str:
    try:
        return await asking.answer(number)
    except ModelError as error:
        return str(error)


async def test_requests_during_a_pass_share_the_next_pass(doubling: Doubling, thread: ThreadPoolExecutor) -> None:
    asking = MicroBatches(thread, doubling, max_rows=4)
    async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
        first = group.create_task(asking.answer(0))
        await begun(doubling)
        others = [group.create_task(asking.answer(number)) for number in range(1, 8)]
        await asyncio.sleep(0)
        doubling.may_go_on.set()
    assert first.result() == 0
    assert [task.result() for task in others] == [2 * number for number in range(1, 8)]
    assert doubling.passes == [[0], [1, 2, 3, 4], [5, 6, 7]]


async def test_all_callers_of_a_failed_pass_get_the_error(doubling: Doubling, thread: ThreadPoolExecutor) -> None:
    asking = MicroBatches(thread, doubling, max_rows=4)
    async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
        first = group.create_task(outcome(asking, 0))
        await begun(doubling)
        others = [group.create_task(outcome(asking, number)) for number in (1, 2, 3)]
        await asyncio.sleep(0)
        doubling.failure = ModelError("down")
        doubling.may_go_on.set()
    assert [await task for task in (first, *others)] == ["down"] * 4
    assert doubling.passes == [[0], [1, 2, 3]]
    doubling.failure = None
    assert await outcome(asking, 4) == 8


async def test_a_cancelled_caller_does_not_affect_others(doubling: Doubling, thread: ThreadPoolExecutor) -> None:
    asking = MicroBatches(thread, doubling, max_rows=4)
    async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
        under_way = group.create_task(asking.answer(0))
        await begun(doubling)
        tasks = [group.create_task(asking.answer(number)) for number in (1, 2, 3)]
        await asyncio.sleep(0)
        under_way.cancel()
        tasks[1].cancel()
        await asyncio.sleep(0)
        doubling.may_go_on.set()
    assert under_way.cancelled()
    assert tasks[1].cancelled()
    assert [tasks[0].result(), tasks[2].result()] == [2, 6]
    assert doubling.passes == [[0], [1, 3]]


@given(st.lists(st.integers(1, 600), max_size=60))
def test_batches_contain_every_row_once_within_the_limits(sizes: list[int]) -> None:
    made = list(batches(sizes, max_rows=8, max_size=384))
    assert sorted(index for batch in made for index in batch) == list(range(len(sizes)))
    for batch in made:
        assert len(batch) <= 8
        assert len(batch) == 1 or len(batch) * max(sizes[index] for index in batch) <= 384
