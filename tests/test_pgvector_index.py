"""The vector index ``pgvector``: a table of vectors in PostgreSQL."""

import itertools
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from pydantic import SecretStr

from benchmarks.postgres import APP, OWNER
from memoryos_mcp.config import Settings
from memoryos_mcp.consolidation.forgetting import Selection
from memoryos_mcp.engine.engine import MemoryEngine
from memoryos_mcp.errors import ConfigError, StorageError
from memoryos_mcp.model.pages import utc_now
from memoryos_mcp.retrieval.index.choice import choose_index
from memoryos_mcp.retrieval.index.conformance import DIMENSION, RULES, Make
from memoryos_mcp.storage.postgres import window_vectors
from memoryos_mcp.storage.postgres.database import SET_USER, PostgresDatabase
from memoryos_mcp.storage.postgres.schema import SCHEMA
from memoryos_mcp.storage.postgres.stores import PostgresStores
from memoryos_mcp.storage.postgres.window_vectors import WindowVectors
from memoryos_mcp.storage.sqlite.words import tokenizer
from memoryos_mcp.storage.values import PageVectors
from tests.commands import run_here
from tests.postgres import server, vector_server
from tests.test_vector_indexes import until_settled

pytestmark = pytest.mark.campaign

Rule = Callable[[Make], Awaitable[None]]
_numbers = itertools.count()
# Pages with two vectors each, which the rules replace.
_PAGES = (
    "INSERT INTO spaces (space, identity, model) VALUES (1, 'tiny', '{}')",
    "INSERT INTO pages (seq, page_id, session, tier, occurred_us, utc_offset_s, added_us, user_input, agent_response, "
    "checksum) SELECT n, 'p_' || n, 1, 'mid_term', 0, 0, 0, '', '', 0 FROM generate_series(1, 500) AS n",
    "INSERT INTO page_vectors (space, seq, part, start_char, end_char, vector) "
    "SELECT 1, n, part, 0, 0, '' FROM generate_series(1, 500) AS n, generate_series(0, 1) AS part",
)


