"""The command ``move``: memories from files to PostgreSQL and back, without loss, also after kills."""

import asyncio
import json
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pydantic import SecretStr

from memoryos_mcp.config import Settings
from memoryos_mcp.engine.service import MemoryService
from memoryos_mcp.engine.tools.arguments import RetrieveMemoryArguments
from memoryos_mcp.engine.tools.core_tools import retrieve_memory
from memoryos_mcp.model.callers import Scope
from memoryos_mcp.model.pages import utc_now
from memoryos_mcp.storage.postgres.schema import SCHEMA
from memoryos_mcp.storage.sql import copying
from memoryos_mcp.storage.stores import make_stores
from memoryos_mcp.storage.values import StoreOptions
from tests.commands import run_here
from tests.fakes import WordEmbedder
from tests.memories import LentEmbedder, Said, memory
from tests.postgres import database_of, rows_of
from tests.servers import USER, clean_environment, open_store
from tests.stores import rows
from tests.taking_along import START, check_whole, make_memory, turn

PAGES = 60
KILLS = 3
OPTIONS = StoreOptions("default_assistant_profile", 7, 1800, 100)
EXPORT = ("export", "--json")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a memory that has every kind of record, and with a token."""
    folder = tmp_path_factory.mktemp("made") / "memories"
    asyncio.run(make_memory(folder, PAGES))
    asyncio.run(make_memory(folder, 30, user="Grace Hopper"))
    with closing(make_stores(Settings(data_storage_path=folder), utc_now)) as stores:
        stores.tokens.add(USER, {Scope.READ})
    return folder


@pytest.fixture
def files(made: Path, tmp_path: Path) -> Path:
    """A copy of the data folder."""
    return shutil.copytree(made, tmp_path / "files")


@pytest.fixture
def url(tmp_path: Path) -> str:
    """The address of an empty database."""
    return database_of(tmp_path)


def move(*arguments: object, code: int = 0) -> dict[str, Any]:
    """Run the command, and return its report; an empty one if there is none."""
    done = run_here("move", *arguments, "--json")
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    report: dict[str, Any] = json.loads(done.stdout or "{}")
    return report


def export_of(*place: object, user: str = USER) -> str:
    """Return the export of a memory."""
    done = run_here("export", *place, "--user-id", user)
    assert done.returncode == 0, done.stderr
    return done.stdout


def tree(folder: Path) -> dict[str, bytes]:
    """Return the content of all files in a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def tables(url: str) -> int:
    """Return the number of the database's own tables."""
    with psycopg.connect(url) as connection:
        sql = "SELECT count(*) FROM pg_tables WHERE schemaname = %s"
        row = connection.execute(sql, (SCHEMA,)).fetchone()
    assert row is not None
    return int(row[0])


# There and back -------------------------------------------------------------------------------------------------------


def test_there_and_back_gives_the_same_export(files: Path, url: str, tmp_path: Path) -> None:
    before = {name: data for name, data in tree(files).items() if name.endswith(".db")}
    there = move("--to", url, "--data-storage-path", files)
    back = move("--to", tmp_path / "back", "--database-url", url)
    for user in (USER, "Grace Hopper"):
        wanted = export_of("--data-storage-path", files, user=user)
        assert wanted == export_of("--database-url", url, user=user)
        assert wanted == export_of("--data-storage-path", tmp_path / "back", user=user)
        check_whole(tmp_path / "back", user)
    assert {each["state"] for each in (*there["users"], *back["users"])} == {"moved"}
    assert [each["sha256"] for each in there["users"]] == [each["sha256"] for each in back["users"]]
    assert there["users"][0]["rows"]["pages"] in {PAGES, 30}
    assert before == {name: data for name, data in tree(files).items() if name.endswith(".db")}


def test_rows_keep_numbers_and_none_is_given_out_twice(files: Path, url: str, tmp_path: Path) -> None:
    with closing(open_store(files, USER)) as connection:
        connection.execute("DELETE FROM page_words WHERE rowid = (SELECT max(seq) FROM pages)")
        connection.execute("DELETE FROM pages WHERE seq = (SELECT max(seq) FROM pages)")
    move("--to", url, "--data-storage-path", files)
    move("--to", tmp_path / "back", "--database-url", url)

    async def add(settings: Settings) -> None:
        with closing(make_stores(settings, utc_now, threads=2)) as stores:
            store = await stores.open(USER, OPTIONS)
            await store.add_pages([turn(1_000)])
            await store.close()

    asyncio.run(add(Settings(database_url=SecretStr(url))))
    asyncio.run(add(Settings(data_storage_path=tmp_path / "back")))
    newest = "SELECT max(seq), count(*) FROM pages"
    assert rows_of(tmp_path, newest, USER) == rows(tmp_path / "back", newest, USER) == [(PAGES + 1, PAGES)]


