"""Copies of a user's whole file: made while others write to it, checked, and put in its place.

Works on closed files and on connections of its own; a store that is open is never used.
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
# Pages of SQLite's that are copied between two looks at the clock.
PAGES_PER_STEP = 2_000
_SIDE_FILES = ("-wal", "-shm", "-journal")


@dataclass(frozen=True, slots=True)
class Copy:
    """What a user's file holds.

    Attributes:
        pages: How many dialogue pages.
        last_added_at: When the newest of them was stored; None without any.
        retention_waits_until: From when on old pages are forgotten, where the clock may be wrong; None else.
        damaged: Names of the pages that a disk has changed.
    """

    user_id: str
    pages: int
    last_added_at: datetime | None
    retention_waits_until: datetime | None
    damaged: tuple[str, ...] = ()


def make_copy(source: Path, target: Path, tell: Callable[[int, int], None], *, is_in_use: bool) -> Copy:
    """Copy a user's file as it is at this moment, whoever writes to it meanwhile, and check the copy.

    Args:
        source: The file.
        target: The copy, which is there only once it is whole; an earlier file of that name is replaced.
        tell: Is told how many of SQLite's pages are copied, and how many there are.
        is_in_use: Whether others may write to it.

    Raises:
        DamagedStoreError: The file is damaged or not ours.
        NewerStoreError: A newer version wrote it.
        StorageError: It cannot be read, or the copy not be written.
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
    """Return what a user's file holds, having read all of it for damage; changes nothing.

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
        StorageError: One is damaged.
    """
    with translated(path), _reading(path, is_in_use=False) as reader:
        read_texts(reader)


def put_in_place(copy: Path, target: Path, kept: Path) -> None:
    """Put a checked copy in the place of a user's file, which is kept beside it with what it has in its journal.

    At no moment is there half a file: who opens the memory finds the old one or the new one.

    Args:
        copy: Of the same file system as the target; it is moved.
        target: The user's file; there may be none.
        kept: What the file is called from now on.

    Raises:
        StorageError: Another process has the file open, or the folder cannot be written; nothing was changed.
    """
    with translated(target):
        if target.exists():
            _see_to_journal(target)
            with _held(target):
                # A journal that stayed in place would be taken for the new file's.
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
    """Return the files of all users.

    Args:
        data_folder: Where all users' folders are.
        name: What a user's file is called.
    """
    return sorted(data_folder.glob(f"users/*/{name}"))


def _see_to_journal(path: Path) -> None:
    with folder_held(path.parent):
        set_aside_foreign(path)


@contextmanager
def _held(path: Path) -> Iterator[None]:
    """Hold a file so that no other process reads or writes it, its journal folded into it; a damaged one as it is.

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
            connection.close()  # nobody can use it: it is only moved away
        yield


@contextmanager
def _reading(path: Path, *, is_in_use: bool) -> Iterator[apsw.Connection]:
    """Yield a connection that reads one state of a file; if nobody writes to it, without a trace beside it."""
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
    """Copy SQLite's pages; that the copy cannot be written is told of the target.

    Raises:
        StorageError: It cannot be written.
    """
    with translated(target), closing(apsw.Connection(str(unfinished))) as writer:
        writer.pragma("synchronous", "off")  # it is synced as a whole
        with writer.backup("main", reader, "main") as copying:
            while not copying.done:
                copying.step(PAGES_PER_STEP)
                tell(copying.page_count - copying.remaining, copying.page_count)
        writer.pragma("journal_mode", "delete")  # so that the copy is one file, wherever it is opened


def sync(path: Path) -> None:
    """Have a file on disk, whatever happens to the machine."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    """Have the renaming on disk too, where the system can do that."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
