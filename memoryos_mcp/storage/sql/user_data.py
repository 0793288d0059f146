"""The implementation of `UserData` on a SQL database."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import TypeVar

from memoryos_mcp.model.forgotten import ForgetCounts, ForgetPlan, ForgetReceipt, Sample
from memoryos_mcp.model.ids import MemoryId
from memoryos_mcp.model.knowledge import AddFact
from memoryos_mcp.model.pages import Tier
from memoryos_mcp.model.records import Record
from memoryos_mcp.model.segments import Digest
from memoryos_mcp.model.views import Learned, ListEntry, ListRequest, MemoryView, Place, SegmentPages
from memoryos_mcp.storage.sql import (
    export,
    forget_plans,
    forgetting,
    import_,
    inspection,
    listing,
    longterm,
    page_table,
)
from memoryos_mcp.storage.sql.connection import Connection, Database
from memoryos_mcp.storage.sql.correcting import Correcting
from memoryos_mcp.storage.sql.moments import offset_s, to_us
from memoryos_mcp.storage.values import (
    ARCHIVED,
    Corrected,
    Correction,
    LongTerm,
    MissingSummaries,
    PageBatch,
    StoreOptions,
    SummaryCursor,
)

T = TypeVar("T")


class SqlUserData:
    """Inspects, corrects, exports, imports and forgets the memory of one user in a SQL database.

    Implements `UserData`.
    """

    def __init__(self, database: Database, options: StoreOptions, clock: Callable[[], datetime], space: int) -> None:
        self._database = database
        self._options = options
        self._clock = clock
        self._space = space

    # Inspecting and correcting -------------------------------------------------------------------------------------

    async def look(self, ids: Sequence[MemoryId]) -> list[MemoryView | None]:
        now_us, assistant_id = to_us(self._clock()), self._options.assistant_id

        def query(connection: Connection) -> list[MemoryView | None]:
            return [
                inspection.look(connection, each, space=self._space, assistant_id=assistant_id, now_us=now_us)
                for each in ids
            ]

        return await self._database.read(query)

    async def learned_from(self, page_id: str) -> Learned:
        return await self._database.read(
            inspection.learned_from, page_id, space=self._space, assistant_id=self._options.assistant_id
        )

    async def listed(self, request: ListRequest, place: Place | None, limit: int) -> list[ListEntry]:
        now_us, owner = to_us(self._clock()), self._options.assistant_id
        return await self._database.read(listing.list_memories, request, place, limit, owner=owner, now_us=now_us)

    async def page_counts(self, request: ListRequest, starts: Sequence[datetime]) -> list[int]:
        return await self._database.read(listing.count_pages, request, [to_us(start) for start in starts])

    async def segment_pages(self, segment: int, chains: int) -> SegmentPages:
        return await self._database.read(inspection.segment_pages, segment, chains)

    async def past_traits(self) -> list[str]:
        return await self._database.read(longterm.past_dimensions)

    async def text_bytes(self) -> dict[Tier, int]:
        sql = "SELECT tier, sum(octet_length(user_input) + octet_length(agent_response)) FROM pages GROUP BY tier"
        return dict.fromkeys(Tier, 0) | {Tier(tier): size for tier, size in await self._database.rows(sql)}

    async def correct(self, what: MemoryId, correction: Correction, *, is_dry_run: bool) -> Corrected:
        now = self._clock()

        def change(connection: Connection) -> Corrected:
            correcting = Correcting(connection, self._options.assistant_id, to_us(now), offset_s(now))
            return (correcting.dry_run if is_dry_run else correcting.correct)(what, correction)

        return await self._database.write(change)

    # Exporting and importing ---------------------------------------------------------------------------------------

    async def export_records(self, take: Callable[[Iterator[Record]], T], project: str | None = None) -> T:
        if project is not None:
            return await self._database.read(lambda connection: take(export.project_records(connection, project)))
        return await self._database.read(lambda connection: take(export.records(connection)))

    async def count_existing_pages(self, names: Sequence[tuple[str | None, str | None]]) -> int:
        return await self._database.read(
            lambda connection: sum(import_.known_page(connection, *name) is not None for name in names)
        )

    async def import_pages(self, batch: PageBatch) -> dict[str, str]:
        return await self._database.write(import_.add_pages, batch)

    async def import_long_term(self, long_term: LongTerm) -> Counter[str]:
        def change(connection: Connection) -> Counter[str]:
            new = import_.add_long_term(connection, long_term)
            page_table.overflow(connection, self._options.short_term_capacity)
            now_us = to_us(self._clock())
            new[ARCHIVED] = longterm.archive_facts(connection, self._options.knowledge_capacity, now_us)
            return new

        return await self._database.write(change)

    async def import_facts(self, facts: Sequence[AddFact], learner: str) -> Counter[str]:
        capacity, now_us = self._options.knowledge_capacity, to_us(self._clock())
        return await self._database.write(longterm.import_facts, facts, learner, self._options.owner, capacity, now_us)

    # Forgetting ----------------------------------------------------------------------------------------------------

    async def plan(self, ids: Sequence[MemoryId] | None) -> ForgetPlan:
        return await self._database.read(
            forget_plans.everything if ids is None else lambda connection: forget_plans.named(connection, ids)
        )

    async def pages_between(
        self, after: datetime | None, before: datetime | None, project: str | None = None
    ) -> list[int]:
        after_us, before_us = (None if moment is None else to_us(moment) for moment in (after, before))
        return await self._database.read(forget_plans.pages_between, after_us, before_us, project)

    async def stored_plan(self, handle: str) -> ForgetPlan | None:
        now_us = to_us(self._clock())
        return await self._database.read(forget_plans.stored_plan, handle, now_us)

    async def plan_forgetting(
        self, plan: ForgetPlan, handle: str, expires_at: datetime
    ) -> tuple[ForgetCounts, list[Sample], list[Sample]]:
        def change(connection: Connection) -> tuple[ForgetCounts, list[Sample], list[Sample]]:
            counts, derived = forgetting.dry_run(connection, plan)
            forget_plans.store_plan(connection, plan, handle, to_us(self._clock()), to_us(expires_at))
            return counts, forget_plans.samples(connection, plan), derived

        return await self._database.write(change)

    async def forget(self, handle: str) -> ForgetReceipt | None:
        now_us = to_us(self._clock())
        return await self._database.write(forgetting.confirm, handle, now_us)

    async def forget_receipts(self) -> list[ForgetReceipt]:
        return await self._database.read(forget_plans.receipts)

    async def kept_copies(self) -> list[str]:
        return []

    async def remove_kept_copies(self) -> None:
        pass

    async def unpurged(self) -> list[str]:
        return await self._database.read(forget_plans.unpurged)

    async def missing_summaries(self, after: SummaryCursor, limit: int) -> MissingSummaries:
        return await self._database.read(forgetting.missing_summaries, after, limit)

    async def set_summaries(self, missing: MissingSummaries, digests: Sequence[Digest], summariser: str) -> bool:
        return await self._database.write(forgetting.set_summaries, missing, digests, summariser)

    async def purge(self) -> bool:
        receipts = await self.unpurged()
        # The index is merged in one step: a merge in several steps would never finish while pages are being added.
        await self._database.write(lambda connection: connection.words.optimise())
        if not await self._database.purge():
            return False
        await self._database.write(forget_plans.mark_purged, receipts)
        return True
