"""Dry runs of corrections, and undoing corrections."""

import asyncio
import json
import random
import tempfile
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memoryos_mcp import Memoryos
from memoryos_mcp.errors import ArgumentError
from memoryos_mcp.llm.analysis import Surroundings
from memoryos_mcp.llm.extractive import ExtractiveAnalyst
from memoryos_mcp.model.forgotten import ForgetPlan
from memoryos_mcp.model.ids import Kind, MemoryId, read_id
from memoryos_mcp.model.knowledge import About, AddFact, Lessons
from memoryos_mcp.model.pages import Page, Turn
from memoryos_mcp.model.profile import Level
from memoryos_mcp.storage.sql.store import SqlStore
from memoryos_mcp.storage.values import Corrected, Correction, FactQuery, Learning, Lease
from tests.commands import run_on
from tests.fakes import START, Clock, ScriptedAnalyst
from tests.memories import NO_MODEL, UNFILED
from tests.servers import USER, PipeServer, wait_until
from tests.stores import rows
from tests.test_correcting import (
    DIET,
    LONDON,
    PARIS,
    PEANUTS,
    commit,
    correct_fact,
    correct_trait,
    look_at_fact,
    look_at_trait,
    reading,
    trait,
)
from tests.test_store import lease_of, opened
from tests.test_store_forgetting import forget, tables
from tests.test_store_redo import fact, facts, file, filled, learn, topic

pytestmark = pytest.mark.both_stores(in_campaign=True)

ANTS = "The user keeps ants"
# Tables that count changes, and the salt of digests.
UNLIKE = {"changes", "meta", "lease"}


async def restore(store: SqlStore, name: str, *, is_dry_run: bool = False) -> Corrected:
    return await store.user_data.correct(read_id(name), Correction(is_restored=True), is_dry_run=is_dry_run)


async def refusal(store: SqlStore, name: str) -> str:
    """Return why something cannot be restored, and check that nothing has changed."""
    with pytest.raises(ArgumentError) as caught:
        await restore(store, name)
    return str(caught.value)


def kept(folder: Path) -> dict[str, list[tuple[object, ...]]]:
    """Return everything that a restore must bring back; the time of the last confirmation is left out."""
    found = {name: content for name, content in tables(folder).items() if name not in UNLIKE}
    columns = (
        "fact, text, slot, valid_from_us, valid_until_us, superseded_by, ended_by, ended_seq, learned_by, is_archived"
    )
    return found | {"facts": rows(folder, f"SELECT {columns} FROM facts ORDER BY fact")}  # noqa: S608 - constant


async def known(store: SqlStore, clock: Clock, **more: Any) -> Lease:
    """Store three pages with two facts and a trait, and let a minute pass."""
    lease = await filled(store, 3)
    await file(store, lease, topic(1, 2, 3))
    await learn(store, lease, [1, 2], fact(PARIS, 1, 2, **more), fact(ANTS, 2), trait(Level.LOW, "Eats all.", 1, 2))
    clock.move(minutes=1)
    return lease


# Facts ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [LONDON, None])
@pytest.mark.parametrize(
    "more",
    [{}, {"slot": "lives in"}, {"valid_until": START + timedelta(days=9)}, {"valid_from": START + timedelta(hours=9)}],
)
async def test_a_fact_corrected_by_mistake_is_restored(tmp_path: Path, text: str | None, more: dict[str, Any]) -> None:
    clock = Clock()
    async with opened(tmp_path, short_term_capacity=0, clock=clock) as store:
        first = {"valid_from": START} | more
        await store.add_pages([Turn(str(number), "", first["valid_from"]) for number in range(3)])
        lease = await lease_of(store)
        await file(store, lease, topic(1, 2, 3))
        about_paris = AddFact(
            About.USER, PARIS, first.get("slot"), first["valid_from"], (1, 2), (), first.get("valid_until")
        )
        await learn(store, lease, [1, 2], about_paris)
        clock.move(minutes=1)
        before = kept(tmp_path)
        corrected = await correct_fact(store, 1, text)
        assert kept(tmp_path) != before
        assert (corrected.before, corrected.current) == (PARIS, text)
        clock.move(minutes=1)
        assert await restore(store, "k1") == Corrected("k1", text, "k1", PARIS)
        assert kept(tmp_path) == before


