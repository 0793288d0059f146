"""Importer for memories that the mem0 client has returned or exported: a list, or an object with such a list.

Each memory becomes a fact, and so does each relation in mem0's graph.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from memoryos_mcp.model.knowledge import About
from memoryos_mcp.transfer.importers.json_files import file_entries, outlines
from memoryos_mcp.transfer.importers.keys import digest, key, name_of
from memoryos_mcp.transfer.importers.turns import from_iso
from memoryos_mcp.transfer.interface import ImportedFact, Item, Progress, Skipped
from memoryos_mcp.transfer.json_entries import Entry

NAME = "mem0"

_SECTIONS = frozenset({"", "results", "memories"})
_RELATIONS = "relations"


def recognises(path: Path) -> bool:
    """Return whether a file contains a list of mem0 memories."""
    return path.is_file() and any(
        "memory" in found.inner and (not found.top or found.top & _SECTIONS) for found in outlines(path)
    )


def read(path: Path, progress: Progress) -> Iterator[Item]:
    """Yield the facts of the first user in the file. The facts of other users are skipped."""
    user: str | None = None
    for entry in file_entries(path, progress):
        where = f"{'relation' if entry.section == _RELATIONS else 'memory'} {entry.number}"
        if entry.section not in _SECTIONS and entry.section != _RELATIONS:
            continue
        if entry.problem or not isinstance(entry.value, Mapping):
            yield Skipped(entry.problem or "not a memory", where)
            continue
        entry_user = name_of(entry.value.get("user_id"))
        user = user or entry_user
        if entry_user and entry_user != user:
            yield Skipped("a memory of another user", where)
        else:
            yield _relation(entry, where) if entry.section == _RELATIONS else _memory(entry, where)


def _memory(entry: Entry, where: str) -> ImportedFact | Skipped:
    text = entry.value.get("memory")
    if not isinstance(text, str) or not text.strip():
        return Skipped("not a memory", where)
    is_assistants = bool(entry.value.get("agent_id")) and not entry.value.get("user_id")
    return ImportedFact(
        about=About.ASSISTANT if is_assistants else About.USER,
        text=text.strip(),
        at=from_iso(entry.value.get("updated_at")) or from_iso(entry.value.get("created_at")),
        key=key(NAME, name_of(entry.value.get("id")) or digest(text)),
    )


def _relation(entry: Entry, where: str) -> ImportedFact | Skipped:
    value = entry.value
    parts = [value.get("source"), value.get("relationship"), value.get("target", value.get("destination"))]
    words = [part.replace("_", " ").strip() for part in parts if isinstance(part, str)]
    if len(words) < len(parts) or not all(words):
        return Skipped("not a relation", where)
    return ImportedFact(about=About.USER, text=" ".join(words), at=None, key=key(NAME, "relation", digest(*words)))
