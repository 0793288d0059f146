"""Memories whose file is replaced or removed while a server has it open, or whose disk is full or read-only."""

import gzip
import json
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

import apsw
import pytest

from memoryos_mcp import Memoryos
from memoryos_mcp.errors import StorageError
from memoryos_mcp.storage.sqlite.file_errors import translated
from memoryos_mcp.storage.sqlite.journals import journals_of
from memoryos_mcp.storage.sqlite.paths import database_file, kept_copies
from tests.servers import BUSY_BACKGROUND, USER, PipeServer, stored_pages, wait_until
from tests.taking_along import check_whole, run

pytestmark = pytest.mark.campaign

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="mounts of Linux")


def page_ids(path: Path) -> set[str]:
    connection = apsw.Connection(str(path))
    try:
        assert connection.execute("PRAGMA integrity_check").get == "ok"
        return {page_id for (page_id,) in connection.execute("SELECT page_id FROM pages")}
    finally:
        connection.close()


# Replaced or removed -----------------------------------------------------------------------------------------------


@pytest.fixture
def other(tmp_path: Path) -> tuple[Path, set[str]]:
    """Return the file of another memory of the same user, and its pages."""
    with PipeServer(tmp_path / "other") as server:
        pages = {server.add(f"Page {number} of the other file.") for number in range(3)}
    return database_file(tmp_path / "other", USER), pages


def replace_file(data: Path, new: Path) -> Path:
    """Replace a memory's file in one step as sync clients do, without its journals."""
    path = database_file(data, USER)
    shutil.copyfile(new, path.with_name("arriving"))
    return path.with_name("arriving").replace(path)


def test_pages_after_a_replacement_are_in_the_new_file(data: Path, other: tuple[Path, set[str]]) -> None:
    with PipeServer(data, BUSY_BACKGROUND) as server:
        before = {server.add(f"Page {number} that was there before.") for number in range(30)}
        path = replace_file(data, other[0])
        added = {server.add("I moved to Lisbon after that."), server.add("And then to Porto.")}
        found = server.call("retrieve_memory", query="Where did I move?")
        told = {page["page_id"] for page in found["short_term_memory"] + found["retrieved_pages"]}
        assert added <= told <= added | other[1]
        assert server.stats()["total_pages"] == len(added | other[1])
        assert server.close() == 0
    assert page_ids(path) == added | other[1]
    (kept,) = kept_copies(path)
    assert page_ids(kept) == before
    assert str(kept.name) in server.stderr
    check_whole(data)


def test_a_file_replaced_under_an_idle_server_stays_intact(data: Path, other: tuple[Path, set[str]]) -> None:
    with PipeServer(data, BUSY_BACKGROUND) as server:
        before = {server.add(f"Page {number} that was there before.") for number in range(30)}
        path = replace_file(data, other[0])
        assert server.close() == 0
    assert page_ids(path) == other[1]
    (kept,) = kept_copies(path)
    assert page_ids(kept) == before


def test_a_copy_with_the_same_pages_saves_no_old_file(data: Path, tmp_path: Path) -> None:
    with PipeServer(data) as server:
        before = {server.add(f"Page {number}.") for number in range(3)}
        run(data, "backup", tmp_path / "backup.db")
        path = replace_file(data, tmp_path / "backup.db")
        after = server.add("One more.")
    assert page_ids(path) == before | {after}
    assert kept_copies(path) == []


def test_a_memory_removed_under_a_server_is_created_again(data: Path) -> None:
    with PipeServer(data) as server:
        server.add("I like secrets.")
        shutil.rmtree(data / "users")
        after = {server.add(f"Page {number} after that.") for number in range(3)}
        assert server.stats()["total_pages"] == 3
        assert server.close() == 0
    assert {page.page_id for page in stored_pages(data)} == after
    assert [path.name for path in database_file(data, USER).parent.iterdir()] == ["memory.db"]


def test_a_file_removed_without_its_folder_is_saved(data: Path) -> None:
    with PipeServer(data) as server:
        before = server.add("A page before.")
        path = database_file(data, USER)
        path.unlink()
        after = server.add("A page after.")
    assert page_ids(path) == {after}
    (kept,) = kept_copies(path)
    assert page_ids(kept) == {before}


