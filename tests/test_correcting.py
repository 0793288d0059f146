"""Corrected facts and traits become history, and are not learned again from earlier pages."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from memoryos_mcp.consolidation.corrections import Embed, without_corrected
from memoryos_mcp.consolidation.organising import BatchRule, Organising
from memoryos_mcp.consolidation.promotion import Promotion
from memoryos_mcp.consolidation.reading import Reading as PageReading
from memoryos_mcp.embedding.bundled import BundledEmbedder
from memoryos_mcp.engine.correcting import correct
from memoryos_mcp.errors import ArgumentError, ModelError
from memoryos_mcp.llm.analysis import Analyst, Surroundings
from memoryos_mcp.llm.extractive import ExtractiveAnalyst
from memoryos_mcp.llm.prompts import learn_request
from memoryos_mcp.model.heat import HeatWeights
from memoryos_mcp.model.ids import Kind, MemoryId
from memoryos_mcp.model.knowledge import About, AddFact, CorrectedFact, Lessons
from memoryos_mcp.model.pages import Page, Turn
from memoryos_mcp.model.profile import Level, TraitChange
from memoryos_mcp.model.views import FactView, State, TraitView
from memoryos_mcp.storage.sql.store import SqlStore
from memoryos_mcp.storage.values import Corrected, Correction, FactQuery, Learning, Lease, PageQuery
from tests.fakes import START, Clock, ScriptedAnalyst
from tests.test_store import lease_of, opened
from tests.test_store_redo import STAND_IN, fact, facts, file, filled, learn, topic

pytestmark = pytest.mark.both_stores(in_campaign=True)

LIMIT_S = 60
PARIS = "I live in Paris."
LONDON = "The user lives in London"
DIET = "Diet"
PEANUTS = "I am allergic to peanuts."


async def look_at_fact(store: SqlStore, number: int) -> FactView:
    (look,) = await store.user_data.look([MemoryId(Kind.FACT, number=number)])
    assert isinstance(look, FactView)
    return look


async def look_at_trait(store: SqlStore, dimension: str = DIET) -> TraitView:
    (look,) = await store.user_data.look([MemoryId(Kind.TRAIT, name=dimension)])
    assert isinstance(look, TraitView)
    return look


async def correct_fact(store: SqlStore, number: int, text: str | None = None) -> Corrected:
    """Replace a fact by a text, or mark it as wrong without one."""
    correction = Correction(text=text, is_wrong=text is None)
    return await store.user_data.correct(MemoryId(Kind.FACT, number=number), correction, is_dry_run=False)


async def correct_trait(
    store: SqlStore,
    dimension: str = DIET,
    level: Level | None = None,
    reason: str | None = None,
    *,
    is_wrong: bool = False,
) -> Corrected:
    correction = Correction(level=level, reason=reason, is_wrong=is_wrong)
    return await store.user_data.correct(MemoryId(Kind.TRAIT, name=dimension), correction, is_dry_run=False)


def trait(level: Level, reason: str, *pages: int) -> TraitChange:
    return TraitChange(DIET, level, reason, pages)


# In the store ---------------------------------------------------------------------------------------------------------


async def test_a_corrected_fact_becomes_history(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        lease = await filled(store, 2)
        await file(store, lease, topic(1, 2))
        await learn(store, lease, [1], fact(PARIS, 1, slot="lives in"))
        assert await correct_fact(store, 1, LONDON) == Corrected("k1", PARIS, "k2", LONDON)
        wrong, right = await look_at_fact(store, 1), await look_at_fact(store, 2)
        assert await facts(store) == [LONDON]
        assert await store.facts(FactQuery(About.USER, is_past=True, limit=9)) == []
        assert [page.corrected for page in await store.pages(PageQuery())] == [(PARIS,), ()]
    assert (wrong.state, wrong.fact.is_corrected, wrong.fact.valid_until) == (State.SUPERSEDED, True, START)
    assert wrong.superseded_by is not None
    assert wrong.superseded_by.fact == 2
    assert (right.state, right.fact.learned_by, right.fact.slot, right.fact.evidence) == (
        State.CURRENT,
        "user",
        "lives in",
        (),
    )
    assert [(before.fact, before.is_corrected) for before in right.superseded] == [(1, True)]


@pytest.mark.parametrize("again", [PARIS, "i live in PARIS", "I live, in Paris!"])
async def test_a_corrected_fact_is_not_learned_again_from_old_pages(tmp_path: Path, again: str) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        lease = await filled(store, 2)
        await file(store, lease, topic(1, 2))
        await learn(store, lease, [1], fact(PARIS, 1))
        assert await correct_fact(store, 1) == Corrected("k1", PARIS)
        lessons = Lessons((), (fact(again, 1, 2), fact("The user keeps ants", 2)))
        assert await commit(store, lease, lessons)
        assert await facts(store) == ["The user keeps ants"]


async def commit(store: SqlStore, lease: Lease, lessons: Lessons, pages: Sequence[int] = (1, 2)) -> bool:
    learning = Learning(
        segments=(1,),
        pages=pages,
        lessons=lessons,
        traits=await store.traits(),
        learner="llm",
        corrections=await store.corrected_facts(),
        replaces=STAND_IN,
    )
    return await store.commit(lease, learning)


async def test_a_page_after_the_correction_may_state_the_fact_again(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        lease = await filled(store, 1)
        await file(store, lease, topic(1))
        await learn(store, lease, [1], fact(PARIS, 1))
        await correct_fact(store, 1, LONDON)
        await store.add_pages([Turn("I moved back: I live in Paris.", "", START + timedelta(days=9))])
        await file(store, lease, topic(2, segment=1))
        assert await commit(store, lease, Lessons((), (fact(PARIS, 2, supersedes=(2,)),)), [2])
        assert await facts(store) == [PARIS]


async def test_lessons_from_before_a_correction_are_rejected(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        lease = await filled(store, 2)
        await file(store, lease, topic(1, 2))
        await learn(store, lease, [1], fact(PARIS, 1))
        lessons = Lessons((), (fact("The user's home is Paris", 2),))
        late = Learning(segments=(1,), pages=[2], lessons=lessons, traits=[], learner="llm")
        await correct_fact(store, 1, LONDON)
        assert not await store.commit(lease, late)
        assert await facts(store) == [LONDON]


async def test_a_redo_does_not_change_a_correction(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        lease = await filled(store, 2)
        await file(store, lease, topic(1, 2))
        await learn(store, lease, [1], fact("I live in Rome.", 1, slot="lives in"))
        await learn(store, lease, [2], fact(PARIS, 2, slot="lives in", supersedes=(1,)))
        await correct_fact(store, 2, LONDON)
        assert await commit(store, lease, Lessons((), ()))
        assert await facts(store) == [LONDON]
        wrong = await look_at_fact(store, 2)
        assert (wrong.state, wrong.fact.is_corrected) == (State.SUPERSEDED, True)
        assert wrong.fact.evidence


async def test_facts_of_the_user_are_archived_last(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, short_term_capacity=0, knowledge_capacity=2, clock=clock) as store:
        lease = await filled(store, 4)
        await file(store, lease, topic(1, 2, 3, 4))
        await learn(store, lease, [1], fact(PARIS, 1))
        await correct_fact(store, 1, LONDON)
        for page, said in enumerate(("ants", "bees", "cats"), 2):
            clock.move(minutes=5)
            lease = await lease_of(store)
            assert await commit(store, lease, Lessons((), (fact(f"The user keeps {said}", page),)), [page])
        assert await facts(store) == [LONDON, "The user keeps cats"]


async def test_a_correction_that_cannot_be_carried_out_changes_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        lease = await filled(store, 1)
        await file(store, lease, topic(1))
        await learn(store, lease, [1], fact(PARIS, 1), trait(Level.LOW, "Eats all.", 1))
        for number, text, problem in [(7, LONDON, "no memory has the id k7"), (1, "I live in PARIS", "is the same as")]:
            with pytest.raises(ArgumentError, match=problem):
                await correct_fact(store, number, text)
        await correct_fact(store, 1, LONDON)
        with pytest.raises(ArgumentError, match="k1 is no longer valid; correct k2"):
            await correct_fact(store, 1, "The user lives in Oslo")
        with pytest.raises(ArgumentError, match="no memory has the id trait:Humour"):
            await correct_trait(store, "Humour", Level.HIGH)
        assert await facts(store) == [LONDON]
        (known,) = await store.traits()
        assert (known.level, known.reason) == (Level.LOW, "Eats all.")


async def test_the_replacement_may_be_a_known_fact(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        lease = await filled(store, 2)
        await file(store, lease, topic(1, 2))
        await learn(store, lease, [1, 2], fact(PARIS, 1), fact(LONDON, 2))
        assert (await correct_fact(store, 1, LONDON.upper())).current_id == "k2"
        assert await commit(store, lease, Lessons((), ()))  # the redo removes facts that only the fallback had learned
        assert await facts(store) == [LONDON]
        assert (await look_at_fact(store, 2)).fact.learned_by == "user"


async def test_a_trait_set_by_the_user_keeps_its_level(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        lease = await filled(store, 2)
        await file(store, lease, topic(1, 2))
        await learn(store, lease, [1], trait(Level.LOW, "Eats all.", 1))
        assert (await correct_trait(store, "  dIET ", Level.HIGH, "Is a vegan.")).id == f"trait:{DIET}"
        assert await commit(store, lease, Lessons((trait(Level.LOW, "Ate a steak.", 2),), ()))
        look = await look_at_trait(store, "diet")
    assert look.trait is not None
    assert (look.trait.level, look.trait.reason, look.trait.learned_by) == (Level.HIGH, "Is a vegan.", "user")
    assert len(look.trait.evidence) == 2
    assert [(past.level, past.is_corrected) for past in look.history] == [(Level.LOW, True)]


async def test_a_wrong_trait_is_learned_again_only_from_new_pages(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        lease = await filled(store, 2)
        await file(store, lease, topic(1, 2))
        await learn(store, lease, [1], trait(Level.LOW, "Eats all.", 1))
        await correct_trait(store, is_wrong=True)
        assert await commit(store, lease, Lessons((trait(Level.LOW, "Eats all.", 1, 2),), ()))
        assert await store.traits() == []
        assert (await look_at_trait(store)).trait is None
        assert await store.user_data.past_traits() == [DIET]
        await store.add_pages([Turn("I eat everything now.", "", START)])
        await file(store, lease, topic(3, segment=1))
        assert await commit(store, lease, Lessons((trait(Level.LOW, "Eats all.", 3),), ()), [3])
        assert [known.dimension for known in await store.traits()] == [DIET]
        assert await store.user_data.past_traits() == []


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"id": "k1"}, "text: "),
        ({"id": "k1", "text": "x", "is_wrong": True}, "text: "),
        ({"id": "k1", "text": " \n "}, "text: "),
        ({"id": "k1", "level": "High"}, "level: "),
        ({"id": "trait:Diet", "text": "x"}, "text: "),
        ({"id": "trait:Diet", "level": "High", "is_wrong": True}, "level: "),
        ({"id": "trait:Diet", "level": "Huge"}, "level: "),
        ({"id": "p_00"}, "id: is the id of a page"),
        ({"id": "c1", "is_wrong": True}, "id: is the id of a chain"),
        ({"id": "'; DROP TABLE facts"}, "id: is not a valid id"),
    ],
)
async def test_an_invalid_correction_names_the_problem(tmp_path: Path, given: dict[str, Any], problem: str) -> None:
    async with opened(tmp_path) as store:
        with pytest.raises(ArgumentError, match=f"^{problem}"):
            await correct(store.user_data, given["id"], "redact", **{key: given[key] for key in given if key != "id"})


async def test_a_secret_in_a_correction_is_removed_or_refused(tmp_path: Path) -> None:
    key = "ghp_" + "0123456789abcdefABCDEF" + "0123456789abcd"
    async with opened(tmp_path, short_term_capacity=0) as store:
        lease = await filled(store, 1)
        await file(store, lease, topic(1))
        await learn(store, lease, [1], trait(Level.LOW, "Eats all.", 1))
        with pytest.raises(ArgumentError, match=r"^reason: contains a secret \(github token\)") as caught:
            await correct(store.user_data, "trait:Diet", "reject", reason=f"Says {key}")
        assert key not in str(caught.value)
        await correct(store.user_data, "trait:Diet", "redact", reason=f"Says {key}")
        assert [known.reason for known in await store.traits()] == ["Says [redacted: github token]"]


# Reworded facts -------------------------------------------------------------------------------------------------------

CORRECTED = [
    CorrectedFact(About.USER, PARIS, "lives in", 5, 2, LONDON),
    CorrectedFact(About.USER, PEANUTS, None, 5, None, None),
]
RESTATED = [
    "The user is based in Paris, France",
    "The user's place of residence is Paris",
    "The user has a peanut allergy",
    "Peanuts make the user ill",
]
OTHERS = ["The user lives in London", "The user likes French films", "The user is allergic to cats"]


async def kept(text: str, embed: Embed | None, *evidence: int, **more: Any) -> bool:
    change = AddFact(About.USER, text, more.pop("slot", None), START, evidence, **more)
    lessons = await without_corrected(Lessons((), (change,)), CORRECTED, embed)
    return lessons.knowledge == (change,)


@asynccontextmanager
async def bundled() -> AsyncIterator[Embed]:
    embedder = BundledEmbedder()
    try:
        yield embedder.embed
    finally:
        await embedder.aclose()


async def test_reworded_corrected_facts_are_not_learned() -> None:
    async with bundled() as embed:
        assert [text for text in RESTATED if await kept(text, embed, 3, 5)] == []
        assert [text for text in OTHERS if await kept(text, embed, 5)] == OTHERS
        assert [text for text in RESTATED if await kept(text, embed, 3, 6)] == RESTATED


async def test_words_are_compared_without_a_working_model() -> None:
    async def failing(_: Sequence[str]) -> NDArray[np.float32]:
        msg = "down"
        raise ModelError(msg)

    for embed in (None, failing):
        assert not await kept("Paris is where the user lives", embed, 5)
        assert not await kept("The user is allergic to peanuts and hazel", embed, 5)
        assert [text for text in OTHERS if await kept(text, embed, 5)] == OTHERS


async def test_old_pages_do_not_change_a_corrected_attribute() -> None:
    assert not await kept("I live in Rome.", None, 5, slot="lives in")
    assert not await kept("The user has settled down in Rome", None, 5, supersedes=(2,))
    assert await kept("I live in Rome.", None, 6, slot="lives in")
    assert await kept("I live in Rome.", None, 5, slot="was born in")


def test_the_prompt_contains_corrections_only_if_there_are_any() -> None:
    def shown(*corrected: CorrectedFact) -> tuple[str, str]:
        request = learn_request([], Surroundings(corrected=corrected), dimensions=(), max_prompt_tokens=4000)
        instructions, said = request.messages
        return instructions.content, said.content

    (plain, nothing), (told, wrong) = shown(), shown(CORRECTED[0])
    assert told.startswith(plain)
    assert "wrong_fact" in told.removeprefix(plain)
    assert nothing == ""
    assert '"wrong_fact":"I live in Paris."' in wrong


# Repeated reading -----------------------------------------------------------------------------------------------------


class Stubborn(ScriptedAnalyst):
    """Returns fixed facts, whatever pages it gets."""

    def __init__(self, *texts: str) -> None:
        super().__init__()
        self.texts = texts
        self.was_told: list[str] = []

    async def learn(self, pages: Sequence[Page], around: Surroundings) -> Lessons:
        await super().learn(pages, around)
        self.was_told += [fact.text for fact in around.corrected]
        seqs = tuple(view.seq for view in pages)
        told = [AddFact(About.USER, text, None, START, seqs) for text in self.texts]
        traits_told = (TraitChange(DIET, Level.LOW, "Eats all.", seqs),)
        return Lessons(traits=traits_told, knowledge=tuple(told))


@dataclass(frozen=True, slots=True)
class Reading:
    """The steps of consolidation on a real store with the bundled model."""

    store: SqlStore
    lease: Lease
    embed: Embed

    async def read(self, reader: Analyst, *, again: bool = False) -> None:
        """Organise and read all pages, or do it again as ``reconsolidate`` does."""
        fallback, clock = ExtractiveAnalyst(), Clock()
        rule = BatchRule(pages=4, idle=timedelta(0))
        reading = PageReading(self.store, reader, fallback, self.embed)
        organising = Organising(
            self.store, reader, fallback, rule=rule, similarity_threshold=0.6, clock=clock, reading=reading
        )
        promotion = Promotion(
            self.store,
            reader,
            fallback,
            heat_threshold=0.0,
            weights=HeatWeights(),
            capacity_segments=99,
            clock=clock,
            reading=reading,
        )
        if again:
            assert await self.store.mark_degraded(fallback.name)
            while await organising.redo(self.lease) or await promotion.redo(self.lease):
                pass
        while await organising.step(self.lease, needs_vectors=False):
            pass
        while await promotion.has_work(await self.store.due_work()):
            await promotion.step(self.lease)

    async def known(self) -> list[str]:
        return [known.text for known in await self.store.facts(FactQuery(About.USER))]


@asynccontextmanager
async def reading(folder: Path) -> AsyncIterator[Reading]:
    turns = [PARIS, PEANUTS, "I live in Paris with my two cats."]
    async with asyncio.timeout(LIMIT_S), bundled() as embed, opened(folder, short_term_capacity=0) as store:
        await store.add_pages([Turn(said, "I see.", START + timedelta(days=day)) for day, said in enumerate(turns)])
        yield Reading(store, await lease_of(store), embed)


async def number_of(store: SqlStore, text: str) -> int:
    return next(known.fact for known in await store.facts(FactQuery(About.USER)) if known.text == text)


async def test_a_correction_survives_another_reading_of_its_pages(tmp_path: Path) -> None:
    async with reading(tmp_path) as at:
        await at.read(ExtractiveAnalyst())
        assert PEANUTS in await at.known()
        lives = next(text for text in await at.known() if "Paris" in text)
        await correct_fact(at.store, await number_of(at.store, lives), LONDON)
        await correct_fact(at.store, await number_of(at.store, PEANUTS))
        llm = Stubborn(PARIS, "The user's home is in Paris", "The user has a peanut allergy", "The user has two cats")
        await at.read(llm, again=True)
        assert llm.learned
        assert set(llm.was_told) == {lives, PEANUTS}
        assert sorted(await at.known()) == ["The user has two cats", LONDON]
        await correct_trait(at.store, DIET, Level.HIGH, "Is a vegan.")
        await at.store.add_pages([Turn("I had a steak and live in Rome now.", "", START + timedelta(days=9))])
        await at.read(Stubborn("The user lives in Rome"))
        assert "The user lives in Rome" in await at.known()
        assert [known.level for known in await at.store.traits()] == [Level.HIGH]
