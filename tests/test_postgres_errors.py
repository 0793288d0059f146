"""What PostgreSQL refuses, or loses, is reported on one line with a remedy; no user sees another user's rows."""

import asyncio
import logging
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from pydantic import SecretStr

from benchmarks.postgres import APP, OWNER, PostgresServer
from memoryos_mcp.config import Settings
from memoryos_mcp.engine.service import MemoryService
from memoryos_mcp.errors import NewerStoreError, StorageError
from memoryos_mcp.model.callers import Scope
from memoryos_mcp.model.pages import Turn
from memoryos_mcp.storage.postgres import database, schema
from memoryos_mcp.storage.postgres.connection import PostgresConnection
from memoryos_mcp.storage.postgres.database import PostgresDatabase
from memoryos_mcp.storage.postgres.store import PostgresStore
from memoryos_mcp.storage.postgres.stores import PostgresStores
from memoryos_mcp.storage.stores import make_stores
from memoryos_mcp.storage.values import PageQuery, StoreOptions
from tests.commands import run_here
from tests.fakes import START, Clock
from tests.memories import NO_MODEL
from tests.postgres import server
from tests.servers import clean_environment

PASSWORD = "geheim-42"  # noqa: S105 - of the tests' own server
OPTIONS = StoreOptions(assistant_id="helper", short_term_capacity=2, session_gap_s=1800, knowledge_capacity=100)


def run_sql(database: str, statement: str, role: str = OWNER) -> list[tuple[Any, ...]]:
    with psycopg.connect(server().url(database, role), autocommit=True) as connection:
        cursor = connection.execute(sql.SQL(statement))
        return cursor.fetchall() if cursor.description else []


def make_role(name: str, rights: str = "LOGIN") -> str:
    """Make a role if it does not exist, and return its name."""
    if not run_sql("postgres", f"SELECT 1 FROM pg_roles WHERE rolname = '{name}'"):  # noqa: S608 - a literal
        run_sql("postgres", f"CREATE ROLE {name} {rights}")
    return name


@contextmanager
def stores_at(url: str, threads: int = 1) -> Iterator[PostgresStores]:
    with closing(make_stores(Settings(database_url=SecretStr(url)), Clock(), threads=threads)) as stores:
        assert isinstance(stores, PostgresStores)
        yield stores


@asynccontextmanager
async def memory(url: str, user_id: str = "ada") -> AsyncIterator[PostgresStore]:
    with stores_at(url, threads=4) as stores:
        store = await stores.open(user_id, OPTIONS)
        try:
            yield store
        finally:
            await store.close()


def turn(text: str) -> Turn:
    return Turn(text, "I see.", START)


def refusal(url: str) -> str:
    """Return the line with which a command ends."""
    done = run_here("stats", env={"MEMORYOS_DATABASE_URL": url})
    assert done.returncode in (1, 2), done.stdout
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert PASSWORD not in line
    return line


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


@pytest.fixture(scope="module")
def with_password() -> str:
    """The address, with a wrong password, of a database that demands one."""
    name = make_role("errors_password", f"LOGIN PASSWORD '{PASSWORD}'")
    rules = Path(server().data) / "pg_hba.conf"
    rules.write_text(f"host all {name} 127.0.0.1/32 scram-sha-256\n{rules.read_text(encoding='utf-8')}", "utf-8")
    run_sql("postgres", "SELECT pg_reload_conf()")
    server().make("errors_password")
    return f"postgresql://{name}:PASSWORD@127.0.0.1:{server().port}/errors_password"


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        (f"mysql://ada:{PASSWORD}@host/memory", "must begin with postgresql://"),
        (f"postgresql://ada:{PASSWORD}/x@host/memory", "write @ as %40, / as %2F"),
        (f"postgresql://ada:{PASSWORD}@[::1/memory", "is not a valid address"),
        (f"postgresql://ada:{PASSWORD}@host/memory?pasword={PASSWORD}", "is not a valid address"),
        (f"postgresql://ada:%zz{PASSWORD}@host/memory", "is not a valid address"),
        (f"postgresql://ada:{PASSWORD}@127.0.0.1:x/memory", "is not a valid address"),
        (f"postgresql://ada:{PASSWORD}", "is not a valid address"),
        (f"postgresql://ada:{PASSWORD}@127.0.0.1/memory?sslmode={PASSWORD}", "has an invalid option in its address"),
        (f"postgresql://ada:{PASSWORD}@nobody.invalid/memory", "nobody.invalid/memory cannot be reached"),
    ],
)
def test_a_malformed_or_unknown_address_is_refused(url: str, problem: str) -> None:
    assert problem in refusal(url)


