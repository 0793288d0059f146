"""Forgotten content is gone from every tool, every process and the bytes of every file."""

import asyncio
import json
import random
import subprocess
import threading
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from benchmarks.llm_server import reply_to
from memoryos_mcp import Memoryos
from memoryos_mcp.consolidation import worker
from memoryos_mcp.consolidation.forgetting import Selection
from memoryos_mcp.engine.engine import MemoryEngine
from memoryos_mcp.errors import ArgumentError
from memoryos_mcp.llm.recording import LOG_NAME
from memoryos_mcp.model.forgotten import ForgetReceipt
from memoryos_mcp.storage.sql.moments import to_us
from memoryos_mcp.storage.sqlite import vacuum
from memoryos_mcp.storage.sqlite.paths import database_file
from tests.commands import run_on
from tests.fakes import START, Clock, ScriptedAnalyst
from tests.llm_server import Answer, Asked, completion, llm_server
from tests.memories import NO_MODEL
from tests.servers import (
    BUSY_BACKGROUND,
    USER,
    PipeServer,
    open_store,
    refusal_text,
    stored_pages,
    wait_until,
)
from tests.stores import indexed_words, is_postgres, rows
from tests.test_engine import CHESS, POTTERY, add_all, memory, settled, until

pytestmark = pytest.mark.both_stores(in_campaign=True)

# Words that occur in no other text; the stemmer shortens them in the index.
SECRETS = ("Zanzibarquux", "vermilionfrog", "Okonkwoblat")
LIMIT_S = 120
PROMOTING = {**BUSY_BACKGROUND, "mid_term_heat_threshold": 1}
KILLS = 12
PAGES = 60  # enough that the journal is written to the file


