"""Redo of work that the fallback did, and migration of files of the first version."""

import asyncio
import random
import tempfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryos_mcp.errors import LeaseLostError
from memoryos_mcp.model.knowledge import About, AddFact, ConfirmFact, Kind, KnowledgeChange, Lessons
from memoryos_mcp.model.pages import Tier, Turn, Window
from memoryos_mcp.model.profile import Level, TraitChange
from memoryos_mcp.model.segments import Digest
from memoryos_mcp.model.stats import UsageEntry
from memoryos_mcp.storage.sql.moments import to_us
from memoryos_mcp.storage.sql.store import SqlStore
from memoryos_mcp.storage.sqlite.connections import SqliteConnection
from memoryos_mcp.storage.sqlite.paths import database_file
from memoryos_mcp.storage.sqlite.schema import APPLICATION_ID, CURRENT_VERSION, MIGRATIONS
from memoryos_mcp.storage.values import (
    Accepted,
    ChainPlan,
    FactQuery,
    Filing,
    Learning,
    Lease,
    PageQuery,
    SegmentPlan,
    Vectors,
)
from memoryos_mcp.text.terms import query_words
from tests.fakes import START, Clock
from tests.stores import broken_references, rows
from tests.test_store import SPACE, lease_of, opened, turn, vector

pytestmark = pytest.mark.both_stores(in_campaign=True)

LLM, STAND_IN = "llm", "extractive"


async def filled(store: SqlStore, pages: int) -> Lease:
    """Store pages 1 to n, all in the backlog, and return a lease."""
    await store.add_pages([turn(number) for number in range(1, pages + 1)])
    return await lease_of(store)


def topic(*pages: int, segment: int | None = None) -> SegmentPlan:
    return SegmentPlan(segment, pages, Digest(("topic",), "summary"), vector(1, 0, 0), "test")


async def file(
    store: SqlStore,
    lease: Lease,
    *segments: SegmentPlan,
    chains: Sequence[ChainPlan] | None = None,
    by: str = STAND_IN,
    is_degraded: bool = False,
    is_redo: bool = False,
) -> bool:
    if chains is None:
        pages = tuple(sorted(seq for plan in segments for seq in plan.pages))
        chains = [ChainPlan(None, pages, f"chain of {by}")]
    filing = Filing(chains=chains, segments=segments, organiser=by, is_degraded=is_degraded, is_redo=is_redo)
    return await store.commit(lease, filing)


async def learn(
    store: SqlStore,
    lease: Lease,
    pages: Sequence[int],
    *changes: KnowledgeChange | TraitChange,
    by: str = STAND_IN,
    segment: int = 1,
) -> None:
    """Commit lessons as promotion does; those of the LLM replace those of the fallback."""
    lessons = Lessons(
        traits=tuple(change for change in changes if isinstance(change, TraitChange)),
        knowledge=tuple(change for change in changes if not isinstance(change, TraitChange)),
    )
    learning = Learning(
        segments=(segment,),
        pages=pages,
        lessons=lessons,
        traits=await store.traits(),
        learner=by,
        is_degraded=by == STAND_IN,
        replaces=None if by == STAND_IN else STAND_IN,
    )
    assert await store.commit(lease, learning)


def fact(text: str, *pages: int, slot: str | None = None, supersedes: tuple[int, ...] = (), **more: Any) -> AddFact:
    return AddFact(About.USER, text, slot, START, pages, supersedes, **more)


async def facts(store: SqlStore) -> list[str]:
    return [known.text for known in await store.facts(FactQuery(About.USER))]


def where_pages_are(folder: Path) -> dict[int, tuple[int | None, int | None]]:
    """Return chain and segment by page."""
    return {seq: (chain, segment) for seq, chain, segment in rows(folder, "SELECT seq, chain, segment FROM pages")}


def assert_counts_agree(folder: Path) -> None:
    """Check that every page has an existing chain and segment, that none is empty, and that page counts are right."""
    assert rows(folder, "SELECT seq FROM pages WHERE tier = 'mid_term' AND (chain IS NULL OR segment IS NULL)") == []
    assert rows(folder, "SELECT chain FROM chains WHERE chain NOT IN (SELECT chain FROM pages)") == []
    counted = (
        "SELECT segment, count(*), sum(CASE WHEN is_analysed = 0 THEN 1 ELSE 0 END) FROM pages "
        "WHERE segment IS NOT NULL GROUP BY segment ORDER BY segment"
    )
    told = "SELECT segment, page_count, unanalysed_count FROM segments ORDER BY segment"
    assert rows(folder, told) == rows(folder, counted)
    assert broken_references(folder) == []


