"""A server is killed while its LLM replies: the call is lost, but each page is organised exactly once."""

import asyncio
import json
import random
from pathlib import Path

import pytest

from benchmarks.llm_server import purpose_of, reply_to
from memoryos_mcp.llm.chat import Purpose
from tests.llm_server import Answer, Asked, completion, llm_server
from tests.servers import USER, PipeServer, stored_pages
from tests.stores import rows
from tests.test_crashes import assert_derived_rows_agree

pytestmark = [pytest.mark.campaign, pytest.mark.both_stores]

KILLS = 30
PAGES_PER_ROUND = 3
# The commit follows the reply within a few milliseconds, so servers are killed before, between and after both.
LATENCY_S = 0.02
LONGEST_DELAY_S = 0.08
LIMIT_S = 300
SETTINGS = {
    "short_term_capacity": 0,
    "consolidation_batch_pages": PAGES_PER_ROUND,
    "consolidation_idle_s": 0.1,
    "mid_term_heat_threshold": 3,
    "llm_model": "tiny",
}


def end_lease(data: Path) -> None:
    """End the lease of the killed server now, instead of waiting half a minute."""
    rows(data, "UPDATE lease SET expires_us = 0", USER)


async def test_each_page_is_organised_once_although_servers_are_killed(
    data: Path,
) -> None:
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")  # noqa: T201 - shown only if the test fails
    dice = random.Random(seed)  # noqa: S311 - no secret

    async def answer(asked: Asked) -> Answer:
        await asyncio.sleep(LATENCY_S)
        return completion(json.dumps(reply_to(asked.body["messages"])))

    ids: list[str] = []
    async with asyncio.timeout(LIMIT_S), llm_server(answer) as llm:
        settings = {**SETTINGS, "openai_base_url": llm.base_url}
        for number in range(KILLS):
            with await asyncio.to_thread(PipeServer(data, settings).__enter__) as server:
                asked = len(llm.asked)
                for page in range(PAGES_PER_ROUND):
                    text = f"I like {dice.choice(['tea', 'rowing', 'chess'])} number {number}.{page}."
                    ids.append(await asyncio.to_thread(server.add, text))
                await llm.was_asked(asked + 1)
                await asyncio.sleep(dice.uniform(0, LONGEST_DELAY_S))
                await asyncio.to_thread(server.kill)
            end_lease(data)
        with await asyncio.to_thread(PipeServer(data, settings).__enter__) as server:
            stats = await asyncio.to_thread(server.wait_until_settled)
            assert await asyncio.to_thread(server.close) == 0
    assert stats["degraded_pages"] == 0
    pages = stored_pages(data)
    assert [page.page_id for page in pages] == ids
    assert all(page.segment is not None for page in pages)
    assert_derived_rows_agree(data)
    organised = sum(purpose_of(asked.body["messages"]) is Purpose.ORGANISE for asked in llm.asked)
    assert organised > len(pages) / PAGES_PER_ROUND, "no kill fell between call and commit"
    facts = rows(data, "SELECT folded FROM facts WHERE valid_until_us IS NULL", USER)
    assert len(facts) == len(set(facts))
