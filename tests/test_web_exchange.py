"""The page on which a memory is exported, and files are imported."""

import asyncio
import gzip
import json
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from memoryos_mcp.config import Settings
from memoryos_mcp.engine.engine import MemoryEngine
from memoryos_mcp.engine.imports import ENDED_PER_USER, OPEN_PER_USER, Imports
from memoryos_mcp.engine.service import MemoryService
from memoryos_mcp.model.records import FORMAT_VERSION
from memoryos_mcp.server.web.guard import PREFIX
from tests.fakes import Clock
from tests.memories import NO_MODEL, UNFILED, USER
from tests.web_client import Pages, Shown, open_pages

pytestmark = pytest.mark.both_stores(in_campaign=True)

LIMIT_S = 30
POLL_S = 0.01
HOSTILE = "<script>alert('x')</script>.jsonl"


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder with the uploaded files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "mkstemp", partial(tempfile.mkstemp, dir=folder))
    return folder


def files_in(folder: Path) -> list[Path]:
    return list(folder.iterdir())


class Gate:
    """Holds up every import until it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.opened = asyncio.Event()
        through = MemoryEngine.import_file

        async def import_file(engine: MemoryEngine, *args: Any, **kwargs: Any) -> Any:
            await self.opened.wait()
            return await through(engine, *args, **kwargs)

        monkeypatch.setattr(MemoryEngine, "import_file", import_file)


@asynccontextmanager
async def opened(data: Path, **given: Any) -> AsyncIterator[Pages]:
    settings = Settings(data_storage_path=data, timezone="UTC", **NO_MODEL, **UNFILED)
    async with (
        asyncio.timeout(LIMIT_S),
        MemoryService(settings, clock=Clock()) as service,
        open_pages(service, **given) as pages,
    ):
        yield pages


async def add(pages: Pages, *texts: str, user_id: str = USER) -> None:
    async with pages.service.user(user_id) as engine:
        for text in texts:
            await engine.add(text, "I see.")


async def count(pages: Pages) -> int:
    async with pages.service.user(pages.user_id) as engine:
        return (await engine.stats()).counts.pages


async def export(pages: Pages) -> bytes:
    answer = await pages.http.get(f"{PREFIX}/exchange/export")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/gzip")
    assert answer.headers["content-disposition"] == 'attachment; filename="memory-2026-05-08.jsonl.gz"'
    assert int(answer.headers["content-length"]) == len(answer.content)
    return answer.content


async def upload(pages: Pages, content: bytes, name: str = "memory.jsonl.gz") -> Shown:
    return await pages.submit("/exchange", files={"file": (name, content)})


async def until(pages: Pages, text: str, times: int = 1) -> Shown:
    """Load the page again until it shows a text so many times. The caller's time limit applies."""
    while True:
        shown = await pages.get("/exchange")
        if shown.text.count(text) >= times:
            return shown
        await asyncio.sleep(POLL_S)


async def confirm(pages: Pages, shown: Shown) -> Shown:
    return await pages.submit("/exchange/confirm", shown.form("/exchange/confirm").fields)


async def test_an_export_is_counted_then_imported(tmp_path: Path, temporary: Path) -> None:
    async with opened(tmp_path / "one") as pages:
        await add(pages, "I live in Oslo.", "I like roses.")
        content = await export(pages)
    lines = gzip.decompress(content).splitlines()
    assert json.loads(lines[0])["version"] == FORMAT_VERSION
    async with opened(tmp_path / "two") as pages:
        await upload(pages, content)
        shown = await until(pages, "Import it now")
        assert "Pages: 2 found, 2 new, 0 already in the memory" in shown.text
        assert "This was a dry run; nothing was changed." in shown.text
        [file] = files_in(temporary)
        assert file.stat().st_mode & 0o777 == 0o600
        assert await count(pages) == 0
        await confirm(pages, shown)
        shown = await until(pages, "Imported.")
        assert "Pages: 2 found, 2 new, 0 already in the memory" in shown.text
        assert "dry run" not in shown.text
        assert await count(pages) == 2
        assert not files_in(temporary)
        shown = await pages.submit("/exchange/discard", shown.form("/exchange/discard").fields)
        assert "memory.jsonl.gz" not in shown.text


async def test_an_empty_memory_can_be_exported(tmp_path: Path) -> None:
    async with opened(tmp_path, only_reads=True) as pages:
        header, end = gzip.decompress(await export(pages)).splitlines()
        assert json.loads(end)["counts"] == {}
        assert json.loads(header)["format"] == "memoryos"


async def test_files_of_other_programs_are_recognised(tmp_path: Path) -> None:
    async with opened(tmp_path) as pages:
        facts = b'{"type":"entity","name":"Nora","entityType":"person","observations":["Nora likes tea"]}\n'
        await upload(pages, facts, "memory.json")
        shown = await until(pages, "Import it now")
        assert "Format: server-memory Facts: 1 found" in shown.text
        await confirm(pages, shown)
        await until(pages, "Imported.")
        async with pages.service.user(USER) as engine:
            assert [fact.text for fact in (await engine.profile()).user_facts] == ["Nora: Nora likes tea"]


async def test_progress_is_polled_while_an_import_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch)
    async with opened(tmp_path) as pages:
        await upload(pages, await export(pages))
        await until(pages, "Counting what it contains")
        part = await pages.part("/exchange/imports")
        assert '<section id="imports"' in part
        assert 'hx-trigger="every 1s"' in part
        assert "<html" not in part
        gate.opened.set()
        await until(pages, "Import it now")
        assert "hx-trigger" not in await pages.part("/exchange/imports")
        assert (await pages.get("/exchange/imports")).path == "/exchange"


