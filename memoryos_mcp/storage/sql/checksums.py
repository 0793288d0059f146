"""Checksums of pages, which are used to detect damage on disk before a page is shown.

CRC-32 detects all changes within 32 consecutive bits, and misses one in four billion other changes. It does not protect
against attackers, who could replace the checksum too.
"""

import logging
from collections.abc import Mapping
from zlib import crc32

TYPE_CHECKING = False  # `storage.sqlite.reading_alone` must not import NumPy or typing
if TYPE_CHECKING:
    from typing import Any

    from memoryos_mcp.storage.sql.connection import Connection

logger = logging.getLogger(__name__)

# The columns that are shown and never change. Texts are read as bytes, because damaged text may not be valid UTF-8.
COLUMNS = (
    "CAST(page_id AS BLOB), occurred_us, utc_offset_s, CAST(source AS BLOB), CAST(meta_data AS BLOB), "
    "CAST(user_input AS BLOB), CAST(agent_response AS BLOB)"
)
# Not all pages are read at once, because a database may send the whole result of a query before the first row is used.
PAGES_PER_READ = 500
# The columns in `COLUMNS` that contain text.
SUMMED = ("page_id", "source", "meta_data", "user_input", "agent_response")


def checksum(
    page_id: bytes,
    occurred_us: int,
    utc_offset_s: int,
    source: bytes,
    meta_data: bytes | None,
    user_input: bytes,
    agent_response: bytes,
) -> int:
    """Return the CRC-32 checksum of a page's content. The arguments are in the order of `COLUMNS`."""
    # The lengths are included, so that the checksum changes if text moves from one column to another.
    sizes = -1 if meta_data is None else len(meta_data), len(user_input)
    summed = crc32(b"%b %d %d %b %d %d " % (page_id, occurred_us, utc_offset_s, source, *sizes))
    return crc32(agent_response, crc32(user_input, crc32(meta_data or b"", summed)))


def checksum_of(row: "Mapping[str, Any]") -> int:
    """Return the checksum of a new page. ``row`` maps column names to values."""
    texts: dict[str, Any] = {name: None if row[name] is None else row[name].encode() for name in SUMMED}
    return checksum(occurred_us=row["occurred_us"], utc_offset_s=row["utc_offset_s"], **texts)


def damaged_pages(connection: "Connection") -> tuple[str, ...]:
    """Return the ids of all damaged pages. This takes some microseconds for each page."""
    found: list[str] = []
    last = 0
    sql = f"SELECT seq, checksum, {COLUMNS} FROM pages WHERE seq > ? ORDER BY seq LIMIT ?"  # noqa: S608 - constant
    while rows := connection.execute(sql, (last, PAGES_PER_READ)).fetchall():
        found += [said[0].decode(errors="replace") for _, stored, *said in rows if stored != checksum(*said)]
        last = rows[-1][0]
    return tuple(found)


def warn(page_id: str) -> None:
    """Log a warning that a page is damaged and is shown without its text."""
    logger.warning("page %s is damaged on disk, so its text is not shown; restore a backup", page_id)
