"""The stores: durable pages, short-term capacity, leases, transactions and integrity checks."""

import asyncio
import os
import stat
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest

from memoryos_mcp.errors import LeaseLostError, StorageError
from memoryos_mcp.model.knowledge import About, AddFact, ConfirmFact, Lessons
from memoryos_mcp.model.pages import Tier, Turn, Window
from memoryos_mcp.model.profile import Level, Trait, TraitChange
from memoryos_mcp.model.segments import Digest
from memoryos_mcp.storage.postgres.words import PostingWords
from memoryos_mcp.storage.sql import lexical, term_stats, vector_spaces
from memoryos_mcp.storage.sql.store import SqlStore
from memoryos_mcp.storage.sqlite import checks as checks_module
from memoryos_mcp.storage.sqlite import integrity, open_file
from memoryos_mcp.storage.sqlite import store as sqlite_store
from memoryos_mcp.storage.sqlite.backup import make_copy, put_in_place
from memoryos_mcp.storage.sqlite.checks import Checks
from memoryos_mcp.storage.sqlite.database import SqliteDatabase
from memoryos_mcp.storage.sqlite.file_check import check_copy
from memoryos_mcp.storage.sqlite.paths import database_file
from memoryos_mcp.storage.sqlite.store import OUTLINES_SQL, PAGES_TO_SHARE
from memoryos_mcp.storage.sqlite.words import FtsWords
from memoryos_mcp.storage.values import (
    Accepted,
    Archived,
    ChainPlan,
    FactQuery,
    Filing,
    Learning,
    Lease,
    PageQuery,
    SegmentPlan,
    StoreOptions,
    Vectors,
    WordHit,
)
from tests.fakes import START, Clock
from tests.stores import is_postgres, open_one, rows

pytestmark = pytest.mark.both_stores(in_campaign=True)

SPACE = "test:3:1"


@asynccontextmanager
async def opened(
    folder: Path,
    *,
    space: str | None = SPACE,
    clock: Callable[[], datetime] | None = None,
    checks: Checks | None = None,
    **options: Any,
) -> AsyncIterator[SqlStore]:
    settings: dict[str, Any] = {
        "assistant_id": "helper",
        "short_term_capacity": 3,
        "session_gap_s": 1800,
        "knowledge_capacity": 100,
    }
    options_of_store = StoreOptions(**{**settings, **options})
    one = await open_one(folder, "ada", options_of_store, clock=clock or Clock(), threads=8, checks=checks)
    try:
        yield one.store if space is None else await one.store.in_space(space, "{}")
    finally:
        await one.close()


def turn(number: int, *, minutes: float = 0, key: str | None = None) -> Turn:
    return Turn(f"question {number}", f"answer {number}", START + timedelta(minutes=minutes), idempotency_key=key)


def vector(*values: float) -> Any:
    return np.array(values, dtype=np.float32)


async def lease_of(store: SqlStore) -> Lease:
    lease = await store.take_lease(30)
    assert lease is not None
    return lease


async def filed(store: SqlStore, *, keywords: tuple[str, ...] = ("topic",)) -> Lease:
    """Put the whole backlog into one new segment and chain."""
    lease = await lease_of(store)
    seqs = tuple(page.seq for page in await store.pages(PageQuery(tier=Tier.BACKLOG, limit=1000)))
    plan = SegmentPlan(None, seqs, Digest(keywords, "summary"), vector(1, 0, 0), "test")
    filing = Filing(chains=[ChainPlan(None, seqs, "chain")], segments=[plan], organiser="test")
    assert await store.commit(lease, filing)
    return lease


async def learned(
    store: SqlStore, lease: Lease, pages: Sequence[int], lessons: Lessons, traits: Sequence[Trait] = ()
) -> bool:
    """Commit lessons from pages of segment 1, computed from these traits; return whether they were accepted."""
    return await store.commit(
        lease, Learning(segments=(1,), pages=pages, lessons=lessons, traits=traits, learner="test")
    )