def test_two_servers_switch_to_the_new_file(data: Path, other: tuple[Path, set[str]], tmp_path: Path) -> None:
    with PipeServer(data) as one, PipeServer(data, log=tmp_path / "two.log") as two:
        before = {server.add("Page before.") for server in (one, two)}
        path = replace_file(data, other[0])
        after = {server.add(f"Page {number} after that.") for number in range(3) for server in (one, two)}
        assert one.stats()["total_pages"] == two.stats()["total_pages"] == len(after | other[1])
    assert page_ids(path) == after | other[1]
    assert set.union(*map(page_ids, kept_copies(path))) == before


def test_the_library_switches_to_the_new_file(data: Path, other: tuple[Path, set[str]]) -> None:
    with Memoryos(user_id=USER, data_storage_path=data, embedding_model_name="none") as memory:
        memory.add_memory("Before.", "Yes.")
        path = replace_file(data, other[0])
        memory.add_memory("After.", "Yes.")
    assert len(page_ids(path)) == 4


REMOVED = pytest.mark.parametrize("removed", [["-wal", "-shm"], ["-wal"], ["-shm"]], ids=" ".join)


@REMOVED
def test_removed_journals_under_two_servers_lose_nothing(data: Path, tmp_path: Path, removed: list[str]) -> None:
    with PipeServer(data) as one, PipeServer(data, log=tmp_path / "two.log") as two:
        pages = {server.add(f"Page {number} before.") for number in range(3) for server in (one, two)}
        for suffix in removed:
            database_file(data, USER).with_name(f"memory.db{suffix}").unlink()
        pages |= {server.add(f"Page {number} after.") for number in range(3) for server in (two, one)}
        assert two.close() == 0
        one.kill()
    path = database_file(data, USER)
    assert set.union(page_ids(path), *map(page_ids, kept_copies(path))) == pages


@REMOVED
def test_a_removed_journal_is_written_to_its_file(data: Path, removed: list[str]) -> None:
    with PipeServer(data) as server:
        pages = {server.add(f"Page {number} before.") for number in range(5)}
        for suffix in removed:
            database_file(data, USER).with_name(f"memory.db{suffix}").unlink()
        pages |= {server.add(f"Page {number} after.") for number in range(5)}
        server.kill()
    assert page_ids(database_file(data, USER)) == pages
    assert kept_copies(database_file(data, USER)) == []


def test_a_removed_index_does_not_count_as_a_replaced_file(data: Path) -> None:
    with PipeServer(data) as server:
        pages = {server.add(f"Page {number}.") for number in range(5)}
        path = database_file(data, USER)
        path.with_name("memory.db-shm").unlink()
        assert server.stats()["total_pages"] == 5
        path.with_name("memory.db-shm").unlink()
        assert server.close() == 0
        assert "was saved as" not in server.stderr
    assert [each.name for each in path.parent.iterdir()] == ["memory.db"]
    assert page_ids(path) == pages


@pytest.mark.parametrize("code", [apsw.SQLITE_READONLY_DBMOVED, apsw.SQLITE_CANTOPEN])
def test_a_file_that_sqlite_finds_moved_counts_as_replaced(tmp_path: Path, code: int) -> None:
    with pytest.raises(StorageError, match="was replaced or removed"), translated(tmp_path / "memory.db"):
        raise apsw.exception_for(code)


@pytest.fixture
def large(tmp_path: Path) -> tuple[Path, set[str]]:
    """Return a file with more of SQLite's pages than a new memory has, and the ids of its pages."""
    with PipeServer(tmp_path / "large") as server:
        pages = {server.add(f"Page {number}: " + "word " * 600) for number in range(40)}
    return database_file(tmp_path / "large", USER), pages


@pytest.mark.parametrize("command", ["serve", "stats", "doctor", "backup"])
def test_a_second_process_leaves_the_first_one_s_journal_alone(
    data: Path, large: tuple[Path, set[str]], tmp_path: Path, command: str
) -> None:
    with PipeServer(data) as server:
        before = {server.add(f"Page {number} before.") for number in range(7)}
        path = replace_file(data, large[0])
        if command == "serve":
            with PipeServer(data, log=tmp_path / "two.log") as two:
                assert two.stats()["total_pages"] == 40
                large[1].add(two.add("From the second process."))
        else:
            run(data, command, *([tmp_path / "backup.db"] if command == "backup" else []))
        large[1].add(server.add("From the first process."))
        assert server.close() == 0
    assert page_ids(path) == large[1]
    assert set.union(*(page_ids(kept) for kept in kept_copies(path) if kept.suffix == ".db")) == before


