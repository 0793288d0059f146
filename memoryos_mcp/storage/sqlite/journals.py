"""Notes that record which memory file a journal belongs to.

A sync client or a manual restore may replace a memory's file, but leave the journal of the previous file in the folder.
SQLite would apply that journal to the new file, which would corrupt the new file. A note beside the journal therefore
records the inode, size and modification time of the file that the journal belongs to. The inode alone is not enough: a
new file often gets the inode of the previous file, and an overwritten file keeps its inode.
"""

import errno
import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from memoryos_mcp.storage.sqlite.paths import kept_name

try:
    import fcntl
except ImportError:  # Windows, where open files cannot be replaced
    fcntl = None  # type: ignore[assignment]

logger = logging.getLogger(__name__)

Identity = tuple[int, int]

_SUFFIXES = ("-wal", "-shm")
_OWNER_SUFFIX = "-wal-owner"
_IDENTITY_WORDS = 4
_BEING_WRITTEN = "writing"
# The fixed length of a note, so that one write replaces the previous note.
_NOTE_CHARS = 200
# The beginning of a file that was not written with a WAL, such as a backup. Bytes 18 and 19 are 2 in a file with a WAL.
_WITHOUT_JOURNAL = re.compile(rb"SQLite format 3\x00..\x01\x01|\Z", re.DOTALL)
_BEGINNING_BYTES = 20
# File systems round modification times down by at most this much.
_ROUNDED_NS = 2_000_000_000
# Start and length of the byte range that SQLite locks in an open file.
_SHARED_LOCKS = (510, 0x4000_0002)
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def journals_of(path: Path) -> list[Path]:
    """Return the paths of the files that SQLite creates beside an open file: the journal (WAL) and its index (SHM)."""
    return [path.with_name(path.name + suffix) for suffix in _SUFFIXES]


def has_journal(path: Path) -> bool:
    """Return whether there is a non-empty journal beside a file."""
    try:
        return journals_of(path)[0].stat().st_size > 0
    except (FileNotFoundError, NotADirectoryError):
        return False


def identity(path: Path | str) -> Identity | None:
    """Return the device and inode of a file; None if the file does not exist."""
    try:
        found = os.stat(path)  # noqa: PTH116 - `Path.stat` takes longer, and this is called for each query
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


@contextmanager
def locked_folder(folder: Path, *, waits: bool = True) -> Iterator[bool]:
    """Lock a user's folder, so that no other process opens, closes or checkpoints the memory in it.

    Yield whether the folder could be locked; some disks do not support locks. The lock is also released when the
    process ends.

    Raises:
        BlockingIOError: Another process has locked the folder, and ``waits`` is false.
    """
    descriptor, is_locked = None, False
    try:
        with suppress(OSError):
            if fcntl is not None:
                descriptor = os.open(folder, os.O_RDONLY)
        if descriptor is not None:
            is_locked = _lock(descriptor, waits=waits)
        yield is_locked
    finally:
        if descriptor is not None:
            os.close(descriptor)


def is_in_use(path: Path) -> bool:
    """Return whether another process has a file open in SQLite.

    Do not call this function for a file that this process has open: the process would lose SQLite's locks on the file.
    """
    if fcntl is None:
        return False
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, *_SHARED_LOCKS)
    except OSError as error:
        return error.errno in {errno.EACCES, errno.EAGAIN}
    finally:
        os.close(descriptor)
    return False


def set_aside_foreign(path: Path) -> None:
    """Rename the journal beside a file if the journal belongs to a different file.

    Raises:
        OSError: The journal cannot be renamed.
    """
    if not is_foreign(path):
        return
    journal, index = journals_of(path)
    saved = path.with_name(f"{kept_name(datetime.now(UTC))}-wal")
    index.unlink(missing_ok=True)
    journal.rename(saved)
    _owner_file(path).unlink(missing_ok=True)
    logger.warning(
        "%s was replaced; the previous file's journal was saved as %s. If pages are missing, restore a backup",
        path,
        saved,
    )


