"""Importer for the knowledge graph of the official MCP memory server. Each line is a JSON entity or relation."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from memoryos_mcp.model.knowledge import About
from memoryos_mcp.transfer.importers.json_files import JSON_FILES, outlines
from memoryos_mcp.transfer.importers.keys import digest, key
from memoryos_mcp.transfer.interface import ImportedFact, Item, Progress, Skipped
from memoryos_mcp.transfer.json_entries import ENTRY_MAX_BYTES, TOO_LONG, parse
from memoryos_mcp.transfer.streams import streams

NAME = "server-memory"

_MARKS = ({"type", "entityType", "observations"}, {"type", "from", "to", "relationType"})


def recognises(path: Path) -> bool:
    """Return whether a file begins with an entity or a relation."""
    return path.is_file() and any(found.top >= marks for found in outlines(path) for marks in _MARKS)


def read(path: Path, progress: Progress) -> Iterator[Item]:
    """Yield a fact for each observation and each relation in the knowledge graph."""
    for stream in streams(path, JSON_FILES, progress):
        for number, line in stream.lines(ENTRY_MAX_BYTES):
            where = f"line {number}"
            if line is not None and not line.strip():
                continue
            value, problem = (None, TOO_LONG) if line is None else parse(line)
            if problem:
                yield Skipped(problem, where)
            elif isinstance(value, Mapping) and value.get("type") == "entity":
                yield from _entity(value, where)
            elif isinstance(value, Mapping) and value.get("type") == "relation":
                yield _relation(value, where)
            else:
                yield Skipped("neither an entity nor a relation", where)


def _entity(value: Mapping[str, Any], where: str) -> Iterator[Item]:
    name, observations = value.get("name"), value.get("observations")
    if not isinstance(name, str) or not name.strip() or not isinstance(observations, list):
        yield Skipped("a damaged entity", where)
        return
    if not observations:
        yield Skipped("an entity without observations", where)
    for observation in observations:
        if isinstance(observation, str) and observation.strip():
            yield _fact(f"{name.strip()}: {observation.strip()}")
        else:
            yield Skipped("a damaged observation", where)


def _relation(value: Mapping[str, Any], where: str) -> Item:
    parts = [value.get(name) for name in ("from", "relationType", "to")]
    words = [part.strip() for part in parts if isinstance(part, str) and part.strip()]
    if len(words) < len(parts):
        return Skipped("a damaged relation", where)
    return _fact(" ".join([words[0], words[1].replace("_", " "), words[2]]))


def _fact(text: str) -> ImportedFact:
    return ImportedFact(about=About.USER, text=text, at=None, key=key(NAME, digest(text)))
