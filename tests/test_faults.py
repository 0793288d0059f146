import ctypes
import hashlib
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import apsw
import pytest

from memoryos_mcp.storage.sqlite.paths import database_file
from memoryos_mcp.storage.sqlite.schema import CURRENT_VERSION
from tests.memories import NO_MODEL
from tests.servers import (
    BUSY_BACKGROUND,
    USER,
    PipeServer,
    clean_environment,
    page_id_of,
    serve_command,
    stored_pages,
    wait_until,
)

MARKER = "zzmarkerzz"
RUN_LIMIT_S = 30
USAGE = 2
PAGE_CHARS = 50_000
ATTEMPTS = 200

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="limits and mounts of Linux")


# Disk full ---------------------------------------------------------------------------------------------------------


def fill_up(server: PipeServer) -> tuple[set[str], str]:
    """Add pages until one is refused; return the acknowledged ids and the refusal."""
    told: set[str] = set()
    for number in range(ATTEMPTS):
        text = f"{MARKER} {number} " + "word " * (PAGE_CHARS // 5)
        result = server.result(server.send_call("add_memory", {"user_input": text, "agent_response": "Ok."}))
        if result.get("isError"):
            return told, result["content"][0]["text"]
        told.add(result["structuredContent"]["page_id"])
    pytest.fail("the disk never got full")


def check_full_disk(server: PipeServer, first: str, told: set[str], refusal: str) -> None:
    """Check that a server without disk space refuses pages with advice and still answers."""
    assert "no space" in refusal
    assert "nothing was stored" in refusal
    assert str(server.folder) in refusal
    assert MARKER not in refusal
    found = server.call("retrieve_memory", query="pottery", max_results=5)
    assert first in [page["page_id"] for page in found["retrieved_pages"]]
    assert server.stats()["total_pages"] == len(told) + 1


@linux_only
def test_a_size_limit_is_a_clear_error_and_loses_nothing(data: Path) -> None:
    with PipeServer(data, {"short_term_capacity": 0}) as server:
        first = server.add("I started a pottery class.")
        limits = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (2_000_000, limits[1]))
        told, refusal = fill_up(server)
        check_full_disk(server, first, told, refusal)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, limits)
        after = server.add("There is space again.")
        assert server.close() == 0
        assert MARKER not in server.stderr
    kept = [page.page_id for page in stored_pages(data)]
    assert len(kept) == len(told) + 2
    assert set(kept) == told | {first, after}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Yield a file system of 3 MB; skip if this account cannot mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("this account may not mount a tmpfs")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@linux_only
def test_a_full_disk_is_a_clear_error_and_loses_nothing(small_disk: Path, tmp_path: Path) -> None:
    data = small_disk / "data"
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(1_000_000))
    with PipeServer(data, {"short_term_capacity": 0}, log=tmp_path / "stderr.log") as server:
        first = server.add("I started a pottery class.")
        told, refusal = fill_up(server)
        check_full_disk(server, first, told, refusal)
        ballast.unlink()
        after = server.add("There is space again.")
        assert server.close() == 0
    kept = [page.page_id for page in stored_pages(data)]
    assert len(kept) == len(told) + 2
    assert set(kept) == told | {first, after}


@linux_only
def test_a_memory_is_created_once_the_disk_has_space(small_disk: Path, tmp_path: Path) -> None:
    ballast = small_disk / "ballast"
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass
    with PipeServer(small_disk / "data", NO_MODEL, log=tmp_path / "stderr.log") as server:
        assert "no space" in server.refusal("add_memory", user_input=MARKER, agent_response="Ok.")
        ballast.unlink()
        page = server.add("There is space now.")
        assert server.close() == 0
    assert [stored.page_id for stored in stored_pages(small_disk / "data")] == [page]


@pytest.mark.campaign
@linux_only
def test_a_kill_on_a_full_disk_loses_no_acknowledged_page(small_disk: Path, tmp_path: Path) -> None:
    data = small_disk / "data"
    with PipeServer(data, BUSY_BACKGROUND, log=tmp_path / "stderr.log") as server:
        told, _ = fill_up(server)
        server.kill()
    subprocess.run(["mount", "-o", "remount,size=30m", str(small_disk)], check=True)
    with PipeServer(data, BUSY_BACKGROUND, log=tmp_path / "stderr.log") as server:
        assert server.stats()["total_pages"] == len(told)
    assert {page.page_id for page in stored_pages(data)} == told


