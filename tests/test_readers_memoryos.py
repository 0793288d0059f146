"""Importers of the reference's memories: its folder, its storage on Chroma, and its playground's file."""

import random
from datetime import datetime
from pathlib import Path

import pytest

from memoryos_mcp.errors import ImportFormatError
from memoryos_mcp.model.knowledge import About
from memoryos_mcp.model.pages import NewTurn, Source
from memoryos_mcp.transfer.importers import memoryos, memoryos_chroma, playground, recognise
from memoryos_mcp.transfer.importers.reference import DAMAGED, ERROR_TEXT, NO_FACT, NO_WORDS
from memoryos_mcp.transfer.interface import ImportedFact, Reader, Skipped
from tests.foreign_memories import (
    BEGAN,
    LLM_ERROR,
    Reference,
    long_term,
    make_reference,
    write_chroma,
    write_json,
    write_reference,
)


def read(reader: Reader, path: Path) -> tuple[list[NewTurn], list[ImportedFact], list[Skipped]]:
    found = list(reader.read(path, lambda _: None))
    return (
        [each for each in found if isinstance(each, NewTurn)],
        [each for each in found if isinstance(each, ImportedFact)],
        [each for each in found if isinstance(each, Skipped)],
    )


def turns(pages: list[NewTurn]) -> list[tuple[str, str, object]]:
    return [(page.user_input, page.agent_response, page.timestamp) for page in pages]


@pytest.mark.parametrize("seed", range(5))
def test_a_data_folder_is_read_completely_and_each_page_once(tmp_path: Path, seed: int) -> None:
    memory = make_reference(pages=200, seed=seed)
    write_reference(tmp_path, memory)
    assert sum(map(len, memory.topics.values())) > len(memory.pages)
    pages, facts, skipped = read(memoryos, tmp_path)
    assert turns(pages) == memory.turns
    assert len({page.idempotency_key for page in pages}) == len(pages)
    assert (facts, skipped) == ([], [])


def test_the_folder_of_one_user_gives_the_same_result(tmp_path: Path) -> None:
    memory = make_reference()
    users = write_reference(tmp_path, memory)
    assert read(memoryos, users) == read(memoryos, tmp_path)


def test_a_page_has_the_same_key_in_short_term_and_in_a_topic(tmp_path: Path) -> None:
    memory = make_reference()
    before = {page.idempotency_key for page in read(memoryos, write_reference(tmp_path / "before", memory))[0]}
    memory.topics["session_0"] += memory.pages[-5:]
    memory.short_term = []
    assert {page.idempotency_key for page in read(memoryos, write_reference(tmp_path / "after", memory))[0]} == before


def test_a_text_said_twice_in_one_second_is_two_pages(tmp_path: Path) -> None:
    turn = {"user_input": "ok", "agent_response": "ok", "timestamp": "2026-01-05 09:00:00"}
    memory = Reference(short_term=[dict(turn), dict(turn)], topics={"one": [turn | {"page_id": "a"}]})
    pages = read(memoryos, write_reference(tmp_path, memory))[0]
    assert len({page.idempotency_key for page in pages}) == len(pages) == 3


def test_pages_of_one_second_follow_their_chain(tmp_path: Path) -> None:
    at = "2026-01-05 09:00:00"
    chain = [
        {
            "page_id": f"p{number}",
            "user_input": f"turn {number}",
            "agent_response": "",
            "timestamp": at,
            "pre_page": f"p{number - 1}" if number else None,
        }
        for number in range(20)
    ]
    random.Random(3).shuffle(chain)  # noqa: S311 - an order, no secret
    pages = read(memoryos, write_reference(tmp_path, Reference(topics={"one": chain})))[0]
    assert [page.user_input for page in pages] == [f"turn {number}" for number in range(20)]


def test_a_chain_with_a_cycle_loses_no_page(tmp_path: Path) -> None:
    ring = [
        {"page_id": "a", "user_input": "one", "timestamp": "2026-01-05 09:00:00", "next_page": "b", "pre_page": "b"},
        {"page_id": "b", "user_input": "two", "timestamp": "2026-01-05 09:00:00", "next_page": "a", "pre_page": "a"},
        {"page_id": "c", "user_input": "three", "timestamp": "2026-01-05 09:00:00", "next_page": "c"},
    ]
    pages = read(memoryos, write_reference(tmp_path, Reference(topics={"one": ring})))[0]
    assert sorted(page.user_input for page in pages) == ["one", "three", "two"]


