"""Input files of an import as streams: plain, in a folder, or inside a ZIP archive.

An archive is never unpacked to disk, so the names of its members never reach the file system. A member with an
implausible compression ratio is refused before it is read.
"""

import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, NoReturn

from memoryos_mcp.errors import ImportFormatError
from memoryos_mcp.transfer.found import Tell

# Dialogue as JSON compresses about tenfold; a hundredfold is not plausible.
MAX_RATIO = 100
SMALL_BYTES = 64 << 20
_ZIP_BEGINS = b"PK\x03\x04"
_READABLE = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_FOREIGN = (OSError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError)


class Stream:
    """A stream of bytes that reports its progress.

    Args:
        name: The file's own name, never a path.
        stream: The source of the bytes.
        file: The file on disk that contains it.
        before: Total size of the files read before this one.
        tell: Receives the number of bytes read so far.
    """

    def __init__(self, name: str, stream: IO[bytes], *, file: IO[bytes], before: int, tell: Tell) -> None:
        self.name = name
        self._stream = stream
        self._file = file
        self._before = before
        self._tell = tell

    def read(self, size: int, /) -> bytes:
        """Return the next bytes.

        Raises:
            ImportFormatError: They could not be read.
        """
        return self._got(lambda: self._stream.read(size))

    def line(self, size: int) -> bytes:
        """Return the bytes up to the next line end, or the next ``size`` of them.

        Raises:
            ImportFormatError: They could not be read.
        """
        return self._got(lambda: self._stream.readline(size))

    def _got(self, read: Callable[[], bytes]) -> bytes:
        try:
            data = read()
            self._tell(self._before + self._file.tell())
        except _FOREIGN as error:
            _refuse(self.name, error)
        return data


def streams(path: Path, wanted: re.Pattern[str], tell: Tell) -> Iterator[Stream]:
    """Yield the file itself, or the files of a folder or archive whose own name matches, in order of name.

    Read each stream before you request the next.

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
                    yield Stream(name, member, file=stream, before=before, tell=tell)
            else:
                yield Stream(file.name, stream, file=stream, before=before, tell=tell)
            before += file.stat().st_size


@contextmanager
def opened(file: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading.

    Raises:
        ImportFormatError: It cannot be opened.
    """
    try:
        stream = file.open("rb")
    except OSError as error:
        _refuse(file.name, error)
    with stream:
        yield stream


def listing(folder: Path) -> list[Path]:
    """Return the contents of a folder, in order of name.

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
        message = f"{name} is packed by an unusual method; unpack the archive and import the file itself."
        raise ImportFormatError(message)
    if info.file_size > SMALL_BYTES and info.file_size > MAX_RATIO * info.compress_size:
        message = (
            f"{name} would unpack to over {MAX_RATIO} times its size, as no export does; if you trust it, unpack the "
            "archive and import the file itself."
        )
        raise ImportFormatError(message)


def _refuse(name: str, error: Exception) -> NoReturn:
    reason = error.strerror if isinstance(error, OSError) else None
    message = f"{name} cannot be read: {reason or 'the archive is damaged, cut off or locked by a password'}."
    raise ImportFormatError(message) from error