# Folders that cannot be written ------------------------------------------------------------------------------------

DROP_OVERRIDE = """
import ctypes, os, sys
PR_CAPBSET_DROP, DAC_OVERRIDE, DAC_READ_SEARCH = 24, 1, 2
for capability in (DAC_OVERRIDE, DAC_READ_SEARCH):
    if ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
        sys.exit(77)
os.execv(sys.argv[1], sys.argv[1:])
"""
CANNOT_DROP = 77


def run_unprivileged(command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command to its end without root's privilege over file modes, with empty stdin."""
    if os.geteuid() == 0:  # the interpreter may be in root's home, so only the privilege is dropped
        command = [sys.executable, "-c", DROP_OVERRIDE, *command]
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=RUN_LIMIT_S,
        env=clean_environment(),
        check=False,
    )
    if done.returncode == CANNOT_DROP:
        pytest.skip("root's privilege over file modes cannot be dropped here")
    return done


def check_one_line(done: subprocess.CompletedProcess[str], *words: str) -> None:
    """Check that a run ended with exit code 2, one clear line on stderr and nothing on stdout."""
    assert done.returncode == USAGE, done.stderr
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("memoryos-mcp: ")
    for word in words:
        assert word in done.stderr


@linux_only
def test_an_unwritable_folder_is_one_line_and_exit_code_2(data: Path) -> None:
    data.mkdir(mode=0o500)
    done = run_unprivileged(serve_command(data))
    check_one_line(done, "data_storage_path", str(data), "writable")
    assert list(data.iterdir()) == []


@linux_only
def test_an_unwritable_parent_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    check_one_line(run_unprivileged(serve_command(closed / "data")), "data_storage_path", str(closed / "data"))


def test_a_file_as_data_folder_is_one_line_and_exit_code_2(data: Path) -> None:
    data.write_text("mine", encoding="utf-8")
    check_one_line(run_unprivileged(serve_command(data)), "data_storage_path", str(data))
    assert data.read_text(encoding="utf-8") == "mine"


@linux_only
def test_a_memory_whose_file_cannot_be_written_is_a_clear_error(healthy: Path, data: Path) -> None:
    file = copied(healthy, data)
    file.chmod(0o400)
    file.parent.chmod(0o500)
    call = '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"add_memory","arguments":'
    with PipeServer(data, NO_MODEL, python=unprivileged_python()) as server:
        server.write_line(call + f'{{"user_input":"{MARKER}","agent_response":""}}}}}}')
        refusal = server.reply(2)["result"]
        assert refusal["isError"] is True
        text = refusal["content"][0]["text"]
        assert "writable" in text
        assert str(file.parent) in text
        assert MARKER not in text
    file.parent.chmod(0o700)
    assert len(stored_pages(data)) == PAGES_MADE


def unprivileged_python() -> list[str]:
    """Return the command that starts the server without root's privilege over file modes."""
    if os.geteuid() != 0:
        return []
    if ctypes.CDLL(None).prctl(23, 1, 0, 0, 0) != 1:
        pytest.skip("root's privilege over file modes cannot be dropped here")
    return ["-c", DROP_OVERRIDE, sys.executable]


# Damaged files -----------------------------------------------------------------------------------------------------

PAGES_MADE = 30


