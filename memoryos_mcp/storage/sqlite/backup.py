"""Backups of a user's file: copied while others write to it, checked, and restored.

Uses connections of its own, never an open store.
"""

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import apsw

from memoryos_mcp.errors import StorageError
from memoryos_mcp.storage.sqlite import retention
from memoryos_mcp.storage.sqlite.checksums import damaged_pages
from memoryos_mcp.storage.sqlite.file_errors import translated
from memoryos_mcp.storage.sqlite.file_header import (
    distrust,
    integrity_check,
    look_at_content,
    look_at_header,
    read_texts,
)
from memoryos_mcp.storage.sqlite.journals import (
    checkpointed,
    folder_held,
    forget_owner,
    remove_empty,
    set_aside_foreign,
)
from memoryos_mcp.storage.sqlite.mapping import from_us

BUSY_TIMEOUT_MS = 2_000
# SQLite pages copied per step; progress is reported after each step.
PAGES_PER_STEP = 2_000
_SIDE_FILES = ("-wal", "-shm", "-journal")


@dataclass(frozen=True, slots=True)
class Copy:
    """The content of a user's file.

    Attributes:
        pages: Number of dialogue pages.
        last_added_at: When the newest page was stored; None without any.
        retention_waits_until: When old pages can be forgotten, if the clock may be wrong; else None.
        damaged: Ids of the pages damaged on disk.
    """

    user_id: str
    pages: int
    last_added_at: datetime | None
    retention_waits_until: datetime | None
    damaged: tuple[str, ...] = ()


def make_copy(source: Path, target: Path, tell: Callable[[int, int], None], *, is_in_use: bool) -> Copy:
    """Copy the present state of a user's file, even while others write to it, and check the copy.

    Args:
        source: The file.
        target: The copy, which appears only once it is complete; an existing file is replaced.
        tell: Called with the number of SQLite pages copied so far and the number of all pages.
        is_in_use: Whether others may write to the file.

    Raises:
        DamagedStoreError: The file is damaged or not ours.
        NewerStoreError: A newer version wrote it.
        StorageError: It cannot be read, or the copy cannot be written.
    """
    unfinished = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        with translated(target):
            os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with translated(source):
            _see_to_journal(source)
        with translated(source), _reading(source, is_in_use=is_in_use) as reader:
            look_at_content(reader, source)
            copy_pages(reader, unfinished, target, tell)
        found = check_copy(unfinished)
        with translated(target):
            sync(unfinished)
            unfinished.replace(target)
            _sync_folder(target.parent)
    finally:
        for suffix in ("", *_SIDE_FILES):
            unfinished.with_name(unfinished.name + suffix).unlink(missing_ok=True)
        remove_empty(source)
    return found


def check_copy(path: Path) -> Copy:
    """Check a whole file for damage and return what it contains; changes nothing.

    Raises:
        DamagedStoreError: It is damaged or not ours.
        NewerStoreError: A newer version wrote it.
        StorageError: It cannot be read.
    """
    with translated(path):
        if not path.is_file() or path.stat().st_size == 0:
            state = "empty" if path.is_file() else "a folder; name a file in it" if path.is_dir() else "not there"
            msg = f"{path} is no backup: it is {state}"
            raise StorageError(msg)
        look_at_header(path)
        _see_to_journal(path)
        with _reading(path, is_in_use=False) as reader:
            if look_at_content(reader, path) == 0:
                msg = f"{path} is no backup: it is empty"
                raise StorageError(msg)
            integrity_check(reader)
            user_id = reader.execute("SELECT value FROM meta WHERE key = 'user_id'").get
            pages, last_us = reader.execute("SELECT count(*), max(added_us) FROM pages").get
            waits_until = retention.waits_until(reader)
            damaged = damaged_pages(reader)
    return Copy(user_id, pages, None if last_us is None else from_us(last_us), waits_until, damaged)


def check_texts(path: Path) -> None:
    """Read all texts of a sound file that have no checksum.

    Raises:
        StorageError: A text is damaged.
    """
    with translated(path), _reading(path, is_in_use=False) as reader:
        read_texts(reader)


def put_in_place(copy: Path, target: Path, kept: Path) -> None:
    """Replace a user's file with a checked copy; the old file with its journal's content is kept beside it.

    The replacement is atomic: a process that opens the memory finds the old file or the new one.

    Args:
        copy: On the same file system as the target; it is moved.
        target: The user's file; it may be missing.
        kept: New path of the old file.

    Raises:
        StorageError: Another process has the file open, or the folder cannot be written; nothing was changed.
    """
    with translated(target):
        if target.exists():
            _see_to_journal(target)
            with _held(target):
                # SQLite would apply a journal left in place to the new file.
                for suffix in _SIDE_FILES:
                    with suppress(FileNotFoundError):
                        target.with_name(target.name + suffix).rename(kept.with_name(kept.name + suffix))
                kept.hardlink_to(target)
                copy.replace(target)
                forget_owner(target)
        else:
            copy.replace(target)
        _sync_folder(target.parent)


def user_files(data_folder: Path, name: str) -> list[Path]:
    """Return the files called ``name`` of all users."""
    return sorted(data_folder.glob(f"users/*/{name}"))


def _see_to_journal(path: Path) -> None:
    with folder_held(path.parent):
        set_aside_foreign(path)


@contextmanager
def _held(path: Path) -> Iterator[None]:
    """Write a file's journal to it and lock the file against other processes; a damaged file is left as it is.

    Raises:
        StorageError: Another process has it open.
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
            connection.close()  # it is unusable and needs no lock to be moved away
        yield


@contextmanager
def _reading(path: Path, *, is_in_use: bool) -> Iterator[apsw.Connection]:
    """Yield a connection that reads one state of a file; if it is not in use, no side files are created."""
    is_at_rest = not is_in_use and not path.with_name(path.name + "-wal").exists()
    uri = f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if is_at_rest else ''}"
    with closing(apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)) as connection:
        distrust(connection)
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        connection.execute("BEGIN")
        yield connection


def copy_pages(
    reader: apsw.Connection, unfinished: Path, target: Path, tell: Callable[[int, int], None] = lambda _done, _all: None
) -> None:
    """Copy SQLite's pages to an unfinished file; errors name the target.

    Raises:
        StorageError: The copy cannot be written.
    """
    with translated(target), closing(apsw.Connection(str(unfinished))) as writer:
        writer.pragma("synchronous", "off")  # the complete file is synced later
        with writer.backup("main", reader, "main") as copying:
            while not copying.done:
                copying.step(PAGES_PER_STEP)
                tell(copying.page_count - copying.remaining, copying.page_count)
        writer.pragma("journal_mode", "delete")  # so that the copy is one file, wherever it is opened


def sync(path: Path) -> None:
    """Flush a file to disk, so that it survives a crash of the machine."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    """Flush a folder's renames to disk, if the system supports it."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
