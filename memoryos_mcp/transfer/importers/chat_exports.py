"""What exports of chat services have in common: their files, and reasons to leave something out."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from memoryos_mcp.transfer.found import Skipped, Tell
from memoryos_mcp.transfer.importers.forms import outlines
from memoryos_mcp.transfer.json_entries import entries
from memoryos_mcp.transfer.streams import streams

# Large exports come in several files, which are numbered.
FILES = re.compile(r"conversations(-\d+)?\.json")

SYSTEM = "a system message"
TOOL = "a tool's message"
NOT_SAID = "settings or reasoning, which nobody said"
ATTACHED = "an image, a sound or a file"
DAMAGED = "a damaged message"


def hold(path: Path, key: str) -> bool:
    """Whether a file, a folder or an archive holds a list of conversations with a key."""
    return any(key in found.inner for found in outlines(path, FILES))


def conversations(path: Path, key: str, kind: type, tell: Tell) -> Iterator[tuple[str, Mapping[str, Any]] | Skipped]:
    """Yield where each conversation stands and what it holds, one after another.

    Args:
        path: A file, a folder or an archive.
        key: What every conversation has.
        kind: What stands under that key.
        tell: Takes how many bytes were read.

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