def test_a_server_that_does_not_run_is_named() -> None:
    port = closed_port()
    line = refusal(f"postgresql://ada:{PASSWORD}@127.0.0.1:{port}/memory")
    assert f"the database 127.0.0.1:{port}/memory cannot be reached; check that it runs" in line


def test_a_database_that_does_not_exist_is_named() -> None:
    assert "/nowhere does not exist; create it with `createdb`" in refusal(server().url("nowhere"))


def test_an_account_that_does_not_exist_is_rejected() -> None:
    server().make("errors_account")
    assert "rejected the account or its password" in refusal(server().url("errors_account", "nobody"))


def test_a_wrong_password_is_rejected_and_not_shown(with_password: str) -> None:
    wrong = with_password.replace("PASSWORD", f"{PASSWORD}x")
    assert "rejected the account or its password; correct database_url" in refusal(wrong)
    with stores_at(with_password.replace("PASSWORD", PASSWORD)) as stores, pytest.raises(StorageError, match="rights"):
        assert stores.engine  # the password is right; only the right to make tables is missing


def test_a_demand_for_tls_is_named(with_password: str) -> None:
    assert "does not accept the TLS connection that sslmode" in refusal(f"{with_password}?sslmode=require")


def test_an_account_without_rights_is_told_which_to_get() -> None:
    server().make("errors_rights")
    url = server().url("errors_rights", make_role("errors_stranger"))
    message = "does not allow this account to create or use the tables; let the owner of the database run"
    assert message in refusal(url)
    assert "docs/scaling.md" in refusal(url)
    with stores_at(server().url("errors_rights")) as stores:
        assert stores.engine.startswith("PostgreSQL ")
    assert message in refusal(url)


def test_doctor_shows_a_failed_database_without_a_data_folder(data: Path) -> None:
    url = f"postgresql://ada:{PASSWORD}@127.0.0.1:{closed_port()}/memory"
    environment = {"MEMORYOS_DATABASE_URL": url, "MEMORYOS_EMBEDDING_MODEL_NAME": "none"}
    done = run_here("doctor", "--data-storage-path", data, env=environment)
    assert done.returncode == 1
    assert "fail  memory" in done.stdout
    assert "cannot be reached" in done.stdout
    assert "not needed, because memories are stored in a database" in done.stdout
    assert not data.exists()
    assert PASSWORD not in done.stdout + done.stderr


async def test_a_server_notices_that_a_newer_one_has_changed_the_tables() -> None:
    url = server().make("errors_upgraded")
    with stores_at(url, threads=2) as stores:
        store = await stores.open("ada", OPTIONS)
        await store.add_pages([turn("one")])
        run_sql("errors_upgraded", "UPDATE memoryos.schema_version SET version = 99", APP)
        with pytest.raises(NewerStoreError, match="has schema version 99, but this program supports only"):
            await stores.open("ada", OPTIONS)
        run_sql("errors_upgraded", "ALTER TABLE memoryos.pages RENAME COLUMN session TO sitting", APP)
        with pytest.raises(StorageError, match="has tables of another version of this program"):
            await store.pages(PageQuery())
        await store.close()


def test_a_newer_schema_is_refused_and_left_as_it_is() -> None:
    url = server().make("errors_newer")
    with stores_at(url) as stores:
        assert stores.engine
    run_sql("errors_newer", "UPDATE memoryos.schema_version SET version = 99", APP)
    with stores_at(url) as stores, pytest.raises(NewerStoreError, match=r"version 99, but .* Upgrade"):
        assert stores.engine
    assert run_sql("errors_newer", "SELECT version FROM memoryos.schema_version") == [(99,)]


def test_an_older_schema_is_migrated_by_its_owner_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    url = server().make("errors_older")
    with stores_at(url) as stores:
        stores.tokens.add("ada", {Scope.READ})
    user = make_role("errors_user")
    for grant in ("USAGE ON SCHEMA memoryos", "SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA memoryos"):
        run_sql("errors_older", f"GRANT {grant} TO {user}")
    newer = (*schema.MIGRATIONS, ["CREATE TABLE extra (user_no integer)"])
    monkeypatch.setattr(schema, "MIGRATIONS", newer)
    monkeypatch.setattr(schema, "CURRENT_VERSION", len(newer))
    with stores_at(server().url("errors_older", user)) as stores, pytest.raises(StorageError, match="let the owner"):
        assert stores.engine
    with stores_at(url) as stores:
        assert len(stores.tokens.entries()) == 1
    assert run_sql("errors_older", "SELECT version FROM memoryos.schema_version") == [(len(newer),)]
    with stores_at(server().url("errors_older", user)) as stores:
        assert len(stores.tokens.entries()) == 1


