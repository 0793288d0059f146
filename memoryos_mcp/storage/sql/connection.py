"""Protocols for SQL databases that contain memories: a connection, its rows, the word index, and the database.

The SQL in this folder is written for SQLite. For PostgreSQL, the connection translates the placeholders (``?``, ``?1``,
``:name``) and the functions for JSON. All other SQL is the same for both databases.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

P = ParamSpec("P")
T = TypeVar("T")

# The value for ``LIMIT`` with which a query returns all rows.
NO_LIMIT = (1 << 63) - 1


class Rows(Protocol):
    """The result of a statement. It can be read once."""

    @property
    def get(self) -> Any:
        """All rows in a list, or None if there are no rows.

        If the rows have only one column, the list contains the values of this column. If there is only one row, the
        result is this row or value, without a list.
        """
        ...

    def fetchone(self) -> Any:
        """Return the next row, or None if there is none."""
        ...

    def fetchall(self) -> list[Any]:
        """Return the remaining rows."""
        ...

    def __iter__(self) -> Iterator[Any]: ...


class WordIndex(Protocol):
    """The word index of a memory's pages. The texts of the user and of the assistant are indexed separately.

    The methods take words in the form that `text.terms.words` returns.
    """

    def add_newest(self, user_input: str, agent_response: str) -> None:
        """Add the words of the page that this connection has just inserted."""
        ...

    def add_many(self, pages: Sequence[tuple[int, str, str]]) -> None:
        """Add the words of several pages. A page is a tuple: its ``seq``, the user's text and the assistant's text."""
        ...

    def remove_going(self) -> None:
        """Remove the words of the pages in the table ``going``, which lists the pages to be deleted."""
        ...

    def optimise(self) -> None:
        """Remove leftover data of deleted pages from the index."""
        ...

    def expect(self, words: Sequence[str], postings: int) -> None:
        """Start to read the data for these words, so that later calls of `limits` and `best` are faster.

        This call is optional. ``postings`` is the largest number of postings (index entries) that `best` will read.
        """
        ...

    def has(self, word: str) -> bool:
        """Return whether any form of a word occurs in any page."""
        ...

    def limits(self, words: Sequence[str]) -> list[int]:
        """Return, for each word, an upper limit on the number of pages that contain the word."""
        ...

    def count_after(self, word: str, seq: int) -> int:
        """Return the number of pages after ``seq`` that contain a word."""
        ...

    def best(self, words: Sequence[str], limit: int) -> list[tuple[int, float]]:
        """Return the ``seq`` and the BM25 score of up to ``limit`` pages with any of the words, the best first.

        Of pages with the same score, the newest comes first.
        """
        ...

    def newest_with(self, words: Sequence[str], after_seq: int, limit: int) -> list[int]:
        """Return the ``seq`` of up to ``limit`` pages that contain all of the words, the newest first.

        Only pages after ``after_seq`` are searched.
        """
        ...

    def sides_with(self, words: Sequence[str], seqs: Sequence[int]) -> NDArray[np.bool_]:
        """Return which of the words occur in the two texts (the user's and the assistant's) of each given page.

        The array has the shape ``(2, pages, words)``. The first index is 0 for the user's text, and 1 for the
        assistant's.
        """
        ...


class Connection(Protocol):
    """A connection to a user's memory. The code that opened the connection begins and ends transactions."""

    @property
    def words(self) -> WordIndex:
        """The word index of the memory."""
        ...

    def clock_offset_us(self) -> int:
        """Return how far the clock of the database is ahead of this machine's clock, in microseconds."""
        ...

    def has_ended(self, holder: str) -> bool:
        """Return whether the process that took a lease as ``holder`` is known to have ended."""
        ...

    def execute(self, statements: str, bindings: Any = None, /) -> Rows:
        """Run a statement with its parameters."""
        ...

    def executemany(self, statements: str, sequenceofbindings: Iterable[Any], /) -> Rows:
        """Run a statement once for each set of parameters."""
        ...

    def columns(self, query: str, bindings: Any, *, values: Sequence[str], blobs: Sequence[str] = ()) -> list[Any]:
        """Return the result of a query as columns. For many rows, this is much faster than returning the rows.

        Args:
            query: The query. Its result has first the columns ``values``, then the columns ``blobs``, by these names.
            bindings: The parameters of the query.
            values: The columns of numbers and texts. Each is returned as a list.
            blobs: The columns of bytes. Each is returned as the content of all rows, joined without the rows with NULL.
        """
        ...

    def last_numbers(self) -> dict[str, int]:
        """Return the highest number used so far for each kind of numbered row, such as facts.

        A copy of the memory starts from these numbers, so that it never reuses the number of a deleted row.
        """
        ...

    def set_last_numbers(self, numbers: Mapping[str, int]) -> None:
        """Set the highest number used so far for each kind of row. ``numbers`` is a result of `last_numbers`."""
        ...


class Database(Protocol):
    """Asynchronous access to one user's memory. Safe to share between tasks.

    Blocking work runs in threads. Of all transactions in all processes, only one at a time can write to the memory.
    """

    @property
    def only_reads_because(self) -> str | None:
        """The reason why the memory cannot be written at present; see `Store.only_reads_because`."""
        ...

    def is_in_place(self) -> bool:
        """Return whether this object can still be used; see `Store.is_in_place`."""
        ...

    async def state(self) -> object:
        """Return a value that changes when the memory changes; see `Pages.state`."""
        ...

    async def read(self, query: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call ``query(connection, *args, **kwargs)`` in a thread and in one transaction; return its result."""
        ...

    async def read_once(self, query: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do the same as `read`, but faster, for a ``query`` that runs only one statement."""
        ...

    async def rows(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Run one SQL statement in a thread, and return all rows of its result."""
        ...

    async def write(self, change: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call ``change(connection, *args, **kwargs)`` in a thread and in one transaction; return its result.

        When this method returns, the change is on disk. If it raises an error, nothing was changed.
        """
        ...

    async def purge(self) -> bool:
        """Erase deleted content from the disk. Return False if another process prevents this."""
        ...

    async def verify(self) -> tuple[str, ...]:
        """Check the memory for damage, and return the ids of damaged pages; see `Store.verify`."""
        ...

    async def keep_lost(self) -> None:
        """Save the content as a copy if the files were replaced or removed; see `Store.keep_lost`."""
        ...

    async def close(self) -> None:
        """Wait for running calls to finish, then close the connections."""
        ...
