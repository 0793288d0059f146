"""`Memoryos` in notebooks, in threads, and after close, a fork or the end of the interpreter."""

import asyncio
import gc
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import memoryos_mcp
from memoryos_mcp import MemoryEngine, Memoryos, MemoryOSError, Selection, StorageError
from memoryos_mcp.errors import ArgumentError, ConfigError, DamagedStoreError, ModelError
from memoryos_mcp.model.views import PageView
from memoryos_mcp.storage.sqlite.paths import database_file
from memoryos_mcp.sync import _MemoryThread
from tests.llm_server import Asked, api_error, completion, llm_server
from tests.memories import NO_MODEL
from tests.servers import serve_environment
from tests.stores import is_stored

LIMIT_S = 60

pytestmark = [pytest.mark.usefixtures("bare_environment"), pytest.mark.both_stores(in_campaign=True)]


def opened(folder: Path, **settings: Any) -> Memoryos:
    return Memoryos("ada", "", folder, **{**NO_MODEL, **settings})


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "memoryos"]


def test_the_package_exports_the_names_of_the_library() -> None:
    assert {"MemoryEngine", "MemoryService", "Memoryos", "MemoryOSError", "Settings"} <= set(dir(memoryos_mcp))
    for name in memoryos_mcp.__all__:
        assert getattr(memoryos_mcp, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Memory'"):
        _ = memoryos_mcp.Memory


def test_pages_are_stored_across_close(tmp_path: Path) -> None:
    with opened(tmp_path) as memo:
        page_id = memo.add_memory("I repair radios.", "Lovely.", "2026-05-01 10:00", {"mood": "calm"})
        assert page_id.startswith("p_")
    with opened(tmp_path) as memo:
        assert memo.get_memory_stats()["total_pages"] == 1
    assert not threads()


def test_key_and_folder_are_optional(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYOS_DATA_STORAGE_PATH", str(tmp_path))
    with Memoryos("ada", embedding_model_name="none") as memo:
        memo.add_memory("I repair radios.", "Lovely.")
    assert is_stored(tmp_path, "ada")


def test_it_works_in_the_thread_of_a_running_loop(tmp_path: Path) -> None:
    async def cell() -> int:
        with opened(tmp_path) as memo:
            memo.add_memory("I repair radios.", "")
            total: int = memo.get_memory_stats()["total_pages"]
            return total

    assert asyncio.run(cell()) == 1


def test_many_threads_may_call_it_at_once(tmp_path: Path) -> None:
    with opened(tmp_path) as memo, ThreadPoolExecutor(16) as pool:
        ids = list(pool.map(lambda number: memo.add_memory(f"I have {number} radios.", ""), range(200)))
        assert len(set(ids)) == 200
        assert memo.get_memory_stats()["total_pages"] == 200


def test_pending_pages_are_analysed_on_request(tmp_path: Path) -> None:
    with opened(tmp_path, short_term_capacity=0, mid_term_heat_threshold=1e9) as memo:
        for said in ("I live in Utrecht.", "I am vegetarian."):
            memo.add_memory(said, "I am your helper.")
        memo.force_mid_term_analysis()
        stats = memo.get_memory_stats()
        assert stats["backlog_pages"] == 0
        assert stats["mid_term_pages"] == 2
        assert stats["user_knowledge"] == 2
        assert isinstance(memo.get_user_profile_summary(), str)
        assert all(fact["knowledge"] for fact in memo.get_assistant_knowledge_summary())


async def test_a_response_follows_the_arguments_and_is_stored(tmp_path: Path) -> None:
    async with asyncio.timeout(LIMIT_S), llm_server(completion("Radios, of course.")) as server:
        text = await asyncio.to_thread(ask, tmp_path, server.base_url)
    assert text == ("Radios, of course.", 1)
    system = server.bodies[0]["messages"][0]["content"]
    assert "you are a colleague" in system
    assert "in rhymes" in system
    assert "response_format" not in server.bodies[0]


def ask(folder: Path, base_url: str) -> tuple[str, int]:
    with opened(folder, openai_base_url=base_url) as memo:
        text = memo.get_response("What do I repair?", "colleague", "in rhymes", {"from": "a test"})
        return text, memo.get_memory_stats()["total_pages"]


def test_a_fact_is_corrected_and_restored(tmp_path: Path) -> None:
    with Memoryos("ada", data_storage_path=tmp_path, embedding_model_name="none") as memo:
        memo.add_memory("I live in Paris.", "Lovely.")
        for number in range(11):
            memo.add_memory(f"My garden grows {number} tomatoes.", "How nice.")
        memo.force_mid_term_analysis()
        [fact] = memo.profile().user_facts
        dry = memo.correct(fact.id, text="I live in Oslo.", is_dry_run=True)
        assert memo.profile().user_facts == [fact]
        done = memo.correct(fact.id, text="I live in Oslo.")
        [corrected] = memo.profile().user_facts
        back = memo.correct(fact.id, is_restored=True)
        with pytest.raises(ArgumentError, match=f"{fact.id} was not corrected"):
            memo.correct(fact.id, is_restored=True)
    assert corrected.text == "I live in Oslo."
    assert (done.before, done.current) == (dry.before, dry.current) == (back.current, back.before)


def test_pages_are_found_listed_and_forgotten(tmp_path: Path) -> None:
    with opened(tmp_path) as memo:
        radios = memo.add_memory("I repair old radios.", "Which one is on your bench?")
        roses = memo.add_memory("My roses bloom in June.", "Lovely.")
        found = memo.retrieve("radios")
        assert "I repair old radios." in found.text
        listed = memo.listed(words="roses").entries
        assert [entry.id for entry in listed] == [roses]
        [view] = memo.look([radios])
        assert isinstance(view, PageView)
        assert view.page.user_input == "I repair old radios."
        plan = memo.plan_forgetting(Selection(ids=[radios]))
        assert (plan.counts.pages, memo.get_memory_stats()["total_pages"]) == (1, 2)
        receipt = memo.forget(plan.handle)
        assert (receipt.counts.pages, memo.get_memory_stats()["total_pages"]) == (1, 1)
        assert "radios" not in memo.retrieve("radios").text


async def test_errors_are_raised_and_nothing_is_stored(tmp_path: Path) -> None:
    def refuse(_: Asked) -> Any:
        return api_error(401)

    def fail(base_url: str) -> int:
        with opened(tmp_path, openai_base_url=base_url) as memo:
            with pytest.raises(ModelError, match="requires a key"):
                memo.get_response("Hi")
            with pytest.raises(ArgumentError):
                memo.add_memory(" ", "")
            total: int = memo.get_memory_stats()["total_pages"]
            return total

    async with asyncio.timeout(LIMIT_S), llm_server(refuse) as server:
        assert await asyncio.to_thread(fail, server.base_url) == 0


def test_a_response_without_an_llm_names_the_settings(tmp_path: Path) -> None:
    with opened(tmp_path) as memo, pytest.raises(ConfigError, match="llm_provider"):
        memo.get_response("Hi")


@pytest.mark.parametrize(
    ("settings", "told"), [({"short_term_capacity": -1}, "short_term_capacity"), ({"lmm_model": "x"}, "llm_model")]
)
def test_an_invalid_setting_is_named(tmp_path: Path, settings: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        opened(tmp_path, **settings)
    assert not threads()


@pytest.mark.sqlite_only
def test_a_memory_that_cannot_be_opened_leaves_no_thread(tmp_path: Path) -> None:
    file = database_file(tmp_path, "ada")
    file.parent.mkdir(parents=True)
    file.write_bytes(b"no database, and long enough to be seen as none " * 100)
    with pytest.raises(DamagedStoreError):
        opened(tmp_path)
    assert not threads()


def test_embedding_model_arguments_are_settings(tmp_path: Path) -> None:
    with opened(tmp_path, embedding_model_kwargs={"device": "cpu"}) as memo:
        assert memo.add_memory("Hi", "")


def test_calls_after_a_close_are_refused(tmp_path: Path) -> None:
    memo = opened(tmp_path)
    memo.close()
    memo.close()
    with pytest.raises(StorageError, match="closed"):
        memo.add_memory("Hi", "")


def test_a_call_from_the_memorys_own_thread_is_refused(tmp_path: Path) -> None:
    memo = opened(tmp_path)
    thread: _MemoryThread = memo._thread

    async def call_again(*_: object) -> None:
        memo.add_memory("Hi", "")

    with memo, pytest.raises(MemoryOSError, match="own thread"):
        thread.call(call_again)


def test_a_memory_without_references_is_closed(tmp_path: Path) -> None:
    memo = opened(tmp_path)
    memo.add_memory("Hi", "")
    del memo
    gc.collect()
    assert not threads()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform does not fork")
def test_a_call_in_a_forked_child_is_refused(tmp_path: Path) -> None:
    script = (
        "import os, sys; from memoryos_mcp import Memoryos, MemoryOSError\n"
        f"memo = Memoryos('ada', '', {str(tmp_path)!r}, embedding_model_name='none')\n"
        "if os.fork() == 0:\n"
        "    try:\n        memo.add_memory('Hi', '')\n"
        "    except MemoryOSError as error:\n        print(error, flush=True)\n"
        "    memo.close()\n    os._exit(0)\n"
        "os.wait(); memo.add_memory('Hi', ''); print(memo.get_memory_stats()['total_pages'])\n"
    )
    done = run(script, tmp_path)
    assert done.stdout.splitlines()[0].startswith("this memory was opened before the process forked")
    assert done.stdout.splitlines()[1] == "1"


def test_the_end_of_the_interpreter_closes_open_memories(tmp_path: Path) -> None:
    folder = str(tmp_path)
    done = run(
        "from memoryos_mcp import Memoryos\n"
        f"memo = Memoryos('ada', '', {folder!r}, embedding_model_name='none')\nmemo.add_memory('Hi', '')\n",
        tmp_path,
    )
    assert (done.stdout, done.stderr) == ("", "")
    assert not [file.name for file in tmp_path.rglob("*-wal")]


def run(script: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    # Python warns about a fork in a process with threads, which is what this test does.
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", script]
    return subprocess.run(
        command, capture_output=True, check=True, encoding="utf-8", timeout=LIMIT_S, env=serve_environment(folder)
    )


async def test_an_engine_opens_and_closes_its_own_models(tmp_path: Path) -> None:
    async with asyncio.timeout(LIMIT_S):
        async with MemoryEngine.open("ada", data_storage_path=tmp_path, embedding_model_name="none") as memory:
            await memory.add("I repair radios.", "Lovely.")
            assert len((await memory.retrieve("radios")).short_term) == 1
        with pytest.raises(StorageError):
            await memory.add("Hi", "")
        with pytest.raises(ConfigError, match="data_storage_path"):
            async with MemoryEngine.open("ada", data_storage_pth="x"):
                pass