async def test_a_read_only_database_answers_but_stores_nothing() -> None:
    url = server().make("errors_replica")
    run_sql("postgres", "ALTER DATABASE errors_replica SET default_transaction_read_only = on")
    with stores_at(url) as stores, pytest.raises(StorageError, match="read-only, and its tables are missing"):
        assert stores.engine
    run_sql("postgres", "ALTER DATABASE errors_replica RESET default_transaction_read_only")
    async with memory(url) as store:
        await store.add_pages([turn("I row in Lisbon.")])
    run_sql("postgres", "ALTER DATABASE errors_replica SET default_transaction_read_only = on")
    settings = Settings(database_url=SecretStr(url), user_id="ada", **NO_MODEL)
    async with MemoryService(settings) as service, service.user("ada") as engine:
        assert "Lisbon" in str(await engine.retrieve("Where do I row?"))
        with pytest.raises(StorageError, match="is a read-only replica"):
            await engine.add("I also swim.", "Nice.")
        assert "read-only replica" in str((await engine.stats()).only_reads_because)
    environment = {"MEMORYOS_DATABASE_URL": url, "MEMORYOS_EMBEDDING_MODEL_NAME": "none"}
    assert run_here("doctor", "--user-id", "ada", env=environment).returncode == 0
    exported = run_here("export", "--user-id", "ada", env=environment)
    assert "I row in Lisbon." in exported.stdout
    added = run_here("token", "add", "ada", env=environment)
    assert "is a read-only replica; set database_url to the primary server" in added.stderr


@pytest.mark.campaign
async def test_a_promoted_replica_is_written_without_a_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "LOOK_EVERY_S", 0.0)
    with closing(PostgresServer()) as primary:
        url = primary.make("memories")
        async with memory(url) as store:
            await store.add_pages([turn("I row in Lisbon.")])
        with closing(PostgresServer(primary=primary)) as replica:
            settings = Settings(database_url=SecretStr(replica.url("memories")), **NO_MODEL)
            async with MemoryService(settings) as service:
                async with service.user("ada") as engine:
                    with pytest.raises(StorageError, match="is a read-only replica"):
                        await engine.add("I also swim.", "Nice.")
                with pytest.raises(StorageError, match="contains no memory of this user"):
                    async with service.user("bob"):
                        pass
                primary.kill()
                replica.promote()
                async with service.user("ada") as engine:
                    await engine.add("I also swim.", "Nice.")  # nothing else has looked at the database since
                    assert (await engine.stats()).only_reads_because is None
                async with service.user("ada") as reopened, service.user("bob") as bob:
                    assert reopened is not engine  # this one also does the background work
                    await reopened.add("I fly.", "Nice.")
                    await bob.add("I ski.", "Nice.")
                    assert [page.user_input for page in await reopened._store.pages(PageQuery())] == [
                        "I row in Lisbon.",
                        "I also swim.",
                        "I fly.",
                    ]


async def test_a_read_only_database_is_not_asked_at_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "LOOK_EVERY_S", 3600.0)
    url = server().make("errors_asked")
    async with memory(url) as store:
        await store.add_pages([turn("one")])
    run_sql("postgres", "ALTER DATABASE errors_asked SET default_transaction_read_only = on")
    async with memory(url) as store:
        run_sql("postgres", "ALTER DATABASE errors_asked RESET default_transaction_read_only")
        end_connections("errors_asked")
        with pytest.raises(StorageError, match="is a read-only replica"):
            await store.add_pages([turn("two")])
        assert store.is_in_place()
        database_of_store(store)._deployment._look_at = 0.0
        await store.add_pages([turn("three")])
        assert not store.is_in_place()
        assert [page.user_input for page in await store.pages(PageQuery())] == ["one", "three"]


async def test_a_database_that_becomes_read_only_says_so() -> None:
    url = server().make("errors_demoted")
    async with memory(url) as store:
        await store.add_pages([turn("one")])
        run_sql("postgres", "ALTER DATABASE errors_demoted SET default_transaction_read_only = on")
        end_connections("errors_demoted")
        with pytest.raises(StorageError, match="is a read-only replica; set database_url to the primary"):
            await store.add_pages([turn("two")])
        run_sql("postgres", "ALTER DATABASE errors_demoted RESET default_transaction_read_only")
        end_connections("errors_demoted")
        await store.add_pages([turn("three")])
        assert [page.user_input for page in await store.pages(PageQuery())] == ["one", "three"]


