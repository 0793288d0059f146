"""The benchmark of answers: scores, the report, and whole runs over a small data set."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from benchmarks.answer_report import figures, print_report
from benchmarks.answer_scores import (
    Question,
    bleu_1,
    declines,
    is_refused,
    load_key,
    load_questions,
    spread,
    token_f1,
)
from benchmarks.answer_state import Answer, State
from benchmarks.answers import main
from benchmarks.datasets import DatasetError
from memoryos_mcp.llm.recording import LOG_NAME
from tests.llama import DATA, MODEL, running_llama

pytestmark = pytest.mark.usefixtures("bare_environment")


def turn(place: int, speaker: str, text: str) -> dict[str, Any]:
    return {"speaker": speaker, "dia_id": f"D1:{place}", "text": text}


LOCOMO = [
    {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ada",
            "speaker_b": "Bo",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [turn(1, "Ada", "I repaired my radio yesterday."), turn(2, "Bo", "I bought a red kite.")],
        },
        "qa": [
            {"question": "When did Ada repair her radio?", "answer": "7 May 2023", "evidence": ["D1:1"], "category": 2},
            {"question": "How many kites has Bo?", "answer": 1, "evidence": ["D1:2"], "category": 1},
            {"question": "What colour is the kite?", "answer": "red", "evidence": [], "category": 4},
            {"question": "Which kite did Ada buy?", "adversarial_answer": "a red one", "evidence": [], "category": 5},
        ],
    }
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    file = tmp_path / "small.json"
    file.write_text(json.dumps(LOCOMO), encoding="utf-8")
    return file


def completed(text: str) -> dict[str, Any]:
    choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return {"status_code": 200, "body": {"choices": [choice], "usage": {"prompt_tokens": 50, "completion_tokens": 3}}}


def replay_file(missing: Path, to: Path) -> Path:
    """Answer each missing request with its last line."""
    lines = []
    for raw in missing.read_text(encoding="utf-8").splitlines():
        request = json.loads(raw)
        question = request["body"]["messages"][-1]["content"]
        text = "red" if "colour" in question else "Not mentioned." if "Which kite" in question else "7 May, 2023"
        if "response_format" in request["body"]:
            text = '{"right": true}'
        lines.append(json.dumps({"custom_id": request["custom_id"], "response": completed(text)}))
    to.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return to


def run(*arguments: object, **options: Any) -> Result:
    return CliRunner().invoke(main, [*map(str, arguments), "--embedding-model-name", "none"], **options)


# Scores


def test_a_questions_position_is_its_id(data: Path) -> None:
    questions = load_questions(data)
    assert [(each.id, each.category, each.answer, each.wrong_answer) for each in questions] == [
        ("conv-1:0", 2, "7 May 2023", ""),
        ("conv-1:1", 1, "1", ""),
        ("conv-1:2", 4, "red", ""),
        ("conv-1:3", 5, "", "a red one"),
    ]


def test_f1_compares_sets_of_words() -> None:
    assert token_f1("On 7 May, 2023!", "7 may 2023") == pytest.approx(2 * 3 / 7)
    assert token_f1("red red red", "red") == 1
    assert token_f1("", "red") == token_f1("blue", "red") == 0


def test_bleu_1_clips_words_and_penalises_short_answers() -> None:
    assert bleu_1("red red", "red") == 0.5
    assert bleu_1("red", "red kite") == pytest.approx(0.36787944)
    assert bleu_1("", "red") == 0


@given(st.text(max_size=50), st.text(max_size=50))
def test_scores_are_shares_and_1_only_for_equal_words(answer: str, key: str) -> None:
    assert 0 <= token_f1(answer, key) <= 1
    assert 0 <= bleu_1(answer, key) <= 1
    assert token_f1(answer, key) == pytest.approx(token_f1(key, answer))


@pytest.mark.parametrize("answer", ["Not mentioned.", "I don't know that.", "There is no information about it."])
def test_a_declining_answer_is_recognised(answer: str) -> None:
    assert declines(answer)


def test_an_adversarial_question_must_be_declined() -> None:
    assert is_refused("Not mentioned.", "a red one")
    assert not is_refused("Not mentioned, but perhaps a red one", "A red one.")
    assert not is_refused("a red one", "a red one")


def test_a_sample_is_spread_evenly(data: Path) -> None:
    questions = load_questions(data)
    assert [question.id for question in spread(questions, 2)] == ["conv-1:0", "conv-1:2"]
    assert spread(questions, None) == spread(questions, 9) == questions


@pytest.mark.parametrize("text", ["{", "[]", '[{"qa": 1}]'])
def test_invalid_data_sets_and_keys_are_rejected(tmp_path: Path, text: str) -> None:
    file = tmp_path / "x.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(DatasetError):
        load_key(file)
    if text != "[]":
        with pytest.raises(DatasetError):
            load_questions(file)


# The report


def test_a_corrected_key_precedes_the_original() -> None:
    question = Question("c:0", "c", "Which?", 4, "blue", "")
    answers = {"c:0": Answer("c:0", "red")}
    assert figures([question], answers, {}).f1 == 0
    assert figures([question], answers, {"c:0": "red"}).f1 == 100


def test_an_unanswered_question_scores_0_and_is_reported() -> None:
    questions = [Question("c:0", "c", "Which?", 4, "red", ""), Question("c:1", "c", "Which?", 4, "red", "")]
    answers = {"c:0": Answer("c:0", "red"), "c:1": Answer("c:1", "", failure="down")}
    told = StringIO()
    print_report(Console(file=told, width=150), questions, answers, None)
    assert "50.00 / 50.00" in told.getvalue()
    assert "1 questions without an answer, the last: down" in told.getvalue()
    assert "48.62 / 42.99" in told.getvalue()


# Runs


def test_a_run_is_replayed_scored_judged_and_resumed(data: Path, tmp_path: Path) -> None:
    state, replay, key = tmp_path / "answers.jsonl", tmp_path / "replay.jsonl", tmp_path / "key.json"
    key.write_text('{"conv-1:1": "7 May 2023"}', encoding="utf-8")
    replay.touch()
    arguments = ("--data", data, "--state", state, "--replay", replay, "--key", key, "--judge")
    first = run(*arguments)
    assert first.exit_code == 0, first.output
    assert "4 questions without an answer" in first.output
    missing = tmp_path / "replay.missing.jsonl"
    assert len(missing.read_text(encoding="utf-8").splitlines()) == 4

    replay_file(missing, replay)
    assert "4 questions to answer" in run(*arguments).output
    replay_file(missing, replay)  # now with the judge's requests
    last = run(*arguments)
    assert last.exit_code == 0, last.output
    assert "1 to 4" in last.output
    assert "66.67 / 66.67" in last.output
    assert "100.00 / 100.00" in last.output
    assert "5 adversarial: 100.0 % of 1 seen through" in last.output
    answers = State(state, json.loads(state.read_text(encoding="utf-8").splitlines()[0])["about"]).answers
    assert [answers[f"conv-1:{place}"].is_right for place in range(4)] == [True, True, True, None]

    lines = state.read_text(encoding="utf-8")
    again = run(*arguments)
    assert "0 questions to answer" in again.output
    assert state.read_text(encoding="utf-8") == lines


def test_a_cut_state_is_resumed_and_a_foreign_one_rejected(tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    State(file, {"model": "a"}).add(Answer("c:0", "red"))
    with file.open("a", encoding="utf-8") as opened:
        opened.write('{"id": "c:1", "te')
    again = State(file, {"model": "a"})
    again.add(Answer("c:2", "blue"))
    assert set(State(file, {"model": "a"}).answers) == {"c:0", "c:2"}
    with pytest.raises(Exception, match="another run"):
        State(file, {"model": "b"})


def test_the_cost_is_confirmed_before_the_llm_is_called(data: Path) -> None:
    declined = run("--data", data, "--openai-base-url", "http://127.0.0.1:9/v1", input="n\n")
    assert declined.exit_code == 1
    assert "4 questions to answer by gpt-4o-mini: about 4 calls" in declined.output


def test_without_an_llm_the_error_names_the_settings(data: Path) -> None:
    refused = run("--data", data)
    assert refused.exit_code == 1
    assert "set llm_provider" in refused.output


@pytest.mark.campaign
@pytest.mark.skipif(not (MODEL and DATA), reason="MEMORYOS_GGUF names no model, or MEMORYOS_EVAL_DATA no dialogue")
def test_the_log_of_a_real_model_can_be_replayed(data: Path, tmp_path: Path) -> None:
    state = tmp_path / "answers.jsonl"
    settings = (
        "--llm-model",
        "smollm2",
        "--llm-timeout-s",
        "600",
        "--retrieval-max-tokens",
        "100",
        "--reply-tokens",
        "48",
    )
    with running_llama() as address:
        url = ("--openai-base-url", address)
        asked = run("--data", data, "--state", state, *url, *settings, "--llm-log", "true", "--at-once", 1, "--yes")
    assert asked.exit_code == 0, asked.output
    answers = [json.loads(line) for line in state.read_text(encoding="utf-8").splitlines()[1:]]
    assert {answer["id"] for answer in answers} == {f"conv-1:{place}" for place in range(4)}
    assert all(answer["text"] or "cut" in answer["failure"] for answer in answers)
    log = state.with_name("answers.jsonl.memory") / LOG_NAME
    replayed = run("--data", data, "--replay", log, "--retrieval-max-tokens", "100")
    assert replayed.exit_code == 0, replayed.output
    assert table(replayed.output) == table(asked.output)


def table(output: str) -> list[str]:
    """Return the lines of the report with scores."""
    return [line for line in output.splitlines() if " / " in line or "seen through" in line]
