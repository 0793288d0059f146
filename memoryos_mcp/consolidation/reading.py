"""Reading: what pages say is added to profile and knowledge.

The fallback reads each new page for knowledge at once, in milliseconds. An LLM reads it while filing it, in the same
call, and its facts replace those of the fallback. Heat matters only for the profile.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from anyio import to_thread

from memoryos_mcp.consolidation.corrections import Embed, counting_against, without_corrected
from memoryos_mcp.consolidation.page_vectors import with_vectors
from memoryos_mcp.consolidation.reconciling import reconcile
from memoryos_mcp.errors import MemoryOSError, ModelError
from memoryos_mcp.llm.analysis import Analyst, Surroundings
from memoryos_mcp.model.knowledge import NAME_SLOTS, CorrectedFact, Fact, KnowledgeChange, Lessons, speakers_of
from memoryos_mcp.model.pages import Page
from memoryos_mcp.model.profile import Trait
from memoryos_mcp.storage.interface import Store
from memoryos_mcp.storage.values import FactQuery, Learning, Lease, PageQuery
from memoryos_mcp.text.addressees import Speakers

logger = logging.getLogger(__name__)

PAGES_AT_ONCE = 200
COMMITS_TRIED = 5


@dataclass(frozen=True, slots=True)
class _Learned:
    """What pages taught.

    Attributes:
        traits: The profile that the lessons are based on.
        corrected: The corrections that the reader knew, and so did not contradict.
    """

    lessons: Lessons
    traits: Sequence[Trait]
    corrected: Sequence[CorrectedFact] = ()


@dataclass(frozen=True, slots=True)
class _Asked:
    """Pages with what they taught.

    Attributes:
        segments: The segments of the pages; empty if they were read only for knowledge.
        pages: In order of arrival.
        is_reading: Whether they were read for knowledge.
    """

    segments: Sequence[int]
    pages: Sequence[Page]
    reader: Analyst
    is_reading: bool
    learned: _Learned


class Reading:
    """Reads pages, and fits their lessons to what is known when they are written.

    Args:
        fallback: Reads each page first; never fails.
        embed: Used to compare facts by meaning; None compares their words.
    """

    def __init__(self, store: Store, analyst: Analyst, fallback: Analyst, embed: Embed | None = None) -> None:
        self._store = store
        self._analyst = analyst
        self._fallback = fallback
        self._embed = embed
        # Readings may end at the same time, and each commit changes what the next is fitted to.
        self._committing = asyncio.Lock()

    async def has_work(self) -> bool:
        """Whether any page is still unread."""
        return bool(await self._store.pages(PageQuery(is_unread=True, limit=1)))

    async def step(self, lease: Lease) -> bool:
        """Read the oldest unread pages for knowledge; return whether there may be more."""
        async with self._committing:  # so that no page is read twice
            pages = await self._store.pages(PageQuery(is_unread=True, limit=PAGES_AT_ONCE))
            if pages:
                await self._commit(lease, await self._read_first(lease, pages))
        return bool(pages)

    async def _read_first(self, lease: Lease, pages: Sequence[Page]) -> _Asked:
        """Return what the fallback learns from pages, or from the first of them if one cannot be read.

        A page that cannot be read teaches nothing, and must not keep the others from being read.
        """
        try:
            return await self._asked(lease, (), pages, self._fallback)
        except MemoryOSError:
            raise
        except Exception as error:  # noqa: BLE001 - no failure may hold up the other pages
            if len(pages) > 1:
                return await self._read_first(lease, pages[: len(pages) // 2])
            logger.error("page %s cannot be read for knowledge: %s", pages[0].page_id, type(error).__name__)  # noqa: TRY400 - a traceback may quote the page
            return _Asked((), pages, self._fallback, is_reading=True, learned=_Learned(Lessons((), ()), ()))

    def portion(self, pages: Sequence[Page]) -> list[Page]:
        """Return the first pages for one call of the analyst: all of them already read for knowledge, or none."""
        alike = list(takewhile(lambda page: self._is_known(page) == self._is_known(pages[0]), pages))
        return alike[: min(PAGES_AT_ONCE, self._analyst.portion(alike))]

    async def known_at(self, pages: Sequence[Page], forget_epoch: int) -> Surroundings:
        """Return what is known when the analyst reads pages, without facts that began after them.

        Args:
            pages: In order of arrival, at least one.
            forget_epoch: The epoch at which they were read.
        """
        facts = await self._facts(self._analyst, pages)
        return Surroundings(
            facts=[fact for fact in facts if fact.valid_from <= pages[-1].occurred_at],
            corrected=counting_against(await self._store.corrected_facts(), pages[-1].seq),
            speakers=await self._speakers(),
            forget_epoch=forget_epoch,
        )

    async def read(self, lease: Lease, segments: Sequence[int], pages: Sequence[Page], reader: Analyst) -> None:
        """Learn from pages and commit. Lessons are fitted to what was written meanwhile, or else learned again.

        Pages that teach nothing about the user, because they were fetched or contain orders, are not shown to the
        reader. They count as read.

        Args:
            lease: The right to write.
            segments: The segments of the pages, which are then also read for the profile; empty for knowledge only.
            pages: At least one; those of segments are a `portion`.
            reader: The analyst or the fallback.

        Raises:
            ModelError: The reader gave no answer, or profile and knowledge kept changing.
        """
        asked = await self._asked(lease, segments, pages, reader)
        async with self._committing:
            await self._commit(lease, asked)

    async def keep(self, lease: Lease, pages: Sequence[Page], knowledge: Sequence[KnowledgeChange]) -> None:
        """Commit the knowledge that the analyst found in pages while filing them.

        Raises:
            ModelError: Knowledge kept changing.
        """
        told = _Asked((), pages, self._analyst, is_reading=True, learned=_Learned(Lessons((), tuple(knowledge)), ()))
        async with self._committing:
            await self._commit(lease, told)

    async def _asked(self, lease: Lease, segments: Sequence[int], pages: Sequence[Page], reader: Analyst) -> _Asked:
        is_reading = not segments or not self._is_known(pages[0])
        learned = await self._learned(lease, pages, reader, is_reading=is_reading)
        return _Asked(segments, pages, reader, is_reading, learned)

    async def _commit(self, lease: Lease, asked: _Asked) -> None:
        """Commit the lessons; the caller holds the lock, so no other reading commits meanwhile."""
        learned, reader = asked.learned, asked.reader
        for _ in range(COMMITS_TRIED):
            traits = await self._store.traits()
            corrected = await self._store.corrected_facts()
            said = {page.seq: page.occurred_at for page in asked.pages}
            facts = await self._facts(reader, asked.pages)
            lessons = await to_thread.run_sync(reconcile, learned.lessons, learned.traits, traits, facts, said)
            if lessons is None or not set(learned.corrected) <= set(corrected):  # a correction was undone
                learned = await self._learned(lease, asked.pages, reader, is_reading=asked.is_reading)
                continue
            lessons = await without_corrected(lessons, corrected, self._embed)
            if not asked.segments:
                lessons = replace(lessons, traits=())
            learning = Learning(
                segments=asked.segments,
                pages=[page.seq for page in asked.pages],
                lessons=lessons,
                traits=traits,
                learner=reader.name,
                corrections=corrected,
                is_degraded=bool(asked.segments) and reader is not self._analyst,
                replaces=None if reader.name == self._fallback.name else self._fallback.name,
                is_reading=asked.is_reading,
            )
            if await self._store.commit(lease, learning):
                return
        msg = "profile and knowledge changed under every attempt to add to them; it is tried again"
        raise ModelError(msg)

    async def _learned(self, lease: Lease, pages: Sequence[Page], reader: Analyst, *, is_reading: bool) -> _Learned:
        traits = await self._store.traits()
        views = await with_vectors(self._store, [page for page in pages if page.teaches])
        if not views:
            return _Learned(Lessons((), ()), traits)
        around = Surroundings(traits=traits, is_read=not is_reading, forget_epoch=lease.forget_epoch)
        if is_reading:
            corrected = counting_against(await self._store.corrected_facts(), views[-1].seq)
            around = replace(around, facts=await self._facts(reader, pages), corrected=corrected)
        return _Learned(await reader.learn(views, around), traits, around.corrected)

    async def _speakers(self) -> Speakers:
        """Return the names of both sides: as they state them, else as they address each other."""
        slots = {slot for _, slot in NAME_SLOTS}
        stated = speakers_of(await self._store.facts(FactQuery(slots=slots)))
        stats = (await self._store.search_words((), (), 0)).stats
        return Speakers(user=stated.user or stats.user_called, agent=stated.agent or stats.agent_called)

    async def _all_facts(self) -> list[Fact]:
        return await self._store.facts(FactQuery())

    async def _facts(self, reader: Analyst, pages: Sequence[Page]) -> list[Fact]:
        """Return the facts known to a reader of pages; an analyst is not shown what the fallback quotes from them."""
        if reader is self._fallback:
            return await self._all_facts()
        return await self._store.facts(FactQuery(without=(self._fallback.name, pages[0].seq)))

    def _is_known(self, page: Page) -> bool:
        """Whether a page was read for knowledge as well as the analyst can do it."""
        return page.read_by is not None and (page.read_by != self._fallback.name or self._analyst is self._fallback)
