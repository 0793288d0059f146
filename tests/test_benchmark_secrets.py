"""The benchmark of secrets reports caught secrets and each false alarm."""

import json
import os
import random
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks import secrets as benchmark
from benchmarks.datasets import load
from benchmarks.secret_keys import checked_token
from memoryos_mcp.text.secrets import redact

DATA = os.environ.get("MEMORYOS_EVAL_DATA")


def test_most_secrets_are_caught_and_no_lookalikes() -> None:
    rates = benchmark.catch_rates(rounds=30)
    assert min(rates.values()) > 0.9
    assert sum(rates.values()) / len(rates) > 0.995
    assert set(benchmark.near_miss_alarms(rounds=200).values()) == {0.0}


@pytest.mark.campaign
def test_alarms_are_counted_and_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark, "ROUNDS", 1)
    monkeypatch.setattr(benchmark, "NEAR_MISS_ROUNDS", 1)
    token = checked_token("ghp", random.Random(1))  # noqa: S311 - made-up data
    said = [("It is " + token, "Thanks."), ("Tea?", "Yes.")]
    pages = [
        {"page_id": f"p{at}", "user_input": user, "agent_response": agent, "timestamp": "2026-05-08T13:56:00+00:00"}
        for at, (user, agent) in enumerate(said)
    ]
    file = tmp_path / "made-up.json"
    file.write_text(json.dumps([{"id": "c", "pages": pages, "queries": []}]), encoding="utf-8")
    done = CliRunner().invoke(benchmark.main, ["--data", str(file)], catch_exceptions=False)
    assert done.exit_code == 0
    assert "made-up: 1 alarms in 4 turns, 2500.00 in 10,000 (not reached)" in done.output
    assert "github token: 'It is " in done.output


@pytest.mark.campaign
@pytest.mark.skipif(DATA is None, reason="MEMORYOS_EVAL_DATA names no folder of conversations")
@pytest.mark.parametrize("name", ["locomo-dev", "beam-dev"])
def test_real_conversations_rarely_raise_alarms(name: str) -> None:
    turns = benchmark.turns_of(load(Path(DATA or "") / f"{name}.json").conversations)
    assert sum(bool(redact(turn).kinds) for turn in turns) < len(turns) / 10_000
