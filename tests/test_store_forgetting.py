"""Forgetting in the store: data derived from a page is deleted with it, and the rest stays consistent."""

import asyncio
import random
import tempfile
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoryos_mcp.errors import LeaseLostError
from memoryos_mcp.model.forgotten import ForgetCounts, ForgetPlan, ForgetReceipt, runs
from memoryos_mcp.model.knowledge import About, ConfirmFact
from memoryos_mcp.model.pages import Tier, Turn, Window
from memoryos_mcp.model.profile import Level, TraitChange
from memoryos_mcp.model.segments import Digest
from memoryos_mcp.storage.sql.connection import Database
from memoryos_mcp.storage.sql.forgetting import REASON_LOST
from memoryos_mcp.storage.sql.page_table import add_pages
from memoryos_mcp.storage.sql.store import SqlStore
from memoryos_mcp.storage.values import (
    ChainPlan,
    FactQuery,
    Lease,
    PageQuery,
    SegmentPlan,
    StoreOptions,
    SummaryCursor,
    Vectors,
)
from tests.fakes import START
from tests.stores import broken_references, indexed_words, rows, table_names
from tests.test_store import lease_of, opened, vector
from tests.test_store_redo import assert_counts_agree, fact, facts, file, learn, topic

pytestmark = pytest.mark.both_stores(in_campaign=True)

OPTIONS = StoreOptions(assistant_id="helper", short_term_capacity=3, session_gap_s=1800, knowledge_capacity=100)
LATER = START + timedelta(minutes=15)


def name_of(number: int) -> str:
    return f"Q{chr(ord('a') + number)}x"


def said(number: int) -> Turn:
    return Turn(
        f"question{number} Hello {name_of(number)}, common", f"answer{number}", START + timedelta(minutes=number)
    )


async def filled(store: SqlStore, pages: int) -> Lease:
    await store.add_pages([said(number) for number in range(1, pages + 1)])
    return await lease_of(store)


async def forget(store: SqlStore, plan: ForgetPlan, handle: str = "f_1") -> ForgetReceipt:
    """Plan and confirm, and check that the dry run returned the same counts."""
    counts, _, _ = await store.user_data.plan_forgetting(plan, handle, LATER)
    receipt = await store.user_data.forget(handle)
    assert receipt is not None
    assert receipt.counts == counts
    return receipt


def pages(*seqs: int) -> ForgetPlan:
    return ForgetPlan(runs=runs(seqs))


def tables(folder: Path) -> dict[str, list[tuple[object, ...]]]:
    """Return the content of every table, except those of forgetting."""
    names = [name for name in table_names(folder) if name != "forget_plans"]
    return {name: rows(folder, f"SELECT * FROM {name} ORDER BY 1, 2") for name in names}  # noqa: S608


