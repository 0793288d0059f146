"""What a file gives away before it is used: whose it is, of which version, and whether it is whole."""

from pathlib import Path

import apsw

from memoryos_mcp.storage import schema
from memoryos_mcp.storage.file_errors import damaged, newer

_MAGIC = b"SQLite format 3\x00"
_HEADER_BYTES = 100


def look_at_header(path: Path) -> None:
    """Refuse a file that its first bytes give away, without opening it as a database."""
    if not path.exists():
        return
    size = path.stat().st_size
    if size == 0:
        wal = path.with_name(path.name + "-wal")
        if wal.exists() and wal.stat().st_size > 0:
            raise damaged(path, "it is empty although its journal is not")
        return
    with path.open("rb") as file:
        header = file.read(_HEADER_BYTES)
    if len(header) < _HEADER_BYTES or not header.startswith(_MAGIC):
        raise damaged(path, "it is no SQLite file")
    found = int.from_bytes(header[60:64])
    if found > schema.CURRENT_VERSION and int.from_bytes(header[68:72]) == schema.APPLICATION_ID:
        raise newer(path, found)


def look_at_content(connection: apsw.Connection, path: Path) -> int:
    """Return the file's version, or refuse a database that another program or a newer version made."""
    found = schema.version(connection)
    is_empty = connection.execute("SELECT count(*) FROM sqlite_schema").get == 0
    is_ours = connection.pragma("application_id") == schema.APPLICATION_ID
    if is_ours and found > schema.CURRENT_VERSION:
        raise newer(path, found)
    if not is_ours and not (is_empty and found == 0):
        raise damaged(path, "another program made it")
    if is_ours and (is_empty or found == 0):
        raise damaged(path, "its tables are gone")
    return found


def quick_check(connection: apsw.Connection) -> None:
    """Read the whole file for damage.

    Raises:
        apsw.CorruptError: There is some.
    """
    verdict = connection.execute("PRAGMA quick_check(1)").get
    if verdict != "ok":
        raise apsw.CorruptError
