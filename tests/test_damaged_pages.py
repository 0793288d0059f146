"""Pages that were damaged on disk are detected, and their text is never used as if it were intact."""

import asyncio
import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import apsw
import pytest

from memoryos_mcp import Memoryos
from memoryos_mcp.errors import StorageError
from memoryos_mcp.model.pages import DAMAGED_TEXT, Tier, Turn
from memoryos_mcp.model.segments import Digest
from memoryos_mcp.storage.sql.export import DAMAGED_MARK
from memoryos_mcp.storage.sqlite.checksums import damaged_pages
from memoryos_mcp.storage.sqlite.paths import database_file
from memoryos_mcp.storage.values import PageQuery
from tests.commands import run_on
from tests.earlier_versions import make_version
from tests.fakes import START
from tests.memories import NO_MODEL
from tests.servers import BUSY_BACKGROUND, USER, PipeServer, open_store, stored_pages, wait_until
from tests.test_store import opened
from tests.test_store_redo import file as file_pages
from tests.test_store_redo import filled, topic

LIMIT_S = 60
MARKER = "zzmarkerzz"
SAID = f"I am allergic to {MARKER}."


def flip(file: Path, text: str, changed: bytes | None = None) -> None:
    """Change bytes in a closed file as a failing disk does, in a way that SQLite does not detect.

    Args:
        file: The file.
        text: What is changed.
        changed: What stands there afterwards; by default one letter is another one.
    """
    old = text.encode()
    new = changed or old[:-3] + b"Q" + old[-2:]
    with closing(apsw.Connection(str(file))) as connection:
        connection.execute("PRAGMA secure_delete = 1; VACUUM").fetchall()  # SQLite leaves copies of rows that it moved
    content = file.read_bytes()
    assert content.count(old) == 1
    assert len(new) == len(old)
    file.write_bytes(content.replace(old, new))
    with closing(apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        assert connection.execute("PRAGMA quick_check").get == "ok"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (SAID, None),
        (SAID, SAID.encode().replace(b"zz", b"\xff\xfe")),
        ("Noted, no nuts.", None),
        ('{"mood":"calm"}', b'{"mood":"mild"}'),
    ],
    ids=["a letter", "no UTF-8", "the answer", "the notes"],
)
async def test_a_damaged_page_is_shown_without_its_text(
    old: str, new: bytes | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with asyncio.timeout(LIMIT_S):
        async with opened(tmp_path) as store:
            await store.add_pages([Turn("Tea, please.", "Here.", START)])
            turn = Turn(SAID, "Noted, no nuts.", START, meta_data='{"mood":"calm"}')
            damaged_id = (await store.add_pages([turn]))[0].page_id
        flip(database_file(tmp_path, "ada"), old, new)
        async with opened(tmp_path) as store:
            whole, page = await store.pages(PageQuery(tier=Tier.SHORT_TERM))
            assert (whole.user_input, whole.is_damaged) == ("Tea, please.", False)
            assert (page.page_id, page.user_input, page.agent_response) == (damaged_id, DAMAGED_TEXT, "")
            assert (page.meta_data, page.is_damaged, page.teaches) == (None, True, False)
            assert await store.verify() == await store.damaged_pages() == (damaged_id,)
    assert f"page {damaged_id} is damaged" in caplog.text
    assert MARKER not in caplog.text


async def test_a_damaged_time_is_detected_too(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        (receipt,) = await store.add_pages([Turn("Tea, please.", "", START)])
    for moment in (0, (1 << 62) + 1):
        with closing(apsw.Connection(str(database_file(tmp_path, "ada")))) as connection:
            connection.execute("UPDATE pages SET occurred_us = ?", (moment,))
        async with opened(tmp_path) as store:
            assert [page.is_damaged for page in await store.pages(PageQuery(tier=Tier.SHORT_TERM))] == [True]
            assert await store.damaged_pages() == (receipt.page_id,)


def remembered(data: Path, *texts: str) -> list[str]:
    """Store pages in a memory, and return their ids."""
    with Memoryos(USER, data_storage_path=data, **NO_MODEL) as memory:
        return [memory.add_memory(text, "") for text in texts]


def damaged(data: Path) -> tuple[list[str], Path]:
    """Store three pages, and damage the second on disk; return their ids and the file."""
    ids = remembered(data, "Tea, please.", SAID, "Pottery is fun.")
    file = database_file(data, USER)
    flip(file, SAID)
    return ids, file


def test_no_tool_shows_the_text_of_a_damaged_page(data: Path) -> None:
    ids, _ = damaged(data)
    with PipeServer(data, {**NO_MODEL, "short_term_capacity": 1}) as server:
        found = server.call("retrieve_memory", query=f"allergic to {MARKER}")
        pages = {page["page_id"]: page for page in found["retrieved_pages"] + found["short_term_memory"]}
        assert pages[ids[1]]["user_input"] == DAMAGED_TEXT
        (shown,) = server.call("get_memory", ids=[ids[1]])["memories"]
        assert shown["user_input"] == DAMAGED_TEXT
        listed = server.call("list_memories")["memories"]
        assert [entry["beginning"] for entry in listed] == ["Pottery is fun.", DAMAGED_TEXT, "Tea, please."]
        wait_until(lambda: bool(server.stats()["damaged_pages"] == 1), "the background has read all pages")
        everything = b"".join(server.lines).decode()
        assert SAID[:-3] not in everything
        assert server.close() == 0
        assert f"page {ids[1]} is damaged" in server.stderr
        assert MARKER not in server.stderr


def test_a_damaged_page_can_be_forgotten(data: Path) -> None:
    ids = remembered(data, "Tea, please.", SAID)
    flip(database_file(data, USER), SAID, SAID.encode().replace(b"zz", b"\xff\xfe"))
    with PipeServer(data, NO_MODEL) as server:
        dry_run = server.call("forget_memory", ids=[ids[1]])
        assert MARKER[2:-2] not in json.dumps(dry_run)
        server.call("forget_memory", confirm=dry_run["confirm"])
        assert server.stats()["total_pages"] == 1
        assert server.close() == 0
    assert [page.page_id for page in stored_pages(data)] == [ids[0]]
    assert b"marker" not in database_file(data, USER).read_bytes()


def test_the_doctor_stats_and_a_backup_name_a_damaged_page(data: Path, tmp_path: Path) -> None:
    ids, file = damaged(data)
    before = file.read_bytes()
    report = json.loads(run_on(data, "doctor", "--json", "--embedding-model-name", "none", code=1).stdout)
    (check,) = [check for check in report["checks"] if check["name"] == "memory"]
    assert (check["verdict"], ids[1] in check["found"], "restore" in check["fix"]) == ("fail", True, True)
    assert "1 page damaged on disk" in run_on(data, "stats").stdout
    done = run_on(data, "backup", tmp_path / "copy.db", "--json", code=1)
    (copy,) = json.loads(done.stdout)["copies"]
    assert copy["damaged_pages"] == [ids[1]]
    assert f"({ids[1]})" in done.stderr
    assert file.read_bytes() == before


def test_the_advice_of_the_doctor_restores_a_damaged_page(data: Path, tmp_path: Path) -> None:
    ids = remembered(data, "Tea, please.", SAID)
    run_on(data, "backup", tmp_path / "copy.db")
    ids += remembered(data, "Pottery is fun.")
    flip(database_file(data, USER), SAID)
    told = run_on(data, "export", tmp_path / "out.jsonl", code=1).stderr
    assert ids[1] in told
    assert MARKER not in told
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text("utf-8").splitlines()]
    texts = {line["page_id"]: line["user_input"] for line in lines if line.get("kind") == "page"}
    assert texts[ids[0]] == "Tea, please."
    assert texts[ids[1]].startswith(f"{DAMAGED_MARK} I am allergic to {MARKER[:-2]}")
    run_on(data, "restore", tmp_path / "copy.db", "--yes")
    run_on(data, "import", tmp_path / "out.jsonl")
    assert {page.page_id: page.user_input for page in stored_pages(data)} == dict(
        zip(ids, ["Tea, please.", SAID, "Pottery is fun."], strict=True)
    )
    report = json.loads(run_on(data, "doctor", "--json", "--embedding-model-name", "none").stdout)
    assert report["ok"]


def test_checksums_stay_correct_in_all_operations(data: Path, tmp_path: Path) -> None:
    busy = {**BUSY_BACKGROUND, "mid_term_heat_threshold": 0.1}
    with PipeServer(data, busy) as server:
        ids = [server.add(f"I like pottery and glaze {n}.", "Good.", timestamp="2024-05-08") for n in range(9)]
        server.wait_until_settled()
        dry_run = server.call("forget_memory", ids=ids[:2])
        server.call("forget_memory", confirm=dry_run["confirm"])
        server.wait_until_settled()
        assert server.close() == 0
    run_on(data, "export", tmp_path / "out.jsonl")
    run_on(tmp_path / "other", "import", tmp_path / "out.jsonl")
    for folder in (data, tmp_path / "other"):
        with closing(open_store(folder)) as connection:
            assert damaged_pages(connection) == ()
            assert connection.execute("SELECT count(*) FROM pages WHERE checksum <> 0").get == 7


async def test_pages_of_an_earlier_version_get_checksums(tmp_path: Path) -> None:
    file = database_file(tmp_path, "ada")
    make_version(file, "ada", 5, 40)
    async with opened(tmp_path) as store:
        assert await store.damaged_pages() == ()
        assert len(await store.pages(PageQuery(tier=Tier.BACKLOG, limit=40))) == 40
    flip(file, "My note 7 is")
    async with opened(tmp_path) as store:
        assert await store.damaged_pages() == (f"p_{7:020x}",)


async def test_other_damaged_text_is_an_error_that_does_not_quote_it(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        lease = await filled(store, 2)
        await file_pages(store, lease, replace(topic(1, 2), digest=Digest(("topic",), SAID)))
    flip(database_file(tmp_path, "ada"), SAID, SAID.encode().replace(b"zz", b"\xff\xfe"))
    async with opened(tmp_path) as store:
        with pytest.raises(StorageError, match="restore a backup") as caught:
            await store.segments()
        assert caught.value.__cause__ is None
        assert len(await store.pages(PageQuery(is_degraded=True, organised_by="extractive", after_seq=0, limit=1))) == 0
