"""A connection to PostgreSQL that runs the SQL of `storage.sql`."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import psycopg

from memoryos_mcp.storage.postgres.dialect import translate, values
from memoryos_mcp.storage.postgres.watch import SERVERS_SQL
from memoryos_mcp.storage.postgres.words import PostingWords

# Number of rows that the database sends at a time when a large table is read.
FETCHED_ROWS = 500
# The kinds of rows whose numbers are never reused, not even in a copy of the memory.
COPIED_NUMBERS = ("page", "chain", "segment", "fact", "space", "change")


class PostgresConnection:
    """A connection inside a transaction for one user. Implements `storage.sql.connection.Connection`.

    The connection is in pipeline mode: statements are sent without waiting for previous results. The connection
    waits only when a result is read. The error of a statement is therefore raised when the next result is read, or at
    the end of the transaction.
    """

    def __init__(self, raw: psycopg.Connection[Any], tokenize: Callable[[str], list[str]]) -> None:
        self.raw = raw
        self.words = PostingWords(self, tokenize)

    def clock_offset_us(self) -> int:
        """Return how far the clock of the database is ahead of this machine's clock, in microseconds."""
        database_us = self.native("SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)").get
        return int(database_us) - time.time_ns() // 1000

    def has_ended(self, holder: str) -> bool:
        """Return whether the server that holds a lease has ended. ``holder`` contains the number of the server."""
        number, dot, _ = holder.partition(".")
        return bool(dot) and bool(self.native(f"SELECT CAST($1 AS bigint) NOT IN ({SERVERS_SQL})", int(number)).get)

    def execute(self, statements: str, bindings: Any = None, /) -> "PostgresRows":
        """Send a statement with its parameters, and return its result."""
        sql, keys = translate(statements)
        return PostgresRows(self.raw.execute(sql, values(keys, bindings), binary=True))

    def executemany(self, statements: str, sequenceofbindings: Iterable[Any], /) -> "PostgresRows":
        """Send a statement once for each set of parameters, and return the last result."""
        # psycopg's own method would wait for the results.
        rows = PostgresRows(self.raw.cursor())
        for bindings in sequenceofbindings:
            rows = self.execute(statements, bindings)
        return rows

    def columns(self, query: str, bindings: Any, *, values: Sequence[str], blobs: Sequence[str] = ()) -> list[Any]:
        """Return the result of a query as columns; see `storage.sql.connection.Connection`."""
        columns = list(zip(*self.execute(query, bindings).fetchall(), strict=True)) or [()] * len([*values, *blobs])
        return [list(column) for column in columns[: len(values)]] + [
            b"".join(blob for blob in each if blob is not None) for each in columns[len(values) :]
        ]

    def last_numbers(self) -> dict[str, int]:
        """Return the highest number used so far for each kind of numbered row, such as facts."""
        found = self.native(f"SELECT {', '.join(COPIED_NUMBERS)} FROM counters").get  # noqa: S608 - constants
        return dict(zip(COPIED_NUMBERS, found, strict=True))

    def set_last_numbers(self, numbers: Mapping[str, int]) -> None:
        """Set the highest number used so far for each kind of row.

        The number for past traits is read from the table of past traits, not from ``numbers``.
        """
        changes = ", ".join(f"{kind} = ${place}" for place, kind in enumerate(COPIED_NUMBERS, start=1))
        past = "past_trait = (SELECT coalesce(max(rowid), 0) FROM trait_history)"
        self.native(f"UPDATE counters SET {changes}, {past}", *(numbers[kind] for kind in COPIED_NUMBERS))  # noqa: S608

    def native(self, sql: str, *parameters: Any) -> "PostgresRows":
        """Send a statement in PostgreSQL's SQL, with placeholders such as ``$1``, and return its result."""
        return PostgresRows(self.raw.execute(sql, parameters, binary=True))


class PostgresRows:
    """The result of a statement. Implements `storage.sql.connection.Rows`."""

    def __init__(self, cursor: psycopg.Cursor[Any]) -> None:
        self._cursor = cursor

    @property
    def get(self) -> Any:
        """All rows in a list, or None if there are no rows.

        If the rows have only one column, the list contains the values of this column. If there is only one row, the
        result is this row or value, without a list.
        """
        rows = self.fetchall()
        if not rows:
            return None
        shortest = [row[0] if len(row) == 1 else row for row in rows]
        return shortest[0] if len(shortest) == 1 else shortest

    def fetchone(self) -> Any:
        """Return the next row, or None if there is none."""
        return self._cursor.fetchone()

    def fetchall(self) -> list[Any]:
        """Return the remaining rows; an empty list if the statement returns no rows."""
        try:
            return self._cursor.fetchall()
        except psycopg.ProgrammingError:
            if self._cursor.description is None and self._cursor.statusmessage is not None:
                return []
            raise

    def __iter__(self) -> Iterator[Any]:
        return iter(self.fetchall())
