"""Importer for MemoryOS memories in Chroma: ``chroma.sqlite3``, and ``metadata_<user>_<assistant>.json`` beside it.

Neither file is complete. Only the JSON file contains short-term pages and chains. The first page of a topic may be in
the database only. The database is read as a plain SQLite file, without Chroma.
"""

import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from memoryos_mcp.errors import ImportFormatError
from memoryos_mcp.model.knowledge import About
from memoryos_mcp.transfer.importers.reference import DAMAGED, Gathering
from memoryos_mcp.transfer.interface import Item, Progress, Skipped
from memoryos_mcp.transfer.json_entries import ENTRY_MAX_BYTES, Entry, entries
from memoryos_mcp.transfer.streams import listing, streams

NAME = "memoryos-chroma"

_DATABASE = "chroma.sqlite3"
_FOLDER = "chroma_storage"
_METADATA = re.compile(r"metadata_.+\.json")
_PAGES, _USERS_FACTS, _ASSISTANTS_FACTS = "mid_term_memory_user_", "user_knowledge_", "assistant_knowledge_"
# Returns a row for each value of an entry. The rows of an entry are adjacent.
_ENTRIES = """
SELECT embeddings.embedding_id, embedding_metadata.key, embedding_metadata.string_value
FROM collections
JOIN segments ON segments.collection = collections.id
JOIN embeddings ON embeddings.segment_id = segments.id
JOIN embedding_metadata ON embedding_metadata.id = embeddings.id
WHERE collections.name = ?
ORDER BY embeddings.id
"""


@dataclass(frozen=True, slots=True)
class _Store:
    """The files of one user's memory.

    Attributes:
        database: The file ``chroma.sqlite3``.
        metadata: The user's JSON file, or None if it is missing.
        user: The user's id.
        assistant: The id of the assistant, or None if facts about the assistant are not read. They are not read if
            they may come from other users.
    """

    database: Path
    metadata: Path | None
    user: str
    assistant: str | None


def recognises(path: Path) -> bool:
    """Return whether a path is a folder with a Chroma database, or a metadata file beside such a database."""
    folder = path if path.is_dir() else path.parent
    is_ours = path.is_dir() or _METADATA.fullmatch(path.name) is not None
    return is_ours and any((place / _DATABASE).is_file() for place in (folder, folder / _FOLDER))


def read(path: Path, progress: Progress) -> Iterator[Item]:
    """Yield one user's pages in order, without duplicates, then the facts.

    ``path`` is the folder with the database, or a metadata file beside it. If there are several users, ``path`` must be
    the metadata file of the user whose pages are wanted.
    """
    gathering = Gathering()
    store = _store(path)
    with closing(_opened(store.database)) as database:
        # The database comes first, because its entries are in order of arrival.
        for number, values in enumerate(_entries(database, _PAGES + store.user), 1):
            if values.get("type") == "page":
                yield from gathering.page(values, f"{_DATABASE}, page {number}")
        for number, values in enumerate(_entries(database, _USERS_FACTS + store.user), 1):
            yield from gathering.fact(values, About.USER, f"{_DATABASE}, fact {number}")
        if store.assistant is not None:
            for number, values in enumerate(_entries(database, _ASSISTANTS_FACTS + store.assistant), 1):
                yield from gathering.fact(values, About.ASSISTANT, f"{_DATABASE}, fact {number} about the assistant")
    size = store.database.stat().st_size
    progress(size)
    if store.metadata:
        for stream in streams(store.metadata, _METADATA, lambda at: progress(size + at)):
            for entry in entries(stream, name=stream.name):
                yield from _take(gathering, entry)
    yield from gathering.found()


def _store(path: Path) -> _Store:
    folder = path if path.is_dir() else path.parent
    places = [place for place in (folder, folder / _FOLDER) if place.is_dir()]
    database = next((place / _DATABASE for place in places if (place / _DATABASE).is_file()), None)
    if database is None:
        message = f"{_DATABASE} is not in {folder} or its subfolder {_FOLDER}; choose the folder that contains it."
        raise ImportFormatError(message)
    beside = sorted(file for place in places for file in listing(place) if _METADATA.fullmatch(file.name))
    metadata = path if path.is_file() else next(iter(beside), None)
    if path.is_dir() and len(beside) > 1:
        message = f"The folder contains the memories of {len(beside)} users; import one user's file metadata_….json."
        raise ImportFormatError(message)
    with closing(_opened(database)) as opened:
        rows = _rows(opened, "SELECT name FROM collections WHERE substr(name, 1, ?) = ?", (len(_PAGES), _PAGES))
        users = [str(name).removeprefix(_PAGES) for (name,) in rows]
    if metadata is None:
        if len(users) != 1:
            message = (
                f"{_DATABASE} contains the memories of {len(users)} users; to import one of them, put the user's file "
                "metadata_….json beside the database."
            )
            raise ImportFormatError(message)
        return _Store(database, None, users[0], None)
    name = metadata.stem.removeprefix("metadata_")
    user = max((user for user in users if name.startswith(f"{user}_")), key=len, default=None)
    if user is None:
        message = (
            f"{_DATABASE} contains no memory of the user whose id is in the file name {metadata.name!r}; "
            "choose the database that belongs to this file."
        )
        raise ImportFormatError(message)
    return _Store(database, metadata, user, name.removeprefix(f"{user}_") if len(users) == 1 else None)


def _take(gathering: Gathering, entry: Entry) -> Iterator[Skipped]:
    is_page, is_topic = entry.section == "short_term_memory", entry.section == "mid_term_sessions"
    if not (is_page or is_topic or entry.section == "user_profiles"):
        return
    kind = "page" if is_page else "topic" if is_topic else "profile"
    where = f"metadata, {kind} {entry.number}"
    if entry.problem:
        yield Skipped(entry.problem, where)
    elif is_page:
        yield from gathering.page(entry.value, where, is_newest=True)
    elif not is_topic:
        yield from gathering.profile(entry.value, where)
    elif not isinstance(entry.value, Mapping):
        yield Skipped(DAMAGED, where)
    else:
        pages = entry.value.get("pages_backup", entry.value.get("details"))
        for number, page in enumerate(pages if isinstance(pages, list) else [], 1):
            yield from gathering.page(page, f"{where}, page {number}")


def _opened(file: Path) -> sqlite3.Connection:
    # The file is not opened as immutable, because the latest writes of a running program are in a second file.
    try:
        database = sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False)
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, ENTRY_MAX_BYTES)
    except sqlite3.Error as error:
        message = f"{_DATABASE} cannot be opened; check its permissions."
        raise ImportFormatError(message) from error
    return database


def _rows(database: sqlite3.Connection, query: str, values: tuple[object, ...]) -> Iterator[tuple[object, ...]]:
    try:
        yield from database.execute(query, values)
    except sqlite3.Error as error:
        message = (
            f"{_DATABASE} is damaged, in use, or from an unknown version of Chroma; "
            "close all programs that use it, and try again."
        )
        raise ImportFormatError(message) from error


def _entries(database: sqlite3.Connection, collection: str) -> Iterator[Mapping[str, object]]:
    """Yield the metadata of each entry in a Chroma collection, as a mapping from names to values."""
    known: object = None
    values: dict[str, object] = {}
    for entry, name, value in _rows(database, _ENTRIES, (collection,)):
        if entry != known:
            if values:
                yield values
            known, values = entry, {}
        values[str(name)] = value
    if values:
        yield values
