"""Memories are shown by id with their context, and in complete lists without duplicates."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryos_mcp.config import Settings
from memoryos_mcp.engine.engine import MemoryEngine
from memoryos_mcp.engine.inspection import ListPart, list_request, listed, look, page_counts
from memoryos_mcp.engine.service import MemoryService
from memoryos_mcp.errors import ArgumentError
from memoryos_mcp.model.ids import Kind, read_id
from memoryos_mcp.model.knowledge import About
from memoryos_mcp.model.pages import Source, Turn
from memoryos_mcp.model.profile import Level, TraitChange
from memoryos_mcp.model.segments import Segment
from memoryos_mcp.model.views import Learned, PageView
from memoryos_mcp.storage.sql.store import SqlStore
from memoryos_mcp.storage.values import Archived, ChainPlan
from tests.fakes import START, Clock
from tests.servers import BUSY_BACKGROUND, PipeServer, wait_until
from tests.test_correcting import correct_fact, look_at_fact
from tests.test_store import lease_of, opened, turn
from tests.test_store_redo import fact, file, filled, learn, topic

pytestmark = pytest.mark.both_stores(in_campaign=True)

LIMIT_S = 60


def cold(_: Segment) -> float:
    return 0.0


async def ids_of(store: SqlStore) -> list[str]:
    """Return the ids of all pages, newest first."""
    return [entry.id for entry in await whole(store)]


async def stretch(store: SqlStore, cursor: str = "", limit: int = 100, **conditions: Any) -> ListPart:
    given: dict[str, Any] = {"tier": "", "topic": "", "state": "", "after": "", "before": "", "zone": None}
    return await listed(store.user_data, list_request(**{**given, **conditions}), cursor, limit)


async def whole(store: SqlStore, **conditions: Any) -> Any:
    found = await stretch(store, **conditions)
    assert found.cursor is None
    return found.entries


# By id ----------------------------------------------------------------------------------------------------------------


async def test_a_page_is_shown_with_its_neighbours_in_the_chain(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        lease = await filled(store, 4)
        await file(
            store, lease, topic(1, 2, 3, 4), chains=[ChainPlan(None, (1, 3, 4), "run"), ChainPlan(None, (2,), "x")]
        )
        ids = (await ids_of(store))[::-1]
        found = await look(store.user_data, [ids[2], ids[1], ids[2]], 1000, cold)
    assert len(found) == 2
    first, second = found
    assert isinstance(first, PageView)
    assert (first.page.page_id, first.page.user_input, first.page.chain_summary) == (ids[2], "question 3", "run")
    assert first.before is not None
    assert first.after is not None
    assert (first.before.page_id, first.after.page_id) == (ids[0], ids[3])
    assert first.before.beginning == "question 1"
    assert isinstance(second, PageView)
    assert (second.before, second.after) == (None, None)


async def test_the_longest_pages_are_cut_if_they_do_not_fit(tmp_path: Path) -> None:
    long = "The kiln was hot. " * 400
    async with opened(tmp_path) as store:
        receipts = await store.add_pages([Turn(long, "", START), Turn("short", "one", START)])
        ids = [receipt.page_id for receipt in receipts]
        both = await look(store.user_data, ids, 3000, cold)
        cut, short = await look(store.user_data, ids, 500, cold)
    pages = [each for each in (*both, cut, short) if isinstance(each, PageView)]
    assert [each.is_excerpt for each in pages] == [False, False, True, False]
    assert 1000 < len(pages[2].page.user_input) < 2100


async def test_a_missing_id_is_named_and_nothing_is_shown(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await store.add_pages([turn(1)])
        (known,) = await ids_of(store)
        with pytest.raises(ArgumentError, match=r"^ids: no memory has the id p_0123456789abcdef or k7 or trait:Diet;"):
            await look(store.user_data, [known, "p_0123456789abcdef", "k7", " trait:Diet "], 1000, cold)
        with pytest.raises(ArgumentError, match=r"^ids\[1\]: is not a valid id;"):
            await look(store.user_data, [known, "page 7"], 1000, cold)


async def test_facts_of_another_assistant_are_not_found(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        lease = await filled(store, 1)
        await file(store, lease, topic(1))
        await learn(store, lease, [1], fact("I live in Paris.", 1))
        await learn(store, lease, [1], replace(fact("I am a poet.", 1), about=About.ASSISTANT))
        assert [entry.id for entry in await whole(store, tier="knowledge")] == ["k2", "k1"]
        assert [entry.id for entry in await whole(store, tier="knowledge", about="user")] == ["k1"]
        assert [entry.id for entry in await whole(store, tier="knowledge", about="assistant")] == ["k2"]
        with pytest.raises(ArgumentError, match="use one of user, assistant"):
            await whole(store, tier="knowledge", about="x")
    async with opened(tmp_path, assistant_id="other") as store:
        assert [entry.id for entry in await whole(store, tier="knowledge")] == ["k1"]
        with pytest.raises(ArgumentError, match="no memory has the id k2"):
            await look(store.user_data, ["k1", "k2"], 1000, cold)
        with pytest.raises(ArgumentError, match="no memory has the id k2"):
            await correct_fact(store, 2)


async def test_a_fact_shows_all_that_it_replaced_and_that_replaced_it(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, short_term_capacity=0, clock=clock) as store:
        lease = await filled(store, 1)
        await file(store, lease, topic(1))
        await learn(store, lease, [1], fact("I live in Paris.", 1), fact("I keep ants.", 1))
        for number, city in ((1, "Rome"), (3, "Oslo"), (4, "Bonn")):
            clock.move(hours=1)
            await correct_fact(store, number, f"I live in {city}.")
        for number in (1, 3, 4, 5):
            assert [each.fact for each in (await look_at_fact(store, number)).lineage] == [1, 3, 4, 5]
        assert [each.fact for each in (await look_at_fact(store, 2)).lineage] == [2]


async def test_facts_and_traits_are_found_by_their_page(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        lease = await filled(store, 2)
        await file(store, lease, topic(1, 2))
        humour = TraitChange("Sense of Humor", Level.HIGH, "Jokes.", (2,))
        await learn(store, lease, [1, 2], fact("I live in Paris.", 1, 2, slot="lives"), humour)
        await learn(store, lease, [1], replace(fact("I am a poet.", 1), about=About.ASSISTANT))
        await learn(store, lease, [2], fact("I live in Rome.", 2, slot="lives", supersedes=(1,)))
        newer, older = await ids_of(store)
        first, second = [await store.user_data.learned_from(each) for each in (older, newer)]
        assert await store.user_data.learned_from("p_00") == Learned([], [])
    assert ([each.fact for each in first.facts], first.traits) == ([2, 1], [])
    assert ([each.fact for each in second.facts], second.traits) == ([3, 1], ["Sense of Humor"])
    assert second.facts[0].evidence == (newer,)
    async with opened(tmp_path, assistant_id="other") as store:
        assert [each.fact for each in (await store.user_data.learned_from(older)).facts] == [1]


async def test_pages_are_listed_by_chain(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        lease = await filled(store, 4)
        await file(
            store, lease, topic(1, 2, 3, 4), chains=[ChainPlan(None, (1, 3, 4), "run"), ChainPlan(None, (2,), "x")]
        )
        ids = (await ids_of(store))[::-1]
        assert [entry.id for entry in await whole(store, chain=1)] == [ids[3], ids[2], ids[0]]
        assert [entry.id for entry in await whole(store, chain=2)] == [ids[1]]
        assert await whole(store, chain=3) == []


@given(st.text(max_size=60))
def test_any_text_is_parsed_as_an_id_or_refused(text: str) -> None:
    try:
        read = read_id(text)
    except ArgumentError:
        return
    assert read_id(str(read)) == read
    assert read.kind is not Kind.PAGE or str(read) == text.strip()


# In lists -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [1, 3, 7])
async def test_a_list_has_each_memory_once_despite_new_pages(tmp_path: Path, limit: int) -> None:
    async with opened(tmp_path) as store:
        await store.add_pages([turn(number) for number in range(1, 12)])
        before = await ids_of(store)
        seen: list[str] = []
        found = await stretch(store, limit=limit)
        while True:
            seen += [entry.id for entry in found.entries]
            await store.add_pages([turn(100 + len(seen))])
            if found.cursor is None:
                break
            found = await stretch(store, found.cursor, limit)
        assert seen == before


async def test_long_term_lists_profile_then_knowledge(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        lease = await filled(store, 3)
        await file(store, lease, topic(1, 2), topic(3))
        changes = [TraitChange(name, Level.LOW, "Because.", (3,)) for name in ("Openness", "Diet")]
        await learn(store, lease, [1, 2, 3], *changes, fact("I live in Paris.", 1), fact("I keep ants.", 3))
        seen: list[str] = []
        cursor: str | None = ""
        while cursor is not None:
            found = await stretch(store, cursor, 1, tier="long_term")
            seen += [entry.id for entry in found.entries]
            cursor = found.cursor
        assert seen == ["trait:Diet", "trait:Openness", "k2", "k1"]
        about_ants = [entry.id for entry in await whole(store, tier="long_term", topic="s2")]
        assert about_ants == ["trait:Diet", "trait:Openness", "k2"]


async def test_a_list_is_filtered_by_tier_topic_time_and_state(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, short_term_capacity=2, clock=clock) as store:
        lease = await lease_of(store)
        await store.add_pages([turn(number, minutes=60 * number) for number in range(1, 7)])
        await file(store, lease, topic(1, 2), topic(3))
        await learn(store, lease, [1], fact("I live in Paris.", 1), fact("I keep ants.", 3))
        await correct_fact(store, 1, "The user lives in London")

        async def beginnings(**conditions: Any) -> list[str]:
            return [entry.beginning for entry in await whole(store, **conditions)]

        assert await beginnings(tier="short_term") == ["question 6", "question 5"]
        assert await beginnings(tier="backlog") == ["question 4"]
        assert await beginnings(tier="mid_term") == ["question 3", "question 2", "question 1"]
        assert await beginnings(topic="s1") == ["question 2", "question 1"]
        assert await beginnings(topic="OPI") == ["question 3", "question 2", "question 1"]
        assert await beginnings(topic="nothing like it") == []
        from_two, until_four = START + timedelta(hours=2), (START + timedelta(hours=4)).isoformat()
        assert await beginnings(after=from_two, before=until_four) == ["question 3", "question 2"]
        assert [entry.id for entry in await whole(store, tier="segments", before=from_two)] == ["s1"]
        assert await beginnings(tier="knowledge") == ["The user lives in London", "I keep ants."]
        assert await beginnings(tier="knowledge", state="superseded") == ["I live in Paris."]
        assert await beginnings(tier="knowledge", state="archived") == []
        await store.commit(lease, Archived([1]))
        assert [entry.id for entry in await whole(store, tier="segments")] == ["s2"]
        assert [entry.id for entry in await whole(store, tier="segments", state="archived")] == ["s1"]


def cursor_of(*parts: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode()


async def test_an_invalid_cursor_is_refused(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await store.add_pages([turn(1), turn(2)])
        good = (await stretch(store, limit=1)).cursor
        assert good is not None
        mark, kind, after = json.loads(base64.urlsafe_b64decode(good))
        broken = [good[:-2], good + "A", "x", "é", cursor_of(), cursor_of(1), "W" * 5000, cursor_of(mark, "ghost", 1)]
        for cursor in [*broken, cursor_of(*[[]] * 2000)]:
            with pytest.raises(ArgumentError, match=r"^cursor: is not valid;"):
                await stretch(store, cursor, 1)
        strange = [
            (mark, kind, "2"),
            (mark, kind, True),
            (mark, kind, None),
            (mark, "fact", 1),
            (mark + 1, kind, after),
        ]
        for parts in strange:
            with pytest.raises(ArgumentError, match=r"^cursor: was returned for different arguments"):
                await stretch(store, cursor_of(*parts), 1)
        with pytest.raises(ArgumentError, match=r"^cursor: was returned for different arguments"):
            await stretch(store, good, 1, tier="short_term")


@given(st.text(max_size=80))
def test_random_text_is_refused_as_a_cursor(text: str) -> None:
    async def refused() -> None:
        with pytest.raises(ArgumentError):
            await listed(None, list_request(tier="", topic="", state="", after="", before="", zone=None), text, 1)  # type: ignore[arg-type]

    if text:
        asyncio.run(refused())


# By time --------------------------------------------------------------------------------------------------------------


def said(text: str, at: datetime, source: Source = Source.CONVERSATION) -> Turn:
    return Turn(text, "", at, source=source)


@pytest.mark.parametrize("limit", [1, 2, 5])
async def test_a_list_by_time_has_each_page_once(tmp_path: Path, limit: int) -> None:
    days = [3, 1, 2, 2, 5]  # pages are added in another order, and two of them have the same time
    async with opened(tmp_path) as store:
        await store.add_pages([said(f"Day {day}.", START + timedelta(days=day)) for day in days])
        seen: list[str] = []
        cursor: str | None = ""
        while cursor is not None:
            part = await stretch(store, cursor, limit, is_by_time=True)
            seen += [entry.beginning for entry in part.entries]
            cursor = part.cursor
            await store.add_pages([said("Later.", START + timedelta(days=9))])
    assert seen == ["Day 5.", "Day 3.", "Day 2.", "Day 2.", "Day 1."]


@pytest.mark.parametrize("is_by_time", [False, True])
async def test_pages_are_filtered_by_source_and_words(tmp_path: Path, is_by_time: bool) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        lease = await lease_of(store)
        await store.add_pages(
            [
                said("The kiln is hot.", START),
                said("Two kilns, both cold.", START + timedelta(days=1), Source.WEB),
                said("Ich töpfere 東京都.", START + timedelta(days=2)),
            ]
        )
        await file(store, lease, topic(1), topic(2, 3))

        async def found(**conditions: Any) -> list[str]:
            entries = (await stretch(store, is_by_time=is_by_time, **conditions)).entries
            return [entry.beginning for entry in entries]

        assert await found(source="web") == ["Two kilns, both cold."]
        assert await found(words="KILN") == ["Two kilns, both cold.", "The kiln is hot."]
        assert await found(words="kiln hot") == ["The kiln is hot."]
        assert await found(words="京都") == ["Ich töpfere 東京都."]
        assert await found(words="kiln", source="conversation", topic="s1") == ["The kiln is hot."]
        assert await found(words="kiln", topic="s2", after=START + timedelta(days=2)) == []
        assert await found(words='unheard" OR "kiln') == []


async def test_bad_filters_and_cursors_of_pages_are_refused(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await store.add_pages([turn(1), turn(2)])
        for conditions in ({"source": "radio"}, {"words": "!?"}, {"words": "x" * 300}):
            with pytest.raises(ArgumentError, match=f"^{next(iter(conditions))}: "):
                await stretch(store, "", 100, **conditions)
        with pytest.raises(ArgumentError, match="apply only to pages"):
            await stretch(store, tier="knowledge", words="kiln")
        cursor = (await stretch(store, limit=1, is_by_time=True)).cursor
        assert cursor is not None
        mark, kind, after = json.loads(base64.urlsafe_b64decode(cursor))
        for wrong in (after[0], [*after, 1], [str(after[0]), 1], [1, 10**30], []):
            with pytest.raises(ArgumentError, match=r"^cursor: was returned for different arguments"):
                await stretch(store, cursor_of(mark, kind, wrong), 1, is_by_time=True)
        with pytest.raises(ArgumentError, match=r"^cursor: was returned for different arguments"):
            await stretch(store, cursor, 1)


async def test_pages_are_counted_by_local_days_despite_summer_time(tmp_path: Path) -> None:
    zone = ZoneInfo("Europe/Berlin")  # on 2026-03-29, the day has 23 hours; on 2026-10-25, it has 25
    times = [
        datetime(1950, 3, 1, 12, tzinfo=zone),
        datetime(2026, 3, 28, 23, 59, tzinfo=zone),
        datetime(2026, 3, 29, 0, 0, tzinfo=zone),
        datetime(2026, 3, 29, 23, 59, tzinfo=zone),
        datetime(2026, 3, 30, 0, 0, tzinfo=zone),
        datetime(2026, 10, 25, 0, 0, tzinfo=zone),
        datetime(2026, 10, 25, 23, 59, tzinfo=zone),
        datetime(2026, 10, 26, 0, 0, tzinfo=zone),
    ]
    async with opened(tmp_path) as store:
        sources = [Source.WEB, *[Source.CONVERSATION] * 7]
        await store.add_pages(
            [said("Kiln.", at.astimezone(UTC), source) for at, source in zip(times, sources, strict=True)]
        )

        async def counts(first: date, last: date, **conditions: Any) -> dict[str, int]:
            given: dict[str, Any] = {"tier": "", "topic": "", "state": "", "after": "", "before": "", "zone": zone}
            request = list_request(**{**given, **conditions})
            found = await page_counts(store.user_data, request, first, last, zone)
            return {str(first + timedelta(days=n)): count for n, count in enumerate(found) if count}

        year = date(2026, 1, 1), date(2026, 12, 31)
        assert await counts(*year) == {
            "2026-03-28": 1,
            "2026-03-29": 2,
            "2026-03-30": 1,
            "2026-10-25": 2,
            "2026-10-26": 1,
        }
        assert await counts(date(1950, 2, 28), date(1950, 3, 2)) == {"1950-03-01": 1}
        assert await counts(*year, words="kiln", source="web") == {}
        with pytest.raises(ArgumentError, match=r"^last: "):
            await counts(year[1], year[0])


async def test_a_topic_has_the_times_and_chains_of_its_pages(tmp_path: Path) -> None:
    async with opened(tmp_path, short_term_capacity=0) as store:
        lease = await lease_of(store)
        await store.add_pages([said(f"Page {n}.", START + timedelta(days=day)) for n, day in enumerate((5, 1, 2, 9))])
        chains = [ChainPlan(None, (1,), "old"), ChainPlan(None, (2, 3), "short"), ChainPlan(None, (4,), "other")]
        await file(store, lease, topic(1, 2, 3), topic(4), chains=chains)
        found = await store.user_data.segment_pages(1, 1)
    assert [(at - START).days for at in found.times] == [1, 2, 5]
    assert [(chain.summary, chain.page_count, (chain.newest_at - START).days) for chain in found.chains] == [
        ("old", 1, 5)
    ]
    assert found.chain_count == 2


# Through a server -----------------------------------------------------------------------------------------------------


def test_a_server_shows_lists_and_corrects_memories(data: Path) -> None:
    settings = {**BUSY_BACKGROUND, "mid_term_heat_threshold": 0.5}
    with PipeServer(data, settings) as server:
        server.add("I live in Paris. I am allergic to peanuts.", meta_data={"mood": "good"})
        for number in range(6):
            server.add(f"My pottery class glazed bowl {number} in the kiln, and I love pottery.")
        facts: list[dict[str, Any]] = []

        def has_learned() -> bool:
            facts[:] = server.call("list_memories", tier="knowledge")["memories"]
            return any("Paris" in known["beginning"] for known in facts)

        wait_until(has_learned, "the fact is learned")
        server.wait_until_settled()  # the page has a topic and a chain
        lives = next(known["id"] for known in facts if "Paris" in known["beginning"])
        (shown,) = server.call("get_memory", ids=lives)["memories"]
        (page,) = server.call("get_memory", ids=shown["evidence"])["memories"]
        assert (page["user_input"], page["meta_data"], page["source"]) == (
            "I live in Paris. I am allergic to peanuts.",
            {"mood": "good"},
            "conversation",
        )
        topic_of_it, chain = server.call("get_memory", ids=[page["segment_id"], page["chain_id"]])["memories"]
        assert page["id"] in topic_of_it["newest_pages"]
        assert page["id"] in chain["newest_pages"]
        held = server.call("correct_memory", id=lives, text="The user lives in London")["holds_now"]
        before, now = server.call("get_memory", ids=[lives, held])["memories"]
        assert (before["state"], before["ended_by"], before["superseded_by"]["id"]) == (
            "superseded",
            "corrected by the user",
            held,
        )
        assert (now["text"], now["learned_by"]) == ("The user lives in London", "user")
        assert [each["id"] for each in now["supersedes"]] == [lives]
        wait_until(lambda: server.call("get_user_profile")["traits"], "the profile is judged")
        traits = server.call("get_user_profile")["traits"]
        assert traits
        fixed = server.call("correct_memory", id=traits[0]["id"].upper().replace("TRAIT:", "trait:"), level="Low")
        (trait,) = server.call("get_memory", ids=[fixed["holds_now"]])["memories"]
        assert (trait["level"], trait["learned_by"]) == ("Low", "user")
        assert trait["history"][0]["ended_by"] == "corrected by the user"
        text = server.result(server.send_call("get_memory", {"ids": [page["id"], held]}))["content"][0]["text"]
        assert text.startswith("<memory>\n")
        assert text.endswith("\n</memory>")
        said = server.call("retrieve_memory", query="Where does the user live?")["retrieved_user_knowledge"]
        assert "The user lives in London" in [known["knowledge"] for known in said]
        assert lives not in [known["knowledge_id"] for known in said]


@asynccontextmanager
async def two_users(folder: Path) -> AsyncIterator[tuple[MemoryEngine, MemoryEngine]]:
    settings = Settings(data_storage_path=folder, embedding_model_name="none")
    async with (
        asyncio.timeout(LIMIT_S),
        MemoryService(settings, clock=Clock()) as service,
        service.user("ada") as ada,
        service.user("eve") as eve,
    ):
        yield ada, eve


async def test_an_id_of_another_user_is_not_found(tmp_path: Path) -> None:
    async with two_users(tmp_path) as (ada, eve):
        page_id = (await ada.add("I keep ants.", "")).page_id
        assert len(await ada.look([page_id])) == 1
        with pytest.raises(ArgumentError, match=f"no memory has the id {page_id}"):
            await eve.look([page_id])
        assert (await eve.listed()).entries == []
