"""The readers of other systems' memories, by the order in which they are asked whether a file is theirs."""

from pathlib import Path

from memoryos_mcp.transfer.found import Reader
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

READERS: tuple[Reader, ...] = (
    memoryos,
    memoryos_chroma,
    playground,
    chatgpt,
    claude,
    mem0,
    server_memory,
    locomo,
)


def recognise(path: Path) -> Reader | None:
    """Return the first reader whose format a file or folder looks like, None if none knows it."""
    return next((reader for reader in READERS if reader.recognises(path)), None)