def test_two_pages_with_one_id_are_both_read(tmp_path: Path) -> None:
    at = "2026-01-05 09:00:00"
    first = {"page_id": "a", "user_input": "one", "timestamp": at}
    second = {"page_id": "a", "user_input": "two", "timestamp": at}
    memory = Reference(topics={"x": [first, second], "y": [second, first]})
    pages = read(memoryos, write_reference(tmp_path, memory))[0]
    assert [page.user_input for page in pages] == ["one", "two"]


def test_a_page_without_a_time_has_that_of_the_previous_page(tmp_path: Path) -> None:
    short_term = [
        {"user_input": "one", "agent_response": "", "timestamp": "2026-01-05 09:00:00"},
        {"user_input": "two", "agent_response": "", "timestamp": "long ago"},
        {"user_input": "three", "agent_response": ""},
        {"user_input": "four", "agent_response": "", "timestamp": "2026-01-05 09:00:01"},
    ]
    pages = read(memoryos, write_reference(tmp_path, Reference(short_term=short_term)))[0]
    assert [(page.user_input, page.timestamp) for page in pages] == [
        ("one", "2026-01-05 09:00:00"),
        ("two", "2026-01-05 09:00:00"),
        ("three", "2026-01-05 09:00:00"),
        ("four", "2026-01-05 09:00:01"),
    ]


def test_error_messages_are_skipped_but_the_users_text_is_read(tmp_path: Path) -> None:
    short_term = [
        {"user_input": "hello", "agent_response": LLM_ERROR, "timestamp": "2026-01-05 09:00:00"},
        {"user_input": "", "agent_response": LLM_ERROR, "timestamp": "2026-01-05 09:00:01"},
    ]
    facts = long_term(["Likes tea", LLM_ERROR, "None.", "- None", " ", "- Lives in Rome"], profile=LLM_ERROR)
    write_reference(tmp_path, Reference(short_term=short_term), users_facts=facts)
    pages, found, skipped = read(memoryos, tmp_path)
    assert turns(pages) == [("hello", "", "2026-01-05 09:00:00")]
    assert [(fact.text, fact.about) for fact in found] == [("Likes tea", About.USER), ("Lives in Rome", About.USER)]
    reasons = [each.reason for each in skipped]
    assert [reasons.count(reason) for reason in (ERROR_TEXT, NO_WORDS, NO_FACT)] == [4, 1, 3]


def test_facts_have_their_time_and_whom_they_are_about(tmp_path: Path) -> None:
    memory = make_reference(pages=8)
    users_facts, assistants_facts = long_term(["Likes tea"]), long_term(about_assistant=["Speaks Italian"])
    users = write_reference(tmp_path, memory, users_facts=users_facts, assistants_facts=assistants_facts)
    at = datetime(2026, 1, 6, 10)  # noqa: DTZ001 - the file names no zone
    facts = read(memoryos, tmp_path)[1]
    assert [(fact.text, fact.about, fact.at) for fact in facts] == [
        ("Likes tea", About.USER, at),
        ("Speaks Italian", About.ASSISTANT, at),
    ]
    assert [fact.text for fact in read(memoryos, users)[1]] == ["Likes tea"]


def test_the_text_of_a_profile_becomes_a_document(tmp_path: Path) -> None:
    write_reference(tmp_path, Reference(), users_facts=long_term(profile="Openness: High."))
    (page,) = read(memoryos, tmp_path)[0]
    assert (page.user_input, page.source, page.timestamp) == (
        "Openness: High.",
        Source.DOCUMENT,
        "2026-01-07 08:00:00",
    )


def test_several_users_in_one_folder_are_not_mixed(tmp_path: Path) -> None:
    write_reference(tmp_path, make_reference(), user="ada")
    users = write_reference(tmp_path, make_reference(seed=8), user="bob")
    assert recognise(tmp_path) is memoryos
    with pytest.raises(
        ImportFormatError, match=r"memories of 2 users, such as 'ada', 'bob'; import one folder in users/"
    ):
        read(memoryos, tmp_path)
    assert turns(read(memoryos, users)[0]) == make_reference(seed=8).turns


def test_a_folder_without_a_memory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "users" / "ada").mkdir(parents=True)
    assert recognise(tmp_path) is None
    with pytest.raises(ImportFormatError, match=r"contains no memory"):
        read(memoryos, tmp_path)


def test_a_file_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    users = write_reference(tmp_path, make_reference())
    file = users / "mid_term.json"
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(ImportFormatError, match=r"mid_term\.json is damaged at byte .* cut off"):
        read(memoryos, tmp_path)


