"""Reads the lines of a file that this program exported. Line length and decompressed size are limited."""

import gzip
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from memoryos_mcp.errors import ImportFormatError
from memoryos_mcp.transfer.interface import Progress

# Longer than any line of an export: a page has at most ten million characters, each at most six bytes as JSON.
LINE_MAX_BYTES = 64 * 1024 * 1024
# Text compresses about tenfold. A file with a much higher ratio was made to fill disks.
UNPACKED_PER_PACKED = 100
UNPACKED_FREELY_BYTES = 64 * 1024 * 1024
_GZIP_MAGIC = b"\x1f\x8b"


@contextmanager
def opened(path: Path) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Yield two streams: the decompressed data of a file, and the file on disk.

    If the file is not compressed, both are the same stream.

    Raises:
        ImportFormatError: The file is cut off, or cannot be read or decompressed.
    """
    try:
        with path.open("rb") as raw:
            is_packed = raw.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
            raw.seek(0)
            if not is_packed:
                yield raw, raw
                return
            with gzip.GzipFile(fileobj=raw, mode="rb") as unpacked:
                yield cast("BinaryIO", unpacked), raw
    except EOFError as error:
        msg = f"{path} is cut off: its compressed data is incomplete. Get the complete file"
        raise ImportFormatError(msg) from error
    except (gzip.BadGzipFile, zlib.error) as error:
        msg = f"{path} is damaged: it cannot be decompressed. Get the file again"
        raise ImportFormatError(msg) from error
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else type(error).__name__
        msg = f"{path} cannot be read ({reason}); check the path and its permissions"
        raise ImportFormatError(msg) from error


def lines(path: Path, progress: Progress) -> Iterator[bytes]:
    """Yield the lines of a file with their line ends. The last line may have no line end.

    Raises:
        ImportFormatError: The file cannot be read, is cut off, or exceeds a limit.
    """
    with opened(path) as (file, raw):
        number = 0
        unpacked = 0
        while line := file.readline(LINE_MAX_BYTES + 1):
            number += 1
            if len(line) > LINE_MAX_BYTES:
                msg = (
                    f"{path}, line {number:,} is longer than {LINE_MAX_BYTES:,} bytes, so the file is not an export of "
                    "memoryos-mcp. Choose another file"
                )
                raise ImportFormatError(msg)
            unpacked += len(line)
            if unpacked > UNPACKED_FREELY_BYTES + UNPACKED_PER_PACKED * raw.tell():
                msg = (
                    f"{path} would unpack to more than {UNPACKED_PER_PACKED} times its size, like a file made to fill "
                    "disks. If you trust it, unpack it yourself and import the unpacked file"
                )
                raise ImportFormatError(msg)
            progress(raw.tell())
            yield line