@pytest.fixture(scope="module")
async def embedder() -> AsyncIterator[LentEmbedder]:
    """The bundled embedder, shared by the tests of this file."""
    lent = LentEmbedder()
    yield lent
    await lent.end()


async def retrieved(settings: Settings, embedder: LentEmbedder | None) -> list[list[str]]:
    """Return the texts of the pages that each query finds. Their scores depend a little on the time of the query."""
    found = []
    async with MemoryService(settings, embedder=embedder, only_looks=True) as service:
        for query in ("the beagle from the shelter", "who lives in Lisbon?", "walnuts allergy", "name of my dog"):
            answer = await retrieve_memory(service, "ada", RetrieveMemoryArguments(query=query))
            found.append([page["user_input"] for page in answer.result.model_dump()["retrieved_pages"]])
    return found


async def test_a_moved_memory_answers_as_before(tmp_path: Path, url: str) -> None:
    files = tmp_path / "files"
    embedder = LentEmbedder()
    said = [
        Said("My dog Biscuit is a beagle from the shelter.", "What a lovely name!", START),
        Said("I live in Lisbon and work as a nurse.", "Noted.", START),
        Said("I'm allergic to walnuts.", "I will remember it.", START),
        *(Said(f"We talked about the weather, number {number}.", "It rained.", START) for number in range(12)),
    ]
    async with memory(files, embedder) as made:
        await made.add(said)
        await made.settled()
    vectors = rows(files, "SELECT space, seq, part, vector FROM page_vectors ORDER BY seq, part")
    codes = rows(files, "SELECT place, counts, codes FROM page_tokens ORDER BY place")
    assert len(vectors) >= len(said)
    move("--to", url, "--data-storage-path", files)
    move("--to", tmp_path / "back", "--database-url", url)
    assert vectors == rows_of(tmp_path, "SELECT space, seq, part, vector FROM page_vectors ORDER BY seq, part", "ada")
    assert codes == rows_of(tmp_path, "SELECT place, counts, codes FROM page_tokens ORDER BY place", "ada")
    wanted = await retrieved(Settings(data_storage_path=files, timezone="UTC"), embedder)
    assert "Biscuit" in wanted[0][0]
    assert wanted == await retrieved(Settings(database_url=SecretStr(url), timezone="UTC"), embedder)
    assert wanted == await retrieved(Settings(data_storage_path=tmp_path / "back", timezone="UTC"), embedder)
    await embedder.end()


def test_every_table_and_column_is_copied_or_named(files: Path, url: str, tmp_path: Path) -> None:
    move("--to", url, "--data-storage-path", files)
    copied = {table.name: set(table.columns) for table in copying.TABLES}
    with psycopg.connect(url) as connection:
        sql = "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = %s"
        here = connection.execute(sql, (SCHEMA,)).fetchall()
    there = rows(
        files,
        "SELECT m.name, c.name FROM sqlite_schema AS m, pragma_table_info(m.name) AS c WHERE m.type = 'table'",
        USER,
    )
    derived = {"user_no", "bytes", "code", "vector_id"}
    for name, column in (*here, *there):
        if name in {"users", "tokens", "sign_ins", "rates", "schema_version", *copying.NOT_COPIED} or name.startswith(
            ("sqlite_", "page_words_")
        ):
            continue
        assert column in copied[name] | derived, (name, column)


def test_tokens_are_moved_and_stay_revoked(files: Path, url: str, tmp_path: Path) -> None:
    with closing(make_stores(Settings(data_storage_path=files), utc_now)) as stores:
        token = stores.tokens.add("Grace Hopper", {Scope.READ, Scope.WRITE})
    assert move("--to", url, "--data-storage-path", files)["tokens"] == 2
    with closing(make_stores(Settings(database_url=SecretStr(url)), utc_now)) as stores:
        entry = stores.tokens.find(token)
        assert entry is not None
        assert (entry.user_id, set(entry.scopes)) == ("Grace Hopper", {Scope.READ, Scope.WRITE})
    with closing(make_stores(Settings(data_storage_path=files), utc_now)) as stores:
        stores.tokens.revoke(entry.token_id)
        wanted = stores.tokens.entries()
    move("--to", url, "--data-storage-path", files)
    move("--to", tmp_path / "back", "--database-url", url)
    for settings in (Settings(database_url=SecretStr(url)), Settings(data_storage_path=tmp_path / "back")):
        with closing(make_stores(settings, utc_now)) as stores:
            assert stores.tokens.find(token) is None
            assert stores.tokens.is_needed()
            assert [each.state(utc_now()) for each in wanted] == [
                each.state(utc_now()) for each in stores.tokens.entries()
            ]