async def test_a_dry_run_changes_nothing_and_stores_no_text(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        lease = await filled(store, 4)
        assert await file(store, lease, topic(1, 2), topic(3, 4))
        await learn(store, lease, [1], fact("I live in Oslo.", 1))
        before = tables(tmp_path)
        words = indexed_words(tmp_path)
        counts, samples, derived = await store.user_data.plan_forgetting(pages(1, 2), "f_1", LATER)
        assert counts == ForgetCounts(pages=2, facts=1, segments=1)
        assert [sample.text.split()[0] for sample in samples] == ["question1", "question2"]
        assert [sample.id for sample in derived] == ["k1", "s1"]
        assert tables(tmp_path) == before
        assert indexed_words(tmp_path) == words
        ((plan,),) = rows(tmp_path, "SELECT plan FROM forget_plans")
        assert "question" not in plan
        assert "Oslo" not in plan


async def test_a_page_is_deleted_with_its_index_vectors_and_key(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        await store.add_pages([said(1), Turn("Hello Bruno, kept", "answer2", START, idempotency_key="k")])
        lease = await lease_of(store)
        window = Window(0, 5, vector(1, 0, 0))
        await store.commit(lease, Vectors(pages={1: [window], 2: [window]}))
        await forget(store, pages(2))
        assert [page.seq for page in await store.pages(PageQuery(tier=Tier.BACKLOG, limit=9))] == [1]
        assert rows(tmp_path, "SELECT seq FROM page_vectors") == [(1,)]
        assert {"bruno", "kept", "answer2"}.isdisjoint(indexed_words(tmp_path))
        assert rows(tmp_path, "SELECT name FROM names") == [("qbx",)]
        assert (await store.add_pages([Turn("new", "", START, idempotency_key="k")]))[0].is_new
        assert (await store.changes(0, 99)).pages == (1, 2)


async def test_a_fact_is_deleted_with_the_last_page_that_states_it(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        lease = await filled(store, 4)
        assert await file(store, lease, topic(1, 2, 3, 4))
        await learn(store, lease, [1, 2], fact("I live in Oslo.", 1), fact("I have a dog.", 1, 2))
        await learn(store, lease, [3], ConfirmFact(1, (3,)))
        await learn(store, lease, [4], fact("I LIVE in Oslo", 4))
        assert rows(tmp_path, "SELECT fact, seq, is_confirming FROM fact_evidence ORDER BY fact, seq") == [
            (1, 1, 0), (1, 3, 1), (1, 4, 1), (2, 1, 0), (2, 2, 0),
        ]  # fmt: skip
        receipt = await forget(store, pages(1))
        assert receipt.counts == ForgetCounts(pages=1, facts=1, segments=1)
        assert await facts(store) == ["I have a dog."]
        assert [
            page.seq for page in await store.pages(PageQuery(segment=1, is_newest=True, is_unanalysed=True, limit=9))
        ] == [3, 4]
        assert await store.due_segments() == [1]
        assert_counts_agree(tmp_path)


async def test_forgetting_a_page_restores_superseded_facts(tmp_path: Path) -> None:
    for name, plan in (("page", pages(2)), ("fact", ForgetPlan(facts=(2,), refuses=True))):
        async with opened(tmp_path / name, short_term_capacity=0) as store:
            lease = await filled(store, 3)
            assert await file(store, lease, topic(1, 2, 3))
            await learn(store, lease, [1], fact("I live in Oslo.", 1, slot="lives"))
            await learn(store, lease, [2], fact("I live in Rome.", 2, slot="lives", supersedes=(1,)))
            await forget(store, plan)
            assert await facts(store) == (["I live in Oslo."] if name == "page" else [])
            assert broken_references(tmp_path / name) == []


async def test_a_forgotten_fact_is_only_learned_from_newer_pages(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        lease = await filled(store, 3)
        assert await file(store, lease, topic(1, 2, 3))
        lesson = fact("I live in Oslo.", 1), TraitChange("Openness", Level.HIGH, "curious", (1,))
        await learn(store, lease, [1], *lesson)
        receipt = await forget(store, ForgetPlan(facts=(1,), traits=("Openness",), refuses=True))
        assert receipt.counts == ForgetCounts(facts=1, traits=1)
        assert all(b"Oslo" not in value for value in rows(tmp_path, "SELECT digest FROM refused")[0])
        lease = await lease_of(store)
        await learn(store, lease, [1, 2], *lesson, fact("I moved to Oslo", 2))
        assert await facts(store) == ["I moved to Oslo"]  # other words are another fact
        assert await store.traits() == []
        await store.add_pages([said(4)])
        assert await file(store, lease, topic(4))
        await learn(store, lease, [4], fact("I live in Oslo.", 4), TraitChange("Openness", Level.LOW, "shy", (4,)))
        assert await facts(store) == ["I moved to Oslo", "I live in Oslo."]
        assert [trait.level for trait in await store.traits()] == [Level.LOW]


async def test_a_trait_with_other_evidence_loses_reason_and_history(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        lease = await filled(store, 3)
        assert await file(store, lease, topic(1, 2, 3))
        await learn(store, lease, [1], TraitChange("Openness", Level.LOW, "quotes one", (1,)))
        await learn(store, lease, [2], TraitChange("Openness", Level.HIGH, "quotes two", (2,)))
        await learn(store, lease, [1], TraitChange("Calm", Level.LOW, "quotes one", (1,)))
        receipt = await forget(store, pages(1))
        assert receipt.counts == ForgetCounts(pages=1, traits=1, changed_traits=1, segments=1)
        (trait,) = await store.traits()
        assert (trait.dimension, trait.level, trait.reason) == ("Openness", Level.HIGH, REASON_LOST)
        assert rows(tmp_path, "SELECT * FROM trait_history") == []


async def test_other_plans_with_a_forgotten_trait_are_deleted(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        lease = await filled(store, 2)
        assert await file(store, lease, topic(1, 2))
        traits = [TraitChange(name, Level.LOW, "said so", (page,)) for name, page in (("Calm", 1), ("Open", 2))]
        await learn(store, lease, [1, 2], *traits)
        for name in ("Calm", "Open"):
            await store.user_data.plan_forgetting(ForgetPlan(traits=(name,), refuses=True), f"f_{name}", LATER)
        await forget(store, pages(1))
        assert rows(tmp_path, "SELECT handle FROM forget_plans") == [("f_Open",)]
        assert await store.user_data.forget("f_Calm") is None
        assert await store.user_data.forget("f_Open") is not None


async def test_empty_segments_go_and_others_get_new_summaries(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        lease = await filled(store, 4)
        chains = [ChainPlan(None, (1, 2), "first"), ChainPlan(None, (3, 4), "second")]
        assert await file(store, lease, topic(1, 2), topic(3, 4), chains=chains)
        await forget(store, pages(1, 2, 3))
        assert rows(tmp_path, "SELECT segment, summary, keywords, page_count FROM segments") == [(2, "", "[]", 1)]
        assert rows(tmp_path, "SELECT chain, summary FROM chains") == [(2, "")]
        found = await store.user_data.missing_summaries(SummaryCursor(), 10)
        assert (found.chains, found.segments) == ((2,), (2,))
        await forget(store, pages(99), "f_2")
        digests = [Digest(("new",), "chain"), Digest(("new",), "segment")]
        assert not await store.user_data.set_summaries(found, digests, "test")  # they may quote forgotten pages
        assert await store.user_data.set_summaries(
            await store.user_data.missing_summaries(SummaryCursor(), 10), digests, "test"
        )
        assert rows(tmp_path, "SELECT summary FROM segments UNION SELECT summary FROM chains ORDER BY 1") == [
            ("chain",),
            ("segment",),
        ]
        assert_counts_agree(tmp_path)


async def test_derived_text_with_a_lost_word_is_deleted(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        lease = await filled(store, 3)
        quoting = SegmentPlan(None, (2, 3), Digest(("question1",), "about it"), None, "test")
        chains = [ChainPlan(None, (1,), "one"), ChainPlan(None, (2, 3), "quotes answer1")]
        assert await file(store, lease, topic(1), quoting, chains=chains)
        await learn(store, lease, [2], fact("Their answer was answer1.", 2), fact("I like common things.", 2))
        await learn(store, lease, [3], TraitChange("Calm", Level.LOW, "said answer1", (3,)))
        await forget(store, pages(1))
        assert rows(tmp_path, "SELECT summary, keywords FROM segments") == [("", "[]")]
        assert rows(tmp_path, "SELECT summary FROM chains") == [("",)]
        assert await facts(store) == ["I like common things."]
        assert (await store.traits())[0].reason == REASON_LOST


async def test_other_scripts_do_not_change_the_words_of_a_text(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        await store.add_pages([Turn("At the Café: O'Brien", "", START), Turn("common", "", START)])
        lease = await lease_of(store)
        assert await file(store, lease, topic(1), topic(2), chains=[ChainPlan(None, (1, 2), "one")])
        await learn(store, lease, [2], fact("O'Brien is a friend.", 2))
        await forget(store, pages(1))
        assert await facts(store) == []


@pytest.mark.sqlite_only
async def test_deleting_a_row_never_scans_a_table_for_references(tmp_path: Path) -> None:
    async with opened(tmp_path):
        pass
    keys = rows(
        tmp_path,
        'SELECT t.name, f."from" FROM pragma_table_list AS t, pragma_foreign_key_list(t.name) AS f '
        "WHERE f.\"table\" IN ('pages', 'facts', 'chains', 'segments')",
    )
    assert ("page_vectors", "seq") in keys
    for table, column in keys:
        plan = rows(tmp_path, f"EXPLAIN QUERY PLAN SELECT 1 FROM {table} WHERE {column} = 1")  # noqa: S608 - our names
        assert all(step[3].startswith("SEARCH") for step in plan), (table, column, plan)


async def test_forgetting_refuses_outdated_work_but_not_later_work(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        lease = await filled(store, 3)
        await forget(store, pages(1))
        with pytest.raises(LeaseLostError):
            await file(store, lease, topic(1, 2))
        with pytest.raises(LeaseLostError):
            await store.commit(lease, Vectors(pages={1: [Window(0, 5, vector(1, 0, 0))]}))
        assert await file(store, await lease_of(store), topic(2, 3))


async def test_purging_ends_while_pages_are_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(tmp_path) as store:
        await filled(store, 3)
        await forget(store, pages(1))
        kind = type(store._database)
        write, later = kind.write, iter(range(10, 500))

        async def written(database: Database, change: Callable[..., object], *args: object) -> object:
            result = await write(database, change, *args)
            await write(database, lambda connection: add_pages(connection, [said(next(later))], 0, OPTIONS, None))
            return result

        monkeypatch.setattr(kind, "write", written)
        assert await store.user_data.purge()
        assert 0 < len(await store.pages(PageQuery(tier=Tier.SHORT_TERM))) < 20
        assert not indexed_words(tmp_path) & {"question1", "answer1"}


async def test_a_handle_is_valid_once_and_until_it_expires(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        await filled(store, 3)
        await store.user_data.plan_forgetting(pages(1), "f_old", START)
        assert await store.user_data.forget("f_old") is None
        assert await store.user_data.forget("f_unknown") is None
        receipt = await forget(store, pages(1), "f_1")
        assert await store.user_data.forget("f_1") == receipt
        assert (await store.counts()).pages == 2
        assert await store.user_data.forget_receipts() == [receipt]


async def test_common_words_are_counted_again_after_forgetting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memoryos_mcp.storage.sql.term_stats.REMEMBERED_FROM", 1)
    async with opened(tmp_path, short_term_capacity=0) as store:
        await filled(store, 4)
        assert (await store.search_words(["common"], [], 0)).stats.counts == {"common": 4}
        await forget(store, pages(1, 2))
        assert (await store.search_words(["common"], [], 0)).stats.counts == {"common": 2}


async def test_a_failure_while_forgetting_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        lease = await filled(store, 3)
        assert await file(store, lease, topic(1, 2, 3))
        await store.user_data.plan_forgetting(pages(1), "f_1", LATER)
        before = tables(tmp_path)

        def fail(*_: object) -> None:
            raise RuntimeError

        with monkeypatch.context() as patched:
            patched.setattr("memoryos_mcp.storage.sql.forgetting.drop_needless", fail)
            with pytest.raises(RuntimeError):
                await store.user_data.forget("f_1")
        assert tables(tmp_path) == before
        assert await store.user_data.forget("f_1") is not None


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32), gone=st.lists(st.sets(st.integers(1, 24), max_size=12), min_size=1, max_size=4))
def test_forgetting_leaves_the_file_as_without_the_pages(seed: int, gone: Sequence[set[int]]) -> None:
    async def check(folder: Path) -> None:
        dice = random.Random(seed)  # noqa: S311 - no secret
        async with opened(folder, short_term_capacity=2) as store:
            lease = await filled(store, 24)
            stated: dict[int, set[int]] = {}
            waiting = [page.seq for page in await store.pages(PageQuery(tier=Tier.BACKLOG, limit=99))]
            while waiting:
                size = dice.randint(1, 6)
                batch, waiting = waiting[:size], waiting[size:]
                known = [segment.segment for segment in await store.segments()]
                into = dice.choice([None, *known])
                assert await file(store, lease, topic(*batch, segment=into))
                evidence = tuple(sorted(dice.sample(batch, dice.randint(1, len(batch)))))
                await learn(
                    store, lease, batch, fact(f"I am number {len(stated)}.", *evidence), segment=into or len(known) + 1
                )
                stated[len(stated)] = set(evidence)
            left = set(range(1, 25))
            for number, seqs in enumerate(gone):
                await forget(store, pages(*sorted(seqs)), f"f_{number}")
                left -= seqs
                assert_counts_agree(folder)
                assert [row[0] for row in rows(folder, "SELECT seq FROM pages ORDER BY seq")] == sorted(left)
                kept = sorted(f"I am number {name}." for name, evidence in stated.items() if evidence & left)
                assert sorted(known.text for known in await store.facts(FactQuery(About.USER))) == kept
                names = {name_of(seq).lower() for seq in left}
                expected = {f"{word}{seq}" for seq in left for word in ("question", "answer")} | names
                assert indexed_words(folder) - {"hello", "common"} == expected
                assert {row[0] for row in rows(folder, "SELECT name FROM names")} == names

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(check(Path(folder)))
