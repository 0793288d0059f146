"""The table of pages: adding pages, and moving them to the backlog."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from memoryos_mcp.model.pages import Tier, Turn, new_page_id
from memoryos_mcp.storage.sql.connection import NO_LIMIT, Connection
from memoryos_mcp.storage.sql.mapping import turn_row
from memoryos_mcp.storage.sql.moments import from_us, to_us
from memoryos_mcp.storage.sql.names import index_names


def add_page(connection: Connection, turn: Turn, added_us: int, session_gap_s: float) -> tuple[str, datetime, bool]:
    """Add a page. If there is already a page with the turn's idempotency key, add nothing.

    Return the id and the time of the new or existing page, and whether it is new.
    """
    if turn.idempotency_key is not None:
        sql = "SELECT page_id, occurred_us, utc_offset_s FROM pages WHERE idempotency_key = ?"
        known = connection.execute(sql, (turn.idempotency_key,)).fetchone()
        if known is not None:
            return known[0], from_us(known[1], known[2]), False
    page_id = new_page_id()
    session = _session(connection, to_us(turn.occurred_at), session_gap_s)
    insert_page(connection, page_id, turn, {"session": session, "tier": Tier.SHORT_TERM, "added_us": added_us})
    return page_id, turn.occurred_at, True


def _session(connection: Connection, occurred_us: int, session_gap_s: float) -> int:
    """Return the session number of a new page.

    The times of the new page and of the last stored page are compared. If they differ by more than ``session_gap_s``
    seconds, a new session begins. Otherwise, both pages belong to the same session.
    """
    newest = connection.execute("SELECT session, occurred_us FROM pages ORDER BY seq DESC LIMIT 1").fetchone()
    if newest is None:
        return 1
    session, newest_us = newest
    return int(session) + int(abs(occurred_us - newest_us) > session_gap_s * 1e6)


def insert_page(connection: Connection, page_id: str, turn: Turn, others: Mapping[str, Any]) -> None:
    """Insert a page and index its words.

    ``others`` maps the names of the remaining columns, such as ``tier``, to their values.
    """
    row = {**turn_row(page_id, turn), **others}
    columns, values = ", ".join(row), ", ".join(f":{name}" for name in row)
    seq = connection.execute(f"INSERT INTO pages ({columns}) VALUES ({values}) RETURNING seq", row).get  # noqa: S608
    connection.words.add(seq, turn.user_input, turn.agent_response)
    index_names(connection, turn.user_input, turn.agent_response)


def window_span(connection: Connection, seq: int, part: int, space: int) -> tuple[int, int] | None:
    """Return the start and end of a window in a page's text, in characters; None if the window does not exist.

    ``part`` is the index of the window in the page.
    """
    sql = "SELECT start_char, end_char FROM page_vectors WHERE space = ? AND seq = ? AND part = ?"
    span: tuple[int, int] | None = connection.execute(sql, (space, seq, part)).fetchone()
    return span


def overflow(connection: Connection, capacity: int) -> None:
    """Move short-term pages to the backlog, the oldest first, until at most ``capacity`` remain."""
    connection.execute(
        "UPDATE pages SET tier = 'backlog' WHERE seq IN "
        "(SELECT seq FROM pages WHERE tier = 'short_term' ORDER BY seq DESC LIMIT ? OFFSET ?)",
        (NO_LIMIT, capacity),
    )
