"""Each view in a real browser: nothing fails, nothing hostile runs, and a phone and a keyboard are enough."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest
from playwright.sync_api import Browser

from memoryos_mcp.config import Settings
from memoryos_mcp.engine.service import MemoryService
from memoryos_mcp.server.web.guard import PREFIX
from memoryos_mcp.server.web.visits import MENU, memory_path
from tests import hostile
from tests.browser import PHONE, Opener, PageServer, Tab, open_browser, open_tabs

pytestmark = pytest.mark.campaign

T = TypeVar("T")
VIEWS = [path for path, _ in MENU]
EVE = "<svg onload=window.ran=1>{{ 7 * 7777 }}"
NO_MODEL = {"MEMORYOS_EMBEDDING_MODEL_NAME": "none"}
# Characters that turn the direction of text are kept, but not shown.
TURNING = {0x202E: "\ufffd", 0x2066: "\ufffd"}
# Pages of one kind differ only in their texts; those of all pages of dialogue are looked at by another test.
CRAWLED_AT_MOST, OF_A_KIND = 150, 24
# Elements that only an injection could bring.
FOREIGN_ELEMENTS = (
    "main script, main style, iframe, object, embed, base, main meta, main link, main img, video, marquee, math, "
    "foreignObject, animate, svg script, main [onerror], main [onload], main [onfocus], main [style]"
)


@dataclass(frozen=True, slots=True)
class Hostile:
    """A memory that is shown, in which everything is an attack."""

    open: Opener
    pages: list[str]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as running:
        yield running


@pytest.fixture(scope="module")
def hostile_memory(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hostile]:
    folder = tmp_path_factory.mktemp("hostile") / "data"
    # In another thread, because the browser's driver has an event loop in this one.
    pages = _in_thread(lambda: hostile.seed(folder, EVE))
    with ExitStack() as stack:
        server = stack.enter_context(PageServer(folder, "--user-id", EVE, env=NO_MODEL))
        yield Hostile(stack.enter_context(open_tabs(browser, server)), pages)


def _in_thread(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(lambda: asyncio.run(work())).result(120)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("is_dark", [False, True], ids=["light", "dark"])
def test_a_view_opens_cleanly_and_axe_finds_nothing(hostile_memory: Hostile, view: str, is_dark: bool) -> None:
    tab = hostile_memory.open(is_dark=is_dark)
    assert tab.open(view) == 200
    assert tab.axe() == []
    tab.check(view)
    back = cast(str, tab.page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert (sum(map(int, back.removeprefix("rgb(").removesuffix(")").split(","))) < 200) == is_dark


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_fits_a_phone(hostile_memory: Hostile, view: str) -> None:
    tab = hostile_memory.open(PHONE)
    assert tab.open(view) == 200
    assert tab.width_too_much() == 0
    assert tab.axe() == []
    tab.check(view)


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_is_reached_by_keyboard_alone(hostile_memory: Hostile, view: str) -> None:
    tab = hostile_memory.open()
    tab.open("/")
    tab.page.keyboard.press("Tab")
    assert _focused(tab) == "Skip to the content"
    assert tab.page.locator("a.skip").bounding_box()["x"] >= 0, "the link is not seen"  # type: ignore[index]
    name = dict(MENU)[view]
    for _ in range(len(MENU) + 2):
        tab.page.keyboard.press("Tab")
        if _focused(tab) == name:
            break
    assert _focused(tab) == name
    width = tab.page.evaluate("getComputedStyle(document.activeElement).outlineWidth")
    assert width != "0px", "the focus is not seen"
    with tab.page.expect_navigation():
        tab.page.keyboard.press("Enter")
    assert tab.page.url.endswith(f"{PREFIX}{view}")
    assert tab.page.locator("nav a[aria-current=page]").inner_text() == name
    tab.page.locator("a.skip").focus()  # a view may begin in its field for searching
    tab.page.keyboard.press("Enter")
    assert tab.page.evaluate("document.activeElement.id") == "main"
    for _ in range(len(MENU) + 60):  # from the content, all that can be used follows, and nothing holds the focus
        tab.page.keyboard.press("Tab")
        if tab.page.evaluate("document.activeElement === document.body"):
            break
    tab.check(view)


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_can_be_read_without_scripts(hostile_memory: Hostile, view: str) -> None:
    tab = hostile_memory.open(has_scripts=False)
    assert tab.open(view) == 200
    assert tab.page.locator("h1").count() == 1
    assert len(tab.page.locator("main").inner_text()) > 20
    assert tab.problems == []


def test_attacks_are_shown_as_text_and_run_nothing(hostile_memory: Hostile) -> None:
    tab = hostile_memory.open()
    for attack, page_id in zip(hostile.ATTACKS, hostile_memory.pages, strict=True):
        path = memory_path(page_id).removeprefix(PREFIX)
        assert tab.open(path) == 200
        assert attack.translate(TURNING) in (tab.page.locator("main").text_content() or ""), (
            f"not shown as text: {attack}"
        )
        _assert_nothing_ran(tab, path)


def test_no_page_that_links_lead_to_runs_an_attack(hostile_memory: Hostile) -> None:
    tab = hostile_memory.open()
    waiting, seen = [*VIEWS, "/search?q=script", "/timeline?words=script"], set[str]()
    while waiting and len(seen) < CRAWLED_AT_MOST:
        path = waiting.pop(0)
        kind = path.split("?")[0].rstrip("0123456789")
        if path in seen or "/export" in path or sum(each.startswith(kind) for each in seen) >= OF_A_KIND:
            continue
        seen.add(path)
        assert tab.open(path) == 200, path
        if path in VIEWS:  # parts that are loaded later count too
            tab.page.wait_for_load_state("networkidle")
        _assert_nothing_ran(tab, path)
        waiting += [each for each in tab.paths() if each not in seen]
    kinds = {path.split("/")[1] for path in seen}
    assert {"pages", "topics", "facts", "traits"} <= kinds, kinds


@pytest.mark.parametrize("kind", ["pages", "topics", "facts", "traits", "chains"])
def test_the_page_of_one_memory_is_clean_for_axe_and_phones(hostile_memory: Hostile, kind: str) -> None:
    tab = hostile_memory.open(PHONE)
    for view in ("/topics", "/profile", "/timeline", memory_path(hostile_memory.pages[0]).removeprefix(PREFIX)):
        tab.open(view)
        if found := [path for path in tab.paths() if path.startswith(f"/{kind}/")]:
            break
    assert found, f"no view links to {kind}"
    assert tab.open(found[0]) == 200
    assert tab.axe() == []
    assert tab.width_too_much() == 0
    tab.check(found[0])


def test_two_people_in_one_browser_see_only_their_own(browser: Browser, tmp_path: Path) -> None:
    with (
        PageServer(tmp_path / "data", "--user-id", "ada", env=NO_MODEL) as first,
        PageServer(tmp_path / "data", "--user-id", "eve", env=NO_MODEL) as second,
    ):
        context = browser.new_context()
        try:
            tabs = [Tab(context.new_page(), server) for server in (first, second)]
            for tab, server in zip(tabs, (first, second), strict=True):
                tab.page.goto(server.link)
            for tab, name in zip(tabs, ("ada", "eve"), strict=True):
                assert tab.open("/") == 200
                assert tab.page.locator(".who span").inner_text() == name
                tab.check(name)
            used = context.new_page().goto(first.link)
            assert used is not None
            assert used.status == 403
        finally:
            context.close()


def test_a_fact_is_corrected_and_a_day_forgotten(browser: Browser, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    _in_thread(lambda: _spoke_twice(folder))
    with (
        PageServer(folder, "--user-id", "ada", env=NO_MODEL) as server,
        open_tabs(browser, server) as open_tab,
    ):
        tab = open_tab()
        page = tab.page
        tab.open("/profile")
        page.get_by_role("link", name="I live in Paris.").click()
        assert "I live in Paris." in page.get_by_role("region", name="Where it was said").inner_text()
        page.get_by_label("Correct text").fill("I live in Lyon.")
        page.get_by_role("button", name="Change the text").click()
        page.get_by_role("heading", name="What would change").wait_for()
        page.get_by_role("button", name="Change it").click()
        page.get_by_role("heading", name="I live in Lyon.").wait_for()
        tab.open("/profile")
        assert page.get_by_role("link", name="I live in Paris.").count() == 0

        tab.open("/timeline?day=2026-02-01")
        page.get_by_role("button", name="Forget this day…, 2026-02-01").click()
        assert "only 2026-02-01" in page.locator("main").inner_text()
        assert "Biscuit" in page.get_by_role("region", name="Selected").inner_text()
        page.get_by_role("button", name="Forget this permanently").click()
        page.get_by_role("heading", name="Receipt").wait_for()
        tab.open("/timeline")
        text = page.locator("main").inner_text()
        assert "Paris" in text
        assert "Biscuit" not in text
        tab.check("correcting and forgetting")


async def _spoke_twice(folder: Path) -> None:
    settings = Settings(data_storage_path=folder, timezone="UTC", embedding_model_name="none")
    async with MemoryService(settings) as service, service.user("ada") as engine:
        await engine.add("I live in Paris.", "Noted.", timestamp="2026-01-05T10:00:00")
        await engine.add("My dog is called Biscuit.", "Noted.", timestamp="2026-02-01T10:00:00")
        while len((await engine.profile()).user_facts) < 2:  # noqa: ASYNC110 - another task's work
            await asyncio.sleep(0.05)


def _focused(tab: Tab) -> str:
    return cast(str, tab.page.evaluate("document.activeElement.innerText")).strip()


def _assert_nothing_ran(tab: Tab, path: str) -> None:
    assert not tab.page.evaluate("window.ran"), path
    assert tab.page.locator(FOREIGN_ELEMENTS).count() == 0, path
    text = tab.page.locator("main").text_content() or ""
    assert "54439" not in text, f"{path}: a template was filled in"
    assert tab.page.title().endswith("Memory"), path
    tab.check(path)