async def test_pages_survive_closing_and_come_back_in_order(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        receipts = await store.add_pages([turn(1), turn(2)])
    async with opened(tmp_path) as store:
        pages = await store.pages(PageQuery(tier=Tier.SHORT_TERM))
    assert [page.page_id for page in pages] == [receipt.page_id for receipt in receipts]
    assert [page.user_input for page in pages] == ["question 1", "question 2"]
    assert pages[0].occurred_at == START


async def test_the_oldest_pages_leave_short_term_first(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        for number in range(5):
            receipts = await store.add_pages([turn(number)])
        assert [page.user_input for page in await store.pages(PageQuery(tier=Tier.SHORT_TERM))] == [
            "question 2",
            "question 3",
            "question 4",
        ]
        assert [page.user_input for page in await store.pages(PageQuery(tier=Tier.BACKLOG, limit=9))] == [
            "question 0",
            "question 1",
        ]
        assert receipts[0].pending == 2


async def test_a_capacity_of_none_moves_every_page_on(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        await store.add_pages([turn(1)])
        assert await store.pages(PageQuery(tier=Tier.SHORT_TERM)) == []
        assert len(await store.pages(PageQuery(tier=Tier.BACKLOG, limit=9))) == 1


async def test_a_lowered_capacity_drops_no_page(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await store.add_pages([turn(number) for number in range(3)])
    async with opened(tmp_path, short_term_capacity=1) as store:
        assert [page.user_input for page in await store.pages(PageQuery(tier=Tier.SHORT_TERM))] == ["question 2"]
        assert len(await store.pages(PageQuery(tier=Tier.BACKLOG, limit=9))) == 2


async def test_a_turn_sent_twice_under_one_key_is_one_page(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        first = (await store.add_pages([turn(1, key="a")]))[0]
        second = (await store.add_pages([turn(1, key="a")]))[0]
        assert (second.page_id, second.is_new) == (first.page_id, False)
        assert (await store.counts()).pages == 1


async def test_equal_turns_without_a_key_are_two_pages(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await store.add_pages([turn(1), turn(1)])
        assert (await store.counts()).pages == 2


async def test_a_long_silence_starts_a_new_session(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=9) as store:
        await store.add_pages([turn(1), turn(2, minutes=29), turn(3, minutes=60), turn(4, minutes=10)])
        assert [page.session for page in await store.pages(PageQuery(tier=Tier.SHORT_TERM))] == [1, 1, 2, 3]


async def test_an_error_in_the_middle_stores_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        broken = Turn("x", "y", START, source="nowhere")  # type: ignore[arg-type]
        with pytest.raises(StorageError):
            await store.add_pages([turn(1), broken])
        assert (await store.counts()).pages == 0
        await store.add_pages([turn(2)])
        assert (await store.counts()).pages == 1


async def test_concurrent_adds_all_arrive_once(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        receipts = await asyncio.gather(*(store.add_pages([turn(number)]) for number in range(40)))
        assert len({receipt[0].page_id for receipt in receipts}) == 40
        assert (await store.counts()).pages == 40


async def test_a_cancelled_add_leaves_the_store_usable(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        for number in range(20):
            task = asyncio.get_running_loop().create_task(store.add_pages([turn(number)]))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await store.add_pages([turn(99)])
        assert (await store.pages(PageQuery(tier=Tier.SHORT_TERM)))[-1].user_input == "question 99"


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("I moved to Lisbon", ["moving"]),
        ("我喜欢喝绿茶", ["绿茶"]),
        ("我喜欢喝绿茶", ["茶"]),
        ("昨日は東京タワーに行きました", ["東京"]),
        ("저는 서울에서 일해요", ["서울"]),
        ("Ich heiße Jörg", ["jorg"]),
        ("привет мир", ["мир"]),
        ("नमस्ते दुनिया", ["दुनिया"]),
    ],
)
async def test_words_of_many_languages_are_found(tmp_path: Path, said: str, asked: list[str]) -> None:
    async with opened(tmp_path) as store:
        await store.add_pages([turn(1), Turn(said, "", START), turn(2)])
        assert [hit.seq for hit in await search(store, asked, 5)] == [2]


async def search(store: SqlStore, words: Sequence[str], limit: int) -> Sequence[WordHit]:
    return (await store.search_words(words, [], limit)).hits


@pytest.mark.parametrize("asked", [['"'], ["*"], ["a AND b"], ["NEAR(", ")"], ["'; DROP TABLE pages; --"], [""], []])
async def test_no_query_breaks_the_word_search(tmp_path: Path, asked: list[str]) -> None:
    async with opened(tmp_path) as store:
        await store.add_pages([turn(1)])
        assert await search(store, asked, 5) == []


async def test_rarer_words_rank_higher(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=99) as store:
        await store.add_pages([Turn(f"tea {number}", "", START) for number in range(20)])
        await store.add_pages([Turn("tea with bergamot", "", START)])
        hits = await search(store, ["tea", "bergamot"], 3)
        assert hits[0].seq == 21
        assert hits[0].score > hits[1].score


async def test_vectors_are_returned_unchanged_and_only_in_their_space(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await store.add_pages([turn(1), turn(2)])
        lease = await lease_of(store)
        windows = {1: [Window(0, 5, vector(1, 0, 0)), Window(4, 9, vector(0, 1, 0))]}
        await store.commit(lease, Vectors(pages=windows))
        assert [page.seq for page in await store.pages(PageQuery(is_unembedded=True, limit=9))] == [2]
        assert (await store.page_vectors([1])).vectors.tolist() == [[1, 0, 0], [0, 1, 0]]
        assert (await store.found_pages({1: 1}))[1].span == (4, 9)
        assert (await store.changes(0, 9)).pages == (1,)
    async with opened(tmp_path, space="other:3:1") as store:
        assert len(await store.pages(PageQuery(is_unembedded=True, limit=9))) == 2
        assert len((await store.page_vectors([1])).vectors) == 0
    async with opened(tmp_path) as store:
        assert len(await store.pages(PageQuery(is_unembedded=True, limit=9))) == 1


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
async def test_all_vectors_returns_whole_pages(tmp_path: Path, limit: int) -> None:
    async with opened(tmp_path) as store:
        await store.add_pages([turn(number) for number in range(4)])
        windows = {seq: [Window(0, 1, vector(seq, part, 0)) for part in range(seq)] for seq in (1, 2, 3, 4)}
        await store.commit(await lease_of(store), Vectors(pages=windows))
        found: dict[int, int] = {}
        after = 0
        while len((block := await store.all_vectors(after, limit)).seqs):
            found |= Counter(block.seqs.tolist())
            assert [row[1] for row in block.vectors.tolist()] == [part for n in found if n > after for part in range(n)]
            after = int(block.seqs[-1])
        assert found == {1: 1, 2: 2, 3: 3, 4: 4}


async def test_one_process_has_the_lease_and_late_writes_are_refused(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, clock=clock) as first, opened(tmp_path, clock=clock) as second:
        await first.add_pages([turn(1)])
        lease = await lease_of(first)
        assert await second.take_lease(30) is None
        assert await first.take_lease(30) == lease
        clock.now += timedelta(seconds=31)
        assert await second.take_lease(30) == replace(lease, epoch=lease.epoch + 1)
        with pytest.raises(LeaseLostError):
            await first.commit(lease, Vectors(pages={1: [Window(0, 1, vector(1, 0, 0))]}))
        assert len(await first.pages(PageQuery(is_unembedded=True, limit=9))) == 1


async def test_a_released_lease_is_free_at_once(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, clock=clock) as first, opened(tmp_path, clock=clock) as second:
        await first.release_lease(await lease_of(first))
        assert await second.take_lease(30) is not None


async def test_a_store_releases_its_own_lease_and_no_other(tmp_path: Path) -> None:
    async with opened(tmp_path) as first, opened(tmp_path) as second:
        await first.release_lease()  # the first store has no lease
        old = await lease_of(first)
        await second.release_lease()
        assert await second.take_lease(30) is None
        await first.release_lease()
        with pytest.raises(LeaseLostError):
            await first.commit(old, Accepted([1]))
        assert await second.take_lease(30) is not None
        await first.release_lease()
        assert await first.take_lease(30) is None


async def test_consolidation_files_pages_once(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        await store.add_pages([turn(1), turn(2)])
        lease = await filed(store)
        again = SegmentPlan(None, (1, 2), Digest(("again",), "again"), None, "test")
        assert not await store.commit(lease, Filing(chains=[], segments=[again], organiser="test"))
        segments = await store.segments()
        assert [(s.page_count, s.unanalysed_count, s.l_interaction, s.keywords) for s in segments] == [
            (2, 2, 2, ("topic",))
        ]
        found = await store.found_pages({1: 0})
        assert (found[1].page.chain_summary, found[1].page.segment) == ("chain", 1)
        assert found[1].segment is not None
        assert (found[1].segment.segment, found[1].segment.keywords) == (1, ("topic",))


async def test_visits_are_counted(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        await store.add_pages([turn(1)])
        await filed(store)
        later = START + timedelta(hours=1)
        await store.add_visits({1: 3}, later)
        segment = (await store.segments())[0]
        assert (segment.n_visit, segment.last_visit) == (3, later)


async def test_lessons_set_traits_and_facts_and_reset_the_counters(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        receipts = await store.add_pages([turn(1), turn(2)])
        lease = await filed(store)
        lessons = Lessons(
            traits=(TraitChange("Music", Level.HIGH, "because", (1,)),),
            knowledge=(AddFact(About.USER, "I live in Rome.", "lives in", START, (1, 2)),),
        )
        assert await learned(store, lease, [1, 2], lessons)
        (trait,) = await store.traits()
        (fact,) = await store.facts(FactQuery(About.USER))
        assert (trait.level, trait.evidence) == (Level.HIGH, (receipts[0].page_id,))
        assert fact.evidence == tuple(receipt.page_id for receipt in receipts)
        segment = (await store.segments())[0]
        assert (segment.unanalysed_count, segment.l_interaction, segment.n_visit) == (0, 0, 0)


async def test_lessons_from_an_outdated_profile_are_refused(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        await store.add_pages([turn(1), turn(2)])
        lease = await filed(store)
        stale = await store.traits()
        music = Lessons((TraitChange("Music", Level.HIGH, "first", (1,)),), ())
        assert await learned(store, lease, [1], music, stale)
        late = Lessons(
            (TraitChange("Music", Level.LOW, "late", (2,)),), (AddFact(About.USER, "x y", None, START, (2,)),)
        )
        assert not await learned(store, lease, [2], late, stale)
        assert [trait.reason for trait in await store.traits()] == ["first"]
        assert await store.facts(FactQuery(About.USER)) == []


async def test_a_superseded_fact_becomes_history(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, clock=clock, short_term_capacity=0) as store:
        await store.add_pages([turn(1), turn(2)])
        lease = await filed(store)
        rome = AddFact(About.USER, "I live in Rome.", "lives in", START, (1,))
        assert await learned(store, lease, [1], Lessons((), (rome,)))
        clock.move(days=9)
        oslo = AddFact(About.USER, "I live in Oslo.", "lives in", START + timedelta(days=9), (2,), supersedes=(1,))
        assert await learned(store, lease, [2], Lessons((), (oslo,)))
        assert [fact.text for fact in await store.facts(FactQuery(About.USER))] == ["I live in Oslo."]
        assert (await store.counts()).superseded_facts == 1
        confirm_old = Lessons((), (ConfirmFact(1, (2,)),))
        assert not await learned(store, lease, [2], confirm_old)


async def test_the_same_fact_is_stored_once(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        await store.add_pages([turn(1), turn(2)])
        lease = await filed(store)
        for seq, text in ((1, "I like tea."), (2, "i LIKE tea")):
            lessons = Lessons((), (AddFact(About.USER, text, None, START, (seq,)),))
            assert await learned(store, lease, [seq], lessons)
        (fact,) = await store.facts(FactQuery(About.USER))
        assert len(fact.evidence) == 2


async def test_facts_of_one_assistant_do_not_reach_another(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        await store.add_pages([turn(1)])
        lease = await filed(store)
        own = AddFact(About.ASSISTANT, "I am Robin.", "name", START, (1,))
        assert await learned(store, lease, [1], Lessons((), (own,)))
        await store.release_lease(lease)
    async with opened(tmp_path, assistant_id="other") as store:
        assert await store.facts(FactQuery(About.ASSISTANT)) == []
        assert (await store.counts()).assistant_facts == 0


async def test_facts_beyond_the_capacity_are_archived_oldest_first(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, clock=clock, short_term_capacity=0, knowledge_capacity=2) as store:
        await store.add_pages([turn(1)])
        lease = await filed(store)
        for text in ("one", "two", "three"):
            clock.now += timedelta(seconds=1)
            fact = AddFact(About.USER, text, None, START, (1,))
            assert await learned(store, lease, [1], Lessons((), (fact,)))
        assert [fact.text for fact in await store.facts(FactQuery(About.USER))] == ["two", "three"]


async def test_an_archived_fact_can_be_read_and_is_superseded(
    tmp_path: Path,
) -> None:
    clock = Clock()
    async with opened(tmp_path, clock=clock, short_term_capacity=0, knowledge_capacity=1) as store:
        await store.add_pages([turn(1)])
        lease = await filed(store)
        for text, slot in (("I live in Rome.", "lives in"), ("I like tea.", None)):
            clock.now += timedelta(seconds=1)
            assert await learned(store, lease, [1], Lessons((), (AddFact(About.USER, text, slot, START, (1,)),)))
        both = await store.facts(FactQuery(About.USER, with_archived=True))
        assert [(fact.text, fact.is_archived) for fact in both] == [("I live in Rome.", True), ("I like tea.", False)]
        clock.now += timedelta(seconds=1)
        oslo = AddFact(About.USER, "I live in Oslo.", "lives in", clock.now, (1,))
        assert await learned(store, lease, [1], Lessons((), (oslo,)))
        both = await store.facts(FactQuery(About.USER, with_archived=True))
        assert [(fact.text, fact.is_archived) for fact in both] == [("I like tea.", True), ("I live in Oslo.", False)]
        assert [fact.text for fact in await store.facts(FactQuery(About.USER, is_past=True, limit=9))] == [
            "I live in Rome."
        ]


async def test_archived_segments_keep_their_pages(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        await store.add_pages([turn(1)])
        lease = await filed(store)
        await store.commit(lease, Archived([1]))
        assert await store.segments() == []
        assert (await store.found_pages({1: 0}))[1].segment is None
        assert (await store.counts()).archived_segments == 1
        assert [hit.seq for hit in await search(store, ["question"], 5)] == [1]


async def test_another_process_reads_the_change_sequence(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as writer, opened(tmp_path) as reader:
        await writer.add_pages([turn(1)])
        position = (await reader.snapshot()).position
        lease = await filed(writer)
        await writer.commit(lease, Vectors(pages={1: [Window(0, 1, vector(1, 0, 0))]}))
        changes = await reader.changes(position, 100)
        assert (changes.pages, changes.is_longterm, changes.is_complete) == ((1,), False, True)
        assert (await reader.changes(changes.position, 100)).pages == ()


@pytest.mark.sqlite_only
async def test_opening_during_a_restore_gives_the_restored_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path) as store:
        await store.add_pages([turn(1)])
    file = tmp_path / "users" / "ada" / "memory.db"
    backup, kept = tmp_path / "backup.db", file.with_name("memory-before.db")
    make_copy(file, backup, lambda *_: None, is_in_use=False)
    async with opened(tmp_path) as store:
        await store.add_pages([turn(2)])

    async def say() -> None:
        async with opened(tmp_path) as store:
            await store.add_pages([turn(3)])

    speaking = threading.Thread(target=asyncio.run, args=(say(),))
    has_opened = threading.Event()
    replace = Path.replace

    def replaced_while_another_opens(path: Path, target: Path) -> Path:
        if path != backup:
            return replace(path, target)
        apsw.connection_hooks.append(lambda _: has_opened.set())
        speaking.start()
        assert has_opened.wait(10)
        apsw.connection_hooks.pop()
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", replaced_while_another_opens)
    await asyncio.to_thread(put_in_place, backup, file, kept)
    await asyncio.to_thread(speaking.join)
    async with opened(tmp_path) as store:
        assert [page.user_input for page in await store.pages(PageQuery(tier=Tier.SHORT_TERM))] == [
            turn(1).user_input,
            turn(3).user_input,
        ]
    assert check_copy(kept).pages == 2


@pytest.mark.sqlite_only
async def test_after_closing_the_file_is_complete_without_a_journal(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await store.add_pages([turn(1)])
    assert [file.name for file in (tmp_path / "users" / "ada").iterdir()] == ["memory.db"]
    connection = apsw.Connection(str(tmp_path / "users" / "ada" / "memory.db"), flags=apsw.SQLITE_OPEN_READONLY)
    assert connection.execute("PRAGMA integrity_check").get == "ok"
    connection.close()


@pytest.mark.sqlite_only
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM pages WHERE tier = 'backlog'",
        "SELECT seq FROM pages WHERE tier = 'short_term' ORDER BY seq DESC LIMIT -1 OFFSET 7",
        "SELECT * FROM pages WHERE tier = 'backlog' ORDER BY seq LIMIT 10",
        "SELECT * FROM pages WHERE seq >= (SELECT next_seq FROM spaces WHERE space = 1) ORDER BY seq LIMIT 16",
        "SELECT * FROM pages WHERE segment = 1 AND is_analysed <= 0 ORDER BY seq DESC LIMIT 5",
        "SELECT seq, vector FROM page_vectors WHERE space = 1 AND seq > 5 ORDER BY seq, part LIMIT 10",
        "SELECT fact FROM facts WHERE about = 'user' AND assistant_id = '' AND folded = 'likes tea'",
    ],
)
async def test_frequent_queries_never_scan_a_table(tmp_path: Path, sql: str) -> None:
    async with opened(tmp_path) as store:
        await store.add_pages([turn(1)])
    connection = apsw.Connection(str(tmp_path / "users" / "ada" / "memory.db"))
    plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}")]
    connection.close()
    assert plan
    assert not [step for step in plan if step.startswith("SCAN") or "TEMP B-TREE" in step]


async def test_two_facts_with_one_slot_are_never_both_valid(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        await store.add_pages([turn(1), turn(2)])
        lease = await filed(store)
        rome = AddFact(About.USER, "I live in Rome.", "lives in", START, (1,))
        oslo = AddFact(About.USER, "I live in Oslo.", "lives in", START, (2,))
        assert await learned(store, lease, [1], Lessons((), (rome,)))
        assert not await learned(store, lease, [2], Lessons((), (oslo,)))
        assert [fact.text for fact in await store.facts(FactQuery(About.USER))] == ["I live in Rome."]


async def test_a_lease_from_a_clock_that_was_ahead_does_not_block(tmp_path: Path) -> None:
    ahead, right = Clock(), Clock()
    ahead.move(days=400)
    async with opened(tmp_path, clock=ahead) as first, opened(tmp_path, clock=right) as second:
        assert await first.take_lease(30) is not None
        assert await second.take_lease(30) is not None


async def test_each_space_has_its_own_vectors_and_progress(tmp_path: Path) -> None:
    async with opened(tmp_path, space="old:3:1", short_term_capacity=0) as old:
        new = await old.in_space("new:2:1", "{}")
        await old.add_pages([turn(1), turn(2), turn(3)])
        lease = await lease_of(old)
        window = [Window(0, 1, vector(1, 0, 0))]
        await old.commit(lease, Vectors(pages={1: window, 2: window, 3: window}))
        await new.commit(lease, Vectors(pages={1: [Window(0, 1, vector(0, 1))]}))
        assert [page.seq for page in await old.pages(PageQuery(is_unembedded=True, limit=9))] == []
        assert [page.seq for page in await new.pages(PageQuery(is_unembedded=True, limit=9))] == [2, 3]
        assert {space.identity: space.unembedded for space in await old.spaces()} == {"new:2:1": 2, "old:3:1": 0}
        assert (await old.page_vectors([1])).vectors.tolist() == [[1, 0, 0]]
        assert (await new.page_vectors([1, 2])).vectors.tolist() == [[0, 1]]
        assert ((await old.changes(0, 9)).pages, (await new.changes(0, 9)).pages) == ((1, 2, 3), (1,))
        await filed(old)
        assert [segment.vector is None for segment in await old.segments()] == [False]
        assert [segment.segment for segment in (await new.unembedded(9)).segments] == [1]


async def test_a_page_embedded_out_of_order_is_embedded_once(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await store.add_pages([turn(1), turn(2), turn(3), turn(4)])
        lease = await lease_of(store)
        window = [Window(0, 1, vector(1, 0, 0))]
        await store.commit(lease, Vectors(pages={2: window, 3: window}))
        assert [page.seq for page in await store.pages(PageQuery(is_unembedded=True, limit=9))] == [1, 2, 3, 4]
        await store.commit(lease, Vectors(pages={1: window}))
        assert [page.seq for page in await store.pages(PageQuery(is_unembedded=True, limit=9))] == [4]


async def test_an_unused_space_is_deleted_in_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_spaces, "PAGES_DROPPED", 2)
    clock = Clock()
    async with opened(tmp_path, space="old:3:1", clock=clock) as old:
        await old.add_pages([turn(number) for number in range(5)])
        lease = await lease_of(old)
        codes = Window(0, 1, vector(1, 0, 0), codes_of(1), (1, 0, 0, 0))
        await old.commit(lease, Vectors(pages={seq: [codes] for seq in range(1, 6)}))
        clock.move(days=8)
        new = await old.in_space("new:3:1", "{}")
        lease = await lease_of(new)
        await new.commit(lease, Vectors(pages={1: [codes]}))
        assert not await new.drop_spaces(lease, ["old:3:1"], clock() - timedelta(days=7))
        assert not await new.drop_spaces(lease, [], clock() - timedelta(days=9))
        since = clock() - timedelta(days=7)
        assert await new.drop_spaces(lease, [], since)
        assert [len((await old.page_vectors([seq])).seqs) for seq in range(1, 6)] == [0, 0, 1, 1, 1]
        while await new.drop_spaces(lease, [], since):
            pass
        assert [space.identity for space in await new.spaces()] == ["new:3:1"]
        assert len((await new.token_vectors([1], 1_000)).seqs) == 1
    left = "SELECT (SELECT count(*) FROM page_vectors), (SELECT count(*) FROM page_tokens)"
    assert rows(tmp_path, left) == [(1, 1)]


async def test_a_closed_store_refuses_calls(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        pass
    async with asyncio.timeout(10):
        with pytest.raises(StorageError, match="the store is closed"):
            await store.pages(PageQuery(tier=Tier.SHORT_TERM))
        with pytest.raises(StorageError, match="the store is closed"):
            await store.add_pages([turn(1)])
        await store.close()


async def test_a_known_key_returns_the_time_of_the_existing_page(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await store.add_pages([turn(1, key="a")])
        (receipt,) = await store.add_pages([turn(2, key="a", minutes=90)])
        assert receipt.occurred_at == START


async def test_checking_an_intact_file_in_use_finds_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks_module, "CHECK_VALID_S", 0.0)
    async with opened(tmp_path) as store:
        is_done = asyncio.Event()

        async def write() -> None:
            for number in range(300):
                await store.add_pages([turn(number)])
            is_done.set()

        async def look_up() -> None:
            while not is_done.is_set():
                await search(store, ["question", "answer"], 10)

        async def check() -> None:
            while not is_done.is_set():
                await store.verify()

        async with asyncio.timeout(60):
            await asyncio.gather(write(), look_up(), look_up(), check())
        assert (await store.counts()).pages == 300


@pytest.mark.sqlite_only
@pytest.mark.skipif(os.name == "nt", reason="Windows has access lists instead")
async def test_files_are_private_whatever_the_umask(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    before = os.umask(0)
    try:
        async with opened(folder) as store:
            await store.add_pages([turn(1)])
            made = [folder / "users", *folder.glob("users/*"), *folder.glob("users/*/*")]
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in made}
    finally:
        os.umask(before)
    assert modes == {
        "users": 0o700,
        "ada": 0o700,
        "memory.db": 0o600,
        "memory.db-wal": 0o600,
        "memory.db-shm": 0o600,
        "memory.db-wal-owner": 0o600,
    }


async def test_a_name_belongs_to_the_side_that_is_called_by_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        for _ in range(3):
            await store.add_pages([Turn("Thanks, Hal!", "You are welcome, Ada.", START)])
        await store.add_pages([Turn("I met Berta, Hal.", "Who is Berta? Never mind, Ada.", START)])
        found = (await store.search_words(["welcome"], ["ada", "hal", "berta", "thanks"], 0)).stats
        assert found.user_names == {"ada"}
        assert found.agent_names == {"hal"}
        assert (found.pages, found.counts) == (4, {"welcome": 3})


async def test_a_word_that_is_rarely_used_as_a_name_is_not_a_name(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await store.add_pages([Turn("Cool, let us go.", "Fine.", START) for _ in range(4)])
        await store.add_pages([Turn("It is cool in the cellar", "", START) for _ in range(5)])
        assert (await store.search_words([], ["cool"], 0)).stats.user_names == frozenset()


async def test_the_count_of_a_common_word_is_only_updated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(term_stats, "REMEMBERED_FROM", 3)
    counted: list[str] = []
    index = PostingWords if is_postgres() else FtsWords
    limits = index.limits

    def counting(index: Any, words: Sequence[str]) -> list[int]:
        counted.extend(words)
        return limits(index, words)

    monkeypatch.setattr(index, "limits", counting)
    async with opened(tmp_path) as store, opened(tmp_path) as other:
        for number in range(6):
            await (store if number % 2 else other).add_pages([Turn(f"tea {number}", "teas", START)])
            assert (await store.search_words(["tea"], [], 0)).stats.counts == {"tea": number + 1}
        assert counted == ["tea"] * 3


async def test_common_words_find_the_newest_pages_with_most_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lexical, "POSTING_BUDGET", 5)
    async with opened(tmp_path) as store:
        said = ["tea", "rain", "tea and rain", "bees"]
        await store.add_pages([Turn(said[number % 4], "", START) for number in range(40)])
        hits = await search(store, ["tea", "rain", "bees"], 12)
        assert [hit.seq for hit in hits[:10]] == [39, 35, 31, 27, 23, 19, 15, 11, 7, 3]
        assert len(hits) == 12
        assert hits[0].score > hits[-1].score


@pytest.mark.parametrize("is_shared", [False, True])
async def test_token_vectors_keep_the_order_and_the_size_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_shared: bool
) -> None:
    if is_shared:  # each page is read over its own connection
        monkeypatch.setattr(sqlite_store, "PAGES_TO_SHARE", 1)
        monkeypatch.setattr(sqlite_store, "PAGES_OF_A_LARGE_MEMORY", 1)
    async with opened(tmp_path, short_term_capacity=0) as store:
        await store.add_pages([turn(number) for number in range(4)])
        lease = await lease_of(store)

        def window(value: int, *parts: int) -> Window:
            users, asked, agents, asked_back = parts
            codes = np.full((sum(parts), 4), value, dtype=np.uint8)
            return Window(0, 1, vector(1, 0, 0), codes, (users, asked, agents, asked_back))

        windows = {
            1: [window(1, 1, 1, 1, 0)],
            2: [window(2, 0, 2, 0, 0), window(3, 1, 0, 0, 1)],
            4: [Window(0, 1, vector(1, 0, 0))],
        }
        await store.commit(lease, Vectors(pages=windows))
        rows = await store.token_vectors([4, 2, 3, 1], 1_000)
        assert rows.seqs.tolist() == [2, 2, 1]
        assert rows.counts.tolist() == [[0, 2, 0, 0], [1, 0, 0, 1], [1, 1, 1, 0]]
        assert rows.codes[:, 0].tolist() == [2, 2, 3, 3, 1, 1, 1]
        assert (await store.token_vectors([2, 1], 20)).seqs.tolist() == [2, 2]
        assert (await store.token_vectors([2, 1], 15)).seqs.tolist() == []  # page 1 would fit, but comes after page 2
        assert (await store.token_vectors([1, 2], 20)).codes[:, 0].tolist() == [1, 1, 1]
        assert (await store.token_vectors([4], 1_000)).codes.size == 0
        await store.commit(lease, Vectors(pages={2: [window(9, 0, 0, 1, 0)]}))
        assert (await store.token_vectors([2], 1_000)).codes.tolist() == [[9, 9, 9, 9]]


@pytest.mark.parametrize("large_from", [1, 1_000_000])
async def test_one_and_several_connections_read_the_same_pages(
    tmp_path: Path, large_from: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_store, "PAGES_OF_A_LARGE_MEMORY", large_from)
    pages = 3 * PAGES_TO_SHARE
    async with opened(tmp_path, short_term_capacity=0) as store:
        await store.add_pages([turn(number, minutes=number) for number in range(pages)])
        lease = await lease_of(store)
        window = {seq: [Window(0, 1, vector(1, 0, 0), codes_of(seq), (1, 0, 0, 0))] for seq in range(1, pages + 1)}
        await store.commit(lease, Vectors(pages=window))
        asked = [*range(pages + 5, 0, -1)]
        outlines = await store.outlines(asked)
        assert outlines.seqs.tolist() == [*range(1, pages + 1)]
        one_by_one = [await store.outlines([seq]) for seq in (1, pages)]
        for name in ("sessions", "segments", "days", "sizes"):
            assert [getattr(outlines, name)[0], getattr(outlines, name)[-1]] == [
                getattr(each, name)[0] for each in one_by_one
            ]
        found = await store.token_vectors(asked, 4 * pages)
        assert found.seqs.tolist() == [*range(pages, 0, -1)]
        assert [tuple(each) for each in found.codes.tolist()] == [
            tuple(codes_of(seq)[0]) for seq in found.seqs.tolist()
        ]
        few = await store.token_vectors(asked, 4 * 120 + 3)
        assert few.seqs.tolist() == [*range(pages, pages - 120, -1)]


def codes_of(seq: int) -> Any:
    return np.array([[seq % 256, seq // 256, 1, 2]], dtype=np.uint8)


@pytest.mark.sqlite_only
async def test_a_long_read_does_not_block_others(tmp_path: Path) -> None:
    begun, others_are_done = threading.Event(), threading.Event()

    def read(_: object) -> bool:
        begun.set()
        return others_are_done.wait(30)

    async with opened(tmp_path) as store, asyncio.timeout(30), asyncio.TaskGroup() as group:
        long = group.create_task(store._database.read(read))
        try:
            while not begun.is_set():  # noqa: ASYNC110 - set in a thread
                await asyncio.sleep(0.001)
            assert await store._database.rows("SELECT 1") == [(1,)]
            assert not long.done()
        finally:
            others_are_done.set()
        assert await long


@pytest.mark.sqlite_only
async def test_an_outline_is_read_from_the_index_alone(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await store.add_pages([turn(1)])
    with closing(apsw.Connection(str(database_file(tmp_path, "ada")))) as connection:
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {OUTLINES_SQL}", ("[1]",))]
    assert any(step.startswith("SEARCH pages USING COVERING INDEX") for step in plan), plan


@pytest.mark.sqlite_only
async def test_a_cancelled_check_ends_during_its_pause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks_module, "CHECK_VALID_S", 0.0)
    monkeypatch.setattr(integrity, "STEPS_BETWEEN_RESTS", 1)
    monkeypatch.setattr(integrity, "RESTS_PER_WORK", float("inf"))
    monkeypatch.setattr(integrity, "LONGEST_REST_S", 600.0)
    async with asyncio.timeout(60), opened(tmp_path) as store:
        await store.add_pages([turn(number) for number in range(50)])
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(store.verify(), timeout=0.3)
        assert (await store.counts()).pages == 50
    monkeypatch.undo()
    async with asyncio.timeout(60), opened(tmp_path) as store:
        await store.verify()


@pytest.mark.sqlite_only
async def test_a_small_file_is_not_checked_again_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[apsw.Connection] = []
    check = integrity.integrity_check

    def counted(connection: apsw.Connection) -> None:
        read.append(connection)
        check(connection)

    monkeypatch.setattr(open_file, "integrity_check", counted)
    monkeypatch.setattr(integrity, "integrity_check", counted)
    checks = Checks()
    for _ in range(3):
        async with opened(tmp_path, checks=checks) as store:
            await store.verify()
    assert len(read) == 1
    monkeypatch.setattr(checks_module, "CHECK_VALID_S", 0.0)
    async with opened(tmp_path, checks=checks) as store:
        await store.verify()
    assert len(read) == 3


async def test_a_memory_opened_by_many_at_once_is_created_once(tmp_path: Path) -> None:
    async def hold(folder: Path) -> None:
        async with opened(folder, space=None) as store:
            await store.snapshot()

    for number in range(10):
        folder = tmp_path / str(number)
        await asyncio.gather(*(hold(folder) for _ in range(8)))
        assert rows(folder, "SELECT value FROM meta WHERE key = 'user_id'") == [("ada",)]
        if not is_postgres():
            assert [path.name for path in database_file(folder, "ada").parent.iterdir()] == ["memory.db"]


@pytest.mark.sqlite_only
async def test_a_write_without_space_is_reported_until_one_succeeds(tmp_path: Path) -> None:
    large = [turn(number) for number in range(500)]
    async with opened(tmp_path) as store:
        assert store.only_reads_because is None
        assert isinstance(store._database, SqliteDatabase)
        writer = store._database._file.writer
        assert writer is not None
        writer.pragma("max_page_count", writer.pragma("page_count"))
        with pytest.raises(StorageError, match="no space"):
            await store.add_pages(large)
        assert "no space" in str(store.only_reads_because)
        writer.pragma("max_page_count", 1_000_000)
        await store.add_pages(large)
        assert store.only_reads_because is None