async def test_a_fact_replaced_by_a_wrong_one_holds_again(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, short_term_capacity=0, clock=clock) as store:
        lease = await known(store, clock, slot="lives in")
        since = (await look_at_fact(store, 1)).fact.valid_from
        wrong = fact("I live in Rome.", 3, slot="lives in", supersedes=(1,))
        assert await commit(store, lease, Lessons((), (wrong,)), [3])
        assert "was not corrected" in await refusal(store, "k1")
        await correct_fact(store, 3)
        assert await facts(store) == [ANTS]
        clock.move(minutes=1)
        assert await restore(store, "k1", is_dry_run=True) == Corrected("k1", None, "k1", PARIS)
        assert await facts(store) == [ANTS]
        assert await restore(store, "k1") == Corrected("k1", None, "k1", PARIS)
        again = (await look_at_fact(store, 1)).fact
        assert (again.valid_from, again.valid_until, len(again.evidence)) == (since, None, 2)
        assert again.learned_by == "user"
        assert "k1 has since replaced k3" in await refusal(store, "k3")


async def test_a_fact_does_not_hold_again_beside_a_newer_one(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, short_term_capacity=0, clock=clock) as store:
        lease = await known(store, clock, slot="lives in")
        wrong = fact("I live in Rome.", 3, slot="lives in", supersedes=(1,))
        assert await commit(store, lease, Lessons((), (wrong,)), [3])
        await correct_fact(store, 3, LONDON)
        assert "was not corrected" in await refusal(store, "k1")


async def test_a_restored_fact_can_be_learned_and_confirmed_again(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, short_term_capacity=0, clock=clock) as store:
        lease = await known(store, clock)
        await correct_fact(store, 1)
        assert await commit(store, lease, Lessons((), (fact(PARIS, 3),)), [3])
        assert await facts(store) == [ANTS]
        await restore(store, "k1")
        assert await commit(store, lease, Lessons((), (fact(PARIS, 3),)), [3])
        await store.add_pages([Turn("I live in Paris.", "", START)])
        await file(store, lease, topic(4, segment=1))
        assert await commit(store, lease, Lessons((), (fact(PARIS.upper(), 4),)), [4])
        look = await look_at_fact(store, 1)
        assert len(look.fact.evidence) == 4
        assert await facts(store) == [PARIS, ANTS]


async def test_a_replacement_that_existed_before_stays(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, short_term_capacity=0, clock=clock) as store:
        await known(store, clock, slot="lives in")
        before = await store.facts(FactQuery(About.USER))
        assert (await correct_fact(store, 1, ANTS)).current_id == "k2"
        assert (await look_at_fact(store, 2)).fact.learned_by == "user"
        await restore(store, "k1")
        assert await store.facts(FactQuery(About.USER)) == before
        assert (await look_at_fact(store, 2)).fact.learned_by == "extractive"


async def test_a_replacement_that_pages_confirmed_becomes_history(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, short_term_capacity=0, clock=clock) as store:
        lease = await known(store, clock, slot="lives in")
        await correct_fact(store, 1, LONDON)
        assert await commit(store, lease, Lessons((), (fact(LONDON, 3),)), [3])
        clock.move(minutes=1)
        assert (await restore(store, "k1")).before == LONDON
        assert await facts(store) == [PARIS, ANTS]
        assert [each.text for each in (await look_at_fact(store, 1)).superseded] == [LONDON]


