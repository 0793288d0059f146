"""A user's file and its connections.

A file is checked when it is opened. If it is damaged, or if another program or a newer version created it, an error is
raised and the file is left unchanged. When the last process closes the file, the journal's content is moved to the
file. If the move fails, the next process that opens the file moves the content.
"""

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import apsw

from memoryos_mcp.errors import DamagedStoreError, StorageError
from memoryos_mcp.storage.sqlite import schema
from memoryos_mcp.storage.sqlite.checkpoints import Checkpoints
from memoryos_mcp.storage.sqlite.checks import Checks
from memoryos_mcp.storage.sqlite.connections import (
    SqliteConnection,
    leave_journal,
    make_journals_writable,
    make_private,
    require_version,
    set_up,
    transaction,
    use_wal,
)
from memoryos_mcp.storage.sqlite.file_errors import translated
from memoryos_mcp.storage.sqlite.file_header import check_content, check_header
from memoryos_mcp.storage.sqlite.integrity import integrity_check
from memoryos_mcp.storage.sqlite.journals import (
    checkpointed,
    forget_owner,
    identity,
    is_in_use,
    locked_folder,
    note_owner,
    note_previous_owner,
    remove_empty,
    set_aside_foreign,
)
from memoryos_mcp.storage.sqlite.paths import beginning_mark
from memoryos_mcp.storage.sqlite.places import FileIdentity, lost_message, unwritable_reason
from memoryos_mcp.storage.sqlite.rescuing import fold_journal, keep_lost, remove_if_contained
from memoryos_mcp.storage.sqlite.unwritable_file import UnwritableFile

logger = logging.getLogger(__name__)

T = TypeVar("T")

# Larger files are checked for damage in the background.
CHECKED_AT_OPEN_BYTES = 8 * 1024 * 1024


