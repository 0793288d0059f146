"""Importer for MemoryOS playground files: ``{"conversations": [{user_input, agent_response, timestamp?}]}``."""

from collections.abc import Iterator
from pathlib import Path

from memoryos_mcp.transfer.importers.json_files import file_entries, outlines
from memoryos_mcp.transfer.importers.reference import Gathering
from memoryos_mcp.transfer.interface import Item, Progress, Skipped

NAME = "playground"

_SECTION = "conversations"


def recognises(path: Path) -> bool:
    """Return whether a file contains a list of conversations with the key ``user_input``."""
    return path.is_file() and any(_SECTION in found.top and "user_input" in found.inner for found in outlines(path))


def read(path: Path, progress: Progress) -> Iterator[Item]:
    """Yield a note for each conversation or text that is skipped, then the pages, ordered by time."""
    gathering = Gathering()
    for entry in file_entries(path, progress):
        where = f"conversation {entry.number}"
        if entry.section != _SECTION:
            continue
        if entry.problem:
            yield Skipped(entry.problem, where)
        else:
            yield from gathering.page(entry.value, where)
    yield from gathering.found()
