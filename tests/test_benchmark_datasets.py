"""Loading the benchmark's data sets: no turn is lost, no citation misread."""

import json
import os
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import benchmarks
from benchmarks.datasets import DatasetError, cited_turns, load, pair_turns

EVAL_DATA = os.environ.get("MEMORYOS_EVAL_DATA")
needs_eval_data = pytest.mark.skipif(not EVAL_DATA, reason="not run: MEMORYOS_EVAL_DATA is not set")


def _turn(speaker: str, dia_id: str, text: str = "Hello.", **more: str) -> dict[str, str]:
    return {"speaker": speaker, "dia_id": dia_id, "text": text, **more}


def _locomo(turns: list[dict[str, str]], qa: list[dict[str, Any]]) -> list[dict[str, Any]]:
    conversation = {
        "speaker_a": "Ann",
        "speaker_b": "Ben",
        "session_2": turns,
        "session_2_date_time": "1:56 pm on 8 May, 2023",
        "session_10": [_turn("Ann", "D10:1", "The last one.")],
        "session_10_date_time": "12:05 am on 1 June, 2023",
        "session_11_date_time": "9:00 am on 2 June, 2023",
    }
    return [{"sample_id": "conv-1", "conversation": conversation, "qa": qa}]


def _write(folder: Path, content: object) -> Path:
    file = folder / "data.json"
    file.write_text(json.dumps(content), encoding="utf-8")
    return file


@given(speakers=st.lists(st.sampled_from(["Ann", "Ben"]), max_size=30))
def test_every_turn_is_in_exactly_one_page_in_order(speakers: list[str]) -> None:
    turns = [_turn(speaker, f"D1:{number}") for number, speaker in enumerate(speakers)]
    pages = pair_turns(turns, "Ann")
    assert [turn for page in pages for turn in page] == turns
    assert all([turn["speaker"] for turn in page] in (["Ann", "Ben"], ["Ann"], ["Ben"]) for page in pages)


def test_a_turn_pairs_with_the_answer_that_follows_it_at_once() -> None:
    speakers = ["Ben", "Ann", "Ann", "Ben", "Ben"]
    pages = pair_turns([_turn(speaker, str(number)) for number, speaker in enumerate(speakers)], "Ann")
    assert [[turn["dia_id"] for turn in page] for page in pages] == [["0"], ["1"], ["2", "3"], ["4"]]


@pytest.mark.parametrize(
    ("evidence", "turns"),
    [
        (["D1:3", "D2:11"], ["D1:3", "D2:11"]),
        (["D8:6; D9:17"], ["D8:6", "D9:17"]),
        (["D9:1 D4:4 D4:6"], ["D9:1", "D4:4", "D4:6"]),
        (["D:11:26"], ["D11:26"]),
        (["D1:3", "D1:3"], ["D1:3"]),
        (["D"], ["D"]),
        ([], []),
    ],
)
def test_citations_are_read_however_they_are_written(evidence: list[str], turns: list[str]) -> None:
    assert cited_turns(evidence) == turns


def test_a_locomo_file_becomes_pages_and_questions(tmp_path: Path) -> None:
    turns = [
        _turn("Ben", "D2:1", "I begin."),
        _turn("Ann", "D2:2", "Look!", blip_caption="a photo of a kiln"),
        _turn("Ben", "D2:3", "Nice."),
    ]
    qa = [
        {"question": "What did Ann show?", "answer": "a kiln", "evidence": ["D2:3; D10:1", "D2:2"], "category": 1},
        {"question": "Who began?", "answer": "Ben", "evidence": ["D2:9"], "category": 4},
        {"question": "What if?", "answer": "no", "evidence": [], "category": 3},
    ]
    dataset = load(_write(tmp_path, _locomo(turns, qa)))
    conversation = dataset.conversations[0]
    assert [(page.page_id, page.user_input, page.agent_response) for page in conversation.pages] == [
        ("D2:1", "", "I begin."),
        ("D2:2", "Look! [image: a photo of a kiln]", "Nice."),
        ("D10:1", "The last one.", ""),
    ]
    assert conversation.pages[0].timestamp == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    assert conversation.pages[2].timestamp == datetime(2023, 6, 1, 0, 5, tzinfo=UTC)
    assert [(question.category, question.gold) for question in conversation.questions] == [
        ("multi-hop", ("D2:2", "D10:1"))
    ]
    assert (conversation.left_out, conversation.bad_citations) == (2, 1)
    assert "published key" in dataset.key


