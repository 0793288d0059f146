"""Importers of facts from other memories, and of a benchmark's conversations."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType

import pytest

from memoryos_mcp.model.knowledge import About
from memoryos_mcp.model.pages import NewTurn
from memoryos_mcp.transfer.importers import locomo, mem0, recognise, server_memory
from memoryos_mcp.transfer.interface import ImportedFact, Skipped
from memoryos_mcp.transfer.json_entries import NOT_JSON
from tests.foreign_memories import write_json

DATA = Path(os.environ.get("MEMORYOS_EVAL_DATA", ""))


def read(reader: ModuleType, path: Path) -> tuple[list[ImportedFact], list[NewTurn], list[Skipped]]:
    assert recognise(path) is reader
    found = list(reader.read(path, lambda _: None))
    return (
        [each for each in found if isinstance(each, ImportedFact)],
        [each for each in found if isinstance(each, NewTurn)],
        [each for each in found if isinstance(each, Skipped)],
    )


def memory(number: int, text: object, **changes: object) -> dict[str, object]:
    return {
        "id": f"id-{number}",
        "memory": text,
        "hash": "abc",
        "metadata": {"category": "food"},
        "created_at": "2026-01-02T03:04:05.678901-07:00",
        "updated_at": None,
        "user_id": "ada",
    } | changes


@pytest.mark.parametrize("section", ["", "results", "memories"])
def test_mem0s_memories_are_facts(tmp_path: Path, section: str) -> None:
    memories = [
        memory(1, "Likes tea"),
        memory(2, "Moved to Rome", updated_at="2026-02-02T00:00:00+00:00"),
        memory(3, "Answers in Italian", user_id=None, agent_id="helper"),
    ]
    file = write_json(tmp_path / "export.json", {section: memories, "count": 3} if section else memories)
    facts, _, skipped = read(mem0, file)
    assert [(fact.text, fact.about, fact.key) for fact in facts] == [
        ("Likes tea", About.USER, "mem0:id-1"),
        ("Moved to Rome", About.USER, "mem0:id-2"),
        ("Answers in Italian", About.ASSISTANT, "mem0:id-3"),
    ]
    assert facts[0].at == datetime.fromisoformat("2026-01-02T03:04:05.678901-07:00")
    assert facts[1].at == datetime(2026, 2, 2, tzinfo=UTC)
    assert skipped == []


def test_relations_of_mem0s_graph_are_facts(tmp_path: Path) -> None:
    relations = [{"source": "ada", "relationship": "works_at", "target": "the library"}, {"source": "ada"}, 7]
    file = write_json(tmp_path / "export.json", {"results": [memory(1, "Likes tea")], "relations": relations})
    facts, _, skipped = read(mem0, file)
    assert [fact.text for fact in facts] == ["Likes tea", "ada works at the library"]
    assert [each.where for each in skipped] == ["relation 2", "relation 3"]


def test_other_users_memories_and_damaged_ones_are_skipped(tmp_path: Path) -> None:
    memories = [memory(1, "Likes tea"), memory(2, "A secret", user_id="bob"), memory(3, 7), memory(4, " "), None]
    facts, _, skipped = read(mem0, write_json(tmp_path / "export.json", memories))
    assert [fact.text for fact in facts] == ["Likes tea"]
    assert [(each.reason, each.where) for each in skipped] == [
        ("a memory of another user", "memory 2"),
        ("not a memory", "memory 3"),
        ("not a memory", "memory 4"),
        ("not a memory", "memory 5"),
    ]


def test_the_memory_servers_observations_and_relations_are_facts(tmp_path: Path) -> None:
    lines = [
        {"type": "entity", "name": "Ada", "entityType": "person", "observations": ["Likes tea", "Lives in Rome"]},
        {"type": "relation", "from": "Ada", "to": "Library", "relationType": "works_at"},
    ]
    file = tmp_path / "memory.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)) + "\n\n", encoding="utf-8")
    facts, _, skipped = read(server_memory, file)
    assert [fact.text for fact in facts] == ["Ada: Likes tea", "Ada: Lives in Rome", "Ada works at Library"]
    assert len({fact.key for fact in facts}) == 3
    assert skipped == []


def test_damaged_lines_are_skipped_with_their_number(tmp_path: Path) -> None:
    lines = [
        '{"type": "entity", "name": "Ada", "entityType": "person", "observations": ["Likes tea", 7]}',
        "",
        "no JSON with a secret",
        '{"type": "relation", "from": "Ada", "to": 7, "relationType": "knows"}',
        '{"type": "entity", "name": "Bob", "entityType": "person", "observations": []}',
        '{"type": "entity", "name": 7, "observations": "x"}',
        '{"type": "other"}',
        "[" * 100_000,
        '{"type": "entity", "name": "cut off',
    ]
    file = tmp_path / "memory.json"
    file.write_text("\n".join(lines), encoding="utf-8")
    facts, _, skipped = read(server_memory, file)
    assert [fact.text for fact in facts] == ["Ada: Likes tea"]
    assert [(each.where, each.reason) for each in skipped] == [
        ("line 1", "a damaged observation"),
        ("line 3", NOT_JSON),
        ("line 4", "a damaged relation"),
        ("line 5", "an entity without observations"),
        ("line 6", "a damaged entity"),
        ("line 7", "neither an entity nor a relation"),
        ("line 8", NOT_JSON),
        ("line 9", NOT_JSON),
    ]


def turn(number: int, speaker: str, text: object, **changes: object) -> dict[str, object]:
    return {"speaker": speaker, "dia_id": f"D1:{number}", "text": text} | changes


def test_locomo_turns_are_paired_by_speaker_and_dated(tmp_path: Path) -> None:
    conversation = {
        "speaker_a": "Ada",
        "speaker_b": "Bob",
        "session_2_date_time": "8:05 am on 9 May, 2023",
        "session_2": [turn(9, "Ada", "Later")],
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            turn(1, "Bob", "First"),
            turn(2, "Ada", "Hello"),
            turn(3, "Bob", "Hi", blip_caption="a boat"),
            turn(4, "Bob", "Still there?"),
            turn(5, "Ada", 7),
            None,
        ],
        "session_3": [],
    }
    entries = [{"sample_id": "conv-1", "conversation": conversation, "qa": []}, {"conversation": 7}, 7]
    _, pages, skipped = read(locomo, write_json(tmp_path / "locomo.json", entries))
    assert [(page.user_input, page.agent_response, page.idempotency_key) for page in pages] == [
        ("", "First", "locomo:conv-1:D1:1"),
        ("Hello", "Hi [image: a boat]", "locomo:conv-1:D1:2"),
        ("", "Still there?", "locomo:conv-1:D1:4"),
        ("Later", "", "locomo:conv-1:D1:9"),
    ]
    assert [str(page.timestamp) for page in pages[1:]] == [
        "2023-05-08 13:56:10",
        "2023-05-08 13:56:20",
        "2023-05-09 08:05:00",
    ]
    assert [(each.reason, each.where) for each in skipped] == [
        ("a damaged turn", "conversation 1, session 1"),
        ("a damaged turn", "conversation 1, session 1"),
        ("a damaged session", "conversation 1, session 3"),
        ("not a conversation", "conversation 2"),
        ("not a conversation", "conversation 3"),
    ]


def test_conversations_without_an_id_have_unique_keys(tmp_path: Path) -> None:
    said = {
        "speaker_a": "Ada",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [turn(1, "Ada", "Hello"), turn(2, "Bob", "Hi")],
    }
    _, pages, _ = read(locomo, write_json(tmp_path / "locomo.json", [{"conversation": said, "qa": []}] * 3))
    assert [page.idempotency_key for page in pages] == ["locomo::D1:1", "locomo:#2:D1:1", "locomo:#3:D1:1"]


@pytest.mark.skipif(not (DATA / "locomo-dev.json").is_file(), reason="the published file is not here")
def test_the_published_conversations_are_read_completely() -> None:
    entries = json.loads((DATA / "locomo-dev.json").read_text(encoding="utf-8"))
    said = [
        each["text"]
        for entry in entries
        for name, turns in entry["conversation"].items()
        if isinstance(turns, list) and name.startswith("session_")
        for each in turns
    ]
    _, pages, skipped = read(locomo, DATA / "locomo-dev.json")
    text = "\n".join(f"{page.user_input}\n{page.agent_response}" for page in pages)
    assert all(each in text for each in said)
    assert skipped == []
    assert len({page.idempotency_key for page in pages}) == len(pages)
