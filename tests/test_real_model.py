"""All background work with a real LLM server: llama.cpp in this process, with a very small model, over HTTP.

Its replies are well-formed, because a grammar enforces their form, but poor in content.
"""

import asyncio
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from benchmarks.datasets import load
from memoryos_mcp.config import Settings
from memoryos_mcp.engine.service import MemoryService
from memoryos_mcp.llm import catalogue
from memoryos_mcp.model.stats import Stats
from tests.llama import DATA, MODEL, running_llama
from tests.servers import open_store

PAGES = 10
LIMIT_S = 1800

pytestmark = [
    pytest.mark.campaign,
    pytest.mark.skipif(not (MODEL and DATA), reason="MEMORYOS_GGUF names no model, or MEMORYOS_EVAL_DATA no dialogue"),
]


@pytest.fixture(scope="module")
def model_address() -> Iterator[str]:
    """A llama.cpp server on a free port of this machine."""
    with running_llama() as address:
        yield address


async def test_a_real_model_organises_pages_and_extracts_facts(tmp_path: Path, model_address: str) -> None:
    assert DATA is not None
    conversation = load(Path(DATA) / "locomo-dev.json").conversations[0]
    settings = Settings(
        data_storage_path=tmp_path,
        openai_base_url=model_address,
        llm_model="smollm2",
        llm_timeout_s=float(LIMIT_S),
        llm_max_concurrent_calls=1,
        llm_max_prompt_tokens=1500,
        max_topics=1,
        short_term_capacity=0,
        consolidation_batch_pages=5,
        consolidation_idle_s=0.5,
        mid_term_heat_threshold=3.0,
    )
    ids = []
    async with asyncio.timeout(LIMIT_S), MemoryService(settings) as service, service.user("ada") as engine:
        for page in islice(conversation.pages, PAGES):
            receipt = await engine.add(page.user_input, page.agent_response, timestamp=page.timestamp)
            ids.append(receipt.page_id)
        while not is_done(stats := await engine.stats()):  # noqa: ASYNC110 - the state is another task's
            await asyncio.sleep(0.2)
        profile = await engine.profile()
        found = await engine.retrieve(conversation.questions[0].text)

    assert stats.counts.degraded == 0
    assert stats.counts.segments == len(stats.top_segments) > 0
    assert stats.counts.chains > 0
    assert {segment.summariser for segment, _ in stats.top_segments} == {"smollm2"}
    assert all(segment.summary and segment.keywords for segment, _ in stats.top_segments)
    assert found.pages
    assert profile.traits
    assert all(trait.evidence and set(trait.evidence) <= set(ids) for trait in profile.traits)
    assert all(catalogue.find(trait.dimension) == trait.dimension for trait in profile.traits)

    connection = open_store(tmp_path, "ada")
    try:
        pages = connection.execute("SELECT page_id, segment, organised_by FROM pages ORDER BY seq").fetchall()
        facts = connection.execute("SELECT fact, learned_by FROM facts").fetchall()
        evidence = connection.execute("SELECT fact, page_id FROM fact_evidence LEFT JOIN pages USING (seq)").fetchall()
        counted = connection.execute("SELECT sum(page_count) FROM segments").get
    finally:
        connection.close()
    assert [page_id for page_id, _, _ in pages] == ids
    assert all(segment is not None and organiser == "smollm2" for _, segment, organiser in pages)
    assert counted == PAGES
    assert "smollm2" in {learner for _, learner in facts}
    assert {fact for fact, _ in evidence} == {fact for fact, _ in facts}
    assert {page_id for _, page_id in evidence} <= set(ids)


def is_done(stats: Stats) -> bool:
    """Return whether every page is filed and a fact was learned; the model is too slow to wait for all facts.

    Most facts of such a small model end on the day on which they were said.
    """
    counts = stats.counts
    facts = counts.user_facts + counts.assistant_facts + counts.superseded_facts
    return counts.backlog == 0 and counts.traits > 0 and facts > 0
