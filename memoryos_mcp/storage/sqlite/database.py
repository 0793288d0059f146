"""One user's file, shared between tasks: its blocking work runs in threads, one change at a time."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import apsw

from memoryos_mcp.errors import StorageError
from memoryos_mcp.storage.sqlite import vacuum
from memoryos_mcp.storage.sqlite.checks import Checks
from memoryos_mcp.storage.sqlite.connections import transaction
from memoryos_mcp.storage.sqlite.file_errors import write_failure_reason
from memoryos_mcp.storage.sqlite.integrity import check_slowly, find_damaged_pages
from memoryos_mcp.storage.sqlite.open_file import OpenFile
from memoryos_mcp.storage.sqlite.places import unwritable_reason
from memoryos_mcp.storage.sqlite.threads import StoreThreads

T = TypeVar("T")

READERS = 4


class Database:
    """A user's file with one writing and up to `READERS` reading connections. Safe to share between tasks.

    A reading connection is made only when the others are in use: a server of many users opens most files for one call.
    """

    def __init__(self, file: OpenFile, threads: StoreThreads, checks: Checks) -> None:
        self._file = file
        self._threads = threads
        self._checks = checks
        self._write_lock = asyncio.Lock()
        self._reading = asyncio.Semaphore(READERS)
        self._unwritten: str | None = None
        self._is_unwritable = False

    @classmethod
    async def open(
        cls, path: Path, user_id: str, threads: StoreThreads, checks: Checks, *, only_reads: bool = False
    ) -> "Database":
        """Open a user's file; create it with its folder, or migrate it to the current version, if needed.

        With ``only_reads`` the file must exist, and every change is refused once it has the current version.

        Raises:
            DamagedStoreError: The file is broken or not ours; it was left untouched.
            NewerStoreError: A newer version wrote it; it was left untouched.
            StorageError: It could not be opened, created or migrated.
        """
        file = OpenFile(path, checks, only_reads=only_reads)
        await threads.run(lambda: file.open(user_id))
        return cls(file, threads, checks)

    @property
    def only_reads_because(self) -> str | None:
        """Why a file opened for writing can only be read, such as a full or read-only disk; None if it can be written.

        Either the file was opened so, or the last write failed and nothing indicates that the next would succeed.
        """
        if self._file.only_readable is not None:
            return self._file.only_readable.reason
        if self._unwritten is not None and self._is_unwritable and unwritable_reason(self._file.path) is None:
            self._unwritten = None
        return self._unwritten

    def is_in_place(self) -> bool:
        """Return whether the open file is still the one to use; if not, close it and open it again.

        It is not if it was replaced or removed, or if it was opened only for reading and can now be written.
        """
        return self._file.is_in_place()

    async def read(self, query: Callable[[apsw.Connection], T]) -> T:
        """Return the result of a query, run in a thread on one consistent state of the file."""
        return await self._with_reader(lambda reader: _in_one_state(reader, query))

    async def rows(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Return the rows of one statement; a single statement always reads one consistent state."""
        return await self._with_reader(lambda reader: reader.execute(sql, parameters).fetchall())

    async def write(self, change: Callable[[apsw.Connection], T]) -> T:
        """Run a change in a thread as one transaction; on return all of it is on disk, on an error nothing."""
        if self._file.only_readable is not None:
            raise StorageError(self._file.only_readable.reason)
        async with self._write_lock:
            return await self._threads.run(lambda: self._write(change))

    async def verify(self) -> tuple[str, ...]:
        """Read the whole file at low priority; if it is damaged, refuse every later use of it.

        A file that was read recently is not read again.

        Returns:
            Names of the pages damaged on disk; the others can be used.

        Raises:
            DamagedStoreError: The file is damaged.
        """
        cancelled, path = threading.Event(), self._file.path
        if not self._checks.is_recent(path):
            await self._threads.run(lambda: self._verify(cancelled), on_cancelled=cancelled.set)
        damaged = self._checks.damaged_pages(path)
        if damaged is None:
            damaged = await self._threads.run(lambda: self._verify_pages(cancelled), on_cancelled=cancelled.set)
        return damaged

    async def purge(self) -> bool:
        """Rewrite the file and empty its journal, so that no deleted content is left in either.

        Returns:
            False if another process is reading or writing; deleted content may then be left.
        """
        async with self._write_lock:
            self._file.opened()
            # Our readers can continue during the rewrite; only emptying the journal requires that none is reading.
            return await self._threads.run(self._rewrite) and await self._alone(self._empty_journal)

    async def keep_lost(self) -> None:
        """If the file was replaced or removed, save its content as a copy in the same folder, before it is closed.

        Raises:
            StorageError: There is not enough space; keep the file open until there is.
        """
        async with self._write_lock:
            if self._file.writer is not None:
                await self._alone(self._file.keep_lost)

    async def close(self) -> None:
        """Wait for running calls and close the connections; the file is then complete without its side files."""
        async with self._write_lock:
            if self._file.writer is not None:
                await self._alone(self._file.close)

    async def _alone(self, work: Callable[[], T]) -> T:
        """Run work in a thread while none of our connections reads; the caller ensures that none writes."""
        taken = 0
        try:
            while taken < READERS:
                await self._reading.acquire()
                taken += 1
            return await self._threads.run(work)
        finally:
            for _ in range(taken):
                self._reading.release()

    async def _with_reader(self, query: Callable[[apsw.Connection], T]) -> T:
        async with self._reading:
            return await self._threads.run(lambda: self._file.read(query))

    def _write(self, change: Callable[[apsw.Connection], T]) -> T:
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
            self._file.refuse_if_lost()  # the copy of the lost file will contain this change
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


def _in_one_state(reader: apsw.Connection, query: Callable[[apsw.Connection], T]) -> T:
    reader.execute("BEGIN")
    try:
        return query(reader)
    finally:
        if reader.in_transaction:
            reader.execute("ROLLBACK")
