"""Reading: extracts facts and traits (lessons) from pages, and adds them to knowledge and profile.

The fallback extracts facts from each new page within milliseconds. Later, one LLM call assigns the page to a chain and
a segment, and extracts facts from the page. The LLM's facts replace the fallback's. Traits are extracted last, from hot
segments (see `promotion`).
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from anyio import to_thread

from memoryos_mcp.consolidation.corrections import Embed, corrections_after, without_corrected
from memoryos_mcp.consolidation.page_vectors import with_vectors
from memoryos_mcp.consolidation.reconciling import reconcile
from memoryos_mcp.errors import MemoryOSError, ModelError
from memoryos_mcp.llm.analysis import Analyst, Surroundings
from memoryos_mcp.model.knowledge import (
    NAME_SLOTS,
    AddFact,
    CorrectedFact,
    Fact,
    Kind,
    KnowledgeChange,
    Lessons,
    speakers_of,
)
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
    """The lessons (facts and traits) from some pages, and the state of the memory in which they were extracted.

    Attributes:
        lessons: The changes to facts and traits that were extracted.
        traits: All traits of the profile just before the extraction. May be empty if ``lessons`` changes no traits.
        corrected: The user's corrections that were shown to the LLM or the fallback for the extraction.
    """

    lessons: Lessons
    traits: Sequence[Trait]
    corrected: Sequence[CorrectedFact] = ()


@dataclass(frozen=True, slots=True)
class _ReadPages:
    """Pages that were read, with the lessons (facts and traits) from them.

    Attributes:
        segments: The segments of the pages, or empty if only facts were extracted.
        pages: The pages, in order of arrival.
        reader: The analyst that read the pages; it may be the fallback.
        is_reading: Whether facts were extracted. If it is False, only traits were extracted.
        learned: The lessons from the pages.
    """

    segments: Sequence[int]
    pages: Sequence[Page]
    reader: Analyst
    is_reading: bool
    learned: _Learned


class Reading:
    """Extracts facts and traits (lessons) from pages, reconciles them with the current memory, and commits them.

    Args:
        store: The user's memory.
        analyst: The LLM, or the fallback if there is no LLM.
        fallback: Extracts facts from each page before the analyst does.
        embed: Returns the vectors by which facts are compared. If it is None, facts are compared by their words.
    """

    def __init__(self, store: Store, analyst: Analyst, fallback: Analyst, embed: Embed | None = None) -> None:
        self._store = store
        self._analyst = analyst
        self._fallback = fallback
        self._embed = embed
        # Pages are read in parallel, and each commit changes the state with which the next lessons are reconciled.
        self._committing = asyncio.Lock()

    async def has_work(self) -> bool:
        """Return whether there are pages from which no facts have been extracted yet."""
        return bool(await self._store.pages(PageQuery(is_unread=True, limit=1)))

    async def step(self, lease: Lease) -> bool:
        """Extract facts from the oldest unread pages. Return whether to call again."""
        async with self._committing:  # otherwise two steps could read the same page
            pages = await self._store.pages(PageQuery(is_unread=True, limit=PAGES_AT_ONCE))
            if pages:
                pages = list(takewhile(lambda page: page.project == pages[0].project, pages))
                await self._commit(lease, await self._extract_first(lease, pages))
        return bool(pages)

    async def _extract_first(self, lease: Lease, pages: Sequence[Page]) -> _ReadPages:
        """Return the pages, with the lessons (facts and traits) that the fallback (without an LLM) extracts from them.

        If the fallback fails, it gets only the first half of the pages, then the first half of these, and so on. The
        result contains only the pages of the last attempt. If the fallback fails on the first page alone, log the
        failure and return this page without lessons.
        """
        try:
            return await self._extract(lease, (), pages, self._fallback)
        except MemoryOSError:
            raise
        except Exception as error:  # noqa: BLE001 - one unreadable page must not block the others
            if len(pages) > 1:
                return await self._extract_first(lease, pages[: len(pages) // 2])
            logger.error(  # noqa: TRY400 - a traceback may quote the page
                "no facts were extracted from page %s because of %s; search still finds the page",
                pages[0].page_id,
                type(error).__name__,
            )
            return _ReadPages((), pages, self._fallback, is_reading=True, learned=_Learned(Lessons((), ()), ()))

    def portion(self, pages: Sequence[Page]) -> list[Page]:
        """Return the first pages that together fit into one call to the analyst.

        The returned pages are of one project. The analyst has already extracted facts from all of them, or from none.
        """
        first = self._has_facts(pages[0]), pages[0].project
        alike = list(takewhile(lambda page: (self._has_facts(page), page.project) == first, pages))
        return alike[: min(PAGES_AT_ONCE, self._analyst.portion(alike))]

    async def known_at(self, pages: Sequence[Page], forget_epoch: int) -> Surroundings:
        """Return the context in which the analyst reads pages.

        The context contains the names of the speakers, and the corrections made after the last page was stored. It also
        contains the facts that became valid at the time of the last page or earlier.

        Args:
            pages: The pages, at least one.
            forget_epoch: The number of deletions when the pages were read. With it, an LLM client detects later
                deletions.
        """
        facts = await self._facts(self._analyst, pages)
        return Surroundings(
            facts=[fact for fact in facts if fact.valid_from <= pages[-1].occurred_at],
            corrected=corrections_after(await self._store.corrected_facts(), pages[-1].seq),
            speakers=await self._speakers(),
            forget_epoch=forget_epoch,
        )

    async def read(self, lease: Lease, segments: Sequence[int], pages: Sequence[Page], reader: Analyst) -> None:
        """Extract facts and traits (lessons) from pages, and commit them.

        The lessons are reconciled with everything that was committed since the pages were read. Pages from which
        nothing may be learned, such as documents, are not shown to ``reader``, but are marked as read. `Page.teaches`
        is False for these pages.

        Args:
            lease: The lease, which allows this process to write.
            segments: The segments of the pages, if traits are extracted. If it is empty, only facts are extracted.
            pages: The pages, at least one. If ``segments`` is not empty, pass a list that `portion` returned.
            reader: The analyst, or the fallback that needs no LLM.

        Raises:
            ModelError: The reader gave no answer, or profile and knowledge changed during every attempt to commit.
        """
        read = await self._extract(lease, segments, pages, reader)
        async with self._committing:
            await self._commit(lease, read)

    async def keep(self, lease: Lease, pages: Sequence[Page], knowledge: Sequence[KnowledgeChange]) -> None:
        """Commit facts that the analyst has already extracted from the pages while it organised them.

        Raises:
            ModelError: The profile or the facts changed during every attempt to commit.
        """
        learned = _Learned(Lessons((), tuple(knowledge)), ())
        async with self._committing:
            await self._commit(lease, _ReadPages((), pages, self._analyst, is_reading=True, learned=learned))

    async def _extract(
        self, lease: Lease, segments: Sequence[int], pages: Sequence[Page], reader: Analyst
    ) -> _ReadPages:
        is_reading = not segments or not self._has_facts(pages[0])
        learned = await self._learned(lease, pages, reader, is_reading=is_reading)
        return _ReadPages(segments, pages, reader, is_reading, learned)

    async def _commit(self, lease: Lease, read: _ReadPages) -> None:
        """Commit the facts and traits of ``read``. The caller must hold the lock ``_committing``."""
        learned, reader = read.learned, read.reader
        for _ in range(COMMITS_TRIED):
            traits = await self._store.traits()
            corrected = await self._store.corrected_facts()
            said = {page.seq: page.occurred_at for page in read.pages}
            facts = await self._facts(reader, read.pages)
            kept = await self._kept(facts, read.pages)
            own = _in_project(learned.lessons, read.pages[0].project)
            lessons = await to_thread.run_sync(reconcile, own, learned.traits, traits, facts, said, kept)
            if lessons is None or not set(learned.corrected) <= set(corrected):  # a correction was undone
                learned = await self._learned(lease, read.pages, reader, is_reading=read.is_reading)
                continue
            lessons = await without_corrected(lessons, corrected, self._embed)
            if not read.segments:
                lessons = replace(lessons, traits=())
            learning = Learning(
                segments=read.segments,
                pages=[page.seq for page in read.pages],
                lessons=lessons,
                traits=traits,
                learner=reader.name,
                corrections=corrected,
                is_degraded=bool(read.segments) and reader is not self._analyst,
                replaces=None if reader.name == self._fallback.name else self._fallback.name,
                is_reading=read.is_reading,
            )
            if await self._store.commit(lease, learning):
                return
        msg = "profile and knowledge changed during every attempt to update them; another attempt will follow"
        raise ModelError(msg)

    async def _kept(self, facts: Sequence[Fact], pages: Sequence[Page]) -> frozenset[int]:
        """Return the numbers of the wishes that ``pages`` must not supersede.

        Pages of a project may supersede only wishes that were stated in this project alone. Pages without a project may
        supersede every wish.
        """
        project = pages[0].project
        if project is None:
            return frozenset()
        projects = (await self._store.evidence_projects()).facts
        wishes = [fact.fact for fact in facts if fact.kind is Kind.WISH]
        return frozenset(wish for wish in wishes if set(projects.get(wish, ())) != {project})

    async def _learned(self, lease: Lease, pages: Sequence[Page], reader: Analyst, *, is_reading: bool) -> _Learned:
        traits = await self._store.traits()
        views = await with_vectors(self._store, [page for page in pages if page.teaches])
        if not views:
            return _Learned(Lessons((), ()), traits)
        around = Surroundings(traits=traits, is_read=not is_reading, forget_epoch=lease.forget_epoch)
        if is_reading:
            corrected = corrections_after(await self._store.corrected_facts(), views[-1].seq)
            around = replace(around, facts=await self._facts(reader, pages), corrected=corrected)
        return _Learned(await reader.learn(views, around), traits, around.corrected)

    async def _speakers(self) -> Speakers:
        """Return the names of the user and the assistant.

        These are the names that they have stated, or else the names by which they call each other.
        """
        slots = {slot for _, slot in NAME_SLOTS}
        stated = speakers_of(await self._store.facts(FactQuery(slots=slots)))
        stats = (await self._store.search_words((), (), 0)).stats
        return Speakers(user=stated.user or stats.user_called, agent=stated.agent or stats.agent_called)

    async def _facts(self, reader: Analyst, pages: Sequence[Page]) -> list[Fact]:
        """Return the stored facts that are shown to ``reader`` before it reads ``pages``.

        The fallback (without an LLM) is shown all facts. Any other analyst is not shown the facts that the
        fallback extracted from ``pages`` or later pages.
        """
        if reader is self._fallback:
            return await self._store.facts(FactQuery())
        return await self._store.facts(FactQuery(without=(self._fallback.name, pages[0].seq)))

    def _has_facts(self, page: Page) -> bool:
        return page.read_by is not None and (page.read_by != self._fallback.name or self._analyst is self._fallback)


def _in_project(lessons: Lessons, project: str | None) -> Lessons:
    """Return the lessons, with each wish about a property (slot) limited to ``project``, if this is not None.

    For this, the project's name is added to the slot. So wishes in different projects do not supersede each other.
    """
    if project is None:
        return lessons
    return replace(lessons, knowledge=tuple(_own_wish(change, project) for change in lessons.knowledge))


def _own_wish(change: KnowledgeChange, project: str) -> KnowledgeChange:
    if not isinstance(change, AddFact) or change.kind is not Kind.WISH or change.slot is None:
        return change
    return replace(change, slot=f"{change.slot} in {project}")
