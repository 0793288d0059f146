"""Groups inputs into batches, so that a model processes several inputs in one pass."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from typing import Generic, TypeVar

Q = TypeVar("Q")
A = TypeVar("A")


def batches(sizes: Sequence[int], *, max_rows: int, max_size: int) -> Iterator[list[int]]:
    """Group rows (inputs of a model) of similar size into batches, and yield the row indices of each batch.

    Args:
        sizes: Size of each row, in tokens or characters.
        max_rows: Maximum number of rows in a batch.
        max_size: Maximum size of a batch, including padding. A larger row becomes a separate batch.
    """
    batch: list[int] = []
    for index in sorted(range(len(sizes)), key=sizes.__getitem__):
        if batch and (len(batch) == max_rows or (len(batch) + 1) * sizes[index] > max_size):
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


class MicroBatches(Generic[Q, A]):
    """Groups the questions of concurrent callers into batches, and passes each batch to ``run`` in one call.

    Questions that arrive while all threads are busy are put into the next batch. All callers must use the same event
    loop.

    Args:
        threads: The executor. Each batch runs in one of its threads.
        run: A blocking function that returns the answers to a batch of questions, in the same order.
        max_rows: Maximum number of questions in a batch.
    """

    def __init__(self, threads: Executor, run: Callable[[list[Q]], Sequence[A]], max_rows: int) -> None:
        self._threads = threads
        self._run = run
        self._max_rows = max_rows
        self._waiting: deque[tuple[Q, Future[A]]] = deque()

    async def answer(self, question: Q) -> A:
        """Put ``question`` into a batch, wait for the batch, and return the answer.

        If the caller is cancelled before the batch starts, the question is left out. If ``run`` raises an exception,
        the exception is raised for every caller whose question is in the batch.
        """
        future: Future[A] = Future()
        self._waiting.append((question, future))
        # There is one call per question. A call does nothing if earlier calls have already taken all questions.
        self._threads.submit(self._pass)
        return await asyncio.wrap_future(future)

    def _pass(self) -> None:
        taken: list[tuple[Q, Future[A]]] = []
        while len(taken) < self._max_rows:
            try:
                question, future = self._waiting.popleft()
            except IndexError:
                break
            if future.set_running_or_notify_cancel():
                taken.append((question, future))
        if not taken:
            return
        try:
            answers = self._run([question for question, _ in taken])
        except BaseException as error:  # noqa: BLE001 - each caller raises it
            for _, future in taken:
                future.set_exception(error)
        else:
            for (_, future), answer in zip(taken, answers, strict=True):
                future.set_result(answer)
