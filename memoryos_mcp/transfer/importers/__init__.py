"""The importers for the formats of other systems, in the order in which they are tried on a file."""

from pathlib import Path

from memoryos_mcp.transfer.importers import (
    chatgpt,
    claude,
    locomo,
    mem0,
    memoryos,
    memoryos_chroma,
    playground,
    server_memory,
)
from memoryos_mcp.transfer.interface import Reader

READERS: tuple[Reader, ...] = (memoryos, memoryos_chroma, playground, chatgpt, claude, mem0, server_memory, locomo)


def recognise(path: Path) -> Reader | None:
    """Return the first importer that recognises a file or folder, or None if no importer does."""
    return next((reader for reader in READERS if reader.recognises(path)), None)