def test_values_of_wrong_types_are_skipped_with_their_place(tmp_path: Path) -> None:
    users = write_reference(tmp_path, make_reference(pages=8))
    good = {"user_input": "kept", "agent_response": "", "timestamp": "2026-01-05 09:00:00"}
    write_json(users / "short_term.json", [7, None, [], {"user_input": 7}, good | {"page_id": {"a": 1}}, "text"])
    write_json(
        users / "mid_term.json", {"sessions": {"a": 7, "b": {"details": {}}, "c": {"details": [None]}}, "x": [{}]}
    )
    write_json(users / "long_term_user.json", {"user_profiles": {"ada": 7}, "knowledge_base": [None, 7, {}, "A fact"]})
    pages, facts, skipped = read(memoryos, tmp_path)
    assert [page.user_input for page in pages] == ["kept"]
    assert [fact.text for fact in facts] == ["A fact"]
    assert {each.reason for each in skipped} == {DAMAGED, NO_WORDS}
    assert "short_term.json, page 1" in {each.where for each in skipped}
    assert "mid_term.json, topic 3, page 1" in {each.where for each in skipped}


def test_progress_ends_at_the_size_of_the_files(tmp_path: Path) -> None:
    users = write_reference(tmp_path, make_reference())
    told: list[int] = []
    for _ in memoryos.read(users, told.append):
        pass
    assert told == sorted(told)
    assert told[-1] == sum(file.stat().st_size for file in users.iterdir())


@pytest.mark.parametrize("seed", range(3))
def test_a_chroma_storage_is_read_completely(tmp_path: Path, seed: int) -> None:
    memory = make_reference(pages=120, seed=seed)
    storage = write_chroma(
        tmp_path, memory, facts=["Likes tea", "None."], about_assistant=["Speaks Italian"], profile="Openness: High."
    )
    for path in (tmp_path, storage, storage / "metadata_ada_helper_ada.json"):
        assert recognise(path) is memoryos_chroma
        pages, facts, skipped = read(memoryos_chroma, path)
        assert turns(pages[:-1]) == memory.turns
        assert pages[-1].source is Source.DOCUMENT
        assert [(fact.text, fact.about) for fact in facts] == [
            ("Likes tea", About.USER),
            ("Speaks Italian", About.ASSISTANT),
        ]
        assert [each.reason for each in skipped] == [NO_FACT]


def test_both_storages_of_a_memory_give_the_same_pages_and_keys(tmp_path: Path) -> None:
    memory = make_reference()
    write_chroma(tmp_path / "chroma", memory)
    write_reference(tmp_path / "folder", memory)
    by_chroma = read(memoryos_chroma, tmp_path / "chroma")[0]
    assert [page.idempotency_key for page in by_chroma] == [
        page.idempotency_key for page in read(memoryos, tmp_path / "folder")[0]
    ]


def test_several_users_in_one_chroma_are_not_mixed(tmp_path: Path) -> None:
    storage = write_chroma(tmp_path, make_reference(), users=["ada", "ada_b"], facts=["a"], about_assistant=["b"])
    with pytest.raises(ImportFormatError, match="2 users"):
        read(memoryos_chroma, tmp_path)
    pages, facts, _ = read(memoryos_chroma, storage / "metadata_ada_b_helper_ada_b.json")
    assert turns(pages) == make_reference().turns
    assert [fact.text for fact in facts] == ["a"]


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\x00 and then nothing of the kind", b"x" * 5000])
def test_a_damaged_chroma_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "chroma.sqlite3").write_bytes(content)
    assert recognise(tmp_path) is memoryos_chroma
    with pytest.raises(ImportFormatError, match=r"chroma\.sqlite3"):
        read(memoryos_chroma, tmp_path)


def test_reading_a_chroma_changes_nothing_in_its_folder(tmp_path: Path) -> None:
    storage = write_chroma(tmp_path, make_reference())
    before = {file.name: file.read_bytes() for file in storage.iterdir()}
    read(memoryos_chroma, tmp_path)
    assert {file.name: file.read_bytes() for file in storage.iterdir()} == before


def test_a_playground_file_is_read_in_order_of_time(tmp_path: Path) -> None:
    turn = {"user_input": "first", "agent_response": "yes", "timestamp": str(BEGAN)}
    later = {"user_input": "second", "agent_response": "no", "timestamp": "2026-02-01 00:00:00"}
    undated = {"user_input": "undated", "agent_response": "no"}
    file = write_json(tmp_path / "any name.json", {"conversations": [later, turn, undated, None]})
    assert recognise(file) is playground
    pages, _, skipped = read(playground, file)
    assert [page.user_input for page in pages] == ["first", "undated", "second"]
    assert [each.where for each in skipped] == ["conversation 4"]
