"""Importer of the official memory server's knowledge graph: each line is a JSON object, an entity or a relation."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from memoryos_mcp.model.knowledge import About
from memoryos_mcp.transfer.importers.json_files import JSON_FILES, outlines
from memoryos_mcp.transfer.importers.keys import digest, key
from memoryos_mcp.transfer.interface import ImportedFact, Item, Progress, Skipped
from memoryos_mcp.transfer.json_entries import ENTRY_MAX_BYTES, TOO_LONG, parse
from memoryos_mcp.transfer.streams import Stream, streams

NAME = "server-memory"

_MARKS = ({"type", "entityType", "observations"}, {"type", "from", "to", "relationType"})


def recognises(path: Path) -> bool:
    """Return whether a file begins with an entity or a relation."""
    return path.is_file() and any(found.top >= marks for found in outlines(path) for marks in _MARKS)


def read(path: Path, progress: Progress) -> Iterator[Item]:
    """Yield a fact for each observation and each relation."""
    for stream in streams(path, JSON_FILES, progress):
        for number, text, problem in _lines(stream):
            where = f"line {number}"
            value, problem = (None, problem) if problem else parse(text)
            if problem:
                yield Skipped(problem, where)
            elif isinstance(value, Mapping) and value.get("type") == "entity":
                yield from _entity(value, where)
            elif isinstance(value, Mapping) and value.get("type") == "relation":
                yield _relation(value, where)
            else:
                yield Skipped("neither an entity nor a relation", where)


def _lines(stream: Stream) -> Iterator[tuple[int, bytes, str | None]]:
    """Yield number, bytes and problem of each line that is not blank. A line that is too long has no bytes."""
    number = 0
    while line := stream.line(ENTRY_MAX_BYTES):
        number += 1
        is_whole = len(line) < ENTRY_MAX_BYTES
        while len(line) == ENTRY_MAX_BYTES and not line.endswith(b"\n"):
            line = stream.line(ENTRY_MAX_BYTES)
        if not is_whole:
            yield number, b"", TOO_LONG
        elif line.strip():
            yield number, line, None


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
