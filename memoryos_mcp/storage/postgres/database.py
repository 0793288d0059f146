"""Asynchronous access to a user's rows in PostgreSQL. Blocking work runs in threads."""

import asyncio
import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

import psycopg
from psycopg_pool import ConnectionPool

from memoryos_mcp.errors import StorageError
from memoryos_mcp.storage.postgres.connection import PostgresConnection
from memoryos_mcp.storage.postgres.errors import is_lost, translated
from memoryos_mcp.storage.sql import checksums
from memoryos_mcp.storage.threads import StoreThreads

P = ParamSpec("P")
T = TypeVar("T")
Raw = psycopg.Connection[tuple[Any, ...]]

# The tables that contain text or vectors, and whether this account may vacuum them. Before version 17 of PostgreSQL,
# only the owner of a table may do so.
_MAY_VACUUM = (
    "CASE WHEN CAST(current_setting('server_version_num') AS integer) >= 170000 "
    "THEN has_table_privilege(format('%I.%I', schemaname, tablename), 'MAINTAIN') "
    "ELSE pg_has_role(tableowner, 'USAGE') END"
)
TABLES_SQL = (
    f"SELECT format('%I.%I', schemaname, tablename), {_MAY_VACUUM} FROM pg_tables "  # noqa: S608 - constants
    "WHERE schemaname = 'memoryos' AND tablename <> 'schema_version'"
)
# Minimum time between two checks of whether a read-only database has become writable.
LOOK_EVERY_S = 5.0
SET_USER = "SELECT set_config('memoryos.user_no', $1, true)"
# When the database crashes and one connection is lost, all other connections are lost within this time.
ALL_LOST_S = 0.2
# The length of the random id of a change, and of the ids of a user's latest changes.
WRITE_ID_CHARS, WRITE_IDS_CHARS = 12, 192
_NOTE_WRITE_SQL = f"UPDATE counters SET latest_writes = left($1 || latest_writes, {WRITE_IDS_CHARS})"  # noqa: S608
# Every change to a memory changes one of these columns.
_STATE_SQL = "SELECT page, latest_writes FROM counters"
UNKNOWN_OUTCOME = (
    "The connection was lost while a change was stored, and its outcome is unknown; check the memory before you repeat "
    "the change"
)


@dataclass(slots=True, eq=False)
class Deployment:
    """The resources that all stores of one database share.

    Attributes:
        pool: The connections to the database.
        where: The host and the name of the database, for messages.
        threads: The threads in which blocking work runs.
        tokenize: Splits a text into the tokens of the word index.
        only_reads_because: Why the database cannot be written; None if it can be written. See `look_again`.
        connect: Opens a connection as the configured account, even if the stores use another role.
    """

    pool: "ConnectionPool[Raw]"
    where: str
    threads: StoreThreads
    tokenize: Callable[[str], list[str]]
    only_reads_because: str | None
    connect: Callable[[], Raw]
    _look_at: float = field(default_factory=lambda: time.monotonic() + LOOK_EVERY_S)

    def look_again(self) -> str | None:
        """Return why the database cannot be written; None if it can be written.

        A read-only replica may become writable later. This is checked at most every `LOOK_EVERY_S` seconds.
        """
        if self.only_reads_because is not None and time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + LOOK_EVERY_S
            if not self.retried(is_read_only):
                self.only_reads_because = None
        return self.only_reads_because

    def retried(self, run: Callable[[Raw], T], *, is_in_doubt: Callable[[], bool] = lambda: False) -> T:
        """Call ``run`` with a connection, and return its result.

        If the connection is lost, repeat the call once with another connection.

        Args:
            run: A function that can be called again: it only reads, or it does not store the same change twice.
            is_in_doubt: Called if the second call fails too. Returns whether a change may have been stored. If so, the
                error message says that the outcome is unknown.
        """
        borrowed = _Borrowed(self)
        try:
            return borrowed.run(run, is_in_doubt=is_in_doubt)
        finally:
            borrowed.end()

    def drop_lost(self) -> None:
        """Remove lost connections from the pool. When the database crashes or restarts, all connections are lost."""
        time.sleep(ALL_LOST_S)
        self.pool.check()


def is_read_only(raw: Raw) -> bool:
    """Return whether the database, or this connection to the database, is read-only."""
    row = raw.execute(
        "SELECT pg_is_in_recovery() OR CAST(current_setting('transaction_read_only') AS boolean)"
    ).fetchone()
    return row != (False,)


