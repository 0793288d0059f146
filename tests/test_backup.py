"""Backups are consistent while servers write, are checked, and are restored without loss."""

import asyncio
import json
import shutil
import threading
from pathlib import Path

import apsw
import pytest
from click.testing import CliRunner

from memoryos_mcp.cli.main import cli
from memoryos_mcp.errors import StorageError
from memoryos_mcp.storage.sqlite.paths import database_file
from memoryos_mcp.storage.sqlite.schema import CURRENT_VERSION
from memoryos_mcp.storage.sqlite.stores import SqliteStores
from tests.earlier_versions import make_version
from tests.memories import NO_MODEL
from tests.servers import BUSY_BACKGROUND, USER, PipeServer, open_store, page_id_of, stored_pages
from tests.taking_along import add, check_whole, count, exported, make_memory, run

PAGES = 40


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a memory of all kinds of records, and its backup."""
    folder = tmp_path_factory.mktemp("made")
    asyncio.run(make_memory(folder / "memory", PAGES))
    run(folder / "memory", "backup", folder / "copy.db")
    return folder


@pytest.fixture
def memory(made: Path, tmp_path: Path) -> Path:
    """The data folder of the memory."""
    return shutil.copytree(made / "memory", tmp_path / "memory")


@pytest.fixture
def copy(made: Path, tmp_path: Path) -> Path:
    """The backup of the memory."""
    return Path(shutil.copy2(made / "copy.db", tmp_path / "copy.db"))


def test_a_backup_is_one_private_and_complete_file(memory: Path, copy: Path) -> None:
    assert copy.stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in copy.parent.iterdir()) == ["copy.db", "memory"]
    other = copy.parent / "other"
    file = database_file(other, USER)
    file.parent.mkdir(parents=True)
    shutil.copyfile(copy, file)
    assert exported(other) == exported(memory)
    check_whole(other)


def test_a_backup_during_writes_has_all_acknowledged_pages(data: Path, tmp_path: Path) -> None:
    with PipeServer(data, BUSY_BACKGROUND) as server:
        before = {server.add(f"Page {number}.") for number in range(20)}
        requests: list[int] = []
        is_done = threading.Event()

        def write() -> None:
            while not is_done.is_set() and len(requests) < 5_000:
                requests.append(server.send_call("add_memory", {"user_input": "More.", "agent_response": "Ok."}))
                is_done.wait(0.002)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            told = json.loads(run(data, "backup", tmp_path / "copy.db", "--json").stdout)
        finally:
            is_done.set()
            writer.join()
        server.wait_for_replies(requests, 120)
        assert server.close() == 0
    restored = tmp_path / "restored"
    run(restored, "restore", tmp_path / "copy.db", "--yes")
    found = {page.page_id for page in stored_pages(restored)}
    assert before <= found
    assert told["copies"][0]["pages"] == len(found)
    assert found <= {page.page_id for page in stored_pages(data)}
    check_whole(restored)


async def test_all_users_are_copied_and_a_damaged_one_is_reported(memory: Path, tmp_path: Path) -> None:
    await make_memory(memory, 10, user="Ana B.")
    await make_memory(memory, 10, user="eve")
    database_file(memory, "eve").write_bytes(b"no memory" * 1000)
    done = run(memory, "backup", tmp_path / "copies", "--all-users", "--json", code=1)
    told = json.loads(done.stdout)
    assert {each["user_id"] for each in told["copies"]} == {USER, "Ana B."}
    assert "eve" in told["problems"][0]
    assert len(list((tmp_path / "copies").iterdir())) == 2


async def test_control_characters_in_a_user_name_are_escaped(memory: Path, tmp_path: Path) -> None:
    await make_memory(memory, 1, user="eve\x1b[2J")
    shown = run(memory, "backup", tmp_path / "copies", "--all-users").stdout
    assert "1 page of eve␛[2J, verified" in shown.decode()
    (copy,) = (tmp_path / "copies").glob("eve*")
    refused = run(memory, "restore", copy, code=2).stderr
    assert "is a backup of user eve␛[2J" in refused.decode()


def test_a_backup_into_a_folder_is_named_by_user_and_time(memory: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copies"
    folder.mkdir()
    run(memory, "backup", folder)
    run(memory, "backup", folder)
    names = [path.name for path in folder.iterdir()]
    assert len(names) == 2
    assert all(name.startswith(f"{USER}-20") and name.endswith("Z.db") for name in names)


def test_a_backup_replaces_no_file_and_needs_a_memory(memory: Path, copy: Path, data: Path, tmp_path: Path) -> None:
    before = copy.read_bytes()
    refusal = run(memory, "backup", copy, code=2).stderr.decode()
    assert "this file already exists, and a backup does not replace a file" in refusal
    assert copy.read_bytes() == before
    assert "no memory" in run(data, "backup", tmp_path / "none.db", code=1).stderr.decode()
    assert not (tmp_path / "none.db").exists()


def test_a_backup_that_cannot_be_written_leaves_nothing(memory: Path, tmp_path: Path) -> None:
    told = run(memory, "backup", tmp_path / "copy.db", code=1, limit="ulimit -f 200").stderr.decode()
    assert "no space" in told
    assert [path.name for path in tmp_path.iterdir()] == ["memory"]
    check_whole(memory)


def test_a_restore_first_says_what_it_would_replace(memory: Path, copy: Path) -> None:
    add(memory, "Said after the backup.")
    before = exported(memory)
    told = json.loads(run(memory, "restore", copy, "--json").stdout)
    assert (told["is_done"], told["backup"]["pages"], told["replaced"]["pages"]) == (False, PAGES, PAGES + 1)
    assert "--yes" in run(memory, "restore", copy).stdout.decode()
    assert exported(memory) == before


def test_a_restore_saves_the_replaced_memory(memory: Path, copy: Path) -> None:
    then = exported(memory)
    with PipeServer(memory, NO_MODEL) as server:
        server.add("Said after the backup.")
        server.kill()  # the pages are then in the journal only
    now = exported(memory)
    told = json.loads(run(memory, "restore", copy, "--yes", "--json").stdout)
    assert exported(memory) == then
    assert copy.exists()
    kept = Path(told["kept_as"])
    assert kept.parent == database_file(memory, USER).parent
    assert kept.stat().st_mode & 0o777 == 0o600
    run(memory, "restore", kept, "--yes")
    assert exported(memory) == now
    check_whole(memory)


def forgotten(server: PipeServer, **what: object) -> dict[str, object]:
    dry_run = server.call("forget_memory", **what)
    receipt = server.call("forget_memory", confirm=dry_run["confirm"])
    assert isinstance(receipt, dict)
    return receipt


def test_forgetting_everything_removes_replaced_memories(memory: Path, copy: Path) -> None:
    kept = [Path(json.loads(run(memory, "restore", copy, "--yes", "--json").stdout)["kept_as"]) for _ in range(2)]
    names = [path.name for path in kept]
    unfinished = kept[0].with_name(".memory.db.0123abcd.restored")
    shutil.copy2(copy, unfinished)  # as a killed restore leaves it
    with PipeServer(memory, NO_MODEL) as server:
        page = server.add("I like tea.")
        receipt = forgotten(server, ids=[page])
        assert (receipt["pages"], receipt["kept_copies"]) == (1, names)
        assert all(path.exists() for path in kept)
        assert server.call("forget_memory", everything=True)["kept_copies"] == names
        assert all(path.exists() for path in kept)
        assert forgotten(server, everything=True)["kept_copies"] == []
        assert server.close() == 0
    assert {path.name for path in kept[0].parent.iterdir()} <= {"memory.db", "llm-log.jsonl"}
    run(memory, "restore", copy, "--yes")
    told = run(memory, "forget", "--after", "2000-01-01", "--yes").stdout.decode()
    assert "backup copies made by restores: memory-before-" in told
    told = json.loads(run(memory, "forget", "--everything", "--yes", "--json").stdout)
    assert told["kept_copies"] == []


def test_a_server_starts_on_a_restored_memory(memory: Path, copy: Path, data: Path) -> None:
    run(data, "restore", copy, "--yes")
    with PipeServer(data, NO_MODEL) as server:
        assert server.stats()["total_pages"] == PAGES
        server.add("And on.")
        assert server.stats()["total_pages"] == PAGES + 1
        assert server.close() == 0
        assert "Traceback" not in server.stderr


def test_a_memory_that_a_server_has_open_is_not_replaced(data: Path, tmp_path: Path) -> None:
    with PipeServer(data, NO_MODEL) as server:
        server.add("Before the backup.")
        run(data, "backup", tmp_path / "copy.db")
        server.add("After it.")
        told = run(data, "restore", tmp_path / "copy.db", "--yes", code=1).stderr.decode()
        assert "in use by another process" in told
        requests = [server.send_call("add_memory", {"user_input": "x", "agent_response": ""}) for _ in range(3)]
        assert all(page_id_of(server.reply(request)) for request in requests)
        assert server.stats()["total_pages"] == 5
        assert server.close() == 0
    assert count(data) == 5
    assert [path.name for path in database_file(data, USER).parent.iterdir()] == ["memory.db"]


def test_a_damaged_memory_is_replaced_and_kept_with_its_journal(memory: Path, copy: Path) -> None:
    file = database_file(memory, USER)
    then = exported(memory)
    file.write_bytes(b"These are my notes." * 500)
    file.with_name("memory.db-wal").write_bytes(b"and more of them")
    told = json.loads(run(memory, "restore", copy, "--yes", "--json").stdout)
    assert told["replaced"] is None
    kept = Path(told["kept_as"])
    assert kept.read_bytes().startswith(b"These are my notes.")
    assert kept.with_name(kept.name + "-wal").read_bytes() == b"and more of them"
    assert exported(memory) == then


def truncated(copy: Path) -> None:
    copy.write_bytes(copy.read_bytes()[: copy.stat().st_size // 2])


def scrambled(copy: Path) -> None:
    data = bytearray(copy.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 8192] = b"\x55" * 8192
    copy.write_bytes(data)


def emptied(copy: Path) -> None:
    copy.write_bytes(b"")


def no_database(copy: Path) -> None:
    copy.write_text('{"format":"memoryos","version":1}\n' * 100, encoding="utf-8")


def a_strangers(copy: Path) -> None:
    copy.unlink()
    connection = apsw.Connection(str(copy))
    connection.execute("CREATE TABLE songs (title TEXT)")
    connection.close()


def with_a_trigger(copy: Path) -> None:
    connection = apsw.Connection(str(copy))
    connection.execute("CREATE TRIGGER thief AFTER INSERT ON pages BEGIN DELETE FROM pages WHERE seq = new.seq; END")
    connection.close()


def newer(copy: Path) -> None:
    connection = apsw.Connection(str(copy))
    connection.pragma("user_version", 999)
    connection.close()


def another_users(copy: Path) -> None:
    connection = apsw.Connection(str(copy))
    connection.execute("UPDATE meta SET value = 'eve' WHERE key = 'user_id'")
    connection.close()


def a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


@pytest.mark.parametrize(
    ("damage", "word"),
    [
        (truncated, "damaged"),
        (scrambled, "damaged"),
        (emptied, "is empty"),
        (no_database, "not a SQLite file"),
        (a_strangers, "another program"),
        (with_a_trigger, "its trigger 'thief' is not part of the schema"),
        (newer, "Upgrade"),
        (another_users, "--user-id"),
        (Path.unlink, "does not exist"),
        (a_folder, "is a folder; choose a file that contains a memory"),
    ],
)
def test_an_unusable_backup_is_refused_without_changes(damage: object, word: str, memory: Path, copy: Path) -> None:
    assert callable(damage)
    damage(copy)
    before = exported(memory)
    told = run(memory, "restore", copy, "--yes", code=2 if word == "--user-id" else 1).stderr.decode()
    assert word in told
    assert str(copy) in told
    assert exported(memory) == before
    assert len(list(database_file(memory, USER).parent.iterdir())) == 1


def test_a_backup_is_restored_over_an_emptied_memory(memory: Path, copy: Path) -> None:
    before = exported(memory)
    database_file(memory, USER).write_bytes(b"")
    assert "the file is empty" in run(memory, "export", "-", code=1).stderr.decode()
    run(memory, "restore", copy, "--yes")
    assert exported(memory) == before


def test_a_backup_of_an_earlier_version_is_migrated(memory: Path, copy: Path) -> None:
    copy.unlink()
    make_version(copy, USER, 5, PAGES)
    run(memory, "restore", copy, "--yes")
    add(memory, "And on.")
    assert count(memory) == PAGES + 1
    assert open_store(memory).pragma("user_version") == CURRENT_VERSION


@pytest.mark.parametrize("command", [("backup", "copy.db"), ("restore", "copy.db", "--yes")])
def test_a_store_without_backups_names_other_ways(
    command: tuple[str, ...], data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SqliteStores, "backups", None)
    done = CliRunner().invoke(cli, [*command, "--data-storage-path", str(data)])
    assert isinstance(done.exception, StorageError)
    assert "use the backup tools of SQLite" in str(done.exception)
    assert "memoryos-mcp export FILE" in str(done.exception)
