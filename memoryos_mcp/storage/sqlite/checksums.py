"""Checksums of pages: what a disk changes in a page is noticed before the page is shown.

CRC-32 is enough, because it guards against accidents and not against people, who could write another checksum as well.
It misses no run of changed bits up to 32, and one in four thousand million of all other changes.
"""

import logging
from collections.abc import Callable
from zlib import crc32

import apsw

logger = logging.getLogger(__name__)

# All that is shown of a page and never changes. As bytes, because changed text may be no UTF-8.
COLUMNS = (
    "CAST(page_id AS BLOB), occurred_us, utc_offset_s, CAST(source AS BLOB), CAST(meta_data AS BLOB), "
    "CAST(user_input AS BLOB), CAST(agent_response AS BLOB)"
)
# The texts among them.
SUMMED = ("page_id", "source", "meta_data", "user_input", "agent_response")
IDS_NAMED = 5
# What is newer than the backup stays: the import adds it, and leaves the pages that are there as they are.
DAMAGE_FIX = (
    "memoryos-mcp export FILE takes along what is newer than your backup, memoryos-mcp restore BACKUP --yes puts that "
    "in place, and memoryos-mcp import FILE adds what is newer"
)

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
    """Return the checksum of what a page holds, 32 bits; the arguments are in the order of `COLUMNS`."""
    # The lengths keep text that moves from one part to another from having the same checksum.
    sizes = -1 if meta_data is None else len(meta_data), len(user_input)
    summed = crc32(b"%b %d %d %b %d %d " % (page_id, occurred_us, utc_offset_s, source, *sizes))
    return crc32(agent_response, crc32(user_input, crc32(meta_data or b"", summed)))


def checksum_of(
    page_id: str,
    occurred_us: int,
    utc_offset_s: int,
    source: str,
    meta_data: str | None,
    user_input: str,
    agent_response: str,
) -> int:
    """Return the checksum of a page that is about to be stored."""
    notes = None if meta_data is None else meta_data.encode()
    sides = user_input.encode(), agent_response.encode()
    return checksum(page_id.encode(), occurred_us, utc_offset_s, source.encode(), notes, *sides)


def add_checksums(connection: apsw.Connection) -> None:
    """Add the checksums of all pages as they are now: a migration."""
    connection.execute("ALTER TABLE pages ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0")
    summed: Callable[..., int] = checksum
    connection.create_scalar_function("page_checksum", summed, deterministic=True)
    connection.execute(f"UPDATE pages SET checksum = page_checksum({COLUMNS})")  # noqa: S608 - constant
    connection.create_scalar_function("page_checksum", None)


def damaged_pages(connection: apsw.Connection) -> tuple[str, ...]:
    """Return the names of all pages that are not as they were stored; reads every page, some microseconds each."""
    if not connection.execute(_IS_SUMMED).get:
        return ()
    rows = connection.execute(f"SELECT checksum, {COLUMNS} FROM pages ORDER BY seq")  # noqa: S608 - constant
    return tuple(said[0].decode(errors="replace") for stored, *said in rows if stored != checksum(*said))


def warn(page_id: str) -> None:
    """Log that a page is damaged, which is about to be shown without its text."""
    logger.warning("page %s is damaged on disk, so its text is withheld; restore a backup", page_id)


def damage_told(page_ids: tuple[str, ...]) -> str:
    """Return how many pages are damaged, and the names of the first of them."""
    more = ", ..." if len(page_ids) > IDS_NAMED else ""
    are = "page is" if len(page_ids) == 1 else "pages are"
    return f"{len(page_ids):,} {are} damaged on disk ({', '.join(page_ids[:IDS_NAMED])}{more})"
