"""The view Timeline: pages by local day, newest first, with filters, a calendar, and parts for older pages."""

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import pytest_asyncio

from tests.fakes import START
from tests.memories import UNFILED, Memory, Said, memory
from tests.web_client import Pages, open_pages

pytestmark = pytest.mark.both_stores(in_campaign=True)

HOSTILE = "<script>alert(1)</script> {{ 7*7 }} \" onclick='x' javascript:alert(2)"
LIMIT_S = 30


@pytest_asyncio.fixture
async def held(tmp_path: Path) -> AsyncIterator[Memory]:
    async with asyncio.timeout(LIMIT_S), memory(tmp_path, None, **{**UNFILED, "timezone": "Europe/Berlin"}) as found:
        yield found


@pytest_asyncio.fixture
async def pages(held: Memory) -> AsyncIterator[Pages]:
    async with open_pages(held.service) as found:
        yield found


async def test_pages_are_shown_by_local_day_newest_first(held: Memory, pages: Pages) -> None:
    late = datetime(2026, 5, 1, 22, 30, tzinfo=UTC)  # past midnight in Berlin
    await held.add([Said("Old kiln.", at=START - timedelta(days=100)), Said("Night kiln.", at=late), Said("New kiln.")])
    page = await pages.get("/timeline")
    assert [text for name, text in page.headings if name == "h2"][1:] == [
        "2026-05-08 Friday",
        "2026-05-02 Saturday",
        "2026-01-28 Wednesday",
    ]
    assert "00:30 Night kiln." in page.text
    assert "3 pages on 3 days" in page.text
    assert "/ui/timeline?day=2026-05-02" in page.links
    assert re.search(r"<title>2026-05-02: 1</title>", page.html)


async def test_a_day_and_filters_choose_pages(held: Memory, pages: Pages) -> None:
    await held.add([Said("The kiln is hot."), Said("The oven is hot.", at=START - timedelta(days=1))])
    await held.engine.add("The kiln in the news.", "", source="web")
    assert "The oven" not in (await pages.get("/timeline", day="2026-05-08")).text
    found = (await pages.get("/timeline", words="kilns", source="web")).text
    assert "in the news" in found
    assert "is hot" not in found
    assert "not said by the user" in found
    assert "1 page on 1 day" in found
    assert "No page matches" in (await pages.get("/timeline", topic="glaze")).text


async def test_older_pages_follow_by_a_link_and_as_parts(held: Memory, pages: Pages) -> None:
    await held.add([Said(f"Kiln {number}.", at=START - timedelta(hours=number)) for number in range(90)])
    shown: list[str] = []
    path = "/timeline?words=kiln"
    part = await pages.part(path)
    assert "<html" not in part
    while True:
        page = await pages.get(path)
        shown += re.findall(r"Kiln (\d+)\.", page.text)
        older = [link for link in page.links if "cursor=" in link]
        if not older:
            break
        path = older[0].removeprefix("/ui")
    assert shown == [str(number) for number in range(90)]


async def test_other_years_are_linked_and_shown(held: Memory, pages: Pages) -> None:
    await held.add([Said("Long ago.", at=datetime(2019, 7, 1, 12, tzinfo=UTC)), Said("Now.")])
    page = await pages.get("/timeline")
    assert "/ui/timeline?year=2019" in page.links
    past = await pages.get("/timeline", year="2019")
    assert ("Long ago." in past.text, "Now." in past.text.replace("Now Search", "")) == (True, False)
    assert "Activity from 2019-01-01 to 2019-12-31" in past.text
    assert "/ui/timeline?year=2020" in past.links


async def test_remembered_text_is_only_text(held: Memory, pages: Pages) -> None:
    await held.add([Said(HOSTILE)])
    page = await pages.get("/timeline", words="alert", topic=HOSTILE[:150])
    assert not [own for name, own in page.elements if "onclick" in own]
    page = await pages.get("/timeline", words="alert")
    assert HOSTILE in page.text
    assert all(own.get("src", "").startswith("/ui/static/") for name, own in page.elements if name == "script")
    assert all(link.startswith(("/ui/", "#")) for link in page.links)


async def test_bad_input_is_answered_by_a_page(pages: Pages) -> None:
    for name, value in (
        ("day", "2026-02-30"),
        ("day", "0001-01-01"),
        ("day", "9999-12-31"),
        ("year", "26x"),
        ("year", "0"),
        ("year", "٢٠٢٦"),
        ("source", "radio"),
        ("words", "!"),
        ("words", "x" * 999),
        ("topic", "x" * 999),
        ("cursor", "abc"),
    ):
        page = await pages.get("/timeline", **{name: value})
        assert page.status == 400
        assert f"{name}: " in page.text


async def test_a_person_who_may_only_read_sees_the_same(held: Memory, pages: Pages) -> None:
    await held.add([Said("The kiln is hot.")])
    async with open_pages(held.service, only_reads=True) as others:
        path = "/timeline?words=kiln"
        theirs, own = await others.get(path), await pages.get(path)
        assert "The kiln is hot." in theirs.text
        assert "Forget this day…" in own.text
        assert own.text.replace("Forget this day… ", "").split()[-9:] == theirs.text.split()[-9:]


async def test_an_empty_memory_and_long_filters_are_shown(held: Memory, pages: Pages) -> None:
    assert "Nothing is remembered yet" in (await pages.get("/timeline")).text
    await held.add([Said("漢字 " * 30, at=START - timedelta(days=number)) for number in range(300)])
    page = await pages.get("/timeline", words="漢字 " * 40)
    assert "300 pages" in page.text
    assert len(page.html.encode()) < 200_000
