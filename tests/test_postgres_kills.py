"""PostgreSQL itself is killed while servers add pages: no acknowledged page is lost, and no page is stored twice."""

import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pydantic import SecretStr

from benchmarks.postgres import OWNER, PostgresServer
from memoryos_mcp.config import Settings
from memoryos_mcp.errors import StorageError
from memoryos_mcp.model.pages import utc_now
from memoryos_mcp.storage.postgres.connection import PostgresConnection
from memoryos_mcp.storage.postgres.database import WRITE_IDS_CHARS, Deployment, PostgresDatabase
from memoryos_mcp.storage.postgres.store import PostgresStore
from memoryos_mcp.storage.stores import make_stores
from memoryos_mcp.storage.values import StoreOptions
from tests.servers import BUSY_BACKGROUND, PipeServer, page_id_of, wait_until

pytestmark = pytest.mark.campaign

KILLS = int(os.environ.get("MEMORYOS_KILLS", "6"))
CLIENTS = 3
UNKNOWN = "its outcome is unknown; check the memory before you repeat the change"
# The errors that may be reported while the database is down.
CLEAR = (UNKNOWN, "/kills cannot be reached; check that it runs")
OPTIONS = StoreOptions(assistant_id="helper", short_term_capacity=2, session_gap_s=1800, knowledge_capacity=100)


@pytest.fixture
def database() -> Iterator[PostgresServer]:
    """A server of its own, whose commits are on disk."""
    server = PostgresServer(is_durable=True)
    yield server
    server.close()


class Adder(threading.Thread):
    """Adds pages one after the other, half of them with a key. With a key, a failed call is repeated.

    Attributes:
        acknowledged: The page id of each acknowledged page, by its marker.
        unknown: The markers of pages without a key that may be stored.
        problems: The errors that were reported.
    """

    def __init__(self, server: PipeServer, name: str) -> None:
        super().__init__(name=name)
        self.server = server
        self.acknowledged: dict[str, str] = {}
        self.unknown: set[str] = set()
        self.problems: list[str] = []
        self.is_over = threading.Event()

    def run(self) -> None:
        number = 0
        while not self.is_over.is_set():
            number += 1
            marker = f"{self.name}x{number}x"
            arguments = {"user_input": f"I live in house {marker} with Anna.", "agent_response": f"Noted {marker}."}
            if number % 2:
                arguments["idempotency_key"] = marker
            while (page_id := self._add(arguments)) is None and number % 2:
                time.sleep(0.05)
            if page_id is not None:
                self.acknowledged[marker] = page_id
            elif UNKNOWN in self.problems[-1]:
                self.unknown.add(marker)

    def _add(self, arguments: dict[str, str]) -> str | None:
        request = self.server.send_call("add_memory", arguments)
        reply = self.server.reply(request, 120)
        page_id = page_id_of(reply)
        if page_id is None:
            self.problems.append(reply["result"]["content"][0]["text"])
        return page_id


def crash_of_one_process(database: PostgresServer) -> None:
    """Kill one process of the server that works for a memory. All others then end too, and it recovers by itself."""
    with psycopg.connect(database.url("kills", OWNER), autocommit=True) as connection:
        sql = (
            "SELECT pid FROM pg_stat_activity WHERE datname = 'kills' AND pid <> pg_backend_pid() "
            "ORDER BY state = 'active' DESC, state_change DESC LIMIT 1"
        )
        pids: list[int] = []

        def is_connected() -> bool:
            pids[:] = [pid for (pid,) in connection.execute(sql)]
            return bool(pids)

        wait_until(is_connected, "a server is connected")
    os.kill(pids[0], signal.SIGKILL)


def accepts_connections(database: PostgresServer) -> bool:
    try:
        psycopg.connect(database.url("postgres", OWNER), connect_timeout=5).close()
    except psycopg.OperationalError:
        return False
    return True


