"""Detection of journals that belong to another file, after kills and replacements."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from memoryos_mcp import Memoryos
from memoryos_mcp.errors import StorageError
from memoryos_mcp.storage.sqlite import checkpoints, journals, open_file
from memoryos_mcp.storage.sqlite.paths import database_file, kept_copies
from tests.servers import USER, clean_environment
from tests.taking_along import run

pytestmark = pytest.mark.campaign

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="Windows replaces no file in use")

# Adds pages to a memory, and ends like a killed process.
ADD_AND_DIE = """
import os, signal, sys
from memoryos_mcp import Memoryos
from memoryos_mcp.errors import StorageError
from memoryos_mcp.storage.sqlite import checkpoints
from memoryos_mcp.storage.sqlite import journals

folder, first, last, checkpoint_pages, dies_at = sys.argv[1:]
checkpoints.CHECKPOINT_PAGES = int(checkpoint_pages)
die = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
memory = Memoryos(user_id="default_user", data_storage_path=folder, embedding_model_name="none")
if dies_at:
    setattr(journals, dies_at, die)
for number in range(int(first), int(last)):
    memory.add_memory(f"Page {number}.", "Yes.")
die()
"""
NEVER, OFTEN = 1_000_000, 30
JOURNALS = pytest.mark.parametrize("checkpoint_pages", [NEVER, OFTEN], ids=["journal only", "written to the file too"])


def add_and_die(data: Path, numbers: range, *, checkpoint_pages: int = NEVER, dies_at: str = "") -> None:
    arguments = [str(data), str(numbers.start), str(numbers.stop), str(checkpoint_pages), dies_at]
    done = subprocess.run([sys.executable, "-c", ADD_AND_DIE, *arguments], check=False, env=clean_environment())
    assert done.returncode < 0
    assert journals.has_journal(database_file(data, USER))


def opened(data: Path) -> Memoryos:
    return Memoryos(user_id=USER, data_storage_path=data, embedding_model_name="none")


def page_numbers(data: Path) -> list[int]:
    """Check the file of a closed memory, and return the numbers of its pages."""
    with closing(apsw.Connection(str(database_file(data, USER)))) as connection:
        assert connection.execute("PRAGMA integrity_check").get == "ok"
        texts = connection.execute("SELECT user_input FROM pages ORDER BY seq").fetchall()
    return [int(str(text).split()[1].strip(".")) for (text,) in texts]


@pytest.fixture
def copies(data: Path, tmp_path: Path) -> dict[str, Path]:
    """Return a backup and a plain copy of a memory with three pages."""
    with opened(data) as memory:
        for number in range(3):
            memory.add_memory(f"Page {number}.", "Yes.")
    run(data, "backup", tmp_path / "backup.db")
    assert [each.name for each in database_file(data, USER).parent.iterdir()] == ["memory.db"]
    shutil.copy2(database_file(data, USER), tmp_path / "copy.db")
    return {"backup": tmp_path / "backup.db", "copy": tmp_path / "copy.db"}


def write_over(path: Path, copy: Path) -> None:
    shutil.copyfile(copy, path)


def write_over_with_its_time(path: Path, copy: Path) -> None:
    os.utime(copy, (1_700_000_000, 1_700_000_000))
    shutil.copyfile(copy, path)
    shutil.copystat(copy, path)


def remove_and_copy(path: Path, copy: Path) -> None:
    path.unlink()
    shutil.copyfile(copy, path)


@posix_only
@pytest.mark.parametrize("which", ["backup", "copy"])
@pytest.mark.parametrize("put_back", [write_over, write_over_with_its_time, remove_and_copy])
@JOURNALS
def test_a_copy_restored_after_a_kill_is_opened_unchanged(
    data: Path,
    copies: dict[str, Path],
    caplog: pytest.LogCaptureFixture,
    which: str,
    put_back: Callable[[Path, Path], None],
    checkpoint_pages: int,
) -> None:
    add_and_die(data, range(3, 20), checkpoint_pages=checkpoint_pages)
    path = database_file(data, USER)
    put_back(path, copies[which])
    with opened(data) as memory:
        memory.add_memory("Page 1000.", "Yes.")
    assert page_numbers(data) == [0, 1, 2, 1000]
    (kept,) = kept_copies(path)
    assert (kept.suffix, str(kept) in caplog.text) == (".db-wal", True)


@posix_only
def test_a_copy_restored_without_a_note_is_opened_unchanged(data: Path, copies: dict[str, Path]) -> None:
    add_and_die(data, range(3, 9))
    path = database_file(data, USER)
    path.with_name("memory.db-wal-owner").unlink()
    write_over(path, copies["backup"])
    assert b"no damage" in run(data, "doctor").stdout
    with opened(data):
        pass
    assert page_numbers(data) == [0, 1, 2]


@posix_only
def test_a_journal_is_not_applied_to_a_new_file(data: Path) -> None:
    add_and_die(data, range(6))
    path = database_file(data, USER)
    path.unlink()
    with opened(data) as memory:
        memory.add_memory("Page 1000.", "Yes.")
    assert page_numbers(data) == [1000]
    assert [kept.suffix for kept in kept_copies(path)] == [".db-wal"]


def forget_the_state(path: Path) -> None:
    """Turn a note into one of an earlier version, and change the file's time as a checkpoint of that version does."""
    note = path.with_name("memory.db-wal-owner")
    note.write_text(" ".join(note.read_text(encoding="ascii").split()[:4]), encoding="ascii")
    os.utime(path)


