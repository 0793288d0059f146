"""The demo, run in another process; the tests read its output."""

import os
import re
import subprocess
import sys

import anyio
import pytest

from memoryos_mcp.cli.commands import demo, demo_script
from memoryos_mcp.errors import MemoryOSError

LIMIT_S = 120
FRAME = "─╭╮╰╯│ "


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the output of the demo to a file, without settings in the environment."""
    folder = tmp_path_factory.mktemp("demo")
    done = subprocess.run(
        [sys.executable, "-m", "memoryos_mcp", "demo"],
        env=os.environ | {"PYTHONIOENCODING": "utf-8", "TMPDIR": str(folder), "MEMORYOS_SHORT_TERM_CAPACITY": "0"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=LIMIT_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert list(folder.iterdir()) == [], "the demo left files behind"
    return done.stdout


def panels(shown: str, look: demo_script.Look) -> list[str]:
    """Return the panels of a tier, each as one line of text without the frame."""
    found = re.findall(r"╭─.*?─╯", shown, re.DOTALL)
    texts = [" ".join(" ".join(line.strip(FRAME) for line in one.splitlines()).split()) for one in found]
    return [text for text in texts if re.search(rf"{look.value}(?:, found by its \w+)?, \d+ ms$", text)]


def test_the_output_is_plain_text_of_eighty_columns(shown: str) -> None:
    assert "\x1b" not in shown
    assert "\r" not in shown
    body = shown[: shown.index("Your turn")]
    assert max(len(line) for line in body.splitlines()) <= demo.WIDTH_COLUMNS


def test_part_one_shows_pages_timings_and_tiers(shown: str) -> None:
    part = " ".join(shown[: shown.index("Part 2")].split())
    for exchange in demo_script.CONVERSATION:
        assert exchange.user_input[:40] in part
    assert re.search(rf"{len(demo_script.CONVERSATION)} pages were added; .*\d+\.\d ms \(median\)", part)
    assert re.search(r"short-term the last 7 pages", part)
    assert re.search(r"mid-term 10 pages in 2 topics: \w+/\w+/\w+ \(5\)", part)
    assert re.search(r"long-term [1-9]\d* traits and [1-9]\d* facts", part)


def test_the_restart_loses_no_page(shown: str) -> None:
    assert re.search(r"^Part 2: the server was stopped and started again", shown, re.MULTILINE)
    assert f"All {len(demo_script.CONVERSATION)} pages are still in the memory" in shown
    assert len(re.findall(r"The server replied \d+\.\d\d s", shown)) == 2


@pytest.mark.parametrize("question", demo_script.QUESTIONS, ids=lambda question: question.text)
def test_every_question_is_answered_from_its_tier(shown: str, question: demo_script.Question) -> None:
    assert [text for text in panels(shown, question.look) if text.startswith(question.text)]


def test_the_newest_page_comes_from_short_term_memory(shown: str) -> None:
    (text,) = panels(shown, demo_script.Look.SHORT_TERM)
    assert demo_script.CONVERSATION[-1].user_input in text


def test_mid_term_pages_are_found_by_words_and_by_meaning(shown: str) -> None:
    by_words, by_meaning = panels(shown, demo_script.Look.MID_TERM)
    assert "painting a heron" in by_words
    assert "found by its words" in by_words
    assert "thunderstorm" in by_meaning
    assert "found by its meaning" in by_meaning
    for text in (by_words, by_meaning):
        parts = r"\w+ [+-]\d+\.\d, \w+ [+-]\d+\.\d, \w+ [+-]\d+\.\d"
        assert re.search(rf"topic \S+, heat \d\.\d; score \d+\.\d\d \({parts}\)", text)


def test_a_fact_and_traits_come_from_long_term_memory(shown: str) -> None:
    (fact,) = panels(shown, demo_script.Look.KNOWLEDGE)
    assert re.search(r"I'm allergic to walnuts\. said \d{4}-\d\d-\d\d; score \d\.\d\d", fact)
    (profile,) = panels(shown, demo_script.Look.PROFILE)
    assert all(re.search(rf"trait {interest}: \w+ - Spoke of ", profile) for interest in ("Animal", "Art"))


def test_questions_about_topics_raise_their_heat(shown: str) -> None:
    changes = re.findall(r"(\d\.\d) →\s+(\d\.\d)", shown)
    assert len(changes) == 2
    assert all(float(now) > float(before) for before, now in changes)


def test_the_last_three_lines_show_the_next_steps(shown: str) -> None:
    first, second, third = shown[shown.index("Your turn") :].splitlines()[1:]
    assert first.endswith("memoryos-mcp install")
    assert '{"mcpServers": {"memoryos": {"command": "' in second
    assert third.endswith("serve")


async def test_the_log_of_a_crashed_server_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with anyio.fail_after(LIMIT_S), pytest.raises(MemoryOSError, match=r"failed: .*\n.*no room here"):
        await demo.run_demo([sys.executable, "-c", "raise SystemExit('no room here')"])
    assert "Part 1" not in capsys.readouterr().out


async def test_a_refused_call_ends_the_demo_with_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    command = [
        sys.executable,
        "-m",
        "memoryos_mcp",
        "serve",
        "--max-page-chars",
        "10",
        "--embedding-model-name",
        "none",
    ]
    with (
        anyio.fail_after(LIMIT_S),
        pytest.raises(MemoryOSError, match=r"the tool add_memory failed: .*max_page_chars"),
    ):
        await demo.run_demo(command)
    assert "Part 2" not in capsys.readouterr().out
