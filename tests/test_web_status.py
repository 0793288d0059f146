"""The page with the state of a memory and of the program."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from memoryos_mcp.config import Settings
from memoryos_mcp.engine.service import MemoryService
from memoryos_mcp.errors import ClientFileError
from memoryos_mcp.model.callers import Caller, Scope
from memoryos_mcp.model.stats import UsageEntry
from memoryos_mcp.server.web import charts
from memoryos_mcp.server.web.visits import OwnMachine
from memoryos_mcp.storage.capabilities import SignIn
from memoryos_mcp.storage.values import Failure
from tests.fakes import Clock
from tests.memories import NO_MODEL, USER
from tests.web_client import Pages, open_pages

pytestmark = pytest.mark.both_stores(in_campaign=True)

LIMIT_S = 30
KEY = "sk-unguessable-1234567890"


@asynccontextmanager
async def opened(data: Path, **given: Any) -> AsyncIterator[Pages]:
    settings = Settings(data_storage_path=data, timezone="UTC", openai_api_key=SecretStr(KEY), **NO_MODEL)
    async with (
        asyncio.timeout(LIMIT_S),
        MemoryService(settings, clock=Clock()) as service,
        open_pages(service, **given) as pages,
    ):
        yield pages


def sign_in_as(pages: Pages, *scopes: Scope) -> None:
    """Change the rights of the signed-in person."""
    for known in pages.sessions._own._known.values():
        known.sign_in = SignIn(Caller(USER, frozenset(scopes)))


async def test_store_search_work_and_versions_are_shown(tmp_path: Path, store_engine: str) -> None:
    async with opened(tmp_path) as pages:
        async with pages.service.user(USER) as engine:
            await engine.add("I live in Oslo.", "I see.")
        shown = await pages.get("/status")
        assert shown.status == 200
        store = {"sqlite": "SQLite", "postgres": "PostgreSQL"}[store_engine]
        for text in (store, "1: 1 in short-term memory", "By keywords only", "Never failed.", "Python"):
            assert text in shown.text
        assert "No call in the last 30 days." in shown.text


async def test_tokens_per_day_are_a_plot_and_a_table(tmp_path: Path) -> None:
    async with opened(tmp_path) as pages:
        async with pages.service.user(USER) as engine:
            for entry in (
                UsageEntry("2026-04-08", "organise", 9, 0, 9_000_000, 0),  # 30 days ago
                UsageEntry("2026-05-06", "organise", 2, 1, 1_200, 30),
                UsageEntry("2026-05-06", "respond", 1, 0, 300, 4),
                UsageEntry("2026-05-08", "respond", 1, 0, 767, 0),
            ):
                await engine._store.add_usage(entry)
        shown = await pages.get("/status")
        assert "2026-05-06 3 1 1,500 34" in shown.text
        bars = [own for name, own in shown.elements if name == "rect"]
        assert [own["height"] for own in bars] == ["118.0", "59.0"]
        assert "2026-05-06: 1,534" in shown.text
        assert "9,000,000" not in shown.text


async def test_failures_are_shown_as_text(tmp_path: Path) -> None:
    async with opened(tmp_path) as pages:
        async with pages.service.user(USER) as engine:
            at = Clock()()
            await engine._store.note_failure("reading", Failure(3, "<img src=x onerror=alert(1)>", at))
            await engine._store.note_failure("embedding", Failure(0, "the model was busy", at))
        shown = await pages.get("/status")
        assert "3 times in a row: <img src=x onerror=alert(1)>" in shown.text
        assert "Works again. Failed at 2026-05-08" in shown.text
        assert "<img" not in shown.html


async def test_only_the_operator_sees_settings_and_paths(tmp_path: Path) -> None:
    async with opened(tmp_path) as pages:
        async with pages.service.user(USER) as engine:
            await engine.add("I live in Oslo.", "I see.")
        shown = await pages.get("/status")
        assert str(tmp_path) not in shown.html
        assert "Only the operator" in shown.text
        assert "cannot see the programs on your machine" in shown.text
        sign_in_as(pages, Scope.READ, Scope.ADMIN)
        shown = await pages.get("/status")
        assert str(tmp_path) in shown.text
        assert "data_storage_path" in shown.text
        assert KEY not in shown.html


async def test_a_reader_without_memory_sees_an_empty_one(tmp_path: Path) -> None:
    async with opened(tmp_path, only_reads=True) as pages:
        shown = await pages.get("/status")
        assert (shown.status, "Not allowed to you" in shown.text) == (200, True)
        assert not (tmp_path / "users").exists()


async def test_clients_are_shown_on_the_own_machine(tmp_path: Path) -> None:
    async with opened(tmp_path, machine=OwnMachine(lambda: [("Cursor", "added")])) as pages:
        shown = await pages.get("/status")
        assert "Cursor added" in shown.text
        assert "data_storage_path" in shown.text


async def test_clients_that_cannot_be_found_are_explained(tmp_path: Path) -> None:
    def clients() -> list[tuple[str, str]]:
        msg = "this account has no home folder"
        raise ClientFileError(msg)

    async with opened(tmp_path, machine=OwnMachine(clients)) as pages:
        assert "no home folder" in (await pages.get("/status")).text


def test_bars_are_as_high_as_their_values() -> None:
    chart = charts.bar_chart([("a", 0), ("b", 50), ("c", 100)])
    assert [bar.height for bar in chart.bars] == [0.0, 59.0, 118.0]
    assert all(bar.y + bar.height == chart.base for bar in chart.bars)
    assert chart.bars[-1].x + chart.bars[-1].width <= chart.width
    assert replace(chart, bars=()) == replace(charts.bar_chart([("c", 100)]), bars=())
    assert [bar.height for bar in charts.bar_chart([("a", 0)]).bars] == [0.0]
    assert charts.bar_chart([]).bars == []
