"""The commands that add, list and organise memories, and the words that point to them."""

import json
from pathlib import Path

import pytest

from memoryos_mcp.cli.command_line import DESTRUCTIVE, OTHER_WORDS
from memoryos_mcp.cli.main import cli
from tests.commands import run_here, run_on

NO_MODEL = ("--embedding-model-name", "none")


def listed(data: Path, *arguments: str) -> list[dict[str, object]]:
    memories: list[dict[str, object]] = json.loads(run_on(data, "list", *arguments, "--json", *NO_MODEL).stdout)[
        "memories"
    ]
    return memories


def test_an_added_page_is_listed_and_found(tmp_path: Path) -> None:
    data = tmp_path / "data"
    added = json.loads(
        run_on(
            data, "add", "I moved to York.", "--response", "Nice.", "--time", "2026-01-08", "--json", *NO_MODEL
        ).stdout
    )
    (page,) = listed(data)
    assert (page["id"], str(page["timestamp"])[:10]) == (added["page_id"], "2026-01-08")
    shown = run_on(data, "show", added["page_id"], *NO_MODEL).stdout
    assert "I moved to York." in shown
    assert "Nice." in shown
    assert added["page_id"] in run_on(data, "search", "York", *NO_MODEL).stdout


def test_text_is_added_from_stdin(tmp_path: Path) -> None:
    text = "Grüße aus Köln\nzwei Zeilen\n".encode()
    done = run_here("add", "-", "--data-storage-path", tmp_path / "data", *NO_MODEL, stdin=text)
    assert done.returncode == 0, done.stderr
    assert [page["beginning"] for page in listed(tmp_path / "data")] == ["Grüße aus Köln zwei Zeilen"]


def test_stdin_that_is_not_text_is_refused(tmp_path: Path) -> None:
    refused = run_here("add", "-", "--data-storage-path", tmp_path / "data", *NO_MODEL, stdin=b"\xff\xfe\x00")
    assert (refused.returncode, "stdin: the text is not in UTF-8" in refused.stderr) == (2, True)


def test_the_printed_line_continues_a_list(tmp_path: Path) -> None:
    data = tmp_path / "data"
    for text in ("one", "two", "three"):
        run_on(data, "add", text, "--time", "2026-01-08", *NO_MODEL)
    first = run_on(data, "list", "--limit", "2", "--after", "2026-01-01", *NO_MODEL).stdout
    more = first.partition("More: memoryos-mcp ")[2].split()
    second = run_on(data, *more, *NO_MODEL).stdout
    assert ("three" in first, "two" in first, "one" in first) == (True, True, False)
    assert ("two" in second, "one" in second, "More:" in second) == (False, True, False)


def test_organise_does_all_waiting_work(tmp_path: Path) -> None:
    data = tmp_path / "data"
    few = ("--short-term-capacity", "1")
    for text in ("My dog Biscuit is a beagle.", "I am allergic to walnuts.", "I work as a joiner in York."):
        run_on(data, "add", text, *few)
    done = json.loads(run_on(data, "organise", "--json", *few).stdout)
    assert (done["pages"], done["left"], done["degraded"], done["error"]) == (3, 0, 0, None)
    stats = json.loads(run_on(data, "stats", "--json", *few).stdout)
    assert (stats["stats"]["backlog_pages"], stats["stats"]["mid_term_pages"]) == (0, 2)
    assert [space["pages_left"] for space in stats["embedding"]["spaces"]] == [0]
    assert any("walnuts" in str(fact["beginning"]) for fact in listed(data, "facts"))
    assert listed(data, "topics")
    assert run_on(data, "organise", *few).stdout == "No page was waiting.\n"


@pytest.mark.parametrize("word", sorted(OTHER_WORDS))
def test_another_word_points_to_its_command_and_runs_nothing(word: str, tmp_path: Path) -> None:
    told = run_here(word, "k1", "--yes", env={"MEMORYOS_DATA_STORAGE_PATH": str(tmp_path / "data")})
    assert (told.returncode, told.stdout) == (2, "")
    assert f"Use: memoryos-mcp {OTHER_WORDS[word]}" in told.stderr
    assert word not in cli.commands
    assert OTHER_WORDS[word].split()[0] in {*cli.commands, "--version"}
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(("typed", "meant"), [("retreive", "search"), ("rember", "add"), ("Dashbord", "ui")])
def test_a_mistyped_other_word_points_to_its_command(typed: str, meant: str) -> None:
    told = run_here(typed)
    assert (told.returncode, told.stdout) == (2, "")
    assert told.stderr.endswith(f"There is no command {typed!r}. Use: memoryos-mcp {meant}\n")


