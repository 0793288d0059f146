from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.statements import LIFE, judge_life, main
from memoryos_mcp.consolidation import worker


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "POLL_S", 0.05)


def test_the_made_up_year_is_learned_without_an_llm() -> None:
    judged = judge_life()
    assert judged.recall >= 0.75, judged.missed
    assert judged.precision >= 0.95, judged.untrue
    assert (judged.never, judged.false_days) == ((), ())


def test_the_made_up_year_is_learned_from_recorded_replies() -> None:
    judged = judge_life(LIFE / "replies.jsonl")
    assert judged.recall >= 0.92, judged.missed
    assert judged.precision >= 0.98, judged.untrue
    assert (judged.never, judged.false_days) == ((), ())


def test_a_draw_prints_facts_of_other_conversations(tmp_path: Path) -> None:
    file = tmp_path / "talk.json"
    file.write_text(
        '[{"id": "one", "pages": [{"page_id": "p1", "user_input": "I live in Oslo.", "agent_response": "Nice.", '
        '"timestamp": "2025-03-01T10:00:00+00:00"}], "queries": []}]',
        encoding="utf-8",
    )
    done = CliRunner().invoke(main, ["--data", str(file), "--draw", "5"])
    assert done.exit_code == 0, done.output
    assert "1 facts of 2 turns" in done.output
    assert "p1\tuser statement lives\tI live in Oslo." in done.output
