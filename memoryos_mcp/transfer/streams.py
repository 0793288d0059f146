"""Opens a plain file, the files of a folder, or the members of a ZIP archive as streams.

An archive is never unpacked to disk, so the names of its members never reach the file system. A member with an
implausible compression ratio is refused before it is read.
"""

import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path, PurePosixPath
from typing import IO, NoReturn

from memoryos_mcp.errors import ImportFormatError
from memoryos_mcp.transfer.interface import Progress

# Dialogue as JSON compresses about tenfold. A ratio of 100 is implausible.
MAX_RATIO = 100
SMALL_BYTES = 64 << 20
_ZIP_BEGINS = b"PK\x03\x04"
_READABLE = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_FOREIGN = (OSError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError)


class Stream:
    """A stream of bytes that reports its progress.

    Args:
        name: The name of the file or archive member, without folders.
        stream: The stream from which the bytes are read.
        file: The file on disk: the same object as ``stream``, or the archive that contains the member.
        before: Total size in bytes of the files that were read before ``file``.
        progress: Receives the number of bytes read so far from all files.
    """

    def __init__(self, name: str, stream: IO[bytes], *, file: IO[bytes], before: int, progress: Progress) -> None:
        self.name = name
        self._stream = stream
        self._file = file
        self._before = before
        self._progress = progress

    def read(self, size: int, /) -> bytes:
        """Return at most ``size`` of the next bytes, or ``b""`` at the end.

        Raises:
            ImportFormatError: The bytes could not be read.
        """
        return self._got(lambda: self._stream.read(size))

    def lines(self, max_bytes: int) -> Iterator[tuple[int, bytes | None]]:
        """Yield the number and the bytes of each line. The first line has the number 1.

        For a line of ``max_bytes`` or more, None is yielded in place of the bytes. Such a line is still read to its
        end, which may take long. To look only at the beginning of a file, use the method `read` instead.

        Raises:
            ImportFormatError: The lines could not be read.
        """
        for number in count(1):
            line = self._got(lambda: self._stream.readline(max_bytes))
            if not line:
                return
            is_whole = len(line) < max_bytes
            while len(line) == max_bytes and not line.endswith(b"\n"):
                line = self._got(lambda: self._stream.readline(max_bytes))
            yield number, line if is_whole else None

    def _got(self, read: Callable[[], bytes]) -> bytes:
        try:
            data = read()
            self._progress(self._before + self._file.tell())
        except _FOREIGN as error:
            _refuse(self.name, error)
        return data


def streams(path: Path, wanted: re.Pattern[str], progress: Progress) -> Iterator[Stream]:
    """Yield a stream for a file, or for each file in a folder or archive.

    In a folder or archive, only the files whose names match ``wanted`` are read, sorted by name. Each stream must be
    read before the next one is requested.

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
    """Open a file for reading, and close it at the end of the ``with`` block.

    Raises:
        ImportFormatError: The file cannot be opened.
    """
    try:
        stream = file.open("rb")
    except OSError as error:
        _refuse(file.name, error)
    with stream:
        yield stream


def listing(folder: Path) -> list[Path]:
    """Return the paths of the files and folders in a folder, sorted by name.

    Raises:
        ImportFormatError: The folder cannot be read.
    """
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
        message = f"{name} is compressed with an unsupported method; unpack the archive and import the file itself."
        raise ImportFormatError(message)
    if info.file_size > SMALL_BYTES and info.file_size > MAX_RATIO * info.compress_size:
        message = (
            f"{name} would unpack to more than {MAX_RATIO} times its size, like a file made to fill disks; if you "
            "trust it, unpack the archive and import the file itself."
        )
        raise ImportFormatError(message)


def _refuse(name: str, error: Exception) -> NoReturn:
    reason = error.strerror if isinstance(error, OSError) else None
    problem = reason or "the archive is damaged, cut off or protected by a password"
    message = f"{name} cannot be read: {problem}. Check the file; if it is in an archive, unpack the archive first."
    raise ImportFormatError(message) from error
