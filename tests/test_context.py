"""What a client is handed for a question, through the MCP tool of a real server over stdio."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from memoryos_mcp.model.pages import estimate_tokens
from tests.servers import PipeServer, wait_until

# Pages stay where they came in, so that what is found does not hang on when they are filed.
QUIET = {"short_term_capacity": 0, "consolidation_idle_s": 3600, "consolidation_batch_pages": 100}
MIXED = (
    ("I'm allergic to peanuts and shellfish, so I never eat them.", "Good to know: no peanuts and no shellfish."),
    ("What time is it in Tokyo when it is noon here?", "In winter it is eight in the evening there."),
    ("Write me a haiku about frogs.", "Old silent green pond, a frog leaps into the night, rings of water spread."),
    ("My bike has a flat tyre again.", "Check the rim tape before you put a new tube in."),
    ("Which gift would suit a ten year old who likes space?", "A planisphere, or a small pair of binoculars."),
    ("How do I sort a list in Python?", "Use sorted(), with a key if you need one."),
    ("I can't have dairy either, my stomach won't take it.", "Then oat milk is a safe choice."),
    ("The train to work was late by forty minutes.", "You may be able to claim a part of the fare."),
    ("Translate good morning into Finnish.", "Hyvää huomenta."),
    ("I planted tulip bulbs along the fence.", "They will come up in April."),
    ("How far away is the moon?", "About 384,000 kilometres."),
    ("My doctor told me not to eat grapefruit with my pills.", "Yes, it changes how they work."),
    ("Can you name three rivers in France?", "The Loire, the Rhone and the Garonne."),
    ("I'd like to learn the cello one day.", "Renting one for a year is a good beginning."),
    ("What does RSVP stand for?", "Répondez s'il vous plaît."),
    ("The washing machine makes a loud noise.", "The bearings may be worn."),
    ("Remind me how long pasta takes.", "Ten minutes for most shapes."),
    ("The neighbours have a new puppy.", "Expect a few lively nights."),
)
LONG = "The talk went on about drums, trumpets and the weather of the week before. " * 30


@pytest.fixture
def server(tmp_path: Path) -> Iterator[PipeServer]:
    with PipeServer(tmp_path / "data", QUIET) as running:
        yield running


def fill(server: PipeServer, said: Sequence[tuple[str, str]]) -> None:
    for number, (user, assistant) in enumerate(said):
        server.add(user, assistant, timestamp=f"2026-03-{1 + number % 28:02}T{10 + number // 28:02}:00:00")
    wait_until_embedded(server)


def wait_until_embedded(server: PipeServer) -> None:
    wait_until(lambda: server.stats()["unembedded_pages"] == 0, "every page is embedded")


def retrieved(server: PipeServer, **arguments: Any) -> tuple[dict[str, Any], str]:
    """Return the structured result of a retrieval and its text."""
    result = server.result(server.send_call("retrieve_memory", arguments))
    assert not result.get("isError"), result["content"][0]["text"]
    return result["structuredContent"], result["content"][0]["text"]


def test_a_question_is_not_answered_with_everything_there_is(server: PipeServer) -> None:
    fill(server, MIXED)
    found, text = retrieved(server, query="what must I not eat?")
    said = [page["user_input"] for page in found["retrieved_pages"]]
    assert 3 <= len(said) <= len(MIXED) // 2
    assert {MIXED[0][0], MIXED[11][0]} <= set(said)
    assert "Tokyo" not in text
    assert "haiku" not in text
    assert found["left_out"] is None


def fill_as_one_talk(server: PipeServer) -> None:
    """Add the mixed pages in one conversation, so that the first five of them are among the newest seven."""
    for user, assistant in (*MIXED[5:], *MIXED[:5]):
        server.add(user, assistant)
    wait_until_embedded(server)


def test_recent_pages_about_other_things_stay_out(tmp_path: Path) -> None:
    with PipeServer(tmp_path / "data") as server:
        fill_as_one_talk(server)
        found, text = retrieved(server, query="what must I not eat?")
        said = [page["user_input"] for page in (*found["short_term_memory"], *found["retrieved_pages"])]
        assert {MIXED[0][0], MIXED[11][0]} <= set(said)
        assert len(said) <= len(MIXED) // 2
        assert not {"Tokyo", "haiku"} & set(re.findall(r"\w+", text))
        assert found["left_out"] is None
        assert [page["user_input"] for page in found["short_term_memory"]] == [MIXED[n][0] for n in (0, 3, 4)]


def test_the_last_two_exchanges_come_whatever_is_asked(tmp_path: Path) -> None:
    with PipeServer(tmp_path / "data") as server:
        fill_as_one_talk(server)
        found, _ = retrieved(server, query="How do I sort a list in Python?")
        newest = [page["user_input"] for page in found["short_term_memory"]]
        assert newest[-2:] == [MIXED[3][0], MIXED[4][0]]


def test_recent_pages_count_as_others_if_so_many_are_asked_for(tmp_path: Path) -> None:
    with PipeServer(tmp_path / "data") as server:
        fill_as_one_talk(server)
        found, _ = retrieved(server, query="what must I not eat?", max_results=30)
        said = [page["user_input"] for page in (*found["short_term_memory"], *found["retrieved_pages"])]
        assert sorted(said) == sorted(user for user, _ in MIXED)
        few, _ = retrieved(server, query="what must I not eat?", max_results=2)
        assert len(few["retrieved_pages"]) == 2
        assert len(few["short_term_memory"]) < 5


def test_as_many_pages_come_as_were_asked_for(server: PipeServer) -> None:
    fill(server, [(f"Concert number {number}: {LONG}", f"Tell me more. {LONG}") for number in range(15)])
    found, _ = retrieved(server, query="the concert with trumpets", max_results=10)
    assert len(found["retrieved_pages"]) == 10
    found, text = retrieved(server, query="the concert with trumpets", max_results=10, max_tokens=1000)
    assert len(found["retrieved_pages"]) < 10
    assert estimate_tokens(text) <= 1000


def test_of_short_pages_more_than_ten_come_up_to_the_ceiling(tmp_path: Path) -> None:
    said = [(f"I heard concert {number} in the park.", "How was it?") for number in range(30)]
    with PipeServer(tmp_path / "data", QUIET) as server:
        fill(server, said)
        found, _ = retrieved(server, query="Which concerts did I hear in the park?")
        assert 10 < len(found["retrieved_pages"]) <= 20
    with PipeServer(tmp_path / "data", {**QUIET, "retrieval_queue_capacity": 12}) as server:
        found, _ = retrieved(server, query="Which concerts did I hear in the park?")
        assert len(found["retrieved_pages"]) == 12


def test_what_is_left_out_is_counted_and_can_be_had(server: PipeServer) -> None:
    fill(server, [(f"I heard concert {number}. {LONG[:700]}", "How was it?") for number in range(16)])
    query = "Which concerts did I hear?"
    found, text = retrieved(server, query=query, max_tokens=700)
    left_out = found["left_out"]
    assert left_out["pages"] > 0
    assert f"{left_out['pages']} pages" in text.splitlines()[-1]
    assert f"max_tokens={left_out['max_tokens']}" in text.splitlines()[-1]
    whole, text = retrieved(server, query=query, max_tokens=left_out["max_tokens"])
    assert whole["left_out"] is None
    assert not any(page["excerpt"] for page in whole["retrieved_pages"])
    assert estimate_tokens(text) <= left_out["max_tokens"]


def test_a_page_comes_whole_where_it_fits(server: PipeServer) -> None:
    fill(
        server,
        [(f"About the oboe: {LONG}{LONG[:1_000]}", "I see."), *((f"Note {n}: {LONG}", "I see.") for n in range(6))],
    )
    found, _ = retrieved(server, query="What about the oboe?")
    best = found["retrieved_pages"][0]
    assert best["user_input"].startswith("About the oboe")
    assert not best["excerpt"]


def test_the_text_is_no_longer_than_the_budget(server: PipeServer) -> None:
    fill(server, [*MIXED, *((f"Verse {n}\n" * 20, f"Line\n{LONG}") for n in range(4))])
    server.add(f"Fetched: {LONG}", "", source="web", meta_data={"from": "a page", "tags": ["x"] * 20})
    wait_until_embedded(server)
    for max_tokens in range(100, 2_000, 93):
        found, text = retrieved(server, query="what must I not eat at the concert?", max_tokens=max_tokens)
        assert estimate_tokens(text) == found["token_estimate"] <= max_tokens


def test_the_manner_of_the_answer_is_charged(server: PipeServer) -> None:
    fill(server, [(f"I love bread number {n}. {LONG}", "I see.") for n in range(4)])
    manner = {"style_hint": "dry and brief, " * 20, "relationship_with_user": "tutor"}
    found, text = retrieved(server, query="bread", max_tokens=200, **manner)
    assert text.startswith("Answer as the user's tutor.\nStyle: dry and brief, dry")
    assert estimate_tokens(text) == found["token_estimate"] <= 200
    _, text = retrieved(server, query="bread", max_tokens=100, relationship_with_user="friend")
    assert estimate_tokens(text) <= 100
    refused = server.result(server.send_call("retrieve_memory", {"query": "bread", "max_tokens": 100, **manner}))
    assert refused["isError"]
    assert refused["content"][0]["text"] == (
        "style_hint: takes more than half of max_tokens, which is 100; shorten it, or raise max_tokens"
    )


def test_a_fact_that_holds_no_more_is_shown_with_its_end(server: PipeServer) -> None:
    def knows(place: str) -> bool:
        _, text = retrieved(server, query="Where do I live?")
        return f"- I live in {place}" in text

    server.add("I live in Leeds.", "Nice.", timestamp="2026-01-04T09:00:00")
    wait_until(lambda: knows("Leeds"), "the first place is known")
    server.add("I live in York now.", "Enjoy it.", timestamp="2026-03-04T09:00:00")
    wait_until(lambda: knows("York") and not knows("Leeds"), "the second place is known")
    _, text = retrieved(server, query="Where did I live in the past?")
    assert re.search(r"^- I live in Leeds\. \(until 2026-03-04\)$", text, re.MULTILINE)


def test_the_sides_are_shown_by_their_names(server: PipeServer) -> None:
    fill(
        server,
        [
            ("Hey John, I started to paint again.", "Great to hear, James!"),
            ("Thanks, John! Oils this time.", "Oils are slow, James. Do you like that?"),
            ("I do. Certainly, it takes days.", "Certainly, it does. Good luck, James!"),
            ("Good night, John.", "Certainly, sleep well."),
            ("I sold a painting, John!", "Certainly, I knew it. Well done, James!"),
        ],
    )
    found, text = retrieved(server, query="What was painted?")
    assert found["speakers"] == {"user": "James", "assistant": "John"}
    assert "\nUser (James): Hey John, I started" in text
    assert "\nAssistant (John): Great to hear" in text


def test_nothing_but_a_name_is_taken_for_one(server: PipeServer) -> None:
    fill(server, [(f"Absolutely, day {n}. Cool!", "Certainly! However, XML, Json, and more.") for n in range(6)])
    found, text = retrieved(server, query="What happened on day 3?")
    assert found["speakers"] == {"user": None, "assistant": None}
    assert "\nUser: Absolutely, day 3" in text


def test_a_relationship_is_told_only_if_one_was_set(server: PipeServer) -> None:
    fill(server, MIXED[:3])
    found, text = retrieved(server, query="frogs")
    assert found["relationship_with_user"] == ""
    assert "Answer as" not in text
    _, text = retrieved(server, query="frogs", relationship_with_user="tutor")
    assert text.startswith("Answer as the user's tutor.")


def test_notes_of_the_caller_are_in_the_text(server: PipeServer) -> None:
    server.add("The order is late.", "I'll look.", meta_data={"order": 4711})
    _, text = retrieved(server, query="the late order", max_results=5)
    assert '\nNotes: {"order": 4711}' in text


def test_topics_are_told_in_forty_tokens_where_there_is_room(tmp_path: Path) -> None:
    settings = {"short_term_capacity": 0, "consolidation_idle_s": 0, "consolidation_batch_pages": 4}
    with PipeServer(tmp_path / "data", settings) as server:
        fill(server, [(f"My garden grows tomatoes in bed {n}. {LONG[:500]}", "Lovely tomatoes.") for n in range(8)])
        server.wait_until_settled()
        _, text = retrieved(server, query="tomatoes in the garden", max_tokens=20_000)
        told = re.findall(r"^# Topic: .*$", text, re.MULTILINE)
        assert told
        assert all(estimate_tokens(line) <= 40 for line in told)
        found, text = retrieved(server, query="tomatoes in the garden", max_tokens=500)
        assert found["retrieved_pages"]
        assert "# Topic" not in text
        assert estimate_tokens(text) <= 500


def test_the_first_question_after_a_start_knows_that_a_greyhound_is_a_dog(tmp_path: Path) -> None:
    with PipeServer(tmp_path / "data", QUIET) as server:
        fill(server, [*MIXED[1:10], ("We adopted a greyhound last spring.", "How does she like the sofa?")])
    with PipeServer(tmp_path / "data", QUIET) as server:
        found, _ = retrieved(server, query="dog")
        assert found["search_mode"] == "hybrid"
        assert "greyhound" in found["retrieved_pages"][0]["user_input"]