def make_memory(data: Path) -> Path:
    """Make a memory of a few hundred kilobytes and return its file."""
    with PipeServer(data, {**BUSY_BACKGROUND, **NO_MODEL}) as server:
        for number in range(PAGES_MADE):
            server.add(f"Page {number}: " + " ".join(f"word{number * word}" for word in range(600)))
        assert server.close() == 0
    return database_file(data, USER)


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory to copy and damage."""
    return make_memory(tmp_path_factory.mktemp("healthy") / "data")


def truncate(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def truncate_to_a_few_bytes(file: Path) -> None:
    os.truncate(file, 50)


def overwrite_middle(file: Path, filler: bytes) -> None:
    with file.open("r+b") as stream:
        stream.seek(file.stat().st_size // 3 // 4096 * 4096)
        stream.write(filler)


def zero_the_middle(file: Path) -> None:
    overwrite_middle(file, bytes(10 * 4096))


def scramble_the_middle(file: Path) -> None:
    overwrite_middle(file, hashlib.shake_128(b"noise").digest(10 * 4096))


def scramble_all(file: Path) -> None:
    file.write_bytes(hashlib.shake_128(b"noise").digest(file.stat().st_size))


def zero_the_head(file: Path) -> None:
    with file.open("r+b") as stream:
        stream.write(bytes(4096))


def write_text(file: Path) -> None:
    file.write_text("These are my notes.\n" * 500, encoding="utf-8")


def empty_beside_its_journal(file: Path) -> None:
    os.truncate(file, 0)
    file.with_name(file.name + "-wal").write_bytes(hashlib.shake_128(b"pages").digest(8192))


def empty_it(file: Path) -> None:
    os.truncate(file, 0)


def put_a_strangers_database(file: Path) -> None:
    file.unlink()
    connection = apsw.Connection(str(file))
    connection.execute("CREATE TABLE songs (title TEXT); INSERT INTO songs VALUES ('Blue')")
    connection.close()


def write_and_die(file: Path, sql: str) -> None:
    """Change a database by a process that is then killed, so that the change stays in the journal."""
    code = (
        "import apsw, os, sys; c = apsw.Connection(sys.argv[1]); c.pragma('journal_mode', 'wal'); "
        "c.execute(sys.argv[2]); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", code, str(file), sql], check=True, timeout=RUN_LIMIT_S)
    assert file.with_name(file.name + "-wal").stat().st_size > 0


def put_a_strangers_database_with_a_journal(file: Path) -> None:
    file.unlink()
    write_and_die(file, "CREATE TABLE songs (title TEXT); INSERT INTO songs VALUES ('Blue')")


def scramble_beside_a_journal(file: Path) -> None:
    write_and_die(file, "UPDATE lease SET epoch = epoch + 1")
    scramble_the_middle(file)


def raise_the_version(file: Path) -> None:
    change(file, "PRAGMA user_version = 999")


def raise_the_version_in_a_journal(file: Path) -> None:
    write_and_die(file, "PRAGMA user_version = 999")


def put_another_users_memory(file: Path) -> None:
    change(file, "UPDATE meta SET value = 'eve' WHERE key = 'user_id'")


def put_another_users_backup(file: Path) -> None:
    change(file, "UPDATE meta SET value = 'somebody' WHERE key = 'user_id'; PRAGMA journal_mode = delete")


def drop_the_tables(file: Path) -> None:
    """Replace a file by one with our application id and version, but without tables."""
    connection = apsw.Connection(str(file))
    application_id = connection.pragma("application_id")
    connection.close()
    file.unlink()
    connection = apsw.Connection(str(file))
    connection.pragma("application_id", application_id)
    connection.pragma("user_version", CURRENT_VERSION)
    connection.close()


def change(file: Path, sql: str) -> None:
    connection = apsw.Connection(str(file))
    connection.execute(sql)
    connection.close()


def add_a_trigger_that_deletes_pages(file: Path) -> None:
    change(file, "CREATE TRIGGER thief AFTER INSERT ON pages BEGIN DELETE FROM pages WHERE seq = new.seq; END")


def put_a_view_in_place_of_a_table(file: Path) -> None:
    change(file, "ALTER TABLE refused RENAME TO other; CREATE VIEW refused AS SELECT * FROM other WHERE 0")


def add_a_virtual_table(file: Path) -> None:
    change(file, "CREATE VIRTUAL TABLE more USING fts5 (text)")


def add_a_check_that_refuses_pages(file: Path) -> None:
    change(file, "ALTER TABLE pages ADD COLUMN more TEXT CHECK (user_input <> 'M')")


# Words of the refusal, by damage.
DAMAGES: dict[Callable[[Path], None], list[str]] = {
    truncate: [],
    truncate_to_a_few_bytes: [],
    zero_the_middle: [],
    scramble_the_middle: [],
    scramble_all: [],
    scramble_beside_a_journal: ["damaged"],
    zero_the_head: [],
    write_text: [],
    empty_beside_its_journal: [],
    empty_it: [],
    put_a_strangers_database: [],
    put_a_strangers_database_with_a_journal: ["another program"],
    raise_the_version: ["999", "Upgrade"],
    raise_the_version_in_a_journal: ["999", "Upgrade"],
    put_another_users_memory: [],
    put_another_users_backup: ["another user"],
    drop_the_tables: [],
    add_a_trigger_that_deletes_pages: [],
    put_a_view_in_place_of_a_table: [],
    add_a_virtual_table: [],
    add_a_check_that_refuses_pages: [],
}


def content(folder: Path) -> dict[str, str]:
    """Return the hash of each file of a folder, except the index of the journal, which has no data."""
    files = [path for path in folder.iterdir() if not path.name.endswith("-shm")]
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def copied(healthy: Path, data: Path, user: str = USER) -> Path:
    file = database_file(data, user)
    file.parent.mkdir(parents=True)
    shutil.copyfile(healthy, file)
    change(file, f"UPDATE meta SET value = '{user}' WHERE key = 'user_id'")  # noqa: S608 - the tests' own names
    return file


@pytest.fixture(scope="module")
def refusing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PipeServer]:
    """Yield a server that may act for any user; each test damages another user's memory."""
    with PipeServer(tmp_path_factory.mktemp("refusing") / "data", {"act_as": True}) as running:
        yield running
        assert running.close() == 0
        assert MARKER not in running.stderr
        assert "Traceback" not in running.stderr