def test_kills_of_the_database_neither_lose_nor_double_pages(database: PostgresServer, tmp_path: Path) -> None:
    environment = {"MEMORYOS_DATABASE_URL": database.make("kills")}
    draw = random.Random(7)  # noqa: S311 - moments of kills
    with (
        PipeServer(tmp_path / "one", BUSY_BACKGROUND, env=environment) as one,
        PipeServer(tmp_path / "other", BUSY_BACKGROUND, env=environment) as other,
    ):
        adders = [Adder(server, f"{name}{n}") for server, name in ((one, "a"), (other, "b")) for n in range(CLIENTS)]
        for adder in adders:
            adder.start()
        try:
            for number in range(KILLS):
                time.sleep(0.5 + 2 * draw.random())
                if number % 2:
                    crash_of_one_process(database)
                else:
                    database.kill()
                    time.sleep(2 * draw.random())
                    database.start()
                wait_until(lambda: accepts_connections(database), "the database has recovered")
        finally:
            for adder in adders:
                adder.is_over.set()
            for adder in adders:
                adder.join()
        for server in (one, other):  # which go on without a restart
            server.wait_until_settled(120)
        found = one.call("retrieve_memory", query="house b0x1x")
        shown = {page["page_id"] for page in [*found["retrieved_pages"], *found["short_term_memory"]]}
        assert adders[CLIENTS].acknowledged["b0x1x"] in shown
    assert {text for adder in adders for text in adder.problems if not any(clear in text for clear in CLEAR)} == set()
    acknowledged = {marker: page_id for adder in adders for marker, page_id in adder.acknowledged.items()}
    unknown = {marker for adder in adders for marker in adder.unknown}
    with psycopg.connect(database.url("kills", OWNER), autocommit=True) as connection:
        connection.execute("SET search_path TO memoryos")
        check_pages(connection, acknowledged, unknown)
        check_derived_rows(connection)
    assert "Traceback" not in one.stderr + other.stderr


def check_pages(
    connection: psycopg.Connection[tuple[Any, ...]], acknowledged: dict[str, str], unknown: set[str]
) -> None:
    stored = connection.execute(
        "SELECT seq, page_id, split_part(user_input, ' ', 5) FROM pages ORDER BY seq"
    ).fetchall()
    assert [seq for seq, _, _ in stored] == list(range(1, len(stored) + 1))
    assert [marker for marker, count in Counter(marker for _, _, marker in stored).items() if count > 1] == []
    ids = {marker: page_id for _, page_id, marker in stored}
    assert {marker: ids.get(marker) for marker in acknowledged} == acknowledged
    assert ids.keys() - acknowledged.keys() <= unknown


# Each query finds derived rows that do not agree with the pages, or numbers that were left out.
DISAGREEMENTS = {
    "counters": "SELECT 1 FROM counters WHERE page <> (SELECT count(*) FROM pages) OR indexed_pages <> page "
    "OR change <> (SELECT max(change) FROM changes) OR chain <> (SELECT max(chain) FROM chains) "
    "OR indexed_tokens <> (SELECT sum(size) FROM (SELECT DISTINCT seq, size FROM postings) AS each)",
    "postings": "SELECT seq FROM pages LEFT JOIN postings USING (seq) WHERE term IN ('anna') IS NOT TRUE "
    "GROUP BY seq HAVING bool_and(term IS NULL)",
    "names": "SELECT 1 FROM names WHERE name = 'anna' AND pages <> (SELECT count(*) FROM pages)",
    "segments": "SELECT segment FROM segments WHERE page_count <> "
    "(SELECT count(*) FROM pages WHERE pages.segment = segments.segment)",
    "tiers": "SELECT seq FROM pages WHERE (tier = 'mid_term') <> (segment IS NOT NULL)",
    "vectors": "SELECT seq FROM pages WHERE NOT EXISTS (SELECT 1 FROM page_vectors WHERE page_vectors.seq = pages.seq)",
    "spaces": "SELECT 1 FROM spaces WHERE next_seq <> (SELECT max(seq) + 1 FROM pages)",
}


def check_derived_rows(connection: psycopg.Connection[tuple[Any, ...]]) -> None:
    found = {name: connection.execute(sql).fetchall() for name, sql in DISAGREEMENTS.items()}
    assert {name: rows for name, rows in found.items() if rows} == {}


