"""A cache in RAM for each user, with the data that every query needs.

Other processes can change the store, so each refresh applies all changes since the previous refresh.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from anyio import to_thread

from memoryos_mcp.model.knowledge import About, Fact
from memoryos_mcp.model.profile import Trait
from memoryos_mcp.retrieval.fact_ranking import FactTable
from memoryos_mcp.retrieval.page_index import PageIndex
from memoryos_mcp.storage.interface import Store
from memoryos_mcp.storage.values import EvidenceProjects, FactQuery

CHANGES_AT_ONCE = 1_000
# A table of fewer facts is made without a thread, because handing the work over takes longer.
FACTS_AT_ONCE = 20
ALL_FACTS = FactQuery(with_archived=True)


class MemoryCache:
    """One user's facts, traits and page vectors in RAM. Safe to share between tasks."""

    def __init__(self, store: Store, index: PageIndex) -> None:
        self.index = index
        self.facts: Mapping[About, FactTable] = {about: FactTable() for about in About}
        self.traits: Sequence[Trait] = ()
        self._store = store
        self._projects: EvidenceProjects | None = None
        self._position: int | None = None
        self._lock = asyncio.Lock()

    async def load_index(self, give_way: Callable[[], Awaitable[None]]) -> None:
        """Fill the vector index from the store, unless it is filled already.

        Until this call has finished, queries use only keywords. ``give_way`` is awaited before each block of vectors,
        so that queries can run first.
        """
        if self.index.is_loaded:
            return
        await give_way()
        contents = await self._store.contents(self.index.first_windows)
        before = await self.index.load(contents.position, contents.vectors, give_way)
        async with self._lock:
            if self._position is None:
                await self._use_longterm(contents.traits, contents.facts)
            # The next refresh applies the changes made during the load a second time, which is harmless.
            self._position = before if self._position is None else min(before, self._position)

    async def refresh(self) -> None:
        """Update the cache with all changes that any process has made to the store since the last refresh."""
        async with self._lock:
            if self._position is None:
                contents = await self._store.contents(0)
                await self._use_longterm(contents.traits, contents.facts)
                self._position = contents.position
            is_complete = False
            while not is_complete:
                changes = await self._store.changes(self._position, CHANGES_AT_ONCE)
                await self.index.apply(changes.pages, changes.position)
                if changes.is_longterm:
                    await self._use_longterm(await self._store.traits(), await self._store.facts(ALL_FACTS))
                self._position, is_complete = changes.position, changes.is_complete

    async def evidence_projects(self) -> EvidenceProjects:
        """Return, for each fact and trait, the projects of the pages that support it."""
        async with self._lock:
            if self._projects is None:
                self._projects = await self._store.evidence_projects()
            return self._projects

    async def _use_longterm(self, traits: Sequence[Trait], facts: Sequence[Fact]) -> None:
        def make() -> dict[About, FactTable]:
            return {about: FactTable([fact for fact in facts if fact.about is about]) for about in About}

        self._projects, self.traits = None, traits
        self.facts = make() if len(facts) <= FACTS_AT_ONCE else await to_thread.run_sync(make)