def test_a_killed_servers_journal_is_not_applied_to_another_file(data: Path, large: tuple[Path, set[str]]) -> None:
    with PipeServer(data) as server:
        server.add("Before.")
        path = replace_file(data, large[0])
        server.kill()
    with PipeServer(data) as server:
        assert server.stats()["total_pages"] == 40
        (journal,) = kept_copies(path)
        assert journal.name in server.stderr
    assert page_ids(path) == large[1]


def test_a_folder_copied_with_its_journal_is_complete(data: Path, tmp_path: Path) -> None:
    with PipeServer(data) as server:
        pages = {server.add(f"Page {number}.") for number in range(5)}
        server.kill()
    shutil.copytree(data, tmp_path / "copy")
    shutil.rmtree(data)
    assert {page.page_id for page in stored_pages(tmp_path / "copy")} == pages


def flipped(backup: Path) -> None:
    """Change one letter of a page's text in a file."""
    changed = bytearray(backup.read_bytes())
    changed[changed.index(b"Page 7 before")] ^= 1
    backup.write_bytes(changed)


def with_a_view(backup: Path) -> None:
    """Replace the pages in a file by a view that returns rows without end."""
    backup.unlink()
    with closing(apsw.Connection(str(backup))) as connection:
        endless = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n WHERE i < 0"
        connection.execute(f"CREATE VIEW pages (page_id) AS {endless}")


