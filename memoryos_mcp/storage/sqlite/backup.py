"""Backups of users' files: making, checking and restoring them, with separate connections."""

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
from memoryos_mcp.storage.paths import DATABASE_NAME, database_file, database_files, kept_name
from memoryos_mcp.storage.sqlite.connections import make_folders
from memoryos_mcp.storage.sqlite.file_check import BUSY_TIMEOUT_MS, check_copy, reading, set_aside_foreign_locked
from memoryos_mcp.storage.sqlite.file_errors import translated
from memoryos_mcp.storage.sqlite.file_header import check_content
from memoryos_mcp.storage.sqlite.journals import checkpointed, forget_owner, remove_empty

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
            msg = f"{backup} is not a backup, or is damaged {why}; nothing was changed. Choose another backup"
            raise DamagedStoreError(msg) from error
        if found.user_id != user_id:
            problem = f"is the memory of {found.user_id}, not of {user_id}; give --user-id, or choose another file"
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
    """Copy a user's file in its current state, and check the copy; see `Backups.make`.

    ``is_in_use`` is whether other processes may write to the file meanwhile.
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
    """Yield an empty file beside a target, accessible for this account only; remove it afterwards if it still exists.

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
    """Move a checked copy to a user's file, and the previous file with its journal's content to ``kept``.

    This is atomic: a process that opens the memory gets the previous file or the new one. All three paths are on the
    same file system.

    Raises:
        StorageError: Another process has the file open, or the folder cannot be written; nothing was changed.
    """
    with translated(target):
        if target.exists():
            set_aside_foreign_locked(target)
            with _locked(target):
                # SQLite would apply a remaining journal to the new file.
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
    """Write a file's journal to it, and lock the file against other processes; do neither if the file is damaged.

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
                f"{path} is in use by another process; nothing was changed. Stop the servers and clients of this "
                "memory, and restore again"
            )
            raise StorageError(msg) from error
        except (apsw.CorruptError, apsw.NotADBError):
            connection.close()  # a damaged file needs no lock
        yield


def copy_pages(
    reader: apsw.Connection, unfinished: Path, target: Path, tell: Callable[[int, int], None] = lambda _done, _all: None
) -> None:
    """Copy SQLite's pages to an unfinished file; errors name the file ``target``."""
    with translated(target), closing(apsw.Connection(str(unfinished))) as writer:
        writer.pragma("synchronous", "off")  # the complete file is synced later
        with writer.backup("main", reader, "main") as copying:
            while not copying.done:
                copying.step(PAGES_PER_STEP)
                tell(copying.page_count - copying.remaining, copying.page_count)
        writer.pragma("journal_mode", "delete")  # so that the copy is one file, wherever it is opened


def sync(path: Path) -> None:
    """Flush a file to disk."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    """Flush the renames in a folder to disk, if the system supports it."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
