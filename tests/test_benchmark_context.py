"""The benchmark of contexts, run as a command on a life of a few pages."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LIMIT_S = 120
LONG = "The route goes past the mill, along the dike and over three bridges. " * 40
YEAR = f"""
[[page]]
id = "one"
at = 2025-01-04T09:00:00
user = "I bought a red kayak."
assistant = "Have a good trip."

[[page]]
id = "two"
at = 2025-02-04T09:00:00
user = "Which way should I ride to work?"
assistant = "{LONG}"
"""
QUESTIONS = """
[[question]]
text = "What colour is my kayak?"
gold = ["one"]
answer = "red"

[[question]]
text = "Which way do I ride to work?"
gold = ["two"]
answer = "past the mill"
"""


@pytest.mark.campaign
def test_a_page_in_excerpts_counts_as_shown_but_not_as_whole(tmp_path: Path) -> None:
    (tmp_path / "year.toml").write_text(YEAR, encoding="utf-8")
    (tmp_path / "questions.toml").write_text(QUESTIONS, encoding="utf-8")
    report = tmp_path / "report.json"
    told = subprocess.run(
        [
            *(sys.executable, "-m", "benchmarks.context", "--data", str(tmp_path / "year.toml")),
            *("--budget", "20000", "--budget", "200", "--json", str(report)),
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONWARNINGS": "error"},
        capture_output=True,
        timeout=LIMIT_S,
        check=True,
        encoding="utf-8",
    ).stdout
    assert re.search(r"^pages in the largest topic: \S+ \d+\.\d%$", told, re.MULTILINE)
    assert "recall" not in told
    large, small = json.loads(report.read_text(encoding="utf-8"))
    assert (large["budget"], large["questions"]) == (20_000, 2)
    assert (large["shown"], large["whole"], large["known"]) == (1.0, 1.0, 1.0)
    assert small["shown"] == 1.0
    assert [reply["whole"] for reply in small["replies"]] == [1.0, 0.0]
    assert all(reply["tokens"] == reply["said_tokens"] > 0 for reply in small["replies"])
    assert large["largest_topics"] == {large["replies"][0]["conversation"]: pytest.approx(0, abs=1)}
