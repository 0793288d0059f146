"""The importers for the formats of other systems, in the order in which they are tried on a file."""

from collections.abc import Callable, Mapping
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


# Formats whose files contain conversations between people, with the function that returns their names.
_SPEAKERS: Mapping[str, Callable[[Path], tuple[str, ...]]] = {locomo.NAME: locomo.speakers}


def speakers(reader: Reader | None, path: Path) -> tuple[str, ...]:
    """Return the names of the speakers in a file of conversations between people.

    The result is empty for all other formats, because they contain conversations with an assistant.
    """
    return _SPEAKERS[reader.NAME](path) if reader is not None and reader.NAME in _SPEAKERS else ()


def recognise(path: Path) -> Reader | None:
    """Return the first importer that recognises a file or folder, or None if no importer does."""
    return next((reader for reader in READERS if reader.recognises(path)), None)
