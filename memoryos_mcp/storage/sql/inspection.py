"""Reads single memories together with their evidence and history."""

from typing import Any

from memoryos_mcp.model.ids import Kind, MemoryId
from memoryos_mcp.model.pages import Page
from memoryos_mcp.model.profile import Level
from memoryos_mcp.model.views import (
    ChainEntry,
    ChainView,
    FactView,
    Learned,
    MemoryView,
    PageView,
    PastTrait,
    SegmentPages,
    SegmentView,
    State,
    TraitView,
)
from memoryos_mcp.storage.sql.connection import Connection
from memoryos_mcp.storage.sql.longterm import IS_VALID, find_dimension, read_traits
from memoryos_mcp.storage.sql.mapping import (
    FACT_COLUMNS,
    PAGE_COLUMNS,
    SEGMENT_COLUMNS,
    all_rows,
    to_fact,
    to_page,
    to_segment,
)
from memoryos_mcp.storage.sql.moments import any_time, from_us

MAX_PAGES = 20
MAX_HISTORY = 20
MAX_LEARNED = 100


def look(connection: Connection, what: MemoryId, *, space: int, assistant_id: str, now_us: int) -> MemoryView | None:
    """Return the memory with the id ``what``, together with its evidence and history.

    Return None if the memory does not exist, or if it is a fact about another assistant.
    """
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


def _page(connection: Connection, page_id: str) -> PageView | None:
    row = connection.execute(f"SELECT {PAGE_COLUMNS} FROM pages WHERE page_id = ?", (page_id,)).fetchone()  # noqa: S608
    if row is None:
        return None
    page = to_page(row)
    return PageView(
        page=page,
        before=_neighbour(connection, "seq < ? ORDER BY seq DESC", page.chain, page.seq),
        after=_neighbour(connection, "seq > ? ORDER BY seq", page.chain, page.seq),
    )


def _neighbour(connection: Connection, where: str, chain: int | None, seq: int) -> Page | None:
    sql = f"SELECT {PAGE_COLUMNS} FROM pages WHERE chain = ? AND {where} LIMIT 1"  # noqa: S608 - literals
    row = connection.execute(sql, (chain, seq)).fetchone()
    return None if row is None else to_page(row)


def _newest_pages(connection: Connection, column: str, number: int) -> list[str]:
    sql = f"SELECT page_id FROM pages WHERE {column} = ? ORDER BY seq DESC LIMIT ?"  # noqa: S608 - a literal
    return [page_id for (page_id,) in connection.execute(sql, (number, MAX_PAGES))]


def _segment(connection: Connection, number: int, space: int) -> SegmentView | None:
    sql = f"SELECT is_archived, {SEGMENT_COLUMNS} FROM segments WHERE segment = ?2"  # noqa: S608 - constant
    row = connection.execute(sql, (space, number)).fetchone()
    if row is None:
        return None
    return SegmentView(
        segment=to_segment(row[1:]),
        state=State.ARCHIVED if row[0] else State.CURRENT,
        page_ids=_newest_pages(connection, "segment", number),
    )


def _chain(connection: Connection, number: int) -> ChainView | None:
    sql = "SELECT summary, (SELECT count(*) FROM pages WHERE chain = ?1) FROM chains WHERE chain = ?1"
    row = connection.execute(sql, (number,)).fetchone()
    if row is None:
        return None
    return ChainView(number, row[0], row[1], _newest_pages(connection, "chain", number))


