"""What `docs/scaling.md` says about accounts, backups, TLS and the planner holds on a real server of PostgreSQL."""

import asyncio
import os
import re
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from pydantic import SecretStr

from benchmarks.postgres import OWNER, PostgresServer
from memoryos_mcp.config import Settings
from memoryos_mcp.errors import StorageError
from memoryos_mcp.model.forgotten import ForgetPlan
from memoryos_mcp.model.pages import Turn
from memoryos_mcp.storage.postgres.store import PostgresStore
from memoryos_mcp.storage.stores import make_stores
from memoryos_mcp.storage.values import PageQuery, StoreOptions
from tests.documents import ROOT
from tests.fakes import START, Clock
from tests.test_deploy import NAME, self_signed

pytestmark = pytest.mark.campaign

PAGE = (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8")
ACCOUNTS, RIGHTS, DEAD_ROWS, BACKUP = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
# The right that the page adds to those of the servers' account with version 17 and later.
MAINTAIN = "ALTER DEFAULT PRIVILEGES FOR ROLE memoryos_owner IN SCHEMA memoryos GRANT MAINTAIN ON TABLES TO memoryos"
OPTIONS = StoreOptions(assistant_id="helper", short_term_capacity=2, session_gap_s=1800, knowledge_capacity=100)
LIMIT_S = 60


@pytest.fixture(scope="module", params=["system", "newest"])
def server(request: pytest.FixtureRequest) -> Iterator[PostgresServer]:
    """A server that was prepared as the page says, of both versions that are here."""
    running = PostgresServer(has_vector=request.param == "newest")
    try:
        run_sql(running, "postgres", ACCOUNTS)
        with as_role(running, "memoryos") as stores, pytest.raises(StorageError, match="does not allow this account"):
            asyncio.run(stores.open("ada", OPTIONS))
        run_sql(running, "memoryos", RIGHTS)
        if is_newest(running):
            run_sql(running, "memoryos", MAINTAIN)
        with as_role(running, "memoryos_owner") as stores:
            assert stores.engine
        yield running
    finally:
        running.close()


def is_newest(server: PostgresServer) -> bool:
    """Return whether the server knows the right MAINTAIN."""
    ((version,),) = run_sql(server, "postgres", "SELECT CAST(current_setting('server_version_num') AS integer)")
    return bool(version >= 170_000)


def run_sql(server: PostgresServer, database: str, statements: str, role: str = OWNER) -> list[tuple[Any, ...]]:
    """Run statements one by one, and return the rows of the last one."""
    with psycopg.connect(server.url(database, role), autocommit=True) as connection:
        for statement in statements.strip().removesuffix(";").split(";\n"):
            cursor = connection.execute(sql.SQL(statement))
        return cursor.fetchall() if cursor.description else []


def as_role(server: PostgresServer, role: str, database: str = "memoryos") -> Any:
    """Return the stores of an account, which are closed at the end of a block."""
    return closing(make_stores(Settings(database_url=SecretStr(server.url(database, role))), Clock(), threads=2))


@asynccontextmanager
async def memory(server: PostgresServer, user_id: str, database: str = "memoryos") -> AsyncIterator[PostgresStore]:
    """Open a memory with the servers' account."""
    with as_role(server, "memoryos", database) as stores:
        store = await stores.open(user_id, OPTIONS)
        yield store
        await store.close()


def turns(count: int) -> list[Turn]:
    return [Turn(f"I like tea number {number}.", "Ok.", START + timedelta(minutes=number)) for number in range(count)]


def test_the_script_of_compose_makes_the_documented_accounts() -> None:
    script = (ROOT / "deploy" / "postgres.sql").read_text(encoding="utf-8")
    plain = " ".join(re.sub(r" PASSWORD :'\w+'", "", script).split())
    for statement in (ACCOUNTS + RIGHTS).split(";\n"):
        assert " ".join(statement.split()) in plain
    assert MAINTAIN in plain


async def test_the_servers_account_forgets_and_purges_with_its_rights(server: PostgresServer) -> None:
    async with memory(server, "ada") as store:
        await store.add_pages(turns(3))
        await store.user_data.plan_forgetting(ForgetPlan(runs=((1, 1),)), "f_1", START + timedelta(hours=1))
        assert await store.user_data.forget("f_1")
        assert await store.user_data.purge() == is_newest(server)
        assert await store.user_data.unpurged() == ([] if is_newest(server) else ["f_1"])
    assert run_sql(server, "memoryos", DEAD_ROWS)


async def test_a_dump_of_the_backup_account_restores_every_memory(server: PostgresServer, tmp_path: Path) -> None:
    async with memory(server, "bob") as store:
        await store.add_pages(turns(5))
        stored = await store.pages(PageQuery())
    if not run_sql(server, "postgres", "SELECT 1 FROM pg_roles WHERE rolname = 'memoryos_backup'"):
        run_sql(server, "memoryos", BACKUP)
    file = tmp_path / "memoryos.dump"
    refused = dump(server, "memoryos_owner", file)
    assert "row-level security" in refused.stderr
    done = dump(server, "memoryos_backup", file)
    assert done.returncode == 0, done.stderr
    for statement in ("UPDATE memoryos.users SET user_id = 'eve'", "DELETE FROM memoryos.pages"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            run_sql(server, "memoryos", statement, "memoryos_backup")
    run_sql(server, "postgres", ACCOUNTS[ACCOUNTS.index("CREATE DATABASE") :].replace(" memoryos ", " restored ", 1))
    run_sql(server, "postgres", "GRANT CONNECT ON DATABASE restored TO memoryos")
    back = run_program(server, "pg_restore", OWNER, "restored", file)
    assert back.returncode == 0, back.stderr
    async with memory(server, "bob", "restored") as store:
        assert await store.pages(PageQuery()) == stored
        await store.add_pages([Turn("I moved.", "Ok.", START + timedelta(days=1))])
        assert [page.seq for page in await store.pages(PageQuery())] == [1, 2, 3, 4, 5, 6]


def run_program(
    server: PostgresServer, program: str, role: str, database: str, *arguments: object
) -> subprocess.CompletedProcess[str]:
    address = ["--host=127.0.0.1", f"--port={server.port}", f"--username={role}", f"--dbname={database}"]
    command = [str(server._programs / program), *address, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, check=False, encoding="utf-8", timeout=LIMIT_S)


def dump(server: PostgresServer, role: str, file: Path) -> subprocess.CompletedProcess[str]:
    return run_program(server, "pg_dump", role, "memoryos", "--format=custom", f"--file={file}")


def test_keys_are_ready_for_a_distribution_by_user(server: PostgresServer) -> None:
    unready = (
        "SELECT indexrelid::regclass FROM pg_index JOIN pg_class ON pg_class.oid = indrelid "
        "WHERE relnamespace = 'memoryos'::regnamespace AND relkind = 'r' AND indisunique "
        "AND relname NOT IN ('users', 'tokens', 'sign_ins', 'rates', 'schema_version') AND "
        "(SELECT attname FROM pg_attribute WHERE attrelid = indrelid AND attnum = indkey[0]) <> 'user_no'"
    )
    assert run_sql(server, "memoryos", unready) == []
    between_users = (
        "SELECT conname FROM pg_constraint WHERE contype = 'f' AND connamespace = 'memoryos'::regnamespace AND "
        "(SELECT attname FROM pg_attribute WHERE attrelid = conrelid AND attnum = conkey[1]) <> 'user_no'"
    )
    assert run_sql(server, "memoryos", between_users) == []


async def test_a_lost_machine_is_noticed_on_every_connection(server: PostgresServer) -> None:
    async with memory(server, "eve") as store:
        sql = "SELECT current_setting('tcp_keepalives_idle')::integer + 4 * 3"
        ((seconds,),) = await store._database.rows(sql)
    assert seconds == 20
    assert f"notices within {seconds} seconds" in PAGE


PLANS = {
    "postings": "SELECT term, seq FROM postings WHERE term = ANY('{w1,w2,w3}')",
    "pages": "SELECT seq FROM pages WHERE seq = ANY('{1,2,3,40}')",
    "tiers": "SELECT count(*) FROM pages WHERE tier = 'backlog'",
    "page_vectors": "SELECT vector FROM page_vectors WHERE space = 1 ORDER BY seq, part",
}
# Rows of 50 users with 100 pages.
EVERY = "generate_series(1, 50) AS users (u), generate_series(1, 100) AS pages (s)"
FILLING = (
    "INSERT INTO pages (user_no, seq, page_id, session, tier, occurred_us, utc_offset_s, added_us, user_input, "
    "agent_response, checksum) SELECT u, s, s, 1, 'mid_term', s, 0, s, repeat('x', 200), '', 1 FROM EVERY",
    "INSERT INTO indexed_postings (user_no, term, seq, size, places) "
    "SELECT u, 'w' || (s * 7 + t) % 50, s, 9, '\\x00' FROM EVERY, generate_series(1, 9) AS terms (t)",
    "INSERT INTO page_vectors (user_no, space, seq, part, start_char, end_char, vector) "
    "SELECT u, 1, s, 0, 0, 1, decode(repeat('00', 384), 'hex') FROM EVERY",
)


def test_queries_use_their_indexes_before_the_first_analyze(server: PostgresServer) -> None:
    run_sql(server, "postgres", "ALTER SYSTEM SET autovacuum = off;\nSELECT pg_reload_conf()")
    database = server.make("unanalysed")
    with as_role(server, OWNER, "unanalysed") as stores:
        assert stores.engine
    with psycopg.connect(server.url("unanalysed", OWNER), autocommit=True) as connection:
        connection.execute("SET search_path TO memoryos")
        connection.execute("SET session_replication_role = replica")  # without the checks of foreign keys
        for statement in FILLING:
            connection.execute(sql.SQL(statement.replace("EVERY", EVERY)))
        assert connection.execute("SELECT count(*) FROM pg_stats WHERE schemaname = 'memoryos'").fetchone() == (0,)
        connection.execute("GRANT memoryos_app TO app")
    with psycopg.connect(database) as connection:
        connection.execute("SET ROLE memoryos_app")
        connection.execute("SET LOCAL search_path TO memoryos")
        connection.execute("SELECT set_config('memoryos.user_no', '7', true)")
        for name, query in PLANS.items():
            plan = "\n".join(line for (line,) in connection.execute(sql.SQL(f"EXPLAIN {query}")))
            assert "Seq Scan" not in plan, f"{name}\n{plan}"


def certify(server: PostgresServer, folder: Path) -> Path:
    """Give a server a certificate and its key, and return the certificate."""
    certificate = self_signed(folder)
    for name in ("fullchain.pem", "privkey.pem"):
        file = Path(server.data) / name
        file.write_bytes((folder / name).read_bytes())
        file.chmod(0o600)
        os.chown(file, Path(server.data).stat().st_uid, -1)
    return certificate


async def test_the_documented_address_for_tls_checks_the_server(tmp_path: Path) -> None:
    server = PostgresServer()
    try:
        certificate = certify(server, tmp_path)
        files = "ALTER SYSTEM SET ssl_cert_file = 'fullchain.pem';\nALTER SYSTEM SET ssl_key_file = 'privkey.pem'"
        run_sql(server, "postgres", f"{files};\nALTER SYSTEM SET ssl = on;\nSELECT pg_reload_conf()")
        url = server.make("tls").replace("@127.0.0.1", f"@{NAME}") + f"?hostaddr=127.0.0.1&sslrootcert={certificate}"
        assert "?sslmode=verify-full&sslrootcert=/path/to/ca.pem" in PAGE
        settings = Settings(database_url=SecretStr(f"{url}&sslmode=verify-full"))
        with closing(make_stores(settings, Clock(), threads=1)) as stores:
            store = await stores.open("ada", OPTIONS)
            assert isinstance(store, PostgresStore)
            sql = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
            assert await store._database.rows(sql) == [(True,)]
            await store.close()
        wrong = Settings(database_url=SecretStr(f"{url.replace(NAME, 'db.example.org')}&sslmode=verify-full"))
        with (
            closing(make_stores(wrong, Clock(), threads=1)) as stores,
            pytest.raises(StorageError, match="certificate"),
        ):
            await stores.open("ada", OPTIONS)
    finally:
        server.close()
