"""A person sees why facts and traits are known, and corrects them in the browser."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memoryos_mcp.consolidation.forgetting import Selection
from memoryos_mcp.model.ids import trait_id
from memoryos_mcp.model.profile import Level
from memoryos_mcp.model.records import TraitRecord
from memoryos_mcp.server.web.charts import PERIODS_WIDTH, Period, period_chart
from memoryos_mcp.server.web.visits import memory_path
from memoryos_mcp.storage.values import LongTerm
from tests.fakes import START
from tests.memories import UNFILED, Memory, Said, memory
from tests.web_client import Pages, Shown, open_pages

pytestmark = pytest.mark.both_stores(in_campaign=True)

HOSTILE = "<img src=x onerror=alert(1)>\"'{{7*7}}</textarea><script>alert(2)</script>"
DIMENSION = f"Work/Life, {HOSTILE}"
OSLO, BERGEN = "/facts/k1", "/facts/k2"
TRAIT = memory_path(trait_id(DIMENSION)).removeprefix("/ui")


@asynccontextmanager
async def opened(folder: Path, *, only_reads: bool = False) -> AsyncIterator[tuple[Memory, Pages]]:
    """Yield a memory with a replaced fact, a current one and a trait, and a client of its pages."""
    async with memory(folder, None, **UNFILED) as held:
        said = [Said("I live in Oslo."), Said(f"Nice weather. {HOSTILE}"), Said("I live in Bergen now.")]
        pages = await held.add([*said, Said("Nothing new. " * 500 + "Bread is what I bake. " + "And so on. " * 500)])
        await held.settled()
        trait = TraitRecord(
            kind="trait", dimension=DIMENSION, level=Level.LOW, reason=f"Bread {HOSTILE}", updated_at=START,
            learned_by="extractive", evidence=tuple(pages),
        )  # fmt: skip
        await held.engine._store.user_data.import_long_term(LongTerm("file", [trait]))
        async with open_pages(held.service, only_reads=only_reads) as client:
            yield held, client


async def fields(pages: Pages, path: str) -> dict[str, str]:
    """Return the fields of the first form for corrections on a page."""
    page = await pages.get(path)
    return next(form.fields for form in page.forms if "shown" in form.fields)


async def confirmed(pages: Pages, preview: Shown) -> Shown:
    """Press the button that confirms a correction."""
    path = preview.path
    return await pages.submit(path, preview.form(path).fields, confirmed="yes")


async def test_facts_are_listed_by_state_and_subject(data: Path) -> None:
    async with opened(data) as (_, pages):
        page = await pages.get("/profile")
        past = await pages.get("/profile", state="superseded")
        assistant = await pages.get("/profile", about="assistant")
    assert "I live in Bergen now" in page.text
    assert "I live in Oslo" not in page.text
    assert DIMENSION.replace("  ", " ") in page.text
    assert "I live in Oslo. until" in past.text
    assert "replaced by I live in Bergen now" in past.text
    assert DIMENSION not in past.text
    assert "There are no such facts." in assistant.text


async def test_older_facts_follow_by_a_link(data: Path) -> None:
    async with memory(data, None, **UNFILED) as held, open_pages(held.service) as pages:
        await held.add([Said(f"I have a cat called Mia{n:02}.") for n in range(40)])
        await held.settled()
        page = await pages.get("/profile")
        [older] = [link for link in page.links if "cursor=" in link]
        rest = await pages.get(older.removeprefix("/ui"))
        part = await pages.part(older.removeprefix("/ui"))
    assert "Mia39" in page.text
    assert "Mia00" not in page.text
    assert "Mia00" in rest.text
    assert "Mia39" not in rest.text
    assert "Mia00" in part
    assert "<h1" not in part


async def test_the_first_page_lists_only_the_newest_of_many_facts(data: Path) -> None:
    async with memory(data, None, **UNFILED) as held, open_pages(held.service) as pages:
        await held.add([Said(f"I have a cat called Mia{n:02}.") for n in range(40)])
        await held.settled()
        page = await pages.get("/")
    assert "Mia39" in page.text
    assert "Mia00" not in page.text
    assert "And 10 other facts" in page.text


async def test_a_fact_shows_its_words_and_its_history(data: Path) -> None:
    async with opened(data) as (held, pages):
        page = await pages.get(OSLO)
        [evidence] = (await held.engine.look(["k1"]))[0].fact.evidence  # type: ignore[union-attr]
    assert page.headings[0] == ("h1", "I live in Oslo.")
    assert f"/ui/pages/{evidence}" in page.links
    assert "User I live in Oslo." in page.text
    assert "Replaced by I live in Bergen now" in page.text
    assert f"/ui{BERGEN}" in page.links
    bars = [own for tag, own in page.elements if tag == "rect"]
    assert [bar["class"] for bar in bars] == ["past", "bar"]
    assert "so there is nothing to correct" in page.text


async def test_a_correction_is_shown_before_it_is_made(data: Path) -> None:
    async with opened(data) as (held, pages):
        form = await fields(pages, BERGEN)
        preview = await pages.submit(BERGEN, form, change="text", text=f"I live in {HOSTILE}.")
        assert [fact.text for fact in (await held.engine.profile()).user_facts][-1] == "I live in Bergen now."
        done = await confirmed(pages, preview)
    assert preview.headings == [("h1", "What would change")]
    assert "Now I live in Bergen now" in preview.text
    assert f"Afterwards I live in {HOSTILE}" in preview.text
    assert done.path == "/facts/k3"
    assert done.notes == ["The fact is corrected. The earlier text stays in its history."]
    assert "you, by a correction" in done.text
    assert not [tag for tag, own in done.elements if tag == "img" or (tag == "script" and "src" not in own)]


async def test_what_was_corrected_by_mistake_is_restored(data: Path) -> None:
    async with opened(data) as (_, pages):
        preview = await pages.submit(BERGEN, await fields(pages, BERGEN), change="wrong")
        wrong = await confirmed(pages, preview)
        preview = await pages.submit(BERGEN, await fields(pages, BERGEN), change="restore")
        restored = await confirmed(pages, preview)
    assert "You marked it as wrong" in wrong.text
    assert restored.notes == ["Restored."]
    assert "State Current" in restored.text


async def test_a_fact_holds_again_if_its_replacement_was_wrong(data: Path) -> None:
    async with opened(data) as (held, pages):
        since = (await held.engine.look(["k1"]))[0].fact.valid_from  # type: ignore[union-attr]
        wrong = await confirmed(pages, await pages.submit(BERGEN, await fields(pages, BERGEN), change="wrong"))
        earlier = await pages.get(OSLO)
        preview = await pages.submit(OSLO, await fields(pages, OSLO), change="again")
        done = await confirmed(pages, preview)
        again = (await held.engine.look(["k1"]))[0].fact  # type: ignore[union-attr]
    assert f"/ui{OSLO}" in wrong.links
    assert "Is that one still true?" in wrong.text
    assert "The fact that replaced it was marked as wrong." in earlier.text
    assert "Afterwards I live in Oslo." in preview.text
    assert done.notes == ["The fact holds again, from its old date."]
    assert (again.valid_from, again.valid_until) == (since, None)


async def test_a_trait_with_a_strange_name_breaks_no_page(data: Path) -> None:
    async with opened(data) as (held, pages):
        names = ["x" * 300, "", "a\nb", "?q#f", ".."]
        traits = [
            TraitRecord(kind="trait", dimension=name, level=Level.LOW, reason="So.", updated_at=START, learned_by="x")
            for name in names
        ]
        await held.engine._store.user_data.import_long_term(LongTerm("other", traits))
        shown = [await pages.get(path) for path in ("/profile", "/", memory_path("trait:x" * 50)[3:])]
        lines = await pages.get(memory_path("trait:a\nb").removeprefix("/ui"))
    assert [page.status for page in shown] == [200, 200, 404]
    assert lines.headings[0] == ("h1", "a b: Low")


async def test_a_second_tab_learns_that_the_fact_changed(data: Path) -> None:
    async with opened(data) as (held, pages):
        form = await fields(pages, BERGEN)
        await pages.submit(BERGEN, form, change="text", text="I live in Bodø.", confirmed="yes")
        second = await pages.submit(BERGEN, form, change="text", text="I live in Voss.", confirmed="yes")
        current = (await held.engine.profile()).user_facts[-1].text
        present = next(form for form in second.forms if "shown" in form.fields)
        preview = await pages.submit(present.action.removeprefix("/ui"), present.fields, change="text")
        await held.engine.forget((await held.engine.plan_forgetting(Selection(ids=["k3"]))).handle)
        third = await pages.submit("/facts/k3", form, change="text", text="I live in Voss.")
    assert (third.status, "“I live in Voss.”" in third.text) == (404, True)
    assert second.status == 409
    assert "was changed meanwhile" in second.text
    assert "You wrote: “I live in Voss.”" in second.text
    assert second.headings[0] == ("h1", "I live in Bodø.")
    assert current == "I live in Bodø."
    assert "Now I live in Bodø. Afterwards I live in Voss." in preview.text


async def test_a_trait_is_corrected_and_restored(data: Path) -> None:
    async with opened(data) as (_, pages):
        form = await fields(pages, TRAIT)
        preview = await pages.submit(TRAIT, form, change="level", level="High", reason=HOSTILE)
        done = await confirmed(pages, preview)
        late = await pages.submit(TRAIT, form, change="level", level="Medium", reason="Late.", confirmed="yes")
        undo = {**await fields(pages, TRAIT), "change": "restore", "confirmed": "yes"}
        restored = await pages.submit(TRAIT, undo)
        form = await fields(pages, TRAIT)
        wrong = await pages.submit(TRAIT, form, change="wrong", confirmed="yes")
        past = await pages.get("/profile", state="superseded")
    assert f"/ui{TRAIT}" in past.links
    assert f"Low - Bread {HOSTILE}" in preview.text
    assert (late.status, "was changed meanwhile" in late.text, "“Late.”" in late.text) == (409, True, True)
    assert done.headings[0] == ("h1", f"{DIMENSION}: High")
    assert restored.headings[0] == ("h1", f"{DIMENSION}: Low")
    assert "no longer part of the profile" in wrong.text


async def test_long_pages_are_shown_by_the_words_that_count(data: Path) -> None:
    async with opened(data) as (_, pages):
        page = await pages.get(TRAIT)
    assert "Bread is what I bake" in page.text
    assert len(page.html) < 12_000


async def test_bad_addresses_have_a_page_that_says_so(data: Path) -> None:
    memories = [
        "facts/k99",
        "facts/p_1",
        f"facts/{'9' * 400}",
        "facts/%3Cb%3E",
        "traits/None",
        "traits/",
        "facts/k1?from=x",
    ]
    filters = ["state=x", "about=x", "cursor=x", "state=archived&cursor=W10=", "cursor=%00"]
    async with opened(data) as (_, pages):
        missing = [await pages.get(f"/{path}") for path in memories]
        wrong = [await pages.get(f"/profile?{query}") for query in filters]
    assert [(page.status, page.headings) for page in missing] == [(404, [("h1", "Not found")])] * len(memories)
    assert [page.status for page in wrong] == [400] * len(filters)


async def test_a_correction_that_is_not_valid_says_why(data: Path) -> None:
    changes = [
        ({"change": "text", "text": ""}, "must have 1 to 400 characters"),
        ({"change": "text", "text": "I live in Bergen now."}, "is the same as the current text"),
        ({"change": "restore"}, "was not corrected"),
        ({"change": "x"}, "This change is not possible"),
    ]
    async with opened(data) as (_, pages):
        form = await fields(pages, BERGEN)
        for change, problem in changes:
            page = await pages.submit(BERGEN, {**form, **change})
            assert page.status == 400
            assert problem in page.text
            assert "Nothing was changed." in page.text


async def test_who_may_only_read_gets_no_forms(data: Path) -> None:
    async with opened(data, only_reads=True) as (_, pages):
        shown = [await pages.get(path) for path in ("/profile", BERGEN, TRAIT)]
        refused = await pages.submit(BERGEN, change="wrong", confirmed="yes")
    assert not [form for page in shown for form in page.forms if "shown" in form.fields]
    assert refused.status == 403


def test_periods_of_all_times_have_a_chart() -> None:
    first, last, now = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC), START
    for begin, end in ((first, last), (last, None), (first, None), (last, last), (now, None)):
        chart = period_chart([Period("k1", "a", begin, end)], now)
        assert 0 <= chart.now_x <= PERIODS_WIDTH
        assert chart.bars[0].x + chart.bars[0].width <= PERIODS_WIDTH
    assert period_chart([], now).bars == []


def test_periods_lie_inside_their_chart() -> None:
    for days in (0, 0.1, 5, 80, 400, 4_000, 40_000, 700_000):
        begin = datetime(100, 1, 31, 12, tzinfo=UTC)
        end = begin + timedelta(days=days)
        periods = [Period("k1", "a", begin, end), Period("k2", "b", end, None), Period("k3", "c", begin, begin)]
        chart = period_chart(periods, now=begin + timedelta(days=days / 2))
        assert all(bar.x >= 0 and bar.width > 0 and bar.x + bar.width <= PERIODS_WIDTH for bar in chart.bars)
        assert len(chart.ticks) <= 7
        assert [tick.x for tick in chart.ticks] == sorted({tick.x for tick in chart.ticks})
        assert [bar.y for bar in chart.bars] == sorted({bar.y for bar in chart.bars})
        assert chart.bars[2].is_past