def test_a_neutral_file_becomes_pages_and_questions(tmp_path: Path) -> None:
    content = [
        {
            "id": "chat-1",
            "pages": [
                {"page_id": "p0", "user_input": "Hi", "agent_response": "Hello", "timestamp": "2024-03-15 09:00:00"}
            ],
            "queries": [
                {"question": "What?", "answer": "Hi", "ability": "summarization", "gold_page_ids": ["p0", "p7"]}
            ],
        }
    ]
    dataset = load(_write(tmp_path, content))
    conversation = dataset.conversations[0]
    assert conversation.pages[0].text == "Hi\nHello"
    assert conversation.pages[0].timestamp == datetime(2024, 3, 15, 9, tzinfo=UTC)
    assert conversation.questions[0].gold == ("p0",)
    assert (dataset.categories, conversation.bad_citations) == (("summarization",), 1)


@pytest.mark.parametrize("content", [[], {}, 7, [{"id": "x"}], [{"conversation": {}}]])
def test_a_file_of_another_kind_is_rejected(tmp_path: Path, content: object) -> None:
    with pytest.raises(DatasetError, match="neither"):
        load(_write(tmp_path, content))


@needs_eval_data
def test_every_turn_of_the_real_locomo_file_is_in_one_page() -> None:
    file = Path(EVAL_DATA or "") / "locomo-dev.json"
    entries = json.loads(file.read_text(encoding="utf-8"))
    for entry, conversation in zip(entries, load(file).conversations, strict=True):
        sessions = [value for value in entry["conversation"].values() if isinstance(value, list)]
        said = Counter(turn["text"] for session in sessions for turn in session)
        sides = (side for page in conversation.pages for side in (page.user_input, page.agent_response) if side)
        assert Counter(side.split(" [image: ")[0] for side in sides) == said


@needs_eval_data
def test_pages_of_the_real_files_keep_their_order_in_time() -> None:
    for name in ("locomo-dev.json", "beam-dev.json"):
        for conversation in load(Path(EVAL_DATA or "") / name).conversations:
            times = [page.timestamp for page in conversation.pages]
            assert times == sorted(times)


@needs_eval_data
def test_real_locomo_sessions_are_further_apart_than_a_gap() -> None:
    for conversation in load(Path(EVAL_DATA or "") / "locomo-dev.json").conversations:
        for before, after in zip(conversation.pages, conversation.pages[1:], strict=False):
            is_same_session = before.page_id.split(":")[0] == after.page_id.split(":")[0]
            assert (after.timestamp - before.timestamp < timedelta(minutes=30)) == is_same_session


@needs_eval_data
def test_real_files_lose_only_questions_without_evidence() -> None:
    locomo = load(Path(EVAL_DATA or "") / "locomo-dev.json")
    beam = load(Path(EVAL_DATA or "") / "beam-dev.json")
    assert sum(len(each.questions) for each in locomo.conversations) == 997
    assert sum(each.left_out for each in locomo.conversations) == 2
    assert sum(len(each.questions) for each in beam.conversations) == 144
    assert sum(each.left_out for each in beam.conversations) == 0


@pytest.mark.parametrize(("name", "chats", "pages"), [("work", 4, 48), ("two_languages", 2, 80)])
def test_the_made_up_chats_are_complete(name: str, chats: int, pages: int) -> None:
    found = load(Path(benchmarks.__file__).parent / f"{name}.json").conversations
    assert len(found) == chats
    for conversation in found:
        assert (len(conversation.pages), len(conversation.questions)) == (pages, 30)
        assert (conversation.left_out, conversation.bad_citations) == (0, 0)
        times = [page.timestamp for page in conversation.pages]
        assert times == sorted(set(times))
        assert all(page.user_input and page.agent_response for page in conversation.pages)
