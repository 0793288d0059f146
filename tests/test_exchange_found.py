"""Imports of other systems' memories: order, repeated imports and skipped items."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memoryos_mcp.cli.commands.common import open_store
from memoryos_mcp.config import Settings
from memoryos_mcp.errors import ArgumentError, ImportFormatError
from memoryos_mcp.model.knowledge import About
from memoryos_mcp.model.pages import NewTurn, Source, Tier, Turn
from memoryos_mcp.model.redaction import Redaction
from memoryos_mcp.storage.values import FactQuery, PageQuery
from memoryos_mcp.transfer.importing import PAGES_PER_WRITE, Import, Prepare
from memoryos_mcp.transfer.interface import ImportedFact, Item, Progress, Skipped
from memoryos_mcp.transfer.tally import Tally

pytestmark = pytest.mark.both_stores(in_campaign=True)

NOW = datetime(2026, 5, 8, 12, 0, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ListReader:
    """An importer that yields given items, and may then fail as for a file that is cut off."""

    things: Sequence[Item]
    is_cut_off: bool = False
    NAME: str = "list"

    def recognises(self, path: Path) -> bool:
        return True

    def read(self, path: Path, progress: Progress) -> Iterator[Item]:
        for number, thing in enumerate(self.things):
            progress(number)
            yield thing
        if self.is_cut_off:
            msg = "cut off"
            raise ImportFormatError(msg)


def page(number: int, *, days: float = 0, key: str | None = None) -> NewTurn:
    at = NOW - timedelta(days=100) + timedelta(days=days)
    return NewTurn(f"question {number}", f"answer {number}", at, key or f"list:{number}", {"title": "A talk"})


def unchanged(turn: Turn) -> Redaction:
    return Redaction(turn)


async def take_in(
    folder: Path, reader: ListReader, *, prepare: Prepare = unchanged, is_dry_run: bool = False
) -> tuple[Tally, list[str], int]:
    """Import a reader's items. Return the tally, all pages' texts in order, and the number of waiting pages."""
    settings = Settings(data_storage_path=folder, short_term_capacity=2)
    taking = Import(
        lambda: open_store(settings, short_term_capacity=2),
        folder,
        prepare=prepare,
        show=lambda *_: None,
        is_dry_run=is_dry_run,
    )
    await taking.import_foreign(reader, max_page_chars=1_000, zone=UTC, now=NOW)
    async with open_store(settings, short_term_capacity=2) as store:
        waiting = await store.pages(PageQuery(tier=Tier.BACKLOG, limit=10_000))
        return (
            taking.tally,
            [p.user_input for p in [*waiting, *await store.pages(PageQuery(tier=Tier.SHORT_TERM))]],
            len(waiting),
        )


async def test_pages_are_imported_by_time_and_wait_to_be_organised(tmp_path: Path) -> None:
    pages = [page(3, days=3), page(4, days=4), page(1, days=1), page(2, days=2)]
    tally, texts, waiting = await take_in(tmp_path, ListReader(pages))
    assert texts == [f"question {number}" for number in (1, 2, 3, 4)]
    assert waiting == 2
    assert (tally.found, tally.new) == ({"page": 4}, {"page": 4})


async def test_importing_twice_adds_nothing_the_second_time(tmp_path: Path) -> None:
    things: list[Item] = [page(1), page(1), page(2), ImportedFact(About.USER, "Keeps bees.", NOW, "fact:1")]
    first, texts, _ = await take_in(tmp_path, ListReader(things))
    again, texts_again, _ = await take_in(tmp_path, ListReader([*things, page(3)]))
    assert first.new == {"page": 2, "fact": 1}
    assert again.new == {"page": 1}
    assert texts_again == [*texts, "question 3"]


async def test_more_pages_than_one_transaction_holds_are_all_imported(tmp_path: Path) -> None:
    number = PAGES_PER_WRITE + 7
    tally, texts, _ = await take_in(tmp_path, ListReader([page(each, days=each / 100) for each in range(number)]))
    assert len(texts) == tally.new["page"] == number


async def test_a_file_that_is_cut_off_changes_nothing_in_the_memory(tmp_path: Path) -> None:
    with pytest.raises(ImportFormatError):
        await take_in(tmp_path, ListReader([page(1)], is_cut_off=True))
    assert (await take_in(tmp_path, ListReader([])))[1] == []


async def test_a_dry_run_counts_and_changes_nothing(tmp_path: Path) -> None:
    await take_in(tmp_path, ListReader([page(1)]))
    tally, texts, _ = await take_in(tmp_path, ListReader([page(1), page(2)]), is_dry_run=True)
    assert (tally.found, tally.new) == ({"page": 2}, {"page": 1})
    assert texts == ["question 1"]


async def test_skipped_items_are_counted_with_their_first_places(tmp_path: Path) -> None:
    things: list[Item] = [
        *(Skipped("an image", f"message {number}") for number in range(5)),
        replace(page(1), user_input="", agent_response=" "),
        replace(page(3), timestamp="no time"),
        replace(page(4), timestamp=NOW + timedelta(days=9)),
        ImportedFact(About.USER, "  ", None, "fact:1"),
        page(5),
    ]
    tally, texts, _ = await take_in(tmp_path, ListReader(things))
    assert texts == ["question 5"]
    assert tally.skipped["an image"] == 5
    assert tally.places["an image"] == ["message 0", "message 1", "message 2"]
    assert tally.skipped.total() == 9


async def test_every_text_is_redacted_before_it_is_stored(tmp_path: Path) -> None:
    def prepare(turn: Turn) -> Redaction:
        if "answer 2" in turn.agent_response:
            raise ArgumentError(argument="agent_response", problem="holds a secret")
        clean = replace(turn, user_input=turn.user_input.replace("question", "[redacted]"), gives_orders=True)
        return Redaction(clean, ("password",))

    things: list[Item] = [page(1), page(2), ImportedFact(About.USER, "Has a question.", None, "fact:1")]
    tally, texts, _ = await take_in(tmp_path, ListReader(things), prepare=prepare)
    assert texts == ["[redacted] 1"]
    assert tally.places["agent_response: holds a secret"] == ["list:2"]
    assert tally.redacted == {"password": 2}
    async with open_store(Settings(data_storage_path=tmp_path)) as store:
        (fact,) = await store.facts(FactQuery(About.USER))
        (stored,) = await store.pages(PageQuery(tier=Tier.SHORT_TERM))
    assert (fact.text, fact.evidence) == ("Has a [redacted].", ())
    assert stored.gives_orders


async def test_an_imported_page_has_its_time_notes_and_source(tmp_path: Path) -> None:
    found = replace(page(1), timestamp="2024-02-03T04:05:06+09:00", source=Source.WEB)
    await take_in(tmp_path, ListReader([found]))
    async with open_store(Settings(data_storage_path=tmp_path)) as store:
        (stored,) = await store.pages(PageQuery(tier=Tier.SHORT_TERM))
    assert stored.occurred_at.isoformat() == "2024-02-03T04:05:06+09:00"
    assert (stored.meta_data, stored.source) == ('{"title": "A talk"}', Source.WEB)