@asynccontextmanager
async def user_database(server: PostgresServer) -> AsyncIterator[PostgresDatabase]:
    """Yield one user's rows in a new database. Its server writes nothing to disk before a commit."""
    url = server.make("kills")
    with psycopg.connect(server.url("kills", OWNER), autocommit=True) as connection:
        for setting in ("wal_writer_delay = 10000", "autovacuum = off"):
            connection.execute(f"ALTER SYSTEM SET {setting}")
        connection.execute("SELECT pg_reload_conf()")
    with closing(make_stores(Settings(database_url=SecretStr(url)), utc_now, threads=4)) as stores:
        store = await stores.open("ada", OPTIONS)
        assert isinstance(store, PostgresStore)
        yield store._database
        await store.close()


class Change:
    """Adds a row. During the first call, ``on_first`` is called with the process of the database."""

    def __init__(self, on_first: Callable[[int], None]) -> None:
        self.calls = 0
        self._on_first = on_first

    def __call__(self, connection: PostgresConnection) -> int:
        self.calls += 1
        connection.native("INSERT INTO meta (key, value) VALUES ('test', 'x')")
        process = connection.native("SELECT pg_backend_pid()").get
        if self.calls == 1:
            self._on_first(process)
        return self.calls


async def stored(database: PostgresDatabase) -> int:
    ((count,),) = await database.rows("SELECT count(*) FROM meta WHERE key = 'test'")
    return int(count)


def after_recovery(server: PostgresServer, killed: int, sql: str) -> None:
    """Run a statement several times as soon as the server has recovered from the loss of a process."""

    def is_done() -> bool:
        try:
            with psycopg.connect(server.url("kills", OWNER), autocommit=True) as connection:
                if connection.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", (killed,)).fetchone():
                    return False
                for _ in range(5):
                    connection.execute(sql)
        except psycopg.OperationalError:
            return False
        return True

    wait_until(is_done, "the database has recovered")


@pytest.mark.parametrize("writes_of_others", ["few", "many"])
async def test_a_change_lost_in_its_commit_is_not_taken_for_stored(
    database: PostgresServer, writes_of_others: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # After the crash, the number of the lost transaction is given to another one, which is committed.
    sql = "SELECT pg_current_xact_id()"
    if writes_of_others == "many":
        sql = f"UPDATE memoryos.counters SET latest_writes = repeat('f', {WRITE_IDS_CHARS})"  # noqa: S608

    def crash(process: int) -> None:
        time.sleep(0.5)  # until COMMIT was sent
        os.kill(process, signal.SIGKILL)
        after_recovery(database, process, sql)

    def stop(process: int) -> None:
        os.kill(process, signal.SIGSTOP)  # COMMIT is received, but not carried out
        crashing.append(threading.Thread(target=crash, args=(process,)))
        crashing[0].start()

    change, crashing = Change(stop), list[threading.Thread]()
    drop_lost = Deployment.drop_lost

    def drop_lost_after_the_others(deployment: Deployment) -> None:
        crashing[0].join()
        drop_lost(deployment)

    monkeypatch.setattr(Deployment, "drop_lost", drop_lost_after_the_others)
    async with user_database(database) as rows:
        if writes_of_others == "many":
            with pytest.raises(StorageError, match=UNKNOWN):
                await rows.write(change)
            assert (change.calls, await stored(rows)) == (1, 0)
        else:
            assert await rows.write(change) == 2
            assert (change.calls, await stored(rows)) == (2, 1)
    crashing[0].join()


async def test_a_committed_change_is_not_repeated_after_a_crash(database: PostgresServer) -> None:
    def crash(process: int) -> None:
        sql = "SELECT wait_event FROM pg_stat_activity WHERE pid = %s"
        with psycopg.connect(database.url("postgres", OWNER), autocommit=True) as connection:
            wait_until(lambda: connection.execute(sql, (process,)).fetchone() == ("SyncRep",), "it has been committed")
        os.kill(process, signal.SIGKILL)

    def begin(process: int) -> None:
        crashing.append(threading.Thread(target=crash, args=(process,)))
        crashing[0].start()

    change, crashing = Change(begin), list[threading.Thread]()
    async with user_database(database) as rows:
        with psycopg.connect(database.url("postgres", OWNER), autocommit=True) as connection:
            # A commit is on disk, but its answer waits for a replica that does not exist.
            connection.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
            connection.execute("SELECT pg_reload_conf()")
        assert await rows.write(change) == 1
        assert (change.calls, await stored(rows)) == (1, 1)
    crashing[0].join()
