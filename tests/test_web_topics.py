"""The view Topics: the map and the table of all topics, and the page of one topic."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
import pytest_asyncio

from tests.fakes import START
from tests.memories import Memory, Said, memory
from tests.web_client import Pages, open_pages

pytestmark = pytest.mark.both_stores(in_campaign=True)

LIMIT_S = 30
HOSTILE = "<img src=x onerror=alert(1)> pottery kiln {{ config }}"


@dataclass(frozen=True, slots=True)
class Shown:
    held: Memory
    pages: Pages
    topic: str


@pytest_asyncio.fixture
async def shown(tmp_path: Path) -> AsyncIterator[Shown]:
    """Yield a memory with one topic of 24 pages, and a client."""
    async with asyncio.timeout(LIMIT_S), memory(tmp_path, None, mid_term_heat_threshold=1e6) as held:
        turns = [Said(f"{HOSTILE} {number}", at=START - timedelta(days=48 - number)) for number in range(24)]
        await held.add([Said("I live in Oslo and I love pottery in the kiln."), *turns[1:]])
        await held.settled()
        largest = max(await held.engine.segments(), key=lambda each: each.segment.page_count)
        async with open_pages(held.service) as pages:
            yield Shown(held, pages, f"s{largest.segment.segment}")


async def test_the_map_and_the_table_show_each_topic(shown: Shown) -> None:
    page = await shown.pages.get("/topics")
    count = len(await shown.held.engine.segments())
    for width in ("wide", "narrow"):
        assert [own for name, own in page.elements if name == "svg" and own.get("class") == f"map {width}"]
    links = [link for link in page.links if link.startswith("/ui/topics/s")]
    assert len(links) == 3 * count  # on both maps and in the table
    for order in ("title", "pages", "visits"):
        assert (await shown.pages.get("/topics", sort=order)).status == 200
    assert "Archived topics" not in page.text
    assert "No topic is archived" in (await shown.pages.get("/topics", state="archived")).text


async def test_a_topic_shows_what_makes_it_hot(shown: Shown) -> None:
    await shown.held.engine.retrieve("pottery in the kiln")
    await shown.held.settled()
    found = await shown.held.engine.topic(shown.topic)
    page = await shown.pages.get(f"/topics/{shown.topic}")
    assert f"Heat: {found.heat:.1f}" in page.text
    assert f"Searches {found.segment.n_visit} 1" in page.text
    assert f"New pages {found.segment.l_interaction} 1" in page.text
    assert "Searches are not dated" in page.text
    assert len([own for name, own in page.elements if name == "polyline"]) == 4
    assert found.pages.chains
    for chain in found.pages.chains:
        assert f"/ui/chains/c{chain.chain}" in page.links
    assert "alert(1)" in page.text
    assert not [own for name, own in page.elements if name == "img"]


async def test_the_pages_of_a_topic_are_shown_in_parts(shown: Shown) -> None:
    first = await shown.pages.get(f"/topics/{shown.topic}")
    (older,) = [link for link in first.links if "cursor=" in link]
    second = await shown.pages.get(older.removeprefix("/ui"))
    listed = [link for page in (first, second) for link in page.links if link.startswith("/ui/pages/")]
    total = (await shown.held.engine.topic(shown.topic)).segment.page_count
    assert len(listed) == len(set(listed)) == total
    part = await shown.pages.part(older.removeprefix("/ui"))
    assert "<html" not in part
    assert part.count("/ui/pages/") == total - 20


async def test_bad_input_is_answered_by_a_page(shown: Shown) -> None:
    for name in ("s999", "c1", "k1", "x", "s0", "s" + "9" * 30, "%2e%2e"):
        page = await shown.pages.get(f"/topics/{name}")
        assert page.status == 404
        assert page.headings[0][0] == "h1"
    for name, value in (("sort", "colour"), ("start", "-1"), ("start", "9" * 40)):
        page = await shown.pages.get("/topics", **{name: value})
        assert page.status == 400
        assert f"{name}: is not valid" in page.text


async def test_a_person_who_may_only_read_sees_the_same(shown: Shown) -> None:
    async with open_pages(shown.held.service, only_reads=True) as others:
        page = await others.get(f"/topics/{shown.topic}")
    assert page.headings == (await shown.pages.get(f"/topics/{shown.topic}")).headings
    assert [form.action for form in page.forms] == ["/ui/sign-out"]


async def test_a_memory_without_topics_says_so(tmp_path: Path) -> None:
    async with asyncio.timeout(LIMIT_S), memory(tmp_path, None) as held, open_pages(held.service) as pages:
        assert "There are no topics yet" in (await pages.get("/topics")).text
