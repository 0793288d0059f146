"""While the analyst fails, pages wait, the fallback replaces it, and its work is redone later."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from memoryos_mcp.config import Settings
from memoryos_mcp.consolidation import loops, worker
from memoryos_mcp.consolidation.fallback import ATTEMPTS_BEFORE_FALLBACK
from memoryos_mcp.consolidation.organising import BatchRule, Organising
from memoryos_mcp.consolidation.promotion import Promotion
from memoryos_mcp.consolidation.reading import Reading
from memoryos_mcp.engine.engine import MemoryEngine
from memoryos_mcp.engine.service import MemoryService
from memoryos_mcp.errors import BudgetSpentError, ModelError, ReplyFormatError
from memoryos_mcp.llm.analysis import Analyst, Organised, Run, Surroundings, Topic
from memoryos_mcp.llm.extractive import ExtractiveAnalyst
from memoryos_mcp.model.heat import HeatWeights
from memoryos_mcp.model.knowledge import About, AddFact, Lessons
from memoryos_mcp.model.pages import Page, Tier, Turn
from memoryos_mcp.model.profile import Level, TraitChange
from memoryos_mcp.model.segments import Digest, Segment
from memoryos_mcp.storage.sql.store import SqlStore
from memoryos_mcp.storage.values import FactQuery, Lease, PageQuery
from tests.fakes import START, Clock, ScriptedAnalyst, WordEmbedder
from tests.stores import rows
from tests.test_store import lease_of, opened
from tests.test_store_redo import assert_counts_agree

pytestmark = pytest.mark.both_stores(in_campaign=True)

LIMIT_S = 60
BATCH = 4
ONE_TO_FOUR, FIVE_TO_EIGHT, NINE_TO_TWELVE = [1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]
DOWN = ModelError("the LLM is down")
SPENT = BudgetSpentError("the day's tokens are spent")
GARBLED = ReplyFormatError("the LLM sent two replies that could not be used")


class Llm(ScriptedAnalyst):
    """Learns one fact of its own wording from each page; fails on the pages in ``fails_on``."""

    def __init__(self) -> None:
        super().__init__()
        self.fails_on: set[int] = set()
        self.fails_with: ModelError = DOWN
        self.reading_failure: ModelError | None = None
        self.is_asked = asyncio.Event()

    async def organise(self, batch: Sequence[Page], around: Surroundings) -> Organised:
        self.is_asked.set()
        organised = await super().organise(batch, around)
        self._check(batch)
        return organised

    async def learn(self, pages: Sequence[Page], around: Surroundings) -> Lessons:
        await super().learn(pages, around)
        if self.reading_failure is not None:
            raise self.reading_failure
        self._check(pages)
        facts_told = (
            AddFact(About.USER, told_of(page.user_input), None, page.occurred_at, (page.seq,)) for page in pages
        )
        return Lessons(traits=(), knowledge=tuple(facts_told))

    def _check(self, pages: Sequence[Page]) -> None:
        if self.fails_on & {view.seq for view in pages}:
            raise self.fails_with


class CountingFallback(ExtractiveAnalyst):
    """The fallback; records the pages of each call."""

    def __init__(self) -> None:
        super().__init__()
        self.organised: list[list[int]] = []
        self.learned: list[list[int]] = []

    async def organise(self, batch: Sequence[Page], around: Surroundings) -> Organised:
        self.organised.append([view.seq for view in batch])
        return await super().organise(batch, around)

    async def learn(self, pages: Sequence[Page], around: Surroundings) -> Lessons:
        self.learned.append([view.seq for view in pages])
        return await super().learn(pages, around)


def said(number: int) -> str:
    return f"I am allergic to food{number}. My pottery class glazed bowl {number} in the kiln."


def quoted(number: int) -> str:
    """Return the fact that the fallback learns from `said`."""
    return f"I am allergic to food{number}."


def told_of(user_input: str) -> str:
    return f"The user cannot eat {user_input.split('.')[0].split()[-1]}"


def told(start: int, stop: int) -> set[str]:
    return {told_of(said(number)) for number in range(start, stop)}


def turns(start: int, stop: int) -> list[Turn]:
    return [Turn(said(number), "I see.", START) for number in range(start, stop)]


@dataclass(frozen=True, slots=True)
class Bench:
    """The steps of consolidation on a real store, without background loops."""

    store: SqlStore
    lease: Lease
    llm: Llm
    fallback: CountingFallback
    organising: Organising
    promotion: Promotion

    async def organise(self) -> bool:
        return await self.organising.step(self.lease, needs_vectors=False)

    async def fail_to_organise(self, times: int = 1) -> None:
        for _ in range(times):
            with pytest.raises(ModelError):
                await self.organise()

    async def organise_all(self) -> None:
        while await self.organise():
            pass

    async def redo(self) -> bool:
        return await self.organising.redo(self.lease) or await self.promotion.redo(self.lease)

    async def fail_to_redo(self, times: int = 1) -> None:
        for _ in range(times):
            with pytest.raises(ModelError):
                await self.redo()

    async def redo_all(self) -> None:
        while await self.redo():
            pass

    async def promote_all(self) -> None:
        while await self.promotion.has_work(await self.store.due_work()):
            await self.promotion.step(self.lease)

    def restarted(self) -> Organising:
        """Return a new `Organising` for the same store, as after a restart."""
        return organising(self.store, self.llm, self.fallback)

    async def have_fallback_file(self) -> None:
        """Organise all pages while the analyst fails; the failure stays set."""
        self.llm.failure = SPENT
        await self.organise_all()

    async def have_fallback_read(self) -> None:
        """Read all hot segments while the analyst fails; the failure stays set."""
        self.llm.failure = SPENT
        await self.promotion.step(self.lease)

    async def backlog(self) -> list[int]:
        return [page.seq for page in await self.store.pages(PageQuery(tier=Tier.BACKLOG, limit=99))]

    async def degraded(self) -> list[int]:
        query = PageQuery(is_degraded=True, organised_by="extractive", after_seq=0, limit=99)
        return [page.seq for page in await self.store.pages(query)]

    async def facts(self) -> list[str]:
        return [fact.text for fact in await self.store.facts(FactQuery(About.USER))]


def organising(store: SqlStore, llm: Analyst, fallback: Analyst) -> Organising:
    rule = BatchRule(pages=BATCH, idle=timedelta(0))
    reading = Reading(store, llm, fallback)
    return Organising(store, llm, fallback, rule=rule, similarity_threshold=0.6, clock=Clock(), reading=reading)


@asynccontextmanager
async def bench(folder: Path, pages: int, *, llm: Llm | None = None) -> AsyncIterator[Bench]:
    """Open a store with pages 1 to n in the backlog."""
    clock = Clock()
    llm, fallback = llm or Llm(), CountingFallback()
    async with asyncio.timeout(LIMIT_S), opened(folder, clock=clock, short_term_capacity=0, space=None) as store:
        await store.add_pages(turns(1, pages + 1))
        promotion = Promotion(
            store,
            llm,
            fallback,
            heat_threshold=1.0,
            weights=HeatWeights(),
            capacity_segments=99,
            clock=clock,
            reading=Reading(store, llm, fallback),
        )
        yield Bench(store, await lease_of(store), llm, fallback, organising(store, llm, fallback), promotion)


def workers(folder: Path, column: str) -> list[str | None]:
    return [name for (name,) in rows(folder, f"SELECT {column} FROM pages ORDER BY seq")]  # noqa: S608 - literals


def attempts(folder: Path) -> list[int]:
    return [count for (count,) in rows(folder, "SELECT attempts FROM pages ORDER BY seq")]


# Organising


async def test_pages_stay_in_the_backlog_while_the_analyst_fails(tmp_path: Path) -> None:
    async with bench(tmp_path, 6) as at:
        at.llm.failure = DOWN
        await at.fail_to_organise(2)
        counts = await at.store.counts()
        assert (counts.backlog, counts.segments, counts.chains, counts.degraded) == (6, 0, 0, 0)
        assert attempts(tmp_path) == [2] * 6
        at.llm.failure = None
        await at.organise_all()
        assert workers(tmp_path, "organised_by") == ["scripted"] * 6
        assert attempts(tmp_path) == [0] * 6
        assert at.fallback.organised == []
        assert_counts_agree(tmp_path)


async def test_after_five_failures_the_fallback_files_a_batch(tmp_path: Path) -> None:
    assert ATTEMPTS_BEFORE_FALLBACK == 5
    async with bench(tmp_path, 4) as at:
        at.llm.failure = DOWN
        await at.fail_to_organise(4)
        assert ((await at.store.counts()).backlog, at.fallback.organised) == (4, [])
        assert await at.organise()
        assert at.fallback.organised == [ONE_TO_FOUR]
        assert await at.degraded() == ONE_TO_FOUR
        counts = await at.store.counts()
        assert (counts.backlog, counts.degraded) == (0, 4)
        assert attempts(tmp_path) == [0] * 4
        assert {segment.summariser for segment in await at.store.segments()} == {"extractive"}
        assert_counts_agree(tmp_path)


async def test_attempts_are_counted_across_restarts(tmp_path: Path) -> None:
    async with bench(tmp_path, 4) as at:
        at.llm.failure = DOWN
        await at.fail_to_organise(4)
        assert await at.restarted().step(at.lease, needs_vectors=False)
        assert at.fallback.organised == [ONE_TO_FOUR]


async def test_one_call_per_step_probes_a_failing_analyst(tmp_path: Path) -> None:
    async with bench(tmp_path, 12) as at:
        at.llm.failure = DOWN
        await at.fail_to_organise()
        assert sorted(at.llm.organised) == [ONE_TO_FOUR, FIVE_TO_EIGHT, NINE_TO_TWELVE]  # the outage was not known yet
        at.llm.organised.clear()
        await at.fail_to_organise()
        assert at.llm.organised == [ONE_TO_FOUR]
        assert attempts(tmp_path) == [2] * 12

        at.llm.failure, at.llm.gate = None, asyncio.Event()
        at.llm.organised.clear()
        at.llm.is_asked.clear()
        step = asyncio.gather(at.organise())
        await at.llm.is_asked.wait()
        for _ in range(20):  # time for a premature call
            await asyncio.sleep(0.001)
        assert at.llm.organised == [ONE_TO_FOUR]
        at.llm.gate.set()
        await step
        assert sorted(at.llm.organised) == [ONE_TO_FOUR, FIVE_TO_EIGHT, NINE_TO_TWELVE]
        assert workers(tmp_path, "organised_by") == ["scripted"] * 12
        assert_counts_agree(tmp_path)


async def test_after_five_failed_steps_one_more_failure_is_enough(tmp_path: Path) -> None:
    async with bench(tmp_path, 4) as at:
        at.llm.failure = DOWN
        await at.fail_to_organise(4)
        await at.organise_all()
        await at.store.add_pages(turns(5, 13))
        at.llm.organised.clear()
        assert await at.organise()
        assert at.llm.organised == [FIVE_TO_EIGHT]
        assert at.fallback.organised == [ONE_TO_FOUR, FIVE_TO_EIGHT, NINE_TO_TWELVE]
        assert attempts(tmp_path) == [0] * 12
        assert (await at.store.counts()).degraded == 12
        assert_counts_agree(tmp_path)


async def test_an_answer_resets_the_count_of_failed_steps(tmp_path: Path) -> None:
    async with bench(tmp_path, 4) as at:
        at.llm.failure = DOWN
        await at.fail_to_organise(4)
        at.llm.failure = None
        await at.organise_all()
        await at.store.add_pages(turns(5, 9))
        at.llm.failure = DOWN
        await at.fail_to_organise(4)
        assert at.fallback.organised == []
        assert await at.organise()
        assert at.fallback.organised == [FIVE_TO_EIGHT]


async def test_a_probe_after_a_restart_counts_as_one_attempt(tmp_path: Path) -> None:
    async with bench(tmp_path, 8) as at:
        at.llm.failure = DOWN
        for number in range(1, ATTEMPTS_BEFORE_FALLBACK):
            with pytest.raises(ModelError):
                await at.restarted().step(at.lease, needs_vectors=False)
            assert attempts(tmp_path) == [number] * 8
        assert at.fallback.organised == []
        assert await at.restarted().step(at.lease, needs_vectors=False)
        assert at.fallback.organised == [ONE_TO_FOUR, FIVE_TO_EIGHT]


async def test_answers_to_later_batches_wait_for_an_earlier_batch(tmp_path: Path) -> None:
    async with bench(tmp_path, 12) as at:
        at.llm.fails_on = {2}
        await at.fail_to_organise(3)
        assert await at.backlog() == [*ONE_TO_FOUR, *FIVE_TO_EIGHT, *NINE_TO_TWELVE]
        at.llm.fails_on = set()
        await at.organise_all()
        assert Counter(map(tuple, at.llm.organised)) == {
            tuple(ONE_TO_FOUR): 4,
            tuple(FIVE_TO_EIGHT): 1,
            tuple(NINE_TO_TWELVE): 1,
        }
        assert workers(tmp_path, "organised_by") == ["scripted"] * 12
        assert_counts_agree(tmp_path)


async def test_answers_around_a_failed_batch_are_filed_in_page_order(tmp_path: Path) -> None:
    async with bench(tmp_path, 12) as at:
        at.llm.fails_on = {6}
        await at.fail_to_organise(4)
        assert workers(tmp_path, "organised_by") == ["scripted"] * 4 + [None] * 8
        await at.organise_all()
        assert workers(tmp_path, "organised_by") == ["scripted"] * 4 + ["extractive"] * 4 + ["scripted"] * 4
        assert Counter(map(tuple, at.llm.organised)) == {
            tuple(ONE_TO_FOUR): 1,
            tuple(FIVE_TO_EIGHT): 5,
            tuple(NINE_TO_TWELVE): 1,
        }
        assert await at.degraded() == FIVE_TO_EIGHT
        assert_counts_agree(tmp_path)


async def test_the_fallback_never_replaces_an_existing_answer(tmp_path: Path) -> None:
    class FailingLast(Llm):
        async def organise(self, batch: Sequence[Page], around: Surroundings) -> Organised:
            if batch[0].seq == 1:
                await others_answered.wait()
                return await super().organise(batch, around)
            organised = await super().organise(batch, around)
            others_answered.set()
            return organised

    others_answered = asyncio.Event()
    async with bench(tmp_path, 8, llm=FailingLast()) as at:
        at.llm.fails_on = {2}
        for _ in range(2 * ATTEMPTS_BEFORE_FALLBACK):
            with suppress(ModelError):
                await at.organise()
        assert at.llm.organised.count(FIVE_TO_EIGHT) == 1
        assert workers(tmp_path, "organised_by") == ["extractive"] * 4 + ["scripted"] * 4


async def test_a_batch_that_grew_after_its_answer_is_asked_again(tmp_path: Path) -> None:
    async with bench(tmp_path, 6) as at:
        at.llm.fails_on = {1}
        await at.fail_to_organise()
        await at.store.add_pages([Turn(said(7), "", START)])
        at.llm.fails_on = set()
        await at.organise_all()
        asked = Counter(map(tuple, at.llm.organised))
        assert asked == {tuple(ONE_TO_FOUR): 2, (5, 6): 1, (5, 6, 7): 1}
        assert_counts_agree(tmp_path)


async def test_the_fallback_files_at_once_if_the_budget_is_spent(tmp_path: Path) -> None:
    async with bench(tmp_path, 8) as at:
        at.llm.failure = SPENT
        assert await at.organise()
        assert at.fallback.organised == [ONE_TO_FOUR, FIVE_TO_EIGHT]
        counts = await at.store.counts()
        assert (counts.backlog, counts.degraded) == (0, 8)
        assert attempts(tmp_path) == [0] * 8
        assert_counts_agree(tmp_path)


async def test_an_unexpected_error_does_not_start_the_fallback(tmp_path: Path) -> None:
    async with bench(tmp_path, 4) as at:
        at.llm.failure = RuntimeError("a bug")
        for _ in range(6):
            with pytest.raises(RuntimeError):
                await at.organise()
        assert (at.fallback.organised, attempts(tmp_path)) == ([], [0] * 4)


DIGEST = Digest(("pottery",), "About pottery.")


def runs(*pages: tuple[int, ...]) -> tuple[Run, ...]:
    return tuple(Run(seqs, "About pottery.") for seqs in pages)


def topics(*pages: tuple[int, ...]) -> tuple[Topic, ...]:
    return tuple(Topic(DIGEST, seqs) for seqs in pages)


@pytest.mark.parametrize(
    "answer",
    [
        Organised(False, runs((1, 2), (4,)), topics((1, 2, 3, 4))),
        Organised(False, runs((1, 2), (2, 3, 4)), topics((1, 2, 3, 4))),
        Organised(False, runs((2, 1), (3, 4)), topics((1, 2, 3, 4))),
        Organised(False, runs((1, 2, 3, 4, 5)), topics((1, 2, 3, 4))),
        Organised(False, (), topics((1, 2, 3, 4))),
        Organised(False, runs((1, 2, 3, 4)), topics((1, 2), (4,))),
        Organised(False, runs((1, 2, 3, 4)), topics((1, 2, 3), (3, 4))),
        Organised(False, runs((1, 2, 3, 4)), topics((1, 2, 3, 4, 5))),
        Organised(False, runs((1, 2, 3, 4)), ()),
    ],
)
async def test_an_answer_must_contain_every_page_once(tmp_path: Path, answer: Organised) -> None:
    class Careless(Llm):
        async def organise(self, batch: Sequence[Page], around: Surroundings) -> Organised:
            return answer

    async with bench(tmp_path, 4, llm=Careless()) as at:
        with pytest.raises(ModelError, match="every page of the batch exactly once"):
            await at.organise()
        counts = await at.store.counts()
        assert (counts.backlog, counts.segments, counts.chains) == (4, 0, 0)
        assert attempts(tmp_path) == [1] * 4


async def test_a_topic_joins_the_segment_that_it_names_if_it_exists(tmp_path: Path) -> None:
    class Naming(Llm):
        names: Segment | None = None

        async def organise(self, batch: Sequence[Page], around: Surroundings) -> Organised:
            seqs = tuple(view.seq for view in batch)
            digest = Digest((f"word{seqs[0]}",), f"About {seqs[0]}.")
            return Organised(False, (Run(seqs, "run"),), (Topic(digest, seqs, segment=self.names),))

    llm = Naming()
    async with bench(tmp_path, 4, llm=llm) as at:
        await at.organise_all()
        (first,) = await at.store.segments()
        for llm.names in (first, replace(first, segment=77)):
            await at.store.add_pages([Turn(said(number), "", START) for number in range(4)])
            await at.organise_all()
        assert [segment.page_count for segment in await at.store.segments()] == [8, 4]
        assert_counts_agree(tmp_path)


# Redo


async def test_a_recovered_analyst_redoes_the_fallbacks_work(tmp_path: Path) -> None:
    async with bench(tmp_path, 14) as at:
        await at.store.add_pages([Turn("Plan my tax return.", "I see.", START) for _ in range(2)])
        await at.have_fallback_file()
        assert (await at.store.counts()).degraded == 16
        at.llm.failure = None
        at.llm.organised.clear()
        await at.redo_all()
        assert sorted(seq for batch in at.llm.organised for seq in batch) == list(range(1, 17))
        assert workers(tmp_path, "organised_by") == ["scripted"] * 16
        counts = await at.store.counts()
        assert (counts.pages, counts.mid_term, counts.backlog, counts.degraded) == (16, 16, 0, 0)
        assert {segment.summariser for segment in await at.store.segments()} == {"scripted"}
        assert_counts_agree(tmp_path)
        assert not await at.organising.redo(at.lease)


async def test_a_redo_probes_the_analyst_with_one_batch(tmp_path: Path) -> None:
    async with bench(tmp_path, 12) as at:
        await at.have_fallback_file()
        before = rows(tmp_path, "SELECT seq, chain, segment, is_degraded, attempts FROM pages ORDER BY seq")
        at.llm.organised.clear()
        at.llm.failure = DOWN
        for _ in range(ATTEMPTS_BEFORE_FALLBACK + 1):
            with pytest.raises(ModelError):
                await at.organising.redo(at.lease)
        assert len(at.llm.organised) == ATTEMPTS_BEFORE_FALLBACK + 1
        assert rows(tmp_path, "SELECT seq, chain, segment, is_degraded, attempts FROM pages ORDER BY seq") == before


async def test_a_redo_files_answered_batches_and_retries_the_others(tmp_path: Path) -> None:
    async with bench(tmp_path, 12) as at:
        await at.have_fallback_file()
        at.llm.failure, at.llm.fails_on = None, {7}
        at.llm.organised.clear()
        assert await at.redo()
        assert workers(tmp_path, "organised_by") == ["scripted"] * 4 + ["extractive"] * 4 + ["scripted"] * 4
        assert_counts_agree(tmp_path)
        await at.fail_to_redo(ATTEMPTS_BEFORE_FALLBACK + 1)
        assert await at.degraded() == FIVE_TO_EIGHT
        at.llm.fails_on = set()
        await at.redo_all()
        assert workers(tmp_path, "organised_by") == ["scripted"] * 12
        assert (at.llm.organised.count(ONE_TO_FOUR), at.llm.organised.count(NINE_TO_TWELVE)) == (1, 1)
        assert_counts_agree(tmp_path)


async def test_unusable_answers_make_the_fallbacks_filing_final(tmp_path: Path) -> None:
    async with bench(tmp_path, 12) as at:
        await at.have_fallback_file()
        at.llm.failure, at.llm.fails_on, at.llm.fails_with = None, {2}, GARBLED
        at.llm.organised.clear()
        assert await at.redo()  # the other batches are redone
        assert attempts(tmp_path) == [1] * 4 + [0] * 8
        await at.fail_to_redo(ATTEMPTS_BEFORE_FALLBACK - 1)
        assert not await at.redo()
        assert Counter(map(tuple, at.llm.organised)) == {
            tuple(ONE_TO_FOUR): ATTEMPTS_BEFORE_FALLBACK,
            tuple(FIVE_TO_EIGHT): 1,
            tuple(NINE_TO_TWELVE): 1,
        }
        assert workers(tmp_path, "organised_by") == ["extractive"] * 4 + ["scripted"] * 8
        assert (await at.store.counts()).degraded == 0
        assert attempts(tmp_path) == [0] * 12
        assert_counts_agree(tmp_path)


@pytest.mark.parametrize("failure", [DOWN, SPENT])
async def test_a_redo_never_gives_up_while_the_analyst_is_away(tmp_path: Path, failure: ModelError) -> None:
    async with bench(tmp_path, 4) as at:
        await at.have_fallback_file()
        at.llm.failure = failure
        await at.fail_to_redo(2 * ATTEMPTS_BEFORE_FALLBACK)
        assert (await at.store.counts()).degraded == 4
        at.llm.failure = None
        await at.redo_all()
        assert workers(tmp_path, "organised_by") == ["scripted"] * 4


@pytest.mark.parametrize("is_filing", [True, False])
async def test_a_batch_that_always_fails_does_not_block_the_redo(tmp_path: Path, is_filing: bool) -> None:
    class Apart(Llm):
        async def organise(self, batch: Sequence[Page], around: Surroundings) -> Organised:
            organised = await super().organise(batch, around)
            seqs = tuple(view.seq for view in batch)
            return replace(organised, topics=(Topic(Digest((f"word{seqs[0]}",), f"About {seqs[0]}."), seqs),))

    async with bench(tmp_path, 8, llm=Apart()) as at:
        if is_filing:
            at.llm.failure = SPENT
        await at.organise_all()
        await at.have_fallback_read()
        # for example too long for the model, or refused because of its content
        at.llm.failure, at.llm.fails_on = None, {2}
        for _ in range(4 * ATTEMPTS_BEFORE_FALLBACK):
            with suppress(ModelError):
                await at.redo()
        await at.promote_all()
        assert workers(tmp_path, "learned_by")[4:] == ["scripted"] * 4
        assert workers(tmp_path, "organised_by")[4:] == ["scripted"] * 4


async def test_a_redo_does_not_change_pages_added_meanwhile(tmp_path: Path) -> None:
    async with bench(tmp_path, 8) as at:
        await at.have_fallback_file()
        at.llm.failure, at.llm.gate = None, asyncio.Event()
        at.llm.is_asked.clear()
        redo = asyncio.gather(at.organising.redo(at.lease))
        await at.llm.is_asked.wait()
        await at.store.add_pages(turns(9, 13))
        at.llm.gate.set()
        await redo
        assert await at.backlog() == NINE_TO_TWELVE
        await at.organise_all()
        await at.redo_all()
        assert workers(tmp_path, "organised_by") == ["scripted"] * 12
        assert_counts_agree(tmp_path)


async def test_two_processes_redo_the_same_pages_once(tmp_path: Path) -> None:
    async with bench(tmp_path, 8) as at:
        await at.have_fallback_file()
        at.llm.failure = None
        done = await asyncio.gather(at.organising.redo(at.lease), at.organising.redo(at.lease))
        assert all(done)
        assert workers(tmp_path, "organised_by") == ["scripted"] * 8
        assert_counts_agree(tmp_path)


async def test_what_the_fallback_files_as_the_analyst_is_not_degraded(tmp_path: Path) -> None:
    async with bench(tmp_path, 4) as at:
        alone = organising(at.store, at.fallback, at.fallback)
        assert await alone.step(at.lease, needs_vectors=False)
        assert (await at.store.counts()).degraded == 0


# Reading


async def test_the_fallback_reads_a_hot_segment_after_five_failures(tmp_path: Path) -> None:
    async with bench(tmp_path, 4) as at:
        await at.organise_all()
        at.llm.failure = DOWN
        for number in range(1, ATTEMPTS_BEFORE_FALLBACK):
            with pytest.raises(ModelError):
                await at.promotion.step(at.lease)
            assert rows(tmp_path, "SELECT DISTINCT attempts FROM segments") == [(number,)]
            assert await at.promotion.has_work(await at.store.due_work())
            assert await at.facts() == []
        assert await at.promotion.step(at.lease)
        assert sorted(seq for pages in at.fallback.learned for seq in pages) == ONE_TO_FOUR
        assert await at.facts() == [f"I am allergic to food{number}." for number in ONE_TO_FOUR]
        assert (await at.store.counts()).degraded == 4
        assert not await at.promotion.has_work(await at.store.due_work())


async def test_a_redo_replaces_the_fallbacks_facts(tmp_path: Path) -> None:
    async with bench(tmp_path, 8) as at:
        await at.have_fallback_file()
        await at.promotion.step(at.lease)
        assert set(await at.facts()) == {f"I am allergic to food{number}." for number in range(1, 9)}
        assert await at.store.traits() != []
        at.llm.failure = None
        await at.redo_all()
        await at.promote_all()
        assert set(await at.facts()) == told(1, 9)
        assert await at.store.traits() == []
        assert workers(tmp_path, "learned_by") == ["scripted"] * 8
        assert (await at.store.counts()).degraded == 0
        assert rows(tmp_path, "SELECT fact FROM facts WHERE learned_by = 'extractive'") == []
        assert_counts_agree(tmp_path)


async def test_pages_only_read_by_the_fallback_are_not_filed_again(tmp_path: Path) -> None:
    async with bench(tmp_path, 4) as at:
        await at.organise_all()
        await at.have_fallback_read()
        before = rows(tmp_path, "SELECT seq, chain, segment FROM pages ORDER BY seq")
        at.llm.failure = None
        asked = len(at.llm.organised)
        await at.redo_all()
        assert not await at.promotion.has_work(await at.store.due_work())
        assert len(at.llm.organised) == asked
        assert rows(tmp_path, "SELECT seq, chain, segment FROM pages ORDER BY seq") == before
        assert set(await at.facts()) == told(1, 5)


@pytest.mark.parametrize("failure", [SPENT, DOWN, GARBLED])
async def test_the_fallback_reads_a_page_only_once_in_an_outage(tmp_path: Path, failure: ModelError) -> None:
    async with bench(tmp_path, 4) as at:
        await at.organise_all()
        at.llm.failure = failure
        for _ in range(4 * ATTEMPTS_BEFORE_FALLBACK):
            with suppress(ModelError):
                await at.redo()
            with suppress(ModelError):
                await at.promotion.step(at.lease)
        assert sorted(seq for pages in at.fallback.learned for seq in pages) == ONE_TO_FOUR


@pytest.mark.parametrize("failure", [SPENT, DOWN])
async def test_the_fallbacks_facts_stay_until_the_analyst_is_back(tmp_path: Path, failure: ModelError) -> None:
    async with bench(tmp_path, 4) as at:
        await at.organise_all()
        await at.have_fallback_read()
        state = "SELECT seq, segment, is_analysed, learned_by, is_degraded, attempts FROM pages ORDER BY seq"
        before, known = rows(tmp_path, state), await at.facts()
        at.llm.failure = failure
        at.llm.learned.clear()
        await at.fail_to_redo(2 * ATTEMPTS_BEFORE_FALLBACK)
        assert len(at.llm.learned) == 2 * ATTEMPTS_BEFORE_FALLBACK
        assert (rows(tmp_path, state), await at.facts()) == (before, known)
        assert not await at.promotion.has_work(await at.store.due_work())


async def test_a_redo_reads_each_page_once_segment_by_segment(tmp_path: Path) -> None:
    class OnePageATopic(Llm):
        async def organise(self, batch: Sequence[Page], around: Surroundings) -> Organised:
            seqs = tuple(view.seq for view in batch)
            halves = (Topic(Digest((f"word{seqs[0]}",), "One."), seqs[:2]), Topic(Digest(("other",), "Two."), seqs[2:]))
            return Organised(False, (Run(seqs, "run"),), halves)

        def portion(self, pages: Sequence[Page]) -> int:
            return 1

    async with bench(tmp_path, 4, llm=OnePageATopic()) as at:
        await at.organise_all()
        await at.have_fallback_read()
        at.llm.failure = None
        at.llm.learned.clear()
        for left in (3, 2, 1, 0):
            assert await at.redo()
            assert (await at.store.counts()).degraded == left
        assert not await at.redo()
        assert at.llm.learned == [[1], [2], [3], [4]]
        assert workers(tmp_path, "learned_by") == ["scripted"] * 4
        assert_counts_agree(tmp_path)


async def test_unusable_answers_make_the_fallbacks_reading_final(tmp_path: Path) -> None:
    async with bench(tmp_path, 4) as at:
        await at.organise_all()
        await at.have_fallback_read()
        known = await at.facts()
        at.llm.failure = GARBLED
        at.llm.learned.clear()
        await at.fail_to_redo(ATTEMPTS_BEFORE_FALLBACK - 1)
        assert attempts(tmp_path) == [ATTEMPTS_BEFORE_FALLBACK - 1] * 4
        assert (await at.store.counts()).degraded == 4
        await at.fail_to_redo()
        assert (await at.store.counts()).degraded == 0
        assert not await at.redo()
        assert len(at.llm.learned) == ATTEMPTS_BEFORE_FALLBACK
        assert (await at.facts(), attempts(tmp_path)) == (known, [0] * 4)
        assert workers(tmp_path, "learned_by") == ["extractive"] * 4


async def test_a_usable_answer_resets_the_count_of_unusable_ones(tmp_path: Path) -> None:
    async with bench(tmp_path, 4) as at:
        await at.organise_all()
        await at.have_fallback_read()
        at.llm.failure = GARBLED
        await at.fail_to_redo(ATTEMPTS_BEFORE_FALLBACK - 1)
        at.llm.failure = None
        await at.redo_all()
        assert attempts(tmp_path) == [0] * 4
        assert set(await at.facts()) == told(1, 5)


async def due_to_be_read_again(at: Bench) -> None:
    """Have the fallback file and read pages, and the analyst file them again."""
    await at.have_fallback_file()
    await at.promotion.step(at.lease)
    at.llm.failure = None
    await at.redo_all()
    at.fallback.learned.clear()
    assert await at.store.due_segments()


@pytest.mark.parametrize("failure", [SPENT, DOWN])
async def test_due_segments_wait_for_the_analyst_in_an_outage(tmp_path: Path, failure: ModelError) -> None:
    async with bench(tmp_path, 4) as at:
        await due_to_be_read_again(at)
        at.llm.failure = failure
        for _ in range(2 * ATTEMPTS_BEFORE_FALLBACK):
            with pytest.raises(ModelError):
                await at.promotion.step(at.lease)
        assert at.fallback.learned == []
        assert await at.promotion.has_work(await at.store.due_work())
        at.llm.failure = None
        await at.promote_all()
        assert set(await at.facts()) == told(1, 5)


async def test_due_segments_go_to_the_fallback_after_unusable_answers(tmp_path: Path) -> None:
    async with bench(tmp_path, 4) as at:
        await due_to_be_read_again(at)
        at.llm.failure = GARBLED
        asked = len(at.llm.learned)
        for _ in range(ATTEMPTS_BEFORE_FALLBACK - 1):
            with pytest.raises(ModelError):
                await at.promotion.step(at.lease)
        assert at.fallback.learned == []
        await at.promote_all()
        assert sorted(seq for pages in at.fallback.learned for seq in pages) == ONE_TO_FOUR
        for _ in range(3 * ATTEMPTS_BEFORE_FALLBACK):
            with suppress(ModelError):
                await at.redo()
            with suppress(ModelError):
                await at.promotion.step(at.lease)
        assert (await at.store.counts()).degraded == 0
        assert len(at.llm.learned) - asked == 2 * ATTEMPTS_BEFORE_FALLBACK
        assert sorted(seq for pages in at.fallback.learned for seq in pages) == ONE_TO_FOUR


class Apart(Llm):
    """Files each page under a separate topic."""

    async def organise(self, batch: Sequence[Page], around: Surroundings) -> Organised:
        seqs = tuple(view.seq for view in batch)
        apart = tuple(Topic(Digest((f"word{seq}",), f"About {seq}."), (seq,)) for seq in seqs)
        return Organised(False, (Run(seqs, "run"),), apart)


async def test_simultaneous_readings_that_disagree_are_all_committed(tmp_path: Path) -> None:
    class Wavering(Apart):
        def portion(self, pages: Sequence[Page]) -> int:
            return 1

        async def learn(self, pages: Sequence[Page], around: Surroundings) -> Lessons:
            lessons = await super().learn(pages, around)
            await asyncio.sleep(0)
            seq = pages[0].seq
            change = TraitChange("Openness", [*Level][seq % len(Level)], "because", (seq,))
            return Lessons(traits=(change,), knowledge=lessons.knowledge)

    async with bench(tmp_path, 12, llm=Wavering()) as at:
        await at.organise_all()
        await at.promotion.step(at.lease)
        assert workers(tmp_path, "learned_by") == ["scripted"] * 12
        assert len(await at.facts()) == 12
        (trait,) = await at.store.traits()
        assert len(trait.evidence) == 12


async def test_read_segments_are_archived_although_another_fails(tmp_path: Path) -> None:
    async with bench(tmp_path, 4, llm=Apart()) as at:
        await at.organise_all()
        promotion = Promotion(
            at.store,
            at.llm,
            at.fallback,
            heat_threshold=1.0,
            weights=HeatWeights(),
            capacity_segments=1,
            clock=Clock(),
            reading=Reading(at.store, at.llm, at.fallback),
        )
        at.llm.fails_on, at.llm.fails_with = {2}, GARBLED
        for _ in range(2):  # after the common call has failed, each segment gets its own call
            with pytest.raises(ModelError):
                await promotion.step(at.lease)
        assert [segment.segment for segment in await at.store.segments()] == [2, 4]
        assert workers(tmp_path, "learned_by") == ["scripted", None, "scripted", "scripted"]


# With the whole engine


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "POLL_S", 0.01)


async def add_all(engine: MemoryEngine, stop: int) -> None:
    for number in range(1, stop):
        await engine.add(said(number), "I see.")


async def until(condition: Callable[[], Awaitable[bool]], clock: Clock, *, step_s: float = 0.0) -> None:
    """Wait for a condition while moving the clock; the caller sets the time limit."""
    while not await condition():
        clock.move(seconds=step_s)
        await asyncio.sleep(0.01)


@asynccontextmanager
async def memory(
    folder: Path, clock: Clock, llm: ScriptedAnalyst | None, **settings: Any
) -> AsyncIterator[MemoryEngine]:
    chosen: dict[str, Any] = {
        "short_term_capacity": 3,
        "consolidation_batch_pages": BATCH,
        "consolidation_idle_s": 30.0,
        "mid_term_heat_threshold": 1.0,
    }
    async with (
        asyncio.timeout(LIMIT_S),
        MemoryService(
            Settings(data_storage_path=folder, **{**chosen, **settings}),
            clock=clock,
            analyst=llm,
            embedder=WordEmbedder(),
        ) as service,
        service.user("ada") as engine,
    ):
        yield engine


@pytest.mark.parametrize("failure", [DOWN, SPENT])
async def test_an_hour_without_the_llm_loses_nothing(tmp_path: Path, failure: ModelError) -> None:
    clock, llm = Clock(), Llm()
    page_ids: list[str] = []
    async with memory(tmp_path, clock, llm) as engine:

        async def add(count: int) -> None:
            for _ in range(count):
                page_ids.append((await engine.add(said(len(page_ids) + 1), "I see.")).page_id)

        async def is_all_learned() -> bool:
            stats = await engine.stats()
            filed = stats.counts.mid_term == len(page_ids) - 3 and not stats.counts.degraded
            return filed and stats.is_settled and not stats.counts.unembedded

        await add(8)
        await until(is_all_learned, clock, step_s=5)
        known = {fact.text for fact in (await engine.profile()).user_facts}
        assert known == told(1, 6) | {quoted(number) for number in range(6, 9)}

        llm.failure = failure
        for step in range(60):
            clock.move(seconds=60)
            if step % 2 == 0:
                await add(1)
            await asyncio.sleep(0.02)

        async def has_fallen_back() -> bool:
            stats = await engine.stats()
            return stats.counts.degraded >= BATCH and stats.health["redo"].failed_attempts >= 1

        await until(has_fallen_back, clock, step_s=20)  # pages are read once no more pages arrive
        stats = await engine.stats()
        assert stats.counts.pages == 38
        assert stats.counts.degraded >= BATCH
        assert stats.health["redo"].failed_attempts >= 1
        learned = {fact.text for fact in (await engine.profile()).user_facts}
        assert known <= learned
        assert_counts_agree(tmp_path)

        llm.failure = None
        await until(is_all_learned, clock, step_s=20)
        counts = (await engine.stats()).counts
        assert (counts.pages, counts.short_term, counts.backlog, counts.mid_term) == (38, 3, 0, 35)
        facts = Counter(fact.text for fact in (await engine.profile()).user_facts)
        assert facts == {
            **Counter(told(1, 36)),
            **{quoted(number): 1 for number in range(36, 39)},
        }
        assert (await engine.profile()).traits == []
    stored = rows(tmp_path, "SELECT page_id, user_input, tier, organised_by, learned_by FROM pages ORDER BY seq")
    assert [(page_id, text) for page_id, text, *_ in stored] == [
        (page_id, said(number)) for number, page_id in enumerate(page_ids, 1)
    ]
    assert [row[2:] for row in stored] == [("mid_term", "scripted", "scripted")] * 35 + [("short_term", None, None)] * 3
    assert_counts_agree(tmp_path)


async def test_a_restarted_process_redoes_work_done_without_the_llm(tmp_path: Path) -> None:
    clock, llm = Clock(), Llm()
    llm.failure = SPENT
    async with memory(tmp_path, clock, llm, short_term_capacity=0) as engine:
        await add_all(engine, 9)

        async def is_learned_without_the_llm() -> bool:
            return (await engine.stats()).counts.degraded == 8

        await until(is_learned_without_the_llm, clock)
        assert (await engine.stats()).counts.degraded
    async with memory(tmp_path, clock, Llm(), short_term_capacity=0) as engine:

        async def is_done_again() -> bool:
            stats = await engine.stats()
            return stats.counts.degraded == 0 and stats.is_settled

        await until(is_done_again, clock)  # the first process left neither a lease nor a pause
        facts = Counter(fact.text for fact in (await engine.profile()).user_facts)
        assert facts == Counter(told(1, 9))
    assert workers(tmp_path, "organised_by") == workers(tmp_path, "learned_by") == ["scripted"] * 8
    assert_counts_agree(tmp_path)


async def test_restarts_in_an_outage_lose_nothing(tmp_path: Path) -> None:
    clock = Clock()
    for number in range(1, 17):
        llm = Llm()
        llm.failure = [SPENT, DOWN, GARBLED, None][number % 4]
        async with memory(tmp_path, clock, llm, short_term_capacity=0) as engine:
            await engine.add(said(number), "I see.")
            for _ in range(5 * number % 40):  # close at varying moments
                await asyncio.sleep(0.001)
        assert_counts_agree(tmp_path)
    async with memory(tmp_path, clock, Llm(), short_term_capacity=0) as engine:

        async def is_done() -> bool:
            stats = await engine.stats()
            return stats.counts.backlog == 0 and stats.counts.degraded == 0 and stats.is_settled

        await until(is_done, clock)
        facts = Counter(fact.text for fact in (await engine.profile()).user_facts)
        assert facts == Counter(told(1, 17))
    assert workers(tmp_path, "organised_by") == workers(tmp_path, "learned_by") == ["scripted"] * 16
    assert_counts_agree(tmp_path)


@pytest.mark.parametrize("is_filed_by_it", [False, True])
@pytest.mark.parametrize("failure", [SPENT, DOWN])
async def test_an_hour_of_failed_redos_costs_few_calls(
    tmp_path: Path, failure: ModelError, is_filed_by_it: bool
) -> None:
    clock, llm, hour_s, step_s = Clock(), Llm(), 3600, 60
    async with memory(tmp_path, clock, llm, short_term_capacity=0) as engine:
        llm.failure, llm.reading_failure = (None if is_filed_by_it else SPENT), SPENT

        async def known() -> list[str]:
            return [fact.text for fact in (await engine.profile()).user_facts]

        async def is_read() -> bool:
            return len(await known()) == 16 and (await engine.stats()).is_settled

        async def has_tried_again() -> bool:
            return (await engine.stats()).health["redo"].failed_attempts > 0

        await add_all(engine, 17)
        await until(is_read, clock, step_s=1)
        await until(has_tried_again, clock, step_s=1)
        facts = await known()
        llm.failure = failure
        llm.organised.clear()
        llm.learned.clear()
        for _ in range(hour_s // step_s):
            clock.move(seconds=step_s)
            await asyncio.sleep(0.02)
        calls = len(llm.organised) + len(llm.learned)
        longest = loops.LONGEST_BACKOFF_S
        assert 3 <= calls <= 9 + hour_s / longest  # nine doubling pauses from 1 s on, then the longest pause
        assert (len(llm.organised) == 0) == is_filed_by_it
        assert await known() == facts
        assert (await engine.stats()).counts.degraded == 16


async def test_without_an_llm_no_work_is_redone(tmp_path: Path) -> None:
    clock = Clock()
    async with memory(tmp_path, clock, None, short_term_capacity=0) as engine:
        await add_all(engine, 5)

        async def is_settled() -> bool:
            stats = await engine.stats()
            return stats.counts.backlog == 0 and stats.is_settled and stats.counts.unembedded == 0

        await until(is_settled, clock)
        before = rows(tmp_path, "SELECT seq, chain, segment, learned_by FROM pages ORDER BY seq")
        assert await engine.reconsolidate() == 4
        for _ in range(20):
            await asyncio.sleep(0.01)
        assert rows(tmp_path, "SELECT seq, chain, segment, learned_by FROM pages ORDER BY seq") == before
        assert (await engine.stats()).health["redo"].failed_attempts == 0
        assert (await engine.stats()).counts.degraded == 4  # for an LLM that is configured later


async def test_reconsolidate_redoes_work_from_before_the_llm_was_set(tmp_path: Path) -> None:
    clock = Clock()

    async def is_settled() -> bool:
        stats = await engine.stats()
        return stats.counts.backlog == 0 and not stats.counts.degraded and stats.is_settled

    without = ScriptedAnalyst()
    without.name = "extractive"
    async with memory(tmp_path, clock, without, short_term_capacity=0) as engine:
        await add_all(engine, 9)
        await until(is_settled, clock)
    assert workers(tmp_path, "organised_by") == workers(tmp_path, "learned_by") == ["extractive"] * 8
    async with memory(tmp_path, clock, Llm(), short_term_capacity=0) as engine:
        await until(is_settled, clock)
        assert {fact.text for fact in (await engine.profile()).user_facts} == {
            f"I am allergic to food{number}." for number in range(1, 9)
        }
        assert await engine.reconsolidate() == 8
        await until(is_settled, clock)
        facts = {fact.text for fact in (await engine.profile()).user_facts}
        assert facts == told(1, 9)
        assert await engine.reconsolidate() == 0
    assert workers(tmp_path, "organised_by") == workers(tmp_path, "learned_by") == ["scripted"] * 8
    assert_counts_agree(tmp_path)
