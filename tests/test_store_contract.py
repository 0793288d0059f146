"""The guarantees of every store, tested through the protocols alone."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memoryos_mcp.config import Settings
from memoryos_mcp.errors import LeaseLostError
from memoryos_mcp.model.forgotten import ForgetPlan
from memoryos_mcp.model.ids import read_ids
from memoryos_mcp.model.knowledge import Lessons
from memoryos_mcp.model.pages import TURN_FIELDS, Source, Tier, Turn, Window
from memoryos_mcp.model.segments import Digest
from memoryos_mcp.storage.interface import Store
from memoryos_mcp.storage.sql.connection import Connection
from memoryos_mcp.storage.sql.store import SqlStore
from memoryos_mcp.storage.stores import make_stores
from memoryos_mcp.storage.values import (
    ChainPlan,
    DueWork,
    Filing,
    Learning,
    PageQuery,
    SegmentPlan,
    StoreOptions,
    Vectors,
)
from tests.fakes import START, Clock

pytestmark = pytest.mark.both_stores

OPTIONS = StoreOptions(assistant_id="helper", short_term_capacity=2, session_gap_s=1800, knowledge_capacity=100)

VECTOR = np.array([0.6, 0.8], dtype=np.float16).astype(np.float32)


@asynccontextmanager
async def two_views(folder: Path, clock: Callable[[], datetime]) -> AsyncIterator[tuple[Store, Store]]:
    """Yield one user's memory opened twice, as by two processes."""
    async with AsyncExitStack() as stack:
        views = []
        for _ in range(2):
            stores = make_stores(Settings(data_storage_path=folder), clock, threads=4)
            stack.callback(stores.close)
            store = await stores.open("ada", OPTIONS)
            stack.push_async_callback(store.close)
            views.append(store)
        yield views[0], views[1]


# A value for each field of a turn, other than its default.
WHOLE = {
    "user_input": "Where is the boat?",
    "agent_response": "In the harbour.",
    "occurred_at": START + timedelta(days=3),
    "meta_data": '{"client": "test"}',
    "idempotency_key": "k1",
    "source": Source.DOCUMENT,
    "gives_orders": True,
    "project": "boat",
}


def turn(number: int, key: str | None = None) -> Turn:
    return Turn(f"question {number}", f"answer {number}", START, idempotency_key=key)


async def seqs(store: Store) -> list[int]:
    return [page.seq for page in await store.pages(PageQuery())]


def filing(*pages: int) -> Filing:
    segment = SegmentPlan(None, pages, Digest(("topic",), "Made up."), None, "test")
    return Filing(chains=[ChainPlan(None, pages, "Made up.")], segments=[segment], organiser="test")


