"""A person forgets in the browser: the dry run is shown, then confirmed, and a receipt stays."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from memoryos_mcp.consolidation.forgetting import CONFIRM_WITHIN
from memoryos_mcp.storage.sqlite.paths import kept_name
from memoryos_mcp.text.user_ids import user_folder
from tests.fakes import START, Clock
from tests.memories import UNFILED, USER, Memory, Said, memory
from tests.web_client import Pages, Shown, open_pages

pytestmark = pytest.mark.both_stores(in_campaign=True)

HOSTILE = "<script>alert(1)</script>{{7*7}}"
DAYS = ("I live in Oslo.", f"The boat is red. {HOSTILE}", "I bake bread on Sundays.")


@asynccontextmanager
async def opened(folder: Path, *, only_reads: bool = False) -> AsyncIterator[tuple[Memory, Pages, list[str]]]:
    """Yield a memory with a page on each of three days, a client of its pages, and the ids of these pages."""
    async with memory(folder, None, **UNFILED) as held:
        ids = await held.add(Said(text, at=START - timedelta(days=3 - place)) for place, text in enumerate(DAYS))
        await held.settled()
        async with open_pages(held.service, only_reads=only_reads) as pages:
            yield held, pages, ids


async def left(held: Memory) -> list[str]:
    """Return the ids of the pages that are left, oldest first."""
    return [entry.id for entry in (await held.engine.listed()).entries][::-1]


def handle(plan: Shown) -> dict[str, str]:
    return plan.form("/forget/confirm").fields


async def test_a_fact_of_the_dry_run_goes_with_its_page(data: Path) -> None:
    async with opened(data) as (held, pages, ids):
        form = (await pages.get("/forget", id=ids[0])).forms[1]
        plan = await pages.submit("/forget", form.fields)
        before = await left(held)
        receipt = await pages.submit("/forget/confirm", handle(plan))
        again = await pages.submit("/forget/confirm", handle(plan))
        after = await left(held)
        overview = await pages.get("/forget")
    assert form.fields["ids"] == ids[0]
    assert plan.headings[0] == ("h1", "What would be forgotten")
    assert "1 page and 1 fact" in plan.text
    assert "Selected 2026-05-05 page" in plan.text
    assert "What goes with it 2026-05-05 fact k1 I live in Oslo." in plan.text
    assert (before, after) == (ids, ids[1:])
    assert receipt.notes == ["Forgotten."]
    assert "Forgotten 1 page and 1 fact" in receipt.text
    assert again.path == receipt.path
    assert f"/ui{receipt.path}" in overview.links


async def test_a_day_is_selected_to_its_end(data: Path) -> None:
    day = f"{START - timedelta(days=2):%Y-%m-%d}"
    async with opened(data) as (held, pages, ids):
        alone = await pages.submit("/forget", {"way": "pages", "from": day})
        plan = await pages.submit("/forget", {"way": "pages", "from": day, "until": day})
        await pages.submit("/forget/confirm", handle(plan))
        after = await left(held)
        rest = await pages.submit("/forget", {"way": "pages", "until": "9999-12-31"})
    assert HOSTILE in plan.text
    assert not [own for tag, own in plan.elements if tag == "script" and "src" not in own]
    assert after == [ids[0], ids[2]]
    assert "2 pages" in rest.text
    assert f"only {day}" in plan.text
    assert (f"only {day}" in alone.text, "The boat is red." in alone.text) == (True, True)


async def test_a_question_selects_what_was_said_about_it(data: Path) -> None:
    async with opened(data) as (held, pages, ids):
        plan = await pages.submit("/forget", {"way": "pages", "query": "bread", "max_results": "5"})
        await pages.submit("/forget/confirm", handle(plan))
        assert await left(held) == ids[:2]
        nothing = await pages.submit("/forget", {"way": "pages", "query": "zeppelin"})
    assert "there is nothing to forget" in nothing.text
    assert not [form for form in nothing.forms if form.action.endswith("confirm")]


async def test_everything_needs_its_word(data: Path) -> None:
    async with opened(data) as (held, pages, ids):
        plan = await pages.submit("/forget", way="everything")
        form = plan.form("/forget/everything").fields
        refused = await pages.submit("/forget/everything", form, word="yes")
        before = await left(held)
        done = await pages.submit("/forget/everything", refused.form("/forget/everything").fields, word=" Everything ")
        after = await left(held)
    assert (refused.status, before, after) == (400, ids, [])
    assert "type the word “everything”" in refused.text
    assert "Forgotten 3 pages" in done.text


async def test_an_expired_or_unknown_handle_has_a_page_that_says_so(data: Path) -> None:
    async with opened(data) as (held, pages, ids):
        plan = await pages.submit("/forget", {"way": "ids", "ids": "\n".join(ids)})
        clock = held.service._clock
        assert isinstance(clock, Clock)
        clock.now += CONFIRM_WITHIN
        expired = await pages.submit("/forget/confirm", handle(plan))
        unknown = await pages.submit("/forget/confirm", {"handle": HOSTILE})
        receipt = await pages.get("/forget/receipts/f_1")
        assert await left(held) == ids
    for page in (expired, unknown):
        assert page.status == 404
        assert "Nothing was forgotten. Select again" in page.text
    assert receipt.status == 404


async def test_a_selection_that_is_not_valid_says_why(data: Path) -> None:
    selections = [
        ({}, "Nothing is selected"),
        ({"from": "x"}, "The first day is not a valid day"),
        ({"from": "2026-05-02", "until": "2026-05-01"}, "The last day is earlier than the first day"),
        ({"query": "bread", "max_results": "1000"}, "The number of pages is out of range"),
        ({"query": "bread", "max_results": "x"}, "The number of pages is not a valid number"),
        ({"way": "ids", "ids": ""}, "Nothing is selected"),
        ({"way": "ids", "ids": "k1, p_0 x!"}, "An id is not a valid id"),
        ({"way": "ids", "ids": "k99"}, "No memory has the id k99"),
        ({"way": "ids", "ids": "\n".join(f"k{n}" for n in range(1, 1_002))}, "contains 1,001 ids"),
    ]
    async with opened(data) as (held, pages, ids):
        for selection, problem in selections:
            page = await pages.submit("/forget", {"way": "pages", **selection})
            assert page.status == 400
            assert problem in page.text
            assert "Nothing was forgotten." in page.text
        assert await left(held) == ids


@pytest.mark.sqlite_only
async def test_copies_of_restores_are_named_and_deleted(data: Path) -> None:
    async with opened(data) as (held, pages, ids):
        (user_folder(data, USER) / kept_name(START)).write_bytes(b"old")
        copies = await held.engine.kept_copies()
        plan = await pages.submit("/forget", {"way": "ids", "ids": ids[0]})
        receipt = await pages.submit("/forget/confirm", handle(plan))
        deleted = await pages.submit("/forget/copies")
        assert await held.engine.kept_copies() == []
    assert len(copies) == 1
    assert f"Not forgotten: what is in the backup copies made by restores ({copies[0]})" in plan.text
    assert copies[0] in receipt.text
    assert deleted.notes == ["The backup copies are deleted."]


async def test_who_may_only_read_sees_receipts_alone(data: Path) -> None:
    async with opened(data, only_reads=True) as (held, pages, ids):
        page = await pages.get("/forget")
        refused = await pages.submit("/forget", {"way": "ids", "ids": ids[0]})
        assert await left(held) == ids
    assert "but not forget anything" in page.text
    assert [form.action for form in page.forms] == ["/ui/sign-out"]
    assert refused.status == 403
