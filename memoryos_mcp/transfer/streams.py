"""Opens a plain file, the files of a folder, or the members of a ZIP archive as streams.

An archive is never unpacked to disk, so names from inside it never reach the file system. A member with an implausible
compression ratio is refused before it is read.
"""

import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, NoReturn

from memoryos_mcp.errors import ImportFormatError
from memoryos_mcp.transfer.interface import Progress

# Dialogue as JSON compresses about tenfold. A hundredfold is not plausible.
MAX_RATIO = 100
SMALL_BYTES = 64 << 20
_ZIP_BEGINS = b"PK\x03\x04"
_READABLE = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_FOREIGN = (OSError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError)


class Stream:
    """A stream of bytes that reports its progress.

    Args:
        name: The name of the file or member, without folders.
        stream: The source of the bytes.
        file: The file on disk, which may be an archive that contains the source.
        before: Size in bytes of all files that were read before this one.
        progress: Receives the number of bytes read so far.
    """

    def __init__(self, name: str, stream: IO[bytes], *, file: IO[bytes], before: int, progress: Progress) -> None:
        self.name = name
        self._stream = stream
        self._file = file
        self._before = before
        self._progress = progress

    def read(self, size: int, /) -> bytes:
        """Return the next bytes. Raises ImportFormatError if they cannot be read."""
        return self._got(lambda: self._stream.read(size))

    def line(self, size: int) -> bytes:
        """Return the next line, or its first ``size`` bytes. Raises ImportFormatError if they cannot be read."""
        return self._got(lambda: self._stream.readline(size))

    def _got(self, read: Callable[[], bytes]) -> bytes:
        try:
            data = read()
            self._progress(self._before + self._file.tell())
        except _FOREIGN as error:
            _refuse(self.name, error)
        return data


def streams(path: Path, wanted: re.Pattern[str], progress: Progress) -> Iterator[Stream]:
    """Yield a file, or the files in a folder or archive whose name matches ``wanted``, in order of name.

    Each stream has to be read before the next one is requested.

    Raises:
        ImportFormatError: A file cannot be opened, or an archive is not safe to read.
    """
    before = 0
    for file in _files(path, wanted):
        with opened(file) as stream:
            is_archive = stream.read(len(_ZIP_BEGINS)) == _ZIP_BEGINS
            stream.seek(0)
            if is_archive:
                for name, member in _members(stream, wanted):
                    yield Stream(name, member, file=stream, before=before, progress=progress)
            else:
                yield Stream(file.name, stream, file=stream, before=before, progress=progress)
            before += file.stat().st_size


@contextmanager
def opened(file: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading. Raises ImportFormatError if it cannot be opened."""
    try:
        stream = file.open("rb")
    except OSError as error:
        _refuse(file.name, error)
    with stream:
        yield stream


def listing(folder: Path) -> list[Path]:
    """Return the contents of a folder in order of name. Raises ImportFormatError if it cannot be read."""
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        _refuse(folder.name, error)


def _files(path: Path, wanted: re.Pattern[str]) -> list[Path]:
    if not path.is_dir():
        return [path]
    return [file for file in listing(path) if wanted.fullmatch(file.name) and file.is_file()]


def _members(file: IO[bytes], wanted: re.Pattern[str]) -> Iterator[tuple[str, IO[bytes]]]:
    try:
        archive = zipfile.ZipFile(file)
    except _FOREIGN as error:
        _refuse("archive", error)
    with archive:
        for info in sorted(archive.infolist(), key=lambda info: info.filename):
            name = PurePosixPath(info.filename).name
            if not wanted.fullmatch(name) or info.is_dir():
                continue
            _check(name, info)
            try:
                member = archive.open(info)
            except _FOREIGN as error:
                _refuse(name, error)
            with member:
                yield name, member


def _check(name: str, info: zipfile.ZipInfo) -> None:
    if info.compress_type not in _READABLE:
        message = f"{name} is compressed by an unusual method; unpack the archive and import the file itself."
        raise ImportFormatError(message)
    if info.file_size > SMALL_BYTES and info.file_size > MAX_RATIO * info.compress_size:
        message = (
            f"{name} would unpack to over {MAX_RATIO} times its size, like a file that is made to fill disks; if you "
            "trust it, unpack the archive and import the file itself."
        )
        raise ImportFormatError(message)


def _refuse(name: str, error: Exception) -> NoReturn:
    reason = error.strerror if isinstance(error, OSError) else None
    message = f"{name} cannot be read: {reason or 'the archive is damaged, cut off or locked by a password'}."
    raise ImportFormatError(message) from error