@pytest.fixture
def url() -> str:
    """The address of a new database with the extension, for an account that owns the database."""
    name = f"vectors_{next(_numbers)}"
    address = vector_server().make(name)
    with psycopg.connect(vector_server().url(name, OWNER), autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
    return address


@pytest.fixture
def stores(url: str) -> Iterator[PostgresStores]:
    with closing(PostgresStores(url, utc_now, threads=4, tokenize=tokenizer())) as opened:
        yield opened


class CountedVectors(WindowVectors):
    """An index whose size is read after each change, as `PageIndex` does."""

    async def replace(self, pages: Any, vectors: PageVectors) -> None:
        await super().replace(pages, vectors)
        await self.size()


def make_for(stores: PostgresStores) -> Callable[[str], WindowVectors]:
    known: dict[str, Any] = {}

    def make(user_id: str) -> WindowVectors:
        if user_id not in known:
            deployment = stores._deployment()
            number = stores._user_no(user_id, creates=True)
            with deployment.pool.connection() as raw, raw.transaction():
                raw.execute(SET_USER, (str(number),))
                for statement in _PAGES:
                    raw.execute(statement)
            known[user_id] = PostgresDatabase(deployment, number or 0, only_reads=False)
        return CountedVectors(known[user_id], 1, DIMENSION)

    return make


@pytest.mark.parametrize("rule", RULES)
async def test_exact_search_keeps_the_rules(rule: Rule, stores: PostgresStores) -> None:
    await rule(make_for(stores))


@pytest.mark.parametrize("rule", RULES)
async def test_search_in_an_index_keeps_the_rules(
    rule: Rule, stores: PostgresStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window_vectors, "EXACT_WINDOWS", 0)
    make, settled = make_for(stores), set[str]()

    def indexed(user_id: str) -> WindowVectors:
        index = make(user_id)
        if user_id not in settled:
            settled.add(user_id)
            stores.prepare_vector_index()
            memory = window_vectors.LargeMemory(index._database.user_no, 1, DIMENSION)
            with stores._deployment().connect() as raw:
                assert window_vectors.create_index(raw, "here", "public", memory)
        return index

    await rule(indexed)


async def test_a_large_memory_gets_an_index_and_a_small_one_is_searched_exactly(
    stores: PostgresStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window_vectors, "EXACT_WINDOWS", 100)
    make = make_for(stores)
    rows = np.random.default_rng(1).normal(size=(1_000, DIMENSION)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    large, small = make("large"), make("small")
    seqs = np.repeat(np.arange(1, 501), 2)
    await large.replace(range(1, 501), PageVectors(seqs, rows))
    await small.replace([1, 2], PageVectors(seqs[:4], rows[:4]))
    assert small.is_settled
    assert not large.is_settled
    await large.settle()
    assert large.is_settled
    assert indexes(stores) == ["window_vectors_hnsw_1_1"]
    assert "window_vectors_hnsw_1_1" in plan_of(large, stores)
    assert "hnsw" not in plan_of(small, stores)
    for index, expected in ((large, 300), (small, 4)):
        hits = await index.search(rows[0], 300)
        assert len(hits.seqs) == expected
        assert (int(hits.seqs[0]), int(hits.parts[0])) == (1, 0)


def plan_of(index: WindowVectors, stores: PostgresStores) -> str:
    """Return how a search is done if sorting all vectors is to be avoided."""
    is_exact = not index._has_index or index._size <= window_vectors.EXACT_WINDOWS
    query = str([1.0] * DIMENSION)
    with stores._deployment().pool.connection() as raw, raw.transaction():
        raw.execute(SET_USER, (str(index._database.user_no),))
        for way in ("sort", "seqscan", "bitmapscan"):
            raw.execute(f"SET LOCAL enable_{way} = off")
        sql = f"EXPLAIN {index._search_sql('public', is_exact=is_exact)}"
        return "\n".join(line for (line,) in raw.execute(sql, (1, query, 10)))


def indexes(stores: PostgresStores) -> list[str]:
    sql = "SELECT indexname FROM pg_indexes WHERE tablename = 'window_vectors' AND indexname LIKE '%hnsw%'"
    with stores._deployment().connect() as raw:
        return [name for (name,) in raw.execute(sql)]


def windows(url: str) -> int:
    """Return the number of rows of the table, for a superuser."""
    with psycopg.connect(url.replace(f"//{APP}@", f"//{OWNER}@"), autocommit=True) as connection:
        row = connection.execute(f"SELECT count(*) FROM {SCHEMA}.window_vectors").fetchone()  # noqa: S608 - constant
        assert row is not None
        return int(row[0])


async def test_a_memory_is_searched_kept_and_forgotten(url: str, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings: dict[str, Any] = {"data_storage_path": data, "database_url": SecretStr(url), "vector_index": "pgvector"}
    async with MemoryEngine.open("ada", **settings) as engine:
        receipt = await engine.add("My cat is called Miu.", "Noted.")
        await engine.add("The car needs new tyres.", "Noted.")
        await until_settled(engine)
        assert (await engine.retrieve("What is my pet's name?")).is_semantic
    assert windows(url) == 2
    cleared: list[None] = []
    clear = WindowVectors.clear

    async def counted(self: WindowVectors) -> None:
        cleared.append(None)
        await clear(self)

    monkeypatch.setattr(WindowVectors, "clear", counted)
    async with MemoryEngine.open("ada", **settings) as engine:
        await until_settled(engine)
        recall = await engine.retrieve("What is my pet's name?")
        assert recall.is_semantic
        await engine.forget((await engine.plan_forgetting(Selection(ids=[receipt.page_id]))).handle)
        assert windows(url) == 1
    async with MemoryEngine.open("ada", **{**settings, "embedding_model_name": "none"}) as engine:
        assert (await engine.forget((await engine.plan_forgetting(Selection(everything=True))).handle)).is_scrubbed
        assert windows(url) == 0
    async with MemoryEngine.open("ada", **settings) as engine:
        await until_settled(engine)
    assert not cleared


def test_pgvector_needs_a_database() -> None:
    with pytest.raises(ConfigError, match="pgvector needs memories in PostgreSQL; set database_url, or set"):
        choose_index(Settings(vector_index="pgvector"))


def refusal(url: str) -> str:
    with (
        closing(PostgresStores(url, utc_now, threads=1, tokenize=tokenizer())) as opened,
        pytest.raises(StorageError) as raised,
    ):
        opened.prepare_vector_index()
    message = str(raised.value)
    assert "\n" not in message
    return message


def test_a_server_without_the_extension_is_one_line() -> None:
    message = refusal(server().make("no_vector"))
    assert "does not have the extension vector" in message
    assert message.endswith("or set vector_index to faiss")


def test_a_database_without_the_extension_is_one_line() -> None:
    fix = "let a superuser run `CREATE EXTENSION vector` in it, or set vector_index to faiss"
    assert refusal(vector_server().make("no_extension")).endswith(f"does not have the extension vector; {fix}")


def test_an_old_extension_is_one_line(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_vectors, "NEEDED_VERSION", (99, 0))
    assert "of the extension vector; install 99.0 or later" in refusal(url)


def test_the_owner_prepares_the_table_for_an_account_without_rights(data: Path) -> None:
    name = "least_rights"
    vector_server().make(name)
    owner = vector_server().url(name, OWNER)
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} OWNER TO {OWNER}")
        connection.execute("CREATE ROLE tables_owner LOGIN")
        connection.execute("CREATE EXTENSION vector")
        connection.execute(f"GRANT CREATE ON DATABASE {name} TO tables_owner")
    environment = {"MEMORYOS_VECTOR_INDEX": "faiss", "MEMORYOS_EMBEDDING_MODEL_NAME": "none"}
    tables_owner = vector_server().url(name, "tables_owner")
    run_here("doctor", "--database-url", tables_owner, env=environment)
    with psycopg.connect(tables_owner, autocommit=True) as connection:
        connection.execute(f"GRANT USAGE ON SCHEMA {SCHEMA} TO {APP}")
        rights = "SELECT, INSERT, UPDATE, DELETE"
        connection.execute(f"GRANT {rights} ON ALL TABLES IN SCHEMA {SCHEMA} TO {APP}")
        connection.execute(f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA {SCHEMA} TO {APP}")
        connection.execute(f"ALTER DEFAULT PRIVILEGES IN SCHEMA {SCHEMA} GRANT {rights} ON TABLES TO {APP}")
    assert "let the owner of the database run `memoryos-mcp doctor` once" in refusal(vector_server().url(name))
    environment["MEMORYOS_VECTOR_INDEX"] = "pgvector"
    done = run_here("doctor", "--database-url", tables_owner, env=environment)
    assert "pgvector can be used" in done.stdout, done.stdout
    done = run_here("doctor", "--database-url", vector_server().url(name), env=environment)
    assert "pgvector can be used" in done.stdout, done.stdout


def test_a_superuser_prepares_the_table_for_the_role_of_the_servers() -> None:
    name = "superuser"
    vector_server().make(name)
    with closing(PostgresStores(vector_server().url(name, OWNER), utc_now, threads=1, tokenize=tokenizer())) as opened:
        opened.prepare_vector_index()  # creates the extension too
        with opened._deployment().pool.connection() as raw, raw.transaction():
            raw.execute(SET_USER, ("1",))
            assert raw.execute("SELECT count(*) FROM window_vectors").fetchone() == (0,)