async def test_a_fact_is_cached_by_its_row_and_found_by_its_slot(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        lease = await filled(store, 2)
        assert await file(store, lease, topic(1, 2))
        await learn(store, lease, [1], fact("Likes tea.", 1), fact("Lives in Bern.", 1, slot="lives"))
        tea, bern = await store.facts(FactQuery(About.USER))
        assert [
            known is again for known, again in zip((tea, bern), await store.facts(FactQuery(About.USER)), strict=True)
        ] == [
            True,
            True,
        ]
        assert await store.facts(FactQuery(About.USER, slots={"lives", "name"})) == [bern]
        assert await store.facts(FactQuery(About.USER, slots=())) == []
        await learn(store, lease, [2], ConfirmFact(tea.fact, (2,)))
        changed, same = await store.facts(FactQuery(About.USER))
        assert (len(tea.evidence), len(changed.evidence)) == (1, 2)
        assert same is bern


# Filing again


async def test_a_redo_moves_pages_and_deletes_empty_segments(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        lease = await filled(store, 4)
        assert await file(store, lease, topic(1, 2), is_degraded=True)
        assert await file(store, lease, topic(3, 4), is_degraded=True)
        position = (await store.snapshot()).position
        chains = [ChainPlan(None, (1, 2, 3), "chain of the LLM")]
        assert await file(store, lease, topic(1, 2, 3), chains=chains, by=LLM, is_redo=True)

        assert where_pages_are(tmp_path) == {1: (3, 3), 2: (3, 3), 3: (3, 3), 4: (2, 2)}
        assert_counts_agree(tmp_path)
        assert [(s.segment, s.page_count, s.unanalysed_count) for s in await store.segments()] == [(2, 1, 1), (3, 3, 3)]
        assert (await store.found_pages({3: 0}))[3].page.chain_summary == "chain of the LLM"
        assert (await store.counts()).chains == 2
        assert [
            page.seq
            for page in await store.pages(PageQuery(is_degraded=True, organised_by=STAND_IN, after_seq=0, limit=9))
        ] == [4]
        assert await store.pages(PageQuery(is_degraded=True, organised_by=LLM, after_seq=0, limit=9)) == []
        assert (await store.counts()).degraded == 1
        assert (await store.changes(position, 99)).position > position


async def test_a_segment_gets_a_new_vector_when_its_pages_change(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        lease = await filled(store, 3)
        assert await file(store, lease, topic(1, 2, 3), is_degraded=True)
        assert await file(store, lease, topic(1, segment=1), topic(2), by=LLM, is_redo=True)
        assert [(s.segment, s.page_count, s.vector is None) for s in await store.segments()] == [
            (1, 2, True),
            (2, 1, False),
        ]
        assert [segment.segment for segment in (await store.unembedded(9)).segments] == [1]
        assert_counts_agree(tmp_path)


async def test_pages_read_by_the_fallback_are_read_again(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        lease = await filled(store, 4)
        assert await file(store, lease, topic(1, 2), topic(3, 4), is_degraded=True)
        await learn(store, lease, [1, 2])
        assert await store.due_segments() == []
        assert await file(store, lease, topic(1), topic(2, 3), topic(4), by=LLM, is_redo=True)
        assert [(s.segment, s.unanalysed_count, s.l_interaction) for s in await store.segments()] == [
            (3, 1, 1),
            (4, 2, 2),
            (5, 1, 1),
        ]
        assert await store.due_segments() == [3, 4]
        await learn(store, lease, [1], by=LLM, segment=3)
        assert await store.due_segments() == [4]
        await learn(store, lease, [2], by=LLM, segment=4)
        assert await store.due_segments() == [4]
        await learn(store, lease, [3], by=LLM, segment=4)
        assert await store.due_segments() == []


async def test_a_segment_is_not_due_once_its_pages_were_read(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        lease = await filled(store, 2)
        assert await file(store, lease, topic(1, 2), is_degraded=True)
        await learn(store, lease, [1, 2])
        assert await file(store, lease, topic(1, 2), by=LLM, is_redo=True)
        assert await store.due_segments() == [2]
        await learn(store, lease, [1, 2], by=LLM, segment=1)
        assert await store.due_segments() == []


async def test_pages_read_by_the_llm_are_not_read_again(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        lease = await filled(store, 2)
        assert await file(store, lease, topic(1, 2), is_degraded=True)
        await learn(store, lease, [1, 2], by=LLM)
        assert await file(store, lease, topic(1, 2), by=LLM, is_redo=True)
        (segment,) = await store.segments()
        assert (segment.unanalysed_count, segment.l_interaction) == (0, 0)
        assert await store.due_segments() == []


async def test_a_redo_with_a_page_that_is_not_degraded_is_refused(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        lease = await filled(store, 4)
        assert await file(store, lease, topic(1, 2, 3), is_degraded=True)
        assert await file(store, lease, topic(1), by=LLM, is_redo=True)
        before, segments = where_pages_are(tmp_path), await store.segments()
        assert not await file(store, lease, topic(1, 2), by=LLM, is_redo=True)
        assert not await file(store, lease, topic(4), by=LLM, is_redo=True)  # page 4 is in the backlog
        assert not await file(store, lease, topic(2, 3), by=LLM)  # pages 2 and 3 are not in the backlog
        assert where_pages_are(tmp_path) == before
        assert str(await store.segments()) == str(segments)
        assert await file(store, lease, topic(2, 3), by=LLM, is_redo=True)


async def test_a_redo_under_a_lost_lease_changes_nothing(tmp_path: Path) -> None:
    clock = Clock()
    async with (
        opened(tmp_path, clock=clock, short_term_capacity=0) as store,
        opened(tmp_path, clock=clock, short_term_capacity=0) as other,
    ):
        lease = await filled(store, 2)
        assert await file(store, lease, topic(1, 2), is_degraded=True)
        clock.move(minutes=5)
        await lease_of(other)
        before = where_pages_are(tmp_path)
        with pytest.raises(LeaseLostError):
            await file(store, lease, topic(1, 2), by=LLM, is_redo=True)
        with pytest.raises(LeaseLostError):
            await store.commit(lease, Accepted([1]))
        with pytest.raises(LeaseLostError):
            await store.count_attempt(lease, pages=[1])
        assert where_pages_are(tmp_path) == before
        assert rows(tmp_path, "SELECT is_degraded, attempts FROM pages ORDER BY seq") == [(1, 0), (1, 0)]


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 2**32))
def test_each_page_is_in_one_segment_after_any_redo(seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311 - no secret

    async def plans(store: SqlStore, pages: Sequence[int]) -> tuple[list[SegmentPlan], list[ChainPlan]]:
        places: list[int | None] = [segment.segment for segment in await store.segments()]
        by_place: dict[int | None, list[int]] = {}
        for seq in pages:
            by_place.setdefault(dice.choice([*places, None]), []).append(seq)
        cut = dice.randint(1, len(pages))
        runs = [run for run in (tuple(pages[:cut]), tuple(pages[cut:])) if run]
        return [topic(*seqs, segment=place) for place, seqs in by_place.items()], [
            ChainPlan(None, run, "chain") for run in runs
        ]

    async def run(folder: Path) -> None:
        async with opened(folder, short_term_capacity=0) as store:
            lease = await filled(store, 12)
            for _ in range(3):
                batch = [page.seq for page in await store.pages(PageQuery(tier=Tier.BACKLOG, limit=4))]
                segments, chains = await plans(store, batch)
                assert await file(store, lease, *segments, chains=chains, is_degraded=True)
            for segment in await store.segments():
                if dice.random() < 0.5:
                    pages = await store.pages(
                        PageQuery(segment=segment.segment, is_newest=True, is_unanalysed=True, limit=99)
                    )
                    by = dice.choice([STAND_IN, LLM])
                    await learn(store, lease, [page.seq for page in pages], by=by, segment=segment.segment)
            while waiting := await store.pages(
                PageQuery(is_degraded=True, organised_by=STAND_IN, after_seq=0, limit=5)
            ):
                segments, chains = await plans(store, [page.seq for page in waiting])
                assert await file(store, lease, *segments, chains=chains, by=LLM, is_redo=True)
                assert_counts_agree(folder)
            unread = rows(folder, "SELECT DISTINCT segment FROM pages WHERE is_analysed = 0 AND learned_by IS NOT NULL")
            assert {segment for (segment,) in unread} <= set(await store.due_segments())
            assert (await store.counts()).pages == 12
        assert_counts_agree(folder)

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder)))


# Facts learned by the fallback


async def test_a_fallback_fact_is_deleted_once_the_llm_read_its_pages(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        lease = await filled(store, 3)
        assert await file(store, lease, topic(1, 2, 3))
        await learn(store, lease, [1, 2], fact("I like tea.", 1, 2), fact("I like jam.", 1))
        await learn(store, lease, [3], fact("I like rye.", 3))
        position = (await store.snapshot()).position
        await learn(store, lease, [1], fact("The user enjoys tea.", 1), by=LLM)
        assert await facts(store) == ["I like tea.", "I like rye.", "The user enjoys tea."]
        await learn(store, lease, [2], by=LLM)
        assert await facts(store) == ["I like rye.", "The user enjoys tea."]
        assert (await store.changes(position, 99)).is_longterm
        assert rows(tmp_path, "SELECT fact, seq FROM fact_evidence ORDER BY fact") == [(3, 3), (4, 1)]
        assert_counts_agree(tmp_path)


async def test_facts_superseded_by_the_fallback_become_valid_again(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, clock=clock, short_term_capacity=0) as store:
        lease = await filled(store, 2)
        assert await file(store, lease, topic(1, 2))
        await learn(store, lease, [1], fact("The user lives in Rome.", 1), by=LLM)
        clock.move(hours=1)
        await learn(store, lease, [2], fact("I live in Oslo.", 2, supersedes=(1,)))
        assert await facts(store) == ["I live in Oslo."]
        await learn(store, lease, [2], by=LLM)
        (rome,) = await store.facts(FactQuery(About.USER))
        assert (rome.text, rome.valid_until) == ("The user lives in Rome.", None)
        assert (await store.counts()).superseded_facts == 0


async def test_a_wish_and_an_answer_stay_if_the_llm_overlooks_them(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        lease = await filled(store, 3)
        assert await file(store, lease, topic(1, 2, 3))
        told = [
            fact("No emojis.", 1, kind=Kind.WISH),
            fact("I live in Oslo.", 2, slot="lives"),
            fact("I like tea.", 3),
        ]
        await learn(store, lease, [1, 2, 3], *told)
        await learn(store, lease, [1], by=LLM)
        await learn(store, lease, [2, 3], fact("The user is from Bergen.", 2), by=LLM)
        assert await facts(store) == ["No emojis.", "The user is from Bergen."]


async def test_the_llm_sees_and_ends_facts_that_the_fallback_ended(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        lease = await filled(store, 3)
        assert await file(store, lease, topic(1, 2, 3))
        await learn(store, lease, [1], fact("Sam is the boyfriend of Ada.", 1), by=LLM)
        await learn(store, lease, [2, 3], fact("Sam and I broke up.", 2, supersedes=(1,)), fact("I like rye.", 3))
        assert await facts(store) == ["Sam and I broke up.", "I like rye."]
        shown = [known.text for known in await store.facts(FactQuery(without=(STAND_IN, 2)))]
        assert shown == ["Sam is the boyfriend of Ada."]
        await learn(store, lease, [2], fact("Ada and Sam broke up.", 2, supersedes=(1,)), by=LLM)
        assert await facts(store) == ["I like rye.", "Ada and Sam broke up."]
        assert [known.text for known in await store.facts(FactQuery(without=(STAND_IN, 3)))] == [
            "Ada and Sam broke up."
        ]


async def test_the_answer_said_last_is_valid_whenever_it_began(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        await store.add_pages([Turn("said", "", START - timedelta(days=days)) for days in (3, 2, 1)])
        lease = await lease_of(store)
        assert await file(store, lease, topic(1, 2, 3))
        await learn(store, lease, [2], fact("I live in Ghent.", 2, slot="lives"), by=LLM)
        later = replace(
            fact("I have lived in Oslo for years.", 3, slot="lives", supersedes=(1,)),
            valid_from=START - timedelta(days=900),
        )
        await learn(store, lease, [3], later, by=LLM)
        assert await facts(store) == ["I have lived in Oslo for years."]
        await learn(store, lease, [1], fact("I live in Rome.", 1, slot="lives"), by=LLM)
        assert await facts(store) == ["I have lived in Oslo for years."]


async def test_of_answers_learned_together_the_last_is_valid(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        lease = await filled(store, 3)
        assert await file(store, lease, topic(1, 2, 3))
        told = [
            fact("I live in Rome.", 1, slot="lives"),
            fact("I drive a Volvo.", 1),
            fact("I live in Oslo.", 2, slot="lives"),
            fact("We sold the Volvo.", 3, ends=("I drive a Volvo.",)),
        ]
        await learn(store, lease, [1, 2, 3], *told)
        assert await facts(store) == ["I live in Oslo.", "We sold the Volvo."]
        assert rows(tmp_path, "SELECT superseded_by FROM facts ORDER BY fact") == [(3,), (4,), (None,), (None,)]


async def test_a_fallback_fact_repeated_by_the_llm_becomes_its_own(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        lease = await filled(store, 2)
        assert await file(store, lease, topic(1, 2))
        await learn(store, lease, [1, 2], fact("I like tea.", 1), fact("I like jam.", 2))
        await learn(store, lease, [1], fact("I like tea", 1), by=LLM)
        await learn(store, lease, [2], fact("I like jam", 2), by=LLM)
        assert await facts(store) == ["I like tea.", "I like jam."]
        assert rows(tmp_path, "SELECT learned_by FROM facts") == [(LLM,), (LLM,)]
        await learn(store, lease, [1, 2], by=LLM)
        assert await facts(store) == ["I like tea.", "I like jam."]


async def test_llm_facts_and_traits_stay_when_pages_are_read_again(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        lease = await filled(store, 1)
        assert await file(store, lease, topic(1))
        await learn(store, lease, [1], fact("Tea.", 1), TraitChange("Music", Level.LOW, "why", (1,)), by=LLM)
        await learn(store, lease, [1], by=LLM)
        assert await facts(store) == ["Tea."]
        assert [trait.dimension for trait in await store.traits()] == ["Music"]


async def test_a_fallback_trait_becomes_history(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, clock=clock, short_term_capacity=0) as store:
        lease = await filled(store, 2)
        assert await file(store, lease, topic(1, 2))
        music, travel = (TraitChange(name, Level.LOW, "counted", (1, 2)) for name in ("Music", "Travel"))
        await learn(store, lease, [1, 2], music, travel)
        clock.move(hours=1)
        await learn(store, lease, [1], TraitChange("Music", Level.HIGH, "plays daily", (1,)), by=LLM)
        assert [trait.dimension for trait in await store.traits()] == ["Music", "Travel"]
        clock.move(hours=1)
        await learn(store, lease, [2], by=LLM)
        (trait,) = await store.traits()
        assert (trait.dimension, trait.level, trait.reason) == ("Music", Level.HIGH, "plays daily")
        history = rows(
            tmp_path, "SELECT dimension, level, reason, held_from_us, held_until_us FROM trait_history ORDER BY rowid"
        )
        start = to_us(START)
        hour = 3_600_000_000
        assert history == [
            ("Music", "Low", "counted", start, start + hour),
            ("Travel", "Low", "counted", start, start + 2 * hour),
        ]


async def test_an_llm_fact_confirmed_by_the_fallback_stays(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        lease = await filled(store, 2)
        assert await file(store, lease, topic(1, 2))
        await learn(store, lease, [1], fact("The user likes tea.", 1), by=LLM)
        await learn(store, lease, [2], ConfirmFact(1, (2,)))
        await learn(store, lease, [2], by=LLM)  # no new facts: the fact is known
        assert await facts(store) == ["The user likes tea."]


async def test_an_llm_trait_overwritten_by_the_fallback_is_not_lost(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        lease = await filled(store, 2)
        assert await file(store, lease, topic(1, 2))
        await learn(store, lease, [1], TraitChange("Music", Level.HIGH, "plays daily", (1,)), by=LLM)
        await learn(store, lease, [2], TraitChange("Music", Level.LOW, "counted", (2,)))
        await learn(store, lease, [2], by=LLM)
        assert [trait.dimension for trait in await store.traits()] == ["Music"]


async def test_the_fallback_only_adds_evidence_to_an_llm_trait(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, clock=clock, short_term_capacity=0) as store:
        lease = await filled(store, 2)
        assert await file(store, lease, topic(1, 2))
        await learn(store, lease, [1], TraitChange("Music", Level.HIGH, "plays daily", (1,)), by=LLM)
        before = await store.traits()
        clock.move(hours=1)
        await learn(store, lease, [2], TraitChange("Music", Level.LOW, "counted", (2,)))
        (trait,) = await store.traits()
        assert (trait.level, trait.reason, len(trait.evidence)) == (Level.HIGH, "plays daily", 2)
        assert rows(tmp_path, "SELECT learned_by FROM traits") == [(LLM,)]
        assert rows(tmp_path, "SELECT * FROM trait_history") == []
        late = Lessons((TraitChange("Music", Level.LOW, "new", (1,)),), ())
        stale = Learning(segments=(1,), pages=[1], lessons=late, traits=before, learner=LLM)
        assert not await store.commit(lease, stale)  # the lessons were computed without the evidence


async def test_the_fallback_changes_its_own_trait(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        lease = await filled(store, 2)
        assert await file(store, lease, topic(1, 2))
        await learn(store, lease, [1], TraitChange("Music", Level.LOW, "counted", (1,)))
        await learn(store, lease, [2], TraitChange("Music", Level.HIGH, "counted more", (2,)))
        (trait,) = await store.traits()
        assert (trait.level, trait.reason) == (Level.HIGH, "counted more")


async def test_an_llm_fact_repeated_by_the_fallback_stays_its_own(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        lease = await filled(store, 2)
        assert await file(store, lease, topic(1, 2))
        await learn(store, lease, [1], fact("I like tea.", 1), by=LLM)
        await learn(store, lease, [2], fact("i like tea", 2))
        assert rows(tmp_path, "SELECT learned_by FROM facts") == [(LLM,)]
        assert [len(known.evidence) for known in await store.facts(FactQuery(About.USER))] == [2]
        await learn(store, lease, [2], by=LLM)
        assert await facts(store) == ["I like tea."]


async def test_an_existing_fact_added_again_supersedes_others(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        lease = await filled(store, 2)
        assert await file(store, lease, topic(1, 2))
        await learn(store, lease, [1], fact("I live in Oslo.", 1), fact("I live in Rome.", 1), by=LLM)
        await learn(store, lease, [2], fact("I live in Oslo.", 2, supersedes=(2,)), by=LLM)
        (oslo,) = await store.facts(FactQuery(About.USER))
        assert (oslo.fact, oslo.text, len(oslo.evidence)) == (1, "I live in Oslo.", 2)
        assert rows(tmp_path, "SELECT superseded_by FROM facts ORDER BY fact") == [(None,), (1,)]


@pytest.mark.parametrize("by", [STAND_IN, LLM])
async def test_a_replaced_answer_does_not_become_valid_again(tmp_path: Path, by: str) -> None:
    clock = Clock()
    async with opened(tmp_path, clock=clock, short_term_capacity=0) as store:
        lease = await filled(store, 3)
        assert await file(store, lease, topic(1, 2, 3))
        await learn(store, lease, [1], fact("I live in Rome.", 1), by=LLM)
        clock.move(hours=1)
        await learn(store, lease, [2], fact("I live in Oslo.", 2, supersedes=(1,)))
        clock.move(hours=1)
        if by == LLM:  # the LLM rephrases the fact that the fallback quoted
            await learn(store, lease, [2], fact("The user lives in Oslo.", 2, supersedes=(1,)), by=LLM)
            assert await facts(store) == ["The user lives in Oslo."]
        else:  # the fallback learned of two moves, the LLM learns the second
            await learn(store, lease, [3], fact("I live in Kyiv.", 3, supersedes=(2,)))
            await learn(store, lease, [2], by=LLM)
            assert await facts(store) == ["I live in Kyiv."]


# Learning again


async def test_reading_and_filing_by_the_fallback_are_separate(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        lease = await filled(store, 5)
        assert await file(store, lease, topic(1, 2), by=LLM)
        assert await file(store, lease, topic(3), is_degraded=True)
        assert await file(store, lease, topic(4), is_degraded=True)
        await learn(store, lease, [1, 2])
        await learn(store, lease, [3], segment=2)
        assert (await store.counts()).degraded == 4
        assert [
            page.seq
            for page in await store.pages(PageQuery(is_degraded=True, not_organised_by=STAND_IN, after_seq=0, limit=9))
        ] == [1, 2]
        assert [
            page.seq
            for page in await store.pages(PageQuery(is_degraded=True, not_organised_by=STAND_IN, after_seq=0, limit=1))
        ] == [1]
        assert [
            page.seq
            for page in await store.pages(PageQuery(is_degraded=True, organised_by=STAND_IN, after_seq=0, limit=9))
        ] == [3, 4]
        await learn(store, lease, [1], by=LLM)
        assert [
            page.seq
            for page in await store.pages(PageQuery(is_degraded=True, not_organised_by=STAND_IN, after_seq=0, limit=9))
        ] == [2]
        await learn(store, lease, [2], by=LLM)
        assert await store.pages(PageQuery(is_degraded=True, not_organised_by=STAND_IN, after_seq=0, limit=9)) == []
        assert await store.due_segments() == []
        assert_counts_agree(tmp_path)


async def test_a_page_read_by_the_llm_still_has_to_be_filed(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        lease = await filled(store, 1)
        assert await file(store, lease, topic(1), is_degraded=True)
        await learn(store, lease, [1])
        await learn(store, lease, [1], by=LLM)
        assert [
            page.seq
            for page in await store.pages(PageQuery(is_degraded=True, organised_by=STAND_IN, after_seq=0, limit=9))
        ] == [1]
        assert await store.pages(PageQuery(is_degraded=True, not_organised_by=STAND_IN, after_seq=0, limit=9)) == []
        assert await file(store, lease, topic(1), by=LLM, is_redo=True)
        assert (await store.counts()).degraded == 0
        assert await store.due_segments() == []


async def test_reading_pages_again_does_not_reset_the_heat(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        lease = await filled(store, 3)
        assert await file(store, lease, topic(1, 2), by=LLM)
        await learn(store, lease, [1, 2])
        assert await file(store, lease, topic(3, segment=1), by=LLM)
        await store.add_visits({1: 4}, START)
        await learn(store, lease, [1, 2], by=LLM)
        (segment,) = await store.segments()
        assert (segment.n_visit, segment.l_interaction, segment.unanalysed_count) == (4, 1, 1)
        await learn(store, lease, [2, 3], by=LLM)
        (segment,) = await store.segments()
        assert (segment.n_visit, segment.l_interaction, segment.unanalysed_count) == (0, 0, 0)


async def test_accepted_fallback_work_is_not_redone(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        lease = await filled(store, 4)
        assert await file(store, lease, topic(1, 2), is_degraded=True)
        assert await file(store, lease, topic(3, 4), by=LLM)
        await learn(store, lease, [1, 2], fact("I like tea.", 1))
        await learn(store, lease, [3, 4], fact("I like jam.", 3), segment=2)
        await store.count_attempt(lease, pages=[1, 2, 3, 4])
        before = where_pages_are(tmp_path)
        await store.commit(lease, Accepted([1, 3]))
        assert rows(tmp_path, "SELECT is_degraded, attempts FROM pages ORDER BY seq") == [(0, 0), (1, 1)] * 2
        assert [
            page.seq
            for page in await store.pages(PageQuery(is_degraded=True, organised_by=STAND_IN, after_seq=0, limit=9))
        ] == [2]
        assert [
            page.seq
            for page in await store.pages(PageQuery(is_degraded=True, not_organised_by=STAND_IN, after_seq=0, limit=9))
        ] == [4]
        assert await store.pages(PageQuery(is_degraded=True, limit=1))
        await store.commit(lease, Accepted([2, 4, 77]))
        assert (await store.counts()).degraded == 0
        assert not await store.pages(PageQuery(is_degraded=True, limit=1))
        assert where_pages_are(tmp_path) == before
        assert await facts(store) == ["I like tea.", "I like jam."]
        assert not await file(store, lease, topic(1), by=LLM, is_redo=True)
        assert await store.mark_degraded(STAND_IN) == 4  # accepted pages can still be redone on request
        assert_counts_agree(tmp_path)


async def test_the_pages_of_a_worker_are_read_in_batches(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=1) as store:
        lease = await filled(store, 7)
        assert await file(store, lease, topic(1, 2))
        assert await file(store, lease, topic(3, 4), by=LLM)
        assert await file(store, lease, topic(5), by=LLM)
        await learn(store, lease, [2], by=LLM)
        await learn(store, lease, [3], segment=2)
        await learn(store, lease, [5], by=LLM, segment=3)

        async def done(worker: str, after: int, limit: int) -> list[tuple[int, bool, bool]]:
            return [
                (page.seq, page.organised_by == worker, page.learned_by == worker)
                for page in await store.pages(PageQuery(done_by=worker, after_seq=after, limit=limit))
            ]

        assert await done(STAND_IN, 0, 9) == [(1, True, False), (2, True, False), (3, False, True)]
        assert await done(STAND_IN, 0, 2) == [(1, True, False), (2, True, False)]
        assert await done(STAND_IN, 2, 2) == [(3, False, True)]
        assert await done(STAND_IN, 3, 2) == []
        assert await done(LLM, 0, 9) == [(2, False, True), (3, True, False), (4, True, False), (5, True, True)]
        assert await done("nobody", 0, 9) == []
        (page,) = await store.pages(PageQuery(done_by=STAND_IN, after_seq=2, limit=9))
        assert (page.user_input, page.segment) == ("question 3", 2)


async def test_all_work_of_a_worker_can_be_marked_for_redo(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=1) as store:
        lease = await filled(store, 6)
        assert await file(store, lease, topic(1, 2))
        assert await file(store, lease, topic(3), by=LLM)
        assert await file(store, lease, topic(4), by=LLM)
        learning = Learning(segments=(2,), pages=[3], lessons=Lessons((), ()), traits=[], learner=STAND_IN)
        assert await store.commit(lease, learning)
        assert (await store.counts()).degraded == 0
        assert await store.mark_degraded("nobody") == 0
        assert await store.mark_degraded(STAND_IN) == 3
        assert rows(tmp_path, "SELECT seq FROM pages WHERE is_degraded = 1 ORDER BY seq") == [(1,), (2,), (3,)]
        assert await store.mark_degraded(STAND_IN) == 3


async def test_failed_attempts_are_counted_until_the_work_is_done(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        lease = await filled(store, 3)
        assert await store.count_attempt(lease, pages=[1, 2]) == 1
        assert await store.count_attempt(lease, pages=[2, 3]) == 2
        assert rows(tmp_path, "SELECT attempts FROM pages ORDER BY seq") == [(1,), (2,), (1,)]
        await store.release_lease(lease)
    async with opened(tmp_path, short_term_capacity=0) as store:
        lease = await lease_of(store)
        assert await store.count_attempt(lease, pages=[2]) == 3
        assert await file(store, lease, topic(1, 2))
        assert rows(tmp_path, "SELECT attempts FROM pages ORDER BY seq") == [(0,), (0,), (1,)]
        assert [await store.count_attempt(lease, segment=1) for _ in range(3)] == [1, 2, 3]
        await learn(store, lease, [1])
        assert await store.count_attempt(lease, segment=1) == 1


# Usage


async def test_usage_adds_up_by_day_and_purpose(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        assert await store.usage("2026-05-08") == await store.usage(None) == []
        await store.add_usage(UsageEntry("2026-05-08", "organise", 1, 0, 100, 10))
        await store.add_usage(UsageEntry("2026-05-08", "organise", 1, 1, 0, 0))
        await store.add_usage(UsageEntry("2026-05-08", "learn", 1, 0, 7, 3))
    async with opened(tmp_path) as store:
        await store.add_usage(UsageEntry("2026-05-09", "organise", 1, 0, 1000, 1))
        assert await store.usage("2026-05-08") == [
            UsageEntry("2026-05-08", "learn", 1, 0, 7, 3),
            UsageEntry("2026-05-08", "organise", 2, 1, 100, 10),
        ]
        assert await store.usage("2026-05-09") == [UsageEntry("2026-05-09", "organise", 1, 0, 1000, 1)]
        assert await store.usage("2026-05-10") == []
        assert await store.usage(None) == [
            UsageEntry("", "learn", 1, 0, 7, 3),
            UsageEntry("", "organise", 3, 1, 1100, 11),
        ]
        assert await store.usage_since("2026-05-08") == [
            UsageEntry("2026-05-08", "learn", 1, 0, 7, 3),
            UsageEntry("2026-05-08", "organise", 2, 1, 100, 10),
            UsageEntry("2026-05-09", "organise", 1, 0, 1000, 1),
        ]
        assert await store.usage_since("2026-05-09") == [UsageEntry("2026-05-09", "organise", 1, 0, 1000, 1)]
        assert await store.usage_since("2026-05-10") == []


# The file of the first version

_PAGE = (
    "INSERT INTO pages (page_id, session, tier, chain, segment, is_analysed, occurred_us, utc_offset_s, added_us, "
    "user_input, agent_response) VALUES (?1, 1, ?2, ?3, ?3, ?4, ?5, 0, ?5, ?1, '')"
)


def make_first_version(folder: Path) -> Path:
    """Create a file of version 1 with two filed pages, one of them analysed, one page in the backlog and a new one."""
    path = database_file(folder, "ada")
    path.parent.mkdir(parents=True)
    connection = apsw.Connection(str(path))
    with connection:
        connection.execute(str(MIGRATIONS[0]))
        connection.pragma("application_id", APPLICATION_ID)
        connection.pragma("user_version", 1)
        connection.execute("INSERT INTO meta VALUES ('user_id', 'ada')")
        connection.execute("INSERT INTO chains (summary) VALUES ('a chain')")
        connection.execute(
            "INSERT INTO segments (last_visit_us, page_count, unanalysed_count, summariser, keywords, summary) "
            "VALUES (?, 2, 1, 'extractive', '[\"tea\"]', 'about tea')",
            (to_us(START),),
        )
        for name, tier, place, is_analysed in (
            ("p_1", "mid_term", 1, 1),
            ("p_2", "mid_term", 1, 0),
            ("p_3", "backlog", None, 0),
            ("p_4", "short_term", None, 0),
        ):
            connection.execute(_PAGE, (name, tier, place, is_analysed, to_us(START)))
        connection.execute(
            "INSERT INTO facts (about, assistant_id, valid_from_us, utc_offset_s, confirmed_us, folded, text) "
            "VALUES ('user', '', ?1, 0, ?1, 'i like tea', 'I like tea.')",
            (to_us(START),),
        )
        connection.execute("INSERT INTO fact_evidence VALUES (1, 1)")
        connection.execute("INSERT INTO traits VALUES ('Music', 'Low', 'counted', ?)", (to_us(START),))
        connection.execute("INSERT INTO trait_evidence VALUES ('Music', 1)")
    connection.close()
    return path


@pytest.mark.sqlite_only
async def test_a_file_of_the_first_version_is_migrated_completely(tmp_path: Path) -> None:
    make_first_version(tmp_path)
    async with opened(tmp_path) as store:
        assert rows(tmp_path, "PRAGMA user_version") == [(CURRENT_VERSION,)]
        organised = rows(tmp_path, "SELECT organised_by, learned_by, is_degraded, attempts FROM pages ORDER BY seq")
        assert organised == [
            (STAND_IN, STAND_IN, 0, 0),
            (STAND_IN, None, 0, 0),
            (None, None, 0, 0),
            (None, None, 0, 0),
        ]
        assert await facts(store) == ["I like tea."]
        assert [trait.dimension for trait in await store.traits()] == ["Music"]
        assert [page.page_id for page in await store.pages(PageQuery(tier=Tier.SHORT_TERM))] == ["p_4"]
        assert [page.page_id for page in await store.pages(PageQuery(tier=Tier.BACKLOG, limit=9))] == ["p_3"]
        assert await store.due_segments() == []
        assert (await store.counts()).degraded == 0
        assert await store.usage(None) == []
        assert_counts_agree(tmp_path)


@pytest.mark.sqlite_only
async def test_migrated_pages_are_found_by_stems_of_their_language(tmp_path: Path) -> None:
    said = ["Der Garten gehört zu unserem Haus.", "Наша квартира у озера", "أين السيارة", "我们的房子", "The red house"]
    path = make_first_version(tmp_path)
    with closing(apsw.Connection(str(path))) as connection:
        for seq, text in enumerate(said, start=1):
            row = {"seq": seq, "text": text, "at": to_us(START)}
            connection.execute("DELETE FROM pages WHERE seq = :seq", row)
            connection.execute(
                "INSERT INTO pages (seq, page_id, session, tier, occurred_us, utc_offset_s, added_us, user_input, "
                "agent_response) VALUES (:seq, :text, 1, 'backlog', :at, 0, :at, :text, '')",
                row,
            )
            connection.execute(
                "INSERT INTO page_words (rowid, user_input, agent_response) VALUES (:seq, :text, '')", row
            )
    async with opened(tmp_path) as store:
        for seq, query in enumerate(["häuser", "квартиры", "سيارة", "房子", "houses"], start=1):
            found = await store.search_words(query_words(query), [], 9)
            assert [hit.seq for hit in found.hits] == [seq]


@pytest.mark.sqlite_only
async def test_a_later_llm_can_redo_the_first_versions_work(tmp_path: Path) -> None:
    make_first_version(tmp_path)
    async with opened(tmp_path) as store:
        assert await store.mark_degraded(STAND_IN) == 2
        lease = await lease_of(store)
        assert await file(store, lease, topic(1, 2), by=LLM, is_redo=True)
        (segment,) = await store.segments()
        assert (segment.segment, segment.page_count, segment.unanalysed_count) == (2, 2, 2)
        assert await store.due_segments() == [2]
        await learn(store, lease, [1, 2], fact("The user enjoys tea.", 1), by=LLM, segment=2)
        assert await facts(store) == ["The user enjoys tea."]
        assert await store.traits() == []
        assert_counts_agree(tmp_path)


@pytest.mark.sqlite_only
async def test_token_vectors_of_an_earlier_version_are_migrated(tmp_path: Path) -> None:
    path = make_first_version(tmp_path)
    with closing(SqliteConnection(str(path))) as connection, connection:
        for number, step in enumerate(MIGRATIONS[1:3], start=2):
            connection.execute(step) if isinstance(step, str) else step(connection)
            connection.pragma("user_version", number)
        connection.execute("INSERT INTO spaces VALUES (1, 'another'), (2, ?)", (SPACE,))
        of_vector = "INSERT INTO page_vectors VALUES (?, ?, ?, ?, 0, 1, x'')"
        connection.executemany(of_vector, [(1, 2, 2, 0), (2, 2, 2, 1), (3, 2, 1, 0), (4, 1, 1, 0)])
        counts = np.array([[1, 0, 0, 0]], dtype="<u2").tobytes()
        connection.executemany(
            "INSERT INTO page_tokens VALUES (?, ?, ?)",
            [(1, 2 * counts, b"abcdABCD"), (3, counts, b"efgh"), (4, counts, b"WXYZ")],
        )
    async with opened(tmp_path) as store:
        tokens = await store.token_vectors([1, 2, 3], 1_000)
        assert tokens.seqs.tolist() == [1, 2, 2]
        assert tokens.codes.tobytes() == b"efghabcdABCD"
        await store.commit(await lease_of(store), Vectors(pages={1: [Window(0, 1, np.ones(3, dtype=np.float32))]}))
        assert (await store.token_vectors([1, 2, 3], 1_000)).seqs.tolist() == [2, 2]


# Facts with a stated end


async def test_a_fact_is_valid_until_its_stated_end(tmp_path: Path) -> None:
    clock = Clock()
    end = START + timedelta(days=3)
    async with opened(tmp_path, clock=clock, short_term_capacity=0) as store:
        lease = await filled(store, 2)
        assert await file(store, lease, topic(1, 2))
        await learn(store, lease, [1], fact("I am in Rome.", 1, valid_until=end), by=LLM)
        (known,) = await store.facts(FactQuery(About.USER))
        assert known.valid_until == end
        assert [unembedded.text for unembedded in (await store.unembedded(9)).facts] == ["I am in Rome."]
        assert ((await store.counts()).user_facts, (await store.counts()).superseded_facts) == (1, 0)
        clock.now = end - timedelta(microseconds=1)
        await learn(store, lease, [2], fact("i am in rome", 2), by=LLM)  # said again while the fact is valid
        assert [len(known.evidence) for known in await store.facts(FactQuery(About.USER))] == [2]
        clock.now = end
        assert await facts(store) == []
        assert (await store.unembedded(9)).facts == []
        assert ((await store.counts()).user_facts, (await store.counts()).superseded_facts) == (0, 1)
        lessons = Lessons((), (ConfirmFact(1, (2,)),))
        late = Learning(segments=(1,), pages=[2], lessons=lessons, traits=[], learner=LLM)
        assert not await store.commit(lease, late)
        await learn(store, lease, [2], fact("I am in Rome.", 2), by=LLM)  # a second stay is a new fact
        assert [known.fact for known in await store.facts(FactQuery(About.USER))] == [2]


async def test_a_restored_fact_is_valid_until_its_stated_end(tmp_path: Path) -> None:
    clock = Clock()
    end = START + timedelta(days=30)
    async with opened(tmp_path, clock=clock, short_term_capacity=0) as store:
        lease = await filled(store, 2)
        assert await file(store, lease, topic(1, 2))
        await learn(store, lease, [1], fact("The user is in Rome.", 1, valid_until=end), by=LLM)
        clock.move(days=1)
        moved = AddFact(About.USER, "I am in Oslo.", None, clock.now, (2,), (1,))
        await learn(store, lease, [2], moved)
        assert await facts(store) == ["I am in Oslo."]
        await learn(store, lease, [2], by=LLM)
        (rome,) = await store.facts(FactQuery(About.USER))
        assert (rome.text, rome.valid_until) == ("The user is in Rome.", end)
        clock.now = end
        assert await facts(store) == []


async def test_a_fact_past_its_stated_end_is_not_restored(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, clock=clock, short_term_capacity=0) as store:
        lease = await filled(store, 2)
        assert await file(store, lease, topic(1, 2))
        stay = fact("The user is in Rome.", 1, valid_until=START + timedelta(days=3))
        await learn(store, lease, [1], stay, by=LLM)
        clock.move(days=1)
        await learn(store, lease, [2], AddFact(About.USER, "I am in Oslo.", None, clock.now, (2,), (1,)))
        clock.move(days=9)
        await learn(store, lease, [2], by=LLM)
        assert await facts(store) == []


async def test_superseding_never_extends_a_stated_end(tmp_path: Path) -> None:
    end = START + timedelta(days=3)
    async with opened(tmp_path, short_term_capacity=0) as store:
        lease = await filled(store, 2)
        assert await file(store, lease, topic(1, 2))
        await learn(store, lease, [1], fact("The user is in Rome.", 1, valid_until=end), by=LLM)
        later = AddFact(About.USER, "The user is in Oslo.", None, START + timedelta(days=9), (2,), (1,))
        await learn(store, lease, [2], later, by=LLM)
        ends = rows(tmp_path, "SELECT valid_until_us FROM facts WHERE fact = 1")
        assert ends == [(to_us(end),)]


async def test_an_ended_fact_does_not_count_for_the_capacity(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, clock=clock, short_term_capacity=0, knowledge_capacity=2) as store:
        lease = await filled(store, 3)
        assert await file(store, lease, topic(1, 2, 3))
        await learn(store, lease, [1], fact("I like tea.", 1), by=LLM)
        clock.move(seconds=1)
        await learn(store, lease, [2], fact("I am away.", 2, valid_until=START + timedelta(days=1)), by=LLM)
        clock.move(days=2)
        await learn(store, lease, [3], fact("I like jam.", 3), by=LLM)
        assert await facts(store) == ["I like tea.", "I like jam."]
