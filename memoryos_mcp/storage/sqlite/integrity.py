"""Checks whether the SQLite file of a user's memory is damaged."""

import json
import re
import threading
import time
from collections.abc import Callable
from contextlib import closing

import apsw

from memoryos_mcp.storage.sql.checksums import SUMMED
from memoryos_mcp.storage.sqlite import schema
from memoryos_mcp.storage.sqlite.checksums import damaged_pages
from memoryos_mcp.storage.sqlite.connections import SqliteConnection
from memoryos_mcp.storage.sqlite.file_header import our_schema

# A check at low priority pauses after `STEPS_BETWEEN_RESTS` SQLite steps, so that queries can use the disk and the CPU.
# The pause is `RESTS_PER_WORK` times as long as the steps took, but at most `LONGEST_REST_S`.
STEPS_BETWEEN_RESTS = 1_000
RESTS_PER_WORK = 4.0
LONGEST_REST_S = 1.0

# A CHECK condition in the schema, with at most one level of inner parentheses.
_CONDITION = re.compile(r"CHECK \(((?:[^()]|\([^()]*\))*)\)")


def integrity_check(connection: apsw.Connection) -> None:
    """Check the database file of a memory for damage, and compare the indexes in the file with its tables.

    The check takes some milliseconds per megabyte.

    Raises:
        apsw.CorruptError: The file is damaged.
    """
    if connection.execute("PRAGMA integrity_check(1)").get != "ok":
        raise apsw.CorruptError
    if connection.readonly("main"):  # in this case, SQLite does not check the CHECK conditions
        for table, condition in _conditions(schema.version(connection)):
            if connection.execute(f"SELECT EXISTS (SELECT 1 FROM {table} WHERE NOT ({condition}))").get:  # noqa: S608 - ours
                raise apsw.CorruptError


def read_texts(connection: apsw.Connection) -> None:
    """Read all stored text that is not protected by a checksum, to find damage.

    Raises:
        UnicodeDecodeError: Some of the text is damaged.
    """
    columns = connection.execute(
        "SELECT t.name, group_concat(c.name) FROM pragma_table_list AS t, pragma_table_info(t.name) AS c "
        "WHERE t.schema = 'main' AND t.type = 'table' AND c.type = 'TEXT' "
        "AND NOT (t.name = 'pages' AND c.name IN (SELECT value FROM json_each(?))) GROUP BY t.name",
        (json.dumps(SUMMED),),
    ).fetchall()
    for table, names in columns:
        for _ in connection.execute(f"SELECT {names} FROM {table}"):  # noqa: S608 - of our schema
            pass


def _conditions(version: int) -> list[tuple[str, str]]:
    """Return a pair for each CHECK condition in a schema version: the table's name and the condition."""
    statements = {name: sql for (kind, name), sql in our_schema(version).items() if kind == "table"}
    return [(name, condition) for name, sql in statements.items() for condition in _CONDITION.findall(sql)]


def check_slowly(connect: Callable[[], SqliteConnection], cancelled: threading.Event) -> bool:
    """Check a file that may be in use, at low priority; return False if the check was cancelled.

    The check uses a new connection, because FTS5 may compare the file with the outdated cache of an older connection.
    If the check finds damage, it is repeated under a write lock. Only damage that is found again raises an error.

    Raises:
        apsw.CorruptError: The file is damaged.
    """
    with closing(connect()) as connection:
        _go_easy(connection, cancelled)
        try:
            integrity_check(connection)
        except apsw.InterruptError:
            return False
        except apsw.CorruptError:
            pass
        else:
            return True
    with closing(connect()) as connection:
        connection.execute("BEGIN IMMEDIATE")
        integrity_check(connection)
    return True


def find_damaged_pages(connect: Callable[[], SqliteConnection], cancelled: threading.Event) -> tuple[str, ...] | None:
    """Read all pages at low priority, and return the ids of the damaged pages.

    Return None if the check was cancelled.
    """
    with closing(connect()) as connection:
        _go_easy(connection, cancelled)
        try:
            return damaged_pages(connection)
        except apsw.InterruptError:
            return None


def _go_easy(connection: apsw.Connection, cancelled: threading.Event) -> None:
    """Make the queries of a connection pause regularly, and interrupt them once ``cancelled`` is set."""
    rested_at = time.monotonic()

    def rest() -> bool:
        nonlocal rested_at
        is_cancelled = cancelled.wait(min(LONGEST_REST_S, RESTS_PER_WORK * (time.monotonic() - rested_at)))
        rested_at = time.monotonic()
        return is_cancelled

    connection.set_progress_handler(rest, STEPS_BETWEEN_RESTS)