async def test_pages_of_two_writers_are_numbered_without_gaps(tmp_path: Path) -> None:
    async with two_views(tmp_path, Clock()) as (one, other):
        turns = [turn(number, key=str(number // 2)) for number in range(20)]  # each key is sent twice
        await asyncio.gather(*((one, other)[place % 2].add_pages([each]) for place, each in enumerate(turns)))
        assert await seqs(one) == await seqs(other) == list(range(1, 11))
        assert (await one.due_work()).newest_seq == 10


async def test_a_page_keeps_every_field_of_its_turn(tmp_path: Path) -> None:
    assert WHOLE.keys() == {*TURN_FIELDS}, "give the new field a value here"
    whole = Turn(**WHOLE)  # type: ignore[arg-type]
    async with two_views(tmp_path, Clock()) as (store, other):
        one, several = replace(whole, idempotency_key="k0"), [whole, replace(whole, idempotency_key="k2")]
        await store.add_pages([one])  # one page and several are added in different ways
        await store.add_pages(several)
        pages = await other.pages(PageQuery())
        assert [Turn(**{name: getattr(page, name) for name in TURN_FIELDS}) for page in pages] == [one, *several]


async def test_a_page_query_keeps_the_first_or_the_newest(tmp_path: Path) -> None:
    async with two_views(tmp_path, Clock()) as (store, _):
        await store.add_pages([turn(number) for number in range(6)])

        async def found(query: PageQuery) -> list[int]:
            return [page.seq for page in await store.pages(query)]

        assert await found(PageQuery(limit=2)) == [1, 2]
        assert await found(PageQuery(limit=2, is_newest=True)) == [5, 6]
        assert await found(PageQuery(tier=Tier.BACKLOG, after_seq=1, before_seq=4)) == [2, 3]
        assert await found(PageQuery(tier=Tier.SHORT_TERM)) == [5, 6]
        assert await found(PageQuery(is_degraded=True)) == []


async def test_columns_are_those_of_the_rows(tmp_path: Path) -> None:
    columns = "seq, CAST(page_id AS BLOB) AS id, CAST(user_input AS BLOB) AS text"
    query = f"SELECT {columns} FROM pages WHERE seq > ? ORDER BY seq DESC"  # noqa: S608 - constants

    def both(connection: Connection, after: int) -> tuple[list[tuple[int, bytes, bytes]], list[Any]]:
        rows = connection.execute(query, (after,)).fetchall()
        return rows, connection.columns(query, (after,), values=["seq"], blobs=["id", "text"])

    async with two_views(tmp_path, Clock()) as (store, _):
        assert isinstance(store, SqlStore)
        await store.add_pages([turn(number) for number in range(12)])
        rows, (numbers, ids, texts) = await store._database.read(both, 3)
        assert numbers == [row[0] for row in rows] == [*range(12, 3, -1)]
        assert (ids, texts) == (b"".join(row[1] for row in rows), b"".join(row[2] for row in rows))
        assert await store._database.read(both, 12) == ([], [[], b"", b""])


async def test_due_work_names_only_what_is_left(tmp_path: Path) -> None:
    nothing = DueWork(0, False, False, False, False, False, segments=0, forget_epoch=0)
    async with two_views(tmp_path, Clock()) as (first, _):
        store = await first.in_space("words:2:1", "{}")
        assert await store.due_work() == nothing
        await store.add_pages([turn(1)])
        assert await store.due_work() == replace(nothing, newest_seq=1, has_unread=True, has_unembedded=True)
        lease = await store.take_lease(30)
        assert lease is not None
        await store.add_pages([turn(number) for number in range(2, 5)])
        windows = {seq: [Window(0, 1, VECTOR)] for seq in range(1, 5)}
        await store.commit(lease, Vectors(pages=windows))
        left = replace(nothing, newest_seq=4, has_unread=True, has_backlog=True)
        assert await store.due_work() == left
        await store.commit(lease, filing(1, 2))
        filed = replace(left, has_backlog=False, has_unembedded=True, has_unanalysed=True, segments=1)
        assert await store.due_work() == filed
        await store.commit(lease, Vectors(segments={1: VECTOR}))
        read = Learning(segments=(1,), pages=[1, 2, 3, 4], lessons=Lessons((), ()), traits=(), learner="test")
        await store.commit(lease, read)
        done = replace(nothing, newest_seq=4, segments=1)
        assert await store.due_work() == done
        assert await store.mark_degraded("test") == 2
        assert await store.due_work() == replace(done, has_degraded=True)


async def test_contents_are_those_of_the_single_calls(tmp_path: Path) -> None:
    async with two_views(tmp_path, Clock()) as (first, _):
        store = await first.in_space("words:2:1", "{}")
        await store.add_pages([turn(number) for number in range(1, 5)])
        lease = await store.take_lease(30)
        assert lease is not None
        await store.commit(lease, Vectors(pages={seq: [Window(0, 1, VECTOR)] * seq for seq in range(1, 5)}))
        await store.commit(lease, filing(1))
        await store.commit(lease, filing(2))
        await store.commit(lease, Vectors(segments={2: VECTOR}))
        found = await store.contents(2)
        assert found.position == (await store.snapshot()).position > 0
        assert found.vectors.seqs.tolist() == [1, 2, 2] == (await store.all_vectors(0, 2)).seqs.tolist()
        assert len((await store.contents(0)).vectors.seqs) == 0
        assert (found.traits, found.facts) == ([], [])


async def test_segments_are_read_with_vectors_or_only_the_unanalysed(tmp_path: Path) -> None:
    async with two_views(tmp_path, Clock()) as (first, _):
        store = await first.in_space("words:2:1", "{}")
        await store.add_pages([turn(number) for number in range(1, 5)])
        lease = await store.take_lease(30)
        assert lease is not None
        await store.commit(lease, filing(1))
        await store.commit(lease, filing(2))
        await store.commit(lease, Vectors(segments={2: VECTOR}))
        one, two = await store.segments()
        assert (one.segment, one.vector, two.segment) == (1, None, 2)
        assert two.vector is not None
        assert two.vector.tolist() == VECTOR.tolist()
        assert [segment.keywords for segment in (one, two)] == [("topic",), ("topic",)]
        await store.commit(lease, Learning((1,), (1,), Lessons((), ()), (), "scripted"))
        assert [segment.segment for segment in await store.segments(is_unanalysed=True)] == [2]
        found = await store.found_pages({1: 0, 2: 0, 3: 0})
        segments = {seq: each.segment and each.segment.segment for seq, each in found.items()}
        assert segments == {1: 1, 2: 2, 3: None}


async def test_a_reader_finds_every_change_after_its_position(tmp_path: Path) -> None:
    async with two_views(tmp_path, Clock()) as (writer, reader):
        await writer.add_pages([turn(number) for number in range(8)])
        lease = await writer.take_lease(30)
        assert lease is not None
        seen, changes_seen = (await reader.snapshot()).position, 0
        for first in (1, 3, 5):
            assert await writer.commit(lease, filing(first, first + 1))
            while not (changes := await reader.changes(seen, 1)).is_complete:
                assert changes.position == seen + 1
                seen, changes_seen = changes.position, changes_seen + 1
        assert changes_seen >= 3
        assert (await reader.snapshot()).position == seen


async def test_the_state_shows_the_changes_of_other_processes(tmp_path: Path) -> None:
    async with two_views(tmp_path, Clock()) as (one, other):
        states = [await one.state()]

        async def note() -> None:
            states.append(await one.state())
            assert states[-1] == await one.state()
            assert states[-1] not in states[:-1]

        await other.add_pages([turn(number) for number in range(4)])
        await note()
        lease = await other.take_lease(30)
        assert lease is not None
        await note()
        assert await other.commit(lease, filing(1, 2))
        await note()
        await other.release_lease(lease)
        await note()
        await other.user_data.plan_forgetting(ForgetPlan(runs=((1, 1),)), "f_1", START + timedelta(hours=1))
        await note()
        assert await other.user_data.forget("f_1")
        await note()


async def test_forgetting_invalidates_earlier_reads(tmp_path: Path) -> None:
    clock = Clock()
    async with two_views(tmp_path, clock) as (one, other):
        first, _ = await one.add_pages([turn(1), turn(2)])
        epoch = (await other.snapshot()).forget_epoch
        plan = await one.user_data.plan(read_ids([first.page_id]))
        await one.user_data.plan_forgetting(plan, "f_1", clock() + timedelta(minutes=5))
        assert (await other.snapshot()).forget_epoch == epoch
        assert await one.user_data.forget("f_1")
        assert (await other.snapshot()).forget_epoch == epoch + 1
        with pytest.raises(LeaseLostError):
            await other.add_pages([turn(3)], forget_epoch=epoch)
        await other.add_pages([turn(3)], forget_epoch=epoch + 1)
        assert await seqs(one) == [2, 3]


async def test_a_write_with_an_old_lease_is_refused(tmp_path: Path) -> None:
    clock = Clock()
    async with two_views(tmp_path, clock) as (one, other):
        await one.add_pages([turn(number) for number in range(4)])
        lease = await one.take_lease(30)
        assert lease is not None
        assert await other.take_lease(30) is None
        clock.now += timedelta(seconds=31)
        taken = await other.take_lease(30)
        assert taken is not None
        with pytest.raises(LeaseLostError):
            await one.commit(lease, filing(1, 2))
        assert await other.commit(taken, filing(1, 2))
        assert not await other.commit(taken, filing(1, 2))  # they are in the backlog no more
        await other.release_lease()
        assert await one.take_lease(30) is not None