def left_in_files(folder: Path) -> dict[str, list[str]]:
    """Return which files under a folder contain the bytes of which secret, ignoring case."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            content = path.read_bytes().lower()
            if words := [word for word in SECRETS if word.lower().encode() in content]:
                found[path.name] = words
    return found


def left_in_vocabulary(folder: Path) -> list[str]:
    terms = indexed_words(folder, USER)
    return [term for term in terms if any(word.lower().startswith(term) for word in SECRETS) and len(term) > 5]


def forget(server: PipeServer, **what: Any) -> dict[str, Any]:
    """Make a dry run, confirm it, and return the receipt once the files are purged."""
    dry_run = server.call("forget_memory", **what)
    assert dry_run["status"] == "dry_run"
    receipt = server.call("forget_memory", confirm=dry_run["confirm"])
    assert {name: receipt[name] for name in ("pages", "facts")} == {name: dry_run[name] for name in ("pages", "facts")}
    wait_until(lambda: server.call("forget_memory", confirm=dry_run["confirm"])["scrubbed"] is True, "scrubbed", 60)
    return receipt


def everything_shown(server: PipeServer) -> str:
    """Return the results of the tools that could quote pages."""
    told: list[Any] = [
        server.call("retrieve_memory", query=query, max_results=100, max_tokens=100_000, explain=False)
        for query in ("What do I do in summer?", "frog trip", "Hello")
    ]
    told.append(server.call("get_user_profile", include_assistant_knowledge=True))
    told.append(server.stats())
    return json.dumps(told).lower()


def kept_rows(folder: Path) -> list[tuple[Any, ...]]:
    """Return the pages that are not about a secret, with their vectors, but without chain and segment."""
    sql = (
        "SELECT p.seq, page_id, user_input, agent_response, occurred_us, meta_data, part, vector FROM pages AS p "
        "JOIN page_vectors USING (seq) WHERE user_input NOT LIKE '%frog%' ORDER BY p.seq, part"
    )
    return rows(folder, sql, USER)


def test_nothing_is_left_while_a_second_process_reads(data: Path) -> None:
    with ExitStack() as stack:
        one, other = (
            stack.enter_context(PipeServer(data, PROMOTING, log=data.parent / f"{number}.log")) for number in range(2)
        )
        secret = []
        for number in range(PAGES):
            if number % 7 == 3:
                text = f"I like {SECRETS[0]} and {SECRETS[2]}, day {number}. I keep a {SECRETS[1]}."
                secret.append(one.add(text, f"A {SECRETS[1]}! " * (number + 1), meta_data={"of": SECRETS[0]}))
            else:
                one.add(f"I like tea and rowing, day {number}. I work as a baker.", "Noted. " * number)
        for server in (one, other):
            server.wait_until_settled(limit_s=LIMIT_S)
            server.wait_until_semantic()
        wait_until(lambda: SECRETS[0] in json.dumps(other.call("get_user_profile")), "the facts are learned", 60)
        left = left_in_files(data)
        assert is_postgres() or {*left["memory.db"], *left.get("memory.db-wal", [])} == {*SECRETS}
        before = kept_rows(data)
        ended = threading.Event()

        def read_on() -> None:
            while not ended.is_set():
                other.call("retrieve_memory", query="What do I do in summer?", max_results=50)

        reader = threading.Thread(target=read_on)
        reader.start()
        try:
            receipt = forget(one, ids=secret)
        finally:
            ended.set()
            reader.join()
        assert receipt["pages"] == len(secret)
        assert receipt["facts"] > 0
        for server in (one, other):
            shown = everything_shown(server)
            assert not any(word.lower() in shown for word in SECRETS)
            server.wait_until_settled(limit_s=LIMIT_S)
        assert kept_rows(data) == before
        assert left_in_files(data) == {}
        assert left_in_vocabulary(data) == []
        found = other.call("retrieve_memory", query="rowing baker", max_results=5)["retrieved_pages"]
        assert all("rowing" in page["user_input"] for page in found)
        assert one.close() == other.close() == 0
        assert not any(word in one.stderr + other.stderr for word in SECRETS)
    assert left_in_files(data) == {}
    assert len(stored_pages(data)) == PAGES - len(secret)


async def test_an_llm_reply_after_forgetting_leaves_no_trace(data: Path) -> None:
    gate = asyncio.Event()

    async def answer(asked: Asked) -> Answer:
        reply = completion(json.dumps(reply_to(asked.body["messages"])))
        if SECRETS[0] in json.dumps(asked.body):
            await gate.wait()
        return reply

    async with asyncio.timeout(LIMIT_S), llm_server(answer) as llm:
        chosen = {
            "short_term_capacity": 0,
            "consolidation_batch_pages": 3,
            "consolidation_idle_s": 0.1,
            "mid_term_heat_threshold": 3,
            "llm_model": "tiny",
            "llm_log": "true",
            "openai_base_url": llm.base_url,
        }
        with await asyncio.to_thread(PipeServer(data, chosen).__enter__) as server:
            for number in range(3):
                await asyncio.to_thread(server.add, f"I like tea number {number}.")
            await asyncio.to_thread(server.wait_until_settled)
            log = database_file(data, "default_user").with_name(LOG_NAME)
            assert log.exists()
            ids = [await asyncio.to_thread(server.add, f"I like {word}.") for word in SECRETS]
            await asyncio.to_thread(
                wait_until, lambda: any(SECRETS[0] in json.dumps(body) for body in llm.bodies), "asked"
            )
            receipt = await asyncio.to_thread(lambda: forget(server, ids=ids))
            assert receipt["pages"] == len(SECRETS)
            assert not log.exists()
            asked = len(llm.asked)
            gate.set()
            for number in range(3):
                await asyncio.to_thread(server.add, f"I like rowing number {number}.")
            await llm.was_asked(asked + 1)
            await asyncio.to_thread(server.wait_until_settled)
            assert not any(SECRETS[0] in json.dumps(body) for body in llm.bodies[asked:])
            assert log.exists()
            shown = await asyncio.to_thread(everything_shown, server)
            assert not any(word.lower() in shown for word in SECRETS)
    assert left_in_files(data) == {}
    assert left_in_vocabulary(data) == []


@pytest.mark.campaign
def test_a_kill_while_forgetting_forgets_all_or_nothing(data: Path) -> None:
    dice = random.Random(7)  # noqa: S311 - no secret
    for _ in range(KILLS):
        with PipeServer(data, {**BUSY_BACKGROUND, "short_term_capacity": 0}) as server:
            for number in range(6):
                server.add(f"I like {SECRETS[number % 3]} number {number}.")
            there = len(stored_pages(data))
            handle = server.call("forget_memory", everything=True)["confirm"]
            server.send_call("forget_memory", {"confirm": handle})
            try:
                server.process.wait(dice.uniform(0, 0.06))
            except subprocess.TimeoutExpired:
                server.kill()
        left = len(stored_pages(data))
        assert left in {0, there}
    with PipeServer(data) as server:
        server.call("forget_memory", confirm=server.call("forget_memory", everything=True)["confirm"])
        wait_until(lambda: left_in_files(data) == {}, "what killed servers left is scrubbed", 60)
    assert left_in_vocabulary(data) == []


@pytest.mark.sqlite_only
def test_purging_waits_for_a_reader_and_the_receipt_says_so(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vacuum, "PURGE_BUSY_TIMEOUT_MS", 10)
    monkeypatch.setattr(worker, "PURGE_POLL_S", 0.05)
    monkeypatch.setattr(worker, "POLL_S", 0.05)
    reader_ended = asyncio.Event()

    async def check() -> None:
        async with memory(data) as engine:
            await add_all(engine, *[f"I like {word}." for word in SECRETS], *POTTERY)
            await settled(engine)
            holder = open_store(data, "ada")
            holder.execute("BEGIN")
            assert holder.execute("SELECT count(*) FROM pages").get == 9
            receipt = await forget_in(engine, Selection(query=SECRETS[0]))
            assert not receipt.is_scrubbed
            assert (await engine.forget(receipt.receipt)).is_scrubbed is False
            holder.execute("ROLLBACK")
            holder.close()
            reader_ended.set()

            async def is_scrubbed() -> bool:
                return all(known.is_scrubbed for known in await engine.forget_receipts())

            await until(is_scrubbed)
            assert SECRETS[0] not in left_in_files(data).get("memory.db", [])

    asyncio.run(check())


async def at_rest(engine: MemoryEngine) -> None:
    """Wait until background work has settled and the backlog is empty."""

    async def is_at_rest() -> bool:
        stats = await engine.stats()
        return stats.is_settled and stats.counts.backlog == 0

    await until(is_at_rest)


async def forget_in(engine: MemoryEngine, selection: Selection) -> ForgetReceipt:
    dry_run = await engine.plan_forgetting(selection)
    receipt = await engine.forget(dry_run.handle)
    assert receipt.counts == dry_run.counts
    return receipt


async def page_texts(engine: MemoryEngine) -> set[str]:
    recall = await engine.retrieve("pottery kiln bowl chess club opening", max_results=100, max_tokens=100_000)
    return {recalled.page.user_input for recalled in [*recall.short_term, *recall.pages]}


async def test_a_query_forgets_only_the_pages_about_it(tmp_path: Path) -> None:
    async with memory(tmp_path) as engine:
        await add_all(engine, *POTTERY, *CHESS)
        await settled(engine)
        dry_run = await engine.plan_forgetting(Selection(query="pottery kiln", max_results=100))
        assert {sample.text.splitlines()[0] for sample in dry_run.samples} == set(POTTERY)
        assert await page_texts(engine) == {*POTTERY, *CHESS}
        receipt = await engine.forget(dry_run.handle)
        assert (receipt.counts.pages, receipt.is_scrubbed) == (len(POTTERY), True)
        assert await page_texts(engine) == set(CHESS)


async def test_a_query_finds_at_most_max_results_pages(tmp_path: Path) -> None:
    async with memory(tmp_path) as engine:
        await add_all(engine, *POTTERY, *CHESS)
        assert (await engine.plan_forgetting(Selection(query="kiln", max_results=2))).counts.pages == 2
        nothing = await engine.plan_forgetting(Selection(query="xylophone"))
        assert (nothing.counts.pages, nothing.samples) == (0, [])


async def test_a_time_range_includes_its_start_and_not_its_end(tmp_path: Path) -> None:
    clock = Clock()
    async with memory(tmp_path, clock=clock, timezone="UTC") as engine:
        for number, text in enumerate(POTTERY):
            await engine.add(text, "I see.", timestamp=START - timedelta(days=number))
        await at_rest(engine)
        day = (START - timedelta(days=2)).isoformat()
        receipt = await forget_in(engine, Selection(after=day, before=START.isoformat()))
        assert receipt.counts.pages == 2
        assert await page_texts(engine) == {text for number, text in enumerate(POTTERY) if number not in {1, 2}}
        receipt = await forget_in(engine, Selection(query="bowl", before=START - timedelta(days=4)))
        assert receipt.counts.pages == 1


async def test_everything_means_all_memories_at_the_dry_run(tmp_path: Path) -> None:
    async with memory(tmp_path) as engine:
        await add_all(engine, *POTTERY)
        await settled(engine)
        dry_run = await engine.plan_forgetting(Selection(everything=True))
        await add_all(engine, CHESS[0])
        await engine.forget(dry_run.handle)
        stats = await settled(engine)
        assert (stats.counts.pages, stats.counts.segments, stats.counts.chains) == (1, 0, 0)
        assert await page_texts(engine) == {CHESS[0]}
        await add_all(engine, *CHESS[1:])
        await settled(engine)
        assert await page_texts(engine) == set(CHESS)


async def test_a_wrong_or_old_handle_forgets_nothing_and_advises(tmp_path: Path) -> None:
    clock = Clock()
    async with memory(tmp_path, clock=clock) as engine:
        await add_all(engine, *POTTERY)
        dry_run = await engine.plan_forgetting(Selection(everything=True))
        with pytest.raises(ArgumentError, match=r"confirm: .*nothing was forgotten. Make another dry run"):
            await engine.forget(dry_run.handle + "0")
        clock.move(minutes=15)
        with pytest.raises(ArgumentError, match="made in the last 15 minutes"):
            await engine.forget(dry_run.handle)
        assert (await engine.stats()).counts.pages == len(POTTERY)


async def test_another_users_memories_cannot_be_forgotten(tmp_path: Path) -> None:
    async with memory(tmp_path, user_id="grace") as other:
        (theirs,) = await add_all(other, POTTERY[0])
        handle = (await other.plan_forgetting(Selection(everything=True))).handle
    async with memory(tmp_path) as engine:
        (own,) = await add_all(engine, CHESS[0])
        with pytest.raises(ArgumentError, match="ids: no memory has the id p_"):
            await engine.plan_forgetting(Selection(ids=[own, theirs]))
        with pytest.raises(ArgumentError, match="confirm"):
            await engine.forget(handle)
        assert (await engine.stats()).counts.pages == 1


@pytest.mark.parametrize("name", ["s1", "c1", "k1", "trait:Openness", "p_", "s01", "", "s" + "9" * 30, "1 OR 1"])
async def test_an_id_of_no_memory_is_refused(tmp_path: Path, name: str) -> None:
    async with memory(tmp_path) as engine:
        with pytest.raises(ArgumentError, match=r"^ids: (no memory has the id |is not a valid id;)"):
            await engine.plan_forgetting(Selection(ids=[name]))


@pytest.mark.parametrize(
    ("selection", "argument"),
    [
        (Selection(), "ids"),
        (Selection(query="  "), "ids"),
        (Selection(ids=["k1"], query="tea"), "ids"),
        (Selection(everything=True, query="tea"), "everything"),
        (Selection(after="yesterday"), "after"),
        (Selection(after="2026-02-01", before="2026-01-01"), "before"),
        (Selection(query="tea", max_results=0), "max_results"),
        (Selection(query="t" * 20_001), "query"),
        (Selection(ids=["k1"] * 1_001), "ids"),
    ],
)
async def test_a_contradictory_selection_is_refused(tmp_path: Path, selection: Selection, argument: str) -> None:
    async with memory(tmp_path) as engine:
        with pytest.raises(ArgumentError) as refused:
            await engine.plan_forgetting(selection)
        assert refused.value.argument == argument


async def test_topics_get_summaries_of_their_remaining_pages(tmp_path: Path) -> None:
    async with memory(tmp_path, short_term_capacity=0) as engine:
        ids = await add_all(engine, *POTTERY, f"My pottery class glazed a {SECRETS[1]} {SECRETS[1]} in the kiln.")
        await at_rest(engine)
        recall = await engine.retrieve("pottery")
        (segment,) = {recalled.segment.segment for recalled in recall.pages if recalled.segment}
        await forget_in(engine, Selection(ids=[ids[-1]]))
        stats = await settled(engine)
        ((found, _),) = stats.top_segments
        assert (found.segment, found.page_count) == (segment, len(POTTERY))
        assert "pottery" in found.keywords
        assert found.summary
        assert SECRETS[1] not in found.summary
        assert all(recalled.page.chain_summary for recalled in (await engine.retrieve("pottery")).pages)
        receipt = await forget_in(engine, Selection(ids=[f"s{segment}"]))
        assert receipt.counts.pages == len(POTTERY)
        assert (await engine.stats()).counts.pages == 0


async def test_many_topics_get_their_summaries_in_the_background(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "POLL_S", 0.05)
    monkeypatch.setattr("memoryos_mcp.consolidation.forgetting.SUMMARIES_AT_ONCE", 1)
    async with memory(tmp_path, short_term_capacity=0) as engine:
        ids = await add_all(engine, *POTTERY)
        ids += await add_all(engine, *CHESS)
        assert len((await settled(engine)).top_segments) > 1
        # Facts that are learned meanwhile do not matter here.
        dry_run = await engine.plan_forgetting(Selection(ids=[ids[0], ids[-1]]))
        await engine.forget(dry_run.handle)

        async def have_words() -> bool:
            return all(segment.summary and segment.keywords for segment, _ in (await engine.stats()).top_segments)

        await until(have_words)
        assert (await settled(engine)).counts.pages == len(ids) - 2


async def test_forgetting_discards_organising_of_the_same_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "POLL_S", 0.05)
    analyst = ScriptedAnalyst()
    analyst.gate = asyncio.Event()
    async with memory(tmp_path, analyst=analyst, short_term_capacity=0) as engine:
        ids = await add_all(engine, *POTTERY[:3], f"I like {SECRETS[0]}.")

        async def is_asked() -> bool:
            return bool(analyst.organised)

        await until(is_asked)
        await forget_in(engine, Selection(ids=[ids[3]]))
        analyst.gate.set()
        stats = await settled(engine)
        assert (stats.counts.pages, stats.counts.mid_term) == (3, 3)
        assert len(analyst.organised) > 1
        assert not any(health.failed_attempts for health in stats.health.values())
        assert left_in_files(tmp_path) == {}


async def test_pages_older_than_the_retention_are_forgotten_daily(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "PURGE_POLL_S", 0.05)
    monkeypatch.setattr(worker, "POLL_S", 0.05)
    monkeypatch.setattr("memoryos_mcp.consolidation.forgetting.RETAINED_AT_ONCE", 2)
    clock = Clock()
    go_on(monkeypatch, clock)
    async with memory(tmp_path, clock=clock) as engine:
        for number, text in enumerate([*POTTERY, f"I like {SECRETS[0]}."]):
            await engine.add(text, "I see.", timestamp=START - timedelta(days=number))
        await settled(engine)
    async with memory(tmp_path, clock=clock, retention_days=3) as engine:

        async def are_left(pages: int) -> bool:
            receipts = await engine.forget_receipts()
            return (await engine.stats()).counts.pages == pages and all(known.is_scrubbed for known in receipts)

        await until(lambda: waits_until(engine, START + timedelta(days=1)))
        clock.move(days=1)
        await until(lambda: are_left(3))
        assert left_in_files(tmp_path) == {}
        clock.move(days=1)
        await until(lambda: are_left(2))
        assert await page_texts(engine) == set(POTTERY[:2])


def go_on(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    """Let the steady clock advance together with a clock, so that it does not jump."""
    monkeypatch.setattr("memoryos_mcp.storage.sql.retention.steady_us", lambda: to_us(clock.now))
    monkeypatch.setattr("memoryos_mcp.storage.sql.retention.WATCHED_US", 0)


async def waits_until(engine: MemoryEngine, moment: datetime | None) -> bool:
    return (await engine.stats()).counts.retention_waits_until == moment


YEARS = 5 * 365


@pytest.mark.parametrize("is_open_meanwhile", [True, False])
async def test_a_clock_that_leaps_ahead_and_back_forgets_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, is_open_meanwhile: bool
) -> None:
    monkeypatch.setattr(worker, "PURGE_POLL_S", 0.05)
    clock = Clock()
    texts = set(POTTERY)
    settings: dict[str, Any] = {"clock": clock, "retention_days": 365}
    async with memory(tmp_path, **settings) as engine:
        await add_all(engine, *POTTERY)
        await settled(engine)
        if is_open_meanwhile:
            clock.move(days=YEARS)
            await until(lambda: waits_until(engine, clock.now + timedelta(days=1)))
    if not is_open_meanwhile:
        clock.move(days=YEARS)
    async with memory(tmp_path, **settings) as engine:
        await until(lambda: waits_until(engine, clock.now + timedelta(days=1)))
        assert "set the clock right" in caplog.text.lower()
        clock.move(hours=23)
        clock.move(days=-YEARS)
        await until(lambda: waits_until(engine, None))
        assert await page_texts(engine) == texts
        clock.move(days=2 * YEARS)
        await until(lambda: waits_until(engine, clock.now + timedelta(days=1)))
        clock.move(days=YEARS)  # the clock jumps again, so this is not a second check
        await until(lambda: waits_until(engine, clock.now + timedelta(days=1)))
        assert await page_texts(engine) == texts


async def test_a_second_check_a_day_later_forgets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "PURGE_POLL_S", 0.05)
    clock = Clock()
    async with memory(tmp_path, clock=clock, retention_days=365) as engine:
        await add_all(engine, *POTTERY)
        clock.move(days=YEARS)
        await until(lambda: waits_until(engine, clock.now + timedelta(days=1)))
    go_on(monkeypatch, clock)
    clock.move(days=1)
    async with memory(tmp_path, clock=clock, retention_days=365) as engine:

        async def is_empty() -> bool:
            return (await engine.stats()).counts.pages == 0

        await until(is_empty)


def test_a_server_reports_that_old_pages_await_a_second_check(data: Path) -> None:
    with Memoryos(USER, data_storage_path=data, **NO_MODEL) as memory:
        memory.add_memory("I like tea.", "", timestamp="2020-05-08T12:00:00Z")
    with PipeServer(data, {"retention_days": 30, **NO_MODEL}) as server:
        wait_until(lambda: bool(server.stats()["retention_waits_until"]), "the first look is taken")
        assert server.stats()["total_pages"] == 1
        assert "retention_days" in server.stderr
    found = run_on(data, "doctor", "--json", "--retention-days", 30)
    (check,) = [check for check in json.loads(found.stdout)["checks"] if check["name"] == "memory"]
    assert (check["verdict"], "retention_days" in check["found"]) == ("warn", True)
    assert len(stored_pages(data)) == 1


def test_the_command_asks_forgets_and_reports_the_purge(data: Path) -> None:
    def run_forget(*arguments: str, code: int = 0) -> "subprocess.CompletedProcess[str]":
        return run_on(data, "forget", *arguments, code=code)

    assert "user default_user has no memory" in run_forget("--everything", "--yes", code=1).stderr
    with Memoryos(USER, data_storage_path=data, **NO_MODEL) as memory:
        memory.add_memory(f"I like {SECRETS[0]}.", "")
        kept = memory.add_memory("I like tea.", "")
    assert run_forget("--receipts").stdout == "Nothing has been forgotten yet.\n"
    asked = run_forget("--query", SECRETS[0], code=1)
    assert f"I like {SECRETS[0]}." in asked.stdout
    assert "--yes" in asked.stderr
    assert json.loads(run_forget("--query", SECRETS[0], "--json").stdout)["pages"] == 1
    assert len(stored_pages(data)) == 2
    done = json.loads(run_forget("--query", SECRETS[0], "--yes", "--json").stdout)
    assert (done["pages"], done["scrubbed"]) == (1, True)
    assert [page.page_id for page in stored_pages(data)] == [kept]
    assert left_in_files(data) == {}
    assert done["receipt"] in run_forget("--receipts").stdout
    assert "no memory has the id k7" in run_forget("--id", "k7", "--yes", code=2).stderr


def test_forget_takes_a_handle_alone_and_is_destructive(server: PipeServer) -> None:
    server.add("I like tea.")
    handle = server.call("forget_memory", everything=True)["confirm"]
    refused = server.result(server.send_call("forget_memory", {"confirm": handle, "everything": True}))
    assert "must be the only argument" in refusal_text(refused)
    (tool,) = [
        tool for tool in server.result(server.send("tools/list", {}))["tools"] if tool["name"] == "forget_memory"
    ]
    assert tool["annotations"]["destructiveHint"] is True
    assert tool["annotations"]["readOnlyHint"] is False