def is_foreign(path: Path) -> bool:
    """Return whether the journal beside a file belongs to a different file.

    The result is True in two cases:

    - The note beside the journal is about this journal, but about a different file.
    - The file was overwritten, and no other process has the file open. A file counts as overwritten if its size or
      modification time does not fit the note. So does a file whose header shows that it was written without a WAL.

    A note about a different journal is ignored, because the file and its journal were probably copied together.

    Raises:
        OSError: The file cannot be read.
    """
    file, journal = identity(path), identity(journals_of(path)[0])
    if file is None or not has_journal(path):
        return False
    note = _Note.read(path)
    is_noted = note is not None and note.journal == journal
    if note is not None and is_noted and note.file != file:
        return True
    is_overwritten = _is_without_journal(path) or (note is not None and is_noted and not note.may_be_unchanged(path))
    return is_overwritten and not is_in_use(path)


def note_owner(path: Path, *, is_alone: bool) -> None:
    """Write a note that the journal beside an open file belongs to that file; ignore errors, such as a full disk.

    ``is_alone`` is true if the caller has locked the folder, and no other process has the file open. The note then also
    describes the file's current state, to detect later whether the file was overwritten. Otherwise, the state is left
    out, because an earlier version of this program may change the file without updating the note.
    """
    file, journal = identity(path), identity(journals_of(path)[0])
    if file is None or journal is None:
        return
    with suppress(OSError):
        note = _Note.read(path)
        if is_alone:
            _Note.now(path, file, journal).write(path)
        elif note is None or (note.file, note.journal) != (file, journal):
            _Note(file, journal).write(path)


def note_previous_owner(path: Path, file: Identity | None) -> None:
    """Write a note that the journal beside ``path`` belongs to a previous file, not to the current one.

    ``file`` is the identity of the previous file. The next process that opens the memory renames the journal.
    """
    journal = identity(journals_of(path)[0])
    if file is not None and journal is not None:
        with suppress(OSError):
            _Note(file, journal).write(path)


@contextmanager
def checkpointed(path: Path, *, waits: bool = True) -> Iterator[None]:
    """Update the note about a database file's journal before and after a checkpoint; see `_Note`.

    The ``with`` block makes the checkpoint: it copies the journal's content into the database file. During the block,
    the state in the note is ``writing``. After the block, it is the file's new state.

    If the process is killed during the block, SQLite applies the journal again when the file is next opened.

    Raises:
        BlockingIOError: Another process has locked the folder, and ``waits`` is false.
        OSError: The note could not be written; the block was not run.
    """
    with locked_folder(path.parent, waits=waits) as is_locked:
        _note_writing(path)
        try:
            yield
        finally:
            if is_locked:
                _note_written(path)
            forget_owner(path)


def remove_empty(path: Path) -> None:
    """Remove the journal beside a file if the journal is empty and no process has the file open.

    If there is no journal afterwards, remove the note that records which file the journal belonged to.
    """
    journal, index = journals_of(path)
    with locked_folder(path.parent) as is_locked, suppress(OSError):
        is_empty = identity(path) is not None and identity(journal) is not None and not has_journal(path)
        if is_empty and (fcntl is None or (is_locked and not is_in_use(path))):  # Windows does not remove open files
            journal.unlink()
            index.unlink(missing_ok=True)
        forget_owner(path)