def _fact(connection: Connection, number: int, space: int, assistant_id: str, now_us: int) -> FactView | None:
    sql = (
        f"SELECT {IS_VALID.replace('?', '?4')}, superseded_by, "  # noqa: S608 - constants
        f"{FACT_COLUMNS} FROM facts WHERE fact = ?2 AND (about = 'user' OR assistant_id = ?3)"
    )
    row = connection.execute(sql, (space, number, assistant_id, now_us)).fetchone()
    if row is None:
        return None
    is_valid, successor, *columns = row
    superseded = all_rows(
        connection,
        f"SELECT {FACT_COLUMNS} FROM facts WHERE superseded_by = ?2 ORDER BY fact DESC LIMIT ?3",  # noqa: S608
        space,
        number,
        MAX_HISTORY,
    )
    after = all_rows(connection, f"SELECT {FACT_COLUMNS} FROM facts WHERE fact = ?2", space, successor)  # noqa: S608
    fact = to_fact(tuple(columns))
    lineage = all_rows(
        connection,
        "WITH RECURSIVE older(number) AS (SELECT CAST(?2 AS BIGINT) UNION "  # noqa: S608 - constant
        "SELECT facts.fact FROM facts JOIN older ON facts.superseded_by = older.number), "
        "newer(number) AS (SELECT CAST(?2 AS BIGINT) UNION SELECT facts.superseded_by FROM facts JOIN newer "
        "ON facts.fact = newer.number WHERE facts.superseded_by IS NOT NULL) "
        f"SELECT {FACT_COLUMNS} FROM facts WHERE fact IN (SELECT number FROM older UNION SELECT number FROM newer) "
        "ORDER BY abs(fact - CAST(?2 AS BIGINT)) LIMIT ?3",
        space,
        number,
        MAX_HISTORY,
    )
    valid_state = State.ARCHIVED if fact.is_archived else State.CURRENT
    return FactView(
        fact=fact,
        state=valid_state if is_valid else State.SUPERSEDED,
        superseded=list(map(to_fact, superseded)),
        superseded_by=to_fact(after[0]) if after else None,
        lineage=sorted(map(to_fact, lineage), key=lambda each: (each.valid_from, each.fact)),
    )


def _trait(connection: Connection, name: str) -> TraitView | None:
    dimension = find_dimension(connection, name, with_history=True)
    if dimension is None:
        return None
    history: list[tuple[Any, ...]] = connection.execute(
        "SELECT level, reason, held_from_us, held_until_us, ended_by IS NOT NULL FROM trait_history "
        "WHERE dimension = ? ORDER BY rowid DESC LIMIT ?",
        (dimension, MAX_HISTORY),
    ).fetchall()
    return TraitView(
        dimension=dimension,
        trait=next(iter(read_traits(connection, dimension)), None),
        history=[
            PastTrait(Level(level), reason, from_us(held_from), from_us(held_until), bool(is_corrected))
            for level, reason, held_from, held_until, is_corrected in history
        ],
    )


def learned_from(connection: Connection, page_id: str, *, space: int, assistant_id: str) -> Learned:
    """Return the facts and traits for which a page is evidence. Facts about other assistants are left out."""
    facts = all_rows(
        connection,
        f"SELECT {FACT_COLUMNS} FROM facts WHERE fact IN (SELECT e.fact FROM fact_evidence AS e JOIN pages USING (seq) "  # noqa: S608
        "WHERE page_id = ?2) AND (about = 'user' OR assistant_id = ?3) ORDER BY fact DESC LIMIT ?4",
        space,
        page_id,
        assistant_id,
        MAX_LEARNED,
    )
    traits = all_rows(
        connection,
        "SELECT dimension FROM trait_evidence JOIN pages USING (seq) WHERE page_id = ?1 ORDER BY dimension",
        page_id,
    )
    return Learned(facts=list(map(to_fact, facts)), traits=[dimension for (dimension,) in traits])


def segment_pages(connection: Connection, segment: int, chains: int) -> SegmentPages:
    """Return the times of a segment's pages, and at most ``chains`` of its chains; see `UserData.segment_pages`."""
    times = connection.execute("SELECT occurred_us FROM pages WHERE segment = ? ORDER BY occurred_us", (segment,))
    of_chains = "FROM pages WHERE segment = ? AND chain IS NOT NULL"
    newest = all_rows(
        connection,
        "SELECT chain, (SELECT summary FROM chains WHERE chains.chain = counted.chain), pages, newest_us "  # noqa: S608
        f"FROM (SELECT chain, count(*) AS pages, max(occurred_us) AS newest_us {of_chains} GROUP BY chain) AS counted "
        "ORDER BY newest_us DESC, chain DESC LIMIT ?",
        segment,
        chains,
    )
    count = connection.execute(f"SELECT count(DISTINCT chain) {of_chains}", (segment,)).get
    return SegmentPages(
        times=[any_time(us) for (us,) in times],
        chains=[ChainEntry(chain, summary, pages, any_time(us)) for chain, summary, pages, us in newest],
        chain_count=int(count),
    )
