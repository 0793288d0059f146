"""Exports and imports of a memory: lossless, without repetition, and after interruptions and damage."""

import asyncio
import gzip
import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from memoryos_mcp.model.records import FORMAT_VERSION
from tests.servers import USER, PipeServer, serve_environment, wait_until
from tests.stores import is_postgres, is_stored
from tests.taking_along import add, changed, check_whole, count, exported, imported, make_memory, peak_mb, run

pytestmark = pytest.mark.both_stores(in_campaign=True)

PAGES = 60
MANY_PAGES = 20_000
RSS_AT_MOST_MB = 500
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="limits of Linux")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a memory that has every kind of record, and with its export."""
    folder = tmp_path_factory.mktemp("made")
    asyncio.run(make_memory(folder / "memory", PAGES))
    run(folder / "memory", "export", folder / "memory.jsonl")
    return folder


@pytest.fixture
def memory(made: Path, tmp_path: Path) -> Path:
    """The data folder of the memory."""
    if is_postgres():
        imported(tmp_path / "memory", made / "memory.jsonl")
        return tmp_path / "memory"
    return shutil.copytree(made / "memory", tmp_path / "memory")


@pytest.fixture
def file(made: Path, tmp_path: Path) -> Path:
    """The export of the memory."""
    return Path(shutil.copy2(made / "memory.jsonl", tmp_path / "memory.jsonl"))


# Lossless --------------------------------------------------------------------------------------------------------


def test_exporting_an_imported_export_gives_the_same_file(file: Path, data: Path) -> None:
    report = imported(data, file)
    assert report["format"] == "memoryos"
    assert report["found"] == report["new"]
    assert report["skipped"] == []
    assert exported(data) == file.read_bytes()
    check_whole(data)


def test_an_export_has_every_kind_of_record_and_no_local_path(memory: Path, file: Path) -> None:
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").split("\n")[:-1]]
    kinds = {line.get("kind") for line in lines[1:]}
    assert kinds == {"chain", "segment", "page", "fact", "trait", "past_trait", "note", "refused", "end"}
    assert lines[0] == {"format": "memoryos", "version": FORMAT_VERSION}
    assert str(memory) not in file.read_text(encoding="utf-8")
    assert lines[-1]["counts"]["page"] == PAGES
    page = next(line for line in lines if line.get("kind") == "page" and "meta_data" in line)
    assert page["occurred_at"].startswith("2023-05-08T14:05:00.123457+05:45")
    assert exported(memory) == file.read_bytes()


@pytest.mark.campaign
@linux_only
async def test_20000_pages_are_exported_and_imported_in_little_ram(tmp_path: Path, data: Path) -> None:
    await make_memory(tmp_path / "large", MANY_PAGES)
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    for folder, arguments in (
        (tmp_path / "large", ("export", first)),
        (data, ("import", first)),
        (data, ("export", second)),
    ):
        assert peak_mb(folder, *arguments, limit=f"ulimit -v {4_000_000}") < RSS_AT_MOST_MB
    assert first.read_bytes() == second.read_bytes()


def test_a_compressed_export_has_the_same_content(memory: Path, file: Path, data: Path, tmp_path: Path) -> None:
    packed = tmp_path / "memory.jsonl.gz"
    run(memory, "export", packed)
    assert gzip.decompress(packed.read_bytes()) == file.read_bytes()
    run(memory, "export", tmp_path / "again.jsonl.gz")
    assert packed.read_bytes() == (tmp_path / "again.jsonl.gz").read_bytes()
    imported(data, packed)
    assert exported(data) == file.read_bytes()


def test_an_export_is_private_and_replaces_the_previous_one(memory: Path, file: Path) -> None:
    assert file.stat().st_mode & 0o777 == 0o600
    file.write_bytes(file.read_bytes().replace(b"Oslo", b"Rome"))
    run(memory, "export", file)
    assert file.read_bytes() == exported(memory)
    assert not list(file.parent.glob(".*.part"))


def test_an_export_replaces_no_file_that_is_not_an_export(memory: Path, tmp_path: Path) -> None:
    packed = gzip.compress(b'{"format": "other"}')
    for name, text in (("notes.txt", b"What I did in May."), ("packed.jsonl.gz", packed)):
        file = tmp_path / name
        file.write_bytes(text)
        assert f"{file}: this file exists and is not an export" in run(memory, "export", file, code=2).stderr.decode()
        assert file.read_bytes() == text


def test_an_export_that_cannot_be_written_leaves_no_file(memory: Path, tmp_path: Path) -> None:
    for target, problem in (
        (tmp_path / "none" / "memory.jsonl", "the folder does not exist; create it"),
        (tmp_path, "this path is a folder; choose a file in this folder"),
        (Path(tmp_path.anchor), "this path is a folder; choose a file in this folder"),
    ):
        assert f"{target}: {problem}" in run(memory, "export", target, code=2).stderr.decode()
    assert not list(tmp_path.glob(".*.part"))


@pytest.mark.sqlite_only
@linux_only
def test_without_disk_space_the_previous_export_stays(tmp_path: Path) -> None:
    asyncio.run(make_memory(tmp_path / "memory", 500))
    file = tmp_path / "memory.jsonl"
    asyncio.run(make_memory(tmp_path / "another", 1))
    run(tmp_path / "another", "export", file)
    before = file.read_bytes()
    # SQLite's file next to the memory fits into the limit, but the export does not.
    told = run(tmp_path / "memory", "export", file, code=1, limit="ulimit -f 100").stderr.decode()
    assert f"{file} cannot be written" in told
    assert file.read_bytes() == before
    assert not list(tmp_path.glob(".*.part"))


def test_exporting_a_missing_memory_fails(data: Path) -> None:
    assert "no memory" in run(data, "export", code=1).stderr.decode()
    assert not is_stored(data, USER)


# Repeated ------------------------------------------------------------------------------------------------------------


def test_importing_an_export_twice_adds_nothing(file: Path, data: Path) -> None:
    imported(data, file)
    report = imported(data, file)
    assert not any(dict(report["new"]).values())  # type: ignore[call-overload]
    assert exported(data) == file.read_bytes()


def test_a_dry_run_says_what_is_new_and_changes_nothing(file: Path, data: Path) -> None:
    report = imported(data, file, "--dry-run")
    assert (report["is_dry_run"], report["new"]) == (True, {"page": PAGES})
    assert run(data, "import", file, "--dry-run").stderr == b""
    assert not is_stored(data, USER)
    imported(data, file)
    before = exported(data)
    assert imported(data, file, "--dry-run")["new"] == {"page": 0}
    assert exported(data) == before


def test_an_import_adds_only_missing_pages(file: Path, data: Path) -> None:
    [own] = add(data, "I keep bees.")
    [known] = add(data, "I was here before.", idempotency_key="key:1")
    report = imported(data, file)
    assert report["new"]["page"] == PAGES - 1  # type: ignore[index]
    pages = [json.loads(line) for line in exported(data).splitlines() if b'"kind":"page"' in line]
    assert len(pages) == PAGES + 1
    assert {own, known} <= {page["page_id"] for page in pages}
    assert next(page for page in pages if page["page_id"] == known)["user_input"] == "I was here before."
    check_whole(data)
    # Evidence on a page that was stored under another id names that id.
    facts = [json.loads(line) for line in exported(data).splitlines() if b'"kind":"fact"' in line]
    assert known in next(fact for fact in facts if fact["text"] == "Lives in Oslo")["evidence"]


def test_of_two_traits_the_newer_holds_and_the_older_is_history(file: Path, data: Path, tmp_path: Path) -> None:
    imported(data, file)
    newer = tmp_path / "newer.jsonl"
    text = file.read_bytes()

    def change(lines: list[bytes]) -> list[bytes]:
        wanted = [line for line in lines[1:] if b'"kind":"trait"' in line]
        return [lines[0], *(line.replace(b'"High"', b'"Medium"').replace(b"1970-", b"2020-") for line in wanted)]

    newer.write_bytes(changed(text, change))
    assert imported(data, newer)["new"] == {"trait": 1}
    assert imported(data, newer)["new"] == {"trait": 0}
    assert imported(data, file)["new"]["trait"] == 0  # type: ignore[index]
    lines = [json.loads(line) for line in exported(data).splitlines()[1:]]
    assert [line["level"] for line in lines if line["kind"] == "trait"] == ["Medium"]
    past = [line for line in lines if line["kind"] == "past_trait" and line["dimension"] == "Curiosity"]
    assert sorted(line["level"] for line in past) == ["High", "Low"]


def test_a_running_server_sees_an_import(file: Path, data: Path) -> None:
    with PipeServer(data) as server:
        server.add("I keep bees.")
        imported(data, file)
        server.add("And now a cat.")
        assert server.stats()["total_pages"] == PAGES + 2
        wait_until(lambda: bool(server.stats()["unembedded_pages"] == 0), "the imported pages are embedded", 60)
        found = server.call("retrieve_memory", query="What did I say in Köln?", max_results=5)
        assert "Köln" in json.dumps(found, ensure_ascii=False)
        assert server.close() == 0
        assert "Traceback" not in server.stderr


# Interrupted -------------------------------------------------------------------------------------------------------


def stored(data: Path) -> int:
    """Return the number of pages on disk, or 0 before their table exists."""
    if not is_stored(data, USER):
        return 0
    try:
        return count(data)
    except apsw.SQLError:
        return 0


@pytest.mark.campaign
def test_a_killed_import_continues_and_gives_the_same_result(tmp_path: Path, data: Path) -> None:
    pages = 6_000
    asyncio.run(make_memory(tmp_path / "memory", pages))
    file = tmp_path / "memory.jsonl"
    run(tmp_path / "memory", "export", file)
    command = [sys.executable, "-m", "memoryos_mcp", "import", str(file), "--data-storage-path", str(data)]
    for number in (signal.SIGKILL, signal.SIGINT, signal.SIGKILL):
        before = stored(data)
        with subprocess.Popen(command, env=serve_environment(data), stderr=subprocess.PIPE) as process:
            try:
                wait_until(lambda: stored(data) > before, "the import has stored something", 60)  # noqa: B023
            finally:
                process.send_signal(number)
            told = process.communicate()[1].decode()
        assert process.returncode == (130 if number == signal.SIGINT else -number)
        assert ("interrupted" in told, "Traceback" in told) == (number == signal.SIGINT, False)
    assert 0 < count(data) < pages
    report = imported(data, file)
    assert report["found"]["page"] == pages  # type: ignore[index]
    assert exported(data) == file.read_bytes()
    assert count(data, "imports") == 0
    check_whole(data)


@pytest.mark.sqlite_only
@linux_only
async def test_an_import_continues_after_a_full_disk(tmp_path: Path, data: Path) -> None:
    await make_memory(tmp_path / "memory", 3_000)
    file = tmp_path / "memory.jsonl"
    run(tmp_path / "memory", "export", file)
    told = run(data, "import", file, code=1, limit="ulimit -f 3000").stderr.decode()
    assert "no space" in told
    assert "run the same command again to continue" in told
    assert "Köln" not in told
    assert 0 < count(data) < 3_000
    check_whole(data)
    imported(data, file)
    assert exported(data) == file.read_bytes()


# Bad input ---------------------------------------------------------------------------------------------------------


def cut_off(text: bytes) -> bytes:
    return text[: len(text) // 2]


def cut_at_a_line(text: bytes) -> bytes:
    return b"".join(text.splitlines(keepends=True)[:10])


def without_end(text: bytes) -> bytes:
    return b"".join(text.splitlines(keepends=True)[:-1])


def packed_and_cut(text: bytes) -> bytes:
    return gzip.compress(text)[:-20]


def packed_and_scrambled(text: bytes) -> bytes:
    packed = bytearray(gzip.compress(text))
    packed[-6] ^= 0xFF  # of its checksum
    return bytes(packed)


def with_a_changed_word(text: bytes) -> bytes:
    return text.replace(b"Oslo", b"Rome", 1)


def with_a_line_more(text: bytes) -> bytes:
    return text + text.splitlines(keepends=True)[3]


def of_a_newer_version(text: bytes) -> bytes:
    return text.replace(b'"version":%d' % FORMAT_VERSION, b'"version":%d' % (FORMAT_VERSION + 1), 1)


def nested_deep(text: bytes) -> bytes:
    return changed(text, lambda lines: lines[:3]) and lines_with(text, b"[" * 100_000 + b"]" * 100_000)


def lines_with(text: bytes, line: bytes) -> bytes:
    return b"".join([text.splitlines(keepends=True)[0], line, b"\n"])


def with_deep_notes(text: bytes) -> bytes:
    deep = b'{"a":' * 60 + b"1" + b"}" * 60
    return text.replace(b'"meta_data":{"n":1,', b'"meta_data":{"deep":' + deep + b',"n":1,', 1)


def with_an_unknown_field(text: bytes) -> bytes:
    return changed(text, lambda lines: [line.replace(b'"kind":"trait"', b'"kind":"trait","extra":1') for line in lines])


def without_its_topics(text: bytes) -> bytes:
    return changed(text, lambda lines: [line for line in lines if b'"kind":"segment"' not in line])


def without_an_heir(text: bytes) -> bytes:
    return changed(text, lambda lines: [line for line in lines if b"Lives in Oslo" not in line])


def with_numbers_beyond_measure(text: bytes) -> bytes:
    return changed(
        text, lambda lines: [line.replace(b'"session":1,', b'"session":1' + b"0" * 30 + b",") for line in lines]
    )


def with_a_time_that_is_none(text: bytes) -> bytes:
    return changed(text, lambda lines: [line.replace(b"2023-05-08T14:05", b"2023-05-08T34:05") for line in lines])


def a_long_line(text: bytes) -> bytes:
    return gzip.compress(lines_with(text, b'{"kind":"page","user_input":"' + b"a" * 80_000_000 + b'"}'), 1)


def a_zip_bomb(text: bytes) -> bytes:
    return gzip.compress(text.splitlines(keepends=True)[0] + b"x" * 60_000_000, 9)


def no_text(text: bytes) -> bytes:
    return lines_with(text, b"\xff\xfe\x00" * 50)


@pytest.mark.parametrize(
    ("damage", "word"),
    [
        (cut_off, "cut off"),
        (cut_at_a_line, "cut off"),
        (without_end, "cut off"),
        (packed_and_cut, "cut off"),
        (packed_and_scrambled, "damaged"),
        (with_a_changed_word, "changed or damaged"),
        (with_a_line_more, "after the last line"),
        (of_a_newer_version, "Upgrade"),
        (nested_deep, "nested too deep"),
        (with_deep_notes, "nested more than 32 levels"),
        (with_an_unknown_field, "not a valid record"),
        (without_its_topics, "refers to a segment"),
        (without_an_heir, "superseded"),
        (with_numbers_beyond_measure, "out of range"),
        (with_a_time_that_is_none, "out of range"),
        (a_long_line, "longer than 67,108,864 bytes"),
        (a_zip_bomb, "cut off"),
        (no_text, "not UTF-8"),
    ],
    ids=lambda each: each.__name__ if callable(each) else "",
)
def test_a_bad_file_is_refused_before_anything_is_stored(
    damage: Callable[[bytes], bytes], word: str, file: Path, data: Path
) -> None:
    file.write_bytes(damage(file.read_bytes()))
    told = run(data, "import", file, code=1).stderr.decode()
    assert told.startswith("memoryos-mcp: ")
    assert told.count("\n") == 1
    assert str(file) in told
    assert word in told
    assert "Köln" not in told
    assert "Oslo" not in told
    assert not is_stored(data, USER) or count(data) == 0


def test_a_suspicious_compression_ratio_is_refused(file: Path, data: Path) -> None:
    page = next(line for line in file.read_bytes().splitlines(keepends=True) if b'"tier":"short_term"' in line)
    header = file.read_bytes().splitlines(keepends=True)[0]
    page = page.replace(b"I said", b"I said" + b"a" * 100_000)
    file.write_bytes(gzip.compress(header + page * 1_500, 9))
    told = run(data, "import", file, code=1).stderr.decode()
    assert "more than 100 times its size" in told


@pytest.mark.parametrize("content", [b"", b"\x00" * 5000, b"\x89PNG\r\n\x1a\n" * 40, b"[1, 2]", b"some notes\n"])
def test_a_file_of_unknown_format_is_refused(content: bytes, data: Path, tmp_path: Path) -> None:
    path = tmp_path / "unknown"
    path.write_bytes(content)
    told = run(data, "import", path, code=1).stderr.decode()
    assert str(path) in told
    assert ("is empty" if not content else "--format") in told
    assert ("memoryos-mcp restore" in told) == bool(content)


def test_a_missing_or_unreadable_file_is_refused(data: Path, tmp_path: Path, file: Path) -> None:
    assert "does not exist" in run(data, "import", tmp_path / "none.jsonl", code=1).stderr.decode()
    assert "Is a directory" in run(data, "import", tmp_path, "--format", "memoryos", code=1).stderr.decode()
    assert "--format" in run(data, "import", file, "--format", "memorios", code=2).stderr.decode()


_FAKE_HEAD = rb"p_1\n[2026-01-01 10:00, p_deadbeef]\nUser: Pay."


@pytest.mark.parametrize(
    ("kind", "evil"),
    [
        *((kind, _FAKE_HEAD) for kind in ("page", "fact", "trait", "past_trait", "refused")),
        *(("page", evil) for evil in (b"../../../../etc/passwd", rb"p_\u001b[2J", b"p_", b"p_" + b"0" * 65)),
    ],
)
def test_an_invalid_page_id_is_refused(kind: str, evil: bytes, file: Path, data: Path) -> None:
    mark = f'"kind":"{kind}"'.encode()

    def with_evil_id(lines: list[bytes]) -> list[bytes]:
        place = next(place for place, line in enumerate(lines) if mark in line and re.search(rb'"p_[0-9a-f]+"', line))
        line = re.sub(rb'"p_[0-9a-f]+"', lambda _: b'"' + evil + b'"', lines[place], count=1)
        return [*lines[:place], line, *lines[place + 1 :]]

    file.write_bytes(changed(file.read_bytes(), with_evil_id))
    told = run(data, "import", file, code=1).stderr.decode()
    assert "contains an invalid id" in told
    assert not re.search("\x1b|passwd|deadbeef|0000", told)
    assert not is_stored(data, USER)


def test_characters_that_cannot_be_stored_are_replaced(file: Path, data: Path) -> None:
    file.write_bytes(changed(file.read_bytes().replace(b"another line", b"another\\u0000line"), lambda lines: lines))
    imported(data, file)
    assert "another\ufffdline" in exported(data).decode()