class OpenFile:
    """A user's file with one writing connection and any number of reading connections. Every method blocks.

    Several threads may read at the same time. The caller must ensure that only one thread writes at a time, and that no
    other method runs during `open`, `keep_lost` and `close`.

    Attributes:
        path: The path of the file.
        writer: The writing connection; None before `open` and after `close`.
        checkpoints: The checkpoints of the writing connection.
        only_readable: Reads the file if it cannot be written at present. None if the file can be written, and before
            `open`.
    """

    def __init__(self, path: Path, checks: Checks, *, only_reads: bool) -> None:
        self.path = path
        self.writer: SqliteConnection | None = None
        self.checkpoints = Checkpoints(path)
        self.only_readable: UnwritableFile | None = None
        self._only_reads = only_reads
        self._checks = checks
        self._readers: list[SqliteConnection] = []
        self._damage: DamagedStoreError | None = None
        self._identity: FileIdentity | None = None
        self._saved: Path | None = None

    def open(self, user_id: str) -> None:
        """Open the file of the user ``user_id``. If necessary, create or migrate the file first; see `Stores.open`."""
        require_version()
        with self.translated():
            check_header(self.path)
            try:
                self._open_to_write(user_id)
            except (apsw.Error, OSError) as error:
                self.close()
                reason = unwritable_reason(self.path)
                if reason is None or isinstance(error, apsw.CorruptError | apsw.NotADBError):
                    raise
                self._open_unwritable(user_id, reason)
            except BaseException:
                self.close()
                raise

    def is_in_place(self) -> bool:
        """Return whether the open file can still be used; see `Store.is_in_place`."""
        try:
            if self.only_readable is not None and not self.only_readable.is_up_to_date():
                return False
            return self._identity is None or self._identity.is_unchanged()
        except OSError:
            return True  # the next use of the file raises the error

    def opened(self) -> SqliteConnection:
        """Return the writing connection; raise `StorageError` if the file is closed."""
        if self.writer is None:
            msg = "the store is closed; nothing was stored. Open the store again"
            raise StorageError(msg)
        return self.writer

    def refuse_if_lost(self) -> None:
        """Raise `StorageError` if the open file or its journal was replaced or removed."""
        if self._identity is not None:
            self._identity.refuse_if_lost()

    def connect(self, *, only_reads: bool = False) -> SqliteConnection:
        """Return a new connection; the caller closes it. With ``only_reads``, it must not be used to write."""
        connection = SqliteConnection(str(self.path)) if self.only_readable is None else self.only_readable.connect()
        set_up(connection, only_reads=only_reads)
        return connection

    def read(self, query: Callable[[SqliteConnection], T]) -> T:
        """Run a query and return its result. If no reading connection is idle, open a new one."""
        self.opened()
        with self.translated():
            self.refuse_if_lost()
            try:
                reader = self._readers.pop()  # thread-safe: each thread gets a different one
            except IndexError:
                reader = self.connect(only_reads=True)
                reader.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
                reader.pragma("query_only", True)
            try:
                return query(reader)
            finally:
                self._readers.append(reader)

    def keep_lost(self) -> None:
        """If the file was replaced or removed, save its content as a copy; see `Store.keep_lost`."""
        opened = self._identity
        if self._saved is not None or opened is None or self.writer is None:
            return
        if not opened.is_unchanged() and not opened.has_lost_only_index():
            with self.translated():
                self._saved = keep_lost(opened, self.writer)

    def close(self) -> None:
        """Close the connections. If no other process has the file open, SQLite moves the journal's content to the file.

        If the file was replaced or removed while it was open, the content of the opened file is first saved as a copy;
        see `keep_lost`. The copy is removed again if each page in it is also in another file; see
        `remove_if_contained`. If saving fails, a warning is logged.
        """
        connections = [*self._readers, *([self.writer] if self.writer else [])]
        opened, is_lost, has_whole_journal = self._identity, False, False
        try:
            if opened is not None and not opened.is_unchanged():
                is_lost, has_whole_journal = True, opened.has_lost_only_index()
                leave_journal(connections)  # otherwise SQLite would remove the journal of the new file
                if not has_whole_journal:
                    self.keep_lost()
                    self._remove_journals(opened)
        except (apsw.Error, OSError, StorageError) as error:
            msg = (
                "%s was replaced or removed while the file was open, and the previous content could not be saved (%s). "
                "If pages are missing, restore a backup"
            )
            logger.warning(msg, self.path, type(error).__name__)
        finally:
            self._readers, self.writer, self._identity = [], None, None
            self._close_each(connections, is_opened=opened is not None, is_lost=is_lost)
        self._tidy(is_opened=opened is not None)
        try:
            if has_whole_journal:
                fold_journal(self.path)
            if self._saved is not None:
                remove_if_contained(self._saved, self.path)
        except (apsw.Error, OSError) as error:
            msg = (
                "the journal or the saved copy of %s could not be processed (%s); both files were kept. "
                "If pages are missing, restore the saved copy"
            )
            logger.warning(msg, self.path, type(error).__name__)
        self._saved = None

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Replace errors of SQLite and the operating system in the block with a `StorageError`.

        Once a block has found that the file is damaged, every later call immediately raises the same error.
        """
        if self._damage is not None:
            raise self._damage
        try:
            with translated(self.path):
                yield
        except DamagedStoreError as error:
            self._damage = error
            raise

    def _open_to_write(self, user_id: str) -> None:
        if not self._only_reads:
            make_private(self.path)
            make_journals_writable(self.path)
        elif not self.path.exists() or not self.path.stat().st_size:
            state = "is empty" if self.path.exists() else "does not exist"
            msg = f"{self.path} {state}; nothing was created. Check data_storage_path and the user id"
            raise StorageError(msg)
        with locked_folder(self.path.parent) as is_locked:
            set_aside_foreign(self.path)
            forget_owner(self.path)
            is_alone = is_locked and not is_in_use(self.path)
            writer, found = self._connected()
            before = identity(self.path)
        if writer.readonly("main") and not self._only_reads:  # with a journal, SQLite raises no error
            raise apsw.ReadOnlyError
        self._prepare(writer, found, user_id)
        with suppress(OSError):
            beginning_mark(self.path).unlink()
        writer.pragma("query_only", self._only_reads)
        with locked_folder(self.path.parent) as is_locked:  # a new file has a journal only after `_prepare`
            if identity(self.path) != before:
                note_previous_owner(self.path, before)
                raise StorageError(lost_message(self.path))
            note_owner(self.path, is_alone=is_alone and is_locked)
            self._identity = FileIdentity.of(self.path)
        writer.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)

    def _open_unwritable(self, user_id: str, reason: str) -> None:
        """Open the file for reading only, because it cannot be written at present.

        Raises:
            StorageError: The file does not exist yet, or must be migrated.
        """
        if not self.path.exists() or not self.path.stat().st_size:
            raise StorageError(reason)
        try:
            self.only_readable = UnwritableFile(self.path, reason)
            self.writer = writer = self.connect()
            _check_version(check_content(writer, self.path), self.path, reason)
            self._check_owner(writer, user_id)
            self._only_reads = True
            writer.pragma("query_only", True)
            self._identity = FileIdentity.of(self.path, with_journals=False)
        except BaseException:
            self.close()
            raise
        logger.warning("a memory was opened for reading only; nothing can be added or learned: %s", reason)

    def _connected(self) -> tuple[SqliteConnection, int]:
        """Open the writing connection; return it and the file's schema version.

        If the file is replaced before the connection first reads it, for instance by a restore, the new file is opened
        instead, because writes to the old one would be lost.
        """
        while True:
            status = self.path.stat()
            self.writer = writer = self.connect()
            self.checkpoints.watch(writer)
            writer.execute("BEGIN")
            try:
                found = check_content(writer, self.path)
                is_in_place = os.path.samestat(status, self.path.stat())
            finally:
                writer.execute("ROLLBACK")
            if is_in_place:
                return writer, found
            writer.close()

    def _prepare(self, connection: SqliteConnection, found: int, user_id: str) -> None:
        if found:
            self._check_owner(connection, user_id)
        if self.path.stat().st_size <= CHECKED_AT_OPEN_BYTES and not self._checks.is_recent(self.path):
            integrity_check(connection)
            self._checks.record(self.path)
        use_wal(connection)
        if found < schema.CURRENT_VERSION:
            with transaction(connection):
                schema.migrate(connection, user_id)
            self.checkpoints.write_if_due(connection)
        self._check_owner(connection, user_id)  # also for a new file; this makes SQLite create the journal

    def _check_owner(self, connection: SqliteConnection, user_id: str) -> None:
        owner = connection.execute("SELECT value FROM meta WHERE key = 'user_id'").get
        if owner != user_id:
            msg = f"{self.path} is another user's memory; it was not changed. Move it to that user's folder"
            raise DamagedStoreError(msg)

    def _tidy(self, *, is_opened: bool) -> None:
        if not is_opened:
            remove_empty(self.path)
            return
        with locked_folder(self.path.parent):
            forget_owner(self.path)

    def _remove_journals(self, opened: FileIdentity) -> None:
        if self._saved is None:
            logger.warning(
                "the folder of %s was removed or moved while the file was open, so no copy was saved. "
                "If this was a mistake, move the folder back or restore a backup",
                self.path,
            )
        with locked_folder(self.path.parent):
            opened.remove_journals()

    def _close_each(self, connections: Sequence[SqliteConnection], *, is_opened: bool, is_lost: bool) -> None:
        """Close connections, and update the note about the file's journal (see `journals`) if necessary.

        When the last connection of all processes is closed, SQLite moves the journal's content to the file, except
        after a call of `leave_journal`. The note is updated only if the file was opened (``is_opened`` is true) and was
        neither replaced nor removed (``is_lost`` is false).
        """
        with ExitStack() as stack:
            if self.only_readable is not None:
                stack.callback(self.only_readable.close)
            elif is_opened and not is_lost:
                try:
                    stack.enter_context(checkpointed(self.path))
                except OSError:
                    leave_journal(connections)  # the next process that opens the file writes the journal to it
                else:
                    # Closing would do this too, but without releasing Python's global lock: all threads would wait.
                    with suppress(apsw.Error):
                        connections[-1].wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            for connection in connections:
                connection.close()


def _check_version(found: int, path: Path, reason: str) -> None:
    if found < schema.CURRENT_VERSION:
        msg = f"{path} was written by an older version of this program and cannot be migrated at present: {reason}"
        raise StorageError(msg)
