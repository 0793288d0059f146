"""A store on a SQL database: the methods that SQLite and PostgreSQL share."""

import asyncio
import json
import secrets
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from copy import copy
from datetime import datetime, timedelta
from typing import Any, Self, TypeVar

import numpy as np

from memoryos_mcp.errors import DamagedStoreError
from memoryos_mcp.model.forgotten import ForgetPlan, ForgetReceipt, runs
from memoryos_mcp.model.knowledge import CorrectedFact, Fact
from memoryos_mcp.model.pages import Page, Turn
from memoryos_mcp.model.profile import Trait
from memoryos_mcp.model.segments import Segment, Vector
from memoryos_mcp.model.stats import Counts, UsageEntry
from memoryos_mcp.storage.damage import DAMAGE_FIX, damage_message
from memoryos_mcp.storage.interface import Store
from memoryos_mcp.storage.sql import (
    checksums,
    copying,
    forget_plans,
    forgetting,
    learning,
    leases,
    lexical,
    longterm,
    midterm,
    page_table,
    queries,
    term_stats,
    usage,
    vector_spaces,
    vector_table,
)
from memoryos_mcp.storage.sql import retention as retention_checks
from memoryos_mcp.storage.sql.connection import Connection, Database
from memoryos_mcp.storage.sql.counting import count_memory, due_work, pending
from memoryos_mcp.storage.sql.forget_plans import FORGET_EPOCH
from memoryos_mcp.storage.sql.mapping import (
    PAGE_COLUMNS,
    SEGMENTS_OF_PAGES,
    FactRows,
    read_segments,
    to_page,
    to_segment,
)
from memoryos_mcp.storage.sql.moments import from_us, to_us
from memoryos_mcp.storage.sql.user_data import SqlUserData
from memoryos_mcp.storage.values import (
    Accepted,
    Archived,
    Changes,
    Commit,
    Contents,
    Copy,
    CopyOutcome,
    DueWork,
    EvidenceProjects,
    FactQuery,
    Failure,
    Filing,
    Fingerprint,
    FoundPage,
    Learning,
    Lease,
    Outlines,
    PageQuery,
    PageVectors,
    Pending,
    Receipt,
    Snapshot,
    Space,
    StoreOptions,
    TokenRows,
    Unembedded,
    Vectors,
    WindowHits,
    WordMatches,
    WordSearch,
)
from memoryos_mcp.storage.vector_index import VectorIndex

NO_SPACE = 0
SECONDS_PER_DAY = 86_400
# The last position in the change sequence; 0 if there are no changes.
POSITION = "SELECT coalesce(max(change), 0) FROM changes"
# Maximum number of attempts to copy a memory that other processes keep changing.
COPY_ATTEMPTS = 3
# The columns that both databases read for `Outlines`.
OUTLINE_COLUMNS = ("seq", "session", "segment", "local_s", "bytes")

T = TypeVar("T")


