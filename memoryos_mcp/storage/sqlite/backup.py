"""Backups of users' files: making, checking and restoring them. Every function opens its own connections."""

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import apsw

from memoryos_mcp.errors import ArgumentError, DamagedStoreError, StorageError
from memoryos_mcp.storage.capabilities import MemorySummary, RestorePlan
from memoryos_mcp.storage.sqlite.connections import make_folders
from memoryos_mcp.storage.sqlite.file_check import BUSY_TIMEOUT_MS, check_copy, reading, set_aside_foreign_locked
from memoryos_mcp.storage.sqlite.file_errors import translated
from memoryos_mcp.storage.sqlite.file_header import check_content
from memoryos_mcp.storage.sqlite.journals import checkpointed, forget_owner, remove_empty
from memoryos_mcp.storage.sqlite.paths import DATABASE_NAME, database_file, database_files, kept_name

# SQLite pages copied per step; progress is reported after each step.
PAGES_PER_STEP = 2_000
_SIDE_FILES = ("-wal", "-shm", "-journal")


class SqliteBackups:
    """Backups of the users' files in one data folder. Implements `Backups`."""

    def __init__(self, data_folder: Path, clock: Callable[[], datetime]) -> None:
        self._data_folder = data_folder
        self._clock = clock

    def names(self) -> list[str]:
        return [path.parent.name for path in database_files(self._data_folder)]

    def make(self, name: str, target: Path, tell: Callable[[int, int], None]) -> MemorySummary | None:
        source = self._data_folder / "users" / name / DATABASE_NAME
        return make_copy(source, target, tell, is_in_use=True) if source.exists() else None

    def plan_restore(self, user_id: str, backup: Path) -> RestorePlan:
        try:
            found = check_copy(backup)
        except DamagedStoreError as error:
            why = str(error).removeprefix(f"{backup} is damaged ").partition("; ")[0]
            msg = f"{backup} is damaged or is not a backup {why}; nothing was changed. Choose another file"
            raise DamagedStoreError(msg) from error
        if found.user_id != user_id:
            problem = (
                f"is a backup of user {found.user_id}, not of {user_id}; pass the backup's user as --user-id, "
                "or choose another file"
            )
            raise ArgumentError(argument=str(backup), problem=problem)
        target = database_file(self._data_folder, user_id)
        if not target.exists():
            return RestorePlan(backup, found, replaced=None, kept=None)
        replaced = None
        with suppress(StorageError):
            replaced = check_copy(target)
        return RestorePlan(backup, found, replaced, target.with_name(kept_name(self._clock())))

    def restore(self, plan: RestorePlan, tell: Callable[[int, int], None]) -> None:
        target = database_file(self._data_folder, plan.backup.user_id)
        with translated(target):
            make_folders(target)
        beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}.restored")
        try:
            make_copy(plan.file, beside, tell, is_in_use=False)
            put_in_place(beside, target, plan.kept or target)
        finally:
            beside.unlink(missing_ok=True)


def make_copy(source: Path, target: Path, tell: Callable[[int, int], None], *, is_in_use: bool) -> MemorySummary:
    """Copy the current state of the file ``source`` to ``target``, check the copy, and return its summary.

    See `Backups.make` for ``tell`` and the errors. ``is_in_use`` must be true if other processes may write to
    ``source`` during the copy.
    """
    try:
        with unfinished_copy(target) as unfinished:
            with translated(source):
                set_aside_foreign_locked(source)
            with translated(source), reading(source, is_in_use=is_in_use) as reader:
                check_content(reader, source)
                copy_pages(reader, unfinished, target, tell)
            found = replace(check_copy(unfinished), place=str(target))
            with translated(target):
                sync(unfinished)
                unfinished.replace(target)
                _sync_folder(target.parent)
    finally:
        remove_empty(source)
    return found


@contextmanager
def unfinished_copy(target: Path) -> Iterator[Path]:
    """Yield the path of a new, empty file in the folder of ``target``. Only the current account can access the file.

    At the end of the ``with`` block, the file is removed, unless the caller has renamed it.

    Raises:
        StorageError: The file cannot be created.
    """
    unfinished = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        with translated(target):
            os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        yield unfinished
    finally:
        for suffix in ("", *_SIDE_FILES):
            unfinished.with_name(unfinished.name + suffix).unlink(missing_ok=True)


def put_in_place(copy: Path, target: Path, kept: Path) -> None:
    """Replace the file ``target`` with ``copy``. If ``target`` already exists, move it to ``kept``.

    Before the move, the content of the journal of ``target`` is written to ``target``. If ``target`` is damaged, its
    journal is left unchanged and moved too.

    A process that opens ``target`` meanwhile gets either the previous file or the new one. All three paths must be on
    the same file system.

    Raises:
        StorageError: Another process has ``target`` open, or the folder cannot be written. Nothing was changed.
    """
    with translated(target):
        if target.exists():
            set_aside_foreign_locked(target)
            with _locked(target):
                # The journal is moved too, because SQLite would apply it to the new file.
                for suffix in _SIDE_FILES:
                    with suppress(FileNotFoundError):
                        target.with_name(target.name + suffix).rename(kept.with_name(kept.name + suffix))
                kept.hardlink_to(target)
                copy.replace(target)
                forget_owner(target)
        else:
            copy.replace(target)
        _sync_folder(target.parent)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Lock a file during the ``with`` block. Before that, the content of the journal is written to the file.

    If the file is damaged, it is neither changed nor locked, and the block runs without the lock.

    Raises:
        StorageError: Another process has the file open.
    """
    connection = apsw.Connection(str(path))
    with closing(connection):
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        try:
            with checkpointed(path):
                connection.pragma("journal_mode", "delete")
            connection.execute("BEGIN EXCLUSIVE")
        except (apsw.BusyError, apsw.LockedError) as error:
            msg = (
                f"{path} is in use by another process; nothing was changed. Stop all servers and clients that use this "
                "memory, then restore the backup"
            )
            raise StorageError(msg) from error
        except (apsw.CorruptError, apsw.NotADBError):
            connection.close()  # a damaged file needs no lock
        yield


def copy_pages(
    reader: apsw.Connection, unfinished: Path, target: Path, tell: Callable[[int, int], None] = lambda _done, _all: None
) -> None:
    """Copy the database of the connection ``reader`` to the file ``unfinished``.

    Error messages contain the path ``target``. ``tell`` receives the progress in SQLite pages; see `Backups`.
    """
    with translated(target), closing(apsw.Connection(str(unfinished))) as writer:
        writer.pragma("synchronous", "off")  # the complete file is synced later
        with writer.backup("main", reader, "main") as copying:
            while not copying.done:
                copying.step(PAGES_PER_STEP)
                tell(copying.page_count - copying.remaining, copying.page_count)
        writer.pragma("journal_mode", "delete")  # the copy must not need a journal beside it


def sync(path: Path) -> None:
    """Flush the content of a file to disk."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    """Flush a folder's entries to disk, so that renames survive a crash. Errors are ignored."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
