"""Checksums of the pages in one file. The file may have an earlier schema version; see `storage.sql.checksums`."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import apsw

from memoryos_mcp.storage.sql import checksums

if TYPE_CHECKING:
    from memoryos_mcp.storage.sqlite.connections import SqliteConnection

_IS_SUMMED = "SELECT 1 FROM pragma_table_info('pages') WHERE name = 'checksum'"


def add_checksums(connection: apsw.Connection) -> None:
    """Add the column with checksums to the table of pages, and fill it. This is a migration step."""
    connection.execute("ALTER TABLE pages ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0")
    summed: Callable[..., int] = checksums.checksum
    connection.create_scalar_function("page_checksum", summed, deterministic=True)
    connection.execute(f"UPDATE pages SET checksum = page_checksum({checksums.COLUMNS})")  # noqa: S608 - constant
    connection.create_scalar_function("page_checksum", None)


def damaged_pages(connection: "SqliteConnection") -> tuple[str, ...]:
    """Return the ids of all damaged pages; an empty tuple if the file has no checksums yet."""
    return checksums.damaged_pages(connection) if connection.execute(_IS_SUMMED).get else ()