class SqlStore:
    """One user's memory in a SQL database. Implements the methods of `Store` that all SQL databases share."""

    def __init__(self, database: Database, options: StoreOptions, clock: Callable[[], datetime]) -> None:
        self._database = database
        self._options = options
        self._clock = clock
        self._space = NO_SPACE
        self._holder = secrets.token_hex(16)
        self._word_counts = term_stats.WordCounts()
        self._fact_rows = FactRows()
        self._watch = retention_checks.ClockWatch()

    async def limit_short_term(self) -> None:
        """Move short-term pages to the backlog if there are more than the settings allow."""
        (found,) = await self._database.rows("SELECT count(*) FROM pages WHERE tier = 'short_term'")
        if found[0] > self._options.short_term_capacity:
            await self._database.write(page_table.overflow, self._options.short_term_capacity)

    @property
    def user_data(self) -> SqlUserData:
        return SqlUserData(self._database, self._options, self._clock, self._space)

    async def verify(self) -> tuple[str, ...]:
        return await self._database.verify()

    async def damaged_pages(self) -> tuple[str, ...]:
        return await self._database.read(checksums.damaged_pages)

    @property
    def only_reads_because(self) -> str | None:
        return self._database.only_reads_because

    def is_in_place(self) -> bool:
        return self._database.is_in_place()

    async def keep_lost(self) -> None:
        await self._database.keep_lost()

    async def close(self) -> None:
        await self._database.close()

    # Vector spaces ----------------------------------------------------------------------------------------------------

    async def in_space(self, identity: str, model: str | None = None) -> Self:
        now_us = to_us(self._clock())
        number = await self._database.read_once(vector_spaces.find, identity, model, now_us)
        if number is None and model is not None:
            number = await self._database.write(vector_spaces.use, identity, model, now_us)
        store = copy(self)
        store._space = NO_SPACE if number is None else number
        return store

    def use_space_of(self, other: Store) -> None:
        assert isinstance(other, SqlStore)  # noqa: S101 - `in_space` returned it
        self._space = other._space

    async def spaces(self) -> list[Space]:
        return await self._database.read_once(vector_spaces.all_of)

    async def drop_spaces(self, lease: Lease, keep: Collection[str], unused_since: datetime) -> bool:
        since_us = to_us(unused_since)
        return await self._write_leased(lease, lambda connection: vector_spaces.drop_some(connection, keep, since_us))

    # Pages ---------------------------------------------------------------------------------------------------------

    async def add_pages(self, turns: Sequence[Turn], *, forget_epoch: int | None = None) -> list[Receipt]:
        added_us = to_us(self._clock())
        return await self._database.write(page_table.add_pages, turns, added_us, self._options, forget_epoch)

    async def pages(self, query: PageQuery) -> list[Page]:
        where, parameters = queries.page_conditions(query, self._space)
        sql = f"SELECT {PAGE_COLUMNS} FROM pages {where}"  # noqa: S608 - literals of one module
        found = [to_page(row) for row in await self._database.rows(sql, *parameters)]
        return found[::-1] if query.is_newest else found

    async def outlines(self, seqs: Sequence[int]) -> Outlines:
        parts = await self._shared(sorted(seqs), self._outline_columns)
        nothing = np.zeros((len(OUTLINE_COLUMNS), 0), dtype=np.int64)
        found, sessions, segments, seconds, sizes = np.hstack([nothing, *(np.array(part, np.int64) for part in parts)])
        return Outlines(found, sessions, segments, days=seconds // SECONDS_PER_DAY, sizes=sizes)

    async def project_pages(self, project: str, limit: int) -> list[int]:
        sql = "SELECT seq FROM pages WHERE project = ? ORDER BY seq DESC LIMIT ?"
        return [seq for (seq,) in await self._database.rows(sql, project, limit)]

    async def pages_of_others(self, seqs: Sequence[int], project: str | None) -> set[int]:
        sql = (
            "SELECT seq FROM pages WHERE project IS NOT NULL AND project <> coalesce(?, '') "
            "AND seq IN (SELECT value FROM json_each(?))"
        )
        return {seq for (seq,) in await self._database.rows(sql, project, json.dumps(list(seqs)))}

    def _outline_columns(self, connection: Connection, seqs: Sequence[int]) -> list[list[int]]:
        """Return the columns `OUTLINE_COLUMNS` of pages, in the order of ``seq``."""
        raise NotImplementedError

    async def found_pages(self, windows: Mapping[int, int]) -> dict[int, FoundPage]:
        listed, number = json.dumps(list(windows)), self._space
        of_pages = f"SELECT {PAGE_COLUMNS} FROM pages WHERE seq IN (SELECT value FROM json_each(?))"  # noqa: S608
        of_windows = (
            "SELECT seq, part, start_char, end_char FROM page_vectors "
            "WHERE space = ? AND seq IN (SELECT value FROM json_each(?))"
        )

        def query(connection: Connection) -> dict[int, FoundPage]:
            # All three are sent before the first is read, because each wait for a server costs time.
            rows, parts = connection.execute(of_pages, (listed,)), connection.execute(of_windows, (number, listed))
            of_segments = connection.execute(SEGMENTS_OF_PAGES, (number, listed))
            pages = [to_page(row) for row in rows]
            spans = {(seq, part): (start, end) for seq, part, start, end in parts}
            segments = {row[0]: to_segment(row) for row in of_segments}
            return {
                page.seq: FoundPage(page, spans.get((page.seq, windows[page.seq])), segments.get(page.segment or 0))
                for page in pages
            }

        return await self._database.read(query)

    async def word_matches(self, counts: Mapping[str, int], seqs: Sequence[int]) -> WordMatches:
        return await self._database.read(lexical.matches, counts, seqs)

    async def search_words(self, words: Sequence[str], names: Sequence[str], limit: int) -> WordSearch:
        def read(connection: Connection) -> WordSearch:
            stats = term_stats.term_stats(connection, words, names, self._word_counts)
            return WordSearch(stats, lexical.search(connection, stats.counts, limit) if limit else ())

        return await self._database.read(read)

    # Segments, chains, profile, knowledge --------------------------------------------------------------------------

    async def segments(self, *, is_unanalysed: bool = False) -> list[Segment]:
        return await self._database.read_once(read_segments, self._space, is_unanalysed=is_unanalysed)

    async def due_segments(self) -> list[int]:
        return [
            row[0]
            for row in await self._database.rows("SELECT segment FROM segments WHERE is_due = 1 ORDER BY segment")
        ]

    async def traits(self) -> list[Trait]:
        return await self._database.read_once(longterm.read_traits)

    async def facts(self, query: FactQuery) -> list[Fact]:
        now_us = to_us(self._clock())

        def read(connection: Connection) -> list[Fact]:
            rows = queries.fact_rows(connection, query, self._space, self._options.owner, now_us)
            return self._fact_rows.facts(rows)

        return await self._database.read(read)

    async def evidence_projects(self) -> EvidenceProjects:
        return await self._database.read(longterm.evidence_projects)

    async def corrected_facts(self) -> list[CorrectedFact]:
        return await self._database.read_once(longterm.corrected_facts)

    async def unembedded(self, limit: int) -> Unembedded:
        now_us = to_us(self._clock())
        return await self._database.read(queries.unembedded, self._space, limit, now_us)

    async def add_visits(self, visits: Mapping[int, int], at: datetime) -> None:
        await self._database.write(midterm.add_visits, visits, to_us(at))

    # Counts, changes, vectors --------------------------------------------------------------------------------------

    async def counts(self) -> Counts:
        now_us = to_us(self._clock())
        return await self._database.read(count_memory, self._space, self._options.assistant_id, now_us)

    async def pending(self) -> Pending:
        return await self._database.read_once(pending, self._space)

    async def due_work(self) -> DueWork:
        return await self._database.read_once(due_work, self._space, to_us(self._clock()))

    async def snapshot(self) -> Snapshot:
        sql = f"SELECT ({FORGET_EPOCH}), ({POSITION})"
        ((epoch, position),) = await self._database.rows(sql)
        return Snapshot(forget_epoch=epoch, position=position)

    async def state(self) -> object:
        return await self._database.state()

    async def changes(self, after: int, limit: int) -> Changes:
        sql = "SELECT change, kind, row FROM changes WHERE change > ? ORDER BY change LIMIT ?"
        rows = await self._database.rows(sql, after, limit)
        kinds = {row[1] for row in rows}
        return Changes(
            position=rows[-1][0] if rows else after,
            pages=tuple(row[2] for row in rows if row[1] == vector_table.page_kind(self._space)),
            is_longterm=bool(kinds & {"fact", "profile"}),
            is_complete=len(rows) < limit,
        )

    async def page_vectors(self, seqs: Sequence[int]) -> PageVectors:
        sql = (
            "SELECT seq, vector FROM page_vectors WHERE space = ? AND seq IN (SELECT value FROM json_each(?)) "
            "ORDER BY seq, part"
        )
        listed = json.dumps(list(seqs))
        return await self._database.read_once(vector_table.read_page_vectors, sql, self._space, listed)

    async def can_search_vectors(self, above: int) -> bool:  # noqa: ARG002 - a file-based store cannot
        return False

    def vector_index(self, dimension: int) -> VectorIndex | None:  # noqa: ARG002 - a file-based store has none
        return None

    async def nearest_windows(self, query: Vector, k: int) -> WindowHits:
        raise NotImplementedError

    async def token_vectors(self, seqs: Sequence[int], max_bytes: int) -> TokenRows:
        raise NotImplementedError

    async def all_vectors(self, after_seq: int, limit: int) -> PageVectors:
        return await self._database.read_once(vector_table.read_all_vectors, self._space, after_seq, limit)

    async def contents(self, windows: int) -> Contents:
        now_us, query = to_us(self._clock()), FactQuery(with_archived=True)

        def read(connection: Connection) -> Contents:
            facts = queries.fact_rows(connection, query, self._space, self._options.owner, now_us)
            return Contents(
                position=connection.execute(POSITION).get,
                traits=longterm.read_traits(connection),
                facts=self._fact_rows.facts(facts),
                vectors=vector_table.read_all_vectors(connection, self._space, 0, windows),
            )

        return await self._database.read(read)

    # Background writes ---------------------------------------------------------------------------------------------

    async def take_lease(self, ttl_s: float) -> Lease | None:
        def change(connection: Connection) -> Lease | None:
            return leases.take_lease(connection, self._holder, to_us(self._clock()), int(ttl_s * 1e6))

        return await self._database.write(change)

    async def release_lease(self, lease: Lease | None = None) -> None:
        if await self._database.rows("SELECT 1 FROM lease WHERE holder = ?", self._holder):
            await self._database.write(leases.release_lease, self._holder, lease)

    async def commit(self, lease: Lease, step: Commit) -> bool:
        now_us = to_us(self._clock())

        def change(connection: Connection) -> bool:
            match step:
                case Filing():
                    return midterm.file_pages(connection, self._space, step, now_us)
                case Learning():
                    return learning.store_learning(connection, step, self._options, now_us)
                case Vectors():
                    vector_table.set_vectors(connection, self._space, step)
                case Archived():
                    midterm.archive_segments(connection, step.segments)
                case Accepted():
                    midterm.accept_degraded(connection, step.pages)
            return True

        return await self._write_leased(lease, change)

    async def count_attempt(self, lease: Lease, *, pages: Sequence[int] = (), segment: int | None = None) -> int:
        def change(connection: Connection) -> int:
            if segment is not None:
                return midterm.count_segment_attempt(connection, segment)
            return midterm.count_page_attempt(connection, pages)

        return await self._write_leased(lease, change)

    async def mark_degraded(self, worker: str) -> int:
        return await self._database.write(midterm.mark_degraded, worker)

    async def add_usage(self, entry: UsageEntry) -> None:
        await self._database.write(usage.add, entry)

    async def usage(self, day: str | None) -> list[UsageEntry]:
        return await self._database.read(usage.of_day, day)

    async def usage_since(self, day: str) -> list[UsageEntry]:
        return await self._database.read(usage.since, day)

    async def note_failure(self, work: str, failure: Failure) -> None:
        sql = (
            "INSERT INTO failures (work, attempts, error, at_us) VALUES (?, ?, ?, ?) ON CONFLICT (work) DO UPDATE SET "
            "attempts = excluded.attempts, error = excluded.error, at_us = excluded.at_us"
        )
        row = (work, failure.attempts, failure.error, to_us(failure.at))
        await self._database.write(lambda connection: connection.execute(sql, row).fetchall())

    async def failures(self) -> dict[str, Failure]:
        rows = await self._database.rows("SELECT work, attempts, error, at_us FROM failures ORDER BY at_us DESC")
        return {work: Failure(attempts, error, from_us(at_us)) for work, attempts, error, at_us in rows}

    async def expire(
        self, lease: Lease, retention: timedelta, limit: int, receipt: str
    ) -> ForgetReceipt | datetime | None:
        now = self._clock()
        now_us, before_us = to_us(now), to_us(now - retention)
        reading = self._watch.observe(now_us)

        def change(connection: Connection) -> ForgetReceipt | datetime | None:
            old = forget_plans.pages_between(connection, None, before_us)[:limit]
            if not old:
                retention_checks.record_nothing_old(connection, now_us)
                return None
            if not retention_checks.may_forget(connection, before_us, now_us, reading):
                return retention_checks.waits_until(connection)
            return forgetting.forget(connection, ForgetPlan(runs=runs(old)), receipt, now_us)

        return await self._write_leased(lease, change)

    # Copying ---------------------------------------------------------------------------------------------------------

    async def fingerprint(self, tell: Callable[[int, int], None]) -> Fingerprint:
        return await self._database.read(lambda connection: copying.fingerprint(copying.Source(connection), tell))

    async def copy_to(self, target: Store, tell: Callable[[int, int], None]) -> Copy:
        assert isinstance(target, SqlStore)  # noqa: S101 - every implementation is an `SqlStore`
        if damaged := await self.damaged_pages():
            msg = f"{damage_message(damaged)}; the memory was not copied. To repair it, {DAMAGE_FIX}"
            raise DamagedStoreError(msg)
        for _ in range(COPY_ATTEMPTS):
            if (copied := await self._copied(target._database, tell)).outcome is not CopyOutcome.CHANGING:
                return copied
        return copied

    async def _copied(self, target: Database, tell: Callable[[int, int], None]) -> Copy:
        """Copy the memory to ``target``, and return the outcome. Undo the copy if another process changes the memory.

        The memory is read in one transaction and written in another. Each transaction runs in its own thread.
        """
        loop = asyncio.get_running_loop()

        def waited(work: Coroutine[Any, Any, T]) -> T:
            return asyncio.run_coroutine_threadsafe(work, loop).result()

        def read(source: Connection) -> Copy:
            try:
                return waited(target.write(write, source))
            except copying.SourceError as error:
                assert error.__cause__ is not None  # noqa: S101 - it always has a cause
                raise error.__cause__ from None
            except copying.ChangedError:
                return Copy(CopyOutcome.CHANGING)

        def write(connection: Connection, source_connection: Connection) -> Copy:
            source, found = copying.Source(source_connection), copying.Source(connection)
            if not copying.is_empty(found):
                there, here = copying.fingerprint(found, tell), copying.fingerprint(source, tell)
                return Copy(CopyOutcome.SAME, here) if there.is_copy_of(here) else Copy(CopyOutcome.OCCUPIED)
            before = copying.state(source)
            copied = copying.copy(source, connection, tell)
            if waited(self._database.read(lambda now: copying.state(copying.Source(now)))) != before:
                raise copying.ChangedError
            return Copy(CopyOutcome.COPIED, copied)

        return await self._database.read(read)

    # Helpers -------------------------------------------------------------------------------------------------------

    async def _write_leased(self, lease: Lease, change: Callable[[Connection], T]) -> T:
        now_us = to_us(self._clock())

        def checked(connection: Connection) -> T:
            leases.check_lease(connection, self._holder, lease, now_us)
            return change(connection)

        return await self._database.write(checked)

    async def _shared(self, seqs: Sequence[int], query: Callable[[Connection, Sequence[int]], T]) -> list[T]:
        """Run a query for the pages ``seqs``, and return a list of results.

        This implementation returns one result. A subclass may split ``seqs`` into parts, and return one result for each
        part.
        """
        return [await self._database.read(query, seqs)]
