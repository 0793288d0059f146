"""Asynchronous access to a user's file. Blocking work runs in threads, and only one thread writes at a time."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import apsw

from memoryos_mcp.errors import StorageError
from memoryos_mcp.storage.sqlite import vacuum
from memoryos_mcp.storage.sqlite.checks import Checks
from memoryos_mcp.storage.sqlite.connections import SqliteConnection, transaction
from memoryos_mcp.storage.sqlite.file_errors import write_failure_reason
from memoryos_mcp.storage.sqlite.integrity import check_slowly, find_damaged_pages
from memoryos_mcp.storage.sqlite.open_file import OpenFile
from memoryos_mcp.storage.sqlite.places import unwritable_reason
from memoryos_mcp.storage.threads import StoreThreads

P = ParamSpec("P")
T = TypeVar("T")

READERS = 4
# How long a query waits for a connection before another one is opened. Opening one takes about as long, because each
# connection reads the schema and prepares every statement for itself.
READER_WAIT_S = 0.005


class SqliteDatabase:
    """A user's file with one writing and up to `READERS` reading connections. Safe to share between tasks."""

    def __init__(self, file: OpenFile, threads: StoreThreads, checking: StoreThreads, checks: Checks) -> None:
        self._file = file
        self._threads = threads
        self._checking = checking
        self._checks = checks
        self._write_lock = asyncio.Lock()
        self._readers = 1
        self._reading = asyncio.Semaphore(self._readers)
        self._is_exclusive = False
        self._unwritten: str | None = None
        self._is_unwritable = False

    @classmethod
    async def open(
        cls,
        path: Path,
        user_id: str,
        threads: StoreThreads,
        checks: Checks,
        *,
        checking: StoreThreads | None = None,
        only_reads: bool = False,
    ) -> "SqliteDatabase":
        """Open a user's file. If necessary, create or migrate the file first. `Stores.open` lists the errors."""
        file = OpenFile(path, checks, only_reads=only_reads)
        await threads.run(lambda: file.open(user_id))
        return cls(file, threads, checking or threads, checks)

    @property
    def only_reads_because(self) -> str | None:
        """The reason why the memory cannot be written at present, or None; see `Store.only_reads_because`.

        If the file could be opened only for reading, the result is the reason. After a failed write, the result is the
        cause of the failure, until a write succeeds or the cause has disappeared.
        """
        if self._file.only_readable is not None:
            return self._file.only_readable.reason
        if self._unwritten is not None and self._is_unwritable and unwritable_reason(self._file.path) is None:
            self._unwritten = None
        return self._unwritten

    @property
    def path(self) -> Path:
        """The path of the user's file."""
        return self._file.path

    def is_in_place(self) -> bool:
        """Return whether the open file can still be used; see `Store.is_in_place`."""
        return self._file.is_in_place()

    async def state(self) -> object:
        """Return a value that changes when the memory changes; see `Pages.state`."""
        # The number changes when any other connection changes the file. Numbers of different connections cannot be
        # compared, so the connection is part of the value.
        return await self._with_reader(lambda reader: (reader, reader.pragma("data_version")))

    async def read(self, query: Callable[Concatenate[SqliteConnection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call ``query(connection, *args, **kwargs)`` in a thread and in one transaction; return its result."""

        def run(reader: SqliteConnection) -> T:
            reader.execute("BEGIN")
            try:
                return query(reader, *args, **kwargs)
            finally:
                if reader.in_transaction:
                    reader.execute("ROLLBACK")

        return await self._with_reader(run)

    async def read_once(
        self, query: Callable[Concatenate[SqliteConnection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call ``query(connection, *args, **kwargs)`` in a thread; return its result. It runs only one statement."""
        return await self._with_reader(lambda reader: query(reader, *args, **kwargs))

    async def rows(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Run one SQL statement in a thread, and return all rows of its result."""
        return await self._with_reader(lambda reader: reader.execute(sql, parameters).fetchall())

    async def write(
        self, change: Callable[Concatenate[SqliteConnection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call ``change(connection, *args, **kwargs)`` in a thread and in one transaction; return its result.

        When this method returns, the change is on disk. If it raises an error, nothing was changed.
        """
        if self._file.only_readable is not None:
            raise StorageError(self._file.only_readable.reason)
        async with self._write_lock:
            return await self._threads.run(lambda: self._write(lambda writer: change(writer, *args, **kwargs)))

    async def verify(self) -> tuple[str, ...]:
        """Check the whole file at low priority, and return the ids of damaged pages; see `Store.verify`.

        If there was a recent check, its result is returned instead.
        """
        cancelled, path = threading.Event(), self._file.path
        if not self._checks.is_recent(path):
            await self._checking.run(lambda: self._verify(cancelled), on_cancelled=cancelled.set)
        damaged = self._checks.damaged_pages(path)
        if damaged is None:
            damaged = await self._checking.run(lambda: self._verify_pages(cancelled), on_cancelled=cancelled.set)
        return damaged

    async def purge(self) -> bool:
        """Erase deleted content from the file and its journal. Return False if another process is using the file."""
        async with self._write_lock:
            self._file.opened()
            # The connections of this store may read while the file is rewritten, but not while the journal is emptied.
            return await self._threads.run(self._rewrite) and await self._without_readers(self._empty_journal)

    async def keep_lost(self) -> None:
        """Save a copy in the file's folder if the file was replaced or removed; see `Store.keep_lost`."""
        async with self._write_lock:
            if self._file.writer is not None:
                await self._without_readers(self._file.keep_lost)

    async def close(self) -> None:
        """Wait for running calls to finish, then close the connections.

        If no other process has the file open, the content of the journal is written to the file.
        """
        async with self._write_lock:
            if self._file.writer is not None:
                await self._without_readers(self._file.close)

    async def _without_readers(self, work: Callable[[], T]) -> T:
        """Wait until no reading connection is in use, then call ``work`` in a thread.

        The caller must hold the write lock.
        """
        taken = 0
        self._is_exclusive = True
        try:
            while taken < self._readers:
                await self._reading.acquire()
                taken += 1
            return await self._threads.run(work)
        finally:
            self._is_exclusive = False
            for _ in range(taken):
                self._reading.release()

    async def _with_reader(self, query: Callable[[SqliteConnection], T]) -> T:
        if self._reading.locked() and self._readers < READERS:
            try:
                async with asyncio.timeout(READER_WAIT_S):
                    await self._reading.acquire()
            except TimeoutError:
                if self._readers < READERS and not self._is_exclusive:
                    self._readers += 1
                    self._reading.release()
                await self._reading.acquire()
        else:
            await self._reading.acquire()
        try:
            return await self._threads.run(lambda: self._file.read(query))
        finally:
            self._reading.release()

    def _write(self, change: Callable[[SqliteConnection], T]) -> T:
        writer = self._file.opened()
        with self._file.translated():
            try:
                with transaction(writer):
                    result = change(writer)
                    self._file.refuse_if_lost()
            except apsw.Error as error:
                self._unwritten = write_failure_reason(error, self._file.path) or self._unwritten
                self._is_unwritable = unwritable_reason(self._file.path) is not None
                raise
            self._unwritten = None
            self._file.refuse_if_lost()  # the change is committed, so `keep_lost` will save it
            self._file.checkpoints.write_if_due(writer)
            return result

    def _verify(self, cancelled: threading.Event) -> None:
        with self._file.translated():
            if check_slowly(self._file.connect, cancelled):
                self._checks.record(self._file.path)

    def _verify_pages(self, cancelled: threading.Event) -> tuple[str, ...]:
        with self._file.translated():
            damaged = find_damaged_pages(self._file.connect, cancelled)
        if damaged is None:
            return ()
        self._checks.record_damaged_pages(self._file.path, damaged)
        return damaged

    def _rewrite(self) -> bool:
        with self._file.translated():
            return vacuum.rewrite(self._file.path, self._file.connect)

    def _empty_journal(self) -> bool:
        with self._file.translated():
            return vacuum.empty_journal(self._file.path, self._file.connect)