@pytest.mark.parametrize("spoil", [flipped, with_a_view])
def test_the_content_is_saved_beside_a_damaged_new_file(
    data: Path, tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    with PipeServer(data) as server:
        before = {server.add(f"Page {number} before.") for number in range(9)}
        run(data, "backup", tmp_path / "backup.db")
        spoil(tmp_path / "backup.db")
        path = replace_file(data, tmp_path / "backup.db")
        server.result(server.send_call("add_memory", {"user_input": "After.", "agent_response": "Ok."}))
        assert server.close() == 0
    (kept,) = kept_copies(path)
    assert page_ids(kept) == before


def test_journals_become_writable_with_their_file(data: Path) -> None:
    with PipeServer(data) as server:
        server.add("A page.")
        server.kill()
    journals = journals_of(database_file(data, USER))
    for journal in journals:
        journal.chmod(0o400)
    with PipeServer(data) as server:
        server.add("Another page.")
        assert [stat.S_IMODE(journal.stat().st_mode) for journal in journals] == [0o600, 0o600]


# Full or read-only -------------------------------------------------------------------------------------------------


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Yield a file system of 8 MB; skip if this account cannot mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("this account may not mount a tmpfs")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def remount(disk: Path, how: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{how}", str(disk)], check=True)


def fill(disk: Path) -> Path:
    """Fill a disk, and return the file that fills it."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError:
            return ballast
    raise AssertionError


def refusal(server: PipeServer) -> str:
    result = server.result(server.send_call("add_memory", {"user_input": "SECRET", "agent_response": "Ok."}))
    assert result["isError"]
    text: str = result["content"][0]["text"]
    assert "SECRET" not in text
    return text


def check_that_it_is_read(data: Path, log: Path, pages: set[str], because: str) -> None:
    """Check that an unwritable memory can be served, shown and exported, and that pages are refused."""
    with PipeServer(data, log=log) as server:
        wait_until(lambda: server.stats()["search_mode"] == "hybrid", "meaning is compared")
        found = server.call("retrieve_memory", query="Which clay things do I make?", max_results=20)
        assert {page["page_id"] for page in found["retrieved_pages"] + found["short_term_memory"]} == pages
        assert server.call("get_user_profile")["user_id"] == USER
        assert because in refusal(server)
        assert because in server.stats()["only_reads_because"]
        assert server.close() == 0
    exported = run(data, "export", log.with_name("export.jsonl.gz"), "--json")
    assert json.loads(exported.stdout)["counts"]["page"] == len(pages)
    assert gzip.decompress(log.with_name("export.jsonl.gz").read_bytes()).count(b"pottery") == len(pages)
    assert json.loads(run(data, "search", "pottery", "--json").stdout)["short_term_count"] == len(pages)


def potter(data: Path, log: Path, *, is_killed: bool = False) -> set[str]:
    with PipeServer(data, log=log) as server:
        pages = {server.add(f"I go to pottery class {number}.") for number in range(5)}
        wait_until(lambda: not server.stats()["unembedded_pages"], "every page is embedded")
        if is_killed:
            server.kill()
    return pages


def protect(disk: Path) -> None:
    remount(disk, "ro")


def use_all_inodes(disk: Path) -> None:
    remount(disk, "nr_inodes=40")
    with suppress(OSError):
        for number in range(40):
            (disk / f"empty{number}").touch()


@linux_only
@pytest.mark.parametrize(
    ("make_unwritable", "is_killed", "because"),
    [
        pytest.param(protect, False, "on a read-only disk", id="read-only"),
        pytest.param(protect, True, "on a read-only disk", id="read-only, with a journal"),
        pytest.param(fill, False, "no space left on the disk", id="full"),
        pytest.param(use_all_inodes, False, "cannot hold more files", id="without inodes"),
    ],
)
def test_a_memory_on_an_unwritable_disk_can_be_read(
    make_unwritable: Callable[[Path], object], is_killed: bool, because: str, disk: Path, tmp_path: Path
) -> None:
    data = disk / "data"
    pages = potter(data, tmp_path / "first.log", is_killed=is_killed)
    make_unwritable(disk)
    check_that_it_is_read(data, tmp_path / "second.log", pages, because)
    remount(disk, "rw,size=16m,nr_inodes=1000")
    assert {page.page_id for page in stored_pages(data)} == pages


@linux_only
def test_a_server_stores_pages_again_once_there_is_space(disk: Path, tmp_path: Path) -> None:
    data = disk / "data"
    pages = potter(data, tmp_path / "first.log")
    ballast = fill(disk)
    with PipeServer(data, log=tmp_path / "second.log") as server:
        assert "no space" in refusal(server)
        ballast.unlink()
        wait_until(lambda: server.stats()["only_reads_because"] is None, "it can be written again")
        pages.add(server.add("I have space again."))
        remount(disk, "size=8m")
    assert {page.page_id for page in stored_pages(data)} == pages


def reports_no_space(server: PipeServer) -> bool:
    """Return whether a refused page makes a server report the full disk; a small background write may still fit."""
    return "no space" in refusal(server) and "no space" in (server.stats()["only_reads_because"] or "")


@linux_only
def test_servers_report_that_the_disk_is_full(disk: Path, tmp_path: Path) -> None:
    data = disk / "data"
    with PipeServer(data, log=tmp_path / "first.log") as first:
        first.add("A page.")
        ballast = fill(disk)
        with PipeServer(data, log=tmp_path / "second.log") as second:
            for server in (first, second):
                assert "no space" in refusal(server)
                wait_until(partial(reports_no_space, server), "the disk is reported as full")
        first.kill()
    with PipeServer(data, log=tmp_path / "third.log") as third:
        wait_until(lambda: reports_no_space(third), "the disk is reported as full")
        ballast.unlink()
        third.add("There is space again.")
        assert third.stats()["only_reads_because"] is None


@linux_only
def test_a_read_only_disk_without_a_memory_is_reported(disk: Path, tmp_path: Path) -> None:
    potter(disk / "data", tmp_path / "first.log")
    remount(disk, "ro")
    with PipeServer(disk / "data", {"user_id": "somebody"}, log=tmp_path / "second.log") as server:
        assert "on a read-only disk" in refusal(server)
    remount(disk, "rw")


@linux_only
def test_a_file_replaced_on_a_full_disk_is_saved_later(disk: Path, tmp_path: Path) -> None:
    data = disk / "data"
    with PipeServer(data, log=tmp_path / "server.log") as server:
        server.add("A page.")
        run(data, "backup", disk / "older.db")
        pages = {server.add(f"Newer page {number}.") for number in range(5)}
        ballast = fill(disk)
        path = (disk / "older.db").replace(database_file(data, USER))
        assert "no space" in refusal(server)
        ballast.unlink()
        after = server.add("I have space again.")
        assert server.close() == 0
    assert after in page_ids(path)
    (kept,) = kept_copies(path)
    assert pages < page_ids(kept)