class PostgresDatabase:
    """One user's rows in a PostgreSQL database. Implements `storage.sql.connection.Database`."""

    def __init__(self, deployment: Deployment, user_no: int, *, only_reads: bool) -> None:
        self._deployment = deployment
        self._user_no = str(user_no)
        self._only_reads = only_reads
        self._was_read_only = deployment.only_reads_because is not None
        self._write_lock = asyncio.Lock()
        self._running = 0
        self._is_closed = False
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def user_no(self) -> int:
        """The number that identifies the user in the database."""
        return int(self._user_no)

    @property
    def where(self) -> str:
        """The host and the name of the database, for messages."""
        return self._deployment.where

    def connect(self) -> Raw:
        """Return a new connection that uses the configured account. This call blocks.

        No rows are visible on the connection until a user is set.
        """
        with translated(self.where):
            return self._deployment.connect()

    @property
    def only_reads_because(self) -> str | None:
        """The reason why the memory cannot be written at present; see `Store.only_reads_because`."""
        return self._deployment.only_reads_because

    def is_in_place(self) -> bool:
        """Return whether this object can still be used; see `Store.is_in_place`."""
        return not self._was_read_only or self.only_reads_because is not None

    async def state(self) -> object:
        """Return a value that is different after each change of the memory; see `Pages.state`."""
        return await self.rows(_STATE_SQL)

    async def read(
        self, query: Callable[Concatenate[PostgresConnection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call ``query(connection, *args, **kwargs)`` in a thread and in one transaction; return its result.

        The transaction ends in the background, so the caller does not wait for the end.
        """
        reading = _Reading(self._deployment, self._user_no)

        def run() -> T:
            return reading.read(lambda connection: query(connection, *args, **kwargs))

        return await self._run(run, afterwards=reading.end)

    async def read_once(
        self, query: Callable[Concatenate[PostgresConnection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Do the same as `read`, because a statement needs a transaction here to be restricted to the user's rows."""
        return await self.read(query, *args, **kwargs)

    async def rows(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Run one SQL statement in a thread and in one round trip; return all rows of its result."""

        def run(raw: Raw) -> list[tuple[Any, ...]]:
            with raw.pipeline():  # both statements are one transaction
                raw.execute(SET_USER, (self._user_no,))
                found = PostgresConnection(raw, self._deployment.tokenize).execute(sql, parameters)
            return found.fetchall()

        return await self._run(lambda: self._deployment.retried(run))

    async def write(
        self, change: Callable[Concatenate[PostgresConnection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call ``change(connection, *args, **kwargs)`` in a thread and in one transaction; return its result.

        When this method returns, the change is on disk. If it raises an error, nothing was changed, unless the error
        says that the outcome is unknown.
        """
        await self._refuse_if_unwritable()
        async with self._write_lock:
            write = _Write(self._deployment, self._user_no, lambda connection: change(connection, *args, **kwargs))
            return await self._run(lambda: self._deployment.retried(write.run, is_in_doubt=lambda: write.is_in_doubt))

    @property
    def tokenize(self) -> Callable[[str], list[str]]:
        """The function that splits a text into the tokens of the word index."""
        return self._deployment.tokenize

    async def call_each(self, sql: str, calls: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
        """Call a database function once for each list of arguments, and return the row that each call returns.

        The user's number is added as the first argument, ``$1``. All calls are one transaction and one round trip. If
        the connection is lost, the calls are repeated once. Therefore, the function must do nothing if it is called
        again with the same arguments.
        """
        await self._refuse_if_unwritable()

        def run(raw: Raw) -> list[tuple[Any, ...]]:
            with raw.pipeline() if len(calls) > 1 else nullcontext():  # a pipeline makes one call slower
                found = [raw.execute(sql, [int(self._user_no), *arguments], binary=True) for arguments in calls]
            return [row for cursor in found if (row := cursor.fetchone()) is not None]

        borrowed = _Borrowed(self._deployment)
        async with self._write_lock:
            return await self._run(lambda: borrowed.run(run, is_in_doubt=lambda: True), afterwards=borrowed.end)

    async def _refuse_if_unwritable(self) -> None:
        if self.only_reads_because is not None and (problem := await self._run(self._deployment.look_again)):
            raise StorageError(problem)
        if self._only_reads:
            msg = "this memory was opened for reading only; nothing was stored. Open it for writing to store changes"
            raise StorageError(msg)

    async def purge(self) -> bool:
        """Free the space of deleted rows, so that the database overwrites it with new rows.

        Return False if this account lacks the rights to do so.
        """

        def run() -> bool:
            with translated(self._deployment.where), self._deployment.pool.connection() as raw:
                raw.execute("RESET ROLE")
                try:
                    tables = raw.execute(TABLES_SQL).fetchall()
                    if not all(may_vacuum for _, may_vacuum in tables):
                        return False
                    raw.execute(f"VACUUM {', '.join(name for name, _ in tables)}")
                finally:
                    raw.close()  # the pool replaces it, and the new one uses the role
            return True

        return await self._run(run)

    async def verify(self) -> tuple[str, ...]:
        """Return the ids of damaged pages; see `Store.verify`. The database itself detects damage to its files."""
        return await self.read(checksums.damaged_pages)

    async def keep_lost(self) -> None:
        """Do nothing, because this store has no files of its own that could be lost; see `Store.keep_lost`."""

    async def close(self) -> None:
        """Reject new calls, and wait for running calls to finish."""
        self._is_closed = True
        await self._idle.wait()

    async def _run(self, work: Callable[[], T], *, afterwards: Callable[[], None] | None = None) -> T:
        if self._is_closed:
            msg = "the store is closed; open the store again"
            raise StorageError(msg)
        self._running += 1
        self._idle.clear()
        try:
            return await self._deployment.threads.run(work, afterwards=afterwards)
        finally:
            self._running -= 1
            if not self._running:
                self._idle.set()


class _Borrowed:
    """A connection that is borrowed from the pool for one call."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment
        self._raw: Raw | None = None

    def run(self, work: Callable[[Raw], T], *, is_in_doubt: Callable[[], bool] = lambda: False) -> T:
        """Call ``work`` with the connection and return its result; see `Deployment.retried`. Call `end` afterwards."""
        with translated(self._deployment.where):
            raw = self._borrow()
            try:
                return work(raw)
            except psycopg.Error as error:
                if not is_lost(error, raw):
                    raise
            self.end()
            self._deployment.drop_lost()
            try:
                with translated(self._deployment.where):
                    return work(self._borrow())
            except StorageError as error:
                if not is_in_doubt():
                    raise
                msg = f"{error}. {UNKNOWN_OUTCOME}"
                raise StorageError(msg) from error.__cause__

    def end(self) -> None:
        """Return the connection to the pool. An open transaction is rolled back."""
        raw, self._raw = self._raw, None
        if raw is not None:
            self._deployment.pool.putconn(raw)

    def _borrow(self) -> Raw:
        self._raw = self._deployment.pool.getconn()
        return self._raw


class _Reading(_Borrowed):
    """A read-only transaction of one user. All queries of the transaction see the same state of the database."""

    def __init__(self, deployment: Deployment, user_no: str) -> None:
        super().__init__(deployment)
        self._user_no = user_no
        self._pipeline: AbstractContextManager[Any] = nullcontext()

    def read(self, query: Callable[[PostgresConnection], T]) -> T:
        """Begin the transaction, call ``query``, and return its result.

        If the connection is lost, begin a new transaction on another connection, and call ``query`` once more.
        """

        def begun(raw: Raw) -> T:
            self._pipeline = raw.pipeline()
            self._pipeline.__enter__()
            raw.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            raw.execute(SET_USER, (self._user_no,))
            return query(PostgresConnection(raw, self._deployment.tokenize))

        return self.run(begun)

    def end(self) -> None:
        """End the transaction, and return its connection to the pool."""
        if self._raw is not None:
            with suppress(psycopg.Error):
                self._raw.execute("ROLLBACK")
            with suppress(psycopg.Error):
                self._pipeline.__exit__(None, None, None)
        super().end()


class _Write(Generic[T]):
    """A change of a user's rows in one transaction. It can be repeated if its connection is lost.

    The change locks the user's row in the table ``counters``, so that writers take turns. This row contains the ids of
    the user's latest changes. If the connection is lost during the commit, these ids are read to find out whether the
    change was committed. Transaction numbers cannot show this, because the database reuses the numbers of lost
    transactions after a crash.

    Attributes:
        is_in_doubt: Whether the change may have been committed.
    """

    def __init__(self, deployment: Deployment, user_no: str, change: Callable[[PostgresConnection], T]) -> None:
        self.is_in_doubt = False
        self._deployment = deployment
        self._user_no = user_no
        self._change = change
        self._id = secrets.token_hex(WRITE_ID_CHARS // 2)
        self._previous_id = ""
        self._results: list[T] = []

    def run(self, raw: Raw) -> T:
        """Make and commit the change, unless an earlier call has done so; return its result.

        After an error, the pool rolls back the transaction.
        """
        with raw.pipeline():
            raw.execute("BEGIN")
            raw.execute(SET_USER, (self._user_no,))
            locked = raw.execute("SELECT latest_writes FROM counters FOR UPDATE")
            latest = _latest(locked) if self.is_in_doubt else ""
            if latest and self._is_stored(latest):
                raw.execute("ROLLBACK")
                return self._results[-1]
            self.is_in_doubt = False
            self._results.append(self._change(PostgresConnection(raw, self._deployment.tokenize)))
            raw.execute(_NOTE_WRITE_SQL, (self._id,))
            self._previous_id, self.is_in_doubt = (latest or _latest(locked))[:WRITE_ID_CHARS], True
            raw.execute("COMMIT")
        return self._results[-1]

    def _is_stored(self, latest: str) -> bool:
        if self._id not in latest and self._previous_id not in latest:
            msg = (
                f"the database {self._deployment.where} cannot show whether the change was stored, because it has "
                "received many other changes since. Check the memory before you repeat the change"
            )
            raise StorageError(msg)
        return self._id in latest


def _latest(locked: "psycopg.Cursor[tuple[Any, ...]]") -> str:
    """Return the ids of the user's latest changes as one string, newest first."""
    row = locked.fetchone()
    if row is None:
        msg = (
            "the user of this memory was removed from the database; nothing was stored. Restart the server to begin a "
            "new memory"
        )
        raise StorageError(msg)
    return str(row[0])
