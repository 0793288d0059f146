"""One SQLite file: opened safely, used from threads, with its errors translated.

A file is checked before it is opened for writing. A damaged, foreign or newer file is refused and left unchanged.
"""

import asyncio
import logging
import os
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import apsw

from memoryos_mcp.errors import DamagedStoreError, StorageError
from memoryos_mcp.storage.paths import beginning_mark
from memoryos_mcp.storage.sqlite import schema
from memoryos_mcp.storage.sqlite.checksums import damaged_pages
from memoryos_mcp.storage.sqlite.file_errors import BUSY_TIMEOUT_MS, translated, why_unwritten
from memoryos_mcp.storage.sqlite.file_header import distrust, integrity_check, look_at_content, look_at_header
from memoryos_mcp.storage.sqlite.journals import (
    checkpointed,
    folder_held,
    forget_owner,
    has_journal,
    identity,
    is_foreign,
    is_in_use,
    journals_of,
    note_owner,
    note_previous_owner,
    remove_empty,
    set_aside_foreign,
)
from memoryos_mcp.storage.sqlite.places import Place, lost, unwritable
from memoryos_mcp.storage.sqlite.rescuing import drop_if_held, fold_journal, keep_lost
from memoryos_mcp.storage.sqlite.threads import StoreThreads

logger = logging.getLogger(__name__)

T = TypeVar("T")

# Below this, several connections to one WAL file could corrupt it, and FTS5 had no secure-delete.
SQLITE_AT_LEAST = (3, 51, 3)
READERS = 4
# Each connection's cache of the file. More RAM would be spent five times for each open user, and would help little:
# queries share few SQLite pages, and a change by another connection empties the cache.
CACHE_KIB = 256
WAL_RETRY_S = 0.01
# How long scrubbing waits for other processes, and their writes for scrubbing; it is tried again later.
SCRUB_BUSY_TIMEOUT_MS = 1_000
VACUUMED_IN_RAM_BYTES = 256 * 1024 * 1024
# A journal is checkpointed after it has grown by this number of SQLite pages.
CHECKPOINT_PAGES = 1_000
CHECKED_AT_OPEN_BYTES = 8 * 1024 * 1024
# A check is not repeated within this time.
CHECK_HOLDS_S = 3_600.0
# A check of the whole file pauses regularly to leave the disk and the CPU core to queries: after this number of SQLite
# steps, for this multiple of the time they took.
STEPS_BETWEEN_RESTS = 1_000
RESTS_PER_WORK = 4.0
LONGEST_REST_S = 1.0
# How often to test whether a file opened only for reading can be written again.
WRITABLE_POLL_S = 1.0


def sqlite_version() -> str:
    """Return the version of the SQLite library in use."""
    return apsw.sqlite_lib_version()


class Checks:
    """The latest integrity checks of files; shared by all users of a process, and thread-safe."""

    def __init__(self) -> None:
        self._read_at_s: dict[Path, float] = {}
        self._damaged: dict[Path, tuple[float, tuple[str, ...]]] = {}

    def hold(self, path: Path) -> bool:
        """Return whether a file was found intact recently, so that it need not be read again."""
        read_at_s = self._read_at_s.get(path)
        return read_at_s is not None and time.monotonic() - read_at_s < CHECK_HOLDS_S

    def note(self, path: Path) -> None:
        """Record that a file was found intact just now."""
        self._read_at_s[path] = time.monotonic()

    def damaged_pages(self, path: Path) -> tuple[str, ...] | None:
        """Return the pages that were found damaged recently; None if all pages must be read again."""
        read_at_s, damaged = self._damaged.get(path, (-CHECK_HOLDS_S, ()))
        return damaged if time.monotonic() - read_at_s < CHECK_HOLDS_S else None

    def note_pages(self, path: Path, damaged: tuple[str, ...]) -> None:
        """Record the damaged pages after all pages were read."""
        self._damaged[path] = (time.monotonic(), damaged)