async def test_a_replacement_of_two_facts_goes_with_the_second(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, short_term_capacity=0, clock=clock) as store:
        await known(store, clock)
        before = kept(tmp_path)
        await correct_fact(store, 1, LONDON)
        clock.move(minutes=1)
        await correct_fact(store, 2, LONDON)
        await restore(store, "k1")
        assert sorted(await facts(store)) == [PARIS, LONDON]
        await restore(store, "k2")
        assert kept(tmp_path) == before


async def test_corrections_of_corrections_are_undone_last_first(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, short_term_capacity=0, clock=clock) as store:
        await known(store, clock)
        before = kept(tmp_path)
        for number, text in ((1, LONDON), (3, "The user lives in Oslo")):
            await correct_fact(store, number, text)
            clock.move(minutes=1)
        assert "k3, which replaced k1, has itself been corrected; restore k3 first" in await refusal(store, "k1")
        assert "k4 is the replacement of k3; restore k3" in await refusal(store, "k4")
        assert await restore(store, "k3") == Corrected("k3", "The user lives in Oslo", "k3", LONDON)
        await restore(store, "k1")
        assert kept(tmp_path) == before


async def test_later_statements_of_pages_are_not_undone(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, short_term_capacity=0, clock=clock) as store:
        lease = await known(store, clock, slot="lives in")
        await correct_fact(store, 1)
        await correct_fact(store, 2)
        clock.move(minutes=1)
        await store.add_pages([Turn("Rome it is. I keep ants again.", "", START)])
        await file(store, lease, topic(4, segment=1))
        lessons = Lessons((), (fact("I live in Rome.", 4, slot="lives in"), fact(ANTS, 4)))
        assert await commit(store, lease, lessons, [4])
        before = kept(tmp_path)
        assert "k3 has since replaced k1; correct k3 instead" in await refusal(store, "k1")
        assert "k4 has since replaced k2" in await refusal(store, "k2")
        assert "k3 was not corrected" in await refusal(store, "k3")
        assert kept(tmp_path) == before


async def test_the_successor_of_a_replacement_stays(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, short_term_capacity=0, clock=clock) as store:
        lease = await known(store, clock, slot="lives in")
        await correct_fact(store, 1, LONDON)
        clock.move(minutes=1)
        await store.add_pages([Turn("I live in Rome.", "", clock())])
        await file(store, lease, topic(4, segment=1))
        moved = AddFact(About.USER, "I live in Rome.", "lives in", clock(), (4,), (3,))
        assert await commit(store, lease, Lessons((), (moved,)), [4])
        assert "k4 has since replaced k1" in await refusal(store, "k1")


async def test_a_forgotten_fact_is_not_restored(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, short_term_capacity=0, clock=clock) as store:
        await known(store, clock)
        await correct_fact(store, 1, LONDON)
        await correct_trait(store, is_wrong=True)
        await forget(store, ForgetPlan(facts=(1,), refuses=True))
        assert "k1 does not exist; check the id. Forgotten facts cannot be restored" in await refusal(store, "k1")
        assert "no memory has the id trait:Diet" in await refusal(store, "trait:Diet")


# Traits --------------------------------------------------------------------------------------------------------------


async def test_a_trait_corrected_by_mistake_is_restored(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, short_term_capacity=0, clock=clock) as store:
        await known(store, clock)
        states = [kept(tmp_path)]
        for more in ({"level": Level.HIGH}, {"reason": "Is a vegan."}, {"is_wrong": True}):
            await correct_trait(store, **more)
            states.append(kept(tmp_path))
            clock.move(minutes=1)
        shown = ["High - Is a vegan.", "High - Said by the user.", "Low - Eats all."]
        for before, now in zip([None, *shown], shown, strict=False):
            states.pop()
            assert await restore(store, "trait:diet") == Corrected(f"trait:{DIET}", before, f"trait:{DIET}", now)
            assert kept(tmp_path) == states[-1]
        assert "trait:Diet was not corrected" in await refusal(store, "trait:Diet")


