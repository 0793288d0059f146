"""Mem0's memories, as its client returns and exports them: a list, or an object with the list under ``results``.

Each memory is a fact. Each relation of its graph, if there is one, is a fact of three words.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from memoryos_mcp.model.knowledge import About
from memoryos_mcp.transfer.found import Found, FoundFact, Skipped, Tell
from memoryos_mcp.transfer.importers.forms import JSON_FILES, outlines
from memoryos_mcp.transfer.importers.keys import digest, key, name_of
from memoryos_mcp.transfer.importers.turns import moment
from memoryos_mcp.transfer.json_entries import Entry, entries
from memoryos_mcp.transfer.streams import streams

NAME = "mem0"

_SECTIONS = frozenset({"", "results", "memories"})
_RELATIONS = "relations"


def recognises(path: Path) -> bool:
    """Return whether a file contains a list of memories."""
    return path.is_file() and any(
        "memory" in found.inner and (not found.top or found.top & _SECTIONS) for found in outlines(path)
    )


def read(path: Path, tell: Tell) -> Iterator[Found]:
    """Yield the facts of the first user in the file; those of other users are skipped.

    Raises:
        ImportFormatError: The file cannot be read on.
    """
    user: str | None = None
    for stream in streams(path, JSON_FILES, tell):
        for entry in entries(stream, name=stream.name):
            where = f"{'relation' if entry.section == _RELATIONS else 'memory'} {entry.number}"
            if entry.section not in _SECTIONS and entry.section != _RELATIONS:
                continue
            if entry.problem or not isinstance(entry.value, Mapping):
                yield Skipped(entry.problem or "no memory", where)
                continue
            whose = name_of(entry.value.get("user_id"))
            user = user or whose
            if whose and whose != user:
                yield Skipped("a memory of another user", where)
            else:
                yield _relation(entry, where) if entry.section == _RELATIONS else _memory(entry, where)


def _memory(entry: Entry, where: str) -> FoundFact | Skipped:
    text = entry.value.get("memory")
    if not isinstance(text, str) or not text.strip():
        return Skipped("no memory", where)
    is_assistants = bool(entry.value.get("agent_id")) and not entry.value.get("user_id")
    return FoundFact(
        about=About.ASSISTANT if is_assistants else About.USER,
        text=text.strip(),
        at=moment(entry.value.get("updated_at")) or moment(entry.value.get("created_at")),
        key=key(NAME, name_of(entry.value.get("id")) or digest(text)),
    )


def _relation(entry: Entry, where: str) -> FoundFact | Skipped:
    value = entry.value
    parts = [value.get("source"), value.get("relationship"), value.get("target", value.get("destination"))]
    words = [part.replace("_", " ").strip() for part in parts if isinstance(part, str)]
    if len(words) < len(parts) or not all(words):
        return Skipped("no relation", where)
    return FoundFact(about=About.USER, text=" ".join(words), at=None, key=key(NAME, "relation", digest(*words)))
