"""Whose a journal is: SQLite applies the journal that stands beside a file, whatever file that is.

Where a sync client or a restore by hand swaps a memory's file, the journal of the one before stays under its name, and
would be folded into the new one, which then is neither. So it is noted beside the journal which file it belongs to.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from memoryos_mcp.storage.paths import kept_name

try:
    import fcntl
except ImportError:  # Windows, where nobody can put another file in the place of an open one
    fcntl = None  # type: ignore[assignment]

logger = logging.getLogger(__name__)

Identity = tuple[int, int]

_SUFFIXES = ("-wal", "-shm")
_OWNER_SUFFIX = "-wal-owner"


def journals_of(path: Path) -> list[Path]:
    """Return the files that SQLite keeps beside a file while it is open: its journal, and the index of that."""
    return [path.with_name(path.name + suffix) for suffix in _SUFFIXES]


def identity(path: Path) -> Identity | None:
    """Return a file's device and inode; None if there is none of that name."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


@contextmanager
def folder_held(folder: Path) -> Iterator[None]:
    """Keep other processes that open or leave a memory of a folder waiting; where a disk cannot do that, nobody waits.

    It ends with the process that holds it.
    """
    descriptor = None
    with suppress(OSError):
        if fcntl is not None:
            descriptor = os.open(folder, os.O_RDONLY)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def note_owner(path: Path) -> None:
    """Note that the journal beside an open file is its own; a full disk leaves that unnoted."""
    journal = journals_of(path)[0]
    note = _note(path, journal)
    with suppress(OSError):
        if identity(journal) is not None and _owner(path) != note:
            written = path.with_name(f"{path.name}{_OWNER_SUFFIX}.new")
            written.unlink(missing_ok=True)
            with os.fdopen(
                os.open(written, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="ascii"
            ) as file:
                file.write(note)
            written.replace(_owner_file(path))


def forget_owner(path: Path) -> None:
    """Remove the note once there is no journal."""
    with suppress(OSError):
        if identity(journals_of(path)[0]) is None:
            _owner_file(path).unlink(missing_ok=True)


def set_aside_foreign(path: Path) -> None:
    """Move a journal away that belongs to another file than the one which it stands beside.

    It is foreign if it is the very journal that the note tells of, and the file is not. Where both are others, somebody
    has put a file with its journal there, as who copies a folder does.

    Raises:
        OSError: It cannot be moved.
    """
    journal, index = journals_of(path)
    file_there, journal_there = identity(path), identity(journal)
    if file_there is None or journal_there is None or not journal.stat().st_size:
        return
    owner = _owner(path).split()
    if owner[2:] != _words(journal_there) or owner[:2] == _words(file_there):
        return
    kept = path.with_name(f"{kept_name(f'{datetime.now(UTC):%Y%m%dT%H%M%S%f}Z')}-wal")
    index.unlink(missing_ok=True)
    journal.rename(kept)
    _owner_file(path).unlink(missing_ok=True)
    logger.warning("%s was replaced while it was open; the journal of the one before is kept as %s", path, kept.name)


def _owner_file(path: Path) -> Path:
    return path.with_name(path.name + _OWNER_SUFFIX)


def _owner(path: Path) -> str:
    try:
        return _owner_file(path).read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""


def _note(path: Path, journal: Path) -> str:
    return " ".join(_words(identity(path)) + _words(identity(journal)))


def _words(found: Identity | None) -> list[str]:
    return [str(number) for number in found or (0, 0)]
