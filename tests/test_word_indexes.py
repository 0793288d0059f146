"""The word indexes of both databases give the same pages, scores and counts."""

import random
from contextlib import AsyncExitStack, closing
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from pydantic import SecretStr

from memoryos_mcp.config import Settings
from memoryos_mcp.model.forgotten import ForgetPlan
from memoryos_mcp.model.pages import Turn
from memoryos_mcp.storage.postgres import schema
from memoryos_mcp.storage.postgres.store import PostgresStore
from memoryos_mcp.storage.sql.store import SqlStore
from memoryos_mcp.storage.stores import make_stores
from memoryos_mcp.storage.values import Filing, StoreOptions
from memoryos_mcp.text.terms import query_words
from tests.fakes import START, Clock
from tests.postgres import server, use_postgres
from tests.stores import open_one

OPTIONS = StoreOptions(assistant_id="helper", short_term_capacity=2, session_gap_s=1800, knowledge_capacity=100)
TEXTS = (
    "Hal, don't run by the o'clock tower; I ran, running is what runners do.",
    "C++ and foo_bar in snake_case, e-mail me at half past 10:30, re-read it",
    "Ich habe gestern die Bäckerei in der Straße besucht und Brötchen gekauft.",
    "Je n'ai pas mangé aujourd'hui, l'école était fermée et l'élève est parti.",
    "東京都に住んでいます。京都が好きです。",
    "Я читаю книгу о московских улицах.",
    "한국어를 공부하고 있어요",
    "สวัสดีครับ ผมชอบกินข้าว",
    "Tea, tea, TEA! Café teas. The naïve résumé of Zoë",
    "ha ha ha, ha-ha; bye bye",
    "",
    "12,000 walnuts cost $4.50 (in 2024)",
)
QUERIES = (
    *TEXTS,
    "京",
    "都",
    "tea",
    "don't run",
    "o'clock towers",
    "walnut",
    "ha ha",
    "l'école",
    "книги",
    "ครับ",
    "nothing",
)


def turns() -> list[Turn]:
    """Return turns of random parts of the texts; the same in each call."""
    chance = random.Random(7)  # noqa: S311 - not for cryptography
    words = " ".join(TEXTS).split()
    said = [*TEXTS, *(" ".join(chance.choices(words, k=chance.randrange(1, 40))) for _ in range(168))]
    return [Turn(text, chance.choice(said) if text else "Hello Hal", START) for text in said]


async def filled(folder: Path, stack: AsyncExitStack, pages: int) -> SqlStore:
    """Return a store with the first turns."""
    opened = await open_one(folder, "ada", OPTIONS, clock=Clock())
    stack.push_async_callback(opened.close)
    await opened.store.add_pages(turns()[:pages])
    return opened.store


async def opened_at(url: str, stack: AsyncExitStack) -> PostgresStore:
    """Return a user's store in a database, opened as one process would."""
    stores = stack.enter_context(closing(make_stores(Settings(database_url=SecretStr(url)), Clock())))
    store = await stores.open("ada", OPTIONS)
    assert isinstance(store, PostgresStore)
    stack.push_async_callback(store.close)
    return store


async def found(store: SqlStore, query: str) -> list[object]:
    words = query_words(query)
    names = [word.lower() for word in words]
    search = await store.search_words(words, names, 40)
    seqs = sorted(hit.seq for hit in search.hits)
    matches = await store.word_matches(search.stats.counts, seqs)
    scores = [(hit.seq, round(hit.score, 12)) for hit in search.hits]
    return [scores, search.stats, matches.words, matches.user.tolist(), matches.agent.tolist()]


# Of 60 pages in a database, none is indexed yet; of 180 pages, all but the last 52 are.
@pytest.mark.parametrize(("budget", "pages"), [(10_000, 60), (10_000, 180), (20, 180)])
async def test_both_word_indexes_find_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, budget: int, pages: int
) -> None:
    monkeypatch.setattr("memoryos_mcp.storage.sql.lexical.POSTING_BUDGET", budget)
    monkeypatch.setattr("memoryos_mcp.storage.sql.term_stats.REMEMBERED_FROM", 5)
    async with AsyncExitStack() as stack:
        files = await filled(tmp_path / "files", stack, pages)
        stack.enter_context(use_postgres())
        database = await filled(tmp_path / "database", stack, pages)
        for query in QUERIES:
            assert await found(files, query) == await found(database, query)
        for store in (files, database):
            plan = ForgetPlan(runs=((1, 4), (11, 11), (40, 90)))
            await store.user_data.plan_forgetting(plan, "f_1", START + timedelta(hours=1))
            assert await store.user_data.forget("f_1")
            await store.add_pages([Turn("Bye bye tea, Hal", "Don't run at 10:30", START)])
        for query in QUERIES:
            assert await found(files, query) == await found(database, query)


async def no_limit(_: SqlStore) -> None:
    """Leave the short-term pages as they are."""


async def test_a_database_of_version_1_is_migrated(monkeypatch: pytest.MonkeyPatch) -> None:
    url = server().make("words_migrated")
    with psycopg.connect(url) as connection, monkeypatch.context() as patch:
        patch.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:1])
        patch.setattr(schema, "CURRENT_VERSION", 1)
        schema.migrate(connection)
    async with AsyncExitStack() as stack:
        with monkeypatch.context() as patch:  # as a process of version 1 does
            patch.setattr(schema, "CURRENT_VERSION", 1)
            # It would read columns that are newer.
            patch.setattr(SqlStore, "limit_short_term", no_limit)
            old = await opened_at(url, stack)
            await old.add_pages(turns())
            assert await old._database.rows("SELECT version FROM schema_version") == [(1,)]
            before = [await found(old, query) for query in QUERIES]
        store = await opened_at(url, stack)
        assert await store._database.rows("SELECT version FROM schema_version") == [(len(schema.MIGRATIONS),)]
        assert [await found(store, query) for query in QUERIES] == before
        # The process of version 1 still runs.
        await old.add_pages([Turn("Bye bye tea, Hal", "Don't run at 10:30", START)])
        await store.add_pages([Turn("Tea again, Hal", "Run!", START)])
        assert len(await store._database.rows("SELECT seq FROM new_postings")) == 2
        for query in QUERIES:
            assert await found(old, query) == await found(store, query)


async def test_few_pages_wait_until_they_are_indexed() -> None:
    url = server().make("words_waiting")
    waiting = "SELECT count(*) FROM new_postings"
    async with AsyncExitStack() as stack:
        store = await opened_at(url, stack)
        for number in range(70):
            await store.add_pages([Turn(f"Tea {number}", "", START, idempotency_key=str(number))])
            await store.add_pages([Turn(f"Tea {number}", "", START, idempotency_key=str(number))])
        assert await store._database.rows(waiting) == [(70 % 64,)]
        lease = await store.take_lease(30)
        assert lease is not None
        await store.commit(lease, Filing(chains=[], segments=[], organiser="test"))
        assert await store._database.rows(waiting) == [(0,)]
        assert (await store.search_words(["tea"], [], 40)).stats.counts == {"tea": 70}
        assert await store._database.rows("SELECT indexed_pages, indexed_tokens FROM counters") == [(70, 140)]