def test_only_the_chosen_users_are_moved(files: Path, url: str) -> None:
    report = move("--to", url, "--data-storage-path", files, "--user-id", "Grace Hopper")
    assert [each["user_id"] for each in report["users"]] == ["Grace Hopper"]
    assert report["tokens"] == 0
    with closing(make_stores(Settings(database_url=SecretStr(url)), utc_now)) as stores:
        assert stores.users() == ["Grace Hopper"]
    missing = move("--to", url, "--data-storage-path", files, "--user-id", "nobody", "--user-id", USER, code=1)
    assert [each["state"] for each in missing["users"]] == ["failed", "moved"]
    assert "this user has no memory" in missing["users"][0]["problem"]


# Interruptions --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with several users."""
    folder = tmp_path_factory.mktemp("many") / "memories"
    for number in range(8):
        asyncio.run(make_memory(folder, 300, user=f"user-{number}"))
    return folder


def killed(users: int, known: Any, *arguments: object) -> None:
    """Start the command, and kill it while it copies a memory and ``users`` memories are there."""
    command = [sys.executable, "-m", "memoryos_mcp", "move", *map(str, arguments)]
    with subprocess.Popen(
        command, env=clean_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as running:
        give_up_at = time.monotonic() + 60
        while known() < users:
            assert running.poll() is None, "the command ended before it was killed"
            assert time.monotonic() < give_up_at
            time.sleep(0.002)
        running.kill()
    assert running.returncode == -9


@pytest.mark.campaign
def test_a_move_there_goes_on_after_kills(many: Path, url: str) -> None:
    def known() -> int:
        with psycopg.connect(url) as connection:
            if connection.execute("SELECT to_regclass('memoryos.users')").fetchone() == (None,):
                return 0
            row = connection.execute("SELECT count(*) FROM memoryos.users").fetchone()
        return int(row[0]) if row else 0

    for number in range(KILLS):
        killed(2 * number + 1, known, "--to", url, "--data-storage-path", many)
    states = [each["state"] for each in move("--to", url, "--data-storage-path", many)["users"]]
    assert set(states) == {"already_moved", "moved"}
    for number in range(8):
        user = f"user-{number}"
        assert export_of("--data-storage-path", many, user=user) == export_of("--database-url", url, user=user)


@pytest.mark.campaign
def test_a_move_back_goes_on_after_kills(many: Path, url: str, tmp_path: Path) -> None:
    move("--to", url, "--data-storage-path", many)
    back = tmp_path / "back"
    for number in range(KILLS):
        killed(
            2 * number + 1,
            lambda: len(list(back.glob("users/*/memory.db"))),
            "--to",
            back,
            "--database-url",
            url,
        )
    states = [each["state"] for each in move("--to", back, "--database-url", url)["users"]]
    assert set(states) == {"already_moved", "moved"}
    for number in range(8):
        user = f"user-{number}"
        assert export_of("--data-storage-path", many, user=user) == export_of("--data-storage-path", back, user=user)
        check_whole(back, user)


class Interference:
    """Adds a page to the source while it is copied, at most ``times`` times."""

    def __init__(self, source: Any, times: int) -> None:
        self._source = source
        self.left = times
        self._loop = asyncio.get_running_loop()

    def __call__(self, done: int, total: int) -> None:
        if self.left and done > total // 4:
            self.left -= 1
            added = self._source.add_pages([turn(2_000 + self.left)])
            asyncio.run_coroutine_threadsafe(added, self._loop).result()


@pytest.mark.parametrize(("times", "outcome"), [(1, "copied"), (1_000, "changing")])
async def test_a_change_during_the_copy_is_noticed(
    files: Path, url: str, tmp_path: Path, times: int, outcome: str
) -> None:
    here = make_stores(Settings(data_storage_path=files), utc_now, threads=4)
    there = make_stores(Settings(database_url=SecretStr(url)), utc_now, threads=4)
    source, target = await here.open(USER, OPTIONS), await there.open(USER, OPTIONS)
    copy = await source.copy_to(target, Interference(source, times))
    pages = (await target.counts()).pages
    for store in (source, target):
        await store.close()
    for stores in (here, there):
        stores.close()
    assert copy.outcome == outcome
    assert pages == (PAGES + 1 if outcome == "copied" else 0)


# Refusals -------------------------------------------------------------------------------------------------------------


def test_another_memory_in_the_target_is_kept(files: Path, url: str, tmp_path: Path) -> None:
    asyncio.run(make_memory(tmp_path / "other", 12))
    move("--to", url, "--data-storage-path", tmp_path / "other")
    wanted = export_of("--database-url", url)
    for dry_run in ([], ["--dry-run"]):
        report = move("--to", url, "--data-storage-path", files, *dry_run, code=1)
        states = {each["user_id"]: each["state"] for each in report["users"]}
        assert states[USER] == "failed"
        assert states["Grace Hopper"] != "failed"
        assert report["next_step"] is None
    assert export_of("--database-url", url) == wanted


async def use(settings: Settings, text: str) -> None:
    """Open the memory and add a page, as a server does."""
    async with MemoryService(settings, embedder=WordEmbedder()) as service, service.user(USER) as engine:
        await engine.add(text, "I see.")


@pytest.mark.parametrize("is_back", [False, True])
def test_a_finished_move_may_be_repeated_while_servers_run(
    files: Path, url: str, tmp_path: Path, is_back: bool
) -> None:
    source, target = Settings(data_storage_path=files), Settings(database_url=SecretStr(url))
    arguments: tuple[object, ...] = ("--to", url, "--data-storage-path", files)
    first = move(*arguments)
    if is_back:
        source, target = target, Settings(data_storage_path=tmp_path / "back")
        arguments = ("--to", tmp_path / "back", "--database-url", url)
        first = move(*arguments)
    asyncio.run(use(target, "I fly kites."))
    place = ("--data-storage-path", tmp_path / "back") if is_back else ("--database-url", url)
    used = export_of(*place)
    assert "I fly kites." in used
    for dry_run in (["--dry-run"], []):
        again = move(*arguments, *dry_run)
        assert [each["state"] for each in again["users"]] == ["already_moved"] * 2
        assert [each["sha256"] for each in again["users"]] == [each["sha256"] for each in first["users"]]
    assert "; already moved" in run_here("move", *arguments).stdout
    assert export_of(*place) == used
    asyncio.run(use(source, "I sail."))
    for dry_run in (["--dry-run"], []):
        problems = {each["user_id"]: each["problem"] for each in move(*arguments, *dry_run, code=1)["users"]}
        assert "or an earlier copy of this memory, which has changed since" in problems[USER]
        assert problems["Grace Hopper"] is None
    assert export_of(*place) == used


def test_a_dry_run_changes_nothing(files: Path, url: str, tmp_path: Path) -> None:
    report = move("--to", url, "--data-storage-path", files, "--dry-run")
    assert {each["state"] for each in report["users"]} == {"would_move"}
    assert report["tokens"] == 1
    assert tables(url) == 0
    move("--to", url, "--data-storage-path", files)
    move("--to", tmp_path / "back", "--database-url", url, "--dry-run")
    assert not (tmp_path / "back").exists()


def test_a_damaged_page_stops_only_its_memory(files: Path, url: str) -> None:
    with closing(open_store(files, USER)) as connection:
        connection.execute("UPDATE pages SET user_input = 'changed' WHERE seq = 2")
    report = move("--to", url, "--data-storage-path", files, code=1)
    problems = {each["user_id"]: each["problem"] for each in report["users"]}
    assert "damaged on disk" in problems[USER]
    assert problems["Grace Hopper"] is None


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("postgresql://app:s3cret@127.0.0.1:1/memories", "cannot be reached; check that it runs, and correct --to"),
        ("postgresql://app:s3cret@[broken/memories", "is not a valid address"),
        ("mysql://app:s3cret@127.0.0.1/memories", "the target must be an address that begins with postgresql://"),
        (" ", "must be an address"),
    ],
)
def test_a_wrong_target_gives_one_line(files: Path, target: str, said: str) -> None:
    done = run_here("move", "--to", target, "--data-storage-path", files)
    assert done.returncode in {1, 2}
    assert said in done.stderr
    assert "s3cret" not in done.stderr + done.stdout
    assert done.stderr.count("\n") == 1


def test_a_target_that_cannot_be_used_gives_one_line(files: Path, url: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("notes", encoding="utf-8")
    missing = url.rpartition("/")[0] + "/missing"
    for target, said in ((file, "--to: "), (missing, "does not exist"), (files, "where the memories are now")):
        done = run_here("move", "--to", target, "--data-storage-path", files)
        assert done.returncode in {1, 2}
        assert said in done.stderr
        assert done.stderr.count("\n") == 1
    done = run_here("move", "--to", url, "--database-url", url)
    assert "where the memories are now" in done.stderr


def test_the_report_says_what_to_do_next(files: Path, url: str, tmp_path: Path) -> None:
    there = run_here("move", "--to", url, "--data-storage-path", files)
    assert "Set database_url to this database" in there.stdout
    assert f"{PAGES} pages, 3 facts; moved, and both sides are the same (SHA-256 " in there.stdout
    assert "app@" not in there.stdout
    back = run_here("move", "--to", tmp_path / "back", "--database-url", url)
    assert f"Unset database_url, and set data_storage_path to {tmp_path / 'back'}" in back.stdout
    empty = run_here("move", "--to", url, "--data-storage-path", tmp_path / "nothing")
    assert "There are no memories to move." in empty.stdout
