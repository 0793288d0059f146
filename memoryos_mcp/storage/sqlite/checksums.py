"""Checksums of pages, which detect damage on disk before a page is shown.

CRC-32 detects accidental damage: every run of up to 32 changed bits, and all but one in four billion other changes. It
does not protect against attackers, who could replace the checksum as well.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any
from zlib import crc32

import apsw

logger = logging.getLogger(__name__)

# The columns of a page that are shown and never change. Texts are bytes, because damaged text may not be valid UTF-8.
COLUMNS = (
    "CAST(page_id AS BLOB), occurred_us, utc_offset_s, CAST(source AS BLOB), CAST(meta_data AS BLOB), "
    "CAST(user_input AS BLOB), CAST(agent_response AS BLOB)"
)
# The columns with text among them.
SUMMED = ("page_id", "source", "meta_data", "user_input", "agent_response")

_IS_SUMMED = "SELECT 1 FROM pragma_table_info('pages') WHERE name = 'checksum'"


def checksum(
    page_id: bytes,
    occurred_us: int,
    utc_offset_s: int,
    source: bytes,
    meta_data: bytes | None,
    user_input: bytes,
    agent_response: bytes,
) -> int:
    """Return the 32-bit checksum of a page's content; the arguments are in the order of `COLUMNS`."""
    # The lengths are included, so that text that moves from one column to the next changes the checksum.
    sizes = -1 if meta_data is None else len(meta_data), len(user_input)
    summed = crc32(b"%b %d %d %b %d %d " % (page_id, occurred_us, utc_offset_s, source, *sizes))
    return crc32(agent_response, crc32(user_input, crc32(meta_data or b"", summed)))


def checksum_of(row: Mapping[str, Any]) -> int:
    """Return the checksum of a new page from its columns by name."""
    texts: dict[str, Any] = {name: None if row[name] is None else row[name].encode() for name in SUMMED}
    return checksum(occurred_us=row["occurred_us"], utc_offset_s=row["utc_offset_s"], **texts)


def add_checksums(connection: apsw.Connection) -> None:
    """Add checksums of all pages in their current state; a migration."""
    connection.execute("ALTER TABLE pages ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0")
    summed: Callable[..., int] = checksum
    connection.create_scalar_function("page_checksum", summed, deterministic=True)
    connection.execute(f"UPDATE pages SET checksum = page_checksum({COLUMNS})")  # noqa: S608 - constant
    connection.create_scalar_function("page_checksum", None)


def damaged_pages(connection: apsw.Connection) -> tuple[str, ...]:
    """Return the ids of all damaged pages; takes some microseconds for each page."""
    if not connection.execute(_IS_SUMMED).get:
        return ()
    rows = connection.execute(f"SELECT checksum, {COLUMNS} FROM pages ORDER BY seq")  # noqa: S608 - constant
    return tuple(said[0].decode(errors="replace") for stored, *said in rows if stored != checksum(*said))


def warn(page_id: str) -> None:
    """Log that a page is damaged and shown without its text."""
    logger.warning("page %s is damaged on disk, so its text is not shown; restore a backup", page_id)
