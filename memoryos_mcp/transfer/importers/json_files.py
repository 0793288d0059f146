"""Reads the JSON files of other systems. Importers recognise the format by the keys at the beginning of a file."""

import re
from collections.abc import Iterator
from pathlib import Path

from memoryos_mcp.errors import ImportFormatError
from memoryos_mcp.transfer.interface import Progress
from memoryos_mcp.transfer.json_entries import ENTRY_MAX_BYTES, Entry, Outline, entries, outline
from memoryos_mcp.transfer.streams import streams

JSON_FILES = re.compile(r".*\.jsonl?")


def outlines(path: Path, wanted: re.Pattern[str] = JSON_FILES) -> list[Outline]:
    """Return the outline of a JSON file, or of each JSON file in a folder or archive.

    An outline consists of the JSON keys at the beginning of the file. From a folder or archive, only files whose name
    matches ``wanted`` are read. If any file cannot be read, the list is empty.
    """
    try:
        return [outline(stream) for stream in streams(path, wanted, lambda _: None)]
    except ImportFormatError:
        return []


def file_entries(path: Path, progress: Progress, *, max_bytes: int = ENTRY_MAX_BYTES) -> Iterator[Entry]:
    """Yield the top-level entries of a JSON file, or of each JSON file in a folder or archive.

    Raises:
        ImportFormatError: A file cannot be read to its end.
    """
    for stream in streams(path, JSON_FILES, progress):
        yield from entries(stream, name=stream.name, max_bytes=max_bytes)