def test_a_missing_extra_is_named() -> None:
    program = "import sys; sys.modules['psycopg'] = None; from memoryos_mcp.__main__ import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "stats"],
        env=clean_environment({"MEMORYOS_DATABASE_URL": f"postgresql://ada:{PASSWORD}@127.0.0.1/x"}),
        capture_output=True,
        check=False,
        encoding="utf-8",
        timeout=60,
    )
    assert done.returncode == 1
    fix = "run `pip install 'memoryos-mcp-server[postgres]'`"
    assert done.stderr == f"memoryos-mcp: database_url needs the extra postgres; {fix}\n"


def end_connections(database: str) -> None:
    """End all connections to a database, as the restart of its server does."""
    run_sql(
        "postgres",
        f"SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '{database}'",  # noqa: S608
    )


@pytest.mark.campaign
async def test_calls_go_on_after_all_connections_were_lost(caplog: pytest.LogCaptureFixture) -> None:
    url = server().make("errors_restart")
    with stores_at(url, threads=4) as stores:
        token = stores.tokens.add("ada", {Scope.READ})
        store = await stores.open("ada", OPTIONS)
        await asyncio.gather(*(store.add_pages([turn(f"page {number}")]) for number in range(4)))
        await asyncio.gather(*(store.counts() for _ in range(8)))  # several connections are open
        for number in range(3):
            end_connections("errors_restart")
            await asyncio.gather(*(store.counts() for _ in range(4)))
            end_connections("errors_restart")
            await store.add_pages([turn(f"later {number}")])
            end_connections("errors_restart")
            assert stores.tokens.find(token) is not None
            end_connections("errors_restart")
            assert stores.footprint("ada") is not None
        assert [page.seq for page in await store.pages(PageQuery())] == list(range(1, 8))
        await store.close()
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


async def test_a_change_is_repeated_once_if_its_connection_is_lost() -> None:
    url = server().make("errors_lost")
    async with memory(url) as store:
        await store.add_pages([turn("one")])
        calls = []

        def change(connection: PostgresConnection) -> None:
            calls.append(connection.native("SELECT pg_backend_pid()").get)
            connection.native("INSERT INTO meta (key, value) VALUES ('test', 'x')")
            if len(calls) <= lost:
                run_sql("postgres", f"SELECT pg_terminate_backend({calls[-1]}, 10000)")
            connection.native("SELECT 1").fetchall()

        lost = 1
        database = database_of_store(store)
        await database.write(change)
        assert len(calls) == len(set(calls)) == 2
        assert await database.rows("SELECT count(*) FROM meta WHERE key = 'test'") == [(1,)]
        await database.write(lambda connection: connection.native("DELETE FROM meta WHERE key = 'test'"))
        calls.clear()
        lost = 2
        with pytest.raises(StorageError, match="/errors_lost cannot be reached; check that it runs"):
            await database.write(change)
        assert len(calls) == 2
        assert await database.rows("SELECT count(*) FROM meta WHERE key = 'test'") == [(0,)]


def database_of_store(store: PostgresStore) -> PostgresDatabase:
    database = store._database
    assert isinstance(database, PostgresDatabase)
    return database


def run_while_waiting(
    one: psycopg.Connection[Any], other: psycopg.Connection[Any], work: Callable[[psycopg.Connection[Any]], None]
) -> None:
    """Do the work on one connection, and commit it once the same work on the other waits for it."""
    other.autocommit = True
    with one, other, ThreadPoolExecutor(1) as thread:
        one.execute("SELECT 1")  # begins a transaction
        work(one)
        waiting = thread.submit(work, other)
        sql = f"SELECT 1 FROM pg_stat_activity WHERE pid = {other.info.backend_pid} AND wait_event_type = 'Lock'"  # noqa: S608
        while not run_sql("postgres", sql):
            assert not waiting.done()
            time.sleep(0.005)
        one.commit()
        waiting.result(60)