def check_refused_untouched(server: PipeServer, file: Path, *words: str) -> None:
    """Check that all tools refuse a memory with a clear message, and that no byte of it changes."""
    before = content(file.parent)
    user = file.parent.name
    refusals = [
        server.refusal("add_memory", user_input=MARKER, agent_response="", user_id=user),
        server.refusal("retrieve_memory", query=MARKER, user_id=user),
        server.refusal("get_user_profile", user_id=user),
        server.refusal("get_memory_stats", user_id=user),
    ]
    for refusal in refusals:
        for word in ("not changed", str(file), *words):
            assert word in refusal
        assert MARKER not in refusal
    assert content(file.parent) == before


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_or_foreign_file_is_refused_and_left_untouched(
    healthy: Path, refusing: PipeServer, damage: Callable[[Path], None]
) -> None:
    file = copied(healthy, refusing.folder, damage.__name__)
    damage(file)
    check_refused_untouched(refusing, file, *DAMAGES[damage])


def test_the_default_users_damaged_file_is_left_untouched(healthy: Path, data: Path) -> None:
    file = copied(healthy, data)
    scramble_the_middle(file)
    before = content(file.parent)
    with PipeServer(data) as server:
        told = [
            server.refusal("get_memory_stats"),
            server.reply(server.send("resources/read", {"uri": "memoryos://status"}))["error"]["message"],
        ]
        assert server.close() == 0
        assert "Traceback" not in server.stderr
    assert all("not changed" in text and str(file) in text for text in told)
    assert content(file.parent) == before


def test_a_user_can_start_again_without_the_damaged_file(healthy: Path, refusing: PipeServer) -> None:
    file = copied(healthy, refusing.folder, "ana")
    write_text(file)
    assert "not changed" in refusing.refusal("get_memory_stats", user_id="ana")
    file.rename(file.with_name("old.db"))
    refusing.add("A new beginning.", user_id="ana")
    assert refusing.call("get_memory_stats", user_id="ana")["total_pages"] == 1


KILLED_AS_IT_MAKES_A_MEMORY = """
import asyncio, os, sys
from pathlib import Path
from memoryos_mcp.engine.engine import MemoryEngine
from memoryos_mcp.storage.sqlite import open_file
from memoryos_mcp.storage.sqlite import schema

where = schema if sys.argv[1] == "migrate" else open_file.OpenFile
setattr(where, sys.argv[1], lambda *_: os._exit(9))

async def main():
    async with MemoryEngine.open(sys.argv[2], data_storage_path=Path(sys.argv[3]), embedding_model_name="none"):
        pass

asyncio.run(main())
"""


