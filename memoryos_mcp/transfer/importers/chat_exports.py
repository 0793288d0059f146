"""Shared parts of the importers of chat services: file names, and reasons for skipping."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from memoryos_mcp.transfer.found import Skipped, Tell
from memoryos_mcp.transfer.importers.forms import outlines
from memoryos_mcp.transfer.json_entries import entries
from memoryos_mcp.transfer.streams import streams

# Large exports come in several numbered files.
FILES = re.compile(r"conversations(-\d+)?\.json")

SYSTEM = "a system message"
TOOL = "a tool's message"
NOT_SAID = "settings or reasoning, which nobody said"
ATTACHED = "an image, a sound or a file"
DAMAGED = "a damaged message"


def hold(path: Path, key: str) -> bool:
    """Return whether a file, folder or archive contains a list of conversations with a given key."""
    return any(key in found.inner for found in outlines(path, FILES))


def conversations(path: Path, key: str, kind: type, tell: Tell) -> Iterator[tuple[str, Mapping[str, Any]] | Skipped]:
    """Yield the location and content of each conversation, one after another.

    Args:
        path: A file, folder or archive.
        key: A key that every conversation has.
        kind: Type of that key's value.
        tell: Receives the number of bytes read so far.

    Raises:
        ImportFormatError: A file cannot be read on.
    """
    for stream in streams(path, FILES, tell):
        for entry in entries(stream, name=stream.name):
            where = f"{stream.name}, conversation {entry.number}"
            if entry.problem:
                yield Skipped(entry.problem, where)
            elif isinstance(entry.value, Mapping) and isinstance(entry.value.get(key), kind):
                yield where, entry.value
            else:
                yield Skipped("no conversation", where)