def test_only_words_for_deleting_point_to_forget() -> None:
    assert {OTHER_WORDS[word] for word in ("delete", "rm", "remove")} == {"forget"}
    assert DESTRUCTIVE & set(OTHER_WORDS.values()) == {"forget"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("add", ""), "TEXT: is empty, and so is --response"),
        (("add", "hello", "--time", "soon"), "--time: is not a valid time"),
        (("add", "long text", "--max-page-chars", "3"), "TEXT: the page has 9 characters"),
        (("list", "--after", "soon"), "--after: is not a valid time"),
        (("list", "--after", "2026-02-01", "--before", "2026-01-01"), "--before: must be later than --after"),
        (("list", "--cursor", "x"), "--cursor: "),
        (("list", "traits", "--state", "archived"), "'--state archived' applies only to facts and topics"),
        (("list", "topics", "--state", "superseded"), "memoryos-mcp list facts --state superseded"),
        (("correct", "k1"), "--text: either --text or --wrong is required, but not both; use --wrong if"),
        (("correct", "k1", "--level", "Low"), "--level: --level and --reason apply only to traits"),
        (("correct", "trait:Openness"), "--level: pass --level, --reason or both"),
        (("correct", "k1", "--restore", "--text", "x"), "--restore: cannot be combined with --text"),
        (("correct", "p_12"), "ID: is the id of a page"),
        (("show", "k99"), "ID: no memory has the id k99; to find ids, use list and search"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_errors_use_the_words_of_the_command_line(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    run_on(data, "add", "I like tea.", *NO_MODEL)
    refused = run_here(*arguments, "--data-storage-path", data, *NO_MODEL)
    assert refused.returncode == 2
    assert message in refused.stderr
    assert not any(
        name in refused.stderr for name in ("user_input", "agent_response", "timestamp", "list_memories", "to true")
    )


def test_a_topic_is_shown_with_its_pages_and_facts(tmp_path: Path) -> None:
    data = tmp_path / "data"
    few = ("--short-term-capacity", "1", *NO_MODEL)
    for text in ("I am allergic to walnuts.", "My allergy to walnuts began in school.", "Good night."):
        run_on(data, "add", text, *few)
    run_on(data, "organise", *few)
    shown = run_on(data, "show", "s1", *few).stdout
    assert "I am allergic to walnuts." in shown.partition("the newest first")[2]
    assert "k1" in shown
    assert "s1" in {
        memory["id"] for memory in json.loads(run_on(data, "show", "s1", "--json", *few).stdout)["memories"]
    }


def conversation(path: Path) -> Path:
    talk = {"speaker_a": "Ada", "speaker_b": "Bo", "session_1_date_time": "1:56 pm on 8 May, 2023"}
    turns = [{"speaker": "Ada", "text": "I like tea.", "dia_id": "D1:1"}]
    path.write_text(
        json.dumps([{"sample_id": "one", "qa": [], "conversation": {**talk, "session_1": turns}}]), encoding="utf-8"
    )
    return path


def test_a_conversation_of_several_people_is_not_imported_unasked(tmp_path: Path) -> None:
    data, file = tmp_path / "data", conversation(tmp_path / "talk.json")
    refused = run_here("import", file, "--data-storage-path", data)
    assert (refused.returncode, "2 people speak" in refused.stderr, "--all-speakers" in refused.stderr) == (
        2,
        True,
        True,
    )
    assert not list(data.rglob("*.db"))
    dry = run_on(data, "import", file, "--dry-run")
    assert ("Ada, Bo" in dry.stderr, "Pages: 1 found" in dry.stdout) == (True, True)
    run_on(data, "import", file, "--all-speakers")
    assert [page["beginning"] for page in listed(data)] == ["I like tea."]


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 1)])
def test_at_a_terminal_an_answer_decides(answer: str, code: int, tmp_path: Path) -> None:
    data, file = tmp_path / "data", conversation(tmp_path / "talk.json")
    line = ("import", file, "--data-storage-path", data)
    done = run_here(*line, stdin=f"{answer}\n".encode(), is_terminal=True)
    assert (done.returncode, "2 people speak" in done.stderr) == (code, True)
    assert bool(list(data.rglob("*.db"))) is not bool(code)
