"""The word indexes of both databases give the same pages, scores and counts."""

import random
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path

import pytest

from memoryos_mcp.model.forgotten import ForgetPlan
from memoryos_mcp.model.pages import Turn
from memoryos_mcp.storage.sql.store import SqlStore
from memoryos_mcp.storage.values import StoreOptions
from memoryos_mcp.text.terms import query_words
from tests.fakes import START, Clock
from tests.postgres import use_postgres
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


async def filled(folder: Path, stack: AsyncExitStack) -> SqlStore:
    """Return a store with pages of random parts of the texts; the same for each folder."""
    opened = await open_one(folder, "ada", OPTIONS, clock=Clock())
    stack.push_async_callback(opened.close)
    chance = random.Random(7)  # noqa: S311 - not for cryptography
    words = " ".join(TEXTS).split()
    said = [*TEXTS, *(" ".join(chance.choices(words, k=chance.randrange(1, 40))) for _ in range(150))]
    turns = [Turn(text, chance.choice(said) if text else "Hello Hal", START) for text in said]
    await opened.store.add_pages(turns)
    return opened.store


async def found(store: SqlStore, query: str) -> list[object]:
    words = query_words(query)
    names = [word.lower() for word in words]
    search = await store.search_words(words, names, 40)
    seqs = sorted(hit.seq for hit in search.hits)
    matches = await store.word_matches(search.stats.counts, seqs)
    scores = [(hit.seq, round(hit.score, 12)) for hit in search.hits]
    return [scores, search.stats, matches.words, matches.user.tolist(), matches.agent.tolist()]


@pytest.mark.parametrize("budget", [10_000, 20])
async def test_both_word_indexes_find_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, budget: int) -> None:
    monkeypatch.setattr("memoryos_mcp.storage.sql.lexical.POSTING_BUDGET", budget)
    monkeypatch.setattr("memoryos_mcp.storage.sql.term_stats.REMEMBERED_FROM", 5)
    async with AsyncExitStack() as stack:
        files = await filled(tmp_path / "files", stack)
        stack.enter_context(use_postgres())
        database = await filled(tmp_path / "database", stack)
        for query in QUERIES:
            assert await found(files, query) == await found(database, query)
        for store in (files, database):
            plan = ForgetPlan(runs=((1, 4), (11, 11), (40, 90)))
            await store.user_data.plan_forgetting(plan, "f_1", START + timedelta(hours=1))
            assert await store.user_data.forget("f_1")
            await store.add_pages([Turn("Bye bye tea, Hal", "Don't run at 10:30", START)])
        for query in QUERIES:
            assert await found(files, query) == await found(database, query)
