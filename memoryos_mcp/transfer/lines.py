"""Lines of an untrusted file; at most one line of limited length is in memory at once."""

import gzip
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from memoryos_mcp.errors import ImportFormatError
from memoryos_mcp.transfer.found import Tell

# Longer than any line of an export: a page has at most ten million characters, each at most six bytes as JSON.
LINE_MAX_BYTES = 64 * 1024 * 1024
# Text compresses about tenfold; a much higher ratio means a file made to fill disks.
UNPACKED_PER_PACKED = 100
UNPACKED_FREELY_BYTES = 64 * 1024 * 1024
_GZIP_MAGIC = b"\x1f\x8b"


@contextmanager
def opened(path: Path) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Yield a file, decompressed if it is gzip, and the raw file on disk.

    Raises:
        ImportFormatError: It cannot be read or decompressed, or is cut off.
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
        msg = f"{path} is cut off: its packing has no end; nothing more was read. Get the whole file"
        raise ImportFormatError(msg) from error
    except (gzip.BadGzipFile, zlib.error) as error:
        msg = f"{path} is damaged: it cannot be unpacked. Get the file again"
        raise ImportFormatError(msg) from error
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else type(error).__name__
        msg = f"{path} cannot be read: {reason}"
        raise ImportFormatError(msg) from error


def lines(path: Path, tell: Tell) -> Iterator[bytes]:
    """Yield the lines of a file with their line ends; the last one may lack it.

    Raises:
        ImportFormatError: The file cannot be read, is cut off, or exceeds a limit.
    """
    with opened(path) as (file, raw):
        number = 0
        unpacked = 0
        while line := file.readline(LINE_MAX_BYTES + 1):
            number += 1
            if len(line) > LINE_MAX_BYTES:
                msg = f"{path}, line {number:,} is over {LINE_MAX_BYTES:,} bytes: this is no file of ours, or damaged"
                raise ImportFormatError(msg)
            unpacked += len(line)
            if unpacked > UNPACKED_FREELY_BYTES + UNPACKED_PER_PACKED * raw.tell():
                msg = (
                    f"{path} unpacks to over {UNPACKED_PER_PACKED} times its size, as files do that are made to fill "
                    "disks. If you trust it, unpack it yourself and import what comes out"
                )
                raise ImportFormatError(msg)
            tell(raw.tell())
            yield line
