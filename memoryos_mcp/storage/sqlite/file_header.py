"""Checks of a file before it is used: whether this program created it, and whether its version is supported."""

import json
import re
from contextlib import closing
from functools import cache
from pathlib import Path

import apsw

from memoryos_mcp.storage.sqlite import schema
from memoryos_mcp.storage.sqlite.file_errors import damaged, newer
from memoryos_mcp.storage.sqlite.paths import beginning_mark

_MAGIC = b"SQLite format 3\x00"
_HEADER_BYTES = 100
# Tables that ANALYZE in SQLite creates. They do not affect the results of queries.
_STATISTICS = frozenset({("table", f"sqlite_stat{number}") for number in (1, 3, 4)})
# Tables that SQLite creates for the word index. Their SQL statements depend on the version of SQLite.
_SHADOW_TABLES = re.compile(r"page_words_\w+")
# Removed before SQL statements are compared, because SQLite adds quotes to the names of renamed tables and columns.
_QUOTES_AND_SPACE = re.compile(r"""[\s"'`\[\]]+""")
_NAME_MAX_CHARS = 60
# The number of entries in a file's schema, and how many of them are in the given list. Only two numbers are read,
# because reading each entry takes much longer.
_ENTRY = "type, name, tbl_name || ' ' || coalesce(sql, '')"
_COMPARED = (
    f"SELECT (SELECT count(*) FROM sqlite_schema), (SELECT count(*) FROM sqlite_schema WHERE ({_ENTRY}) IN "  # noqa: S608
    "(SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?)))"
)


def check_header(path: Path) -> None:
    """Check the size and the first bytes of a file, without opening it as a database.

    Raises:
        DamagedStoreError: The file is damaged, or was created by another program.
        NewerStoreError: The file was created by a newer version of this program.
    """
    if not path.exists():
        return
    size = path.stat().st_size
    if size == 0:
        wal = path.with_name(path.name + "-wal")
        if wal.exists() and wal.stat().st_size > 0:
            raise damaged(path, "the file is empty, although its journal is not")
        # The size is checked again, because another process may just have created the tables and removed the mark.
        if not beginning_mark(path).exists() and path.stat().st_size == 0:
            raise damaged(path, "the file is empty")
        return
    with path.open("rb") as file:
        header = file.read(_HEADER_BYTES)
    if len(header) < _HEADER_BYTES or not header.startswith(_MAGIC):
        raise damaged(path, "the file is not a SQLite file")
    found = int.from_bytes(header[60:64])
    if found > schema.CURRENT_VERSION and int.from_bytes(header[68:72]) == schema.APPLICATION_ID:
        raise newer(path, found)


def check_content(connection: apsw.Connection, path: Path) -> int:
    """Check the schema of a database. Return the schema's version, or 0 for an empty database.

    Raises:
        DamagedStoreError: The database is damaged, or was created by another program.
        NewerStoreError: The database was created by a newer version of this program.
    """
    found = schema.version(connection)
    entries, same = connection.execute(_COMPARED, (_entries(found),)).fetchall()[0]
    is_empty = entries == 0
    is_ours = connection.pragma("application_id") == schema.APPLICATION_ID
    if is_ours and found > schema.CURRENT_VERSION:
        raise newer(path, found)
    if not is_ours and not (is_empty and found == 0):
        raise damaged(path, "another program created the file")
    if is_ours and (is_empty or found == 0):
        raise damaged(path, "the file has no tables, or no schema version")
    is_other = is_ours and not entries == same == len(our_schema(found))
    if is_other and (foreign := _foreign(_schema(connection), our_schema(found))):
        raise damaged(path, foreign)
    return found


def _schema(connection: apsw.Connection) -> dict[tuple[str, str], str]:
    """Return the SQL of all tables, indexes, triggers and views. The keys are pairs of type and name."""
    rows = connection.execute(f"SELECT {_ENTRY} FROM sqlite_schema")  # noqa: S608 - constant
    return {(kind, name): sql for kind, name, sql in rows if (kind, name) not in _STATISTICS}


@cache
def our_schema(version: int) -> dict[tuple[str, str], str]:
    """Return the schema that this program creates for a schema version. The first call takes some milliseconds."""
    from memoryos_mcp.storage.sqlite.connections import SqliteConnection

    with closing(SqliteConnection(":memory:")) as connection:
        schema.migrate(connection, "", version)
        return _schema(connection)


@cache
def _entries(version: int) -> str:
    """Return the entries of `our_schema` as JSON; an empty list for a version that this program does not know."""
    known = our_schema(version) if 0 < version <= schema.CURRENT_VERSION else {}
    return json.dumps([[kind, name, sql] for (kind, name), sql in known.items()])


def _foreign(found: dict[tuple[str, str], str], ours: dict[tuple[str, str], str]) -> str | None:
    """Return a description of the first difference between two schemas, or None if they are equal."""
    if found == ours:
        return None
    for kind, name in sorted(found.keys() | ours.keys()):
        shown = f"{kind} {name[:_NAME_MAX_CHARS]!r}"
        if (kind, name) not in ours:
            return f"its {shown} is not part of the schema"
        if (kind, name) not in found:
            return f"its {shown} is missing"
        is_of_sqlite = _SHADOW_TABLES.fullmatch(name) is not None
        if not is_of_sqlite and _plain(found[kind, name]) != _plain(ours[kind, name]):
            return f"its {shown} differs from the schema"
    return None


def _plain(sql: str) -> str:
    return _QUOTES_AND_SPACE.sub("", sql).lower()
