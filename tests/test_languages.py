"""Keyword search in seven languages: a question finds its page by other inflections of the page's words.

Each file in ``tests/languages`` has the ``pages`` of one language in order, both sides of each, and ``questions``, each
with the number of the one page that answers it.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from memoryos_mcp.config import Settings
from memoryos_mcp.engine.engine import MemoryEngine
from memoryos_mcp.engine.service import MemoryService
from tests.fakes import Clock

LIMIT_S = 60
MISSES_AT_MOST = 0.1
LANGUAGES = ("arabic", "chinese", "english", "german", "japanese", "korean", "russian")


@dataclass(frozen=True, slots=True)
class Corpus:
    """Dialogue in one language, and questions about it.

    Attributes:
        pages: The user's and the assistant's message of each page.
        questions: The questions, each with the position of its answer in ``pages``.
    """

    pages: Sequence[tuple[str, str]]
    questions: Sequence[tuple[str, int]]


def corpus(language: str) -> Corpus:
    text = (Path(__file__).parent / "languages" / f"{language}.json").read_text(encoding="utf-8")
    read = json.loads(text)
    return Corpus(
        [(user, agent) for user, agent in read["pages"]], [(query, page) for query, page in read["questions"]]
    )


@asynccontextmanager
async def memory_of(folder: Path, pages: Sequence[tuple[str, str]]) -> AsyncIterator[MemoryEngine]:
    """Open a memory with the pages, one per hour, and without an embedder."""
    settings = Settings(
        data_storage_path=folder, embedding_model_name="none", short_term_capacity=1, consolidation_idle_s=0.0
    )
    clock = Clock()
    async with MemoryService(settings, clock=clock) as service, service.user("ada") as engine:
        for user_input, agent_response in pages:
            await engine.add(user_input, agent_response)
            clock.move(hours=1)
        while (await engine.stats()).counts.backlog:  # noqa: ASYNC110 - another task files the pages
            await asyncio.sleep(0.01)
        yield engine


async def missed(engine: MemoryEngine, questions: Sequence[tuple[str, str]]) -> list[str]:
    """Return the questions whose page, given by the user's message, is not among the first five."""
    found = {query: await engine.retrieve(query, max_results=5) for query, _ in questions}
    return [query for query, said in questions if said not in {hit.page.user_input for hit in found[query].pages}]


def test_every_corpus_has_enough_different_pages_and_questions() -> None:
    for language in LANGUAGES:
        read = corpus(language)
        assert len({user for user, _ in read.pages}) == len(read.pages) >= 40
        assert len({page for _, page in read.questions}) == len(read.questions) == 20


@pytest.mark.parametrize("language", LANGUAGES)
async def test_keyword_search_finds_inflected_words(language: str, tmp_path: Path) -> None:
    read = corpus(language)
    questions = [(query, read.pages[page][0]) for query, page in read.questions]
    async with asyncio.timeout(LIMIT_S), memory_of(tmp_path, read.pages) as engine:
        misses = await missed(engine, questions)
    assert len(misses) <= MISSES_AT_MOST * len(questions), misses


async def test_keyword_search_works_in_a_multilingual_memory(tmp_path: Path) -> None:
    read = [corpus(language) for language in LANGUAGES]
    pages = [page for each in read for page in each.pages]
    questions = [(query, each.pages[page][0]) for each in read for query, page in each.questions]
    async with asyncio.timeout(LIMIT_S), memory_of(tmp_path, pages) as engine:
        misses = await missed(engine, questions)
    assert len(misses) <= MISSES_AT_MOST * len(questions), misses