def test_two_processes_may_create_the_tables_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one has seen that there are none, and waits for the first one."""
    # PostgreSQL refreshes its caches after very many changes, which the tables of all migrations are.
    monkeypatch.setattr(schema, "MIGRATIONS", (["CREATE TABLE users (user_id text)"],))
    monkeypatch.setattr(schema, "CURRENT_VERSION", 1)
    one, other = (psycopg.connect(server().make("errors_made_twice")) for _ in range(2))
    assert schema.version(other) == 0
    other.rollback()
    run_while_waiting(one, other, schema.migrate)
    assert run_sql("errors_made_twice", "SELECT version FROM memoryos.schema_version") == [(1,)]


def test_two_databases_may_create_the_role_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock of one database does not hold in another, but its roles do."""
    monkeypatch.setattr(schema, "APP_ROLE", "errors_race")
    urls = [server().make(f"errors_race_{number}") for number in range(2)]
    for url in urls:
        with stores_at(url) as stores:
            assert stores.engine
    one, other = (psycopg.connect(server().url(f"errors_race_{number}", OWNER)) for number in range(2))
    run_while_waiting(one, other, schema.grant_app_role)
    rights = "SELECT has_table_privilege('errors_race', 'memoryos.pages', 'INSERT')"
    assert [run_sql(f"errors_race_{number}", rights) for number in range(2)] == [[(True,)]] * 2


def test_an_account_that_bypasses_row_security_is_refused() -> None:
    with stores_at(server().make("errors_bypass")) as stores:
        assert stores.engine
    role = make_role("errors_bypass", "LOGIN BYPASSRLS")
    run_sql("postgres", f"GRANT {APP} TO {role}")
    assert "bypasses row-level security" in refusal(server().url("errors_bypass", role))


@pytest.mark.parametrize("role", [APP, OWNER])
async def test_no_query_shows_or_changes_another_users_row(role: str) -> None:
    name = f"errors_rows_{role}"
    server().make(name)
    url = server().url(name, role)
    async with memory(url, "ada") as ada, memory(url, "bob") as bob:
        for store, text in ((ada, "I row."), (bob, "I fly.")):
            await store.add_pages([turn(text), turn("again")])
        (number,) = (await database_of_store(bob).rows("SELECT user_no FROM counters"))[0]

        def wrong(connection: PostgresConnection) -> None:
            """Run statements that forget the user, or name another one."""
            user = "current_user, (SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user)"
            account, is_unrestricted = connection.native(f"SELECT {user}").get
            assert (account == schema.APP_ROLE) == (role == OWNER)
            assert not is_unrestricted
            for (table,) in connection.native(TABLES_OF_USERS, schema.SCHEMA).fetchall():
                found = connection.native(f"SELECT count(*) FROM {table} WHERE user_no = $1", number).get  # noqa: S608
                assert (table, found) == (table, 0)
            assert connection.native("SELECT DISTINCT user_no FROM pages").get != number
            assert connection.native("SELECT user_input FROM pages ORDER BY seq").get == ["I row.", "again"]
            connection.native("UPDATE pages SET user_input = 'gone' WHERE user_no = $1", number)
            connection.native("DELETE FROM new_postings WHERE user_no = $1", number)
            connection.native("DELETE FROM new_postings")
            connection.native("SELECT index_postings()")

        await database_of_store(ada).write(wrong)
        assert [page.user_input for page in await bob.pages(PageQuery())] == ["I fly.", "again"]
        assert await database_of_store(bob).rows("SELECT count(*) > 0 FROM postings") == [(True,)]
        with pytest.raises(StorageError, match="does not allow"):
            await database_of_store(ada).write(
                lambda connection: connection.native(
                    "INSERT INTO meta (key, value, user_no) VALUES ('x', 'x', $1)", number
                )
            )


TABLES_OF_USERS = (
    "SELECT table_name FROM information_schema.columns WHERE table_schema = $1 AND column_name = 'user_no' "
    "AND table_name <> 'users' ORDER BY 1"
)


def test_every_table_of_memories_is_secured_by_row() -> None:
    with stores_at(server().make("errors_tables")) as stores:
        assert stores.engine
    found = dict(
        run_sql(
            "errors_tables",
            "SELECT relname, relrowsecurity AND relforcerowsecurity FROM pg_class "
            "WHERE relkind = 'r' AND relnamespace = 'memoryos'::regnamespace",
        )
    )
    assert {name for name, is_secured in found.items() if not is_secured} == {
        "users",
        "tokens",
        "sign_ins",
        "rates",
        "schema_version",
    }


def test_a_statement_outside_of_a_users_transaction_fails() -> None:
    with stores_at(server().make("errors_nobody")) as stores:
        assert stores.engine
    with pytest.raises(psycopg.errors.UndefinedObject, match=r"memoryos\.user_no"):
        run_sql("errors_nobody", "SELECT * FROM memoryos.pages", APP)
