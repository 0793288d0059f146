import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from memoryos_mcp.consolidation.loops import LEASE_TTL_S
from memoryos_mcp.errors import LeaseLostError
from memoryos_mcp.model.pages import Turn, Window
from memoryos_mcp.storage.sql.store import SqlStore
from memoryos_mcp.storage.values import PageQuery, StoreOptions, Vectors
from tests.fakes import Clock
from tests.servers import BUSY_BACKGROUND, USER, PipeServer, page_id_of, stored_pages
from tests.stores import open_one, value

pytestmark = [pytest.mark.campaign, pytest.mark.both_stores]

LIMIT_S = 30
PROCESSES = 4
PAGES = 600
SPACE = "test:4:1"


def test_four_servers_write_600_pages_without_loss(data: Path) -> None:
    settings = {**BUSY_BACKGROUND, "consolidation_batch_pages": 20}
    with ExitStack() as stack:
        servers = [
            stack.enter_context(PipeServer(data, settings, log=data.parent / f"{number}.log"))
            for number in range(PROCESSES)
        ]
        for server in servers:
            server.stats()
        sent: list[tuple[PipeServer, int, str]] = []
        for number in range(PAGES):
            server = servers[number % PROCESSES]
            text = f"Word{number} of writer {number % PROCESSES}."
            sent.append((server, server.send_call("add_memory", {"user_input": text, "agent_response": "Ok."}), text))
        told = {page_id_of(server.reply(request, limit_s=60)): text for server, request, text in sent}
        assert None not in told
        assert len(told) == PAGES

        for server in servers:
            assert server.stats()["total_pages"] == PAGES
            for number in (0, 1, 2, 3, 297, PAGES - 1):
                found = server.call("retrieve_memory", query=f"word{number}", max_results=3)
                texts = [page["user_input"] for page in found["retrieved_pages"] + found["short_term_memory"]]
                assert f"Word{number} of writer {number % PROCESSES}." in texts
        servers[0].wait_until_settled(limit_s=120)
        for server in servers[1:]:
            server.wait_until_semantic()
            assert server.stats()["backlog_pages"] == server.stats()["unembedded_pages"] == 0
        for server in servers:
            assert server.close() == 0
            assert "Traceback" not in server.stderr
            assert "WARNING" not in server.stderr

    pages = stored_pages(data)
    assert {page.page_id: page.user_input for page in pages} == told
    assert len(pages) == PAGES
    # These counts would be doubled if two processes had done the same work.
    filed = sum(page.segment is not None for page in pages)
    assert filed == PAGES - BUSY_BACKGROUND["short_term_capacity"]
    assert value(data, "SELECT sum(page_count) FROM segments", USER) == filed
    assert value(data, "SELECT count(*) FROM page_vectors", USER) == PAGES
    assert value(data, "SELECT holder FROM lease", USER) == ""


def test_pages_of_one_process_are_found_by_other_processes(data: Path) -> None:
    with PipeServer(data, log=data.parent / "1.log") as one, PipeServer(data, log=data.parent / "2.log") as other:
        other.add("The weather is grey today.")
        other.wait_until_semantic()
        page = one.add("I adopted a puppy.")
        for number in range(8):
            one.add(f"Unrelated remark {number}.")
        assert page in [found["page_id"] for found in other.call("retrieve_memory", query="puppy")["retrieved_pages"]]
        one.wait_until_embedded()
        found = other.call("retrieve_memory", query="young dog", max_results=1)["retrieved_pages"]
        assert [hit["page_id"] for hit in found] == [page]


# The lease, with a clock of its own --------------------------------------------------------------------------------


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def stores(data: Path, clock: Clock) -> AsyncIterator[tuple[SqlStore, SqlStore]]:
    """Open one user's memory as two processes would."""

    options = StoreOptions(assistant_id="a", short_term_capacity=7, session_gap_s=1800, knowledge_capacity=100)
    one, other = [await open_one(data, "ana", options, clock=clock) for _ in range(2)]
    yield await one.store.in_space(SPACE, "{}"), await other.store.in_space(SPACE, "{}")
    await one.close()
    await other.close()


async def unembedded_page(store: SqlStore, clock: Clock) -> int:
    await store.add_pages([Turn("Hello", "", clock.now)])
    [page] = await store.pages(PageQuery(is_unembedded=True, limit=10))
    return page.seq


def windows() -> list[Window]:
    return [Window(0, 5, np.array([1, 0, 0, 0], dtype=np.float32))]


async def test_only_one_process_has_the_lease_until_its_release(
    stores: tuple[SqlStore, SqlStore], clock: Clock
) -> None:
    one, other = stores
    async with asyncio.timeout(LIMIT_S):
        lease = await one.take_lease(LEASE_TTL_S)
        assert lease is not None
        assert await other.take_lease(LEASE_TTL_S) is None
        clock.move(seconds=LEASE_TTL_S - 1)
        assert await other.take_lease(LEASE_TTL_S) is None
        assert await one.take_lease(LEASE_TTL_S) == lease
        await one.release_lease(lease)
        successor = await other.take_lease(LEASE_TTL_S)
        assert successor is not None
        assert successor.epoch > lease.epoch


async def test_an_expired_lease_is_taken_over_and_late_writes_refused(
    stores: tuple[SqlStore, SqlStore], clock: Clock
) -> None:
    one, other = stores
    async with asyncio.timeout(LIMIT_S):
        seq = await unembedded_page(one, clock)
        lease = await one.take_lease(LEASE_TTL_S)
        assert lease is not None
        clock.move(seconds=LEASE_TTL_S + 1)
        successor = await other.take_lease(LEASE_TTL_S)
        assert successor is not None
        with pytest.raises(LeaseLostError):
            await one.commit(lease, Vectors(pages={seq: windows()}))
        assert len(await one.pages(PageQuery(is_unembedded=True, limit=10))) == 1
        await other.commit(successor, Vectors(pages={seq: windows()}))
        await one.release_lease(lease)  # releasing a lost lease has no effect
        assert await one.take_lease(LEASE_TTL_S) is None
        assert await other.pages(PageQuery(is_unembedded=True, limit=10)) == []


async def test_a_commit_renews_the_lease(stores: tuple[SqlStore, SqlStore], clock: Clock) -> None:
    one, other = stores
    async with asyncio.timeout(LIMIT_S):
        seq = await unembedded_page(one, clock)
        lease = await one.take_lease(LEASE_TTL_S)
        assert lease is not None
        clock.move(seconds=LEASE_TTL_S - 1)
        await one.commit(lease, Vectors(pages={seq: windows()}))
        clock.move(seconds=10)
        assert await other.take_lease(LEASE_TTL_S) is None


async def test_adding_needs_no_lease(stores: tuple[SqlStore, SqlStore], clock: Clock) -> None:
    one, other = stores
    async with asyncio.timeout(LIMIT_S):
        assert await one.take_lease(LEASE_TTL_S) is not None
        receipts = await asyncio.gather(
            *(store.add_pages([Turn(f"{number}", "", clock.now)]) for number in range(40) for store in (one, other))
        )
        assert len({receipt.page_id for batch in receipts for receipt in batch}) == 80
        assert (await one.counts()).pages == (await other.counts()).pages == 80