async def test_a_trait_that_was_learned_again_is_not_restored(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, short_term_capacity=0, clock=clock) as store:
        lease = await known(store, clock)
        await correct_trait(store, is_wrong=True)
        await store.add_pages([Turn("I eat everything now.", "", START)])
        await file(store, lease, topic(4, segment=1))
        assert await commit(store, lease, Lessons((trait(Level.HIGH, "Eats fish.", 4),), ()), [4])
        assert "trait:Diet has since been learned again" in await refusal(store, "trait:Diet")
        now = (await look_at_trait(store)).trait
        assert now is not None
        assert now.learned_by == "llm"


# Any order -----------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=15)
@example(2102)  # a replacement that is also the replacement of another fact
@given(st.integers(0, 2**32))
def test_corrections_undone_in_reverse_leave_no_trace(seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311 - no secret

    async def run_it(folder: Path) -> None:
        clock = Clock()
        async with opened(folder, short_term_capacity=0, clock=clock) as store:
            await known(store, clock, slot=dice.choice([None, "lives in"]))
            before, first, done = kept(folder), await store.facts(FactQuery(About.USER)), []
            for step in range(dice.randint(1, 6)):
                clock.move(minutes=1)
                current = await store.facts(FactQuery(About.USER))
                if current and dice.random() < 0.7:
                    wrong = dice.choice(current)
                    right = dice.choice([text for text in (None, f"New {step}", LONDON, ANTS) if text != wrong.text])
                    await correct_fact(store, wrong.fact, right)
                    done.append(f"k{wrong.fact}")
                elif await store.traits():
                    await correct_trait(store, reason=f"Because {step}.", is_wrong=False)
                    done.append(f"trait:{DIET}")
            for name in reversed(done):
                clock.move(minutes=1)
                await restore(store, name)
            assert kept(folder) == before
            assert await store.facts(FactQuery(About.USER)) == first

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run_it(Path(folder)))


# Dry runs ------------------------------------------------------------------------------------------------------------


async def test_a_dry_run_tells_what_would_change_and_changes_nothing(tmp_path: Path) -> None:
    clock = Clock()
    a_fact, a_trait = MemoryId(Kind.FACT, number=1), MemoryId(Kind.TRAIT, name=DIET)
    steps = [
        (a_fact, Correction(text=LONDON), Corrected("k1", PARIS, None, LONDON)),
        (a_fact, Correction(is_restored=True), Corrected("k1", LONDON, "k1", PARIS)),
        (a_fact, Correction(text=ANTS), Corrected("k1", PARIS, "k2", ANTS)),
        (a_trait, Correction(level=Level.HIGH), Corrected("trait:Diet", "Low - Eats all.", "trait:Diet", None)),
        (a_trait, Correction(is_wrong=True), Corrected("trait:Diet", "High - Said by the user.")),
    ]
    async with opened(tmp_path, short_term_capacity=0, clock=clock) as store:
        await known(store, clock)
        for what, correction, expected in steps:
            before = tables(tmp_path)
            told = await store.user_data.correct(what, correction, is_dry_run=True)
            assert tables(tmp_path) == before
            assert (told.before, told.current_id) == (expected.before, expected.current_id)
            done = await store.user_data.correct(what, correction, is_dry_run=False)
            assert (done.before, done.current) == (told.before, told.current)
            clock.move(minutes=1)


# Running extractions -------------------------------------------------------------------------------------------------


async def test_lessons_from_before_a_restore_are_discarded(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, short_term_capacity=0, clock=clock) as store:
        lease = await known(store, clock)
        await correct_fact(store, 1)
        noted = await store.corrected_facts()
        lessons = Lessons((), (fact("The user has an ant farm", 3),))
        late = Learning(
            segments=(1,), pages=[3], lessons=lessons, traits=await store.traits(), learner="llm", corrections=noted
        )
        await restore(store, "k1")
        await correct_fact(store, 2)  # the number of corrections is the same as before
        assert len(await store.corrected_facts()) == len(noted)
        assert not await store.commit(lease, late)
        assert await facts(store) == [PARIS]


