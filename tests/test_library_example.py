"""The documented examples run: those of the reference, with another import, key and URL, and ours."""

import asyncio
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

from memoryos_mcp import Memoryos
from tests.documents import section, table
from tests.llama import MODEL, running_llama
from tests.llm_server import Asked, Reply, completion, llm_server
from tests.servers import clean_environment

LIMIT_S = 60
SAID = "You repair them."


def test_every_method_is_documented_with_its_signature() -> None:
    documented = {row[0].strip("`") for row in table("As a library")}
    found = set()
    for name, method in inspect.getmembers(Memoryos, inspect.isfunction):
        if not name.startswith("_"):
            parameters = [each for each in inspect.signature(method).parameters.values() if each.name != "self"]
            plain = [str(each.replace(annotation=each.empty)).replace("'", '"') for each in parameters]
            found.add(f"{name}({', '.join(plain)})")
    assert documented == found


@pytest.mark.parametrize("place", [0, 2])
async def test_the_examples_of_the_page_run(tmp_path: Path, place: int) -> None:
    example = re.findall(r"```python\n(.*?)```", section("As a library"), re.DOTALL)[place]
    async with llm_server(reply) as server:
        script = example.replace("http://localhost:8080/v1", server.base_url).replace("~/my-memories", str(tmp_path))
        assert script.count(str(tmp_path)) == script.count(server.base_url) == 1
        done = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-c", script],
            capture_output=True,
            encoding="utf-8",
            timeout=LIMIT_S,
            env=clean_environment(),
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(SAID + "\n" * (place == 0))


def reply(_: Asked) -> Reply:
    return completion(SAID)


@pytest.mark.campaign
@pytest.mark.skipif(not MODEL, reason="MEMORYOS_GGUF names no model")
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
            embedding_model_name="memoryos-small",
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
