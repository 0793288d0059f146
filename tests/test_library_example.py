"""The example of the reference's documentation runs with import, key and URL changed, against a real model server."""

from pathlib import Path

import pytest

from memoryos_mcp import Memoryos
from tests.llama import MODEL, running_llama

pytestmark = pytest.mark.skipif(not MODEL, reason="MEMORYOS_GGUF names no model")


def test_the_documented_example_of_the_reference_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with running_llama(repeat_penalty=1.2) as address:
        memo = Memoryos(
            user_id="ada",
            openai_api_key="none",
            openai_base_url=address,
            data_storage_path=str(tmp_path),
            llm_model="smollm2",
            assistant_id="helper",
            short_term_capacity=7,
            mid_term_heat_threshold=5,
            retrieval_queue_capacity=7,
            long_term_knowledge_capacity=100,
            mid_term_similarity_threshold=0.6,
            embedding_model_name="all-MiniLM-L6-v2",
        )
        memo.add_memory(
            user_input="Good morning! I am Ada, and I repair old radios in Utrecht.",
            agent_response="Good morning, Ada! That sounds like patient work. Which radio is on your bench now?",
        )
        response = memo.get_response(query="What do you remember of my work? One sentence, please.")
        stats = memo.get_memory_stats()
        memo.close()

    assert isinstance(response, str)
    assert response.strip()
    assert stats["total_pages"] == 2
    assert stats["llm"]["usage_total"]["respond"]["calls"] == 1
    assert capsys.readouterr().out == ""