async def test_a_second_import_waits_its_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch)
    async with opened(tmp_path) as pages:
        content = await export(pages)
        await upload(pages, content, "first.gz")
        await until(pages, "Counting what it contains")
        shown = await upload(pages, content, "second.gz")
        assert "second.gz Waits until your other import has ended." in shown.text
        gate.opened.set()
        await until(pages, "Import it now", times=2)


async def test_too_many_open_imports_are_refused(tmp_path: Path, temporary: Path) -> None:
    async with opened(tmp_path) as pages:
        content = await export(pages)
        for _ in range(OPEN_PER_USER):
            await upload(pages, content)
        refused = await upload(pages, content)
        assert (refused.status, "discard one of them" in refused.text) == (400, True)
        assert len(files_in(temporary)) == OPEN_PER_USER


async def test_only_the_newest_ended_imports_are_listed(tmp_path: Path) -> None:
    async with opened(tmp_path) as pages:
        for number in range(ENDED_PER_USER + 2):
            await upload(pages, b"nothing known", f"{number}.txt")
            await until(pages, f"{number}.txt Failed")
        shown = await pages.get("/exchange")
        assert shown.text.count("Failed") == ENDED_PER_USER + 1  # old ones go when a new one begins


async def test_an_unusable_file_fails_by_its_own_name(tmp_path: Path, temporary: Path) -> None:
    async with opened(tmp_path) as pages:
        await upload(pages, b"<b>nothing</b>", HOSTILE)
        shown = await until(pages, "Failed")
        assert f"{HOSTILE} is not in a known format" in shown.text
        assert "<script>alert" not in shown.html
        assert str(temporary) not in shown.html
        content = gzip.decompress(await export(pages))
        await upload(pages, content[:-20], "cut.jsonl")
        shown = await until(pages, "cut.jsonl Failed")
        assert "cut.jsonl is cut off after line" in shown.text
        assert not files_in(temporary)


@pytest.mark.parametrize(
    ("fields", "files", "problem"),
    [
        ({}, None, "choose a file"),
        ({"file": "a text"}, None, "choose a file"),
        ({"format": "chatgtp"}, {"file": ("a.json", b"[]")}, "did you mean chatgpt"),
    ],
)
async def test_a_form_without_a_usable_file_is_refused(
    fields: dict[str, str | list[str]], files: dict[str, tuple[str, bytes]] | None, problem: str, tmp_path: Path
) -> None:
    async with opened(tmp_path) as pages:
        shown = await pages.submit("/exchange", fields, files=files)
        assert (shown.status, problem in shown.text) == (400, True)
        assert "None since the program was started." in (await pages.get("/exchange")).text


async def test_an_empty_file_fails_in_words(tmp_path: Path) -> None:
    async with opened(tmp_path) as pages:
        await upload(pages, b"", "nothing.json")
        assert "nothing.json is empty" in (await until(pages, "Failed")).text


async def test_imports_of_others_can_neither_be_seen_nor_confirmed(tmp_path: Path) -> None:
    async with opened(tmp_path) as pages:
        await upload(pages, await export(pages), "secret.gz")
        shown = await until(pages, "Import it now")
        [known] = pages.service.imports.of_user(USER)
        async with open_pages(pages.service, user_id="bob") as other:
            assert "secret.gz" not in (await other.get("/exchange")).text
            for path in ("/exchange/confirm", "/exchange/discard"):
                refused = await other.submit(path, {"import": known.import_id})
                assert (refused.status, "does not exist" in refused.text) == (400, True)
        await confirm(pages, shown)
        await until(pages, "Imported.")
        again = await pages.submit("/exchange/confirm", {"import": known.import_id})
        assert (again.status, "cannot be confirmed now" in again.text) == (400, True)


async def test_a_discarded_import_stores_nothing(tmp_path: Path, temporary: Path) -> None:
    async with opened(tmp_path / "one") as pages:
        await add(pages, "I live in Oslo.")
        content = await export(pages)
    async with opened(tmp_path / "two") as pages:
        await upload(pages, content)
        shown = await until(pages, "Import it now")
        await pages.submit("/exchange/discard", shown.form("/exchange/discard").fields)
        await until(pages, "Discarded.")
        assert not files_in(temporary)
        assert await count(pages) == 0


async def test_a_stop_during_an_import_removes_the_file(
    tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Gate(monkeypatch)
    async with opened(tmp_path) as pages:
        await upload(pages, await export(pages))
        await until(pages, "Counting what it contains")
        assert files_in(temporary)
    assert not files_in(temporary)


async def test_an_unconfirmed_import_is_discarded_in_time(tmp_path: Path, temporary: Path) -> None:
    async with opened(tmp_path) as pages:
        pages.service.imports = Imports(pages.service.user, confirm_s=0.0)
        await upload(pages, await export(pages))
        await until(pages, "Discarded.")
        assert not files_in(temporary)


async def test_readers_export_but_do_not_import(tmp_path: Path, temporary: Path) -> None:
    async with opened(tmp_path, only_reads=True) as pages:
        await add(pages, "I live in Oslo.")
        content = await export(pages)
        assert b"I live in Oslo." in gzip.decompress(content)
        shown = await pages.get("/exchange")
        assert [form.action for form in shown.forms] == [f"{PREFIX}/sign-out"]
        assert (await upload(pages, content)).status == 403
        assert not files_in(temporary)


async def test_a_full_disk_is_reported_instead_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(tmp_path) as pages:
        await add(pages, "I live in Oslo.")

        def full(*_: object, **__: object) -> int:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(gzip.GzipFile, "write", full)
        shown = await pages.get("/exchange/export")
        assert (shown.status, "No space left on device" in shown.text) == (503, True)