class Interrupted(ScriptedAnalyst):
    """Learns all facts not marked as wrong; during its first call the user undoes a correction and makes another."""

    def __init__(self, store: SqlStore, restored: int, wrong: int, *texts: str) -> None:
        super().__init__()
        self._store, self._restored, self._wrong, self._texts = store, restored, wrong, texts
        self._is_interrupted = False

    async def learn(self, pages: Sequence[Page], around: Surroundings) -> Lessons:
        if not self._is_interrupted:
            self._is_interrupted = True
            await restore(self._store, f"k{self._restored}")
            await correct_fact(self._store, self._wrong)
        seqs, wrong = tuple(view.seq for view in pages), {each.text for each in around.corrected}
        told = [AddFact(About.USER, text, None, START, seqs) for text in self._texts if text not in wrong]
        return Lessons((), tuple(told))


async def test_a_running_extraction_follows_a_restore(tmp_path: Path) -> None:
    async with reading(tmp_path) as at:
        await at.read(ExtractiveAnalyst())
        by_text = {known.text: known.fact for known in await at.store.facts(FactQuery(About.USER))}
        lives = next(text for text in by_text if "Paris" in text)
        await correct_fact(at.store, by_text[lives])
        llm = Interrupted(at.store, by_text[lives], by_text[PEANUTS], lives, "The user has a peanut allergy")
        await at.read(llm, again=True)
        current = {known.text: known.fact for known in await at.store.facts(FactQuery(About.USER))}
        assert current[lives] == by_text[lives]
        assert not [text for text in current if "peanut" in text.lower()]


# Exports and imports -------------------------------------------------------------------------------------------------


async def test_a_correction_can_be_undone_in_an_imported_memory(tmp_path: Path) -> None:
    clock = Clock()
    origin = tmp_path / "origin"
    origin.mkdir()
    async with opened(origin, short_term_capacity=0, clock=clock) as store:
        await known(store, clock)
        await correct_fact(store, 1, LONDON)
        await correct_trait(store, is_wrong=True)
    line = ("--user-id", "ada", "--embedding-model-name", "none")
    await asyncio.to_thread(run_on, origin, "export", tmp_path / "memory.jsonl", *line)
    copy = tmp_path / "copy"
    await asyncio.to_thread(run_on, copy, "import", tmp_path / "memory.jsonl", *line)
    async with opened(copy, short_term_capacity=0, clock=clock) as store:
        await restore(store, "k1")
        await restore(store, "trait:Diet")
        (shown,) = await store.traits()
        assert (shown.reason, len(shown.evidence)) == ("Eats all.", 2)
        assert await facts(store) == [PARIS, ANTS]
        now = (await look_at_trait(store)).trait
        assert now is not None
        assert now.learned_by == "extractive"


# Through a server and the command line -------------------------------------------------------------------------------


def learned(server: PipeServer) -> str:
    """Learn a fact, and return its id."""
    server.add("I live in Paris. I am allergic to peanuts.")
    for number in range(6):
        server.add(f"My pottery class glazed bowl {number} in the kiln, and I love pottery.")
    found: list[dict[str, Any]] = []

    def has_learned() -> bool:
        found[:] = server.call("list_memories", tier="knowledge")["memories"]
        return any("Paris" in each["beginning"] for each in found)

    wait_until(has_learned, "the fact is learned")
    return next(str(each["id"]) for each in found if "Paris" in each["beginning"])


def pages_of_fact(server: PipeServer, fact_id: str) -> set[str]:
    (shown,) = server.call("get_memory", ids=[fact_id])["memories"]
    return set(shown["evidence"])