def forget_owner(path: Path) -> None:
    """Remove the note about a memory's journal if there is no journal. Errors are ignored."""
    with suppress(OSError):
        if identity(journals_of(path)[0]) is None:
            _owner_file(path).unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class _Note:
    """A note that a journal belongs to a file.

    Attributes:
        file: The identity of the file.
        journal: The identity of the journal.
        state: The file's size, its modification time in nanoseconds, and the machine's boot id. During a checkpoint,
            the state is only the word ``writing``. An unknown state is empty, as in notes of earlier versions.
    """

    file: Identity
    journal: Identity
    state: tuple[str, ...] = ()

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """Return the note that is stored next to the file ``path``; None if the note is missing or unreadable."""
        try:
            words = _owner_file(path).read_text(encoding="ascii", errors="replace").split()
            numbers = [int(word) for word in words[:_IDENTITY_WORDS]]
        except (OSError, ValueError):
            return None
        if len(numbers) < _IDENTITY_WORDS:
            return None
        return cls((numbers[0], numbers[1]), (numbers[2], numbers[3]), tuple(words[_IDENTITY_WORDS:]))

    @classmethod
    def now(cls, path: Path, file: Identity, journal: Identity) -> Self:
        """Return a new note about a file and its journal.

        The state in the note is the file's current size and modification time, and the machine's boot id.
        """
        status = path.stat()
        return cls(file, journal, (str(status.st_size), str(status.st_mtime_ns), _boot()))

    def may_be_unchanged(self, path: Path) -> bool:
        """Return whether a file may still be as it was when this note was written.

        The note contains the size and the modification time of the file at that time. If it lacks them, the result is
        True. If the file's size differs, the result is False. Otherwise, the file's present time decides:

        - Same as in the note, or up to two seconds earlier: True.
        - More than two seconds earlier: True only if the machine may have crashed since the note was written.
        - Later: the file was overwritten or copied. True only if the journal or the note's own file is newer than the
          file, because then all three were probably copied together.
        """
        if len(self.state) < 2 or not all(word.isdecimal() for word in self.state[:2]):
            return True
        status = path.stat()
        size, time_ns = map(int, self.state[:2])
        if size != status.st_size:
            return False
        if status.st_mtime_ns > time_ns:
            beside = (journals_of(path)[0], _owner_file(path))
            return max(each.stat().st_mtime_ns for each in beside) > status.st_mtime_ns
        is_same_boot = self.state[2:] == (_boot(),) != ("?",)
        return time_ns - status.st_mtime_ns <= _ROUNDED_NS or not is_same_boot

    def write(self, path: Path) -> None:
        """Write this note to a file in the same folder as the memory's file ``path``.

        Only the current account can read the file. If the file already exists, its bytes are overwritten in place, so
        that the note can be written even if the disk is full.
        """
        flags = os.O_CREAT | os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0)
        descriptor = os.open(_owner_file(path), flags, 0o600)
        try:
            text = " ".join([*map(str, self.file + self.journal), *self.state])
            os.write(descriptor, text.ljust(_NOTE_CHARS).encode("ascii"))
            if self.state == (_BEING_WRITTEN,):
                os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _note_writing(path: Path) -> None:
    note = _Note.read(path)
    if note is None or not note.state or not _is_current(note, path) or not has_journal(path):
        return
    try:
        _Note(note.file, note.journal, (_BEING_WRITTEN,)).write(path)
    except OSError:
        _owner_file(path).unlink()


def _note_written(path: Path) -> None:
    with suppress(OSError):
        note = _Note.read(path)
        if note is not None and note.state == (_BEING_WRITTEN,) and _is_current(note, path):
            _Note.now(path, note.file, note.journal).write(path)


def _is_current(note: _Note, path: Path) -> bool:
    return (note.file, note.journal) == (identity(path), identity(journals_of(path)[0]))


def _lock(descriptor: int, *, waits: bool) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
    except BlockingIOError:
        raise
    except OSError:
        return False
    return True


def _is_without_journal(path: Path) -> bool:
    with path.open("rb") as file:
        return _WITHOUT_JOURNAL.match(file.read(_BEGINNING_BYTES)) is not None


def _boot() -> str:
    """Return the machine's boot id; ``?`` if the machine has none."""
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip() or "?"
    except (OSError, ValueError):
        return "?"


def _owner_file(path: Path) -> Path:
    return path.with_name(path.name + _OWNER_SUFFIX)
