"""The rows of pages: adding turns, finding pages, and moving pages out of short-term memory."""

from datetime import datetime

import apsw

from memoryos_mcp.model.pages import Turn, new_page_id
from memoryos_mcp.storage.sqlite.checksums import checksum_of
from memoryos_mcp.storage.sqlite.lexical import index_page
from memoryos_mcp.storage.sqlite.mapping import PAGE_COLUMNS, from_us, offset_s, to_page, to_us
from memoryos_mcp.storage.values import FoundPage


def add_page(
    connection: apsw.Connection, turn: Turn, added_us: int, session_gap_s: float
) -> tuple[str, datetime, bool]:
    """Return the page's id, its time and whether it is new; a known idempotency key gives the existing page."""
    if turn.idempotency_key is not None:
        sql = "SELECT page_id, occurred_us, utc_offset_s FROM pages WHERE idempotency_key = ?"
        known = connection.execute(sql, (turn.idempotency_key,)).fetchone()
        if known is not None:
            return known[0], from_us(known[1], known[2]), False
    return _insert(connection, turn, added_us, session_gap_s), turn.occurred_at, True


def _insert(connection: apsw.Connection, turn: Turn, added_us: int, session_gap_s: float) -> str:
    occurred_us, offset = to_us(turn.occurred_at), offset_s(turn.occurred_at)
    page_id = new_page_id()
    sides = turn.user_input, turn.agent_response
    connection.execute(
        "INSERT INTO pages (page_id, session, tier, occurred_us, utc_offset_s, added_us, idempotency_key, meta_data, "
        "source, gives_orders, user_input, agent_response, checksum) "
        "VALUES (:page_id, coalesce((SELECT session + (abs(:occurred_us - occurred_us) > "
        ":gap_us) FROM pages ORDER BY seq DESC LIMIT 1), 1), 'short_term', :occurred_us, :offset_s, :added_us, :key, "
        ":meta_data, :source, :gives_orders, :user_input, :agent_response, :checksum)",
        {
            "page_id": page_id,
            "occurred_us": occurred_us,
            "gap_us": session_gap_s * 1e6,
            "offset_s": offset,
            "added_us": added_us,
            "key": turn.idempotency_key,
            "meta_data": turn.meta_data,
            "source": turn.source,
            "gives_orders": turn.gives_orders,
            "user_input": turn.user_input,
            "agent_response": turn.agent_response,
            "checksum": checksum_of(page_id, occurred_us, offset, turn.source, turn.meta_data, *sides),
        },
    )
    index_page(connection, connection.last_insert_rowid(), *sides)
    return page_id


def found_page(connection: apsw.Connection, seq: int, part: int, space: int) -> FoundPage | None:
    """Return a page with its chain's summary and the span of one of its windows, None if it is missing."""
    row = connection.execute(f"SELECT {PAGE_COLUMNS} FROM pages WHERE seq = ?", (seq,)).fetchone()  # noqa: S608
    if row is None:
        return None
    page = to_page(row)
    return FoundPage(
        page=page,
        chain_summary=connection.execute("SELECT summary FROM chains WHERE chain = ?", (page.chain,)).get,
        span=connection.execute(
            "SELECT start_char, end_char FROM page_vectors WHERE space = ? AND seq = ? AND part = ?",
            (space, seq, part),
        ).get,
    )


def overflow(connection: apsw.Connection, capacity: int) -> None:
    """Move the oldest short-term pages to the backlog, first in first out."""
    connection.execute(
        "UPDATE pages SET tier = 'backlog' WHERE seq IN "
        "(SELECT seq FROM pages WHERE tier = 'short_term' ORDER BY seq DESC LIMIT -1 OFFSET ?)",
        (capacity,),
    )