def test_a_correction_of_a_wrong_id_can_be_undone(data: Path) -> None:
    busy = {"consolidation_idle_s": 0.1, "short_term_capacity": 1, **NO_MODEL}
    with PipeServer(data, {**busy, "mid_term_heat_threshold": 0.5}) as server:
        lives = learned(server)
        wait_until(lambda: bool(server.stats()["is_settled"]), "the background work is done")
        before = server.call("get_user_profile")
        arguments = {"id": lives, "text": "The user's dog is Rex"}
        dry = server.call("correct_memory", **arguments, dry_run=True)
        assert server.call("get_user_profile")["user_knowledge"] == before["user_knowledge"]
        assert (dry["status"], dry["holds_now"], dry["after"]) == ("dry_run", None, "The user's dog is Rex")
        answer = server.result(server.send_call("correct_memory", arguments))
        done, text = answer["structuredContent"], answer["content"][0]["text"]
        assert (done["status"], done["before"], done["after"]) == ("corrected", dry["before"], dry["after"])
        assert "Paris" in done["before"]
        assert done["before"] in text
        assert done["after"] in text
        # Whatever hands the page to an assistant says that it was corrected.
        found = server.result(server.send_call("retrieve_memory", {"query": "Where do I live?", "max_results": 50}))
        recalled = found["structuredContent"]
        pages = [*recalled["short_term_memory"], *recalled["retrieved_pages"]]
        assert {page["page_id"] for page in pages if page["corrected"] == [done["before"]]} == pages_of_fact(
            server, lives
        )
        assert f'no longer true: "{done["before"]}" (the user corrected it)' in found["content"][0]["text"]
        back = server.call("correct_memory", id=lives, restore=True)
        assert (
            "the user corrected it"
            not in server.result(server.send_call("retrieve_memory", {"query": "live"}))["content"][0]["text"]
        )
        assert (back["status"], back["holds_now"], back["after"]) == ("restored", lives, done["before"])
        after = server.call("get_user_profile")
        for part in ("traits", "user_knowledge", "user_profile"):
            assert after[part] == before[part]
        assert "was not corrected" in server.refusal("correct_memory", id=lives, restore=True)
        assert server.refusal("correct_memory", id=lives, restore=True, wrong=True).startswith("restore: ")
        server.add("As I said, I live in Paris.")
        wait_until(lambda: bool(server.stats()["is_settled"]), "the background work is done")
        (shown,) = server.call("get_memory", ids=[lives])["memories"]
        assert (shown["state"], shown["learned_by"]) == ("current", "extractive")


def known_facts(data: Path) -> list[dict[str, Any]]:
    facts: list[dict[str, Any]] = json.loads(run_on(data, "stats", "--json").stdout)["profile"]["user_knowledge"]
    return facts


def test_the_command_line_corrects_and_restores(data: Path) -> None:
    with Memoryos(USER, data_storage_path=data, **NO_MODEL) as memory:
        memory.add_memory("I live in Paris.", "")
        wait_until(lambda: bool(known_facts(data)), "the fact is learned")
    lives = known_facts(data)[0]["knowledge_id"]
    quiet = ("--embedding-model-name", "none", *(f"--{k.replace('_', '-')}={v:g}" for k, v in UNFILED.items()))

    def told(*arguments: str, code: int = 0) -> str:
        done = run_on(data, "correct", lives, *arguments, *quiet, code=code)
        return done.stderr if code else done.stdout

    shown = told("--text", "The user lives in Oslo", "--dry-run")
    assert "before: " in shown
    assert "Paris" in shown
    assert "after: The user lives in Oslo" in shown
    assert "nothing was changed" in shown
    assert f"memoryos-mcp correct {lives} --restore" in told("--wrong")
    back = json.loads(told("--restore", "--json"))
    assert (back["status"], back["before"], back["holds_now"]) == ("restored", None, lives)
    assert "--restore: cannot be done" in told("--restore", code=2)
    assert "--text: either --text or --wrong is required" in told(code=2)
    assert "--level: " in told("--level", "high", code=2)
    missing = run_on(data / "none", "correct", lives, "--wrong", code=1)
    assert "has no memory" in missing.stderr
