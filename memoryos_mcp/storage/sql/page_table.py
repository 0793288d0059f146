"""The table of pages: adding pages, and moving them to the backlog."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from memoryos_mcp.errors import LeaseLostError
from memoryos_mcp.model.pages import Tier, Turn, new_page_id
from memoryos_mcp.storage.sql.connection import Connection
from memoryos_mcp.storage.sql.mapping import turn_row
from memoryos_mcp.storage.sql.moments import from_us, to_us
from memoryos_mcp.storage.sql.names import index_names
from memoryos_mcp.storage.values import Receipt, StoreOptions

FORGOTTEN_MEANWHILE = "memories that the page might quote were forgotten meanwhile; nothing was stored. Try again"
# The data that is needed to add pages: the forget epoch, the sizes of two tiers, and values of the newest page.
_STATE = (
    "SELECT (SELECT count(*) FROM forget_receipts), (SELECT count(*) FROM pages WHERE tier = 'short_term'), "
    "(SELECT count(*) FROM pages WHERE tier = 'backlog'), (SELECT session FROM pages ORDER BY seq DESC LIMIT 1), "
    "(SELECT occurred_us FROM pages ORDER BY seq DESC LIMIT 1)"
)
_KNOWN = (
    "SELECT idempotency_key, page_id, occurred_us, utc_offset_s FROM pages "
    "WHERE idempotency_key IN (SELECT CAST(value AS TEXT) FROM json_each(?))"
)


def add_pages(
    connection: Connection, turns: Sequence[Turn], added_us: int, options: StoreOptions, forget_epoch: int | None
) -> list[Receipt]:
    """Add pages, and move the oldest short-term pages to the backlog if there are too many; see `Pages.add_pages`."""
    state = connection.execute(_STATE)
    keys = [turn.idempotency_key for turn in turns if turn.idempotency_key is not None]
    stored = connection.execute(_KNOWN, (json.dumps(keys),)) if keys else ()
    epoch, short_term, backlog, session, newest_us = state.fetchone()
    if forget_epoch is not None and epoch != forget_epoch:
        raise LeaseLostError(FORGOTTEN_MEANWHILE)
    known = {key: (page_id, from_us(us, offset)) for key, page_id, us, offset in stored}
    added: list[tuple[str, datetime, bool]] = []
    for turn in turns:
        if turn.idempotency_key in known:
            added.append((*known[turn.idempotency_key], False))
            continue
        page_id, occurred_us = new_page_id(), to_us(turn.occurred_at)
        # A session ends if the times of two consecutive pages differ too much.
        is_session = newest_us is not None and abs(occurred_us - newest_us) <= options.session_gap_s * 1e6
        session = (session or 0) + (not is_session)
        newest_us = occurred_us
        insert_page(connection, page_id, turn, {"session": session, "tier": Tier.SHORT_TERM, "added_us": added_us})
        added.append((page_id, turn.occurred_at, True))
        if turn.idempotency_key is not None:
            known[turn.idempotency_key] = page_id, turn.occurred_at
    too_many = max(0, short_term + sum(is_new for _, _, is_new in added) - options.short_term_capacity)
    if too_many:
        overflow(connection, options.short_term_capacity)
    return [Receipt(page_id, occurred_at, is_new, backlog + too_many) for page_id, occurred_at, is_new in added]


def insert_page(connection: Connection, page_id: str, turn: Turn, others: Mapping[str, Any]) -> None:
    """Insert a page and index its words.

    ``others`` maps the names of the remaining columns, such as ``tier``, to their values.
    """
    row = {**turn_row(page_id, turn), **others}
    columns, values = ", ".join(row), ", ".join(f":{name}" for name in row)
    connection.execute(f"INSERT INTO pages ({columns}) VALUES ({values})", row)  # noqa: S608 - names of columns
    connection.words.add_newest(turn.user_input, turn.agent_response)
    index_names(connection, turn.user_input, turn.agent_response)


def overflow(connection: Connection, capacity: int) -> None:
    """Move short-term pages to the backlog, the oldest first, until at most ``capacity`` remain."""
    connection.execute(
        "UPDATE pages SET tier = 'backlog' WHERE tier = 'short_term' AND seq <= "
        "(SELECT seq FROM pages WHERE tier = 'short_term' ORDER BY seq DESC LIMIT 1 OFFSET ?)",
        (capacity,),
    )
