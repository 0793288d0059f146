"""Code shared by the importers of chat services."""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from memoryos_mcp.transfer.importers.json_files import outlines
from memoryos_mcp.transfer.interface import Item, Progress, Skipped
from memoryos_mcp.transfer.json_entries import entries
from memoryos_mcp.transfer.streams import streams

# Large exports consist of several numbered files.
FILES = re.compile(r"conversations(-\d+)?\.json")

SYSTEM = "a system message"
TOOL = "a tool's message"
NOT_SAID = "settings or reasoning, which nobody said"
ATTACHED = "an image, a sound or a file"
DAMAGED = "a damaged message"


def has_conversations(path: Path, key: str) -> bool:
    """Return whether a file, folder or archive contains conversations: a list of objects with the key ``key``.

    Only the beginning of each file is read.
    """
    return any(key in found.inner for found in outlines(path, FILES))


def read_conversations(
    path: Path, key: str, kind: type, convert: Callable[[str, Mapping[str, Any]], Iterator[Item]], progress: Progress
) -> Iterator[Item]:
    """Yield the turns of each conversation in a file, folder or archive, and a note about each skipped entry.

    A JSON object is a conversation if its value under ``key`` has the type ``kind``. All other entries are skipped.

    Args:
        path: The file, folder or archive.
        key: The key that every conversation has.
        kind: The type that the value under ``key`` has in every conversation.
        convert: Returns the items of a conversation. Receives the conversation's location and JSON object.
        progress: Receives the number of bytes read so far.
    """
    for stream in streams(path, FILES, progress):
        for entry in entries(stream, name=stream.name):
            where = f"{stream.name}, conversation {entry.number}"
            if entry.problem:
                yield Skipped(entry.problem, where)
            elif isinstance(entry.value, Mapping) and isinstance(entry.value.get(key), kind):
                yield from convert(where, entry.value)
            else:
                yield Skipped("not a conversation", where)
