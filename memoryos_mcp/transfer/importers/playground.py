"""The file that MemoryOS' playground imports: ``{"conversations": [{user_input, agent_response, timestamp?}]}``."""

from collections.abc import Iterator
from pathlib import Path

from memoryos_mcp.transfer.found import Found, Skipped, Tell
from memoryos_mcp.transfer.importers.forms import JSON_FILES, outlines
from memoryos_mcp.transfer.importers.reference import Gathering
from memoryos_mcp.transfer.json_entries import entries
from memoryos_mcp.transfer.streams import streams

NAME = "playground"

_SECTION = "conversations"


def recognises(path: Path) -> bool:
    """Return whether a file contains conversations with a user's input."""
    return path.is_file() and any(_SECTION in found.top and "user_input" in found.inner for found in outlines(path))


def read(path: Path, tell: Tell) -> Iterator[Found]:
    """Yield the pages in order of time.

    Raises:
        ImportFormatError: The file cannot be read on.
    """
    gathering = Gathering()
    for stream in streams(path, JSON_FILES, tell):
        for entry in entries(stream, name=stream.name):
            where = f"conversation {entry.number}"
            if entry.section != _SECTION:
                continue
            if entry.problem:
                yield Skipped(entry.problem, where)
            else:
                yield from gathering.page(entry.value, where)
    yield from gathering.found()
