"""Inspection: reads one memory with its evidence and history."""

from typing import Any

import apsw

from memoryos_mcp.model.ids import Kind, MemoryId, fold_dimension
from memoryos_mcp.model.inspected import (
    Answered,
    ChainLook,
    FactLook,
    Look,
    Neighbour,
    PageLook,
    PastTrait,
    SegmentLook,
    State,
    TraitLook,
)
from memoryos_mcp.model.pages import Page
from memoryos_mcp.model.profile import Level
from memoryos_mcp.storage.sqlite.longterm import IN_FORCE, read_traits
from memoryos_mcp.storage.sqlite.mapping import (
    FACT_COLUMNS,
    PAGE_COLUMNS,
    SEGMENT_COLUMNS,
    from_us,
    to_fact,
    to_page,
    to_segment,
)

PAGES_NAMED = 20
HISTORY_SHOWN = 20
BEGINNING_CHARS = 200


def look(connection: apsw.Connection, what: MemoryId, *, space: int, assistant_id: str, now_us: int) -> Look | None:
    """Return a memory with what belongs to it, None if it is missing or a fact about another assistant."""
    match what.kind:
        case Kind.PAGE:
            return _page(connection, what.name)
        case Kind.SEGMENT:
            return _segment(connection, what.number, space)
        case Kind.CHAIN:
            return _chain(connection, what.number)
        case Kind.FACT:
            return _fact(connection, what.number, space, assistant_id, now_us)
        case Kind.TRAIT:
            return _trait(connection, what.name)


def beginning(page: Page) -> str:
    """Return the beginning of the first side that is not blank, as one line for lists."""
    sides = page.user_input[:BEGINNING_CHARS], page.agent_response[:BEGINNING_CHARS]
    return " ".join((sides[0] if sides[0].strip() else sides[1]).split())


def _page(connection: apsw.Connection, page_id: str) -> PageLook | None:
    row = connection.execute(f"SELECT {PAGE_COLUMNS} FROM pages WHERE page_id = ?", (page_id,)).fetchone()  # noqa: S608
    if row is None:
        return None
    page = to_page(row)
    return PageLook(
        page=page,
        chain_summary=connection.execute("SELECT summary FROM chains WHERE chain = ?", (page.chain,)).get,
        before=_neighbour(connection, "seq < ? ORDER BY seq DESC", page.chain, page.seq),
        after=_neighbour(connection, "seq > ? ORDER BY seq", page.chain, page.seq),
    )


def _neighbour(connection: apsw.Connection, where: str, chain: int | None, seq: int) -> Neighbour | None:
    sql = f"SELECT {PAGE_COLUMNS} FROM pages WHERE chain = ? AND {where} LIMIT 1"  # noqa: S608 - literals
    row = connection.execute(sql, (chain, seq)).fetchone()
    if row is None:
        return None
    page = to_page(row)
    return Neighbour(page.page_id, page.occurred_at, beginning(page))


def _newest_pages(connection: apsw.Connection, column: str, number: int) -> list[str]:
    sql = f"SELECT page_id FROM pages WHERE {column} = ? ORDER BY seq DESC LIMIT ?"  # noqa: S608 - a literal
    return [page_id for (page_id,) in connection.execute(sql, (number, PAGES_NAMED))]


def _segment(connection: apsw.Connection, number: int, space: int) -> SegmentLook | None:
    sql = f"SELECT is_archived, {SEGMENT_COLUMNS} FROM segments WHERE segment = ?2"  # noqa: S608 - constant
    row = connection.execute(sql, (space, number)).fetchone()
    if row is None:
        return None
    return SegmentLook(
        segment=to_segment(row[1:]),
        state=State.ARCHIVED if row[0] else State.CURRENT,
        page_ids=_newest_pages(connection, "segment", number),
    )


def _chain(connection: apsw.Connection, number: int) -> ChainLook | None:
    sql = "SELECT summary, (SELECT count(*) FROM pages WHERE chain = ?1) FROM chains WHERE chain = ?1"
    row = connection.execute(sql, (number,)).fetchone()
    if row is None:
        return None
    return ChainLook(number, row[0], row[1], _newest_pages(connection, "chain", number))


_ANSWERED = (
    "fact, text, valid_from_us, valid_until_us, utc_offset_s, ended_by IS NOT NULL, "
    "said_since, iif(valid_until_us IS stated_until_us, said_until, NULL)"
)


def _fact(connection: apsw.Connection, number: int, space: int, assistant_id: str, now_us: int) -> FactLook | None:
    sql = (
        f"SELECT {IN_FORCE.replace('?', '?4')}, ended_by IS NOT NULL, superseded_by, "  # noqa: S608
        f"{FACT_COLUMNS} FROM facts WHERE fact = ?2 AND (about = 'user' OR assistant_id = ?3)"
    )
    row = connection.execute(sql, (space, number, assistant_id, now_us)).fetchone()
    if row is None:
        return None
    holds, is_corrected, heir, *columns = row
    before: list[tuple[Any, ...]] = connection.execute(
        f"SELECT {_ANSWERED} FROM facts WHERE superseded_by = ? ORDER BY fact DESC LIMIT ?",  # noqa: S608 - constant
        (number, HISTORY_SHOWN),
    ).fetchall()
    after = connection.execute(f"SELECT {_ANSWERED} FROM facts WHERE fact = ?", (heir,)).fetchone()  # noqa: S608
    fact = to_fact(tuple(columns))
    held = State.ARCHIVED if fact.is_archived else State.CURRENT
    return FactLook(
        fact=fact,
        state=held if holds else State.SUPERSEDED,
        is_corrected=bool(is_corrected),
        superseded=[_answered(each) for each in before],
        superseded_by=None if after is None else _answered(after),
    )


def _answered(row: tuple[Any, ...]) -> Answered:
    fact, text, from_, until, utc_offset_s, is_corrected, since, end = row
    return Answered(
        fact=fact,
        text=text,
        valid_from=from_us(from_, utc_offset_s),
        valid_until=None if until is None else from_us(until, utc_offset_s),
        is_corrected=bool(is_corrected),
        said_since=since,
        said_until=end,
    )


def _trait(connection: apsw.Connection, name: str) -> TraitLook | None:
    asked = fold_dimension(name)
    known = [
        row[0] for row in connection.execute("SELECT dimension FROM traits UNION SELECT dimension FROM trait_history")
    ]
    dimension = next((each for each in known if fold_dimension(each) == asked), None)
    if dimension is None:
        return None
    history: list[tuple[Any, ...]] = connection.execute(
        "SELECT level, reason, held_from_us, held_until_us, ended_by IS NOT NULL FROM trait_history "
        "WHERE dimension = ? ORDER BY rowid DESC LIMIT ?",
        (dimension, HISTORY_SHOWN),
    ).fetchall()
    return TraitLook(
        dimension=dimension,
        trait=next((trait for trait in read_traits(connection) if trait.dimension == dimension), None),
        learned_by=connection.execute("SELECT learned_by FROM traits WHERE dimension = ?", (dimension,)).get,
        history=[
            PastTrait(Level(level), reason, from_us(held_from), from_us(held_until), bool(is_corrected))
            for level, reason, held_from, held_until, is_corrected in history
        ],
    )
