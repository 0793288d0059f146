"""Files of earlier versions, made by the migrations up to each version."""

from contextlib import closing
from pathlib import Path

from memoryos_mcp.storage.sqlite.connections import SqliteConnection
from memoryos_mcp.storage.sqlite.schema import migrate

ONE_DAY_US = 86_400_000_000


def said(number: int) -> tuple[str, str]:
    """Return the two sides of a page."""
    return f"My note {number} is about pottery.", f"I keep note {number}."


def make_version(path: Path, user_id: str, number: int, pages: int) -> None:
    """Make a new file of a user in the format of version ``number``, with pages in the backlog."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(SqliteConnection(str(path))) as connection, connection:
        migrate(connection, user_id, 1)
        connection.executemany(
            "INSERT INTO pages (page_id, session, tier, occurred_us, utc_offset_s, added_us, meta_data, user_input, "
            "agent_response) VALUES (?, 1, 'backlog', ?, 7200, 1, NULL, ?, ?)",
            [(f"p_{place:020x}", place * ONE_DAY_US, *said(place)) for place in range(1, pages + 1)],
        )
        migrate(connection, user_id, number)
