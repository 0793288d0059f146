"""Batching: what goes through a model in one pass."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from typing import Generic, TypeVar

Q = TypeVar("Q")
A = TypeVar("A")


def batches(sizes: Sequence[int], *, max_rows: int, max_pieces: int) -> Iterator[list[int]]:
    """Yield the indices of what is run together: of like length, which wastes little on padding.

    Args:
        sizes: How many pieces each row takes.
        max_rows: Upper limit of a batch's rows.
        max_pieces: Upper limit of a batch's pieces, padding included; a row that is over it goes alone.
    """
    batch: list[int] = []
    for index in sorted(range(len(sizes)), key=sizes.__getitem__):
        if batch and (len(batch) == max_rows or (len(batch) + 1) * sizes[index] > max_pieces):
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


class MicroBatches(Generic[Q, A]):
    """Answers questions one pass after another; those that come in during a pass share the next one.

    A question that comes alone is answered at once. Used from one event loop.

    Args:
        threads: Where passes run, as many at a time as it has threads.
        run: Answers questions in order; blocks. What it raises reaches all who share the pass.
        max_rows: Upper limit of a pass's questions.
    """

    def __init__(self, threads: Executor, run: Callable[[list[Q]], Sequence[A]], max_rows: int) -> None:
        self._threads = threads
        self._run = run
        self._max_rows = max_rows
        self._waiting: deque[tuple[Q, Future[A]]] = deque()

    async def answer(self, question: Q) -> A:
        """Return the answer; if the caller is cancelled before its pass begins, it is not asked."""
        future: Future[A] = Future()
        self._waiting.append((question, future))
        # As many calls as questions: those whose question an earlier one took along find nothing to do.
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