def remove_the_note(path: Path) -> None:
    path.with_name("memory.db-wal-owner").unlink()
    os.utime(path)


def stop_the_machine(path: Path) -> None:
    """Set the time of an earlier checkpoint on the file, and another boot id in the note."""
    note = path.with_name("memory.db-wal-owner")
    words = note.read_text(encoding="ascii").split()
    note.write_text(" ".join([*words[:6], "another-boot"]), encoding="ascii")
    os.utime(path, ns=(int(words[5]) - 10**12,) * 2)


def copy_all_over(path: Path) -> None:
    """Write a copy of a folder over the folder."""
    copy = shutil.copytree(path.parent, path.parent.with_name("copy"))
    for each in sorted(copy.iterdir()):
        shutil.copyfile(each, path.with_name(each.name))
    shutil.rmtree(copy)


@posix_only
@JOURNALS
@pytest.mark.parametrize("change", [None, copy_all_over, forget_the_state, remove_the_note, stop_the_machine])
def test_in_doubt_the_journal_of_a_killed_process_is_applied(
    data: Path, checkpoint_pages: int, change: Callable[[Path], None] | None
) -> None:
    add_and_die(data, range(20), checkpoint_pages=checkpoint_pages)
    if change is not None:
        change(database_file(data, USER))
    with opened(data):
        pass
    assert page_numbers(data) == [*range(20)]
    assert kept_copies(database_file(data, USER)) == []


@posix_only
@pytest.mark.parametrize("dies_at", ["_note_writing", "_note_written"])
def test_a_process_killed_at_a_checkpoint_loses_nothing(data: Path, dies_at: str) -> None:
    for first in (0, 20, 40):
        add_and_die(data, range(first, first + 20), checkpoint_pages=OFTEN, dies_at=dies_at)
    with opened(data):
        pass
    pages = page_numbers(data)
    assert pages == sorted(set(pages))
    assert len(pages) > 3
    assert kept_copies(database_file(data, USER)) == []


@posix_only
def test_the_journal_of_a_running_process_stays(data: Path) -> None:
    path = database_file(data, USER)
    script = ADD_AND_DIE.replace("\ndie()", "\nprint('added', flush=True)\nsys.stdin.read()\nmemory.close()")
    command = [sys.executable, "-c", script, str(data), "0", "4", str(NEVER), ""]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=clean_environment())
    with process:
        assert process.stdout is not None
        process.stdout.readline()
        os.utime(path)  # like the checkpoint of another program
        with opened(data) as memory:
            memory.add_memory("Page 4.", "Yes.")
        process.communicate()
    assert process.returncode == 0
    assert page_numbers(data) == [*range(5)]
    assert [each.name for each in path.parent.iterdir()] == ["memory.db"]


@posix_only
def test_a_file_replaced_during_opening_is_not_written(
    data: Path, copies: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare = open_file.OpenFile._prepare

    def replaced(*arguments: Any) -> None:
        prepare(*arguments)
        shutil.copyfile(copies["copy"], copies["copy"].with_name("arriving"))
        copies["copy"].with_name("arriving").replace(database_file(data, USER))

    with opened(data) as memory:
        memory.add_memory("Page 3.", "Yes.")
    with monkeypatch.context() as patch:
        patch.setattr(open_file.OpenFile, "_prepare", replaced)
        with pytest.raises(StorageError, match="replaced"), opened(data):
            pass
    with opened(data) as memory:
        memory.add_memory("Page 5.", "Yes.")
    assert page_numbers(data) == [0, 1, 2, 5]


def test_adding_a_page_writes_no_note(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "CHECKPOINT_PAGES", 400)
    note = database_file(data, USER).with_name("memory.db-wal-owner")
    with opened(data) as memory:
        noted = note.stat().st_mtime_ns
        for number in range(5):
            memory.add_memory(f"Page {number}.", "Yes.")
        assert note.stat().st_mtime_ns == noted
        for number in range(5, 80):
            memory.add_memory(f"Page {number}.", "Yes.")
        assert note.stat().st_mtime_ns > noted
    assert not note.exists()
