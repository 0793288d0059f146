"""Recognition of a file's format from its first bytes."""

import re
from pathlib import Path

from memoryos_mcp.errors import ImportFormatError
from memoryos_mcp.transfer.json_entries import Outline, outline
from memoryos_mcp.transfer.streams import streams

JSON_FILES = re.compile(r".*\.jsonl?")


def outlines(path: Path, wanted: re.Pattern[str] = JSON_FILES) -> list[Outline]:
    """Return the outline of a file, or of each wanted file in a folder or archive; empty if it cannot be read."""
    try:
        return [outline(stream) for stream in streams(path, wanted, lambda _: None)]
    except ImportFormatError:
        return []