class Database:
    """A user's file with one writing and up to `READERS` reading connections. Safe to share between tasks.

    A reading connection is made only when the others are in use: a server of many users opens most files for one call.
    """

    def __init__(self, path: Path, threads: StoreThreads, checks: Checks, *, only_reads: bool = False) -> None:
        self._path = path
        self._only_reads = only_reads
        self._threads = threads
        self._checks = checks
        self._write_lock = asyncio.Lock()
        self._reading = asyncio.Semaphore(READERS)
        self._writer: apsw.Connection | None = None
        self._readers: list[apsw.Connection] = []
        self._damage: DamagedStoreError | None = None
        self._place: Place | None = None
        self._kept: Path | None = None
        self._as_it_is: _AsItIs | None = None
        self._unwritten: str | None = None
        self._is_unwritable = False
        self._journal_pages = 0
        self._checkpointed_pages = 0

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
        database = cls(path, threads, checks, only_reads=only_reads)
        await threads.run(lambda: database._open(user_id))
        return database

    @property
    def only_reads_because(self) -> str | None:
        """Why a file opened for writing can only be read, such as a full or read-only disk; None if it can be written.

        Either the file was opened so, or the last write failed and nothing indicates that the next would succeed.
        """
        if self._as_it_is is not None:
            return self._as_it_is.reason
        if self._unwritten is not None and self._is_unwritable and unwritable(self._path) is None:
            self._unwritten = None
        return self._unwritten

    def is_in_place(self) -> bool:
        """Return whether the open file is still the one to use; if not, close it and open it again.

        It is not if it was replaced or removed, or if it was opened only for reading and can now be written.
        """
        try:
            if self._as_it_is is not None and not self._as_it_is.is_all_there_is():
                return False
            return self._place is None or self._place.is_held()
        except OSError:
            return True  # the next use raises the error

    async def read(self, query: Callable[[apsw.Connection], T]) -> T:
        """Return the result of a query, run in a thread on one consistent state of the file."""
        return await self._with_reader(lambda reader: _in_one_state(reader, query))

    async def rows(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Return the rows of one statement; a single statement always reads one consistent state."""
        return await self._with_reader(lambda reader: reader.execute(sql, parameters).fetchall())

    async def write(self, change: Callable[[apsw.Connection], T]) -> T:
        """Run a change in a thread as one transaction; on return all of it is on disk, on an error nothing."""
        if self._as_it_is is not None:
            raise StorageError(self._as_it_is.reason)
        async with self._write_lock:
            writer = self._writer
            if writer is None:
                raise _closed()
            return await self._threads.run(lambda: self._run_write(writer, change))

    async def verify(self) -> tuple[str, ...]:
        """Read the whole file at low priority; if it is damaged, refuse every later use of it.

        A file that was read recently is not read again.

        Returns:
            Names of the pages damaged on disk; the others can be used.

        Raises:
            DamagedStoreError: The file is damaged.
        """
        given_up = threading.Event()
        if not self._checks.hold(self._path):
            await self._threads.run(lambda: self._verify(given_up), on_cancelled=given_up.set)
        damaged = self._checks.damaged_pages(self._path)
        if damaged is None:
            damaged = await self._threads.run(lambda: self._verify_pages(given_up), on_cancelled=given_up.set)
        return damaged

    async def scrub(self) -> bool:
        """Rewrite the file and empty its journal, so that no deleted content is left in either.

        Returns:
            False if another process is reading or writing; deleted content may then be left.
        """
        async with self._write_lock:
            if self._writer is None:
                raise _closed()
            # Our readers can continue during the rewrite; only emptying the journal requires that none is reading.
            return await self._threads.run(self._write_anew) and await self._alone(self._empty_journal)

    async def keep_lost(self) -> None:
        """If the file was replaced or removed, save its content as a copy in the same folder, before it is closed.

        Raises:
            StorageError: There is not enough space; keep the file open until there is.
        """
        async with self._write_lock:
            if self._writer is not None:
                await self._alone(self._keep_lost)

    async def close(self) -> None:
        """Wait for running calls and close the connections; the file is then complete without its side files."""
        async with self._write_lock:
            if self._writer is not None:
                await self._alone(self._close)

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

    def _open(self, user_id: str) -> None:
        if tuple(int(part) for part in apsw.sqlite_lib_version().split(".")) < SQLITE_AT_LEAST:
            needed = ".".join(map(str, SQLITE_AT_LEAST))
            msg = f"SQLite {apsw.sqlite_lib_version()} is older than {needed}; reinstall the apsw package"
            raise StorageError(msg)
        with self._translated():
            look_at_header(self._path)
            try:
                self._open_to_write(user_id)
            except (apsw.Error, OSError) as error:
                self._close()
                reason = unwritable(self._path)
                if reason is None or isinstance(error, apsw.CorruptError | apsw.NotADBError):
                    raise
                self._open_as_it_is(user_id, reason)
            except BaseException:
                self._close()
                raise

    def _open_to_write(self, user_id: str) -> None:
        if not self._only_reads:
            _make_private(self._path)
            _make_journals_writable(self._path)
        elif not self._path.exists() or not self._path.stat().st_size:
            msg = f"{self._path} is {'empty' if self._path.exists() else 'not there'}; nothing was made"
            raise StorageError(msg)
        with folder_held(self._path.parent) as is_held:
            set_aside_foreign(self._path)
            forget_owner(self._path)
            is_alone = is_held and not is_in_use(self._path)
            writer, found = self._connected()
            opened = identity(self._path)
        if writer.readonly("main") and not self._only_reads:  # SQLite's silent fallback if there is a journal
            raise apsw.ReadOnlyError
        self._prepare(writer, found, user_id)
        with suppress(OSError):
            beginning_mark(self._path).unlink()
        writer.pragma("query_only", self._only_reads)
        with folder_held(self._path.parent) as is_held:  # a new file has a journal only from here on
            if identity(self._path) != opened:
                note_previous_owner(self._path, opened)
                raise StorageError(lost(self._path))
            note_owner(self._path, is_alone=is_alone and is_held)
            self._place = Place.of(self._path)
        writer.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)

    def _open_as_it_is(self, user_id: str, reason: str) -> None:
        """Open a file when neither it nor SQLite's journal beside it can be written.

        Raises:
            StorageError: The file does not exist yet, or has an older version.
        """
        if not self._path.exists() or not self._path.stat().st_size:
            raise StorageError(reason)
        try:
            self._as_it_is = _AsItIs(self._path, reason)
            self._writer = writer = self._connect()
            _check_version(look_at_content(writer, self._path), self._path, reason)
            self._check_owner(writer, user_id)
            self._only_reads = True
            writer.pragma("query_only", True)
            self._place = Place.of(self._path, with_journals=False)
        except BaseException:
            self._close()
            raise
        logger.warning("a memory is only read, and nothing learned: %s", reason)

    def _verify(self, given_up: threading.Event) -> None:
        """Check the file on a separate connection, as FTS5 may compare it with a connection's outdated cache.

        Damage must be found a second time, under a write lock, to be reported.
        """
        with self._translated():
            connection = self._connect()
            try:
                _go_easy(connection, given_up)
                integrity_check(connection)
            except apsw.InterruptError:
                return
            except apsw.CorruptError:
                connection.close()
                connection = self._connect()
                connection.execute("BEGIN IMMEDIATE")
                integrity_check(connection)
            finally:
                connection.close()
        self._checks.note(self._path)

    def _verify_pages(self, given_up: threading.Event) -> tuple[str, ...]:
        with self._translated(), closing(self._connect()) as connection:
            _go_easy(connection, given_up)
            try:
                damaged = damaged_pages(connection)
            except apsw.InterruptError:
                return ()
        self._checks.note_pages(self._path, damaged)
        return damaged

    def _write_anew(self) -> bool:
        # With secure_delete SQLite overwrites deleted content, but not the copies of it that moved rows have left in
        # unused parts of its pages. Only a rewritten file has no such copies.
        def write(connection: apsw.Connection) -> bool:
            if self._path.stat().st_size > VACUUMED_IN_RAM_BYTES:
                connection.pragma("temp_store", "file")
            connection.execute("VACUUM")
            return True

        return self._scrubbing(write)

    def _empty_journal(self) -> bool:
        def empty(connection: apsw.Connection) -> bool:
            with checkpointed(self._path):
                is_busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0]
            return not is_busy

        return self._scrubbing(empty)

    def _scrubbing(self, work: Callable[[apsw.Connection], bool]) -> bool:
        """Run part of scrubbing on a separate connection; return False if another process blocks it."""
        with self._translated(), closing(self._connect()) as connection:
            connection.set_busy_timeout(SCRUB_BUSY_TIMEOUT_MS)
            try:
                return work(connection)
            except (apsw.BusyError, apsw.LockedError):
                return False

    def _connect(self) -> apsw.Connection:
        connection = apsw.Connection(str(self._path)) if self._as_it_is is None else self._as_it_is.connect()
        # Until the file is known to be ours, closing the connection must not write the journal to it.
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        distrust(connection)
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        connection.wal_autocheckpoint(0)  # checkpoints must be noted: see `journals`
        connection.pragma("synchronous", "full")
        connection.pragma("foreign_keys", True)
        connection.pragma("secure_delete", True)
        connection.pragma("temp_store", "memory")
        connection.pragma("cache_size", -CACHE_KIB)
        return connection

    def _connected(self) -> tuple[apsw.Connection, int]:
        """Open the writing connection, and return it with the file's version.

        A restore may replace the file before the connection's first read, but not after it. Writes to the replaced file
        would be lost, so the file is then opened again.
        """
        while True:
            there = self._path.stat()
            self._writer = writer = self._connect()
            writer.set_wal_hook(self._count_journal)
            writer.execute("BEGIN")
            try:
                found = look_at_content(writer, self._path)
                is_in_place = os.path.samestat(there, self._path.stat())
            finally:
                writer.execute("ROLLBACK")
            if is_in_place:
                return writer, found
            writer.close()

    def _prepare(self, connection: apsw.Connection, found: int, user_id: str) -> None:
        if found:
            self._check_owner(connection, user_id)
        if self._path.stat().st_size <= CHECKED_AT_OPEN_BYTES and not self._checks.hold(self._path):
            integrity_check(connection)
            self._checks.note(self._path)
        _use_wal(connection)
        if found < schema.CURRENT_VERSION:
            self._run_write(connection, lambda writer: schema.migrate(writer, user_id))
        self._check_owner(connection, user_id)  # checks a new file, and makes SQLite create the journal

    def _check_owner(self, connection: apsw.Connection, user_id: str) -> None:
        owner = connection.execute("SELECT value FROM meta WHERE key = 'user_id'").get
        if owner != user_id:
            msg = f"{self._path} holds another user's memory; it was left untouched. Put it back in its own folder"
            raise DamagedStoreError(msg)

    async def _with_reader(self, query: Callable[[apsw.Connection], T]) -> T:
        async with self._reading:
            if self._writer is None:
                raise _closed()
            return await self._threads.run(lambda: self._run_read(query))

    def _run_read(self, query: Callable[[apsw.Connection], T]) -> T:
        with self._translated():
            self._refuse_if_lost()
            try:
                reader = self._readers.pop()  # thread-safe: each thread gets a different one
            except IndexError:
                reader = self._connect()
                reader.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
                reader.pragma("query_only", self._only_reads)
            try:
                return query(reader)
            finally:
                self._readers.append(reader)

    def _run_write(self, writer: apsw.Connection, change: Callable[[apsw.Connection], T]) -> T:
        with self._translated():
            try:
                writer.execute("BEGIN IMMEDIATE")
                result = change(writer)
                self._refuse_if_lost()
                writer.execute("COMMIT")
            except BaseException as error:
                if isinstance(error, apsw.Error):
                    self._note_unwritten(error)
                if writer.in_transaction:
                    writer.execute("ROLLBACK")
                raise
            self._unwritten = None
            self._refuse_if_lost()  # the copy of the lost file will contain this change
            self._checkpoint_if_due(writer)
            return result

    def _note_unwritten(self, error: apsw.Error) -> None:
        self._unwritten = why_unwritten(error, self._path) or self._unwritten
        self._is_unwritable = unwritable(self._path) is not None

    def _count_journal(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        self._journal_pages = pages
        return apsw.SQLITE_OK

    def _checkpoint_if_due(self, writer: apsw.Connection) -> None:
        """Write a journal that has grown to its file; if that fails, try again once it has grown further."""
        if self._journal_pages < self._checkpointed_pages:  # SQLite has restarted it
            self._checkpointed_pages = 0
        if self._journal_pages - self._checkpointed_pages >= CHECKPOINT_PAGES:
            with suppress(apsw.Error, OSError), checkpointed(self._path, waits=False):
                writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            self._checkpointed_pages = self._journal_pages

    def _refuse_if_lost(self) -> None:
        if self._place is not None:
            self._place.refuse_if_lost()

    def _keep_lost(self) -> None:
        place = self._place
        if self._kept is not None or place is None or self._writer is None:
            return
        if not place.is_held() and not place.has_lost_only_index():
            with self._translated():
                self._kept = keep_lost(place, self._writer)

    def _close(self) -> None:
        connections = [*self._readers, *([self._writer] if self._writer else [])]
        place, is_lost, has_whole_journal = self._place, False, False
        try:
            if place is not None and not place.is_held():
                is_lost, has_whole_journal = True, place.has_lost_only_index()
                _leave_journal(connections)  # otherwise SQLite would remove the journal of the new file
                if not has_whole_journal:
                    self._keep_lost()
                    self._remove_journals(place)
        except (apsw.Error, OSError, StorageError) as error:
            logger.warning("what %s held could not be kept: %s", self._path, type(error).__name__)
        finally:
            self._readers, self._writer, self._place = [], None, None
            self._close_each(connections, is_opened=place is not None, is_lost=is_lost)
        self._tidy(is_opened=place is not None)
        try:
            if has_whole_journal:
                fold_journal(self._path)
            if self._kept is not None:
                drop_if_held(self._kept, self._path)
        except (apsw.Error, OSError) as error:
            logger.warning("what %s held could not be looked at: %s", self._path, type(error).__name__)
        self._kept = None

    def _tidy(self, *, is_opened: bool) -> None:
        if not is_opened:
            remove_empty(self._path)  # leaves no side files beside a refused file
            return
        with folder_held(self._path.parent):
            forget_owner(self._path)

    def _remove_journals(self, place: Place) -> None:
        if self._kept is None:
            logger.warning("%s was removed or moved with its folder; nothing of it is kept", self._path)
        with folder_held(self._path.parent):
            place.remove_journals()

    def _close_each(self, connections: Sequence[apsw.Connection], *, is_opened: bool, is_lost: bool) -> None:
        """Close connections; the last one of all processes writes the journal to the file."""
        with ExitStack() as stack:
            if self._as_it_is is not None:
                stack.callback(self._as_it_is.close)
            elif is_opened and not is_lost:
                try:
                    stack.enter_context(checkpointed(self._path))
                except OSError:
                    _leave_journal(connections)  # the next process to open the file writes it
            for connection in connections:
                connection.close()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Translate errors of SQLite and the system into ours; once damage is found, refuse all further use."""
        if self._damage is not None:
            raise self._damage
        try:
            with translated(self._path):
                yield
        except DamagedStoreError as error:
            self._damage = error
            raise


def _check_version(found: int, path: Path, reason: str) -> None:
    if found < schema.CURRENT_VERSION:
        msg = f"{path} is of an older version, and to bring it up to date it must be written: {reason}"
        raise StorageError(msg)


class _AsItIs:
    """A file that is read without writing anything beside it.

    If the journal is not empty, a copy of both is read, as SQLite reads a journal only in a writable folder.

    Raises:
        OSError: The copy cannot be made.
    """

    def __init__(self, path: Path, reason: str) -> None:
        self.reason = reason
        self._path = path
        self._state = self._state_there()
        self._looked_at_s = time.monotonic()
        self._folder: Path | None = None
        if has_journal(path) and not is_foreign(path):
            self._folder = Path(tempfile.mkdtemp(prefix="memoryos-"))
            for each in (path, journals_of(path)[0]):
                shutil.copyfile(each, self._folder / each.name)

    def connect(self) -> apsw.Connection:
        """Return a reading connection."""
        if self._folder is not None:
            return apsw.Connection(str(self._folder / self._path.name))
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        return apsw.Connection(f"file:{quote(str(self._path))}?immutable=1", flags=flags)

    def is_all_there_is(self) -> bool:
        """Return whether the file is unchanged since it was opened, and still cannot be written.

        Raises:
            OSError: The file cannot be examined.
        """
        if time.monotonic() - self._looked_at_s < WRITABLE_POLL_S:
            return True
        self._looked_at_s = time.monotonic()
        return self._state_there() == self._state and unwritable(self._path) is not None

    def close(self) -> None:
        """Remove the copy, if one was made."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _state_there(self) -> list[tuple[int, int] | None]:
        files = (self._path, journals_of(self._path)[0])
        states = (each.stat() if each.exists() else None for each in files)
        return [None if state is None else (state.st_mtime_ns, state.st_size) for state in states]


def _leave_journal(connections: Iterable[apsw.Connection]) -> None:
    """Configure connections to leave the journal as it is when they close."""
    for connection in connections:
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)


def _in_one_state(reader: apsw.Connection, query: Callable[[apsw.Connection], T]) -> T:
    reader.execute("BEGIN")
    try:
        return query(reader)
    finally:
        if reader.in_transaction:
            reader.execute("ROLLBACK")


def _make_private(path: Path) -> None:
    """Create the file and its two folders if missing, for this account only; SQLite would use the umask.

    An empty file with a mark beside it is from a process killed during creation. One without has lost its content.
    """
    for folder in (path.parent.parent, path.parent):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not path.exists():
        os.close(os.open(beginning_mark(path), os.O_CREAT | os.O_WRONLY, 0o600))
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _make_journals_writable(path: Path) -> None:
    """Restore write permission on journals made while the file had none: SQLite copies the file's permissions."""
    if path.stat().st_mode & stat.S_IWUSR:
        for journal in journals_of(path):
            with suppress(OSError):
                if not journal.stat().st_mode & stat.S_IWUSR:
                    journal.chmod(0o600)


def _use_wal(connection: apsw.Connection) -> None:
    """Switch a new file to write-ahead logging; wait for other processes that do so at the same time.

    SQLite does not call its busy handler for this switch, so the wait is done here.
    """
    give_up_at = time.monotonic() + BUSY_TIMEOUT_MS / 1000
    while True:
        try:
            connection.pragma("journal_mode", "wal")
        except (apsw.BusyError, apsw.LockedError):
            if time.monotonic() > give_up_at:
                raise
            time.sleep(WAL_RETRY_S)
        else:
            return


def _go_easy(connection: apsw.Connection, given_up: threading.Event) -> None:
    """Make a connection pause between its steps, and stop once ``given_up`` is set."""
    rested_at = time.monotonic()

    def rest() -> bool:
        nonlocal rested_at
        is_given_up = given_up.wait(min(LONGEST_REST_S, RESTS_PER_WORK * (time.monotonic() - rested_at)))
        rested_at = time.monotonic()
        return is_given_up

    connection.set_progress_handler(rest, STEPS_BETWEEN_RESTS)


def _closed() -> StorageError:
    return StorageError("the store is closed; nothing was stored")