def test_a_creation_that_was_killed_is_repeated(data: Path) -> None:
    file = database_file(data, USER)
    for place in ("_connected", "migrate", "_prepare"):
        command = [sys.executable, "-c", KILLED_AS_IT_MAKES_A_MEMORY, place, USER, str(data)]
        assert subprocess.run(command, check=False, timeout=RUN_LIMIT_S).returncode == 9
        assert file.exists()
    with PipeServer(data, NO_MODEL) as server:
        server.add("Pottery.")
        assert server.stats()["total_pages"] == 1
        assert server.close() == 0
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_a_page_is_whole_after_a_journal_was_left_behind(data: Path) -> None:
    with PipeServer(data, NO_MODEL) as server:
        requests = [server.send_call("add_memory", {"user_input": f"{n}", "agent_response": ""}) for n in range(20)]
        told = {page_id_of(server.reply(request)) for request in requests}
        server.kill()
    with PipeServer(data, NO_MODEL) as server:
        assert server.stats()["total_pages"] == len(told) == 20


# Settings that cannot be used --------------------------------------------------------------------------------------


def run_serve(*arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "memoryos_mcp", "serve", *arguments]
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=RUN_LIMIT_S,
        env=clean_environment(env),
        check=False,
    )


def test_an_unknown_config_key_names_the_nearest_known_one(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text('{"short_term_capacty": 7}', encoding="utf-8")
    check_one_line(run_serve("--config", str(config)), str(config), "short_term_capacty", "short_term_capacity?")


def test_a_value_out_of_range_is_one_line_that_names_the_range(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(f'{{"mid_term_capacity": 0, "data_storage_path": "{tmp_path}/data"}}', encoding="utf-8")
    check_one_line(run_serve("--config", str(config)), "mid_term_capacity", "from 1")
    done = run_serve("--retrieval-queue-capacity", "1000000")
    check_one_line(done, "retrieval_queue_capacity", "1 to 100")
    done = run_serve(env={"MEMORYOS_HEAT_MU_S": "-1"})
    check_one_line(done, "MEMORYOS_HEAT_MU_S", "above 0")
    assert not (tmp_path / "data").exists()


def test_an_unknown_flag_is_refused_with_nothing_on_stdout() -> None:
    done = run_serve("--short-term-capacty", "7")
    assert done.returncode == USAGE
    assert done.stdout == ""
    assert "--short-term-capacity" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_config_file_missing_or_without_json_is_one_line(tmp_path: Path) -> None:
    check_one_line(run_serve("--config", str(tmp_path / "none.json")), "none.json")
    broken = tmp_path / "broken.json"
    broken.write_text('{"user_id": "ana",', encoding="utf-8")
    check_one_line(run_serve("--config", str(broken)), "broken.json", "line 1")


# The command line without the extra that the reference's embedding model needs.
WITHOUT_THE_EXTRA = """
import runpy, sys
sys.modules["sentence_transformers"] = None
del sys.argv[:2]
runpy.run_module("memoryos_mcp", run_name="__main__", alter_sys=True)
"""


def test_the_references_config_file_starts_the_server_unchanged(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(
        '{"user_id": "ana", "openai_api_key": "your-openai-api-key", "openai_base_url": "https://api.openai.com/v1", '
        '"data_storage_path": "./memory", "assistant_id": "helper", "short_term_capacity": 10, '
        '"mid_term_capacity": 2000, "long_term_knowledge_capacity": 100, "retrieval_queue_capacity": 7, '
        '"mid_term_heat_threshold": 5.0, "mid_term_similarity_threshold": 0.6, "llm_model": "gpt-4o-mini", '
        '"embedding_model_name": "BAAI/bge-m3", "embedding_model_kwargs": {"use_fp16": true}}',
        encoding="utf-8",
    )
    folder = tmp_path / "memory"
    with PipeServer(folder, env={"MEMORYOS_CONFIG": str(config)}, python=("-c", WITHOUT_THE_EXTRA)) as server:
        server.add("I keep bees.")
        stats = server.stats()
        assert (stats["user_id"], stats["short_term_capacity"], stats["segment_capacity"]) == ("ana", 10, 2000)
        assert (stats["search_mode"], stats["embedding_space"]) == ("lexical", None)
        assert server.call("retrieve_memory", query="bees")["short_term_count"] == 1
        wait_until(
            lambda: bool(server.stats()["background"]["embedding"]["failed_attempts"]), "the model is missed", 60
        )
        reason = server.stats()["background"]["embedding"]["last_error"]
        assert reason.startswith("the embedding model BAAI/bge-m3 cannot be loaded: it needs optional packages")
        assert server.close() == 0
        assert reason in server.stderr
    assert database_file(folder, "ana").exists()
